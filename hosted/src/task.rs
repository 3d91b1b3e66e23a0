//! Reports of a guarded program to its node: progress and errors.
//!
//! ```no_run
//! # fn work() -> Result<(), u16> { Ok(()) }
//! loop {
//!     weft::task::beat()?;
//!     if let Err(error) = work() {
//!         weft::task::report(error)?;
//!     }
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), weft::task::TaskCallError>(())
//! ```
//!
//! A node passes `WEFT_TASK`, `WEFT_CLUSTER`, `WEFT_NODE` and `WEFT_CONTROL` in the environment of
//! each program that it starts: the program's identity and the node's socket. Programs in other
//! languages run `weft report`. One connection serves all calls of a process; it is made again
//! when it breaks, and only then does a call cost more than a packet each way.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::client::{Client, ClientError};
use crate::explain::{Code, Explain};
pub use crate::node::control::{TaskNotice, TaskNotices, Vote, VoteDenied, VoteResult};
pub use crate::node::{VARIABLE_CLUSTER, VARIABLE_CONTROL, VARIABLE_NODE, VARIABLE_TASK};

/// How long the node may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(1);

/// The connection of this process.
static CONNECTION: Mutex<Option<Client>> = Mutex::new(None);

/// Why a task could not report to its node.
#[derive(Debug, thiserror::Error)]
pub enum TaskCallError {
    /// This process was not started by a node: a variable is missing or means nothing.
    #[error("this process is not a guarded task: {variable} is missing or invalid")]
    NotGuarded {
        /// The variable.
        variable: &'static str,
    },
    /// The node was not reached, or refused.
    #[error("{0}")]
    Client(#[source] ClientError),
}

impl Explain for TaskCallError {
    fn code(&self) -> Code {
        match self {
            Self::NotGuarded { .. } => Code::TaskUnknown,
            Self::Client(error) => error.code(),
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::NotGuarded { .. } => {
                "name the program as a [[task]] in the cluster file, or say for whom you speak: \
                 `--task T --node N`"
                    .to_owned()
            }
            Self::Client(error) => error.cure(),
        }
    }
}

/// Reports `error`, a number that the task defines, to the node. The error is counted, kept with
/// its time, shown by `weft status` and sent to the manager, which has the task killed and
/// restarted. That counts as if the task had failed: one report more than its
/// `restart` allows, and it is isolated.
///
/// # Errors
/// [`TaskCallError`].
pub fn report(error: u16) -> Result<(), TaskCallError> {
    call(|client, task| client.report(task, error).map(drop))
}

/// Reports to the node that this task makes progress. A task with `beat_ms` that does not report in
/// time is killed and restarted; a report of a task that is being ended is refused.
///
/// # Errors
/// [`TaskCallError`].
pub fn beat() -> Result<(), TaskCallError> {
    call(Client::beat)
}

/// Reports to the node in which phase this task is, a number that the task defines. The guard
/// `PHASE(T)` of a recovery script reads it; a process begins in phase 0.
///
/// # Errors
/// [`TaskCallError`].
pub fn phase(phase: u8) -> Result<(), TaskCallError> {
    call(|client, task| client.phase(task, phase))
}

/// Votes in `round` of the N-version task of which this task is a version (RL-10). The vote stands
/// once this returns, whatever fails later; the same vote again changes nothing. Rounds are
/// numbered from 1, and a version waits for the outcome before it votes in a later one.
///
/// # Errors
/// [`TaskCallError`].
pub fn vote(round: u32, vote: Vote) -> Result<(), TaskCallError> {
    call(|client, task| client.vote(task, round, vote))
}

/// The last notice that this process was handed.
static SEEN: AtomicU64 = AtomicU64::new(0);

/// What SEND and WARN of the recovery script have for this task since the last call, and outcomes
/// of votes. A node keeps 16. What the last call of a process returned, the next process of the
/// task gets again, for that one may have ended before it acted: each arrives at least once.
///
/// # Errors
/// [`TaskCallError`].
pub fn notices() -> Result<TaskNotices, TaskCallError> {
    let notices = call(|client, task| client.notices(task, SEEN.load(Ordering::Relaxed)))?;
    SEEN.store(notices.last, Ordering::Relaxed);
    Ok(notices)
}

fn call<T>(
    what: impl FnOnce(&mut Client, &str) -> Result<T, ClientError>,
) -> Result<T, TaskCallError> {
    let task = variable(VARIABLE_TASK)?;
    let mut connection = connection();
    let mut client = match connection.take() {
        Some(client) => client,
        None => connect()?,
    };
    let done = what(&mut client, &task);
    // One that broke is not used again.
    if !matches!(done, Err(ClientError::Unreachable { .. })) {
        *connection = Some(client);
    }
    done.map_err(TaskCallError::Client)
}

fn connection() -> MutexGuard<'static, Option<Client>> {
    CONNECTION.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect() -> Result<Client, TaskCallError> {
    let not_a_rank = |_| TaskCallError::NotGuarded { variable: VARIABLE_NODE };
    let rank = variable(VARIABLE_NODE)?.parse().map_err(not_a_rank)?;
    let path = PathBuf::from(variable(VARIABLE_CONTROL)?);
    Client::connect_at(&path, rank, PATIENCE).map_err(TaskCallError::Client)
}

fn variable(variable: &'static str) -> Result<String, TaskCallError> {
    std::env::var(variable).map_err(|_| TaskCallError::NotGuarded { variable })
}
