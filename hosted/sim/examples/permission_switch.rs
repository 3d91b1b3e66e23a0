//! A protocol that is not Weft's, in the simulator: consensus by permissions to write, as Mu has it
//! (Aguilera et al., "Microsecond Consensus for Microsecond Applications", OSDI 2020).
//!
//! ```text
//!   candidate ── ask(term) ─▶ replica: promises the term ─▶ revokes the leader's permission
//!             ◀── grant ─────                            └▶ gives it to the candidate
//!   with a majority's: reads the slot at each ─▶ writes the value of the highest term, or its own
//!                      ─▶ a majority of the writes is done: decided
//! ```
//!
//! At each replica one process may write to the log, so a write that is done is a vote: no replica
//! counts votes, and none runs when a leader decides. All rests on the order of the switch. A
//! replica that gives the permission before it has revoked the last one has two leaders for a
//! moment, and a value that one has decided is not what the other reads. `cargo run -p weft-sim
//! --example permission_switch` finds that from a seed, and nothing in the order of the paper.
//!
//! To revoke is [`Fabric::fence`], to give is [`Fabric::admit`]. A fence is forever in Weft, so a
//! leader that was deposed ends itself, and asks again as its next incarnation. Mu writes an entry
//! whole, from left to right, which the port does not promise (F-3): an entry has two copies here,
//! and a leader replaces the older one.

use std::collections::BTreeMap;

use weft_core::checksum::crc32c_of;
use weft_core::fabric::{Access, At, Completion, CompletionFlags, Fabric, Layout, Memory, Op};
use weft_core::fabric::{Region, RegionSpec, Work, WorkId};
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::time::{Duration, Instant};
use weft_sim::draws::Draws;
use weft_sim::{
    HistoryEntry, HistoryEvent, MembershipNews, Protocol, Replay, Seat, Small, Subject,
    Supervision, Violation, run_seeds,
};

/// Term, value and checksum, eight bytes each.
const COPY: u32 = 24;
/// The two copies of a slot.
const SLOT: u32 = 2 * COPY;
/// How long a candidate waits for grants before it asks again.
const PATIENCE: Duration = Duration(200_000);

const LOG: Region = Region(0);
/// Where a leader reads to: one slot for each peer.
const LANDING: Region = Region(1);
/// Of this process alone: the term that it has promised, and the next slot that it tries.
const PROMISED: At = At { region: Region(2), offset: 0 };
const NEXT: At = At { region: Region(2), offset: 8 };

fn slot(number: u64) -> u32 {
    u32::try_from(number).expect("slots are few") * SLOT
}

const fn landing(peer: Peer) -> u32 {
    peer.0 as u32 * SLOT
}

/// What a copy holds: term and value, if it is whole.
type Vote = Option<(u64, u64)>;

fn copy_of(term: u64, value: u64) -> [u8; COPY as usize] {
    let sum = u64::from(crc32c_of(&[&term.to_le_bytes(), &value.to_le_bytes()]));
    let mut bytes = [0; COPY as usize];
    for (place, word) in bytes.chunks_exact_mut(8).zip([term, value, sum]) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// The two copies of a slot in this process's memory; one that was torn, by a leader that died or
/// lost its permission, was never done and holds nothing.
fn votes(memory: &impl Memory, region: Region, offset: u32) -> [Vote; 2] {
    [offset, offset + COPY].map(|at| {
        let [term, value, sum] = [0, 8, 16].map(|word| memory.load(region, at + word));
        let is_whole = term != 0 && copy_of(term, value)[16..] == sum.to_le_bytes();
        is_whole.then_some((term, value))
    })
}

/// A message: a candidate's question, or a replica's answer, about a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ask,
    Grant,
    /// The replica has promised that later term.
    Refuse,
}

fn message(kind: Kind, term: u64, Incarnation(incarnation): Incarnation) -> [u8; 13] {
    let mut bytes = [kind as u8; 13];
    bytes[1..9].copy_from_slice(&term.to_le_bytes());
    bytes[9..].copy_from_slice(&incarnation.to_le_bytes());
    bytes
}

