//! Mailbox and lanes in the simulator: every peer owns a mailbox, puts into all others', and has a
//! lane to each.
//!
//! | checker | promise |
//! |---|---|
//! | `integrity` | a delivered message was put or sent by the peer that it names, and is unaltered |
//! | `once` | not twice in one incarnation of the owner, never again after its release |
//! | `order` | in the order of its sender's incarnation |
//! | `withdrawn` | a message that its writer withdrew is not delivered |
//! | `loss` | a message that was put is delivered, and so is one sent through a lane that still exists |
//! | `names` | incarnation and sequence name one message of a sender |
//! | `false alarm` | no ticket counts as forged before a member has lied or a fabric answered wrong |
//! | `unseen` | a message that a liar removed by means of the reservation word is noticed |
//! | `progress` | once faults are over, no owner owes a message, no writer keeps one, no lane waits |
//!
//! A mailbox trusts its admitted members: a liar among them can spoil slots, forge names and use up
//! tickets. A mailbox that a liar has written to must keep only `progress` and `unseen` from then
//! on; all others keep every promise, and so do all lanes, since no other peer can write them. No
//! machine may panic.

mod expected;
mod ledger;
mod name;
mod node;
mod small;

use weft_core::endpoint;
use weft_core::fabric::{At, Layout, Region};
use weft_core::ids::{Peer, PeerSet};
use weft_core::lane;
use weft_core::mailbox;
use weft_core::time::Duration;
use weft_core::wire::slot::{Stamp, TRAILER_LEN, Trailer, seal, used};

use super::draws::Draws;
use super::protocol::{Forgery, HistoryEntry, MembershipNews, Protocol, Seat, Small, Violation};
use super::world::{Promises, World};
use name::PAYLOAD_MAX;
use node::MailboxNode;

pub(super) use expected::EXPECTED;
pub(super) use ledger::MailboxLedger;
pub use name::Name;
pub use node::MailboxEvent;
pub(crate) use node::{Hand, hand};

/// The most slots of a half in any run.
const SLOTS: usize = 8;
/// The most peers in any run.
const PEERS: usize = 5;

/// The regions of a mailbox come first in the layout: the word, the slots, the claims, the rest.
const WORD: Region = Region(0);
const SLOT_HALVES: Region = Region(1);
const CLAIMS: Region = Region(2);
const LOCAL: Region = Region(3);

/// Which channels a run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum TrafficMix {
    Mailbox,
    Lanes,
    Both,
}

/// One run of mailboxes and lanes.
#[derive(Clone, Debug, Hash)]
pub struct Mailboxes {
    plan: endpoint::Plan,
    traffic: TrafficMix,
    /// Whose mailboxes are put into.
    owners: PeerSet,
    liars: PeerSet,
    /// The liars add to the reservation words, and do nothing else.
    words_alone: bool,
    /// The epoch in which every mailbox begins, with what bursts of 2^32 epochs ago left in it; 0
    /// for fresh memory.
    first_epoch: u32,
    /// Messages that an order puts beside those that are drawn.
    more: u64,
    /// The messages that are put have one length, so that a batch of them is packed.
    alike: bool,
    /// What is in doubt after a loss is always put again.
    repeats: bool,
    /// An owner begins while peers may stall inside a post to the one before it: no ticket is
    /// questioned before all others are admitted.
    stalls: bool,
    ledger: MailboxLedger,
}

impl Mailboxes {
    fn new(peers: u16, slots: u32, stall_after: Duration, lane_slots: u32) -> Self {
        let sizes = mailbox::Config::new(peers, slots, PAYLOAD_MAX, stall_after);
        let lanes = lane::Config::new(peers, lane_slots, PAYLOAD_MAX);
        let (sizes, lanes) = (sizes.expect("drawn within limits"), lanes.expect("as well"));
        Self {
            plan: endpoint::Plan::new(sizes, lanes).expect("few regions for few peers"),
            traffic: TrafficMix::Both,
            owners: PeerSet::first(usize::from(peers)),
            liars: PeerSet::EMPTY,
            words_alone: false,
            first_epoch: 0,
            more: 0,
            alike: false,
            repeats: false,
            stalls: false,
            ledger: MailboxLedger::default(),
        }
    }
}

impl Protocol for Mailboxes {
    const NAME: &'static str = "mailbox";

    type Node = MailboxNode;
    type Event = MailboxEvent;

