//! What all members enter together: barriers and all-gathers.

use std::time::Duration;

use weft_core::group::GroupId;

use super::super::shared::Behind;
use super::super::{CallError, Member, MemberEnded, MemberHandle};
use super::GroupError;
use crate::node::Component;

/// The value of each member, in the order of the group; none of a member that was removed before it
/// sent one.
pub type GroupValues = Vec<Option<Vec<u8>>>;

/// One attempt of a call; none while it waits for others.
type Attempt<T> = Option<Result<T, GroupError>>;

fn barrier(component: &mut Component, id: GroupId) -> Attempt<u64> {
    match component.group_arrive(id) {
        // It arrives once, however often it is called.
        Ok(_) => component.group_leave(id).map(Ok),
        Err(GroupError::Opening) => None,
        Err(error) => Some(Err(error)),
    }
}

fn all_gather(component: &mut Component, id: GroupId, mine: &[u8]) -> Attempt<GroupValues> {
    match component.group_all_gather(id, mine) {
        // The value of a call that has timed out stands.
        Ok(_) | Err(GroupError::Gathering) => component.group_gathered(id).map(Ok),
        Err(GroupError::Opening | GroupError::WindowFull { .. }) => None,
        Err(error) => Some(Err(error)),
    }
}

fn ended<T>(attempt: Attempt<T>) -> Result<T, CallError<GroupError>> {
    attempt.unwrap_or(Err(GroupError::TimedOut)).map_err(CallError::Refused)
}

impl Member {
    /// Waits until all members of `group` have entered the barrier, and polls meanwhile; its
    /// number, from 1. Members that are removed are not waited for, and one whose program has
    /// finished enters every barrier.
    ///
    /// An entry stands: a call after one that timed out waits for the same barrier, and so does the
    /// first call of an incarnation where the one before it has entered a barrier and not left it.
    ///
    /// # Errors
    /// [`CallError`]; [`GroupError::TimedOut`] after `timeout`.
    pub fn barrier(
        &mut self,
        group: &str,
        timeout: Duration,
    ) -> Result<u64, CallError<GroupError>> {
        let id = self.component.group_named(group).map_err(CallError::Refused)?;
        self.call(timeout, |component| barrier(component, id))
    }

    /// Gives `mine` to all members of `group`, and returns what each has given; polls meanwhile.
    /// All survivors return the same; a member whose program has finished gives no bytes.
    ///
    /// A value is a message of its sender, and keeps its place among those: receive what was sent
    /// before it. What was sent behind it is received once this member has called, too. A value
    /// stands, as an entry of a [barrier](Self::barrier) does.
    ///
    /// # Errors
    /// [`CallError`]; [`GroupError::ValueTooLong`], and [`GroupError::TimedOut`] after `timeout`.
    pub fn all_gather(
        &mut self,
        group: &str,
        mine: &[u8],
        timeout: Duration,
    ) -> Result<GroupValues, CallError<GroupError>> {
        let id = self.component.group_named(group).map_err(CallError::Refused)?;
        self.call(timeout, |component| all_gather(component, id, mine))
    }

    fn call<T>(
        &mut self,
        timeout: Duration,
        mut act: impl FnMut(&mut Component) -> Attempt<T>,
    ) -> Result<T, CallError<GroupError>> {
        let waited = self.wait_until(timeout, |member| act(&mut member.component));
        let attempt = waited.map_err(|error| CallError::Ended(error.into()))?;
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
    pub fn barrier(&self, group: &str, timeout: Duration) -> Result<u64, CallError<GroupError>> {
        self.call(group, timeout, barrier)
    }

    /// As [`Member::all_gather`].
    ///
    /// # Errors
    /// [`CallError`].
    pub fn all_gather(
        &self,
        group: &str,
        mine: &[u8],
        timeout: Duration,
    ) -> Result<GroupValues, CallError<GroupError>> {
        self.call(group, timeout, |component, id| all_gather(component, id, mine))
    }

    fn call<T>(
        &self,
        group: &str,
        timeout: Duration,
        mut act: impl FnMut(&mut Component, GroupId) -> Attempt<T>,
    ) -> Result<T, CallError<GroupError>> {
        let called = self.shared().call(timeout, Behind::Pass, |component| {
            match component.group_named(group) {
                Ok(id) => act(component, id),
                Err(error) => Some(Err(error)),
            }
        });
        ended(called.map_err(CallError::Ended)?)
    }
}
