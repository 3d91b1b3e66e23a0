//! One task, from its start to its isolation, and into the next boot of its node.

use super::*;
use weft_core::recovery::Fallback;
use weft_core::time::Duration;

use crate::cluster::Restart;
use crate::node::control::ReportEffect;

const SECOND: u64 = 1_000_000_000;
/// Three seconds for an order, or else a restart.
const DECLARED: Declared = Declared {
    answer: weft_core::recovery::Declared {
        fallback: Fallback::Builtin,
        answer: Duration(3 * SECOND),
    },
    beat_ns: None,
};
const ANSWER_MS: u64 = 3_000;
const FAILED: TaskFault = TaskFault::Exited { status: 3 };

/// A task that runs, may be restarted once in ten seconds, and must beat every second.
fn running() -> Record {
    let restart = Restart { max: 1, within_s: 10 };
    let name = "worker".parse().unwrap();
    let task = Task { restart, beat_ms: Some(1000), ..Task::new(name, "worker".to_owned()) };
    let mut record = Record::new(&task, ANSWER_MS);
    record.handle_started(0);
    record
}

/// One that a script answers within three seconds, or else restarts.
fn left_to_a_script() -> Record {
    let restart = Restart { max: 1, within_s: 10 };
    let task = Task { restart, ..Task::new("worker".parse().unwrap(), "worker".to_owned()) };
    let mut record = Record::new(&task, ANSWER_MS);
    record.leave(DECLARED);
    record.handle_started(0);
    record
}

/// The first order of an evaluation, given when `seen` errors were answered.
fn order(evaluation: u32, seen: u32, mark: u32) -> ScriptOrder {
    let number = OrderNumber { epoch: 1, claimant: 0, evaluation, index: 0 };
    ScriptOrder { number, seen, mark }
}

#[test]
fn rl3_an_order_of_a_script_is_obeyed_once_also_in_the_next_boot() {
    let mut record = left_to_a_script();
    assert_eq!(record.handle_ended(SECOND, Some(FAILED)), Due::Nothing, "the script decides");
    assert_eq!(record.state(), TaskState::Waiting);
    let restart = order(1, 0, 1);
    let done = record.handle_script_order(SECOND, GuardAction::Restart, restart);
    assert_eq!(done, (Due::Start, Judgement::Obey));
    record.handle_started(SECOND);
    let again = record.handle_script_order(SECOND, GuardAction::Restart, restart);
    assert_eq!(again, (Due::Nothing, Judgement::Repeated));
    assert_eq!(record.next_deadline_ns(), None, "nothing is unanswered");
    let answered = record.take_answered(4);
    assert!(matches!(answered, Some(TaskChange::Answered { task: 4, mark: 1, .. })));
    assert_eq!(record.take_answered(4), None);

    let mut next = left_to_a_script();
    next.go_on(record.past());
    let again = next.handle_script_order(2 * SECOND, GuardAction::Restart, restart);
    assert_eq!(again, (Due::Nothing, Judgement::Repeated));
    let old = next.handle_script_order(2 * SECOND, GuardAction::Restart, order(2, 0, 1));
    assert_eq!(old, (Due::Nothing, Judgement::Outdated));
}

/// The order answers no error, so only its identity says that it was obeyed.
#[test]
fn rl3_an_order_stays_judged_while_a_script_in_between_does_not_declare_the_task() {
    let mut record = left_to_a_script();
    let stop = order(1, 0, 0);
    let done = record.handle_script_order(SECOND, GuardAction::Stop, stop);
    assert_eq!(done, (Due::Kill, Judgement::Obey));
    record.handle_ended(SECOND, None);
    assert_eq!(record.redeclare(None, None, SECOND), Due::Nothing);
    let (mut rebooted, past) = (left_to_a_script(), record.past());
    assert_eq!(rebooted.redeclare(None, None, SECOND), Due::Nothing);
    rebooted.go_on(past);
    for mut record in [record, rebooted] {
        let undeclared = record.handle_script_order(SECOND, GuardAction::Stop, stop);
        assert_eq!(undeclared, (Due::Nothing, Judgement::Outdated));
        assert_eq!(record.redeclare(Some(DECLARED), None, SECOND), Due::Nothing);
        assert_eq!(record.handle_order(TaskOrder::Start).0, Due::Start);
        record.handle_started(SECOND);
        let again = record.handle_script_order(SECOND, GuardAction::Stop, stop);
        assert_eq!(again, (Due::Nothing, Judgement::Repeated));
        let next = record.handle_script_order(SECOND, GuardAction::Stop, order(2, 0, 0));
        assert_eq!(next, (Due::Kill, Judgement::Obey));
    }
}

