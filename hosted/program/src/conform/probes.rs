//! Works by the thousand, and a second thread that looks at the memory that they change.
//!
//! | probe | of | sees |
//! |---|---|---|
//! | placement | F-3, F-2 | which word of a write is placed first, torn words, what a completion says |
//! | order | F-1 | two writes as a polling reader finds them, a read behind a write |
//! | atomics | F-4 | adds of the fabric alone, of both ends, and beside the processor's own |
//! | lengths | F-2 | operations of zero length |
//! | fence | F-9 | work with the keys of a pair that was fenced |
//!
//! Each word that is written is a number twice, low and high, so that a torn one is recognised.

use std::thread::{Builder, scope, yield_now};
use std::time::Duration;

use weft_core::fabric::conformance::{OPEN, OPEN_LEN, WORDS};
use weft_core::fabric::{
    At, Completion, CompletionFlags, Fabric, Failure, Memory, Op, Placement, PostError, WordMemory,
    Work, WorkId,
};
use weft_core::ids::Peer;
use weft_core::time::Instant;

use super::tally::{ProbeTimes, Tally};
use super::{Bench, ConformError, ConformSubject, now};

/// How many there are.
pub(super) const PROBES: u64 = 5;

const NAMES: [&str; PROBES as usize] = ["placement", "order", "atomics", "lengths", "fence"];

/// How long each posts, for each round of the suite.
const TIME: Duration = Duration::from_millis(100);
/// How long a work may take before it counts as lost: longer than any fabric's own deadline (F-12).
const PATIENCE: Duration = Duration::from_secs(20);
/// Looks of the second thread between two offers of its processor.
const LOOKS: u32 = 64;

const POSTER: Peer = Peer(0);
const TARGET: Peer = Peer(1);
/// Where [`STOP`] ends the second thread, behind everything that is written.
const END: u32 = OPEN_LEN - 8;
const STOP: u64 = u64::MAX;
/// The second of two words that are written in order.
const SECOND: u32 = 2048;
const SIZES: [u32; 3] = [64, 512, 4096];
/// Where writes begin: how a processor copies depends on the low bits of both addresses.
const OFFSETS: [u32; 2] = [0, 96];

const fn open(offset: u32) -> At {
    At { region: OPEN, offset }
}

const COUNTER: At = At { region: WORDS, offset: 0 };

fn twice(number: u32) -> u64 {
    u64::from(number) << 32 | u64::from(number)
}

/// The number of a word, unless it is torn.
fn number(word: u64) -> Option<u32> {
    let (low, high) = (word as u32, (word >> 32) as u32);
    (low == high).then_some(low)
}

fn since(began: Instant) -> Duration {
    Duration::from_nanos(now().0.saturating_sub(began.0))
}

/// Why a probe ended before its time.
#[derive(Debug)]
enum Stop {
    Overdue,
    Failed(Failure),
    Refused(PostError),
    Thread(std::io::Error),
}

/// One endpoint that posts, one work after the other, and the time that it takes.
struct Poster<'f, F: Fabric> {
    fabric: &'f mut F,
    works: u64,
    took: ProbeTimes,
}

impl<'f, F: Fabric> Poster<'f, F> {
    fn new(fabric: &'f mut F) -> Self {
        Self { fabric, works: 0, took: ProbeTimes::default() }
    }

    fn post(&mut self, to: Peer, op: Op<'_>, flags: CompletionFlags) -> Result<(), Stop> {
        let work = Work { id: WorkId::new(1, self.works), op, flags };
        let began = now();
        let posted = self.fabric.post(to, work);
        self.took.posts.push(since(began));
        self.works += 1;
        posted.map_err(Stop::Refused)
    }

    /// Posts a signalled work and waits for its end.
    fn run(&mut self, to: Peer, op: Op<'_>) -> Result<u64, Stop> {
        let began = now();
        self.post(to, op, CompletionFlags::empty())?;
        loop {
            let mut done = [Completion::NONE];
            let polled = now();
            let found = self.fabric.poll(polled, &mut done);
            self.took.polls.push(since(polled));
            if found == 1 {
                self.took.works.push(since(began));
                return done[0].outcome.map_err(Stop::Failed);
            }
            if since(began) > PATIENCE {
                return Err(Stop::Overdue);
            }
            yield_now();
        }
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Stop> {
        self.run(TARGET, Op::Write { to: open(offset), bytes }).map(drop)
    }
}

/// Tells the second thread to end, also where the first one panics.
struct EndOnDrop<'m, M: Memory>(&'m M);

impl<M: Memory> Drop for EndOnDrop<'_, M> {
    fn drop(&mut self) {
        self.0.store(OPEN, END, STOP);
    }
}

