//! Work: posted, landed, completed, or lost.

use weft_core::fabric::{Access, Completion, Failure, PostError, Posted, Work};
use weft_core::ids::{Incarnation, Peer};

use super::{DueEvent, ROOM, World};
use crate::fault::SimFault;
use crate::flight::{Flight, FlightLoss, FlightStage, OwnedOp};
use crate::shared::CopyOnWrite;

/// Whether work may take effect at its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    /// The target may still admit the poster.
    Waiting,
    Closed,
}

impl World {
    /// `me` posts; the fabric's part of [`weft_core::fabric::Fabric::post`].
    pub(crate) fn post(&mut self, me: Peer, to: Peer, work: &Work<'_>) -> Result<(), PostError> {
        work.op.check(&self.layout, to).map_err(PostError::Rejected)?;
        let place = &self.places[me.index()];
        let (incarnation, target) = (place.incarnation, place.admissions.open[to.index()]);
        if target == Incarnation(0) {
            return Err(PostError::Gone);
        }
        if self.outstanding(me) >= ROOM {
            return Err(PostError::Full);
        }
        if let Some(left) = self.refusal {
            self.refusal = left.checked_sub(1);
            if self.refusal.is_none() {
                return Err(PostError::Full);
            }
        }
        if let Some(strike) = self.faults.strikes(SimFault::FullQueue) {
            self.note(|| format!("fault {}: the queue of {me} is full", strike.number));
            return Err(PostError::Full);
        }
        if !self.places[me.index()].memory.fuse.acts() {
            return Ok(());
        }
        self.flights += 1;
        let mut flight = Flight::new(self.flights, (me, incarnation), (to, target), work, self.now);
        if self.may_stall(&flight) && self.gate_now(&flight) != Gate::Open {
            return Err(PostError::Gone);
        }
        if to != me
            && let Some(strike) = self.faults.strikes(SimFault::WrongKey)
        {
            flight.wrong_key = true;
            self.note(|| format!("fault {}: the next work has a wrong key", strike.number));
        }
        // What the target denies it denies in its turn.
        let (at, needs) = flight.load.target();
        let is_granted = !flight.wrong_key && self.layout.allows(at.region, me, needs);
        flight.overtakes = is_granted && flight.apart && self.draws_overtaking();
        let next = self.pair_ref(me, to).landing().map(|flight| flight.number);
        self.note(|| {
            let passes = if flight.overtakes { ", passes reads" } else { "" };
            format!("{me}.{incarnation} -> {to}: work {}, {}{passes}", flight.number, flight.load)
        });
        self.pair(me, to).flights.push_back(flight);
        if self.pair_ref(me, to).landing().map(|flight| flight.number) != next {
            self.plan_landing(me, to);
        }
        Ok(())
    }

    /// As [`Self::post`]; work that is the only one of its pair may end meanwhile (F-15).
    pub(crate) fn post_now(
        &mut self,
        me: Peer,
        to: Peer,
        work: &Work<'_>,
    ) -> Result<Posted, PostError> {
        let before = self.flights;
        self.post(me, to, work)?;
        let pair = self.pair_ref(me, to);
        let is_alone = self.flights > before && pair.flights.len() == 1;
        let is_cut = pair.cut || self.pair_ref(to, me).cut;
        let reaches = |flight| self.gate(flight) == Gate::Open;
        if !is_alone || is_cut || !pair.landing().is_some_and(reaches) || !self.draws_answer() {
            return Ok(Posted::Pending);
        }
        self.land(me, to);
        // Faults strike here as well: it may be torn, or its pair lost.
        let stage = self.pair_ref(me, to).completing().map(|flight| flight.stage);
        let Some(FlightStage::Landed(old)) = stage else { return Ok(Posted::Pending) };
        self.pair(me, to).flights.pop_front();
        self.note(|| format!("work {} is answered at once", before + 1));
        Ok(Posted::Ended(Ok(old)))
    }

    /// Works of `peer` that have not been polled to their end.
    pub(super) fn outstanding(&self, peer: Peer) -> usize {
        let pairs = self.peers().map(|to| self.pair_ref(peer, to).flights.len());
        self.places[peer.index()].done.len() + pairs.sum::<usize>()
    }

    /// The first completions of `me`, as many as there are and fit.
    pub(crate) fn poll(&mut self, me: Peer, done: &mut [Completion]) -> usize {
        let queue = &mut self.places[me.index()].done;
        let count = done.len().min(queue.len());
        for (place, completion) in done.iter_mut().zip(queue.drain(..count)) {
            *place = completion;
        }
        count
    }

