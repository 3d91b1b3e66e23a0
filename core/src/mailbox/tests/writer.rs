//! A writer that goes one step at a time.

use super::harness::World;
use super::stepped::Stepped;
use super::{OWNER, PEERS};
use crate::fabric::{Completion, Fabric, PostError};
use crate::ids::{Incarnation, Peer};
use crate::mailbox::{Outbox, PutEvent};
use crate::time::Instant;

pub(super) struct Writer<'net> {
    pub(super) fabric: Stepped<'net>,
    pub(super) outbox: Outbox,
    pub(super) incarnation: Incarnation,
}

impl<'net> Writer<'net> {
    /// A new incarnation of `me` that no owner has admitted yet.
    pub(super) fn new(world: &'net World, me: Peer, incarnation: Incarnation) -> Self {
        assert!(me.index() < PEERS, "no such writer");
        let fabric = Stepped::new(world.net.endpoint(me, incarnation), world.placement);
        let outbox = Outbox::new(&fabric, world.config, world.regions, OWNER, incarnation);
        Self { fabric, outbox, incarnation }
    }

    pub(super) fn admit_owner(&mut self, incarnation: Incarnation) {
        self.fabric.admit(OWNER, incarnation).unwrap();
        self.outbox.readmit(&self.fabric);
    }

    /// Whether this incarnation can still put; otherwise its owner will fence it.
    pub(super) fn is_up(&self) -> bool {
        self.outbox.is_idle() && self.fabric.is_open(OWNER)
    }

    pub(super) fn stage(&mut self, payload: &[u8]) {
        self.outbox.stage(7, payload).unwrap();
    }

    pub(super) fn flush(&mut self) -> Result<(), PostError> {
        self.outbox.flush(&mut self.fabric)
    }

    /// The oldest work takes effect at the owner.
    pub(super) fn land(&mut self) -> bool {
        self.fabric.land(OWNER)
    }

    /// One completion, or one turn of the poll loop, is handled.
    pub(super) fn hear(&mut self) -> Option<PutEvent> {
        let mut done = [Completion::NONE];
        if self.fabric.poll(Instant(0), &mut done) == 0 {
            return self.outbox.poll(&mut self.fabric);
        }
        self.outbox.handle_completion(&mut self.fabric, &done[0])
    }

    /// Continues until the flush under way has ended.
    pub(super) fn finish(&mut self) -> Option<PutEvent> {
        for _ in 0..16 {
            self.land();
            if let Some(event) = self.hear() {
                return Some(event);
            }
        }
        None
    }

    pub(super) fn put(&mut self, payload: &[u8]) -> Option<PutEvent> {
        self.stage(payload);
        self.flush().unwrap();
        self.finish()
    }

    /// Puts until the ticket is known and the write is held back.
    pub(super) fn hold_ticket(&mut self, payload: &[u8]) {
        self.stage(payload);
        self.flush().unwrap();
        self.land();
        assert_eq!(self.hear(), None);
        assert_eq!(self.fabric.held(OWNER), 1, "the write waits to take effect");
    }
}
