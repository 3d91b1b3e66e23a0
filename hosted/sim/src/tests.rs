//! The simulator on its first subject: seeds pass, and a seed means the same twice.

mod conformance;
mod explorer;
mod overtaking;
mod stalls;

use super::endpoint::Endpoints;
use super::group::Groupings;
use super::mailbox::Mailboxes;
use super::neb::Broadcasts;
use super::rendezvous::Meetings;
use super::{Bounds, Protocol, RunPlan, Trace, explore, run};

fn seeds_pass<P: Protocol>(count: u64) {
    for seed in 0..count {
        let outcome = run::<P>(&RunPlan::of(seed));
        assert_eq!(outcome.violation, None, "weft sim --protocol {} --seed {seed}", P::NAME);
    }
}

#[test]
fn some_seeds_of_the_mailbox_pass() {
    seeds_pass::<Mailboxes>(40);
}

#[test]
fn some_seeds_of_the_broadcast_pass() {
    seeds_pass::<Broadcasts>(40);
}

#[test]
fn some_seeds_of_groups_pass() {
    seeds_pass::<Groupings>(60);
}

#[test]
fn some_seeds_of_rendezvous_pass() {
    seeds_pass::<Meetings>(150);
}

#[test]
fn some_seeds_of_the_endpoint_pass() {
    seeds_pass::<Endpoints>(300);
}

/// The larger configurations only as far as there is time for in every test run.
#[test]
fn the_explorer_finishes_the_small_broadcasts() {
    let bounds = Bounds {
        steps: None,
        crashes: 1,
        starts: None,
        faults: None,
        waits: None,
        states_max: 700,
    };
    let explored = explore::<Broadcasts>(&bounds, &|_| ());
    let two = |name: &str| name.starts_with("n = 2, W = 4, unsigned");
    assert_eq!((explored.len() > 20, explored.iter().filter(|(n, _)| two(n)).count()), (true, 4));
    for (name, found) in explored {
        assert_eq!(found.violation, None, "{name}");
        assert!(found.finished || !two(&name), "{name}");
    }
}

#[test]
fn a_seed_is_the_same_twice() {
    let plan = RunPlan { trace: Trace::on(), ..RunPlan::of(5) };
    let [one, other] = [(); 2].map(|()| run::<Mailboxes>(&plan));
    assert!(one.trace.lines().count() > 100);
    assert_eq!(one.trace, other.trace);
}

#[test]
fn the_explorer_sees_all_of_one_step_and_a_crash() {
    let bounds = Bounds {
        steps: Some(1),
        crashes: 1,
        starts: Some(0),
        faults: Some(0),
        waits: Some(0),
        states_max: 100_000,
    };
    let (_, found) = explore::<Mailboxes>(&bounds, &|_| ()).remove(0);
    assert_eq!(found.violation, None);
    assert!(found.finished && found.states > 20, "{} states", found.states);
}
