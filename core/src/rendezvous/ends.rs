//! Both sides of one node's table, and what peers say to them.

use heapless::Vec;

use super::config::{RendezvousConfig, RendezvousRegions};
use super::destination::Destination;
use super::key::Key;
use super::mutants::STEP_REVIVED;
use super::outcome::{MessageReject, MessageRejects, Place};
use super::source::{Loan, Said, Source};
use crate::fabric::{At, Fabric, Region};
use crate::ids::Peer;
use crate::time::{Duration, Instant};
use crate::wire::rendezvous::{Flags, Handle, Head, HeadError, Kind, Status};

/// Steps that are over and remembered.
const TOMBSTONES: usize = 256;

#[derive(Clone, Debug, Hash)]
pub(super) struct Ends<const PEERS: usize, const SLOTS: usize> {
    pub(super) source: Source<PEERS, SLOTS>,
    pub(super) destination: Destination<PEERS, SLOTS>,
    boot: u32,
    /// Oldest first; of a step that is over twice, the first status stands.
    tombstones: Vec<(i64, Status), TOMBSTONES>,
    pub(super) rejects: MessageRejects,
}

impl<const PEERS: usize, const SLOTS: usize> Ends<PEERS, SLOTS> {
    pub(super) fn new(config: RendezvousConfig, regions: RendezvousRegions, boot: u32) -> Self {
        Self {
            source: Source::new(config, regions),
            destination: Destination::new(config, regions),
            boot,
            tombstones: Vec::new(),
            rejects: MessageRejects::default(),
        }
    }

    pub(super) const fn boot(&self) -> u32 {
        self.boot
    }

    /// How a step has ended here, if it has.
    pub(super) fn end_of(&self, step: i64) -> Option<Status> {
        let found = self.tombstones.iter().find(|(over, _)| *over == step);
        found.map(|(_, status)| *status).filter(|_| !STEP_REVIVED.is_planted())
    }

    /// Ends a step here, and reports it to the peers that wait for its values.
    pub(super) fn end_step(&mut self, step: i64, status: Status) {
        if !self.tombstones.iter().any(|(over, _)| *over == step) {
            if self.tombstones.is_full() {
                self.tombstones.remove(0);
            }
            // There is room now.
            let _ = self.tombstones.push((step, status));
        }
        self.source.end_step(step, status);
        self.destination.end_step(step, status);
    }

    /// A message of `from`, which the lane's checksum has shown to be whole.
    // Not inlined: most polls find no message, and are shorter without it.
    #[inline(never)]
    pub(super) fn handle_message(
        &mut self,
        fabric: &impl Fabric,
        now: Instant,
        from: Peer,
        message: &[u8],
    ) {
        if let Err(why) = self.try_message(fabric, now, from, message) {
            self.rejects.count(why);
        }
    }

    fn try_message(
        &mut self,
        fabric: &impl Fabric,
        now: Instant,
        from: Peer,
        message: &[u8],
    ) -> Result<(), MessageReject> {
        let (head, behind) = Head::decode(message).map_err(|error| match error {
            HeadError::BadHead => MessageReject::BadHead,
            HeadError::BadShape => MessageReject::BadShape,
        })?;
        match head.kind {
            Kind::TensorRequest => self.handle_request(fabric, now, from, (&head, behind)),
            Kind::BufferIdle => {
                self.source.handle_idle((from, head.request), head.offer, head.status)
            }
            Kind::Cancel => {
                let has_lent = head.flags.contains(Flags::WARM);
                self.source.handle_cancel(from, head.request, has_lent);
                Ok(())
            }
            Kind::BufferResponse => {
                let into = At { region: Region(head.region), offset: head.offset };
                self.source.handle_response(fabric, (from, head.request), (head.offer, into))
            }
            Kind::BufferRequest | Kind::TensorWrite | Kind::Cancelled | Kind::StepOver => {
                self.destination.handle_answer(fabric, from, (&head, behind))
            }
        }
    }

    fn handle_request(
        &mut self,
        fabric: &impl Fabric,
        now: Instant,
        from: Peer,
        (head, name): (&Head, &[u8]),
    ) -> Result<(), MessageReject> {
        let key = Key::parse(name).map_err(|_| MessageReject::BadHead)?;
        if key.source() != fabric.me() || key.destination() != from {
            return Err(MessageReject::NotMine);
        }
        let Handle { slot, .. } = head.request;
        if usize::from(slot) >= SLOTS {
            return Err(MessageReject::BadSlot);
        }
        let who = (from, head.request);
        let warm = head.flags.contains(Flags::WARM).then_some(Loan {
            at: At { region: Region(head.region), offset: head.offset },
            bytes: head.bytes,
        });
        if let Some(loan) = warm {
            self.source.check_loan(fabric, loan)?;
        }
        if key.boot().is_some_and(|boot| boot != self.boot) {
            self.source.refuse(who, Status::SourceReborn);
        } else if let Some(status) = self.end_of(head.step) {
            self.source.refuse(who, status);
        } else {
            let place = Place { step: head.step, part: head.part, parts: head.parts };
            let wait = Duration::from_millis(u64::from(head.wait_ms));
            match head.flags.contains(Flags::PART) {
                true => {
                    let part = (head.offer, key, place);
                    self.source.handle_part_request(now, who, part, (wait, warm));
                }
                false => self.source.handle_request(now, who, (key, place), (wait, warm)),
            }
        }
        Ok(())
    }

    /// A message that `peer` must be sent, in `message`: which, and its length.
    pub(super) fn next_message(
        &self,
        fabric: &impl Fabric,
        now: Instant,
        peer: Peer,
        message: &mut [u8],
    ) -> Option<(Said, usize)> {
        // What gives memory back goes before what asks for more.
        let said = self.source.next_message(fabric, peer, message);
        said.or_else(|| self.destination.next_message(now, peer, message))
    }

    pub(super) fn note_said(&mut self, to: Peer, what: Said) {
        match what {
            Said::Request(slot) => self.destination.note_said(slot),
            Said::Offer(_) | Said::Refusal(_) => self.source.note_said(to, what),
        }
    }

    pub(super) const fn note_all_said(&mut self, to: Peer) {
        self.source.note_all_said(to);
        self.destination.note_all_said(to);
    }

    /// Any step that has something here which is not over.
    pub(super) fn any_step(&self) -> Option<i64> {
        self.source.any_step().or_else(|| self.destination.any_step())
    }
}
