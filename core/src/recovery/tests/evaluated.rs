//! What evaluations give.

use super::*;
use crate::time::Duration;

const ANY_FAULTY: Instruction = test(Status::Faulty, Subject::Any(Kind::Task));

fn act(verb: Verb, target: Target) -> Instruction {
    Instruction::Act { verb, target }
}

fn orders(guard: &[Instruction], actions: &[Instruction], facts: &Facts) -> Vec<Order> {
    run(&mut Rint::default(), &image(&section(guard, actions)), facts).0
}

fn task(task: u8, verb: Verb, mark: u32) -> Order {
    Order::Task { task, verb, mark }
}

#[test]
fn rl3_an_order_names_the_errors_that_it_answers() {
    let given = orders(&[ANY_FAULTY], &[act(Verb::Restart, Target::Set(0))], &facts());
    assert_eq!(given, [task(3, Verb::Restart, 2)]);
}

/// A spare that starts because a node is lost has no errors that a mark could count.
#[test]
fn rl3_no_two_orders_share_an_identity() {
    let end = ENTRY + 6;
    let rest = [
        act(Verb::Start, Target::One(T4)),
        Instruction::Pause { ms: 2, end },
        act(Verb::Start, Target::One(T4)),
    ];
    let image = image(&section(&[ANY_FAULTY], &rest));
    let program = verify(&image, &ANY_CLUSTER).unwrap();
    let mut rint = Rint::<4, 8>::default();
    let mut given: Vec<Placed> = Vec::new();
    for term in [Term::of_epoch(1), Term::of_epoch(1), Term::of_epoch(2)] {
        rint.evaluate(&program, &facts(), term, Instant(0)).unwrap();
        rint.step(&program, u16::MAX).unwrap();
        given.extend(core::iter::from_fn(|| rint.poll_order()));
    }
    assert_eq!(rint.resume(&program, &facts(), Instant(2_000_000)), Ok(true));
    rint.step(&program, u16::MAX).unwrap();
    given.extend(core::iter::from_fn(|| rint.poll_order()));

    // START and what DEFAULT does for the faulty task, three times, and the list behind the PAUSE.
    assert_eq!(given.len(), 7);
    assert_eq!(given[2].order, given[6].order);
    assert!(given.is_sorted_by(|one, next| one.id < next.id), "{given:?}");
}

#[test]
fn rl4_what_no_section_answers_gets_default() {
    let stop = act(Verb::Stop, Target::Rest(0));
    let given = orders(&[ANY_FAULTY], &[stop], &facts());
    let left = Order::Builtin { task: 3, mark: 2 };
    assert_eq!(given, [task(4, Verb::Stop, 0), task(5, Verb::Stop, 0), left]);
}

#[test]
fn rl4_the_first_order_of_an_entity_stands() {
    let both = [act(Verb::Stop, Target::One(T3)), act(Verb::Restart, Target::One(G1))];
    let code = image(&section(&[ANY_FAULTY], &both));
    let (given, trace) = run(&mut Rint::default(), &code, &facts());
    assert_eq!(given, [task(3, Verb::Stop, 2), task(4, Verb::Restart, 0)]);
    assert_eq!((trace.superseded, trace.orders), (1, 2));
    assert_eq!(trace.held[..], [1]);
}

#[test]
fn l4_the_complement_of_a_group_stays_within_it() {
    let of_group = test(Status::Faulty, Subject::One(G1));
    let given = orders(&[of_group], &[act(Verb::Stop, Target::Rest(0))], &facts());
    assert_eq!(given[0], task(4, Verb::Stop, 0));
    assert_eq!(given.len(), 2);
}

#[test]
fn an_atom_leads_to_the_entities_above_it() {
    let up = [act(Verb::Release, Target::Nodes(0)), act(Verb::Stop, Target::Groups(0))];
    let given = orders(&[ANY_FAULTY], &up, &facts());
    let node = Order::Node { node: 1, verb: Verb::Release };
    assert_eq!(given, [node, task(3, Verb::Stop, 2), task(4, Verb::Stop, 0)]);
}

/// Otherwise the error would have the node ordered again once it is back.
#[test]
fn rl4_an_order_about_a_node_answers_the_errors_of_its_tasks() {
    let restart = act(Verb::Restart, Target::One(N1));
    let given = orders(&[ANY_FAULTY], &[restart, restart], &facts());
    let node = Order::Node { node: 1, verb: Verb::Restart };
    assert_eq!(given, [node, Order::Answer { task: 3, mark: 2 }]);
    // What has answered them before is enough.
    let purge = Instruction::Purge(Target::One(T3));
    let given = orders(&[ANY_FAULTY], &[purge, restart], &facts());
    assert_eq!(given, [Order::Answer { task: 3, mark: 2 }, node]);
}

#[test]
fn rl6_an_order_about_the_managers_own_node_is_refused() {
    let mut facts = facts();
    facts.manager = 1;
    let code = image(&section(&[ANY_FAULTY], &[act(Verb::Restart, Target::One(N1))]));
    let (given, trace) = run(&mut Rint::default(), &code, &facts);
    assert_eq!(given, [Order::Builtin { task: 3, mark: 2 }]);
    assert_eq!(trace.refused, 1);
}

#[test]
fn rl8_one_order_too_many_ends_the_evaluation() {
    let log = Instruction::Log { text: 0, values: 0 };
    let code = image(&section(&[ANY_FAULTY], &[log; 65]));
    let (given, trace) = run(&mut Rint::default(), &code, &facts());
    assert_eq!(trace.outcome, Outcome::TooManyOrders);
    assert_eq!(given.len(), ORDERS_MAX + 1);
    assert_eq!(given[ORDERS_MAX], Order::Builtin { task: 3, mark: 2 });
}

