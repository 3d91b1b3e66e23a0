//! F-11: work that can never succeed is refused with its reason, and nothing happens.

use crate::fabric::{
    CompletionFlags, Fabric, FenceError, INLINE_LEN, Memory, Op, PostError, Region, Reject,
};
use crate::ids::{Incarnation, Peer};

use super::regions::{A, B, C, EVERYONE, LEN, LOCAL, OPEN, OPEN_LEN, WORDS, at};
use super::trial::Trial;
use super::{Harness, PEERS};

const BEFORE: [u8; LEN as usize] = [0x5A; LEN as usize];
const WATCHED: [Region; 3] = [OPEN, WORDS, LOCAL];
const REGIONS: u8 = 7;

/// Posts each of `ops`, and sees it refused for `reason` with no effect anywhere.
#[track_caller]
fn are_refused<H: Harness>(trial: &mut Trial<'_, H>, to: Peer, ops: &[Op<'_>], reason: Reject) {
    let places = EVERYONE.map(|peer| WATCHED.map(|region| (peer, region)));
    for &(peer, region) in places.as_flattened() {
        trial.at(peer).memory().copy_in(region, 0, &BEFORE);
    }
    for &op in ops {
        for flags in [CompletionFlags::empty(), CompletionFlags::QUIET] {
            let refused = trial.try_post(A, to, op, flags);
            trial.same("the refusal", refused, Err(PostError::Rejected(reason)));
        }
    }
    trial.is_silent(A);
    for &(peer, region) in places.as_flattened() {
        let mut now = [0; LEN as usize];
        trial.at(peer).memory().copy_out(region, 0, &mut now);
        trial.same("memory after a refusal", now, BEFORE);
    }
}

/// No post, fence or admission concerns a peer past the last.
pub fn f11_an_unknown_peer_is_refused<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-11");
    for peer in [PEERS as u16, PEERS as u16 + 1, 64, u16::MAX].map(Peer) {
        let ops = [
            Op::Write { to: at(OPEN, 0), bytes: b"whom?" },
            Op::Read { from: at(OPEN, 0), into: at(LOCAL, 0), len: 8 },
            Op::FetchAdd { at: at(WORDS, 0), add: 1 },
        ];
        are_refused(&mut trial, peer, &ops, Reject::UnknownPeer);
        let fenced = trial.at(A).fence(peer);
        trial.same("fence", fenced, Err(FenceError::UnknownPeer));
        let admitted = trial.at(A).admit(peer, Incarnation(1));
        trial.same("admit", admitted, Err(FenceError::UnknownPeer));
    }
    trial.end();
}

/// Neither end of a work lies in a region past the last.
pub fn f11_an_unknown_region_is_refused<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-11");
    for nowhere in [REGIONS, REGIONS + 1, u8::MAX].map(|number| at(Region(number), 0)) {
        let (there, here) = (at(OPEN, 0), at(LOCAL, 0));
        let ops = [
            Op::Write { to: nowhere, bytes: b"where?" },
            Op::WriteFrom { to: nowhere, from: here, len: 8 },
            Op::WriteFrom { to: there, from: nowhere, len: 8 },
            Op::Read { from: nowhere, into: here, len: 8 },
            Op::Read { from: there, into: nowhere, len: 8 },
            Op::FetchAdd { at: nowhere, add: 1 },
            Op::CompareSwap { at: nowhere, expected: 0, new: 1 },
        ];
        are_refused(&mut trial, B, &ops, Reject::UnknownRegion);
    }
    trial.end();
}

/// Neither end of a work leaves its region, sums that overflow included; the last byte is inside.
pub fn f11_a_range_that_leaves_its_region_is_refused<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-11");
    let (there, here) = (at(OPEN, 0), at(LOCAL, 0));
    for (past, len) in [(LEN - 7, 8), (LEN, 1), (LEN + 8, 8), (u32::MAX, 8), (u32::MAX, u32::MAX)] {
        let past_local = past.saturating_add(OPEN_LEN - LEN);
        let ops = [
            Op::Write { to: at(WORDS, past), bytes: &[1; 8] },
            Op::WriteFrom { to: at(WORDS, past), from: here, len },
            Op::WriteFrom { to: there, from: at(LOCAL, past_local), len },
            Op::Read { from: at(WORDS, past), into: here, len },
            Op::Read { from: there, into: at(LOCAL, past_local), len },
        ];
        are_refused(&mut trial, B, &ops, Reject::OutOfBounds);
    }
    for past in [LEN, LEN + 8, u32::MAX - 7] {
        let word = at(WORDS, past);
        let ops =
            [Op::FetchAdd { at: word, add: 1 }, Op::CompareSwap { at: word, expected: 0, new: 1 }];
        are_refused(&mut trial, B, &ops, Reject::OutOfBounds);
    }
    for last in [OPEN_LEN - 1, OPEN_LEN] {
        let bytes = &[1][..(OPEN_LEN - last) as usize];
        let outcome = trial.run(A, B, Op::Write { to: at(OPEN, last), bytes });
        trial.same("a write up to the end", outcome, Ok(0));
    }
    trial.end();
}

/// An atomic is on a word.
pub fn f11_a_misaligned_atomic_is_refused<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-11");
    for peer in [B, A] {
        for offset in (1..8).chain([LEN - 12]) {
            let word = at(WORDS, offset);
            let ops = [
                Op::FetchAdd { at: word, add: 1 },
                Op::CompareSwap { at: word, expected: 0x5A5A_5A5A_5A5A_5A5A, new: 1 },
            ];
            are_refused(&mut trial, peer, &ops, Reject::Misaligned);
        }
    }
    trial.end();
}

/// A write from bytes has at most [`INLINE_LEN`] of them, wherever there is room for more.
pub fn f11_a_write_that_is_too_long_is_refused<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-11");
    let bytes = [1; INLINE_LEN + 8];
    for peer in [B, C] {
        for len in [INLINE_LEN + 1, INLINE_LEN + 8] {
            let ops = [Op::Write { to: at(OPEN, 0), bytes: &bytes[..len] }];
            are_refused(&mut trial, peer, &ops, Reject::TooLong);
        }
    }
    trial.end();
}
