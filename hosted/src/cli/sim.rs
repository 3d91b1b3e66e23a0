//! `weft sim`: the protocols under the simulator.

#[cfg(feature = "mutants")]
mod mutants;

use clap::Args;
use serde_json::json;

use super::failure::Failure;
use super::output::{Output, write_out};
use crate::clock;
use crate::explain::Code;
use crate::sim::fault::Keep;
use crate::sim::{Outcome, Plan, SUBJECTS, Subject, Trace, run_seeds};

/// Failing seeds after which no more are begun.
const FAILURES_MAX: usize = 10;

/// Arguments of `weft sim`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Which protocol.
    #[arg(long, default_value = "mailbox", value_name = "NAME")]
    protocol: String,

    /// Run the one seed, and tell everything that happens.
    #[arg(long, value_name = "SEED", conflicts_with = "seeds")]
    seed: Option<u64>,

    /// Run so many seeds, on all cores.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    seeds: u64,

    /// The first of the seeds.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    first: u64,

    /// Of the faults of the seed, let only those with these numbers happen; `none` for none.
    #[arg(long, value_name = "NUMBERS", requires = "seed")]
    faults: Option<String>,

    /// Judge the planted bugs, each by at most `--seeds` seeds.
    #[cfg(feature = "mutants")]
    #[arg(long, conflicts_with = "seed")]
    mutants: bool,

    /// At most so many orders for each peer.
    #[arg(long, value_name = "COUNT", requires = "seed", default_value_t = u32::MAX)]
    orders: u32,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let Some(subject) = Subject::named(&arguments.protocol) else {
        let cause = format!("no protocol is called {}", arguments.protocol);
        let names: Vec<_> = SUBJECTS.iter().map(|subject| subject.name).collect();
        return Err(Failure::of(Code::Usage, cause, format!("choose from {}", names.join(", "))));
    };
    #[cfg(feature = "mutants")]
    if arguments.mutants {
        return mutants::run(subject, arguments.seeds, output);
    }
    match arguments.seed {
        Some(seed) => replay(subject, seed, arguments, output),
        None => run_many(subject, arguments, output),
    }
}

fn run_many(subject: &Subject, arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let began = clock::now_ns();
    let bar = output.progress(arguments.seeds, "simulating");
    let range = (arguments.first, arguments.seeds);
    let tally = run_seeds(subject, range, FAILURES_MAX, || bar.inc(1));
    bar.finish_and_clear();
    let object = json!({
        "protocol": subject.name,
        "seeds": tally.seeds,
        "failures": tally.failed.len(),
        "events": tally.events,
        "elapsed_ms": (clock::now_ns() - began) / 1_000_000,
    });
    for failed in &tally.failed {
        let what = failed.outcome.violation.as_ref().map(ToString::to_string).unwrap_or_default();
        output.say(&format!("seed {}: {what}", failed.seed));
    }
    let (seeds, events) = (tally.seeds, tally.events);
    output.finish(&object, &format!("{}: {seeds} seeds, {events} events\n", subject.name));
    match tally.failed.first() {
        None => Ok(()),
        Some(failed) => Err(broken(subject, &failed.outcome, &command(subject, failed.seed))),
    }
}

fn command(subject: &Subject, seed: u64) -> String {
    format!("weft sim --protocol {} --seed {seed}", subject.name)
}

fn broken(subject: &Subject, outcome: &Outcome, command: &str) -> Failure {
    let what = outcome.violation.as_ref().map(ToString::to_string).unwrap_or_default();
    let cause = format!("{} broke a promise: {what}", subject.name);
    Failure::of(Code::Verification, cause, format!("replay it: {command}"))
}

fn replay(
    subject: &Subject,
    seed: u64,
    arguments: &Arguments,
    output: Output,
) -> Result<(), Failure> {
    let keep = match &arguments.faults {
        None => Keep::All,
        Some(numbers) => Keep::Only(numbers_of(numbers)?),
    };
    let plan = Plan { seed, keep, orders_max: arguments.orders, trace: Trace::on() };
    let began = clock::now_ns();
    let outcome = (subject.run)(&plan);
    if !output.is_json() {
        write_out(&outcome.trace);
    }
    let failures = u32::from(outcome.violation.is_some());
    let object = json!({
        "protocol": subject.name,
        "seeds": 1,
        "failures": failures,
        "events": outcome.events,
        "elapsed_ms": (clock::now_ns() - began) / 1_000_000,
    });
    let took = outcome.took.0 / 1_000;
    let faults = outcome.faults.len();
    let end = if failures == 0 { "every promise was kept" } else { "a promise was broken" };
    output.finish(
        &object,
        &format!(
            "{}: {faults} faults, {} events in {took} us: {end}\n",
            subject.name, outcome.events
        ),
    );
    match failures {
        0 => Ok(()),
        _ => Err(broken(subject, &outcome, &command(subject, seed))),
    }
}

fn numbers_of(text: &str) -> Result<Vec<u32>, Failure> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let numbers: Result<Vec<u32>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    let mut numbers = numbers.map_err(|_| {
        let cause = format!("--faults is {text}, no list of numbers");
        Failure::of(Code::Usage, cause, "give numbers with commas between them, or none")
    })?;
    numbers.sort_unstable();
    Ok(numbers)
}
