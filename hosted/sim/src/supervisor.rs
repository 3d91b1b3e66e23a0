//! The supervisors of a cluster as its nodes observe them: deaths, restarts, fences and joins.
//!
//! ```text
//!   death ─▶ every node that knew that incarnation fences it, each in its own time
//!         └▶ restart, some time later ─▶ join, pair by pair: the old incarnation is fenced if it
//!                                        was not, the new one is admitted and admits in turn
//! ```
//!
//! A suspicion is a death that the suspect does not know of yet: some nodes fence it while it runs.
//! A pair that the fabric lost between two living peers makes one of the two a suspect. If the
//! protocol decides for itself ([`Supervision::ByProtocol`]), only restarts are left.

use weft_core::ids::{Incarnation, Peer};

use super::protocol::{HistoryEvent, MembershipNews, Protocol, Supervision, Violation};
use super::run::Run;
use super::world::{DueEvent, RunnerTimer};

impl<P: Protocol> Run<P> {
    fn by_oracle(&self) -> bool {
        self.protocol.supervision() == Supervision::ByOracle
    }

    /// Whether `peer` is alive and not stopped.
    fn runs(&self, peer: Peer) -> bool {
        self.world.is_alive(peer) && self.stopped[peer.index()] <= self.world.now()
    }

    /// Whether `peer` is a liar that ends once faults are over.
    fn is_found_out(&self, peer: Peer) -> bool {
        self.liars.contains(peer) && !self.protocol.silent().contains(peer)
    }

    pub(super) fn start_peer(&mut self, peer: Peer) {
        let spent = self.calm.is_some() && self.is_found_out(peer);
        if self.world.is_alive(peer) || spent {
            return;
        }
        let incarnation = self.world.start_peer(peer);
        self.stopped[peer.index()] = 0;
        self.known[peer.index()].fill(Incarnation(0));
        self.shut[peer.index()].fill(Incarnation(0));
        self.judge(peer, HistoryEvent::Began);
        if self.liars.contains(peer) {
            self.world.schedule(1_000, DueEvent::Timer(RunnerTimer::Lie { peer, incarnation }));
        } else {
            self.begin(peer);
        }
        if !self.by_oracle() {
            return;
        }
        for other in self.world.peers().filter(|&other| other != peer) {
            let after = self.recovery.below(400_000);
            self.world.schedule(after, DueEvent::Timer(RunnerTimer::Join { one: peer, other }));
        }
    }

    /// That incarnation of `peer` ends, if it has not.
    pub(super) fn end_incarnation(&mut self, peer: Peer, incarnation: Incarnation) {
        if !self.world.is_alive(peer) || self.world.incarnation(peer) != incarnation {
            return;
        }
        self.world.kill(peer);
        self.nodes[peer.index()] = None;
        self.judge(peer, HistoryEvent::Died);
        self.announce_end(peer, incarnation);
        let after = self.recovery.between(20_000, 15_000_000);
        self.world.schedule(after, DueEvent::Timer(RunnerTimer::Birth { peer }));
        for other in self.protocol.node_of(peer).iter().filter(|&other| other != peer) {
            let incarnation = self.world.incarnation(other);
            self.end_incarnation(other, incarnation);
        }
    }

    /// All peers that know that incarnation of `peer` will fence it.
    fn announce_end(&mut self, peer: Peer, incarnation: Incarnation) {
        for by in self.world.peers().filter(|&by| by != peer) {
            if self.known[by.index()][peer.index()] == incarnation {
                let after = self.recovery.between(1_000, 4_000_000);
                self.world
                    .schedule(after, DueEvent::Timer(RunnerTimer::Fence { by, peer, incarnation }));
            }
        }
    }

    /// `peer` will be ended, whether it runs or not.
    pub(super) fn suspect(&mut self, peer: Peer) {
        let incarnation = self.world.incarnation(peer);
        if self.by_oracle() {
            self.announce_end(peer, incarnation);
        }
        let after = self.recovery.between(1_000, 8_000_000);
        self.world.schedule(after, DueEvent::Timer(RunnerTimer::Kill { peer, incarnation }));
    }

