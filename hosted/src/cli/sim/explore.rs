//! `weft sim --explore`: every state of a small configuration.

use std::fmt::Write;

use serde_json::json;

use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::explain::Code;
use crate::sim::{Bounds, Subject};

pub(super) fn run(subject: &Subject, bounds: &Bounds, output: Output) -> Result<(), Failure> {
    let bar = output.progress(bounds.states_max, "exploring");
    let found = (subject.explore)(bounds, &|states| bar.set_position(states));
    bar.finish_and_clear();
    let Some(found) = found else {
        let cause = format!("{} has no configuration small enough to be explored", subject.name);
        return Err(Failure::of(Code::Usage, cause, "run seeds of it instead: --seeds 1000"));
    };
    let object = json!({
        "states": found.states,
        "finished": found.finished,
        "violations": u32::from(found.violation.is_some()),
    });
    let end = if found.finished { "all of them" } else { "not all" };
    let mut text = format!("{}: {} states, {end}\n", subject.name, found.states);
    if let Some((_, path)) = &found.violation {
        for (number, step) in (1..).zip(path) {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{number:>4}  {step}");
        }
    }
    output.finish(&object, &text);
    if let Some((violation, _)) = found.violation {
        let cause = format!("{} broke a promise: {violation}", subject.name);
        return Err(Failure::of(Code::Verification, cause, "the way there is printed above"));
    }
    if !found.finished {
        let cause = format!("{} has more states than {}", subject.name, bounds.states_max);
        return Err(Failure::of(Code::Verification, cause, "give smaller bounds"));
    }
    Ok(())
}
