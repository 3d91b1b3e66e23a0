//! What groups hand out, and what they refuse.

use core::fmt;
use core::hash::{Hash, Hasher};

use super::note::Position;
use super::seats::Grank;
use crate::fabric::At;
use crate::ids::Incarnation;

/// The number of a group: its place in every member's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u16);

/// Why a group was not opened. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenError {
    /// There is no place of that number.
    NoPlace,
    /// It is open already.
    IsOpen,
    /// A member is there twice.
    Duplicate,
    /// A member is no peer of the cluster.
    UnknownPeer,
    /// This endpoint is not among the members.
    NotAMember,
    /// A group has two members or more.
    OneMember,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoPlace => "there is no place for a group of that number",
            Self::IsOpen => "the group is open already",
            Self::Duplicate => "a member is there twice",
            Self::UnknownPeer => "a member is no peer of the cluster",
            Self::NotAMember => "this endpoint is not among the members",
            Self::OneMember => "a group has two members or more",
        })
    }
}

impl core::error::Error for OpenError {}

/// Why a message was not sent. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SendError {
    /// There is no such group, or not all its live members have opened it in the same way.
    NotOpen,
    /// The window is full: the hindmost member has not released what fills it.
    WindowFull {
        /// The hindmost of those that acknowledge to this root.
        hindmost: Option<Grank>,
    },
    /// A message that was begun is not yet whole.
    Unfinished,
    /// No message was begun.
    NotBegun,
    /// A value of an all-gather is longer than what travels with an entry
    /// ([`Sizes::eager`](super::Sizes::eager)).
    TooLong {
        /// How long it may be, in bytes.
        limit: u16,
    },
    /// The values of the all-gather before were not taken.
    Gathering,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOpen => f.write_str("the group is not open at all members"),
            Self::WindowFull { hindmost: Some(grank) } => {
                write!(f, "the window is full: member {} has not released it", grank.0)
            }
            Self::WindowFull { hindmost: None } => f.write_str("the window is full"),
            Self::Unfinished => f.write_str("a message that was begun is not yet whole"),
            Self::NotBegun => f.write_str("no message was begun"),
            Self::TooLong { limit } => write!(f, "the value is longer than {limit} bytes"),
            Self::Gathering => f.write_str("the values of the all-gather before were not taken"),
        }
    }
}

impl core::error::Error for SendError {}

/// The receipt is not that of a chunk that was handed out and not released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnknownReceipt;

impl fmt::Display for UnknownReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no chunk of this receipt is handed out")
    }
}

impl core::error::Error for UnknownReceipt {}

/// Names a chunk that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Receipt {
    pub(super) group: GroupId,
    pub(super) root: Grank,
    pub(super) through: Position,
}

/// A part of a message that lies in own memory until it is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chunk {
    /// The sender.
    pub root: Grank,
    /// The number of the message.
    pub seq: u64,
    /// The sender's tag.
    pub tag: u64,
    /// Bytes of the whole message.
    pub message_len: u64,
    /// Where in the message the chunk begins.
    pub offset: u64,
    /// Where it lies in own memory.
    pub at: At,
    /// Bytes of the chunk.
    pub len: u32,
    /// The message is whole with it.
    pub is_last: bool,
    /// For [`super::Groups::release`].
    pub receipt: Receipt,
}

/// What a member receives from one root, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// The next part of a message.
    Chunk(Chunk),
    /// The message will not become whole; what was handed out of it is a prefix.
    Abandoned {
        /// The sender.
        root: Grank,
        /// The number of the message.
        seq: u64,
    },
    /// The root was removed, and this is the last of its messages: all survivors have the same.
    RootLost {
        /// The sender.
        root: Grank,
        /// The epoch of the root that ended. What it sends in a later one comes behind this.
        epoch: Incarnation,
        /// The number of its last message; 0 if there is none.
        last: u64,
    },
}

/// The values of an all-gather, in own memory until [`super::Groups::end_gather`]; the same at all
/// survivors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gathered<const PEERS: usize> {
    /// The number of the all-gather, from 1.
    pub number: u64,
    /// The members of the group.
    pub count: u16,
    /// For each grank below `count`: the number of the value among the messages of its member,
    /// where it lies, and its bytes. None of a member that was removed before it sent one.
    pub values: [Option<(u64, At, u32)>; PEERS],
}

/// What a member of a group knows of one root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Standing {
    /// Held here.
    pub held: Position,
    /// Released by the consumer here.
    pub released: Position,
    /// Released by all members; known to the root alone.
    pub stable: Position,
    /// At the root: the hindmost of the members that acknowledge to it.
    pub hindmost: Option<Grank>,
}

/// The counters of this incarnation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Entries forwarded to other members.
    pub forwards: u64,
    /// Reads of blocks and entries.
    pub reads: u64,
    /// Reads that failed; each is repeated.
    pub failed_reads: u64,
    /// Entries that had been received before.
    pub repeated: u64,
    /// Entries that did not follow the last, or had no free slot.
    pub gaps: u64,
    /// Frames that are none, or about no stream of a group that both have opened.
    pub bad_frames: u64,
    /// Frames about a root whose memory began in another incarnation.
    pub foreign_epochs: u64,
    /// Members that opened a group of another list or other sizes.
    pub disagreements: u64,
}

impl Hash for Counters {
    /// Counters affect no later step: the explorer must not tell states apart by them.
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}
