//! The explorer on protocols whose answer is known.

use weft_core::fabric::Layout;
use weft_core::ids::Peer;

use crate::shared::fingerprint;
use crate::toy::{Counter, DEAF, FETCH_ADD, IDLE, ORDERS, READ_THEN_WRITE};
use crate::{Bounds, Exploration, Protocol, World, explore};

const CALM: Bounds =
    Bounds { steps: None, crashes: 0, starts: None, faults: None, waits: None, states_max: 10_000 };

fn explored<P: Protocol>(bounds: &Bounds) -> Exploration {
    let [(_, found)] = <[_; 1]>::try_from(explore::<P>(bounds, &|_| ())).expect("it has one");
    found
}

#[test]
fn it_counts_every_state_once() {
    let [n, m] = ORDERS.map(u64::from);
    let found = explored::<Counter<IDLE>>(&CALM);
    assert_eq!((found.states, found.finished), ((n + 1) * (m + 1), true));
    // One of the two dies, with at least one order gone, wherever the other stands.
    let found = explored::<Counter<IDLE>>(&Bounds { crashes: 1, ..CALM });
    assert_eq!(found.states, (n + 1) * (m + 1) + n * (m + 1) + m * (n + 1));
    assert!(found.finished && found.violation.is_none());
}

#[test]
fn it_finds_the_order_in_which_an_update_is_lost() {
    let found = explored::<Counter<READ_THEN_WRITE>>(&CALM);
    let (violation, path) = found.violation.expect("both can read before one writes");
    assert_eq!(violation.checker, "lost-update");
    assert!(path.len() > 4, "two joined, two read and one wrote: {path:?}");
}

#[test]
fn it_finds_nothing_where_no_update_is_lost() {
    let found = explored::<Counter<FETCH_ADD>>(&CALM);
    assert!(found.finished && found.violation.is_none(), "{found:?}");
}

#[test]
fn it_finds_what_never_finishes() {
    let found = explored::<Counter<DEAF>>(&CALM);
    assert_eq!(found.violation.map(|(violation, _)| violation.checker), Some("progress"));
}

#[test]
fn it_says_when_it_has_not_seen_all() {
    let found = explored::<Counter<FETCH_ADD>>(&Bounds { states_max: 5, ..CALM });
    assert!(!found.finished && found.violation.is_none());
}

#[test]
fn whom_a_peer_admits_tells_states_apart() {
    let mut world = World::untimed(Layout::new(2), false);
    let incarnation = world.start_peer(Peer(1));
    let before = fingerprint(&world);
    world.admit(Peer(0), Peer(1), incarnation).unwrap();
    let admitted = fingerprint(&world);
    world.fence(Peer(0), Peer(1)).unwrap();
    // Only a later one may be admitted now.
    assert!(before != admitted && ![before, admitted].contains(&fingerprint(&world)));
}
