//! Tensors that are longer than a piece of the pool, and that no host hands over: they come in
//! parts (RZ-3).
//!
//! ```text
//!   sealed memory ── token ─▶ adapter ── BUFFER_REQUEST ─▶ adapter ─▶ room in the store? ─▶ memory
//!     └─ a part is wanted: copied ─▶ place ═ read, or written ═▶ landing ─▶ copied ─▶ sealed ─┘
//! ```
//!
//! One part is copied a pass of the loop, at either end, so that no tensor is too long for it. The
//! memory of the destination is taken as it is written.

use std::io::{Seek, SeekFrom, Write};

use weft_core::fabric::{Fabric, Memory};
use weft_core::rendezvous::{LandedPart, OfferError, OfferId};
use weft_core::time::Instant;

use super::Component;
use super::hand_over::Fetch;
use crate::clock::now_ns;
use crate::node::control::TensorRefused;
use crate::node::{EndpointFabric, NodeRendezvous};
use crate::shm::{SealedDraft, SegmentError};
use crate::tensor::SealedTensor;

/// Bytes that are copied at a time.
const CHUNK: usize = 64 * 1024;

/// A tensor that is sent in parts.
#[derive(Debug)]
struct LentInParts {
    token: u64,
    offer: OfferId,
    step: i64,
    tensor: SealedTensor,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct PartSource(Vec<LentInParts>);

impl PartSource {
    /// `offer` has these bytes, which its receiver fetches by `token`.
    pub(super) fn keep(&mut self, (offer, token): (OfferId, u64), step: i64, tensor: SealedTensor) {
        self.0.push(LentInParts { token, offer, step, tensor });
    }

    /// The receiver of an offer has it.
    pub(super) fn note_consumed(&mut self, offer: OfferId) {
        self.0.retain(|it| it.offer != offer);
    }

    /// A step is over, and nothing of it is lent any more.
    pub(super) fn note_step_over(&mut self, step: i64) {
        self.0.retain(|it| it.step != step);
    }

    /// Lends the next part that is wanted and has a place; whether there was one.
    fn lend_next(&self, adapter: &mut NodeRendezvous, fabric: &mut EndpointFabric) -> bool {
        while let Some(wanted) = adapter.poll_wanted() {
            // One whose step is over was refused.
            let Some(lent) = self.0.iter().find(|it| it.token == wanted.token) else { continue };
            // A mapping is no longer than the address space.
            let (at, len) = (wanted.offset as usize, wanted.bytes as usize);
            let Some(bytes) = lent.tensor.view().bytes().get(at..at + len) else { continue };
            match adapter.lend_part(fabric, Instant(now_ns()), &wanted, bytes) {
                Ok(()) => return true,
                // It waits for a place.
                Err(OfferError::NoSpace) => return false,
                Err(error) => tracing::error!(%error, "a part cannot be lent"),
            }
        }
        false
    }
}

impl Component {
    /// Fetches what is not handed over, in parts, into memory of its own.
    pub(super) fn begin_parts(&mut self, number: u64) {
        let Some(fetch) = self.fetches.find(|it| it.number == number) else { return };
        match SealedDraft::sparse("weft-tensor", fetch.shape.bytes()) {
            Ok(draft) => fetch.draft = Some(draft),
            Err(error) => fetch.refused = Some(unwritten(&error)),
        }
        let (request, is_refused) = (fetch.request, fetch.refused.is_some());
        let begun = self.with_tensors(|adapter, fabric| match is_refused {
            true => adapter.handle_handed_over(request, false),
            false => adapter.fetch_parts(fabric, Instant(now_ns()), request),
        });
        if !matches!(begun, Ok(Ok(()))) {
            // It has ended meanwhile, and its event is not taken yet.
            self.fetches.forget(number);
        }
    }

    /// Lends one part, and takes one; whether there was any.
    pub(super) fn step_parts(&mut self) -> bool {
        let Some((adapter, fabric)) = self.endpoint.rendezvous() else { return false };
        let lent = self.parts.lend_next(adapter, fabric);
        let Some(part) = adapter.poll_part() else { return lent };
        let request = part.request;
        let Some(fetch) = self.fetches.find(|it| it.request == request) else { return true };
        let written = fetch.write(fabric, &part);
        if let Err(error) = &written {
            tracing::error!(%error, "no memory for a tensor");
            fetch.refused = Some(unwritten(error));
        }
        // With the last part the receive ends with a value; either end may come first.
        let _ = match written {
            Ok(()) => adapter.release(part.part),
            Err(_) => adapter.handle_handed_over(request, false),
        };
        true
    }
}

const fn unwritten(_: &SegmentError) -> TensorRefused {
    TensorRefused::NoSpace
}

impl Fetch {
    /// Copies a part that has landed; with the last byte the memory is sealed.
    fn write(&mut self, fabric: &EndpointFabric, part: &LandedPart) -> Result<(), SegmentError> {
        let Some(draft) = &mut self.draft else { return Ok(()) };
        let failed = |error: std::io::Error| SegmentError::unwritten(&error);
        draft.seek(SeekFrom::Start(part.offset)).map_err(failed)?;
        let (mut chunk, mut done) = (vec![0; CHUNK], 0);
        while done < part.bytes {
            let len = (part.bytes - done).min(CHUNK as u64);
            let chunk = &mut chunk[..len as usize];
            // A region is shorter than 4 GiB.
            fabric.memory().copy_out(part.at.region, part.at.offset + done as u32, chunk);
            draft.write_all(chunk).map_err(failed)?;
            done += len;
        }
        self.written += part.bytes;
        if self.written == self.shape.bytes() {
            self.memory = self.draft.take().map(SealedDraft::finish).transpose()?;
        }
        Ok(())
    }
}
