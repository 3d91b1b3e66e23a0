//! Posting: from a work of the port to requests of the device.
//!
//! | work | bytes at this end |
//! |---|---|
//! | write from bytes, short | inline: copied by the post |
//! | write from bytes, longer | copied to the scratch slot of its place |
//! | write from a region, read | the region itself; cut into parts by the longest message |
//! | atomic | the scratch slot of its place takes the old value |
//! | marker, and what is denied here | none: a write of nothing, which needs no right |
//!
//! F-1 across kinds: a device may begin a write while a read or an atomic before it is on its
//! way, and an atomic while a read is. Such a work, and all behind it, is *held* here, its bytes
//! copied, until a poll finds that what it waits for has ended. A write that is apart waits only
//! for what is held before it: the device keeps it behind earlier writes, and ends it behind the
//! reads that it may have passed.
//!
//! Verbs have a flag for that (`IBV_SEND_FENCE`), and it is not used: soft-RoCE of kernel 6.1
//! stops for good, without retry and without completion, when a fenced write must be repeated
//! after a later read or atomic was sent, as it is when a packet or the peer is lost.

use weft_core::fabric::{At, CompletionFlags, Op, PostError, Work, WorkId};

use super::{Loss, Pair, State};
use crate::queue_pair::{Action, Data, Request};
use crate::send_queue::{Behind, Place, Report};
use crate::{Errno, Grant, HostMemory};

/// The end of a request that lies in the peer.
#[derive(Clone, Copy)]
struct Far {
    action: Action,
    address: u64,
    key: u32,
    behind: Behind,
}

/// No bytes at all.
const NOWHERE: Far = Far { action: Action::Write, address: 0, key: 0, behind: Behind::Fetches };

/// The end of a request that lies here.
#[derive(Clone, Copy)]
enum Near<'a> {
    Nothing,
    Bytes(&'a [u8]),
    Region { at: At, len: u32 },
    Result,
}

impl<M: HostMemory> Pair<M> {
    /// Posts `work`, which was checked against the layout, to the region behind `grant`.
    pub(crate) fn post(&mut self, work: &Work<'_>, grant: Grant) -> Result<(), PostError> {
        let is_quiet = work.flags.contains(CompletionFlags::QUIET);
        let report = if is_quiet { Report::Quiet } else { Report::Loud };
        let (target, _) = work.op.target();
        let address = grant.address + u64::from(target.offset);
        let behind = match work.op {
            Op::Write { .. } | Op::WriteFrom { .. }
                if !work.flags.contains(CompletionFlags::APART) =>
            {
                Behind::Fetches
            }
            Op::FetchAdd { .. } | Op::CompareSwap { .. } => Behind::Reads,
            Op::Write { .. } | Op::WriteFrom { .. } | Op::Read { .. } => Behind::Nothing,
        };
        let far = |action| Far { action, address, key: grant.key, behind };
        let (far, near) = match work.op {
            Op::Write { bytes, .. } => (far(Action::Write), Near::Bytes(bytes)),
            Op::WriteFrom { from: at, len, .. } => (far(Action::Write), Near::Region { at, len }),
            Op::Read { into: at, len, .. } => (far(Action::Read), Near::Region { at, len }),
            Op::FetchAdd { add, .. } => (far(Action::FetchAdd { add }), Near::Result),
            Op::CompareSwap { expected, new, .. } => {
                (far(Action::CompareSwap { expected, new }), Near::Result)
            }
        };
        match near {
            Near::Region { at, len } => self.post_parts(work.id, report, far, (at, len)),
            Near::Nothing | Near::Bytes(_) | Near::Result if self.queue.room() == 0 => {
                Err(PostError::Full)
            }
            Near::Nothing | Near::Bytes(_) | Near::Result => {
                self.post_request(work.id, report, far, near)
            }
        }
    }

