//! F-2 and F-10: exactly the bytes of a work arrive, and the poster's bytes are copied at once.

use crate::fabric::{At, Fabric, INLINE_LEN, Memory, Op};
use crate::ids::Peer;

use super::Harness;
use super::regions::{A, B, LOCAL, OPEN, OPEN_LEN, READ_ONLY, at};
use super::trial::{Outcome, Trial};

/// The longest work of the exhaustive cases: nine words.
const LEN_MAX: usize = 72;
/// What the exhaustive cases look at: the longest work at the worst alignment, and a word around.
const WINDOW: usize = 96;
const BEFORE: u32 = 8;
/// No byte of [`pattern`] is this.
const BACKGROUND: u8 = 0x11;

/// Bytes that differ from their neighbours, from the background and between works.
fn pattern<const N: usize>(seed: usize) -> [u8; N] {
    core::array::from_fn(|at| 0x80 | (at * 37 + seed * 11) as u8)
}

/// Runs `op` for every alignment and length, and compares the window at `target` with what it
/// should have become. `op` gets its far and near alignment, its length and its bytes.
#[track_caller]
fn exhaustively<H: Harness>(
    trial: &mut Trial<'_, H>,
    (owner, target): (Peer, At),
    mut op: impl FnMut(&mut Trial<'_, H>, u32, u32, &[u8]) -> Outcome,
) {
    for (align, len) in (0..8).flat_map(|align| (0..=LEN_MAX).map(move |len| (align, len))) {
        let bytes: [u8; LEN_MAX] = pattern(len + align as usize);
        let near = (3 * align + len as u32) % 8;
        trial.at(owner).memory().copy_in(target.region, target.offset, &[BACKGROUND; WINDOW]);
        let outcome = op(trial, BEFORE + align, near, &bytes[..len]);
        trial.same("the outcome", outcome, Ok(0));

        let begin = (BEFORE + align) as usize;
        let mut want = [BACKGROUND; WINDOW];
        want[begin..begin + len].copy_from_slice(&bytes[..len]);
        let mut got = [0; WINDOW];
        trial.at(owner).memory().copy_out(target.region, target.offset, &mut got);
        trial.same("the bytes and their neighbours", got, want);
    }
}

/// A write from bytes, at each alignment and length up to nine words.
pub fn f2_a_write_changes_exactly_its_bytes<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-2");
    exhaustively(&mut trial, (B, at(OPEN, 0)), |trial, align, _, bytes| {
        trial.run(A, B, Op::Write { to: at(OPEN, align), bytes })
    });
    trial.end();
}

/// A write from a region, at each alignment and length up to nine words.
pub fn f2_a_write_from_a_region_changes_exactly_its_bytes<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-2");
    exhaustively(&mut trial, (B, at(OPEN, 0)), |trial, align, near, bytes| {
        trial.at(A).memory().copy_in(LOCAL, near, bytes);
        let (from, len) = (at(LOCAL, near), bytes.len() as u32);
        trial.run(A, B, Op::WriteFrom { to: at(OPEN, align), from, len })
    });
    trial.end();
}

/// A read, at each alignment and length up to nine words.
pub fn f2_a_read_changes_exactly_its_bytes<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-2");
    exhaustively(&mut trial, (A, at(LOCAL, 0)), |trial, align, near, bytes| {
        trial.at(B).memory().copy_in(OPEN, near, bytes);
        let (into, len) = (at(LOCAL, align), bytes.len() as u32);
        trial.run(A, B, Op::Read { from: at(OPEN, near), into, len })
    });
    trial.end();
}

/// A write of [`INLINE_LEN`] bytes, at the start, at an odd offset and up to the very end.
pub fn f2_the_longest_write_from_bytes_arrives<H: Harness>(harness: &mut H) {
    const ALL: usize = OPEN_LEN as usize;
    let mut trial = Trial::new(harness, "F-2");
    for (seed, offset) in [0, 3, ALL - INLINE_LEN].into_iter().enumerate() {
        let bytes: [u8; INLINE_LEN] = pattern(seed);
        trial.at(B).memory().copy_in(OPEN, 0, &[BACKGROUND; ALL]);
        let outcome = trial.run(A, B, Op::Write { to: at(OPEN, offset as u32), bytes: &bytes });
        trial.same("the outcome", outcome, Ok(0));

        let mut got = [0; ALL];
        trial.at(B).memory().copy_out(OPEN, 0, &mut got);
        let inside = offset..offset + INLINE_LEN;
        trial.same("whether all bytes arrived", got[inside.clone()] == bytes, true);
        let mut outside = got[..inside.start].iter().chain(&got[inside.end..]);
        let kept = outside.all(|&byte| byte == BACKGROUND);
        trial.same("whether the neighbours were kept", kept, true);
    }
    trial.end();
}

/// A read and a write from a region of kilobytes, which a fabric may carry out by other means than
/// a short one: aligned or not, whole words or not.
pub fn f2_a_long_copy_between_regions_changes_exactly_its_bytes<H: Harness>(harness: &mut H) {
    const ALL: usize = OPEN_LEN as usize;
    let mut trial = Trial::new(harness, "F-2");
    for (seed, (from, into, len)) in
        [(0, 0, ALL), (8, 16, 2048), (16, 8, 2047), (8, 8, 2061), (3, 3, 3000), (8, 1, 4096)]
            .into_iter()
            .enumerate()
    {
        let bytes: [u8; ALL] = pattern(seed);
        let target = |region| at(region, into as u32);
        let source = |region| at(region, from as u32);
        let read = Op::Read { from: source(READ_ONLY), into: target(LOCAL), len: len as u32 };
        let write = Op::WriteFrom { to: target(OPEN), from: source(LOCAL), len: len as u32 };
        for (op, (source, at_source), (target, at_target)) in
            [(read, (B, READ_ONLY), (A, LOCAL)), (write, (A, LOCAL), (B, OPEN))]
        {
            trial.at(source).memory().copy_in(at_source, 0, &bytes);
            trial.at(target).memory().copy_in(at_target, 0, &[BACKGROUND; ALL]);
            let outcome = trial.run(A, B, op);
            trial.same("the outcome", outcome, Ok(0));

            let mut got = [0; ALL];
            trial.at(target).memory().copy_out(at_target, 0, &mut got);
            let inside = into..into + len;
            let all = got[inside.clone()] == bytes[from..from + len];
            trial.same("whether all bytes arrived", all, true);
            let mut outside = got[..inside.start].iter().chain(&got[inside.end..]);
            let kept = outside.all(|&byte| byte == BACKGROUND);
            trial.same("whether the neighbours were kept", kept, true);
        }
    }
    trial.end();
}

/// F-10: one buffer serves many writes in a row, none waited for.
pub fn f10_bytes_are_free_as_soon_as_post_returns<H: Harness>(harness: &mut H) {
    const WRITES: usize = 12;
    let mut trial = Trial::new(harness, "F-10");
    for len in [1, 8, 40, 300] {
        let mut bytes = [0; 300];
        for seed in 0..WRITES {
            bytes = pattern(seed);
            trial.post(A, B, Op::Write { to: at(OPEN, 300 * seed as u32), bytes: &bytes[..len] });
            bytes.fill(BACKGROUND);
        }
        trial.settle(A, |_| ());
        for seed in 0..WRITES {
            trial.at(B).memory().copy_out(OPEN, 300 * seed as u32, &mut bytes[..len]);
            let same = bytes[..len] == pattern::<300>(seed)[..len];
            trial.same("whether the bytes are those at the time of the post", same, true);
        }
    }
    trial.end();
}
