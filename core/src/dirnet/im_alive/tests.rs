//! The I'm-Alive Task in isolation: each state, each message.

use super::*;
use crate::dirnet::Timing;
use std::vec::Vec;

const MS: u64 = 1_000_000;
const PERIOD: u64 = 100 * MS;

fn task() -> ImAliveTask {
    let profile = Profile::new(Timing::LAN).unwrap();
    let others = [Rank(0), Rank(2)].into_iter().collect();
    ImAliveTask::new(Post { me: Rank(1), boot: Incarnation(4), others, profile })
}

fn said(sender: u16, message: Message) -> Frame {
    let incarnation = ComponentIncarnation { boot: Incarnation(4), generation: 0 };
    let term = Term { epoch: 3, claimant: Rank(0) };
    let (seat, view) = (Seat::Component, Default::default());
    Frame { sender: Rank(sender), seat, term, incarnation, sequence: 1, view, message }
}

fn hear(task: &mut ImAliveTask, at: u64, sender: u16, message: Message) -> Result<(), Reject> {
    let frame = said(sender, message);
    task.handle_message(Instant(at), Rank(sender), &frame, Progress::default())
}

fn span(generation: u32) -> Message {
    let incarnation = ComponentIncarnation { boot: Incarnation(4), generation };
    Message::Span { node: Rank(1), incarnation }
}

fn watching() -> ImAliveTask {
    let mut task = task();
    assert_eq!(hear(&mut task, 0, 1, Message::Rouse), Ok(()));
    task
}

fn outputs(task: &mut ImAliveTask) -> Vec<Output> {
    core::iter::from_fn(|| task.poll_output()).collect()
}

fn alarms(task: &mut ImAliveTask) -> usize {
    let is_alarm = |output: &Output| match output {
        Output::Send { frame, .. } => matches!(frame.message, Message::Teif { .. }),
        _ => false,
    };
    outputs(task).iter().filter(|output| is_alarm(output)).count()
}

fn ticks(count: u32) -> Progress {
    Progress { timers: count, ..Progress::default() }
}

/// G-6: the original took any message as its activation.
#[test]
pub(in crate::dirnet) fn g6_only_its_own_component_rouses_it() {
    let mut task = task();
    assert_eq!(hear(&mut task, 0, 0, Message::Rouse), Err(Reject::UnknownSender));
    assert_eq!(hear(&mut task, 0, 0, Message::Enia), Err(Reject::WrongSeat));
    assert_eq!(hear(&mut task, 0, 5, Message::Rouse), Err(Reject::UnknownSender));
    assert_eq!(task.poll_timeout(), None);
    assert_eq!(hear(&mut task, 0, 1, Message::Rouse), Ok(()));
    assert_eq!(task.poll_timeout(), Some(Instant(PERIOD)));
    assert_eq!(task.rejects().of(Reject::UnknownSender), 2);
}

#[test]
pub(in crate::dirnet) fn progress_keeps_it_quiet() {
    let mut task = watching();
    for tick in 1..5 {
        task.handle_timeout(Instant(PERIOD * u64::from(tick)), ticks(tick));
        assert_eq!(outputs(&mut task), []);
    }
}

fn alarm(task: &mut ImAliveTask) -> Option<Alarm> {
    outputs(task).iter().find_map(|output| match output {
        Output::Send { frame, .. } => match frame.message {
            Message::Teif { alarm, .. } => Some(alarm),
            _ => None,
        },
        _ => None,
    })
}

/// One component hung after its last message, the other's timers are dead.
#[test]
pub(in crate::dirnet) fn d56_the_alarm_tells_a_hang_from_stopped_timers() {
    let cases = [
        (Progress { messages: 50, ..Progress::default() }, Alarm::NoProgress),
        (Progress { messages: 50, heard_late: 1, ..Progress::default() }, Alarm::TimersStopped),
    ];
    for (progress, expected) in cases {
        let mut task = watching();
        task.handle_timeout(Instant(PERIOD), progress);
        assert_eq!(alarm(&mut task), Some(expected));
        task.handle_ended(Instant(PERIOD + 1));
        assert_eq!(alarm(&mut task), Some(Alarm::Ended));
    }
}

