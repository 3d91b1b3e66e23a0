//! Rendezvous: tensors by name. What it is built of so far: the names ([`Key`]), what a tensor is
//! ([`Shape`]), and the memory that it lies in ([`Pool`]). The messages are in
//! [`wire::rendezvous`](crate::wire::rendezvous).

mod key;
mod pool;

pub use key::{BadKey, Key};
pub use pool::{LEAVES_MAX, Piece, Pool};

pub use crate::wire::rendezvous::{BadShape, Dtype, Shape, Status};
