//! The DIR net under the simulator: components and I'm-Alive Tasks, message by message.
//!
//! A run takes seconds of virtual time, and what a lane or a heartbeat cell does to bytes is
//! another protocol's proof; so here a message is what is lost, repeated, late or overtaken, and
//! a heartbeat is a cell whose latest value counts. Processes crash, hang, stand still, lose
//! their timers, fail to spawn, find what they had saved damaged; any set of links is cut, one way
//! or both, for a while, and up to three for good; a node is deaf; no process can be started on any
//! node; supervisors stop; a transport reports a loss, rightly or not; fences are late; decisions
//! need one member or a majority; nodes start late or all at once, in the profiles `lan`, `host`
//! and `rdma`. A launcher starts the nodes and resets them, or an operator does by hand, who starts
//! none that a manager has removed before that manager orders its reset. Operators isolate and
//! release nodes. Sequences, heartbeat numbers and rounds begin 20 below their end each time, and
//! boots below the middle of their range in some runs.
//!
//! | checker | promise |
//! |---|---|
//! | `one-manager` | no term has two managers, nor one that is not its claimant |
//! | `terms` | no node ever knows a lower term than before, its earlier incarnations included |
//! | `outcast` | no removed node is followed unadmitted, nor reigns unanswered if it knows |
//! | `fence` | a node is reset only after every live member has fenced that boot |
//! | `reset` | a dead node that a manager holds removed is reset by a manager, within 30 s of calm |
//! | `detection` | a manager that is heard doubts a node that is gone for long, or awaits it |
//! | `accuracy` | who only stands still for 160 ms, observer or observed, is not replaced |
//! | `explanation` | a verdict rests on alarms and answers that came, in time, to its question |
//! | `isolation` | an isolated node is no member, until a manager releases it |
//! | `view-agreement` | members that show the same number show the same view |
//! | `view-monotone` | the numbers that a node shows rise, over all of its incarnations |
//! | `view-fence` | what a view no longer contains is fenced at the node that shows it |
//! | `snapshots` | a damaged snapshot is never taken, and the first that is whole is |
//! | `budget` | a cluster at rest sends heartbeats only |
//! | `progress` | once faults are over all are members again, one manages, databases and views agree |
//!
//! Before the last releases, all of that holds without the isolated nodes: no node has forgotten
//! one. Where a link stays cut, one manager is followed and stays; who meets it agrees with it.
//!
//! [`ScriptLab`] runs a recovery script over the same network, for `weft rl run` and for the
//! protocol `recovery`, whose checkers `scripted/run.rs` lists.
//!
//! What it does not do: bytes (frames and cells have tests of their own), and liars.

mod admission;
mod evidence;
mod expected;
mod explore;
pub mod graphs;
mod isolations;
mod lab;
mod ledger;
mod net;
mod scripted;
mod strike;
mod views;

pub(crate) use views::Views;

use std::panic::{AssertUnwindSafe, catch_unwind};

use weft_core::time::Instant;

pub(super) use self::expected::EXPECTED;
pub(super) use self::explore::{explore, explore_scripts, left_out};
pub use self::lab::{Event, Lab};
use self::net::Net;
pub use self::net::Setting;
pub(super) use self::scripted::{EXPECTED as SCRIPTS_EXPECTED, run as run_scripts};
pub use self::scripted::{Happening, ScriptEvent, ScriptLab};
pub use self::strike::{NetStrike, SnapshotDamage, Weather};
use super::panics;
use super::protocol::Violation;
use super::run::{RunOutcome, RunPlan};

/// What `--protocol` calls it.
pub const NAME: &str = "dirnet";

/// What `--protocol` calls recovery scripts over it.
pub(super) const SCRIPTS: &str = "recovery";

/// Runs `plan` to its end.
#[must_use]
pub fn run(plan: &RunPlan) -> RunOutcome {
    let mut net = Net::new(plan);
    let panic = panics::quietly(|| catch_unwind(AssertUnwindSafe(|| net.go())));
    let violation = match panic {
        Err(message) => Some(Violation::new("panic", message)),
        Ok(()) => net.ledger.violation.clone(),
    };
    if let Some(violation) = &violation {
        net.note(|| format!("VIOLATION of {violation}"));
    }
    RunOutcome {
        violation,
        faults: net.happened.clone(),
        orders: 0,
        events: net.events,
        took: Instant(net.now),
        trace: net.trace.take(),
    }
}

#[cfg(test)]
mod tests {
    use weft_core::dirnet::{News, Output, Timing};
    use weft_core::ids::Rank;

    use super::strike::MS;
    use super::*;

    #[test]
    fn every_promise_is_kept_for_many_seeds() {
        // Two of a later range: an end before the first look, and a member that no order reaches.
        for seed in (0..40).chain([60_076, 117_443]) {
            let outcome = run(&RunPlan::of(seed));
            assert_eq!(outcome.violation, None, "weft sim --protocol {NAME} --seed {seed}");
        }
    }

    /// reset five times, and isolated then, though another manager decides each time.
    #[test]
    fn a_node_that_keeps_dying_is_isolated_whoever_manages() {
        const DYING: Rank = Rank(2);
        for seed in 0..20 {
            let mut lab = Lab::settled(Setting::fair(4, Timing::LAN, 5 * MS), seed, 1_000 * MS);
            let (mut deaths, mut managers) = (0, Vec::new());
            while deaths < 9 && !is_isolated(&lab.take_events(), DYING) {
                let manager = lab.manager().expect("all are members");
                if !managers.contains(&manager) {
                    managers.push(manager);
                }
                lab.strike(NetStrike::Hang(manager.0));
                lab.run_for(6_000 * MS);
                lab.strike(NetStrike::Crash(DYING.0));
                deaths += 1;
                lab.run_for(6_000 * MS);
            }
            assert_eq!(deaths, 6, "seed {seed}");
            assert!(managers.len() > 2, "seed {seed}: {managers:?}");
        }
    }

    fn is_isolated(events: &[Event], node: Rank) -> bool {
        events.iter().any(|(_, _, output)| *output == Output::Tell(News::Isolated(node)))
    }

    #[test]
    fn a_seed_is_one_run() {
        let (one, other) = (run(&RunPlan::of(7)), run(&RunPlan::of(7)));
        assert_eq!((one.events, one.took, one.faults), (other.events, other.took, other.faults));
    }
}
