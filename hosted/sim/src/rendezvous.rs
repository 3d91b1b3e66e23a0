//! Rendezvous under the simulator: every peer sends values and asks for some, under few names.
//!
//! | checker | promise |
//! |---|---|
//! | `match` | what is delivered was sent under that name, the same bytes |
//! | `typed` | it has the shape with which it was sent; a dead value is dead |
//! | `once` | each receive ends once, then returns once; no incarnation gets a value twice |
//! | `quiet` | no byte of a delivered value changes before its release |
//! | `bound` | nothing is kept for what has ended; a step that is over stays so |
//! | `validity` | what is consumed was delivered; explored: without a crash each pair meets |
//! | `liveness` | in the end every receive has ended and returned, and all memory is free |
//!
//! The bytes of a value follow from its sender, its incarnation and its number, so that two values
//! differ. No liars: a rendezvous survives crashes, not lies.

mod expected;
mod host;
mod ledger;
mod node;
mod small;

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use weft_core::fabric::{Fabric, Layout};
use weft_core::rendezvous::{
    Digest, Key, PartSizes, Path, RendezvousConfig, RendezvousRegions, RendezvousSizes, Shape,
};
use weft_core::time::Instant;

use super::draws::Draws;
use super::protocol::{
    HistoryEntry, HistoryEvent, MembershipNews, Protocol, Seat, Small, Violation,
};
pub(super) use expected::EXPECTED;
use ledger::MeetingLedger;
pub use node::MeetingEvent;
use node::MeetingNode;

/// The most peers in any run.
const PEERS: usize = 4;
/// The most slots in any run: of whole values, and of parts two for each peer.
const SLOTS: usize = 6 + 2 * PEERS;
/// Bytes of a part.
const PART_LEN: u32 = 40;

/// One run of rendezvous.
#[derive(Clone, Debug)]
pub struct Meetings {
    layout: Rc<Layout>,
    config: RendezvousConfig,
    regions: RendezvousRegions,
    /// Steps that values belong to.
    steps: u64,
    /// The longest value in bytes.
    len_max: u64,
    /// How long a receive waits at most, in microseconds.
    wait_us: u64,
    /// Whether some values lie outside of the fabric: they are handed over by the host (RZ-18), or
    /// come in parts (RZ-3).
    hands_over: bool,
    /// What the peers of an explorer do; a seed draws that.
    script: Option<Script>,
    ledger: MeetingLedger,
}

/// What peers do whose orders are not drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Script {
    /// Peer 0 sends to the others in turn, and they ask.
    Ask,
    /// As before, but they cancel what they have asked if it is open at their next order.
    AskAndCancel,
    /// Peer 0 asks peer 1, and after a round in which it may take the answer, it cancels that if it
    /// is open, and asks peer 2. Both send.
    CancelForAnother,
}

/// A value, as its sender made it: without a shape it is dead.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Worth {
    shape: Option<Shape>,
    bytes: Vec<u8>,
}

/// The name of a value: its key and its step.
pub type MeetingName = (Key, i64);

impl Hash for Meetings {
    /// What follows depends on the ledger alone: the rest is the same in every state of a walk.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ledger.hash(state);
    }
}

impl Meetings {
    fn new(sizes: RendezvousSizes, (steps, len_max, wait_us): (u64, u64, u64)) -> Self {
        let config = RendezvousConfig::new(sizes).expect("drawn within limits");
        let mut layout = Layout::new(sizes.peers);
        let regions = config.add_regions(&mut layout).expect("few regions for few peers");
        let ledger = MeetingLedger::default();
        let (layout, hands_over, script) = (Rc::new(layout), false, None);
        Self { layout, config, regions, steps, len_max, wait_us, hands_over, script, ledger }
    }

    fn peers(&self) -> u64 {
        u64::from(self.layout.peers())
    }
}

/// Two parts of each peer at a time.
const fn parts_of(peers: u16) -> PartSizes {
    PartSizes { len: PART_LEN, places: 2, slots: 2 * peers }
}

impl Protocol for Meetings {
    const NAME: &'static str = "rendezvous";

    type Node = MeetingNode;
    type Event = MeetingEvent;

    fn draw(draws: &mut Draws) -> Self {
        let sizes = RendezvousSizes {
            peers: draws.between(2, PEERS as u64) as u16,
            slots: draws.between(4, 6) as u16,
            leaf_len: 64,
            offer_leaves: draws.between(2, 6) as u32,
            landing_leaves: draws.between(2, 4) as u32,
            inline: draws.pick(&[0, 8, 24]),
            piece_len: draws.pick(&[8, 16, 64]),
            digest: draws.pick(&[Digest::Off, Digest::Crc32c]),
            path: Path::Read,
            parts: PartSizes::NONE,
            lane_slots: draws.pick(&[2, 4]),
        };
        let wait_us = draws.pick(&[100, 500, 3_000]);
        let lengths = (draws.between(1, 3), draws.pick(&[40, 120, 200]), wait_us);
        let hands_over = draws.pick(&[false, true]);
        let path = draws.pick(&[Path::Read, Path::Write]);
        let parts = if hands_over { parts_of(sizes.peers) } else { PartSizes::NONE };
        Self { hands_over, ..Self::new(RendezvousSizes { path, parts, ..sizes }, lengths) }
    }

    fn small() -> Vec<Small<Self>> {
        small::all()
    }

    fn deadline(&self, node: &MeetingNode) -> Option<Instant> {
        node.deadline()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn start(&self, seat: &mut Seat<'_, MeetingEvent>) -> MeetingNode {
        MeetingNode::new(self, seat)
    }

    fn step(&self, node: &mut MeetingNode, seat: &mut Seat<'_, MeetingEvent>) {
        node.step(self, seat);
    }

    fn membership(
        &self,
        node: &mut MeetingNode,
        seat: &mut Seat<'_, MeetingEvent>,
        change: MembershipNews,
    ) {
        match change {
            MembershipNews::Ended(peer, _) => {
                seat.fabric.fence(peer).expect("a simulated peer is fenced at once");
                node.fence(peer);
            }
            MembershipNews::Began(peer, incarnation) => node.admit((peer, incarnation), seat),
        }
    }

    fn judge(&mut self, entry: &HistoryEntry<MeetingEvent>) -> Result<(), Violation> {
        match &entry.what {
            HistoryEvent::Recorded(MeetingEvent::TimedOut { name }) if self.script.is_some() => {
                self.ledger.check_meeting(name)
            }
            HistoryEvent::Recorded(event) => {
                self.ledger.judge((entry.peer, entry.incarnation), event)
            }
            HistoryEvent::Died => {
                self.ledger.note_death();
                Ok(())
            }
            HistoryEvent::Began | HistoryEvent::Calm | HistoryEvent::Lied(_) => Ok(()),
        }
    }

    fn goal(&self, nodes: &[Option<&MeetingNode>]) -> Result<(), Violation> {
        nodes.iter().flatten().try_for_each(|node| node.check_finished())
    }
}
