//! Groups under the simulator: every peer sends messages of all lengths to one group or two.
//!
//! | checker | promise |
//! |---|---|
//! | `integrity` | a small message is what its root sent; no delivery changes before its release |
//! | `window` | what is delivered of a block is what its root wrote into that block |
//! | `order` | per root: messages one after the other, and the parts of each, no gap |
//! | `once` | no incarnation delivers a part twice, and trees reach each member once |
//! | `verdict` | a message is whole at all survivors, or abandoned at all |
//! | `agreement` | all survivors of a root have the same last message, and have delivered it |
//! | `barrier` | no member leaves a barrier before all live members have arrived at it |
//! | `gather` | all survivors of an all-gather have the same values, those that were sent |
//! | `steps` | the plan for blocks meets its bound in lockstep |
//! | `liveness` | all is delivered or abandoned in the end, and windows are empty |
//!
//! What a message holds follows from its group, root and number alone, so that every byte that is
//! delivered can be judged, and a message that is sent again by a later incarnation is the same.
//!
//! Some members are removed when their first incarnation ends, and some of them again when the
//! second does; decisions reach the others at different times. What a removed member delivers does
//! not bind the others. In most runs it comes back over the memory that the epoch before has left,
//! and is a member again once all count it. No liars: a group survives crashes, not lies.

mod calls;
mod expected;
mod ledger;
mod node;
mod plans;
mod small;

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use weft_core::fabric::{Fabric, Layout, Region};
use weft_core::group::{Class, Config, Costs, GroupId, Regions, Sizes, Spread, Tree};
use weft_core::ids::{Incarnation, Peer, PeerSet};

use super::draws::Draws;
use super::explore::Unexplored;
use super::protocol::{
    HistoryEntry, HistoryEvent, MembershipNews, Protocol, Seat, Small, Violation,
};
pub(super) use expected::EXPECTED;
use ledger::GroupLedger;
pub use node::GroupEvent;
use node::GroupNode;

/// The most peers in any run.
const PEERS: usize = 6;
/// The most groups in any run.
const GROUPS: usize = 2;

/// One run of groups.
#[derive(Clone, Debug)]
pub struct Groupings {
    layout: Rc<Layout>,
    config: Config,
    regions: Regions,
    /// The members of each group.
    lists: Vec<Vec<Peer>>,
    /// How many epochs of each peer end with its removal, each after one incarnation.
    removals: Vec<u32>,
    /// Whether a member that was removed comes back, or its next incarnation takes no part.
    returns: bool,
    /// How long messages are, at most, in blocks.
    blocks_max: u64,
    /// How long all are, where that is not drawn.
    len: Option<u64>,
    /// Barriers that each member goes through, and all-gathers.
    barriers: u64,
    gathers: u64,
    ledger: GroupLedger,
}

impl Hash for Groupings {
    /// What follows depends on the ledger alone: the rest is the same in every state of a walk.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ledger.hash(state);
    }
}

impl Groupings {
    fn new(sizes: Sizes, lists: Vec<Vec<Peer>>, doomed: PeerSet, blocks_max: u64) -> Self {
        let config = Config::new(sizes).expect("drawn within limits");
        let mut layout = Layout::new(sizes.peers);
        let regions = config.add_regions(&mut layout).expect("few regions for few peers");
        let removals = (0..sizes.peers).map(|peer| u32::from(doomed.contains(Peer(peer))));
        let (removals, returns) = (removals.collect(), false);
        let (len, barriers, gathers) = (None, 0, 0);
        let ledger = GroupLedger::default();
        Self {
            layout: Rc::new(layout),
            config,
            regions,
            lists,
            removals,
            returns,
            blocks_max,
            len,
            barriers,
            gathers,
            ledger,
        }
    }

    /// Whether that incarnation of `peer` takes no part any more.
    fn is_out(&self, peer: Peer, incarnation: Incarnation) -> bool {
        !self.returns && incarnation.0 > 1 && self.is_doomed((peer, 1))
    }

    /// The epoch of `peer` that this incarnation belongs to.
    fn epoch_of(&self, peer: Peer, incarnation: Incarnation) -> u32 {
        if self.returns { incarnation.0.min(self.removals[peer.index()] + 1) } else { 1 }
    }

    /// Whether this epoch of a peer ends with its removal.
    fn is_doomed(&self, (peer, epoch): Epoch) -> bool {
        epoch <= self.removals[peer.index()]
    }

    fn groups(&self) -> impl Iterator<Item = (GroupId, &[Peer])> {
        (0..).map(GroupId).zip(self.lists.iter().map(Vec::as_slice))
    }

