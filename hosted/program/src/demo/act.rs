//! An act of the story: what was done to a node, and what the records say came of it.
//!
//! ```text
//!   task   a task is killed (kill -9): the recovery script has it restarted
//!   kill   a component is killed (kill -9): its I'm-Alive Task raises the alarm, a clone follows
//!   hang   a component stops making progress: only its I'm-Alive Task can detect it
//!   node   the manager's node dies as a whole: a backup takes over with the next term, the node
//!          is fenced everywhere, reset, and rejoins in its next boot
//! ```
//!
//! Every time is one that some node noted when it happened; none is assumed.

use serde::Serialize;
use weft_core::dirnet::{Alarm, Verdict};

use super::traffic::ArrivalCounts;
use super::tree::TreeSummary;
use super::{COLLECTOR, NODES, script};
use weft::node::chronicle::{Entry, What};
use weft::node::control::{DirNetStatus, NodeStatus};

/// Silences shorter than this say nothing of a stream: the machines this was made on stall for up
/// to 160 ms by themselves.
const STALL_MS: u64 = 250;

/// What is done to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strike {
    Task,
    Kill,
    Hang,
    Node,
}

impl Strike {
    /// The story.
    pub(super) const ALL: [Self; 4] = [Self::Task, Self::Kill, Self::Hang, Self::Node];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Kill => "kill",
            Self::Hang => "hang",
            Self::Node => "node",
        }
    }

    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Task => "its task camera is killed (kill -9)",
            Self::Kill => "its component is killed (kill -9)",
            Self::Hang => "its component stops making progress",
            Self::Node => "the manager's node dies, with all below it",
        }
    }
}

/// A node before the blow or after its return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeSnapshot {
    pub(super) incarnation: u32,
    pub(super) supervisor_pid: i32,
    pub(super) epoch: u32,
    pub(super) manager: u16,
}

impl NodeSnapshot {
    pub(super) const fn new(status: &NodeStatus, net: &DirNetStatus) -> Self {
        Self {
            incarnation: status.incarnation,
            supervisor_pid: status.supervisor_pid,
            epoch: net.epoch,
            manager: net.manager,
        }
    }
}

/// What was done, and what was noted of it.
#[derive(Clone, Debug)]
pub(super) struct Act {
    pub(super) strike: Strike,
    pub(super) node: u16,
    pub(super) at_ns: u64,
    /// The node had exchanged greetings with every other again.
    pub(super) back_ns: u64,
    pub(super) before: NodeSnapshot,
    pub(super) after: NodeSnapshot,
    /// What all nodes noted from the blow until all agreed on one manager, in the order of time.
    pub(super) entries: Vec<Entry>,
    /// The broadcast that lost the node as its forwarder.
    pub(super) tree: Option<TreeSummary>,
}

/// A step of a recovery, and when it was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Milestone {
    /// Which.
    pub name: &'static str,
    /// Microseconds after the fault; `None` if no node recorded it.
    pub after_us: Option<u64>,
}

/// How one sender's stream fared while another node was away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Survivor {
    /// The sender.
    pub rank: u16,
    /// Its messages that arrived meanwhile.
    pub arrived: u64,
    /// The longest that nothing of it arrived.
    pub longest_silence_ms: u64,
}

impl Act {
    /// How long the node was away.
    pub(super) const fn away_us(&self) -> u64 {
        (self.back_ns - self.at_ns) / 1_000
    }

    /// What must have been noted, in the order in which it is due.
    pub(super) fn milestones(&self) -> Vec<Milestone> {
        let milestone = |name, at_ns: Option<u64>| Milestone {
            name,
            after_us: at_ns.map(|at_ns| at_ns.saturating_sub(self.at_ns) / 1_000),
        };
        if self.strike == Strike::Task {
            let ordered = self.entries.iter().find(|it| script::order_of(it).is_some());
            return vec![
                milestone("failed", self.first_of(script::is_failure)),
                milestone("ordered", ordered.map(|entry| entry.at_ns)),
                milestone("restarted", self.first_of(script::is_restart)),
            ];
        }
        let found = match self.strike {
            Strike::Kill => milestone("alarm", self.first_of(|it| it.is_alarm(Alarm::Ended))),
            Strike::Hang => milestone("alarm", self.first_of(|it| it.is_alarm(Alarm::NoProgress))),
            Strike::Task | Strike::Node => {
                milestone("suspected", self.first_of(|it| matches!(it, What::Suspected)))
            }
        };
        let down = match self.strike {
            Strike::Kill | Strike::Hang => Verdict::AgentDown,
            Strike::Task | Strike::Node => Verdict::NodeDown,
        };
        let mut all = vec![found];
        if self.strike == Strike::Node {
            all.push(milestone("taken over", self.taken_over_ns()));
        }
        all.push(milestone("verdict", self.first_of(|it| it.is_verdict(down))));
        if self.strike == Strike::Node {
            all.push(milestone("fenced by all", self.fenced_by_all_ns()));
            let is_reset = |it: &What| matches!(it, What::ResetOrdered { possible: true, .. });
            all.push(milestone("reset", self.first_of(is_reset)));
        }
        let struck = self.before.incarnation;
        let is_next =
            |it: &What| matches!(it, What::Started { incarnation } if *incarnation > struck);
        all.push(milestone("started", self.first_of(is_next)));
        all.push(milestone("greeted by all", Some(self.back_ns)));
        all.push(milestone("admitted", self.first_of(|it| it.is_verdict(Verdict::Admitted))));
        all
    }

