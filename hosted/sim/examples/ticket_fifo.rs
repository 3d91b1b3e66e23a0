//! A protocol that is not Weft's, in the simulator: the FIFO of tickets that shared-memory
//! transports use, as the one of UCX (`uct/sm/mm`).
//!
//! ```text
//!   receiver's memory:  head ──────── a sender adds 1 and gets its ticket
//!                       element t ─── it writes its message there, with a mark that it is there
//!                       next ──────── the receiver takes element after element
//! ```
//!
//! A sender that dies between its ticket and its message leaves a hole, and the receiver waits at
//! it forever: no later message of any sender arrives. `cargo run -p weft-sim --example
//! ticket_fifo` finds the hole from a seed, leaves out what it does not take, and prints the rest.
//!
//! A protocol of your own takes what is here: a type for a run, with the layout of its memory and
//! a ledger; a type for a node; what a node does in one round of its loop; what it records; and
//! the promises over the records. Everything that goes wrong is brought by the simulator.

use std::collections::BTreeMap;

use weft_core::checksum::crc32c_of;
use weft_core::fabric::{Access, At, Completion, CompletionFlags, Fabric, Layout, Memory, Op};
use weft_core::fabric::{Region, RegionSpec, Work, WorkId};
use weft_core::ids::{Peer, PeerSet};
use weft_sim::draws::Draws;
use weft_sim::{
    HistoryEntry, HistoryEvent, MembershipNews, Protocol, Replay, Seat, Small, Subject, Violation,
    run_seeds,
};

/// The FIFO lies with this peer; all others send.
const RECEIVER: Peer = Peer(0);
/// More than a run has messages: a full FIFO is another matter.
const ELEMENTS: u32 = 4096;

const HEAD: At = At { region: Region(0), offset: 0 };
const NEXT: At = At { region: Region(2), offset: 0 };

fn element(ticket: u64) -> At {
    At { region: Region(1), offset: (ticket % u64::from(ELEMENTS)) as u32 * 8 }
}

/// The mark of a message: the bytes of a write arrive in any order (F-3).
fn mark(ticket: u64, message: u32) -> u32 {
    crc32c_of(&[&ticket.to_le_bytes(), &message.to_le_bytes()])
}

/// A run: the memory of its peers, and the ledger of its messages.
#[derive(Clone, Debug, Hash)]
struct TicketFifo {
    layout: Layout,
    /// The messages whose write has completed and that the receiver has not taken, by sender.
    owed: Vec<Message>,
    /// The last message of each sender that the receiver has taken.
    taken: BTreeMap<u32, u32>,
}

/// Sender and number, which grows with each message of the sender, over all of its incarnations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Message(u32);

impl Message {
    fn new(sender: Peer, incarnation: u32, count: u32) -> Self {
        Self(u32::from(sender.0) << 28 | incarnation << 12 | count)
    }

    const fn sender(self) -> u32 {
        self.0 >> 28
    }
}

/// One incarnation of a peer.
#[derive(Clone, Debug, Hash)]
enum Node {
    Receiver,
    Sender { count: u32, state: State },
}

/// What a sender does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Idle,
    /// Its addition to the head is under way.
    Reserving,
    /// It has a ticket.
    Reserved(u64),
    /// Its message is under way.
    Writing,
}

/// What a node records.
#[derive(Clone, Copy, Debug)]
enum Event {
    Put(Message),
    Taken(Message),
}

impl TicketFifo {
    fn of(peers: u16) -> Self {
        let mut layout = Layout::new(peers);
        let head = (8, Access::REMOTE_ATOMIC);
        let elements = (ELEMENTS * 8, Access::REMOTE_WRITE);
        for (len, access) in [head, elements, (8, Access::empty())] {
            let peers = PeerSet::first(usize::from(peers));
            layout.add(RegionSpec { len, access, peers }).expect("three regions fit");
        }
        Self { layout, owed: Vec::new(), taken: BTreeMap::new() }
    }

    /// Takes the message of the next ticket, if it is there.
    fn take(seat: &mut Seat<'_, Event>) {
        let memory = seat.fabric.memory();
        let ticket = memory.load(NEXT.region, NEXT.offset);
        let at = element(ticket);
        let found = memory.load(at.region, at.offset);
        let message = found as u32;
        if found != 0 && found >> 32 == u64::from(mark(ticket, message)) {
            memory.store(NEXT.region, NEXT.offset, ticket.wrapping_add(1));
            seat.record(Event::Taken(Message(message)));
        }
    }

    fn send(count: &mut u32, state: &mut State, seat: &mut Seat<'_, Event>) {
        let message = Message::new(seat.me(), seat.incarnation.0, *count);
        let mut done = [Completion::NONE];
        if seat.fabric.poll(seat.now, &mut done) > 0 {
            *state = match (*state, done[0].outcome) {
                (State::Reserving, Ok(ticket)) => State::Reserved(ticket),
                (State::Writing, outcome) => {
                    if outcome.is_ok() {
                        seat.record(Event::Put(message));
                    }
                    *count += 1;
                    State::Idle
                }
                // Whether it has a ticket is unknown.
                (_, _) => State::Idle,
            };
        }
        let bytes;
        let (op, then) = match *state {
            State::Idle if seat.is_ordered() => {
                (Op::FetchAdd { at: HEAD, add: 1 }, State::Reserving)
            }
            State::Reserved(ticket) => {
                let mark = mark(ticket, message.0);
                bytes = (u64::from(mark) << 32 | u64::from(message.0)).to_le_bytes();
                (Op::Write { to: element(ticket), bytes: &bytes }, State::Writing)
            }
            State::Idle | State::Reserving | State::Writing => return,
        };
        let work = Work { id: WorkId(0), op, flags: CompletionFlags::empty() };
        // A post that is refused is tried again in a later round.
        if seat.fabric.post(RECEIVER, work).is_ok() {
            *state = then;
        }
    }
}

