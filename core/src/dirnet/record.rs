//! The entry of one node: what it records about itself, in order.
//!
//! Only the node itself changes its entry. Each change carries the number after the last one of its
//! incarnation (G-25), so a repeated change has no effect and a missing one is noticed. An error is
//! appended with its time and leaves the status unchanged (G-26).

use super::replay::is_after;
use super::{Change, ComponentIncarnation, ScriptVersion};
use crate::ids::OrderId;

/// The number of a node's latest errors that are kept.
pub const ERRORS: usize = 8;

/// Alpha-count: what one error adds. Between errors it halves every [`ALPHA_HALF_US`] microseconds.
const ALPHA_STEP: u16 = 256;
const ALPHA_HALF_US: u64 = 1_000_000;

/// The state of a user's task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Task {
    /// Running, waiting, killed or isolated; the numbers are the node's.
    pub status: u8,
    /// The phase that it has reported last; 0 for none.
    pub phase: u8,
    /// The number of its errors so far.
    pub errors: u16,
    /// Errors weighted by age, 256 for a new one: high for a persistent fault (α-count).
    pub alpha: u16,
    /// How many of its errors a recovery script has answered.
    pub answered: u16,
    /// The kind of its last error.
    pub kind: u16,
}

/// An error of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TaskError {
    /// The index of the task.
    pub task: u8,
    /// The kind of error, defined by the application.
    pub kind: u16,
    /// When it occurred, in microseconds of the node's own clock.
    pub at_us: u64,
}

/// The last errors, field by field, for one after the other they would be padded to half as much
/// again. Error number n is at index n mod [`ERRORS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct KeptErrors {
    at_us: [u64; ERRORS],
    kinds: [u16; ERRORS],
    tasks: [u8; ERRORS],
}

impl KeptErrors {
    const fn get(&self, number: u32) -> TaskError {
        let at = number as usize % ERRORS;
        TaskError { task: self.tasks[at], kind: self.kinds[at], at_us: self.at_us[at] }
    }

    pub(super) const fn set(&mut self, number: u32, error: TaskError) {
        let at = number as usize % ERRORS;
        (self.tasks[at], self.kinds[at], self.at_us[at]) = (error.task, error.kind, error.at_us);
    }
}

/// Why a change was not applied. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeError {
    /// The change was applied before.
    Repeated,
    /// A change before it, or the start of its incarnation, is missing.
    Gap,
    /// The node has no such task.
    NoSuchTask,
}

/// The entry of one node with up to `TASKS` tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record<const TASKS: usize> {
    /// The incarnation of the node that wrote the entry.
    pub incarnation: ComponentIncarnation,
    /// The number of changes that this incarnation has made (update_nr).
    pub seq: u32,
    /// The role of the node.
    pub role: u8,
    /// The node's status.
    pub status: u8,
    /// The number of its tasks.
    pub task_count: u8,
    /// How often it was started, by its own count.
    pub reboots: u32,
    /// The number of its errors so far; the latest are kept.
    pub error_count: u32,
    /// The last order of a recovery script about one of its tasks that the node has judged.
    pub judged: OrderId,
    /// The recovery script that this incarnation has verified last, by its digest; 0 for none.
    pub script_held: u64,
    /// The last one that a manager has put in force and the node has used.
    pub script_used: ScriptVersion,
    pub(super) tasks: [Task; TASKS],
    pub(super) errors: KeptErrors,
}

impl<const TASKS: usize> Default for Record<TASKS> {
    fn default() -> Self {
        Self {
            incarnation: ComponentIncarnation::default(),
            seq: 0,
            role: 0,
            status: 0,
            task_count: 0,
            reboots: 0,
            error_count: 0,
            judged: OrderId::default(),
            script_held: 0,
            script_used: ScriptVersion::default(),
            tasks: [Task::default(); TASKS],
            errors: KeptErrors::default(),
        }
    }
}

impl<const TASKS: usize> Record<TASKS> {
    /// The entry of an incarnation that starts with `task_count` tasks, at most `TASKS`.
    #[must_use]
    pub fn new(incarnation: ComponentIncarnation, role: u8, task_count: u8) -> Self {
        let most = u8::try_from(TASKS).unwrap_or(u8::MAX);
        let reboots = incarnation.boot.0.saturating_sub(1);
        Self { incarnation, role, task_count: task_count.min(most), reboots, ..Self::default() }
    }

