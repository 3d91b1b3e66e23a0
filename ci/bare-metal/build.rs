//! Links the gate as firmware is linked: no start files, no C library, a fixed address.
//!
//! Kept here and not in a cargo configuration, so that the flags hold from every folder and
//! whatever RUSTFLAGS says.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in ["-nostartfiles", "-nostdlib", "-static", "-no-pie"] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}
