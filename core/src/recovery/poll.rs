//! The manager's side of N-version voting: it asks, counts and proposes (RL-10).
//!
//! ```text
//!   a term begins, or a member comes ─▶ all are asked what they have accepted last ─┐
//!                                                                                    ▼
//!   a round is open ─▶ all have voted,   ─▶ tally ─▶ proposed ◀── it is not final everywhere
//!                      or time is over                  │
//!          the next one ◀── all know ◀── final ◀── all have accepted
//! ```
//!
//! One outcome is under way at a time. It holds once all members have accepted it, and a manager
//! that takes over asks all of them first: so it learns of each that holds, and gives no other for
//! the round. A member that is silent holds voting up until it is removed.

use super::limits::{NODES_MAX, NVERSIONS_MAX, VERSIONS_MAX};
use super::tally::{Ballots, tally};
use super::voter::AGAIN;
use super::{IdSet, Program, VotingRule, mutants};
use crate::ids::Term;
use crate::time::Instant;
use crate::vote::{Ballot, VoteMessage, VoteOutcome};

/// A member, and the incarnation of its component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VoteMember {
    /// Its node.
    pub node: u8,
    /// Greater for each later one.
    pub incarnation: u64,
}

/// What is known of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Known {
    incarnation: u64,
    accepted: Option<VoteOutcome>,
    due: Instant,
}

/// A manager's votes, for as long as it manages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Poll {
    term: Term,
    members: [Known; NODES_MAX],
    present: IdSet,
    ballots: [Ballots; NVERSIONS_MAX],
    /// The round of each task that is open, and since when.
    open: [Option<(u32, Instant)>; NVERSIONS_MAX],
    /// The last round of each task that is over, as members have said.
    over: [u32; NVERSIONS_MAX],
    /// What was proposed last in this term.
    proposed: Option<VoteOutcome>,
    due: Option<Instant>,
}

impl Poll {
    /// The votes of the manager of `term`.
    #[must_use]
    pub fn new(term: Term) -> Self {
        Self {
            term,
            members: [Known::default(); NODES_MAX],
            present: IdSet::EMPTY,
            ballots: [[None; VERSIONS_MAX]; NVERSIONS_MAX],
            open: [None; NVERSIONS_MAX],
            over: [0; NVERSIONS_MAX],
            proposed: None,
            due: None,
        }
    }

    /// The term of the manager.
    #[must_use]
    pub const fn term(&self) -> Term {
        self.term
    }

    /// Another script is in force: its versions vote for themselves.
    pub fn replace_script(&mut self) {
        self.ballots = [[None; VERSIONS_MAX]; NVERSIONS_MAX];
        self.open = [None; NVERSIONS_MAX];
    }

    /// Handles a message of the member `from`.
    pub fn handle_message(
        &mut self,
        program: &Program<'_>,
        from: VoteMember,
        message: &VoteMessage,
    ) {
        match message {
            VoteMessage::Vote(ballot) => self.handle_ballot(program, from.node, ballot),
            VoteMessage::Voted { outcome, is_over } => {
                let Some(known) = self.members.get_mut(usize::from(from.node)) else { return };
                if known.incarnation != from.incarnation {
                    return;
                }
                if !*is_over {
                    known.accepted = Some(*outcome);
                    return;
                }
                if let Some(over) = self.over.get_mut(usize::from(outcome.nversion)) {
                    *over = outcome.round.max(*over);
                }
                let is_it = |it: &VoteOutcome| it.nversion == outcome.nversion;
                if let Some(proposed) = self.proposed.filter(is_it) {
                    self.withdraw(&proposed, outcome.round);
                }
            }
            // Of a manager that is none any more.
            VoteMessage::Outcome(_) => {}
        }
    }

