//! What scripts promise, held against what happens in the lab.

use std::collections::{BTreeMap, BTreeSet};

use weft_core::ids::{Rank, Term};
use weft_core::recovery::{ORDERS_MAX, OrderId, Trace};
use weft_core::script::ReloadEnd;
use weft_core::time::Instant;
use weft_core::vote::VoteOutcome;

use super::drawn::DrawnScript;
use super::task::{RESTARTS_MAX, RESTARTS_WITHIN};
use super::{Happening, ScriptLab};
use crate::protocol::Violation;

/// Within what a manager that all follow has answered all errors, whatever frames are lost.
const ANSWERED_US: u64 = 2_000_000;

/// Since when the same incarnations run under one manager: node, boot, generation.
type Steady = (u64, Vec<(u16, u32, u32)>, Term);

/// What was promised so far.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// Of each task, the last order that was obeyed, and how many errors were answered.
    answered: BTreeMap<u8, (OrderId, u32)>,
    /// The tasks whose nodes have answered without an order since.
    unordered: BTreeSet<u8>,
    /// What came of each round.
    rounds: BTreeMap<u32, VoteOutcome>,
    /// The scripts that were in force, in their order.
    in_force: Vec<u64>,
    /// The terms in which scripts were evaluated.
    pub(super) terms: Vec<Term>,
    /// How many orders were outdated, and how many reloads have ended with a script in force.
    pub(super) outdated: u32,
    pub(super) reloaded: u32,
    /// Since when all nodes agree, and who runs.
    steady: Option<Steady>,
}

impl Checks {
    pub(super) fn new(first: u64) -> Self {
        Self { in_force: vec![first], ..Self::default() }
    }

    /// Whether a node has used that script last of all.
    pub(super) fn is_in_force(&self, digest: u64) -> bool {
        self.in_force.last() == Some(&digest)
    }

    #[cfg(test)]
    pub(super) fn rounds(&self) -> usize {
        self.rounds.len()
    }

    /// Looks at the cluster, and at what has happened since the last call.
    pub(super) fn look(
        &mut self,
        lab: &mut ScriptLab,
        scripts: &[DrawnScript],
    ) -> Result<(), Violation> {
        self.follow(lab);
        for (at_us, happening) in lab.take_events() {
            self.judge(lab, scripts, at_us, &happening)?;
        }
        let now = Instant(lab.net.now);
        for (number, task) in &lab.tasks {
            let is_recent = |at: &&Instant| now.since(**at) < RESTARTS_WITHIN;
            let count = task.restarts().iter().filter(is_recent).count();
            if count > RESTARTS_MAX {
                let what =
                    format!("T{number} was started again {count} times within {RESTARTS_WITHIN:?}");
                return Err(Violation::new("intensity", what));
            }
        }
        match lab.net.broken() {
            Some(broken) => Err(broken.clone()),
            None => Ok(()),
        }
    }

    /// Notes since when the same incarnations are members under one manager.
    fn follow(&mut self, lab: &ScriptLab) {
        let of = |it: &super::super::net::Machine| {
            let incarnation = it.incarnation();
            (it.me().0, incarnation.boot.0, incarnation.generation)
        };
        let runs: Vec<_> = lab.net.components().map(of).collect();
        let is_well = lab.net.missing().is_none() && !lab.is_lacking_script();
        let term = lab.net.components().map(super::super::net::Machine::term).max();
        let Some(term) = term.filter(|_| is_well) else {
            self.steady = None;
            return;
        };
        let is_same = |(_, before, then): &Steady| (before, *then) == (&runs, term);
        if !self.steady.as_ref().is_some_and(is_same) {
            self.steady = Some((lab.now_us(), runs, term));
        }
    }

