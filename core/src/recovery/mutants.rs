//! The guards of verifier and interpreter that a test build can disable, each with the test that
//! must notice. Most of them restore a fault of the published `rint`.

use crate::mutant::Mutant;

macro_rules! mutants {
    ($($name:ident = $text:literal, $breaks:literal;)*) => {
        $(pub(crate) const $name: Mutant = Mutant::new("recovery", $text, $breaks);)*
        /// Every guard that can be disabled.
        pub const MUTANTS: &[Mutant] = &[$($name,)*];
    };
}

mutants! {
    BRANCH_NOT_TAKEN = "branch-not-taken", "L1: a false guard skips its actions";
    OPERANDS_SWAPPED = "operands-swapped", "L2: a comparison has its left side left";
    REST_IS_THE_SET = "rest-is-the-set", "L3: ~k is the complement of @k";
    REST_OF_EVERYTHING = "rest-of-everything", "L4: ~k stays within the scope of its atom";
    PICTURE_IS_LIVE = "picture-is-live", "L8: orders change nothing that the evaluation sees";
    STALE_SET_ACCEPTED = "stale-set-accepted", "L5: a set ends with its section";
    BACKWARD_JUMP_ACCEPTED = "backward-jump-accepted", "L6: jumps lead forward";
    JOIN_DEPTH_UNCHECKED = "join-depth-unchecked", "L7: the depth is equal where paths join";
    ORDERS_ARE_REPEATED = "orders-are-repeated", "RL-3: a repeated order is obeyed once";
    MARKS_ARE_IGNORED = "marks-are-ignored", "L9: an error is answered once, by whichever manager";
    ORDERS_GO_ONCE = "orders-go-once", "L10: an order is repeated until its node has judged it";
    FIRST_PICTURE_IS_OLD = "first-picture-is-old", "L11: a new manager answers what is unanswered";
    BACKUPS_EVALUATE = "backups-evaluate", "L12: the manager alone evaluates";
    RESTARTS_ARE_UNCOUNTED = "restarts-are-uncounted", "L14: restarts by order count as others do";
    REPLICAS_COUNT_ALPHA = "replicas-count-alpha", "L15: the owner of a task counts its alpha";
    DEFAULT_FOR_ANSWERED = "default-for-answered", "L13: DEFAULT is for what is unanswered";
    LOADED_BEFORE_ALL_HOLD_IT = "loaded-before-all-hold-it", "L16: all members hold a script first";
    NUMBERS_BEGIN_AGAIN = "numbers-begin-again", "RL-12: orders of the next script are later";
    FIRST_VOTES_DECIDE = "first-votes-decide", "L18: a round waits for all who can vote in time";
    OUTCOMES_UNASKED = "outcomes-unasked", "RL-10: the next manager gives no other outcome";
    PAUSE_OUTLIVES_TERM = "pause-outlives-term", "L17: a PAUSE ends with its term";
    DIV_BY_ZERO_IS_TRUE = "div-by-zero-is-true", "L19: a division by zero ends its section";
}
