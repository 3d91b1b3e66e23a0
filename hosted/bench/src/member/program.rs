//! The program that is measured as a member.
//!
//! ```text
//!   exchange   rank 1 answers, and puts without end; rank 0 measures and prints
//!   events     each prints when it shows a view that lacks an incarnation of the one before
//! ```

use std::time::Duration;

use serde::{Deserialize, Serialize};

use weft_core::dirnet::ComponentIncarnation;

use super::{MemberWhat, PATIENCE};
use crate::error::BenchError;
use crate::figure::{Figure, Samples};
use crate::seat::YIELD_EVERY;
use weft::Member;
use weft::clock::now_ns;
use weft::member::{Event, JoinError, MemberError, MemberHandle, PutError, Rank, TakenBatch};

/// The last number of a part.
const END: u64 = u64::MAX;
/// Numbers that are put together.
const TOGETHER: u64 = 256;
/// The most that are taken between two polls, as in the benchmark of the mailbox.
const BURST: u64 = 128;
/// Messages that share one sample of a rate, as there.
const WINDOW: u64 = 1024;
/// Hops before those that are counted, as there.
const WARM_UP: u64 = 16;

/// What the program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberScript {
    /// Exchanges messages.
    Exchange,
    /// Waits for events until it is ordered to end.
    Events,
}

impl MemberScript {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Exchange, Self::Events];

    /// Its name on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exchange => "exchange",
            Self::Events => "events",
        }
    }
}

/// What it prints.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ProgramLine {
    Joined {
        at_ns: u64,
    },
    /// `each_ns` is what one took over the whole part.
    Measured {
        what: MemberWhat,
        figure: Figure,
        each_ns: f64,
    },
    Removed {
        rank: u16,
        at_ns: u64,
    },
    Failed {
        cause: String,
    },
}

fn say(line: &ProgramLine) {
    println!("{}", serde_json::to_string(line).unwrap_or_default());
}

/// A failure of this member, also as a line for the process that measures.
fn failed(error: &dyn std::fmt::Display) -> BenchError {
    let cause = error.to_string();
    say(&ProgramLine::Failed { cause: cause.clone() });
    let rank = std::env::var("WEFT_RANK").ok().and_then(|rank| rank.parse().ok());
    BenchError::Program { rank: rank.unwrap_or_default(), cause }
}

/// Runs as the program of a node.
///
/// # Errors
/// [`BenchError`]; it is printed as well.
pub fn run(script: MemberScript, span: Duration) -> Result<(), BenchError> {
    let member = match Member::join() {
        Ok(member) => member,
        // The next boot of a node that was killed, in a cluster that is stopped meanwhile.
        Err(JoinError::Stopped) => return Ok(()),
        Err(error) => return Err(failed(&error)),
    };
    say(&ProgramLine::Joined { at_ns: now_ns() });
    match script {
        MemberScript::Exchange => exchange(member, span),
        MemberScript::Events => events(member),
    }
}

/// The end of a process is an event of its own, before any verdict: what follows from a verdict is
/// the next view.
fn events(mut member: Member) -> Result<(), BenchError> {
    let mut shown: Vec<(Rank, ComponentIncarnation)> = Vec::new();
    while !member.is_stopping() {
        match member.wait(PATIENCE) {
            Ok(_) => {}
            // It was killed, or ordered to end, with its node.
            Err(MemberError::NodeEnded) => return Ok(()),
            Err(error) => return Err(failed(&error)),
        }
        while let Some(event) = member.next_event() {
            let at_ns = now_ns();
            let (Event::View { .. }, Some(view)) = (event, member.view()) else { continue };
            // A view may be skipped: the next boot is in place of the one that was removed.
            for (rank, _) in shown.iter().filter(|(rank, it)| view.incarnation(*rank) != Some(*it))
            {
                say(&ProgramLine::Removed { rank: rank.0, at_ns });
            }
            let ranks = view.members().iter();
            shown = ranks.filter_map(|rank| Some((rank, view.incarnation(rank)?))).collect();
        }
    }
    Ok(())
}

/// One end of the exchange, in either manner.
trait ExchangeEnd {
    fn put(&mut self, numbers: &[[u8; 8]]) -> Result<(), BenchError>;
    /// Takes and releases what is there; waits for nothing, or for the next message.
    fn take(&mut self, on: &mut dyn FnMut(u64)) -> Result<(), BenchError>;
    fn save(&mut self, number: u64) -> Result<(), BenchError>;
}

