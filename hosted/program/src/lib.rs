//! The `weft` program: its commands over the library `weft`, the demonstration and the doctor.
//!
//! A library only so that its tests reach it: build on the crate `weft` instead.

pub mod cli;
mod conform;
pub mod demo;
pub mod doctor;
mod log;
mod metrics;
mod notify;
pub mod transfer;

#[cfg(test)]
#[path = "../../src/scratch.rs"]
mod scratch;
