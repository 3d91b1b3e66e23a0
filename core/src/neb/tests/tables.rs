//! The tables in the module headers match the code.

use std::vec::Vec;

const SCENARIOS: &str = include_str!("../tests.rs");
const MUTANTS: &str = include_str!("../mutants.rs");

/// The tests' modules, by name.
const MODULES: [(&str, &str); 8] = [
    ("faces", include_str!("faces.rs")),
    ("epochs", include_str!("epochs.rs")),
    ("replayers", include_str!("replayers.rs")),
    ("restarts", include_str!("restarts.rs")),
    ("schedules", include_str!("schedules.rs")),
    ("signed", include_str!("signed.rs")),
    ("traps", include_str!("traps.rs")),
    ("windows", include_str!("windows.rs")),
];

/// The scenarios of the specification in its order: the beginning of each row's first cell.
const CALLED_FOR: [&str; 13] = [
    "all correct",
    "m to one half",
    "equivocate, then die",
    "the origin rewrites",
    "a replayer that lies",
    "that flaps",
    "that stays empty",
    "that tears",
    "a peer dies",
    "ten wraps",
    "queue depths",
    "completions reordered",
    "a member returns",
];

/// The traps of the specification's table.
const TRAPS: [&str; 20] = [
    "U3", "U5", "U6", "U8", "S3", "S4", "S5", "S6", "T1", "T2", "T3", "T4", "T5", "L1", "L2", "L3",
    "L4", "L5", "L6", "L7",
];

/// The rows of the table in a file's header, each as its cells.
fn rows(file: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = file.lines().filter_map(|line| line.strip_prefix("//! |"));
    lines.skip(2).map(|row| row.split('|').map(str::trim).collect())
}

/// The texts in backticks in a cell.
fn quoted(cell: &'static str) -> impl Iterator<Item = &'static str> {
    cell.split('`').skip(1).step_by(2)
}

/// Trap, guard and scenario of each row of the table of guards.
pub(super) fn guards() -> impl Iterator<Item = [&'static str; 3]> {
    rows(MUTANTS).map(|row| {
        let name = |cell| quoted(cell).next().expect("a name in backticks");
        [row[0], name(row[1]), name(row[2])]
    })
}

/// Whether that module has a function of that name.
fn exists(path: &str) -> bool {
    path.split_once("::").is_some_and(|(module, name)| {
        let source = MODULES.iter().find(|(named, _)| *named == module);
        source.is_some_and(|(_, source)| source.contains(&std::format!("fn {name}(")))
    })
}

#[test]
fn every_scenario_of_the_specification_has_its_tests() {
    let rows: Vec<_> = rows(SCENARIOS).collect();
    assert_eq!(rows.len(), CALLED_FOR.len());
    for (row, called_for) in rows.iter().zip(CALLED_FOR) {
        assert!(row[0].starts_with(called_for), "{row:?}");
        assert!(quoted(row[1]).next().is_some(), "{row:?}");
        for test in quoted(row[1]) {
            assert!(exists(test), "{}: there is no {test}", row[0]);
        }
    }
}

#[test]
fn every_trap_has_its_guard_and_its_scenario() {
    for trap in TRAPS {
        assert!(guards().any(|[of, ..]| of == trap), "{trap} has no guard");
    }
    for [trap, guard, scenario] in guards() {
        assert!(MUTANTS.contains(&std::format!("pub const {guard}: Mutant")), "{trap}: {guard}");
        assert!(exists(scenario), "{trap}: there is no {scenario}");
    }
}