fn read(bytes: &[u8]) -> (Kind, u64, Incarnation) {
    let kind = [Kind::Ask, Kind::Grant, Kind::Refuse][usize::from(bytes[0])];
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    (kind, word(&bytes[1..9]), Incarnation(word(&bytes[9..13]) as u32))
}

/// A run: the memory of its peers, and what was proposed and decided. Its replicas revoke a
/// permission before they give the next one, or after.
#[derive(Clone, Debug, Hash)]
struct Switch<const REVOKES_FIRST: bool> {
    layout: Layout,
    slots: u64,
    proposed: BTreeMap<u64, Peer>,
    decided: BTreeMap<u64, u64>,
}

/// One incarnation of a peer: a replica, and a leader if it has something to decide.
#[derive(Clone, Debug, Hash)]
struct Node {
    /// The process that may write to its log.
    leader: Option<Peer>,
    /// A permission that is still to be revoked.
    late: Option<Peer>,
    /// Of each peer, the incarnation that it has admitted.
    admitted: Vec<Option<Incarnation>>,
    /// The term in which it leads or wants to, and the replicas that have given it permission.
    term: Option<u64>,
    granted: PeerSet,
    ask_at: Instant,
    /// The value that it is to have decided.
    value: Option<u64>,
    count: u64,
    step: Step,
    /// The reads or writes that it awaits: those of an earlier round may still end.
    round: u64,
}

/// What a leader does about its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Idle,
    /// It reads the slot at the replicas that are left, and has read it at those.
    Reading(PeerSet, PeerSet),
    /// It writes the value; those are left, and so many have it.
    Writing(u64, PeerSet, usize),
}

/// What a node records.
#[derive(Clone, Copy, Debug)]
enum Event {
    Proposed(u64),
    Decided(u64, u64),
}

impl Node {
    fn is_majority(&self, count: usize) -> bool {
        count * 2 > self.admitted.len()
    }

    /// Promises that term. A process that leads or wants to was deposed by it, and ends.
    fn learn(&self, term: u64, seat: &mut Seat<'_, Event>) {
        seat.fabric.memory().store(PROMISED.region, PROMISED.offset, term);
        if self.term.is_some() {
            seat.exit();
        }
    }

    /// What has come from another process.
    fn handle<const REVOKES_FIRST: bool>(
        &mut self,
        (from, bytes): (Peer, &[u8]),
        seat: &mut Seat<'_, Event>,
    ) {
        let (kind, term, incarnation) = read(bytes);
        let promised = seat.fabric.memory().load(PROMISED.region, PROMISED.offset);
        match kind {
            Kind::Ask => self.answer::<REVOKES_FIRST>((from, term, incarnation), seat),
            Kind::Grant if self.term == Some(term) => {
                if self.admit(from, incarnation, seat) {
                    self.granted.insert(from);
                }
            }
            Kind::Refuse if term > promised => self.learn(term, seat),
            Kind::Grant | Kind::Refuse => {}
        }
    }

    /// The peer is admitted in that incarnation, and no earlier one.
    fn admit(&mut self, peer: Peer, incarnation: Incarnation, seat: &mut Seat<'_, Event>) -> bool {
        let admitted = &mut self.admitted[peer.index()];
        if admitted.is_some_and(|earlier| earlier < incarnation) {
            seat.fabric.fence(peer).expect("a simulated peer is fenced at once");
        }
        let is_admitted =
            *admitted == Some(incarnation) || seat.fabric.admit(peer, incarnation).is_ok();
        if is_admitted {
            *admitted = Some(incarnation);
        }
        is_admitted
    }

    fn revoke(&mut self, peer: Option<Peer>, seat: &mut Seat<'_, Event>) {
        if let Some(peer) = peer.filter(|peer| *peer != seat.me()) {
            seat.fabric.fence(peer).expect("a simulated peer is fenced at once");
            self.admitted[peer.index()] = None;
        }
    }

