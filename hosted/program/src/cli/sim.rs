//! `weft sim`: the protocols under the simulator.

mod explore;
mod graphs;

use clap::Args;
use serde_json::json;

use super::failure::Failure;
use super::output::Output;
use weft::clock;
use weft::explain::Code;
use weft_sim::fault::Keep;
use weft_sim::{Bounds, Replay, RunOutcome, RunPlan, SUBJECTS, Subject, Trace, run_seeds};

/// Failing seeds after which no more are begun.
const FAILURES_MAX: usize = 10;

/// Runs spent on making a failing one smaller.
const SHRINKING_RUNS_MAX: u32 = 600;

/// Arguments of `weft sim`.
#[derive(Debug, Args)]
pub(super) struct SimArguments {
    /// Which protocol.
    #[arg(long, default_value = "mailbox", value_name = "NAME")]
    protocol: String,

    /// See everything that can happen in a small configuration.
    #[arg(long, conflicts_with = "seed")]
    explore: bool,

    /// Cut links for good in every small connected graph, and see which nodes are removed; of the
    /// protocol dirnet.
    #[arg(long, conflicts_with_all = ["seed", "seeds", "explore"])]
    graphs: bool,

    /// With --explore: rounds of each peer's loop that do something; as many as the protocol's
    /// work takes if not given.
    #[arg(long, value_name = "COUNT", requires = "explore", conflicts_with_all = ["seed", "seeds"])]
    steps: Option<u32>,

    /// With --explore: crashes; as many as the protocol's promises allow for if not given.
    #[arg(long, value_name = "COUNT", requires = "explore", conflicts_with_all = ["seed", "seeds"])]
    crashes: Option<u32>,

    /// With --explore: later incarnations that begin while others go on; what the configuration
    /// says if not given.
    #[arg(long, value_name = "COUNT", requires = "explore", conflicts_with_all = ["seed", "seeds"])]
    starts: Option<u32>,

    /// With --explore: torn works, lost pairs, lost or repeated messages; as above.
    #[arg(long, value_name = "COUNT", requires = "explore", conflicts_with_all = ["seed", "seeds"])]
    mishaps: Option<u32>,

    /// With --explore: how often time passes to the next deadline; as often as the protocol's work
    /// takes if not given.
    #[arg(long, value_name = "COUNT", requires = "explore", conflicts_with_all = ["seed", "seeds"])]
    waits: Option<u32>,

    /// With --explore: give a configuration up after so many states, 30,000,000 if not given.
    #[arg(long, value_name = "COUNT", requires = "explore", conflicts_with_all = ["seed", "seeds"])]
    states: Option<u64>,

    /// Run this seed only and print every event.
    #[arg(long, value_name = "SEED", conflicts_with = "seeds")]
    seed: Option<u64>,

    /// Run so many seeds, on all cores.
    #[arg(long, value_name = "COUNT", default_value_t = 100, conflicts_with = "explore",
        value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// The first of the seeds.
    #[arg(long, value_name = "SEED", default_value_t = 0, conflicts_with_all = ["seed", "explore"])]
    first: u64,

    /// Of the faults of the seed, let only those with these numbers happen; `none` for none.
    #[arg(long, value_name = "NUMBERS", requires = "seed",
        conflicts_with_all = ["seeds", "explore"])]
    faults: Option<String>,

    /// At most so many orders for each peer.
    #[arg(long, value_name = "COUNT", requires = "seed", default_value_t = u32::MAX,
        conflicts_with_all = ["seeds", "explore"])]
    orders: u32,
}

impl SimArguments {
    fn bounds(&self, subject: &Subject) -> Bounds {
        let usual = subject.bounds();
        Bounds {
            steps: self.steps,
            crashes: self.crashes.unwrap_or(usual.crashes),
            starts: self.starts,
            faults: self.mishaps,
            waits: self.waits,
            states_max: self.states.unwrap_or(usual.states_max),
        }
    }
}

