//! What members do for the tasks of their nodes: member 0 polls itself, member 1 is spawned.

use std::time::{Duration, Instant};

use weft::Member;
use weft::explain::Explain as _;
use weft::member::{CallError, Rank, TaskNotice, TaskRefused, Vote, VoteDenied};

use crate::{Outcome, PATIENCE, meet};

/// The tasks, and the script that is about them.
pub(crate) const TASKS: &str = r#"[recovery]
script = "c.rl"
[[task]]
name = "north"
nodes = [0]
program = "sleep"
args = ["1000"]
[[task]]
name = "actuator"
nodes = [0]
program = "sleep"
args = ["1000"]
[[task]]
name = "south"
nodes = [1]
program = "sleep"
args = ["1000"]
"#;

pub(crate) const SCRIPT: &str = r#"DEFINE 0 = MANAGER
DEFINE 1 = BACKUP
TASK 1 IS "north" ON NODE 0
TASK 2 IS "south" ON NODE 1
TASK 3 IS "actuator" ON NODE 0
N-VERSION 1
    VERSION 1 IS T1 TIMEOUT 1000 S
    VERSION 2 IS T2 TIMEOUT 1000 S
    VOTING ALGORITHM IS MAJORITY
    ON SUCCESS T3
END N-VERSION
IF [ PHASE(T1) == 3 ] THEN
    SEND 7 T2
FI
"#;

pub(crate) fn tasks() -> Outcome {
    let mut member = Member::join()?;
    meet(&mut member)?;
    // A round waits for no version whose node is not a member yet.
    let has_both = |it: &mut Member| it.view()?.incarnation(Rank(1)).map(drop);
    member.wait_until(PATIENCE, has_both)?.ok_or("node 1 is not admitted")?;
    if member.rank() == Rank(1) { votes_second(member) } else { votes_first(&mut member) }
}

/// Votes, is handed the outcome, and reports a phase until the other has what the script sends for
/// it.
fn votes_first(member: &mut Member) -> Outcome {
    let unknown = member.vote("south", 1, Vote::Number(41)).expect_err("a task of node 1");
    let text = "this node has no task \"south\": its tasks are north, actuator";
    assert_eq!((unknown.to_string().as_str(), unknown.code().as_str()), (text, "task_unknown"));
    member.vote("north", 1, Vote::Number(41))?;
    member.vote("north", 1, Vote::Number(41))?;
    let twice = member.vote("north", 1, Vote::Number(42));
    assert_eq!(twice, Err(TaskRefused::Vote(VoteDenied::VotedAlready)));
    let early = member.vote("north", 2, Vote::Number(42));
    assert_eq!(early, Err(TaskRefused::Vote(VoteDenied::RoundOpen { open: 1 })));
    let other = member.vote("actuator", 1, Vote::Number(41));
    let versions = vec!["north".to_owned()];
    assert_eq!(other, Err(TaskRefused::Vote(VoteDenied::NoVersion { versions })));
    member.put(Rank(1), b"voted")?;

    let come = member.wait_until(PATIENCE, |it| {
        it.events().for_each(drop);
        let come = it.notices("actuator").expect("a task of this node");
        (!come.notices.is_empty()).then_some(come)
    })?;
    let come = come.ok_or("no outcome")?;
    let [TaskNotice::Outcome(result)] = &come.notices[..] else {
        return Err(format!("{come:?}").into());
    };
    assert_eq!((result.round, result.value), (1, Some(Vote::Number(41))));

    // Until the task runs it has no phase.
    let deadline = Instant::now() + PATIENCE;
    while member.take().is_none() {
        assert!(Instant::now() < deadline, "the script has sent nothing");
        member.report_phase("north", 3)?;
        member.wait(Duration::from_millis(10))?;
        member.events().for_each(drop);
    }
    // It was seen by the call behind the one that returned it.
    assert!(member.notices("actuator")?.notices.is_empty());
    println!("has voted");
    Ok(())
}

fn votes_second(member: Member) -> Outcome {
    let member = member.spawn()?;
    let first = member.take(PATIENCE)?.ok_or("the other has not voted")?;
    member.release(first.receipt)?;
    let unknown = member.notices("north", Duration::ZERO);
    assert!(matches!(unknown, Err(CallError::Refused(TaskRefused::NoTask { .. }))));
    assert!(member.notices("south", Duration::ZERO)?.notices.is_empty());
    member.vote("south", 1, Vote::Number(41))?;
    let come = member.notices("south", PATIENCE)?;
    let [TaskNotice::Number { value: 7, .. }] = come.notices[..] else {
        return Err(format!("{come:?}").into());
    };
    member.put(Rank(0), b"seen", PATIENCE)?;
    assert!(member.flush(PATIENCE)?);
    println!("has voted");
    Ok(())
}
