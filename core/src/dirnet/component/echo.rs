//! Echoes: which members show that they hear this node, and which are known to be down (X-9).
//!
//! ```text
//!   MIA number 7 ─▶ backup          a heartbeat echoes the number of the last heartbeat that its
//!   manager ◀─ TAIA, echo 7         sender received from its receiver
//! ```
//!
//! A manager removes and isolates nodes, and admits incarnations that it hears itself, only while
//! as many members as its decisions need (`min_alive`; any one member if that is 1) have echoed a
//! new number within R + W. Its heartbeats carry whether they do. To a backup, the heartbeat of a
//! manager that is not heard, and does not hear that backup either, is no evidence of liveness:
//! such a manager is succeeded like a dead one. With `min_alive` above 1 the same holds if it hears
//! the backup: too few hear it to let it remove a node, and the backups that hear it know that it
//! is alive.
//!
//! In a cluster of two no third node can be asked: there a silent node counts as dead, as before.

use super::{Beat, Component, Members, News, Output, State, Watch};
use crate::dirnet::replay::is_after;
use crate::ids::Rank;
use crate::time::{Duration, Instant};

/// How a member shows that it hears this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Echo {
    /// The highest number that it has echoed; zero for none.
    number: u32,
    /// When it first echoed that number.
    at: Instant,
    /// When its last heartbeat came, if that was of a manager that is not heard and, with
    /// `min_alive` = 1, does not hear this node.
    deaf_at: Option<Instant>,
}

