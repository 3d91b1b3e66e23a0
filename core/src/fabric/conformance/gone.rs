//! F-6: when a peer is gone, its outstanding work ends, later posts fail, others go on.

use crate::fabric::{CompletionFlags, Fabric, Failure, Memory, Op, PostError};
use crate::ids::Peer;

use super::regions::{A, B, C, LOCAL, OPEN, WORDS, at};
use super::trial::{Outcome, Trial};
use super::{BATCH, Harness};

const WRITE: Op<'static> = Op::Write { to: at(OPEN, 0), bytes: b"are you?" };
const ADD: Op<'static> = Op::FetchAdd { at: at(WORDS, 0), add: 1 };
const KINDS: [Op<'static>; 5] = [
    WRITE,
    Op::WriteFrom { to: at(OPEN, 8), from: at(LOCAL, 0), len: 8 },
    Op::Read { from: at(OPEN, 8), into: at(LOCAL, 8), len: 8 },
    ADD,
    Op::CompareSwap { at: at(WORDS, 8), expected: 0, new: 0 },
];

fn is_loss(outcome: Outcome) -> bool {
    matches!(outcome, Err(Failure::Gone | Failure::DeadlinePassed))
}

/// Both directions of a pair work.
#[track_caller]
fn pair_works<H: Harness>(trial: &mut Trial<'_, H>, one: Peer, other: Peer) {
    for (from, to) in [(one, other), (other, one)] {
        trial.at(to).memory().store(WORDS, 0, 5);
        trial.at(to).memory().store(OPEN, 0, 0);
        let outcomes = KINDS.map(|op| trial.run(from, to, op));
        let want = [0, 0, 0, 5].map(Ok);
        trial.same("write, write from, read and add between running peers", &outcomes[..4], &want);
        let arrived = trial.at(to).memory().load(OPEN, 0);
        trial.same("the write between running peers", arrived, u64::from_le_bytes(*b"are you?"));
    }
}

/// What was posted before and right after the death ends, each once; from the first failure on,
/// everything fails.
pub fn f6_outstanding_work_to_a_lost_peer_ends<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-6");
    let first = trial.post(A, B, KINDS[0]);
    for op in KINDS.into_iter().cycle().skip(1).take(BATCH / 2 - 1) {
        trial.post(A, B, op);
    }
    trial.lose(B);
    let mut posted = BATCH / 2;
    for op in KINDS.into_iter().cycle().take(BATCH / 2) {
        match trial.try_post(A, B, op, CompletionFlags::empty()) {
            Ok(_) => posted += 1,
            Err(error) => {
                trial.same("a post to a lost peer", error, PostError::Gone);
                break;
            }
        }
    }
    let mut ended = [None; BATCH];
    trial.settle(A, |done| ended[(done.serial - first) as usize] = Some(done.outcome));
    let mut lost = false;
    for outcome in ended.into_iter().take(posted).flatten() {
        lost |= outcome.is_err();
        trial.same("whether work fails once the peer is lost", is_loss(outcome), lost);
    }
    trial.notice(A, B, WRITE);
    trial.is_silent(A);
    trial.end();
}

/// Once the loss is noticed, every kind of work is refused by `post` itself.
pub fn f6_posts_to_a_lost_peer_fail_at_once<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-6");
    trial.lose(B);
    for survivor in [A, C] {
        trial.notice(survivor, B, ADD);
        for flags in [CompletionFlags::empty(), CompletionFlags::QUIET] {
            for op in KINDS {
                let refused = trial.try_post(survivor, B, op, flags);
                trial.same("a post to a lost peer", refused, Err(PostError::Gone));
            }
        }
        trial.is_silent(survivor);
    }
    trial.end();
}

/// Only peers that admitted the new incarnation of a lost peer reach it.
pub fn f6_a_new_life_is_reached_once_admitted<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-6");
    for _ in 0..3 {
        trial.lose(B);
        trial.notice(A, B, WRITE);
        trial.notice(C, B, WRITE);
        trial.revive(B);
        trial.is_silent(B);
        for survivor in [A, C] {
            let refused = trial.try_post(survivor, B, WRITE, CompletionFlags::empty());
            trial.same("a post to an incarnation not admitted yet", refused, Err(PostError::Gone));
            let refused = trial.try_post(B, survivor, WRITE, CompletionFlags::empty());
            trial.same(
                "a post by an incarnation that admitted no peer",
                refused,
                Err(PostError::Gone),
            );
        }
        trial.admit(A, B);
        pair_works(&mut trial, A, B);
        let refused = trial.try_post(C, B, WRITE, CompletionFlags::empty());
        trial.same("a post to an incarnation that others admitted", refused, Err(PostError::Gone));
        trial.admit(C, B);
        pair_works(&mut trial, C, B);
    }
    trial.end();
}

/// A peer that came back before its loss was seen, and admits the survivor, is still lost to it.
pub fn f6_a_new_life_does_not_hide_the_loss<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-6");
    trial.lose(B);
    trial.revive(B);
    let survivor = trial.incarnation(A);
    // A fabric may refuse this as long as the survivor has not admitted the new incarnation.
    let _ = trial.at(B).admit(A, survivor);
    trial.notice(A, B, WRITE);
    trial.admit(A, B);
    pair_works(&mut trial, A, B);
    trial.end();
}

/// A loss costs no other pair a work, neither while it happens nor afterwards.
pub fn f6_other_pairs_are_unharmed<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-6");
    trial.at(C).memory().store(WORDS, 0, 0);
    let before = [(); 4].map(|()| {
        trial.post(A, B, WRITE);
        trial.post(A, C, ADD)
    });
    trial.lose(B);
    let after = [(); 4].map(|()| trial.post(A, C, ADD));
    let mut olds = [None; 8];
    trial.settle(A, |done| {
        let mut works = before.into_iter().chain(after);
        if let Some(place) = works.position(|work| work == done.serial) {
            olds[place] = Some(done.outcome);
        }
    });
    let want = core::array::from_fn(|old| Some(Ok(old as u64)));
    trial.same("adds to a running peer while another is lost", olds, want);
    trial.notice(A, B, WRITE);
    pair_works(&mut trial, A, C);
    trial.end();
}
