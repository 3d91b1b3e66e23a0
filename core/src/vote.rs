//! What the versions of an N-version task and their manager send each other (RL-10).
//!
//! ```text
//!   version's node ── VOTE ────▶ manager     a ballot, until its round is over
//!   manager ───────── OUTCOME ─▶ all members  what was accepted? accept this; it is final
//!   member ────────── VOTED ───▶ manager     the last outcome that is accepted here
//! ```
//!
//! Six words each, which a frame of the DIR net carries. What decides is
//! [`recovery`](crate::recovery); the DIR net only checks that a sender is a member and its term.

use crate::ids::{Rank, Term};

/// The words of a message.
pub const VOTE_WORDS: usize = 6;

/// What a ballot holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum BallotKind {
    /// A number.
    #[default]
    Number = 0,
    /// The first eight bytes of a SHA-256, as a number.
    Digest = 1,
}

/// The vote of one version in one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ballot {
    /// The number of the N-version task.
    pub nversion: u8,
    /// The number of the version, from 1.
    pub version: u8,
    /// The round, from 1.
    pub round: u32,
    /// What [`Self::value`] is.
    pub kind: BallotKind,
    /// The vote.
    pub value: i64,
}

/// What came of one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VoteOutcome {
    /// The term of the manager that proposes it.
    pub term: Term,
    /// Its number in the term, from 1. Together with the term it grows with each proposal.
    pub number: u16,
    /// The number of the N-version task.
    pub nversion: u8,
    /// The round; 0 for none.
    pub round: u32,
    /// The versions that have voted, the first in bit 0.
    pub voters: u8,
    /// Those of them that agree with the value. No outcome was reached if there is none.
    pub agreed: u8,
    /// What [`Self::value`] is.
    pub kind: BallotKind,
    /// The value.
    pub value: i64,
    /// All members have accepted it, so it holds.
    pub is_final: bool,
}

impl VoteOutcome {
    /// Whether a value was reached.
    #[must_use]
    pub const fn is_reached(&self) -> bool {
        self.agreed != 0
    }

    /// The first version that agrees with the value.
    #[must_use]
    pub fn winner(&self) -> Option<u8> {
        let bits = self.agreed.trailing_zeros();
        self.is_reached().then(|| u8::try_from(bits + 1).unwrap_or(u8::MAX))
    }

    /// What of two outcomes is later: proposals grow with the term and their number in it.
    #[must_use]
    pub const fn order(&self) -> (Term, u16) {
        (self.term, self.number)
    }
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VoteMessage {
    /// A version's node sends a ballot to the manager.
    Vote(Ballot),
    /// The manager sends an outcome, to be accepted or, if it is final, to be acted on. Round 0
    /// asks for the last one that was accepted.
    Outcome(VoteOutcome),
    /// A member answers with the last outcome that it has accepted; or, if `is_over`, with the last
    /// final round of the task for which another outcome was proposed.
    Voted {
        /// The outcome.
        outcome: VoteOutcome,
        /// Whether the round of the proposal is over.
        is_over: bool,
    },
}

const DIGEST: u8 = 1;
const FINAL: u8 = 2;
const OVER: u8 = 4;

impl VoteMessage {
    /// The message as words, without its kind.
    #[must_use]
    pub fn words(&self) -> [u32; VOTE_WORDS] {
        match self {
            Self::Vote(Ballot { nversion, version, round, kind, value }) => {
                let [low, high] = halves(*value);
                let what = u32::from_le_bytes([*nversion, *version, *kind as u8, 0]);
                [what, *round, low, high, 0, 0]
            }
            Self::Outcome(outcome) => outcome_words(outcome, 0),
            Self::Voted { outcome, is_over } => {
                outcome_words(outcome, if *is_over { OVER } else { 0 })
            }
        }
    }

    /// A [`Self::Vote`] from its words; none if a field holds an invalid value.
    #[must_use]
    pub fn vote(words: [u32; VOTE_WORDS]) -> Option<Self> {
        let [what, round, low, high, 0, 0] = words else { return None };
        let [nversion, version, kind, 0] = what.to_le_bytes() else { return None };
        let kind = kind_of(kind)?;
        Some(Self::Vote(Ballot { nversion, version, round, kind, value: whole(low, high) }))
    }

