//! weft

pub mod cluster;
pub mod doctor;
pub mod explain;
pub mod runtime_dir;

#[cfg(test)]
mod scratch;
