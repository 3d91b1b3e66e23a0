//! One incarnation of a peer: its machine, and the messages that it still has to broadcast.

use weft_core::decision::Decision;
use weft_core::fabric::{Completion, CompletionFlags, Fabric, Memory, Op, Region, Work, WorkId};
use weft_core::ids::{Incarnation, Peer, PeerSet, Term};
use weft_core::neb::{Conflict, Neb, Outcome, begin_epoch};
use weft_core::time::Instant;
use weft_core::wire::broadcast::Form;
use weft_core::wire::{Progress, crc32c};

use super::{Broadcasts, DEPTH, Lie, PAYLOAD_MAX, PEERS};
use crate::protocol::Seat;

/// Completions that one round handles.
const BATCH: usize = 4;
/// Outcomes that one round takes.
const TAKES: usize = 4;

/// What a node observes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NebEvent {
    /// A message has its number, which no other message gets.
    Broadcast {
        /// Its number.
        seq: u64,
        /// Its bytes.
        payload: Vec<u8>,
    },
    /// A message was delivered.
    Delivered {
        /// The origin.
        origin: Peer,
        /// Its number.
        seq: u64,
        /// Its bytes.
        payload: Vec<u8>,
    },
    /// A slot is in conflict.
    Conflict(Conflict),
}

/// The machine of one incarnation.
#[derive(Clone, Debug, Hash)]
pub struct NebNode {
    me: Peer,
    incarnation: Incarnation,
    neb: Neb<PEERS, DEPTH>,
    /// Messages that were ordered and had no room in the window yet.
    owed: u32,
    made: u32,
    /// The members whose first epochs were removed by decision.
    decided: PeerSet,
    /// The term of the last removal.
    term: Term,
}

impl NebNode {
    pub(super) fn new(run: &Broadcasts, seat: &mut Seat<'_, NebEvent>) -> Self {
        let (me, incarnation) = (seat.me(), seat.incarnation);
        if incarnation == Incarnation(1) {
            begin_behind(run, seat);
        } else if run.forgetful.contains(me) && incarnation == Incarnation(2) {
            forget(run, seat);
        }
        let epoch = run.epoch(me, incarnation);
        begin_epoch(&seat.fabric, run.config, run.regions, epoch).expect("an early epoch");
        let (fabric, config, regions) = (&seat.fabric, run.config, run.regions);
        let neb = match config.form() {
            Form::Unsigned => Neb::attach(fabric, config, regions),
            Form::Signed => Neb::attach_signed(fabric, config, regions, run.keys(me)),
        };
        let (decided, term) = (PeerSet::EMPTY, Term::of_epoch(0));
        let mut node = Self { me, incarnation, neb, owed: 0, made: 0, decided, term };
        // What was decided so far is in the database.
        for peer in run.doomed.without(PeerSet::only(me)).iter() {
            if incarnation > Incarnation(1)
                && seat.fabric.world().incarnation(peer) > Incarnation(1)
            {
                node.remove(peer, seat);
            }
        }
        node
    }

    /// Which peer this is.
    pub(super) const fn me(&self) -> Peer {
        self.me
    }

    /// Whether one of `liars` takes part in a later epoch than its first, as far as this node
    /// knows.
    pub(super) fn counts_return_of(&self, liars: PeerSet) -> bool {
        let has_returned = |peer| self.neb.epoch(peer) > Incarnation(1);
        liars.iter().any(|peer| has_returned(peer) && self.neb.live().contains(peer))
    }

    /// Whether it takes part.
    pub(super) const fn is_open(&self) -> bool {
        self.neb.is_open()
    }

    /// Its incarnation.
    pub(super) const fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    pub(super) fn admit(
        &mut self,
        run: &Broadcasts,
        (peer, incarnation): (Peer, Incarnation),
        seat: &mut Seat<'_, NebEvent>,
    ) {
        let epoch = run.epoch(peer, incarnation);
        self.neb.handle_epoch(&seat.fabric, peer, epoch).expect("an early epoch");
        if run.is_signed() {
            let public = run.keys(peer).own.verifying_key().to_bytes();
            self.neb.learn_key(peer, &public).expect("the only key of that peer");
        }
        if epoch > Incarnation(1) && run.doomed.contains(peer) {
            self.decided.insert(peer);
        }
        seat.fabric.admit(peer, incarnation).expect("a later incarnation is admitted");
        self.neb.handle_admitted(peer);
    }

