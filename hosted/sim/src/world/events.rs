//! What is due when, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weft_core::fabric::Placement;
use weft_core::ids::{Incarnation, Peer};

use super::World;
use crate::draws::{Draws, Purpose};
use crate::fault::SimFault;
use crate::flight::OwnedOp;
use crate::memory::Piece;

/// Something that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DueEvent {
    /// The flight lands, or a piece of it.
    Land { from: Peer, to: Peer, flight: u64 },
    /// The flight completes.
    Complete { from: Peer, to: Peer, flight: u64 },
    /// The flight has taken too long (F-12).
    Expire { from: Peer, to: Peer, flight: u64 },
    /// A flight of a lost pair lands after all.
    Late { flight: u64 },
    /// What `from` posts reaches `to` again.
    Heal { from: Peer, to: Peer },
    /// A message of the message port arrives.
    Deliver { message: u64 },
    /// Nothing of the fabric: for who runs the nodes.
    Timer(RunnerTimer),
}

/// What the runner of the nodes wants to be called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RunnerTimer {
    /// One round of a node's loop, if that incarnation still lasts.
    Step { peer: Peer, incarnation: Incarnation },
    /// That incarnation ends.
    Kill { peer: Peer, incarnation: Incarnation },
    /// `by` fences that incarnation of `peer`.
    Fence { by: Peer, peer: Peer, incarnation: Incarnation },
    /// A new incarnation begins.
    Birth { peer: Peer },
    /// The two admit each other, if they have not.
    Join { one: Peer, other: Peer },
    /// The liar may lie.
    Lie { peer: Peer, incarnation: Incarnation },
    /// Faults end.
    Calm,
    /// The effects of faults are repaired: all peers get work once more.
    LastOrders,
}

/// The queue of everything due.
#[derive(Clone, Debug)]
pub(super) struct EventQueue {
    heap: BinaryHeap<Reverse<(u64, u64, DueEvent)>>,
    sequence: u64,
    draws: Draws,
    overtaking: Draws,
    promises: Draws,
    /// The deadline of every work (F-12), in nanoseconds.
    deadline: u64,
}

impl EventQueue {
    pub(super) fn new(seed: u64, deadline: u64) -> Self {
        let draws = Draws::new(seed, Purpose::Schedule);
        let overtaking = Draws::new(seed, Purpose::Overtaking);
        let promises = Draws::numbered(seed, Purpose::Promises, 1 << 32);
        Self { heap: BinaryHeap::new(), sequence: 0, draws, overtaking, promises, deadline }
    }
}

impl World {
    /// `due` happens `after` nanoseconds from now. Untimed worlds have no future.
    pub(crate) fn schedule(&mut self, after: u64, due: DueEvent) {
        let at = self.now.saturating_add(after);
        if let Some(timing) = &mut self.timing {
            timing.sequence += 1;
            timing.heap.push(Reverse((at, timing.sequence, due)));
        }
    }

    /// Lets time pass to the next thing due; a timer is handed out. Nothing when none is left.
    pub(crate) fn advance(&mut self) -> Option<Option<RunnerTimer>> {
        let Reverse((at, _, due)) = self.timing.as_mut()?.heap.pop()?;
        self.now = self.now.max(at);
        match due {
            DueEvent::Land { from, to, flight } => self.land_if(from, to, flight),
            DueEvent::Complete { from, to, flight } => self.complete_if(from, to, flight),
            DueEvent::Expire { from, to, flight } => self.expire(from, to, flight),
            DueEvent::Late { flight } => self.land_late(flight),
            DueEvent::Heal { from, to } => self.heal(from, to),
            DueEvent::Deliver { message } => self.deliver(message),
            DueEvent::Timer(timer) => return Some(Some(timer)),
        }
        Some(None)
    }

    /// A duration from `low` to `high` nanoseconds; the shortest in an untimed world.
    pub(super) fn span(&mut self, low: u64, high: u64) -> u64 {
        self.timing.as_mut().map_or(low, |timing| timing.draws.between(low, high))
    }

    /// Whether a write that may overtake reads and atomics does. An explorer chooses that.
    pub(super) fn draws_overtaking(&mut self) -> bool {
        self.timing.as_mut().is_some_and(|timing| timing.overtaking.chance(1, 2))
    }

