//! The built-in strategy of recovery, where the recovery interpreter will stand (G-27).
//!
//! ```text
//!  task error ──▶ restart the task      ─┐ more than r in t:
//!  agent down ──▶ spawn a clone          ├─▶ the next row
//!  node down  ──▶ fence everywhere, reset, rejoin
//!                 isolate, tell the operator
//! ```
//!
//! The manager asks once for each new error or event, never for one that it has heard before.

use super::config::RestartLimit;
use super::intensity::Intensity;
use crate::time::Instant;

/// What happened to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A task had an error, the `recent`-th within t.
    Task {
        /// Which task.
        task: u8,
        /// Its errors within t, this one included.
        recent: usize,
    },
    /// The component is down.
    Agent,
    /// The node is down.
    Node,
}

/// What is done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// Restart the task.
    RestartTask {
        /// Which task.
        task: u8,
    },
    /// Spawn a clone of the component.
    Spawn,
    /// Clones do not help: the node is at fault. A second observer looks at it first (X-1).
    Escalate,
    /// Fence the node everywhere, reset it, let it rejoin.
    Reset,
    /// Fence the node everywhere, keep it out, tell the operator.
    Isolate,
}

/// What is remembered of one node's recoveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Recoveries {
    pub(super) spawns: Intensity,
    pub(super) resets: Intensity,
}

impl Recoveries {
    /// What to do about `fault` at `now`.
    pub(super) fn decide(&mut self, now: Instant, fault: Fault, limit: RestartLimit) -> Recovery {
        let unlimited = super::RESTARTS_WITHOUT_LIMIT.is_planted();
        let restarts = usize::from(limit.max);
        match fault {
            Fault::Task { task, recent } if recent <= restarts || unlimited => {
                Recovery::RestartTask { task }
            }
            Fault::Task { .. } | Fault::Agent if self.spawns.allows(now, limit) || unlimited => {
                Recovery::Spawn
            }
            Fault::Task { .. } | Fault::Agent => Recovery::Escalate,
            Fault::Node if self.resets.allows(now, limit) || unlimited => Recovery::Reset,
            Fault::Node => Recovery::Isolate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[test]
    fn x6_recovery_escalates_from_task_to_component_to_node_to_operator() {
        let limit = RestartLimit { max: 1, within: Duration(100) };
        let mut recoveries = Recoveries::default();
        let mut decide = |fault| recoveries.decide(Instant(1), fault, limit);
        let task = |recent| Fault::Task { task: 2, recent };
        assert_eq!(decide(task(1)), Recovery::RestartTask { task: 2 });
        assert_eq!(decide(task(2)), Recovery::Spawn);
        assert_eq!(decide(Fault::Agent), Recovery::Escalate);
        assert_eq!(decide(Fault::Node), Recovery::Reset);
        assert_eq!(decide(Fault::Node), Recovery::Isolate);
    }

    #[test]
    fn x6_after_t_it_begins_anew() {
        let limit = RestartLimit { max: 1, within: Duration(100) };
        let mut recoveries = Recoveries::default();
        assert_eq!(recoveries.decide(Instant(1), Fault::Agent, limit), Recovery::Spawn);
        assert_eq!(recoveries.decide(Instant(100), Fault::Agent, limit), Recovery::Escalate);
        assert_eq!(recoveries.decide(Instant(101), Fault::Agent, limit), Recovery::Spawn);
    }
}
