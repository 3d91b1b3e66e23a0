//! N-version votes of the lab: each node's [`Voting`], over the DIR net's frames (RL-10).
//!
//! A component that starts again goes on with what the one before has saved, and a later boot of
//! the node without its ballots.

use weft_core::dirnet::{ComponentIncarnation, Role};
use weft_core::ids::Rank;
use weft_core::recovery::{Program, VOTER_LEN, VoteMember, Voter, Voting, VotingSeat};
use weft_core::time::Instant;
use weft_core::vote::{BallotKind, VoteMessage, VoteOutcome};

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
    /// The script that they are about.
    digest: u64,
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
        Self { voting: Box::new(Voting::new(node, voter)), of, saved, digest: 0 }
    }

    /// The last round that is over here.
    pub(super) fn last_over(&self, nversion: u8) -> u32 {
        self.voting.voter().over(nversion)
    }

    /// Whether a ballot waits for an outcome.
    pub(super) fn waits(&self) -> bool {
        self.voting.voter().open().next().is_some()
    }
}

impl ScriptLab {
    /// The script that the votes of `node` are about.
    fn script_of(&self, node: u16) -> u64 {
        let used = self.members.get(&node).map(|it| it.used());
        used.unwrap_or(self.saved[usize::from(node)].used)
    }

    fn program(&self, digest: u64) -> &Program<'_> {
        self.programs[&digest].borrow_dependent()
    }

    /// Whether the script with that digest has an N-version task.
    fn votes_exist(&self, digest: u64) -> bool {
        self.program(digest).code().header().nversions > 0
    }

    /// A version votes; one whose node is down does not.
    pub fn vote(&mut self, nversion: u8, version: u8, round: u32, number: i64) {
        let task = |program: &Program<'_>| {
            let rule = program.voting(nversion)?;
            let version = usize::from(version).checked_sub(1)?;
            rule.versions.get(version).map(|(task, _)| *task)
        };
        let any = self.saved.first().map(|saved| self.program(saved.used));
        let Some(task) = any.and_then(task) else { return };
        let Some(node) = self.tasks.get(&task).map(|task| u16::from(task.node())) else { return };
        let digest = self.script_of(node);
        let program = self.programs[&digest].borrow_dependent();
        let Some(votes) = self.votes.get_mut(&node) else { return };
        let done = votes.voting.cast(program, task, round, (BallotKind::Number, number));
        if let Err(why) = done {
            self.tell(Happening::NotVoted(task, why));
        }
    }

    /// What the messages of the last millisecond, and the time, have come to.
    pub(super) fn follow_votes(&mut self, arrived: &[Arrived]) {
        for node in 0..self.boots.len() as u16 {
            let Some(machine) = self.net.component_of(node) else { continue };
            let (of, key) = (machine.incarnation(), node.to_le_bytes()[0]);
            let digest = self.script_of(node);
            if !self.votes_exist(digest) {
                self.votes.remove(&node);
                continue;
            }
            let before = self.votes.remove(&node);
            let mut votes = match before {
                Some(votes) if votes.of == of => votes,
                before => LabVotes::new(key, of, before.map(|votes| votes.saved)),
            };
            if std::mem::replace(&mut votes.digest, digest) != digest {
                votes.voting.replace_script(self.program(digest));
            }
            self.votes.insert(node, votes);
            for (_, (from, incarnation), message) in arrived.iter().filter(|(to, ..)| to.0 == node)
            {
                let program = self.programs[&digest].borrow_dependent();
                let Some(votes) = self.votes.get_mut(&node) else { continue };
                let from = member_of(*from, *incarnation);
                votes.voting.handle_message(program, from, message);
                self.settle(node, digest);
            }
            self.step_votes(node, digest);
        }
    }

    fn step_votes(&mut self, node: u16, digest: u64) {
        let now = Instant(self.net.now);
        let Some(machine) = self.net.component_of(node) else { return };
        let is_lacking = self.members.get(&node).is_some_and(|it| it.is_lacking());
        let seat = seat_of(machine);
        let seat = VotingSeat { is_acting: seat.is_acting && !is_lacking, ..seat };
        let members = members(machine, self.boots.len() as u16);
        let program = self.programs[&digest].borrow_dependent();
        let Some(votes) = self.votes.get_mut(&node) else { return };
        votes.voting.step(program, seat, members.into_iter(), now);
        self.settle(node, digest);
        let Some(votes) = self.votes.get_mut(&node) else { return };
        let messages: Vec<_> = std::iter::from_fn(|| votes.voting.poll_message(now)).collect();
        for (to, message) in messages {
            self.net.send_vote(node, to.into(), message);
        }
    }

    /// Acts on a round that is over, then saves.
    fn settle(&mut self, node: u16, digest: u64) {
        let Some(votes) = self.votes.get_mut(&node) else { return };
        let closed = votes.voting.poll_closed();
        if votes.voting.take_unsaved() {
            votes.saved = votes.voting.voter().save(votes.of.boot);
        }
        if let Some(outcome) = closed {
            self.act_on((node, digest), &outcome);
        }
    }

    fn act_on(&mut self, (node, digest): (u16, u64), outcome: &VoteOutcome) {
        self.tell(Happening::Voted(Rank(node), *outcome));
        let now = Instant(self.net.now);
        let Some(rule) = self.program(digest).voting(outcome.nversion) else { return };
        let node_of = |task: &u8| self.tasks.get(task).map(|task| u16::from(task.node()));
        let is_here = |task: &u8| node_of(task) == Some(node);
        let noted = if outcome.is_reached() { rule.on_success } else { rule.on_error };
        let noted = noted.filter(is_here);
        let fault = |((task, _), version): (&(u8, _), u16)| {
            let bit = 1_u8 << (version - 1);
            let kind = match (outcome.voters & bit, outcome.agreed & bit) {
                (0, _) => NO_VOTE | version,
                (_, 0) if outcome.is_reached() => OUTVOTED | version,
                _ => return None,
            };
            is_here(task).then_some((*task, kind))
        };
        let faults: Vec<_> = rule.versions.iter().zip(1..).filter_map(fault).collect();
        for (task, kind) in faults {
            self.tasks.entry(task).and_modify(|it: &mut GuardedTask| it.handle_error(now, kind));
        }
        noted.into_iter().for_each(|to| self.tell(Happening::Notified(to, *outcome)));
    }
}

fn seat_of(machine: &Machine) -> VotingSeat {
    let manager = machine.term().claimant.0.to_le_bytes()[0];
    let is_acting = machine.role() == Role::Manager;
    VotingSeat { term: machine.term(), manager, is_acting }
}

fn members(machine: &Machine, nodes: u16) -> Vec<VoteMember> {
    let member = |rank: Rank| {
        let standing = machine.database().standing(rank);
        standing.is_up().then(|| member_of(rank, standing.incarnation))
    };
    (0..nodes).map(Rank).filter_map(member).collect()
}
