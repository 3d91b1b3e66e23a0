//! A broadcast among three over the same device, and beside it the operations that it cannot do
//! without, bare, among the same three.
//!
//! ```text
//!               origin (this thread)      p (a thread)             q (a thread)
//!   broadcast   message ──▶ p, q          copy, expose, read q     copy, expose, read p
//!   bare        write   ──▶ p, q          see it, read q           see it, read p
//!   sample      └── from the call to the last delivery, or to the last end of a read ──┘
//! ```
//!
//! Each of the three has its endpoint, its device and its thread, and one message is under way at
//! a time. All three look without sleeping and let others run in between, on the same two
//! processors. Where there are fewer processors than three both courses wait for them, in the same
//! way; what the second is not held up by is the protocol.
//!
//! Two of them exchange tensors by name, in the same way: one follows, and the third has no part.

mod bare;
mod board;
mod member;
mod tensor;
mod tree;

use std::ops::Range;
use std::sync::Arc;
use std::thread;

use weft_core::fabric::Layout;
use weft_core::ids::Peer;
use weft_driver::{Config, Device, DeviceChoice, Heap, RemoteEnd, VerbsFabric};

use self::bare::BareMember;
use self::board::CircleBoard;
use self::member::CircleMember;
use self::tensor::TensorMember;
use self::tree::TreeMember;
use super::end::{INCARNATION, SpinWait};
use super::error::VerbsBenchError;
use super::pins::Pins;
use super::word::PATIENCE;
use crate::figure::Samples;
use weft::clock::now_ns;
use weft::cluster::TensorPath;

const ORIGIN: Peer = Peer(0);
const PEERS: [Peer; 3] = [ORIGIN, Peer(1), Peer(2)];

/// Empty looks between two turns of others: there are more threads than processors.
const YIELD_EVERY: u32 = 1;

/// The members, each connected with all others, once for the broadcast, once for the bare
/// operations and once for the group.
#[derive(Debug)]
pub(super) struct Circle {
    members: Vec<CircleMember>,
    bares: Vec<BareMember>,
    trees: Vec<TreeMember>,
    readers: Vec<TensorMember>,
    writers: Vec<TensorMember>,
    /// The number of the next message, of each course.
    next: [u64; 5],
}

/// One of the three in one of the courses.
trait Party: Send {
    /// The origin sends message `number` of `bytes` bytes. Returns when that began.
    fn send(&mut self, vigil: &mut SpinWait, message: (u32, u64)) -> Result<u64, VerbsBenchError>;

    /// One look at what has come; whether `message`, its length and its number, is done with here.
    fn look(&mut self, vigil: &SpinWait, message: (u32, u64)) -> Result<bool, VerbsBenchError>;
}

/// Whom `me` is connected with.
fn others(me: Peer) -> impl Iterator<Item = Peer> {
    PEERS.into_iter().filter(move |peer| *peer != me)
}

/// The fabric of `me`, over memory and a device of its own.
fn fabric(
    me: Peer,
    layout: &Layout,
    choice: &DeviceChoice,
) -> Result<VerbsFabric<Heap>, VerbsBenchError> {
    let (memory, device) = (Arc::new(Heap::new(layout)), Device::open(choice)?);
    Ok(VerbsFabric::new(me, layout.clone(), device, Config::default(), memory)?)
}

/// The numbers of the next messages of a course.
fn take_numbers(next: &mut u64, iterations: u32) -> Range<u64> {
    let first = *next;
    *next += u64::from(iterations);
    first..*next
}

/// Connects each fabric with all others; no member is admitted yet.
fn connect<T>(
    parties: &mut [T],
    fabric: impl Fn(&mut T) -> &mut VerbsFabric<Heap>,
) -> Result<(), VerbsBenchError> {
    let mut ends = Vec::new();
    let count = parties.len();
    for from in PEERS.into_iter().take(count) {
        for to in others(from).filter(|to| to.index() < count) {
            let end = fabric(&mut parties[from.index()]).prepare(to, INCARNATION)?.to_bytes();
            ends.push((from, to, end));
        }
    }
    for (from, to, end) in ends {
        let end = RemoteEnd::from_bytes(&end).map_err(weft_driver::Error::End)?;
        fabric(&mut parties[to.index()]).connect(from, end)?;
    }
    Ok(())
}

/// Admits every member at all others, once every pair is connected: no member writes to one that is
/// not ready.
fn admit_all<T>(
    parties: &mut [T],
    admit: impl Fn(&mut T, Peer) -> bool,
) -> Result<(), VerbsBenchError> {
    for (me, party) in PEERS.into_iter().zip(parties) {
        if !others(me).all(|peer| admit(party, peer)) {
            return Err(VerbsBenchError::OutOfStep("a member is not admitted"));
        }
    }
    Ok(())
}

