//! What is left out of the orders in which survivors deal with the dead shows nowhere; what is left
//! out of those in which reads are handled shows in no end, and hides no planted bug.

use std::collections::BTreeSet;
use std::convert::identity;

use weft_core::ids::PeerSet;

use super::state::ExploredState;
use super::{Bounds, walk_from};
use crate::neb::Broadcasts;
use crate::protocol::{Pace, Protocol, Small};

const BOUNDS: Bounds = Bounds {
    steps: None,
    crashes: 1,
    starts: Some(0),
    faults: Some(0),
    waits: Some(0),
    states_max: 1 << 20,
};

/// How many states there are, and every value that nodes and history take together.
fn observed(
    small: Small<Broadcasts>,
    orders: fn(ExploredState<Broadcasts>) -> ExploredState<Broadcasts>,
) -> (u64, BTreeSet<u64>) {
    let first = orders(ExploredState::small(small, &BOUNDS));
    let mut values = BTreeSet::new();
    let found = walk_from(first, &BOUNDS, &|_| (), &mut |state| {
        values.insert(state.observed());
    });
    assert!(found.finished && found.violation.is_none(), "{found:?}");
    (found.states, values)
}

/// The configurations whose name has all of `words` in it.
fn configurations(words: &[&str]) -> Vec<Small<Broadcasts>> {
    let mut all = Broadcasts::small();
    all.retain(|small| words.iter().all(|word| small.name.contains(word)));
    assert!(!all.is_empty(), "there is none with {words:?}");
    all
}

fn shows_nowhere(small: &Small<Broadcasts>) {
    let (fewer, shown) = observed(small.clone(), identity);
    let (all, every) = observed(small.clone(), ExploredState::at_will);
    assert!(fewer < all, "{}: {fewer} of {all} states", small.name);
    assert!(shown == every, "{}: nodes or history differ", small.name);
}

#[test]
fn the_orders_of_fences_that_are_left_out_show_nowhere_among_two() {
    configurations(&["n = 2", "slot"]).iter().for_each(shows_nowhere);
}

/// No two peers are alike here: a path of one would be found as a path of another.
#[test]
fn nor_among_three() {
    let mut small = configurations(&["n = 3", "unsigned, one slot"]);
    small.extend(configurations(&["n = 3, W = 4, signed, one slot, two-faced origin"]));
    small.retain(|small| !small.name.contains("two-faced origin, lying"));
    assert_eq!(small.len(), 4);
    for small in small {
        let alike = PeerSet::EMPTY;
        shows_nowhere(&Small { pace: Pace::AtOnce, alike, ..small });
    }
}

/// How many states there are, and every value that nodes and history take where nothing more may
/// happen.
fn ends(
    small: Small<Broadcasts>,
    orders: fn(ExploredState<Broadcasts>) -> ExploredState<Broadcasts>,
) -> (u64, BTreeSet<u64>) {
    let mut ends = BTreeSet::new();
    let first = orders(ExploredState::small(small, &BOUNDS));
    let found = walk_from(first, &BOUNDS, &|_| (), &mut |state| {
        if state.is_end() {
            ends.insert(state.observed());
        }
    });
    assert!(found.finished && found.violation.is_none(), "{found:?}");
    (found.states, ends)
}

/// No two peers are alike here, either.
fn at_once(words: &[&str], crashes: u32) -> Vec<Small<Broadcasts>> {
    let (pace, alike) = (Pace::AtOnce, PeerSet::EMPTY);
    let all = configurations(words).into_iter();
    all.map(|small| Small { pace, alike, crashes, ..small }).collect()
}

#[test]
fn reads_that_are_put_first_show_in_no_end() {
    let mut small = at_once(&["n = 3", "one slot"], 1);
    small.extend(at_once(&["n = 3, W = 8", "two slots"], 0));
    assert_eq!(small.len(), 16);
    for small in small {
        let (fewer, some) = ends(small.clone(), identity);
        let (all, every) = ends(small.clone(), ExploredState::read_at_will);
        assert!(fewer < all, "{}: {fewer} of {all} states", small.name);
        assert!(some == every, "{}: {} of {} ends", small.name, some.len(), every.len());
    }
}
