//! F-5: rights are per region and per peer; work without one changes no byte.

use crate::fabric::{CompletionFlags, Fabric, Failure, Memory, Op, PostError, Region};
use crate::ids::Peer;

use super::Harness;
use super::regions::{
    A, ATOMIC_ONLY, B, C, EVERYONE, LEN, LOCAL, ONLY_B, OPEN, READ_ONLY, WORDS, WRITE_ONLY, at,
};
use super::trial::{Outcome, Trial};

const BEFORE: [u8; LEN as usize] = [0x77; LEN as usize];

fn write(region: Region) -> Op<'static> {
    Op::Write { to: at(region, 5), bytes: &[1; 20] }
}

fn write_from(region: Region) -> Op<'static> {
    Op::WriteFrom { to: at(region, 8), from: at(LOCAL, 0), len: 32 }
}

fn read(region: Region) -> Op<'static> {
    Op::Read { from: at(region, 8), into: at(LOCAL, 0), len: 32 }
}

fn add(region: Region) -> Op<'static> {
    Op::FetchAdd { at: at(region, 8), add: 1 }
}

fn swap(region: Region) -> Op<'static> {
    Op::CompareSwap { at: at(region, 8), expected: u64::from_le_bytes([0x77; 8]), new: 1 }
}

/// `op` from `from` to `to` is denied, and neither its target nor the poster's own end changes.
/// The pair is used again afterwards, in a new incarnation, since the denial may have cost it.
#[track_caller]
fn is_denied<H: Harness>(trial: &mut Trial<'_, H>, from: Peer, to: Peer, op: Op<'_>) {
    ends_denied(trial, (from, to), op, |trial| trial.run(from, to, op));
}

#[track_caller]
fn ends_denied<H: Harness>(
    trial: &mut Trial<'_, H>,
    (from, to): (Peer, Peer),
    op: Op<'_>,
    run: impl FnOnce(&mut Trial<'_, H>) -> Outcome,
) {
    let places = [(to, op.target().0.region), (from, LOCAL)];
    for (peer, region) in places {
        trial.at(peer).memory().copy_in(region, 0, &BEFORE);
    }
    let outcome = run(trial);
    trial.same("work without the right", outcome, Err(Failure::AccessDenied));
    for (peer, region) in places {
        let mut now = [0; LEN as usize];
        trial.at(peer).memory().copy_out(region, 0, &mut now);
        trial.same("bytes after work without the right", now, BEFORE);
    }
    // F-6: what follows in the same pair is done or fails, but never both or neither.
    let next = Op::Write { to: at(OPEN, 0), bytes: &[2; 8] };
    trial.at(to).memory().store(OPEN, 0, 0);
    match trial.try_post(from, to, next, CompletionFlags::empty()) {
        Ok(work) => {
            let [outcome] = trial.outcomes(from, [work]);
            let want = match outcome {
                Some(Ok(_)) => u64::from_le_bytes([2; 8]),
                Some(Err(_)) | None => 0,
            };
            let word = trial.at(to).memory().load(OPEN, 0);
            trial.same("work behind a denial", word, want);
        }
        Err(error) => trial.same("a post behind a denial", error, PostError::Gone),
    }
    trial.renew(from);
}

/// Writes, from bytes and from a region, where peers may only read, add, or nothing.
pub fn f5_a_write_needs_its_right<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-5");
    for region in [READ_ONLY, ATOMIC_ONLY, LOCAL] {
        is_denied(&mut trial, A, B, write(region));
        is_denied(&mut trial, A, B, write_from(region));
    }
    trial.end();
}

/// Reads where peers may only write, add, or nothing.
pub fn f5_a_read_needs_its_right<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-5");
    for region in [WRITE_ONLY, ATOMIC_ONLY, LOCAL] {
        is_denied(&mut trial, B, C, read(region));
    }
    trial.end();
}

/// Atomics where peers may read, write, both, or nothing.
pub fn f5_an_atomic_needs_its_right<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-5");
    for region in [READ_ONLY, WRITE_ONLY, OPEN, LOCAL] {
        is_denied(&mut trial, C, A, add(region));
        is_denied(&mut trial, C, A, swap(region));
    }
    trial.end();
}

/// A region that one peer may use: that one can, from wherever, and the others can do nothing.
pub fn f5_a_right_is_for_the_peers_named<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-5");
    for op in [write(ONLY_B), write_from(ONLY_B), read(ONLY_B), add(ONLY_B), swap(ONLY_B)] {
        is_denied(&mut trial, A, C, op);
        is_denied(&mut trial, C, A, op);
        is_denied(&mut trial, A, B, op);
        for owner in [A, C] {
            let granted = trial.run(B, owner, op);
            trial.same("whether the one peer may", granted.is_ok(), true);
        }
    }
    trial.end();
}

/// A work that may be answered at once needs its right as any other.
pub fn f5_an_answer_needs_its_right<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-5");
    for op in [write(READ_ONLY), write_from(LOCAL), read(WRITE_ONLY), add(OPEN), swap(LOCAL)] {
        ends_denied(&mut trial, (A, B), op, |trial| trial.run_now(A, B, op));
    }
    trial.end();
}

/// Every right that the layout grants is good for its work, between all endpoints.
pub fn f5_what_is_granted_is_done<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-5");
    for from in EVERYONE {
        for to in EVERYONE.into_iter().filter(|&to| to != from) {
            for op in [
                read(READ_ONLY),
                write(WRITE_ONLY),
                write_from(WRITE_ONLY),
                add(ATOMIC_ONLY),
                swap(ATOMIC_ONLY),
                write(OPEN),
                read(OPEN),
                write_from(WORDS),
                read(WORDS),
                add(WORDS),
                swap(WORDS),
            ] {
                let outcome = trial.run(from, to, op);
                trial.same("whether granted work succeeds", outcome.is_ok(), true);
            }
        }
    }
    trial.end();
}
