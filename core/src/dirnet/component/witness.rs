//! The second observer: looks for a suspect because somebody else asks.

use super::Component;
use crate::dirnet::{Members, Message, Reject, Seat, Seen};
use crate::ids::Rank;
use crate::time::{Duration, Instant};

/// What was asked of this component about one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Errand {
    asker: Rank,
    asked_as: u32,
    /// Names the probe; this component's own count.
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
        self.round = self.round.wrapping_add(1);
        let probe = self.round;
        let due = now.after(Duration(self.timing().delay.0.saturating_mul(2)));
        let errand = Errand { asker, asked_as, probe, seen: Seen::default(), due };
        if let Some(fellow) = self.fellow_mut(node) {
            fellow.errand = Some(errand);
        }
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
        let Some(fellow) = self.fellow_mut(from) else { return Err(Reject::UnknownSender) };
        let Some(errand) = fellow.errand.as_mut().filter(|errand| errand.probe == round) else {
            return Err(Reject::Late);
        };
        match seat {
            Seat::Component => errand.seen.component = true,
            Seat::ImAliveTask => errand.seen.task = true,
        }
        if errand.seen.component {
            self.testify(from);
        }
        Ok(())
    }

    /// Tells the asker who answered.
    pub(super) fn testify(&mut self, node: Rank) {
        let Some(errand) = self.fellow_mut(node).and_then(|fellow| fellow.errand.take()) else {
            return;
        };
        let Errand { asker, asked_as: round, seen, .. } = errand;
        let testimony = Message::Testimony { node, round, seen };
        self.send(Members::only(asker), Seat::Component, testimony);
    }
}
