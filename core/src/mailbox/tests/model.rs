//! A cluster, and the queue that it must behave like.

use std::vec::Vec;

use super::harness::{Cluster, World};
use super::ledger::{Ledger, Name};
use super::owner::Taken;
use super::writer::Writer;
use super::{PEERS, SLOTS};
use crate::fabric::PostError;
use crate::ids::Peer;
use crate::mailbox::PutEvent;

pub(super) struct Model<'net> {
    pub(super) cluster: Cluster<'net>,
    pub(super) ledger: Ledger,
    /// By writer: its staged messages, whether it runs, whether the owner admits it.
    pub(super) staged: [Vec<Name>; PEERS],
    pub(super) alive: [bool; PEERS],
    admitted: [bool; PEERS],
    /// Taken and not released.
    pub(super) hands: Vec<(Name, Taken)>,
    /// The fabric answered an atomic wrongly.
    pub(super) misled: bool,
}

pub(super) fn model(world: &World) -> Model<'_> {
    Model {
        cluster: Cluster::new(world),
        ledger: Ledger::default(),
        staged: Default::default(),
        alive: [true; PEERS],
        admitted: [true; PEERS],
        hands: Vec::new(),
        misled: false,
    }
}

impl<'net> Model<'net> {
    pub(super) fn writer(&mut self, peer: Peer) -> &mut Writer<'net> {
        self.cluster.writer(peer)
    }

    pub(super) fn put(&mut self, peer: Peer, count: u8) {
        let incarnation = self.writer(peer).incarnation;
        if self.writer(peer).outbox.is_idle() {
            for _ in 0..count.min(SLOTS as u8 * 2 - self.staged[peer.index()].len() as u8) {
                let name = self.ledger.create(peer, incarnation);
                self.writer(peer).stage(&name.payload());
                self.staged[peer.index()].push(name);
            }
        }
        // Gone and Full leave everything staged; a writer that is gone for good is started again.
        let flushed = self.writer(peer).flush();
        assert!(!matches!(flushed, Err(PostError::Rejected(_))));
    }

    pub(super) fn hear(&mut self, peer: Peer) {
        if let Some(event) = self.writer(peer).hear() {
            self.note(peer, event);
        }
    }

    pub(super) fn note(&mut self, peer: Peer, event: PutEvent) {
        let staged = &mut self.staged[peer.index()];
        match event {
            PutEvent::Put { count, left } => {
                staged.drain(..count as usize).for_each(|name| self.ledger.note_put(name));
                assert_eq!(staged.len(), left as usize);
            }
            PutEvent::Full | PutEvent::TicketUnknown => {}
            PutEvent::Lost { unknown, .. } => {
                assert!(unknown as usize <= staged.len());
                staged.clear();
                self.writer(peer).outbox.discard();
            }
        }
    }

    pub(super) fn crash(&mut self, peer: Peer) {
        self.alive[peer.index()] = false;
        self.cluster.crash(peer);
    }

    pub(super) fn fence(&mut self, peer: Peer) {
        self.admitted[peer.index()] = false;
        self.cluster.owner.fence(peer);
    }

    pub(super) fn revive(&mut self, peer: Peer) {
        self.crash(peer);
        self.cluster.revive(peer);
        self.staged[peer.index()].clear();
        self.alive[peer.index()] = true;
        self.admitted[peer.index()] = true;
    }

    pub(super) fn succeed(&mut self) {
        let admitted: Vec<_> = (1..PEERS as u16)
            .map(Peer)
            .filter(|peer| self.alive[peer.index()] && self.admitted[peer.index()])
            .collect();
        self.hands.clear();
        self.ledger.note_succession();
        for (peer, event) in self.cluster.succeed_owner(&admitted) {
            self.note(peer, event);
        }
    }

    pub(super) fn take(&mut self) -> bool {
        let taken = self.cluster.owner.take();
        if let Some(taken) = &taken {
            let name = self.ledger.note_delivered(taken);
            self.hands.push((name, taken.clone()));
        }
        taken.is_some()
    }

    pub(super) fn take_run(&mut self, limit: u32) {
        for taken in self.cluster.owner.take_run(limit).into_iter().flat_map(|(_, taken)| taken) {
            let name = self.ledger.note_delivered(&taken);
            self.hands.push((name, taken));
        }
    }

    pub(super) fn release(&mut self, which: usize) {
        let (name, taken) = self.hands.swap_remove(which);
        self.cluster.owner.release(&taken);
        if !self.cluster.owner.fabric.is_dead() {
            self.ledger.note_released(name);
        }
    }

    /// No more faults: continues until nothing is outstanding.
    pub(super) fn heal(&mut self) {
        self.cluster.owner.fabric.refusals = 0;
        for peer in (1..PEERS as u16).map(Peer) {
            self.writer(peer).fabric.refusals = 0;
            let (alive, admitted) = (self.alive[peer.index()], self.admitted[peer.index()]);
            self.finish(peer);
            if !alive || !admitted || !self.writer(peer).is_up() {
                self.revive(peer);
            }
        }
        for turn in 0..24 {
            self.turn();
            // The owner knows what it owes as of its last look; a half may have been closed since.
            if turn > 1 && self.is_settled() {
                break;
            }
        }
        assert_eq!(self.cluster.owner.mailbox.owed(), 0, "the owner is stuck");
        assert!(self.staged.iter().all(Vec::is_empty), "a writer is stuck");
        self.ledger.check_nothing_lost();
        let forgery = self.cluster.owner.mailbox.counters().forgery;
        assert!(self.misled || forgery.is_none(), "no member wrote over the word: {forgery:?}");
    }

    pub(super) fn is_settled(&self) -> bool {
        self.cluster.owner.mailbox.owed() == 0 && self.staged.iter().all(Vec::is_empty)
    }

    /// Every writer and the owner do all the work that is possible now.
    pub(super) fn turn(&mut self) {
        for peer in (1..PEERS as u16).map(Peer) {
            self.put(peer, 0);
            self.finish(peer);
        }
        while self.take() {}
        while !self.hands.is_empty() {
            self.release(0);
        }
        self.cluster.owner.wait();
    }

    pub(super) fn finish(&mut self, peer: Peer) {
        if let (true, Some(event)) = (self.alive[peer.index()], self.writer(peer).finish()) {
            self.note(peer, event);
        }
    }

    /// The mailbox still delivers.
    pub(super) fn accept_more(&mut self) {
        let before = self.ledger.delivered_count();
        for round in 0..SLOTS * 3 {
            self.put(Peer(1 + (round % 3) as u16), 1);
            self.turn();
        }
        assert_eq!(self.ledger.delivered_count(), before + SLOTS * 3);
    }
}