impl SimArguments {
    /// The run of `seed`, written down.
    fn plan(&self, seed: u64) -> Result<RunPlan, Failure> {
        let keep = match &self.faults {
            None => Keep::All,
            Some(numbers) => Keep::Only(numbers_of(numbers)?),
        };
        Ok(RunPlan { seed, keep, orders_max: self.orders, trace: Trace::on() })
    }
}

pub(super) fn run(arguments: &SimArguments, output: Output) -> Result<(), Failure> {
    let Some(subject) = Subject::named(&arguments.protocol) else {
        let cause = format!("no protocol is called {}", arguments.protocol);
        let names: Vec<_> = SUBJECTS.iter().map(|subject| subject.name).collect();
        return Err(Failure::of(Code::Usage, cause, format!("choose from {}", names.join(", "))));
    };
    if arguments.graphs {
        return graphs::run(subject, output);
    }
    if arguments.explore {
        return explore::run(subject, &arguments.bounds(subject), output);
    }
    match arguments.seed {
        Some(seed) => replay(subject, seed, arguments, output),
        None => run_many(subject, arguments, output),
    }
}

/// The first of the seeds and how many there are, if there are so many.
fn range(arguments: &SimArguments) -> Result<(u64, u64), Failure> {
    let (first, seeds) = (arguments.first, arguments.seeds);
    if first.checked_add(seeds - 1).is_none() {
        let cause = format!("--seeds {seeds} from --first {first} go past the last, {}", u64::MAX);
        let cure = format!("begin at {} or before", u64::MAX - (seeds - 1));
        return Err(Failure::of(Code::Usage, cause, cure));
    }
    Ok((first, seeds))
}

fn run_many(subject: &Subject, arguments: &SimArguments, output: Output) -> Result<(), Failure> {
    let range = range(arguments)?;
    let began = clock::now_ns();
    let bar = output.progress(arguments.seeds, "simulating");
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
    let kept = match tally.failed.len() {
        0 => "every promise was kept".to_owned(),
        failed => format!("{failed} broke a promise"),
    };
    let text = format!("{}: {seeds} seeds, {events} events: {kept}\n", subject.name);
    output.finish(&object, &text);
    match tally.failed.first() {
        None => Ok(()),
        Some(failed) => {
            let least = Replay::of(subject, failed, SHRINKING_RUNS_MAX);
            Err(broken(subject, &failed.outcome, &format!("replay it: {least}")))
        }
    }
}

fn broken(subject: &Subject, outcome: &RunOutcome, cure: &str) -> Failure {
    let what = outcome.violation.as_ref().map(ToString::to_string).unwrap_or_default();
    let cause = format!("{} broke a promise: {what}", subject.name);
    Failure::of(Code::Verification, cause, cure)
}

fn replay(
    subject: &Subject,
    seed: u64,
    arguments: &SimArguments,
    output: Output,
) -> Result<(), Failure> {
    let plan = arguments.plan(seed)?;
    let began = clock::now_ns();
    see_that_there_are(subject, &plan)?;
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
        _ => {
            let name = subject.name;
            let cure =
                format!("make it smaller: weft sim --protocol {name} --first {seed} --seeds 1");
            Err(broken(subject, &outcome, &cure))
        }
    }
}

/// Refuses faults behind the last of the seed; those that a shorter run does not come to are none.
fn see_that_there_are(subject: &Subject, plan: &RunPlan) -> Result<(), Failure> {
    let Keep::Only(numbers) = &plan.keep else { return Ok(()) };
    let Some(asked) = numbers.last() else { return Ok(()) };
    let last = (subject.run)(&RunPlan::of(plan.seed)).faults.last().copied();
    if last.is_some_and(|last| *asked <= last) {
        return Ok(());
    }
    let cause = format!("--faults names {asked}, and seed {} has no such fault", plan.seed);
    let cure = match last {
        Some(last) => format!("its last is {last}; the run without `--faults` shows them all"),
        None => "it has none at all".to_owned(),
    };
    Err(Failure::of(Code::Usage, cause, cure))
}