    /// Posts what ends as denied, in its turn.
    pub(crate) fn post_denied(&mut self, id: WorkId) -> Result<(), PostError> {
        if self.queue.room() == 0 {
            return Err(PostError::Full);
        }
        self.post_request(id, Report::Denied, NOWHERE, Near::Nothing)
    }

    /// Posts a write of nothing, so that works at the tail are reported. The queue keeps a place
    /// for it; there is never more than one, since it covers the tail itself.
    pub(super) fn post_marker(&mut self) {
        // A device that refuses it has lost the pair, and that was noted.
        let _ = self.post_request(WorkId::default(), Report::Marker, NOWHERE, Near::Nothing);
    }

    /// Posts a transfer of `len` bytes at `local`, in as many parts as the longest message asks
    /// for: all of them or none.
    fn post_parts(
        &mut self,
        id: WorkId,
        report: Report,
        far: Far,
        (local, len): (At, u32),
    ) -> Result<(), PostError> {
        let parts = len.div_ceil(self.message_len).max(1);
        if self.queue.room() < parts as usize {
            return Err(PostError::Full);
        }
        for part in 0..parts {
            let begin = part * self.message_len;
            let report = if part + 1 < parts { Report::Part } else { report };
            let far = Far { address: far.address + u64::from(begin), ..far };
            let at = At { offset: local.offset + begin, ..local };
            let near = Near::Region { at, len: self.message_len.min(len - begin) };
            self.post_request(id, report, far, near)?;
        }
        Ok(())
    }

    fn post_request(
        &mut self,
        id: WorkId,
        report: Report,
        far: Far,
        near: Near<'_>,
    ) -> Result<(), PostError> {
        let Far { action, address, key, behind } = far;
        let waits = !self.held.is_empty() || self.queue.must_wait(behind);
        let (place, signal) = self.queue.push(id, report, action.fetch());
        if waits {
            let data = self.registered(place, near);
            self.held.push_back((Request { place, action, data, address, key, signal }, behind));
            return Ok(());
        }
        let data = match near {
            Near::Bytes(bytes) if !bytes.is_empty() && bytes.len() <= self.inline_len() => {
                Data::Inline(bytes)
            }
            Near::Nothing | Near::Bytes(_) | Near::Region { .. } | Near::Result => {
                self.registered(place, near)
            }
        };
        let request = Request { place, action, data, address, key, signal };
        self.hand_over(&request).map_err(|errno| {
            self.queue.retract();
            self.refused(errno)
        })
    }

    /// Hands over what was held, as far as nothing is left that it waits for.
    pub(super) fn release(&mut self) {
        while let Some((request, behind)) = self.held.front().copied() {
            if self.queue.must_wait(behind) {
                return;
            }
            match self.hand_over(&request) {
                Ok(()) => self.held.pop_front(),
                // The next poll tries again.
                Err(Some(Errno::NOMEM)) => return,
                // Should the pair resist, it is lost all the same.
                Err(Some(_) | None) => {
                    let _ = self.lose(Loss::Device);
                    return;
                }
            };
        }
    }

    fn hand_over(&mut self, request: &Request<'_>) -> Result<(), Option<Errno>> {
        let State::Open(pair) = &mut self.state else { return Err(None) };
        pair.post(request).map_err(Some)?;
        self.queue.hand_over(request.place);
        Ok(())
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

    fn inline_len(&self) -> usize {
        match &self.state {
            State::Open(pair) => pair.inline_len(),
            State::Prepared(_) | State::Failed(_) | State::Closed => 0,
        }
    }

    /// This end in registered memory, where it stays until the place is free.
    fn registered(&self, place: Place, near: Near<'_>) -> Data<'static> {
        match near {
            Near::Nothing | Near::Bytes([]) | Near::Region { len: 0, .. } => Data::Nothing,
            Near::Bytes(bytes) => self.scratch.put(place, bytes),
            Near::Region { at, len } => {
                let (address, key) = self.regions.local(at);
                Data::Registered { address, len, key }
            }
            Near::Result => self.scratch.expect_result(place),
        }
    }
}
