//! A part of a message where it lies.

use weft_core::fabric::Words;
use weft_core::group::{self, UnknownReceipt};
use weft_core::ids::Rank;

use crate::node::Component;

/// A part of a message in the memory of this member, lent until it is dropped: the root may then
/// use that memory again.
pub struct GroupChunk<'g> {
    component: &'g mut Component,
    root: Rank,
    chunk: group::Chunk,
    is_kept: bool,
}

/// Names a chunk that was [kept](GroupChunk::keep).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupReceipt(group::Receipt);

impl std::fmt::Debug for GroupChunk<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupChunk").field("chunk", &self.chunk).finish_non_exhaustive()
    }
}

impl<'g> GroupChunk<'g> {
    pub(super) const fn new(component: &'g mut Component, root: Rank, chunk: group::Chunk) -> Self {
        Self { component, root, chunk, is_kept: false }
    }

    /// The sender.
    #[must_use]
    pub const fn root(&self) -> Rank {
        self.root
    }

    /// The number of the message, from 1.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.chunk.seq
    }

    /// The sender's tag.
    #[must_use]
    pub const fn tag(&self) -> u64 {
        self.chunk.tag
    }

    /// Bytes of the whole message.
    #[must_use]
    pub const fn message_len(&self) -> u64 {
        self.chunk.message_len
    }

    /// Where in the message the part begins.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.chunk.offset
    }

    /// Bytes of the part.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.chunk.len as usize
    }

    /// Whether the part is empty, as the one of an empty message is.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.chunk.len == 0
    }

    /// Whether the message is whole with it.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        self.chunk.is_last
    }

    /// The words in which the part lies, little-endian; the last one may have more bytes than the
    /// part. No member writes them while the chunk is lent.
    #[must_use]
    pub fn words(&self) -> Words<'_> {
        self.component.group_words(&self.chunk)
    }

    /// Copies the bytes of the part from `offset` on.
    ///
    /// # Panics
    /// When `into` reaches past the part: a bug of the caller.
    pub fn copy(&self, offset: usize, into: &mut [u8]) {
        assert!(offset + into.len() <= self.len(), "within the part");
        self.words().copy_out(offset, into);
    }

    /// Does not release the part yet: [`Group::release`](super::Group::release) does. An
    /// incarnation that ends before receives it again.
    #[must_use]
    pub fn keep(mut self) -> GroupReceipt {
        self.is_kept = true;
        GroupReceipt(self.chunk.receipt)
    }
}

impl Drop for GroupChunk<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            let released = self.component.group_release(self.chunk.receipt);
            debug_assert!(released.is_ok(), "it was handed out last of its root");
        }
    }
}

impl GroupReceipt {
    pub(super) fn release(self, component: &mut Component) -> Result<(), UnknownReceipt> {
        component.group_release(self.0)
    }
}
