//! Views (M-6): the manager numbers each membership that it decides, and every member that has
//! carried it out shows it.
//!
//! ```text
//!  manager   membership changes ─▶ count + 1 ─▶ the tag of the view in ANID, NIUA, NMI, …
//!  member    tag of its manager ─▶ own standings have the digest? removed boots fenced? ─▶ shown
//! ```
//!
//! A tag counts in its own term, from the manager that this node follows; so the view of a manager
//! that was succeeded is not shown after one of its successor. A tag that was lost makes the digest
//! in the manager's heartbeat differ, and comes with the answers to REQUEST_DB. A component shows
//! only views of which it is a member itself: an incarnation shows no view that an earlier one of
//! its node could have passed.

use super::{Component, Role, Rule, State, Watch};
use crate::dirnet::view::{self, Incarnations, View, ViewNumber, ViewTag};
use crate::dirnet::{Members, Message, Output, Seat, Term};
use crate::ids::{Incarnation, Rank};
use crate::time::Instant;

/// The views that a component knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Views<const NODES: usize> {
    /// The latest view of the manager of `term`.
    tag: ViewTag,
    term: Term,
    /// As manager: the members that were sent the tag.
    sent: Members,
    shown: View<NODES>,
}

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    /// The view that this member shows: the last one of which it is a member and whose removals it
    /// has carried out. Its number is zero before the first one.
    #[must_use]
    pub const fn view(&self) -> &View<NODES> {
        &self.views.shown
    }

    /// Whether the membership may be another by now: this node does not hear its manager, is itself
    /// a manager that is not heard, or knows of a later view that it cannot show yet.
    #[must_use]
    pub fn is_view_stale(&self, now: Instant) -> bool {
        let follows = match self.state {
            State::Manager => self.is_heard(now),
            State::Backup(_) => {
                matches!(self.watch(self.term.claimant), Watch::Up { .. })
                    && !self.is_deaf(self.term.claimant)
            }
            State::Joining(_) | State::Excluded => false,
        };
        !follows || self.views.shown.number != self.view_number()
    }

    /// The number of the latest view that is known of the present term.
    fn view_number(&self) -> ViewNumber {
        ViewNumber { term: self.term, count: self.view_tag().count }
    }

    /// Names the latest view that is known of the present term.
    pub(super) fn view_tag(&self) -> ViewTag {
        if self.views.term == self.term { self.views.tag } else { ViewTag::default() }
    }

    /// The tag that goes out with `message`: a manager's.
    pub(super) fn tag_of(&mut self, message: &Message) -> ViewTag {
        self.number_view();
        let is_managers = self.role() == Role::Manager && message.has_room_for_view();
        if is_managers { self.view_tag() } else { ViewTag::default() }
    }

    /// Records that `message` went to the components of `to`.
    pub(super) fn note_view_sent(&mut self, to: Members, seat: Seat, message: &Message) {
        if seat == Seat::Component && message.has_room_for_view() {
            let sent = self.views.sent;
            self.views.sent = sent.iter().chain(to.iter()).collect();
        }
    }

    /// Records the tag in a frame of `from`, in the present term.
    pub(super) fn note_view(&mut self, from: Rank, term: Term, tag: ViewTag) {
        let is_managers = from == term.claimant && self.role() != Role::Manager;
        let is_present = term == self.term || crate::dirnet::OLD_VIEWS_ARE_SHOWN.is_planted();
        let known = if self.views.term == term { self.views.tag.count } else { 0 };
        if is_managers && is_present && known < tag.count {
            (self.views.term, self.views.tag) = (term, tag);
        }
    }

    /// A manager whose membership is not the one of its last view gives it the next number.
    pub(super) fn number_view(&mut self) {
        if self.role() != Role::Manager {
            return;
        }
        let (digest, last) = (view::digest(&self.membership()), self.view_tag());
        if last.count == 0 || (last.digest != digest && last.count < ViewNumber::COUNT_MAX) {
            self.views.term = self.term;
            self.views.tag = ViewTag { count: last.count + 1, digest };
            self.views.sent = Members::NONE;
        }
    }

    /// After an input: a manager sends its view to the members that no decision has brought it to;
    /// each member shows the latest view that it has carried out.
    pub(super) fn settle_view(&mut self) {
        self.number_view();
        if let State::Manager = self.state {
            let sent = self.views.sent;
            let unsent = self.members().iter().filter(|node| !sent.contains(*node)).collect();
            self.send(unsent, Seat::Component, Message::Nmi);
        }
        self.show_view();
    }

    fn show_view(&mut self) {
        let (incarnations, shown) = (self.membership(), self.views.shown.number);
        let mut number = ViewNumber { term: self.views.term, count: self.views.tag.count };
        let is_followed = matches!(self.state, State::Manager | State::Backup(_));
        let is_present = number.term == self.term && shown < number;
        let is_next =
            is_present || (shown != number && crate::dirnet::OLD_VIEWS_ARE_SHOWN.is_planted());
        let is_carried_out =
            self.views.tag.digest == view::digest(&incarnations) && !self.owes_fence();
        if is_followed && is_next && number.count != 0 && is_carried_out {
            if crate::dirnet::MEMBERS_NUMBER_VIEWS.is_planted() {
                number.count = shown.count + 1;
            }
            self.views.shown = View { number, incarnations };
        }
    }

    /// The members as this node knows them, itself included.
    fn membership(&self) -> Incarnations<NODES> {
        core::array::from_fn(|node| {
            let standing = self.db.standing(Rank(u16::try_from(node).unwrap_or(u16::MAX)));
            if standing.is_up() { standing.incarnation } else { Default::default() }
        })
    }

    /// Has the incarnations of `node` up to `boot` fenced here.
    pub(super) fn fence(&mut self, node: Rank, boot: Incarnation) {
        if let Some(fellow) = self.fellow_mut(node) {
            fellow.unfenced = boot.max(fellow.unfenced);
        }
        self.outputs.push(Output::Fence { node, boot });
    }

    /// The incarnations of `node` up to `boot` are fenced here.
    pub(super) fn note_own_fence(&mut self, node: Rank, boot: Incarnation) {
        if let Some(fellow) = self.fellow_mut(node).filter(|fellow| fellow.unfenced <= boot) {
            fellow.unfenced = Incarnation(0);
        }
    }

    /// Whether every fence of `node` that was ordered here is carried out.
    pub(super) fn has_fenced(&self, node: Rank) -> bool {
        self.fellow(node).is_some_and(|fellow| fellow.unfenced == Incarnation(0))
    }

    /// The fences that were ordered here and are not carried out: each node, and the last of its
    /// boots. One that failed is tried again.
    pub fn unfenced(&self) -> impl Iterator<Item = (Rank, Incarnation)> {
        let fellows = (0..).map(Rank).zip(&self.fellows).map(|(node, it)| (node, it.unfenced));
        fellows.filter(|(_, boot)| *boot != Incarnation(0))
    }

    /// Whether a fence that was ordered here has not been carried out.
    fn owes_fence(&self) -> bool {
        self.unfenced().next().is_some() && !crate::dirnet::VIEWS_PRECEDE_FENCES.is_planted()
    }

    /// Before the numbers of this term are used up, a manager claims the next one.
    pub(super) fn renew_view_numbers(&mut self, now: Instant) {
        let is_half_used = self.view_tag().count > ViewNumber::COUNT_MAX / 2;
        if self.role() == Role::Manager && is_half_used {
            self.claim(now, Rule::OwnTerm);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::dirnet::{Config, Kept, Limits, Part, Profile, RestartLimit, Timing};
    use crate::time::Duration;

    /// The manager of three nodes, which has given `count` numbers in its term.
    pub(in super::super) fn manager(count: u32) -> Component<3, 1> {
        let limit = RestartLimit { max: 3, within: Duration::from_millis(1_000) };
        let profile = Profile::new(Timing::LAN).unwrap();
        let resets = RestartLimit { max: 3, within: Duration::from_millis(1_000_000) };
        let limits = Limits { restarts: limit, resets };
        let parts = [Part::Manager, Part::Backup, Part::Backup];
        let config = Config::new(Rank(0), &parts, profile, 1, limits).unwrap();
        let first = Default::default();
        let kept = Kept { term: None, snapshots: [&[], &[]], removed: Incarnation(0) };
        let mut manager = Component::new(Instant(0), config, first, 1, kept);
        manager.views.tag.count = count;
        while manager.poll_output().is_some() {}
        manager
    }

    #[test]
    fn m6_numbers_go_on_in_the_next_term_before_they_end() {
        let mut manager = manager(ViewNumber::COUNT_MAX - 20);
        let before = *manager.view();
        assert_eq!(before.number().count, ViewNumber::COUNT_MAX - 20);
        manager.handle_timeout(Instant(0));
        while manager.poll_output().is_some() {}
        assert!(before.number() < manager.view().number());
        assert_eq!(manager.view().number().count, 1);
        assert_eq!(manager.view().members(), before.members());
    }

    #[test]
    fn m6_a_view_is_shown_once_the_fences_before_it_are_carried_out_here() {
        let mut manager = manager(7);
        let settle = |manager: &mut Component<3, 1>| {
            while manager.poll_output().is_some() {}
            manager.view().number().count
        };
        assert_eq!(settle(&mut manager), 7);
        manager.fence(Rank(1), Incarnation(2));
        manager.views.tag.count = 8;
        assert_eq!(settle(&mut manager), 7, "a fence is owed");
        manager.handle_carried_out(Rank(1), Incarnation(2));
        assert_eq!(settle(&mut manager), 8, "whatever its supervisor has heard of");
    }

    #[test]
    fn m6_the_fence_of_an_earlier_boot_is_not_the_one_that_is_owed() {
        let mut manager = manager(1);
        manager.fence(Rank(1), Incarnation(2));
        manager.note_own_fence(Rank(1), Incarnation(1));
        assert!(manager.owes_fence());
        manager.note_own_fence(Rank(1), Incarnation(2));
        assert!(!manager.owes_fence());
    }
}
