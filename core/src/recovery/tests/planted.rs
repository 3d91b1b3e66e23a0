//! The planted bugs of the verifier and of PAUSE, each with what shows it. Those of the interpreter
//! are shown by the differential test of the translator. A process plants one at a time, so this is
//! one test, and it runs alone: `ci/mutants recovery`.

use super::*;
use crate::mutant::plant;

const FAULTY: Instruction = test(Status::Faulty, Subject::Any(Kind::Task));

const fn top(end: u16) -> Instruction {
    Instruction::Section { number: 1, depth: Depth::Top, end: ENTRY + end }
}

fn is_accepted(code: &[Instruction]) -> bool {
    verify(&image(code), &ANY_CLUSTER).is_ok()
}

/// Whether the interpreter came upon what no verified image has.
fn is_broken(code: &[Instruction]) -> bool {
    let image = image(code);
    let Ok(program) = verify(&image, &ANY_CLUSTER) else { return false };
    let mut rint = Rint::<4, 8>::default();
    rint.evaluate(&program, &Facts::default(), Term::of_epoch(1), Instant(0)).unwrap();
    rint.step(&program, u16::MAX) == Err(RintError::Broken)
}

fn keeps_a_stale_set() -> bool {
    let stop = Instruction::Act { verb: Verb::Stop, target: Target::Set(0) };
    let next = Instruction::Section { number: 2, depth: Depth::Top, end: ENTRY + 5 };
    is_accepted(&[top(3), FAULTY, Instruction::Store(0), next, stop, Instruction::End])
}

fn loops() -> bool {
    is_broken(&[
        top(3),
        Instruction::Push(0),
        Instruction::JumpIfFalse(ENTRY + 1),
        Instruction::End,
    ])
}

fn underflows() -> bool {
    let (jump, store) = (Instruction::JumpIfFalse(ENTRY + 4), Instruction::Store(0));
    is_broken(&[top(5), FAULTY, jump, Instruction::Push(1), store, Instruction::End])
}

/// Of two evaluations that pause, in two terms, both lists wait.
fn pauses_into_the_next_term() -> bool {
    let list = [Instruction::Pause { ms: 2, end: ENTRY + 4 }];
    let image = image(&section(&[Instruction::Push(1)], &list));
    let program = verify(&image, &ANY_CLUSTER).unwrap();
    let mut rint = Rint::default();
    let _begun = run(&mut rint, &image, &Facts::default());
    rint.evaluate(&program, &Facts::default(), Term::of_epoch(2), Instant(0)).unwrap();
    rint.poll_timeout().is_some()
}

const fn order(term: u32) -> OrderId {
    OrderId { term: Term::of_epoch(term), evaluation: 1, index: 0 }
}

/// Whether an order about one error is obeyed, and `next` about the same error once more.
fn obeys_twice(next: OrderId) -> bool {
    let mut answered = Answered::default();
    let orders = [order(1), next];
    orders.map(|id| answered.judge(id, 0, 1)) == [Judgement::Obey; 2]
}

fn loads_what_a_member_lacks() -> bool {
    let members =
        [HeldScript { node: 0, held: 7, used: 3 }, HeldScript { node: 1, held: 3, used: 3 }];
    Reload::new(7, Instant(0)).handle_members(Instant(0), members.into_iter()) == ReloadStep::Decide
}

/// The first order of the next script, after the one before was judged.
fn gives_an_order_that_counts_as_judged() -> bool {
    let restart = Instruction::Act { verb: Verb::Restart, target: Target::Set(0) };
    let image = image(&section(&[FAULTY], &[restart]));
    let program = verify(&image, &ANY_CLUSTER).unwrap();
    let mut evaluator = Evaluator::<4, 8>::new(Term::of_epoch(1));
    evaluator.handle_picture(&program, &facts(), Instant(0)).unwrap();
    let judged = evaluator.poll_task_order(Instant(0), |_, _| false).unwrap().placed.id;
    evaluator.replace_script();
    evaluator.handle_picture(&program, &facts(), Instant(10_000_000)).unwrap();
    evaluator.poll_task_order(Instant(10_000_000), |_, id| id <= judged).is_none()
}

/// The name of a planted bug, and what is true of it alone.
type Shown = (&'static str, fn() -> bool);

#[test]
fn every_planted_bug_is_noticed() {
    const SHOWN: &[Shown] = &[
        ("stale-set-accepted", keeps_a_stale_set),
        ("backward-jump-accepted", loops),
        ("join-depth-unchecked", underflows),
        ("pause-outlives-term", pauses_into_the_next_term),
        ("loaded-before-all-hold-it", loads_what_a_member_lacks),
        ("numbers-begin-again", gives_an_order_that_counts_as_judged),
        ("first-votes-decide", || !voted::waits_for_all_in_time()),
        ("outcomes-unasked", || !voted::next_manager_gives_no_other_outcome()),
        ("orders-are-repeated", || obeys_twice(order(1))),
        ("marks-are-ignored", || obeys_twice(order(2))),
    ];
    for &(name, shows) in SHOWN {
        let mutant = MUTANTS.iter().find(|mutant| mutant.name == name).unwrap();
        assert!(!shows(), "{name} is shown without being planted");
        plant(Some(mutant));
        let noticed = shows();
        plant(None);
        assert!(noticed, "{name} was not noticed");
        std::println!("{name}: noticed ({})", mutant.breaks);
    }
}