/// Runs `write` while a second thread looks at `memory` as fast as it can.
fn watched<M: Memory + Sync, R: Default + Send, W>(
    memory: &M,
    look: impl Fn(&M, &mut R) + Send,
    write: impl FnOnce() -> Result<W, Stop>,
) -> Result<(W, R), Stop> {
    memory.store(OPEN, END, 0);
    scope(|threads| {
        let watch = move || {
            let mut seen = R::default();
            while memory.load(OPEN, END) != STOP {
                (0..LOOKS).for_each(|_| look(memory, &mut seen));
                yield_now();
            }
            seen
        };
        let name = Builder::new().name("weft-conform".to_owned());
        let watcher = name.spawn_scoped(threads, watch).map_err(Stop::Thread)?;
        let written = {
            let _ends = EndOnDrop(memory);
            write()
        };
        // It panics only where the first thread would: on addresses of this file's own.
        let seen = watcher.join().unwrap_or_default();
        Ok((written?, seen))
    })
}

/// Calls `step` with 1, 2, 3 and so on until the time is over; returns the last number.
fn until_over(time: Duration, mut step: impl FnMut(u32) -> Result<(), Stop>) -> Result<u64, Stop> {
    let began = now();
    let mut count = 0;
    while since(began) < time {
        count += 1;
        step(count)?;
    }
    Ok(u64::from(count))
}

/// What a second thread saw of two words of which each had been the older one.
#[derive(Debug, Default)]
struct Looks {
    first_ahead: u64,
    last_ahead: u64,
    torn: u64,
}

impl Looks {
    /// Loads one word and then the other, so that the one that is loaded first is ahead only if it
    /// was placed first.
    fn look<M: Memory>(&mut self, memory: &M, (first, last): (u32, u32)) {
        let load = |offset| number(memory.load(OPEN, offset));
        if let (Some(early), Some(late)) = (load(first), load(last)) {
            self.first_ahead += u64::from(early > late);
        } else {
            self.torn += 1;
        }
        if let (Some(late), Some(early)) = (load(last), load(first)) {
            self.last_ahead += u64::from(late > early);
        } else {
            self.torn += 1;
        }
    }
}

fn clear<M: Memory>(memory: &M) {
    (0..OPEN_LEN).step_by(8).for_each(|offset| memory.store(OPEN, offset, 0));
}

fn placement<F: Fabric<Memory: Sync + Sized>>(
    poster: &mut Poster<'_, F>,
    memory: &F::Memory,
    time: Duration,
    tally: &mut Tally,
) -> Result<(), Stop> {
    let mut unseen = 0;
    let time = time / (SIZES.len() * OFFSETS.len()) as u32;
    for (len, offset) in SIZES.into_iter().flat_map(|len| OFFSETS.map(|offset| (len, offset))) {
        clear(memory);
        let mut bytes = vec![0; len as usize];
        let ends = (offset, offset + len - 8);
        let look = |memory: &F::Memory, looks: &mut Looks| looks.look(memory, ends);
        let (writes, looks) = watched(memory, look, || {
            until_over(time, |round| {
                let word = twice(round);
                bytes.chunks_exact_mut(8).for_each(|at| at.copy_from_slice(&word.to_le_bytes()));
                poster.write(offset, &bytes)?;
                let is_there = [ends.0, ends.1].iter().all(|at| memory.load(OPEN, *at) == word);
                unseen += u64::from(!is_there);
                Ok(())
            })
        })?;
        let Looks { first_ahead, last_ahead, torn } = looks;
        tally.seen(
            "f3",
            writes,
            format!(
                "{len} B at byte {offset}: of {writes} writes the first word was seen ahead of the \
                 last in {first_ahead} samples, the last ahead of the first in {last_ahead}, torn \
                 words in {torn}"
            ),
        );
    }
    if unseen > 0 {
        tally.broken("f2", format!("{unseen} writes had completed and were not in memory"));
    }
    Ok(())
}

fn order<F: Fabric<Memory: Sync + Sized>>(
    poster: &mut Poster<'_, F>,
    memory: &F::Memory,
    time: Duration,
    tally: &mut Tally,
) -> Result<(), Stop> {
    clear(memory);
    let look = |memory: &F::Memory, looks: &mut Looks| looks.look(memory, (0, SECOND));
    let mut stale = 0;
    let (pairs, looks) = watched(memory, look, || {
        until_over(time, |round| {
            let word = twice(round).to_le_bytes();
            let first = Op::Write { to: open(0), bytes: &word };
            poster.post(TARGET, first, CompletionFlags::QUIET)?;
            poster.write(SECOND, &word)?;
            let read = Op::Read { from: open(0), into: open(0), len: 8 };
            poster.run(TARGET, read)?;
            stale += u64::from(poster.fabric.memory().load(OPEN, 0) != twice(round));
            Ok(())
        })
    })?;
    if looks.last_ahead > 0 {
        let seen =
            format!("the later of two writes was seen first in {} samples", looks.last_ahead);
        tally.broken("f1", seen);
    }
    if stale > 0 {
        tally.broken(
            "f1",
            format!("a read behind a write found the bytes before it, {stale} times"),
        );
    }
    let seen = format!(
        "of {pairs} pairs of writes the earlier was seen alone in {} samples, the later in {}",
        looks.first_ahead, looks.last_ahead
    );
    tally.seen("f1", pairs, seen);
    Ok(())
}

