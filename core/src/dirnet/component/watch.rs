//! Observation of a peer. The manager watches every member, a backup only the manager; a backup
//! that adopts another manager turns its one watch to it (G-15).
//!
//! ```text
//!          silence for R          silence for W more
//!   Up ───────────────▶ Suspect ────────────────────▶ Fencing ──▶ Joining
//!    ▲◀── frame heard ─────┘  └── alarm ──▶ Joining (a clone) ───────┤
//!    └──────────────────── the later incarnation is heard from ──────┘
//! ```

use super::{Component, News, Role, Rule, State};
use crate::dirnet::{ComponentIncarnation, Members, Testimonies};
use crate::ids::Rank;
use crate::time::Instant;

/// A suspicion: silence, and what was learned since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Suspicion {
    /// The incarnation that is suspected.
    pub(super) incarnation: ComponentIncarnation,
    /// When W ends (the TEIF timer; each suspect has its own, G-2).
    pub(super) due: Instant,
    /// The round and time of the question to the other members, and their answers.
    pub(super) round: u32,
    pub(super) asked_at: Instant,
    pub(super) testimonies: Testimonies,
    /// Members that have not answered directly: they are asked through the others.
    pub(super) unheard: Members,
    /// The members that met the suspect in the window before.
    pub(super) met_by: Members,
    /// The rule that raised the suspicion; a clone or node that never joined is not spawned again.
    pub(super) rule: Rule,
    /// Whether the operator was notified that a second observer reaches the node, and whether he
    /// was that too few do for a verdict.
    pub(super) is_met: bool,
    pub(super) is_told: bool,
}

impl Suspicion {
    /// Nothing has been learned so far.
    pub(super) fn new(incarnation: ComponentIncarnation, due: Instant, rule: Rule) -> Self {
        let (testimonies, unheard, met_by, asked_at) = Default::default();
        let (round, is_met, is_told) = Default::default();
        Self {
            incarnation,
            due,
            round,
            asked_at,
            testimonies,
            unheard,
            met_by,
            rule,
            is_met,
            is_told,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Watch {
    /// Not observed.
    #[default]
    Off,
    /// Heard from; silence until `due` raises a suspicion.
    Up { due: Instant },
    /// Silent.
    Suspect(Suspicion),
    /// A later incarnation is expected: a clone, or a node that was reset or asks who the manager
    /// is.
    Joining { incarnation: ComponentIncarnation, due: Instant },
    /// Removed; `fenced` have fenced it. It is reset once every member has, if that is allowed.
    Fencing { incarnation: ComponentIncarnation, fenced: Members, due: Instant, reset: Reset },
}

/// What follows the last fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reset {
    /// The node is reset.
    Follows,
    /// A second observer could not be asked, or the node is isolated.
    Withheld,
}

impl Watch {
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Off => None,
            Self::Up { due }
            | Self::Joining { due, .. }
            | Self::Fencing { due, .. }
            | Self::Suspect(Suspicion { due, .. }) => Some(*due),
        }
    }

