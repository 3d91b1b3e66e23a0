//! Guards that a test build can leave out: the traps of `SPEC.md`, and a few more.
//!
//! Without its guard a promise is broken, which the scenario named here detects. Seeds of the
//! simulator detect those in `MUTANTS` and `SIGNED_MUTANTS` as well. `ci/mutants neb` shows both.
//!
//! | trap | guard | scenario |
//! |---|---|---|
//! | U3 | `READ_BEFORE_EXPOSE` | `traps::equivocation_between_halves` |
//! | U5 | `COUNT_VOTES` | `traps::votes_of_a_removed_member` |
//! | U6 | `REMOVE_ON_TIMEOUT` | `traps::slow_is_not_dead` |
//! | U8 | `SUBTRACT_ORIGIN_TWICE` | `traps::equivocate_then_die` |
//! | S3 | `UNSIGNED_SILENCE` | `signed::silence_is_no_signature` |
//! | S4 | `UNSIGNED_DENIAL` | `signed::two_unsigned_faces` |
//! | S5 | `COUNT_UNSEALED` | `signed::seen_before_it_stood` |
//! | S6 | `UNBOUND_SIGNATURE` | `signed::another_numbers_signature` |
//! | S7 | `STALE_OWN_COPY` | `signed::silence_about_another_message` |
//! | S8 | `ANY_ORIGIN` | `signed::another_origins_message` |
//! | S9 | `ANY_PASS` | `signed::another_pass` |
//! | S10 | `ANY_NUMBER` | `signed::another_place` |
//! | T1 | `TRUST_ORIGIN_BUFFER` | `traps::rewritten_after_replay` |
//! | T2 | `SHARED_LANDING` | `traps::landings_apart` |
//! | T3 | `SKIP_CHECKSUM` | `traps::torn_by_the_origin` |
//! | T4 | `DELIVER_AGAIN` | `traps::delivered_before_the_removal` |
//! | T5 | `FOREIGN_WRITER` | `traps::foreign_writer` |
//! | N1 | `OVERRUN_WINDOW` | `traps::wraps_with_a_slow_reader` |
//! | N5 | `NEWER_IS_NOTHING` | `traps::newer_than_asked` |
//! | N6 | `FORGET_CONFLICT` | `traps::conflict_then_silence` |
//! | N7 | `FAILURE_IS_VOTE` | `traps::slow_is_not_dead` |
//! | N9 | `REUSE_EARLY` | `traps::an_origin_that_overruns` |
//! | L1 | `OLD_NUMBERS` | `epochs::an_epoch_has_numbers_of_its_own` |
//! | L2 | `COUNT_LATE` | `epochs::counted_before_it_reads` |
//! | L3 | `OLD_VOTES` | `epochs::votes_of_an_earlier_epoch` |
//! | L4 | `FORGET_COUNTED` | `epochs::counted_by_the_next_incarnation` |
//! | L5 | `DELIVER_UNCOUNTED` | `epochs::not_counted_by_all` |
//! | L6 | `UNNAMED` | `epochs::two_that_return_at_once` |
//! | L7 | `ANY_EPOCH` | `epochs::a_decision_about_an_earlier_epoch` |

use crate::mutant::Mutant;

const fn neb(name: &'static str, breaks: &'static str) -> Mutant {
    Mutant::new("neb", name, breaks)
}

/// U3: the reads of N-4 are posted before the copy of N-3 is exposed.
pub const READ_BEFORE_EXPOSE: Mutant = neb("U3-read-before-expose", "agreement");
/// U3: what is exposed and what is read after it are not ordered by a fence.
pub const UNFENCED_EXPOSURE: Mutant = neb("U3-unfenced-exposure", "agreement");
/// U5: votes are counted, and with them those of voters that were removed later.
pub const COUNT_VOTES: Mutant = neb("U5-count-votes", "agreement");
/// U6: a replayer whose read fails is removed.
pub const REMOVE_ON_TIMEOUT: Mutant = neb("U6-remove-on-timeout", "agreement");
/// U8: an origin that was removed is subtracted twice from the required votes.
pub const SUBTRACT_ORIGIN_TWICE: Mutant = neb("U8-subtract-origin-twice", "agreement");
/// T1: the origin's buffer is compared and delivered, not the private copy.
pub const TRUST_ORIGIN_BUFFER: Mutant = neb("T1-trust-origin-buffer", "agreement");
/// T2: the reads of one slot share a landing.
pub const SHARED_LANDING: Mutant = neb("T2-shared-landing", "agreement");
/// T3: a copy with a wrong checksum is accepted.
pub const SKIP_CHECKSUM: Mutant = neb("T3-skip-checksum", "integrity");
/// T4: a delivered message is delivered again after a removal.
pub const DELIVER_AGAIN: Mutant = neb("T4-deliver-again", "integrity");
/// T5: every member may write every ring.
pub const FOREIGN_WRITER: Mutant = crate::fabric::FOREIGN_WRITER;
/// N-5: a newer generation counts as empty.
pub const NEWER_IS_NOTHING: Mutant = neb("N5-newer-is-nothing", "agreement");
/// N-6: a conflict is forgotten when all members have answered.
pub const FORGET_CONFLICT: Mutant = neb("N6-forget-conflict", "agreement");
/// N-7: a failed read counts as an empty slot.
pub const FAILURE_IS_VOTE: Mutant = neb("N7-failure-is-vote", "agreement");
/// N-9: an exposed slot is reused before all members have shown that they delivered it.
pub const REUSE_EARLY: Mutant = neb("N9-reuse-early", "validity");
/// N-1: an origin reuses its slots before the others have delivered them.
pub const OVERRUN_WINDOW: Mutant = neb("N1-overrun-window", "validity");

