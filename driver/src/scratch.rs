//! The registered memory of a pair's own: a slot for each place of its send queue.
//!
//! ```text
//!   slot of a write from bytes    the bytes, when they are too long to go inline
//!   slot of an atomic             its first word: the old value, once it has come
//! ```
//!
//! A slot is free when its place is, so it is written only while the device has nothing to do
//! with it. No peer has a right to any of it.
//!
//! Before an atomic is posted its word is set to [`RESULT_UNTOUCHED`]. A kernel's soft-RoCE was
//! seen to report an atomic as done and never to write the old value, when a retransmission
//! overtook the answer. The driver cannot distinguish that from an old value of just this number,
//! and so delivers the word as it is: a protocol that counts must find it implausible (a mailbox
//! does: an unknown ticket is claimed until it is settled).

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use weft_core::fabric::{Access, INLINE_LEN, Words};

use crate::Error;
use crate::queue_pair::Data;
use crate::region::{Domain, Registration};
use crate::send_queue::{Place, slot_of};

/// What an atomic's result is that the device did not write.
pub const RESULT_UNTOUCHED: u64 = u64::MAX;

/// The slots.
#[derive(Debug)]
pub(crate) struct Scratch {
    registration: Registration<Box<[AtomicU64]>>,
    words: Arc<Box<[AtomicU64]>>,
    depth: usize,
}

impl Scratch {
    pub(crate) fn new(domain: &Arc<Domain>, depth: u16) -> Result<Self, Error> {
        let depth = usize::from(depth);
        let words = (0..depth * INLINE_LEN / 8).map(|_| AtomicU64::new(0)).collect();
        let words: Arc<Box<[AtomicU64]>> = Arc::new(words);
        let registration = Registration::new(domain, &words, |words| words, Access::empty())?;
        Ok(Self { registration, words, depth })
    }

    /// Copies `bytes` into the slot of `place`.
    pub(crate) fn put(&self, place: Place, bytes: &[u8]) -> Data<'static> {
        let begin = self.begin(place);
        Words(&self.words).copy_in(begin, bytes);
        self.data(begin, bytes.len())
    }

    /// Where the old value of the atomic at `place` is to come.
    pub(crate) fn expect_result(&self, place: Place) -> Data<'static> {
        let begin = self.begin(place);
        Words(&self.words).store(begin, RESULT_UNTOUCHED);
        self.data(begin, 8)
    }

    /// The old value of the atomic at `place`, which has ended.
    pub(crate) fn result(&self, place: Place) -> u64 {
        Words(&self.words).load(self.begin(place))
    }

    fn begin(&self, place: Place) -> usize {
        slot_of(place, self.depth) * INLINE_LEN
    }

    fn data(&self, begin: usize, len: usize) -> Data<'static> {
        let len = u32::try_from(len).expect("a slot is short");
        let address = self.registration.address() + begin as u64;
        Data::Registered { address, len, key: self.registration.local_key() }
    }
}
