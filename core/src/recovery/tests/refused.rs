//! What the verifier refuses, each with its reason and the word that shows it.

use super::*;

fn reason(image: &[u8]) -> (Reason, u16) {
    let Rejected { word, reason } = verify(image, &ANY_CLUSTER).expect_err("it is refused");
    (reason, word)
}

fn code(code: &[Instruction]) -> (Reason, u16) {
    let (reason, word) = reason(&image(code));
    (reason, word.saturating_sub(ENTRY))
}

fn declared(change: impl FnOnce(&mut Vec<Instruction>)) -> Reason {
    let mut words = declarations();
    change(&mut words);
    words.push(Instruction::End);
    reason(&sealed(header(), &words)).0
}

const FAULTY: Instruction = test(Status::Faulty, Subject::Any(Kind::Task));

fn act(verb: Verb, target: Target) -> Instruction {
    Instruction::Act { verb, target }
}

#[test]
fn an_empty_script_is_accepted() {
    let image = image(&[Instruction::End]);
    let program = verify(&image, &ANY_CLUSTER).unwrap();
    assert_eq!(program.place_of(3), Some((1, 0)));
    assert_eq!(program.name_of(4), Some("camera"));
    assert_eq!(program.members(1).len(), 2);
    assert_eq!(program.role(0), Some(Role::Manager));
}

#[test]
fn an_image_of_another_cluster_or_timing_is_refused() {
    let image = image(&[Instruction::End]);
    let check = |expected: Expected| verify(&image, &expected).map(|_| ()).unwrap_err().reason;
    assert_eq!(check(Expected { nodes: Some(4), ..ANY_CLUSTER }), Reason::OtherCluster);
    assert_eq!(check(Expected { keeps_rules: |_| false, ..ANY_CLUSTER }), Reason::Timing);
    let mut foreign = image.clone();
    foreign[0] ^= 1;
    seal(&mut foreign);
    assert_eq!(reason(&foreign).0, Reason::Magic);
}

#[test]
fn declarations_that_do_not_fit_are_refused() {
    let second = Instruction::Role { node: 1, role: Role::Manager };
    assert_eq!(declared(|words| words[1] = second), Reason::Roles);
    assert_eq!(declared(|words| words[0] = second), Reason::Twice);
    assert_eq!(
        declared(|words| {
            words.remove(0);
        }),
        Reason::Roles
    );
    assert_eq!(
        declared(|words| {
            words.remove(5);
        }),
        Reason::Counts
    );
    assert_eq!(declared(|words| words.swap(3, 7)), Reason::Undeclared);
    assert_eq!(declared(|words| words[4] = words[3]), Reason::Twice);
    assert_eq!(
        declared(|words| {
            words.remove(10);
        }),
        Reason::NoAlpha
    );
    assert_eq!(declared(|words| words[9] = Instruction::Not), Reason::OutOfPlace);
    let far = Instruction::Task { task: 4, node: 3, index: 0, name: 0 };
    assert_eq!(declared(|words| words[4] = far), Reason::Limit);
    let nameless = Instruction::Task { task: 4, node: 2, index: 0, name: 3 };
    assert_eq!(declared(|words| words[4] = nameless), Reason::Text);
    let missing = |words: &mut Vec<Instruction>| _ = words.remove(2);
    assert_eq!(declared(missing), Reason::Roles, "a node has none");
    let watchdog = |number, task| Instruction::Watchdog { number, task, us: 5_000 };
    for other in [watchdog(1, 4), watchdog(0, 3)] {
        let both = |words: &mut Vec<Instruction>| _ = words.splice(11..11, [watchdog(1, 3), other]);
        assert_eq!(declared(both), Reason::Twice);
    }
    let alone = Instruction::Version { number: 0, task: 3, us: 5 };
    assert_eq!(declared(|words| words.insert(11, alone)), Reason::Versions);
}

