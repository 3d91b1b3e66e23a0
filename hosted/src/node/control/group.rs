//! Groups in the requests and replies of clients.

use serde::{Deserialize, Serialize};

use super::{DeliveredMessage, Payload, Then};

/// What a client wants of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupWant {
    /// Send this message to all other members.
    Send {
        /// The application's tag of it.
        tag: u64,
        /// The message; without one this only waits until no other client is in the middle of a
        /// sequence, and reports the number of the last message.
        message: Option<Payload>,
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
        /// The message that the client has processed: its member and its number.
        done: Option<(u16, u64)>,
    },
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
    /// A message. One that a program has sent, and that is longer than a reply, has no bytes.
    Message(DeliveredMessage),
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
    TooLong,
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
            Self::NotAMember => "no member",
        }
    }
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
}
