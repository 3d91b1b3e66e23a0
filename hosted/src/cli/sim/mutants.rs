//! `weft sim --mutants`: the table of planted bugs. Only in a build made for it: ci/mutants.

use serde_json::{Value, json};

use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::explain::Code;
use crate::sim::Subject;
use crate::sim::mutants::{Verdict, judge};

pub(super) fn run(subject: &Subject, seeds_max: u64, output: Output) -> Result<(), Failure> {
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
    let verdicts = judge(subject, seeds_max, |verdict| {
        bar.suspend(|| output.say(&line(verdict)));
        bar.inc(1);
    });
    bar.finish_and_clear();
    let sound = verdicts.iter().filter(|verdict| verdict.is_sound()).count();
    let explored = verdicts.iter().filter(|verdict| verdict.explored.is_some()).count();
    let text = format!(
        "{}: {sound} of {count} planted bugs caught and replayed, {explored} explored\n",
        subject.name
    );
    let rows: Vec<_> = verdicts.iter().map(row).collect();
    output.finish(&json!({ "mutants": rows }), &text);
    if sound == count {
        return Ok(());
    }
    let cause = format!("{} of {count} planted bugs went unnoticed", count - sound);
    let cure = "run more seeds, or sharpen the checkers until each is caught and replayed";
    Err(Failure::of(Code::Verification, cause, cure))
}

fn row(verdict: &Verdict) -> Value {
    let caught = verdict.caught.as_ref();
    json!({
        "name": verdict.name,
        "caught": caught.is_some(),
        "seeds": verdict.seeds,
        "checker": caught.map(|caught| caught.checker),
        "replays": caught.is_some_and(|caught| caught.replays),
        "explorer": verdict.explored.map(|explored| explored.found),
    })
}

fn line(verdict: &Verdict) -> String {
    let seeds = verdict.seeds.to_string();
    let explorer = match verdict.explored {
        None => "-".into(),
        Some(explored) if explored.found => explored.states.to_string(),
        Some(_) => "MISSED".into(),
    };
    let Some(caught) = &verdict.caught else {
        let cells = [&verdict.name, &seeds, "NOBODY", "-", "-", &explorer];
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
