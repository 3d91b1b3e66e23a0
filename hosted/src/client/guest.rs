//! Running a task for a node (M-15): the library behind `weft guard`.
//!
//! ```text
//!   Guest ── begin, started, ended ──▶ node     restarts, beats, orders, events, status
//!      ▲───── start, kill, over ────────┘
//! ```
//!
//! The caller starts and ends the program, and reports that; the node decides. The node is gone
//! once the connection ends, or a report has no answer in time.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::{Client, ClientError, SLACK, millis};
use crate::clock::Deadline;
use crate::cluster::Task;
use crate::node::control::{GuestOrder, GuestReport, Outcome, Want};
use crate::packet::PacketError;

/// How long one report waits for an order.
const TURN: Duration = Duration::from_secs(5);

/// A task that this process runs for a node.
#[derive(Debug)]
pub struct Guest {
    client: Client,
    task: String,
    /// Until when the last report must be answered; none once it is.
    answer_by: Option<Deadline>,
}

impl Guest {
    /// Has the node of `client` watch `task`, whose `program`, `args` and `nodes` do not count.
    /// `mark` is in the environment of all that the task starts, so that the node ends them if this
    /// process is killed ([`Remains`](crate::process::Remains)). The first order is to start it.
    ///
    /// # Errors
    /// [`ClientError`], as when a task of the node has this name.
    pub fn begin(client: Client, task: &Task, mark: &str) -> Result<Self, ClientError> {
        let mut guest = Self { client, task: task.name.to_string(), answer_by: None };
        guest.report(GuestReport::Begin {
            mark: mark.to_owned(),
            restart_max: task.restart.max,
            restart_within_s: task.restart.within_s,
            beat_ms: task.beat_ms,
        })?;
        match guest.client.answer(Deadline::after(SLACK))? {
            Outcome::Guest(GuestOrder::Start) => {}
            other => return Err(guest.client.out_of_place(&other)),
        }
        guest.answer_by = None;
        Ok(guest)
    }

    /// Sends a report; the answer comes by [`Self::poll_order`].
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub fn report(&mut self, report: GuestReport) -> Result<(), ClientError> {
        let want = Want::Guard { task: self.task.clone(), report, timeout_ms: millis(TURN) };
        self.answer_by = Some(Deadline::after(TURN + SLACK));
        self.client.request(want, Deadline::after(SLACK))
    }

    /// The next order, if there is one: to be called when the descriptor is readable, and after
    /// [`Self::wait_max`].
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] once the node is gone.
    pub fn poll_order(&mut self) -> Result<Option<GuestOrder>, ClientError> {
        let is_late = self.answer_by.is_some_and(|by| by.has_passed());
        match self.client.answer(Deadline::after(Duration::ZERO)) {
            Err(ClientError::Unreachable { source: PacketError::TimedOut { .. }, .. })
                if !is_late =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
            Ok(Outcome::Guest(GuestOrder::Wait)) => {
                self.report(GuestReport::Waiting).map(|()| None)
            }
            Ok(Outcome::Guest(order)) => {
                self.answer_by = None;
                Ok(Some(order))
            }
            Ok(other) => Err(self.client.out_of_place(&other)),
        }
    }

    /// How long the node may take to answer.
    #[must_use]
    pub fn wait_max(&self) -> Duration {
        self.answer_by.map_or(TURN, |by| by.remaining())
    }
}

impl AsFd for Guest {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.client.socket.as_fd()
    }
}
