//! The path write (RZ-1, RZ-2): the source writes the value into memory that its destination lends.
//!
//! ```text
//!   BUFFER_REQUEST ──▶ BUFFER_RESPONSE: lent ──▶ writes, all completed ──▶ TENSOR_WRITE
//!        └─ not where the request has lent memory that is long enough (WARM) ─┘
//! ```
//!
//! Every event moves on what can be: a poll looks at each value that is being written (G-1).

use super::super::config::Path;
use super::super::mutants::{PUMPED_BY_IDLE, SAID_WITH_DATA};
use super::super::outcome::MessageReject;
use super::super::{RENDEZVOUS_WORK, WORKS_OF_A_PEER, WORKS_OF_A_VALUE};
use super::{Phase, Source};
use crate::fabric::{At, Completion, CompletionFlags, Fabric, Op, PostError, Work, WorkId};
use crate::ids::Peer;
use crate::wire::rendezvous::{Handle, Status};

/// How far a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Writing {
    into: At,
    posted: u32,
    /// Writes that are out.
    out: u8,
    /// Why it is not written further.
    pub(super) end: Option<WriteEnd>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WriteEnd {
    /// The borrower has taken its request back, or a write has failed: it learns when none is out.
    Cancelled,
    /// The borrower is fenced.
    Gone,
}

/// Memory that a destination lends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Loan {
    pub(in super::super) at: At,
    pub(in super::super) bytes: u64,
}

impl Writing {
    pub(super) const fn begin(into: At) -> Self {
        Self { into, posted: 0, out: 0, end: None }
    }
}

impl<const PEERS: usize, const SLOTS: usize> Source<PEERS, SLOTS> {
    /// `from` lends memory for the value that it was asked to.
    pub(in super::super) fn handle_response(
        &mut self,
        fabric: &impl Fabric,
        (from, request): (Peer, Handle),
        (offer, into): (Handle, At),
    ) -> Result<(), MessageReject> {
        let asking = self.offers.get(offer)?;
        match asking.phase {
            Phase::Asking { to, .. } if to != from => return Err(MessageReject::NotMine),
            Phase::Asking { request: of, said: true, .. } if of == request => {}
            _ => return Err(MessageReject::Unexpected),
        }
        self.check_loan(fabric, Loan { at: into, bytes: asking.bytes })?;
        if let Some(asking) = self.offers.at_mut(offer.slot) {
            asking.phase = Phase::Writing { to: from, request, writing: Writing::begin(into) };
        }
        Ok(())
    }

    /// F-11, and more: the memory lies where that purpose has its region.
    pub(in super::super) fn check_loan(
        &self,
        fabric: &impl Fabric,
        loan: Loan,
    ) -> Result<(), MessageReject> {
        let spec = fabric.layout().spec(loan.at.region).ok_or(MessageReject::BadAddress)?;
        let end = u64::from(loan.at.offset).checked_add(loan.bytes);
        let lies_inside = end.is_some_and(|end| end <= u64::from(spec.len));
        let is_of_landings = loan.at.region == self.regions.landings;
        if lies_inside && is_of_landings { Ok(()) } else { Err(MessageReject::BadAddress) }
    }

    /// Begins writes, for each value and each peer a few at a time.
    pub(in super::super) fn write(&mut self, fabric: &mut impl Fabric, first: u16) {
        let sizes = self.config.sizes();
        if sizes.path == Path::Read || self.offers.len() == 0 {
            return;
        }
        if PUMPED_BY_IDLE.is_planted() && !core::mem::take(&mut self.is_idle_heard) {
            return;
        }
        for slot in self.offers.used().iter_from(first % sizes.slots) {
            self.write_from(fabric, slot);
        }
    }

    fn write_from(&mut self, fabric: &mut impl Fabric, slot: u16) {
        let piece_len = self.config.sizes().piece_len;
        let Some(handle) = self.offers.handle_at(slot) else { return };
        let Some(offer) = self.offers.at_mut(slot) else { return };
        let Phase::Writing { to, writing, .. } = &mut offer.phase else { return };
        let to = *to;
        // A value that is written is no longer than a region.
        let len = offer.bytes as u32;
        while writing.end.is_none()
            && writing.posted < len
            && writing.out < WORKS_OF_A_VALUE
            && self.out[to.index()] < WORKS_OF_A_PEER
        {
            let (done, len) = (writing.posted, (len - writing.posted).min(piece_len));
            let into = At { region: writing.into.region, offset: writing.into.offset + done };
            let from = At { region: self.regions.offers, offset: offer.offset + done };
            let op = Op::WriteFrom { to: into, from, len };
            let work = Work { id: write_id(handle, to), op, flags: CompletionFlags::empty() };
            match fabric.post(to, work) {
                Ok(()) => {}
                Err(PostError::Full) => break,
                Err(PostError::Gone | PostError::Rejected(_)) => {
                    writing.end = Some(WriteEnd::Cancelled);
                    break;
                }
            }
            writing.posted += len;
            writing.out += 1;
            self.out[to.index()] += 1;
        }
        self.settle_write(slot);
    }

    /// A write has ended, whatever its outcome.
    pub(in super::super) fn handle_completion(&mut self, completion: &Completion) {
        let Some((handle, to)) = write_of(completion.id) else { return };
        if let Some(out) = self.out.get_mut(to.index()) {
            *out = out.saturating_sub(1);
        }
        if self.offers.handle_at(handle.slot) != Some(handle) {
            return;
        }
        let Some(offer) = self.offers.at_mut(handle.slot) else { return };
        if let Phase::Writing { writing, .. } = &mut offer.phase {
            writing.out = writing.out.saturating_sub(1);
            if completion.outcome.is_err() && writing.end.is_none() {
                writing.end = Some(WriteEnd::Cancelled);
            }
            self.settle_write(handle.slot);
        }
    }

    /// A value is the borrower's once all of it is written, and no sooner: no interface promises
    /// that a reader who sees a later write sees an earlier one. What is not written further is
    /// stored again once no write is out.
    pub(super) fn settle_write(&mut self, slot: u16) {
        let Some(offer) = self.offers.at_mut(slot) else { return };
        let Phase::Writing { to, request, writing } = offer.phase else { return };
        let is_posted = u64::from(writing.posted) == offer.bytes;
        match writing.end {
            None if is_posted && (writing.out == 0 || SAID_WITH_DATA.is_planted()) => {
                offer.phase = Phase::Lent { to, request, said: false };
                self.due.insert(to);
            }
            Some(end) if writing.out == 0 => {
                self.take_back(slot);
                if end == WriteEnd::Cancelled {
                    self.refuse((to, request), Status::Cancelled);
                }
            }
            None | Some(_) => {}
        }
    }
}

/// Writes have this bit, reads do not.
const IS_WRITE: u64 = 1 << 48;

fn write_id(offer: Handle, to: Peer) -> WorkId {
    let handle = u64::from(offer.generation) << 16 | u64::from(offer.slot);
    WorkId::new(RENDEZVOUS_WORK, IS_WRITE | u64::from(to.0) << 32 | handle)
}

fn write_of(id: WorkId) -> Option<(Handle, Peer)> {
    let field = |shift: u32| (id.detail() >> shift & 0xffff) as u16;
    let handle = Handle { slot: field(0), generation: field(16) };
    let is_write = id.machine() == RENDEZVOUS_WORK && id.detail() & IS_WRITE != 0;
    is_write.then(|| (handle, Peer(field(32))))
}
