//! The peers: sessions, incarnations, and what was decided about them.

use super::{Announcement, Fenced, LOSS_GRACE, Level, Order, REMOVAL_GRACE, Supervision, Term};
use crate::dirnet::standing::Admission;
use crate::dirnet::{
    ADMITTED_BEFORE_FENCED, ISOLATED_NODES_WAIT, LATE_REMOVALS_COUNT, OLD_REMOVALS_COUNT,
    RELEASED_RUN_ON, REMOVALS_OUTLIVE_BOOTS, REMOVED_RUN_ON, THE_DEAD_FENCE, THE_STARTING_FENCE,
};
use crate::dirnet::{ComponentIncarnation, Standing};
use crate::ids::{Incarnation, Peer, Rank};
use crate::time::{Duration, Instant};

/// What a supervisor knows of one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Neighbour {
    pub(super) session: u64,
    /// Whether that session lasts.
    pub(super) is_met: bool,
    pub(super) admitted: Option<Announcement>,
    /// Messages went to the admitted incarnation and back.
    pub(super) has_joined: bool,
    /// When the admitted incarnation counts as lost: work for it was lost, and its end was not
    /// reported.
    pub(super) lost_at: Option<Instant>,
    /// The last incarnation that the own component has fenced, or is about to.
    pub(super) fenced: Incarnation,
    /// Its removals, isolations and releases; not the incarnations that were met.
    pub(super) standing: Standing,
    /// The term in which the boot of `standing` was removed.
    decided: Option<Term>,
    /// The last [`Fenced`] that it was sent in this session, until either side starts another
    /// incarnation.
    pub(super) sent: Option<Fenced>,
    /// The last incarnation that it has announced in this session, until that ends: one that is not
    /// admitted may be so later, by the own next component or once the peer is released.
    announced: Option<Announcement>,
    /// When that incarnation, which was removed, is refused if no reset has ended it.
    pub(super) refuse_at: Option<Instant>,
}

impl Neighbour {
    /// Ends the admitted incarnation for this node; returns whether there was one.
    pub(super) fn fence(&mut self) -> bool {
        self.has_joined = false;
        self.lost_at = None;
        let Some(admitted) = self.admitted.take() else { return false };
        self.fenced = self.fenced.max(admitted.incarnation);
        true
    }

    /// Records and returns what it must be sent: its incarnations up to this one are fenced.
    pub(super) fn refuse(&mut self, up_to: Incarnation, decided: Option<Term>) -> Fenced {
        self.refuse_at = None;
        *self.sent.insert(Fenced { up_to, decided })
    }

    /// The own component has ended.
    pub(super) fn handle_own_end(&mut self) {
        self.has_joined = false;
        self.lost_at = None;
        self.fenced = Incarnation(0);
        self.sent = None;
    }

    /// Merges a decision into the standing; returns whether the peer was isolated before.
    fn stand(&mut self, report: Standing, decided: Option<Term>) -> bool {
        let before = self.standing;
        self.standing = before.merged(report);
        if self.standing.incarnation.boot > before.incarnation.boot {
            self.decided = decided;
        } else if report.incarnation.boot == before.incarnation.boot {
            // The same removal, decided again in another term.
            self.decided = self.decided.max(decided);
        }
        before.isolation().is_some()
    }

    /// Forgets which boots were removed, but not which isolations and releases there were.
    pub(super) fn forget_removals(&mut self) {
        if REMOVALS_OUTLIVE_BOOTS.is_planted() {
            return;
        }
        self.standing = self.standing.without_incarnation();
        (self.decided, self.refuse_at) = (None, None);
    }

    /// What its announced incarnation, which was removed, has yet to be sent, if anything.
    pub(super) fn pending(&self) -> Option<Fenced> {
        let announced = self.announced.filter(|_| self.refuse_at.is_some())?;
        match self.standing.admission(announced.boot) {
            Admission::Fence(removed) => {
                let up_to = announced.incarnation.max(removed);
                Some(Fenced { up_to, decided: self.decided })
            }
            Admission::Admit | Admission::Isolate(_) => None,
        }
    }

    /// Admits the announced incarnation if nothing ends it any more.
    pub(super) fn readmit(&mut self, peer: Peer) -> Option<Order> {
        let announced = self.announced.filter(|_| self.admitted.is_none())?;
        let is_free = self.standing.admission(announced.boot) == Admission::Admit;
        (is_free && announced.incarnation > self.fenced).then(|| self.admit(peer, announced))
    }

