//! `weft sim --mutants`: the table of planted bugs. Only in a build made for it: ci/mutants.

use serde_json::{Value, json};

use crate::cli::failure::Failure;
use crate::cli::output::Output;
use weft::explain::Code;
use weft_sim::mutants::{Verdict, judge};
use weft_sim::{Explorer, Subject};

/// Judges the planted bugs of `subject` by at most `(seeds, states)`.
pub(super) fn run(subject: &Subject, most: (u64, u64), output: Output) -> Result<(), Failure> {
    let count: usize = subject.mutants.iter().map(|list| list.len()).sum();
    if count == 0 {
        let cause =
            format!("{} has no planted bugs that seeds or the explorer judge", subject.name);
        let cure = format!("its scenarios judge them: ci/mutants {}", subject.name);
        return Err(Failure::of(Code::Usage, cause, cure));
    }
    let bar = output.progress(count as u64, "judging planted bugs");
    let head = ["planted bug", "seeds", "caught by", "faults", "replay", "explorer"];
    output.say(&columns(head, "what happened"));
    let verdicts = judge(subject, most, |verdict| {
        bar.suspend(|| output.say(&lines(verdict)));
        bar.inc(1);
    });
    bar.finish_and_clear();
    let sound = verdicts.iter().filter(|verdict| verdict.is_sound()).count();
    let found = verdicts.iter().filter(|verdict| verdict.explored.found.is_some()).count();
    let name = subject.name;
    let text = format!(
        "{name}: {sound} of {count} planted bugs are caught as expected and replayed; \
         the explorer finds {found} of {count}\n"
    );
    let rows: Vec<_> = verdicts.iter().map(row).collect();
    output.finish(&json!({ "mutants": rows }), &text);
    if sound == count {
        return Ok(());
    }
    let cause = format!("{} of {count} planted bugs are not caught as expected", count - sound);
    let cure = "run more seeds, sharpen the checkers, or correct what is expected of each";
    Err(Failure::of(Code::Verification, cause, cure))
}

fn row(verdict: &Verdict) -> Value {
    let (caught, explored) = (verdict.caught.as_ref(), &verdict.explored);
    json!({
        "name": verdict.name,
        "caught": caught.is_some(),
        "seeds": caught.map(|_| verdict.seeds),
        "checker": caught.map(|caught| caught.checker),
        "expected": verdict.expected.checkers,
        "others": verdict.others,
        "replays": caught.is_some_and(|caught| caught.replays),
        "why": verdict.expected.seedless,
        "explorer": explored.found.is_some(),
        "explorer_checker": explored.found,
        "explorer_states": explored.states,
        "explorer_finished": explored.finished,
        "explorer_misses": misses(verdict),
        "ok": verdict.is_sound(),
    })
}

/// Why the explorer cannot find it, if it cannot.
fn misses(verdict: &Verdict) -> Option<&'static str> {
    match verdict.expected.explorer {
        Explorer::Finds(_) | Explorer::Unasked => None,
        Explorer::Misses(why) => Some(why),
    }
}

/// A row of the table, and below it what is not as it must be.
fn lines(verdict: &Verdict) -> String {
    let mut lines = line(verdict);
    if let Some(why) = verdict.expected.seedless {
        lines += &format!("\n    no seed shows it: {why}");
    } else if verdict.caught.is_none() {
        let expected = verdict.expected.checkers.join(" or ");
        let others: Vec<_> = verdict.others.iter().copied().collect();
        let others = if others.is_empty() { "none".into() } else { others.join(" and ") };
        lines += &format!("\n    UNEXPECTED: {expected} must notice it; did: {others}");
    }
    let is_expected = verdict.is_explored_as_expected();
    match (verdict.explored.found, misses(verdict)) {
        (Some(checker), _) if !is_expected => {
            lines += &format!("\n    UNEXPECTED: the explorer finds it, by {checker}");
        }
        (None, None) if is_expected => {}
        (None, None) => lines += "\n    UNEXPECTED: the explorer misses it",
        (None, Some(why)) => lines += &format!("\n    the explorer has no path with {why}"),
        (Some(_), _) => {}
    }
    lines
}

fn line(verdict: &Verdict) -> String {
    let seeds = verdict.seeds.to_string();
    let explorer = match (verdict.explored.found, verdict.expected.explorer) {
        (Some(_), _) => verdict.explored.states.to_string(),
        (None, Explorer::Unasked) => "-".into(),
        (None, _) => "missed".into(),
    };
    let Some(caught) = &verdict.caught else {
        let unnoticed = if verdict.expected.seedless.is_some() { "-" } else { "UNNOTICED" };
        let cells = [&verdict.name, &seeds, unnoticed, "-", "-", &explorer];
        return columns(cells, verdict.breaks);
    };
    let (before, after) = caught.faults;
    let replay = if caught.replays { "same" } else { "DIFFERS" };
    let faults = format!("{before} > {after}");
    let what: String = caught.what.chars().take(60).collect();
    columns([&verdict.name, &seeds, caught.checker, &faults, replay, &explorer], &what)
}

fn columns([bug, seeds, checker, faults, replay, explorer]: [&str; 6], what: &str) -> String {
    format!("{bug:<49} {seeds:>6}  {checker:<10} {faults:>10}  {replay:<7} {explorer:>8}  {what}")
}
