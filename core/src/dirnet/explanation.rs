//! Why a verdict was reached, kept in a bounded ring, and what an operator is told.

use super::{Alarm, Life, Members, Seen, Term};
use crate::ids::Rank;
use crate::time::{Duration, Instant};

/// What was decided about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Its component is down; a clone is spawned (SPAN).
    AgentDown,
    /// The node is down: fenced everywhere, then reset where that is allowed.
    NodeDown,
    /// It is removed and may not come back by itself.
    Isolated,
    /// It is a member from now on (NIUA).
    Admitted,
    /// It is the manager from now on; the node is the observer itself.
    TookOver,
}

/// The rule that led to a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// An alarm (TEIF) came while the node was suspected (D-23, D-50).
    AlarmInWindow,
    /// An alarm had come before the suspicion (G-5).
    AlarmBefore,
    /// Silence for R and for W after it (D-51, D-52).
    Silence,
    /// A second observer met the I'm-Alive Task and no component.
    TaskAlone,
    /// The I'm-Alive Task could not spawn a clone (G-6).
    SpawnFailed,
    /// The node's own component reported that its supervisor stands still.
    SupervisorHung,
    /// A clone or a node that was started again was not heard of in time (G-18).
    NeverJoined,
    /// A later life of the node speaks.
    NewLife,
    /// The node was heard of and is a member now.
    Joined,
    /// Errors of a task that a restart did not cure.
    TaskErrors,
    /// The manager is down and this node is the next (G-9).
    Succession,
    /// The same, and no other member is left to ask: the transport or its own I'm-Alive Task has
    /// reported the end of each.
    LastAlive,
    /// The manager's node stands removed (G-12).
    Removed,
    /// The term names this node, of an earlier life (D-8).
    OwnReign,
    /// A joiner knew a higher term: the manager goes above it.
    Outbid,
    /// More restarts than the intensity allows.
    Intensity,
    /// An operator's order.
    Operator,
}

impl Rule {
    /// Its name in logs and in `weft status --why`.
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
            Self::NewLife => "new-life",
            Self::Joined => "joined",
            Self::TaskErrors => "task-errors",
            Self::Succession => "succession",
            Self::LastAlive => "last-alive",
            Self::Removed => "removed",
            Self::OwnReign => "own-reign",
            Self::Outbid => "outbid",
            Self::Intensity => "intensity",
            Self::Operator => "operator",
        }
    }
}

/// What the verdict rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Evidence {
    /// The alarm, if there was one.
    pub alarm: Option<Alarm>,
    /// What the other members said of the node.
    pub testimonies: Testimonies,
}

/// Who was asked about a suspect, and who answered what. The three answers are disjoint; a
/// member that was asked and is in none of them was silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Testimonies {
    /// All that were asked.
    pub asked: Members,
    /// These met its component.
    pub met: Members,
    /// These met its I'm-Alive Task alone.
    pub met_task: Members,
    /// These met neither.
    pub met_neither: Members,
}

impl Testimonies {
    /// Nothing is known yet of what `asked` will say.
    #[must_use]
    pub const fn of(asked: Members) -> Self {
        let none = Members::NONE;
        Self { asked, met: none, met_task: none, met_neither: none }
    }

    /// How many answered.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.met.count() + self.met_task.count() + self.met_neither.count()
    }

    /// Those that answered.
    pub(super) fn answered(&self) -> Members {
        [self.met, self.met_task, self.met_neither].into_iter().flat_map(Members::iter).collect()
    }

    /// Takes the answer of `witness`; whether it was asked.
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
    /// Who decided.
    pub observer: Rank,
    /// About whom.
    pub node: Rank,
    /// Which life of it.
    pub life: Life,
    /// What.
    pub verdict: Verdict,
    /// By which rule.
    pub rule: Rule,
    /// On what grounds.
    pub evidence: Evidence,
    /// In which reign.
    pub term: Term,
    /// When the node was last heard of, by the observer's clock; zero for never.
    pub heard: Instant,
    /// When it was decided.
    pub decided: Instant,
}

/// How many explanations are kept.
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

    /// Oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Explanation> {
        let (late, early) = self.ring.split_at(self.count % EXPLANATIONS);
        early.iter().chain(late).flatten()
    }
}

/// What an operator is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum News {
    /// The node has been silent for R.
    Suspected(Rank),
    /// A suspect was heard of again.
    Restored(Rank),
    /// Not heard of here, and met by a second observer: a link is down, not the node.
    OneWay(Rank),
    /// Silent, and neither removed nor reset: no second observer can be asked (G-11).
    Uncorroborated(Rank),
    /// A node of the cluster file has never been heard of (G-24).
    Absent(Rank),
    /// Nobody has answered the alarms about its component: it starts the next one itself.
    Unanswered(Rank),
    /// No component of another node lives: it starts its next one itself.
    Alone(Rank),
    /// More than r restarts in t: the node is isolated until an operator releases it.
    Isolated(Rank),
    /// Decisions wait until enough members are alive (`min_alive`).
    TooFew,
    /// Too few members show that they hear this node, or answer it: it decides nothing until they
    /// do.
    Unheard,
    /// This node was removed; it must be started again to take part.
    Excluded,
    /// No member could send the database (G-23).
    NoDatabase,
    /// The last epoch has been used.
    NoMoreTerms,
    /// Another node is manager now.
    Follows(Rank),
    /// The own loop was late by so much; deadlines of others were extended.
    Lagged(Duration),
    /// A task goes beyond its restart intensity and is isolated.
    TaskIsolated {
        /// On which node.
        node: Rank,
        /// Which task.
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
                life: Life::default(),
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