    /// Whether its poster looked at the gate when it posted, and may be anywhere before the copy.
    fn may_stall(&self, flight: &Flight) -> bool {
        let (_, needs) = flight.load.target();
        self.stalling && flight.from.0 != flight.to.0 && needs != Access::REMOTE_READ
    }

    /// Whether `peer` stalls inside a post.
    pub(crate) fn is_stalled(&self, peer: Peer) -> bool {
        let stalls = |to| {
            let flights = &self.pair_ref(peer, to).flights;
            flights.iter().any(|flight| !flight.is_landed() && self.may_stall(flight))
        };
        self.stalling && self.is_alive(peer) && self.peers().any(stalls)
    }

    pub(super) fn gate(&self, flight: &Flight) -> Gate {
        if !self.may_stall(flight) {
            return self.gate_now(flight);
        }
        // Its process has passed the gate. A target that fences it has killed it and waited.
        let target = &self.places[flight.to.0.index()];
        let earliest = target.admissions.earliest[flight.from.0.index()];
        let fenced = target.alive && earliest > flight.from.1;
        if fenced { Gate::Closed } else { Gate::Open }
    }

    fn gate_now(&self, flight: &Flight) -> Gate {
        let (from, to) = (flight.from, flight.to);
        let target = &self.places[to.0.index()];
        let admissions = &target.admissions;
        let shut = admissions.earliest[from.0.index()] > from.1 || target.incarnation != to.1;
        // What a peer that just died leaves behind is still reached for a while.
        let reached = target.alive || self.now < target.died_at;
        if shut || !reached {
            Gate::Closed
        } else if admissions.admitted[from.0.index()] == from.1 {
            Gate::Open
        } else {
            Gate::Waiting
        }
    }

    /// The event of a landing, unless the pair was lost meanwhile.
    pub(super) fn land_if(&mut self, from: Peer, to: Peer, number: u64) {
        if self.pair_ref(from, to).landing().is_some_and(|flight| flight.number == number) {
            self.land(from, to);
        }
    }

    /// The next flight of the pair lands, or one more piece of it.
    pub(super) fn land(&mut self, from: Peer, to: Peer) {
        let Some(flight) = self.pair_ref(from, to).landing().cloned() else {
            return;
        };
        if self.pair_ref(from, to).cut {
            return self.plan_expiry(from, to, flight.number, flight.posted_at);
        }
        match self.gate(&flight) {
            Gate::Open => {}
            Gate::Waiting => return self.plan_expiry(from, to, flight.number, flight.posted_at),
            Gate::Closed => return self.lose(from, to, FlightLoss::Reported(Failure::Gone)),
        }
        let (at, needs) = flight.load.target();
        if flight.wrong_key || !self.layout.allows(at.region, from, needs) {
            self.note(|| format!("work {} is denied", flight.number));
            return self.lose(from, to, FlightLoss::Reported(Failure::AccessDenied));
        }
        if flight.stage == FlightStage::Posted && self.begins_torn(&flight) {
            return;
        }
        let outcome = self.finish_landing(&flight);
        self.settle_landing(&flight, outcome);
    }

    /// Whether the flight begins to arrive piece by piece.
    fn begins_torn(&mut self, flight: &Flight) -> bool {
        let (from, to) = (flight.from.0, flight.to.0);
        if self.pieces(&flight.load) < 2 {
            return false;
        }
        let Some(strike) = self.faults.strikes(SimFault::Torn) else {
            return false;
        };
        self.note(|| format!("fault {}: work {} is torn", strike.number, flight.number));
        self.begin_pieces(flight);
        let spread = strike.amount(200, 40_000);
        if let Some(flight) = self.pair(from, to).landing_mut() {
            flight.spread = spread;
        }
        self.plan_piece(flight, spread);
        true
    }

    /// The next piece of a torn flight moves within `spread` nanoseconds.
    fn plan_piece(&mut self, flight: &Flight, spread: u64) {
        let (from, to) = (flight.from.0, flight.to.0);
        let after = self.span(100, spread);
        self.schedule(after, DueEvent::Land { from, to, flight: flight.number });
    }

