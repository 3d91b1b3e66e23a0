//! Who shows that it hears this node, and who is known to be dead (X-9).
//!
//! ```text
//!   MIA number 7 ─▶ backup          a heartbeat echoes the number of the last one that its sender
//!   manager ◀─ TAIA, echo 7         has heard of its receiver
//! ```
//!
//! A manager decides, admits and resets only while as many as its decisions need (`min_alive`; any
//! one, if that is 1) have echoed a new number within R + W. Its heartbeats say whether they do.
//! For a backup the heartbeat of a manager that is not heard, and does not hear that backup either,
//! is no sign of life: such a manager is followed like a dead one.
//!
//! Of two nodes neither can be asked about the other: there one that is silent is dead, as before.

use super::{Beat, Component, Members, News, Output, State};
use crate::dirnet::replay::is_after;
use crate::ids::Rank;
use crate::time::{Duration, Instant};

/// What a member shows of how it hears this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Echo {
    /// The highest number that it has echoed; zero for none.
    number: u32,
    /// When it did so first.
    at: Instant,
    /// Its last heartbeat was one of a manager that neither is heard nor hears this node.
    is_deaf: bool,
}

impl Echo {
    pub(super) fn rebase(&mut self, by: Duration) {
        self.at = Instant(self.at.since(Instant(by.0)).0);
    }
}

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    /// Whether this node knows that it is heard: a manager by as many members as its decisions
    /// need, a backup by its manager. A manager that is not heard decides nothing.
    #[must_use]
    pub fn is_heard(&self, now: Instant) -> bool {
        match self.state {
            State::Manager => {
                // Those that follow have had no time yet to echo.
                let has_just_begun = now.since(self.reigns_since) <= self.timing().verdict_after();
                let others = u32::from(self.config.min_alive()).saturating_sub(1).max(1);
                let is_pair = self.config.min_alive() <= 1 && self.config.nodes() < 3;
                is_pair || has_just_begun || self.echoing(now).count() >= others
            }
            State::Backup(_) => self.echoing(now).contains(self.term.claimant),
            State::Joining(_) | State::Excluded => false,
        }
    }

    /// The nodes that have echoed a new heartbeat of this one within R + W.
    pub(super) fn echoing(&self, now: Instant) -> Members {
        let limit = self.timing().verdict_after();
        let echoes = |node: &Rank| {
            let echo = self.fellow(*node).map(|fellow| fellow.echo).unwrap_or_default();
            echo.number != 0 && now.since(echo.at) <= limit
        };
        self.config.others().iter().filter(echoes).collect()
    }

    /// A heartbeat of `from` in the own term: what it shows of how it hears this node.
    pub(super) fn note_echo(&mut self, now: Instant, from: Rank, beat: &Beat) {
        let (sent, limit) = (self.beats, self.timing().verdict_after());
        let is_manager = matches!(self.state, State::Backup(_)) && from == self.term.claimant;
        let Some(fellow) = self.fellow_mut(from) else { return };
        let echo = &mut fellow.echo;
        // One that this incarnation has not sent was an earlier one's.
        let was_sent = beat.echo != 0 && !is_after(beat.echo, sent);
        if was_sent && (echo.number == 0 || is_after(beat.echo, echo.number)) {
            (echo.number, echo.at) = (beat.echo, now);
        }
        let hears_this = echo.number != 0 && now.since(echo.at) <= limit;
        echo.is_deaf = is_manager
            && !(beat.is_heard || hears_this)
            && !crate::dirnet::UNHEARD_MANAGERS_STAY.is_planted();
    }

    /// The component of `node` is heard. What was under way when its end was reported is no proof
    /// that it was none.
    pub(super) fn note_alive(&mut self, now: Instant, node: Rank) {
        let receive = self.timing().receive;
        if let Some(fellow) = self.fellow_mut(node)
            && fellow.lost.is_some_and(|at| now.since(at) > receive)
        {
            fellow.lost = None;
        }
    }

    /// Whether `node` is a manager that is known to hear too few, this node included.
    pub(super) fn is_deaf(&self, node: Rank) -> bool {
        self.fellow(node).is_some_and(|fellow| fellow.echo.is_deaf)
    }

    /// Another reign: what was heard of the manager before says nothing of this one.
    pub(super) fn forget_deafness(&mut self) {
        self.fellows.iter_mut().for_each(|fellow| fellow.echo.is_deaf = false);
    }

    /// Whether no other member is left, as far as is reported: each was removed, was never heard
    /// of, or its end was reported. Silence is no report.
    pub(super) fn is_last_alive(&self) -> bool {
        let is_dead = |node: Rank| {
            let is_lost = self.fellow(node).is_some_and(|fellow| fellow.lost.is_some());
            is_lost || !self.db.standing(node).is_up()
        };
        self.config.min_alive() <= 1 && self.config.others().iter().all(is_dead)
    }

    /// Too few members hear this node or answer it: that is said once.
    pub(super) fn tell_unheard(&mut self) {
        if !core::mem::replace(&mut self.is_unheard_told, true) {
            self.tell(News::Unheard);
        }
    }

    /// The next heartbeat that is owed; each receiver's echoes another number.
    pub(super) fn next_beat(&mut self) -> Option<Output> {
        let to = self.owed.iter().next()?;
        self.owed.remove(to);
        let echo = self.fellow(to).map_or(0, |fellow| fellow.beat);
        let beat = Beat {
            term: self.term,
            life: self.life,
            sequence: self.beats,
            digest: self.db.digest(),
            echo,
            is_heard: !self.is_unheard,
        };
        Some(Output::Beat { to, beat })
    }
}