impl Echo {
    pub(super) fn rebase(&mut self, by: Duration) {
        for at in [Some(&mut self.at), self.deaf_at.as_mut()].into_iter().flatten() {
            *at = Instant(at.since(Instant(by.0)).0);
        }
    }
}

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    /// Whether this node knows that it is heard: for a manager, by as many members as its decisions
    /// need; for a backup, by its manager. A manager that is not heard removes no member.
    #[must_use]
    pub fn is_heard(&self, now: Instant) -> bool {
        self.is_heard_by(now, self.echoing(now))
    }

    /// Whether this manager's heartbeats say that it is heard. They do while new members may: a
    /// backup must not succeed a manager that stood still just after its members had joined.
    pub(super) fn may_be_heard(&self, now: Instant) -> bool {
        let is_new = |node: &Rank| self.is_new(now, *node);
        let new = self.config.others().iter().filter(is_new);
        self.is_heard_by(now, self.echoing(now).iter().chain(new).collect())
    }

    /// Whether `node` is a member that has had no time yet to echo a heartbeat.
    pub(super) fn is_new(&self, now: Instant, node: Rank) -> bool {
        let since = self.fellow(node).map(|fellow| fellow.since).unwrap_or_default();
        matches!(self.watch(node), Watch::Up { .. })
            && now.since(since) <= self.timing().verdict_after()
    }

    fn is_heard_by(&self, now: Instant, echoing: Members) -> bool {
        match self.state {
            State::Manager => {
                // Those that follow it have had no time yet to echo.
                let has_just_begun = now.since(self.reigns_since) <= self.timing().verdict_after();
                let others = u32::from(self.config.min_alive()).saturating_sub(1).max(1);
                let is_pair = self.config.min_alive() <= 1 && self.config.nodes() < 3;
                is_pair || has_just_begun || echoing.count() >= others
            }
            State::Backup(_) => echoing.contains(self.term.claimant),
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

    /// Records how `from` shows that it hears this node, by its heartbeat in the current term.
    pub(super) fn note_echo(&mut self, now: Instant, from: Rank, beat: &Beat) {
        let (sent, limit) = (self.beats, self.timing().verdict_after());
        let is_manager = matches!(self.state, State::Backup(_)) && from == self.term.claimant;
        // Alone of two it may still decide, as long as the one that it needs hears it.
        let one_suffices =
            self.config.min_alive() <= 1 || crate::dirnet::HALF_HEARD_MANAGERS_STAY.is_planted();
        let Some(fellow) = self.fellow_mut(from) else { return };
        let echo = &mut fellow.echo;
        // A number that this incarnation has not sent was an earlier incarnation's.
        let was_sent = beat.echo != 0 && !is_after(beat.echo, sent);
        if was_sent && (echo.number == 0 || is_after(beat.echo, echo.number)) {
            (echo.number, echo.at) = (beat.echo, now);
        }
        let hears_this = echo.number != 0 && now.since(echo.at) <= limit;
        let is_deaf = is_manager
            && !(beat.is_heard || (one_suffices && hears_this))
            && !crate::dirnet::UNHEARD_MANAGERS_STAY.is_planted();
        echo.deaf_at = is_deaf.then_some(now);
    }

    /// Records that the component of `node` was heard. A frame that was in flight when the
    /// component's end was reported does not disprove the report.
    pub(super) fn note_alive(&mut self, now: Instant, node: Rank) {
        let receive = self.timing().receive;
        let is_rash = crate::dirnet::REPORTS_ARE_DISPROVED.is_planted();
        if let Some(fellow) = self.fellow_mut(node)
            && fellow.lost.is_some_and(|at| now.since(at) > receive || is_rash)
        {
            fellow.lost = None;
        }
    }

    /// Whether `node` is a manager known to be heard by too few members.
    pub(super) fn is_deaf(&self, node: Rank) -> bool {
        self.fellow(node).is_some_and(|fellow| fellow.echo.deaf_at.is_some())
    }

    /// Whether `node` is a manager that too few members hear, and this node hears it.
    pub(super) fn is_half_heard(&self, now: Instant, node: Rank) -> bool {
        let heard = self.fellow(node).and_then(|fellow| fellow.echo.deaf_at);
        let is_recent = heard.is_some_and(|at| now.since(at) <= self.timing().receive);
        self.config.min_alive() > 1 && is_recent
    }

    /// Forgets deafness at a change of term: what was heard of the previous manager does not apply
    /// to the next.
    pub(super) fn forget_deafness(&mut self) {
        self.fellows.iter_mut().for_each(|fellow| fellow.echo.deaf_at = None);
    }

    /// Whether no other member is left, according to reports: each was removed, was never heard
    /// from, or its end was reported. Silence is no report.
    pub(super) fn is_last_alive(&self) -> bool {
        let is_dead = |node: Rank| {
            let is_lost = self.fellow(node).is_some_and(|fellow| fellow.lost.is_some());
            is_lost || !self.db.standing(node).is_up()
        };
        self.config.min_alive() <= 1 && self.config.others().iter().all(is_dead)
    }

    /// Reports, once, that too few members hear this node or answer it.
    pub(super) fn tell_unheard(&mut self) {
        if !core::mem::replace(&mut self.is_unheard_told, true) {
            self.tell(News::Unheard);
        }
    }

    /// Returns the next pending heartbeat; each receiver's copy echoes a different number.
    pub(super) fn next_beat(&mut self) -> Option<Output> {
        let to = self.owed.iter().next()?;
        self.owed.remove(to);
        self.number_view();
        let echo = self.fellow(to).map_or(0, |fellow| fellow.beat);
        let beat = Beat {
            term: self.term,
            incarnation: self.incarnation,
            sequence: self.beats,
            digest: self.digest(),
            echo,
            is_heard: !self.is_unheard,
        };
        Some(Output::Beat { to, beat })
    }
}

#[cfg(test)]
mod tests {
    use super::super::views::tests::manager;
    use super::*;
    use crate::dirnet::{ComponentIncarnation, Standing};
    use crate::ids::Incarnation;

    /// Found by the swarm: a manager that had been alone stood still just after members had joined,
    /// its next heartbeat said that it was not heard, and it was succeeded.
    #[test]
    fn x9_heartbeats_count_members_that_had_no_time_to_echo() {
        let at = |ms| Instant(0).after(Duration::from_millis(ms));
        let mut manager = manager(1);
        manager.reigns_since = at(0);
        assert!(!manager.may_be_heard(at(1_000)));
        let boot = ComponentIncarnation { boot: Incarnation(1), generation: 0 };
        manager.stand(at(1_000), Rank(1), Standing::up(boot));
        let over = manager.timing().verdict_after();
        assert!(manager.may_be_heard(at(1_000).after(over)) && !manager.is_heard(at(1_000)));
        assert!(!manager.may_be_heard(at(1_001).after(over)));
    }
}
