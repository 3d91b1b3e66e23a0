//! F-2: every accepted work completes exactly once. F-13: whatever its target is doing.

use crate::fabric::{CompletionFlags, Fabric, Failure, Memory, Op};

use super::regions::{A, B, C, EVERYONE, LOCAL, OPEN, READ_ONLY, WORDS, at};
use super::trial::Trial;
use super::{BATCH, Harness};

/// Every kind of work, to both peers and to oneself, at once: each completes one time, with its
/// name, its peer and its value, which is 0 for all but atomics.
pub fn f2_each_work_completes_once_under_its_name<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-2");
    for peer in EVERYONE {
        trial.at(peer).memory().store(WORDS, 0, 40);
    }
    let word = at(WORDS, 0);
    let ops = [
        Op::Write { to: at(OPEN, 0), bytes: b"write" },
        Op::WriteFrom { to: at(OPEN, 16), from: at(LOCAL, 0), len: 24 },
        Op::Read { from: at(OPEN, 64), into: at(LOCAL, 64), len: 24 },
        Op::FetchAdd { at: word, add: 2 },
        Op::CompareSwap { at: word, expected: 42, new: 40 },
    ];
    for flags in [CompletionFlags::empty(), CompletionFlags::WAKE].into_iter().cycle().take(10) {
        let works = EVERYONE.map(|to| ops.map(|op| trial.post_with(A, to, op, flags)));
        let mut ended = [[None; 5]; 3];
        trial.settle(A, |done| {
            let place = (done.serial - works[0][0]) as usize;
            ended[place / 5][place % 5] = Some(done.outcome);
        });
        trial.same("outcomes", ended, [[0, 0, 0, 40, 42].map(|old| Some(Ok(old))); 3]);
    }
    trial.end();
}

/// A work that is answered when it is posted has taken effect by then, and no completion comes for
/// it; one that is not has a completion.
pub fn f15_an_answer_is_the_completion<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-15");
    let word = at(WORDS, 0);
    for peer in EVERYONE {
        trial.at(peer).memory().store(WORDS, 0, 40);
        trial.at(A).memory().store(LOCAL, 0, 7);
        for (op, old, left) in [
            (Op::Write { to: word, bytes: &42_u64.to_le_bytes() }, 0, 42),
            (Op::FetchAdd { at: word, add: 2 }, 42, 44),
            (Op::CompareSwap { at: word, expected: 44, new: 46 }, 44, 46),
            (Op::Read { from: word, into: at(LOCAL, 8), len: 8 }, 0, 46),
            (Op::WriteFrom { to: word, from: at(LOCAL, 0), len: 8 }, 0, 7),
        ] {
            let answer = trial.run_now(A, peer, op);
            trial.same("the answer", answer, Ok(old));
            let now = trial.at(peer).memory().load(WORDS, 0);
            trial.same("the word once the work has ended", now, left);
        }
        let seen = trial.at(A).memory().load(LOCAL, 8);
        trial.same("what was read", seen, 46);
    }
    trial.is_silent(A);
    trial.end();
}

/// An add wraps, a swap that misses changes nothing, and all hand back what was there.
pub fn f2_an_atomic_hands_back_the_old_value<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-2");
    let word = at(WORDS, 24);
    for peer in EVERYONE {
        trial.at(peer).memory().store(WORDS, 24, u64::MAX - 1);
        for (op, old, left) in [
            (Op::FetchAdd { at: word, add: 3 }, u64::MAX - 1, 1),
            (Op::FetchAdd { at: word, add: u64::MAX }, 1, 0),
            (Op::CompareSwap { at: word, expected: 0, new: 1 << 63 }, 0, 1 << 63),
            (Op::CompareSwap { at: word, expected: 0, new: 5 }, 1 << 63, 1 << 63),
            (Op::FetchAdd { at: word, add: 0x0102_0304_0506_0708 }, 1 << 63, 0x8102_0304_0506_0708),
        ] {
            let seen = trial.run(B, peer, op);
            trial.same("the old value", seen, Ok(old));
            let now = trial.at(peer).memory().load(WORDS, 24);
            trial.same("the word afterwards", now, left);
        }
        let around = [16, 32].map(|offset| trial.at(peer).memory().load(WORDS, offset) == !0);
        trial.same("whether neighbours were overwritten", around, [false; 2]);
    }
    trial.end();
}

/// Quiet works that succeed have no completion, and a success behind them says that they are
/// done.
pub fn f2_quiet_success_is_silent_and_implied_by_the_next<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-2");
    let quiet = CompletionFlags::QUIET;
    for round in 1..=20_u64 {
        for place in 0..BATCH as u32 - 1 {
            let bytes = &(round << 32 | u64::from(place)).to_le_bytes();
            trial.post_with(A, C, Op::Write { to: at(OPEN, 8 * place), bytes }, quiet);
        }
        let end = trial.run(A, C, Op::Write { to: at(OPEN, 8 * BATCH as u32), bytes: b"end" });
        trial.same("the signalled work behind quiet ones", end, Ok(0));
        for place in 0..BATCH as u32 - 1 {
            let seen = trial.at(C).memory().load(OPEN, 8 * place);
            trial.same("what quiet work left", seen, round << 32 | u64::from(place));
        }
    }
    let atomic = Op::FetchAdd { at: at(WORDS, 0), add: 1 };
    trial.at(C).memory().store(WORDS, 0, 0);
    trial.post_with(A, C, atomic, quiet);
    let seen = trial.run(A, C, atomic);
    trial.same("what a signalled add behind a quiet one sees", seen, Ok(1));
    trial.end();
}

/// A quiet work that fails is reported; the quiet success before it is not.
pub fn f2_a_quiet_failure_is_loud<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-2");
    trial.at(B).memory().store(OPEN, 0, 0);
    let granted = Op::Write { to: at(OPEN, 0), bytes: &[1; 8] };
    let denied = Op::Write { to: at(READ_ONLY, 0), bytes: &[1; 8] };
    trial.post_with(A, B, granted, CompletionFlags::QUIET);
    let failing = trial.post_with(A, B, denied, CompletionFlags::QUIET);
    let mut outcome = None;
    trial.wait(A, "a quiet work failed and was not reported", |done| {
        outcome = Some((done.serial, done.outcome));
        true
    });
    trial.same("the one completion", outcome, Some((failing, Err(Failure::AccessDenied))));
    let seen = trial.at(B).memory().load(OPEN, 0);
    trial.same("what the quiet success before it left", seen, u64::from_le_bytes([1; 8]));
    trial.renew(A);
    trial.end();
}

/// F-13: a completion speaks of memory, so all peers reach one that was never polled.
pub fn f13_a_peer_that_never_polls_is_reached<H: Harness>(harness: &mut H) {
    const ADDS: u64 = 40;
    let mut trial = Trial::new(harness, "F-13");
    let word = at(WORDS, 0);
    trial.at(C).memory().store(WORDS, 0, 0);
    for _ in 0..ADDS / 2 {
        for poster in [A, B] {
            let added = trial.run(poster, C, Op::FetchAdd { at: word, add: 1 });
            trial.same("whether an add succeeded", added.is_ok(), true);
        }
    }
    let sum = trial.at(C).memory().load(WORDS, 0);
    trial.same("the sum at a peer that never polled", sum, ADDS);
    trial.end();
}
