//! Groups: from the root's call to the last delivery, over shared memory, beside `MPI_Bcast`.
//!
//! ```text
//!   each round    copy ─▶ members as threads: in place, copied out, resume ─▶ mpirun: MPI_Bcast
//!     root        private bytes ─▶ own window │ until all have delivered
//!     others      poll, receive, release; publish number and time of each message
//! ```
//!
//! | what | measures | its limit |
//! |---|---|---|
//! | `copy` | one copy of bytes that another processor has written last | itself |
//! | `in_place` | a broadcast that each member uses where it lies | copies |
//! | `copied_out` | a broadcast that each member copies into a buffer of its own | copies |
//! | `mpi` | `MPI_Bcast` between as many processes | copies |
//! | `steps` | steps of the schedule over RDMA, counted | blocks + ⌈log₂ members⌉ − 1 |
//! | `resume` | from the decision that a reader is removed to the last delivery | the rest |
//!
//! The limit *copies* is one such copy for each member, the root's own into its window included, on
//! all processors at once. That of `resume` is what the part that was not yet written takes in
//! place. Every member is a thread with an endpoint over memory of its own, mapped by the others as
//! another process would. Rivals take turns within a round, and a ratio is the median of the
//! rounds' ratios. The number of the message is checked in each block.
//!
//! What this does not measure: several hosts, and messages of several roots at a time.

mod copy;
mod member;
mod report;
mod rival;

use std::sync::atomic::Ordering;
use std::thread;

pub use report::{GroupReport, GroupRow, GroupWhat};

use self::member::{GroupBoard, GroupMember};
use self::rival::MpiRival;
use super::error::BenchError;
use super::figure::Samples;
use super::host::{self, STALL_WATCH_NS, Stall};
use super::run::Course;
use weft::cluster::{self, Cluster};
use weft::shm::{NodeMemory, Wait};

/// Numbers of members, unless others are asked for.
pub const MEMBERS: [u16; 2] = [2, 4];
/// Lengths of messages, unless others are asked for.
pub const BYTES: [usize; 4] = [8, 4 << 10, MEGABYTE, 64 << 20];
const MEGABYTE: usize = 1 << 20;
/// Bytes of one rival and length in one round.
const BUDGET: usize = 32 << 20;

/// What to measure.
#[derive(Clone, Debug)]
pub struct GroupPlan {
    /// Numbers of members, 2 to 16 each.
    pub members: Vec<u16>,
    /// Lengths of messages, 8 bytes or more each.
    pub bytes: Vec<usize>,
    /// How often the rivals take turns.
    pub rounds: u32,
}

/// How often a message of `bytes` is sent in one turn.
fn messages(bytes: usize) -> usize {
    (BUDGET / bytes).clamp(3, 500)
}

/// Messages before those that are counted: the memory of the window is touched then.
fn warm_up(bytes: usize) -> usize {
    messages(bytes).div_ceil(8)
}

/// What was measured of one length among so many members.
#[derive(Debug, Default)]
struct GroupCell {
    bytes: usize,
    block_len: usize,
    copy: Course,
    copies: Course,
    in_place: Course,
    copied_out: Course,
    mpi: Course,
    resume: Course,
    /// What the part that was left at the decision takes without one.
    rest: Course,
}

/// Measures; `on_turn` is called for every round of every number of members.
///
/// # Errors
/// [`BenchError`]; its processes are gone then.
pub fn run(plan: &GroupPlan, mut on_turn: impl FnMut()) -> Result<GroupReport, BenchError> {
    let (mut stall, mut rows) = (Stall::default(), Vec::new());
    let mut rival = MpiRival::compile();
    for members in &plan.members {
        let block_len = cluster::Group::default().block_len;
        let cell = |bytes: &usize| GroupCell { bytes: *bytes, block_len, ..Default::default() };
        let mut cells: Vec<_> = plan.bytes.iter().map(cell).collect();
        for _ in 0..plan.rounds {
            cells.iter_mut().try_for_each(|cell| cell.copy(*members))?;
            turn(*members, &mut cells)?;
            rival.turn(*members, &mut cells);
            stall.watch(STALL_WATCH_NS);
            on_turn();
        }
        rows.extend(cells.iter().flat_map(|cell| report::rows(*members, cell)));
    }
    Ok(GroupReport::new(rows, rival.standing(), host::describe(&stall)))
}

impl GroupCell {
    fn copy(&mut self, members: u16) -> Result<(), BenchError> {
        let mut samples = copy::measure(self.bytes, messages(self.bytes))?;
        let one = samples.median().unwrap_or(f64::NAN);
        let at_once = host::processors().min(usize::from(members));
        let mut copies = Samples::default();
        copies.push_value(one * f64::from(members) / at_once as f64);
        self.copy.add(samples);
        self.copies.add(copies);
        Ok(())
    }
}

/// Spin while every member can have a processor, else let others have theirs.
fn wait(members: u16) -> Wait {
    if usize::from(members) <= host::processors() { Wait::Spin } else { Wait::Yield }
}

/// All lengths among `members` members, once in each manner.
fn turn(members: u16, cells: &mut [GroupCell]) -> Result<(), BenchError> {
    let group = cluster::Group { count: 1, ..cluster::Group::default() };
    let window = group.blocks * group.block_len;
    let wait = wait(members);
    let cluster = Cluster { nodes: usize::from(members), wait, group, ..Cluster::default() };
    let plan = weft::node::plan(&cluster).map_err(|error| BenchError::Plan(error.to_string()))?;
    let memory = (0..members).map(|me| NodeMemory::create(&format!("weft-{me}"), plan.layout()));
    let memory = memory.collect::<Result<Vec<_>, _>>()?;
    let board = GroupBoard::new(members);
    let all: Vec<_> = (0..members)
        .map(|me| GroupMember::new(me, &plan, &memory, wait))
        .collect::<Result<_, _>>()?;
    // Two that spin on one processor wait for its scheduler, not for each other.
    let is_alone = usize::from(members) <= host::processors();
    let run = |member: &mut GroupMember, work: &mut dyn FnMut(&mut GroupMember) -> Ended| {
        if is_alone {
            host::take_processor(member.index());
        }
        let ended = work(member);
        if ended.is_err() {
            // Releases the threads that wait for this member.
            board.over.store(true, Ordering::Relaxed);
        }
        ended
    };
    thread::scope(|scope| {
        let mut all = all.into_iter();
        let mut root = all.next().ok_or(BenchError::OutOfStep("no member to send"))?;
        let (run, board) = (&run, &board);
        let mut threads: Vec<_> = all
            .map(|mut member| {
                scope.spawn(move || {
                    run(&mut member, &mut |member: &mut GroupMember| member.serve(board))
                })
            })
            .collect();
        threads.push(scope.spawn(move || {
            run(&mut root, &mut |root: &mut GroupMember| {
                let measured = root.measure_all(board, cells, window);
                board.over.store(true, Ordering::Relaxed);
                measured
            })
        }));
        let ended: Vec<_> = threads
            .into_iter()
            .map(|it| it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        ended.into_iter().collect()
    })
}

/// How a member's part has ended.
type Ended = Result<(), BenchError>;
