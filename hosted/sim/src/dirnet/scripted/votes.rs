//! N-version votes of the lab: each node's [`Voting`], over the DIR net's frames (RL-10).
//!
//! A component that starts again goes on with what the one before has saved, and a later boot of
//! the node without its ballots.

use weft_core::dirnet::{ComponentIncarnation, Role};
use weft_core::ids::{Rank, Term};
use weft_core::recovery::{VOTER_LEN, VoteMember, Voter, Voting, VotingSeat};
use weft_core::time::Instant;
use weft_core::vote::{BallotKind, VoteMessage, VoteOutcome};

use super::manager::Rough;
use super::task::GuardedTask;
use super::{Happening, ScriptLab};
use crate::dirnet::net::Machine;

/// The kinds of the errors of a version that was outvoted, and of one that did not vote.
const OUTVOTED: u16 = 0xFB00;
const NO_VOTE: u16 = 0xFB80;

/// The votes of one node.
#[derive(Debug)]
pub(super) struct LabVotes {
    voting: Box<Voting>,
    of: ComponentIncarnation,
    saved: [u8; VOTER_LEN],
}

/// A message that has arrived.
pub(super) type Arrived = (Rank, (Rank, ComponentIncarnation), VoteMessage);

const fn member_of(Rank(node): Rank, incarnation: ComponentIncarnation) -> VoteMember {
    let ComponentIncarnation { boot, generation } = incarnation;
    let incarnation = (boot.0 as u64) << 32 | generation as u64;
    VoteMember { node: node.to_le_bytes()[0], incarnation }
}

impl LabVotes {
    fn new(node: u8, of: ComponentIncarnation, saved: Option<[u8; VOTER_LEN]>) -> Self {
        let saved = saved.unwrap_or_else(|| Voter::default().save(of.boot));
        let voter = Voter::restore(&saved, of.boot).expect("it was saved");
        Self { voting: Box::new(Voting::new(node, voter)), of, saved }
    }

    /// The last round that is over here.
    #[cfg(test)]
    pub(super) fn last_over(&self, nversion: u8) -> u32 {
        self.voting.voter().over(nversion)
    }

    /// Whether a ballot waits for an outcome.
    #[cfg(test)]
    pub(super) fn waits(&self) -> bool {
        self.voting.voter().open().next().is_some()
    }
}

impl ScriptLab<'_> {
    /// A version votes; one whose node is down does not.
    pub fn vote(&mut self, nversion: u8, version: u8, round: u32, number: i64) {
        let rule = self.program.voting(nversion);
        let version = usize::from(version).wrapping_sub(1);
        let task = rule.and_then(|rule| rule.versions.get(version).map(|(task, _)| *task));
        let Some((task, (node, _))) = task.and_then(|it| Some((it, self.program.place_of(it)?)))
        else {
            return;
        };
        let Some(votes) = self.votes.get_mut(&node.into()) else { return };
        let done = votes.voting.cast(self.program, task, round, (BallotKind::Number, number));
        if let Err(why) = done {
            self.tell(Happening::NotVoted(task, why));
        }
    }

    /// What the messages of the last millisecond, and the time, have come to.
    pub(super) fn follow_votes(&mut self, arrived: &[Arrived]) {
        if self.program.code().header().nversions == 0 {
            return;
        }
        for node in 0..self.boots.len() as u16 {
            let Some(machine) = self.net.component_of(node) else { continue };
            let (of, key) = (machine.incarnation(), node.to_le_bytes()[0]);
            let before = self.votes.remove(&node);
            let votes = match before {
                Some(votes) if votes.of == of => votes,
                before => LabVotes::new(key, of, before.map(|votes| votes.saved)),
            };
            self.votes.insert(node, votes);
            for (_, (from, incarnation), message) in arrived.iter().filter(|(to, ..)| to.0 == node)
            {
                let Some(votes) = self.votes.get_mut(&node) else { continue };
                let from = member_of(*from, *incarnation);
                votes.voting.handle_message(self.program, from, message);
                self.settle(node);
            }
            self.step_votes(node);
        }
    }

    fn step_votes(&mut self, node: u16) {
        let now = Instant(self.net.now);
        let Some(machine) = self.net.component_of(node) else { return };
        let seat = seat_of(machine);
        let members = members(machine, self.boots.len() as u16);
        let Some(votes) = self.votes.get_mut(&node) else { return };
        votes.voting.step(self.program, seat, members.into_iter(), now);
        self.settle(node);
        let Some(votes) = self.votes.get_mut(&node) else { return };
        let messages: Vec<_> = std::iter::from_fn(|| votes.voting.poll_message(now)).collect();
        for (to, message) in messages {
            let is_lost = match &mut self.rough {
                Some(Rough { draws, lost, .. }) => draws.chance(*lost, 1_000),
                None => false,
            };
            if !is_lost {
                self.net.send_vote(node, to.into(), message);
            }
        }
    }

    /// Acts on a round that is over, then saves.
    fn settle(&mut self, node: u16) {
        let Some(votes) = self.votes.get_mut(&node) else { return };
        let closed = votes.voting.poll_closed();
        if votes.voting.take_unsaved() {
            votes.saved = votes.voting.voter().save(votes.of.boot);
        }
        if let Some(outcome) = closed {
            self.act_on(node, &outcome);
        }
    }

    fn act_on(&mut self, node: u16, outcome: &VoteOutcome) {
        self.tell(Happening::Voted(Rank(node), *outcome));
        let (program, now) = (self.program, Instant(self.net.now));
        let Some(rule) = program.voting(outcome.nversion) else { return };
        let is_here =
            |task: &u8| program.place_of(*task).is_some_and(|(at, _)| u16::from(at) == node);
        for ((task, _), version) in
            rule.versions.iter().zip(1_u16..).filter(|((it, _), _)| is_here(it))
        {
            let bit = 1_u8 << (version - 1);
            let kind = match (outcome.voters & bit, outcome.agreed & bit) {
                (0, _) => NO_VOTE | version,
                (_, 0) if outcome.is_reached() => OUTVOTED | version,
                _ => continue,
            };
            self.tasks.entry(*task).and_modify(|it: &mut GuardedTask| it.handle_error(now, kind));
        }
        let noted = if outcome.is_reached() { rule.on_success } else { rule.on_error };
        if let Some(to) = noted.filter(is_here) {
            self.tell(Happening::Notified(to, *outcome));
        }
    }
}

fn seat_of(machine: &Machine) -> VotingSeat {
    let term = machine.term();
    VotingSeat {
        term: Term(u64::from(term.epoch) << 16 | u64::from(term.claimant.0)),
        manager: term.claimant.0.to_le_bytes()[0],
        is_acting: machine.role() == Role::Manager,
    }
}

fn members(machine: &Machine, nodes: u16) -> Vec<VoteMember> {
    let member = |rank: Rank| {
        let standing = machine.database().standing(rank);
        standing.is_up().then(|| member_of(rank, standing.incarnation))
    };
    (0..nodes).map(Rank).filter_map(member).collect()
}