/// G-31: messages alone do not count as progress.
#[test]
pub(in crate::dirnet) fn g31_a_component_that_only_answers_is_reported() {
    let mut task = watching();
    let progress = Progress { messages: 50, ..Progress::default() };
    task.handle_timeout(Instant(PERIOD), progress);
    assert_eq!(alarms(&mut task), 1);
}

/// G-7: the alarm is repeated with back-off, until an ENIA has woken the task or a SPAN arrived.
#[test]
pub(in crate::dirnet) fn g7_an_alarm_is_repeated_with_back_off() {
    let mut task = watching();
    task.handle_timeout(Instant(PERIOD), ticks(0));
    let mut gaps = Vec::new();
    for _ in 0..4 {
        assert_eq!(alarms(&mut task), 1);
        let due = task.poll_timeout().unwrap();
        task.handle_timeout(due, ticks(0));
        gaps.push(due);
    }
    let gaps: Vec<u64> = gaps.windows(2).map(|pair| pair[1].since(pair[0]).0 / PERIOD).collect();
    assert_eq!(gaps, [2, 4, 8]);
    outputs(&mut task);
    assert_eq!(hear(&mut task, 50 * PERIOD, 1, Message::Rouse), Ok(()));
    assert_eq!(task.poll_timeout(), Some(Instant(51 * PERIOD)));
}

#[test]
pub(in crate::dirnet) fn g8_a_span_spawns_once_and_an_old_term_never() {
    let mut task = watching();
    let earlier = Frame { term: Term { epoch: 2, claimant: Rank(0) }, ..said(0, span(1)) };
    let refused = task.handle_message(Instant(0), Rank(0), &earlier, Progress::default());
    assert_eq!(refused, Err(Reject::OldTerm), "its component knows a later term");
    assert_eq!(hear(&mut task, 0, 0, span(1)), Ok(()));
    assert_eq!(outputs(&mut task), [Output::Spawn { generation: 1 }]);
    let again = hear(&mut task, 0, 0, span(1));
    assert_eq!((again, task.poll_output()), (Err(Reject::OldLife), None));
    let old = Frame { term: Term::default(), ..said(0, span(9)) };
    let refused = task.handle_message(Instant(0), Rank(0), &old, Progress::default());
    assert_eq!(refused, Err(Reject::OldTerm));
    task.handle_spawned(Instant(1), Spawned::Runs);
    assert_eq!((task.poll_timeout(), task.generation()), (None, 1));
}

/// A member that stood still passes on what its manager ordered before the node was started again.
#[test]
pub(in crate::dirnet) fn g8_a_span_for_an_earlier_boot_hits_no_component_of_this_one() {
    let mut task = watching();
    let incarnation = ComponentIncarnation { boot: Incarnation(3), generation: 1 };
    let late = hear(&mut task, 0, 2, Message::Span { node: Rank(1), incarnation });
    assert_eq!((late, task.poll_output()), (Err(Reject::OldLife), None));
    let incarnation = ComponentIncarnation { boot: Incarnation(4), ..incarnation };
    let stray = hear(&mut task, 0, 0, Message::Span { node: Rank(2), incarnation });
    assert_eq!((stray, task.poll_output()), (Err(Reject::BadSubject), None));
}

/// A new manager asked for the component that has ended since, while the task waited for a SPAN.
#[test]
fn a_span_that_names_the_component_of_the_alarm_spawns_the_one_after_it() {
    let mut task = watching();
    hear(&mut task, 0, 0, span(1)).unwrap();
    outputs(&mut task);
    task.handle_spawned(Instant(1), Spawned::Runs);
    task.handle_ended(Instant(2));
    assert_eq!(alarms(&mut task), 1);
    assert_eq!(hear(&mut task, 3, 2, span(1)), Ok(()));
    assert_eq!(outputs(&mut task), [Output::Spawn { generation: 2 }]);
    let again = hear(&mut task, 4, 2, span(1));
    assert_eq!((again, task.poll_output()), (Err(Reject::OldLife), None));
}

