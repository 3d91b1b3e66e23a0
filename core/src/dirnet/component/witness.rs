//! The second observer: probes a suspect at the request of another member.
//!
//! It keeps one errand for each pair of asker and suspect, at most as many as there are
//! nodes; a request beyond that is refused, and repeated when the asker's window ends.

use super::Component;
use crate::dirnet::{Members, Message, Reject, Seat, Seen};
use crate::ids::Rank;
use crate::time::{Duration, Instant};

/// What one member has asked this component about one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Errand {
    asker: Rank,
    suspect: Rank,
    asked_as: u32,
    /// Number of the probe, from this component's own count.
    probe: u32,
    seen: Seen,
    pub(super) due: Instant,
}

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    pub(super) fn handle_witness(
        &mut self,
        now: Instant,
        asker: Rank,
        node: Rank,
        asked_as: u32,
    ) -> Result<(), Reject> {
        if node == self.me() || !self.config.others().contains(node) || node == asker {
            return Err(Reject::BadSubject);
        }
        let due = now.after(Duration(self.timing().delay.0.saturating_mul(2)));
        let is_same = |errand: &Errand| {
            errand.suspect == node
                && (errand.asker == asker || crate::dirnet::LAST_ASKER_COUNTS.is_planted())
        };
        let same = self.errands.iter().position(|it| it.as_ref().is_some_and(is_same));
        let free = || self.errands.iter().position(Option::is_none);
        let index = same.or_else(free).ok_or(Reject::Busy)?;
        self.round = self.round.wrapping_add(1);
        let probe = self.round;
        let seen = Seen::default();
        self.errands[index] = Some(Errand { asker, suspect: node, asked_as, probe, seen, due });
        for seat in [Seat::Component, Seat::ImAliveTask] {
            self.send(Members::only(node), seat, Message::Probe { round: probe });
        }
        Ok(())
    }

    pub(super) fn handle_alive(
        &mut self,
        from: Rank,
        seat: Seat,
        round: u32,
    ) -> Result<(), Reject> {
        let is_asked = |errand: &Errand| errand.suspect == from && errand.probe == round;
        let asked = self.errands.iter().position(|it| it.as_ref().is_some_and(is_asked));
        let (index, errand) = asked
            .and_then(|index| Some((index, self.errands[index].as_mut()?)))
            .ok_or(Reject::Late)?;
        match seat {
            Seat::Component => errand.seen.component = true,
            Seat::ImAliveTask => errand.seen.task = true,
        }
        if errand.seen.component {
            self.testify(index);
        }
        Ok(())
    }

    /// Sends the testimonies that are due, as long as there is room for them.
    pub(super) fn handle_errand_deadlines(&mut self, now: Instant) {
        for index in 0..self.errands.len() {
            let is_due = self.errands[index].is_some_and(|errand| errand.due <= now);
            if is_due && self.outputs.has_room() {
                self.testify(index);
            }
        }
    }

    /// Sends the observation to the asker.
    fn testify(&mut self, index: usize) {
        let Some(errand) = self.errands[index].take() else { return };
        let Errand { asker, suspect: node, asked_as: round, seen, .. } = errand;
        let testimony = Message::Testimony { node, round, seen };
        self.send(Members::only(asker), Seat::Component, testimony);
    }
}
