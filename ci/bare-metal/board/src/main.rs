//! Four endpoints on a Cortex-M4: no operating system, no allocator, no clock, no 64-bit atomics.
//!
//! ```text
//!   reset ─▶ main ─▶ script  ─▶ voting ─▶ members            ─▶ machines::run ─▶ exit status
//!                    a script   votes     a silent node is      messages, by mailbox and lane
//!                                         detected, and returns
//! ```
//!
//! The machines are those of the link gate one folder up; here they are not only linked but run,
//! on a processor that is not the host's. Words go through `portable-atomic`, since this one has
//! compare-and-swap of 32 bits at most. `ci/bare-metal/emulate` builds and boots it and takes the
//! exit status: 0 when every message arrived as it was put, 1 otherwise and after a panic.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

use cortex_m_rt::entry;
use cortex_m_semihosting::debug::{self, EXIT_FAILURE, EXIT_SUCCESS};
use cortex_m_semihosting::hprintln;

#[path = "../../src/machines.rs"]
mod machines;
#[path = "../../src/members.rs"]
mod members;
#[path = "../../src/script.rs"]
mod script;
#[path = "../../src/voting.rs"]
mod voting;

#[entry]
fn main() -> ! {
    if !script::is_right() {
        hprintln!("the recovery script went wrong");
        exit(EXIT_FAILURE)
    }
    if !voting::is_right() {
        hprintln!("the votes went wrong");
        exit(EXIT_FAILURE)
    }
    if !members::is_right() {
        hprintln!("the recovery of a node went wrong");
        exit(EXIT_FAILURE)
    }
    let round = machines::run();
    assert!(!cfg!(feature = "must-fail-panic"), "planted");
    if round == 0 {
        hprintln!(
            "a script, a vote, a node that returns, {} rounds of messages among {} endpoints",
            machines::ROUNDS,
            machines::PEERS
        );
        exit(EXIT_SUCCESS)
    }
    hprintln!("round {} went wrong", round);
    exit(EXIT_FAILURE)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    hprintln!("{}", info);
    exit(EXIT_FAILURE)
}

/// Ends the emulator; a debugger, if there is one, stops here.
fn exit(status: debug::ExitStatus) -> ! {
    loop {
        debug::exit(status);
    }
}
