//! What happened, when, and who noted it: each act as people and scripts read it.

use std::fmt;

use serde::Serialize;
use weft_core::dirnet::Verdict;

use super::act::{Act, Milestone, Strike, Survivor};
use super::traffic::ArrivalCounts;
use super::tree::TreeSummary;
use weft::node::chronicle::{Entry, TaskNote, TaskStep, What};

/// One moment of an act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// Microseconds after the blow.
    pub after_us: u64,
    /// Who noted it; none for what was done to the cluster.
    pub observer: Option<u16>,
    /// About which node.
    pub node: u16,
    /// What kind of moment it is.
    pub kind: MomentKind,
    /// What, in words: for verdicts, on what evidence.
    pub what: String,
}

/// What kind of moment it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MomentKind {
    /// What was done to the cluster.
    Blow,
    /// A sign that something is wrong: an alarm, silence, the end of a process.
    Sign,
    /// A conclusion, with its evidence.
    Verdict,
    /// What was done about it.
    Deed,
    /// A node is back.
    Return,
}

/// How the cluster recovered from one blow.
#[derive(Clone, Debug, Serialize)]
pub struct BlowRecovery {
    /// As `weft inject` names it: `kill`, `hang` or `node`; or `task`.
    pub name: &'static str,
    /// What that is.
    pub words: &'static str,
    /// The node that was struck.
    pub node: u16,
    /// When, in microseconds after the demonstration began.
    pub at_us: u64,
    /// The incarnation that was struck, and the one that came back.
    pub incarnations: (u32, u32),
    /// The term before and after, each as epoch and manager.
    pub terms: [(u32, u16); 2],
    /// How long the node was away, until greeted by all.
    pub away_us: u64,
    /// The steps of the recovery.
    pub milestones: Vec<Milestone>,
    /// The streams of the others meanwhile.
    pub survivors: Vec<Survivor>,
    /// Everything that was noted.
    pub moments: Vec<Moment>,
}

impl Moment {
    fn of(entry: &Entry, at_ns: u64) -> Option<Self> {
        let kind = match &entry.what {
            // Says something of the machine, not of the story.
            What::Late { .. } => return None,
            // The fault itself is shown already.
            What::Injected { .. } => return None,
            What::Task(TaskNote { change: TaskStep::Failed { .. }, .. })
            | What::Alarm { .. }
            | What::HungEarly { .. }
            | What::Gone
            | What::Suspected
            | What::Ended { .. }
            | What::Failed { .. }
            | What::Disputed { .. }
            | What::Proven { .. }
            | What::Forged { .. } => MomentKind::Sign,
            what @ What::Verdict(_) if what.is_verdict(Verdict::Admitted) => MomentKind::Return,
            What::Verdict(_) => MomentKind::Verdict,
            What::Running { .. } | What::Restored => MomentKind::Return,
            What::Started { .. }
            | What::Noted { .. }
            | What::Fenced { .. }
            | What::ResetOrdered { .. }
            | What::Reborn
            | What::Released
            | What::Hook(_)
            | What::Task(_) => MomentKind::Deed,
        };
        let after_us = entry.at_ns.saturating_sub(at_ns) / 1_000;
        let (observer, what) = (Some(entry.observer), entry.what.to_string());
        Some(Self { after_us, observer, node: entry.node, kind, what })
    }
}

impl Moment {
    /// When the member that had lost its forwarder received the next message.
    fn of_tree(tree: &TreeSummary, at_ns: u64) -> Option<Self> {
        let orphaned = tree.orphaned().filter(|it| it.silence_end_ns > at_ns)?;
        let silence = Ms(orphaned.longest_silence_us);
        Some(Self {
            after_us: (orphaned.silence_end_ns - at_ns) / 1_000,
            observer: Some(tree.orphan),
            node: tree.root,
            kind: MomentKind::Return,
            what: format!("the tree broadcast goes on without its forwarder, after {silence}"),
        })
    }

    /// When, in words.
    pub(super) fn after(&self) -> String {
        Ms(self.after_us).to_string()
    }
}

