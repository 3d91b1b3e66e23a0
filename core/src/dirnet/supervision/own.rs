//! The own node: the incarnation that runs, what ends its boot, and its isolation.

use super::{Announcement, Fenced, Order, Supervision};
use crate::dirnet::{
    CONTRADICTED_FORGET_FENCES, ENDED_BOOTS_FENCE, LATE_ISOLATIONS_WAIT,
    UNSEEN_ISOLATIONS_END_NOTHING,
};
use crate::dirnet::{ComponentIncarnation, Level, Standing};
use crate::ids::{Incarnation, Peer, Rank};

/// What a supervisor knows of its own node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Own {
    /// The boot that runs, from its first component until it is over.
    boot: Option<Incarnation>,
    /// The component's incarnation, if a component runs.
    pub(super) incarnation: Option<Incarnation>,
    /// Whether it can be connected: before, it has connected no peer, and so fences none.
    pub(super) is_ready: bool,
    /// The isolations and releases of this node.
    pub(super) standing: Standing,
}

impl Own {
    /// Whether a boot runs.
    pub(super) const fn runs(&self) -> bool {
        self.boot.is_some()
    }
}

impl<const NODES: usize> Supervision<NODES> {
    /// The host has started a component. A new boot begins without the removals of the boot before,
    /// as its component does, those included that were reported as it ended.
    pub fn handle_started(&mut self, started: Announcement) {
        if !self.own.runs() {
            self.peers.iter_mut().for_each(super::Neighbour::forget_removals);
        }
        self.peers.iter_mut().for_each(|known| known.fenced = Incarnation(0));
        self.own.boot = Some(started.boot);
        (self.own.incarnation, self.own.is_ready) = (Some(started.incarnation), false);
    }

    /// The own component can be connected: it admits every peer that runs, those that only the
    /// component before has fenced included.
    ///
    /// # Panics
    /// When [`Self::poll_order`] was not drained: a bug of the caller.
    pub fn handle_ready(&mut self) {
        self.begin();
        self.own.is_ready = true;
        for (known, peer) in self.peers.iter_mut().zip((0..).map(Peer)) {
            let order = match known.admitted {
                Some(admitted) => Some(Order::Connect(peer, admitted)),
                None if crate::dirnet::FENCED_STAY_OUT.is_planted() => None,
                None => known.readmit(peer),
            };
            if let Some(order) = order {
                self.orders.push(order);
            }
        }
    }

    /// The own component has ended: no peer has joined the next one yet, and it has fenced none.
    pub fn handle_ended(&mut self) {
        (self.own.incarnation, self.own.is_ready) = (None, false);
        self.peers.iter_mut().for_each(super::Neighbour::handle_own_end);
    }

    /// This boot of the node is over: its peers have removed it, or it cannot keep a promise.
    ///
    /// # Panics
    /// When [`Self::poll_order`] was not drained: a bug of the caller.
    pub fn handle_over(&mut self) {
        self.begin();
        self.reboot();
    }

    /// `by` has fenced incarnations of this node. They are useless: the boot ends, unless this node
    /// has fenced `by` with precedence, or knows that `by` is isolated. What an isolated node has
    /// decided before it learned so must not end the boot of the last node that could release it.
    /// The host numbers its next incarnation above them in any case.
    ///
    /// # Panics
    /// When [`Self::poll_order`] was not drained: a bug of the caller.
    pub fn handle_refused(&mut self, by: Peer, theirs: Fenced) {
        self.begin();
        let is_meant = self.own.incarnation.is_some_and(|own| own <= theirs.up_to);
        let is_isolated = self.standing(Rank(by.0)).isolation().is_some()
            && !crate::dirnet::ISOLATED_PEERS_DECIDE.is_planted();
        if !is_meant || is_isolated || self.outranks(by, theirs) {
            return;
        }
        if let (Some(boot), Some(_)) = (self.own.boot, theirs.decided) {
            let removal =
                Standing::removed(ComponentIncarnation { boot, generation: 0 }, Level::Down);
            self.own.standing = self.own.standing.merged(removal);
        }
        self.reboot();
    }

    /// The last boot of this node that its peers have removed: a component of a later boot takes no
    /// static role before it has met the others (G-19). Zero: none, or one that a component has
    /// saved in its database.
    #[must_use]
    pub fn removed(&self) -> Incarnation {
        if self.own.standing.is_up() { Incarnation(0) } else { self.own.standing.incarnation.boot }
    }

    /// The own component is ordered to enter the DIR net. It may have restored a database that is
    /// older than an isolation which this supervisor knows.
    ///
    /// # Panics
    /// When [`Self::poll_order`] was not drained: a bug of the caller.
    pub fn handle_entered(&mut self) {
        self.begin();
        for (known, node) in self.peers.iter().zip((0..).map(Rank)) {
            let isolation = known.standing.isolation();
            let forgets = crate::dirnet::CLONES_FORGET_ISOLATIONS.is_planted();
            if let Some(since) = isolation.filter(|_| !forgets) {
                self.orders.push(Order::LearnIsolation(node, since));
            }
        }
        if crate::dirnet::ORDERED_IS_ENTERED.is_planted() {
            self.handle_watched();
        }
    }

