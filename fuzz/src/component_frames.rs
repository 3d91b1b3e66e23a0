//! What a component says to its supervisor: any bytes, no panic, and what is understood is said
//! again in the same words; what the supervisor keeps of it stays within its bounds.

/// One input.
pub fn run(bytes: &[u8]) {
    weft::node::heard::component_frame(bytes);
}