#[test]
fn rl5_a_restart_by_order_too_many_isolates_and_without_an_order_default_answers() {
    let mut record = left_to_a_script();
    assert_eq!(record.handle_report(SECOND, 7), (Due::Nothing, ReportEffect::ToScript));
    assert_eq!(record.next_deadline_ns(), Some(4 * SECOND));
    assert_eq!(record.handle_time(4 * SECOND), Due::Kill, "DEFAULT restarts it");
    assert_eq!(record.handle_ended(4 * SECOND, None), Due::Start);
    record.handle_started(4 * SECOND);
    let late = record.handle_script_order(4 * SECOND, GuardAction::Restart, order(1, 0, 1));
    assert_eq!(late, (Due::Nothing, Judgement::Outdated));
    let (due, _) = record.handle_script_order(5 * SECOND, GuardAction::Restart, order(2, 1, 1));
    assert_eq!((due, record.state()), (Due::Kill, TaskState::Isolated));
    assert!(record.take_verdict());
}

/// An alpha-count decays from the error before, in an earlier boot, too.
#[test]
fn rl7_an_error_says_when_the_one_before_it_was() {
    let mut record = left_to_a_script();
    for at_ns in [SECOND, 2 * SECOND] {
        record.handle_report(at_ns, 7);
    }
    let times = |record: &mut Record| -> Vec<(u64, Option<u64>)> {
        record.take_errors().iter().map(|error| (error.at_ns, error.last_ns)).collect()
    };
    assert_eq!(times(&mut record), [(SECOND, None), (2 * SECOND, Some(SECOND))]);
    let mut next = left_to_a_script();
    next.go_on(record.past());
    next.handle_report(9 * SECOND, 7);
    assert_eq!(times(&mut next), [(9 * SECOND, Some(2 * SECOND))]);
}

#[test]
fn one_that_ends_with_status_0_has_finished() {
    let mut record = running();
    assert_eq!(record.handle_ended(1, None), Due::Nothing);
    assert_eq!((record.state(), record.errors()), (TaskState::Finished, 0));
}

#[test]
fn one_that_fails_too_often_is_isolated() {
    let mut record = running();
    assert_eq!(record.handle_ended(1, Some(FAILED)), Due::Start);
    record.handle_started(2);
    assert!(!record.take_verdict());
    assert_eq!(record.handle_ended(3, Some(FAILED)), Due::Nothing);
    assert_eq!(record.state(), TaskState::Isolated);
    assert_eq!((record.errors(), record.restarts()), (2, 1));
    assert!(record.take_verdict() && !record.take_verdict(), "reported once");
}

#[test]
fn one_that_fails_again_waits_before_it_is_started() {
    let restart = Restart { max: 2, within_s: 4 };
    let task = Task { restart, ..Task::new("worker".parse().unwrap(), "worker".to_owned()) };
    let mut record = Record::new(&task, ANSWER_MS);
    assert_eq!(record.state(), TaskState::Waiting);
    record.handle_started(0);
    assert_eq!(record.handle_ended(1, Some(FAILED)), Due::Start);
    record.handle_started(2);
    assert_eq!(record.handle_ended(3, Some(FAILED)), Due::Nothing);
    let due = Some(3 + SECOND / 2);
    assert_eq!((record.state(), record.next_deadline_ns()), (TaskState::Waiting, due));
    assert_eq!(record.handle_time(2 + SECOND / 2), Due::Nothing);
    assert_eq!(record.handle_time(3 + SECOND / 2), Due::Start);
    assert_eq!(record.next_deadline_ns(), None);
}

#[test]
fn an_order_ends_a_pause() {
    for (order, due) in [(TaskOrder::Start, Due::Start), (TaskOrder::Stop, Due::Kill)] {
        let mut record = running();
        record.start_at_ns = Some(SECOND);
        record.state = TaskState::Waiting;
        assert_eq!(record.handle_order(order), (due, TaskEffect::Done));
        assert_eq!(record.start_at_ns, None);
    }
}

#[test]
fn silence_is_killed_and_started_again() {
    let mut record = running();
    assert_eq!(record.handle_beat(SECOND / 2), Ok(()));
    assert_eq!(record.handle_time(SECOND), Due::Nothing);
    assert_eq!(record.handle_time(2 * SECOND), Due::Kill);
    assert_eq!(record.state(), TaskState::Faulty);
    assert_eq!(record.handle_beat(3 * SECOND), Err(TaskState::Faulty), "too late");
    assert_eq!(record.handle_time(3 * SECOND), Due::Nothing);
    let killed = TaskFault::Signalled { signal: 9 };
    assert_eq!(record.handle_ended(3 * SECOND, Some(killed)), Due::Start);
    let errors = record.last_errors(4 * SECOND);
    assert_eq!(errors, [TaskError { fault: TaskFault::Silent, ago_ms: 2000 }]);
}

