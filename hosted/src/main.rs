//! The `weft` program.

fn main() {}
