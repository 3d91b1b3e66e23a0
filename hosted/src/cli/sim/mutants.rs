//! `weft sim --mutants`: the table of planted bugs. Only in a build made for it: ci/mutants.

use serde_json::json;

use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::explain::Code;
use crate::sim::Subject;
use crate::sim::mutants::{Verdict, judge};

pub(super) fn run(subject: &Subject, seeds_max: u64, output: Output) -> Result<(), Failure> {
    let count: usize = subject.mutants.iter().map(|list| list.len()).sum();
    let bar = output.progress(count as u64, "judging planted bugs");
    output.say(&format!("{:<50} {:>7}  {:<12} what happened", "planted bug", "seeds", "caught by"));
    let verdicts = judge(subject, seeds_max, |verdict| {
        bar.suspend(|| output.say(&line(verdict)));
        bar.inc(1);
    });
    bar.finish_and_clear();
    let rows: Vec<_> = verdicts
        .iter()
        .map(|verdict| {
            json!({
                "name": format!("{}/{}", verdict.mutant.protocol, verdict.mutant.name),
                "caught": verdict.caught.is_some(),
                "seeds": verdict.seeds,
                "checker": verdict.caught.as_ref().map(|(checker, _)| checker),
            })
        })
        .collect();
    let caught = verdicts.iter().filter(|verdict| verdict.caught.is_some()).count();
    let text = format!("{}: {caught} of {count} planted bugs caught\n", subject.name);
    output.finish(&json!({ "mutants": rows }), &text);
    if caught == count {
        return Ok(());
    }
    let cause = format!("{} of {count} planted bugs went unnoticed", count - caught);
    let cure = "run more seeds, or sharpen the checkers until each is caught";
    Err(Failure::of(Code::Verification, cause, cure))
}

fn line(verdict: &Verdict) -> String {
    let name = format!("{}/{}", verdict.mutant.protocol, verdict.mutant.name);
    let (checker, what) = match &verdict.caught {
        Some((checker, what)) => (*checker, what.as_str()),
        None => ("NOBODY", verdict.mutant.breaks),
    };
    let what: String = what.chars().take(70).collect();
    format!("{name:<50} {:>7}  {checker:<12} {what}", verdict.seeds)
}
