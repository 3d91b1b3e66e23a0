//! The reading end: copies a slot, judges the copy, returns credit.

use super::mutants::{CREDIT_EARLY, CREDIT_FORGOTTEN};
use super::{Config, LANE_WORK, MESSAGE_LEN_MAX, Regions, session};
use crate::fabric::{At, CompletionFlags, Fabric, Memory, Op, Region, Work, WorkId};
use crate::ids::{Incarnation, Peer};
use crate::wire::Credit;
use crate::wire::slot::{Sealing, SlotError, Trailer, used};

/// A lane message in the reader's private memory.
#[derive(Debug, PartialEq, Eq)]
pub struct LaneMessage<'a> {
    /// The sender: no other peer can write this lane.
    pub sender: Peer,
    /// As the sender gave it.
    pub kind: u16,
    /// As the sender gave it.
    pub payload: &'a [u8],
}

/// The reading end of the lane from one writer, between two incarnations.
#[derive(Clone, Copy, Debug, Hash)]
pub struct LaneReader {
    config: Config,
    writer: Peer,
    /// In me: what the writer writes.
    written: At,
    /// In the writer: what I write, at the same offset; my credit comes first.
    credit: Region,
    session: u32,
    taken: u64,
    credited: u64,
    checksum_failures: u64,
    scratch: [u8; used(MESSAGE_LEN_MAX as usize)],
}

impl LaneReader {
    /// The lane to this endpoint's incarnation `mine` from the incarnation `theirs` of `writer`.
    /// Clears the ring, so it must be made before that incarnation of the writer is admitted.
    #[must_use]
    pub fn new(
        fabric: &impl Fabric,
        config: Config,
        regions: Regions,
        mine: Incarnation,
        (writer, theirs): (Peer, Incarnation),
    ) -> Self {
        let written = regions.0.of(writer);
        for index in 0..u64::from(config.slots) {
            let end = config.slot(written, 0, index).end;
            fabric.memory().store(end.region, end.offset - 8, 0);
        }
        Self {
            config,
            writer,
            written,
            credit: regions.0.of(fabric.me()).region,
            session: session(theirs, mine),
            taken: 0,
            credited: 0,
            checksum_failures: 0,
            scratch: [0; used(MESSAGE_LEN_MAX as usize)],
        }
    }

    /// Copies that bore the right stamp and did not hold: torn, still arriving, or garbage.
    #[must_use]
    pub const fn checksum_failures(&self) -> u64 {
        self.checksum_failures
    }

    /// Whether it looks as if a message had landed. Only [`Self::take`] decides.
    #[must_use]
    pub fn is_ready(&self, fabric: &impl Fabric) -> bool {
        let slot = self.config.slot(self.written, self.session, self.taken);
        slot.stamp.run_in(fabric.memory().load(slot.end.region, slot.end.offset - 8)).is_some()
    }

    /// The next message, or nothing when none has landed. Never waits.
    pub fn take(&mut self, fabric: &mut impl Fabric) -> Option<LaneMessage<'_>> {
        let trailer = self.copy_slot(fabric)?;
        self.taken += 1;
        self.return_credit(fabric);
        Some(LaneMessage {
            sender: self.writer,
            kind: trailer.kind,
            payload: &self.scratch[..usize::from(trailer.len)],
        })
    }

    /// Returns credit that a full queue held back. Call it from the poll loop.
    #[inline]
    pub fn poll(&mut self, fabric: &mut impl Fabric) {
        self.return_credit(fabric);
    }

    fn copy_slot(&mut self, fabric: &impl Fabric) -> Option<Trailer> {
        let slot = self.config.slot(self.written, self.session, self.taken);
        match slot
            .copy_out(fabric.memory(), Sealing::Checksum, &mut self.scratch, |it| fabric.crc32c(it))
        {
            Ok(trailer) if trailer.sender == self.writer.0 => return Some(trailer),
            Err(SlotError::Stamp) => {}
            Ok(_) | Err(SlotError::Length | SlotError::Checksum) => self.checksum_failures += 1,
        }
        None
    }

    /// Reports to the writer what was taken, at the latest every half ring.
    fn return_credit(&mut self, fabric: &mut impl Fabric) {
        if self.taken - self.credited < u64::from(self.config.slots / 2) {
            return;
        }
        let ahead = u64::from(CREDIT_EARLY.is_planted());
        let credit = Credit { session: self.session, taken: self.taken + ahead };
        let bytes = credit.encode(|bytes| fabric.crc32c(bytes));
        let to = At { region: self.credit, ..self.written };
        let op = Op::Write { to, bytes: &bytes };
        let id = WorkId::new(LANE_WORK, u64::from(self.writer.0));
        // The credit is for slots that were copied out of own memory; no read has a part in that.
        let flags = CompletionFlags::QUIET | CompletionFlags::WAKE | CompletionFlags::APART;
        let posted = fabric.post(self.writer, Work { id, op, flags });
        if posted.is_ok() || CREDIT_FORGOTTEN.is_planted() {
            self.credited = self.taken;
        }
    }
}
