//! Non-equivocating broadcast under the simulator: every peer broadcasts, and one may lie.
//!
//! | checker | promise |
//! |---|---|
//! | `agreement` | whoever delivers a slot delivers the same bytes, in whichever life |
//! | `integrity` | what is delivered under a correct origin's name is what it broadcast |
//! | `once` | a slot is delivered at most once, after the one before it |
//! | `blame` | where nobody lies, nobody is in conflict; of what is signed, only a liar's messages are |
//! | `validity` | what correct origins broadcast is delivered by everybody correct in the end |
//!
//! A liar is an origin with two faces: it writes well-formed slots, different ones to different
//! members, and rewrites them; and a replayer that exposes what it likes. In the unsigned form it
//! may veto, and a run with one is held to safety alone; in the signed form it may only hold up
//! windows. Where membership is decided, the first end of a life of the liar or of somebody
//! correct is the decision that it is out; nothing that it delivers counts then, and its next life
//! is none of the protocol's.

mod expected;
mod ledger;
mod node;
mod small;

use weft_core::fabric::{At, Fabric, Layout, Region};
use weft_core::ids::{Peer, PeerSet};
use weft_core::neb::{Config, Keys, Membership as Members, Regions, Retry, SigningKey, Sizes};
use weft_core::time::{Duration, Instant};
use weft_core::wire::broadcast::{Form, HEADER_LEN, Header, seal, seq_of};

use super::draws::Draws;
use super::explore::Unexplored;
use super::protocol::{Entry, Forgery, Membership, Protocol, Seat, Small, Violation};
use super::world::World;
use node::Node;
use small::Lie;

pub(super) use expected::EXPECTED;
pub(super) use ledger::Ledger;
pub use node::Event;
pub(super) use node::payload;

/// The most peers in any run.
const PEERS: usize = 7;
/// The most slots of an origin that are voted on at a time in any run.
const DEPTH: usize = 4;
/// The run that signatures are bound to.
const SESSION: u64 = 0x5e55;
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
    /// Explored: what liars that run do, each in this order.
    script: Vec<Lie>,
    ledger: Ledger,
}

impl Broadcasts {
    fn new(sizes: Sizes, liars: PeerSet, doomed: PeerSet) -> Self {
        let config = Config::new(sizes).expect("drawn within limits");
        let mut layout = Layout::new(sizes.peers);
        let regions = config.add_regions(&mut layout).expect("few regions for few peers");
        let ledger = Ledger::of(liars, doomed, sizes.form);
        Self { layout, config, regions, liars, doomed, script: Vec::new(), ledger }
    }

    /// Whether the promises are made to `peer`, and about what it broadcasts.
    fn is_correct(&self, peer: Peer) -> bool {
        !self.liars.contains(peer) && !self.doomed.contains(peer)
    }

    /// What `me` signs and judges with; keys are those of the simulation, and no secret.
    fn keys(&self, me: Peer) -> Keys<PEERS> {
        let key = |peer: Peer| SigningKey::from_bytes(&[peer.0 as u8 + 1; 32]);
        let mut keys = Keys::new(SESSION, key(me));
        for (peer, public) in (0..self.config.peers()).map(Peer).zip(&mut keys.public) {
            *public = Some(key(peer).verifying_key());
        }
        keys
    }

    /// A well-formed slot of `origin`, one of three faces, a bit of it flipped perhaps; a liar has
    /// no key but its own, and does not always use it.
    fn slot(&self, draws: &mut Draws, (origin, liar): (Peer, Peer), seq: u64) -> Vec<u8> {
        let payload = [draws.below(3) as u8; 20];
        let mut slot = self.sealed((origin, liar), seq, &payload[..draws.pick(&[1, 20])]);
        if self.is_signed() && draws.chance(1, 3) {
            unsign(&mut slot);
        }
        if draws.chance(1, 8) {
            let at = draws.index(slot.len());
            slot[at] ^= 1 << draws.below(8);
        }
        slot
    }

    fn is_signed(&self) -> bool {
        self.config.form() == Form::Signed
    }

    /// What `liar` was told by `origin` under some number, as if it had been said under `seq`:
    /// the signature is the origin's own. Nothing if it was told nothing there.
    fn restamped(&self, seq: u64, told: &[u8]) -> Option<Vec<u8>> {
        let mut slot = told.to_vec();
        let header = Header::open(&mut slot, weft_core::wire::crc32c).ok()?;
        let stamp = self.config.stamp(header.stamp.origin, seq);
        Header { stamp, ..header }.write(&mut slot);
        seal(&mut slot[..header.used()], weft_core::wire::crc32c);
        Some(slot)
    }

