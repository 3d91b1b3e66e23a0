//! The votes on one slot (N-5, N-6).
//!
//! ```text
//!   to ask ──▶ reading ──┬─▶ voted       nothing, older, misplaced or the same
//!      ▲                 ├─▶ unknown     newer: will never be a vote
//!      │                 ├─▶ conflict    different: the slot is never delivered
//!      └── pausing ◀─────┴── torn, or the read failed
//! ```
//!
//! In the signed form a replayer votes once its copy was read and found the same twice, since the
//! first read may have met a half exposed copy. A replayer that shows nothing, or a slot without
//! its origin's signature, is read a few times and then counts as a voter too, if the own copy is
//! signed (the slow path). So does a replayer that shows a torn slot twice, the second time to a
//! read of the whole slot: a correct one had not finished exposing when that read was posted, and
//! reads the own copy later. Either way two members that deliver agree: a copy that was the same
//! twice stays so, and of two members with different signed copies one reads the other's.
//!
//! Sets of voters, not counters: the vote of a member that is removed later does not count, nor
//! does a second vote of the same member.

use super::exposed::Exposed;
use super::judge::Reading;
use super::mutants::{
    COUNT_UNSEALED, COUNT_VOTES, FORGET_CONFLICT, NEWER_IS_NOTHING, UNSIGNED_DENIAL,
    UNSIGNED_SILENCE,
};
use crate::ids::{Peer, PeerSet};
use crate::time::Instant;

/// The state of a conflict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Dispute {
    #[default]
    None,
    /// With this replayer; not yet reported to the caller.
    Unreported(Peer),
    Reported(Peer),
}

/// Reads of the signed form before signatures are looked at.
const FAST_READS: u8 = 3;

/// Whether the own copy is signed by its origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Signed {
    #[default]
    Unchecked,
    Yes,
    No,
}

/// The votes on one slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ballot {
    /// The message that is voted on; `None` if the place was never used.
    pub(super) exposed: Option<Exposed>,
    pub(super) voted: PeerSet,
    pub(super) reading: PeerSet,
    /// Those whose read under way is of an epoch that is not counted any more.
    stale: PeerSet,
    pub(super) pausing: PeerSet,
    pub(super) unknown: PeerSet,
    /// Signed form: replayers whose copy was the same once.
    seen: PeerSet,
    /// Signed form: replayers that showed nothing, and those that showed a slot without its
    /// origin's signature.
    silent: PeerSet,
    denying: PeerSet,
    /// Signed form: replayers that showed a torn slot once.
    broken: PeerSet,
    pub(super) signed: Signed,
    pub(super) dispute: Dispute,
    /// How often a replayer had to be read again.
    pub(super) attempts: u8,
    /// When the pausing replayers are read again; meaningless while there are none.
    pub(super) again_at: Instant,
}

impl Ballot {
    pub(super) fn on(exposed: Exposed) -> Self {
        Self { exposed: Some(exposed), ..Self::default() }
    }

    /// The number of the message voted on; zero when there is none.
    pub(super) fn seq(&self) -> u64 {
        self.exposed.as_ref().map_or(0, Exposed::seq)
    }

    /// A new epoch of `replayer` is counted: the votes of the earlier one are void (N-16).
    pub(super) fn forget(&mut self, replayer: Peer) {
        let sets = [
            &mut self.voted,
            &mut self.pausing,
            &mut self.unknown,
            &mut self.seen,
            &mut self.silent,
            &mut self.denying,
            &mut self.broken,
        ];
        sets.into_iter().for_each(|set| set.remove(replayer));
        if self.reading.contains(replayer) {
            self.stale.insert(replayer);
        }
    }

    /// The read of `replayer` has ended. Whether it was of the epoch that is counted.
    pub(super) fn handle_end(&mut self, replayer: Peer) -> bool {
        self.reading.remove(replayer);
        let is_stale = self.stale.contains(replayer);
        self.stale.remove(replayer);
        !is_stale
    }

