//! `weft rl run FILE --simulate SCENARIO`: a script in a simulated cluster, in virtual time.
//!
//! People get the timeline and which expectations held; scripts get one object. An expectation that
//! did not hold ends with the code `verification`.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::{Check, diagnostics_of, read_script, refuse, surroundings_of, translate};
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use weft::explain::{Code, count};
use weft_core::dirnet::{Profile, Timing, Verdict};
use weft_core::recovery::{Expected, Order, Outcome, Placed, Program, TaskState, Verb, verify};
use weft_core::vote::VoteOutcome;
use weft_rl::scenario::{
    Deed, Expectation, Scenario, ScenarioReading, Wanted, Whom, read_scenario,
};
use weft_rl::with_timeouts;
use weft_sim::dirnet::{Happening, ScriptEvent, ScriptLab};

/// Arguments of `weft rl run`.
#[derive(Debug, Args)]
pub(super) struct RlRunArguments {
    #[command(flatten)]
    check: Check,

    /// What happens to the simulated cluster, and what is expected.
    #[arg(long, value_name = "SCENARIO")]
    simulate: PathBuf,

    /// The seed of delays.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub(super) fn run(run: &RlRunArguments, output: Output) -> Result<(), Failure> {
    let translation = translate(&run.check)?;
    refuse(&translation, &run.check, output)?;
    let image = translation.image.as_deref().unwrap_or_default();
    let expected = Expected { nodes: None, keeps_rules: |_| true };
    let program = verify(image, &expected).map_err(|rejected| {
        Failure::of(Code::Internal, format!("the translator's image: {rejected}"), "report it")
    })?;
    let name = run.simulate.display().to_string();
    let reading = read_scenario(&name, &read_script(&run.simulate)?, &program);
    let Some(scenario) = &reading.scenario else { return Err(refused(&name, &reading, output)) };
    let timing = surroundings_of(&run.check)?.map_or(Timing::LAN, |cluster| cluster.timing);
    let timing = with_timeouts(timing, program.timeouts());
    // Without a cluster file the translator knows no timing that the values could fit.
    if let Err(rule) = Profile::new(timing) {
        let cause = format!("{}: its timing breaks {rule}", run.check.file.display());
        return Err(Failure::of(
            Code::Script,
            cause,
            "correct MIA_SEND, MIA_RECV, TEIF and others",
        ));
    }
    let events = play(image, scenario, timing, run.seed);
    report(&name, &program, scenario, &events, output)
}

fn refused(name: &str, reading: &ScenarioReading, output: Output) -> Failure {
    let found = diagnostics_of(&reading.sources, &reading.diagnostics);
    output.finish(&json!({ "ok": false, "diagnostics": found }), &reading.render());
    let count = reading.diagnostics.len();
    let cause = format!("{name}: {count} finding{}", if count == 1 { "" } else { "s" });
    let cure = "correct the places that are shown; `weft rl explain CODE` says more";
    Failure::of(Code::Script, cause, cure)
}

fn play(image: &[u8], scenario: &Scenario, timing: Timing, seed: u64) -> Vec<ScriptEvent> {
    let mut lab = ScriptLab::settled(image, timing, &scenario.waiting, seed);
    let mut deeds = scenario.deeds.iter().peekable();
    let mut events = Vec::new();
    while lab.now_us() < scenario.until_us {
        // Those of one moment happen before any node takes notice.
        while let Some((_, _, deed)) = deeds.next_if(|(at, ..)| *at <= lab.now_us()) {
            match *deed {
                Deed::Error(task, kind) => lab.error(task, kind),
                Deed::Silence(task) => lab.silence(task),
                Deed::Phase(task, phase) => lab.report_phase(task, phase),
                Deed::Finish(task) => lab.finish(task),
                Deed::Kill(node) => lab.kill(node),
                Deed::Crash(node) => lab.crash(node),
                Deed::Vote { nversion, version, round, number } => {
                    lab.vote(nversion, version, round, number);
                }
            }
        }
        lab.step();
        events.extend(lab.take_events());
    }
    events
}