    /// A replica's answer to a candidate.
    fn answer<const REVOKES_FIRST: bool>(
        &mut self,
        (from, term, incarnation): (Peer, u64, Incarnation),
        seat: &mut Seat<'_, Event>,
    ) {
        let promised = seat.fabric.memory().load(PROMISED.region, PROMISED.offset);
        if term < promised {
            let refusal = message(Kind::Refuse, promised, seat.incarnation);
            return seat.fabric.send(from, &refusal);
        }
        // A leader at work learns of its successor from the permissions that it has lost.
        if self.step != Step::Idle {
            return;
        }
        self.learn(term, seat);
        if self.term.is_some() {
            return;
        }
        let last = self.leader.replace(from).filter(|last| *last != from);
        if REVOKES_FIRST {
            self.revoke(last, seat);
        } else {
            self.late = last;
        }
        if self.admit(from, incarnation, seat) {
            let grant = message(Kind::Grant, term, seat.incarnation);
            seat.fabric.send(from, &grant);
        }
    }

    /// Wants to lead in a term after all that it knows, and asks for the permissions that it lacks.
    fn ask(&mut self, seat: &mut Seat<'_, Event>) {
        let (peers, me) = (self.admitted.len() as u64, seat.me());
        let memory = seat.fabric.memory();
        let term = *self.term.get_or_insert_with(|| {
            let promised = memory.load(PROMISED.region, PROMISED.offset);
            let term = (promised / peers + 1) * peers + u64::from(me.0);
            memory.store(PROMISED.region, PROMISED.offset, term);
            term
        });
        if !self.granted.contains(me) {
            let last = self.leader.replace(me);
            self.revoke(last, seat);
            self.granted.insert(me);
        }
        self.ask_at = seat.now.after(PATIENCE);
        let question = message(Kind::Ask, term, seat.incarnation);
        for peer in (0..peers as u16).map(Peer).filter(|peer| !self.granted.contains(*peer)) {
            seat.fabric.send(peer, &question);
        }
    }

    fn post(&mut self, to: Peer, op: Op<'_>, seat: &mut Seat<'_, Event>) -> bool {
        let work = Work { id: WorkId(self.round), op, flags: CompletionFlags::empty() };
        let is_posted = seat.fabric.post(to, work).is_ok();
        if !is_posted {
            self.granted.remove(to);
        }
        is_posted
    }

    /// Reads the next slot at all replicas that have given permission.
    fn begin_reading(&mut self, seat: &mut Seat<'_, Event>) {
        self.round += 1;
        let next = slot(seat.fabric.memory().load(NEXT.region, NEXT.offset));
        let others = self.granted.iter().filter(|peer| *peer != seat.me());
        let mut left = PeerSet::EMPTY;
        for peer in others.collect::<Vec<_>>() {
            let into = At { region: LANDING, offset: landing(peer) };
            let from = At { region: LOG, offset: next };
            if self.post(peer, Op::Read { from, into, len: SLOT }, seat) {
                left.insert(peer);
            }
        }
        self.step = Step::Reading(left, PeerSet::only(seat.me()));
    }

    /// All have answered: writes the value of the highest term, or its own.
    fn begin_writing(&mut self, own: u64, at: PeerSet, seat: &mut Seat<'_, Event>) {
        self.round += 1;
        let (me, term) = (seat.me(), self.term.expect("a leader has a term"));
        let memory = seat.fabric.memory();
        let next = slot(memory.load(NEXT.region, NEXT.offset));
        let read = |peer| match peer {
            peer if peer == me => votes(memory, LOG, next),
            peer => votes(memory, LANDING, landing(peer)),
        };
        let replicas: Vec<_> = at.iter().map(|peer| (peer, read(peer))).collect();
        let last = replicas.iter().flat_map(|(_, votes)| votes).flatten().max();
        let value = last.map_or(own, |(_, value)| *value);
        let bytes = copy_of(term, value);
        let mut left = PeerSet::EMPTY;
        for (peer, votes) in replicas {
            let older = if votes[0] <= votes[1] { next } else { next + COPY };
            let to = At { region: LOG, offset: older };
            if peer == me {
                seat.fabric.memory().copy_in(LOG, older, &bytes);
            } else if self.post(peer, Op::Write { to, bytes: &bytes }, seat) {
                left.insert(peer);
            }
        }
        self.step = Step::Writing(value, left, 1);
    }

