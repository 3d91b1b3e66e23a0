//! The invariants, checked against the events of a run.

use std::collections::BTreeMap;

use weft_core::dirnet::{
    ComponentIncarnation, Explanation, Frame, Members, Reject, Role, Standing, Term, Timing,
    Verdict,
};
use weft_core::ids::{Incarnation, Rank};
use weft_core::time::Instant;

use super::evidence::Witnessed;
use super::isolations::Isolations;
use super::net::Machine;
use super::strike::Weather;
use super::views::Views;
use crate::protocol::Violation;

/// The state that the invariants refer to.
#[derive(Debug)]
pub(super) struct NetLedger {
    pub(super) violation: Option<Violation>,
    pub(super) isolations: Isolations,
    pub(super) evidence: Witnessed,
    views: Views,
    weather: Weather,
    /// The manager of each term.
    reigns: BTreeMap<Term, (Rank, ComponentIncarnation)>,
    /// The highest term of each node.
    terms: Vec<Term>,
    /// The state of each node when it was last inspected.
    seen: Vec<SeenComponent>,
    /// For each node that learned that it was removed and follows no manager yet: the nodes that
    /// have not asked for the manager since.
    outcasts: BTreeMap<Rank, Members>,
}

/// The state of a component after its last input.
#[derive(Clone, Copy, Debug)]
struct SeenComponent {
    incarnation: ComponentIncarnation,
    role: Role,
    term: Term,
    /// Since when it has managed without interruption, if it does.
    manages_since: Option<u64>,
    /// The nodes that it held removed.
    removed: Members,
    /// Where each node stood, and since when it stands there.
    standings: [(Standing, u64); 8],
}

impl SeenComponent {
    fn of(at: u64, component: &Machine) -> Self {
        let is_removed = |node: &Rank| {
            let standing = component.database().standing(*node);
            standing.is_known() && !standing.is_up()
        };
        Self {
            incarnation: component.incarnation(),
            role: component.role(),
            term: component.term(),
            manages_since: None,
            standings: [0, 1, 2, 3, 4, 5, 6, 7]
                .map(|node| (component.database().standing(Rank(node)), at)),
            removed: (0..8).map(Rank).filter(is_removed).collect(),
        }
    }

    const NONE: ComponentIncarnation = ComponentIncarnation { boot: Incarnation(0), generation: 0 };
    const NOTHING: Self = Self {
        incarnation: Self::NONE,
        role: Role::Joining,
        term: Term { epoch: 0, claimant: Rank(0) },
        manages_since: None,
        removed: Members::NONE,
        standings: [(Standing::up(Self::NONE), 0); 8],
    };
}

impl NetLedger {
    pub(super) fn new(nodes: usize, weather: Weather) -> Self {
        Self {
            violation: None,
            isolations: Isolations::new(nodes),
            evidence: Witnessed::default(),
            views: Views::default(),
            weather,
            reigns: BTreeMap::new(),
            terms: vec![Term::default(); nodes],
            seen: vec![SeenComponent::NOTHING; nodes],
            outcasts: BTreeMap::new(),
        }
    }

    pub(super) fn broken(&mut self, checker: &'static str, what: String) {
        self.violation.get_or_insert_with(|| Violation::new(checker, what));
    }

    /// Inspects `component` after an input.
    pub(super) fn look(&mut self, now: u64, component: &Machine) {
        let (me, incarnation, term) = (component.me(), component.incarnation(), component.term());
        let before = self.terms[usize::from(me.0)];
        if term < before {
            self.broken("terms", format!("node {me} went from term {before} to {term}"));
        }
        self.terms[usize::from(me.0)] = term;
        if let Some(what) = self.isolations.judge(component) {
            self.broken("isolation", what);
        }
        self.look_for_outcasts(now, component);
        if component.role() != Role::Manager {
            return;
        }
        let owner = *self.reigns.entry(term).or_insert((me, incarnation));
        if owner != (me, incarnation) || term.claimant != me {
            let (other, its) = owner;
            let what = format!(
                "term {term} of node {other}, incarnation {its}: {me}, incarnation {incarnation}"
            );
            self.broken("one-manager", what);
        }
    }