/// S3 (signed): a voter that shows an empty slot counts even if the own copy is unsigned.
pub const UNSIGNED_SILENCE: Mutant = neb("S3-unsigned-silence", "agreement");
/// S4 (signed): a voter with a different, unsigned copy counts even if the own one is unsigned.
pub const UNSIGNED_DENIAL: Mutant = neb("S4-unsigned-denial", "agreement");
/// S5 (signed): a voter that shows the same counts before it has certainly exposed it.
pub const COUNT_UNSEALED: Mutant = neb("S5-count-unsealed", "agreement");
/// S6 (signed): a signature is valid for every number of its origin.
pub const UNBOUND_SIGNATURE: Mutant = neb("S6-unbound-signature", "blame");
/// S7 (signed): the buffer for the own copy is used even if it holds another message.
pub const STALE_OWN_COPY: Mutant = neb("S7-stale-own-copy", "agreement");

/// S8 (signed): a slot of another origin, signed by that origin, is judged as one of the origin
/// that is voted on.
pub const ANY_ORIGIN: Mutant = neb("S8-any-origin", "blame");
/// S9 (signed): a slot whose pass does not match its number is judged.
pub const ANY_PASS: Mutant = neb("S9-any-pass", "blame");
/// S10 (signed): a message that belongs in another slot of the ring is taken for a later one.
pub const ANY_NUMBER: Mutant = neb("S10-any-number", "validity");

/// The mutants of the signed form.
#[cfg(feature = "signed")]
pub const SIGNED_MUTANTS: &[Mutant] = &[
    UNSIGNED_SILENCE,
    UNSIGNED_DENIAL,
    UNBOUND_SIGNATURE,
    STALE_OWN_COPY,
    ANY_ORIGIN,
    ANY_PASS,
    ANY_NUMBER,
    OLD_VOTES,
];

/// The mutant of the signed form that only its scenario detects: the origin chooses messages by
/// their checksum, and a read is torn in one of very many ways. No seed finds that.
#[cfg(feature = "signed")]
pub const CRAFTED_MUTANTS: &[Mutant] = &[COUNT_UNSEALED];

/// L1: a new epoch numbers its messages from 1 again.
pub const OLD_NUMBERS: Mutant = neb("L1-old-numbers", "integrity");
/// L2: a member shows that it counts a new epoch and delivers one more message without its vote.
pub const COUNT_LATE: Mutant = neb("L2-count-late", "agreement");
/// L3 (signed): the copies of an earlier epoch are not erased, and its votes count as those of the
/// new one.
pub const OLD_VOTES: Mutant = neb("L3-old-votes", "agreement");
/// L4: the next incarnation of a member forgets which epochs it counted.
pub const FORGET_COUNTED: Mutant = neb("L4-forget-counted", "agreement");
/// L5: a new epoch delivers before all live members count it.
pub const DELIVER_UNCOUNTED: Mutant = neb("L5-deliver-uncounted", "agreement");
/// L6: of two members that return at once, neither waits for the other.
pub const UNNAMED: Mutant = neb("L6-unnamed", "agreement");
/// L7: a decision about an earlier epoch removes the present one.
pub const ANY_EPOCH: Mutant = neb("L7-any-epoch", "agreement");

/// The mutants of the unsigned form.
pub const MUTANTS: &[Mutant] = &[
    READ_BEFORE_EXPOSE,
    COUNT_VOTES,
    REMOVE_ON_TIMEOUT,
    SUBTRACT_ORIGIN_TWICE,
    TRUST_ORIGIN_BUFFER,
    SHARED_LANDING,
    SKIP_CHECKSUM,
    DELIVER_AGAIN,
    FOREIGN_WRITER,
    FORGET_CONFLICT,
    FAILURE_IS_VOTE,
    OVERRUN_WINDOW,
];

/// The mutants of epochs, which need a member that returns.
pub const EPOCH_MUTANTS: &[Mutant] =
    &[OLD_NUMBERS, COUNT_LATE, FORGET_COUNTED, DELIVER_UNCOUNTED, UNNAMED, ANY_EPOCH];

/// The fence whose removal only the model checker detects (`core/tests/loom`): the simulator's
/// stores are sequentially consistent.
pub const WEAKENED: &[Mutant] = &[UNFENCED_EXPOSURE];

/// Two guards against the same fault, either of which suffices: only a test that disables the other
/// one detects the removal.
pub const EITHER_MUTANTS: &[Mutant] = &[NEWER_IS_NOTHING, REUSE_EARLY];