#[test]
fn code_that_could_fail_is_refused() {
    use Instruction::{Add, And, End, Jump, JumpIfFalse, Pause, Push, Store};
    let top = |end| Instruction::Section { number: 1, depth: Depth::Top, end: ENTRY + end };
    assert_eq!(code(&[top(2), Add, End]), (Reason::Stack, 1));
    assert_eq!(code(&[top(3), Push(1), FAULTY, End]), (Reason::Statement, 3));
    assert_eq!(code(&[top(3), FAULTY, JumpIfFalse(ENTRY + 1), End]), (Reason::Jump, 2));
    assert_eq!(code(&[top(3), FAULTY, JumpIfFalse(ENTRY + 4), End]), (Reason::Jump, 2));
    let join = [top(5), FAULTY, JumpIfFalse(ENTRY + 4), Push(1), Store(0), End];
    assert_eq!(code(&join), (Reason::JoinDepth, 4));
    assert_eq!(code(&[top(3), Jump(ENTRY + 3), Push(1), End]), (Reason::Unreachable, 2));
    assert_eq!(code(&[top(3), Push(1), Store(26), End]), (Reason::Variable, 2));
    assert_eq!(code(&[Push(1), End]), (Reason::Section, 0));
    assert_eq!(code(&[top(1), End, End]), (Reason::End, 1));
    assert_eq!(code(&[top(9), End]), (Reason::Section, 1));
    assert_eq!(code(&[]), (Reason::End, 0));
    assert_eq!(code(&[top(1), Instruction::Code]).0, Reason::OutOfPlace);
    let deep = [top(40)].into_iter().chain([Push(1); 33]).collect::<Vec<_>>();
    assert_eq!(code(&deep), (Reason::Stack, 33));
    assert_eq!(code(&[top(1), And]).0, Reason::Section);
    let behind = [top(3), Pause { ms: 5, end: ENTRY + 3 }, Jump(ENTRY + 3), End];
    assert_eq!(code(&behind), (Reason::Pause, 2));
}

#[test]
fn actions_on_what_they_cannot_change_are_refused() {
    let one = |status, of, action| code(&section(&[test(status, of)], &[action])).0;
    let any = |kind, action| one(Status::Faulty, Subject::Any(kind), action);
    let task = Subject::One(T3);
    assert_eq!(any(Kind::Node, act(Verb::Stop, Target::Set(0))), Reason::WrongKind);
    assert_eq!(any(Kind::Task, act(Verb::Stop, Target::Set(1))), Reason::Set);
    assert_eq!(any(Kind::Task, act(Verb::Stop, Target::Set(32))), Reason::Limit);
    assert_eq!(any(Kind::Node, act(Verb::Release, Target::Nodes(0))), Reason::Scope);
    assert_eq!(any(Kind::Group, act(Verb::Stop, Target::Groups(0))), Reason::Scope);
    assert_eq!(any(Kind::Node, Instruction::Clear(Target::Set(0))), Reason::WrongKind);
    assert_eq!(one(Status::Faulty, task, act(Verb::Stop, Target::Rest(0))), Reason::Scope);
    assert_eq!(one(Status::Fired, Subject::Any(Kind::Node), Instruction::End), Reason::WrongKind);
    let other = Entity { id: 6, ..T3 };
    assert_eq!(one(Status::Faulty, Subject::One(other), Instruction::End), Reason::Undeclared);
    assert_eq!(one(Status::Transient, Subject::One(T4), Instruction::End), Reason::NoAlpha);
    let pair = Instruction::ActWarn(Target::One(T3));
    assert_eq!(any(Kind::Task, pair), Reason::Statement);
}

#[test]
fn l5_a_set_ends_with_its_section() {
    let stop = act(Verb::Stop, Target::Set(0));
    let mut both = section(&[FAULTY], &[stop]);
    both.pop();
    let begin = both.len() as u16;
    let end = ENTRY + begin + 4;
    both.extend([
        Instruction::Section { number: 2, depth: Depth::Top, end },
        Instruction::Push(1),
        Instruction::JumpIfFalse(end),
        stop,
        Instruction::End,
    ]);
    assert_eq!(code(&both), (Reason::Set, begin + 3));
}

#[test]
fn every_meaning_has_one_form() {
    let of = Target::One(T3);
    for meant in [
        Instruction::Purge(of),
        Instruction::PurgeCount(of),
        Instruction::Warn(of),
        Instruction::WarnOf(of),
    ] {
        assert_eq!(Instruction::decode(meant.encode()), Some(meant));
    }
    for op in 0..=u8::MAX {
        for kind in [0, 1, 2, 5, 0x80, 0x81, 0xFF] {
            for (a, b) in [(0, 0), (1, 3), (0x0100, 1), (0xFF00, 0), (9, -1), (0, i32::MAX)] {
                let word = Word { op, kind, a, b };
                let meant = Instruction::decode(word);
                assert!(meant.is_none_or(|meant| meant.encode() == word), "{word:?}");
            }
        }
    }
}
