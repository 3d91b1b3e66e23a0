//! F-4: remote atomics exclude each other, the owner's own through its fabric included.

use crate::fabric::{Fabric, Memory, Op};

use super::regions::{A, ATOMIC_ONLY, EVERYONE, at};
use super::trial::Trial;
use super::{BATCH, Harness, PEERS};

/// All three endpoints add to one word, its owner too: every add counts, no two see the same.
pub fn f4_no_add_is_lost<H: Harness>(harness: &mut H) {
    const ROUNDS: usize = 12;
    const ADDS: usize = ROUNDS * BATCH * PEERS;
    let mut trial = Trial::new(harness, "F-4");
    let word = at(ATOMIC_ONLY, 8);
    trial.at(A).memory().store(word.region, word.offset, 0);
    let mut seen = [false; ADDS];
    for _ in 0..ROUNDS {
        for _ in 0..BATCH {
            for poster in EVERYONE {
                trial.post(poster, A, Op::FetchAdd { at: word, add: 1 });
            }
        }
        for poster in EVERYONE {
            trial.settle(poster, |done| {
                let old = usize::try_from(done.outcome.unwrap_or(u64::MAX));
                if let Some(place) = old.ok().and_then(|old| seen.get_mut(old)) {
                    *place = true;
                }
            });
        }
    }
    let sum = trial.at(A).memory().load(word.region, word.offset);
    trial.same("the sum", sum, ADDS as u64);
    let values = seen.iter().filter(|&&seen| seen).count();
    trial.same("how many different old values there were", values, ADDS);
    trial.end();
}

/// All three endpoints swap 0 for their own number: exactly one of them finds 0.
pub fn f4_one_compare_swap_wins<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "F-4");
    let word = at(ATOMIC_ONLY, 16);
    for round in 0..3 * PEERS {
        trial.at(A).memory().store(word.region, word.offset, 0);
        // Each endpoint goes first in turn.
        let posters: [_; PEERS] = core::array::from_fn(|place| EVERYONE[(place + round) % PEERS]);
        let works = posters.map(|poster| {
            let new = u64::from(poster.0) + 1;
            trial.post(poster, A, Op::CompareSwap { at: word, expected: 0, new })
        });
        let mut winners = [None; PEERS];
        for ((poster, work), won) in posters.into_iter().zip(works).zip(&mut winners) {
            let [outcome] = trial.outcomes(poster, [work]);
            *won = (outcome == Some(Ok(0))).then_some(u64::from(poster.0) + 1);
        }
        let left = trial.at(A).memory().load(word.region, word.offset);
        let mut winners = winners.into_iter().flatten();
        trial.same("the winner and the word", winners.next(), Some(left));
        trial.same("a second winner", winners.next(), None);
    }
    trial.end();
}