    pub(super) fn deadline_mut(&mut self) -> Option<&mut Instant> {
        match self {
            Self::Off => None,
            Self::Up { due }
            | Self::Joining { due, .. }
            | Self::Fencing { due, .. }
            | Self::Suspect(Suspicion { due, .. }) => Some(due),
        }
    }
}

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    /// Whether this component watches `node` for silence.
    pub(super) fn watches(&self, node: Rank) -> bool {
        match self.state {
            State::Manager => node != self.me(),
            State::Backup(_) => node == self.term.claimant && node != self.me(),
            State::Joining(_) | State::Excluded => false,
        }
    }

    /// The component of `node` was heard, in its current incarnation and the current term: ends any
    /// suspicion and discards what was gathered for it (G-3, G-16).
    pub(super) fn hear(&mut self, now: Instant, node: Rank) {
        if !self.watches(node) {
            return;
        }
        if let State::Backup(_) = self.state {
            if self.is_deaf(node) {
                return;
            }
            self.is_unheard_told = false;
        }
        let due = now.after(self.timing().receive);
        let incarnation = self.db.standing(node).incarnation;
        let keeps_alarm = crate::dirnet::SUSPICION_LEAVES_ALARM.is_planted();
        let Some(fellow) = self.fellow_mut(node) else { return };
        fellow.heard = now;
        if !keeps_alarm {
            fellow.raised = None;
        }
        match fellow.watch {
            Watch::Suspect(_) => {
                fellow.watch = Watch::Up { due };
                self.tell(News::Restored(node));
                if crate::dirnet::ONE_WINDOW_FOR_ALL.is_planted() {
                    self.forget_suspicions();
                }
            }
            Watch::Off | Watch::Up { .. } => fellow.watch = Watch::Up { due },
            // The expected clone has not been heard yet; frames of the old one may still arrive.
            Watch::Joining { incarnation: expected, .. } if incarnation < expected => {}
            Watch::Joining { .. } => fellow.watch = Watch::Up { due },
            Watch::Fencing { .. } => {}
        }
        if let State::Backup(succession) = &mut self.state {
            succession.reset();
        }
    }

    /// Starts the watch on a member that a manager learns of, whether by report or by the alarm of
    /// its task.
    pub(super) fn watch_anew(&mut self, now: Instant, node: Rank) {
        let is_unwatched = match self.watch(node) {
            Watch::Off => true,
            Watch::Fencing { .. } if crate::dirnet::OVERTAKEN_FENCES_GO_ON.is_planted() => false,
            // What concerns an earlier boot is over once the next boot is a member, and a member is
            // watched: it may be dead, too.
            Watch::Joining { incarnation, .. }
            | Watch::Fencing { incarnation, .. }
            | Watch::Suspect(Suspicion { incarnation, .. }) => {
                incarnation.boot < self.db.standing(node).incarnation.boot
            }
            Watch::Up { .. } => false,
        };
        if is_unwatched && self.role() == Role::Manager && self.watches(node) {
            let due = now.after(self.timing().receive);
            self.set_watch(node, Watch::Up { due });
        }
    }

    /// Whether this manager waits for a later incarnation of `node`.
    #[must_use]
    pub fn expects(&self, node: Rank) -> bool {
        self.role() == Role::Manager && matches!(self.watch(node), Watch::Joining { .. })
    }

    /// The original's behaviour: the one timer of all suspects is deleted (G-2).
    fn forget_suspicions(&mut self) {
        for fellow in &mut self.fellows {
            if let Watch::Suspect(_) = fellow.watch {
                fellow.watch = Watch::Off;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::views::tests::manager;
    use super::*;
    use crate::dirnet::Standing;
    use crate::ids::Incarnation;

    /// Found by the swarm: the manager suspected a node, or awaited its clone, as it learned of the
    /// node's next boot from a member's database. It went on to remove the boot before, and never
    /// watched the next one.
    #[test]
    fn d43_what_concerns_an_earlier_boot_is_over_once_the_next_one_is_a_member() {
        let boot = |boot| ComponentIncarnation { boot: Incarnation(boot), generation: 0 };
        let suspicion = Suspicion::new(boot(1), Instant(9), Rule::Silence);
        let clone = Watch::Joining { incarnation: boot(1).clone_of(), due: Instant(9) };
        for watch in [Watch::Suspect(suspicion), clone] {
            let mut manager = manager(1);
            manager.stand(Instant(0), Rank(1), Standing::up(boot(1)));
            manager.set_watch(Rank(1), watch);
            assert!(manager.stand(Instant(1), Rank(1), Standing::up(boot(2))));
            assert!(matches!(manager.watch(Rank(1)), Watch::Up { .. }), "the next boot is watched");
        }
    }
}
