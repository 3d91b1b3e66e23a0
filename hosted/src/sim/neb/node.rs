//! One life of a peer: its machine, and what it still has to broadcast.

use weft_core::fabric::{Completion, CompletionFlags, Fabric, Memory, Op, Region, Work, WorkId};
use weft_core::ids::{Incarnation, Peer, Term};
use weft_core::neb::{Conflict, Decision, Neb, Outcome};
use weft_core::time::Instant;
use weft_core::wire::broadcast::Form;
use weft_core::wire::{Progress, crc32c};

use super::{Broadcasts, DEPTH, Lie, PAYLOAD_MAX, PEERS};
use crate::sim::protocol::Seat;

/// Completions that one round handles.
const BATCH: usize = 4;
/// Outcomes that one round takes.
const TAKES: usize = 4;

/// What a node observes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message was given a number, and is on its way for good.
    Broadcast {
        /// Its number.
        seq: u64,
        /// Its bytes.
        payload: Vec<u8>,
    },
    /// A message was delivered.
    Delivered {
        /// Whose.
        origin: Peer,
        /// Its number.
        seq: u64,
        /// Its bytes.
        payload: Vec<u8>,
    },
    /// A slot is in conflict.
    Conflict(Conflict),
}

/// The machine of one life.
#[derive(Clone, Debug, Hash)]
pub struct Node {
    me: Peer,
    life: Incarnation,
    neb: Neb<PEERS, DEPTH>,
    /// Messages that were ordered and had no room in the window yet.
    owed: u32,
    made: u32,
    /// It was removed in an earlier life, or its memory is gone: it takes no part.
    retired: bool,
    /// The term of the last removal.
    term: Term,
}

impl Node {
    pub(super) fn new(run: &Broadcasts, seat: &mut Seat<'_, Event>) -> Self {
        if seat.life == Incarnation(1) {
            begin_behind(run, seat);
        } else if run.forgetful.contains(seat.me()) {
            forget(run, seat);
        }
        let (fabric, config, regions) = (&seat.fabric, run.config, run.regions);
        let neb = match config.form() {
            Form::Unsigned => Neb::attach(fabric, config, regions),
            Form::Signed => Neb::attach_signed(fabric, config, regions, run.keys(seat.me())),
        };
        let (me, life) = (seat.me(), seat.life);
        let retired = run.is_out(me, life);
        Self { me, life, neb, owed: 0, made: 0, retired, term: Term(0) }
    }

    /// Which life this is.
    pub(super) const fn life(&self) -> Incarnation {
        self.life
    }

    /// A member that takes no part lets the others in as well: where they wait for it, they read
    /// what it shows, which is nothing.
    pub(super) fn admit(&mut self, (peer, life): (Peer, Incarnation), seat: &mut Seat<'_, Event>) {
        if !self.neb.live().contains(peer) {
            return;
        }
        seat.fabric.admit(peer, life).expect("a later life is admitted");
        if !self.retired {
            self.neb.handle_admitted(peer);
        }
    }

    /// The manager has decided that `peer` is out, in a term of its own. A later manager repeats
    /// what was decided before its term, for those that hear of the two in the other order.
    pub(super) fn remove(&mut self, peer: Peer, seat: &mut Seat<'_, Event>) {
        if !self.neb.live().contains(peer) {
            return;
        }
        self.term = self.term.max(Term(1 + u64::from(peer.0)));
        let decision = Decision { term: self.term, removed: peer };
        self.neb.remove(&mut seat.fabric, decision).expect("a simulated peer is fenced at once");
    }

    pub(super) fn step(&mut self, seat: &mut Seat<'_, Event>) {
        let mut done = [Completion::NONE; BATCH];
        let count = seat.fabric.poll(seat.now, &mut done);
        for completion in &done[..count] {
            self.neb.handle_completion(&mut seat.fabric, seat.now, completion);
        }
        let ordered = seat.is_ordered();
        if self.retired {
            return;
        }
        self.owed += u32::from(ordered);
        if self.owed > 0 && seat.draw(2) == 0 {
            self.broadcast(seat);
        }
        self.neb.poll(&mut seat.fabric, seat.now);
        for _ in 0..TAKES {
            if !self.take(seat) {
                return;
            }
        }
    }