/// A component that hung was reported, and is killed before any node has answered.
#[test]
fn the_end_of_a_component_that_hung_is_reported_at_once() {
    let mut task = watching();
    task.handle_timeout(Instant(PERIOD), ticks(0));
    assert_eq!(alarms(&mut task), 1);
    task.handle_ended(Instant(PERIOD + 1));
    assert_eq!(alarms(&mut task), 1);
    assert_eq!(task.poll_timeout(), Some(Instant(2 * PERIOD + 1)));
}

/// G-6: a spawn that fails asks for a reset; if no node answers, it is tried again.
#[test]
pub(in crate::dirnet) fn g6_a_spawn_that_fails_is_an_alarm() {
    let mut task = watching();
    hear(&mut task, 0, 0, span(1)).unwrap();
    outputs(&mut task);
    task.handle_spawned(Instant(0), Spawned::Failed);
    for _ in 0..ALARMS_UNANSWERED {
        assert_eq!(alarms(&mut task), 1);
        let due = task.poll_timeout().unwrap();
        task.handle_timeout(due, ticks(0));
    }
    let reported = Output::Tell(News::Unanswered(Rank(1)));
    assert_eq!(outputs(&mut task), [reported, Output::Spawn { generation: 2 }]);
}

#[test]
pub(in crate::dirnet) fn a_process_that_ends_is_reported_at_once() {
    let mut task = watching();
    task.handle_ended(Instant(5));
    assert_eq!(alarms(&mut task), 1);
    task.handle_ended(Instant(6));
    assert_eq!(outputs(&mut task), []);
}

#[test]
pub(in crate::dirnet) fn a_task_that_nobody_answers_helps_itself() {
    let mut task = watching();
    task.handle_ended(Instant(5));
    let mut spawned = None;
    while spawned.is_none() {
        spawned = outputs(&mut task).into_iter().find(|o| matches!(o, Output::Spawn { .. }));
        if let Some(due) = task.poll_timeout() {
            task.handle_timeout(due, ticks(0));
        }
    }
    assert_eq!(spawned, Some(Output::Spawn { generation: 1 }));
}

/// A component that only stalls may go on; one that could not be started will not.
#[test]
fn a_task_whose_supervisor_knows_of_nobody_else_helps_itself_once_its_component_has_ended() {
    let mut task = watching();
    task.handle_alone();
    task.handle_timeout(Instant(PERIOD), ticks(0));
    assert_eq!(alarms(&mut task), 1);
    task.handle_alone();
    assert_eq!(outputs(&mut task), []);
    task.handle_ended(Instant(PERIOD + 1));
    outputs(&mut task);
    task.handle_alone();
    let reported = Output::Tell(News::Alone(Rank(1)));
    assert_eq!(outputs(&mut task), [reported, Output::Spawn { generation: 1 }]);
    task.handle_alone();
    assert_eq!((outputs(&mut task), task.poll_timeout()), (Vec::new(), None));
    let late = hear(&mut task, 0, 2, span(1));
    assert_eq!((late, outputs(&mut task)), (Err(Reject::OldLife), Vec::new()));
    task.handle_spawned(Instant(PERIOD + 2), Spawned::Failed);
    outputs(&mut task);
    task.handle_alone();
    assert_eq!(outputs(&mut task), []);
}

/// a task that was late gives the component a full period.
#[test]
pub(in crate::dirnet) fn x3_a_late_task_raises_no_alarm() {
    let mut task = watching();
    task.handle_timeout(Instant(3 * PERIOD), ticks(0));
    assert_eq!(outputs(&mut task), []);
    task.handle_timeout(Instant(4 * PERIOD), ticks(0));
    assert_eq!(alarms(&mut task), 1);
}

#[test]
pub(in crate::dirnet) fn a_probe_is_answered_by_name() {
    let mut task = task();
    assert_eq!(hear(&mut task, 0, 2, Message::Probe { round: 7 }), Ok(()));
    let Some(Output::Send { to, frame, .. }) = task.poll_output() else { panic!("no answer") };
    assert_eq!(
        (to, frame.sender, frame.seat),
        (Members::only(Rank(2)), Rank(1), Seat::ImAliveTask)
    );
    assert_eq!(frame.message, Message::Alive { round: 7 });
}
