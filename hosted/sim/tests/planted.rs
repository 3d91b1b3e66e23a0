//! What planted bugs show beside the table of `examples/mutants.rs`, with the same build of the
//! simulator. A bug is planted in the whole process, so each test runs alone: `ci/mutants`.

use weft_core::{dirnet, ids::PeerSet, mutant::plant, neb::mutants};
use weft_sim::dirnet::graphs::{FALSE_REMOVALS_BEFORE, GraphFailure, rows};
use weft_sim::{Bounds, Pace, Protocol, Small, mutants::explore_reads, neb::Broadcasts};

/// WEFT_GRAPHS_FULL counts the graphs of six nodes, too: a minute's work.
#[test]
fn the_earlier_rule_removes_as_often_as_the_table_says() {
    plant(dirnet::MUTANTS.iter().find(|mutant| mutant.name == "one-witness-removes"));
    let most = if std::env::var_os("WEFT_GRAPHS_FULL").is_some() { 6 } else { 5 };
    let cases = (3..=most).flat_map(|nodes| GraphFailure::ALL.map(|failure| (nodes, failure)));
    let rows = rows(cases, || ());
    plant(None);
    let found: Vec<_> = rows.iter().map(|row| row.removing_falsely).collect();
    assert!(FALSE_REMOVALS_BEFORE.starts_with(&found), "{found:?}");
}

#[test]
fn reads_that_are_put_first_hide_no_planted_bug() {
    let (steps, starts, faults, waits) = (None, Some(0), Some(0), Some(0));
    let bounds = Bounds { steps, crashes: 1, starts, faults, waits, states_max: 1 << 20 };
    // No two peers are alike here.
    let (pace, alike) = (Pace::AtOnce, PeerSet::EMPTY);
    let at_once = |small: Small<Broadcasts>| {
        let has = |words: [&str; 2]| words.iter().all(|word| small.name.contains(word));
        let calm = has(["n = 4", "unsigned, one slot"]) || has(["n = 3, W = 8", "two slots"]);
        let crashes = if has(["n = 3", "one slot"]) { Some(1) } else { calm.then_some(0) };
        crashes.map(|crashes| Small { pace, alike, crashes, ..small })
    };
    let small: Vec<_> = Broadcasts::small().into_iter().filter_map(at_once).collect();
    assert_eq!(small.len(), 24);
    let lists = [mutants::MUTANTS, mutants::SIGNED_MUTANTS, mutants::EITHER_MUTANTS];
    for mutant in lists.into_iter().flatten() {
        plant(Some(mutant));
        let is_shown = |small: &&Small<Broadcasts>| {
            let [fewer, all] = explore_reads(small, &bounds).map(|found| {
                assert!(found.finished || found.violation.is_some(), "{}", small.name);
                found.violation.is_some()
            });
            assert_eq!(fewer, all, "{}: {}", mutant.name, small.name);
            fewer
        };
        let caught = small.iter().filter(is_shown).count();
        plant(None);
        println!("{:<29} shown by {caught} of {} small configurations", mutant.name, small.len());
    }
}
