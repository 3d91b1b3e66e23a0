//! Non-equivocating broadcast under the simulator: every peer broadcasts, and one may lie.
//!
//! | checker | promise |
//! |---|---|
//! | `agreement` | all members that deliver a slot deliver the same bytes, in any incarnation |
//! | `integrity` | a message delivered from a correct origin is one that it broadcast |
//! | `once` | a slot is delivered at most once, after the one before it |
//! | `blame` | a conflict is about a liar's message, or shown by a liar; of what is signed, about a liar's |
//! | `validity` | every message of a correct origin is finally delivered by all correct members |
//!
//! A liar is a two-faced origin and a replayer that exposes anything (`liar`); of seven members two
//! may be liars, and conspire. In the unsigned form a liar can veto, so a run with one checks
//! safety only; in the signed form a liar that stays can only delay windows.
//!
//! Where membership is decided, some members, liars or not, are removed when their first
//! incarnation ends, each in a later term; of others the memory is lost with it. Deliveries of that
//! epoch do not bind the others. The next incarnation begins a second epoch, which is bound by all
//! promises, and decisions about the first are repeated.

mod expected;
mod ledger;
mod liar;
mod node;
mod small;
mod special;

use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::LazyLock;

use weft_core::fabric::{At, Fabric, Layout, Region};
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::neb::{Config, Keys, Membership as Members, Regions, Retry, SigningKey, Sizes};
use weft_core::time::{Duration, Instant};
use weft_core::wire::broadcast::Form;

use super::draws::Draws;
use super::explore::Unexplored;
use super::protocol::{Forgery, HistoryEntry, MembershipNews, Protocol, Seat, Small, Violation};
use super::world::World;
use node::NebNode;
use small::Lie;

pub(super) use expected::EXPECTED;
pub(super) use ledger::NebLedger;
pub use node::NebEvent;
pub(super) use node::payload;

/// The most peers in any run.
const PEERS: usize = 7;
/// The most slots of an origin that are voted on at a time in any run.
const DEPTH: usize = 4;
/// The session that signatures cover.
const SESSION: u64 = 0x5e55;
/// The longest payload.
const PAYLOAD_MAX: u16 = 40;

/// One run of broadcasts.
#[derive(Clone, Debug)]
pub struct Broadcasts {
    layout: Rc<Layout>,
    config: Config,
    regions: Regions,
    /// The number after which every origin begins.
    base: u64,
    liars: PeerSet,
    /// Liars that stay when faults are over, and stop.
    silent: PeerSet,
    /// Whether liars lie about their progress.
    boasts: bool,
    /// Members that are removed when their first incarnation ends.
    doomed: PeerSet,
    /// Members whose memory is lost with their first incarnation.
    forgetful: PeerSet,
    /// In an exploration: the steps of running liars, each in this order.
    script: Vec<Lie>,
    ledger: NebLedger,
}

impl Hash for Broadcasts {
    /// What follows depends on the ledger alone: the rest is the same in every state of a walk.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ledger.hash(state);
    }
}

