//! What the program of a member does with its groups, straight on the endpoint.
//!
//! Each boot of a node is an epoch of its member of the groups: the others remove the boot before
//! by decision, or when they admit the next ([`super::leavers`]), and count that one once its
//! program asks for the group.

use std::collections::VecDeque;

use weft_core::endpoint::Plan;
use weft_core::fabric::{Fabric, Memory, WordMemory, Words};
use weft_core::group::{
    Chunk, Delivery, Grank, GroupId, Receipt, SendError, Standing, UnknownReceipt,
};
use weft_core::ids::{Incarnation, Peer, Rank};

use super::Component;
use crate::cluster::{Cluster, NamedGroup, Topology};
use crate::node::{EndpointFabric, NodeEndpoint, NodeError, NodeGroups};

/// A group of the cluster file, as this node sees it.
#[derive(Debug)]
pub(super) struct OwnGroup {
    pub(super) name: String,
    /// In the order of their granks.
    pub(super) members: Vec<Rank>,
    /// What the machine has handed out, once, and was not received: less than the windows hold.
    pub(super) due: VecDeque<Delivery>,
}

impl OwnGroup {
    /// The groups of `cluster`, in the order of their numbers.
    pub(super) fn all(cluster: &Cluster) -> Vec<Self> {
        let own = |it: NamedGroup| Self {
            name: it.name,
            members: it.members.into_iter().map(Rank).collect(),
            due: VecDeque::new(),
        };
        cluster.group.groups(cluster.nodes).into_iter().map(own).collect()
    }

    fn peers(&self) -> Vec<Peer> {
        self.members.iter().map(|rank| Peer(rank.0)).collect()
    }

    pub(super) fn grank(&self, rank: Rank) -> Option<Grank> {
        let index = self.members.iter().position(|member| *member == rank)?;
        u16::try_from(index).ok().map(Grank)
    }
}

/// Why the group did not take a message or a block. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The cluster file has no group of that name.
    #[error("the cluster file has no group of that name")]
    UnknownGroup,
    /// This node is not a member of the group.
    #[error("this node is not a member of the group")]
    NotAMember,
    /// Not all members have joined yet, or not all count this one, which has come back.
    #[error("not all members have joined the group")]
    Opening,
    /// A member has not received what was sent before.
    #[error("the window is full: a member has not received what was sent before")]
    WindowFull {
        /// The hindmost of the members that acknowledge to this one.
        hindmost: Option<Rank>,
    },
    /// The message is longer than the window.
    #[error("the message is longer than {limit} bytes")]
    TooLong {
        /// The length of the window: `group.blocks` times `group.block_len`.
        limit: usize,
    },
    /// A message that was begun is not written to its end.
    #[error("a long message is not written to its end")]
    Unfinished,
    /// No message was begun.
    #[error("no long message was begun")]
    NotBegun,
    /// The value of an all-gather is longer than what travels at once.
    #[error("the value is longer than {limit} bytes")]
    ValueTooLong {
        /// The longest value, in bytes.
        limit: u16,
    },
    /// An all-gather of this member is under way.
    #[error("the all-gather before is under way")]
    Gathering,
    /// Not all live members have entered the barrier or the all-gather in time.
    #[error("not all members have entered it in time")]
    TimedOut,
}

/// Gives the endpoint the groups that this node is a member of.
pub(super) fn begin(
    endpoint: &mut NodeEndpoint,
    plan: &Plan,
    own: &[OwnGroup],
    boot: Incarnation,
) -> Result<(), NodeError> {
    let Some((sizes, at)) = plan.groups() else { return Ok(()) };
    let incarnation = endpoint.incarnation();
    let fabric = endpoint.fabric();
    let groups = NodeGroups::new(fabric, sizes, at, incarnation);
    let mut groups = Box::new(groups.in_epoch(boot));
    let me = fabric.me();
    let ours = (0..).map(GroupId).zip(own).filter(|(_, it)| it.grank(Rank(me.0)).is_some());
    for (id, group) in ours {
        let members = group.peers();
        // Where nothing receives yet, the window of every other member would fill.
        let begun = groups.is_begun(fabric, id, &members);
        let opened = begun.and_then(|is_begun| match is_begun {
            true => groups.open(fabric, id, &members),
            false => Ok(()),
        });
        opened.map_err(|error| NodeError::Plan(error.to_string()))?;
    }
    let begun = endpoint.begin_groups(groups);
    debug_assert!(begun.is_ok(), "no peer is admitted before the endpoint is made");
    Ok(())
}