    /// Bytes of message `seq` of `root` in `group`.
    fn len_of(&self, group: GroupId, root: Epoch, seq: u64) -> u64 {
        if let Some(len) = self.len {
            return len;
        }
        let sizes = self.config.sizes();
        let word = mixed([u64::from(group.0), word_of(root), seq, u64::MAX]);
        match word % 4 {
            0 | 1 => word / 4 % (u64::from(sizes.eager) + 1),
            _ => word / 4 % (self.blocks_max * u64::from(sizes.block_len) + 1),
        }
    }

    /// How the blocks of message `seq` of `root` travel, where messages do not all travel alike: in
    /// half of the runs.
    fn spread_of(&self, root: Peer, seq: u64) -> Spread {
        let sizes = self.config.sizes();
        let word = mixed([u64::from(root.0), seq, sizes.entries.into(), u64::MAX - 2]);
        let is_drawn = self.len.is_none() && sizes.tree.costs.delay.is_multiple_of(2);
        if is_drawn { Spread::ALL[word as usize % Spread::ALL.len()] } else { sizes.spread }
    }

    /// The value of `peer` in all-gather `number` of `group`.
    fn value_of(&self, group: GroupId, peer: Peer, number: u64) -> Vec<u8> {
        let word = mixed([u64::from(group.0), u64::from(peer.0), number, u64::MAX - 1]);
        let len = word % (u64::from(self.config.sizes().eager) + 1);
        (0..len).map(|at| mixed([word, number, at, 0]).to_le_bytes()[0]).collect()
    }

    /// The bytes from `offset` on of message `seq` of `root` in `group`.
    fn bytes_of(&self, name: (GroupId, Epoch, u64), offset: u64, len: usize) -> Vec<u8> {
        let (group, root, seq) = name;
        let byte = |at| mixed([u64::from(group.0), word_of(root), seq, at]).to_le_bytes()[0];
        (offset..).take(len).map(byte).collect()
    }
}

/// A peer in one of its epochs.
type Epoch = (Peer, u32);

/// A number for each.
fn word_of((peer, epoch): Epoch) -> u64 {
    u64::from(peer.0) | u64::from(epoch - 1) << 16
}

/// A number that depends on all of `words`.
fn mixed(words: [u64; 4]) -> u64 {
    words.into_iter().fold(0x9E37_79B9_7F4A_7C15, |hash, word| {
        let mixed = (hash ^ word).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed ^ mixed >> 29
    })
}

impl Protocol for Groupings {
    const NAME: &'static str = "group";

    type Node = GroupNode;
    type Event = GroupEvent;

    fn draw(draws: &mut Draws) -> Self {
        let peers = draws.between(2, PEERS as u64) as u16;
        let class = draws.pick(&[Class::Serial, Class::Pipe, Class::Binary, Class::Fibonacci]);
        let costs = Costs::postal(draws.between(1, 8) as u8);
        let blocks = draws.pick(&[2, 4, 8]);
        let sizes = Sizes {
            peers,
            groups: draws.between(1, GROUPS as u64) as u8,
            entries: draws.pick(&[2, 4, 8]),
            blocks,
            block_len: draws.pick(&[8, 16, 64]),
            eager: draws.pick(&[0, 8, 24, 40]),
            lane_slots: draws.pick(&[2, 4, 8]),
            tree: Tree { class, costs },
            spread: draws.pick(&[Spread::Flat, Spread::Pipeline]),
        };
        let lists = (0..sizes.groups).map(|_| {
            let mut list: Vec<_> = (0..peers).map(Peer).collect();
            draws.shuffle(&mut list);
            let len = draws.between(2, u64::from(peers)) as usize;
            list.truncate(len.max(2));
            list
        });
        let lists = lists.collect();
        let mut doomed = PeerSet::EMPTY;
        if draws.chance(2, 3) {
            for _ in 0..draws.between(1, 3) {
                doomed.insert(Peer(draws.below(u64::from(peers)) as u16));
            }
        }
        let blocks_max = draws.between(1, 3 * u64::from(blocks));
        let (barriers, gathers) = (draws.pick(&[0, 0, 1, 4]), draws.pick(&[0, 0, 1, 4]));
        let mut run = Self { barriers, gathers, ..Self::new(sizes, lists, doomed, blocks_max) };
        run.returns = draws.chance(1, 2);
        if run.returns && draws.chance(1, 3) {
            run.removals.iter_mut().for_each(|epochs| *epochs *= 2);
        }
        run
    }

    fn small() -> Vec<Small<Self>> {
        small::all()
    }

