//! A node's side of N-version voting: its ballots, and what it has accepted (RL-10).
//!
//! ```text
//!   program ─▶ ballot ── VOTE, again each 100 ms ─▶ manager
//!   OUTCOME ─▶ accepted, saved ─▶ VOTED ──────────▶ manager
//!   OUTCOME, final ─▶ the round is over: acted on, saved ─▶ VOTED
//! ```
//!
//! What a node has accepted outlives its component, as its term does: [`Voter::save`] before
//! anything is sent. So no answer that a manager has counted is forgotten.

use core::fmt;

use super::Program;
use super::limits::NVERSIONS_MAX;
use crate::checksum::crc32c;
use crate::ids::Incarnation;
use crate::time::{Duration, Instant};
use crate::vote::{Ballot, BallotKind, VOTE_WORDS, VoteMessage, VoteOutcome};

/// The ballots that a node holds: one for each of its tasks.
pub const BALLOTS_MAX: usize = 16;
/// Bytes of [`Voter::save`].
pub const VOTER_LEN: usize = 8 + 4 * NVERSIONS_MAX + MESSAGE_LEN * (1 + BALLOTS_MAX);

const MESSAGE_LEN: usize = 4 * VOTE_WORDS;
/// After how long a ballot is sent again.
pub(super) const AGAIN: Duration = Duration::from_millis(100);

/// Why a ballot is refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VoteRefused {
    /// The script declares the task as no version.
    NoVersion,
    /// The version has voted otherwise in this round; that ballot stands.
    VotedAlready,
    /// The outcome of a later round, or of this one, is known; or the version has voted in a later
    /// one.
    RoundOver {
        /// The last round that is over.
        last: u32,
    },
    /// The version has a ballot in an earlier round, whose outcome is not known yet.
    RoundOpen {
        /// That round.
        open: u32,
    },
    /// The algorithm needs numbers.
    NumbersOnly,
    /// Rounds are numbered from 1.
    RoundZero,
}

impl fmt::Display for VoteRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoVersion => f.write_str("the task is no version of an N-version task"),
            Self::VotedAlready => f.write_str("the version has voted otherwise in this round"),
            Self::RoundOver { last } => write!(f, "round {last} is over"),
            Self::RoundOpen { open } => write!(f, "round {open} is open"),
            Self::NumbersOnly => f.write_str("the voting algorithm is for numbers alone"),
            Self::RoundZero => f.write_str("rounds are numbered from 1"),
        }
    }
}

impl core::error::Error for VoteRefused {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Cast {
    ballot: Ballot,
    due: Instant,
}

/// The ballots of a node's versions, and the outcomes that it knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Voter {
    accepted: VoteOutcome,
    /// Of each N-version task, the last round that is over.
    rounds: [u32; NVERSIONS_MAX],
    /// By the place of the task at its node.
    ballots: [Option<Cast>; BALLOTS_MAX],
    /// The answer to the last outcome.
    answer: Option<VoteMessage>,
    /// The round that is over, and was not acted on yet.
    closed: Option<VoteOutcome>,
    is_unsaved: bool,
}

impl Default for Voter {
    fn default() -> Self {
        Self {
            accepted: VoteOutcome::default(),
            rounds: [0; NVERSIONS_MAX],
            ballots: [None; BALLOTS_MAX],
            answer: None,
            closed: None,
            is_unsaved: false,
        }
    }
}

