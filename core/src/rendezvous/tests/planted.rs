//! Scenarios of the planted bugs that no run of correct members shows, each a check that its guard
//! makes hold.

use super::*;

/// V17: bytes that changed since they were sent are not delivered, and the value stays.
fn damage_is_noticed() -> bool {
    let setup = setup(sizes());
    let mut nodes = setup.nodes();
    nodes[0].send(&key(0, 1), STEP, &pattern(100, 0));
    nodes[0].fabric.memory().copy_in(setup.regions.offers(), 40, &[0xff]);
    let request = nodes[1].receive(&key(0, 1), STEP);
    run(&mut nodes);
    let is_noticed = nodes[1].events() == ended(request, Received::Corrupt);
    run(&mut nodes);
    is_noticed && nodes[0].adapter.used() == [0, 1, 0] && nodes[1].adapter.landings().is_whole()
}

/// V8: what was lent to a peer that cannot be reached is kept until it is fenced.
fn suspects_keep_what_they_were_lent() -> bool {
    let mut nodes = nodes(sizes());
    nodes[0].send(&key(0, 1), STEP, &pattern(100, 0));
    nodes[1].receive(&key(0, 1), STEP);
    nodes[1].receive(&key(0, 1), Place::whole(6));
    nodes[0].poll(Instant(0));
    // The pair is lost, and the adapter has not learned of a fence: its next message fails.
    nodes[0].fabric.fence(Peer(1)).unwrap();
    nodes[0].send(&key(0, 1), Place::whole(6), &pattern(8, 0));
    nodes[0].adapter.offers().lent() == 128 + 64
}

/// RZ-14.
#[test]
fn damaged_bytes_are_not_delivered() {
    assert!(damage_is_noticed());
}

#[test]
fn an_offer_is_kept_until_its_reader_is_fenced() {
    assert!(suspects_keep_what_they_were_lent());
}

/// Each guard is left out in turn, and its scenario fails.
#[cfg(feature = "mutants")]
#[test]
fn every_scenario_notices_its_planted_bug() {
    use crate::mutant::plant;
    let scenarios: [fn() -> bool; 4] = [
        suspects_keep_what_they_were_lent,
        wires::an_address_is_checked,
        || Shape::new(Dtype::U8, &[1 << 63, 2, 3]).is_err(),
        damage_is_noticed,
    ];
    for (mutant, holds) in SCENARIO_MUTANTS.iter().zip(scenarios) {
        assert!(holds(), "{} without the bug", mutant.name);
        plant(Some(mutant));
        let is_noticed = !holds();
        plant(None);
        assert!(is_noticed, "{}", mutant.name);
        std::println!("{}: noticed", mutant.name);
    }
}
