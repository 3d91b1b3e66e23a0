//! The conformance suite over the loopback fabric, and the proof that it bites: a fabric with
//! one fault fails the case that is there for it, and every case is there for some fault.

mod broken;
mod faults;
mod rig;
mod works;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use weft_core::fabric::conformance::cases;
use weft_core::fabric_conformance;

use broken::Broken;
use faults::{FAULTS, Fault};
use rig::Rig;

fabric_conformance!(Rig::sound());

/// With what words the case fails over a fabric with the fault.
fn complaint(fault: Fault, case: fn(&mut Rig<Broken>)) -> Option<String> {
    let mut rig = Rig::broken(fault);
    let panic = catch_unwind(AssertUnwindSafe(|| case(&mut rig))).err()?;
    Some(panic.downcast_ref().cloned().unwrap_or_default())
}

/// The rule of a case as its complaints spell it: `F-10` of `f10_bytes_…`.
fn rule_of(name: &str) -> String {
    let rule = name.split('_').next().unwrap();
    match rule.strip_prefix('f') {
        Some(number) => format!("F-{number}"),
        None => rule.into(),
    }
}

#[test]
fn every_fault_is_caught_by_its_case() {
    let all = cases();
    for &(fault, names) in FAULTS {
        for &name in names {
            let found = all.iter().find(|(case, _)| *case == name);
            let (_, case) = found.unwrap_or_else(|| panic!("there is no case {name}"));
            let complaint = complaint(fault, *case).unwrap_or_default();
            let rule = rule_of(name);
            assert!(complaint.contains(&rule), "{name} over {fault:?}: {complaint:?}");
        }
    }
}

#[test]
fn every_case_catches_a_fault() {
    let catching: BTreeSet<_> = FAULTS.iter().flat_map(|(_, names)| names.iter()).collect();
    let idle: Vec<_> =
        cases::<Rig<Broken>>().into_iter().filter(|(name, _)| !catching.contains(name)).collect();
    assert!(idle.is_empty(), "cases without a fault: {:?}", idle.iter().map(|(name, _)| name));
}

#[test]
fn the_wrapper_without_a_fault_passes() {
    for (name, case) in cases() {
        assert_eq!(complaint(Fault::None, case), None, "{name}");
    }
}
