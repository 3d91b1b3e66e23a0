//! The events of other nodes: they run, end, part, make offers, send frames, and fence
//! incarnations.

use std::os::fd::AsFd;

use weft_core::dirnet::{Announcement, Level, Order};
use weft_core::ids::{Incarnation, Peer, Rank};

use super::{StartedComponent, Supervisor};
use crate::bootstrap::{BootstrapEvent, News, Offer};
use crate::cluster::Membership;
use crate::explain::Explain;
use crate::node::chronicle::What;
use crate::node::control::PeerStatus;
use crate::node::link::ToComponent;

impl Supervisor {
    pub(super) fn handle_bootstrap_event(&mut self, event: BootstrapEvent) {
        match event {
            BootstrapEvent::Refused { who, reason } => {
                let (rank, cure) = (self.rank, reason.cure());
                tracing::error!(rank, who, %reason, cure, "not met");
            }
            BootstrapEvent::Heard { peer, session, news } => {
                tracing::debug!(rank = self.rank, peer = peer.0, ?news, "news of a peer");
                self.handle_news(peer, session, news);
                self.obey();
            }
        }
    }

    fn handle_news(&mut self, peer: Peer, session: u64, news: News) {
        match news {
            News::Datagram(datagram) => self.handle_datagram(peer, datagram),
            News::Offered(offer) => self.handle_offer(peer, session, &offer),
            News::OtherMemory => self.handle_other_memory(peer),
            News::Fenced(fenced) => {
                self.incarnations.raise(fenced.up_to);
                tracing::warn!(rank = self.rank, peer = peer.0, ?fenced, "fenced by a peer");
                self.supervision.handle_refused(peer, fenced);
            }
            News::Isolated(boot) => self.supervision.handle_isolated_by(peer, boot),
            News::Released(boot) => self.supervision.handle_released_by(boot),
            News::Free(boot) => self.supervision.handle_free(peer, boot),
            News::AskedForRelease(boot) => {
                self.supervision.handle_asked_for_release(peer, boot);
            }
            News::Met(grant) => {
                self.reach.handle_met(peer, session, grant);
                self.supervision.handle_met(peer, session);
            }
            News::Alive(announced) => {
                let (incarnation, boot) = (announced.incarnation, announced.boot);
                self.reach.handle_alive(peer, session, announced);
                let announced = Announcement { incarnation, boot };
                self.supervision.handle_alive(peer, session, announced);
            }
            News::Dead(incarnation) => self.supervision.handle_dead(peer, session, incarnation),
            News::TensorWanted(which) => self.hand_tensor(peer, which),
            News::TensorHanded(which, memory) => self.handle_handed_tensor(which, memory),
            News::Parted => self.supervision.handle_parted(peer, session),
        }
    }

    /// Carries out the orders that follow from the last input.
    pub(super) fn obey(&mut self) {
        while let Some(order) = self.supervision.poll_order() {
            match order {
                Order::Connect(peer, announced) => self.connect(peer, announced),
                Order::Fence(peer) => self.fence(peer),
                Order::Acknowledge(Peer(peer), boot) => {
                    self.tell(&ToComponent::Acknowledged { peer, boot: boot.0 }, &[]);
                }
                Order::Parted(Peer(peer)) => self.tell(&ToComponent::Parted { peer }, &[]),
                Order::LearnIsolation(Rank(peer), boot) => {
                    self.tell(&ToComponent::Isolated { peer, boot: boot.0 }, &[]);
                }
                Order::LearnRelease(Rank(peer), boot) => {
                    self.tell(&ToComponent::Released { peer, boot: boot.0 }, &[]);
                }
                Order::Refuse(peer, fenced) => self.bootstrap.refuse(peer, fenced),
                Order::Isolate(peer, boot) => self.bootstrap.isolate(peer, boot),
                Order::Release(peer, boot) => self.bootstrap.release(peer, boot),
                Order::Contradict(peer, boot) => self.bootstrap.contradict(peer, boot),
                Order::AskForRelease(peer, boot) => self.bootstrap.ask_for_release(peer, boot),
                Order::Report { node, boot, level } => self.report(node, boot, level),
                Order::Reset(node, boot) => self.reset_node(node.0, boot.0),
                Order::Keep(isolation) => self.keep_isolation(isolation),
                Order::Halt => self.halt(),
                Order::Resume => self.resume(),
                Order::Reboot => self.reboot(),
            }
        }
        self.note_recovery();
    }

