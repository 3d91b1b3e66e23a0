//! Groups in the requests and replies of clients.

use serde::{Deserialize, Serialize};

use super::Then;
use crate::cluster::Topology;

/// What a client wants of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupWant {
    /// Send this message to all other members.
    Send {
        /// The application's tag of it.
        tag: u64,
        /// Bytes of the message, which lie in sealed memory whose descriptor comes with the
        /// request; without a message this only waits until no other client is in the middle of a
        /// sequence, and reports the number of the last message.
        len: Option<u64>,
        /// How its blocks travel; without one as the cluster file says.
        topology: Option<Topology>,
        /// What the client intends to do next.
        then: Then,
    },
    /// Receive the next message of another member. One client for each member.
    Receive {
        /// Only of this member, which the client holds from now on; without it, of any member that
        /// no other client holds, and which is held once a message of it was received.
        root: Option<u16>,
        /// The client's process, shown to other clients.
        process: u32,
        /// What the client has processed.
        done: Option<GroupDone>,
    },
    /// Return a descriptor of the memory in which messages lie, for reading.
    Hold,
    /// Wait until the node takes part in the group, as one that has come back does once a client
    /// asks for it.
    Open,
    /// Enter the next barrier, and leave it with all other members.
    Barrier,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupOutcome {
    /// The number of the last message that this node has sent.
    Sent {
        /// The number, from 1.
        last: u64,
    },
    /// What was received; nothing if none came in time.
    Received(Option<GroupReceived>),
    /// The descriptor of the memory comes with this.
    Hold {
        /// Bytes of the memory.
        bytes: u64,
    },
    /// The node takes part in the group.
    Open,
    /// The barrier of this number was left.
    Left {
        /// The number, from 1.
        number: u64,
    },
}

/// What is received of a member, in its order. It stays with the node until it is reported as
/// processed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupReceived {
    /// A message where it lies, whole, or the next bytes of one that is longer than the window.
    Run(GroupRun),
    /// That message will not become whole.
    Abandoned {
        /// Its member.
        root: u16,
        /// Its number.
        seq: u64,
    },
    /// The member was removed: no further message of it comes.
    RootLost {
        /// The member.
        root: u16,
        /// The number of its last message; 0 if there is none.
        last: u64,
    },
}

/// Bytes of one message, in the memory of the node ([`GroupWant::Hold`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRun {
    /// Its member.
    pub origin: u16,
    /// Its number.
    pub seq: u64,
    /// The application's tag of it.
    pub tag: u64,
    /// Bytes of the whole message.
    pub message_len: u64,
    /// Where in the message the run begins.
    pub offset: u64,
    /// Where it lies, in order: offset in the memory, and bytes.
    pub parts: Vec<(u32, u32)>,
    /// Whether the message is whole with it.
    pub is_last: bool,
}

impl GroupRun {
    /// Where in the message the run ends.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + self.parts.iter().map(|(_, len)| u64::from(*len)).sum::<u64>()
    }

    /// Whether it is the whole message.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.offset == 0 && self.is_last
    }
}

/// What a client has processed: the node may use its memory again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupDone {
    /// The member.
    pub origin: u16,
    /// The number of the message.
    pub seq: u64,
    /// Bytes of the message, from its beginning.
    pub through: u64,
}

/// Why a node refuses a request about a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupRefused {
    /// The cluster file has no group of that name.
    Unknown {
        /// The groups that it has.
        groups: Vec<String>,
    },
    /// That node is no member of the group.
    NotAMember {
        /// The node.
        rank: u16,
        /// The members.
        members: Vec<u16>,
    },
    /// Not all members have joined in time.
    Opening,
    /// The window stayed full past the deadline.
    WindowFull {
        /// The hindmost of the members that acknowledge to this one.
        hindmost: Option<u16>,
    },
    /// Not all members have entered the barrier in time.
    Waiting,
    /// The message is longer than a client may send.
    TooLong {
        /// The longest, in bytes: the length of the window.
        limit: u64,
    },
    /// What came with the request is not sealed memory of that length.
    NotSealed(String),
}

/// A group, as a node sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Its name.
    pub name: String,
    /// Its members.
    pub members: Vec<u16>,
    /// What this node is in it.
    pub standing: GroupPart,
    /// The members that were removed, as far as this node knows.
    pub removed: Vec<u16>,
    /// What came of each member, this node's own messages included.
    pub roots: Vec<RootStatus>,
}

/// What a node is in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupPart {
    /// All members have joined.
    Open,
    /// Not all members have joined yet; or the node has come back, and not all count it yet.
    Opening,
    /// The node has come back, and its program has not asked for the group since: the others do
    /// without it.
    Unopened,
    /// It is none of the members.
    NotAMember,
}

impl GroupPart {
    /// The text for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Opening => "opening",
            Self::Unopened => "which came back, and where no client has asked for it since",
            Self::NotAMember => "no member",
        }
    }
}

/// The window of a member: what not all have processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupWindow {
    /// Messages in it.
    pub entries: u64,
    /// How many there may be: `group.entries`.
    pub entries_max: u64,
    /// Blocks of long messages in it.
    pub blocks: u64,
    /// How many there may be: `group.blocks`.
    pub blocks_max: u64,
    /// The hindmost of the members that acknowledge to this one.
    pub hindmost: Option<u16>,
}

/// How far the messages of a member have come, as a node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootStatus {
    /// The member.
    pub root: u16,
    /// The last message that is known here.
    pub held: u64,
    /// The last message that was received and processed here.
    pub delivered: u64,
    /// The last message that all members have processed; known at the member itself.
    pub by_all: Option<u64>,
    /// What is in its window; known at the member itself.
    pub window: Option<GroupWindow>,
}
