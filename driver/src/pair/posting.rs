//! Posting: from a work of the port to requests of the device.
//!
//! | work | bytes at this end |
//! |---|---|
//! | write from bytes, short | inline: copied by the post |
//! | write from bytes, longer | copied to the scratch slot of its place |
//! | write from a region, read | the region itself; cut into parts by the longest message |
//! | atomic | the scratch slot of its place takes the old value |
//! | marker | none: a write of nothing, which needs no right |

use weft_core::fabric::{At, CompletionFlags, Op, PostError, Work, WorkId};

use super::{Loss, Pair, State};
use crate::queue_pair::{Action, Data, Request};
use crate::send_queue::{Fetch, Place, Report};
use crate::{Errno, Grant, HostMemory};

/// A request but for its place and its data.
#[derive(Clone, Copy)]
struct Target {
    action: Action,
    fetch: Fetch,
    grant: Grant,
    offset: u32,
}

/// Nothing of anybody's.
const NOWHERE: Target = Target {
    action: Action::Write,
    fetch: Fetch::Nothing,
    grant: Grant { address: 0, key: 0 },
    offset: 0,
};

impl<M: HostMemory> Pair<M> {
    /// Posts `work`, which was checked against the layout, to the region behind `grant`.
    pub(crate) fn post(&mut self, work: &Work<'_>, grant: Grant) -> Result<(), PostError> {
        let is_quiet = work.flags.contains(CompletionFlags::QUIET);
        let report = if is_quiet { Report::Quiet } else { Report::Loud };
        let offset = work.op.target().0.offset;
        let target = |action, fetch| Target { action, fetch, grant, offset };
        match work.op {
            Op::Write { bytes, .. } => self.post_one(
                work.id,
                report,
                target(Action::Write, Fetch::Nothing),
                |pair, place| pair.bytes(place, bytes),
            ),
            Op::WriteFrom { from, len, .. } => {
                self.post_parts(work.id, report, target(Action::Write, Fetch::Nothing), (from, len))
            }
            Op::Read { into, len, .. } => {
                self.post_parts(work.id, report, target(Action::Read, Fetch::Bytes), (into, len))
            }
            Op::FetchAdd { add, .. } => {
                let target = target(Action::FetchAdd { add }, Fetch::Word);
                self.post_one(work.id, report, target, |pair, place| {
                    pair.scratch.expect_result(place)
                })
            }
            Op::CompareSwap { expected, new, .. } => {
                let target = target(Action::CompareSwap { expected, new }, Fetch::Word);
                self.post_one(work.id, report, target, |pair, place| {
                    pair.scratch.expect_result(place)
                })
            }
        }
    }

    /// Posts a write of nothing, so that works at the tail are told of. The queue keeps a place
    /// for it; there is never more than one, since it covers the tail itself.
    pub(super) fn post_marker(&mut self) {
        let id = WorkId::default();
        // A device that refuses it has lost the pair, and that was noted.
        let _ = self.post_request(id, Report::Marker, NOWHERE, |_, _| Data::Nothing);
    }

    fn post_one<'b>(
        &mut self,
        id: WorkId,
        report: Report,
        target: Target,
        data: impl FnOnce(&Self, Place) -> Data<'b>,
    ) -> Result<(), PostError> {
        if self.queue.room() == 0 {
            return Err(PostError::Full);
        }
        self.post_request(id, report, target, data)
    }

    /// Posts a transfer between the target and `len` bytes at `local`, in as many parts as the
    /// longest message asks for: all of them or none.
    fn post_parts(
        &mut self,
        id: WorkId,
        report: Report,
        target: Target,
        (local, len): (At, u32),
    ) -> Result<(), PostError> {
        let parts = len.div_ceil(self.message_len).max(1);
        if self.queue.room() < parts as usize {
            return Err(PostError::Full);
        }
        for part in 0..parts {
            let begin = part * self.message_len;
            let part_len = self.message_len.min(len - begin);
            let report = if part + 1 < parts { Report::Part } else { report };
            let target = Target { offset: target.offset + begin, ..target };
            self.post_request(id, report, target, |pair, _| {
                match pair.regions.local(local.region, local.offset + begin) {
                    Some((address, key)) if part_len > 0 => {
                        Data::Registered { address, len: part_len, key }
                    }
                    Some(_) | None => Data::Nothing,
                }
            })?;
        }
        Ok(())
    }

    fn post_request<'b>(
        &mut self,
        id: WorkId,
        report: Report,
        target: Target,
        data: impl FnOnce(&Self, Place) -> Data<'b>,
    ) -> Result<(), PostError> {
        let Target { action, fetch, grant, offset } = target;
        let waits = action == Action::Write && self.queue.is_fetching();
        let (place, signal) = self.queue.push(id, report, fetch);
        let data = data(self, place);
        let address = grant.address + u64::from(offset);
        let request = Request { place, action, data, address, key: grant.key, signal, waits };
        let posted = match &mut self.state {
            State::Open(pair) => pair.post(&request).map_err(Some),
            State::Prepared(_) | State::Failed(_) | State::Closed => Err(None),
        };
        posted.map_err(|errno| {
            self.queue.retract();
            self.refused(errno)
        })
    }

    /// What a post comes to that the device refused with `errno`. When parts of the same work
    /// are on their way, the pair is given up rather than half a work left behind.
    fn refused(&mut self, errno: Option<Errno>) -> PostError {
        if errno == Some(Errno::NOMEM) && !self.queue.ends_in_part() {
            return PostError::Full;
        }
        // Should the pair resist, it is lost all the same: nothing is posted to it any more.
        let _ = self.lose(Loss::Device);
        PostError::Gone
    }

    /// The bytes of a write, inline if they are few.
    fn bytes<'b>(&self, place: Place, bytes: &'b [u8]) -> Data<'b> {
        let inline_len = match &self.state {
            State::Open(pair) => pair.inline_len(),
            State::Prepared(_) | State::Failed(_) | State::Closed => 0,
        };
        match bytes.len() {
            0 => Data::Nothing,
            len if len <= inline_len => Data::Inline(bytes),
            _ => self.scratch.put(place, bytes),
        }
    }
}