    /// Ends this boot of the node, unless it is over already.
    pub(super) fn end_boot(&mut self) {
        self.supervision.handle_over();
        self.obey();
    }

    fn report(&mut self, node: Rank, boot: Incarnation, level: Level) {
        match level {
            Level::Up => {}
            Level::Down => self.reset.note_removed(node, boot),
            Level::Isolated => self.reset.note_isolated(node, boot),
            Level::Released => self.reset.note_released(node, boot),
        }
    }

    /// A component that is not ready has connected no peer.
    fn is_connectable(&self) -> bool {
        self.component.as_ref().is_some_and(|component| component.ready)
    }

    fn fence(&mut self, peer: Peer) {
        self.tell_alone();
        if self.is_connectable() {
            // Before the program learns of it. Without a component nothing is fenced, and the peer
            // may be admitted again in the same incarnation.
            self.watch.handle_ended(peer.0);
            self.tell(&ToComponent::Fence { peer: peer.0 }, &[]);
        }
    }

    fn connect(&mut self, peer: Peer, announced: Announcement) {
        self.reach.handle_admitted(peer);
        // When it is ready, it connects all that run.
        if !self.is_connectable() {
            return;
        }
        let Announcement { incarnation, boot } = announced;
        let Some((announced, grant)) = self.reach.of(peer, incarnation) else { return };
        if self.reach.has_forgotten(peer) {
            self.bootstrap.note_other_memory(peer);
        }
        let word = ToComponent::Connect { peer: peer.0, incarnation: incarnation.0, boot: boot.0 };
        let mut fds = grant.borrow();
        fds.extend(announced.process.as_ref().map(AsFd::as_fd));
        if let Some(component) = &mut self.component {
            component.tell(&word, &fds);
        }
        // Behind the admission: in a new boot the peer may have another key.
        self.tell_keys();
    }

    /// The other nodes, for people.
    pub(super) fn peers(&self) -> Vec<PeerStatus> {
        let joined = self.supervision.joined();
        let others = (0..).take(self.cluster.nodes).filter(|rank| *rank != self.rank);
        let status = |rank| {
            let admitted = self.supervision.admitted(Peer(rank));
            let incarnation = admitted.map(|it| it.incarnation.0);
            PeerStatus { rank, incarnation, joined: joined.contains(Peer(rank)) }
        };
        others.map(status).collect()
    }

    /// Sends the component the public keys of the peers; those that it knows already have no
    /// effect.
    pub(super) fn tell_keys(&mut self) {
        for (peer, key) in self.reach.keys() {
            self.tell(&ToComponent::Key { peer: peer.0, key }, &[]);
        }
    }

    /// Hands a peer's end of a pair to the component, if the pair is of the two present
    /// incarnations.
    fn handle_offer(&mut self, peer: Peer, session: u64, offer: &Offer) {
        let is_mine =
            |component: &StartedComponent| component.ready && component.incarnation == offer.to;
        let is_present = self.component.as_ref().is_some_and(is_mine)
            && self.supervision.is_admitted(peer, session, offer.from);
        if is_present {
            let (incarnation, end) = (offer.from.0, offer.end.clone());
            self.tell(&ToComponent::Offer { peer: peer.0, incarnation, end }, &[]);
        }
    }

    /// A peer remembers this node with another memory, whatever the note of incarnations holds:
    /// what was promised there is lost, and the next incarnation takes no part where that promise
    /// binds it.
    fn handle_other_memory(&mut self, peer: Peer) {
        // Where members are removed, each boot is an epoch of its own: no earlier promise binds it.
        let is_bound = self.cluster.neb.membership == Membership::Fixed;
        if is_bound && self.memory_since.is_some_and(|since| since <= Incarnation(1)) {
            tracing::warn!(rank = self.rank, peer = peer.0, "met before, with another memory");
            // Not the first boot of the node in this instance of the cluster, whatever is noted.
            self.memory_since = Some(Incarnation(2));
            self.supervision.handle_over();
        }
    }

    /// Notes that only the peers know the last incarnation of this node.
    pub(super) fn tell_forgotten(&mut self) {
        if self.incarnations.are_forgotten() {
            let words = "its note of the last incarnation is damaged: it goes on from what the \
                         others remember";
            tracing::warn!(rank = self.rank, "{words}");
            self.note(self.rank, What::Noted { words: words.to_owned() });
        }
    }
}
