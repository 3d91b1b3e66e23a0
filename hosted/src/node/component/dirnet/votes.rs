//! N-version voting at this component: between core's machine and what carries and keeps (RL-10).
//!
//! ```text
//!   client ─▶ ballot ─┐             ┌─▶ kept, before anything is sent
//!   VOTE, VOTED ──────┼─▶ Voting ───┼─▶ OUTCOME, VOTE, VOTED   by the DIR net
//!   OUTCOME ──────────┘             └─▶ a round that is over   to the supervisor: faults, notices
//! ```

use weft_core::dirnet::{ComponentIncarnation, Role};
use weft_core::ids::Rank;
use weft_core::recovery::{Program, VoteMember};
use weft_core::recovery::{Voter, Voting, VotingSeat};
use weft_core::time::Instant;
use weft_core::vote::{VoteMessage, VoteOutcome};

use super::{ComponentDirNet, Ground, Machine};
use crate::cluster::Cluster;
use crate::node::NodeError;
use crate::node::chronicle::What;
use crate::node::control::{Outcome, Refused, TaskFault, TaskNotice, Vote, VoteDenied, VoteResult};
use crate::node::kept::KeptVotes;
use crate::node::link::FromComponent;

/// The votes of this node.
pub(super) struct Votes {
    voting: Box<Voting>,
    kept: KeptVotes,
    me: u8,
    /// The node's tasks, in their order.
    tasks: Vec<String>,
    /// The script that the votes are about.
    digest: u64,
    /// Whether it has N-version tasks.
    has_versions: bool,
    due_ns: u64,
}

impl Votes {
    /// Goes on from what an earlier component has kept.
    pub(super) fn new(cluster: &Cluster, Rank(rank): Rank, voter: Voter, kept: KeptVotes) -> Self {
        let me = u8::try_from(rank).unwrap_or(u8::MAX);
        let own = cluster.tasks.iter().filter(|task| task.runs_on(rank));
        let tasks = own.map(|task| task.name.to_string()).collect();
        let voting = Box::new(Voting::new(me, voter));
        Self { voting, kept, me, tasks, digest: 0, has_versions: false, due_ns: 0 }
    }

    /// When there is something to do if nothing comes before.
    pub(super) const fn next_ns(&self) -> u64 {
        self.due_ns
    }

    /// The outcome that was learnt of last.
    pub(super) fn last(&self) -> Option<VoteResult> {
        let accepted = self.voting.voter().accepted();
        (accepted.round > 0 && accepted.is_final).then(|| VoteResult::of(accepted))
    }

    /// The rounds in which versions of this node wait for an outcome.
    pub(super) fn open(&self) -> Vec<(u8, u32)> {
        self.voting.voter().open().map(|ballot| (ballot.nversion, ballot.round)).collect()
    }
}

/// A member as core's machine of votes knows it.
const fn member_of(Rank(node): Rank, incarnation: ComponentIncarnation) -> VoteMember {
    let ComponentIncarnation { boot, generation } = incarnation;
    let incarnation = (boot.0 as u64) << 32 | generation as u64;
    VoteMember { node: node.to_le_bytes()[0], incarnation }
}

impl ComponentDirNet {
    /// Handles the vote of a client for one of this node's tasks.
    pub(in super::super) fn handle_vote_request(
        &mut self,
        now_ns: u64,
        task: &str,
        (round, vote): (u32, Vote),
        ground: &mut Ground<'_>,
    ) -> Result<Outcome, NodeError> {
        let refused = |why| Ok(Outcome::Refused(Refused::Vote(why)));
        let Some(program) = self.script.as_ref().and_then(|script| script.program()) else {
            return refused(VoteDenied::NoScript);
        };
        let (names, me) = (&self.votes.tasks, self.votes.me);
        let numbered = (0..).zip(names).find(|(_, name)| *name == task);
        let Some((place, _)) = numbered else {
            let name = task.chars().take(64).collect();
            return Ok(Outcome::Refused(Refused::NoTask { name, tasks: names.clone() }));
        };
        let number_at = |place| {
            program.tasks().iter().find(|number| program.place_of(*number) == Some((me, place)))
        };
        let versions = || {
            let is_version =
                |place| number_at(place).is_some_and(|it| program.version_of(it).is_some());
            let names = (0..).zip(names).filter(|(place, _)| is_version(*place));
            names.map(|(_, name)| name.clone()).collect()
        };
        let Some(number) = number_at(place) else {
            return refused(VoteDenied::NoVersion { versions: versions() });
        };
        if let Err(why) = self.votes.voting.cast(&program, number, round, vote.to_ballot()) {
            return refused(VoteDenied::of(why, versions()));
        }
        self.votes.due_ns = 0;
        self.run_votes(now_ns, ground)?;
        Ok(Outcome::Done)
    }

