//! What a member does for the tasks of its node: votes, phases, notices.
//!
//! ```text
//!   ./app, the member ── vote, report_phase ──▶ node ◀── guards ── ./camera, a task
//!                     ◀──────────── notices ──┘
//! ```
//!
//! A member is no task: the cluster file gives a node one program and any number of tasks. So a
//! member names the task of its own node for which it speaks; a task that speaks for itself calls
//! [`crate::task`]. The node does not tell the two apart: of both, the first vote of a round
//! stands, and a notice that one has seen the other does not get.

use std::time::Duration;

use super::shared::Behind;
use super::{CallError, Member, MemberHandle};
use crate::explain::{Code, Explain};
use crate::node::control::{TaskNotices, Vote};
use crate::node::{Component, TaskRefused};

impl Member {
    /// Votes in `round` for `task`, a task of this node that is a version of an N-version task. The
    /// vote stands once this returns, whatever fails later; the same vote again changes nothing.
    /// Rounds are numbered from 1, and a version waits for the outcome before it votes in a later
    /// one.
    ///
    /// # Errors
    /// [`TaskRefused`].
    pub fn vote(&mut self, task: &str, round: u32, vote: Vote) -> Result<(), TaskRefused> {
        self.component.vote(task, round, vote)
    }

    /// Reports that `task`, a task of this node, is in `phase`, a number that the task defines. The
    /// guard `PHASE(T)` of a recovery script reads it. It does not last longer than the process of
    /// the task, and a task that does not run has none.
    ///
    /// # Errors
    /// [`TaskRefused`].
    pub fn report_phase(&mut self, task: &str, phase: u8) -> Result<(), TaskRefused> {
        self.component.report_phase(task, phase)
    }

    /// What SEND and WARN of the recovery script have for `task`, a task of this node, and outcomes
    /// of votes, as far as they have arrived; never waits. Drain it as the events: a call that
    /// returns none has seen what was returned before, asks for more, and [`Self::wait`] returns
    /// once there is some. What an incarnation has not seen, the next one gets again.
    ///
    /// # Errors
    /// [`TaskRefused`].
    pub fn notices(&mut self, task: &str) -> Result<TaskNotices, TaskRefused> {
        self.component.notices(task)
    }
}

impl MemberHandle {
    /// As [`Member::vote`].
    ///
    /// # Errors
    /// [`CallError`].
    pub fn vote(&self, task: &str, round: u32, vote: Vote) -> Result<(), CallError<TaskRefused>> {
        self.order(|component| component.vote(task, round, vote))
    }

    /// As [`Member::report_phase`].
    ///
    /// # Errors
    /// [`CallError`].
    pub fn report_phase(&self, task: &str, phase: u8) -> Result<(), CallError<TaskRefused>> {
        self.order(|component| component.report_phase(task, phase))
    }

    /// As [`Member::notices`]; waits for the first one, and returns none by the end of `timeout`.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn notices(
        &self,
        task: &str,
        timeout: Duration,
    ) -> Result<TaskNotices, CallError<TaskRefused>> {
        let come = self.shared().call(timeout, Behind::Return, |component| {
            let come = component.notices(task);
            come.as_ref().map_or(true, |it| !it.notices.is_empty()).then_some(come)
        });
        let none = Ok(TaskNotices::default());
        come.map_err(CallError::Ended)?.unwrap_or(none).map_err(CallError::Refused)
    }

    /// Does `act`, and passes behind it: what it has to send is on its way.
    fn order(
        &self,
        mut act: impl FnMut(&mut Component) -> Result<(), TaskRefused>,
    ) -> Result<(), CallError<TaskRefused>> {
        let done = self.shared().call(Duration::ZERO, Behind::Pass, |it| Some(act(it)));
        done.map_err(CallError::Ended)?.unwrap_or(Ok(())).map_err(CallError::Refused)
    }
}

impl Explain for TaskRefused {
    fn code(&self) -> Code {
        match self {
            Self::NoTask { .. } => Code::TaskUnknown,
            Self::Vote(why) => why.code(),
            Self::NotKept | Self::NoNode => Code::ComponentLost,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::NoTask { .. } => {
                "name a [[task]] that the cluster file gives to this node".to_owned()
            }
            Self::Vote(why) => why.cure(),
            Self::NotKept | Self::NoNode => "poll, and end the program".to_owned(),
        }
    }
}