    fn judge(
        &mut self,
        lab: &ScriptLab,
        scripts: &[DrawnScript],
        at_us: u64,
        happening: &Happening,
    ) -> Result<(), Violation> {
        match happening {
            Happening::Evaluated(node, digest, trace) => {
                let script = scripts.iter().find(|it| it.digest == *digest);
                let held = lab.picture(*node).zip(script).map(|(it, script)| script.held(it));
                self.check_trace(node.0, trace, held.as_deref())
            }
            Happening::Answered { task, id, seen, mark } => {
                self.check_answer(*task, *id, (*seen, *mark))
            }
            Happening::Outdated(_) => {
                self.outdated += 1;
                Ok(())
            }
            Happening::Unordered { task, errors } => {
                self.answered.entry(*task).or_default().1 = *errors;
                self.unordered.insert(*task);
                let since = self.steady.as_ref().map_or(u64::MAX, |(since, ..)| *since);
                if since.saturating_add(ANSWERED_US) < at_us {
                    let what = format!("no order for T{task}, though a manager was there for 2 s");
                    return Err(Violation::new("answered", what));
                }
                Ok(())
            }
            Happening::Voted(node, outcome) => {
                let first = self.rounds.entry(outcome.round).or_insert(*outcome);
                let what = |it: &VoteOutcome| (it.voters, it.agreed, it.kind, it.value);
                if what(first) != what(outcome) {
                    let what = format!("{first:?}, and at node {node} {outcome:?}");
                    return Err(Violation::new("vote", what));
                }
                Ok(())
            }
            Happening::Uses(node, digest) => self.check_script(lab, node.0, *digest),
            Happening::Reloaded(_, ReloadEnd::InForce(_)) => {
                self.reloaded += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn check_trace(
        &mut self,
        node: u16,
        trace: &Trace,
        held: Option<&[u16]>,
    ) -> Result<(), Violation> {
        if usize::from(trace.orders) > ORDERS_MAX {
            return Err(Violation::new("bound", format!("{trace:?}")));
        }
        if trace.term.claimant != Rank(node) {
            let what = format!("node {node} evaluates in term {} of another", trace.term);
            return Err(Violation::new("term", what));
        }
        if held.is_some_and(|held| held != trace.held.as_slice()) {
            let what = format!("{trace:?}, and on its picture {held:?} hold");
            return Err(Violation::new("frozen", what));
        }
        if !self.terms.contains(&trace.term) {
            self.terms.push(trace.term);
        }
        Ok(())
    }

    /// An order was obeyed that was given when `seen` errors were answered.
    fn check_answer(
        &mut self,
        task: u8,
        id: OrderId,
        (seen, mark): (u32, u32),
    ) -> Result<(), Violation> {
        let (last, answered) = self.answered.get(&task).copied().unwrap_or_default();
        if id.term < last.term {
            return Err(Violation::new("term", format!("T{task} obeys {id:?} behind {last:?}")));
        }
        let is_continued = (id.term, id.evaluation) == (last.term, last.evaluation)
            && !self.unordered.remove(&task);
        if id <= last || !is_continued && seen != answered {
            let what = format!(
                "T{task} obeys {id:?}, which saw {seen} answered, behind {last:?} with {answered}"
            );
            return Err(Violation::new("obeyed-once", what));
        }
        self.answered.insert(task, (id, mark.max(answered)));
        Ok(())
    }

    /// A node uses a script: the first one that does has decided that it is in force.
    fn check_script(&mut self, lab: &ScriptLab, node: u16, digest: u64) -> Result<(), Violation> {
        if self.in_force.contains(&digest) {
            return Ok(());
        }
        self.in_force.push(digest);
        match lab.lacking(node, digest) {
            None => Ok(()),
            Some(lacking) => {
                let what =
                    format!("node {node} uses {digest:016x}, which member {lacking} does not hold");
                Err(Violation::new("one-script", what))
            }
        }
    }

    /// What is not well yet of the promise number `promise`; none behind the last. A script may
    /// order again and again, so each promise has its own moment.
    pub(super) fn missing(
        &self,
        lab: &ScriptLab,
        promise: usize,
    ) -> Option<(&'static str, Option<String>)> {
        let last = self.in_force.last();
        let missing = match promise {
            0 => ("progress", lab.net.missing()),
            1 => {
                let waiting = lab.tasks.iter().find(|(_, task)| task.waits());
                let what = |(number, task)| format!("T{number} has unanswered errors: {task:?}");
                ("answered", waiting.map(what))
            }
            2 => {
                let waiting = lab.votes.iter().find(|(_, votes)| votes.waits());
                let what = |(node, votes)| format!("node {node} waits for an outcome: {votes:?}");
                ("vote", waiting.map(what))
            }
            3 => {
                let other = lab.used().find(|(_, used)| Some(used) != last);
                let what = |(node, used)| format!("node {node} uses {used:016x}");
                ("one-script", other.map(what))
            }
            4 => ("alpha", lab.alpha_that_differs()),
            _ => return None,
        };
        Some(missing)
    }
}