impl BlowRecovery {
    pub(super) fn new(act: &Act, flow: &ArrivalCounts, began_ns: u64) -> Self {
        let blow = Moment {
            after_us: 0,
            observer: None,
            node: act.node,
            kind: MomentKind::Blow,
            what: match act.strike {
                Strike::Task => "kill -9 of task camera".to_owned(),
                strike => format!("weft inject {} {}", strike.name(), act.node),
            },
        };
        let back = Moment {
            after_us: act.away_us(),
            kind: MomentKind::Return,
            what: match act.strike {
                Strike::Task => "task camera runs again".to_owned(),
                _ => format!("component {} is greeted by all", act.after.incarnation),
            },
            ..blow.clone()
        };
        let resumed = act.tree.as_ref().and_then(|tree| Moment::of_tree(tree, act.at_ns));
        let noted = act.entries.iter().filter_map(|entry| Moment::of(entry, act.at_ns));
        // The supervisor that outlives its component notes its return as well.
        let is_other = |moment: &Moment| {
            moment.kind != MomentKind::Return || moment.observer != Some(act.node)
        };
        let mut moments: Vec<Moment> =
            [blow, back].into_iter().chain(resumed).chain(noted.filter(is_other)).collect();
        moments.sort_by_key(|moment| moment.after_us);
        Self {
            name: act.strike.name(),
            words: act.strike.words(),
            node: act.node,
            at_us: act.at_ns.saturating_sub(began_ns) / 1_000,
            incarnations: (act.before.incarnation, act.after.incarnation),
            terms: [act.before, act.after].map(|standing| (standing.epoch, standing.manager)),
            away_us: act.away_us(),
            milestones: act.milestones(),
            survivors: act.survivors(flow),
            moments,
        }
    }

    /// When the blow was, in microseconds of the clock that read `began_ns` at the beginning.
    pub(super) fn blow_us(&self, began_ns: u64) -> u64 {
        began_ns / 1_000 + self.at_us
    }

    /// When that step was noted.
    pub(super) fn milestone_us(&self, name: &str) -> Option<u64> {
        self.milestones.iter().find(|it| it.name == name)?.after_us
    }

    /// The recorded steps with their times, and the steps that no node recorded.
    pub(super) fn steps(&self) -> String {
        let step = |it: &Milestone| match it.after_us {
            Some(us) => format!("{} {}", it.name, Ms(us)),
            None => format!("{} NEVER", it.name),
        };
        self.milestones.iter().map(step).collect::<Vec<_>>().join(", ")
    }

    /// Whether every step was noted.
    pub(super) fn is_complete(&self) -> bool {
        self.milestones.iter().all(|it| it.after_us.is_some())
    }
}

/// Microseconds, as milliseconds with one digit behind the point.
pub(super) struct Ms(pub(super) u64);

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} ms", self.0 / 1_000, self.0 / 100 % 10)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { after_us, observer, node, what, .. } = self;
        let after = Ms(*after_us).to_string();
        match observer {
            None => write!(f, "{after:>11}  demo           node {node}: {what}"),
            Some(by) if by == node => write!(f, "{after:>11}  node {by}         {what}"),
            Some(by) => write!(f, "{after:>11}  node {by} about {node} {what}"),
        }
    }
}

impl fmt::Display for BlowRecovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "node {}: {}", self.node, self.words)?;
        self.moments.iter().try_for_each(|moment| writeln!(f, "{moment}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::act::NodeSnapshot;

    fn entry(at_us: u64, observer: u16, what: What) -> Entry {
        Entry { at_ns: 1_000_000_000 + at_us * 1_000, observer, node: 1, what }
    }

    #[test]
    fn moments_are_told_in_order_whoever_noted_them() {
        let standing = |incarnation| {
            let (supervisor_pid, epoch, manager) = (7, 1, 0);
            NodeSnapshot { incarnation, supervisor_pid, epoch, manager }
        };
        let act = Act {
            strike: Strike::Kill,
            node: 1,
            at_ns: 1_000_000_000,
            back_ns: 1_030_000_000,
            before: standing(1),
            after: standing(2),
            entries: vec![
                entry(400, 1, What::Alarm { why: "the process ended".to_owned() }),
                entry(500, 2, What::Late { ms: 9 }),
                entry(1_250, 0, What::Suspected),
                entry(29_000, 1, What::Running { incarnation: 2 }),
            ],
            tree: None,
        };
        let recovery = BlowRecovery::new(&act, &ArrivalCounts::new(0), 0);
        let text = recovery.to_string();
        let expected = "\
node 1: its component is killed (kill -9)
     0.0 ms  demo           node 1: weft inject kill 1
     0.4 ms  node 1         I'm-Alive Task raises the alarm: the process ended
     1.2 ms  node 0 about 1 suspected: not heard
    30.0 ms  demo           node 1: component 2 is greeted by all
";
        assert_eq!(text, expected);
        assert_eq!((recovery.at_us, recovery.is_complete()), (1_000_000, false));
        assert!(recovery.steps().contains("alarm 0.4 ms, verdict NEVER"), "{}", recovery.steps());
    }
}