    fn draw(draws: &mut Draws) -> Self {
        let peers = draws.between(2, PEERS as u64) as u16;
        let slots = draws.pick(&[2, 4, 8]);
        let stall_after = Duration(draws.magnitude(2_000, 3_000_000));
        let mut run = Self::new(peers, slots, stall_after, draws.pick(&[2, 4, 8]));
        run.traffic = draws.pick(&[TrafficMix::Mailbox, TrafficMix::Lanes, TrafficMix::Both]);
        // Few owners crowd each mailbox, many spread over all pairs.
        let owners = draws.between(1, u64::from(peers)) as usize;
        run.owners = PeerSet::first(owners);
        if draws.chance(1, 5) {
            run.liars = PeerSet::only(Peer(draws.below(u64::from(peers)) as u16));
        }
        run.words_alone = draws.chance(1, 2);
        if draws.chance(1, 3) {
            run.first_epoch = u32::MAX - draws.below(3) as u32;
        }
        run.alike = draws.chance(1, 2);
        run.ledger.set_liars(run.liars, run.words_alone && run.first_epoch == 0);
        run
    }

    fn promises(draws: &mut Draws) -> Promises {
        Promises::draw(draws)
    }

    fn small() -> Vec<Small<Self>> {
        small::all()
    }

    /// Writers with an owner; lanes connect all peers.
    fn talk(&self, one: Peer, other: Peer) -> bool {
        let owned = self.owners.contains(one) || self.owners.contains(other);
        owned || self.traffic != TrafficMix::Mailbox
    }

    /// The claims: an outbox stores `Idle` before any peer admits its incarnation.
    fn forgotten(&self) -> Vec<Region> {
        vec![CLAIMS]
    }

    fn layout(&self) -> &Layout {
        self.plan.layout()
    }

    fn liars(&self) -> PeerSet {
        self.liars
    }

    fn lies_by_forgery_alone(&self) -> bool {
        self.words_alone
    }

    /// A count or an epoch that was never reached; or a well-formed slot under any peer's name, for
    /// a ticket that may be given out soon.
    fn forge(&self, draws: &mut Draws, _liar: Peer, to: Peer, world: &World) -> Option<Forgery> {
        if self.words_alone || draws.chance(1, 4) {
            let epoch = 1 << 32;
            let add: i64 = draws.pick(&[-1, -1, -2, 1, 2, epoch, -epoch]);
            let at = At { region: WORD, offset: 0 };
            return Some(Forgery { at, bytes: add.to_le_bytes().to_vec(), then: None });
        }
        let word = world.memory(to).word(At { region: WORD, offset: 0 });
        let config = self.plan.mailbox();
        let slots = config.slots();
        let ticket = draws.below(u64::from(slots)) as u32;
        let epoch = ((word >> 32) as u32).wrapping_add(draws.below(2) as u32);
        let stamp = Stamp { epoch, ticket };
        let payload = draws.below(u64::from(PAYLOAD_MAX) + 1) as usize;
        let mut bytes = draws.bytes(used(payload));
        let sender = draws.below(u64::from(config.peers())) as u16;
        Trailer { len: payload as u16, sender, stamp, ..Trailer::default() }.write(&mut bytes);
        let sequence = draws.below(64) as u32;
        // Also one of a packed write.
        let run = draws.between(1, 3) as u16 | draws.pick(&[0, 0, 0, 1, 2]) << 14;
        seal(&mut bytes, stamp, run, sequence, weft_core::wire::crc32c);
        let end = ((epoch & 1) * slots + ticket + 1) * config.stride();
        let offset = end - bytes.len() as u32;
        // The length must be checked before it is used.
        let mut then = bytes.clone();
        let len = then.len() - TRAILER_LEN;
        then[len..len + 2].copy_from_slice(&draws.bytes(2));
        Some(Forgery { at: At { region: SLOT_HALVES, offset }, bytes, then: Some(then) })
    }

    fn start(&self, seat: &mut Seat<'_, MailboxEvent>) -> MailboxNode {
        MailboxNode::new(self, seat)
    }

    fn step(&self, node: &mut MailboxNode, seat: &mut Seat<'_, MailboxEvent>) {
        node.step(self, seat);
    }

    fn membership(
        &self,
        node: &mut MailboxNode,
        seat: &mut Seat<'_, MailboxEvent>,
        change: MembershipNews,
    ) {
        match change {
            MembershipNews::Ended(peer, _) => node.fence(peer, seat),
            MembershipNews::Began(peer, incarnation) => node.admit(self, (peer, incarnation), seat),
        }
    }

    fn judge(&mut self, entry: &HistoryEntry<MailboxEvent>) -> Result<(), Violation> {
        self.ledger.judge(entry)
    }

    fn goal(&self, nodes: &[Option<&MailboxNode>]) -> Result<(), Violation> {
        for (peer, node) in nodes.iter().enumerate() {
            if let Some(what) = node.as_ref().and_then(|node| node.unfinished(self.liars)) {
                return Err(Violation::new("progress", format!("peer {peer} {what}")));
            }
        }
        self.ledger.check_nothing_lost()
    }
}
