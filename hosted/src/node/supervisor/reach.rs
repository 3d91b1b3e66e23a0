//! How each peer is reached: descriptors of its memory, its process, its key.
//!
//! Core decides which incarnation of a peer is admitted. What such an incarnation consists of on
//! this host is kept here, by peer.

use weft_core::ids::{Incarnation, Peer};

use crate::bootstrap::AnnouncedIncarnation;
use crate::cluster::Membership;
use crate::process::Pidfd;
use crate::shm::Grant;
use crate::signing::PublicKey;

#[derive(Debug, Default)]
struct Known {
    session: u64,
    grant: Option<Grant>,
    /// The last incarnation that it has announced.
    announced: Option<AnnouncedIncarnation>,
    /// Whether that was admitted: its process may have mapped the own memory.
    was_admitted: bool,
    /// The public key of its broadcasts: the first that was received, in the boot `epoch` where
    /// each boot has its own.
    key: Option<PublicKey>,
    epoch: Incarnation,
    /// The name of its memory when it was first met: any other holds none of the former state.
    memory: Option<u64>,
    /// Processes of admitted incarnations that are over and were not confirmed dead.
    ended: Vec<Pidfd>,
}

impl Known {
    fn replace(&mut self, announced: Option<AnnouncedIncarnation>) {
        let before = std::mem::replace(&mut self.announced, announced);
        if std::mem::take(&mut self.was_admitted) {
            self.ended.extend(before.and_then(|announced| announced.process));
        }
    }

    /// No descriptor is kept of a process that is confirmed dead.
    fn forget_dead(&mut self) {
        self.ended.retain(|process| !matches!(process.is_dead(), Ok(true)));
    }
}

/// What this host holds of every peer.
#[derive(Debug)]
pub(super) struct Reach {
    peers: Vec<Known>,
    membership: Membership,
}

impl Reach {
    pub(super) fn new(nodes: usize, membership: Membership) -> Self {
        Self { peers: (0..nodes).map(|_| Known::default()).collect(), membership }
    }

    /// A session with `peer` has begun.
    pub(super) fn handle_met(&mut self, peer: Peer, session: u64, grant: Grant) {
        if let Some(known) = self.peers.get_mut(peer.index()).filter(|it| it.session < session) {
            (known.session, known.grant) = (session, Some(grant));
        }
    }

    /// `peer` has announced `announced` in this session.
    pub(super) fn handle_alive(
        &mut self,
        peer: Peer,
        session: u64,
        announced: AnnouncedIncarnation,
    ) {
        let is_current = |known: &&mut Known| known.session == session;
        let Some(known) = self.peers.get_mut(peer.index()).filter(is_current) else { return };
        // A boot is an epoch in the broadcasts, and has its own key (N-19).
        if self.membership == Membership::Decided && announced.boot > known.epoch {
            (known.key, known.epoch) = (None, announced.boot);
        }
        known.key = known.key.or(announced.key);
        known.memory = known.memory.or(Some(announced.memory));
        known.forget_dead();
        known.replace(Some(announced));
    }

    /// The incarnation that `peer` has announced last is admitted.
    pub(super) fn handle_admitted(&mut self, peer: Peer) {
        if let Some(known) = self.peers.get_mut(peer.index()) {
            known.was_admitted = true;
        }
    }

    /// How that incarnation of `peer` is reached.
    pub(super) fn of(
        &self,
        peer: Peer,
        incarnation: Incarnation,
    ) -> Option<(&AnnouncedIncarnation, &Grant)> {
        let known = self.peers.get(peer.index())?;
        let announced =
            known.announced.as_ref().filter(|announced| announced.incarnation == incarnation)?;
        Some((announced, known.grant.as_ref()?))
    }

    /// Whether the last incarnation of `peer` has another memory than the one that was first met.
    pub(super) fn has_forgotten(&self, peer: Peer) -> bool {
        let Some(known) = self.peers.get(peer.index()) else { return false };
        known.announced.as_ref().is_some_and(|announced| known.memory != Some(announced.memory))
    }

    /// The public keys of peers, as far as they are known.
    pub(super) fn keys(&self) -> Vec<(Peer, PublicKey)> {
        let keys = (0..).map(Peer).zip(&self.peers);
        keys.filter_map(|(peer, known)| Some((peer, known.key?))).collect()
    }

    /// Ends every process that may reach the own memory and is not the one of the incarnation that
    /// is `admitted`; returns whether all of them are dead. Call it again until they are.
    pub(super) fn end_stragglers(
        &mut self,
        admitted: impl Fn(Peer) -> Option<Incarnation>,
    ) -> bool {
        for (known, peer) in self.peers.iter_mut().zip((0..).map(Peer)) {
            let is_over =
                |announced: &AnnouncedIncarnation| admitted(peer) != Some(announced.incarnation);
            if known.was_admitted && known.announced.as_ref().is_some_and(is_over) {
                known.replace(None);
            }
            for process in &known.ended {
                // One that cannot be signalled is found alive by the check.
                let _ = process.kill();
            }
            known.forget_dead();
        }
        self.peers.iter().all(|known| known.ended.is_empty())
    }

