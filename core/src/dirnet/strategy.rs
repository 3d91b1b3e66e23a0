//! The built-in recovery strategy, in the place of the future recovery interpreter (G-27).
//!
//! ```text
//!  task error ──▶ restart the task      ─┐ more than r in t:
//!  agent down ──▶ spawn a clone          ├─▶ the next row
//!  node down  ──▶ fence everywhere, reset, rejoin
//!                 isolate, notify the operator
//! ```
//!
//! Restarts of tasks and clones share one r and t; resets of nodes have their own, because a clone
//! starts at once and a node that was reset must be waited for. Clones are counted by the manager
//! only, and each manager starts a new count; resets are counted by all members (`resets`).
//!
//! The manager decides once for each new error or event, never for a repeated one.

use super::config::Limits;
use super::intensity::Intensity;
use super::resets::Resets;
use crate::ids::Incarnation;
use crate::time::Instant;

/// What happened to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A task had an error, with `recent` errors within t.
    Task {
        /// The index of the task.
        task: u8,
        /// The number of its errors within t, this one included.
        recent: usize,
    },
    /// The component is down.
    Agent,
    /// The node is down.
    Node {
        /// The boot in which it failed.
        boot: Incarnation,
    },
}

/// The action against a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// Restart the task.
    RestartTask {
        /// The index of the task.
        task: u8,
    },
    /// Spawn a clone of the component.
    Spawn,
    /// Clones do not help: the node is at fault. A second observer probes it first (X-1).
    Escalate,
    /// Fence the node everywhere, reset it, let it rejoin.
    Reset,
    /// Fence the node everywhere, keep it out, notify the operator.
    Isolate,
}

/// The history of one node's recoveries.
#[derive(Debug)]
pub(super) struct Recoveries<'a> {
    pub(super) spawns: &'a mut Intensity,
    pub(super) resets: &'a mut Resets,
}

impl Recoveries<'_> {
    /// Decides how to recover from `fault` at `now`.
    pub(super) fn decide(&mut self, now: Instant, fault: Fault, limits: &Limits) -> Recovery {
        let Limits { restarts, mut resets } = *limits;
        if super::RESETS_SHARE_A_LIMIT.is_planted() {
            resets = restarts;
        }
        let unlimited = super::RESTARTS_WITHOUT_LIMIT.is_planted();
        match fault {
            Fault::Task { task, recent } if recent <= usize::from(restarts.max) || unlimited => {
                Recovery::RestartTask { task }
            }
            Fault::Task { .. } | Fault::Agent if self.spawns.allows(now, restarts) || unlimited => {
                Recovery::Spawn
            }
            Fault::Task { .. } | Fault::Agent => Recovery::Escalate,
            Fault::Node { boot } if self.resets.allows(now, boot, resets) => Recovery::Reset,
            Fault::Node { .. } if super::RESETS_WITHOUT_LIMIT.is_planted() => Recovery::Reset,
            Fault::Node { .. } => Recovery::Isolate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dirnet::RestartLimit;
    use crate::time::Duration;

    const LIMITS: Limits = Limits {
        restarts: RestartLimit { max: 1, within: Duration(100) },
        resets: RestartLimit { max: 2, within: Duration(1_000) },
    };

    fn decide(at: &[(u64, Fault)]) -> std::vec::Vec<Recovery> {
        let (mut spawns, mut resets) = (Intensity::default(), Resets::default());
        let mut recoveries = Recoveries { spawns: &mut spawns, resets: &mut resets };
        at.iter().map(|(at, fault)| recoveries.decide(Instant(*at), *fault, &LIMITS)).collect()
    }

    fn node(boot: u32) -> Fault {
        Fault::Node { boot: Incarnation(boot) }
    }

    #[test]
    fn x6_recovery_escalates_from_task_to_component_to_node_to_operator() {
        let task = |recent| Fault::Task { task: 2, recent };
        let faults = [task(1), task(2), Fault::Agent, node(1), node(2), node(3)];
        let decided = decide(&faults.map(|fault| (1, fault)));
        let restart = Recovery::RestartTask { task: 2 };
        use Recovery::{Escalate, Isolate, Reset, Spawn};
        assert_eq!(decided, [restart, Spawn, Escalate, Reset, Reset, Isolate]);
    }

    #[test]
    fn x6_after_t_it_begins_anew_and_each_row_has_its_own() {
        let agent = |at| (at, Fault::Agent);
        let decided = decide(&[agent(1), agent(100), agent(101)]);
        assert_eq!(decided, [Recovery::Spawn, Recovery::Escalate, Recovery::Spawn]);
        let decided = decide(&[(1, node(1)), (500, node(2)), (1_000, node(3)), (1_001, node(3))]);
        use Recovery::{Isolate, Reset};
        assert_eq!(decided, [Reset, Reset, Isolate, Reset]);
    }
}
