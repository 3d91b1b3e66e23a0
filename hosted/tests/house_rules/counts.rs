//! What the plan of the house counts, printed by
//! `cargo test -p weft --test house_rules counts -- --nocapture`. No count gets worse; a change
//! that improves one lowers its limit here.

use std::collections::BTreeMap;

use crate::source::{Source, leading_ident, words};
use crate::tree::Tree;

/// One row: what is counted, how much there is, and the limit that it keeps.
struct Count {
    what: &'static str,
    found: f64,
    limit: Limit,
}

enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

impl Count {
    fn is_kept(&self) -> bool {
        match self.limit {
            Limit::AtMost(limit) => self.found <= limit,
            Limit::AtLeast(limit) => self.found >= limit,
        }
    }
}

fn counts(tree: &Tree) -> Vec<Count> {
    let sources: Vec<&Source> = tree.sources().collect();
    let row = |what, found, limit| Count { what, found, limit };
    vec![
        // A new capability adds its own lines (the return of removed members, the paths of tensors,
        // voting, the libraries for C and Python, metrics, a protocol of others in the simulator,
        // restarts of removed nodes, tensors in parts, waits for room, posts that end at once, a
        // member whole under the simulator, admissions explored, writes apart, a short way for
        // messages that nothing speaks against, messages that are taken together, messages that
        // share slots), as do tests of code that could be left out unnoticed; the house itself
        // shrinks.
        row("lines of Rust", lines_of_rust(&sources), Limit::AtMost(217_850.0)),
        row("% of type names in hosted that are used twice", twice(&sources), Limit::AtMost(5.0)),
        row("comments that say why, per 100 lines of code", reasons(&sources), Limit::AtLeast(1.3)),
        row("error types written by hand in hosted", by_hand(&sources), Limit::AtMost(2.0)),
        row("fields that hold an incarnation or a standing", held(&sources), Limit::AtMost(78.0)),
        row("types that name a term", terms(&sources), Limit::AtMost(1.0)),
        row("examples in Rust", examples(&sources), Limit::AtLeast(14.0)),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "counts of lines are small")]
fn number(count: usize) -> f64 {
    count as f64
}

fn lines_of_rust(sources: &[&Source]) -> f64 {
    number(sources.iter().map(|source| source.lines.len()).sum())
}

/// How many of the types of hosted share their name with another one.
fn twice(sources: &[&Source]) -> f64 {
    let mut defined: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.path.starts_with("hosted/")) {
        for line in source.lines.iter().filter(|line| !line.is_test) {
            for keyword in ["struct ", "enum ", "trait "] {
                for at in words(&line.code, keyword) {
                    let name = leading_ident(line.code[at + keyword.len()..].trim_start());
                    *defined.entry(name).or_default() += 1;
                }
            }
        }
    }
    let all: usize = defined.values().sum();
    let shared: usize = defined.values().filter(|&&count| count > 1).sum();
    100.0 * number(shared) / number(all)
}

/// Comments at the line that they explain, per hundred lines of code; documentation is none.
fn reasons(sources: &[&Source]) -> f64 {
    let shipped = || sources.iter().flat_map(|source| &source.lines).filter(|line| !line.is_test);
    let is_reason = |comment: &str| {
        let comment = comment.trim();
        comment.starts_with("//") && !comment.starts_with("///") && !comment.starts_with("//!")
    };
    let reasons = shipped().filter(|line| is_reason(&line.comment)).count();
    let code = shipped().filter(|line| !line.code.trim().is_empty()).count();
    100.0 * number(reasons) / number(code)
}

fn by_hand(sources: &[&Source]) -> f64 {
    let outside = sources.iter().filter(|source| !source.path.starts_with("core/"));
    let lines = outside.flat_map(|source| &source.lines);
    let is_by_hand = |code: &str| code.contains("Error for ") && code.starts_with("impl");
    number(lines.filter(|line| is_by_hand(&line.code) && !line.code.contains('<')).count())
}

/// The fields in which core and the library keep which incarnation of a node is in or out; the own
/// incarnations and those of messages are among them.
fn held(sources: &[&Source]) -> f64 {
    const TYPES: &[&str] = &["Incarnation", "ComponentIncarnation", "Standing", "Announcement"];
    let is_shipped = |path: &str| path.starts_with("core/src/") || path.starts_with("hosted/src/");
    let mut count = 0;
    for source in sources.iter().filter(|source| is_shipped(&source.path)) {
        let mut in_struct = false;
        for line in source.lines.iter().filter(|line| !line.is_test) {
            let is_head = words(&line.code, "struct ").next().is_some() && line.code.ends_with('{');
            in_struct = is_head || in_struct && line.code != "}";
            let is_field = in_struct && line.code.ends_with(',');
            count += usize::from(is_field && TYPES.iter().any(|it| has_word(&line.code, it)));
        }
    }
    number(count)
}

fn has_word(code: &str, word: &str) -> bool {
    words(code, word).next().is_some()
}

fn terms(sources: &[&Source]) -> f64 {
    let core = sources.iter().filter(|source| source.path.starts_with("core/src/"));
    let lines = core.flat_map(|source| &source.lines);
    number(lines.filter(|line| has_word(&line.code, "struct Term")).count())
}

fn examples(sources: &[&Source]) -> f64 {
    let is_example = |source: &&&Source| {
        let mut lines = source.lines.iter();
        source.path.contains("/examples/") && lines.any(|line| line.code.contains("fn main("))
    };
    number(sources.iter().filter(is_example).count())
}

#[test]
fn no_count_gets_worse() {
    let counts = counts(&Tree::load());
    for count in &counts {
        let limit = match count.limit {
            Limit::AtMost(limit) => format!("at most {limit}"),
            Limit::AtLeast(limit) => format!("at least {limit}"),
        };
        println!("{:>9.1}  {} ({limit})", count.found, count.what);
    }
    let broken: Vec<&str> =
        counts.iter().filter(|count| !count.is_kept()).map(|count| count.what).collect();
    assert!(broken.is_empty(), "worse than its limit in counts.rs: {}", broken.join("; "));
}

#[test]
fn a_name_and_a_reason_are_counted() {
    let source = Source::parse(
        "hosted/src/a.rs",
        "/// Docs.\npub struct Plan;\nenum Plan { A }\nstruct Row; // why\nlet a = 1;\n",
    );
    assert!((twice(&[&source]) - 66.7).abs() < 0.1);
    assert!((reasons(&[&source]) - 25.0).abs() < 0.1);
}