impl Voter {
    /// The voter that an earlier component of this node has saved. Ballots are of the tasks of its
    /// boot, and are dropped if `boot` is another. None if `bytes` are not what was saved.
    #[must_use]
    pub fn restore(bytes: &[u8; VOTER_LEN], boot: Incarnation) -> Option<Self> {
        let mut words =
            bytes.chunks_exact(4).map(|chunk| chunk.try_into().map_or(0, u32::from_le_bytes));
        let mut next = || words.next().unwrap_or_default();
        let (crc, saved_in) = (next(), Incarnation(next()));
        if crc != crc32c(&bytes[4..]) {
            return None;
        }
        let rounds = core::array::from_fn(|_| next());
        let accepted = core::array::from_fn(|_| next());
        let VoteMessage::Outcome(accepted) = VoteMessage::outcome(accepted)? else { return None };
        let mut voter = Self { rounds, accepted, ..Self::default() };
        for slot in &mut voter.ballots {
            let VoteMessage::Vote(ballot) = VoteMessage::vote(core::array::from_fn(|_| next()))?
            else {
                return None;
            };
            let cast = Cast { ballot, due: Instant(0) };
            *slot = (ballot.round > 0 && boot == saved_in).then_some(cast);
        }
        Some(voter)
    }

    /// What must outlive the component, which runs in `boot` of its node.
    #[must_use]
    pub fn save(&self, boot: Incarnation) -> [u8; VOTER_LEN] {
        let mut bytes = [0; VOTER_LEN];
        bytes[4..8].copy_from_slice(&boot.0.to_le_bytes());
        let ballots = self.ballots.iter().flat_map(|cast| {
            VoteMessage::Vote(cast.map(|cast| cast.ballot).unwrap_or_default()).words()
        });
        let accepted = VoteMessage::Outcome(self.accepted).words();
        let words = self.rounds.iter().copied().chain(accepted).chain(ballots);
        for (chunk, word) in bytes[8..].chunks_exact_mut(4).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Whether something has changed since the last call that must be saved before anything is
    /// sent.
    pub const fn take_unsaved(&mut self) -> bool {
        core::mem::replace(&mut self.is_unsaved, false)
    }

    /// The last outcome that was accepted.
    #[must_use]
    pub const fn accepted(&self) -> &VoteOutcome {
        &self.accepted
    }

    /// The last round of N-version task `nversion` that is over here; 0 for none.
    #[must_use]
    pub fn over(&self, nversion: u8) -> u32 {
        self.rounds.get(usize::from(nversion)).copied().unwrap_or_default()
    }

    /// The ballots whose rounds are open.
    pub fn open(&self) -> impl Iterator<Item = Ballot> {
        let ballots = self.ballots.iter().flatten().map(|cast| cast.ballot);
        ballots.filter(|ballot| ballot.round > self.over(ballot.nversion))
    }

    /// A version votes: number `task` of the script, at this node. A repetition changes nothing.
    ///
    /// # Errors
    /// [`VoteRefused`].
    pub fn cast(
        &mut self,
        program: &Program<'_>,
        task: u8,
        round: u32,
        (kind, value): (BallotKind, i64),
    ) -> Result<(), VoteRefused> {
        let version = program.version_of(task).zip(program.place_of(task));
        let Some(((voting, version), (_, place))) = version else {
            return Err(VoteRefused::NoVersion);
        };
        if kind == BallotKind::Digest && voting.algorithm.is_for_numbers() {
            return Err(VoteRefused::NumbersOnly);
        }
        if round == 0 {
            return Err(VoteRefused::RoundZero);
        }
        let (nversion, last) = (voting.number, self.over(voting.number));
        let slot = self.ballots.get_mut(usize::from(place)).ok_or(VoteRefused::NoVersion)?;
        let ballot = Ballot { nversion, version, round, kind, value };
        let before = slot.map(|cast| cast.ballot);
        match before.filter(|it| (it.nversion, it.version) == (nversion, version)) {
            Some(before) if before == ballot => return Ok(()),
            Some(before) if before.round == round => return Err(VoteRefused::VotedAlready),
            _ if round <= last => return Err(VoteRefused::RoundOver { last }),
            Some(Ballot { round: open, .. }) if open > round => {
                // It has gone on to a later one, which is open yet.
                return Err(VoteRefused::RoundOver { last: open - 1 });
            }
            Some(Ballot { round: open, .. }) if open > last => {
                return Err(VoteRefused::RoundOpen { open });
            }
            _ => {}
        }
        *slot = Some(Cast { ballot, due: Instant(0) });
        self.is_unsaved = true;
        Ok(())
    }

    /// Another script is in force: ballots of versions that it does not have are dropped.
    pub fn follow(&mut self, program: &Program<'_>, me: u8) {
        for (slot, place) in self.ballots.iter_mut().zip(0..) {
            let is_here = |task: &u8| program.place_of(*task) == Some((me, place));
            let task = program.tasks().iter().find(is_here);
            let version = task.and_then(|task| program.version_of(task));
            let is_its = |cast: &mut Cast| {
                version.map(|(voting, version)| (voting.number, version))
                    != Some((cast.ballot.nversion, cast.ballot.version))
            };
            self.is_unsaved |= slot.take_if(is_its).is_some();
        }
    }

    /// Handles an outcome of the manager of the present term; [`Self::poll_message`] is what it
    /// must be sent. Drain [`Self::poll_closed`] before the next call.
    pub fn handle_outcome(&mut self, outcome: &VoteOutcome) {
        let last = self.over(outcome.nversion);
        let is_over = !outcome.is_final && outcome.round <= last;
        let is_asked = outcome.round == 0;
        if !is_asked && is_over && outcome.order() != self.accepted.order() {
            // It was decided before: this node knows the outcome, and the manager does not.
            let over = VoteOutcome { round: last, ..*outcome };
            self.answer = Some(VoteMessage::Voted { outcome: over, is_over: true });
            return;
        }
        let is_later = outcome.order() > self.accepted.order();
        let is_now_final =
            outcome.order() == self.accepted.order() && outcome.is_final && !self.accepted.is_final;
        if !is_asked && (is_later || is_now_final) {
            self.accept(outcome, last);
        }
        self.answer = Some(VoteMessage::Voted { outcome: self.accepted, is_over: false });
    }

    fn accept(&mut self, outcome: &VoteOutcome, last: u32) {
        self.accepted = *outcome;
        self.is_unsaved = true;
        if outcome.is_final
            && outcome.round > last
            && let Some(over) = self.rounds.get_mut(usize::from(outcome.nversion))
        {
            *over = outcome.round;
            self.closed = Some(*outcome);
        }
    }

    /// The round that has ended, if one has since the last call: the node acts on it, then saves.
    pub const fn poll_closed(&mut self) -> Option<VoteOutcome> {
        self.closed.take()
    }

    /// What the manager must be sent: an answer, or a ballot that is due, for the first time or
    /// again.
    pub fn poll_message(&mut self, now: Instant) -> Option<VoteMessage> {
        self.answer.take().or_else(|| self.poll_ballot(now).map(VoteMessage::Vote))
    }

    fn poll_ballot(&mut self, now: Instant) -> Option<Ballot> {
        let rounds = &self.rounds;
        let is_due = |cast: &&mut Cast| is_open(rounds, &cast.ballot) && cast.due <= now;
        let cast = self.ballots.iter_mut().flatten().find(is_due)?;
        cast.due = now.after(AGAIN);
        Some(cast.ballot)
    }

    /// Another node manages, and has none of the ballots.
    pub fn handle_manager(&mut self) {
        self.answer = None;
        self.ballots.iter_mut().flatten().for_each(|cast| cast.due = Instant(0));
    }

    /// When there is something to send.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let open = |cast: &&Cast| is_open(&self.rounds, &cast.ballot);
        let ballots = self.ballots.iter().flatten().filter(open).map(|cast| cast.due).min();
        if self.answer.is_some() { Some(Instant(0)) } else { ballots }
    }
}

fn is_open(rounds: &[u32; NVERSIONS_MAX], ballot: &Ballot) -> bool {
    rounds.get(usize::from(ballot.nversion)).is_some_and(|last| ballot.round > *last)
}
