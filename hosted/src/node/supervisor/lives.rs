//! The peers' incarnations as this node knows them: which were met, which run, which have joined.
//!
//! A decider: events come in, and what the component must be sent comes out.

use weft_core::dirnet::{Standing, Term};
use weft_core::ids::{Incarnation, Peer};

use crate::bootstrap::{Life, ShutOut};
use crate::node::control::PeerStatus;
use crate::process::Pidfd;
use crate::shm::Grant;
use crate::signing::PublicKey;

/// A change that the component or the peer must be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A new incarnation of this peer runs.
    Connect(Peer),
    /// This peer's incarnation has ended.
    Fence(Peer),
    /// This peer still runs in an incarnation that was fenced here: it must receive this.
    ShutOut(Peer, ShutOut),
    /// This peer runs and is isolated since that incarnation: it must receive this.
    Isolate(Peer, Incarnation),
}

#[derive(Debug, Default)]
struct Known {
    session: u64,
    grant: Option<Grant>,
    life: Option<Life>,
    joined: bool,
    /// The public key of its broadcasts: the first that was received.
    key: Option<PublicKey>,
    /// The name of its memory when it was first met: any other holds none of the former state.
    memory: Option<u64>,
    /// When the incarnation counts as lost: work for it was lost, and its end was not reported.
    cut_off_at_ns: Option<u64>,
    /// The last incarnation that the own component has fenced, or is about to.
    fenced: Incarnation,
    /// Boots that began with this incarnation, or before, were removed by decision.
    removed: Incarnation,
    /// The term of that decision.
    removed_in: Option<Term>,
    /// The last `ShutOut` that it was sent in this session, until either side starts another
    /// incarnation.
    told: Option<ShutOut>,
    /// Its isolations and releases.
    standing: Standing,
    /// The incarnation that it runs in nevertheless, as other nodes may admit it: for its release.
    held: Option<Life>,
    /// Processes of incarnations that are over for this node and were not confirmed dead: they have
    /// its memory mapped.
    ended: Vec<Pidfd>,
}

impl Known {
    /// Ends the known incarnation for this node; whether there was one.
    fn fence(&mut self) -> bool {
        self.joined = false;
        self.cut_off_at_ns = None;
        let Some(life) = self.life.take() else { return false };
        self.fenced = self.fenced.max(life.incarnation);
        self.ended.retain(|process| !matches!(process.is_dead(), Ok(true)));
        self.ended.extend(life.process);
        true
    }

    /// Records the `ShutOut` that it must be sent: this incarnation of it is fenced.
    fn shut_out(&mut self, life: Incarnation, decided: Option<Term>) -> ShutOut {
        *self.told.insert(ShutOut { life, decided })
    }
}

/// The state of every peer.
#[derive(Debug)]
pub(super) struct Lives {
    peers: Vec<Known>,
}

impl Lives {
    pub(super) fn new(nodes: usize) -> Self {
        Self { peers: (0..nodes).map(|_| Known::default()).collect() }
    }

    /// A session with `peer` has begun; an earlier one is over.
    pub(super) fn handle_met(&mut self, peer: Peer, session: u64, grant: Grant) -> Option<Due> {
        let known = self.peers.get_mut(peer.index())?;
        if session <= known.session {
            return None;
        }
        let lived = known.fence();
        known.session = session;
        known.told = None;
        known.held = None;
        known.grant = Some(grant);
        lived.then_some(Due::Fence(peer))
    }

    pub(super) fn handle_alive(&mut self, peer: Peer, session: u64, life: Life) -> Option<Due> {
        let known = self.known(peer, session)?;
        known.fence();
        known.key = known.key.or(life.key);
        known.memory = known.memory.or(Some(life.memory));
        known.held = None;
        if let Some(since) = known.standing.isolation() {
            known.held = Some(life);
            return Some(Due::Isolate(peer, since));
        }
        if life.boot <= known.removed {
            let decided = known.removed_in;
            // A host that lost its note of the incarnations is sent the last one that was.
            let over = life.incarnation.max(known.removed).max(known.fenced);
            return Some(Due::ShutOut(peer, known.shut_out(over, decided)));
        }
        if life.incarnation <= known.fenced {
            // No message of it can be attributed now to the present or the former incarnation.
            return Some(Due::ShutOut(peer, known.shut_out(known.fenced, None)));
        }
        known.told = None;
        known.life = Some(life);
        Some(Due::Connect(peer))
    }

