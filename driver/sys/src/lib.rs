//! The part of libibverbs that the driver uses: declarations, and the library, opened at run time.
//!
//! ```text
//!   types      structures and constants of infiniband/verbs.h, with their layout
//!   inline     the functions that the header has inline
//!   exported   the functions that the library exports
//!   library    libibverbs.so.1, opened once, each function in the version of the header
//! ```
//!
//! Nothing is linked and nothing is compiled in another language: a program with this crate starts
//! on a machine without RDMA, where [`load`] says that the library is missing.
//!
//! The layout is asserted as the crate is compiled, with the numbers of 64-bit machines. Where the
//! system has libibverbs-dev, tests compare all of it with the header, and every version with the
//! library; `ci/test rxe` sees that they run.
//!
//! What it does not do: cover more than the driver uses, or make anything safe.

#![allow(non_camel_case_types, reason = "the names are those of verbs.h")]
#![allow(missing_docs, reason = "verbs.h and its manual pages document what has a name of theirs")]
#![allow(clippy::missing_safety_doc, reason = "the manual page of a verb is its contract")]

mod exported;
mod inline;
mod library;
mod types;

#[cfg(test)]
mod header;

pub use exported::*;
pub use inline::{
    ibv_alloc_mw, ibv_dealloc_mw, ibv_poll_cq, ibv_post_send, ibv_query_gid_table, ibv_query_port,
};
pub use library::Missing;
pub use types::*;