    fn handle_ballot(&mut self, program: &Program<'_>, from: u8, ballot: &Ballot) {
        let Some(rule) = program.voting(ballot.nversion) else { return };
        let version = usize::from(ballot.version).wrapping_sub(1);
        let is_its = rule
            .versions
            .get(version)
            .is_some_and(|(task, _)| program.place_of(*task).is_some_and(|(node, _)| node == from));
        let ballots = self.ballots.get_mut(usize::from(ballot.nversion));
        let slot = ballots.and_then(|ballots| ballots.get_mut(version)).filter(|_| is_its);
        if let Some(slot) = slot
            && slot.is_none_or(|it| it.round <= ballot.round)
        {
            *slot = Some(*ballot);
        }
    }

    /// Some member knows the outcome of the round for which `proposed` is: it is not proposed any
    /// more. What those members say that have accepted it, the next manager is answered by the same
    /// member.
    fn withdraw(&mut self, proposed: &VoteOutcome, over: u32) {
        if !proposed.is_final && proposed.round <= over {
            let (round, is_final) = (0, true);
            self.proposed = Some(VoteOutcome { round, is_final, ..*proposed });
        }
    }

    /// Looks at the ballots and answers. `me` is the manager's node and `over` the last round that
    /// is over there. What to send is [`Self::poll_message`].
    pub fn step(
        &mut self,
        program: &Program<'_>,
        members: impl Iterator<Item = VoteMember>,
        over: impl Fn(u8) -> u32,
        now: Instant,
    ) {
        self.admit(members);
        self.due = None;
        let is_asked = self.each().all(|known| known.accepted.is_some());
        if !is_asked && !mutants::OUTCOMES_UNASKED.is_planted() {
            return;
        }
        match self.proposed {
            None => self.propose_again(),
            Some(proposed) => self.follow(proposed),
        }
        if self.is_settled() {
            self.propose_next(program, over, now);
        }
    }

    fn admit(&mut self, members: impl Iterator<Item = VoteMember>) {
        self.present = IdSet::EMPTY;
        for VoteMember { node, incarnation } in members {
            let Some(known) = self.members.get_mut(usize::from(node)) else { continue };
            self.present.insert(node);
            if known.incarnation != incarnation {
                *known = Known { incarnation, accepted: None, due: Instant(0) };
            }
        }
    }

    fn each(&self) -> impl Iterator<Item = &Known> {
        self.present.iter().filter_map(|node| self.members.get(usize::from(node)))
    }

    fn propose(&mut self, outcome: VoteOutcome) {
        self.proposed = Some(outcome);
        self.members.iter_mut().for_each(|known| known.due = Instant(0));
    }

    /// What an earlier manager has proposed may hold already: it is what this one proposes.
    fn propose_again(&mut self) {
        let accepted = || self.each().filter_map(|known| known.accepted);
        let Some(last) = accepted().max_by_key(VoteOutcome::order).filter(|it| it.round > 0) else {
            return;
        };
        let is_last = |it: &VoteOutcome| it.order() == last.order();
        let is_final = accepted().any(|it| is_last(&it) && it.is_final);
        let is_complete = accepted().all(|it| is_last(&it) && it.is_final);
        if !is_complete && !mutants::OUTCOMES_UNASKED.is_planted() {
            self.propose(VoteOutcome { term: self.term, number: 1, is_final, ..last });
        }
    }

    /// A proposal that all have accepted is final.
    fn follow(&mut self, proposed: VoteOutcome) {
        let has = |known: &Known| known.accepted == Some(proposed);
        if !proposed.is_final && self.each().all(has) {
            self.propose(VoteOutcome { is_final: true, ..proposed });
        }
    }

    /// Whether nothing is under way.
    fn is_settled(&self) -> bool {
        self.proposed.is_none_or(|proposed| {
            let has = |known: &Known| known.accepted == Some(proposed);
            proposed.round == 0 || (proposed.is_final && self.each().all(has))
        })
    }