    /// One round of a liar that runs: it shows something, or tells the others all that it tells
    /// them. When each of them hears what is the fabric's choice.
    pub(super) fn lie(&mut self, run: &Broadcasts, seat: &mut Seat<'_, Event>) {
        let mut done = [Completion::NONE; BATCH];
        seat.fabric.poll(seat.now, &mut done);
        if !seat.is_ordered() {
            return;
        }
        let own = run.script.iter().filter(|lie| lie.by == self.me);
        for Lie { to, at, bytes, .. } in own.skip(self.made as usize) {
            self.made += 1;
            if *to == self.me {
                seat.fabric.memory().copy_in(at.region, at.offset, bytes);
                return;
            }
            let op = Op::Write { to: *at, bytes };
            let work = Work { id: WorkId(u64::MAX), op, flags: CompletionFlags::QUIET };
            // Whom it cannot reach it cannot lie to.
            let _gone = seat.fabric.post(*to, work);
        }
    }

    /// When this node wants to be stepped though nothing happens.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.neb.poll_timeout()
    }

    /// How far this node has delivered the messages of `origin`.
    pub(super) fn delivered(&self, origin: Peer) -> u64 {
        self.neb.standing(origin).map_or(0, |standing| standing.delivered)
    }

    /// Messages that wait for room.
    pub(super) const fn owed(&self) -> u32 {
        self.owed
    }

    /// Broadcasts as much as there is room for: one batch.
    fn broadcast(&mut self, seat: &mut Seat<'_, Event>) {
        while self.owed > 0 && self.neb.has_room() {
            let payload = payload(self.me, self.life, self.made);
            let staged = self.neb.stage(&seat.fabric, u64::from(self.made), &payload);
            let seq = staged.expect("it has room, and the message fits");
            self.made += 1;
            self.owed -= 1;
            seat.record(Event::Broadcast { seq, payload });
        }
        self.neb.flush(&mut seat.fabric);
    }

    fn take(&mut self, seat: &mut Seat<'_, Event>) -> bool {
        let event = match self.neb.take(&seat.fabric) {
            Some(Outcome::Delivered(message)) => {
                let payload = message.payload.to_vec();
                Event::Delivered { origin: message.origin, seq: message.seq, payload }
            }
            Some(Outcome::Conflict(conflict)) => Event::Conflict(conflict),
            None => return false,
        };
        seat.record(event);
        true
    }
}

/// A first life finds that every origin has broadcast as much as the run begins behind, and that
/// this member has delivered it.
fn begin_behind(run: &Broadcasts, seat: &Seat<'_, Event>) {
    if run.base == 0 {
        return;
    }
    for origin in (0..run.config.peers()).map(Peer) {
        let at = run.config.shown_at(&run.regions, origin, run.base);
        let cell = Progress { origin, delivered: run.base }.encode(crc32c);
        seat.fabric.memory().copy_in(at.region, at.offset, &cell);
    }
}

/// The memory of the last life is gone.
fn forget(run: &Broadcasts, seat: &Seat<'_, Event>) {
    for (region, spec) in (0..).map(Region).zip(run.layout.regions()) {
        seat.fabric.memory().copy_in(region, 0, &vec![0; spec.len as usize]);
    }
}

/// A message that names itself: who, in which life, its how-manieth, and a tail that follows.
pub(in crate::sim) fn payload(me: Peer, life: Incarnation, number: u32) -> Vec<u8> {
    let mut payload = Vec::with_capacity(usize::from(PAYLOAD_MAX));
    payload.extend(me.0.to_le_bytes());
    payload.extend(life.0.to_le_bytes());
    payload.extend(number.to_le_bytes());
    payload.extend((0..number % 29).map(|n| (n * 37 + number) as u8));
    payload
}

/// Whether `bytes` is a message that `origin` could have made.
pub(super) fn is_of(origin: Peer, bytes: &[u8]) -> bool {
    let Some((head, _)) = bytes.split_first_chunk::<10>() else {
        return false;
    };
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (life, number) = (Incarnation(word(2)), word(6));
    payload(origin, life, number) == bytes
}
