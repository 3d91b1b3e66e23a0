//! What the database says, by the numbers of a script.

use super::ScriptMember;
use crate::dirnet::{Component, Level, Record};
use crate::ids::Rank;
use crate::recovery::{AlphaCount, NodeFact, Picture, Program, TaskFact, TaskState, mutants};
use crate::time::Instant;

/// The kind of the error of a task that owes a heartbeat.
pub const SILENT: u16 = 0xFC00;

/// The status of a task in its node's entry, one byte:
///
/// ```text
///   7 started again since CLEAR │ 6 started │ 5 … 0 state: 0 runs, 1 waits, 2 stopped,
///                                             3 isolated, 4 waits as faulty, 5 finished
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskStatus {
    /// Its state.
    pub state: TaskState,
    /// Whether it was started at all.
    pub has_started: bool,
    /// Whether it was started again since it was cleared.
    pub has_restarted: bool,
}

impl TaskStatus {
    /// The bit of [`Self::has_started`].
    pub const STARTED: u8 = 0x40;
    /// The bit of [`Self::has_restarted`].
    pub const RESTARTED: u8 = 0x80;

    /// Its byte.
    #[must_use]
    pub const fn to_byte(self) -> u8 {
        let state = match self.state {
            TaskState::Running => 0,
            TaskState::Waiting => 1,
            TaskState::Killed => 2,
            TaskState::Isolated => 3,
            TaskState::Finished => 5,
        };
        let started = if self.has_started { Self::STARTED } else { 0 };
        state | started | if self.has_restarted { Self::RESTARTED } else { 0 }
    }

    /// The status that `byte` says; a state that it does not know waits.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Self {
        let state = match byte & !(Self::STARTED | Self::RESTARTED) {
            0 => TaskState::Running,
            2 => TaskState::Killed,
            3 => TaskState::Isolated,
            5 => TaskState::Finished,
            _ => TaskState::Waiting,
        };
        let has_started = byte & Self::STARTED != 0;
        Self { state, has_started, has_restarted: byte & Self::RESTARTED != 0 }
    }
}

impl<const NODES: usize, const NUMBERS: usize> ScriptMember<NODES, NUMBERS> {
    /// What `machine` knows now, by the numbers of `program`.
    pub fn picture<const TASKS: usize>(
        &mut self,
        program: &Program<'_>,
        machine: &Component<NODES, TASKS>,
        now: Instant,
    ) -> Picture<NODES, NUMBERS> {
        let database = machine.database();
        let manager = u8::try_from(self.me.0).unwrap_or(u8::MAX);
        let mut picture = Picture { manager, ..Picture::default() };
        for (fact, node) in picture.nodes.iter_mut().zip(0..self.nodes) {
            let standing = database.standing(Rank(node));
            *fact = NodeFact {
                is_member: standing.is_up(),
                is_removed: standing.is_known() && standing.level == Level::Down,
                is_isolated: standing.isolation().is_some(),
                has_rebooted: standing.is_up() && standing.incarnation.boot.0 > 1,
            };
        }
        for number in program.tasks().iter() {
            let at = usize::from(number);
            let Some((node, place)) = program.place_of(number) else { continue };
            let Some(record) = database.record(Rank(node.into())) else { continue };
            let (Some(fact), Some(learnt)) = (picture.tasks.get_mut(at), self.learnt.get_mut(at))
            else {
                continue;
            };
            *fact = fact_of(program, (number, place), record, learnt, now);
        }
        picture
    }
}

/// What its node's entry says of a task; `learnt` holds how many errors it had, and since when.
fn fact_of<const TASKS: usize>(
    program: &Program<'_>,
    (number, place): (u8, u8),
    record: &Record<TASKS>,
    (errors, at): &mut (u16, Instant),
    now: Instant,
) -> TaskFact {
    let Some(task) = record.tasks().get(usize::from(place)) else { return TaskFact::default() };
    if core::mem::replace(errors, task.errors) != task.errors {
        *at = now;
    }
    let unanswered = usize::from(task.errors.saturating_sub(task.answered));
    let kept = || record.errors().filter(|error| error.task == place);
    let answered = kept().count().saturating_sub(unanswered);
    let status = TaskStatus::from_byte(task.status);
    TaskFact {
        state: status.state,
        errors: task.errors.into(),
        answered: task.answered.into(),
        error_kind: task.kind,
        error_at: *at,
        // The clock of the task's node may be another: it decays from when it was learnt.
        alpha: program
            .alpha_of(number)
            .map_or(task.alpha, |rule| AlphaCount::new(task.alpha, *at).at(now, &rule)),
        phase: task.phase.into(),
        starts: status.has_started.into(),
        restarts: status.has_restarted.into(),
        has_fired: kept().skip(answered).any(|error| error.kind == SILENT),
    }
}

/// The alpha-count of the task at `place` of node `me` after an error, if the script has a rule for
/// it. The node that owns the task computes it, for replicas that agree (RL-7). The times are those
/// of the task's error before, if there was one, and of this one, in µs by the node's clock: the
/// entry keeps too few errors to tell.
#[must_use]
pub fn alpha_after<const TASKS: usize>(
    program: &Program<'_>,
    own: &Record<TASKS>,
    (Rank(me), place): (Rank, u8),
    (last_us, at_us): (Option<u64>, u64),
) -> Option<u16> {
    let is_it = |task: &u8| {
        program.place_of(*task).is_some_and(|(node, at)| (u16::from(node), at) == (me, place))
    };
    let rule = program.alpha_of(program.tasks().iter().find(is_it)?)?;
    let count = own.tasks().get(usize::from(place))?.alpha;
    let at = |us: u64| Instant(us.saturating_mul(1_000));
    let mut alpha = AlphaCount::new(count, at(last_us.unwrap_or(at_us)));
    alpha.handle_error(at(at_us), &rule);
    let is_owners = !mutants::REPLICAS_COUNT_ALPHA.is_planted();
    is_owners.then(|| alpha.at(at(at_us), &rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_one_byte_and_what_is_unknown_waits() {
        for state in [
            TaskState::Running,
            TaskState::Waiting,
            TaskState::Killed,
            TaskState::Isolated,
            TaskState::Finished,
        ] {
            for (has_started, has_restarted) in [(false, false), (true, false), (true, true)] {
                let status = TaskStatus { state, has_started, has_restarted };
                assert_eq!(TaskStatus::from_byte(status.to_byte()), status);
            }
        }
        // A task that is ended because it sent no heartbeat, and a state of a later version.
        for byte in [4, 60] {
            assert_eq!(TaskStatus::from_byte(byte).state, TaskState::Waiting);
        }
    }
}