    /// The order in which the pieces of `load` move, the last first. Words that are promised (F-14)
    /// move whole, and the last one behind all others.
    pub(super) fn disorder(&mut self, load: &OwnedOp) -> Vec<Piece> {
        let (grain, len) = (self.grain(load), load.len());
        let lead = load.target().0.offset as usize % grain;
        let starts = (0..lead + len).step_by(grain);
        let mut order: Vec<Piece> = starts
            .map(|start| start.saturating_sub(lead)..(start + grain - lead).min(len))
            .collect();
        let first = usize::from(grain > 1 && !order.is_empty());
        if grain > 1 {
            order.rotate_right(first);
        }
        if let Some(timing) = &mut self.timing {
            timing.draws.shuffle(&mut order[first..]);
        }
        order
    }

    /// How many pieces of `load` move before the rest in an untimed world: half of the bytes; all
    /// words but the first and the last, which is as much as can arrive before the last.
    pub(super) fn torn(&self, load: &OwnedOp) -> usize {
        let pieces = self.pieces(load);
        if self.grain(load) > 1 && pieces > 2 { pieces - 2 } else { pieces / 2 }
    }

    /// How many pieces `load` moves in, if it begins with a word.
    pub(super) fn pieces(&self, load: &OwnedOp) -> usize {
        load.len().div_ceil(self.grain(load))
    }

    /// Bytes of `load` that move at once.
    fn grain(&self, load: &OwnedOp) -> usize {
        let at = load.target().0.offset as usize;
        let is_promised = match load {
            OwnedOp::Write { .. } => true,
            OwnedOp::Read { .. } => at % 8 + load.len() <= 8,
            _ => false,
        };
        let is_promised = is_promised && self.promises.placement == Placement::WholeWords;
        if is_promised { 8 } else { 1 }
    }

    /// Whether the work of the pair that was just posted, and is its only one, ends while it is
    /// posted.
    pub(super) fn draws_answer(&mut self) -> bool {
        let drawn = |timing: &mut EventQueue| timing.promises.chance(3, 4);
        self.promises.answers && self.timing.as_mut().is_none_or(drawn)
    }

    /// The next flight of the pair lands, or the next piece of it.
    pub(super) fn plan_landing(&mut self, from: Peer, to: Peer) {
        let Some(flight) = self.pair_ref(from, to).landing() else {
            return;
        };
        let (number, posted_at) = (flight.number, flight.posted_at);
        if self.pair_ref(from, to).cut {
            return self.plan_expiry(from, to, number, posted_at);
        }
        let mut after = self.span(300, 2_500);
        if let Some(strike) = self.faults.strikes(SimFault::SlowLanding) {
            after = strike.amount(5_000, 6_000_000);
            self.note(|| format!("fault {}: work {number} lands late", strike.number));
        }
        self.schedule(after, DueEvent::Land { from, to, flight: number });
        self.expire_before(after, from, to, (number, posted_at));
    }

    /// The completion of the first flight of the pair, if it has landed.
    pub(super) fn plan_completion(&mut self, from: Peer, to: Peer) {
        let Some(flight) = self.pair_ref(from, to).completing() else {
            return;
        };
        let (number, posted_at) = (flight.number, flight.posted_at);
        if self.pair_ref(to, from).cut {
            return self.plan_expiry(from, to, number, posted_at);
        }
        let mut after = self.span(200, 1_500);
        if let Some(strike) = self.faults.strikes(SimFault::SlowCompletion) {
            after = strike.amount(5_000, 6_000_000);
            self.note(|| format!("fault {}: work {number} completes late", strike.number));
        }
        self.schedule(after, DueEvent::Complete { from, to, flight: number });
        self.expire_before(after, from, to, (number, posted_at));
    }

    fn expire_before(&mut self, after: u64, from: Peer, to: Peer, flight: (u64, u64)) {
        let (number, posted_at) = flight;
        let deadline = self.timing.as_ref().map_or(u64::MAX, |timing| timing.deadline);
        if self.now + after > posted_at.saturating_add(deadline) {
            self.plan_expiry(from, to, number, posted_at);
        }
    }

    /// The flight does not stay open forever.
    pub(super) fn plan_expiry(&mut self, from: Peer, to: Peer, flight: u64, posted_at: u64) {
        let deadline = self.timing.as_ref().map_or(u64::MAX, |timing| timing.deadline);
        let after = posted_at.saturating_add(deadline).saturating_sub(self.now);
        self.schedule(after, DueEvent::Expire { from, to, flight });
    }
}