fn atomics<F: Fabric<Memory: WordMemory + Sync + Sized>>(
    poster: &mut Poster<'_, F>,
    memory: &F::Memory,
    time: Duration,
    untouched: Option<u64>,
    tally: &mut Tally,
) -> Result<(), Stop> {
    let add = Op::FetchAdd { at: COUNTER, add: 1 };
    memory.store(WORDS, 0, 0);
    let (mut wrong, mut unwritten) = (0, 0);
    let alone = until_over(time / 2, |round| {
        let old = poster.run(TARGET, add)?;
        unwritten += u64::from(Some(old) == untouched);
        wrong += u64::from(old != u64::from(round) - 1);
        Ok(())
    })?;
    if wrong > 0 || memory.load(WORDS, 0) != alone {
        let found = memory.load(WORDS, 0);
        let seen = format!(
            "{alone} adds made {found}; {wrong} old values were wrong, {unwritten} of them never \
             written"
        );
        tally.broken("f4", seen);
    } else {
        tally.seen("f4", alone, format!("{alone} adds of one peer: each old value was the next"));
    }

    memory.store(WORDS, 0, 0);
    let own = |memory: &F::Memory, count: &mut u64| {
        let _ = WordMemory::words(memory, WORDS).fetch_add(0, 1);
        *count += 1;
    };
    let (remote, own) =
        watched(memory, own, || until_over(time / 2, |_| poster.run(TARGET, add).map(drop)))?;
    let lost = (remote + own).wrapping_sub(memory.load(WORDS, 0));
    let verdict = if lost == 0 { "none lost" } else { "which F-4 permits" };
    tally.seen(
        "f4",
        remote,
        format!("{remote} adds beside {own} of the owner's processor: {lost} lost, {verdict}"),
    );
    Ok(())
}

fn lengths<F: Fabric>(poster: &mut Poster<'_, F>, tally: &mut Tally) -> Result<(), Stop> {
    let nothing: [(&str, Op<'_>); 3] = [
        ("write", Op::Write { to: open(0), bytes: &[] }),
        ("write from a region", Op::WriteFrom { to: open(0), from: open(0), len: 0 }),
        ("read", Op::Read { from: open(0), into: open(0), len: 0 }),
    ];
    for (what, op) in nothing {
        poster.run(TARGET, op)?;
        tally.seen("f2", 1, format!("a {what} of zero length completes"));
    }
    Ok(())
}

fn fence<F: Fabric>(
    poster: &mut Poster<'_, F>,
    target: &mut F,
    tally: &mut Tally,
) -> Result<(), Stop> {
    target.memory().store(OPEN, 0, 0);
    if let Err(error) = target.fence(POSTER) {
        tally.broken("f9", format!("the peer was not fenced: {error:?}"));
        return Ok(());
    }
    let ended = match poster.write(0, &twice(1).to_le_bytes()) {
        Ok(()) => "as a success".to_owned(),
        Err(Stop::Failed(failure)) => format!("with: {failure}"),
        Err(Stop::Refused(error)) => format!("before it began: {error:?}"),
        Err(stop) => return Err(stop),
    };
    if target.memory().load(OPEN, 0) != 0 {
        tally.broken("f9", "work posted behind a fence changed memory".to_owned());
    }
    tally.seen("f9", 1, format!("work with the keys of a fenced pair ends {ended}"));
    Ok(())
}

/// Runs each probe on new endpoints.
pub(super) fn run<B: Bench>(
    subject: &ConformSubject,
    rounds: u32,
    tally: &mut Tally,
    step: &mut impl FnMut(&'static str),
) -> Result<(), ConformError>
where
    <B::Fabric as Fabric>::Memory: WordMemory + Sync + Sized,
{
    let time = TIME * rounds;
    for (index, name) in (0..).zip(NAMES) {
        step(name);
        let mut bench = B::make(subject).map_err(|error| error.later(name))?;
        let (one, other) = bench.both();
        if index == 0
            && let Some(said) = B::said(one)
        {
            tally.seen("f3", 1, said);
        }
        if index == 0 {
            let said = match one.placement() {
                Placement::Bytes => "not promised",
                Placement::WholeWords => "promised of writes from bytes",
            };
            tally.seen("f14", 1, said.to_owned());
        }
        let mut poster = Poster::new(one);
        let ended = match index {
            0 => placement(&mut poster, other.memory(), time, tally),
            1 => order(&mut poster, other.memory(), time, tally),
            2 => atomics(&mut poster, other.memory(), time, B::UNTOUCHED, tally),
            3 => lengths(&mut poster, tally),
            _ => fence(&mut poster, other, tally),
        };
        tally.took(poster.took);
        match ended {
            Ok(()) => {}
            Err(Stop::Thread(error)) => return Err(ConformError::Thread(error)),
            Err(stop) => {
                B::check(subject).map_err(|error| error.later(name))?;
                let said = match stop {
                    Stop::Overdue => format!("a work stayed open for {PATIENCE:?}"),
                    Stop::Failed(failure) => format!("a work failed: {failure}"),
                    Stop::Refused(error) => format!("a work was refused: {error:?}"),
                    Stop::Thread(_) => continue,
                };
                tally.broken("f12", format!("{name}: {said}"));
            }
        }
    }
    Ok(())
}