    /// The replayers among `voters` to read next.
    pub(super) fn to_ask(&self, voters: PeerSet) -> PeerSet {
        if self.dispute == Dispute::None {
            voters
                .without(self.voted)
                .without(self.reading)
                .without(self.pausing)
                .without(self.unknown)
                .without(self.excused())
        } else {
            PeerSet::EMPTY
        }
    }

    /// The replayers that vote by the slow path: they have shown no signed copy.
    fn excused(&self) -> PeerSet {
        let (is_signed, none) = (self.signed == Signed::Yes, PeerSet::EMPTY);
        let silent = if is_signed || UNSIGNED_SILENCE.is_planted() { self.silent } else { none };
        let denying = if is_signed || UNSIGNED_DENIAL.is_planted() { self.denying } else { none };
        silent.union(denying)
    }

    /// Handles what was read of `replayer` in the signed form. Returns whether to read it again.
    pub(super) fn hear_signed(&mut self, replayer: Peer, reading: Reading) -> Again {
        match reading {
            Reading::Same if self.seen.contains(replayer) || COUNT_UNSEALED.is_planted() => {
                self.voted.insert(replayer);
                return Again::Never;
            }
            Reading::Same => {
                self.seen.insert(replayer);
                return Again::AtOnce;
            }
            Reading::Nothing | Reading::Misplaced => self.silent.insert(replayer),
            Reading::Forged => self.denying.insert(replayer),
            // The first read had the length of the own copy: the other slot may be longer.
            Reading::Torn if self.broken.contains(replayer) => self.denying.insert(replayer),
            Reading::Torn => {
                self.broken.insert(replayer);
                return Again::Later;
            }
            Reading::Different | Reading::Newer | Reading::Failed | Reading::Unfit => {
                return self.hear(replayer, reading);
            }
        }
        match self.signed {
            Signed::Yes => Again::Never,
            Signed::Unchecked if self.attempts >= FAST_READS => Again::IfUnsigned,
            Signed::Unchecked | Signed::No => Again::Later,
        }
    }

    /// Handles what was read of `replayer`. Returns whether to read it again.
    pub(super) fn hear(&mut self, replayer: Peer, reading: Reading) -> Again {
        match reading {
            Reading::Nothing | Reading::Misplaced | Reading::Same => {
                self.voted.insert(replayer);
            }
            Reading::Newer if NEWER_IS_NOTHING.is_planted() => self.voted.insert(replayer),
            Reading::Newer => self.unknown.insert(replayer),
            Reading::Different if self.dispute == Dispute::None => {
                self.dispute = Dispute::Unreported(replayer);
            }
            Reading::Different => {}
            Reading::Torn | Reading::Failed | Reading::Forged | Reading::Unfit => {
                return Again::Later;
            }
        }
        Again::Never
    }

    /// `replayer` is read again at `at`.
    pub(super) fn pause(&mut self, replayer: Peer, at: Instant) {
        // Replayers that pause already are read a little later, together with this one.
        self.pausing.insert(replayer);
        self.attempts = self.attempts.saturating_add(1);
        self.again_at = at;
    }

    /// Ends the pause if it is over, and returns whether it did.
    pub(super) fn resume(&mut self, now: Instant) -> bool {
        let due = !self.pausing.is_empty() && self.again_at <= now;
        if due {
            self.pausing = PeerSet::EMPTY;
        }
        due
    }

    /// Whether the slot may be delivered when the votes of `voters` are needed.
    pub(super) fn is_carried(&self, voters: PeerSet) -> bool {
        let undisputed = self.dispute == Dispute::None || FORGET_CONFLICT.is_planted();
        let disputant = match self.dispute {
            Dispute::Unreported(replayer) | Dispute::Reported(replayer) => PeerSet::only(replayer),
            Dispute::None => PeerSet::EMPTY,
        };
        let complete = if COUNT_VOTES.is_planted() {
            self.voted.count() >= voters.count()
        } else {
            let voted = self.voted.union(self.excused());
            voters.without(voted).without(disputant).is_empty()
        };
        self.exposed.is_some() && undisputed && complete
    }
}