    /// Inspects the view that `component` shows; `has_fenced` says which boots its node has fenced.
    pub(super) fn look_at_view(
        &mut self,
        component: &Machine,
        has_fenced: impl Fn(u16, Incarnation) -> bool,
    ) {
        let shown_by = (component.me(), component.incarnation());
        if let Some((checker, what)) = self.views.judge(shown_by, component.view(), has_fenced) {
            self.broken(checker, what);
        }
    }

    /// A node with a role adopts no term of a node that it holds removed; a node that was removed
    /// has no role before a node that was not removed has answered it.
    fn look_for_outcasts(&mut self, at: u64, component: &Machine) {
        let me = component.me();
        let mut now = SeenComponent::of(at, component);
        let before = self.seen[usize::from(me.0)];
        for (standing, before) in now.standings.iter_mut().zip(before.standings) {
            if standing.0 == before.0 {
                standing.1 = before.1;
            }
        }
        if now.role == Role::Manager {
            let since = before.manages_since.filter(|_| before.incarnation == now.incarnation);
            now.manages_since = Some(since.unwrap_or(at));
        }
        self.seen[usize::from(me.0)] = now;
        let claimant = now.term.claimant;
        let has_opinion = matches!(before.role, Role::Manager | Role::Backup);
        let is_adopted =
            before.incarnation == now.incarnation && before.term != now.term && claimant != me;
        if has_opinion && is_adopted && before.removed.contains(claimant) {
            let what = format!("node {me} follows {claimant}, which it held removed");
            self.broken("outcast", what);
        }
        match now.role {
            Role::Joining => self.handle_joining(me),
            Role::Backup => drop(self.outcasts.remove(&me)),
            Role::Manager => {
                // An isolated node answers none.
                let held = self.isolations.held();
                let seated = self.outcasts.remove(&me).unwrap_or_default();
                if seated.iter().any(|node| !held.contains(node)) {
                    self.broken("outcast", format!("node {me} was removed, and reigns by itself"));
                }
            }
            Role::Excluded => {}
        }
    }

    /// `node` asks for a role, and has none in which to answer a removed node. It may end before it
    /// is inspected.
    pub(super) fn handle_joining(&mut self, node: Rank) {
        self.outcasts.values_mut().for_each(|seated| seated.remove(node));
    }

    /// Whether the component of `node`, if it is a manager, has been one since `then`, and knows
    /// since then where `other` stands.
    pub(super) fn manages_since(&self, node: Rank, other: Rank, then: u64) -> bool {
        let seen = &self.seen[usize::from(node.0)];
        let (_, known) = seen.standings[usize::from(other.0)];
        seen.manages_since.is_some_and(|since| since.max(known) <= then)
    }

    /// Records that `node` has learned of its removal.
    pub(super) fn handle_excluded(&mut self, node: Rank) {
        let others = (0..).map(Rank).zip(&self.seen).filter(|(other, _)| *other != node);
        let seated = others.filter(|(_, seen)| seen.role != Role::Joining);
        let seated = seated.map(|(other, _)| other).collect();
        self.outcasts.insert(node, seated);
    }

    /// `at` has handled `frame`.
    pub(super) fn handle_frame(
        &mut self,
        now: Instant,
        at: Rank,
        frame: &Frame,
        handled: Result<(), Reject>,
    ) {
        if let Some(what) = self.evidence.handle_frame(now, at, frame, handled) {
            self.broken("explanation", what);
        }
    }

    pub(super) fn handle_verdict(&mut self, why: &Explanation, timing: &Timing) {
        if let Some(what) = self.evidence.judge(why, self.terms.len(), timing) {
            self.broken("explanation", what);
        }
        if !matches!(why.verdict, Verdict::AgentDown | Verdict::NodeDown | Verdict::Isolated) {
            return;
        }
        if self.weather == Weather::Stalls {
            let rule = why.rule.name();
            let what = format!("node {} only stood still, and is down by {rule}", why.node);
            self.broken("accuracy", what);
        }
    }

    /// The newest state that `node` had saved was damaged when its component started: what it had
    /// learned of its removal may be lost, and it starts like a node that never learned of it.
    pub(super) fn handle_memory_lost(&mut self, node: Rank) {
        self.outcasts.remove(&node);
        self.isolations.handle_memory_lost(node);
    }
}