fn numbers_of(text: &str) -> Result<Vec<u32>, Failure> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let numbers: Result<Vec<u32>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    let mut numbers = numbers.map_err(|_| {
        let cause = format!("--faults takes a list of numbers, and {text} is none");
        Failure::of(Code::Usage, cause, "give numbers with commas between them, or none")
    })?;
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use weft_sim::toy::hasty_counter;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        sim: SimArguments,
    }

    /// The plan of a command line that was printed.
    fn plan_of(command: &str) -> RunPlan {
        let words = command.strip_prefix("weft ").expect("it is a command of this program");
        let sim = Command::try_parse_from(words.split(' ')).expect("it is a command").sim;
        sim.plan(sim.seed.expect("it names a seed")).expect("it names faults")
    }

    #[test]
    fn a_failing_seed_is_shown_with_less_and_fails_alike_whenever_it_is_replayed() {
        let subject = hasty_counter();
        let tally = run_seeds(&subject, (0, 2000), usize::MAX, || ());
        let failed = tally.failed.iter().max_by_key(|failed| failed.outcome.faults.len());
        let failed = failed.expect("a bug that a full queue brings out");
        let command = Replay::of(&subject, failed, SHRINKING_RUNS_MAX).to_string();

        let whole = (subject.run)(&RunPlan { trace: Trace::on(), ..RunPlan::of(failed.seed) });
        let [one, other] = [(); 2].map(|()| (subject.run)(&plan_of(&command)));
        assert_eq!(one.violation.map(|broken| broken.checker), Some("lost-update"));
        assert!((1..=2).contains(&one.faults.len()), "a queue that was full: {command}");
        assert!(one.orders < whole.orders && one.trace.len() < whole.trace.len(), "{command}");
        assert_eq!(one.trace, other.trace);
    }

    fn sim(line: &str) -> SimArguments {
        let words = std::iter::once("sim").chain(line.split(' '));
        Command::try_parse_from(words).expect("it is a command").sim
    }

    #[test]
    fn seeds_that_do_not_exist_are_refused() {
        let last = u64::MAX;
        assert_eq!(range(&sim(&format!("--first {last} --seeds 1"))).ok(), Some((last, 1)));
        let refused = range(&sim(&format!("--first {last} --seeds 5"))).expect_err("too many");
        assert_eq!(refused.code(), Code::Usage);
    }

    #[test]
    fn faults_that_a_seed_does_not_have_are_refused() {
        let subject = hasty_counter();
        let happened = (subject.run)(&RunPlan::of(5)).faults;
        let look = |line: &str| {
            let plan = sim(line).plan(5).expect("it names faults");
            see_that_there_are(&subject, &plan)
        };
        assert!(look("--seed 5").is_ok() && look("--seed 5 --faults none").is_ok());
        assert!(look(&format!("--seed 5 --faults {}", happened[0])).is_ok());
        let refused = look("--seed 5 --faults 99999").expect_err("there are not so many");
        assert_eq!(refused.code(), Code::Usage);
    }

    #[test]
    fn an_option_that_would_be_ignored_is_refused() {
        for line in [
            "--seeds 0",
            "--seeds 10 --faults none",
            "--seeds 10 --orders 0",
            "--faults 1",
            "--seed 1 --steps 3",
            "--seed 1 --first 3",
            "--seed 1 --starts 1",
            "--explore --seeds 3",
            "--explore --first 3",
            "--explore --orders 3",
            "--seeds 10 --crashes 3",
        ] {
            let words = std::iter::once("sim").chain(line.split(' '));
            assert!(Command::try_parse_from(words).is_err(), "{line}");
        }
        for line in ["--seed 1 --faults none --orders 3", "--seeds 10 --first 3", "--explore"] {
            let words = std::iter::once("sim").chain(line.split(' '));
            assert!(Command::try_parse_from(words).is_ok(), "{line}");
        }
    }
}
