//! The decisions of a host's launcher: when it restarts a node that it has started.
//!
//! ```text
//!   node's supervisor ── began, entered, removed, isolated, released ──┐
//!   manager's supervisor ── reset ─────────────────────────────────────┼─▶ Launcher ──▶ restart
//!   host ── started, start failed, ended, time ────────────────────────┘
//! ```
//!
//! An order to reset names the boot that it is about, so an order that arrives late does not hit
//! the next boot. A node that dies waits for a decision of the manager, which comes after its peers
//! have fenced it, and at the latest when a clone of it should have joined. If no decision comes,
//! because too few nodes are left to agree or because no manager has met the boot that died, the
//! node is restarted after the time `undecided`; its peers fence the old boot when they meet the
//! next one. A node that a manager has removed waits 45 s longer: the manager orders its reset when
//! it has all fences, and links that are cut one way may keep the last from it for good. So does
//! one that runs on, as one that hangs. A node that ends before it takes part in the DIR net is
//! unknown to the manager, and is retried soon, with growing delays. A node that has ended in order
//! is never restarted. An isolated node that dies is restarted, too, and so is one that runs on and
//! does not say itself that it is isolated: the host saves the isolation first, so that the next
//! supervisor starts no component and asks for its release.

use super::Standing;
use super::backoff::Backoff;
use crate::ids::{Incarnation, Rank};
use crate::time::{Duration, Instant};

/// The first and the longest wait before a node that ends as soon as it starts is started again.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_millis(60_000);
/// How much longer a dead node waits whose reset a manager has to order.
const FENCES: Duration = Duration::from_millis(45_000);

/// What the launcher knows of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Launched<const NODES: usize> {
    /// Whether its process runs.
    runs: bool,
    /// The boot of this process, once reported.
    boot: Option<Incarnation>,
    /// It takes part in the DIR net, and a manager may have met it.
    has_entered: bool,
    /// The delay before the restart of a node that has not taken part yet.
    backoff: Backoff,
    /// Its own supervisor has said that it is isolated.
    is_halted: bool,
    /// When a dead node is restarted without a decision, or one that should have halted or was
    /// removed; `None` while it runs otherwise, and after it has ended in order.
    due: Option<Instant>,
    /// Its isolations and releases.
    standing: Standing,
    /// The boot that a manager has removed, by each node whose component follows that decision;
    /// zero for none.
    removed: [Incarnation; NODES],
}

impl<const NODES: usize> Launched<NODES> {
    /// When it is started again, unless something else is decided before. One that waits for its
    /// reset waits longer: members that have not fenced it would admit the restarted one.
    fn next_start(&self) -> Option<Instant> {
        let waits_for_reset = self.standing.isolation().is_none() && self.is_decided();
        self.due.map(|due| if waits_for_reset { due.after(FENCES) } else { due })
    }

    /// Whether a manager has removed this boot: it resets the node once all members have fenced it.
    /// It resets no boot that a release has ended.
    fn is_decided(&self) -> bool {
        let removed = |boot: &Incarnation| self.removed.iter().any(|removed| boot <= removed);
        self.boot.filter(removed).is_some_and(|boot| boot > self.standing.released())
    }
}

/// The decisions of one launcher, for clusters of at most `NODES` nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Launcher<const NODES: usize> {
    undecided: Duration,
    nodes: [Launched<NODES>; NODES],
}

impl<const NODES: usize> Launcher<NODES> {
    /// No node runs. One that dies waits for a decision for `undecided`.
    #[must_use]
    pub fn new(undecided: Duration) -> Self {
        let none = Launched {
            runs: false,
            boot: None,
            has_entered: false,
            is_halted: false,
            backoff: Backoff::new(RETRY_FIRST, RETRY_MAX),
            due: None,
            standing: Standing::default(),
            removed: [Incarnation(0); NODES],
        };
        Self { undecided, nodes: [none; NODES] }
    }

    /// A process of `node` was started.
    pub fn handle_started(&mut self, node: Rank) {
        if let Some(it) = self.node(node) {
            (it.runs, it.boot, it.due) = (true, None, None);
            (it.has_entered, it.is_halted) = (false, false);
        }
    }

    /// `node` could not be started: it is tried again later. What was decided about its last boot
    /// is done, and no further decision about it is waited for.
    pub fn handle_start_failed(&mut self, now: Instant, node: Rank) {
        if let Some(it) = self.node(node) {
            (it.runs, it.boot, it.due) = (false, None, Some(now.after(it.backoff.fail())));
        }
    }

    /// The process of `node` has begun this boot.
    pub fn handle_began(&mut self, node: Rank, boot: Incarnation) {
        if let Some(it) = self.node(node) {
            it.boot = Some(boot);
            if it.runs && it.standing.isolation().is_none() && !it.is_decided() {
                it.due = None;
            }
        }
    }

