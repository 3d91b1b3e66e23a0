//! A round of N-version voting with nothing below it: two nodes vote, the manager declares the
//! outcome final, and both act on it once.
//!
//! ```text
//!   node 0, manages: version 1 votes 41 ─┐
//!   node 1:          version 2 votes 44 ─┴─▶ OUTCOME, VOTED, OUTCOME final ─▶ 41, within 5
//! ```

use core::hint::black_box as opaque;

use weft_core::ids::{Incarnation, Term};
use weft_core::recovery::{
    Algorithm, Expected, Header, Instruction, Program, Role, VoteMember, Voter, Voting, VotingSeat,
    Word, seal, verify,
};
use weft_core::time::Instant;
use weft_core::vote::{BallotKind, VoteOutcome};

/// An N-version task whose versions are the tasks 3 and 4.
const SCRIPT: [Instruction; 10] = [
    Instruction::Role { node: 0, role: Role::Manager },
    Instruction::Role { node: 1, role: Role::Backup },
    Instruction::Task { task: 3, node: 0, index: 0, name: 0 },
    Instruction::Task { task: 4, node: 1, index: 0, name: 6 },
    Instruction::Voting { number: 1, algorithm: Algorithm::Majority },
    Instruction::Within { number: 1, distance: 5 },
    Instruction::Version { number: 1, task: 3, us: 50_000 },
    Instruction::Version { number: 1, task: 4, us: 50_000 },
    Instruction::Code,
    Instruction::End,
];
const POOL: &[u8] = b"\x05north\x05south";
const LEN: usize = Header::LEN + SCRIPT.len() * Word::LEN + POOL.len();
/// Milliseconds that the round may take: the first question finds a node that is in no term, and is
/// asked again.
const TIME: u64 = 300;
const BOOT: Incarnation = Incarnation(1);

/// The image of `code` with that header, which lacks its lengths, and that pool. It fits.
pub(crate) fn sealed<const LEN: usize>(
    header: Header,
    code: &[Instruction],
    pool: &[u8],
) -> [u8; LEN] {
    let (words, pool_len) = (code.len() as u16, pool.len() as u16);
    let header = Header { words, pool_len, ..header };
    let words = code.iter().flat_map(|word| word.encode().to_bytes());
    let bytes = header.to_bytes().into_iter().chain(words).chain(pool.iter().copied());
    let mut image = [0; LEN];
    image.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    seal(&mut image);
    image
}

/// A node, and what it has acted on.
struct Node {
    voting: Voting,
    acted: [Option<VoteOutcome>; 2],
}

impl Node {
    fn new(me: u8) -> Self {
        Self { voting: Voting::new(me, Voter::default()), acted: [None; 2] }
    }

    fn act(&mut self) {
        let [first, second] = &mut self.acted;
        let next = if first.is_none() { first } else { second };
        *next = self.voting.poll_closed().or(*next);
    }
}

/// Whether both nodes learn the outcome, and act on it once.
pub(crate) fn is_right() -> bool {
    let header = Header { tasks: 2, nodes: 2, nversions: 1, ..Header::default() };
    let image: [u8; LEN] = opaque(sealed(header, &SCRIPT, POOL));
    let expected = Expected { nodes: Some(2), keeps_rules: |_| true };
    verify(&image, &expected).is_ok_and(|program| {
        let [mut zero, mut one] = [Node::new(0), Node::new(1)];
        let number = |value| (BallotKind::Number, opaque(value));
        let are_cast = zero.voting.cast(&program, opaque(3), opaque(1), number(41)).is_ok()
            && one.voting.cast(&program, opaque(4), opaque(1), number(44)).is_ok();
        for ms in 1..=TIME {
            let now = Instant(opaque(ms * 1_000_000));
            step(&program, &mut zero, &mut one, (0, now));
            step(&program, &mut one, &mut zero, (1, now));
        }
        let is_kept = Voter::restore(&opaque(one.voting.voter().save(BOOT)), BOOT).is_some();
        are_cast && is_kept && is_final(&zero) && is_final(&one)
    })
}

/// Lets `node`, which is number `me`, do what is due, and `other` hear of it.
fn step(program: &Program<'_>, node: &mut Node, other: &mut Node, (me, now): (u8, Instant)) {
    let member = |node| VoteMember { node, incarnation: 1 };
    let seat = VotingSeat { term: Term::of_epoch(opaque(1)), manager: 0, is_acting: me == 0 };
    node.voting.step(program, seat, [member(0), member(1)].into_iter(), now);
    node.act();
    while let Some((_, message)) = node.voting.poll_message(now) {
        other.voting.handle_message(program, member(me), &opaque(message));
        other.act();
    }
}

fn is_final(node: &Node) -> bool {
    let is_it = |it: &VoteOutcome| it.is_final && (it.agreed, it.value) == (0b11, 41);
    node.acted[0].as_ref().is_some_and(is_it) && node.acted[1].is_none()
}