    /// An [`Self::Outcome`] from its words; none if a field holds an invalid value.
    #[must_use]
    pub fn outcome(words: [u32; VOTE_WORDS]) -> Option<Self> {
        let (outcome, flags) = outcome_of(words)?;
        (flags == 0).then_some(Self::Outcome(outcome))
    }

    /// A [`Self::Voted`] from its words; none if a field holds an invalid value.
    #[must_use]
    pub fn voted(words: [u32; VOTE_WORDS]) -> Option<Self> {
        let (outcome, flags) = outcome_of(words)?;
        (flags & !OVER == 0).then_some(Self::Voted { outcome, is_over: flags != 0 })
    }
}

fn outcome_words(outcome: &VoteOutcome, flags: u8) -> [u32; VOTE_WORDS] {
    let VoteOutcome { term, number, nversion, round, voters, agreed, kind, value, is_final } =
        *outcome;
    let digest = if kind == BallotKind::Digest { DIGEST } else { 0 };
    let flags = flags | digest | if is_final { FINAL } else { 0 };
    let [low, high] = halves(value);
    let ([a, b], [c, d]) = (term.claimant.0.to_le_bytes(), number.to_le_bytes());
    let what = u32::from_le_bytes([flags, nversion, voters, agreed]);
    let place = u32::from_le_bytes([a, b, c, d]);
    [what, round, low, high, term.epoch, place]
}

fn outcome_of(words: [u32; VOTE_WORDS]) -> Option<(VoteOutcome, u8)> {
    let [what, round, low, high, epoch, place] = words;
    let [flags, nversion, voters, agreed] = what.to_le_bytes();
    let [a, b, c, d] = place.to_le_bytes();
    let term = Term { epoch, claimant: Rank(u16::from_le_bytes([a, b])) };
    let kind = kind_of(flags & DIGEST)?;
    let outcome = VoteOutcome {
        term,
        number: u16::from_le_bytes([c, d]),
        nversion,
        round,
        voters,
        agreed,
        kind,
        value: whole(low, high),
        is_final: flags & FINAL != 0,
    };
    Some((outcome, flags & !(DIGEST | FINAL)))
}

const fn kind_of(byte: u8) -> Option<BallotKind> {
    match byte {
        0 => Some(BallotKind::Number),
        1 => Some(BallotKind::Digest),
        _ => None,
    }
}

const fn halves(value: i64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
    [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])]
}

const fn whole(low: u32, high: u32) -> i64 {
    let ([a, b, c, d], [e, f, g, h]) = (low.to_le_bytes(), high.to_le_bytes());
    i64::from_le_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTCOME: VoteOutcome = VoteOutcome {
        term: Term { epoch: 7, claimant: Rank(3) },
        number: 9,
        nversion: 15,
        round: u32::MAX,
        voters: 0b111,
        agreed: 0b101,
        kind: BallotKind::Digest,
        value: -2,
        is_final: true,
    };

    #[test]
    fn rl10_every_message_comes_back_from_its_words() {
        let (kind, value) = (BallotKind::Number, i64::MIN);
        let ballot = Ballot { nversion: 1, version: 8, round: 5, kind, value };
        let vote = VoteMessage::Vote(ballot);
        assert_eq!(VoteMessage::vote(vote.words()), Some(vote));
        let outcome = VoteMessage::Outcome(OUTCOME);
        assert_eq!(VoteMessage::outcome(outcome.words()), Some(outcome));
        for is_over in [false, true] {
            let voted = VoteMessage::Voted { outcome: OUTCOME, is_over };
            assert_eq!(VoteMessage::voted(voted.words()), Some(voted));
        }
        assert_eq!(OUTCOME.winner(), Some(1));
        assert_eq!(VoteOutcome { agreed: 0, ..OUTCOME }.winner(), None);
    }

    /// Whatever is read means what its words say: nothing is dropped in silence.
    #[test]
    fn rl10_words_that_are_read_can_be_said_again() {
        let base = VoteMessage::Voted { outcome: OUTCOME, is_over: true }.words();
        for at in 0..VOTE_WORDS {
            for bit in 0..32 {
                let mut words = base;
                words[at] ^= 1 << bit;
                let read = [
                    VoteMessage::vote(words),
                    VoteMessage::outcome(words),
                    VoteMessage::voted(words),
                ];
                assert!(read.iter().flatten().all(|message| message.words() == words));
            }
        }
    }
}
