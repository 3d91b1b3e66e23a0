//! Memory orders: each that is not relaxed names the model that would detect its absence.
//!
//! A fence or an ordered access has `SYNC: label` in a comment above it, and a model in
//! `core/tests/loom` names the labels that it models. Measurements are exempt: no protocol depends
//! on them.

use std::collections::BTreeSet;

use crate::finding::{Finding, expect_none, lines};
use crate::source::{Source, words};
use crate::tree::Tree;

const ORDERS: &[&str] =
    &["Ordering::Acquire", "Ordering::Release", "Ordering::AcqRel", "Ordering::SeqCst"];

/// The folder of the models.
const MODELS: &str = "core/tests/loom/";

/// Measurements, which are not part of a protocol.
const MEASURES: &[&str] = &["hosted/bench/src/", "driver/src/revocation.rs"];

/// The most lines between a label and the access below it.
const REACH: usize = 8;

/// The labels in a comment: names after `SYNC:`, separated by commas, up to a full stop.
fn labels(comment: &str) -> BTreeSet<String> {
    let Some((_, after)) = comment.split_once("SYNC:") else { return BTreeSet::new() };
    let list = after.split('.').next().unwrap_or_default();
    let labels = list.split(',').map(|label| label.trim().trim_matches('`'));
    // Prose about labels is not a label.
    let is_label = |label: &&str| {
        !label.is_empty()
            && label.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-')
    };
    labels.filter(is_label).map(str::to_owned).collect()
}

/// Every label of a file, with its line.
fn labelled(source: &Source) -> impl Iterator<Item = (usize, String)> {
    let lines = source.numbered();
    lines.flat_map(|(at, line)| labels(&line.comment).into_iter().map(move |label| (at, label)))
}

fn named(source: &Source) -> Vec<Finding> {
    let exempt = MEASURES.iter().any(|path| source.path.starts_with(path));
    if exempt || source.path.contains("/tests/") {
        return Vec::new();
    }
    let labels: BTreeSet<usize> = labelled(source).map(|(at, _)| at).collect();
    let is_ordered = |code: &str| ORDERS.iter().any(|order| words(code, order).next().is_some());
    let ordered = source.numbered().filter(|(_, line)| !line.is_test && is_ordered(&line.code));
    ordered
        .filter(|(at, _)| labels.range(at.saturating_sub(REACH)..=*at).next().is_none())
        .map(|(at, _)| {
            let cure = "say `SYNC: label` above it, and model it in core/tests/loom; or relax it";
            source.finding(at, "a memory order without a label".into(), cure)
        })
        .collect()
}

fn modelled(tree: &Tree) -> Vec<Finding> {
    let (models, others): (Vec<&Source>, Vec<&Source>) =
        tree.sources().partition(|source| source.path.starts_with(MODELS));
    let of = |sources: &[&Source]| -> BTreeSet<String> {
        sources.iter().flat_map(|source| labelled(source).map(|(_, label)| label)).collect()
    };
    let (known, used) = (of(&models), of(&others));
    let finding = |source: &Source, at, what: &str, label, cure| {
        source.finding(at, format!("{what} `{label}`"), cure)
    };
    let unmodelled = others.iter().flat_map(|source| {
        let labels = labelled(source).filter(|(_, label)| !known.contains(label));
        let cure = "write a model in core/tests/loom whose header says `SYNC: label`";
        labels.map(|(at, label)| finding(source, at, "no model of", label, cure))
    });
    let idle = models.iter().flat_map(|source| {
        let labels = labelled(source).filter(|(_, label)| !used.contains(label));
        let cure = "label what it is a model of, or delete it";
        labels.map(|(at, label)| finding(source, at, "a model of nothing,", label, cure))
    });
    unmodelled.chain(idle).collect()
}

#[test]
fn every_memory_order_has_a_label() {
    expect_none("memory orders are labelled", &Tree::load().check(named));
}

#[test]
fn every_label_has_a_model() {
    expect_none("labels are modelled", &modelled(&Tree::load()));
}

#[test]
fn an_order_without_a_label_is_found() {
    let bad = "// SYNC: bell-arm. It is first.\nfence(Ordering::SeqCst);\n\n\n\n\n\n\n\n\n\
               fence(Ordering::SeqCst);\na.load(Ordering::Relaxed);\nb.load(Ordering::Acquire);\n\
               #[cfg(test)]\nmod tests { fn f() { a.load(Ordering::Acquire); } }";
    let check = |path| lines(&named(&Source::parse(path, bad)));
    assert_eq!(check("core/src/neb/exposed.rs"), [11, 13]);
    assert_eq!(check("hosted/bench/src/exchange.rs"), []);
}

#[test]
fn a_label_without_a_model_and_a_model_of_nothing_are_found() {
    let tree = Tree::from_texts(&[
        ("core/src/arm.rs", "// SYNC: bell-arm. It is first.\n/// SYNC: neb-expose, other\n"),
        ("core/tests/loom/wake_up.rs", "//! SYNC: bell-arm, neb-expose.\n//! SYNC: gone.\n"),
    ]);
    let found: Vec<String> = modelled(&tree).iter().map(|finding| finding.what.clone()).collect();
    assert_eq!(found, ["no model of `other`", "a model of nothing, `gone`"]);
}
