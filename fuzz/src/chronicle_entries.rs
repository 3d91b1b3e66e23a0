//! Entries that other nodes, and the own component, send for the chronicle: a line each.
//!
//! Nothing may panic, whatever times and nodes they name; the times of the own entries rise, and a
//! reader who goes on behind the last entry that it has sees each once.

/// One input.
pub fn run(bytes: &[u8]) {
    weft::node::heard::entries(bytes);
}
