//! The name by which programs find the shared library: that of the interface's version.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libweft.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
