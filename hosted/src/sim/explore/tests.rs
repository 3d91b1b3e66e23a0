//! What is left out of the orders in which survivors deal with the dead shows nowhere.

use std::collections::BTreeSet;
use std::convert::identity;

use weft_core::ids::PeerSet;

use super::state::State;
use super::{Bounds, walk_from};
use crate::sim::neb::Broadcasts;
use crate::sim::protocol::{Pace, Protocol, Small};

const BOUNDS: Bounds =
    Bounds { steps: None, crashes: 1, births: 0, faults: 0, waits: Some(0), states_max: 1 << 20 };

/// How many states there are, and every value that nodes and history take together.
fn observed(
    small: Small<Broadcasts>,
    orders: fn(State<Broadcasts>) -> State<Broadcasts>,
) -> (u64, BTreeSet<u64>) {
    let first = orders(State::small(small, &BOUNDS));
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
    let (all, every) = observed(small.clone(), State::at_will);
    assert!(fewer < all, "{}: {fewer} of {all} states", small.name);
    assert!(shown == every, "{}: nodes or history differ", small.name);
}

#[test]
fn the_orders_of_fences_that_are_left_out_show_nowhere_among_two() {
    configurations(&["n = 2"]).iter().for_each(shows_nowhere);
}

/// Nobody stands in for anybody here: what one does would be found as what another does.
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
