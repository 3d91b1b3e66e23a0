//! F-9: behind a fence nothing passes, until a later incarnation is admitted.

use crate::fabric::{CompletionFlags, Fabric, Failure, FenceError, Memory, Op, PostError, Region};
use crate::ids::{Incarnation, Peer};

use super::regions::{A, B, C, LEN, LOCAL, OPEN, WORDS, at};
use super::trial::Trial;
use super::{BATCH, Harness};

const QUIET: CompletionFlags = CompletionFlags::QUIET;

type Bytes = [u8; LEN as usize];

fn snapshot<H: Harness>(trial: &mut Trial<'_, H>, owner: Peer) -> [Bytes; 2] {
    [OPEN, WORDS].map(|region: Region| {
        let mut bytes = [0; LEN as usize];
        trial.at(owner).memory().copy_out(region, 0, &mut bytes);
        bytes
    })
}

#[track_caller]
fn reaches<H: Harness>(trial: &mut Trial<'_, H>, from: Peer, to: Peer) {
    let mark = [0x40 | from.0 as u8; 8];
    trial.at(to).memory().store(OPEN, 0, 0);
    let outcome = trial.run(from, to, Op::Write { to: at(OPEN, 0), bytes: &mark });
    trial.same("a write between admitted peers", outcome, Ok(0));
    let word = trial.at(to).memory().load(OPEN, 0);
    trial.same("what it left", word, u64::from_le_bytes(mark));
}

/// From the return of `fence` on, the memory is as it was, whatever the fenced peer had posted
/// and goes on posting. Others still reach it.
pub fn f9_nothing_of_a_fenced_peer_arrives<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-9");
    for offset in 0..BATCH as u32 / 2 {
        let op = Op::Write { to: at(OPEN, 8 * offset), bytes: &[0x33; 8] };
        trial.post(B, A, op);
    }
    trial.fence(A, B);
    let before = snapshot(&mut trial, A);
    if trial.is_alive(B) {
        let mut behind = None;
        for op in [
            Op::Write { to: at(OPEN, 0), bytes: &[0x66; 64] },
            Op::WriteFrom { to: at(OPEN, 64), from: at(LOCAL, 0), len: 64 },
            Op::FetchAdd { at: at(WORDS, 0), add: 1 },
            Op::Write { to: at(WORDS, 8), bytes: &[0x66; 8] },
        ] {
            match trial.try_post(B, A, op, CompletionFlags::empty()) {
                Ok(work) => behind = behind.or(Some(work)),
                Err(error) => trial.same("a post of a fenced peer", error, PostError::Gone),
            }
        }
        let mut passed = 0;
        trial.settle(B, |done| {
            let is_behind = behind.is_some_and(|first| done.serial >= first);
            passed += u32::from(is_behind && done.outcome.is_ok());
        });
        trial.same("successes of a fenced peer", passed, 0);
    }
    trial.is_silent(A);
    let after = snapshot(&mut trial, A);
    trial.same("the memory behind the fence", after, before);
    reaches(&mut trial, C, A);
    trial.end();
}

/// What the fencing endpoint had posted to the fenced one ends, and it may post no more.
pub fn f9_work_to_a_fenced_peer_ends<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-9");
    for offset in 0..BATCH as u32 / 2 {
        trial.post(A, B, Op::Write { to: at(OPEN, 8 * offset), bytes: &[1; 8] });
    }
    trial.fence(A, B);
    let refused = trial.try_post(A, B, Op::FetchAdd { at: at(WORDS, 0), add: 1 }, QUIET);
    trial.same("a post to a fenced peer", refused, Err(PostError::Gone));
    let mut strange = None;
    trial.settle(A, |done| {
        if !matches!(done.outcome, Ok(0) | Err(Failure::Gone)) {
            strange = Some(done.outcome);
        }
    });
    trial.same("how else work outstanding at the fence ended", strange, None);
    trial.end();
}

/// A second fence succeeds like the first, and the way back is the same.
pub fn f9_fencing_again_changes_nothing<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-9");
    for _ in 0..3 {
        trial.fence(A, B);
    }
    let refused = trial.try_post(A, B, Op::Write { to: at(OPEN, 0), bytes: b"no" }, QUIET);
    trial.same("a post to a fenced peer", refused, Err(PostError::Gone));
    trial.renew(B);
    reaches(&mut trial, A, B);
    reaches(&mut trial, B, A);
    trial.end();
}

/// The fenced incarnation is refused for good, and so is "never seen"; the next is admitted.
pub fn f9_only_a_later_life_is_admitted<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-9");
    for _ in 0..2 {
        let fenced = trial.incarnation(B);
        trial.fence(A, B);
        for incarnation in [fenced, Incarnation(0)] {
            let refused = trial.at(A).admit(B, incarnation);
            trial.same("admission of an earlier incarnation", refused, Err(FenceError::NotReady));
        }
        let refused = trial.try_post(A, B, Op::Write { to: at(OPEN, 0), bytes: b"no" }, QUIET);
        trial.same("a post after a refused admission", refused, Err(PostError::Gone));
        trial.renew(B);
        for other in [A, C] {
            reaches(&mut trial, other, B);
            reaches(&mut trial, B, other);
        }
    }
    trial.end();
}