    /// The component of `node` takes part in the DIR net. It follows no decision that the one
    /// before it followed.
    pub fn handle_entered(&mut self, node: Rank) {
        if let Some(it) = self.node(node) {
            it.has_entered = true;
            it.backoff.succeed();
            // One that was released before it could halt does not hang.
            it.due = it.due.filter(|_| it.standing.isolation().is_some());
        }
        self.forget_removals(node);
    }

    /// The process of `node` has ended; `in_order`: for good.
    pub fn handle_ended(&mut self, now: Instant, node: Rank, in_order: bool) {
        let undecided = self.undecided;
        let Some(it) = self.node(node) else { return };
        // No manager decides about a boot that no manager has met.
        let wait = if it.has_entered { undecided } else { it.backoff.fail() };
        (it.runs, it.due) = (false, (!in_order).then(|| now.after(wait)));
        self.forget_removals(node);
    }

    /// The component of `by` reports the manager's decision that boots of `node` up to `boot` are
    /// removed.
    pub fn handle_removed(&mut self, now: Instant, by: Rank, node: Rank, boot: Incarnation) {
        let undecided = self.undecided;
        let Some(it) = self.node(node) else { return };
        if let Some(removed) = it.removed.get_mut(usize::from(by.0)) {
            *removed = boot;
        }
        if it.runs && it.is_decided() && it.standing.isolation().is_none() {
            it.due.get_or_insert(now.after(undecided));
        }
    }

    /// A manager orders the reset of boot `boot` of `node`; whether it concerns this process, or
    /// one that is dead: then end what is left of it and start the next.
    #[must_use]
    pub fn handle_reset(&self, node: Rank, boot: Incarnation) -> bool {
        // A process that has not reported its boot was started after that order was given. One that
        // has died may have been a boot that the manager never met.
        self.nodes.get(usize::from(node.0)).is_some_and(|it| {
            let is_dead = !it.runs && it.due.is_some();
            is_dead || it.runs && it.boot.is_some_and(|running| running <= boot)
        })
    }

    /// A node reports that `node` is isolated since `boot`; whether that is new. Every node that
    /// learns of it reports it, some of them late.
    pub fn handle_isolated(&mut self, now: Instant, node: Rank, boot: Incarnation) -> bool {
        let undecided = self.undecided;
        let Some(it) = self.node(node) else { return false };
        let before = it.standing.isolation();
        it.standing = it.standing.merged(Standing::isolate(boot));
        let is_isolated = it.standing.isolation().is_some();
        if is_isolated && it.runs && !it.is_halted {
            it.due.get_or_insert(now.after(undecided));
        }
        before.is_none() && is_isolated
    }

    /// The supervisor of `node` that runs has itself reported that it is isolated.
    pub fn handle_halted(&mut self, node: Rank) {
        if let Some(it) = self.node(node).filter(|it| it.runs) {
            (it.is_halted, it.due) = (true, None);
            self.forget_removals(node);
        }
    }

    /// Since which boot `node` is isolated, if it is: save it for the supervisor that is started
    /// next.
    #[must_use]
    pub fn isolation(&self, node: Rank) -> Option<Incarnation> {
        self.nodes.get(usize::from(node.0)).and_then(|it| it.standing.isolation())
    }

    /// A node reports that isolations of `node` up to `boot` are over; whether that ends one. A
    /// released node that has died is reset by an order, like any other.
    pub fn handle_released(&mut self, now: Instant, node: Rank, boot: Incarnation) -> bool {
        let undecided = self.undecided;
        let Some(it) = self.node(node) else { return false };
        let before = it.standing.isolation();
        it.standing = it.standing.merged(Standing::release(boot));
        let is_over = before.is_some() && it.standing.isolation().is_none();
        if is_over {
            it.due = it.due.map(|_| now.after(undecided));
        }
        is_over
    }

    /// The first node for which no decision or reset has come in time, or that should have halted:
    /// end what is left of it, start it, and ask again.
    #[must_use]
    pub fn next_due(&self, now: Instant) -> Option<Rank> {
        let due = |it: &Launched<NODES>| it.next_start().is_some_and(|due| due <= now);
        (0..).map(Rank).zip(&self.nodes).find(|(_, it)| due(it)).map(|(node, _)| node)
    }

