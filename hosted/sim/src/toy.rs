//! Two peers and a counter: a protocol whose states can be counted, and whose bugs are known.

use weft_core::fabric::{Access, At, Completion, CompletionFlags, Fabric, Layout, Memory, Op};
use weft_core::fabric::{PostError, Region, RegionSpec, Work, WorkId};
use weft_core::ids::{Peer, PeerSet};

use crate::draws::Draws;
use crate::{
    HistoryEntry, HistoryEvent, MembershipNews, Protocol, Seat, Small, Subject, Violation,
};

/// No peer uses the counter: as many rounds of the loop as there are orders, and no work.
pub(crate) const IDLE: u8 = 0;
/// Each reads the counter and writes one more: the textbook's lost update.
pub(crate) const READ_THEN_WRITE: u8 = 1;
/// Each adds one, as one operation.
pub(crate) const FETCH_ADD: u8 = 2;
/// The same, by a node that does not hear of it.
pub(crate) const DEAF: u8 = 3;
/// The same, by a node that takes a work that was refused for done.
const HASTY: u8 = 4;

/// Orders of the two peers where no peer uses the counter; where they do, each has one.
pub(crate) const ORDERS: [u32; 2] = [3, 2];

/// A protocol with a bug that only a full queue brings out, for runs of seeds.
pub fn hasty_counter() -> Subject {
    Subject::of::<Counter<HASTY>>(&[], &[])
}

/// The counter lies with this peer.
const OWNER: Peer = Peer(0);
const COUNTER: At = At { region: Region(0), offset: 0 };
const LANDING: At = At { region: Region(1), offset: 0 };

#[derive(Clone, Debug, Hash)]
pub(crate) struct Counter<const HOW: u8> {
    layout: Layout,
    /// The counter before a peer increased it.
    found: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    Ready,
    Reading,
    Raising,
}

impl<const HOW: u8> Counter<HOW> {
    fn raise(node: &mut Node, seat: &mut Seat<'_, u64>, op: Op<'_>, then: Node) {
        let work = Work { id: WorkId(0), op, flags: CompletionFlags::empty() };
        match seat.fabric.post(OWNER, work) {
            Ok(()) => *node = then,
            Err(PostError::Full) if HOW == HASTY => {
                seat.record(0);
                *node = Node::Ready;
            }
            // The next round tries again.
            Err(_) => {}
        }
    }

    fn begin(node: &mut Node, seat: &mut Seat<'_, u64>) {
        let (op, then) = match HOW {
            READ_THEN_WRITE => (Op::Read { from: COUNTER, into: LANDING, len: 8 }, Node::Reading),
            _ => (Op::FetchAdd { at: COUNTER, add: 1 }, Node::Raising),
        };
        Self::raise(node, seat, op, then);
    }
}

impl<const HOW: u8> Protocol for Counter<HOW> {
    const NAME: &'static str = "counter";

    type Node = Node;
    /// What the counter was when the node raised it.
    type Event = u64;

    fn draw(_draws: &mut Draws) -> Self {
        let (len, peers) = (8, PeerSet::first(2));
        let mut layout = Layout::new(2);
        for access in [Access::all(), Access::empty()] {
            layout.add(RegionSpec { len, access, peers }).expect("two regions fit");
        }
        Self { layout, found: Vec::new() }
    }

    fn small() -> Vec<Small<Self>> {
        let protocol = Self::draw(&mut Draws::new(0, crate::draws::Purpose::Setup));
        let orders = if HOW == IDLE { ORDERS } else { [1, 1] };
        vec![Small { steps: Some(vec![3, 3]), ..Small::of(Self::NAME, protocol, orders.to_vec()) }]
    }

    fn talk(&self, _one: Peer, _other: Peer) -> bool {
        HOW != IDLE
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn start(&self, _seat: &mut Seat<'_, u64>) -> Node {
        Node::Ready
    }

    fn step(&self, node: &mut Node, seat: &mut Seat<'_, u64>) {
        if HOW == IDLE {
            seat.is_ordered();
            return;
        }
        let mut done = [Completion::NONE];
        let heard = seat.fabric.poll(seat.now, &mut done) > 0 && HOW != DEAF;
        match *node {
            Node::Ready if seat.is_ordered() => Self::begin(node, seat),
            Node::Reading if heard => {
                let found = seat.fabric.memory().load(LANDING.region, LANDING.offset);
                let bytes = (found + 1).to_le_bytes();
                Self::raise(node, seat, Op::Write { to: COUNTER, bytes: &bytes }, Node::Raising);
                seat.record(found);
            }
            Node::Raising if heard => {
                if let (FETCH_ADD | HASTY, Ok(found)) = (HOW, done[0].outcome) {
                    seat.record(found);
                }
                *node = Node::Ready;
            }
            Node::Ready | Node::Reading | Node::Raising => {}
        }
    }

    fn membership(&self, _node: &mut Node, seat: &mut Seat<'_, u64>, change: MembershipNews) {
        let changed = match change {
            MembershipNews::Ended(peer, _) => seat.fabric.fence(peer),
            MembershipNews::Began(peer, incarnation) => seat.fabric.admit(peer, incarnation),
        };
        changed.expect("a simulated peer is fenced and admitted at once");
    }

    fn judge(&mut self, entry: &HistoryEntry<u64>) -> Result<(), Violation> {
        let HistoryEvent::Recorded(found) = entry.what else { return Ok(()) };
        if self.found.contains(&found) {
            return Err(Violation::new("lost-update", format!("{found} was raised twice")));
        }
        self.found.push(found);
        Ok(())
    }

    fn goal(&self, nodes: &[Option<&Node>]) -> Result<(), Violation> {
        if nodes.iter().all(|node| *node == Some(&Node::Ready)) {
            return Ok(());
        }
        Err(Violation::new("progress", "a peer has not finished with the counter"))
    }
}