#[test]
fn a_program_that_cannot_be_started_is_faulty_and_left_alone() {
    let mut record = running();
    assert_eq!(record.handle_ended(1, Some(FAILED)), Due::Start);
    assert_eq!(record.not_started(), None);
    record.handle_not_started(2, "no such file".to_owned());
    assert_eq!(record.not_started(), Some("no such file"));
    assert_eq!((record.state(), record.errors()), (TaskState::Faulty, 2));
    assert_eq!(record.handle_time(u64::MAX), Due::Nothing);
    assert_eq!(record.handle_order(TaskOrder::Start), (Due::Kill, TaskEffect::Done));
    assert_eq!(record.handle_ended(3, None), Due::Start);
}

#[test]
fn a_report_counts_as_a_failure_and_the_manager_restarts() {
    let mut record = running();
    assert_eq!(record.handle_restart(), Due::Nothing, "nothing has gone wrong");
    let (restarts, left) = (0, 0);
    let restart = ReportEffect::Restart { restarts, left };
    assert_eq!(record.handle_report(1, 7), (Due::Nothing, restart));
    assert_eq!((record.state(), record.restarts()), (TaskState::Running, 0));
    assert_eq!(record.handle_restart(), Due::Kill);
    assert_eq!(record.handle_restart(), Due::Nothing, "it is under way");
    assert_eq!(record.handle_report(2, 8), (Due::Nothing, ReportEffect::Noted));
    assert_eq!(record.handle_ended(3, Some(FAILED)), Due::Start);
    record.handle_started(4);
    assert_eq!((record.errors(), record.restarts()), (2, 1));
    assert_eq!(record.handle_report(5, 9), (Due::Kill, ReportEffect::Isolated));
    assert_eq!(record.handle_restart(), Due::Nothing);
    assert_eq!(record.handle_ended(6, Some(FAILED)), Due::Nothing);
    assert_eq!(record.state(), TaskState::Isolated);
    assert!(record.take_verdict());
}

#[test]
fn g27_a_node_restarts_what_has_reported_an_error_when_no_manager_orders_it() {
    let mut record = running();
    record.beat_ns = None;
    record.handle_started(0);
    record.handle_report(1, 7);
    let over = 1 + ANSWER_MS * 1_000_000;
    record.intensity.forget();
    record.handle_report(2, 8);
    assert_eq!(record.next_deadline_ns(), Some(over), "another error does not put it off");
    assert_eq!(record.handle_time(over - 1), Due::Nothing);
    assert_eq!(record.handle_time(over), Due::Kill);
    assert_eq!(record.handle_restart(), Due::Nothing, "the order comes too late");
    assert_eq!(record.handle_ended(over + 1, Some(FAILED)), Due::Start);
    record.handle_started(over + 2);
    assert_eq!((record.restarts(), record.next_deadline_ns()), (1, None));
}

#[test]
fn g27_an_order_in_time_ends_the_wait_for_it() {
    let ended: [fn(&mut Record) -> Due; 3] = [
        Record::handle_restart,
        |record| record.handle_order(TaskOrder::Restart).0,
        |record| record.handle_order(TaskOrder::Stop).0,
    ];
    for order in ended {
        let mut record = running();
        record.handle_report(1, 7);
        assert_eq!(order(&mut record), Due::Kill);
        if record.handle_ended(2, Some(FAILED)) == Due::Start {
            record.handle_started(3);
        }
        record.silent_at_ns = None;
        assert_eq!(record.next_deadline_ns(), None);
        assert_eq!(record.handle_time(u64::MAX), Due::Nothing);
    }
}

#[test]
fn reports_of_one_that_does_not_run_are_only_noted() {
    let mut record = running();
    record.handle_order(TaskOrder::Stop);
    for error in 0..20 {
        assert_eq!(record.handle_report(1, error), (Due::Nothing, ReportEffect::Noted));
    }
    assert_eq!((record.state(), record.errors()), (TaskState::Killed, 20));
    let last = record.last_errors(1);
    assert_eq!(last.len(), ERRORS_MAX);
    assert_eq!(last[ERRORS_MAX - 1].fault, TaskFault::Reported { error: 19 });
}

/// The same task at the next boot of its node.
fn next(record: &Record) -> Record {
    let task = Task::new("worker".parse().unwrap(), "worker".to_owned());
    let mut next = Record::new(&task, ANSWER_MS);
    next.go_on(record.past());
    assert_eq!((next.errors(), next.restarts()), (record.errors(), record.restarts()));
    assert_eq!(next.last_errors(9), record.last_errors(9));
    next
}