    /// This entry continued under the incarnation of `fresh`: its tasks and their errors are kept.
    /// Which script it holds, the incarnation says itself; tasks of another boot are in no phase.
    pub(super) fn gone_on_as(&self, fresh: &Self) -> Self {
        let Self { incarnation, role, reboots, .. } = *fresh;
        let mut tasks = self.tasks;
        if incarnation.boot != self.incarnation.boot {
            tasks.iter_mut().for_each(|task| task.phase = 0);
        }
        Self { incarnation, role, reboots, seq: 0, script_held: 0, tasks, ..*self }
    }

    /// The states of its tasks.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks[..usize::from(self.task_count).min(TASKS)]
    }

    /// The errors that are kept, oldest first.
    pub fn errors(&self) -> impl Iterator<Item = TaskError> {
        let kept = self.error_count.min(ERRORS as u32);
        (self.error_count - kept..self.error_count).map(|number| self.errors.get(number))
    }

    /// The number of kept errors that `task` had since `since_us`.
    #[must_use]
    pub fn errors_of(&self, task: u8, since_us: u64) -> usize {
        self.errors().filter(|error| error.task == task && error.at_us >= since_us).count()
    }

    /// Applies change number `seq` of `incarnation`.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn apply(
        &mut self,
        incarnation: ComponentIncarnation,
        seq: u32,
        change: Change,
    ) -> Result<(), ChangeError> {
        if !super::UPDATES_WITHOUT_SEQUENCE.is_planted() {
            if incarnation < self.incarnation
                || (incarnation == self.incarnation && !is_after(seq, self.seq))
            {
                return Err(ChangeError::Repeated);
            }
            if incarnation > self.incarnation || seq != self.seq.wrapping_add(1) {
                return Err(ChangeError::Gap);
            }
        }
        match change {
            Change::Status(status) => self.status = status,
            Change::Role(role) => self.role = role,
            Change::Reboots(count) => self.reboots = count,
            Change::TaskStatus { task, status } => self.task_mut(task)?.status = status,
            Change::TaskPhase { task, phase } => self.task_mut(task)?.phase = phase,
            Change::TaskError { task, kind, at_us, alpha } => {
                self.append(TaskError { task, kind, at_us }, alpha)?;
            }
            Change::TaskAnswered { task, mark, judged, is_cleared } => {
                let task = self.task_mut(task)?;
                task.answered = mark;
                if is_cleared {
                    task.alpha = 0;
                }
                self.judged = self.judged.max(judged);
            }
            Change::ScriptHeld(digest) => self.script_held = digest,
            Change::ScriptUsed(version) => self.script_used = self.script_used.max(version),
        }
        self.seq = seq;
        Ok(())
    }

    fn append(&mut self, error: TaskError, alpha: Option<u16>) -> Result<(), ChangeError> {
        let last = self.errors().filter(|e| e.task == error.task).map(|e| e.at_us).max();
        let task = self.task_mut(error.task)?;
        let age_us = last.map_or(0, |at| error.at_us.saturating_sub(at));
        let halvings = u32::try_from(age_us / ALPHA_HALF_US).unwrap_or(u32::MAX);
        let left = task.alpha.checked_shr(halvings).unwrap_or(0);
        task.alpha = alpha.unwrap_or(left.saturating_add(ALPHA_STEP));
        task.kind = error.kind;
        task.errors = task.errors.saturating_add(1);
        if super::ERROR_OVERWRITES_STATUS.is_planted() {
            task.status = error.kind.to_le_bytes()[0];
        }
        self.errors.set(self.error_count, error);
        // At its maximum the count cycles through its last values, which map to all slots.
        self.error_count = self.error_count.checked_add(1).unwrap_or(u32::MAX - 7);
        Ok(())
    }

    fn task_mut(&mut self, task: u8) -> Result<&mut Task, ChangeError> {
        let count = usize::from(self.task_count).min(TASKS);
        self.tasks[..count].get_mut(usize::from(task)).ok_or(ChangeError::NoSuchTask)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::ids::Incarnation;

    const INCARNATION: ComponentIncarnation =
        ComponentIncarnation { boot: Incarnation(2), generation: 1 };

    fn record() -> Record<2> {
        Record::new(INCARNATION, 0, 2)
    }

    fn error(task: u8, at_us: u64) -> Change {
        Change::TaskError { task, kind: 7, at_us, alpha: None }
    }

    /// G-25: the original's INC_REBOOT counted again with each copy of the message.
    #[test]
    pub(in crate::dirnet) fn g25_a_repeated_change_changes_nothing() {
        let mut record = record();
        assert_eq!(record.apply(INCARNATION, 1, Change::Reboots(5)), Ok(()));
        let before = record;
        assert_eq!(record.apply(INCARNATION, 1, Change::Reboots(6)), Err(ChangeError::Repeated));
        assert_eq!(record.apply(INCARNATION, 3, Change::Reboots(7)), Err(ChangeError::Gap));
        let later = INCARNATION.clone_of();
        assert_eq!(record.apply(later, 1, Change::Reboots(7)), Err(ChangeError::Gap));
        assert_eq!(record, before);
    }

    #[test]
    pub(in crate::dirnet) fn g25_a_change_of_a_task_that_does_not_exist_is_refused() {
        let mut record = record();
        let change = Change::TaskStatus { task: 2, status: 1 };
        assert_eq!(record.apply(INCARNATION, 1, change), Err(ChangeError::NoSuchTask));
        assert_eq!(record.apply(INCARNATION, 1, error(9, 0)), Err(ChangeError::NoSuchTask));
        assert_eq!(record, Record::new(INCARNATION, 0, 2));
    }

    /// G-26: the original's NEW_TASK_ERROR overwrote the status and incremented no counter.
    #[test]
    pub(in crate::dirnet) fn g26_an_error_is_appended_and_the_status_stays() {
        let mut record = record();
        record.apply(INCARNATION, 1, Change::TaskStatus { task: 1, status: 3 }).unwrap();
        record.apply(INCARNATION, 2, error(1, 500)).unwrap();
        let task = record.tasks()[1];
        assert_eq!(task, Task { status: 3, phase: 0, errors: 1, alpha: 256, answered: 0, kind: 7 });
        assert_eq!((record.error_count, record.seq), (1, 2));
        assert!(record.errors().eq([TaskError { task: 1, kind: 7, at_us: 500 }]));
    }

    #[test]
    pub(in crate::dirnet) fn g26_the_alpha_count_forgets() {
        let mut record = record();
        record.apply(INCARNATION, 1, error(0, 0)).unwrap();
        record.apply(INCARNATION, 2, error(0, 10)).unwrap();
        assert_eq!(record.tasks()[0].alpha, 512);
        record.apply(INCARNATION, 3, error(0, 2_000_010)).unwrap();
        assert_eq!(record.tasks()[0].alpha, 128 + 256);
        record.apply(INCARNATION, 4, error(0, u64::MAX)).unwrap();
        assert_eq!(record.tasks()[0].alpha, 256);
    }

    /// both counters continue past their maximum.
    #[test]
    pub(in crate::dirnet) fn x10_changes_go_on_past_the_end_of_the_numbers() {
        let last = u32::MAX - 20;
        let mut record = Record { seq: last, error_count: last, ..record() };
        for n in 1..=40_u32 {
            let seq = last.wrapping_add(n);
            assert_eq!(record.apply(INCARNATION, seq, error(0, n.into())), Ok(()), "change {n}");
            assert_eq!(record.apply(INCARNATION, seq, error(0, 0)), Err(ChangeError::Repeated));
            let gap = record.apply(INCARNATION, seq.wrapping_add(2), error(0, 0));
            assert_eq!(gap, Err(ChangeError::Gap));
            if n >= ERRORS as u32 {
                let latest = u64::from(n) + 1 - ERRORS as u64..=u64::from(n);
                assert!(record.errors().map(|error| error.at_us).eq(latest), "after {n}");
            }
        }
    }

    #[test]
    pub(in crate::dirnet) fn only_the_last_errors_are_kept() {
        let mut record = record();
        for (seq, at_us) in (1..=20).zip(0..) {
            record.apply(INCARNATION, seq, error(0, at_us)).unwrap();
        }
        assert!(record.errors().map(|error| error.at_us).eq(12..20));
        assert_eq!(record.errors_of(0, 17), 3);
        assert_eq!((record.error_count, record.errors_of(1, 0)), (20, 0));
    }

    #[test]
    fn tasks_of_another_boot_are_in_no_phase() {
        let mut record = record();
        record.apply(INCARNATION, 1, Change::TaskPhase { task: 0, phase: 3 }).unwrap();
        let next = |incarnation| record.gone_on_as(&Record::new(incarnation, 0, 2));
        assert_eq!(next(INCARNATION.clone_of()).tasks()[0].phase, 3);
        let boot = INCARNATION.boot.next();
        assert_eq!(next(ComponentIncarnation { boot, generation: 0 }).tasks()[0].phase, 0);
    }
}
