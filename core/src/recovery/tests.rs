//! Images by hand, each word by its meaning; verified, refused, damaged and run.

mod damaged;
mod evaluated;
#[cfg(feature = "mutants")]
mod planted;
mod refused;
mod voted;

use std::vec;
use std::vec::Vec;

use super::*;
use crate::ids::Term;
use crate::time::Instant;

pub(super) const ANY_CLUSTER: Expected = Expected { nodes: None, keeps_rules: |_| true };

pub(super) type Facts = Picture<4, 8>;

pub(super) const T3: Entity = Entity { kind: Kind::Task, id: 3 };
pub(super) const T4: Entity = Entity { kind: Kind::Task, id: 4 };
pub(super) const G1: Entity = Entity { kind: Kind::Group, id: 1 };
pub(super) const N1: Entity = Entity { kind: Kind::Node, id: 1 };

/// The word behind CODE in what [`image`] makes.
pub(super) const ENTRY: u16 = 12;

/// Three nodes; tasks 3 and 4 on nodes 1 and 2 are group 1, task 5 is on node 0.
pub(super) fn declarations() -> Vec<Instruction> {
    vec![
        Instruction::Role { node: 0, role: Role::Manager },
        Instruction::Role { node: 1, role: Role::Backup },
        Instruction::Role { node: 2, role: Role::Agent },
        Instruction::Task { task: 3, node: 1, index: 0, name: 0 },
        Instruction::Task { task: 4, node: 2, index: 0, name: 0 },
        Instruction::Task { task: 5, node: 0, index: 0, name: 0 },
        Instruction::Group { group: 1, name: 0 },
        Instruction::Member { group: 1, task: 3 },
        Instruction::Member { group: 1, task: 4 },
        Instruction::Alpha { task: 3, threshold: 768, factor: 128 },
        Instruction::AlphaPeriod { task: 3, ms: 1_000 },
        Instruction::Code,
    ]
}

pub(super) fn header() -> Header {
    Header { tasks: 3, nodes: 3, groups: 1, ..Header::default() }
}

/// Words behind `header`, with the pool `"camera"`.
pub(super) fn sealed(header: Header, words: &[Instruction]) -> Vec<u8> {
    let pool = b"\x06camera";
    let header = Header { words: words.len() as u16, pool_len: pool.len() as u16, ..header };
    let mut image = header.to_bytes().to_vec();
    words.iter().for_each(|word| image.extend(word.encode().to_bytes()));
    image.extend(pool);
    seal(&mut image);
    image
}

/// `code` behind the usual declarations.
pub(super) fn image(code: &[Instruction]) -> Vec<u8> {
    let words = declarations().into_iter().chain(code.iter().copied());
    sealed(header(), &words.collect::<Vec<_>>())
}

/// `if [guard] then actions`, as the only section.
pub(super) fn section(guard: &[Instruction], actions: &[Instruction]) -> Vec<Instruction> {
    let end = ENTRY + (guard.len() + actions.len() + 2) as u16;
    let mut code = vec![Instruction::Section { number: 1, depth: Depth::Top, end }];
    code.extend(guard);
    code.push(Instruction::JumpIfFalse(end));
    code.extend(actions);
    code.push(Instruction::End);
    code
}

pub(super) const fn test(status: Status, of: Subject) -> Instruction {
    Instruction::Test { status, of, set: Some(0) }
}

/// All of three nodes are members, tasks 3 to 5 run, and task 3 has an unanswered error.
pub(super) fn facts() -> Facts {
    let mut facts = Facts::default();
    facts.nodes[..3].fill(NodeFact { is_member: true, ..NodeFact::default() });
    for task in 3..=5 {
        facts.tasks[task] = TaskFact { state: TaskState::Running, starts: 1, ..facts.tasks[task] };
    }
    facts.tasks[3] =
        TaskFact { errors: 2, answered: 1, error_kind: 7, alpha: 300, ..facts.tasks[3] };
    facts
}

/// The orders of one evaluation of `image`, and its trace.
pub(super) fn run(rint: &mut Rint<4, 8>, image: &[u8], facts: &Facts) -> (Vec<Order>, Trace) {
    let program = verify(image, &ANY_CLUSTER).unwrap();
    rint.evaluate(&program, facts, Term::of_epoch(1), Instant(0)).unwrap();
    finish(rint, &program)
}

pub(super) fn finish(rint: &mut Rint<4, 8>, program: &Program<'_>) -> (Vec<Order>, Trace) {
    let Progress::Done(trace) = rint.step(program, u16::MAX).unwrap() else { panic!("not over") };
    let orders = core::iter::from_fn(|| rint.poll_order()).map(|placed| placed.order).collect();
    (orders, trace)
}
