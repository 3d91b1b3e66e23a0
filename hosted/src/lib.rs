//! weft

pub mod cluster;
pub mod explain;

#[cfg(test)]
mod scratch;
