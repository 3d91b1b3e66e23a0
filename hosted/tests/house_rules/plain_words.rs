//! Plain words: sources are written in the field's terms.
//!
//! For each banned word the finding names a plainer one.

use crate::finding::{Finding, expect_none, lines};
use crate::source::{Source, words};
use crate::tree::Tree;

/// A banned word, and its replacement.
const WORDS: &[(&str, &str)] = &[
    ("anew", "again"),
    ("anybody", "any peer"),
    ("born", "started"),
    ("everybody", "all peers"),
    ("for ever", "forever"),
    ("life", "incarnation (of a component), boot (of a node)"),
    ("midst", "middle"),
    ("nobody", "no peer, no thread: the noun that it is"),
    ("reign", "term"),
    ("somebody", "a peer, a caller: the noun that it is"),
    ("tidings", "event"),
    ("told", "sent, reported, logged, returned"),
    ("whoever", "a peer that, the caller that"),
];

pub(crate) fn riddles(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, line) in source.numbered() {
        let text = line.text.to_lowercase();
        for (word, instead) in WORDS {
            if words(&text, word).next().is_some() {
                findings.push(source.finding(at, format!("`{word}`"), instead));
            }
        }
    }
    findings
}

#[test]
fn sources_use_the_words_of_the_field() {
    let tree = Tree::load();
    // This rule itself names the words.
    let findings = tree.check(|source| {
        if source.path.ends_with("plain_words.rs") { Vec::new() } else { riddles(source) }
    });
    expect_none("the words of the field", &findings);
}

#[test]
fn a_riddle_is_found() {
    let source = Source::parse(
        "core/src/a.rs",
        "// Nobody is told.\nlet life = 1;\nlet lifetime = 1;\n\"for ever\"",
    );
    assert_eq!(lines(&riddles(&source)), [1, 1, 2, 4]);
}