    /// When the first entry about the struck node was noted that is so.
    fn first_of(&self, is_it: impl Fn(&What) -> bool) -> Option<u64> {
        let is_it = |entry: &&Entry| entry.node == self.node && is_it(&entry.what);
        self.entries.iter().find(is_it).map(|entry| entry.at_ns)
    }

    /// When another node concluded that it is the manager now.
    fn taken_over_ns(&self) -> Option<u64> {
        let is_it = |entry: &&Entry| {
            entry.observer != self.node && entry.what.is_verdict(Verdict::TookOver)
        };
        self.entries.iter().find(is_it).map(|entry| entry.at_ns)
    }

    /// When the last of the others had fenced the node.
    fn fenced_by_all_ns(&self) -> Option<u64> {
        let others = (0..).take(NODES).filter(|rank| *rank != self.node);
        let fenced = others.map(|rank| {
            let is_it = |entry: &&Entry| {
                entry.observer == rank
                    && entry.node == self.node
                    && matches!(entry.what, What::Fenced { .. })
            };
            self.entries.iter().find(is_it).map(|entry| entry.at_ns)
        });
        fenced.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Whether the node came back as it should, and how it stood before and after.
    pub(super) fn has_returned(&self) -> bool {
        let (before, after) = (&self.before, &self.after);
        let is_another_supervisor = before.supervisor_pid != after.supervisor_pid;
        let is_later = after.incarnation > before.incarnation;
        let is_as_due = is_later || self.strike == Strike::Task;
        is_as_due
            && match self.strike {
                Strike::Task | Strike::Kill | Strike::Hang => !is_another_supervisor,
                Strike::Node => {
                    let next_reign = after.epoch > before.epoch && after.manager != self.node;
                    is_another_supervisor && before.manager == self.node && next_reign
                }
            }
    }

    /// How the streams of the others fared meanwhile.
    pub(super) fn survivors(&self, flow: &ArrivalCounts) -> Vec<Survivor> {
        let (from, to) = (self.at_ns, self.back_ns);
        let others = (0..COLLECTOR).filter(|rank| *rank != self.node);
        let survivor = |rank| Survivor {
            rank,
            arrived: flow.arrived(rank, from, to),
            longest_silence_ms: flow.longest_silence_ms(rank, from, to),
        };
        others.map(survivor).collect()
    }

    /// Whether that stream went on while the node was away.
    pub(super) const fn has_gone_on(&self, survivor: &Survivor) -> bool {
        let away_ms = self.away_us() / 1_000;
        away_ms < STALL_MS || survivor.longest_silence_ms < away_ms && survivor.arrived > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn standing(incarnation: u32, supervisor_pid: i32, epoch: u32, manager: u16) -> NodeSnapshot {
        NodeSnapshot { incarnation, supervisor_pid, epoch, manager }
    }

    fn noted(at_ms: u64, observer: u16, what: What) -> Entry {
        Entry { at_ns: (100 + at_ms) * MS, observer, node: 0, what }
    }

    /// The manager's node 0 dies at 100 ms; 1 follows.
    fn node_act(entries: Vec<Entry>) -> Act {
        let (before, after) = (standing(1, 50, 1, 0), standing(2, 51, 2, 1));
        let (at_ns, back_ns) = (100 * MS, 2_100 * MS);
        Act { strike: Strike::Node, node: 0, at_ns, back_ns, before, after, entries, tree: None }
    }

    #[test]
    fn every_milestone_is_one_that_was_noted() {
        let fenced = |at_ms, by| noted(at_ms, by, What::Fenced { boot: 1 });
        let mut act = node_act(vec![
            noted(3, 1, What::Suspected),
            fenced(510, 1),
            fenced(512, 2),
            noted(530, 1, What::ResetOrdered { boot: 1, possible: true }),
            noted(540, 0, What::Started { incarnation: 2 }),
        ]);
        let after = |act: &Act, name| {
            let all = act.milestones();
            all.iter().find(|it| it.name == name).expect("a milestone").after_us
        };
        assert_eq!(after(&act, "suspected"), Some(3_000));
        assert_eq!((after(&act, "taken over"), after(&act, "fenced by all")), (None, None));
        assert_eq!((after(&act, "reset"), after(&act, "started")), (Some(530_000), Some(540_000)));
        act.entries.push(fenced(520, 3));
        assert_eq!(after(&act, "fenced by all"), Some(520_000));
        assert_eq!(after(&act, "greeted by all"), Some(2_000_000));
    }

    #[test]
    fn a_node_has_returned_as_another_life_below_another_manager() {
        assert!(node_act(Vec::new()).has_returned());
        let not = |change: fn(&mut Act)| {
            let mut act = node_act(Vec::new());
            change(&mut act);
            assert!(!act.has_returned(), "{act:?}");
        };
        not(|act| act.after.incarnation = 1);
        not(|act| act.after.epoch = 1);
        not(|act| act.after.manager = 0);
        not(|act| act.after.supervisor_pid = 50);
        not(|act| act.strike = Strike::Kill);
    }

    #[test]
    fn a_stream_that_was_silent_for_as_long_as_the_node_was_away_has_stopped() {
        let act = node_act(Vec::new());
        let mut flow = ArrivalCounts::new(0);
        flow.note(900 * MS, 2);
        let [one, two] = act.survivors(&flow)[..] else { panic!("two streams survive") };
        assert_eq!((one.rank, one.arrived, act.has_gone_on(&one)), (1, 0, false));
        assert_eq!((two.rank, two.arrived, act.has_gone_on(&two)), (2, 1, true));
    }
}
