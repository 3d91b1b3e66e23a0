//! N-version voting at one node: its own ballots and, while it manages, those of all (RL-10).
//!
//! What the manager says to its own node goes no other way than what it says to the others, but for
//! the frame. After each call: act on [`Voting::poll_closed`], then save if
//! [`Voting::take_unsaved`] says so, then send what [`Voting::poll_message`] hands out.

use super::{Poll, Program, VoteMember, VoteRefused, Voter};
use crate::ids::Term;
use crate::time::Instant;
use crate::vote::{BallotKind, VoteMessage, VoteOutcome};

/// Where a node stands in the DIR net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VotingSeat {
    /// The term that it knows.
    pub term: Term,
    /// The node that manages in it.
    pub manager: u8,
    /// Whether that is this node, and it may decide.
    pub is_acting: bool,
}

/// The votes of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Voting {
    me: u8,
    voter: Voter,
    term: Option<Term>,
    manager: u8,
    poll: Option<Poll>,
}

impl Voting {
    /// The votes of node `me`, with what an earlier component of it has saved.
    #[must_use]
    pub const fn new(me: u8, voter: Voter) -> Self {
        Self { me, voter, term: None, manager: 0, poll: None }
    }

    /// The own ballots and what was accepted.
    #[must_use]
    pub const fn voter(&self) -> &Voter {
        &self.voter
    }

    /// Whether it has followed the DIR net into `term`.
    #[must_use]
    pub fn is_in(&self, term: Term) -> bool {
        self.term == Some(term)
    }

    /// A version votes; see [`Voter::cast`].
    ///
    /// # Errors
    /// [`VoteRefused`].
    pub fn cast(
        &mut self,
        program: &Program<'_>,
        task: u8,
        round: u32,
        value: (BallotKind, i64),
    ) -> Result<(), VoteRefused> {
        self.voter.cast(program, task, round, value)
    }

    /// Another script is in force.
    pub fn replace_script(&mut self, program: &Program<'_>) {
        self.voter.follow(program, self.me);
        self.poll.iter_mut().for_each(Poll::replace_script);
    }

    /// Handles a message that the DIR net has admitted in the present term.
    pub fn handle_message(
        &mut self,
        program: &Program<'_>,
        from: VoteMember,
        message: &VoteMessage,
    ) {
        match (message, &mut self.poll) {
            (VoteMessage::Outcome(outcome), _) => self.voter.handle_outcome(outcome),
            (_, Some(poll)) => poll.handle_message(program, from, message),
            (_, None) => {}
        }
    }

    /// Follows the DIR net and the time. `members` are all members, this node among them.
    pub fn step(
        &mut self,
        program: &Program<'_>,
        seat: VotingSeat,
        members: impl Iterator<Item = VoteMember> + Clone,
        now: Instant,
    ) {
        if self.term != Some(seat.term) {
            self.term = Some(seat.term);
            self.voter.handle_manager();
        }
        self.manager = seat.manager;
        if !seat.is_acting {
            self.poll = None;
            return;
        }
        let poll = match &mut self.poll {
            Some(poll) if poll.term() == seat.term => poll,
            poll => poll.insert(Poll::new(seat.term)),
        };
        let own = members.clone().find(|member| member.node == self.me);
        let Some(own) = own else { return };
        while let Some(message) = self.voter.poll_message(now) {
            poll.handle_message(program, own, &message);
        }
        poll.step(program, members, |nversion| self.voter.over(nversion), now);
        if let Some(outcome) = poll.poll_own(self.me, now) {
            self.voter.handle_outcome(&outcome);
        }
    }

    /// The round that has ended, if one has: see [`Voter::poll_closed`].
    pub const fn poll_closed(&mut self) -> Option<VoteOutcome> {
        self.voter.poll_closed()
    }

    /// Whether to save [`Self::voter`] before anything is sent.
    pub const fn take_unsaved(&mut self) -> bool {
        self.voter.take_unsaved()
    }

    /// What to send next, and to which node.
    pub fn poll_message(&mut self, now: Instant) -> Option<(u8, VoteMessage)> {
        match &mut self.poll {
            Some(poll) => poll.poll_message(self.me, now),
            None if self.manager == self.me => None,
            None => self.voter.poll_message(now).map(|message| (self.manager, message)),
        }
    }

    /// When there is something to do if nothing comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let poll = self.poll.as_ref().and_then(Poll::poll_timeout);
        poll.into_iter().chain(self.voter.poll_timeout()).min()
    }
}