impl Component {
    /// The number of a group that this node takes part in: from now on, if it has come back.
    pub(crate) fn group_named(&mut self, name: &str) -> Result<GroupId, GroupError> {
        let named = (0..).map(GroupId).zip(&self.groups).find(|(_, group)| group.name == name);
        let (id, group) = named.ok_or(GroupError::UnknownGroup)?;
        if group.grank(self.rank()).is_none() {
            return Err(GroupError::NotAMember);
        }
        let (groups, fabric) = self.endpoint.groups().ok_or(GroupError::UnknownGroup)?;
        if !groups.is_opened(id) {
            let opened = groups.open(fabric, id, &group.peers());
            debug_assert!(opened.is_ok(), "its list was checked when the node began");
        }
        Ok(id)
    }

    /// Acts on the groups, and translates what they refuse in `id`.
    fn with_groups<T>(
        &mut self,
        id: GroupId,
        act: impl FnOnce(&mut NodeGroups, &mut EndpointFabric) -> Result<T, SendError>,
    ) -> Result<T, GroupError> {
        let (groups, fabric) = self.endpoint.groups().ok_or(GroupError::UnknownGroup)?;
        act(groups, fabric).map_err(|error| match error {
            SendError::NotOpen => GroupError::Opening,
            SendError::WindowFull { hindmost } => {
                GroupError::WindowFull { hindmost: hindmost.map(|it| self.group_member(id, it)) }
            }
            SendError::Unfinished => GroupError::Unfinished,
            SendError::NotBegun => GroupError::NotBegun,
            SendError::TooLong { limit } => GroupError::ValueTooLong { limit },
            SendError::Gathering => GroupError::Gathering,
        })
    }

    /// The rank of a member of a group.
    pub(crate) fn group_member(&self, id: GroupId, grank: Grank) -> Rank {
        let group = self.groups.get(usize::from(id.0));
        let rank = group.and_then(|group| group.members.get(grank.index()));
        debug_assert!(rank.is_some(), "the machine knows the members only");
        rank.copied().unwrap_or(Rank(grank.0))
    }

    pub(crate) fn group_is_open(&mut self, id: GroupId) -> bool {
        self.endpoint.groups().is_some_and(|(groups, _)| groups.is_open(id))
    }

    /// The longest message that is sent whole.
    pub(super) const fn group_window_len(&self) -> usize {
        self.cluster.group.blocks * self.cluster.group.block_len
    }

    /// How the blocks of the next messages of this member travel.
    pub(crate) fn group_set_topology(
        &mut self,
        id: GroupId,
        topology: Topology,
    ) -> Result<(), GroupError> {
        let spread = topology.spread(self.cluster.fabric);
        self.with_groups(id, |groups, _| groups.set_spread(id, spread))
    }

    pub(crate) fn group_broadcast(
        &mut self,
        id: GroupId,
        tag: u64,
        bytes: &[u8],
    ) -> Result<u64, GroupError> {
        let limit = self.group_window_len();
        // No window has room for it, ever: "the window is full" would be waited for in vain.
        if bytes.len() > limit {
            return Err(GroupError::TooLong { limit });
        }
        self.with_groups(id, |groups, fabric| groups.broadcast(fabric, id, tag, bytes))
    }

    pub(crate) fn group_begin(
        &mut self,
        id: GroupId,
        tag: u64,
        len: u64,
    ) -> Result<u64, GroupError> {
        self.with_groups(id, |groups, fabric| groups.begin(fabric, id, tag, len))
    }

    /// Writes the blocks of `bytes` for which the window has room; how many bytes those were.
    pub(crate) fn group_write(&mut self, id: GroupId, bytes: &[u8]) -> Result<usize, GroupError> {
        self.with_groups(id, |groups, fabric| {
            let mut written = 0;
            while let Some((at, len)) = groups.space(fabric, id) {
                // A block is announced whole.
                let Some(block) = bytes.get(written..written + len as usize) else { break };
                fabric.memory().copy_in(at.region, at.offset, block);
                groups.commit(fabric, id)?;
                written += block.len();
            }
            Ok(written)
        })
    }

