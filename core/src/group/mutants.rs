//! Guards that a test build can leave out: the planted bugs of `SPEC.md`.

use crate::mutant::Mutant;

const fn group(name: &'static str, breaks: &'static str) -> Mutant {
    Mutant::new("group", name, breaks)
}

/// G1: a block counts as held when its read is posted.
pub(super) const HELD_EARLY: Mutant = group("G1-held-early", "window");
/// G2: the root uses a slot again before all members have acknowledged it.
pub(super) const REUSED_BEFORE_STABLE: Mutant = group("G2-reused-before-stable", "window");
/// G3: a member acknowledges what its consumer has not released, and uses its slot again.
pub(super) const ACKED_BEFORE_RELEASE: Mutant = group("G3-acked-before-release", "integrity");
/// G4: a slot is read into while another read into it is out.
pub(super) const SECOND_READ: Mutant = group("G4-second-read", "window");
/// G5: the minimum of a subtree leaves out its last child.
pub(super) const CHILD_LEFT_OUT: Mutant = group("G5-child-left-out", "window");
/// G6: a child's minimum counts under whichever members it was taken.
pub(super) const FOREIGN_MINIMUM: Mutant = group("G6-foreign-minimum", "window");
/// G7: a round is decided on reports for different members.
pub(super) const MIXED_ROUND: Mutant = group("G7-mixed-round", "verdict");
/// G8: entries are accepted and blocks are read after the report.
pub(super) const NOT_FROZEN: Mutant = group("G8-not-frozen", "verdict");
/// G9: the end of a stream is what all hold, not what any holds.
pub(super) const END_IS_MINIMUM: Mutant = group("G9-end-is-minimum", "agreement");
/// G10: an entry behind an incomplete message is delivered.
pub(super) const OVERTAKEN: Mutant = group("G10-overtaken", "order");
/// G11: no NEED goes to a new predecessor.
pub(super) const NO_NEED: Mutant = group("G11-no-need", "liveness");
/// G12: the minimum is not repeated to a new parent.
pub(super) const NO_MINIMUM_AGAIN: Mutant = group("G12-no-minimum-again", "liveness");
/// G14: an entry that was received before is delivered again.
pub(super) const DELIVERED_AGAIN: Mutant = group("G14-delivered-again", "once");
/// G15: the root's rank does not enter the routing.
pub(super) const GROOT_IGNORED: Mutant = group("G15-groot-ignored", "liveness");
/// G16: the note is stored before the read has completed.
pub(super) const NOTED_EARLY: Mutant = group("G16-noted-early", "window");
/// G17: the halves of a range share a member.
pub(super) const OVERLAPPING_HALVES: Mutant = group("G17-overlapping-halves", "once");
/// G18: an abandoned message keeps the numbers of its unwritten blocks.
pub(super) const UNWRITTEN_COUNTED: Mutant = group("G18-unwritten-counted", "liveness");
/// G20: the twins' turn changes with each block.
pub(super) const TURN_BY_BLOCK: Mutant = group("G20-turn-by-block", "steps");
/// G21: a barrier is left when its coordinator has arrived.
pub(super) const ARRIVALS_IGNORED: Mutant = group("G21-arrivals-ignored", "barrier");
/// G22: a child's arrival counts under whichever members its subtree was formed.
pub(super) const FOREIGN_ARRIVAL: Mutant = group("G22-foreign-arrival", "barrier");
/// G23: a new parent or child is not sent how far the barriers are.
pub(super) const NO_SYNC_AGAIN: Mutant = group("G23-no-sync-again", "liveness");
/// G24: a value is taken before what its root sent before it is held.
pub(super) const VALUE_AHEAD: Mutant = group("G24-value-ahead", "gather");
/// G25: the value of a removed member is given up before its stream is closed.
pub(super) const NONE_EARLY: Mutant = group("G25-none-early", "gather");
/// G26: who reads is not found again when a message travels in another way.
pub(super) const READERS_STAY: Mutant = group("G26-readers-stay", "liveness");
/// G19: a member that has come back takes part before all others count just whom it counts.
pub(super) const JOINED_EARLY: Mutant = group("G19-joined-early", "agreement");
/// G27: the epochs of members are left out of the digest of those.
pub(super) const EPOCHS_IGNORED: Mutant = group("G27-epochs-ignored", "liveness");
/// G28: a member that has come back begins behind all that was sent, not behind what is stable.
pub(super) const STARTS_AT_END: Mutant = group("G28-starts-at-end", "liveness");
/// G29: what was announced of an earlier epoch of the root counts.
pub(super) const EARLIER_COUNTED: Mutant = group("G29-earlier-counted", "window");
/// G30: a report on an epoch that a member takes no part in is not answered.
pub(super) const UNANSWERED: Mutant = group("G30-unanswered", "liveness");
/// G31: a member that has come back is counted while others still close its earlier stream.
pub(super) const UNSETTLED_COUNTED: Mutant = group("G31-unsettled-counted", "liveness");
/// G32: a stream goes on to the next epoch before the consumer is done with the one before.
pub(super) const TURNED_EARLY: Mutant = group("G32-turned-early", "agreement");
/// G33: of the message in whose middle a member begins, the rest is delivered.
pub(super) const PASSED_DELIVERED: Mutant = group("G33-passed-delivered", "order");
/// G34: one that has no part in the epochs before counts a member while others still close those.
pub(super) const COUNTED_ALONE: Mutant = group("G34-counted-alone", "liveness");
/// G35: a successor that once asked for entries which have left the window is sent none.
pub(super) const OLD_CURSOR: Mutant = group("G35-old-cursor", "liveness");
/// G36: blocks are read by a plan that was made for fewer members than are live.
pub(super) const OTHER_PLAN: Mutant = group("G36-other-plan", "liveness");
/// G37: fresh members begin without one that may have begun with them.
pub(super) const PLEDGE_FORGOTTEN: Mutant = group("G37-pledge-forgotten", "gather");
/// G38: a welcome counts that was said before another member was removed.
pub(super) const STALE_WELCOME: Mutant = group("G38-stale-welcome", "gather");

/// All of them that seeds show; the rest have scenarios in the tests.
pub const MUTANTS: &[Mutant] = &[
    HELD_EARLY,
    REUSED_BEFORE_STABLE,
    ACKED_BEFORE_RELEASE,
    SECOND_READ,
    CHILD_LEFT_OUT,
    FOREIGN_MINIMUM,
    MIXED_ROUND,
    END_IS_MINIMUM,
    OVERTAKEN,
    NO_NEED,
    NO_MINIMUM_AGAIN,
    DELIVERED_AGAIN,
    GROOT_IGNORED,
    NOTED_EARLY,
    OVERLAPPING_HALVES,
    UNWRITTEN_COUNTED,
    TURN_BY_BLOCK,
    ARRIVALS_IGNORED,
    FOREIGN_ARRIVAL,
    NO_SYNC_AGAIN,
    VALUE_AHEAD,
    NONE_EARLY,
    READERS_STAY,
    STARTS_AT_END,
    UNANSWERED,
    UNSETTLED_COUNTED,
    TURNED_EARLY,
    PASSED_DELIVERED,
    COUNTED_ALONE,
    OTHER_PLAN,
];
