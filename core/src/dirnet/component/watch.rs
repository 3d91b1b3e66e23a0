//! What is observed of a peer. The manager watches every member, a backup the manager alone; a
//! backup that adopts another manager turns its one watch to it (G-15).
//!
//! ```text
//!          silence for R          silence for W more
//!   Up ───────────────▶ Suspect ────────────────────▶ Fencing ──▶ Joining
//!    ▲◀── sign of life ────┘  └── alarm ──▶ Joining (a clone) ───────┤
//!    └───────────────────────── the later life is heard of ──────────┘
//! ```

use super::{Component, News, Role, Rule, State};
use crate::dirnet::{Life, Members, Testimonies};
use crate::ids::Rank;
use crate::time::Instant;

/// A suspicion: silence, and what was found out since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Suspicion {
    /// Which life is suspected.
    pub(super) life: Life,
    /// When W is over (the TEIF timer; each suspect has its own, G-2).
    pub(super) due: Instant,
    /// The question to the other members, when it was asked, and what they said.
    pub(super) round: u32,
    pub(super) asked_at: Instant,
    pub(super) testimonies: Testimonies,
    /// The rule that made it one; a clone or node that never joined is not spawned again.
    pub(super) rule: Rule,
    /// Whether the operator was told that a second observer meets the node.
    pub(super) is_told: bool,
}

impl Suspicion {
    /// Nothing was found out so far.
    pub(super) fn new(life: Life, due: Instant, rule: Rule) -> Self {
        let (testimonies, asked_at) = (Testimonies::default(), Instant(0));
        Self { life, due, round: 0, asked_at, testimonies, rule, is_told: false }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Watch {
    /// Not observed.
    #[default]
    Off,
    /// Heard of; silence until `due` is a suspicion.
    Up { due: Instant },
    /// Silent.
    Suspect(Suspicion),
    /// A later life is expected: a clone or a node that was reset or asks who the manager is.
    Joining { life: Life, due: Instant },
    /// Removed; these have fenced it. It is reset once every member has, if that is allowed.
    Fencing { life: Life, fenced: Members, due: Instant, reset: Reset },
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
    /// Whether silence of `node` is this component's business.
    pub(super) fn watches(&self, node: Rank) -> bool {
        match self.state {
            State::Manager => node != self.me(),
            State::Backup(_) => node == self.term.claimant && node != self.me(),
            State::Joining(_) | State::Excluded => false,
        }
    }

    /// A sign of life of the component of `node`, of its current life and in the current term:
    /// any suspicion ends, and what was gathered for it with it (G-3, G-16).
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
        let life = self.db.standing(node).life;
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
            // The clone that is expected has not spoken; the old one may still.
            Watch::Joining { life: expected, .. } if life < expected => {}
            Watch::Joining { .. } => fellow.watch = Watch::Up { due },
            Watch::Fencing { .. } => {}
        }
        if let State::Backup(succession) = &mut self.state {
            succession.reset();
        }
    }

    /// A manager watches every member from when it learns of it, be it by hearsay or by the alarm
    /// of its task.
    pub(super) fn watch_anew(&mut self, now: Instant, node: Rank) {
        let is_unwatched = match self.watch(node) {
            Watch::Off => true,
            Watch::Joining { life, .. } => life == Life::default(),
            Watch::Up { .. } | Watch::Suspect(_) | Watch::Fencing { .. } => false,
        };
        if is_unwatched && self.role() == Role::Manager && self.watches(node) {
            let due = now.after(self.timing().receive);
            self.set_watch(node, Watch::Up { due });
        }
    }

    /// Whether this manager waits for a later life of `node`.
    pub(super) fn expects(&self, node: Rank) -> bool {
        self.role() == Role::Manager && matches!(self.watch(node), Watch::Joining { .. })
    }

    /// What the original did: the one timer of all suspects is deleted (G-2).
    fn forget_suspicions(&mut self) {
        for fellow in &mut self.fellows {
            if let Watch::Suspect(_) = fellow.watch {
                fellow.watch = Watch::Off;
            }
        }
    }
}
