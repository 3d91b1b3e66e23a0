//! Every guard is disabled once, and a scenario must detect it.

use std::string::String;
use std::vec::Vec;

use crate::mutant::{Mutant, plant};
use crate::neb::mutants::{EITHER_MUTANTS, EPOCH_MUTANTS, MUTANTS};
use crate::neb::tests::epochs;
use crate::neb::tests::tables::guards;
use crate::neb::tests::traps::{SCENARIOS, Scenario};

type Subject = (&'static Mutant, &'static [(&'static str, Scenario)]);

#[cfg(feature = "signed")]
fn signed_subjects() -> Vec<Subject> {
    use crate::neb::mutants::{CRAFTED_MUTANTS, SIGNED_MUTANTS};
    use crate::neb::tests::signed;
    let all = SIGNED_MUTANTS.iter().chain(CRAFTED_MUTANTS);
    all.map(|mutant| (mutant, signed::SCENARIOS)).collect()
}

#[cfg(not(feature = "signed"))]
fn signed_subjects() -> Vec<Subject> {
    Vec::new()
}

/// The scenario of `mutant`, as the table of guards has it.
fn scenario_of(mutant: &Mutant) -> &'static str {
    let [_, _, path] = guards()
        .find(|[trap, guard, _]| std::format!("{trap} {guard}").to_lowercase() == spaced(mutant))
        .expect("every guard is in the table");
    path.split_once("::").map_or(path, |(_, name)| name)
}

/// `U3-read-before-expose` as the table has it: `u3 read_before_expose`.
fn spaced(mutant: &Mutant) -> String {
    mutant.name.to_lowercase().replacen('-', " ", 1).replace('-', "_")
}

/// The name of a scenario as its function has it.
fn folded(name: &str) -> String {
    let plain = name.chars().filter(|letter| !matches!(letter, ',' | '\''));
    plain.map(|letter| if letter == ' ' { '_' } else { letter }).collect()
}

#[test]
fn every_disabled_guard_is_detected_by_its_scenario() {
    let mut survivors = Vec::new();
    let signed = signed_subjects();
    let all = MUTANTS.iter().chain(EITHER_MUTANTS);
    let epochs = EPOCH_MUTANTS.iter().map(|mutant| (mutant, epochs::SCENARIOS));
    let subjects = all.map(|mutant| (mutant, SCENARIOS)).chain(epochs).chain(signed);
    for (mutant, scenarios) in subjects {
        plant(Some(mutant));
        let caught: Vec<_> = scenarios
            .iter()
            .filter_map(|(name, scenario)| scenario().err().map(|broken| (name, broken)))
            .collect();
        let promised = |broken| std::format!("{broken:?}").to_lowercase() == mutant.breaks;
        let scenario = scenario_of(mutant);
        let is_it = |name: &str| folded(name) == scenario;
        let noticed = caught.iter().any(|(name, broken)| is_it(name) && promised(*broken));
        std::println!("{:28} {:10} {scenario:32} {noticed}", mutant.name, mutant.breaks);
        if !noticed {
            survivors.push(mutant.name);
        }
    }
    plant(None);
    assert_eq!(survivors, [""; 0], "no scenario detects these");
}