    /// Handles a message that the DIR net has admitted.
    pub(super) fn handle_vote(
        &mut self,
        now_ns: u64,
        (from, incarnation): (Rank, ComponentIncarnation),
        message: &VoteMessage,
    ) -> Result<(), NodeError> {
        let Some(program) = self.script.as_ref().and_then(|script| script.program()) else {
            return Ok(());
        };
        self.votes.voting.handle_message(&program, member_of(from, incarnation), message);
        self.votes.due_ns = 0;
        self.settle_votes(now_ns)
    }

    /// Has the votes go on: a node that lacks the script in force decides nothing.
    pub(super) fn run_votes(
        &mut self,
        now_ns: u64,
        ground: &mut Ground<'_>,
    ) -> Result<(), NodeError> {
        let Some(script) = &self.script else {
            self.votes.due_ns = u64::MAX;
            return Ok(());
        };
        let term = self.member.machine().term();
        let is_other_term = !self.votes.voting.is_in(term);
        let is_other_script = self.votes.digest != script.member.used();
        let is_idle = !self.votes.has_versions || (now_ns < self.votes.due_ns && !is_other_term);
        if is_idle && !is_other_script {
            return Ok(());
        }
        let Some(program) = script.program() else { return Ok(()) };
        if is_other_script {
            self.votes.digest = script.member.used();
            self.votes.has_versions = program.code().header().nversions > 0;
            self.votes.voting.replace_script(&program);
        }
        let now = Instant(now_ns);
        let manager = self.member.machine().term().claimant.0.to_le_bytes()[0];
        let is_acting =
            self.member.machine().role() == Role::Manager && script.member.lacking().is_none();
        let seat = VotingSeat { term, manager, is_acting };
        let members = members(self.member.machine(), usize::from(self.nodes));
        self.votes.voting.step(&program, seat, members.into_iter(), now);
        self.settle_votes(now_ns)?;
        while let Some((to, message)) = self.votes.voting.poll_message(now) {
            self.member.machine_mut().send_vote(now, Rank(to.into()), message);
            self.drain(now_ns, ground)?;
        }
        // The members may change without a message.
        let due = self.votes.voting.poll_timeout().map_or(u64::MAX, |due| due.0);
        self.votes.due_ns = if is_acting { due.min(now_ns + self.look_every_ns) } else { due };
        Ok(())
    }

    /// Acts on a round that is over, then keeps what was accepted: nothing was sent before.
    fn settle_votes(&mut self, now_ns: u64) -> Result<(), NodeError> {
        if let Some(outcome) = self.votes.voting.poll_closed() {
            self.act_on(now_ns, &outcome);
        }
        if self.votes.voting.take_unsaved() {
            self.votes.kept.keep(self.votes.voting.voter())?;
        }
        Ok(())
    }

    fn act_on(&mut self, now_ns: u64, outcome: &VoteOutcome) {
        let Some(program) = self.script.as_ref().and_then(|script| script.program()) else {
            return;
        };
        let result = VoteResult::of(outcome);
        let words = round_of(&program, self.votes.me, outcome, &result);
        self.words.extend(words);
        if self.member.machine().role() == Role::Manager {
            self.note(
                now_ns,
                self.member.machine().me(),
                What::Noted { words: result.to_string() },
            );
        }
    }
}

/// What the supervisor does once a round is over.
fn round_of(
    program: &Program<'_>,
    me: u8,
    outcome: &VoteOutcome,
    result: &VoteResult,
) -> Option<FromComponent> {
    let rule = program.voting(outcome.nversion)?;
    let (nversion, round) = (outcome.nversion, outcome.round);
    let here =
        |task: u8| program.place_of(task).and_then(|(node, place)| (node == me).then_some(place));
    let fault = |((task, _), version): (&(u8, _), u8)| {
        let place = here(*task)?;
        let has = |versions: &[u8]| versions.contains(&version);
        let fault = match (has(&result.voters), has(&result.agreed)) {
            (false, _) => TaskFault::NoVote { version, round },
            // Without an outcome no version is known to be wrong.
            (true, false) if outcome.is_reached() => TaskFault::Outvoted { version, round },
            (true, _) => return None,
        };
        Some((place, fault))
    };
    let faults = rule.versions.iter().zip(1..).filter_map(fault).collect();
    let noted = if outcome.is_reached() { rule.on_success } else { rule.on_error };
    let notices = noted.and_then(here).map(|place| (place, TaskNotice::Outcome(result.clone())));
    Some(FromComponent::Round { nversion, round, faults, notices: notices.into_iter().collect() })
}

/// All members: this node, and those that the database shows.
fn members(machine: &Machine, nodes: usize) -> Vec<VoteMember> {
    let standing = |rank: Rank| {
        let standing = machine.database().standing(rank);
        standing.is_up().then(|| member_of(rank, standing.incarnation))
    };
    (0..).map(Rank).take(nodes).filter_map(standing).collect()
}