    pub(super) fn handle_dead(
        &mut self,
        peer: Peer,
        session: u64,
        incarnation: Incarnation,
    ) -> Option<Due> {
        let known = self.known(peer, session)?;
        known.held.take_if(|life| life.incarnation == incarnation);
        if known.life.as_ref().is_none_or(|life| life.incarnation != incarnation) {
            return None;
        }
        known.fence().then_some(Due::Fence(peer))
    }

    /// The session with the node of `peer` has ended. Its component dies with it; fencing makes
    /// sure.
    pub(super) fn handle_parted(&mut self, peer: Peer, session: u64) -> Option<Due> {
        let known = self.known(peer, session)?;
        known.grant = None;
        known.held = None;
        known.fence().then_some(Due::Fence(peer))
    }

    /// Whether `session` is the last with `peer`.
    pub(super) fn is_last_session(&mut self, peer: Peer, session: u64) -> bool {
        self.known(peer, session).is_some()
    }

    /// By decision in `term` the incarnations of `peer` up to those that began with `boot` are
    /// over; the own component has fenced them.
    pub(super) fn handle_removed(&mut self, peer: Peer, boot: Incarnation, term: Term) {
        let Some(known) = self.peers.get_mut(peer.index()) else { return };
        if boot >= known.removed {
            (known.removed, known.removed_in) = (boot, Some(term));
        }
        if known.life.as_ref().is_some_and(|life| life.boot <= boot) {
            known.fence();
        }
    }

    /// By decision no incarnation of `peer` is admitted from now on; whether that is new. One that
    /// began later receives the isolation, and ends itself or contradicts.
    pub(super) fn handle_isolated(&mut self, peer: Peer, boot: Incarnation) -> bool {
        let Some(known) = self.peers.get_mut(peer.index()) else { return false };
        let before = known.standing.isolation();
        known.standing = known.standing.merged(Standing::isolate(boot));
        let Some(since) = known.standing.isolation() else { return false };
        if known.life.as_ref().is_some_and(|life| life.boot <= since) {
            known.fence();
        }
        before.is_none()
    }

    /// By decision incarnations of `peer` that begin after `boot` are admitted; whether that is
    /// new.
    pub(super) fn handle_released(&mut self, peer: Peer, boot: Incarnation) -> bool {
        let Some(known) = self.peers.get_mut(peer.index()) else { return false };
        let before = known.standing.isolation();
        known.standing = known.standing.merged(Standing::release(boot));
        before.is_some() && known.standing.isolation().is_none()
    }

    /// The last boot of `peer` of which isolations are over, if any was.
    pub(super) fn released(&self, peer: Peer) -> Option<Incarnation> {
        let standing = self.peers.get(peer.index())?.standing;
        let is_free = standing.isolation().is_none();
        Some(standing.released()).filter(|boot| *boot > Incarnation(0) && is_free)
    }

    /// The incarnation after `boot` that `peer` runs in, if it was kept out until now.
    pub(super) fn handle_let_in(&mut self, peer: Peer, boot: Incarnation) -> Option<Due> {
        let known = self.peers.get_mut(peer.index())?;
        let (session, life) = (known.session, known.held.take_if(|life| life.boot > boot)?);
        self.handle_alive(peer, session, life)
    }

    /// Whether the node of `peer` is met, so that it can be sent a message.
    pub(super) fn is_met(&self, peer: Peer) -> bool {
        self.peers.get(peer.index()).is_some_and(|known| known.grant.is_some())
    }

    /// Whether `peer` runs in this incarnation.
    pub(super) fn is_alive(&self, peer: Peer, session: u64, incarnation: Incarnation) -> bool {
        let known = self.peers.get(peer.index()).filter(|known| known.session == session);
        let life = known.and_then(|known| known.life.as_ref());
        life.is_some_and(|life| life.incarnation == incarnation)
    }

    /// Work for that incarnation of `peer` was lost; its death must be confirmed by
    /// `cut_off_at_ns`.
    pub(super) fn handle_lost(&mut self, peer: Peer, incarnation: Incarnation, cut_off_at_ns: u64) {
        let Some(known) = self.peers.get_mut(peer.index()) else { return };
        if known.life.as_ref().is_some_and(|life| life.incarnation == incarnation) {
            known.cut_off_at_ns.get_or_insert(cut_off_at_ns);
        }
    }

