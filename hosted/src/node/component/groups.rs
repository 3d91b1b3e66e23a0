//! What the program of a member does with the group of all nodes, straight on the endpoint.
//!
//! A node takes part in its first boot alone, as in broadcasts ([`super::leavers`]).

use weft_core::endpoint::Plan;
use weft_core::fabric::{Fabric, Memory, WordMemory, Words};
use weft_core::group::{
    Chunk, Delivery, Grank, GroupId, Groups, Receipt, SendError, Standing, UnknownReceipt,
};
use weft_core::ids::{Peer, Rank};

use super::{Component, Flow};
use crate::clock::Deadline;
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
    /// Not all live members have entered the barrier or the all-gather in time.
    #[error(
        "not all members have entered it in time: call again, and this member goes on where it is; \
         receive what was sent before"
    )]
    TimedOut,
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

    /// The next delivery; a chunk stays where it is until it is released.
    pub(crate) fn group_next(&mut self) -> Option<Delivery> {
        if self.is_group_due() { self.group_next.take() } else { None }
    }

    /// The next delivery; the bytes of a chunk are copied behind `into`, and released.
    pub(crate) fn group_receive(&mut self, into: &mut Vec<u8>) -> Option<Delivery> {
        let delivery = self.group_next()?;
        if let Delivery::Chunk(chunk) = delivery {
            let start = into.len();
            into.resize(start + chunk.len as usize, 0);
            self.group_words(&chunk).copy_out(0, &mut into[start..]);
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
        let released = self.with_group(|groups, fabric| groups.release(fabric, receipt));
        released.unwrap_or(Err(UnknownReceipt))
    }

    pub(crate) fn group_arrive(&mut self) -> Result<u64, GroupError> {
        Ok(self.with_group(|groups, fabric| groups.arrive(fabric, ALL))??)
    }

    pub(crate) fn group_leave(&mut self) -> Option<u64> {
        self.with_group(|groups, fabric| groups.leave(fabric, ALL)).ok().flatten()
    }

    pub(crate) fn group_all_gather(&mut self, mine: &[u8]) -> Result<u64, GroupError> {
        Ok(self.with_group(|groups, fabric| groups.all_gather(fabric, ALL, mine))??)
    }

    /// The values of the all-gather that is over, copied.
    pub(crate) fn group_gathered(&mut self) -> Option<Vec<Option<Vec<u8>>>> {
        let taken = self.with_group(|groups, fabric| {
            let gathered = groups.gathered(fabric, ALL)?;
            let values = gathered.values[..usize::from(gathered.count)].iter().map(|value| {
                value.map(|(_, at, len)| {
                    let mut bytes = vec![0; len as usize];
                    fabric.memory().copy_out(at.region, at.offset, &mut bytes);
                    bytes
                })
            });
            let values = values.collect();
            groups.end_gather(fabric, ALL);
            Some(values)
        });
        taken.ok().flatten()
    }

    /// Enters what the others enter, for a program that has finished: they would wait for it.
    pub(crate) fn group_join_in(&mut self) {
        // Refused where there is no group, or its window is full: the next pass enters again.
        if self.group_arrive().is_ok() {
            self.group_leave();
        }
        if matches!(self.group_all_gather(&[]), Ok(_) | Err(GroupError::Gathering)) {
            self.group_gathered();
        }
    }

    /// Passes until `act` returns something; none by `deadline`, or once the node is gone.
    pub(crate) fn wait_for<T>(
        &mut self,
        deadline: Deadline,
        mut act: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<Option<T>, NodeError> {
        let Some(mut waiter) = self.waiter.take() else { return Ok(None) };
        let waited = loop {
            let mut flow = self.pass();
            let mut done = act(self);
            if done.is_none() && matches!(flow, Ok(Flow::Idle)) && !deadline.has_passed() {
                let timeout = self.timeout().min(deadline.remaining());
                let again = || {
                    flow = self.pass();
                    // The pass may have brought what is waited for.
                    done = act(self);
                    done.is_some() || !matches!(flow, Ok(Flow::Idle))
                };
                if let Err(error) = waiter.idle(again, timeout) {
                    break Err(error.into());
                }
            }
            match flow {
                Err(error) => break Err(error),
                Ok(Flow::Progress) => waiter.progress(),
                Ok(Flow::Idle | Flow::End) => {}
            }
            // Ordered to stop, or without a node: what is waited for may never come.
            let is_over = matches!(flow, Ok(Flow::End)) || self.is_stopping();
            if done.is_some() || is_over || deadline.has_passed() {
                break Ok(done);
            }
        };
        self.waiter = Some(waiter);
        waited
    }

    pub(crate) fn group_standing(&mut self, root: Rank) -> Option<Standing> {
        self.with_group(|groups, _| groups.standing(ALL, Grank(root.0))).ok().flatten()
    }
}