impl Protocol for TicketFifo {
    const NAME: &'static str = "ticket-fifo";

    type Node = Node;
    type Event = Event;

    fn draw(draws: &mut Draws) -> Self {
        Self::of(draws.between(2, 5) as u16)
    }

    /// For the explorer: two senders, one message each.
    fn small() -> Vec<Small<Self>> {
        vec![Small::of("two senders", Self::of(3), vec![0, 1, 1])]
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn start(&self, seat: &mut Seat<'_, Event>) -> Node {
        match seat.me() {
            RECEIVER => Node::Receiver,
            _ => Node::Sender { count: 0, state: State::Idle },
        }
    }

    fn step(&self, node: &mut Node, seat: &mut Seat<'_, Event>) {
        match node {
            Node::Receiver => {
                // It takes what comes; its orders must be carried out, too.
                seat.is_ordered();
                Self::take(seat);
            }
            Node::Sender { count, state } => Self::send(count, state, seat),
        }
    }

    fn membership(&self, _node: &mut Node, seat: &mut Seat<'_, Event>, change: MembershipNews) {
        let changed = match change {
            MembershipNews::Ended(peer, _) => seat.fabric.fence(peer),
            MembershipNews::Began(peer, incarnation) => seat.fabric.admit(peer, incarnation),
        };
        changed.expect("a simulated peer is fenced and admitted at once");
    }

    fn judge(&mut self, entry: &HistoryEntry<Event>) -> Result<(), Violation> {
        match entry.what {
            HistoryEvent::Recorded(Event::Put(message)) => {
                if self.taken.get(&message.sender()).is_none_or(|last| *last < message.0) {
                    self.owed.push(message);
                }
            }
            HistoryEvent::Recorded(Event::Taken(message)) => {
                self.owed.retain(|owed| *owed != message);
                let last = self.taken.insert(message.sender(), message.0);
                if last.is_some_and(|last| last >= message.0) {
                    let what = format!("message {:#x} came behind {last:#x?}", message.0);
                    return Err(Violation::new("fifo", what));
                }
            }
            HistoryEvent::Began
            | HistoryEvent::Died
            | HistoryEvent::Lied(_)
            | HistoryEvent::Calm => {}
        }
        Ok(())
    }

    fn goal(&self, _nodes: &[Option<&Node>]) -> Result<(), Violation> {
        let Some(owed) = self.owed.first() else { return Ok(()) };
        let what = format!("message {:#x} of sender {} is not taken", owed.0, owed.sender());
        Err(Violation::new("progress", what))
    }
}

fn main() {
    let subject = Subject::of::<TicketFifo>(&[], &[]);
    let tally = run_seeds(&subject, (0, 1000), 1, || ());
    let Some(failed) = tally.failed.first() else {
        return println!("{} seeds: every message was taken", tally.seeds);
    };
    let replay = Replay::of(&subject, failed, 500);
    let outcome = (subject.run)(&replay.plan());
    println!("a FIFO of tickets, seed {}, faults {:?}:\n", failed.seed, outcome.faults);
    println!("{}", outcome.trace.to_string().trim_end());
    println!(
        "\nA sender has died between its ticket (fetch_add) and the write to its slot: the slot \
         stays empty, and what came behind it is never taken."
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_sim::{RunPlan, Trace};

    #[test]
    fn a_sender_that_loses_its_ticket_stops_all_others() {
        let subject = Subject::of::<TicketFifo>(&[], &[]);
        let tally = run_seeds(&subject, (0, 1000), 8, || ());
        let broken = |failed: &weft_sim::Failed| failed.outcome.violation.clone();
        let checkers: Vec<_> = tally.failed.iter().filter_map(broken).collect();
        assert!(checkers.iter().all(|broken| broken.checker == "progress"), "{checkers:?}");
        let failed = tally.failed.first().expect("a hole");
        let least = Replay::of(&subject, failed, 500);
        assert!(least.least().faults.len() <= 2, "{least}");
        let replayed = (subject.run)(&RunPlan { trace: Trace::off(), ..least.plan() });
        assert_eq!(replayed.violation.map(|broken| broken.checker), Some("progress"));
    }

    #[test]
    fn without_faults_every_message_is_taken() {
        let subject = Subject::of::<TicketFifo>(&[], &[]);
        for seed in 0..50 {
            let plan =
                RunPlan { keep: weft_sim::fault::Keep::Only(Vec::new()), ..RunPlan::of(seed) };
            assert_eq!((subject.run)(&plan).violation, None, "seed {seed}");
        }
    }

    #[test]
    fn the_explorer_finds_the_hole_without_a_seed() {
        let subject = Subject::of::<TicketFifo>(&[], &[]);
        let findings = (subject.explore)(&subject.bounds(), &|_| ());
        let broken = findings.iter().find_map(|(_, found)| found.violation.as_ref());
        assert_eq!(broken.expect("a path").0.checker, "progress");
    }
}
