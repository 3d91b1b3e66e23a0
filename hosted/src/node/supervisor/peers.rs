//! The events of other nodes: they run, end, part, make offers, send frames, and fence
//! incarnations.

use std::os::fd::AsFd;

use weft_core::ids::{Incarnation, Peer};

use super::lives::Due;
use super::{Component, Supervisor};
use crate::bootstrap::{News, Offer, ShutOut, Tidings};
use crate::cluster::Membership;
use crate::explain::Explain;
use crate::node::chronicle::What;
use crate::node::link::ToComponent;

impl Supervisor {
    pub(super) fn handle_tidings(&mut self, tidings: Tidings) {
        match tidings {
            Tidings::Refused { who, reason } => {
                let (rank, cure) = (self.rank, reason.cure());
                tracing::error!(rank, who, %reason, cure, "not met");
            }
            Tidings::Heard { peer, session, news } => {
                tracing::debug!(rank = self.rank, peer = peer.0, ?news, "news of a peer");
                let due = match news {
                    News::Letter(letter) => {
                        self.handle_letter(peer, letter);
                        return;
                    }
                    News::Offered(offer) => {
                        self.handle_offer(peer, session, &offer);
                        return;
                    }
                    News::OtherMemory => return self.handle_other_memory(peer),
                    News::ShutOut(word) => return self.handle_shut_out(peer, word),
                    News::Isolated(boot) if boot <= self.standing.released() => {
                        return self.bootstrap.contradict(peer, self.standing.released());
                    }
                    News::Isolated(boot) => return self.be_isolated(boot),
                    News::Released(boot) => return self.be_released(boot),
                    News::Free(boot) => return self.handle_contradiction(peer, boot),
                    News::Met(grant) => {
                        if let Some(boot) = self.lives.released(peer) {
                            self.bootstrap.release(peer, boot);
                        }
                        self.lives.handle_met(peer, session, grant)
                    }
                    News::Alive(life) => self.lives.handle_alive(peer, session, life),
                    News::Dead(incarnation) => self.lives.handle_dead(peer, session, incarnation),
                    News::Parted => {
                        let due = self.lives.handle_parted(peer, session);
                        self.act(due);
                        if self.lives.is_last_session(peer, session) {
                            self.tell(&ToComponent::Parted { peer: peer.0 }, &[]);
                        }
                        return;
                    }
                };
                self.act(due);
            }
        }
    }

    /// Carries out what a change of a peer requires, if there is a component to send it to.
    pub(super) fn act(&mut self, due: Option<Due>) {
        match due {
            Some(Due::ShutOut(peer, word)) => return self.bootstrap.shut_out(peer, word),
            // A node that is isolated itself may have outdated knowledge of others.
            Some(Due::Isolate(..)) if self.is_isolated() => return,
            Some(Due::Isolate(peer, since)) => return self.bootstrap.isolate(peer, since),
            Some(Due::Fence(_)) => self.tell_alone(),
            None | Some(Due::Connect(_)) => {}
        }
        if !self.component.as_ref().is_some_and(|component| component.ready) {
            return;
        }
        match due {
            None | Some(Due::ShutOut(..) | Due::Isolate(..)) => self.note_recovery(),
            Some(Due::Fence(peer)) => {
                self.tell(&ToComponent::Fence { peer: peer.0 }, &[]);
                self.note_recovery();
            }
            Some(Due::Connect(peer)) => self.connect(peer),
        }
    }

    pub(super) fn connect(&mut self, peer: Peer) {
        self.tell_keys();
        let Some((life, grant)) = self.lives.reach(peer) else { return };
        let (incarnation, boot) = (life.incarnation.0, life.boot.0);
        if self.lives.has_forgotten(peer) {
            self.bootstrap.note_other_memory(peer);
        }
        let word = ToComponent::Connect { peer: peer.0, incarnation, boot };
        let mut fds = grant.borrow();
        fds.extend(life.process.as_ref().map(AsFd::as_fd));
        if let Some(component) = &mut self.component {
            component.tell(&word, &fds);
        }
    }

    /// Sends the component the public keys of the peers; those that it knows already have no
    /// effect.
    pub(super) fn tell_keys(&mut self) {
        for (peer, key) in self.lives.keys() {
            self.tell(&ToComponent::Key { peer: peer.0, key }, &[]);
        }
    }

    /// Hands a peer's end of a pair to the component, if the pair is of the two present
    /// incarnations.
    fn handle_offer(&mut self, peer: Peer, session: u64, offer: &Offer) {
        let is_mine = |component: &Component| component.ready && component.incarnation == offer.to;
        let is_present = self.component.as_ref().is_some_and(is_mine)
            && self.lives.is_alive(peer, session, offer.from);
        if is_present {
            let (incarnation, end) = (offer.from.0, offer.end.clone());
            self.tell(&ToComponent::Offer { peer: peer.0, incarnation, end }, &[]);
        }
    }

    /// A peer remembers this node with another memory, whatever the note of incarnations holds:
    /// what was promised there is lost, and the next incarnation takes no part where that promise
    /// binds it.
    fn handle_other_memory(&mut self, peer: Peer) {
        // Where members are removed, a boot that comes after another takes no part anyway.
        let is_bound = self.cluster.neb.membership == Membership::Fixed;
        if is_bound && self.memory_since.is_some_and(|since| since <= Incarnation(1)) {
            tracing::warn!(rank = self.rank, peer = peer.0, "met before, with another memory");
            // Not the first boot of the node in this instance of the cluster, whatever is noted.
            self.memory_since = Some(Incarnation(2));
            self.be_reborn();
        }
    }

    /// An incarnation that a peer has fenced is useless: it ends, and the next one starts; unless
    /// this node has fenced the peer with precedence.
    fn handle_shut_out(&mut self, peer: Peer, word: ShutOut) {
        self.incarnations.raise(word.life);
        let is_mine = |component: &Component| component.incarnation <= word.life;
        if self.lives.outranks(Peer(self.rank), peer, word) {
            tracing::info!(rank = self.rank, peer = peer.0, "shut out by one that is shut out");
        } else if self.component.as_ref().is_some_and(is_mine) {
            tracing::warn!(rank = self.rank, peer = peer.0, "shut out; the next life begins");
            self.be_reborn();
        }
    }

    /// Notes that only the peers know the last incarnation of this node.
    pub(super) fn tell_forgotten(&mut self) {
        if self.incarnations.are_forgotten() {
            let words = "its note of the last incarnation is damaged: it goes on from what the \
                         others remember";
            tracing::warn!(rank = self.rank, "{words}");
            self.note(self.rank, What::Told { words: words.to_owned() });
        }
    }
}
