//! `weft sim --explore`: every state of a protocol's small configurations.

use std::fmt::Write;

use serde_json::json;

use crate::cli::failure::Failure;
use crate::cli::output::Output;
use weft::clock;
use weft::explain::Code;
use weft_sim::{Bounds, Exploration, Subject, Unexplored};

pub(super) fn run(subject: &Subject, bounds: &Bounds, output: Output) -> Result<(), Failure> {
    let began = clock::now_ns();
    let bar = output.progress(bounds.states_max, "exploring");
    let explored = (subject.explore)(bounds, &|states| bar.inc(states));
    bar.finish_and_clear();
    if explored.is_empty() {
        let cause = format!("{} has no configuration to explore within these bounds", subject.name);
        let cure =
            "run seeds of it, --seeds 1000; if it has others, leave --steps and --starts out";
        return Err(Failure::of(Code::Usage, cause, cure));
    }
    let states: u64 = explored.iter().map(|(_, found)| found.states).sum();
    let finished = explored.iter().all(|(_, found)| found.finished);
    let violations = explored.iter().filter(|(_, found)| found.violation.is_some()).count();
    let elapsed_ms = (clock::now_ns() - began) / 1_000_000;
    let unexplored = (subject.unexplored)();
    let object = json!({
        "protocol": subject.name,
        "states": states,
        "finished": finished,
        "violations": violations,
        "elapsed_ms": elapsed_ms,
        "configurations": explored.iter().map(|(name, found)| json!({
            "name": name,
            "states": found.states,
            "finished": found.finished,
            "violations": u32::from(found.violation.is_some()),
        })).collect::<Vec<_>>(),
        "unexplored": unexplored.iter().map(|left_out| json!({
            "name": left_out.name,
            "why": left_out.why,
        })).collect::<Vec<_>>(),
    });
    let mut text = render(&explored);
    text += &render_unexplored(&unexplored);
    let (name, count) = (subject.name, explored.len());
    text += &summary(name, count, states, violations == 0 && finished);
    output.finish(&object, &text);
    for (name, found) in &explored {
        judge(name, found, bounds)?;
    }
    Ok(())
}

/// The last line of the report: `is_kept` if every state was explored and no promise was broken.
fn summary(name: &str, count: usize, states: u64, is_kept: bool) -> String {
    let plural = if count == 1 { "" } else { "s" };
    let of = format!("{states} states of {count} configuration{plural}");
    match is_kept {
        true => format!("{name}: explored all {of}: no promise broken\n"),
        false => format!("{name}: explored {of}\n"),
    }
}

fn render(explored: &[(String, Exploration)]) -> String {
    let mut text = String::new();
    for (name, found) in explored {
        let end = if found.finished { "all" } else { "not all" };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:>12} states, {end:<7}  {name}", found.states);
        for (number, step) in (1..).zip(found.violation.iter().flat_map(|(_, path)| path)) {
            let _ = writeln!(text, "{number:>4}  {step}");
        }
    }
    text
}

fn render_unexplored(unexplored: &[Unexplored]) -> String {
    let lines = unexplored.iter();
    lines
        .map(|left_out| format!("{:>32}  {}: {}\n", "NOT EXPLORED", left_out.name, left_out.why))
        .collect()
}

fn judge(name: &str, found: &Exploration, bounds: &Bounds) -> Result<(), Failure> {
    if let Some((violation, _)) = &found.violation {
        let cause = format!("{name}: a promise is broken: {violation}");
        return Err(Failure::of(
            Code::Verification,
            cause,
            "read the steps that are printed above",
        ));
    }
    if !found.finished {
        let cause = format!("{name}: more states than {}", bounds.states_max);
        return Err(Failure::of(Code::Verification, cause, "give smaller bounds"));
    }
    Ok(())
}
