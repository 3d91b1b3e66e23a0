//! A breach of a rule, with its place and its cure.

use std::fmt;

/// One breach, shown as `path:line: what; cure`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) path: String,
    /// From 1; 0 when the finding is about the file or the folder as a whole.
    pub(crate) line: usize,
    pub(crate) what: String,
    pub(crate) cure: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, what, cure } = self;
        match line {
            0 => write!(out, "{path}: {what}\n    cure: {cure}"),
            _ => write!(out, "{path}:{line}: {what}\n    cure: {cure}"),
        }
    }
}

/// Fails the test that calls it, with every finding, when there is one.
#[track_caller]
pub(crate) fn expect_none(rule: &str, findings: &[Finding]) {
    let list: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(list.is_empty(), "{} against the rule: {rule}\n\n{}\n", list.len(), list.join("\n"));
}

/// The lines of the findings, for the tests of a rule.
pub(crate) fn lines(findings: &[Finding]) -> Vec<usize> {
    findings.iter().map(|finding| finding.line).collect()
}

#[test]
fn a_finding_reads_as_place_breach_and_cure() {
    let finding =
        Finding { path: "core/src/neb.rs".into(), line: 7, what: "std".into(), cure: "use core" };
    assert_eq!(finding.to_string(), "core/src/neb.rs:7: std\n    cure: use core");
}