    /// The own component has entered the DIR net, and its I'm-Alive Task watches it. It has saved
    /// in its database that the boot before was removed, and will save that this one was admitted;
    /// the removal must not outlast that. One that hangs before leaves it to its successor.
    pub fn handle_watched(&mut self) {
        if let Some(boot) = self.own.boot {
            let entered = Standing::up(ComponentIncarnation { boot, generation: 0 });
            self.own.standing = self.own.standing.merged(entered);
        }
    }

    /// `by` reports that this node is isolated since `boot`.
    ///
    /// # Panics
    /// When [`Self::poll_order`] was not drained: a bug of the caller.
    pub fn handle_isolated_by(&mut self, by: Peer, boot: Incarnation) {
        self.begin();
        let released = self.own.standing.released();
        if boot <= released {
            self.orders.push(Order::Contradict(by, released));
            // It has ignored what it was sent while it took this node for an isolated one.
            let sent = self.peers.get(by.index()).and_then(|known| known.sent);
            if let Some(fenced) = sent.filter(|_| !CONTRADICTED_FORGET_FENCES.is_planted()) {
                self.orders.push(Order::Refuse(by, fenced));
            }
        } else {
            self.stand(Standing::isolate(boot));
        }
    }

    /// A peer reports that isolations of this node up to `boot` are over.
    ///
    /// # Panics
    /// When [`Self::poll_order`] was not drained: a bug of the caller.
    pub fn handle_released_by(&mut self, boot: Incarnation) {
        self.begin();
        self.release_oneself(boot);
    }

    /// Whether the message that this node has sent to `by` in this session, or is about to send,
    /// precedes `theirs`. Both know both messages, now or later.
    fn outranks(&self, by: Peer, theirs: Fenced) -> bool {
        let known = self.peers.get(by.index());
        let ours = known.and_then(|known| known.pending().or(known.sent));
        ours.is_some_and(|ours| ours.outranks(Peer(self.me.0), theirs, by))
    }

    /// The isolation of this node that is in force, if any.
    pub(super) fn own_isolation(&self) -> Option<Incarnation> {
        self.own.standing.isolation()
    }

    /// The component knows of an isolation of this node.
    pub(super) fn isolate_oneself(&mut self, boot: Incarnation) {
        let released = self.own.standing.released();
        if boot <= released {
            self.orders.push(Order::LearnRelease(self.me, released));
        } else {
            self.stand(Standing::isolate(boot));
        }
    }

    /// Isolations of this node up to `boot` are over. One that was never known here has ended the
    /// boot that it names all the same: peers have removed it, and wait for the next.
    pub(super) fn release_oneself(&mut self, boot: Incarnation) {
        let is_new = self.own.standing.released() < boot;
        let was_unknown = is_new && self.own_isolation().is_none();
        self.stand(Standing::release(boot));
        let is_over = self.own.boot.is_some_and(|own| own <= boot);
        if was_unknown && is_over && !UNSEEN_ISOLATIONS_END_NOTHING.is_planted() {
            self.reboot();
        }
    }

    /// Merges what was decided about this node into its standing.
    pub(super) fn stand(&mut self, decided: Standing) {
        let before = self.own.standing.isolation();
        self.own.standing = self.own.standing.merged(decided);
        let isolation = self.own.standing.isolation();
        if isolation == before {
            return;
        }
        self.orders.push(Order::Keep(isolation));
        match (before, isolation) {
            (None, Some(since)) => {
                self.end_boot();
                self.report(self.me, since, Level::Isolated);
                self.orders.push(Order::Halt);
                self.ask_for_release(since);
            }
            (Some(_), None) => self.orders.push(Order::Resume),
            // The note alone changes: the isolation has a later number.
            (None, None) | (Some(_), Some(_)) => {}
        }
    }

    /// Asks all for the release that are met already: they may have forgotten the isolation, or may
    /// never have known it.
    fn ask_for_release(&mut self, since: Incarnation) {
        let met = self.select(|known| known.is_met);
        if !LATE_ISOLATIONS_WAIT.is_planted() {
            met.iter().for_each(|peer| self.orders.push(Order::AskForRelease(peer, since)));
        }
    }

    fn reboot(&mut self) {
        if self.end_boot() {
            self.orders.push(Order::Reboot);
        }
    }

    /// The boot ends, and with it what its component has fenced and removed, although that has yet
    /// to be killed: a node that gives way to peers that it has removed admits them. Of two that
    /// fenced each other both would end if this one refused the other meanwhile. Returns whether a
    /// boot ran.
    fn end_boot(&mut self) -> bool {
        let has_run = self.own.boot.take().is_some();
        if has_run && !ENDED_BOOTS_FENCE.is_planted() {
            self.peers.iter_mut().for_each(super::Neighbour::forget_removals);
            self.handle_ended();
        }
        has_run
    }
}
