//! The `weft` program: its commands over the library `weft`, the demonstration and the doctor.
//!
//! A library only so that its tests reach it: build on the crate `weft` instead.

pub mod cli;
mod conform;
pub mod demo;
pub mod doctor;
<<<<<<< HEAD
mod metrics;
mod notify;
pub mod tensor_file;
=======
>>>>>>> 4528a21 (Files of tensors are read in the library, where fuzz targets reach them; fuzz targets of the rendezvous, of .npy headers and of safetensors files)
pub mod transfer;

#[cfg(test)]
#[path = "../../src/scratch.rs"]
mod scratch;
