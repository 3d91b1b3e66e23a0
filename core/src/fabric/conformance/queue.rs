//! F-7 and F-8: neither `post` nor `poll` waits; what does not fit is given back.

use crate::fabric::{CompletionFlags, Fabric, Memory, Op, PostError};

use super::regions::{A, ATOMIC_ONLY, B, C, EVERYONE, OPEN, at};
use super::trial::Trial;
use super::{Harness, POSTS_MAX};

/// Posts without polling until the queue is full: what was refused has no effect, what was
/// accepted completes, and then there is room again.
pub fn f7_a_full_queue_gives_the_work_back<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-7");
    let word = at(ATOMIC_ONLY, 0);
    let add = Op::FetchAdd { at: word, add: 1 };
    trial.at(B).memory().store(word.region, word.offset, 0);
    let mut accepted = 0;
    let refused = loop {
        match trial.try_post(A, B, add, CompletionFlags::empty()) {
            Ok(_) if accepted == POSTS_MAX => trial.fail("no queue may hold this many works"),
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
    };
    trial.same("the refusal", refused, PostError::Full);
    let mut olds = 0;
    trial.settle(A, |done| olds += done.outcome.unwrap_or(u64::MAX / 2));
    // The old values of n adds are 0 to n - 1 in some order.
    let accepted = u64::from(accepted);
    trial.same("the sum of all old values", olds, accepted * accepted.saturating_sub(1) / 2);
    let sum = trial.at(B).memory().load(word.region, word.offset);
    trial.same("accepted adds that took effect", sum, accepted);
    trial.is_silent(A);

    for to in [B, C] {
        let outcome = trial.run(A, to, Op::Write { to: at(OPEN, 0), bytes: b"room" });
        trial.same("a post after the queue was drained", outcome, Ok(0));
    }
    trial.end();
}

/// Where nothing was posted, nothing completes.
pub fn f8_polling_an_idle_fabric_returns_nothing<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-8");
    for peer in EVERYONE {
        trial.is_silent(peer);
    }
    let outcome = trial.run(A, B, Op::Write { to: at(OPEN, 0), bytes: b"once" });
    trial.same("the outcome", outcome, Ok(0));
    for peer in EVERYONE {
        trial.is_silent(peer);
    }
    trial.end();
}

/// A poll into no room returns 0, and what is there stays there.
pub fn f8_an_empty_slice_takes_nothing<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-8");
    for _ in 0..4 {
        trial.post(A, B, Op::Write { to: at(OPEN, 0), bytes: b"here" });
        let taken = trial.poll(A, 0, |_| ());
        trial.same("completions in an empty slice", taken, 0);
    }
    trial.settle(A, |_| ());
    trial.end();
}

/// A poll into room for one takes one, and the rest comes later.
pub fn f8_a_short_slice_takes_its_length<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-8");
    let works = [(); 6].map(|()| trial.post(A, B, Op::Write { to: at(OPEN, 0), bytes: b"many" }));
    let mut drained = 0;
    for _ in 0..super::POLLS_MAX {
        drained += trial.poll(A, 1, |_| ());
        if drained == works.len() {
            break;
        }
    }
    trial.same("completions taken one at a time", drained, works.len());
    trial.end();
}