    /// Whether the `ShutOut` that `me` has sent to `peer` takes precedence over the one that `peer`
    /// sends now. Both know both messages of the session, so that exactly one of two finds that it
    /// does not.
    pub(super) fn outranks(&self, me: Peer, peer: Peer, theirs: ShutOut) -> bool {
        let told = self.peers.get(peer.index()).and_then(|known| known.told);
        // As after lost work, the lower rank yields.
        let right = |word: ShutOut, by: Peer| (word.decided, by);
        told.is_some_and(|ours| right(ours, me) > right(theirs, peer))
    }

    /// Gives up an incarnation that counts as lost and still runs: it must be fenced, and receive
    /// this, so that its node starts the next one. One peer at a time.
    pub(super) fn handle_time(&mut self, now_ns: u64) -> Option<(Peer, ShutOut)> {
        for known in &mut self.peers {
            // No descriptor is kept of a process that is confirmed dead.
            known.ended.retain(|process| !matches!(process.is_dead(), Ok(true)));
        }
        let is_over = |known: &Known| known.cut_off_at_ns.is_some_and(|at| now_ns >= at);
        let (peer, known) =
            (0..).map(Peer).zip(&mut self.peers).find(|(_, known)| is_over(known))?;
        known.fence().then(|| (peer, known.shut_out(known.fenced, None)))
    }

    /// When the next incarnation counts as lost.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        self.peers.iter().filter_map(|known| known.cut_off_at_ns).min()
    }

    /// Messages went to that incarnation of `peer` and back.
    pub(super) fn handle_joined(&mut self, peer: Peer, incarnation: Incarnation) {
        if let Some(known) = self.peers.get_mut(peer.index()) {
            let current = known.life.as_ref().is_some_and(|life| life.incarnation == incarnation);
            known.joined |= current;
        }
    }

    /// Ends every process that may reach the own memory and does not belong to a known
    /// incarnation; whether all of them are dead. Call it again until they are.
    pub(super) fn end_stragglers(&mut self) -> bool {
        for known in &mut self.peers {
            known.ended.retain(|process| {
                // One that cannot be signalled is found alive by the check.
                let _ = process.kill();
                !matches!(process.is_dead(), Ok(true))
            });
        }
        self.peers.iter().all(|known| known.ended.is_empty())
    }

    /// The own component has ended: no peer has joined the next one yet, and it has fenced none.
    pub(super) fn handle_own_end(&mut self) {
        for known in &mut self.peers {
            known.joined = false;
            known.cut_off_at_ns = None;
            known.fenced = Incarnation(0);
            known.told = None;
        }
    }

    /// Whether every running peer has joined.
    pub(super) fn all_joined(&self) -> bool {
        self.peers.iter().all(|known| known.life.is_none() || known.joined)
    }

    /// How many peers run and have joined.
    pub(super) fn joined(&self) -> usize {
        self.peers.iter().filter(|known| known.life.is_some() && known.joined).count()
    }

    /// The peers that run.
    pub(super) fn alive(&self) -> Vec<Peer> {
        let living = (0..).map(Peer).zip(&self.peers);
        living.filter(|(_, known)| known.life.is_some()).map(|(peer, _)| peer).collect()
    }

    /// The public keys of peers, as far as they are known.
    pub(super) fn keys(&self) -> Vec<(Peer, PublicKey)> {
        let keys = (0..).map(Peer).zip(&self.peers);
        keys.filter_map(|(peer, known)| Some((peer, known.key?))).collect()
    }

    /// Whether the present incarnation of `peer` has another memory than the one that was first
    /// met.
    pub(super) fn has_forgotten(&self, peer: Peer) -> bool {
        let Some(known) = self.peers.get(peer.index()) else { return false };
        known.life.as_ref().is_some_and(|life| known.memory != Some(life.memory))
    }

    /// How a running peer is reached.
    pub(super) fn reach(&self, peer: Peer) -> Option<(&Life, &Grant)> {
        let known = self.peers.get(peer.index())?;
        Some((known.life.as_ref()?, known.grant.as_ref()?))
    }

    /// All peers but `me`, for people.
    pub(super) fn status(&self, me: Peer) -> Vec<PeerStatus> {
        let others = (0..).map(Peer).zip(&self.peers).filter(|(peer, _)| *peer != me);
        others
            .map(|(peer, known)| PeerStatus {
                rank: peer.0,
                incarnation: known.life.as_ref().map(|life| life.incarnation.0),
                joined: known.joined,
            })
            .collect()
    }

    fn known(&mut self, peer: Peer, session: u64) -> Option<&mut Known> {
        self.peers.get_mut(peer.index()).filter(|known| known.session == session)
    }
}

#[cfg(test)]
mod tests;