    /// Shows what the liar was told last by somebody as that one's next message, before it can know
    /// which that will be.
    fn show_again(&self, draws: &mut Draws, liar: Peer, world: &World) {
        let origin = Peer(draws.below(u64::from(self.config.peers())) as u16);
        let told = (1..=u64::from(self.config.slots())).map(|seq| {
            let at = self.config.written_at(&self.regions, origin, seq);
            world.memory(liar).peek(at, self.config.stride() as usize)
        });
        let newest = told.max_by_key(|slot| seq_of(slot)).expect("a ring has a slot");
        let seq = seq_of(&newest).wrapping_add(1);
        if let Some(slot) = self.restamped(seq, &newest) {
            world.memory(liar).poke(self.config.exposed_at(&self.regions, origin, seq), &slot);
        }
    }

    /// A slot of `origin`, signed by `signer` where slots are signed.
    fn sealed(&self, (origin, signer): (Peer, Peer), seq: u64, payload: &[u8]) -> Vec<u8> {
        let stamp = self.config.stamp(origin, seq);
        let len = payload.len() as u16;
        let header = Header { stamp, len, tag: 0, form: self.config.form() };
        let mut slot = vec![0; header.used().next_multiple_of(8)];
        header.write(&mut slot);
        slot[HEADER_LEN..HEADER_LEN + payload.len()].copy_from_slice(payload);
        if header.form == Form::Signed {
            self.keys(signer).sign_slot(&mut slot).expect("it has room for a signature");
        }
        seal(&mut slot[..header.used()], weft_core::wire::crc32c);
        slot
    }
}

/// Makes the signature of a slot nobody's, and the checksum right.
fn unsign(slot: &mut [u8]) {
    let header = Header::peek(slot).expect("a slot has a header");
    slot[header.payload().end] ^= 1;
    seal(&mut slot[..header.used()], weft_core::wire::crc32c);
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
            form: draws.pick(&[Form::Unsigned, Form::Unsigned, Form::Signed]),
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

    fn small() -> Vec<Small<Self>> {
        small::all()
    }

    fn unexplored() -> Vec<Unexplored> {
        small::left_out()
    }

    fn deadline(&self, node: &Node) -> Option<Instant> {
        node.deadline()
    }

    /// A new life reads nothing there that it has not asked for itself.
    fn forgotten(&self) -> Vec<Region> {
        vec![self.regions.landing()]
    }

    /// What was exposed: a ring is not used twice in a small configuration, and a stamp is stored
    /// last. What a liar shows, once it has shown all.
    fn stands(&self, (peer, at): (Peer, At), orders: u32, world: &World) -> bool {
        let is_exposed = match self.liars.contains(peer) {
            true => orders == 0,
            false => world.memory(peer).word(at) != 0,
        };
        at.region == self.regions.replay() && is_exposed
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
            let bytes = self.slot(draws, (origin, liar), seq);
            let then = draws.chance(1, 3).then(|| self.slot(draws, (origin, liar), seq));
            return Some(Forgery { at, bytes, then });
        }
        if self.is_signed() && draws.chance(1, 4) {
            self.show_again(draws, liar, world);
            return None;
        }
        // What it shows of an origin's message, its own or another's, lies in its own memory.
        let seq = draws.between(1, 2 * u64::from(self.config.slots()));
        let at = self.config.exposed_at(&self.regions, anybody, seq);
        let mut bytes = if draws.chance(1, 4) {
            vec![0; self.config.stride() as usize]
        } else {
            self.slot(draws, (anybody, liar), seq)
        };
        if self.is_signed() && draws.chance(1, 3) {
            let said = self.config.written_at(&self.regions, anybody, draws.between(1, 8));
            let told = world.memory(liar).peek(said, self.config.stride() as usize);
            bytes = self.restamped(seq, &told).unwrap_or(bytes);
        }
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
        // Nobody votes for a liar that is dead, and membership is fixed.
        let liars_live = self.liars.iter().all(|liar| nodes[liar.index()].is_some());
        let is_promised = self.config.form() == Form::Signed && liars_live;
        for (peer, node) in (0..).map(Peer).zip(nodes) {
            match node {
                Some(node) if self.liars.is_empty() => {
                    self.ledger.check_room(peer, node)?;
                    self.ledger.check_complete(peer, node)?;
                }
                // A liar that lives holds up windows; in the signed form it holds up nothing else.
                Some(node) if is_promised && self.is_correct(peer) => {
                    self.ledger.check_complete(peer, node)?;
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }
}
