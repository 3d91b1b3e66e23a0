//! A machine's SPEC.md numbers its guarantees, and every number that the tree cites is defined
//! there.
//!
//! `**W-3**` at the head of a list entry defines; `W-3` anywhere else cites.

use std::collections::BTreeSet;
use std::fs;

use crate::finding::{Finding, expect_none, lines};
use crate::source::Source;
use crate::tree::{Tree, root};

/// The prefixes of the numbers, and the files that define them.
const SPECS: &[(&str, &str)] = &[
    ("D", "core/src/dirnet/SPEC.md"),
    ("G", "core/src/dirnet/SPEC.md"),
    ("GT", "core/src/group/SPEC.md"),
    ("MB", "core/src/mailbox/SPEC.md"),
    ("N", "core/src/neb/SPEC.md"),
    ("RL", "core/src/recovery/SPEC.md"),
    ("RZ", "core/src/rendezvous/SPEC.md"),
    ("W", "core/src/wheel/SPEC.md"),
    ("X", "core/src/dirnet/SPEC.md"),
];

/// The numbers that `text` defines.
fn defined(prefix: &str, text: &str) -> BTreeSet<u32> {
    let head = format!("- **{prefix}-");
    let number = |line: &str| line.strip_prefix(&head)?.split("**").next()?.parse().ok();
    text.lines().filter_map(number).collect()
}

/// The numbers with `prefix` that a line cites.
fn cited<'a>(prefix: &'a str, text: &'a str) -> impl Iterator<Item = u32> + 'a {
    text.match_indices(prefix).filter_map(move |(at, _)| {
        let is_word = !text[..at].ends_with(|before: char| before.is_alphanumeric());
        let digits = text[at + prefix.len()..].strip_prefix('-').filter(|_| is_word)?;
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok()
    })
}

fn unresolved(source: &Source, prefix: &str, defined: &BTreeSet<u32>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, line) in source.numbered() {
        for number in cited(prefix, &line.comment).filter(|number| !defined.contains(number)) {
            let what = format!("{prefix}-{number} is not defined");
            findings.push(source.finding(
                at,
                what,
                "define it in the machine's SPEC.md, or cite another",
            ));
        }
    }
    findings
}

#[test]
fn every_number_that_is_cited_is_defined() {
    let tree = Tree::load();
    for (prefix, path) in SPECS {
        let text = fs::read_to_string(root().join(path)).expect("the specification is there");
        let defined = defined(prefix, &text);
        assert!(!defined.is_empty(), "{path} defines no {prefix}-n");
        let findings = tree.check(|source| unresolved(source, prefix, &defined));
        expect_none("every cited number is defined", &findings);
    }
}

#[test]
fn a_number_without_a_definition_is_found() {
    let defined = defined("W", "# Wheel\n- **W-1** one\n- **W-12** twelve\nW-3\n");
    assert_eq!(defined, BTreeSet::from([1, 12]));
    let source =
        Source::parse("core/src/a.rs", "// W-1, W-2\n// NEW-3 and W-12\n/// (W-13)\nfn f() {}\n");
    assert_eq!(lines(&unresolved(&source, "W", &defined)), [1, 3]);
}