    /// Whether any group has something to receive.
    pub(super) fn is_group_due(&mut self) -> bool {
        let mut ids = (0..).map(GroupId).take(self.groups.len());
        ids.any(|id| self.group_due(id).is_some())
    }

    /// What a group has to receive, in the order in which the machine hands it out.
    fn group_due(&mut self, id: GroupId) -> Option<&mut VecDeque<Delivery>> {
        let due = &mut self.groups.get_mut(usize::from(id.0))?.due;
        if due.is_empty() {
            let (groups, fabric) = self.endpoint.groups()?;
            due.push_back(groups.receive(fabric, id)?);
        }
        Some(due)
    }

    /// The next delivery; a chunk stays where it is until it is released.
    pub(crate) fn group_next(&mut self, id: GroupId) -> Option<Delivery> {
        self.group_due(id)?.pop_front()
    }

    /// The next delivery; the bytes of a chunk are copied behind `into`, and released.
    pub(crate) fn group_receive(&mut self, id: GroupId, into: &mut Vec<u8>) -> Option<Delivery> {
        let delivery = self.group_next(id)?;
        if let Delivery::Chunk(chunk) = delivery {
            let start = into.len();
            into.resize(start + chunk.len as usize, 0);
            let memory = self.endpoint.memory();
            memory.copy_out(chunk.at.region, chunk.at.offset, &mut into[start..]);
            let released = self.group_release(chunk.receipt);
            debug_assert!(released.is_ok(), "it was just handed out");
        }
        Some(delivery)
    }

    /// The words in which `chunk` lies.
    pub(crate) fn group_words(&self, chunk: &Chunk) -> Words<'_> {
        let words = self.endpoint.memory().words(chunk.at.region);
        words.range(chunk.at.offset as usize, chunk.len.next_multiple_of(8) as usize)
    }

    /// The program is done with a chunk and with those of its root before it.
    pub(crate) fn group_release(&mut self, receipt: Receipt) -> Result<(), UnknownReceipt> {
        let (groups, fabric) = self.endpoint.groups().ok_or(UnknownReceipt)?;
        groups.release(fabric, receipt)
    }

    pub(crate) fn group_arrive(&mut self, id: GroupId) -> Result<u64, GroupError> {
        self.with_groups(id, |groups, fabric| groups.arrive(fabric, id))
    }

    pub(crate) fn group_leave(&mut self, id: GroupId) -> Option<u64> {
        let (groups, fabric) = self.endpoint.groups()?;
        groups.leave(fabric, id)
    }

    pub(crate) fn group_all_gather(&mut self, id: GroupId, mine: &[u8]) -> Result<u64, GroupError> {
        self.with_groups(id, |groups, fabric| groups.all_gather(fabric, id, mine))
    }

    /// The values of the all-gather that is over, copied.
    pub(crate) fn group_gathered(&mut self, id: GroupId) -> Option<Vec<Option<Vec<u8>>>> {
        let (groups, fabric) = self.endpoint.groups()?;
        let gathered = groups.gathered(fabric, id)?;
        let values = gathered.values[..usize::from(gathered.count)].iter().map(|value| {
            value.map(|(_, at, len)| {
                let mut bytes = vec![0; len as usize];
                fabric.memory().copy_out(at.region, at.offset, &mut bytes);
                bytes
            })
        });
        let values = values.collect();
        groups.end_gather(fabric, id);
        Some(values)
    }

    /// Receives and enters what the others send and enter, for a program that has finished: they
    /// would wait for it.
    pub(crate) fn groups_join_in(&mut self) {
        let mut bytes = Vec::new();
        for id in (0..).map(GroupId).take(self.groups.len()) {
            while self.group_receive(id, &mut bytes).is_some() {
                bytes.clear();
            }
            // Refused where this is no member, or its window is full: the next pass enters again.
            if self.group_arrive(id).is_ok() {
                self.group_leave(id);
            }
            if matches!(self.group_all_gather(id, &[]), Ok(_) | Err(GroupError::Gathering)) {
                self.group_gathered(id);
            }
        }
    }

    pub(crate) fn group_standing(&mut self, id: GroupId, root: Rank) -> Option<Standing> {
        let root = self.groups.get(usize::from(id.0))?.grank(root)?;
        let (groups, _) = self.endpoint.groups()?;
        groups.standing(id, root)
    }
}
