//! Groups of members: messages of any length, along trees.
//!
//! ```text
//!   broadcast ─▶ [ own window ] ══ each member reads from a member that has it ══▶ receive
//!   begin, write …      ▲                                                            │
//!                       └──────────── a slot is free once all have received ◀────────┘
//! ```
//!
//! Per root, all surviving members receive the same messages, in its order, whatever fails
//! ([`weft_core::group`]). There is no order between roots, and no defence against a member that
//! sends different messages: [`Member::broadcast`] has that. The cluster file names the groups:
//! [`ALL`] where `group.count` is 1, and each of `[[groups]]`; `[group]` sets the windows of all.

mod calls;
mod chunk;

pub use calls::GroupValues;
pub use chunk::{GroupChunk, GroupReceipt};
use weft_core::group::{self, GroupId};
pub use weft_core::group::{Standing as GroupStanding, UnknownReceipt as UnknownGroupReceipt};
use weft_core::ids::Rank;

use super::Member;
use crate::cluster::Topology;
use crate::node::Component;
pub use crate::node::GroupError;

/// What a member receives from one root, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupDelivery {
    /// The next part of a message; its bytes are at the end of the buffer.
    Part {
        /// The sender.
        root: Rank,
        /// The number of the message, from 1.
        seq: u64,
        /// The sender's tag.
        tag: u64,
        /// Bytes of the whole message.
        message_len: u64,
        /// Where in the message the part begins.
        offset: u64,
        /// Bytes of the part.
        len: usize,
        /// The message is whole with it.
        is_last: bool,
    },
    /// The message will not become whole, at any member; what was received is a prefix.
    Abandoned {
        /// The sender.
        root: Rank,
        /// The number of the message.
        seq: u64,
    },
    /// The root was removed; all survivors have received its messages up to `last`, and no other.
    RootLost {
        /// The sender.
        root: Rank,
        /// The number of its last message; 0 if there is none.
        last: u64,
    },
}

/// As [`GroupDelivery`], a part where it lies.
#[derive(Debug)]
#[non_exhaustive]
pub enum GroupInPlace<'g> {
    /// The next part of a message.
    Part(GroupChunk<'g>),
    /// The message will not become whole.
    Abandoned {
        /// The sender.
        root: Rank,
        /// The number of the message.
        seq: u64,
    },
    /// The root was removed.
    RootLost {
        /// The sender.
        root: Rank,
        /// The number of its last message; 0 if there is none.
        last: u64,
    },
}

/// The name of the group of all members, where `group.count` is 1.
pub const ALL: &str = crate::cluster::Group::ALL;

/// A group, from [`Member::group`] or [`MemberHandle::with_group`].
///
/// [`MemberHandle::with_group`]: super::MemberHandle::with_group
pub struct Group<'m> {
    component: &'m mut Component,
    id: GroupId,
}

impl std::fmt::Debug for Group<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Group").field("rank", &self.component.rank()).finish_non_exhaustive()
    }
}

impl Member {
    /// The group of that name in the cluster file. Poll the member to make it progress. After its
    /// node has come back, the other members count this one from the first call on.
    ///
    /// # Errors
    /// [`GroupError::UnknownGroup`], [`GroupError::NotAMember`].
    pub fn group(&mut self, name: &str) -> Result<Group<'_>, GroupError> {
        Group::of(&mut self.component, name)
    }
}

impl<'m> Group<'m> {
    pub(super) fn of(component: &'m mut Component, name: &str) -> Result<Self, GroupError> {
        let id = component.group_named(name)?;
        Ok(Self { component, id })
    }

    /// Whether all members have joined the group.
    pub fn is_open(&mut self) -> bool {
        self.component.group_is_open(self.id)
    }