    /// When to call [`Self::next_due`] if nothing comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.nodes.iter().filter_map(Launched::next_start).min()
    }

    /// The component of `by` has ended: the next one follows no earlier decision.
    fn forget_removals(&mut self, by: Rank) {
        for it in &mut self.nodes {
            let was_decided = it.is_decided();
            if let Some(removed) = it.removed.get_mut(usize::from(by.0)) {
                *removed = Incarnation(0);
            }
            if it.runs && was_decided && !it.is_decided() {
                it.due = it.due.filter(|_| it.standing.isolation().is_some());
            }
        }
    }

    fn node(&mut self, node: Rank) -> Option<&mut Launched<NODES>> {
        self.nodes.get_mut(usize::from(node.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Rank = Rank(1);
    const UNDECIDED: Duration = Duration::from_millis(3_000);

    fn at(ms: u64) -> Instant {
        Instant(0).after(Duration::from_millis(ms))
    }

    /// A launcher all of whose nodes take part, node 1 in its boot 4.
    fn launcher() -> Launcher<3> {
        let mut launcher = Launcher::new(UNDECIDED);
        for node in [Rank(0), NODE, Rank(2)] {
            launcher.handle_started(node);
            launcher.handle_began(node, Incarnation(4));
            launcher.handle_entered(node);
        }
        launcher
    }

    #[test]
    fn m3_a_node_that_a_manager_has_removed_waits_for_its_reset() {
        let mut launcher = launcher();
        launcher.handle_ended(at(0), NODE, false);
        launcher.handle_removed(at(0), Rank(0), NODE, Incarnation(3));
        assert_eq!(launcher.poll_timeout(), Some(at(3_000)), "an earlier boot was removed");
        launcher.handle_removed(at(0), Rank(2), NODE, Incarnation(4));
        assert_eq!(launcher.poll_timeout(), Some(at(48_000)), "a manager has decided");
        launcher.handle_entered(Rank(2));
        assert_eq!(launcher.poll_timeout(), Some(at(3_000)), "no node follows that decision");
        launcher.handle_removed(at(0), Rank(2), NODE, Incarnation(4));
        assert_eq!(launcher.next_due(at(47_999)), None);
        assert_eq!(launcher.next_due(at(48_000)), Some(NODE), "the manager misses fences");
        assert!(launcher.handle_reset(NODE, Incarnation(4)));
        launcher.handle_started(NODE);
        launcher.handle_removed(at(0), Rank(2), NODE, Incarnation(4));
        launcher.handle_ended(at(60_000), NODE, false);
        assert_eq!(launcher.poll_timeout(), Some(at(60_100)), "no manager has met that boot");
    }

    #[test]
    fn m3_a_removal_counts_while_a_component_follows_it() {
        let mut launcher = launcher();
        launcher.handle_ended(at(0), NODE, false);
        let follow = |launcher: &mut Launcher<3>| {
            launcher.handle_removed(at(0), Rank(2), NODE, Incarnation(4));
            assert_eq!(launcher.poll_timeout(), Some(at(48_000)));
        };
        follow(&mut launcher);
        launcher.handle_isolated(at(0), Rank(2), Incarnation(4));
        launcher.handle_halted(Rank(2));
        assert_eq!(launcher.poll_timeout(), Some(at(3_000)), "its node is isolated");
        follow(&mut launcher);
        launcher.handle_ended(at(60_000), Rank(2), false);
        assert_eq!(launcher.poll_timeout(), Some(at(3_000)), "it is dead");
    }

    #[test]
    fn m3_a_removed_node_that_hangs_is_restarted_when_no_reset_comes() {
        let mut launcher = launcher();
        let remove = |launcher: &mut Launcher<3>, now, boot| {
            launcher.handle_removed(at(now), Rank(2), NODE, Incarnation(boot));
        };
        remove(&mut launcher, 0, 3);
        assert_eq!(launcher.poll_timeout(), None, "an earlier boot");
        remove(&mut launcher, 0, 4);
        remove(&mut launcher, 1_000, 4);
        assert_eq!(launcher.next_due(at(47_999)), None);
        assert_eq!(launcher.next_due(at(48_000)), Some(NODE));
        launcher.handle_began(NODE, Incarnation(5));
        assert_eq!(launcher.poll_timeout(), None, "it has begun the next boot itself");
        remove(&mut launcher, 50_000, 5);
        launcher.handle_entered(Rank(2));
        assert_eq!(launcher.poll_timeout(), None, "no node follows that decision");
    }

    #[test]
    fn g8_an_order_that_comes_too_late_resets_no_later_boot() {
        let mut launcher = launcher();
        assert!(!launcher.handle_reset(NODE, Incarnation(3)));
        assert!(launcher.handle_reset(NODE, Incarnation(4)));
        launcher.handle_started(NODE);
        assert!(!launcher.handle_reset(NODE, Incarnation(4)), "it has not reported its boot");
        launcher.handle_ended(at(0), NODE, true);
        assert!(!launcher.handle_reset(NODE, Incarnation(9)), "it has ended in order");
        assert_eq!((launcher.poll_timeout(), launcher.next_due(at(60_000))), (None, None));
    }

    #[test]
    fn a_node_that_no_manager_has_met_is_retried_with_growing_delays() {
        let (mut launcher, mut now) = (launcher(), 0);
        for wait in [100, 200, 400] {
            launcher.handle_started(NODE);
            launcher.handle_ended(at(now), NODE, false);
            now += wait;
            assert_eq!(launcher.poll_timeout(), Some(at(now)));
            assert_eq!(launcher.next_due(at(now)), Some(NODE));
        }
        launcher.handle_start_failed(at(now), NODE);
        assert_eq!(launcher.poll_timeout(), Some(at(now + 800)));
        launcher.handle_started(NODE);
        launcher.handle_entered(NODE);
        launcher.handle_started(NODE);
        launcher.handle_ended(at(now), NODE, false);
        assert_eq!(launcher.poll_timeout(), Some(at(now + 100)), "it has taken part meanwhile");
    }

    #[test]
    fn a_node_whose_reset_fails_to_start_it_is_retried() {
        let mut launcher = launcher();
        launcher.handle_removed(at(0), Rank(2), NODE, Incarnation(4));
        assert!(launcher.handle_reset(NODE, Incarnation(4)));
        launcher.handle_start_failed(at(0), NODE);
        assert_eq!(launcher.poll_timeout(), Some(at(100)), "no second reset comes");
    }

    #[test]
    fn x11_an_isolated_node_that_dies_is_restarted_and_after_its_release_reset() {
        let mut launcher = launcher();
        launcher.handle_removed(at(0), Rank(2), NODE, Incarnation(4));
        assert!(launcher.handle_isolated(at(0), NODE, Incarnation(4)));
        assert!(!launcher.handle_isolated(at(0), NODE, Incarnation(4)), "known");
        launcher.handle_halted(NODE);
        launcher.handle_removed(at(0), Rank(2), NODE, Incarnation(4));
        assert_eq!(launcher.poll_timeout(), None, "it says so itself");
        launcher.handle_ended(at(0), NODE, false);
        launcher.handle_halted(NODE);
        assert_eq!(launcher.next_due(at(3_000)), Some(NODE), "no manager resets it");
        assert_eq!(launcher.isolation(NODE), Some(Incarnation(4)));
        assert!(launcher.handle_released(at(60_000), NODE, Incarnation(4)));
        assert!(!launcher.handle_released(at(60_000), NODE, Incarnation(4)), "known");
        assert!(!launcher.handle_isolated(at(60_000), NODE, Incarnation(4)), "over");
        assert_eq!((launcher.poll_timeout(), launcher.isolation(NODE)), (Some(at(63_000)), None));
        launcher.handle_removed(at(0), Rank(2), NODE, Incarnation(4));
        assert_eq!(launcher.poll_timeout(), Some(at(63_000)), "no manager resets a released boot");
    }

    #[test]
    fn x11_an_isolated_node_that_does_not_say_so_itself_is_restarted() {
        let mut launcher = launcher();
        launcher.handle_isolated(at(0), NODE, Incarnation(4));
        launcher.handle_isolated(at(1_000), NODE, Incarnation(4));
        assert!(!launcher.handle_reset(NODE, Incarnation(3)), "an earlier boot");
        assert_eq!(launcher.next_due(at(2_999)), None);
        assert_eq!(launcher.next_due(at(3_000)), Some(NODE));
        launcher.handle_entered(NODE);
        assert_eq!(launcher.next_due(at(3_000)), Some(NODE), "it is isolated");
        launcher.handle_released(at(3_000), NODE, Incarnation(4));
        assert_eq!(launcher.next_due(at(6_000)), Some(NODE), "it hangs");
        launcher.handle_entered(NODE);
        assert_eq!(launcher.poll_timeout(), None, "it was late");
        for boot in [5, 6] {
            launcher.handle_started(NODE);
            assert_eq!(launcher.poll_timeout(), None);
            launcher.handle_isolated(at(7_000), NODE, Incarnation(boot));
            assert_eq!(launcher.next_due(at(10_000)), Some(NODE));
            launcher.handle_halted(NODE);
            assert_eq!(launcher.poll_timeout(), None);
        }
        launcher.handle_released(at(10_000), NODE, Incarnation(6));
        launcher.handle_started(NODE);
        launcher.handle_isolated(at(10_000), NODE, Incarnation(6));
        assert_eq!(launcher.poll_timeout(), None, "that one is over");
        launcher.handle_ended(at(10_000), NODE, true);
        launcher.handle_isolated(at(10_000), NODE, Incarnation(7));
        assert_eq!(launcher.poll_timeout(), None, "it has ended in order");
    }
}
