//! weft

pub mod explain;
