//! The suite of the contract, each case on new endpoints.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

use weft::shm::conformance::Host;
use weft_core::fabric::conformance::cases as all;

use super::tally::Tally;
use super::{Bench, ConformError, Subject};

pub(super) fn cases() -> u64 {
    all::<Host>().len() as u64
}

/// What a case that panicked said.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked").to_owned()
}

/// What a case said, under the rule that is broken: it judges what follows from an old value, and
/// one that never came is of F-4.
fn blamed<B: Bench>(said: String) -> String {
    match B::UNTOUCHED {
        Some(untouched) if said.contains(&untouched.to_string()) => {
            format!("F-4: an atomic completed without its old value ({said})")
        }
        _ => said,
    }
}

pub(super) fn run<B: Bench>(
    subject: &Subject,
    rounds: u32,
    tally: &mut Tally,
    step: &mut impl FnMut(&'static str),
) -> Result<(), ConformError> {
    for (name, case) in (0..rounds).flat_map(|_| all::<B>()) {
        step(name);
        let mut bench = B::make(subject).map_err(|error| error.later(name))?;
        // A case that does not hold is a row of the report, and no message of a crash.
        let hook = take_hook();
        set_hook(Box::new(|_| ()));
        let held = catch_unwind(AssertUnwindSafe(|| {
            case(&mut bench);
            drop(bench);
        }));
        set_hook(hook);
        if held.is_err() {
            B::check(subject).map_err(|error| error.later(name))?;
        }
        tally.case(name, held.map_err(|panic| blamed::<B>(said(&*panic))));
    }
    Ok(())
}