    /// Executes all decisions again.
    pub(super) fn remove_again(&mut self, seat: &mut Seat<'_, NebEvent>) {
        self.decided.iter().for_each(|peer| self.remove(peer, seat));
    }

    /// The manager has decided to remove `peer`, in a term of its own. A later manager repeats
    /// earlier decisions, for members that learn of the two in the other order.
    pub(super) fn remove(&mut self, peer: Peer, seat: &mut Seat<'_, NebEvent>) {
        self.decided.insert(peer);
        if !self.neb.live().contains(peer) {
            return;
        }
        self.term = self.term.max(Term::of_epoch(1 + u32::from(peer.0)));
        let decision = Decision { term: self.term, removed: peer, last: Incarnation(1) };
        self.neb.remove(&mut seat.fabric, decision).expect("a simulated peer is fenced at once");
    }

    pub(super) fn step(&mut self, seat: &mut Seat<'_, NebEvent>) {
        let mut done = [Completion::NONE; BATCH];
        let count = seat.fabric.poll(seat.now, &mut done);
        for completion in &done[..count] {
            self.neb.handle_completion(&mut seat.fabric, seat.now, completion);
        }
        let ordered = seat.is_ordered();
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

    /// One round of a running liar: it shows something, or sends the others all its messages. The
    /// fabric chooses when each of them arrives.
    pub(super) fn lie(&mut self, run: &Broadcasts, seat: &mut Seat<'_, NebEvent>) {
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
            // It cannot lie to a peer that it does not reach.
            let _gone = seat.fabric.post(*to, work);
        }
    }

    /// When to step this node if no event comes before.
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

    /// Broadcasts one batch, as large as the window allows.
    fn broadcast(&mut self, seat: &mut Seat<'_, NebEvent>) {
        while self.owed > 0 && self.neb.has_room() {
            let payload = payload(self.me, self.incarnation, self.made);
            let staged = self.neb.stage(&seat.fabric, u64::from(self.made), &payload);
            let seq = staged.expect("it has room, and the message fits");
            self.made += 1;
            self.owed -= 1;
            seat.record(NebEvent::Broadcast { seq, payload });
        }
        self.neb.flush(&mut seat.fabric);
    }

    fn take(&mut self, seat: &mut Seat<'_, NebEvent>) -> bool {
        let event = match self.neb.take(&seat.fabric) {
            Some(Outcome::Delivered(message)) => {
                let payload = message.payload.to_vec();
                NebEvent::Delivered { origin: message.origin, seq: message.seq, payload }
            }
            Some(Outcome::Conflict(conflict)) => NebEvent::Conflict(conflict),
            None => return false,
        };
        seat.record(event);
        true
    }
}

/// Prepares the memory of a first incarnation: every origin has broadcast the messages before the
/// run begins, and this member has delivered them.
fn begin_behind(run: &Broadcasts, seat: &Seat<'_, NebEvent>) {
    if run.base == 0 {
        return;
    }
    for origin in (0..run.config.peers()).map(Peer) {
        let at = run.config.shown_at(&run.regions, origin, run.base);
        let cell = Progress { origin, delivered: run.base }.encode(crc32c);
        seat.fabric.memory().copy_in(at.region, at.offset, &cell);
    }
}

/// The memory of the last incarnation is gone.
fn forget(run: &Broadcasts, seat: &Seat<'_, NebEvent>) {
    for (region, spec) in (0..).map(Region).zip(run.layout.regions()) {
        seat.fabric.memory().copy_in(region, 0, &vec![0; spec.len as usize]);
    }
}

/// A message that names itself: origin, incarnation, number, and a tail that follows from them.
pub(crate) fn payload(me: Peer, incarnation: Incarnation, number: u32) -> Vec<u8> {
    let mut payload = Vec::with_capacity(usize::from(PAYLOAD_MAX));
    payload.extend(me.0.to_le_bytes());
    payload.extend(incarnation.0.to_le_bytes());
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
    let (incarnation, number) = (Incarnation(word(2)), word(6));
    payload(origin, incarnation, number) == bytes
}
