//! The per-commit gate: weft-core, linked as a program that has nothing below it.
//!
//! ```text
//!   calls.rs ──► weft-core      what meets foreign input, on inputs the optimiser cannot see
//!   machines.rs                 four endpoints at work (feature `machines`)
//!   members.rs                  three nodes that detect and recover one (feature `machines`)
//!   voting.rs                   an image, verified, and a round of votes, which meet what users
//!                               and peers write
//!   script.rs                   a recovery script, evaluated (feature `machines`)
//!   mistakes.rs                 one wrong call per `must-fail-*` feature, to prove the gate bites
//!   ground.rs                   entry, exit, memcpy and its like, the panic handler
//! ```
//!
//! There is no std here to be found and no allocator: a crate that asks for either does not build.
//! The panic handler calls a symbol that no library defines, so a panic that the optimiser cannot
//! prove impossible fails the link. `ci/bare-metal/check` builds it, runs it, and checks that each
//! planted mistake is refused.
//!
//! What it does not show: overflow of plain arithmetic, which wraps in a release build, and code
//! that `calls.rs` does not call, which is thrown away before the link.
#![no_std]
#![no_main]

#[cfg(not(feature = "machines"))]
mod calls;
mod ground;
#[cfg(feature = "machines")]
mod machines;
#[cfg(feature = "machines")]
mod members;
mod mistakes;
#[cfg(feature = "machines")]
mod script;
mod voting;

/// The exit statuses if a script, a vote, or the recovery of a node goes wrong. The machines have
/// those below.
#[cfg(feature = "machines")]
const SCRIPT_FAILED: u8 = 200;
#[cfg(feature = "machines")]
const RECOVERY_FAILED: u8 = 201;

/// What the entry point runs; its value is the program's exit status.
fn run() -> u8 {
    mistakes::make();
    #[cfg(feature = "machines")]
    return match () {
        () if !script::is_right() || !voting::is_right() => SCRIPT_FAILED,
        () if !members::is_right() => RECOVERY_FAILED,
        () => machines::run(),
    };
    #[cfg(not(feature = "machines"))]
    calls::run()
}
