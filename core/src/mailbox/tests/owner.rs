//! An owner that is driven step by step.

use std::vec::Vec;

use super::harness::World;
use super::stepped::Stepped;
use super::{OWNER, PEERS, SLOTS, STALL};
use crate::fabric::{Completion, Fabric};
use crate::ids::{Incarnation, Peer};
use crate::mailbox::{Mailbox, Message, Receipt, Run};
use crate::time::Instant;

/// A message, copied out of the machine that lent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) sender: Peer,
    pub(super) incarnation: u16,
    pub(super) sequence: u32,
    pub(super) payload: Vec<u8>,
    pub(super) receipt: Receipt,
}

impl Taken {
    pub(super) fn of(message: &Message<'_>) -> Self {
        assert_eq!(message.kind, 7);
        Self {
            sender: message.sender,
            incarnation: message.incarnation,
            sequence: message.sequence,
            payload: message.payload.to_vec(),
            receipt: message.receipt,
        }
    }
}

pub(super) struct Owner<'net> {
    pub(super) fabric: Stepped<'net>,
    pub(super) mailbox: Mailbox<SLOTS, PEERS>,
    pub(super) incarnation: Incarnation,
    pub(super) now: Instant,
}

impl<'net> Owner<'net> {
    /// A new incarnation of the owner, on the memory as it is.
    pub(super) fn attach(world: &'net World, incarnation: Incarnation) -> Self {
        let fabric = Stepped::new(world.net.endpoint(OWNER, incarnation), world.placement);
        let mailbox = Mailbox::attach(&fabric, world.config, world.regions);
        Self { fabric, mailbox, incarnation, now: Instant(0) }
    }

    pub(super) fn admit(&mut self, peer: Peer, incarnation: Incarnation) {
        self.fabric.admit(peer, incarnation).unwrap();
        self.mailbox.handle_admitted(peer);
    }

    pub(super) fn fence(&mut self, peer: Peer) {
        self.fabric.fence(peer).unwrap();
        self.mailbox.handle_fenced(peer);
    }

    pub(super) fn take(&mut self) -> Option<Taken> {
        // As a poll does, which comes before in every loop.
        self.mailbox.look(&self.fabric, self.now);
        let message = self.mailbox.take(&self.fabric, self.now)?;
        Some(Taken::of(&message))
    }

    /// The next run, of at most `limit` messages.
    pub(super) fn take_run(&mut self, limit: u32) -> Option<(Run, Vec<Taken>)> {
        self.mailbox.look(&self.fabric, self.now);
        let mut taken = Vec::new();
        let deal = |message: &Message<'_>| taken.push(Taken::of(message));
        let run = self.mailbox.take_run(&self.fabric, self.now, limit, deal)?;
        assert_eq!(run.count() as usize, taken.len());
        assert!(run.receipts().eq(taken.iter().map(|it| it.receipt)));
        Some((run, taken))
    }

    pub(super) fn release(&mut self, taken: &Taken) {
        self.mailbox.release(&self.fabric, taken.receipt).unwrap();
    }

    /// Closes halves and asks, without hearing any answer.
    pub(super) fn poll(&mut self) {
        self.mailbox.poll(&mut self.fabric, self.now);
    }

    pub(super) fn hear(&mut self) {
        let mut done = [Completion::NONE];
        if self.fabric.poll(self.now, &mut done) == 1 {
            self.mailbox.handle_completion(&mut self.fabric, &done[0]);
        }
    }

    /// One turn of the poll loop in which all that was posted is answered.
    pub(super) fn turn(&mut self) {
        self.poll();
        for peer in (0..PEERS as u16).map(Peer) {
            while self.fabric.land(peer) {
                self.hear();
            }
            self.hear();
        }
    }

    /// Turns, long enough to question a missing ticket twice.
    pub(super) fn wait(&mut self) {
        for _ in 0..2 {
            self.now = self.now.after(STALL);
            self.turn();
        }
    }

    /// Takes and releases all messages that can be delivered, while time passes.
    pub(super) fn drain(&mut self) -> Vec<Taken> {
        let mut all = Vec::new();
        for _ in 0..4 {
            while let Some(taken) = self.take() {
                self.release(&taken);
                all.push(taken);
            }
            self.wait();
        }
        all
    }

    /// As [`Self::drain`], by runs; how many messages there were.
    pub(super) fn drain_runs(&mut self) -> usize {
        let mut count = 0;
        for _ in 0..4 {
            while let Some((run, taken)) = self.take_run(u32::MAX) {
                self.mailbox.release_run(&self.fabric, run).unwrap();
                count += taken.len();
            }
            self.wait();
        }
        count
    }

    /// The payloads of [`Self::drain`].
    pub(super) fn drain_payloads(&mut self) -> Vec<Vec<u8>> {
        self.drain().into_iter().map(|taken| taken.payload).collect()
    }
}