fn report(
    name: &str,
    program: &Program<'_>,
    scenario: &Scenario,
    events: &[ScriptEvent],
    output: Output,
) -> Result<(), Failure> {
    let held: Vec<bool> =
        scenario.expectations.iter().map(|it| holds(it, program, events)).collect();
    let is_evaluation = |event: &&ScriptEvent| matches!(event.1, Happening::Evaluated(..));
    let evaluations = events.iter().filter(is_evaluation).count();
    let orders = events.iter().filter_map(|(at_us, happening)| match happening {
        // An order that is repeated on its way is one order.
        Happening::Ordered(placed) => Some(order_object(*at_us, placed, program, events)),
        _ => None,
    });
    let orders: Vec<Value> = orders.collect();
    let judged = || scenario.expectations.iter().zip(&held);
    let expectations: Vec<Value> = judged()
        .map(|(it, held)| json!({ "line": it.line, "text": it.text, "held": held }))
        .collect();
    // All of them are shown, though one is enough to fail.
    let missed = held.iter().filter(|held| !**held).count();
    let mut text: String = events.iter().map(|event| line(event, program)).collect();
    for (expectation, held) in judged() {
        let held = if *held { "held" } else { "did not hold" };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name}:{}: {}: {held}", expectation.line, expectation.text);
    }
    let object = json!({
        "ok": missed == 0, "evaluations": evaluations, "orders": orders,
        "expectations": expectations,
    });
    output.finish(&object, &text);
    let Some((first, _)) = judged().find(|(_, held)| !**held) else { return Ok(()) };
    let cause = format!(
        "{missed} of {} expectations did not hold, the first in line {} of {name}: {}",
        held.len(),
        first.line,
        first.text,
    );
    Err(Failure::of(Code::Verification, cause, "read the timeline, and correct script or scenario"))
}

fn holds(expectation: &Expectation, program: &Program<'_>, events: &[ScriptEvent]) -> bool {
    let within = expectation.from_us..=expectation.to_us;
    let is_wanted = |(at_us, happening): &ScriptEvent| {
        let order = match (happening, &expectation.wanted) {
            _ if !within.contains(at_us) => return false,
            (Happening::Obeyed(Placed { order, .. }), _) => order,
            // A node or a task that fails too often is isolated by no order of the script.
            (Happening::Verdict(why), Wanted::Order(Verb::Isolate, Whom::Node(node))) => {
                return why.verdict == Verdict::Isolated && why.node.0 == u16::from(*node);
            }
            (
                Happening::Task(task, TaskState::Isolated),
                Wanted::Order(Verb::Isolate, Whom::Task(whom)),
            ) => return task == whom,
            (Happening::Notified(to, _), Wanted::Warn(whom)) => return to == whom,
            (Happening::Voted(_, outcome), Wanted::Vote(nversion, round, number)) => {
                let value = outcome.is_reached().then_some(outcome.value);
                return (outcome.nversion, outcome.round, value) == (*nversion, *round, *number);
            }
            _ => return false,
        };
        match (&expectation.wanted, *order) {
            (Wanted::Order(wanted, Whom::Task(whom)), Order::Task { task, verb, .. }) => {
                (*wanted, *whom) == (verb, task)
            }
            (Wanted::Order(wanted, Whom::Node(whom)), Order::Node { node, verb }) => {
                (*wanted, *whom) == (verb, node)
            }
            (Wanted::Warn(whom), Order::Notice { to, .. }) => *whom == to,
            (Wanted::Log(wanted), Order::Log { text, .. }) => {
                program.code().text(text) == Some(wanted)
            }
            _ => false,
        }
    };
    events.iter().any(is_wanted) != expectation.is_absent
}

fn order_object(
    at_us: u64,
    placed: &Placed,
    program: &Program<'_>,
    events: &[ScriptEvent],
) -> Value {
    let is_it = |other: &Placed| other.id == placed.id;
    let obeyed = events.iter().find_map(|(at_us, happening)| match happening {
        Happening::Obeyed(other) if is_it(other) => Some(*at_us),
        _ => None,
    });
    json!({
        "at_us": at_us, "line": source_line(placed, program), "order": order_text(placed, program),
        "obeyed_us": obeyed,
    })
}

/// The line of the script; none for an order of DEFAULT.
fn source_line(placed: &Placed, program: &Program<'_>) -> Option<u16> {
    let line = || program.code().line(placed.word).filter(|line| *line > 0);
    if placed.section == 0 { None } else { line() }
}

