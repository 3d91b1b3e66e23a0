//! The table of planted bugs of one protocol: what ci/mutants runs. A program of its own, since
//! with bugs in the core everything that is built on it is built once more.

use std::process::ExitCode;

use clap::Parser;
use serde_json::{Value, json};
use weft_sim::mutants::{MutantVerdict, judge};
use weft_sim::{Explorer, Subject};

#[derive(Parser)]
struct Arguments {
    /// Which protocol.
    #[arg(long, value_name = "NAME")]
    protocol: String,

    /// How many seeds a bug has to survive to count as unnoticed.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// Of a bug that the explorer must miss, walk at most so many states of each configuration.
    #[arg(long, value_name = "COUNT", default_value_t = 4_000)]
    missed_states: u64,

    /// End with one object instead of a sentence.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mutants: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let Arguments { protocol, seeds, missed_states, json } = Arguments::parse();
    let subject =
        Subject::named(&protocol).ok_or_else(|| format!("no protocol is called {protocol}"))?;
    let count: usize = subject.mutants.iter().map(|list| list.len()).sum();
    if count == 0 {
        return Err(format!(
            "{protocol} has no planted bugs that seeds or the explorer judge; its scenarios judge \
             them: ci/mutants {protocol}"
        ));
    }
    let say = |lines: &str| {
        // The last line is the object.
        if json { eprintln!("{lines}") } else { println!("{lines}") }
    };
    let head = ["planted bug", "seeds", "caught by", "faults", "replay", "explorer"];
    say(&columns(head, "what happened"));
    let verdicts = judge(subject, (seeds, missed_states), |verdict| say(&lines(verdict)));
    let sound = verdicts.iter().filter(|verdict| verdict.is_sound()).count();
    let found = verdicts.iter().filter(|verdict| verdict.explored.found.is_some()).count();
    if json {
        let rows: Vec<_> = verdicts.iter().map(row).collect();
        println!("{}", json!({ "ok": sound == count, "mutants": rows }));
    } else {
        println!(
            "{protocol}: {sound} of {count} planted bugs are caught as expected and replayed; the \
             explorer finds {found} of {count}"
        );
    }
    if sound == count {
        return Ok(());
    }
    Err(format!(
        "{} of {count} planted bugs are not caught as expected; run more seeds, sharpen the \
         checkers, or correct what is expected of each",
        count - sound
    ))
}

fn row(verdict: &MutantVerdict) -> Value {
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
fn misses(verdict: &MutantVerdict) -> Option<&'static str> {
    match verdict.expected.explorer {
        Explorer::Finds(_) | Explorer::Unasked => None,
        Explorer::Misses(why) => Some(why),
    }
}

/// A row of the table, and below it what is not as it must be.
fn lines(verdict: &MutantVerdict) -> String {
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

fn line(verdict: &MutantVerdict) -> String {
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
