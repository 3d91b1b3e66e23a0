//! Links as cortex-m-rt wants it, with the board's memory.
//!
//! Kept here and not in a cargo configuration, so that the flags hold from every folder and
//! whatever RUSTFLAGS says.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=memory.x");
    println!("cargo:rustc-link-search={}", env!("CARGO_MANIFEST_DIR"));
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rustc-link-arg-bins=--nmagic");
}