/// Whether a replayer must be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    Never,
    /// After a pause.
    Later,
    AtOnce,
    /// Later, unless the own copy turns out to be signed.
    IfUnsigned,
}

#[cfg(test)]
mod tests {
    use super::*;

    const Q: Peer = Peer(2);
    const R: Peer = Peer(3);

    fn voters() -> PeerSet {
        PeerSet::only(Q).union(PeerSet::only(R))
    }

    fn ballot() -> Ballot {
        Ballot::on(Exposed::for_test(7))
    }

    #[test]
    fn a_slot_needs_every_voter() {
        let mut ballot = ballot();
        assert!(!ballot.is_carried(voters()));
        assert_eq!(ballot.hear(Q, Reading::Same), Again::Never);
        assert_eq!(ballot.hear(Q, Reading::Nothing), Again::Never);
        assert!(!ballot.is_carried(voters()), "one vote per member");
        ballot.hear(R, Reading::Nothing);
        assert!(ballot.is_carried(voters()));
    }

    #[test]
    fn the_vote_of_a_removed_member_does_not_count() {
        let mut ballot = ballot();
        ballot.hear(Q, Reading::Same);
        assert!(!ballot.is_carried(PeerSet::only(R)));
    }

    #[test]
    fn a_conflict_is_permanent() {
        let mut ballot = ballot();
        ballot.hear(Q, Reading::Different);
        ballot.hear(Q, Reading::Same);
        ballot.hear(R, Reading::Same);
        assert_eq!(ballot.dispute, Dispute::Unreported(Q));
        assert!(!ballot.is_carried(voters()) && !ballot.is_carried(PeerSet::only(R)));
        assert!(ballot.to_ask(voters()).is_empty());
    }

    #[test]
    fn a_newer_generation_is_no_vote() {
        let mut ballot = ballot();
        ballot.hear(Q, Reading::Same);
        ballot.hear(R, Reading::Newer);
        assert!(!ballot.is_carried(voters()));
        assert!(ballot.to_ask(voters()).is_empty(), "reading again is useless");
    }

    #[test]
    fn a_torn_slot_is_read_again_after_a_pause() {
        let mut ballot = ballot();
        assert_eq!(ballot.hear(R, Reading::Torn), Again::Later);
        ballot.pause(R, Instant(5));
        assert_eq!(ballot.to_ask(voters()), PeerSet::only(Q));
        assert!(!ballot.resume(Instant(4)));
        assert!(ballot.resume(Instant(5)));
        assert_eq!(ballot.to_ask(voters()), voters());
    }

    /// N-16.
    #[test]
    fn a_read_of_an_earlier_epoch_is_no_vote() {
        let mut ballot = ballot();
        ballot.reading.insert(Q);
        voters().iter().for_each(|replayer| ballot.forget(replayer));
        assert!(!ballot.handle_end(Q));
        for replayer in voters().iter() {
            ballot.reading.insert(replayer);
            assert!(ballot.handle_end(replayer), "a read of the epoch that is counted");
        }
    }

    /// N-11: the other slot may be longer than what was read of it first.
    #[test]
    fn a_slot_that_was_torn_once_denies_nothing() {
        let mut ballot = Ballot { signed: Signed::Yes, ..ballot() };
        assert_eq!(ballot.hear_signed(Q, Reading::Torn), Again::Later);
        assert!(!ballot.is_carried(PeerSet::only(Q)));
        assert_eq!(ballot.hear_signed(Q, Reading::Torn), Again::Never);
        assert!(ballot.is_carried(PeerSet::only(Q)));
    }

    #[test]
    fn a_place_never_used_carries_nothing() {
        assert!(!Ballot::default().is_carried(PeerSet::EMPTY));
    }
}
