//! What a fabric holds of the device and of memory, and that it gives all of it back.

use std::sync::Arc;

use weft_core::fabric::conformance::layout;
use weft_core::fabric::{Fabric, Op, Region};
use weft_core::ids::{Incarnation, Peer};
use weft_driver::{Config, Heap, VerbsFabric};

use crate::rig::{self, FIRST, at};
use crate::wire::Wires;

const ONE: Peer = Peer(0);
const OTHER: Peer = Peer(1);

/// A registration holds a share of the memory: what is shared is registered.
#[test]
fn registrations_come_with_a_pair_and_go_with_its_fence() {
    let Some(device) = rig::device(ONE) else { return };
    let memory = Arc::new(Heap::new(&layout()));
    let shares = || Arc::strong_count(&memory) - 1;
    let regions = layout().regions().len();
    let mut one =
        VerbsFabric::new(ONE, layout(), device, Config::default(), Arc::clone(&memory)).unwrap();
    let alone = shares();
    assert_eq!(alone, 1 + 2 * regions, "the fabric's own, and both ends of the pair with itself");

    let mut other = rig::end(OTHER, &layout(), Config::default()).unwrap();
    rig::introduce(&mut one, &mut other, FIRST);
    assert_eq!(shares(), alone + regions);
    rig::admit(&mut one, &mut other, FIRST);
    assert_eq!(shares(), alone + regions);
    one.fence(OTHER).unwrap();
    assert_eq!(shares(), alone);
    drop(one);
    assert_eq!(shares(), 0);
}

/// Dropped in every order, with work on its way in both directions, in every state of a pair.
#[test]
fn fabrics_are_dropped_in_any_order_with_work_on_its_way() {
    for (admitted, first) in [(false, ONE), (false, OTHER), (true, ONE), (true, OTHER)] {
        let Some(mut one) = rig::end(ONE, &layout(), Config::default()) else { return };
        let mut other = rig::end(OTHER, &layout(), Config::default()).unwrap();
        rig::introduce(&mut one, &mut other, FIRST);
        if admitted {
            rig::admit(&mut one, &mut other, FIRST);
            for id in 0..8 {
                let (from, into) = (at(Region(0), 0), at(Region(6), 0));
                rig::post(&mut one, OTHER, id, Op::Read { from, into, len: 64 }).unwrap();
                rig::post(&mut other, ONE, id, Op::FetchAdd { at: at(Region(4), 0), add: 1 })
                    .unwrap();
            }
        }
        let (early, late) = if first == ONE { (one, other) } else { (other, one) };
        drop(early);
        drop(late);
    }
}

/// Pairs are destroyed before their queues and domains, and registrations taken back before them:
/// the kernel refuses every other order, and would count on. Both devices stay open meanwhile.
#[test]
fn the_kernel_counts_nothing_of_a_pair_after_its_fence() {
    let Some(wires) = Wires::take() else { return };
    let unused = [ONE, OTHER].map(|peer| wires.holdings(peer));
    let mut one = wires.end(ONE, &layout(), Config::default());
    let mut other = wires.end(OTHER, &layout(), Config::default());
    let before = [ONE, OTHER].map(|peer| wires.holdings(peer));
    for incarnation in (1..=3).map(Incarnation) {
        rig::introduce(&mut one, &mut other, (incarnation, incarnation));
        assert_ne!([ONE, OTHER].map(|peer| wires.holdings(peer)), before, "a pair is counted");
        rig::admit(&mut one, &mut other, (incarnation, incarnation));
        for id in 0..8 {
            let (from, into) = (at(Region(0), 0), at(Region(6), 0));
            rig::post(&mut one, OTHER, id, Op::Read { from, into, len: 64 }).unwrap();
        }
        one.fence(OTHER).unwrap();
        other.fence(ONE).unwrap();
        rig::wait(&mut one, 8);
        assert_eq!([ONE, OTHER].map(|peer| wires.holdings(peer)), before);
    }
    drop((other, one));
    assert_eq!([ONE, OTHER].map(|peer| wires.holdings(peer)), unused);
}

/// Enough of them that what is not given back would be missed.
#[test]
fn a_hundred_lives_leave_nothing_behind() {
    let Some(mut one) = rig::end(ONE, &layout(), Config::default()) else { return };
    for incarnation in 1..=100 {
        let incarnations = (FIRST.0, Incarnation(incarnation));
        let mut other = rig::end(OTHER, &layout(), Config::default()).unwrap();
        rig::introduce(&mut one, &mut other, incarnations);
        rig::admit(&mut one, &mut other, incarnations);
        let op = Op::Write { to: at(Region(0), 0), bytes: b"hello" };
        assert_eq!(rig::run(&mut one, OTHER, op), Ok(0));
        one.fence(OTHER).unwrap();
    }
}