    /// What follows for an incarnation that is announced.
    fn admit(&mut self, peer: Peer, announced: Announcement) -> Order {
        self.fence();
        self.refuse_at = None;
        let Announcement { incarnation, boot } = announced;
        match self.standing.admission(boot) {
            Admission::Isolate(since) => Order::Isolate(peer, since),
            Admission::Fence(removed) => {
                // A host that lost its note of the incarnations is sent the last one that was:
                // otherwise it would be fenced once for each incarnation.
                let up_to = incarnation.max(removed).max(self.fenced);
                Order::Refuse(peer, self.refuse(up_to, self.decided))
            }
            // No message of it can be attributed now to the present or the former incarnation.
            Admission::Admit if incarnation <= self.fenced => {
                Order::Refuse(peer, self.refuse(self.fenced, None))
            }
            Admission::Admit => {
                if !OLD_REMOVALS_COUNT.is_planted() {
                    self.sent = None;
                }
                self.admitted = Some(announced);
                Order::Connect(peer, announced)
            }
        }
    }
}

impl<const NODES: usize> Supervision<NODES> {
    /// Session `session` with `peer` has begun; an earlier one is over. Later sessions have higher
    /// numbers.
    ///
    /// # Panics
    /// When [`Self::poll_order`] was not drained: a bug of the caller. So for all that follow.
    pub fn handle_met(&mut self, peer: Peer, session: u64) {
        self.begin();
        let Some(known) = self.peers.get_mut(peer.index()) else { return };
        if session <= known.session {
            return;
        }
        (known.session, known.is_met) = (session, true);
        (known.announced, known.refuse_at) = (None, None);
        if !OLD_REMOVALS_COUNT.is_planted() {
            known.sent = None;
        }
        let released = known.standing.released();
        if released > Incarnation(0) && known.standing.isolation().is_none() {
            self.orders.push(Order::Release(peer, released));
        }
        if !ADMITTED_BEFORE_FENCED.is_planted() {
            self.fence(peer);
        }
        if let Some(since) = self.own_isolation().filter(|_| !ISOLATED_NODES_WAIT.is_planted()) {
            self.orders.push(Order::AskForRelease(peer, since));
        }
    }

    /// The session with the node of `peer` has ended. Its component dies with it; fencing makes
    /// sure.
    pub fn handle_parted(&mut self, peer: Peer, session: u64) {
        self.begin();
        let Some(known) = self.known(peer, session) else { return };
        (known.is_met, known.announced, known.refuse_at) = (false, None, None);
        self.fence(peer);
        self.orders.push(Order::Parted(peer));
    }

    /// An incarnation of `peer` has started.
    pub fn handle_alive(&mut self, peer: Peer, session: u64, announced: Announcement) {
        self.begin();
        let Some(known) = self.known(peer, session) else { return };
        known.announced = Some(announced);
        let order = known.admit(peer, announced);
        self.answer(order);
    }

    /// An incarnation of `peer` has ended: its process is confirmed dead.
    pub fn handle_dead(&mut self, peer: Peer, session: u64, incarnation: Incarnation) {
        self.begin();
        let Some(known) = self.known(peer, session) else { return };
        if known.announced.take_if(|it| it.incarnation == incarnation).is_some() {
            known.refuse_at = None;
        }
        if known.admitted.is_some_and(|it| it.incarnation == incarnation) {
            self.fence(peer);
        }
    }

    /// `peer` was released, and knows more than this node: the component learns of it, and the
    /// incarnation that was held is admitted or refused.
    pub fn handle_free(&mut self, peer: Peer, boot: Incarnation) {
        self.begin();
        if self.learn_release(peer, boot) {
            self.orders.push(Order::LearnRelease(Rank(peer.0), boot));
            self.judge_held(peer);
        }
    }

    /// `peer` is isolated since `boot`, as it has noted itself, and asks for its release. All other
    /// nodes may have forgotten the isolation, and then no operator could end it.
    pub fn handle_asked_for_release(&mut self, peer: Peer, boot: Incarnation) {
        let node = Rank(peer.0);
        let released = self.standing(node).released();
        if boot <= released {
            self.begin();
            self.orders.push(Order::Release(peer, released));
        } else {
            self.handle_isolated(node, boot);
            self.orders.push(Order::LearnIsolation(node, boot));
        }
    }

    /// By decision in `term` the boots of `peer` up to `boot` are over; the own component has
    /// fenced them. An incarnation that runs on for a second is sent that: there may be no
    /// means to reset it, and another manager by now, which does not know of the removal.
    ///
    /// What the last component of a boot has reported may arrive after the end of that boot. Its
    /// removals have ended with it, and of two nodes that removed each other both would end if the
    /// one that has given way sent its own.
    pub fn handle_removed(&mut self, now: Instant, peer: Peer, boot: Incarnation, term: Term) {
        self.begin();
        if !self.own.runs() && !LATE_REMOVALS_COUNT.is_planted() {
            return self.report(Rank(peer.0), boot, Level::Down);
        }
        let Some(known) = self.peers.get_mut(peer.index()) else { return };
        let removal = Standing::removed(ComponentIncarnation { boot, generation: 0 }, Level::Down);
        known.stand(removal, Some(term));
        if known.admitted.is_some_and(|it| it.boot <= boot) {
            known.fence();
        }
        if known.announced.is_some_and(|it| it.boot <= boot) && !REMOVED_RUN_ON.is_planted() {
            known.refuse_at.get_or_insert(now.after(REMOVAL_GRACE));
        }
        self.report(Rank(peer.0), boot, Level::Down);
        self.orders.push(Order::Acknowledge(peer, boot));
    }

