//! What all members enter together: barriers and all-gathers.

use std::time::Duration;

use super::super::shared::Behind;
use super::super::{CallError, Member, MemberEnded, MemberHandle};
use super::GroupError;
use crate::clock::Deadline;
use crate::node::Component;

/// The value of each member, in the order of ranks; none of a member that was removed before it
/// sent one.
pub type GroupValues = Vec<Option<Vec<u8>>>;

/// One attempt of a call; none while it waits for others.
type Attempt<T> = Option<Result<T, GroupError>>;

fn barrier(component: &mut Component) -> Attempt<u64> {
    match component.group_arrive() {
        // It arrives once, however often it is called.
        Ok(_) => component.group_leave().map(Ok),
        Err(GroupError::Opening) => None,
        Err(error) => Some(Err(error)),
    }
}

fn all_gather(component: &mut Component, mine: &[u8]) -> Attempt<GroupValues> {
    match component.group_all_gather(mine) {
        // The value of a call that has timed out stands.
        Ok(_) | Err(GroupError::Gathering) => component.group_gathered().map(Ok),
        Err(GroupError::Opening | GroupError::WindowFull { .. }) => None,
        Err(error) => Some(Err(error)),
    }
}

fn ended<T>(attempt: Attempt<T>) -> Result<T, CallError<GroupError>> {
    attempt.unwrap_or(Err(GroupError::TimedOut)).map_err(CallError::Refused)
}

impl Member {
    /// Waits until all members have entered the barrier, and polls meanwhile; its number, from 1.
    /// Members that are removed are not waited for, and one whose program has finished enters every
    /// barrier.
    ///
    /// An entry stands: a call after one that timed out waits for the same barrier, and so does the
    /// first call of an incarnation where the one before it has entered a barrier and not left it.
    ///
    /// # Errors
    /// [`CallError`]; [`GroupError::TimedOut`] after `timeout`.
    pub fn barrier(&mut self, timeout: Duration) -> Result<u64, CallError<GroupError>> {
        self.call(timeout, barrier)
    }

    /// Gives `mine` to all members, and returns what each has given; polls meanwhile. All survivors
    /// return the same; a member whose program has finished gives no bytes.
    ///
    /// A value is a message of its sender, and keeps its place among those: receive what was sent
    /// before it. What was sent behind it is received once this member has called, too. A value
    /// stands, as an entry of a [barrier](Self::barrier) does.
    ///
    /// # Errors
    /// [`CallError`]; [`GroupError::ValueTooLong`], and [`GroupError::TimedOut`] after `timeout`.
    pub fn all_gather(
        &mut self,
        mine: &[u8],
        timeout: Duration,
    ) -> Result<GroupValues, CallError<GroupError>> {
        self.call(timeout, |component| all_gather(component, mine))
    }

    fn call<T>(
        &mut self,
        timeout: Duration,
        act: impl FnMut(&mut Component) -> Attempt<T>,
    ) -> Result<T, CallError<GroupError>> {
        let waited = match self.failed.take() {
            Some(error) => Err(error),
            None => self.component.wait_for(Deadline::after(timeout), act),
        };
        let attempt = waited.map_err(|error| {
            self.component.report_failure(&error);
            CallError::Ended(MemberEnded::failed(&error))
        })?;
        match MemberEnded::of(&self.component) {
            Some(over) if attempt.is_none() => Err(CallError::Ended(over)),
            Some(_) | None => ended(attempt),
        }
    }
}

impl MemberHandle {
    /// As [`Member::barrier`].
    ///
    /// # Errors
    /// [`CallError`].
    pub fn barrier(&self, timeout: Duration) -> Result<u64, CallError<GroupError>> {
        let called = self.shared().call(timeout, Behind::Pass, barrier);
        ended(called.map_err(CallError::Ended)?)
    }

    /// As [`Member::all_gather`].
    ///
    /// # Errors
    /// [`CallError`].
    pub fn all_gather(
        &self,
        mine: &[u8],
        timeout: Duration,
    ) -> Result<GroupValues, CallError<GroupError>> {
        let called = self.shared().call(timeout, Behind::Pass, |it| all_gather(it, mine));
        ended(called.map_err(CallError::Ended)?)
    }
}
