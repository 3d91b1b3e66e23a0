//! F-1: work posted to one peer takes effect in posting order.

use crate::fabric::{CompletionFlags, Fabric, Memory, Op};

use super::regions::{A, B, LOCAL, WORDS, at};
use super::trial::Trial;
use super::{BATCH, Harness};

const ROUNDS: u64 = 20;

/// Writes and atomics on one word see each other as they were posted, none waited for.
pub fn f1_work_takes_effect_in_posting_order<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-1");
    let word = at(WORDS, 8);
    for base in (0..ROUNDS).map(|round| 1000 * round + 7) {
        let (first, second) = (base.to_le_bytes(), (base + 100).to_le_bytes());
        let works = [
            Op::Write { to: word, bytes: &first },
            Op::FetchAdd { at: word, add: 1 },
            Op::CompareSwap { at: word, expected: base + 1, new: base + 2 },
            Op::Write { to: word, bytes: &second },
            Op::FetchAdd { at: word, add: 1 },
        ]
        .map(|op| trial.post(A, B, op));
        let seen = trial.outcomes(A, works);
        let want = [0, base, base + 1, 0, base + 100].map(|old| Some(Ok(old)));
        trial.same("old values of write, add, swap, write, add", seen, want);
        let left = trial.at(B).memory().load(WORDS, word.offset);
        trial.same("the word after all of them", left, base + 101);
    }
    trial.end();
}

/// A work that may be answered at once comes behind those that were posted before it.
pub fn f1_an_answer_comes_behind_what_was_posted<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-1");
    let word = at(WORDS, 8);
    for base in (0..ROUNDS).map(|round| 1000 * round + 7) {
        let first = trial.post(A, B, Op::Write { to: word, bytes: &base.to_le_bytes() });
        let answer = trial.run_now(A, B, Op::FetchAdd { at: word, add: 1 });
        trial.same("what an add behind a write sees", answer, Ok(base));
        let left = trial.at(B).memory().load(WORDS, word.offset);
        trial.same("the word after both", left, base + 1);
        trial.settle(A, |done| assert_eq!(done.serial, first, "F-1: the write alone is open"));
    }
    trial.end();
}

/// Of many writes to one word, the last stays, and an atomic behind them sees it.
pub fn f1_the_last_of_many_writes_stays<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-1");
    let word = at(WORDS, 0);
    for round in 1..=ROUNDS {
        for step in 1..BATCH as u64 {
            let value = round << 32 | step;
            trial.post(A, B, Op::Write { to: word, bytes: &value.to_le_bytes() });
        }
        let last = round << 32 | (BATCH as u64 - 1);
        let seen = trial.run(A, B, Op::FetchAdd { at: word, add: 0 });
        trial.same("what an add behind the writes sees", seen, Ok(last));
        let left = trial.at(B).memory().load(WORDS, 0);
        trial.same("the word after the writes", left, last);
    }
    trial.end();
}

/// A read sees the write posted before it, and not the one posted behind it.
pub fn f1_a_read_comes_between_the_writes_around_it<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-1");
    let word = at(WORDS, 16);
    for round in 1..=ROUNDS {
        let read = |offset| Op::Read { from: word, into: at(LOCAL, offset), len: 8 };
        let values = [3 * round, 3 * round + 1, 3 * round + 2];
        for (offset, value) in (0..).step_by(8).zip(values) {
            trial.post(A, B, Op::Write { to: word, bytes: &value.to_le_bytes() });
            trial.post(A, B, read(offset));
        }
        trial.settle(A, |_| ());
        let memory = trial.at(A).memory();
        let seen = [0, 8, 16].map(|offset| memory.load(LOCAL, offset));
        trial.same("what the reads saw", seen, values);
    }
    trial.end();
}

/// Writes apart keep their order behind earlier writes, and later work keeps its order behind them
/// and behind the reads and atomics that they may pass.
pub fn f1_a_write_apart_passes_only_reads_and_atomics<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-1");
    // An atomic that a write passes could bring back the old value of the same word (F-4).
    let (word, count) = (at(WORDS, 24), at(WORDS, 32));
    trial.at(B).memory().store(WORDS, count.offset, 1);
    for round in 1..=ROUNDS {
        // They differ in one byte, so that a read between two of them cannot be torn (F-3).
        let [first, second, third, last] = [0, 1, 2, 7].map(|step| (round << 8) + step);
        let read = |offset| Op::Read { from: word, into: at(LOCAL, offset), len: 8 };
        let apart = CompletionFlags::APART;
        trial.post(A, B, Op::Write { to: word, bytes: &first.to_le_bytes() });
        let passed = trial.post(A, B, Op::FetchAdd { at: count, add: 1 });
        trial.post(A, B, read(0));
        for (value, flags) in [(second, apart), (third, apart | CompletionFlags::QUIET)] {
            trial.post_with(A, B, Op::Write { to: word, bytes: &value.to_le_bytes() }, flags);
        }
        trial.post(A, B, read(8));
        let behind = trial.post(A, B, Op::FetchAdd { at: word, add: 1 });
        trial.post(A, B, Op::Write { to: word, bytes: &last.to_le_bytes() });
        let old_values = trial.outcomes(A, [passed, behind]);
        trial.same("old values of both adds", old_values, [round, third].map(|old| Some(Ok(old))));
        let [before, seen] = [0, 8].map(|offset| trial.at(A).memory().load(LOCAL, offset));
        trial.same("whether a read saw later work", (first..=third).contains(&before), true);
        trial.same("what a read behind the writes apart saw", seen, third);
        let left = trial.at(B).memory().load(WORDS, word.offset);
        trial.same("the word after all of them", left, last);
    }
    trial.end();
}
