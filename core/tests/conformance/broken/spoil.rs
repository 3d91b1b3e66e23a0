//! What a fault makes of works, refusals and completions on their way through.

use weft_core::fabric::conformance::PEERS;
use weft_core::fabric::{
    At, Completion, CompletionFlags, Fabric, Failure, INLINE_LEN, Op, PostError, Region, Reject,
    Work, WorkId,
};
use weft_core::ids::{Incarnation, Peer};

use super::Broken;
use crate::faults::Fault;
use crate::works::{aimed, keep, resized};

impl Broken {
    pub(super) fn spoil_completion(&mut self, mut done: Completion) {
        self.count += 1;
        let is_fifth = self.count.is_multiple_of(5);
        let is_quiet = done.id.0 >> 48 & u64::from(CompletionFlags::QUIET.bits()) != 0;
        match self.fault {
            Fault::LosesCompletions if is_fifth => return,
            Fault::ForgetsOutstanding if done.outcome == Err(Failure::Gone) => return,
            Fault::HidesQuietFailure if is_quiet && done.outcome.is_err() => return,
            Fault::DoublesCompletions if is_fifth => self.ready.push_back(done),
            Fault::SwapsNames if is_fifth => done.id = WorkId(done.id.0 ^ 1),
            Fault::NamesWrongPeer if is_fifth => done.peer = Peer((done.peer.0 + 1) % 3),
            Fault::AddsToOldValues => {
                done.outcome = done.outcome.map(|old| old + u64::from(old != 0));
            }
            Fault::ValuesOnWrites => done.outcome = done.outcome.map(|old| old.max(1)),
            Fault::FencesOnPaper => done.outcome = Err(Failure::Gone),
            Fault::DeniesAfterDoing => done.outcome = Err(Failure::AccessDenied),
            Fault::SpreadsLoss if done.outcome == Err(Failure::Gone) => {
                for peer in (0..PEERS as u16).map(Peer) {
                    // It refuses to fence itself, which the fault does not mind.
                    let _ = self.inner.fence(peer);
                }
            }
            _ => {}
        }
        self.ready.push_back(done);
    }

    /// What the fault makes of a work before it is posted.
    pub(super) fn spoil_work<'a>(&self, mut work: Work<'a>) -> Work<'a> {
        let regions = self.layout.regions().len() as u8;
        work.op = match (self.fault, work.op) {
            (Fault::DropsLastByte, op) => resized(op, -1),
            (Fault::SpillsOneByte, op) if op.target().1 < INLINE_LEN => resized(op, 1),
            (Fault::CutsLongWrites, Op::Write { to, bytes }) => {
                Op::Write { to, bytes: &bytes[..bytes.len().min(1024)] }
            }
            (Fault::CutsLongCopies, Op::Read { from, into, len }) => {
                Op::Read { from, into, len: len.min(1024) }
            }
            (Fault::CutsLongCopies, Op::WriteFrom { to, from, len }) => {
                Op::WriteFrom { to, from, len: len.min(1024) }
            }
            (Fault::TruncatesTooLong, Op::Write { to, bytes }) => {
                Op::Write { to, bytes: &bytes[..bytes.len().min(INLINE_LEN)] }
            }
            (Fault::ClampsRegions, op) => {
                aimed(op, |at| At { region: Region(at.region.0.min(regions - 1)), ..at })
            }
            (Fault::AlignsAtomics, op @ (Op::FetchAdd { .. } | Op::CompareSwap { .. })) => {
                aimed(op, |at| At { offset: at.offset & !7, ..at })
            }
            (_, op) => op,
        };
        if self.has(Fault::ReportsQuietSuccess) {
            work.flags.remove(CompletionFlags::QUIET);
        }
        work
    }

    /// What the fault makes of a refusal.
    pub(super) fn spoil_refusal(
        &mut self,
        peer: Peer,
        work: Work<'_>,
        error: PostError,
    ) -> Result<(), PostError> {
        let ended = |outcome| Completion { id: work.id, peer, outcome };
        match (self.fault, error) {
            (Fault::NeverFull, PostError::Full) => {
                self.reap();
                self.inner.post(peer, work)
            }
            (Fault::FullTakesTheWork, PostError::Full) => {
                self.late.push_back((peer, keep(work), 0));
                Err(error)
            }
            (Fault::AcceptsForTheLost | Fault::FenceKeepsPosting, PostError::Gone) => {
                self.ready.push_back(ended(Err(Failure::Gone)));
                Ok(())
            }
            (Fault::AdmitsByItself, PostError::Gone) => {
                let incarnation = (1..9).map(Incarnation);
                for incarnation in incarnation {
                    if self.inner.admit(peer, incarnation).is_ok()
                        && self.inner.post(peer, work).is_ok()
                    {
                        return Ok(());
                    }
                }
                Err(error)
            }
            (Fault::AcceptsOutOfBounds, PostError::Rejected(Reject::OutOfBounds)) => {
                self.ready.push_back(ended(Ok(0)));
                Ok(())
            }
            (Fault::RefusesAfterDoing, PostError::Rejected(Reject::Misaligned)) => {
                let op = aimed(work.op, |at| At { offset: at.offset & !7, ..at });
                let done =
                    self.inner.post(peer, Work { op, flags: CompletionFlags::QUIET, ..work });
                done.and(Err(error))
            }
            _ => Err(error),
        }
    }
}
