//! The suite of the contract, each case on new endpoints.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

use weft::shm::conformance::Host;
use weft_core::fabric::conformance::cases as all;

use super::tally::Tally;
use super::{Bench, ConformError, ConformSubject};

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
fn blamed(said: String, untouched: Option<u64>) -> String {
    match untouched {
        Some(untouched) if said.contains(&untouched.to_string()) => {
            format!("F-4: an atomic completed without its old value ({said})")
        }
        _ => said,
    }
}

pub(super) fn run<B: Bench>(
    subject: &ConformSubject,
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
        tally.case(name, held.map_err(|panic| blamed(said(&*panic), B::UNTOUCHED)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_value_that_never_came_is_of_f4_whatever_the_case_is_about() {
        let said = || "F-1: what an add behind the writes sees: got Ok(99), want Ok(7)".to_owned();
        let mut tally = Tally::new();
        tally.case("f1_one", Err(blamed(said(), Some(99))));
        let report = tally.report("verbs", Vec::new());
        let broken = |name| report.rules.iter().any(|rule| rule.rule == name && !rule.held);
        let tried = |name| report.rules.iter().find(|rule| rule.rule == name).map(|it| it.tries);
        assert!(broken("F-4") && tried("F-1") == Some(1), "{report}");
        assert_eq!(blamed(said(), Some(98)), said());
        assert_eq!(blamed(said(), None), said());
    }
}
