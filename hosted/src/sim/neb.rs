//! Non-equivocating broadcast under the simulator: every peer broadcasts, and one may lie.
//!
//! | checker | promise |
//! |---|---|
//! | `agreement` | whoever delivers a slot delivers the same bytes, in whichever life |
//! | `integrity` | what is delivered under a correct origin's name is what it broadcast |
//! | `once` | a slot is delivered at most once, after the one before it |
//! | `blame` | where nobody lies, nobody is in conflict |
//! | `validity` | where nobody lies, what was broadcast is delivered by everybody in the end |
//!
//! A liar is an origin with two faces: it writes well-formed slots, different ones to different
//! members, and rewrites them; and a replayer that exposes what it likes, which may veto: a run
//! with a liar is held to safety alone. Where membership is decided, the first end of a life of
//! the liar or of somebody correct is the decision that it is out; nothing that it delivers
//! counts then, and its next life is none of the protocol's.

mod ledger;
mod node;

use weft_core::fabric::{Fabric, Layout};
use weft_core::ids::{Peer, PeerSet};
use weft_core::neb::{Config, Membership as Members, Regions, Retry, Sizes};
use weft_core::time::{Duration, Instant};
use weft_core::wire::broadcast::{Form, HEADER_LEN, Header, seal};

use super::draws::Draws;
use super::protocol::{Entry, Forgery, Membership, Protocol, Seat, Small, Violation};
use super::world::World;
use ledger::Ledger;
use node::Node;

pub use node::Event;

/// The most peers in any run.
const PEERS: usize = 7;
/// The most slots of an origin that are voted on at a time in any run.
const DEPTH: usize = 4;
/// The longest payload.
const PAYLOAD_MAX: u16 = 40;

/// One run of broadcasts.
#[derive(Clone, Debug, Hash)]
pub struct Broadcasts {
    layout: Layout,
    config: Config,
    regions: Regions,
    liars: PeerSet,
    /// Whose first end of a life is taken for the decision that it is out.
    doomed: PeerSet,
    /// Explored: whom a liar that runs tells what, under number 1.
    script: Vec<(Peer, u8)>,
    ledger: Ledger,
}

impl Broadcasts {
    fn new(sizes: Sizes, liars: PeerSet, doomed: PeerSet) -> Self {
        let config = Config::new(sizes).expect("drawn within limits");
        let mut layout = Layout::new(sizes.peers);
        let regions = config.add_regions(&mut layout).expect("few regions for few peers");
        let ledger = Ledger::of(liars, doomed);
        Self { layout, config, regions, liars, doomed, script: Vec::new(), ledger }
    }

    /// A well-formed slot of `origin`, one of three faces, a bit of it flipped perhaps.
    fn slot(&self, draws: &mut Draws, origin: Peer, seq: u64) -> Vec<u8> {
        let payload = [draws.below(3) as u8; 20];
        let mut slot = self.sealed(origin, seq, &payload[..draws.pick(&[1, 20])]);
        if draws.chance(1, 8) {
            let at = draws.index(slot.len());
            slot[at] ^= 1 << draws.below(8);
        }
        slot
    }

    fn sealed(&self, origin: Peer, seq: u64, payload: &[u8]) -> Vec<u8> {
        let stamp = self.config.stamp(origin, seq);
        let len = payload.len() as u16;
        let header = Header { stamp, len, tag: 0, form: Form::Unsigned };
        let mut slot = vec![0; header.used().next_multiple_of(8)];
        header.write(&mut slot);
        slot[HEADER_LEN..HEADER_LEN + payload.len()].copy_from_slice(payload);
        seal(&mut slot[..header.used()], weft_core::wire::crc32c);
        slot
    }
}

impl Protocol for Broadcasts {
    const NAME: &'static str = "neb";

    type Node = Node;
    type Event = Event;

