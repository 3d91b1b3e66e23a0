//! The broadcast against everything that its members and its fabric may do to it.

mod cluster;
mod costs;
mod held;
mod lives;
mod planted;
mod schedules;
#[cfg(feature = "signed")]
mod signed;
mod traps;
mod windows;

/// The depth that machines in tests are made for, and have.
const DEPTH: usize = 2;
/// Slots of a ring in tests.
const NET_SLOTS: u32 = 4;
/// Words of memory of an endpoint, enough for seven members.
const WORDS: usize = 4096;
