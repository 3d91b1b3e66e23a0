//! The choices of the fabric in an untimed world.

use weft_core::fabric::{Access, At, Failure};
use weft_core::ids::Peer;

use super::World;
use super::work::Gate;
use crate::flight::{Flight, FlightLoss, FlightStage, OwnedOp};

/// Something that the fabric may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// The first work of the pair that has not landed lands, or the rest of it.
    Land(Peer, Peer),
    /// The first write of the pair that has not landed lands, before earlier reads and atomics.
    Overtake(Peer, Peer),
    /// Some bytes of it arrive.
    Tear(Peer, Peer),
    /// The first work of the pair completes.
    Complete(Peer, Peer),
    /// The first stale work, counted from the oldest, lands or bounces.
    LandLate(usize),
    /// The pair is lost.
    Lose(Peer, Peer),
    /// The first work of the pair lands, and the pair is lost before that is reported.
    LandLost(Peer, Peer),
    /// A message arrives.
    Deliver(usize),
    /// A message is lost.
    Drop(usize),
    /// A message comes twice.
    Repeat(usize),
}

impl World {
    /// All choices without a fault, in a fixed order.
    #[must_use]
    pub fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        for from in self.peers() {
            for to in self.peers() {
                let pair = self.pair_ref(from, to);
                if pair.landing().is_some_and(|flight| self.gate(flight) != Gate::Waiting) {
                    choices.push(Choice::Land(from, to));
                }
                if self.overtaking(from, to).is_some() {
                    choices.push(Choice::Overtake(from, to));
                }
                if self.completes(from, to) {
                    choices.push(Choice::Complete(from, to));
                }
            }
        }
        choices.extend((0..self.stale.len()).map(Choice::LandLate));
        choices.extend((0..self.messages.len()).map(Choice::Deliver));
        choices
    }

    /// Whether [`Choice::Complete`] is one of them.
    pub(crate) fn completes(&self, from: Peer, to: Peer) -> bool {
        self.pair_ref(from, to).completing().is_some()
    }

    /// The write of the pair that may land before its earlier reads and atomics.
    fn overtaking(&self, from: Peer, to: Peer) -> Option<&Flight> {
        let pair = self.pair_ref(from, to);
        let flight = pair.overtaking().map(|at| &pair.flights[at])?;
        let (at, needs) = flight.load.target();
        // What the target denies it denies in its turn.
        let is_granted = !flight.wrong_key && self.layout.allows(at.region, from, needs);
        (is_granted && self.gate(flight) == Gate::Open).then_some(flight)
    }

    /// Whether the landing of a write that overtakes reads is visible to its target only.
    #[must_use]
    pub fn overtakes_unseen(&self, from: Peer, to: Peer) -> bool {
        self.overtaking(from, to).is_some_and(|flight| self.is_unseen(flight))
    }

    /// Whether the landing of the pair's next work is visible to its target only: it is a write
    /// without a completion, the last of its pair, to a place that no other peer can read.
    #[must_use]
    pub fn lands_unseen(&self, from: Peer, to: Peer) -> bool {
        let pair = self.pair_ref(from, to);
        let (Some(flight), Some(last)) = (pair.landing(), pair.flights.back()) else {
            return false;
        };
        flight.number == last.number
            && flight.quiet
            && !flight.wrong_key
            && self.is_unseen(flight)
            && self.gate(flight) == Gate::Open
    }

    /// Poster and target of the stale work with this index, counted from the oldest.
    #[must_use]
    pub fn stale_between(&self, index: usize) -> (Peer, Peer) {
        let flight = &self.stale[index];
        (flight.from.0, flight.to.0)
    }

    /// Whether the landing of the stale work with this index is visible to its target only: it and
    /// all works that land with it are writes to places that no other peer can read.
    #[must_use]
    pub fn lands_late_unseen(&self, index: usize) -> bool {
        let pair = self.stale_between(index);
        let of_pair = |at: &usize| self.stale_between(*at) == pair;
        (0..=index).filter(of_pair).all(|at| self.is_unseen(&self.stale[at]))
    }

    /// Whether the flight is a write to a place that only its target can read.
    fn is_unseen(&self, flight: &Flight) -> bool {
        let ((at, needs), shown) =
            (flight.load.target(), Access::REMOTE_READ | Access::REMOTE_ATOMIC);
        let is_shown = self.layout.spec(at.region).is_none_or(|spec| spec.access.intersects(shown));
        needs == Access::REMOTE_WRITE
            && !is_shown
            && self.layout.allows(at.region, flight.from.0, needs)
    }

    /// Whether the next work of the pair reports its completion.
    #[must_use]
    pub fn reports(&self, from: Peer, to: Peer) -> bool {
        self.pair_ref(from, to).landing().is_some_and(|flight| !flight.quiet)
    }

    /// Where the next work of the pair reads, if it is a read that finds its target.
    #[must_use]
    pub fn reads_next(&self, from: Peer, to: Peer) -> Option<At> {
        let flight = self.pair_ref(from, to).landing()?;
        let is_whole =
            self.is_alive(from) && !flight.wrong_key && flight.stage == FlightStage::Posted;
        match flight.load {
            OwnedOp::Read { from, .. } if is_whole && self.gate(flight) == Gate::Open => Some(from),
            _ => None,
        }
    }

    /// All faults of the work under way.
    #[must_use]
    pub fn fault_choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        for from in self.peers() {
            for to in self.peers() {
                let pair = self.pair_ref(from, to);
                let torn = |stage| stage == FlightStage::Posted;
                if pair.landing().is_some_and(|f| torn(f.stage) && self.pieces(&f.load) > 1) {
                    choices.push(Choice::Tear(from, to));
                }
                if from != to && !pair.flights.is_empty() {
                    choices.push(Choice::Lose(from, to));
                }
                let lands = |flight| self.gate(flight) == Gate::Open;
                if from != to && pair.landing().is_some_and(lands) {
                    choices.push(Choice::LandLost(from, to));
                }
            }
        }
        let messages = 0..self.messages.len();
        choices.extend(messages.flat_map(|at| [Choice::Drop(at), Choice::Repeat(at)]));
        choices
    }

    /// Executes `choice`.
    pub fn choose(&mut self, choice: Choice) {
        match choice {
            Choice::Land(from, to) => self.land(from, to),
            Choice::Overtake(from, to) => {
                let pair = self.pair(from, to);
                if let Some(at) = pair.overtaking() {
                    pair.flights[at].overtakes = true;
                    self.land(from, to);
                }
            }
            Choice::Tear(from, to) => self.tear(from, to),
            Choice::Complete(from, to) => self.complete(from, to),
            Choice::LandLate(index) => {
                let number = self.stale[index].number;
                self.land_late(number);
            }
            Choice::Lose(from, to) => {
                self.lose(from, to, FlightLoss::Unreported(Failure::DeadlinePassed));
            }
            Choice::LandLost(from, to) => {
                self.land(from, to);
                self.lose(from, to, FlightLoss::Unreported(Failure::Gone));
            }
            Choice::Deliver(index) => self.deliver_at(index),
            Choice::Drop(index) => self.drop_at(index),
            Choice::Repeat(index) => self.repeat_at(index),
        }
    }

    fn tear(&mut self, from: Peer, to: Peer) {
        let Some(flight) = self.pair_ref(from, to).landing().cloned() else {
            return;
        };
        if self.gate(&flight) == Gate::Open {
            self.begin_pieces(&flight);
            let torn = self.torn(&flight.load);
            self.memory(to).arrive(flight.number, Some(torn));
            self.memory(to).depart(flight.number, torn);
        }
    }
}
