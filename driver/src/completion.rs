//! Completion queues: one for each pair, as long as its send queue.
//!
//! A queue of its own makes the accounting exact (it cannot overflow while the send queue's is
//! kept) and leaves no completion of an earlier incarnation behind: the queue goes with its
//! pair. Only the queues of pairs with outstanding work are polled, so idle peers cost nothing.
//!
//! Polled with the classic `ibv_poll_cq`, into an array on the stack: the extended queues of one
//! release of soft-RoCE's provider hand completions out several times over.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use weft_core::fabric::Failure;

use crate::device::Context;
use crate::ffi;
use crate::send_queue::Place;
use crate::{Errno, Error, Verb, failure_of};

/// How many completions one call takes at most.
pub(crate) const BATCH: usize = 16;

/// The end of one work, as the device reports it.
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
        // SAFETY: the context is open; no thread waits on this queue, so it needs no channel.
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
    ///
    /// Mostly there is none, and nothing is prepared for it: an empty poll writes no array.
    #[inline]
    pub(crate) fn poll(&self, count: usize) -> Ends {
        let mut raw = [const { MaybeUninit::<ffi::ibv_wc>::uninit() }; BATCH];
        let count = i32::try_from(count.min(BATCH)).unwrap_or(0);
        // SAFETY: the queue exists, and the array is a place for as many completions as are said.
        let found = unsafe { ffi::ibv_poll_cq(self.as_ptr(), count, raw.as_mut_ptr().cast()) };
        Ends { raw, found: usize::try_from(found).unwrap_or(0).min(BATCH) }
    }
}

/// What one call has taken.
pub(crate) struct Ends {
    /// The first `found` are written.
    raw: [MaybeUninit<ffi::ibv_wc>; BATCH],
    found: usize,
}

impl Ends {
    pub(crate) const fn len(&self) -> usize {
        self.found
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = WorkEnd> {
        self.raw[..self.found].iter().map(|end| {
            let end = end.as_ptr();
            // SAFETY: the provider has written the number and the status of every completion that
            // it reported; other fields of a failed one it may leave as they were.
            let place = Place(unsafe { (*end).wr_id });
            // SAFETY: as above.
            let status = unsafe { (*end).status };
            WorkEnd { place, outcome: failure_of(status).map_or(Ok(()), Err) }
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