struct PolledEnd {
    member: Member,
    other: Rank,
    saves: bool,
    /// Empty turns in a row, and how many of them keep the processor: the other end may wait for
    /// this very one.
    empty: u32,
    yield_every: u32,
    /// The last turn left something to take.
    has_taken: bool,
}

impl PolledEnd {
    /// One turn of the loop, which finds something or waits one step, as the benchmark of the
    /// mailbox does: `Member::wait` never lets others run where the cluster spins.
    fn turn(&mut self, has_moved: bool) -> Result<(), BenchError> {
        let has_moved = self.member.poll().map_err(|error| failed(&error))? || has_moved;
        if has_moved {
            self.empty = 0;
            return Ok(());
        }
        self.empty += 1;
        if self.empty.is_multiple_of(self.yield_every) {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
        Ok(())
    }
}

struct SpawnedEnd {
    member: MemberHandle,
    other: Rank,
    batch: TakenBatch,
}

fn number(payload: &[u8]) -> Result<u64, BenchError> {
    let bytes = payload.try_into().map_err(|_| failed(&"a message of another length"))?;
    Ok(u64::from_le_bytes(bytes))
}

impl ExchangeEnd for PolledEnd {
    fn put(&mut self, numbers: &[[u8; 8]]) -> Result<(), BenchError> {
        let mut left = numbers;
        while !left.is_empty() {
            match self.member.put_batch(self.other, left.iter().map(|it| &it[..])) {
                Ok(put) => left = &left[put..],
                // What is staged leaves with the next poll, here or in the next `take`.
                Err(PutError::Full { .. }) => self.turn(false)?,
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok(())
    }

    fn take(&mut self, on: &mut dyn FnMut(u64)) -> Result<(), BenchError> {
        let has_taken = std::mem::take(&mut self.has_taken);
        self.turn(has_taken)?;
        for _ in 0..BURST {
            let Some(message) = self.member.take() else { break };
            self.has_taken = true;
            let (taken, receipt) = (number(message.payload)?, message.receipt);
            if self.saves {
                self.save(taken)?;
            }
            self.member.release(receipt).map_err(|error| failed(&error))?;
            on(taken);
        }
        Ok(())
    }

    fn save(&mut self, number: u64) -> Result<(), BenchError> {
        self.member.save(&number.to_le_bytes()).map_err(|error| failed(&error))
    }
}

impl ExchangeEnd for SpawnedEnd {
    fn put(&mut self, numbers: &[[u8; 8]]) -> Result<(), BenchError> {
        let mut left = numbers;
        while !left.is_empty() {
            let payloads = left.iter().map(|it| &it[..]);
            let put = self.member.put_batch(self.other, payloads, PATIENCE);
            left = &left[put.map_err(|error| failed(&error))?..];
        }
        Ok(())
    }

    fn take(&mut self, on: &mut dyn FnMut(u64)) -> Result<(), BenchError> {
        let taken = self.member.take_batch(&mut self.batch, BURST as usize, PATIENCE);
        taken.map_err(|error| failed(&error))?;
        for (_, _, _, payload) in self.batch.iter() {
            on(number(payload)?);
        }
        self.member.release_batch(&self.batch).map_err(|error| failed(&error))
    }

    fn save(&mut self, number: u64) -> Result<(), BenchError> {
        self.member.save(&number.to_le_bytes()).map_err(|error| failed(&error))
    }
}

fn exchange(mut member: Member, span: Duration) -> Result<(), BenchError> {
    let (me, other) = (member.rank(), Rank(1 - member.rank().0));
    while member.members().count() < 2 {
        member.wait(Duration::from_millis(10)).map_err(|error| failed(&error))?;
    }
    let alone = crate::host::processors() > 1;
    let yield_every = if alone { YIELD_EVERY } else { 1 };
    let (saves, empty, has_taken) = (false, 0, false);
    let mut polled = PolledEnd { member, other, saves, empty, yield_every, has_taken };
    hop(&mut polled, me, span, MemberWhat::HopPolled)?;
    rate(&mut polled, me, span, MemberWhat::RatePolled)?;
    polled.saves = true;
    rate(&mut polled, me, span, MemberWhat::TakeSaveRelease)?;
    let member = polled.member.spawn().map_err(|error| failed(&error))?;
    let mut threaded = SpawnedEnd { member, other, batch: TakenBatch::default() };
    hop(&mut threaded, me, span, MemberWhat::HopSpawned)?;
    rate(&mut threaded, me, span, MemberWhat::RateSpawned)?;
    // Its node stays until it is ordered to end.
    while threaded.member.next_event(PATIENCE).is_ok() {}
    Ok(())
}

/// Prints what the samples show; `each_ns` is what one took over the whole part, if not the median.
fn print(what: MemberWhat, samples: &Samples, each_ns: Option<f64>) -> Result<(), BenchError> {
    let figure = samples.figure().ok_or_else(|| failed(&"a part without a sample"))?;
    say(&ProgramLine::Measured { what, figure, each_ns: each_ns.unwrap_or(figure.p50_ns) });
    Ok(())
}

/// Numbers there and back, one at a time.
fn hop(
    end: &mut impl ExchangeEnd,
    me: Rank,
    span: Duration,
    what: MemberWhat,
) -> Result<(), BenchError> {
    let (mut samples, mut last) = (Samples::default(), None);
    if me == Rank(1) {
        while last != Some(END) {
            let mut heard = None;
            end.take(&mut |number| heard = Some(number))?;
            if let Some(number) = heard {
                last = heard;
                end.put(&[number.to_le_bytes()])?;
            }
        }
        return Ok(());
    }
    let ends_ns = now_ns() + u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    for number in 1.. {
        let begun = now_ns();
        let number = if begun < ends_ns || number <= WARM_UP { number } else { END };
        end.put(&[number.to_le_bytes()])?;
        while last != Some(number) {
            end.take(&mut |it| last = Some(it))?;
        }
        if number == END {
            break;
        }
        if number > WARM_UP {
            samples.push(now_ns() - begun, 2);
        }
    }
    print(what, &samples, None)
}

/// Numbers from member 1 to member 0, as fast as both can.
fn rate(
    end: &mut impl ExchangeEnd,
    me: Rank,
    span: Duration,
    what: MemberWhat,
) -> Result<(), BenchError> {
    if me == Rank(1) { pour(end, span) } else { drain(end, what) }
}

fn pour(end: &mut impl ExchangeEnd, span: Duration) -> Result<(), BenchError> {
    // Member 0 begins: what it takes in one part belongs to that part.
    let mut begins = false;
    while !begins {
        end.take(&mut |_| begins = true)?;
    }
    let ends_ns = now_ns() + u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let mut next = 0;
    while now_ns() < ends_ns {
        let numbers: [[u8; 8]; TOGETHER as usize] =
            std::array::from_fn(|at| (next + at as u64).to_le_bytes());
        end.put(&numbers)?;
        next += TOGETHER;
    }
    end.put(&[END.to_le_bytes()])
}

fn drain(end: &mut impl ExchangeEnd, what: MemberWhat) -> Result<(), BenchError> {
    end.put(&[0_u64.to_le_bytes()])?;
    let (mut due, mut is_over, mut is_wrong) = (0, false, false);
    // How many were taken at which time: at the first look, and where the window begins.
    let (mut first, mut window) = (None, (0, 0));
    let mut samples = Samples::default();
    while !is_over {
        let before = due;
        end.take(&mut |number| {
            is_over = number == END;
            is_wrong |= !is_over && number != due;
            due += u64::from(!is_over);
        })?;
        let now = now_ns();
        if first.is_none() && due > before {
            window = (due, now);
            first = Some(window);
        }
        let taken = due - window.0;
        if taken >= WINDOW || (is_over && taken > 0) {
            samples.push(now - window.1, taken);
            window = (due, now);
        }
    }
    if is_wrong {
        return Err(failed(&"a number is missing, or came twice"));
    }
    let (counted, began_ns) = first.ok_or_else(|| failed(&"a part without a message"))?;
    // Windows fall into times of putting and times of taking; the part has both.
    let (counted, span_ns) = (window.0 - counted, window.1 - began_ns);
    print(what, &samples, Some(span_ns as f64 / counted.max(1) as f64))
}
