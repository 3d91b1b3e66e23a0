//! How many instructions a message takes that is put and taken within one process, and a poll that
//! finds nothing: this program steps itself.
//!
//! ```text
//!   weft bench count ── steps ──▶ weft bench counted-work:  mark  mark │ mark  row  mark │ …
//! ```
//!
//! A message counts from the caller's bytes to the release at the owner, checks of the benchmark's
//! own included. No noise moves a count, so a build that needs more instructions than
//! the ratchet here allows has become slower, on any host. Where they go shows
//!
//! ```text
//!   RUSTFLAGS=--cfg=rustix_use_libc cargo build --release --target-dir target/valgrind
//!   valgrind --tool=callgrind --toggle-collect='weft_bench::count::put_and_take*' \
//!       target/valgrind/release/weft bench counted-work --messages 20000 --batch 1 --bytes 8
//! ```
//!
//! The flag is there because rustix looks for the kernel's vdso, which valgrind hides.

use std::fmt;
use std::process::{Command, Stdio};

use serde::Serialize;
use weft_core::ids::Peer;
use weft_core::mailbox::Message;

use super::cell::Cell;
use super::crew::{OWNER, meet, take_seat};
use super::error::BenchError;
use super::parcel::{self, DATA};
use super::report::tenths;
use super::seat::BenchSeat;
use super::verdict::AimVerdict;
use weft::process::{ProcessError, begin_to_be_stepped, count_instructions, mark};
use weft::shm::{NodeMemory, Wait};

const WRITER: Peer = Peer(1);
/// What is done before anything is counted.
const WARM_UP: u64 = 2_000;
/// After so many seconds the process that is stepped is ended.
const SECONDS_MAX: u32 = 300;
/// What a part of the run is and how long its messages are; zero at a time: as many as one put
/// carries.
const CELLS: [(CountedWhat, u32, usize); 5] = [
    (CountedWhat::PutTake, 1, 8),
    (CountedWhat::PutTake, 0, 8),
    (CountedWhat::PutTake, 1, 256),
    (CountedWhat::PutTake, 0, 256),
    (CountedWhat::PollIdle, 1, 8),
];

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountedWhat {
    /// A message: staged, flushed, taken and released.
    PutTake,
    /// A poll of an owner for whom nothing has come.
    PollIdle,
}

/// What one of them takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CountedRow {
    /// What is counted.
    pub what: CountedWhat,
    /// Messages put at a time.
    pub batch: u32,
    /// Length of a message.
    pub bytes: usize,
    /// Instructions of one.
    #[serde(serialize_with = "tenths")]
    pub instructions: f64,
}

/// What a message of 8 bytes may take, alone and in batches, and an idle poll: in a release, and in
/// the profile `sim`, which ci/test has built. A tenth at most above what they take today. Lower it
/// with what you save.
const RATCHET: [(CountedWhat, bool, [f64; 2]); 3] = [
    (CountedWhat::PutTake, true, [745.0, 933.0]),
    (CountedWhat::PutTake, false, [122.0, 133.0]),
    (CountedWhat::PollIdle, true, [205.0, 248.0]),
];
/// A build that takes so many times what it may is not optimized.
const UNOPTIMIZED: f64 = 3.0;

/// What was counted.
#[derive(Clone, Debug, Serialize)]
pub struct CountReport {
    /// Each row.
    pub rows: Vec<CountedRow>,
    /// What became of the limits.
    pub verdicts: Vec<AimVerdict>,
}

