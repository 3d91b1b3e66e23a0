//! Images that are damaged: the checksum refuses them, and where it was made right again, what is
//! accepted ends within its bound.

use proptest::prelude::*;

use super::*;

fn whole() -> Vec<u8> {
    let end = ENTRY + 14;
    let list = end - 1;
    image(&[
        Instruction::Section { number: 1, depth: Depth::Top, end },
        Instruction::Test { status: Status::Faulty, of: Subject::Any(Kind::Task), set: Some(0) },
        Instruction::Load(Fact { name: FactName::Variable, of: T3 }),
        Instruction::Push(3),
        Instruction::Compare(Comparison::Less),
        Instruction::And,
        Instruction::JumpIfFalse(end),
        Instruction::Act { verb: Verb::Restart, target: Target::Set(0) },
        Instruction::ActWarn(Target::One(T4)),
        Instruction::Push(2),
        Instruction::Send(Target::One(G1)),
        Instruction::Pause { ms: 3, end: list },
        Instruction::Log { text: 0, values: 0 },
        Instruction::Warn(Target::One(N1)),
        Instruction::End,
    ])
}

/// Runs what is accepted of `image`; each step and each order has its bound.
fn run_if_accepted(image: &[u8]) {
    let Ok(program) = verify(image, &ANY_CLUSTER) else { return };
    let words = program.code().header().words;
    let mut rint = Rint::<64, 256>::default();
    let mut picture = Picture::default();
    picture.tasks[3].errors = 1;
    rint.evaluate(&program, &picture, Term::of_epoch(1), Instant(0)).unwrap();
    loop {
        let Progress::Done(trace) = rint.step(&program, words).unwrap() else {
            panic!("more steps than words")
        };
        assert!(trace.steps <= words);
        let orders = core::iter::from_fn(|| rint.poll_order()).count();
        assert!(orders <= ORDERS_MAX + program.tasks().len());
        if !rint.resume(&program, &picture, Instant(u64::MAX)).unwrap() {
            break;
        }
    }
}

#[test]
fn each_byte_that_is_flipped_and_each_truncation_is_refused() {
    let image = whole();
    run_if_accepted(&image);
    assert!(verify(&image, &ANY_CLUSTER).is_ok());
    for at in 0..image.len() {
        let mut damaged = image.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(verify(&damaged, &ANY_CLUSTER).is_err(), "byte {at}");
        assert!(verify(&image[..at], &ANY_CLUSTER).is_err(), "{at} bytes");
    }
}

proptest! {
    #[test]
    fn what_is_accepted_ends_within_its_bound(
        changes in proptest::collection::vec((0_usize..400, any::<u8>()), 1..4),
    ) {
        let mut image = whole();
        for (at, byte) in changes {
            let at = Header::LEN + at % (image.len() - Header::LEN);
            image[at] = byte;
        }
        seal(&mut image);
        run_if_accepted(&image);
    }

    #[test]
    fn words_in_any_order_are_refused_or_run(
        picks in proptest::collection::vec(0_usize..15, 0..40),
    ) {
        let whole = whole();
        let program = verify(&whole, &ANY_CLUSTER).unwrap();
        let at = |pick: usize| program.instruction(ENTRY + pick as u16).unwrap();
        run_if_accepted(&image(&picks.into_iter().map(at).collect::<Vec<_>>()));
    }

    #[test]
    fn any_bytes_are_refused_or_run(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        run_if_accepted(&bytes);
    }
}
