//! weft

pub mod cluster;
pub mod explain;
pub mod runtime_dir;

#[cfg(test)]
mod scratch;