    fn draw(draws: &mut Draws) -> Self {
        let peers = draws.between(2, PEERS as u64) as u16;
        let slots = draws.pick(&[1, 2, 4, 8]);
        let after = Duration::from_micros(draws.between(1, 200));
        let sizes = Sizes {
            peers,
            slots,
            depth: draws.pick(&[1u16, 2, 4]).min(slots as u16),
            message_len: PAYLOAD_MAX,
            form: Form::Unsigned,
            membership: draws.pick(&[Members::Fixed, Members::Decided]),
            retry: Retry { after, after_max: Duration(after.0 * draws.between(1, 64)) },
        };
        let liar = PeerSet::only(Peer(draws.below(u64::from(peers)) as u16));
        let liars = if draws.chance(1, 2) { liar } else { PeerSet::EMPTY };
        // With the liar, or beside it, somebody correct may be put out.
        let mut doomed = PeerSet::EMPTY;
        if sizes.membership == Members::Decided && !liars.is_empty() {
            doomed = draws.pick(&[liars, PeerSet::EMPTY]);
            doomed.insert(Peer(draws.below(u64::from(peers)) as u16));
        }
        Self::new(sizes, liars, doomed)
    }

    /// Three members, of whom 0 tells the others different things, and then tells 1 what it told
    /// 2: one thing for each order, whenever the explorer likes.
    fn small() -> Option<Small<Self>> {
        let sizes = Sizes {
            peers: 3,
            slots: 2,
            depth: 1,
            message_len: 8,
            form: Form::Unsigned,
            membership: Members::Fixed,
            retry: Retry { after: Duration(1), after_max: Duration(1) },
        };
        let liar = PeerSet::only(Peer(0));
        let mut protocol = Self::new(sizes, liar, PeerSet::EMPTY);
        protocol.script = vec![(Peer(1), b'y'), (Peer(2), b'n'), (Peer(1), b'n')];
        Some(Small { protocol, orders: vec![3, 0, 0], steps: vec![6; 3] })
    }

    fn deadline(&self, node: &Node) -> Option<Instant> {
        node.deadline()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn liars(&self) -> PeerSet {
        self.liars
    }

    /// The liar's next slots at `to`, rewritten at once perhaps, or something that it exposes
    /// itself.
    fn forge(&self, draws: &mut Draws, liar: Peer, _to: Peer, world: &World) -> Option<Forgery> {
        let anybody = Peer(draws.below(u64::from(self.config.peers())) as u16);
        if draws.chance(1, 2) {
            // Nearly always in its own ring; elsewhere it has no right to.
            let origin = if draws.chance(1, 24) { anybody } else { liar };
            let seq = draws.between(1, 4);
            let at = self.config.written_at(&self.regions, origin, seq);
            let bytes = self.slot(draws, origin, seq);
            let then = draws.chance(1, 3).then(|| self.slot(draws, origin, seq));
            return Some(Forgery { at, bytes, then });
        }
        // What it shows of an origin's message, its own or another's, lies in its own memory.
        let seq = draws.between(1, 2 * u64::from(self.config.slots()));
        let at = self.config.exposed_at(&self.regions, anybody, seq);
        let bytes = if draws.chance(1, 4) {
            vec![0; self.config.stride() as usize]
        } else {
            self.slot(draws, anybody, seq)
        };
        world.memory(liar).poke(at, &bytes);
        None
    }

    fn born(&self, seat: &mut Seat<'_, Event>) -> Node {
        Node::new(self, seat)
    }

    fn step(&self, node: &mut Node, seat: &mut Seat<'_, Event>) {
        if self.liars.contains(seat.me()) {
            return node.lie(self, seat);
        }
        node.step(seat);
    }

    fn membership(&self, node: &mut Node, seat: &mut Seat<'_, Event>, change: Membership) {
        match change {
            Membership::Ended(peer, _) if self.doomed.contains(peer) => node.remove(peer, seat),
            Membership::Ended(peer, _) => {
                seat.fabric.fence(peer).expect("a simulated peer is fenced at once");
            }
            Membership::Began(peer, life) => node.admit((peer, life), seat),
        }
    }

    fn judge(&mut self, entry: &Entry<Event>) -> Result<(), Violation> {
        self.ledger.judge(entry)
    }

    fn goal(&self, nodes: &[Option<&Node>]) -> Result<(), Violation> {
        if !self.liars.is_empty() {
            return Ok(());
        }
        for (peer, node) in (0..).map(Peer).zip(nodes) {
            if let Some(node) = node {
                self.ledger.check_complete(peer, node)?;
            }
        }
        Ok(())
    }
}
