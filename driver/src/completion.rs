//! Completion queues: one for each pair, as long as its send queue.
//!
//! A queue of its own makes the accounting exact (it cannot overflow while the send queue's is
//! kept) and leaves no completion of an earlier life behind: the queue goes with its pair. Only
//! the queues of pairs with outstanding work are looked at, so that idle peers cost nothing.
//!
//! Polled with the classic `ibv_poll_cq`, into an array on the stack: the extended queues of one
//! release of soft-RoCE's provider hand completions out several times over.

use std::ptr::NonNull;
use std::sync::Arc;

use weft_core::fabric::Failure;

use crate::device::Context;
use crate::ffi::{self, Zeroed};
use crate::send_queue::Place;
use crate::{Errno, Error, Verb, failure_of};

/// How many completions one call takes at most.
pub(crate) const BATCH: usize = 16;

/// The end of one work, as the device tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkEnd {
    pub(crate) place: Place,
    pub(crate) outcome: Result<(), Failure>,
}

/// `ibv_cq`, destroyed when dropped.
#[derive(Debug)]
pub(crate) struct CompletionQueue {
    raw: NonNull<ffi::ibv_cq>,
    _context: Arc<Context>,
}

// SAFETY: verbs on a completion queue may be called from any thread.
unsafe impl Send for CompletionQueue {}
// SAFETY: as above; the provider locks the queue while it is polled.
unsafe impl Sync for CompletionQueue {}

impl CompletionQueue {
    /// A queue with room for the completions of `depth` works.
    pub(crate) fn new(context: &Arc<Context>, depth: u16) -> Result<Self, Error> {
        let (no_tag, no_channel) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the context is open; nobody waits on this queue, so it needs no channel.
        let raw = unsafe {
            ffi::ibv_create_cq(context.as_ptr(), i32::from(depth), no_tag, no_channel, 0)
        };
        match NonNull::new(raw) {
            Some(raw) => Ok(Self { raw, _context: Arc::clone(context) }),
            None => Err(Error::Verb(Verb::CreateCompletionQueue, Errno::last())),
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::ibv_cq {
        self.raw.as_ptr()
    }

    /// Takes completions, at most `count` and at most [`BATCH`]. A device that is gone has none.
    pub(crate) fn poll(&self, count: usize) -> Ends {
        let mut raw: [ffi::ibv_wc; BATCH] = std::array::from_fn(|_| ffi::ibv_wc::zeroed());
        let count = i32::try_from(count.min(BATCH)).unwrap_or(0);
        // SAFETY: the queue exists, and the array is a place for as many completions as are said.
        let found = unsafe { ffi::ibv_poll_cq(self.as_ptr(), count, raw.as_mut_ptr()) };
        Ends { raw, found: usize::try_from(found).unwrap_or(0) }
    }
}

/// What one call has taken.
pub(crate) struct Ends {
    raw: [ffi::ibv_wc; BATCH],
    found: usize,
}

impl Ends {
    pub(crate) const fn len(&self) -> usize {
        self.found
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = WorkEnd> {
        self.raw[..self.found].iter().map(|end| {
            let outcome = failure_of(end.status).map_or(Ok(()), Err);
            WorkEnd { place: Place(end.wr_id), outcome }
        })
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: created once and destroyed once; queue pairs that report here share it by `Arc`
        // and so are gone. A failure leaves it to the kernel until the context is closed.
        unsafe { ffi::ibv_destroy_cq(self.as_ptr()) };
    }
}
