//! Leftovers: unfinished code, notes to self, tests that are switched off.

use crate::finding::{Finding, expect_none, lines};
use crate::source::{Source, words};
use crate::tree::Tree;

const CODE: &[&str] = &["todo!", "unimplemented!", "dbg!", "#[ignore"];

const NOTES: &[&str] = &["FIXME", "TODO", "XXX"];

fn left(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, line) in source.numbered() {
        let code = CODE.iter().filter(|mark| words(&line.code, mark).next().is_some());
        let notes = NOTES.iter().filter(|mark| words(&line.comment, mark).next().is_some());
        for mark in code.chain(notes) {
            let cure = "finish it, delete it, or open an issue and say nothing here";
            findings.push(source.finding(at, format!("`{mark}` was left here"), cure));
        }
    }
    findings
}

#[test]
fn nothing_is_left_lying_about() {
    expect_none("no unfinished code, no notes to self", &Tree::load().check(left));
}

#[test]
fn a_leftover_is_found() {
    let bad = "todo!();\n// FIXME: later\ndbg!(a);\n#[ignore = \"slow\"]\nfn f() {}\n\
               let a = \"TODO\";\nmatch a { _ => unimplemented!() } // XXX";
    let found = left(&Source::parse("hosted/src/node.rs", bad));
    assert_eq!(lines(&found), [1, 2, 3, 4, 7, 7]);
}
