//! A recovery script with nothing below it: its image is verified and evaluated.

use core::hint::black_box as opaque;

use weft_core::ids::Term;
use weft_core::recovery::{
    Depth, Expected, Header, Instruction, Kind, Order, Picture, Progress, Rint, Role, Status,
    Subject, Target, Verb, Word, verify,
};
use weft_core::time::Instant;

use crate::voting::sealed;

/// `IF [ FAULTY T* ] THEN RESTART @1 FI`, for one node and its task 3.
const SCRIPT: [Instruction; 8] = [
    Instruction::Role { node: 0, role: Role::Manager },
    Instruction::Task { task: 3, node: 0, index: 0, name: 0 },
    Instruction::Code,
    Instruction::Section { number: 1, depth: Depth::Top, end: 7 },
    Instruction::Test { status: Status::Faulty, of: Subject::Any(Kind::Task), set: Some(0) },
    Instruction::JumpIfFalse(7),
    Instruction::Act { verb: Verb::Restart, target: Target::Set(0) },
    Instruction::End,
];
const POOL: &[u8] = b"\x06camera";
const LEN: usize = Header::LEN + SCRIPT.len() * Word::LEN + POOL.len();

/// Whether the image is accepted and orders what it says, and a damaged one is refused.
pub(crate) fn is_right() -> bool {
    let expected = Expected { nodes: Some(1), keeps_rules: |_| true };
    let header = Header { tasks: 1, nodes: 1, ..Header::default() };
    let mut image: [u8; LEN] = opaque(sealed(header, &SCRIPT, POOL));
    let is_ordered = verify(&image, &expected).is_ok_and(|program| {
        let mut picture = Picture::<1, 4>::default();
        picture.tasks[3].errors = 2;
        let mut rint = Rint::<1, 4>::default();
        let begun = rint.evaluate(&program, &picture, Term::of_epoch(1), Instant(0));
        let ended = rint.step(&program, u16::MAX);
        let order = rint.poll_order().map(|placed| placed.order);
        let restart = Order::Task { task: 3, verb: Verb::Restart, mark: 2 };
        let is_last = rint.poll_order().is_none();
        begun.is_ok() && matches!(ended, Ok(Progress::Done(_))) && order == Some(restart) && is_last
    });
    image[LEN - 1] ^= opaque(1);
    is_ordered && verify(&image, &expected).is_err()
}