fn line((at_us, happening): &ScriptEvent, program: &Program<'_>) -> String {
    let what = match happening {
        Happening::Evaluated(node, _, trace) => {
            let full = match trace.outcome {
                Outcome::Completed => "",
                Outcome::TooManyOrders => ", more orders than one evaluation may give",
            };
            let lost = [
                (trace.refused, "refused, for the manager's own node is not ordered"),
                (trace.superseded, "superseded by an earlier order of the same evaluation"),
                (trace.faults, "sections ended by an overflow or a division by zero"),
            ];
            let lost = lost.iter().filter(|(count, _)| *count > 0);
            let lost: String = lost.map(|(count, what)| format!(", {count} {what}")).collect();
            format!(
                "node {node}, evaluation {}: sections that held {:?}, {}{full}{lost}",
                trace.number,
                trace.held,
                count(trace.orders.into(), "order"),
            )
        }
        Happening::Ordered(placed) => {
            let place = source_line(placed, program);
            let place = place.map_or("DEFAULT".to_owned(), |line| format!("line {line}"));
            format!("order: {} ({place})", order_text(placed, program))
        }
        Happening::Obeyed(placed) => format!("obeyed: {}", order_text(placed, program)),
        Happening::Outdated(placed) => format!("outdated: {}", order_text(placed, program)),
        Happening::Answered { .. } => return String::new(),
        Happening::Unordered { task, .. } => {
            format!("no order for {} in time: DEFAULT", task_name(*task, program))
        }
        Happening::Uses(node, digest) => format!("node {node} uses script {digest:016x}"),
        Happening::Reloaded(digest, end) => format!("reload of script {digest:016x}: {end:?}"),
        Happening::Task(task, state) => {
            let state = match state {
                TaskState::Waiting => "waits",
                TaskState::Running => "runs",
                TaskState::Killed => "was stopped",
                TaskState::Isolated => "is isolated",
                TaskState::Finished => "has finished",
            };
            format!("task {} {state}", task_name(*task, program))
        }
        Happening::Voted(node, outcome) => format!("node {node}: {}", vote_text(outcome)),
        Happening::Notified(to, outcome) => {
            format!("notice to {}: {}", task_name(*to, program), vote_text(outcome))
        }
        Happening::NotVoted(task, why) => {
            format!("the vote of {} is refused: {why}", task_name(*task, program))
        }
        Happening::Verdict(why) => {
            format!("node {}: {:?} {} ({})", why.observer, why.verdict, why.node, why.rule.name())
        }
    };
    format!("{:>4}.{:03} s  {what}\n", at_us / 1_000_000, at_us / 1_000 % 1_000)
}

fn vote_text(outcome: &VoteOutcome) -> String {
    let VoteOutcome { nversion, round, voters, agreed, value, .. } = outcome;
    let names = |bits: u8| -> String {
        let versions = (1..=8_u8).filter(|version| bits >> (version - 1) & 1 == 1);
        versions.map(|version| version.to_string()).collect::<Vec<_>>().join(", ")
    };
    let of = match outcome.is_reached() {
        true => format!("{value} by versions {}", names(*agreed)),
        false => "no outcome".to_owned(),
    };
    format!("N-version task {nversion}, round {round}: {of}; voted: {}", names(*voters))
}

fn task_name(task: u8, program: &Program<'_>) -> String {
    program.name_of(task).map_or_else(|| format!("T{task}"), str::to_owned)
}

fn order_text(placed: &Placed, program: &Program<'_>) -> String {
    let name = |task| task_name(task, program);
    let values = |values: &[i32], count: u8| {
        let values = values.iter().take(usize::from(count)).map(i32::to_string);
        values.collect::<Vec<_>>()
    };
    match &placed.order {
        Order::Task { task, verb, .. } => format!("{} {}", verb.as_str(), name(*task)),
        Order::Node { node, verb } => format!("{} node {node}", verb.as_str()),
        Order::Answer { task, .. } => format!("answer errors of {}", name(*task)),
        Order::Clear { task, .. } => format!("CLEAR {}", name(*task)),
        Order::Builtin { task, .. } => format!("leave {} to the built-in strategy", name(*task)),
        Order::Send { to, value } => format!("SEND {value} {}", name(*to)),
        Order::Notice { to, .. } => format!("WARN {}", name(*to)),
        Order::Log { text, values: given, count } => {
            let text = program.code().text(*text).unwrap_or_default();
            let given = values(given, *count);
            [&["LOG".to_owned(), format!("\"{text}\"")], &given[..]].concat().join(" ")
        }
        Order::Call { name, args, count } => {
            let name = program.code().text(*name).unwrap_or_default();
            format!("CALL {name}({})", values(args, *count).join(", "))
        }
    }
}
