//! F-14, where a fabric promises it: words appear at once, and the last one of a write last.
//!
//! Every word that is written holds its number twice, so a torn one is two numbers, and numbers
//! rise, so what lags behind the last word of a write is an earlier number.

use crate::fabric::{
    Completion, CompletionFlags, Fabric, INLINE_LEN, Memory, Op, Placement, Work, WorkId,
};
use crate::ids::Peer;
use crate::time::Instant;

use super::regions::{A, B, LOCAL, OPEN, READ_ONLY, at};
use super::trial::Trial;
use super::{BATCH, Harness, POLLS_MAX};

/// Where the words lie.
const OFFSET: u32 = 8;
/// How often each side takes its turn.
const TURNS: u32 = 4_000;

/// The word of this number.
const fn word(number: u32) -> u64 {
    number as u64 | (number as u64) << 32
}

/// The number in a word that is whole.
const fn whole(word: u64) -> Option<u32> {
    if word >> 32 == word & u32::MAX as u64 { Some(word as u32) } else { None }
}

/// Work of one kind, one at a time, each under the next number.
#[derive(Default)]
struct Turn {
    number: u32,
    is_open: bool,
    /// A work was not accepted, or has failed.
    has_failed: bool,
}

impl Turn {
    /// Polls for the work under way, or posts the next one; whether one has ended.
    fn take<F: Fabric>(&mut self, fabric: &mut F, peer: Peer, now: Instant, op: Op<'_>) -> bool {
        if self.is_open {
            return self.poll(fabric, now);
        }
        let (id, flags) = (WorkId(self.number.into()), CompletionFlags::empty());
        self.is_open = fabric.post(peer, Work { id, op, flags }).is_ok();
        self.has_failed |= !self.is_open;
        false
    }

    fn poll(&mut self, fabric: &mut impl Fabric, now: Instant) -> bool {
        let mut done = [Completion::NONE; BATCH];
        let found = fabric.poll(now, &mut done);
        let ended = done[..found].iter().find(|it| it.id == WorkId(self.number.into()));
        self.has_failed |= ended.is_some_and(|it| it.outcome.is_err());
        self.is_open = ended.is_none();
        ended.is_some()
    }

    /// The last work of `A` ends, and none has failed.
    #[track_caller]
    fn end<H: Harness>(&mut self, trial: &mut Trial<'_, H>) {
        for _ in 0..if self.is_open { POLLS_MAX } else { 0 } {
            let now = trial.harness().now();
            if self.poll(trial.at(A), now) {
                break;
            }
        }
        trial.same("an open work, or one that failed", self.is_open || self.has_failed, false);
    }
}

/// What is written, of whole words and one more half, while its target looks.
pub fn f14_a_write_appears_by_words_and_its_last_one_last<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-14");
    if trial.at(A).placement() == Placement::Bytes {
        return trial.end();
    }
    for len in [8, 40, 44, INLINE_LEN] {
        let (mut turn, mut bytes) = (Turn { number: 1, ..Turn::default() }, [0; INLINE_LEN]);
        trial.at(B).memory().copy_in(OPEN, OFFSET, &bytes);
        let mut write = |fabric: &mut H::Fabric, now| {
            for chunk in bytes.as_chunks_mut::<8>().0 {
                *chunk = word(turn.number).to_le_bytes();
            }
            let op = Op::Write { to: at(OPEN, OFFSET), bytes: &bytes[..len] };
            turn.number += u32::from(turn.take(fabric, B, now, op));
        };
        let (mut torn, mut late, mut seen, mut news) = (0, 0, 0, 0);
        let look = |fabric: &mut H::Fabric| {
            let load = |index: usize| fabric.memory().load(OPEN, OFFSET + 8 * index as u32);
            let rest = (len - 1) / 8;
            // Of a word that is covered in part, the half that is.
            let end = load(rest) as u32;
            torn += u32::from(len.is_multiple_of(8) && whole(load(rest)).is_none());
            news += u32::from(core::mem::replace(&mut seen, end) != end);
            for index in 0..rest {
                match whole(load(index)) {
                    Some(number) => late += u32::from(number < end),
                    None => torn += 1,
                }
            }
        };
        trial.harness().observe((A, B), TURNS, &mut write, look);
        turn.end(&mut trial);
        trial.same("whether several writes were seen", turn.number > 2 && news > 0, true);
        trial.same("words that appeared in parts", torn, 0);
        trial.same("words that appeared behind the last one of their write", late, 0);
    }
    trial.end();
}

/// A word that its owner stores, again and again, while a peer reads it.
pub fn f14_a_read_takes_a_word_whole<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-14");
    if trial.at(A).placement() == Placement::Bytes {
        return trial.end();
    }
    let (mut turn, mut stored, mut torn) = (Turn::default(), 0, 0);
    trial.at(B).memory().store(READ_ONLY, OFFSET, 0);
    let read = Op::Read { from: at(READ_ONLY, OFFSET), into: at(LOCAL, OFFSET), len: 8 };
    let mut look = |fabric: &mut H::Fabric, now| {
        if turn.take(fabric, B, now, read) {
            turn.number += 1;
            torn += u32::from(whole(fabric.memory().load(LOCAL, OFFSET)).is_none());
        }
    };
    let store = |fabric: &mut H::Fabric| {
        stored += 1;
        fabric.memory().store(READ_ONLY, OFFSET, word(stored));
    };
    trial.harness().observe((A, B), TURNS, &mut look, store);
    turn.end(&mut trial);
    trial.same("whether several words were read", turn.number > 1, true);
    trial.same("words that were read in parts", torn, 0);
    trial.end();
}
