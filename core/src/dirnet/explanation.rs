//! Why a verdict was reached, kept in a bounded ring, and what is reported to an operator.

use super::{Alarm, ComponentIncarnation, Members, Seen, Term};
use crate::ids::Rank;
use crate::time::{Duration, Instant};

/// What was decided about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Its component is down; a clone is spawned (SPAN).
    AgentDown,
    /// The node is down: fenced everywhere, then reset if that is allowed.
    NodeDown,
    /// The node is removed and may not come back by itself.
    Isolated,
    /// The node is a member from now on (NIUA).
    Admitted,
    /// The node is the manager from now on; it is the observer itself.
    TookOver,
}

/// The rule that led to a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// An alarm (TEIF) came while the node was suspected (D-23, D-50).
    AlarmInWindow,
    /// An alarm had come before the suspicion (G-5).
    AlarmBefore,
    /// Silence for R and then for W (D-51, D-52).
    Silence,
    /// A second observer reached the I'm-Alive Task and no component.
    TaskAlone,
    /// The I'm-Alive Task could not spawn a clone (G-6).
    SpawnFailed,
    /// The node's own component reported that its supervisor hangs.
    SupervisorHung,
    /// A clone or a restarted node was not heard from in time (G-18).
    NeverJoined,
    /// A later incarnation of the node was heard.
    NewLife,
    /// The node was heard from and is a member now.
    Joined,
    /// Errors of a task that a restart did not end.
    TaskErrors,
    /// The manager is down and this node is next (G-9).
    Succession,
    /// As [`Self::Succession`], with no other member left to ask: the transport or its own
    /// I'm-Alive Task has reported the end of each.
    LastAlive,
    /// The manager's node was removed (G-12).
    Removed,
    /// The term names an earlier incarnation of this node (D-8).
    OwnTerm,
    /// A joiner knew a higher term: the manager claims one above it.
    Outbid,
    /// The manager has handed over to this node, by order of an operator.
    HandOver,
    /// More restarts than the intensity allows.
    Intensity,
    /// An operator's order.
    Operator,
    /// A recovery script's order.
    Script,
}

impl Rule {
    /// The rule's name in logs and in `weft status --why`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AlarmInWindow => "alarm-in-window",
            Self::AlarmBefore => "alarm-before",
            Self::Silence => "silence",
            Self::TaskAlone => "task-alone",
            Self::SpawnFailed => "spawn-failed",
            Self::SupervisorHung => "supervisor-hung",
            Self::NeverJoined => "never-joined",
            Self::NewLife => "new-incarnation",
            Self::Joined => "joined",
            Self::TaskErrors => "task-errors",
            Self::Succession => "succession",
            Self::LastAlive => "last-alive",
            Self::Removed => "removed",
            Self::OwnTerm => "own-term",
            Self::Outbid => "outbid",
            Self::HandOver => "handover",
            Self::Intensity => "intensity",
            Self::Operator => "operator",
            Self::Script => "script",
        }
    }
}

/// What the verdict is based on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Evidence {
    /// The alarm, if there was one.
    pub alarm: Option<Alarm>,
    /// The testimonies of the other members.
    pub testimonies: Testimonies,
}

/// Which members were asked about a suspect, and what each answered. The three answers are
/// disjoint; a member that was asked and is in none of them was silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Testimonies {
    /// All that were asked.
    pub asked: Members,
    /// These reached its component.
    pub met: Members,
    /// These reached only its I'm-Alive Task.
    pub met_task: Members,
    /// These reached neither.
    pub met_neither: Members,
}

impl Testimonies {
    /// `asked` have been asked, and none has answered.
    #[must_use]
    pub const fn of(asked: Members) -> Self {
        let none = Members::NONE;
        Self { asked, met: none, met_task: none, met_neither: none }
    }

