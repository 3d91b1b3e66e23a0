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
//! place. Every member is a thread, or a process of its own, with an endpoint over memory of its
//! own, which the others map. Rivals take turns within a round, and a ratio is the median of the
//! rounds' ratios. The number of the message is checked in each block.
//!
//! What this does not measure: several hosts, and messages of several roots at a time.

mod board;
pub(crate) mod copy;
mod member;
mod model;
mod processes;
mod report;
mod rival;

use std::thread;

pub use model::{ModelReport, ModelRow, run as run_model};
pub use processes::run_member;
pub use report::{GroupReport, GroupRow, GroupWhat};
pub use rival::FILES as RIVAL_FILES;
use serde::{Deserialize, Serialize};
use weft_core::endpoint::Plan;
use weft_core::ids::Peer;

use self::board::GroupBoard;
use self::member::GroupMember;
use self::processes::Others;
use self::rival::MpiRival;
use super::error::BenchError;
use super::figure::Samples;
use super::host::{self, CpuStall, STALL_WATCH_NS};
use super::run::Course;
use weft::cluster::{self, Cluster, Topology};
use weft::shm::{NodeMemory, Segment, Wait};

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
    /// Whether each member is a process of its own, as those of an MPI are; else a thread.
    pub are_processes: bool,
}

/// Who the members are.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct GroupSetting {
    members: u16,
    topology: Topology,
    are_processes: bool,
}

impl GroupSetting {
    fn group(&self) -> cluster::Group {
        let topology = self.topology;
        cluster::Group { count: 1, topology, ..cluster::Group::default() }
    }

    /// The endpoints and their memory.
    fn plan(&self) -> Result<Plan, BenchError> {
        let (group, nodes) = (self.group(), usize::from(self.members));
        let cluster = Cluster { nodes, wait: wait(self.members), group, ..Cluster::default() };
        weft::node::plan(&cluster).map_err(|error| BenchError::Plan(error.to_string()))
    }

    /// Whether every member has a processor: two that spin on one wait for its scheduler, not for
    /// each other.
    fn is_alone(&self) -> bool {
        usize::from(self.members) <= host::processors()
    }
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
    /// The root's call alone.
    call: Course,
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
    let (mut stall, mut rows) = (CpuStall::default(), Vec::new());
    let mut rival = MpiRival::compile();
    for members in &plan.members {
        let mut cells: Vec<_> = plan.bytes.iter().map(|bytes| GroupCell::of(*bytes)).collect();
        let (topology, are_processes) = (Topology::Auto, plan.are_processes);
        let setting = GroupSetting { members: *members, topology, are_processes };
        for _ in 0..plan.rounds {
            cells.iter_mut().try_for_each(|cell| cell.copy(*members))?;
            turn(&setting, &mut cells)?;
            rival.turn(*members, &mut cells);
            stall.watch(STALL_WATCH_NS);
            on_turn();
        }
        rows.extend(cells.iter().flat_map(|cell| report::rows(*members, cell)));
    }
    let report = GroupReport::new(rows, rival.standing(), host::describe(&stall));
    Ok(GroupReport { are_processes: plan.are_processes, ..report })
}

impl GroupCell {
    fn of(bytes: usize) -> Self {
        let block_len = cluster::Group::default().block_len;
        Self { bytes, block_len, ..Self::default() }
    }

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

/// All lengths, once in each manner.
fn turn(setting: &GroupSetting, cells: &mut [GroupCell]) -> Result<(), BenchError> {
    let (plan, members) = (setting.plan()?, setting.members);
    let memory = (0..members).map(|me| NodeMemory::create(&format!("weft-{me}"), plan.layout()));
    let memory = memory.collect::<Result<Vec<_>, _>>()?;
    let shared = GroupBoard::segment(members)?;
    match setting.are_processes {
        true => among_processes(setting, &plan, &memory, &shared, cells),
        false => among_threads(setting, &plan, &memory, &shared, cells),
    }
}

/// Connects `member` with all others of `memory`.
fn meet_all(member: &mut GroupMember, plan: &Plan, memory: &[NodeMemory]) -> Ended {
    let me = member.peer();
    for (peer, theirs) in (0..).map(Peer).zip(memory).filter(|(peer, _)| *peer != me) {
        member.meet(plan, peer, &theirs.grant(plan.layout(), me)?)?;
    }
    Ok(())
}

/// The root is this thread, and each other member a process.
fn among_processes(
    setting: &GroupSetting,
    plan: &Plan,
    memory: &[NodeMemory],
    shared: &Segment,
    cells: &mut [GroupCell],
) -> Ended {
    let others = Others::start(setting, plan, memory, shared)?;
    let board = GroupBoard::map(shared.writable_fd(), setting.members)?;
    let (own, guarded) = (memory[0].grant_owner()?, others.guarded()?);
    let mut root = GroupMember::new(Peer(0), plan, &own, wait(setting.members), guarded)?;
    meet_all(&mut root, plan, memory)?;
    let window = setting.group();
    let measured = thread::scope(|scope| {
        // In a thread of its own, which may take a processor for itself.
        let measuring = scope.spawn(|| {
            if setting.is_alone() {
                host::take_processor(0);
            }
            root.measure_all(&board, cells, window.blocks * window.block_len)
        });
        measuring.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    // Whatever the root stumbled over, a member that is dead is why.
    let measured = measured.map_err(|error| others.lost().unwrap_or(error));
    board.note_over();
    measured
}

/// Each member is a thread.
fn among_threads(
    setting: &GroupSetting,
    plan: &Plan,
    memory: &[NodeMemory],
    shared: &Segment,
    cells: &mut [GroupCell],
) -> Ended {
    let members = setting.members;
    let board = GroupBoard::map(shared.writable_fd(), members)?;
    let group = setting.group();
    let window = group.blocks * group.block_len;
    let member = |(me, own): (u16, &NodeMemory)| {
        let own = own.grant_owner()?;
        let mut member = GroupMember::new(Peer(me), plan, &own, wait(members), Vec::new())?;
        meet_all(&mut member, plan, memory)?;
        Ok(member)
    };
    let all = (0..).zip(memory).map(member).collect::<Result<Vec<_>, BenchError>>()?;
    let run = |member: &mut GroupMember, work: &mut dyn FnMut(&mut GroupMember) -> Ended| {
        if setting.is_alone() {
            host::take_processor(member.index());
        }
        let ended = work(member);
        if ended.is_err() {
            // Releases the threads that wait for this member.
            board.note_over();
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
                board.note_over();
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