#[test]
fn what_was_stopped_isolated_or_finished_is_so_in_the_next_life() {
    let mut record = running();
    record.handle_report(1, 7);
    assert_eq!(next(&record).state(), TaskState::Waiting);
    record.handle_order(TaskOrder::Stop);
    assert_eq!(next(&record).state(), TaskState::Killed);
    record.handle_order(TaskOrder::Isolate);
    assert_eq!(next(&record).state(), TaskState::Isolated);
    let mut record = running();
    record.handle_ended(1, None);
    assert_eq!(next(&record).state(), TaskState::Finished);
    let mut record = running();
    record.handle_not_started(1, "no such file".to_owned());
    assert_eq!(next(&record).state(), TaskState::Waiting, "it may be there by now");
}

#[test]
fn what_others_know_of_it_is_learnt_once_and_no_order_is_overruled() {
    let task = Task::new("worker".parse().unwrap(), "worker".to_owned());
    let asked = || {
        let mut record = Record::new(&task, ANSWER_MS);
        record.ask();
        record
    };
    let standings = [
        (TaskState::Isolated, TaskStanding::Isolated),
        (TaskState::Killed, TaskStanding::Stopped),
        (TaskState::Finished, TaskStanding::Finished),
        (TaskState::Waiting, TaskStanding::Free),
    ];
    for (state, standing) in standings {
        assert_eq!(TaskStanding::of_status(state as u8), standing);
        let mut record = asked();
        record.handle_report(1, 7);
        record.learn(standing, 3, 0);
        record.learn(TaskStanding::Isolated, 3, 0);
        assert_eq!((record.state(), record.errors()), (state, 4));
        assert_eq!(record.is_to_begin(), standing == TaskStanding::Free);
    }
    let mut record = asked();
    assert_eq!(record.handle_order(TaskOrder::Start), (Due::Start, TaskEffect::Done));
    record.handle_started(1);
    record.learn(TaskStanding::Stopped, 3, 0);
    assert_eq!((record.state(), record.is_asked()), (TaskState::Running, false));
}

#[test]
fn what_is_held_with_its_node_runs_again_and_what_was_stopped_does_not() {
    let mut record = running();
    assert_eq!(record.handle_hold(), Due::Kill);
    assert_eq!(record.handle_ended(1, Some(FAILED)), Due::Nothing);
    assert_eq!((record.state(), record.errors()), (TaskState::Killed, 0));
    assert_eq!(next(&record).state(), TaskState::Waiting);
    assert_eq!(record.handle_release(), Due::Start);
    assert_eq!(record.handle_release(), Due::Nothing);
    record.handle_started(2);
    record.handle_hold();
    assert_eq!(record.handle_order(TaskOrder::Stop), (Due::Kill, TaskEffect::Done));
    assert_eq!((record.handle_hold(), record.handle_release()), (Due::Nothing, Due::Nothing));
    assert_eq!(next(&record).state(), TaskState::Killed);
}

#[test]
fn an_order_is_obeyed_whatever_the_state() {
    let mut record = running();
    let done = |due| (due, TaskEffect::Done);
    let already = |state| (Due::Nothing, TaskEffect::Already { state });
    assert_eq!(record.handle_order(TaskOrder::Start), already(TaskState::Running));
    assert_eq!(record.handle_order(TaskOrder::Restart), done(Due::Kill));
    assert_eq!(record.handle_ended(1, Some(FAILED)), Due::Start);
    record.handle_started(2);
    assert_eq!(record.handle_order(TaskOrder::Isolate), done(Due::Kill));
    assert_eq!(record.handle_order(TaskOrder::Isolate), already(TaskState::Isolated));
    assert_eq!(record.handle_ended(3, Some(FAILED)), Due::Nothing);
    assert_eq!((record.state(), record.errors()), (TaskState::Isolated, 0));
    assert!(!record.take_verdict(), "who gave the order knows");
    assert_eq!(record.handle_order(TaskOrder::Restart), done(Due::Start));
    record.handle_started(4);
    assert_eq!(record.handle_order(TaskOrder::Stop), done(Due::Kill));
    assert_eq!(record.handle_order(TaskOrder::Stop), already(TaskState::Killed));
    assert_eq!(record.handle_time(u64::MAX), Due::Nothing);
    assert_eq!((record.handle_ended(5, None), record.state()), (Due::Nothing, TaskState::Killed));
}

#[test]
fn what_is_isolated_or_has_finished_is_not_stopped_as_well() {
    let mut isolated = running();
    isolated.handle_order(TaskOrder::Isolate);
    let mut finished = running();
    assert_eq!(finished.handle_ended(1, None), Due::Nothing);
    for (mut record, state) in [(isolated, TaskState::Isolated), (finished, TaskState::Finished)] {
        let already = (Due::Nothing, TaskEffect::Already { state });
        assert_eq!(record.handle_order(TaskOrder::Stop), already);
        assert_eq!(record.handle_beat(2), Err(state));
        assert_eq!((record.state(), record.next_deadline_ns()), (state, None));
        assert_eq!(next(&record).state(), state);
    }
}
