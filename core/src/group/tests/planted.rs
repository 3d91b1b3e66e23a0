//! Scenarios of the planted bugs that no seed shows, each a check that its guard makes hold.

use super::returns::{come_back, members, remove, send};
use super::*;

fn run_one(members: &mut [Member<'_>], at: usize) {
    run(core::slice::from_mut(&mut members[at]));
}

/// G29: of what a member holds of an earlier epoch nothing is read as if it were of the present one.
fn blocks_of_an_earlier_epoch_are_not_read() -> bool {
    let (net, config, regions) = net(Spread::Pipeline);
    let mut members = members(&net, (config, regions));
    send(&mut members[3], &message(128));
    run(&mut members);
    for at in [0, 2] {
        take(&mut members[at]);
    }
    run(&mut members);
    members.pop();
    let back = come_back((&net, (config, regions)), &mut members, (3, 2, 1));
    members.push(back);
    run(&mut members);
    // Member 1 holds what the earlier epoch sent, for its consumer is not done with that.
    send(&mut members[3], &message(150));
    run(&mut members);
    take(&mut members[1]);
    run(&mut members);
    [0, 1, 2].iter().all(|at| take(&mut members[*at]).0 == [(1, message(150))])
}

/// G38: the value of a member that is removed while another comes back is not lost to one and kept
/// by another.
fn a_welcome_counts_under_the_same_members_alone() -> bool {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    let (fabric, groups) = &mut members[1];
    groups.all_gather(fabric, WORLD, b"b").unwrap();
    run(&mut members);
    members.pop();
    let back = come_back((&net, (config, regions)), &mut members, (3, 2, 1));
    members.push(back);
    run(&mut members[..3]);
    run_one(&mut members, 3);
    // They count it, and member 1 never says so.
    for at in [0, 2] {
        run_one(&mut members, at);
    }
    run_one(&mut members, 3);
    for at in [0, 2] {
        // What they say fills the lane but for one place, so the next welcome comes later.
        for _ in 0..3 {
            send(&mut members[at], &message(40));
            run_one(&mut members, at);
        }
        remove(&mut members[at], 1, 1);
        run_one(&mut members, at);
    }
    remove(&mut members[3], 1, 1);
    members.remove(1);
    run(&mut members);
    let (fabric, groups) = &mut members[2];
    groups.all_gather(fabric, WORLD, b"d") == Ok(2)
}

// Not while another test plants a bug.
#[cfg(not(feature = "mutants"))]
#[test]
fn what_was_announced_of_an_earlier_epoch_does_not_count() {
    assert!(blocks_of_an_earlier_epoch_are_not_read());
}

#[cfg(not(feature = "mutants"))]
#[test]
fn a_welcome_that_was_said_before_a_removal_does_not_count() {
    assert!(a_welcome_counts_under_the_same_members_alone());
}

/// Each guard is left out in turn, and its scenario fails.
#[cfg(feature = "mutants")]
#[test]
fn every_scenario_notices_its_planted_bug() {
    use super::super::mutants::SCENARIO_MUTANTS;
    use crate::mutant::plant;
    let scenarios: [fn() -> bool; 2] =
        [blocks_of_an_earlier_epoch_are_not_read, a_welcome_counts_under_the_same_members_alone];
    for (mutant, holds) in SCENARIO_MUTANTS.iter().zip(scenarios) {
        assert!(holds(), "{} without the bug", mutant.name);
        plant(Some(mutant));
        let is_noticed = !holds();
        plant(None);
        assert!(is_noticed, "{}", mutant.name);
        std::println!("{}: noticed", mutant.name);
    }
}