    /// Handles the works that have ended.
    fn handle_completions(&mut self, seat: &mut Seat<'_, Event>) {
        let mut done = [Completion::NONE];
        while seat.fabric.poll(seat.now, &mut done) > 0 {
            let Completion { id, peer, outcome, .. } = done[0];
            if outcome.is_err() {
                self.granted.remove(peer);
            }
            match &mut self.step {
                _ if id != WorkId(self.round) => {}
                Step::Idle => {}
                Step::Reading(left, read) => {
                    left.remove(peer);
                    if outcome.is_ok() {
                        read.insert(peer);
                    }
                }
                Step::Writing(_, left, have) => {
                    left.remove(peer);
                    *have += usize::from(outcome.is_ok());
                }
            }
        }
    }

    fn lead(&mut self, slots: u64, seat: &mut Seat<'_, Event>) {
        self.handle_completions(seat);
        if self.value.is_none() && self.step == Step::Idle && seat.is_ordered() {
            let (Peer(me), Incarnation(incarnation)) = (seat.me(), seat.incarnation);
            let value = u64::from(me) << 48 | u64::from(incarnation) << 24 | self.count;
            self.count += 1;
            self.value = Some(value);
            seat.record(Event::Proposed(value));
        }
        let Some(own) = self.value else { return };
        match self.step {
            Step::Idle if self.is_majority(self.granted.iter().count()) => self.begin_reading(seat),
            Step::Idle if seat.now >= self.ask_at => self.ask(seat),
            Step::Reading(left, read) if left.is_empty() => {
                self.step = Step::Idle;
                if self.is_majority(read.iter().count()) {
                    self.begin_writing(own, read, seat);
                }
            }
            Step::Writing(value, _, have) if self.is_majority(have) => {
                let memory = seat.fabric.memory();
                let next = memory.load(NEXT.region, NEXT.offset);
                assert!(next + 1 < slots, "the log is full");
                memory.store(NEXT.region, NEXT.offset, next + 1);
                seat.record(Event::Decided(next, value));
                self.value = self.value.filter(|own| *own != value);
                self.step = Step::Idle;
            }
            Step::Writing(_, left, _) if left.is_empty() => self.step = Step::Idle,
            Step::Idle | Step::Reading(..) | Step::Writing(..) => {}
        }
    }
}

impl<const REVOKES_FIRST: bool> Switch<REVOKES_FIRST> {
    fn of(peers: u16, slots: u32) -> Self {
        let mut layout = Layout::new(peers);
        let log = (slots * SLOT, Access::REMOTE_READ | Access::REMOTE_WRITE);
        let landing = (landing(Peer(peers)), Access::empty());
        for (len, access) in [log, landing, (16, Access::empty())] {
            let peers = PeerSet::first(usize::from(peers));
            layout.add(RegionSpec { len, access, peers }).expect("three regions fit");
        }
        let (proposed, decided) = (BTreeMap::new(), BTreeMap::new());
        Self { layout, slots: slots.into(), proposed, decided }
    }
}

impl<const REVOKES_FIRST: bool> Protocol for Switch<REVOKES_FIRST> {
    const NAME: &'static str = "permission-switch";

    type Node = Node;
    type Event = Event;

    fn draw(draws: &mut Draws) -> Self {
        Self::of(draws.between(3, 5) as u16, 256)
    }

