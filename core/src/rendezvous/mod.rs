//! Rendezvous: tensors by name. A value is *sent* under a key and a step into a table of its own
//! node; a *receive* for the same key and step, earlier or later, on another node, gets it once:
//! named, typed, whole, or a reason why not.
//!
//! ```text
//!  destination                         source                    inline │ TENSOR_WRITE carries it
//!  receive ────── TENSOR_REQUEST ────▶ table: a value? else wait read   │ the destination reads it
//!    │             ◀─ BUFFER_REQUEST ─ lent: where, how long
//!    │ Read ×n ◀══════════════════════ offers
//!    ▼                                                           write  │ `source/writing.rs`
//!  Ended, polled ─ BUFFER_IDLE(ok) ──▶ Consumed: its memory is free
//! ```
//!
//! The seed is the design of TensorFlow's transport over verbs; its message and ack buffers are the
//! ring and the credit of a lane here. Control messages are *due* until they are sent, so a full
//! lane costs a repetition and no copy, and nothing waits on a queue that a peer can fill.
//!
//! ```text
//!  key, pool, slots, outcome   names, memory, tables, words
//!  source ◀── ends ──▶ destination          the table's two sides, and what peers say to them
//!  adapter                                  lanes, polls, deadlines, the caller
//! ```
//!
//! What the host of both ends hands over it only names (`destination/elsewhere.rs`), and it does
//! not know files. Behaviours RZ-n: `SPEC.md` beside this file.

mod adapter;
mod config;
mod destination;
mod ends;
mod key;
mod mutants;
mod outcome;
mod pool;
mod slots;
mod source;

pub use adapter::Adapter;
pub use config::{
    Digest, PIECE_LEN_MAX, PLACES_MAX, PartSizes, Path, RendezvousConfig, RendezvousConfigError,
    RendezvousRegions, RendezvousSizes, SLOTS_MAX,
};
pub use key::{BadKey, Key};
pub use mutants::{MUTANTS, SCENARIO_MUTANTS};
pub use outcome::{
    Draft, Expect, HandOver, LandedPart, MessageReject, MessageRejects, OfferError, OfferId,
    PartWanted, Place, ReceiveError, Received, RendezvousEvent, RequestId, Tensor, UnknownRequest,
};
pub use pool::{LEAVES_MAX, Piece, Pool};

pub use crate::wire::rendezvous::{BadShape, Dtype, Shape, Status};

/// The machine number in the names of an [`Adapter`]'s works.
pub const RENDEZVOUS_WORK: u8 = 6;

/// Reads or writes of one value that are out at once.
const WORKS_OF_A_VALUE: u8 = 4;
/// Reads or writes of one peer's memory that are out at once.
const WORKS_OF_A_PEER: u8 = 8;
/// Parts of one value that are under way at once: one is read while another is copied.
const PARTS_OF_A_VALUE: u32 = 2;

#[cfg(test)]
mod tests;