    /// The bytes of the flight are on their way, none of them there yet.
    pub(super) fn begin_pieces(&mut self, flight: &Flight) {
        let (from, to) = (flight.from.0, flight.to.0);
        let order = self.disorder(&flight.load);
        let target = self.memory(to);
        match &flight.load {
            OwnedOp::Write { to, bytes } => {
                target.begin_arrival(flight.number, from, *to, bytes, order);
            }
            OwnedOp::WriteFrom { to, from: mine, len } => {
                let bytes = self.memory(from).peek(*mine, *len as usize);
                target.begin_arrival(flight.number, from, *to, &bytes, order);
            }
            OwnedOp::Read { from, len, .. } => {
                target.begin_departure(flight.number, *from, *len as usize, order);
            }
            OwnedOp::FetchAdd { .. } | OwnedOp::CompareSwap { .. } => {}
        }
        if let Some(flight) = self.pair(from, to).landing_mut() {
            flight.stage = FlightStage::Landing;
        }
    }

    /// The flight takes effect; returns the old value of an atomic.
    fn finish_landing(&mut self, flight: &Flight) -> Option<u64> {
        let (from, to) = (flight.from.0, flight.to.0);
        let target = self.memory(to);
        let piecemeal = flight.stage == FlightStage::Landing && self.timing.is_some();
        if piecemeal && self.has_more_pieces(flight) {
            return None;
        }
        let target_word = |at| target.word(at);
        match &flight.load {
            OwnedOp::Write { .. } | OwnedOp::WriteFrom { .. }
                if flight.stage == FlightStage::Landing =>
            {
                target.arrive(flight.number, None);
                Some(0)
            }
            OwnedOp::Write { to, bytes } => {
                target.poke(*to, bytes);
                Some(0)
            }
            OwnedOp::WriteFrom { to, from: mine, len } => {
                target.poke(*to, &self.memory(from).peek(*mine, *len as usize));
                Some(0)
            }
            OwnedOp::Read { from: there, into, len } => {
                let torn = target.end_departure(flight.number);
                let bytes = torn.unwrap_or_else(|| target.peek(*there, *len as usize));
                self.memory(from).poke(*into, &bytes);
                Some(0)
            }
            OwnedOp::FetchAdd { at, add } => {
                let old = target_word(*at);
                target.poke(*at, &old.wrapping_add(*add).to_le_bytes());
                Some(old)
            }
            OwnedOp::CompareSwap { at, expected, new } => {
                let old = target_word(*at);
                if old == *expected {
                    target.poke(*at, &new.to_le_bytes());
                }
                Some(old)
            }
        }
    }

    /// One more piece of a torn flight moves, and it is not the last one.
    fn has_more_pieces(&self, flight: &Flight) -> bool {
        let target = self.memory(flight.to.0);
        let quarter = self.pieces(&flight.load).div_ceil(4);
        match flight.load {
            OwnedOp::Read { .. } => target.depart(flight.number, quarter),
            _ => target.arrive(flight.number, Some(quarter)),
        }
        target.is_under_way(flight.number)
    }

    fn settle_landing(&mut self, flight: &Flight, outcome: Option<u64>) {
        let (from, to) = (flight.from.0, flight.to.0);
        let Some(mut old) = outcome else {
            return self.plan_piece(flight, flight.spread);
        };
        if matches!(flight.load, OwnedOp::FetchAdd { .. })
            && let Some(strike) = self.faults.strikes(SimFault::DamagedAnswer)
        {
            self.note(|| format!("fault {}: work {} answers -1", strike.number, flight.number));
            old = u64::MAX;
        }
        self.note(|| format!("work {} has landed, old value {old:#x}", flight.number));
        if let Some(flight) = self.pair(from, to).landing_mut() {
            flight.stage = FlightStage::Landed(old);
        }
        let first = self.pair_ref(from, to).completing().map(|first| first.number);
        if from != to
            && let Some(strike) = self.faults.strikes(SimFault::LostCompletion)
        {
            self.note(|| format!("fault {}: and the pair is lost with it", strike.number));
            return self.lose(from, to, FlightLoss::Unreported(Failure::Gone));
        }
        if first == Some(flight.number) {
            self.plan_completion(from, to);
        }
        self.plan_landing(from, to);
    }

    /// The event of a completion, unless the pair was lost meanwhile.
    pub(super) fn complete_if(&mut self, from: Peer, to: Peer, number: u64) {
        let first = self.pair_ref(from, to).completing();
        if first.is_some_and(|flight| flight.number == number) {
            self.complete(from, to);
        }
    }

    /// The first flight of the pair, which has landed, completes.
    pub(super) fn complete(&mut self, from: Peer, to: Peer) {
        if self.pair_ref(to, from).cut && self.pair_ref(from, to).completing().is_some() {
            return self.plan_completion(from, to);
        }
        let Some(flight) = self.pair(from, to).flights.pop_front() else {
            return;
        };
        if let FlightStage::Landed(old) = flight.stage
            && !flight.quiet
        {
            self.report(&flight, Ok(old));
        }
        self.plan_completion(from, to);
    }