#[test]
fn l19_a_division_by_zero_ends_the_section_false() {
    let guard = [Instruction::Push(1), Instruction::Push(0), Instruction::Div];
    let code = image(&section(&guard, &[act(Verb::Stop, Target::One(T4))]));
    let (given, trace) = run(&mut Rint::default(), &code, &facts());
    assert_eq!(given, [Order::Builtin { task: 3, mark: 2 }]);
    assert_eq!((trace.faults, trace.held.len(), trace.steps), (1, 0, 4));
}

#[test]
fn l2_a_comparison_has_its_left_side_left() {
    let fact = Fact { name: FactName::ErrorCount, of: G1 };
    let guard = |comparison| {
        [Instruction::Load(fact), Instruction::Push(1), Instruction::Compare(comparison)]
    };
    let purge = [Instruction::Purge(Target::One(T3))];
    let answer = Order::Answer { task: 3, mark: 2 };
    assert_eq!(orders(&guard(Comparison::Greater), &purge, &facts()), [answer]);
    let left = Order::Builtin { task: 3, mark: 2 };
    assert_eq!(orders(&guard(Comparison::Less), &purge, &facts()), [left]);
}

#[test]
fn transient_is_faulty_below_the_threshold() {
    let guard = [test(Status::Transient, Subject::One(T3))];
    let clear = [Instruction::Clear(Target::One(T3))];
    let mut facts = facts();
    assert_eq!(orders(&guard, &clear, &facts), [Order::Clear { task: 3, mark: 2 }]);
    facts.tasks[3].alpha = 768;
    assert_eq!(orders(&guard, &clear, &facts), [Order::Builtin { task: 3, mark: 2 }]);
}

#[test]
fn a_pause_runs_the_rest_later_in_the_same_term_alone() {
    let end = ENTRY + 6;
    let rest = [
        act(Verb::Stop, Target::Set(0)),
        Instruction::Pause { ms: 2, end },
        act(Verb::Start, Target::One(T4)),
    ];
    let image = image(&section(&[ANY_FAULTY], &rest));
    let program = verify(&image, &ANY_CLUSTER).unwrap();
    let mut rint = Rint::default();
    assert_eq!(run(&mut rint, &image, &facts()).0, [task(3, Verb::Stop, 2)]);
    let due = Instant(2_000_000);
    assert_eq!(rint.poll_timeout(), Some(due));
    assert_eq!(rint.resume(&program, &facts(), Instant(1_999_999)), Ok(false));
    let mut other = rint.clone();
    assert_eq!(rint.resume(&program, &facts(), due), Ok(true));
    assert_eq!(finish(&mut rint, &program).0, [task(4, Verb::Start, 0)]);
    assert_eq!(rint.poll_timeout(), None);
    let dropped = (0..=PAUSES_MAX).map(|_| run(&mut rint, &image, &facts()).1.dropped);
    assert_eq!(dropped.sum::<u16>(), 1, "there is no room for one more");

    other.evaluate(&program, &Facts::default(), Term::of_epoch(2), due).unwrap();
    assert_eq!(finish(&mut other, &program).0, []);
    assert_eq!(other.poll_timeout(), None);
}

#[test]
fn an_evaluation_goes_on_where_its_budget_ended() {
    let image = image(&section(&[ANY_FAULTY], &[act(Verb::Restart, Target::Set(0))]));
    let program = verify(&image, &ANY_CLUSTER).unwrap();
    let mut rint = Rint::<4, 8>::default();
    assert_eq!(rint.step(&program, 1), Err(RintError::Idle));
    rint.evaluate(&program, &facts(), Term::of_epoch(1), Instant(0)).unwrap();
    assert_eq!(
        rint.evaluate(&program, &facts(), Term::of_epoch(1), Instant(0)),
        Err(RintError::Busy)
    );
    let steps = (0..9).take_while(|_| rint.step(&program, 1) == Ok(Progress::More)).count();
    assert_eq!(steps, 4);
    assert_eq!(rint.poll_order().unwrap().order, task(3, Verb::Restart, 2));
    let placed = rint.poll_order();
    assert_eq!(placed, None);
}

#[test]
fn a_program_beyond_the_interpreter_is_refused() {
    let image = image(&[Instruction::End]);
    let program = verify(&image, &ANY_CLUSTER).unwrap();
    let mut small = Rint::<4, 4>::default();
    let picture = Picture::default();
    let refused = small.evaluate(&program, &picture, Term::of_epoch(1), Instant(0));
    assert_eq!(refused, Err(RintError::TooLarge));
}

#[test]
fn a_pause_ends_as_early_when_the_origin_of_time_moves() {
    let end = ENTRY + 5;
    let rest = [Instruction::Pause { ms: 2_000, end }, act(Verb::Start, Target::One(T4))];
    let image = image(&section(&[ANY_FAULTY], &rest));
    let program = verify(&image, &ANY_CLUSTER).unwrap();
    let mut evaluator = Evaluator::<4, 8>::new(Term::of_epoch(1));
    let now = Instant(5_000_000);
    assert!(evaluator.handle_picture(&program, &facts(), now).unwrap().is_some());
    assert_eq!(evaluator.poll_task_order(now, |_, _| true), None);
    assert_eq!(evaluator.poll_timeout(), Some(Instant(2_005_000_000)));
    evaluator.rebase(Duration(5_000_000));
    assert_eq!(evaluator.poll_timeout(), Some(Instant(2_000_000_000)));
}
