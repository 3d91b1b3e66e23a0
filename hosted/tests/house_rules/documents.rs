//! The Rust examples of the documents at the top level are compiled, as doc examples of the
//! library.

use std::fs;

use crate::finding::{Finding, expect_none, lines};
use crate::tree::{Tree, root};

const DOCUMENTS: &[&str] = &["README.md", "ARCHITECTURE.md", "CHANGELOG.md"];

/// Attributes of a fence that keep rustdoc from compiling its example.
const UNCOMPILED: &[&str] = &["ignore", "compile_fail", "text"];

/// Checks the document `path` with its `text`; `included` if a source includes it as documentation.
fn examples(path: &str, text: &str, included: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_open = false;
    for (line, fence) in (1..).zip(text.lines()) {
        let Some(marks) = fence.trim_start().strip_prefix("```") else {
            continue;
        };
        is_open = !is_open;
        let marks: Vec<&str> = marks.split([',', ' ']).map(str::trim).collect();
        if !is_open || !(marks[0] == "rust" || marks[0].is_empty()) {
            continue;
        }
        let find = |what: &str, cure| Finding { path: path.into(), line, what: what.into(), cure };
        if marks[0].is_empty() {
            let cure = "name the language of the block; rustdoc takes a nameless one for Rust";
            findings.push(find("a block without a language", cure));
        } else if marks.iter().any(|mark| UNCOMPILED.contains(mark)) {
            let cure = "make it compile; `no_run` is allowed where it needs a cluster";
            findings.push(find("an example that no test compiles", cure));
        } else if !included {
            let cure = "add #[cfg(doctest)] #[doc = include_str!(\"…\")] struct …; to the library";
            findings.push(find("no source includes this document", cure));
        }
    }
    findings
}

#[test]
fn examples_in_documents_are_compiled() {
    let tree = Tree::load();
    let includes = |document: &str| {
        let mut lines = tree.sources().flat_map(|source| &source.lines);
        lines.any(|line| line.code.contains("include_str!") && line.text.contains(document))
    };
    let mut findings = Vec::new();
    for document in DOCUMENTS {
        // A document that is not written yet has no examples.
        if let Ok(text) = fs::read_to_string(root().join(document)) {
            findings.extend(examples(document, &text, includes(&format!("/{document}\""))));
        }
    }
    expect_none("the Rust in documents is compiled", &findings);
}

#[test]
fn an_example_that_nobody_compiles_is_found() {
    let text = "# Weft\n```sh\ncargo test\n```\n```rust\nf();\n```\n```rust,ignore\ng();\n```\n\
                ```\nplain\n```\n```rust,no_run\nh();\n```\n";
    assert_eq!(lines(&examples("README.md", text, true)), [8, 11]);
    assert_eq!(lines(&examples("README.md", text, false)), [5, 8, 11, 14]);
}

/// The paths that SECURITY.md names as tests and evidence.
#[test]
fn what_the_security_notes_cite_is_there() {
    let text = fs::read_to_string(root().join("SECURITY.md")).expect("it is there");
    let quoted = text.split('`').skip(1).step_by(2);
    let is_path = |it: &&str| {
        it.split_once('/').is_some_and(|(folder, _)| ["core", "hosted", "ci"].contains(&folder))
    };
    let cited: Vec<&str> = quoted.filter(is_path).collect();
    assert!(cited.len() > 5, "{cited:?}");
    for path in cited {
        assert!(root().join(path).exists(), "SECURITY.md cites {path}, which is not there");
    }
}