    fn unexplored() -> Vec<Unexplored> {
        small::left_out()
    }

    /// Where every member that dies is removed, no later incarnation reads what it left.
    fn forgotten(&self) -> Vec<Region> {
        let is_read = self.returns || self.removals.contains(&0);
        let regions = (0..).map(Region).take(self.layout.regions().len());
        if is_read { Vec::new() } else { regions.collect() }
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn start(&self, seat: &mut Seat<'_, GroupEvent>) -> GroupNode {
        GroupNode::new(self, seat)
    }

    fn step(&self, node: &mut GroupNode, seat: &mut Seat<'_, GroupEvent>) {
        node.step(self, seat);
    }

    fn membership(
        &self,
        node: &mut GroupNode,
        seat: &mut Seat<'_, GroupEvent>,
        change: MembershipNews,
    ) {
        match change {
            MembershipNews::Ended(peer, last)
                if self.is_doomed((peer, self.epoch_of(peer, last))) =>
            {
                node.remove((peer, self.epoch_of(peer, last)), seat);
            }
            MembershipNews::Ended(peer, _) => {
                seat.fabric.fence(peer).expect("a simulated peer is fenced at once");
                node.fence(peer);
            }
            MembershipNews::Began(peer, incarnation) if self.is_out(peer, incarnation) => {
                node.remove((peer, 1), seat);
            }
            MembershipNews::Began(peer, incarnation) => {
                // The incarnations before it are fenced, also where no decision has arrived yet.
                node.remove((peer, self.epoch_of(peer, incarnation) - 1), seat);
                node.admit((peer, incarnation), seat);
            }
        }
    }

    fn judge(&mut self, entry: &HistoryEntry<GroupEvent>) -> Result<(), Violation> {
        match &entry.what {
            HistoryEvent::Recorded(event) => {
                self.judge_bytes(event)?;
                let list = event.group().map_or(&[][..], |id| &self.lists[usize::from(id.0)]);
                let by = (entry.peer, self.epoch_of(entry.peer, entry.incarnation));
                let removals = &self.removals;
                let is_doomed = |(peer, epoch): Epoch| epoch <= removals[peer.index()];
                self.ledger.judge((by, event), list, is_doomed)
            }
            HistoryEvent::Began => {
                self.ledger.begin((entry.peer, self.epoch_of(entry.peer, entry.incarnation)));
                Ok(())
            }
            HistoryEvent::Calm => plans::check(self.config.sizes(), self.blocks_max),
            HistoryEvent::Died => {
                let epoch = (entry.peer, self.epoch_of(entry.peer, entry.incarnation));
                if self.is_doomed(epoch) && !self.is_out(entry.peer, entry.incarnation) {
                    self.ledger.end(epoch);
                }
                Ok(())
            }
            HistoryEvent::Lied(_) => Ok(()),
        }
    }

    fn goal(&self, nodes: &[Option<&GroupNode>]) -> Result<(), Violation> {
        let binding = (0..)
            .map(Peer)
            .zip(nodes)
            .filter_map(|(peer, node)| node.filter(|node| !self.is_out(peer, node.incarnation())));
        let binding: Vec<_> = binding.collect();
        for node in &binding {
            if let Some(what) = node.unfinished(self) {
                return Err(Violation::new("liveness", what));
            }
        }
        for root in &binding {
            for other in &binding {
                root.check_delivered(self, other)?;
            }
        }
        Ok(())
    }
}

impl Groupings {
    fn judge_bytes(&self, event: &GroupEvent) -> Result<(), Violation> {
        if let GroupEvent::Gathered { group, number, values } = event {
            let list = &self.lists[usize::from(group.0)];
            let is_sent = |(peer, value): (&Peer, &calls::Value)| {
                let value = value.as_ref().map(|(.., bytes)| bytes);
                value.is_none_or(|bytes| *bytes == self.value_of(*group, *peer, *number))
            };
            if !list.iter().zip(values).all(is_sent) {
                return Err(Violation::new("gather", format!("{event:?} was not sent")));
            }
        }
        let GroupEvent::Chunk { group, root, seq, offset, bytes, message_len, .. } = event else {
            return Ok(());
        };
        let due = self.bytes_of((*group, *root, *seq), *offset, bytes.len());
        let len = self.len_of(*group, *root, *seq);
        let is_small = len <= u64::from(self.config.sizes().eager);
        if *bytes != due || *message_len != len {
            let checker = if is_small { "integrity" } else { "window" };
            let what = format!("{event:?} is not what its root sent: {due:?} of {len}");
            return Err(Violation::new(checker, what));
        }
        Ok(())
    }
}