    fn report(&mut self, flight: &Flight, outcome: Result<u64, Failure>) {
        let (from, incarnation) = flight.from;
        let place = &mut self.places[from.index()];
        if place.alive && place.incarnation == incarnation {
            place.done.push_back(Completion { id: flight.id, peer: flight.to.0, outcome });
            if outcome.is_err() {
                self.note(|| format!("work {} fails: {outcome:?}", flight.number));
            }
        }
    }

    pub(super) fn expire(&mut self, from: Peer, to: Peer, number: u64) {
        if self.pair_ref(from, to).flights.iter().any(|flight| flight.number == number) {
            self.lose(from, to, FlightLoss::Unreported(Failure::DeadlinePassed));
        }
    }

    /// The pair is lost: everything open in it ends now (F-6), and may take effect later.
    pub(super) fn lose(&mut self, from: Peer, to: Peer, loss: FlightLoss) {
        self.note(|| format!("{from} loses its pair with {to}"));
        let (reason, reported) = match loss {
            FlightLoss::Reported(reason) => (reason, true),
            FlightLoss::Unreported(reason) => (reason, false),
        };
        let mut reason = Some(reason);
        for flight in std::mem::take(&mut self.pair(from, to).flights) {
            match flight.stage {
                // Behind the first failure nothing is known to have succeeded.
                FlightStage::Landed(old) if reported && reason.is_some() => {
                    if !flight.quiet {
                        self.report(&flight, Ok(old));
                    }
                    continue;
                }
                FlightStage::Posted | FlightStage::Landing | FlightStage::Landed(_) => {}
            }
            let reason = reason.take().unwrap_or(Failure::Gone);
            self.report(&flight, Err(reason));
            if !flight.is_landed() && reason != Failure::AccessDenied {
                self.linger(flight);
            }
        }
        self.places[from.index()].admissions.change().open[to.index()] = Incarnation(0);
        self.losses.push((from, to));
    }

    /// The flight belongs to no pair any more; it may land until its target fences the poster.
    pub(super) fn linger(&mut self, flight: Flight) {
        // The copies of a process end with it.
        if flight.wrong_key || self.may_stall(&flight) {
            return;
        }
        if self.timing.is_none() && matches!(flight.load, OwnedOp::Read { .. }) {
            // Whenever it lands, its result is unused.
            self.memory(flight.to.0).end_departure(flight.number);
            return;
        }
        let after = self.span(1_000, 30_000_000);
        self.schedule(after, DueEvent::Late { flight: flight.number });
        self.stale.change().push(flight);
    }

    /// Stale flights up to this one, of its pair, land or bounce, in posting order (F-1).
    pub(super) fn land_late(&mut self, number: u64) {
        let Some(found) = self.stale.iter().find(|flight| flight.number == number).cloned() else {
            return;
        };
        let is_due = |flight: &Flight| {
            flight.from == found.from && flight.to == found.to && flight.number <= number
        };
        let (due, rest) = self.stale.iter().cloned().partition(is_due);
        self.stale = CopyOnWrite::new(rest);
        let due: Vec<Flight> = due;
        for flight in due {
            self.land_stale(flight);
        }
    }

    /// Stale flights that bounce whenever they land are gone.
    pub(crate) fn drop_bouncing(&mut self) {
        let is_open = |flight: &Flight| self.gate(flight) != Gate::Closed;
        let (open, closed): (Vec<_>, Vec<_>) = self.stale.iter().cloned().partition(is_open);
        for flight in &closed {
            self.memory(flight.to.0).drop_arrival(flight.number);
        }
        if !closed.is_empty() {
            self.stale = CopyOnWrite::new(open);
        }
    }

    fn land_stale(&mut self, mut flight: Flight) {
        let (at, needs) = flight.load.target();
        let allowed = self.layout.allows(at.region, flight.from.0, needs);
        let target = self.memory(flight.to.0);
        if matches!(flight.load, OwnedOp::Read { .. }) {
            // Its result is unused.
            target.end_departure(flight.number);
            return;
        }
        if self.gate(&flight) != Gate::Open || !allowed {
            target.drop_arrival(flight.number);
            self.note(|| format!("work {}, late, bounces", flight.number));
            return;
        }
        if flight.stage == FlightStage::Landing {
            self.memory(flight.to.0).arrive(flight.number, None);
        } else {
            flight.stage = FlightStage::Posted;
            self.finish_landing(&flight);
        }
        self.note(|| format!("work {} lands late", flight.number));
    }
}