    /// The number of members that answered.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.met.count() + self.met_task.count() + self.met_neither.count()
    }

    /// The members that answered.
    pub(super) fn answered(&self) -> Members {
        [self.met, self.met_task, self.met_neither].into_iter().flat_map(Members::iter).collect()
    }

    /// Records the answer of `witness`; returns whether it was asked.
    pub(super) fn note(&mut self, witness: Rank, seen: Seen) -> bool {
        let was_asked = self.asked.contains(witness);
        if was_asked {
            for set in [&mut self.met, &mut self.met_task, &mut self.met_neither] {
                set.remove(witness);
            }
            match seen {
                Seen { component: true, .. } => self.met.insert(witness),
                Seen { task: true, .. } => self.met_task.insert(witness),
                Seen { component: false, task: false } => self.met_neither.insert(witness),
            }
        }
        was_asked
    }
}

/// The record that a verdict leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Explanation {
    /// The node that decided.
    pub observer: Rank,
    /// The node that the verdict is about.
    pub node: Rank,
    /// The incarnation of that node.
    pub incarnation: ComponentIncarnation,
    /// The verdict.
    pub verdict: Verdict,
    /// The rule that led to it.
    pub rule: Rule,
    /// The evidence for it.
    pub evidence: Evidence,
    /// The term in which it was reached.
    pub term: Term,
    /// When the node was last heard from, by the observer's clock; zero for never.
    pub heard: Instant,
    /// When it was decided.
    pub decided: Instant,
}

/// The number of explanations that are kept.
pub const EXPLANATIONS: usize = 32;

/// The latest explanations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Explanations {
    ring: [Option<Explanation>; EXPLANATIONS],
    count: usize,
}

impl Explanations {
    pub(super) fn push(&mut self, explanation: Explanation) {
        self.ring[self.count % EXPLANATIONS] = Some(explanation);
        self.count += 1;
    }

    /// Iterates over the explanations, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Explanation> {
        let (late, early) = self.ring.split_at(self.count % EXPLANATIONS);
        early.iter().chain(late).flatten()
    }
}

/// An event that is reported to an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum News {
    /// The node has been silent for R.
    Suspected(Rank),
    /// A suspect was heard from again.
    Restored(Rank),
    /// Not heard from here, but reached by a second observer: a link is down, not the node.
    OneWay(Rank),
    /// Silent, and neither removed nor reset: no second observer can be asked (G-11).
    Uncorroborated(Rank),
    /// A node of the cluster file has never been heard from (G-24).
    Absent(Rank),
    /// No node has answered the alarms about its component: the node starts its next component
    /// itself.
    Unanswered(Rank),
    /// No component of any other node is alive: the node starts its next component itself.
    Alone(Rank),
    /// More than r restarts in t: the node is isolated until an operator releases it.
    Isolated(Rank),
    /// Decisions wait until enough members are alive (`min_alive`).
    TooFew,
    /// Too few members show that they hear this node or answer it: until enough do, it removes no
    /// member as manager, and claims no term as backup.
    Unheard,
    /// This node was removed; start it again to take part.
    Excluded,
    /// No member could send the database (G-23).
    NoDatabase,
    /// The last epoch has been used.
    NoMoreTerms,
    /// Another node is manager now.
    Follows(Rank),
    /// This node's own loop was late by that much; deadlines of others were extended.
    Lagged(Duration),
    /// A task goes beyond its restart intensity and is isolated.
    TaskIsolated {
        /// The node of the task.
        node: Rank,
        /// The index of the task.
        task: u8,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x2_the_ring_keeps_the_latest_in_order() {
        let mut ring = Explanations::default();
        for at in 0..50 {
            ring.push(Explanation {
                observer: Rank(0),
                node: Rank(1),
                incarnation: ComponentIncarnation::default(),
                verdict: Verdict::NodeDown,
                rule: Rule::Silence,
                evidence: Evidence::default(),
                term: Term::default(),
                heard: Instant(0),
                decided: Instant(at),
            });
        }
        assert!(ring.iter().map(|explanation| explanation.decided.0).eq(18..50));
    }
}