    fn propose_next(&mut self, program: &Program<'_>, over: impl Fn(u8) -> u32, now: Instant) {
        // Each task has its turn.
        let first = self.proposed.map_or(0, |last| usize::from(last.nversion) + 1);
        for turn in 0..NVERSIONS_MAX {
            let number = (first + turn) % NVERSIONS_MAX;
            let nversion = u8::try_from(number).unwrap_or_default();
            let Some(rule) = program.voting(nversion) else { continue };
            self.over[number] = self.over[number].max(over(nversion));
            if let Some(outcome) = self.decide(program, &rule, now) {
                return self.propose(outcome);
            }
        }
    }

    /// The outcome of the earliest round that is open, if it is closed by now.
    fn decide(
        &mut self,
        program: &Program<'_>,
        rule: &VotingRule,
        now: Instant,
    ) -> Option<VoteOutcome> {
        let number = usize::from(rule.number);
        let over = *self.over.get(number)?;
        let ballots = *self.ballots.get(number)?;
        let rounds = ballots.iter().flatten().map(|ballot| ballot.round);
        let round = rounds.filter(|round| *round > over).min()?;
        let since = match self.open[number] {
            Some((open, since)) if open == round => since,
            _ => now,
        };
        self.open[number] = Some((round, since));
        let mut counted = Ballots::default();
        let mut waits = None;
        for ((slot, ballot), (task, timeout)) in
            counted.iter_mut().zip(ballots).zip(rule.versions.iter())
        {
            *slot = ballot.filter(|ballot| ballot.round == round);
            let is_past = ballot.is_some_and(|ballot| ballot.round > round);
            let is_member =
                program.place_of(*task).is_some_and(|(node, _)| self.present.contains(node));
            let until = since.after(*timeout);
            let awaits = slot.is_none() && !is_past && is_member && now < until;
            if awaits && !mutants::FIRST_VOTES_DECIDE.is_planted() {
                waits = Some(waits.map_or(until, |at: Instant| at.max(until)));
            }
        }
        if let Some(until) = waits {
            self.due = Some(self.due.map_or(until, |due| due.min(until)));
            return None;
        }
        self.open[number] = None;
        let count = u8::try_from(rule.versions.len()).unwrap_or(u8::MAX);
        let found = tally(rule.algorithm, rule.within, count, &counted);
        let number = self.proposed.map_or(1, |last| last.number.saturating_add(1));
        Some(VoteOutcome {
            term: self.term,
            number,
            nversion: rule.number,
            round,
            voters: found.voters,
            agreed: found.agreed,
            kind: found.kind,
            value: found.value,
            is_final: false,
        })
    }

    /// What another member than `me` must be sent next, if anything is due: a question, or what is
    /// proposed.
    pub fn poll_message(&mut self, me: u8, now: Instant) -> Option<(u8, VoteMessage)> {
        let mut others = self.present.iter().filter(|node| *node != me);
        others.find_map(|node| {
            let known = self.members.get_mut(usize::from(node))?;
            Some((node, VoteMessage::Outcome(take_due(known, self.proposed, now)?)))
        })
    }

    /// As [`Self::poll_message`], for the manager's own node.
    pub(super) fn poll_own(&mut self, me: u8, now: Instant) -> Option<VoteOutcome> {
        let known = self.members.get_mut(usize::from(me))?;
        take_due(known, self.proposed, now)
    }

    /// When there is something to do if no message comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let waiting = self.each().filter(|known| wanted(known, self.proposed).is_some());
        waiting.map(|known| known.due).chain(self.due).min()
    }
}

fn take_due(known: &mut Known, proposed: Option<VoteOutcome>, now: Instant) -> Option<VoteOutcome> {
    let outcome = wanted(known, proposed).filter(|_| known.due <= now)?;
    known.due = now.after(AGAIN);
    Some(outcome)
}

/// What a member lacks.
fn wanted(known: &Known, proposed: Option<VoteOutcome>) -> Option<VoteOutcome> {
    match (known.accepted, proposed) {
        (None, _) => Some(VoteOutcome::default()),
        (Some(accepted), Some(proposed)) if proposed.round > 0 && accepted != proposed => {
            Some(proposed)
        }
        (Some(_), _) => None,
    }
}
