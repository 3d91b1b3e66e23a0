//! The errors that the database has not got yet: sent to the component until it has them saved.
//!
//! ```text
//!   noted ─▶ waiting │ sent, at most WINDOW ─▶ component: applied, saved
//!                    └◀──────────── recorded up to number n ──┘
//! ```
//!
//! A component that dies may or may not have saved what it was sent, and its answer may be lost
//! with it. So the errors are sent to the next one again, which looks for each among those that it
//! has restored: of these the database keeps [`ERRORS`], as many as may be under way, and no two
//! errors of a node have the same time. What does not fit, while no component answers, is counted:
//! that many the database never gets.

use std::collections::VecDeque;

use weft_core::dirnet::ERRORS;

use crate::node::link::TaskChange;

/// The most errors that wait for the database; more displace the oldest that was not sent.
const WAITING_MAX: usize = 64;
/// The most errors that were sent to a component and not answered.
const WINDOW: usize = ERRORS;

const _: () = assert!(WINDOW < WAITING_MAX);

/// An error that the database has not got yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fresh {
    pub(super) at_ns: u64,
    /// When the task had the error before it.
    pub(super) last_ns: Option<u64>,
    /// Its number in the database.
    pub(super) kind: u16,
}

/// An error on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owing {
    number: u64,
    task: u8,
    kind: u16,
    at_us: u64,
    last_us: Option<u64>,
}

/// The errors of a node's tasks that the database has not got yet, oldest first.
#[derive(Debug, Default)]
pub(super) struct OwedErrors {
    waiting: VecDeque<Owing>,
    /// How many of the first were sent to the present component.
    sent: usize,
    /// The number of all errors so far.
    count: u64,
    last_at_us: u64,
}

impl OwedErrors {
    /// Adds an error of `task`; returns the task whose oldest error was dropped for it, if there
    /// were too many.
    #[must_use]
    pub(super) fn push(&mut self, task: u8, error: Fresh) -> Option<u8> {
        let Fresh { at_ns, last_ns, kind } = error;
        let last_us = last_ns.map(|last_ns| last_ns / 1_000);
        self.count += 1;
        self.last_at_us = (at_ns / 1_000).max(self.last_at_us + 1);
        let owing = Owing { number: self.count, task, kind, at_us: self.last_at_us, last_us };
        self.waiting.push_back(owing);
        if self.waiting.len() <= WAITING_MAX {
            return None;
        }
        self.waiting.remove(self.sent).map(|given_up| given_up.task)
    }

    /// The next error to send to the component.
    pub(super) fn next(&mut self) -> Option<TaskChange> {
        if self.sent == WINDOW {
            return None;
        }
        let Owing { number, task, kind, at_us, last_us } = *self.waiting.get(self.sent)?;
        self.sent += 1;
        Some(TaskChange::Error { number, task, kind, at_us, last_us })
    }

    /// The component has saved all up to this one.
    pub(super) fn handle_recorded(&mut self, number: u64) {
        while self.sent > 0 && self.waiting.front().is_some_and(|first| first.number <= number) {
            self.waiting.pop_front();
            self.sent -= 1;
        }
    }

    /// The component to which errors were sent is gone.
    pub(super) const fn forget_sent(&mut self) {
        self.sent = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many errors, at the same time, and the tasks of those that were dropped.
    fn owed(errors: u16) -> (OwedErrors, Vec<u8>) {
        let mut owed = OwedErrors::default();
        let given_up = (0..errors).filter_map(|kind| {
            owed.push((kind % 3) as u8, Fresh { at_ns: 7_000, last_ns: None, kind })
        });
        let given_up = given_up.collect();
        (owed, given_up)
    }

    fn reported(owed: &mut OwedErrors) -> Vec<u64> {
        let number = |change| match change {
            TaskChange::Error { number, .. } => number,
            TaskChange::Status { .. } | TaskChange::Phase { .. } | TaskChange::Answered { .. } => 0,
        };
        std::iter::from_fn(|| owed.next()).map(number).collect()
    }

    #[test]
    fn what_is_not_answered_is_told_again_to_the_next() {
        let (mut owed, given_up) = owed(10);
        assert!(given_up.is_empty());
        assert_eq!(reported(&mut owed), (1..=8).collect::<Vec<_>>());
        owed.handle_recorded(3);
        assert_eq!(reported(&mut owed), [9, 10]);
        owed.forget_sent();
        // An answer of a component that was sent nothing has no effect.
        owed.handle_recorded(9);
        assert_eq!(reported(&mut owed), (4..=10).collect::<Vec<_>>());
        owed.handle_recorded(10);
        owed.forget_sent();
        assert!(reported(&mut owed).is_empty());
    }

    #[test]
    fn no_two_have_the_same_time() {
        let (mut owed, _) = owed(3);
        let times = std::iter::from_fn(|| owed.next()).map(|change| match change {
            TaskChange::Error { at_us, .. } => at_us,
            TaskChange::Status { .. } | TaskChange::Phase { .. } | TaskChange::Answered { .. } => 0,
        });
        assert_eq!(times.collect::<Vec<_>>(), [7, 8, 9]);
    }

    #[test]
    fn too_many_push_out_the_oldest_that_was_not_told() {
        let (mut owed, _) = owed(64);
        assert_eq!(reported(&mut owed).len(), WINDOW);
        let late = Fresh { at_ns: 0, last_ns: None, kind: 64 };
        assert_eq!(owed.push(2, late), Some(2), "number 9, of the third task");
        owed.forget_sent();
        let mut numbers = reported(&mut owed);
        assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
        owed.handle_recorded(8);
        numbers = reported(&mut owed);
        assert_eq!(numbers, (10..=17).collect::<Vec<_>>());
        let (_, given_up) = self::owed(70);
        assert_eq!(given_up.len(), 6);
    }
}
