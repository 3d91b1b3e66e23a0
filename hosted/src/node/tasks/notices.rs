//! Notices for the tasks of a node: kept until a task has seen them, 16 of each (RL-3).
//!
//! A task names the last notice that it has seen, and those up to it are dropped. So one whose
//! process ends before it has acted is handed the same again in its next.

use std::collections::VecDeque;

use weft_core::recovery::Kind;

use super::Tasks;
use crate::node::control::{Refused, TaskFault, TaskNotice, TaskNotices};
use crate::node::link::{GuardAction, ScriptOrder};

/// The notices that are kept for one task.
const NOTICES_MAX: usize = 16;

/// The notices for one task.
#[derive(Debug, Default)]
pub(super) struct Notices {
    kept: VecDeque<(u64, TaskNotice)>,
    last: u64,
    dropped: u64,
    /// The program that is the member waits for those after this one.
    awaited: Option<u64>,
}

impl Notices {
    pub(super) fn push(&mut self, notice: TaskNotice) {
        if self.kept.len() == NOTICES_MAX {
            self.kept.pop_front();
            self.dropped += 1;
        }
        self.last += 1;
        self.kept.push_back((self.last, notice));
    }

    fn take(&mut self, seen: u64) -> TaskNotices {
        // What a task has seen of another supervisor says nothing here.
        let seen = if seen > self.last { 0 } else { seen };
        while self.kept.front().is_some_and(|(number, _)| *number <= seen) {
            self.kept.pop_front();
        }
        let notices = self.kept.iter().map(|(_, notice)| notice.clone()).collect();
        TaskNotices { notices, last: self.last, dropped: std::mem::take(&mut self.dropped) }
    }

    /// What the program waits for, once there is any of it.
    fn take_awaited(&mut self) -> Option<TaskNotices> {
        let seen = self.awaited.filter(|seen| self.has_after(*seen))?;
        self.awaited = None;
        Some(self.take(seen))
    }

    pub(super) const fn forget_awaited(&mut self) {
        self.awaited = None;
    }

    /// What a task has seen of another supervisor says nothing here.
    fn has_after(&self, seen: u64) -> bool {
        self.kept.back().is_some_and(|(last, _)| seen > self.last || *last > seen)
    }
}

/// What an order of a recovery script hands a task.
pub(super) fn notice_of(action: GuardAction, order: &ScriptOrder) -> TaskNotice {
    let ScriptOrder { number, seen, mark } = order;
    let (epoch, evaluation) = (number.epoch, number.evaluation);
    let value = seen.cast_signed();
    if action == GuardAction::Send {
        return TaskNotice::Number { epoch, evaluation, value };
    }
    let [id, kind, ..] = mark.to_le_bytes();
    let kind = Kind::from_code(kind).unwrap_or(Kind::Task);
    let about = format!("{}{id}", kind.as_str());
    TaskNotice::Warning { epoch, evaluation, error: value, about }
}

impl Tasks {
    /// The notices for a task after the last one that it has seen.
    pub(in crate::node) fn handle_notices(
        &mut self,
        name: &str,
        seen: u64,
    ) -> Result<TaskNotices, Refused> {
        let index = self.find(name)?;
        Ok(self.guarded[index].notices.take(seen))
    }

    /// The program that is the member reports the phase of a task.
    pub(in crate::node) fn handle_own_phase(&mut self, index: u8, phase: u8) {
        let Some(guarded) = self.guarded.get_mut(usize::from(index)) else { return };
        if let Err(state) = guarded.record.handle_phase(phase) {
            tracing::debug!(task = %guarded.task.name, phase, ?state, "it has no phase");
        }
    }

    /// The program that is the member waits for notices for a task.
    pub(in crate::node) fn handle_await_notices(&mut self, index: u8, seen: u64) {
        if let Some(guarded) = self.guarded.get_mut(usize::from(index)) {
            guarded.notices.awaited = Some(seen);
        }
    }

    /// The notices that it waits for and that have come.
    pub(in crate::node) fn take_awaited_notices(&mut self) -> Vec<(u8, TaskNotices)> {
        let numbered = (0..).zip(&mut self.guarded);
        numbered.filter_map(|(at, it)| Some((at, it.notices.take_awaited()?))).collect()
    }

    /// A round of an N-version task is over: its versions here are at fault or not, and tasks here
    /// get its outcome. Handed over again, it changes nothing.
    pub(in crate::node) fn handle_round(
        &mut self,
        (nversion, round): (u8, u32),
        faults: &[(u8, TaskFault)],
        notices: Vec<(u8, TaskNotice)>,
        now_ns: u64,
    ) {
        let over = self.rounds.entry(nversion).or_default();
        if round <= *over {
            return;
        }
        *over = round;
        for (index, fault) in faults {
            let Some(guarded) = self.guarded.get_mut(usize::from(*index)) else { continue };
            tracing::warn!(task = %guarded.task.name, %fault, "fault of a version");
            guarded.record.handle_fault(now_ns, fault.clone());
            self.is_unnoted = true;
        }
        for (index, notice) in notices {
            if let Some(guarded) = self.guarded.get_mut(usize::from(index)) {
                guarded.notices.push(notice);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: i32) -> TaskNotice {
        TaskNotice::Number { epoch: 1, evaluation: 1, value }
    }

    #[test]
    fn rl3_a_task_gets_each_notice_until_it_has_seen_it() {
        let mut notices = Notices::default();
        notices.push(number(1));
        notices.push(number(2));
        let first = notices.take(0);
        assert_eq!((first.notices.len(), first.last, first.dropped), (2, 2, 0));
        // Its process ended before it could act, and the next one asks from the beginning.
        assert_eq!(notices.take(0), first);
        notices.push(number(3));
        assert_eq!(notices.take(2).notices, [number(3)]);
        assert_eq!(notices.take(99).notices, [number(3)], "of another supervisor");
    }

    #[test]
    fn rl3_the_oldest_of_more_than_16_notices_are_dropped_and_counted() {
        let mut notices = Notices::default();
        (0..20).for_each(|value| notices.push(number(value)));
        let taken = notices.take(0);
        assert_eq!((taken.notices.len(), taken.dropped), (16, 4));
        assert_eq!((taken.notices.first(), taken.last), (Some(&number(4)), 20));
        assert_eq!(notices.take(0).dropped, 0, "counted once");
    }
}
