//! Non-equivocating broadcast under the simulator: every peer broadcasts, and one may lie.
//!
//! | checker | promise |
//! |---|---|
//! | `agreement` | whoever delivers a slot delivers the same bytes, in whichever life |
//! | `integrity` | what is delivered under a correct origin's name is what it broadcast |
//! | `once` | a slot is delivered at most once, after the one before it |
//! | `blame` | a conflict is about a liar's message, or shown by a liar; of what is signed, about a liar's |
//! | `validity` | what correct origins broadcast is delivered by everybody correct in the end |
//!
//! A liar is an origin with two faces, and a replayer that exposes what it likes (`liar`); of seven
//! members two may be, and conspire. In the unsigned form it may veto, and a run with one is held
//! to safety alone; in the signed form a liar that stays may only hold up windows.
//!
//! Where membership is decided, the first end of a life of some members, liars or not, is the
//! decision that they are out, each in a later term; nothing that such a member delivers binds the
//! others then, and its next life is none of the protocol's. Nor is that of a member whose memory
//! was lost with its first life.

mod expected;
mod ledger;
mod liar;
mod node;
mod small;
mod special;

use weft_core::fabric::{At, Fabric, Layout, Region};
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::neb::{Config, Keys, Membership as Members, Regions, Retry, SigningKey, Sizes};
use weft_core::time::{Duration, Instant};
use weft_core::wire::broadcast::Form;

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
    /// The number behind which every origin begins.
    base: u64,
    liars: PeerSet,
    /// Liars that stay when faults are over, and neither lie nor move any more.
    silent: PeerSet,
    /// Whether liars lie about how far they are.
    boasts: bool,
    /// Whose first end of a life is taken for the decision that it is out.
    doomed: PeerSet,
    /// Whose memory is lost with its first life.
    forgetful: PeerSet,
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
        let (silent, boasts, forgetful) = (PeerSet::EMPTY, false, PeerSet::EMPTY);
        let (base, script) = (0, Vec::new());
        Self {
            layout,
            config,
            regions,
            base,
            liars,
            silent,
            boasts,
            doomed,
            forgetful,
            script,
            ledger,
        }
    }

    /// The same, behind `base` messages of every origin.
    fn behind(mut self, base: u64) -> Self {
        self.base = base;
        self.ledger.begin_behind(base);
        self
    }

    /// The same, where the memory of `peer` is lost with its first life; what it delivered before
    /// that binds no other member, and what it broadcast may be lost.
    fn with_forgetful(mut self, peer: Peer) -> Self {
        self.forgetful.insert(peer);
        self.ledger.release(peer);
        self
    }

    /// Whether a later life of `peer` takes no part: it was removed, or its memory is gone.
    fn is_out(&self, peer: Peer, life: Incarnation) -> bool {
        life > Incarnation(1) && (self.doomed.contains(peer) || self.forgetful.contains(peer))
    }

    /// Whether the promises are made to `peer`, and about what it broadcasts.
    fn is_correct(&self, peer: Peer) -> bool {
        let is_binding = !self.doomed.contains(peer) && !self.forgetful.contains(peer);
        !self.liars.contains(peer) && is_binding
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

    fn is_signed(&self) -> bool {
        self.config.form() == Form::Signed
    }
}

/// Where numbers begin: at 1 mostly, or a few before a width of a work's name or of the pass wraps.
fn base(draws: &mut Draws, slots: u32) -> u64 {
    let wraps = [u64::from(slots) << 24, u64::from(slots) << 32, 1 << 48];
    if draws.chance(3, 4) { 0 } else { draws.pick(&wraps) - draws.between(1, 6) }
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
        let any = |draws: &mut Draws| Peer(draws.below(u64::from(peers)) as u16);
        let mut liars = PeerSet::EMPTY;
        if draws.chance(1, 2) {
            liars.insert(any(draws));
            if peers >= 7 && draws.chance(1, 2) {
                liars.insert(any(draws));
            }
        }
        // Liars, and beside them or without any some that are correct, may be removed.
        let mut doomed = PeerSet::EMPTY;
        if sizes.membership == Members::Decided && draws.chance(2, 3) {
            doomed = draws.pick(&[liars, PeerSet::EMPTY]);
            for _ in 0..draws.below(3) {
                doomed.insert(any(draws));
            }
        }
        let mut run = Self::new(sizes, liars, doomed).behind(base(draws, slots));
        run.boasts = draws.chance(1, 3);
        if run.is_signed() && !run.boasts && draws.chance(3, 4) {
            run.silent = liars;
        }
        if draws.chance(1, 8) {
            let peer = any(draws);
            let may_forget = sizes.membership == Members::Fixed || doomed.contains(peer);
            if may_forget && !liars.contains(peer) {
                run = run.with_forgetful(peer);
            }
        }
        run
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

    /// What was exposed, where a ring is not used twice, no member is removed and this one's memory
    /// is not lost; a stamp is stored last. What a liar shows, once it has shown all.
    fn stands(&self, (peer, at): (Peer, At), orders: u32, world: &World) -> bool {
        let is_exposed = match self.liars.contains(peer) {
            true => orders == 0,
            false => world.memory(peer).word(at) != 0,
        };
        let is_kept = self.doomed.is_empty() && !self.forgetful.contains(peer);
        let stays = self.config.slots() > 1 && is_kept;
        at.region == self.regions.replay() && is_exposed && stays
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn liars(&self) -> PeerSet {
        self.liars
    }

    fn silent(&self) -> PeerSet {
        self.silent
    }

    fn forge(&self, draws: &mut Draws, liar: Peer, _to: Peer, world: &World) -> Option<Forgery> {
        self.lie(draws, liar, world)
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
            // Who was not joined when the life ended that took part hears of it by the next one.
            Membership::Began(peer, life)
                if self.doomed.contains(peer) && self.is_out(peer, life) =>
            {
                node.remove(peer, seat);
            }
            Membership::Began(peer, life) => node.admit((peer, life), seat),
        }
    }

    fn judge(&mut self, entry: &Entry<Event>) -> Result<(), Violation> {
        self.ledger.judge(entry)
    }

    fn goal(&self, nodes: &[Option<&Node>]) -> Result<(), Violation> {
        // Where members are waited for, one whose memory is gone holds up everything.
        let is_fixed = self.config.membership() == Members::Fixed;
        let waits = |peer: Peer| {
            let is_out = nodes[peer.index()].is_none_or(|node| self.is_out(peer, node.life()));
            is_fixed && is_out
        };
        if self.forgetful.iter().any(waits) {
            return Ok(());
        }
        // Nor does a liar that is dead answer any more. One that lives holds up windows; in the
        // signed form it holds up nothing else.
        let answers = |liar: Peer| nodes[liar.index()].is_some() || self.silent.contains(liar);
        let is_promised = self.is_signed() && self.liars.iter().all(answers);
        let correct = (0..).map(Peer).zip(nodes).filter(|(peer, _)| self.is_correct(*peer));
        for (peer, node) in correct {
            let Some(node) = node else { continue };
            if self.liars.is_empty() {
                self.ledger.check_room(peer, node)?;
            }
            if self.liars.is_empty() || is_promised {
                self.ledger.check_complete(peer, node)?;
            }
        }
        Ok(())
    }
}
