//! The promises, held against what happens.

use std::collections::BTreeMap;

use weft_core::dirnet::{Explanation, Life, Role, Term, Verdict};
use weft_core::ids::Rank;

use super::net::Machine;
use super::strike::Weather;
use crate::sim::protocol::Violation;

/// What the promises are about.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) violation: Option<Violation>,
    weather: Weather,
    /// Whose each reign was.
    reigns: BTreeMap<Term, (Rank, Life)>,
    /// The highest term of each node.
    terms: Vec<Term>,
    /// When the first verdict against a life of a node was.
    removed: BTreeMap<(u16, u32), u64>,
}

impl Ledger {
    pub(super) fn new(nodes: usize, weather: Weather) -> Self {
        Self {
            violation: None,
            weather,
            reigns: BTreeMap::new(),
            terms: vec![Term::default(); nodes],
            removed: BTreeMap::new(),
        }
    }

    pub(super) fn broken(&mut self, checker: &'static str, what: String) {
        self.violation.get_or_insert_with(|| Violation::new(checker, what));
    }

    /// `component` has handled something.
    pub(super) fn look(&mut self, component: &Machine) {
        let (me, life, term) = (component.me(), component.life(), component.term());
        let before = self.terms[usize::from(me.0)];
        if term < before {
            self.broken("terms", format!("node {me} went from term {before} to {term}"));
        }
        self.terms[usize::from(me.0)] = term;
        if component.role() != Role::Manager {
            return;
        }
        let owner = *self.reigns.entry(term).or_insert((me, life));
        if owner != (me, life) || term.claimant != me {
            let (other, its) = owner;
            let what = format!("term {term} of node {other} in life {its}: {me} in life {life}");
            self.broken("one-manager", what);
        }
    }

    pub(super) fn handle_verdict(&mut self, now: u64, why: &Explanation) {
        if !matches!(why.verdict, Verdict::NodeDown | Verdict::Isolated) {
            return;
        }
        self.removed.entry((why.node.0, why.life.boot.0)).or_insert(now);
        if self.weather == Weather::Stalls {
            let rule = why.rule.name();
            let what = format!("node {} only stood still, and is removed by {rule}", why.node);
            self.broken("accuracy", what);
        }
    }

    /// When that life of `node` was removed.
    pub(super) fn removed_at(&self, node: Rank, boot: u32) -> Option<u64> {
        self.removed.get(&(node.0, boot)).copied()
    }
}