    /// The blocks of the messages that this incarnation sends from now on travel so, instead of as
    /// the cluster file says.
    ///
    /// # Errors
    /// [`GroupError::UnknownGroup`]: not of a group that was found.
    pub fn set_topology(&mut self, topology: Topology) -> Result<(), GroupError> {
        self.component.group_set_topology(self.id, topology)
    }

    /// The length of a block, and of the longest part of a message: `group.block_len`.
    #[must_use]
    pub fn block_len(&self) -> usize {
        self.component.cluster().group.block_len
    }

    /// Sends `bytes` to all other members, whole or not at all, and returns its number. What is
    /// longer than the window (`group.blocks` times `group.block_len`) must be
    /// [begun](Self::begin).
    ///
    /// # Errors
    /// [`GroupError`]; nothing changed.
    pub fn broadcast(&mut self, tag: u64, bytes: &[u8]) -> Result<u64, GroupError> {
        self.component.group_broadcast(self.id, tag, bytes)
    }

    /// Begins a message of `len` bytes, which are [written](Self::write) as the window has room;
    /// returns its number.
    ///
    /// # Errors
    /// [`GroupError`]; nothing changed.
    pub fn begin(&mut self, tag: u64, len: u64) -> Result<u64, GroupError> {
        self.component.group_begin(self.id, tag, len)
    }

    /// Writes the next bytes of the message that was begun, in whole blocks: as many as the window
    /// has room for and `bytes` has, the last block at its end. Returns how many bytes it took;
    /// poll, and pass the rest again.
    ///
    /// # Errors
    /// [`GroupError`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, GroupError> {
        self.component.group_write(self.id, bytes)
    }

    /// The next delivery of any other member: the bytes of a part are appended to `into`, and their
    /// memory is free for the root. An incarnation receives again what the one before it did not.
    ///
    /// The stream of a member that was removed ends with [`GroupDelivery::RootLost`], also where it
    /// has sent nothing: `last` is 0 then.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> Option<GroupDelivery> {
        let delivery = self.component.group_receive(self.id, into)?;
        let rank = |root| self.component.group_member(self.id, root);
        Some(match delivery {
            group::Delivery::Chunk(chunk) => GroupDelivery::Part {
                root: rank(chunk.root),
                seq: chunk.seq,
                tag: chunk.tag,
                message_len: chunk.message_len,
                offset: chunk.offset,
                len: chunk.len as usize,
                is_last: chunk.is_last,
            },
            group::Delivery::Abandoned { root, seq } => {
                GroupDelivery::Abandoned { root: rank(root), seq }
            }
            group::Delivery::RootLost { root, last, .. } => {
                GroupDelivery::RootLost { root: rank(root), last }
            }
        })
    }

    /// As [`Self::receive`], without a copy: the part is released when it is dropped, or by its
    /// [receipt](GroupChunk::keep).
    pub fn receive_in_place(&mut self) -> Option<GroupInPlace<'_>> {
        let delivery = self.component.group_next(self.id)?;
        let rank = |root| self.component.group_member(self.id, root);
        Some(match delivery {
            group::Delivery::Abandoned { root, seq } => {
                GroupInPlace::Abandoned { root: rank(root), seq }
            }
            group::Delivery::RootLost { root, last, .. } => {
                GroupInPlace::RootLost { root: rank(root), last }
            }
            group::Delivery::Chunk(chunk) => {
                let root = rank(chunk.root);
                GroupInPlace::Part(GroupChunk::new(self.component, root, chunk))
            }
        })
    }

    /// The chunk of `receipt` and all of its root before it were processed.
    ///
    /// # Errors
    /// [`UnknownGroupReceipt`]: one behind it was released already.
    pub fn release(&mut self, receipt: GroupReceipt) -> Result<(), UnknownGroupReceipt> {
        receipt.release(self.component)
    }

    /// How far the messages of `root` have come, as this member knows it.
    pub fn standing(&mut self, root: Rank) -> Option<GroupStanding> {
        self.component.group_standing(self.id, root)
    }
}
