//! What a manager knows of its cluster, whatever nodes and tasks have reported: the same picture
//! gives the same orders (RL-2), no more than are allowed, in no more steps than there are words.

use weft_core::ids::Term;
use weft_core::recovery::{
    Expected, ORDERS_MAX, Picture, Placed, Program, Progress, Rint, TaskState, Trace, verify,
};
use weft_core::time::Instant;
use weft_rl::Reader;

/// Atoms with wildcards, groups, complements, arithmetic that overflows, and a PAUSE.
const SCRIPT: &str = "DEFINE 0 = MANAGER\nDEFINE 1-3 = BACKUP\nDEFAULT = RESTART\n\
    TASK 1 = \"a\" IS NODE 1, TASKID 0\nTASK 2 = \"b\" IS NODE 2, TASKID 0\n\
    TASK 3 = \"c\" IS NODE 3, TASKID 0\nLOGICAL 1 = \"g\" IS TASK 1, 2 END LOGICAL\n\
    ALPHACOUNT T1 IS THRESHOLD = 3.0, FACTOR = 0.5 EVERY 1 S END\n\
    IF [ FAULTY G1 AND (NOT PRESENT N1) ] THEN\nRESTART @1\nSTOP ~1\n\
    ELIF [ TRANSIENT T1 OR FIRED T* ] THEN\nISOLATE @3\nRESTART $4\nFI\n\
    IF [ ERRN(T*) > 2 OR (PHASE(T3) == 4) ] THEN\nLET A = ERRN(T1) * 2147483647\n\
    LOG \"x\" VAL(A)\nPAUSE 2 S\nSTART T3\nFI\n\
    IF [ DOWN N* ] THEN\nRELEASE @1\nFI\n";

fn evaluated(program: &Program<'_>, picture: &Picture<64, 256>) -> (Vec<Placed>, Vec<Trace>) {
    let words = program.code().header().words;
    let mut rint = Rint::default();
    rint.evaluate(program, picture, Term::of_epoch(1), Instant(0)).expect("it is idle");
    let (mut orders, mut traces) = (Vec::new(), Vec::new());
    loop {
        let progress = rint.step(program, words).expect("a verified image does not fail");
        let Progress::Done(trace) = progress else { panic!("more steps than words") };
        assert!(trace.steps <= words && usize::from(trace.orders) <= ORDERS_MAX);
        traces.push(trace);
        orders.extend(std::iter::from_fn(|| rint.poll_order()));
        if !rint.resume(program, picture, Instant(u64::MAX)).expect("it is idle") {
            return (orders, traces);
        }
    }
}

/// One input: eight bytes for each task, then one for each node.
pub fn run(bytes: &[u8]) {
    let reader: &mut Reader<'_> = &mut |_, _| Err("there is none".into());
    let image = weft_rl::translate("facts.rl", SCRIPT, None, reader).image;
    let image = image.expect("the script is right");
    let expected = Expected { nodes: None, keeps_rules: |_| true };
    let program = verify(&image, &expected).expect("it was translated");
    let mut picture = Picture::<64, 256>::default();
    let (tasks, nodes) = bytes.split_at(bytes.len().min(24));
    for (fact, said) in picture.tasks[1..4].iter_mut().zip(tasks.chunks_exact(8)) {
        let states = [
            TaskState::Waiting,
            TaskState::Running,
            TaskState::Killed,
            TaskState::Isolated,
            TaskState::Finished,
        ];
        fact.state = states[usize::from(said[0]) % states.len()];
        // A node may say that more are answered than there were.
        (fact.errors, fact.answered) = (u32::from(said[1]) << (said[2] % 25), said[3].into());
        (fact.alpha, fact.phase) = (u16::from(said[4]) << 8, said[5].into());
        (fact.starts, fact.restarts) = (said[6].into(), (said[6] / 2).into());
        fact.has_fired = said[7] % 2 == 1;
    }
    for (fact, said) in picture.nodes.iter_mut().zip(nodes) {
        (fact.is_member, fact.is_removed) = (said & 1 != 0, said & 2 != 0);
        (fact.is_isolated, fact.has_rebooted) = (said & 4 != 0, said & 8 != 0);
    }
    assert_eq!(evaluated(&program, &picture), evaluated(&program, &picture));
}
