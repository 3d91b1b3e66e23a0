//! The endpoint under the simulator: mailbox, lanes and broadcast of each member, composed as they
//! are shipped, and fences that fail.
//!
//! | checker | promise |
//! |---|---|
//! | those of `mailbox` | of everything that goes through mailboxes and lanes |
//! | those of `neb` | of everything that is broadcast |
//! | `progress` | what the two have of it, and no fence is left undone |
//!
//! A fence fails a few times and is repeated, as a supervisor repeats it: until then the peer still
//! reaches this memory, and no ticket of its may be skipped. All other faults are the world's.
//!
//! What it does not do: liars, removals, and the explorer; the machines have them apart.

mod node;
mod reluctant;

use weft_core::endpoint::Plan;
use weft_core::fabric::Layout;
use weft_core::ids::{Peer, PeerSet};
use weft_core::time::Duration;
use weft_core::wire::broadcast::Form;
use weft_core::{lane, mailbox, neb};

use super::draws::Draws;
use super::protocol::{HistoryEntry, HistoryEvent, MembershipNews, Protocol, Seat, Violation};
use super::subject::Expected;
use super::world::Promises;
use super::{mailbox as mailboxes, neb as broadcasts};
pub(crate) use node::{EndpointNode, EndpointTurn};

/// The most peers in any run.
pub(crate) const PEERS: usize = 4;
/// The most slots of a half in any run.
const SLOTS: usize = 8;
/// The longest message of any kind.
const MESSAGE_LEN: u16 = 40;

/// What is expected of the tests about its planted bugs.
pub(super) const EXPECTED: &[Expected] =
    &[Expected::missed("endpoint/fence-error-ignored", &["loss"], "an endpoint")];

/// What a node observes.
#[derive(Clone, Debug)]
pub enum EndpointEvent {
    /// In its mailbox or a lane.
    Mailbox(mailboxes::MailboxEvent),
    /// Of its broadcast.
    Broadcast(broadcasts::NebEvent),
}

/// One run of endpoints.
#[derive(Clone, Debug, Hash)]
pub struct Endpoints {
    plan: Plan,
    mailboxes: mailboxes::MailboxLedger,
    broadcasts: broadcasts::NebLedger,
}

impl Endpoints {
    /// With lanes of one of these numbers of slots, and messages of up to that length.
    pub(crate) fn sized(draws: &mut Draws, (lane_slots, lane_len): ([u32; 3], u16)) -> Self {
        let peers = draws.between(2, PEERS as u64) as u16;
        let stall_after = Duration(draws.magnitude(2_000, 3_000_000));
        let slots = draws.pick(&[2, 4, 8]);
        let sizes = mailbox::Config::new(peers, slots, MESSAGE_LEN, stall_after);
        let lanes = lane::Config::new(peers, draws.pick(&lane_slots), lane_len);
        let plan = Plan::new(sizes.expect("drawn within limits"), lanes.expect("as well"));
        let ring = draws.pick(&[1, 2, 4, 8]);
        let after = Duration::from_micros(draws.between(1, 200));
        let broadcast = neb::Config::new(neb::Sizes {
            peers,
            slots: ring,
            depth: draws.pick(&[1, 2, 4]).min(ring as u16),
            message_len: MESSAGE_LEN,
            form: Form::Unsigned,
            membership: neb::Membership::Fixed,
            retry: neb::Retry { after, after_max: Duration(after.0 * draws.between(1, 64)) },
        });
        let plan = plan.expect("few regions for few peers");
        let plan = plan.with_broadcast(broadcast.expect("drawn within limits"));
        let none = PeerSet::EMPTY;
        Self {
            plan: plan.expect("a few regions more"),
            mailboxes: mailboxes::MailboxLedger::default(),
            broadcasts: broadcasts::NebLedger::of(none, none, Form::Unsigned),
        }
    }

    pub(crate) const fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// Admits the incarnations that waited for fences which hold now.
fn admit_awaited(turn: &mut EndpointTurn<'_, '_, EndpointEvent>) {
    while let Some(next) = turn.take_awaited() {
        turn.admit(next);
    }
}

impl Protocol for Endpoints {
    const NAME: &'static str = "endpoint";

    type Node = EndpointNode;
    type Event = EndpointEvent;

    fn draw(draws: &mut Draws) -> Self {
        let slots = [2, 4, 8];
        Self::sized(draws, (slots, MESSAGE_LEN))
    }

    fn promises(draws: &mut Draws) -> Promises {
        Promises::draw(draws)
    }

    fn layout(&self) -> &Layout {
        self.plan.layout()
    }

    fn start(&self, seat: &mut Seat<'_, EndpointEvent>) -> EndpointNode {
        EndpointNode::new(&self.plan, seat)
    }

    fn step(&self, node: &mut EndpointNode, seat: &mut Seat<'_, EndpointEvent>) {
        let mut turn = node.turn(seat, |event| event);
        turn.retry_fences();
        admit_awaited(&mut turn);
        turn.step();
    }

    fn membership(
        &self,
        node: &mut EndpointNode,
        seat: &mut Seat<'_, EndpointEvent>,
        change: MembershipNews,
    ) {
        let mut turn = node.turn(seat, |event| event);
        match change {
            MembershipNews::Ended(peer, _) => turn.fence(peer),
            MembershipNews::Began(peer, incarnation) => {
                turn.admit((peer, incarnation));
            }
        }
    }

    fn judge(&mut self, entry: &HistoryEntry<EndpointEvent>) -> Result<(), Violation> {
        let &HistoryEntry { at, peer, incarnation, ref what } = entry;
        match what {
            HistoryEvent::Recorded(EndpointEvent::Mailbox(event)) => {
                let what = HistoryEvent::Recorded(event.clone());
                self.mailboxes.judge(&HistoryEntry { at, peer, incarnation, what })
            }
            HistoryEvent::Recorded(EndpointEvent::Broadcast(event)) => {
                let what = HistoryEvent::Recorded(event.clone());
                self.broadcasts.judge(&HistoryEntry { at, peer, incarnation, what })
            }
            HistoryEvent::Began => self.mailboxes.judge(&HistoryEntry {
                at,
                peer,
                incarnation,
                what: HistoryEvent::Began,
            }),
            HistoryEvent::Died => self.mailboxes.judge(&HistoryEntry {
                at,
                peer,
                incarnation,
                what: HistoryEvent::Died,
            }),
            HistoryEvent::Lied(_) | HistoryEvent::Calm => Ok(()),
        }
    }

    fn goal(&self, nodes: &[Option<&EndpointNode>]) -> Result<(), Violation> {
        for (peer, node) in (0..).map(Peer).zip(nodes) {
            let Some(node) = node else { continue };
            if let Some(what) = node.unfinished() {
                return Err(Violation::new("progress", format!("peer {peer} {what}")));
            }
            self.broadcasts.check_delivered(peer, |origin| node.delivered(origin))?;
        }
        self.mailboxes.check_nothing_lost()
    }
}