impl Broadcasts {
    fn new(sizes: Sizes, liars: PeerSet, doomed: PeerSet) -> Self {
        let config = Config::new(sizes).expect("drawn within limits");
        let mut layout = Layout::new(sizes.peers);
        let regions = config.add_regions(&mut layout).expect("few regions for few peers");
        let ledger = NebLedger::of(liars, doomed, sizes.form);
        let (silent, boasts, forgetful) = (PeerSet::EMPTY, false, PeerSet::EMPTY);
        let (base, script) = (0, Vec::new());
        Self {
            layout: Rc::new(layout),
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

    /// The same, after `base` messages of every origin.
    fn behind(mut self, base: u64) -> Self {
        self.base = base;
        self.ledger.begin_behind(base);
        self
    }

    /// The same, where the memory of `peer` is lost with its first incarnation; its deliveries
    /// before that do not bind others, and its broadcasts may be lost.
    fn with_forgetful(mut self, peer: Peer) -> Self {
        self.forgetful.insert(peer);
        self.ledger.release(peer);
        self
    }

    /// Members whose first incarnation is an epoch of its own.
    fn mortal(&self) -> PeerSet {
        self.doomed.union(self.forgetful)
    }

    /// The epoch of `peer` in that incarnation.
    fn epoch(&self, peer: Peer, incarnation: Incarnation) -> Incarnation {
        let is_later = self.mortal().contains(peer) && incarnation > Incarnation(1);
        Incarnation(1 + u32::from(is_later))
    }

    /// Whether the promises hold for that incarnation of `peer`.
    fn is_correct(&self, peer: Peer, incarnation: Incarnation) -> bool {
        let is_bound = !self.mortal().contains(peer) || incarnation > Incarnation(1);
        !self.liars.contains(peer) && is_bound
    }

    /// The keys of `me`, which are those of the simulation and not secret.
    fn keys(&self, me: Peer) -> Keys<PEERS> {
        // A multiplication on the curve each, and asked for with every admission.
        static ALL: LazyLock<[SigningKey; PEERS]> = LazyLock::new(|| {
            std::array::from_fn(|peer| SigningKey::from_bytes(&[peer as u8 + 1; 32]))
        });
        let mut keys = Keys::new(SESSION, ALL[me.index()].clone());
        for (key, public) in ALL[..self.config.peers().into()].iter().zip(&mut keys.public) {
            *public = Some(key.verifying_key());
        }
        keys
    }

    fn is_signed(&self) -> bool {
        self.config.form() == Form::Signed
    }
}

/// The first number: mostly 1, or a few before a field of a work id or the pass wraps.
fn base(draws: &mut Draws, slots: u32) -> u64 {
    let wraps = [u64::from(slots) << 24, u64::from(slots) << 32];
    if draws.chance(3, 4) { 0 } else { draws.pick(&wraps) - draws.between(1, 6) }
}

impl Protocol for Broadcasts {
    const NAME: &'static str = "neb";

    type Node = NebNode;
    type Event = NebEvent;

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
        // Liars and correct members may be removed.
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

    fn deadline(&self, node: &NebNode) -> Option<Instant> {
        node.deadline()
    }

    /// The landings: a new incarnation reads only what it has asked for itself.
    fn forgotten(&self) -> Vec<Region> {
        vec![self.regions.landing()]
    }

    /// The replay, if no ring slot is reused, no member is removed and this one's memory is not
    /// lost: a stamp is stored last. That of a liar, once it has shown everything.
    fn stands(&self, (peer, at): (Peer, At), orders: u32, world: &World) -> bool {
        let is_exposed = match self.liars.contains(peer) {
            true => orders == 0,
            false => world.memory(peer).word(at) != 0,
        };
        let is_kept = self.mortal().is_empty();
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

    fn start(&self, seat: &mut Seat<'_, NebEvent>) -> NebNode {
        NebNode::new(self, seat)
    }

    fn step(&self, node: &mut NebNode, seat: &mut Seat<'_, NebEvent>) {
        if self.liars.contains(seat.me()) {
            return node.lie(self, seat);
        }
        node.step(seat);
    }

    fn membership(
        &self,
        node: &mut NebNode,
        seat: &mut Seat<'_, NebEvent>,
        change: MembershipNews,
    ) {
        match change {
            MembershipNews::Ended(peer, Incarnation(1)) if self.doomed.contains(peer) => {
                node.remove(peer, seat);
            }
            MembershipNews::Ended(peer, _) => {
                seat.fabric.fence(peer).expect("a simulated peer is fenced at once");
            }
            MembershipNews::Began(peer, incarnation) => {
                node.admit(self, (peer, incarnation), seat);
                // The next manager repeats the decisions of the last one.
                node.remove_again(seat);
            }
        }
    }

    fn judge(&mut self, entry: &HistoryEntry<NebEvent>) -> Result<(), Violation> {
        self.ledger.judge(entry)
    }

    fn goal(&self, nodes: &[Option<&NebNode>]) -> Result<(), Violation> {
        // With a fixed membership a member that does not return delays everything; a liar that
        // shows no epoch keeps one that returned from opening, and thereby all windows.
        let is_fixed = self.config.membership() == Members::Fixed;
        let waits = |peer: Peer| is_fixed && nodes[peer.index()].is_none();
        let is_closed = |node: &&NebNode| !node.is_open() && !self.liars.contains(node.me());
        let is_kept_out = !self.liars.is_empty() && nodes.iter().flatten().any(is_closed);
        if self.forgetful.iter().any(waits) || is_kept_out {
            return Ok(());
        }
        // A dead liar does not answer either. One that is alive delays windows; in the signed form
        // it delays nothing else. What one that returned has shown is erased, and it shows no more:
        // all windows wait for it until it is removed.
        let answers = |liar: Peer| nodes[liar.index()].is_some() || self.silent.contains(liar);
        let returned = |node: &&NebNode| node.counts_return_of(self.liars);
        let stay = !nodes.iter().flatten().any(returned);
        let is_promised = self.is_signed() && stay && self.liars.iter().all(answers);
        for (peer, node) in (0..).map(Peer).zip(nodes) {
            let Some(node) = node else { continue };
            if !self.is_correct(peer, node.incarnation()) {
                continue;
            }
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