    /// For the explorer: two of three processes have one value each.
    fn small() -> Vec<Small<Self>> {
        vec![Small { crashes: 0, ..Small::of("two leaders", Self::of(3, 4), vec![1, 1, 0]) }]
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Replicas decide who may write; nothing else fences or admits.
    fn supervision(&self) -> Supervision {
        Supervision::ByProtocol
    }

    fn deadline(&self, node: &Node) -> Option<Instant> {
        node.value.filter(|_| node.step == Step::Idle).map(|_| node.ask_at)
    }

    fn start(&self, _seat: &mut Seat<'_, Event>) -> Node {
        Node {
            leader: None,
            late: None,
            admitted: vec![None; usize::from(self.layout.peers())],
            term: None,
            granted: PeerSet::EMPTY,
            ask_at: Instant(0),
            value: None,
            count: 0,
            step: Step::Idle,
            round: 0,
        }
    }

    fn step(&self, node: &mut Node, seat: &mut Seat<'_, Event>) {
        let late = node.late.take();
        node.revoke(late, seat);
        while let Some((from, bytes)) = seat.fabric.receive() {
            node.handle::<REVOKES_FIRST>((from, &bytes), seat);
        }
        node.lead(self.slots, seat);
    }

    fn membership(&self, _node: &mut Node, _seat: &mut Seat<'_, Event>, _change: MembershipNews) {
        unreachable!("replicas decide");
    }

    fn judge(&mut self, entry: &HistoryEntry<Event>) -> Result<(), Violation> {
        match entry.what {
            HistoryEvent::Recorded(Event::Proposed(value)) => {
                self.proposed.insert(value, entry.peer);
            }
            HistoryEvent::Recorded(Event::Decided(slot, value)) => {
                if !self.proposed.contains_key(&value) {
                    let what = format!("{value:#x} in slot {slot} was proposed by none");
                    return Err(Violation::new("validity", what));
                }
                let first = *self.decided.entry(slot).or_insert(value);
                if first != value {
                    let what = format!("slot {slot} was decided as {first:#x} and as {value:#x}");
                    return Err(Violation::new("agreement", what));
                }
            }
            HistoryEvent::Began
            | HistoryEvent::Died
            | HistoryEvent::Lied(_)
            | HistoryEvent::Calm => {}
        }
        Ok(())
    }

    fn goal(&self, nodes: &[Option<&Node>]) -> Result<(), Violation> {
        let undecided = nodes.iter().flatten().find_map(|node| node.value);
        let Some(value) = undecided else { return Ok(()) };
        Err(Violation::new("progress", format!("{value:#x} is not decided")))
    }
}

fn main() {
    let planted = Subject::of::<Switch<false>>(&[], &[]);
    let tally = run_seeds(&planted, (0, 20_000), 1, || ());
    let failed = tally.failed.first().expect("a moment with two leaders");
    let replay = Replay::of(&planted, failed, 500);
    let outcome = (planted.run)(&replay.plan());
    println!("a permission is given before the last one is revoked, seed {}:\n", failed.seed);
    println!("{}", outcome.trace.to_string().trim_end());
    println!("\nTwo leaders held the permission at once, and have decided different values.\n");
    let tally = run_seeds(&Subject::of::<Switch<true>>(&[], &[]), (0, 1_000), 1, || ());
    println!(
        "a permission is revoked before the next one is given: {} seeds, of which {} failed",
        tally.seeds,
        tally.failed.len()
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_sim::{Failed, RunPlan, Trace};

    fn broken(failed: &Failed) -> Option<&'static str> {
        failed.outcome.violation.as_ref().map(|broken| broken.checker)
    }

    #[test]
    fn a_permission_that_is_given_before_the_last_is_revoked_makes_two_decide() {
        let subject = Subject::of::<Switch<false>>(&[], &[]);
        let tally = run_seeds(&subject, (0, 20_000), 1, || ());
        let failed = tally.failed.first().expect("a moment with two leaders");
        assert_eq!(broken(failed), Some("agreement"));
        let least = Replay::of(&subject, failed, 500);
        let replayed = (subject.run)(&RunPlan { trace: Trace::off(), ..least.plan() });
        assert_eq!(replayed.violation.map(|broken| broken.checker), Some("agreement"));
    }

    #[test]
    fn a_permission_that_is_revoked_first_has_one_leader_at_a_time() {
        let subject = Subject::of::<Switch<true>>(&[], &[]);
        let tally = run_seeds(&subject, (0, 1_000), 1, || ());
        let failed: Vec<_> =
            tally.failed.iter().map(|failed| (failed.seed, broken(failed))).collect();
        assert_eq!(failed, []);
    }

    #[test]
    fn the_explorer_tells_the_two_orders_apart() {
        let order = |subject: &Subject| {
            let findings = (subject.explore)(&subject.bounds(), &|_| ());
            let broken = |(_, found): &(String, weft_sim::Exploration)| {
                assert!(found.finished || found.violation.is_some(), "the walk is whole");
                found.violation.as_ref().map(|(broken, _)| broken.checker)
            };
            findings.iter().find_map(broken)
        };
        assert_eq!(order(&Subject::of::<Switch<false>>(&[], &[])), Some("agreement"));
        assert_eq!(order(&Subject::of::<Switch<true>>(&[], &[])), None);
    }
}