    /// The fabric lost a pair: one of the two must restart.
    pub(super) fn handle_loss(&mut self, poster: Peer, target: Peer) {
        let alive = self.world.is_alive(poster) && self.world.is_alive(target);
        if alive && poster == target {
            // No peer can fence and admit itself.
            return self.suspect(poster);
        }
        if !alive || !self.by_oracle() {
            return;
        }
        let (knows, incarnation) =
            (self.known[poster.index()][target.index()], self.world.incarnation(target));
        // A pair with an incarnation that has ended is mended when the two join.
        if knows == incarnation {
            let liar = [poster, target].into_iter().find(|&peer| self.liars.contains(peer));
            let suspect = self.recovery.pick(&[poster, target]);
            self.suspect(liar.unwrap_or(suspect));
        }
    }

    pub(super) fn fence(&mut self, by: Peer, peer: Peer, incarnation: Incarnation) {
        if !self.world.is_alive(by) || self.known[by.index()][peer.index()] != incarnation {
            return;
        }
        if !self.runs(by) {
            self.world
                .schedule(500_000, DueEvent::Timer(RunnerTimer::Fence { by, peer, incarnation }));
            return;
        }
        self.apply(by, MembershipNews::Ended(peer, incarnation));
    }

    /// The node of `to`, or what stands for it, learns of `change`.
    fn apply(&mut self, to: Peer, change: MembershipNews) {
        let (known, shut) = (&mut self.known[to.index()], &mut self.shut[to.index()]);
        match change {
            MembershipNews::Ended(peer, incarnation) => {
                known[peer.index()] = Incarnation(0);
                shut[peer.index()] = incarnation;
            }
            MembershipNews::Began(peer, incarnation) => known[peer.index()] = incarnation,
        }
        if self.liars.contains(to) {
            // It lies through the fabric only, and is admitted and fenced like all peers.
            let _ = match change {
                MembershipNews::Ended(peer, _) => self.world.fence(to, peer),
                MembershipNews::Began(peer, incarnation) => self.world.admit(to, peer, incarnation),
            };
        } else {
            self.act(to, |protocol, node, seat| protocol.membership(node, seat, change));
        }
    }

    /// The two admit each other's present incarnations.
    pub(super) fn join(&mut self, one: Peer, other: Peer) {
        if !self.world.is_alive(one) || !self.world.is_alive(other) {
            return;
        }
        if !self.runs(one) || !self.runs(other) {
            let after = self.recovery.between(100_000, 1_000_000);
            self.world.schedule(after, DueEvent::Timer(RunnerTimer::Join { one, other }));
            return;
        }
        for (who, peer) in [(one, other), (other, one)] {
            let incarnation = self.world.incarnation(peer);
            if self.shut[who.index()][peer.index()] >= incarnation {
                // It was fenced and does not know yet; its next incarnation joins.
                return;
            }
            let knows = self.known[who.index()][peer.index()];
            if knows != Incarnation(0) && knows != incarnation {
                self.apply(who, MembershipNews::Ended(peer, knows));
            }
        }
        for (who, peer) in [(one, other), (other, one)] {
            let both = self.world.is_alive(one) && self.world.is_alive(other);
            let incarnation = self.world.incarnation(peer);
            if both && self.known[who.index()][peer.index()] != incarnation {
                self.apply(who, MembershipNews::Began(peer, incarnation));
            }
        }
    }

    /// Whether all living peers have admitted each other.
    pub(super) fn all_joined(&self) -> Result<(), Violation> {
        let honest = || self.world.peers().filter(|&peer| !self.liars.contains(peer));
        for one in honest().filter(|_| self.by_oracle()) {
            for other in honest().filter(|&other| other != one) {
                if self.known[one.index()][other.index()] != self.world.incarnation(other) {
                    let what = format!("{one} has not admitted {other}");
                    return Err(Violation::new("liveness", what));
                }
            }
        }
        Ok(())
    }

    /// Faults are over: stopped peers go on or are ended, and so are liars that are found out.
    pub(super) fn mend(&mut self) {
        let now = self.world.now();
        for peer in self.world.peers() {
            let incarnation = self.world.incarnation(peer);
            let hangs = self.stopped[peer.index()] == u64::MAX;
            if !hangs && self.stopped[peer.index()] > now {
                self.stopped[peer.index()] = now;
                self.world
                    .schedule(1_000, DueEvent::Timer(RunnerTimer::Step { peer, incarnation }));
            }
            if self.is_found_out(peer) || hangs {
                self.suspect(peer);
            }
        }
    }
}