impl Circle {
    pub(super) fn new(choice: &DeviceChoice) -> Result<Self, VerbsBenchError> {
        let (members, bares, trees) =
            (member::all(choice)?, bare::all(choice)?, tree::all(choice)?);
        let [readers, writers] =
            [TensorPath::Read, TensorPath::Write].map(|path| tensor::both(choice, path));
        let (readers, writers) = (readers?, writers?);
        Ok(Self { members, bares, trees, readers, writers, next: [1; 5] })
    }

    /// Broadcasts `iterations` messages, one at a time; the samples are nanoseconds from the call
    /// to the delivery at the last member.
    pub(super) fn run(
        &mut self,
        bytes: u32,
        iterations: u32,
        pins: &Pins,
    ) -> Result<Samples, VerbsBenchError> {
        let numbers = take_numbers(&mut self.next[0], iterations);
        pins.over_both(|| course(&mut self.members, bytes, numbers))?
    }

    /// The same with two writes and two reads alone; the samples are nanoseconds from the first
    /// post to the end of the last read.
    pub(super) fn run_bare(
        &mut self,
        bytes: u32,
        iterations: u32,
        pins: &Pins,
    ) -> Result<Samples, VerbsBenchError> {
        let numbers = take_numbers(&mut self.next[1], iterations);
        pins.over_both(|| course(&mut self.bares, bytes, numbers))?
    }

    /// Sends `iterations` messages to the group, one at a time; the samples are nanoseconds from
    /// the call to the delivery of the last block at the last member.
    pub(super) fn run_tree(
        &mut self,
        bytes: u32,
        iterations: u32,
        pins: &Pins,
    ) -> Result<Samples, VerbsBenchError> {
        let numbers = take_numbers(&mut self.next[2], iterations);
        pins.over_both(|| course(&mut self.trees, bytes, numbers))?
    }

    /// Sends `iterations` tensors to one member, which reads them or has them written, one at a
    /// time; the samples are nanoseconds from the call to the end of the receive.
    pub(super) fn run_tensor(
        &mut self,
        is_written: bool,
        (bytes, iterations): (u32, u32),
        pins: &Pins,
    ) -> Result<Samples, VerbsBenchError> {
        let numbers = take_numbers(&mut self.next[3 + usize::from(is_written)], iterations);
        let pair = if is_written { &mut self.writers } else { &mut self.readers };
        pins.over_both(|| course(pair, bytes, numbers))?
    }
}

/// The first party sends the messages with these numbers, one at a time; the others take part in
/// threads of their own.
fn course<P: Party>(
    parties: &mut [P],
    bytes: u32,
    numbers: Range<u64>,
) -> Result<Samples, VerbsBenchError> {
    let board = CircleBoard::new(parties.len().saturating_sub(1));
    let Some((origin, others)) = parties.split_first_mut() else {
        return Err(VerbsBenchError::OutOfStep("no member takes part"));
    };
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (place, party) in others.iter_mut().enumerate() {
            let (board, numbers) = (&board, numbers.clone());
            let follow = move || {
                let followed = follow(party, board, place, (bytes, numbers));
                // Releases the threads that wait for this one.
                board.end();
                followed
            };
            let thread = thread::Builder::new().spawn_scoped(scope, follow);
            threads.push(thread.map_err(|error| {
                board.end();
                VerbsBenchError::Thread(error)
            })?);
        }
        let led = lead(origin, &board, bytes, numbers);
        board.end();
        for thread in threads {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        led
    })
}

fn lead(
    origin: &mut impl Party,
    board: &CircleBoard,
    bytes: u32,
    numbers: Range<u64>,
) -> Result<Samples, VerbsBenchError> {
    let (mut samples, mut vigil) = (Samples::default(), SpinWait::new(YIELD_EVERY));
    for number in numbers {
        vigil.begin(PATIENCE);
        let begun = origin.send(&mut vigil, (bytes, number))?;
        let ended = loop {
            if let Some(at_ns) = board.done_by_all(number) {
                break at_ns;
            }
            if board.is_over() {
                return Err(VerbsBenchError::OutOfStep("a member has ended"));
            }
            origin.look(&vigil, (bytes, number))?;
            vigil.idle()?;
        };
        samples.push(ended.saturating_sub(begun), 1);
    }
    Ok(samples)
}

fn follow(
    party: &mut impl Party,
    board: &CircleBoard,
    place: usize,
    (bytes, numbers): (u32, Range<u64>),
) -> Result<(), VerbsBenchError> {
    let mut vigil = SpinWait::new(YIELD_EVERY);
    for number in numbers {
        vigil.begin(PATIENCE);
        while !party.look(&vigil, (bytes, number))? {
            if board.is_over() {
                return Ok(());
            }
            vigil.idle()?;
        }
        board.show(place, number, now_ns());
    }
    // The last one of the others may still need something of this one.
    vigil.begin(PATIENCE);
    while !board.is_over() {
        vigil.idle()?;
    }
    Ok(())
}