/// Counts, over so many messages in each row.
///
/// # Errors
/// [`BenchError`].
pub fn count(messages: u64) -> Result<CountReport, BenchError> {
    let program = std::env::current_exe().map_err(BenchError::Thread)?;
    let mut child = Command::new(program)
        .args(["bench", "counted-work", "--stepped", "--messages", &messages.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| BenchError::Process(ProcessError::Spawn(error)))?;
    let counts = count_instructions(&mut child)?;
    let Some((empty, counts)) = counts.split_first().filter(|(_, it)| it.len() == CELLS.len())
    else {
        return Err(BenchError::OutOfStep("another number of rows was marked"));
    };
    let rows = std::iter::zip(CELLS, counts).map(|((what, batch, bytes), counted)| {
        let batch = if batch == 0 { batch_max(bytes)? } else { batch };
        let batch = u32::try_from(messages).unwrap_or(batch).min(batch);
        let instructions = counted.saturating_sub(*empty) as f64 / messages as f64;
        Ok(CountedRow { what, batch, bytes, instructions })
    });
    let rows = rows.collect::<Result<Vec<_>, BenchError>>()?;
    let verdicts = RATCHET.into_iter().map(|limit| judge(limit, &rows)).collect();
    Ok(CountReport { rows, verdicts })
}

fn judge((what, alone, limits): (CountedWhat, bool, [f64; 2]), rows: &[CountedRow]) -> AimVerdict {
    let most = limits[usize::from(cfg!(debug_assertions))];
    let name = match (what, alone) {
        (CountedWhat::PollIdle, _) => "an idle poll",
        (CountedWhat::PutTake, true) => "8 bytes put and taken alone",
        (CountedWhat::PutTake, false) => "8 bytes put and taken in batches",
    };
    let is_it = |row: &&CountedRow| row.what == what && row.bytes == 8 && (row.batch == 1) == alone;
    let aim = format!("{name}: at most {most:.0} instructions");
    let Some(row) = rows.iter().find(is_it) else { return AimVerdict::unmeasured(aim) };
    let found = format!("{:.1}", row.instructions);
    if cfg!(debug_assertions) && row.instructions > UNOPTIMIZED * most {
        return AimVerdict {
            aim,
            reached: None,
            found: found + ", and the build is not optimized",
        };
    }
    AimVerdict { aim, reached: Some(row.instructions <= most), found }
}

/// All rows once, for the process that steps this one.
///
/// # Errors
/// [`BenchError`].
pub fn do_counted_work(messages: u64) -> Result<(), BenchError> {
    begin_to_be_stepped(SECONDS_MAX)?;
    mark();
    mark();
    for (what, batch, bytes) in CELLS {
        let mut pair = EndpointPair::new(bytes)?;
        let batch = if batch == 0 { batch_max(bytes)? } else { batch };
        pair.put_and_take(WARM_UP, batch)?;
        mark();
        match what {
            CountedWhat::PutTake => pair.put_and_take(messages, batch)?,
            CountedWhat::PollIdle => pair.poll_idle(messages),
        }
        mark();
    }
    Ok(())
}

/// Puts and takes `messages` messages of `bytes` bytes, `batch` at a time or as many as one put
/// carries, for a profiler.
///
/// # Errors
/// [`BenchError`].
pub fn put_and_take(bytes: usize, messages: u64, batch: Option<u32>) -> Result<(), BenchError> {
    let most = batch_max(bytes)?;
    EndpointPair::new(bytes)?.put_and_take(messages, batch.unwrap_or(most).clamp(1, most))
}

fn batch_max(bytes: usize) -> Result<u32, BenchError> {
    Ok(Cell { bytes, writers: 1 }.plan()?.mailbox().batch())
}

/// Two endpoints in this process.
struct EndpointPair {
    owner: BenchSeat,
    writer: BenchSeat,
    payload: Vec<u8>,
    /// Messages put so far.
    put: u64,
}

impl EndpointPair {
    fn new(bytes: usize) -> Result<Self, BenchError> {
        let plan = Cell { bytes, writers: 1 }.plan()?;
        let layout = plan.layout();
        let memory =
            [OWNER, WRITER].map(|peer| NodeMemory::create(&format!("weft-{peer}"), layout));
        let [owners, writers] = memory;
        let (owners, writers) = (owners?, writers?);
        let seat = |me, memory: &NodeMemory| {
            take_seat(&plan, me, &memory.grant_owner()?, Wait::Spin, Vec::new())
        };
        let (mut owner, mut writer) = (seat(OWNER, &owners)?, seat(WRITER, &writers)?);
        meet(&mut owner, layout, WRITER, &writers.grant(layout, OWNER)?, None)?;
        meet(&mut writer, layout, OWNER, &owners.grant(layout, WRITER)?, None)?;
        Ok(Self { owner, writer, payload: vec![0; bytes], put: 0 })
    }

    fn put_and_take(&mut self, messages: u64, batch: u32) -> Result<(), BenchError> {
        if batch == 1 {
            self.put_and_take_alone(messages)
        } else {
            self.put_batches(messages, batch)
        }
    }

    #[inline(never)]
    fn put_and_take_alone(&mut self, messages: u64) -> Result<(), BenchError> {
        let Self { owner, writer, payload, put } = self;
        let (len, payload) = (payload.len(), payload.as_mut_slice());
        let due = *put..*put + messages;
        *put = due.end;
        for number in due {
            parcel::write(payload, number);
            writer.put(OWNER, DATA, payload)?;
            owner.endpoint.poll(owner.vigil.now());
            let expect = |it: &Message<'_>| parcel::expect(it.sender, it.payload, len, number);
            while owner.take(expect)?.is_none() {
                owner.endpoint.poll(owner.vigil.now());
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn put_batches(&mut self, messages: u64, batch: u32) -> Result<(), BenchError> {
        let Self { owner, writer, payload, put } = self;
        let (len, payload) = (payload.len(), payload.as_mut_slice());
        let (mut taken, end) = (*put, *put + messages);
        *put = end;
        while taken < end {
            let due = end.min(taken + u64::from(batch));
            for number in taken..due {
                parcel::write(payload, number);
                writer.endpoint.stage(OWNER, DATA, payload)?;
            }
            writer.flush(OWNER)?;
            owner.endpoint.poll(owner.vigil.now());
            while taken < due {
                // What was put together is taken and released together.
                let found = owner.take_run(|message| {
                    taken += 1;
                    parcel::expect(message.sender, message.payload, len, taken - 1)
                })?;
                if found == 0 {
                    // A batch may be split by the end of a half.
                    owner.endpoint.poll(owner.vigil.now());
                }
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn poll_idle(&mut self, polls: u64) {
        for _ in 0..polls {
            self.owner.endpoint.poll(self.owner.vigil.now());
        }
    }
}

impl fmt::Display for CountReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "     what   batch  #bytes  instructions")?;
        for CountedRow { what, batch, bytes, instructions } in &self.rows {
            let what = match what {
                CountedWhat::PutTake => "put_take",
                CountedWhat::PollIdle => "poll_idle",
            };
            writeln!(f, "{what:>9} {batch:7} {bytes:7} {instructions:13.1}")?;
        }
        self.verdicts.iter().try_for_each(|verdict| writeln!(f, "{verdict}"))
    }
}