    /// The component knows that by decision no incarnation of `node` is admitted from now on. One
    /// that began after `boot` receives the isolation, and ends or contradicts.
    pub fn handle_isolated(&mut self, node: Rank, boot: Incarnation) {
        self.begin();
        if node == self.me {
            return self.isolate_oneself(boot);
        }
        let peer = Peer(node.0);
        let Some(known) = self.peers.get_mut(peer.index()) else { return };
        let was_isolated = known.stand(Standing::isolate(boot), None);
        let Some(since) = known.standing.isolation() else {
            return self.orders.push(Order::LearnRelease(node, known.standing.released()));
        };
        if known.admitted.is_some_and(|it| it.boot <= since) {
            known.fence();
        }
        if !was_isolated {
            self.orders.push(Order::Isolate(peer, boot));
            self.report(node, boot, Level::Isolated);
        }
    }

    /// The component knows that by decision `node` may come back. It may have saved an isolation
    /// that was never known here.
    pub fn handle_released(&mut self, node: Rank, boot: Incarnation) {
        self.begin();
        if node == self.me {
            return self.release_oneself(boot);
        }
        let peer = Peer(node.0);
        let is_new = self.learn_release(peer, boot);
        if self.peers.get(peer.index()).is_some_and(|known| known.is_met) {
            self.orders.push(Order::Release(peer, boot));
            if is_new {
                self.judge_held(peer);
            }
        } else if is_new {
            self.orders.push(Order::Reset(node, boot));
        }
    }

    /// Messages went to that incarnation of `peer` and back.
    pub fn handle_joined(&mut self, peer: Peer, incarnation: Incarnation) {
        if let Some(known) = self.peers.get_mut(peer.index()) {
            known.has_joined |= known.admitted.is_some_and(|it| it.incarnation == incarnation);
        }
    }

    /// Work for that incarnation of `peer` was lost; its death must be confirmed within the time
    /// that this node allows.
    pub fn handle_lost(&mut self, now: Instant, peer: Peer, incarnation: Incarnation) {
        // The lower rank waits longer, so that the two do not fence each other.
        let grace = Duration(if peer.0 < self.me.0 { 1 } else { 2 } * LOSS_GRACE.0);
        let Some(known) = self.peers.get_mut(peer.index()) else { return };
        if known.admitted.is_some_and(|it| it.incarnation == incarnation) {
            known.lost_at.get_or_insert(now.after(grace));
        }
    }

    /// Ends the admitted incarnation of `peer`. It must end for good only if the own component may
    /// have connected it: what a starting component refused would be a peer that lost nothing.
    fn fence(&mut self, peer: Peer) {
        let runs = self.own.incarnation.is_some();
        let has_connected = self.own.is_ready || (runs && THE_STARTING_FENCE.is_planted());
        let Some(known) = self.peers.get_mut(peer.index()) else { return };
        if known.fence() {
            self.orders.push(Order::Fence(peer));
        }
        if !has_connected && (runs || !THE_DEAD_FENCE.is_planted()) {
            known.fenced = Incarnation(0);
        }
    }

    /// Returns whether the release ends an isolation.
    fn learn_release(&mut self, peer: Peer, boot: Incarnation) -> bool {
        let Some(known) = self.peers.get_mut(peer.index()) else { return false };
        let was_isolated = known.stand(Standing::release(boot), None);
        let is_new = was_isolated && known.standing.isolation().is_none();
        if is_new {
            self.report(Rank(peer.0), boot, Level::Released);
        }
        is_new
    }

    /// An isolation of `peer` has ended: the incarnation that it has announced is admitted or
    /// refused as if it were announced now. One that is over runs on where its node was sent the
    /// release before the isolation, and while the isolation was in force it was not refused.
    fn judge_held(&mut self, peer: Peer) {
        let Some(known) = self.peers.get_mut(peer.index()) else { return };
        let Some(held) = known.announced.filter(|_| known.admitted.is_none()) else { return };
        let order = if RELEASED_RUN_ON.is_planted() {
            known.readmit(peer)
        } else {
            Some(known.admit(peer, held))
        };
        if let Some(order) = order {
            self.answer(order);
        }
    }

    fn answer(&mut self, order: Order) {
        // A node that is isolated itself may have outdated knowledge of others: it decides nothing.
        if matches!(order, Order::Connect(..)) || !self.is_isolated() {
            self.orders.push(order);
        }
    }

    fn known(&mut self, peer: Peer, session: u64) -> Option<&mut Neighbour> {
        self.peers.get_mut(peer.index()).filter(|known| known.session == session)
    }
}
