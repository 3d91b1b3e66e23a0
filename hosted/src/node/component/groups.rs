//! What the program of a member does with the group of all nodes, straight on the endpoint.
//!
//! A node takes part in its first boot alone, as in broadcasts ([`super::leavers`]).

use weft_core::endpoint::Plan;
use weft_core::fabric::{Fabric, Memory};
use weft_core::group::{Chunk, Delivery, Grank, GroupId, Groups, SendError, Standing};
use weft_core::ids::{Peer, Rank};

use super::Component;
use crate::node::{EndpointFabric, GROUPS, NodeEndpoint, NodeError, PEERS};

/// The group of all nodes, granks in the order of ranks.
const ALL: GroupId = GroupId(0);

/// Why the group did not take a message or a block. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The cluster file has no groups.
    #[error("this cluster has no groups: set group.count to 1 in the cluster file")]
    NoGroups,
    /// This node was removed or restarted.
    #[error(
        "this node was removed or restarted, and takes no part in groups until the cluster is \
         restarted"
    )]
    Left,
    /// Not all members have joined yet.
    #[error("not all members have joined the group: poll, then try again")]
    Opening,
    /// A member has not received what was sent before.
    #[error("the window is full: poll until every member has received, then try again")]
    WindowFull {
        /// The hindmost of the members that acknowledge to this one.
        hindmost: Option<Rank>,
    },
    /// The message is longer than the window.
    #[error("the message is longer than {limit} bytes: begin it, then write it in parts")]
    TooLong {
        /// The length of the window: `group.blocks` times `group.block_len`.
        limit: usize,
    },
    /// A message that was begun is not written to its end.
    #[error("a long message is not written to its end: write the rest first")]
    Unfinished,
    /// No message was begun.
    #[error("no long message was begun: begin one first")]
    NotBegun,
    /// The value of an all-gather is longer than what travels at once.
    #[error("the value is longer than {limit} bytes: broadcast it instead")]
    ValueTooLong {
        /// The longest value, in bytes.
        limit: u16,
    },
    /// An all-gather of this member is under way.
    #[error("the all-gather before is under way: take its values first")]
    Gathering,
}

impl From<SendError> for GroupError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::NotOpen => Self::Opening,
            SendError::WindowFull { hindmost } => {
                Self::WindowFull { hindmost: hindmost.map(|grank| Rank(grank.0)) }
            }
            SendError::Unfinished => Self::Unfinished,
            SendError::NotBegun => Self::NotBegun,
            SendError::TooLong { limit } => Self::ValueTooLong { limit },
            SendError::Gathering => Self::Gathering,
        }
    }
}

/// Gives the endpoint its group, where the plan has a place for it.
pub(super) fn begin(
    endpoint: &mut NodeEndpoint,
    plan: &Plan,
    takes_part: bool,
) -> Result<(), NodeError> {
    let Some((sizes, at)) = plan.groups().filter(|_| takes_part) else { return Ok(()) };
    let incarnation = endpoint.incarnation();
    let fabric = endpoint.fabric();
    let mut groups = Box::new(Groups::<PEERS, GROUPS>::new(fabric, sizes, at, incarnation));
    let members: Vec<_> = (0..plan.layout().peers()).map(Peer).collect();
    groups.open(fabric, ALL, &members).map_err(|error| NodeError::Plan(error.to_string()))?;
    let begun = endpoint.begin_groups(groups);
    debug_assert!(begun.is_ok(), "no peer is admitted before the endpoint is made");
    Ok(())
}

impl Component {
    fn with_group<T>(
        &mut self,
        act: impl FnOnce(&mut Groups<PEERS, GROUPS>, &mut EndpointFabric) -> T,
    ) -> Result<T, GroupError> {
        if self.cluster.group.count == 0 {
            return Err(GroupError::NoGroups);
        }
        let (groups, fabric) = self.endpoint.groups().ok_or(GroupError::Left)?;
        Ok(act(groups, fabric))
    }

    pub(crate) fn group_is_open(&mut self) -> Result<bool, GroupError> {
        self.with_group(|groups, _| groups.is_open(ALL))
    }

    pub(crate) fn group_broadcast(&mut self, tag: u64, bytes: &[u8]) -> Result<u64, GroupError> {
        let limit = self.cluster.group.blocks * self.cluster.group.block_len;
        // No window has room for it, ever: "the window is full" would be waited for in vain.
        if bytes.len() > limit {
            return Err(GroupError::TooLong { limit });
        }
        Ok(self.with_group(|groups, fabric| groups.broadcast(fabric, ALL, tag, bytes))??)
    }

    pub(crate) fn group_begin(&mut self, tag: u64, len: u64) -> Result<u64, GroupError> {
        Ok(self.with_group(|groups, fabric| groups.begin(fabric, ALL, tag, len))??)
    }

    /// Writes the blocks of `bytes` for which the window has room; how many bytes those were.
    pub(crate) fn group_write(&mut self, bytes: &[u8]) -> Result<usize, GroupError> {
        self.with_group(|groups, fabric| {
            let mut written = 0;
            while let Some((at, len)) = groups.space(fabric, ALL) {
                // A block is announced whole.
                let Some(block) = bytes.get(written..written + len as usize) else { break };
                fabric.memory().copy_in(at.region, at.offset, block);
                groups.commit(fabric, ALL)?;
                written += block.len();
            }
            Ok::<_, SendError>(written)
        })?
        .map_err(GroupError::from)
    }

    /// Whether the group has something to receive.
    pub(super) fn is_group_due(&mut self) -> bool {
        // The machine hands out each delivery once: it is kept until the program receives it.
        if self.group_next.is_none() {
            let next = self.with_group(|groups, fabric| groups.receive(fabric, ALL));
            self.group_next = next.ok().flatten();
        }
        self.group_next.is_some()
    }

    /// The next delivery; the bytes of a chunk are copied behind `into`, and released.
    pub(crate) fn group_receive(&mut self, into: &mut Vec<u8>) -> Option<Delivery> {
        if !self.is_group_due() {
            return None;
        }
        let delivery = self.group_next.take()?;
        if let Delivery::Chunk(Chunk { at, len, receipt, .. }) = delivery {
            let start = into.len();
            into.resize(start + len as usize, 0);
            let (groups, fabric) = self.endpoint.groups()?;
            fabric.memory().copy_out(at.region, at.offset, &mut into[start..]);
            let released = groups.release(fabric, receipt);
            debug_assert!(released.is_ok(), "it was just handed out");
        }
        Some(delivery)
    }

    pub(crate) fn group_standing(&mut self, root: Rank) -> Option<Standing> {
        self.with_group(|groups, _| groups.standing(ALL, Grank(root.0))).ok().flatten()
    }
}
