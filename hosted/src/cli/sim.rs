//! `weft sim`: the protocols under the simulator.

mod explore;
#[cfg(feature = "mutants")]
mod mutants;

use std::fmt::Write;

use clap::Args;
use serde_json::json;

use super::failure::Failure;
use super::output::Output;
use crate::clock;
use crate::explain::Code;
use crate::sim::fault::Keep;
use crate::sim::{Bounds, Outcome, Plan, SUBJECTS, Shrunk, Subject, Trace, run_seeds, shrink};

/// Failing seeds after which no more are begun.
const FAILURES_MAX: usize = 10;

/// States after which the explorer gives up: what a machine of some gigabytes remembers.
const STATES_MAX: u64 = 30_000_000;

/// Runs spent on making a failing one smaller.
const SHRINKING_RUNS_MAX: u32 = 600;

/// Arguments of `weft sim`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Which protocol.
    #[arg(long, default_value = "mailbox", value_name = "NAME")]
    protocol: String,

    /// See everything that can happen in a small configuration.
    #[arg(long, conflicts_with = "seed")]
    explore: bool,

    /// With --explore: rounds of each peer's loop that do something; as many as the protocol's
    /// work takes if not given.
    #[arg(long, value_name = "COUNT", requires = "explore")]
    steps: Option<u32>,

    /// With --explore: crashes.
    #[arg(long, value_name = "COUNT", requires = "explore", default_value_t = 1)]
    crashes: u32,

    /// With --explore: later lives that begin while others go on.
    #[arg(long, value_name = "COUNT", requires = "explore", default_value_t = 0)]
    births: u32,

    /// With --explore: torn works, lost pairs, lost or repeated messages.
    #[arg(long, value_name = "COUNT", requires = "explore", default_value_t = 0)]
    mishaps: u32,

    /// With --explore: how often time passes to the next deadline.
    #[arg(long, value_name = "COUNT", requires = "explore", default_value_t = 0)]
    waits: u32,

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

impl Arguments {
    const fn bounds(&self) -> Bounds {
        Bounds {
            steps: self.steps,
            crashes: self.crashes,
            births: self.births,
            faults: self.mishaps,
            waits: self.waits,
            states_max: STATES_MAX,
        }
    }
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
    if arguments.explore {
        return explore::run(subject, &arguments.bounds(), output);
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
        Some(failed) => {
            let least = shrunk(subject, failed.seed, &failed.outcome);
            Err(broken(subject, &failed.outcome, &command(subject, failed.seed, Some(&least))))
        }
    }
}

/// The failing run with as few faults and orders as break the same promise.
fn shrunk(subject: &Subject, seed: u64, outcome: &Outcome) -> Shrunk {
    let checker = |outcome: &Outcome| outcome.violation.as_ref().map(|broken| broken.checker);
    let broken = checker(outcome);
    let from = Shrunk { faults: outcome.faults.clone(), orders: outcome.orders };
    shrink(from, SHRINKING_RUNS_MAX, |less| {
        let keep = Keep::Only(less.faults.clone());
        let plan = Plan { seed, keep, orders_max: less.orders, trace: Trace::off() };
        checker(&(subject.run)(&plan)) == broken
    })
}

fn command(subject: &Subject, seed: u64, least: Option<&Shrunk>) -> String {
    let mut command = format!("weft sim --protocol {} --seed {seed}", subject.name);
    if let Some(Shrunk { faults, orders }) = least {
        let numbers: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let numbers = if numbers.is_empty() { "none".into() } else { numbers.join(",") };
        let _ = write!(command, " --orders {orders} --faults {numbers}");
    }
    command
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
        output.write(&outcome.trace);
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
        _ => Err(broken(subject, &outcome, &command(subject, seed, None))),
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
