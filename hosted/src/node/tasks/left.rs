//! What a task's node knows of a recovery script that answers the task's errors: core's
//! [`DeclaredTask`], and what the script sees of its starts.

use weft_core::recovery::{DeclaredTask, Mark};
use weft_core::script::TaskStatus;
use weft_core::time::Instant;

use crate::node::control::TaskState;
use crate::node::link::{OrderNumber, TaskChange};

// A script reads the states from the database.
const _: () = {
    use weft_core::recovery::TaskState as Read;
    assert!(matches!(TaskStatus::from_byte(TaskState::Running as u8).state, Read::Running));
    assert!(matches!(TaskStatus::from_byte(TaskState::Killed as u8).state, Read::Killed));
    assert!(matches!(TaskStatus::from_byte(TaskState::Isolated as u8).state, Read::Isolated));
    assert!(matches!(TaskStatus::from_byte(TaskState::Finished as u8).state, Read::Finished));
};

/// What a recovery script says about one task of this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::node) struct Declared {
    /// What the node does when no order comes, and for how long it waits for one.
    pub(in crate::node) answer: weft_core::recovery::Declared,
    /// Within what a beat must follow the last, if the script watches it.
    pub(in crate::node) beat_ns: Option<u64>,
}

/// The errors of a task that are left to a script.
#[derive(Debug)]
pub(super) struct LeftErrors {
    pub(super) declared: DeclaredTask,
    /// Whether it was started at all, and again since CLEAR.
    pub(super) has_started: bool,
    pub(super) has_restarted: bool,
}

impl LeftErrors {
    pub(super) fn new(declared: Declared) -> Self {
        let declared = DeclaredTask::new(declared.answer);
        Self { declared, has_started: false, has_restarted: false }
    }

    /// The task has had `errors` before a script declares it.
    pub(super) fn begin(&mut self, errors: u64, has_started: bool) {
        self.declared.begin(count(errors));
        self.has_started = has_started;
    }

    /// Goes on where an earlier boot stood: the mark, and the orders judged and obeyed last.
    pub(super) fn go_on(&mut self, (mark, judged, obeyed): (u32, OrderNumber, OrderNumber)) {
        self.declared.go_on((mark, judged.into(), obeyed.into()));
    }

    /// For the next boot.
    pub(super) fn past(&self) -> (u32, OrderNumber, OrderNumber) {
        let answered = self.declared.answered();
        (answered.mark(), answered.judged().into(), answered.obeyed().into())
    }

    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        self.declared.poll_timeout().map(|Instant(at_ns)| at_ns)
    }

    /// Its restarts and α-count begin again.
    pub(super) const fn clear(&mut self) {
        self.has_restarted = false;
        self.declared.clear();
    }

    /// The mark, if the component was not sent it.
    pub(super) fn take_answered(&mut self, task: u8) -> Option<TaskChange> {
        let Mark { answered, judged, is_cleared } = self.declared.take_mark()?;
        let mark = u16::try_from(answered).unwrap_or(u16::MAX);
        Some(TaskChange::Answered { task, mark, judged: judged.into(), is_cleared })
    }
}

/// Errors as core counts them.
pub(super) fn count(errors: u64) -> u32 {
    u32::try_from(errors).unwrap_or(u32::MAX)
}