    /// Drops what is kept of processes that have died since.
    pub(super) fn forget_dead(&mut self) {
        self.peers.iter_mut().for_each(Known::forget_dead);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: Peer = Peer(1);

    fn announced(incarnation: u32) -> AnnouncedIncarnation {
        let boot = Incarnation(1);
        let process = Pidfd::of_self().ok();
        AnnouncedIncarnation {
            incarnation: Incarnation(incarnation),
            boot,
            process,
            memory: 1,
            key: None,
        }
    }

    /// A peer that was met in session 1 and was admitted in incarnation 1.
    fn reached(announced: AnnouncedIncarnation) -> Reach {
        let mut reach = Reach::new(2, Membership::Decided);
        reach.handle_met(PEER, 1, Grant(Vec::new()));
        reach.handle_alive(PEER, 1, announced);
        reach.handle_admitted(PEER);
        reach
    }

    #[test]
    fn the_first_key_of_a_peer_stays() {
        let mut reach = reached(announced(1));
        assert_eq!(reach.keys(), []);
        let key = |byte| Some(PublicKey([byte; 32]));
        for (incarnation, heard) in [(2, key(1)), (3, key(2)), (4, None)] {
            reach.handle_alive(
                PEER,
                1,
                AnnouncedIncarnation { key: heard, ..announced(incarnation) },
            );
            assert_eq!(reach.keys(), [(PEER, PublicKey([1; 32]))], "{incarnation}");
        }
    }

    #[test]
    fn a_later_boot_has_its_own_key_where_members_are_removed() {
        let key = |byte| Some(PublicKey([byte; 32]));
        for (membership, kept) in [(Membership::Decided, 2), (Membership::Fixed, 1)] {
            let mut reach = Reach::new(2, membership);
            reach.handle_met(PEER, 1, Grant(Vec::new()));
            for (boot, heard) in [(1, key(1)), (4, key(2)), (4, key(3))] {
                let announced = AnnouncedIncarnation { key: heard, ..announced(boot) };
                let boot = Incarnation(boot);
                reach.handle_alive(PEER, 1, AnnouncedIncarnation { boot, ..announced });
            }
            assert_eq!(reach.keys(), [(PEER, PublicKey([kept; 32]))]);
        }
    }

    #[test]
    fn the_first_memory_of_a_peer_is_the_one_that_counts() {
        let mut reach = reached(announced(1));
        assert!(!reach.has_forgotten(PEER));
        for (incarnation, memory, has_forgotten) in [(2, 1, false), (3, 2, true), (4, 2, true)] {
            reach.handle_alive(PEER, 1, AnnouncedIncarnation { memory, ..announced(incarnation) });
            assert_eq!(reach.has_forgotten(PEER), has_forgotten, "{incarnation}");
        }
    }

    #[test]
    fn the_last_incarnation_of_the_last_session_is_reached_and_no_other() {
        let mut reach = reached(announced(1));
        reach.handle_met(PEER, 3, Grant(Vec::new()));
        reach.handle_met(PEER, 2, Grant(Vec::new()));
        reach.handle_alive(PEER, 2, announced(9));
        assert!(reach.of(PEER, Incarnation(1)).is_some());
        reach.handle_alive(PEER, 3, announced(2));
        assert!(reach.of(PEER, Incarnation(1)).is_none());
        assert!(reach.of(PEER, Incarnation(2)).is_some());
        assert!(reach.of(Peer(2), Incarnation(2)).is_none(), "no such rank");
    }

    /// It has the memory mapped, and may be stopped right before a write into it.
    #[test]
    fn a_process_of_an_incarnation_that_is_over_is_ended_before_all_count_as_named() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let process = Pidfd::from_child(&child).unwrap();
        process.signal(rustix::process::Signal::STOP).unwrap();
        assert!(Reach::new(2, Membership::Decided).end_stragglers(|_| None));
        let watched = process.try_clone().ok();
        let mut reach = reached(AnnouncedIncarnation { process: watched, ..announced(1) });
        assert!(reach.end_stragglers(|_| Some(Incarnation(1))), "it is known, and will be asked");
        while !reach.end_stragglers(|_| None) {
            let ended = process.wait_dead(std::time::Duration::from_secs(60)).unwrap();
            assert_eq!(ended, crate::process::Liveness::Dead);
        }
        assert!(process.is_dead().unwrap());
        child.wait().unwrap();
    }

    /// Another node may have admitted it, although this one has not: it may do so later.
    #[test]
    fn a_process_that_was_never_admitted_is_left_alone() {
        let mut reach = Reach::new(2, Membership::Decided);
        reach.handle_met(PEER, 1, Grant(Vec::new()));
        reach.handle_alive(PEER, 1, announced(1));
        assert!(reach.end_stragglers(|_| None), "this process would have ended");
        assert!(reach.of(PEER, Incarnation(1)).is_some());
    }
}
