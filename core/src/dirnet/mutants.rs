//! The guards of the DIR net that a test build can disable, one for each resolution: disabling a
//! guard restores the original's behaviour. The table is in the order of the resolutions.

use crate::mutant::Mutant;

macro_rules! mutants {
    ($($name:ident = $text:literal, $breaks:literal;)*) => {
        $(pub(super) const $name: Mutant = Mutant::new("dirnet", $text, $breaks);)*
        /// Every guard that can be disabled.
        pub const MUTANTS: &[Mutant] = &[$($name,)*];
    };
}

mutants! {
    SUSPICION_NEVER_ENDS = "suspicion-never-ends", "G-1: backups conclude the manager's death";
    ONE_WINDOW_FOR_ALL = "one-window-for-all", "G-2: each suspect has its own window";
    SUSPICION_LEAVES_ALARM = "suspicion-leaves-alarm", "G-3: a frame that is heard ends all of it";
    WINDOW_IS_UNCHECKED = "window-is-unchecked", "G-4: a profile keeps the rules";
    EARLY_ALARM_IS_FORGOTTEN = "early-alarm-is-forgotten", "G-5: an early alarm counts";
    ANYTHING_ROUSES = "anything-rouses", "G-6: the I'm-Alive Task looks at what it gets";
    ALARM_ONCE = "alarm-once", "G-7: an alarm is repeated until it is answered";
    SPAN_IS_REPEATED = "span-is-repeated", "G-8: a late SPAN hits no recovered component";
    ALL_SUCCEED = "all-succeed", "G-8: only the successor acts";
    SUCCESSOR_UNSEEN = "successor-unseen", "G-9: the successor is alive and no agent";
    NO_CANDIDATE_TIMER = "no-candidate-timer", "G-9: a dead candidate is passed over";
    RIVALS_ARE_IGNORED = "rivals-are-ignored", "G-10: the higher term wins";
    OLD_TERMS_ARE_HEARD = "old-terms-are-heard", "G-10: a lower term is answered and dropped";
    RESET_WITHOUT_WITNESS = "reset-without-witness", "G-11: a reset needs a second observer";
    MET_MANAGERS_ARE_FOLLOWED = "met-managers-are-followed", "G-11: whom others meet reigns";
    TERMS_ARE_KEPT_BACK = "terms-are-kept-back", "G-11: whom another hears is outbid";
    JOINERS_VOUCH = "joiners-vouch", "G-11: who asks is not met as the manager it was";
    ANSWERS_ARE_SIGNS = "answers-are-signs", "G-31: an answer to a probe hides no dead timers";
    MANAGERLESS_ARE_DEAF = "managerless-are-deaf", "G-11: who misses the manager hears new lives";
    MANAGERS_HAVE_NO_INCARNATION = "managers-have-no-incarnation", "G-11: a far manager is known";
    THE_OUTVOTED_STAY = "the-outvoted-stay", "G-11: the last of a half gives way to the other";
    NONE_INTRODUCES = "none-introduces", "G-11: whom another hears is a member";
    ONE_WITNESS_REMOVES = "one-witness-removes", "X-8: all are asked, and one that meets keeps";
    PROBES_NEED_THE_TERM = "probes-need-the-term", "X-8: who follows another manager is met";
    SILENT_WITNESSES_COUNT = "silent-witnesses-count", "X-8: who has yet to answer is waited for";
    MEMBERS_ALONE_PROBE = "members-alone-probe", "X-8: a new incarnation is a witness at once";
    QUESTIONS_ARE_NOT_PASSED_ON = "questions-are-not-passed-on", "X-8: all members are witnesses";
    HEIRS_ASK_DIRECTLY = "heirs-ask-directly", "X-8: a new manager asks those it has not heard";
    SPANS_ARE_NOT_PASSED_ON = "spans-are-not-passed-on", "X-8: a clone is ordered through others";
    LAST_ASKER_COUNTS = "last-asker-counts", "X-8: a witness answers each asker";
    TESTIMONIES_NEVER_EXPIRE = "testimonies-never-expire", "X-8: what is old is asked again";
    CLAIMS_NEED_NO_ANSWER = "claims-need-no-answer", "X-9: who hears no member deposes no manager";
    UNHEARD_MANAGERS_STAY = "unheard-managers-stay", "X-9: a manager that is deaf is followed";
    HALF_HEARD_MANAGERS_STAY = "half-heard-managers-stay", "X-9: whom too few hear is followed";
    THE_PASSED_ARE_DEAD = "the-passed-are-dead", "X-9: a candidate that answers counts as alive";
    UNHEARD_MANAGERS_ISOLATE = "unheard-managers-isolate", "X-9: who is not heard isolates none";
    THE_DEAF_BEGIN = "the-deaf-begin", "X-9: a node that starts and hears none claims no term";
    OLD_ANSWERS_COUNT = "old-answers-count", "X-9: a candidate that stood still asks again";
    REFUSED_CLAIMS_ANSWER_NOTHING = "refused-claims-answer-nothing", "X-9: it is an answer";
    JOINERS_ANSWER_NOTHING = "joiners-answer-nothing", "X-9: joiners of later terms answer";
    ONE_STANDS_IN = "one-stands-in", "X-9: any member introduces who is not heard";
    LOST_AGENTS_COUNT_AS_DEAD = "lost-agents-count-as-dead", "G-11: whose task speaks is alive";
    NUMBERS_ONLY_GROW = "numbers-only-grow", "X-10: numbers go on past their end";
    RESET_BEFORE_FENCES = "reset-before-fences", "G-11: fences come before the reset";
    OVERTAKEN_FENCES_GO_ON = "overtaken-fences-go-on", "D-43: each member is watched";
    LATECOMERS_FENCE_NOTHING = "latecomers-fence-nothing", "G-11: who is met later fences too";
    REPEATED_RESETS_ARE_RASH = "repeated-resets-are-rash", "G-11: each reset waits for fences";
    REMOVAL_IS_NOT_HEARD = "removal-is-not-heard", "G-12: ANID is handled";
    RETURN_IS_NOT_HEARD = "return-is-not-heard", "G-13: NIUA is handled by backups";
    VERDICTS_ARE_NOT_SPREAD = "verdicts-are-not-spread", "G-14: every node verdict is made known";
    WATCH_IS_NOT_TURNED = "watch-is-not-turned", "G-15: the watch follows the manager";
    TRAFFIC_IS_NO_SIGN = "traffic-is-no-sign", "G-16: any current frame is a heartbeat";
    ANY_ALARM_RENEWS = "any-alarm-renews", "G-17: others' alarms do not mask the manager";
    FAILED_SPAWNS_NEED_WITNESSES = "failed-spawns-need-witnesses", "X-12: the own task is believed";
    HUNG_SUPERVISORS_STAY = "hung-supervisors-stay", "X-13: a hung supervisor is a node failure";
    CLONES_ARE_FORGOTTEN = "clones-are-forgotten", "G-18: a clone that never comes is noticed";
    LOST_JOINERS_ARE_AWAITED = "lost-joiners-are-awaited", "G-18: who dies as it joins is missed";
    HEIRS_OWE_NOTHING = "heirs-owe-nothing", "G-18: a reset outlives who decided it";
    FIRST_ANSWER_WINS = "first-answer-wins", "G-19: a joiner takes the highest term";
    OUTCASTS_CLAIM = "outcasts-claim", "G-19: who was removed has no static role";
    REMOVED_NODES_CLAIM = "removed-nodes-claim", "G-10: a removed node's claim is refused";
    TERMS_RACE = "terms-race", "G-10: a manager waits before it goes above a term again";
    REFUSED_CLAIMS_STAND = "refused-claims-stand", "G-10: the manager goes above such a claim";
    RIVALS_STAY_OUT = "rivals-stay-out", "G-10: who claimed above it is then a member";
    FAR_RIVALS_STAY_OUT = "far-rivals-stay-out", "G-10: nor is one that a member hears";
    REMOVED_HEAR_NOTHING = "removed-hear-nothing", "G-10: managers that removed each other meet";
    OLD_REMOVALS_COUNT = "old-removals-count", "G-10: one of two halves gives way";
    ALONE_IT_REMOVES = "alone-it-removes", "G-11: a manager that hears no node removes none";
    UNHEARD_COUNT_AS_ALIVE = "unheard-count-as-alive", "G-11: who counts was heard in this term";
    JOINERS_ARE_DEAF = "joiners-are-deaf", "G-20: a rebooted node can be reached";
    CLONES_START_AGAIN = "clones-start-again", "G-21: a clone joins, it does not start";
    WINNER_STARTS_OVER = "winner-starts-over", "G-22: the winner is manager in place";
    MISSING_DATABASE_IS_FINE = "missing-database-is-fine", "G-23: the next member is asked";
    ABSENT_ARE_AWAITED = "absent-are-awaited", "G-24: an absent node is noticed";
    UPDATES_WITHOUT_SEQUENCE = "updates-without-sequence", "G-25: changes are applied once";
    ERROR_OVERWRITES_STATUS = "error-overwrites-status", "G-26: an error leaves the status";
    ERRORS_TRIGGER_NOTHING = "errors-trigger-nothing", "G-27: an error triggers recovery";
    AGENT_MANAGES = "agent-manages", "G-28: an agent is never manager";
    ANSWERS_IN_PLACE = "answers-in-place", "G-29: an answer is the answerer's own";
    FIRST_EXPIRY_REPEATS = "first-expiry-repeats", "G-30: each expiry knows its own key";
    MESSAGES_ARE_PROGRESS = "messages-are-progress", "G-31: dead timers are noticed";
    LATECOMERS_VOUCH = "latecomers-vouch", "G-31: who may have dead timers quiets no alarm";
    NOTHING_IS_RESET = "nothing-is-reset", "G-33: a node is reset";
    SNAPSHOTS_ARE_IGNORED = "snapshots-are-ignored", "D-58: the database outlives components";
    MEMBERS_ARE_FORGOTTEN = "members-are-forgotten", "D-58: who dies with all others is missed";
    OWN_PAST_IS_NOT_ASKED_FOR = "own-past-is-not-asked-for", "D-58: others know what was said";
    DAMAGE_IS_RESTORED = "damage-is-restored", "D-58: a damaged snapshot is refused";
    ERRORS_ARE_REPEATED = "errors-are-repeated", "D-58: an error sent again is counted once";
    NO_LOCAL_HEALTH = "no-local-health", "X-3: a slow observer removes no node";
    DEAF_ARE_ANSWERED = "deaf-are-answered", "X-5: who has removed this boot gets no answer";
    STALE_RELEASES_COUNT = "stale-releases-count", "X-11: a release ends no later isolation";
    LATER_BOOTS_ARE_FREE = "later-boots-are-free", "X-11: a later boot ends no isolation";
    ISOLATION_IS_HEARSAY = "isolation-is-hearsay", "X-11: an isolation holds in any term";
    ISOLATED_NODES_FORGET = "isolated-nodes-forget", "X-11: an isolated node remembers it";
    RELEASED_STAY_REMOVED = "released-stay-removed", "X-11: a removal is not restored";
    FORGOTTEN_BOOTS_ARE_DAMAGE = "forgotten-boots-are-damage", "X-11: numbers outlive boots";
    FENCED_ARE_HEARD = "fenced-are-heard", "X-5: a removed boot is ignored";
    REMOVED_RUN_ON = "removed-run-on", "X-14: a removed incarnation that runs on ends";
    FENCED_STAY_OUT = "fenced-stay-out", "X-14: the next component fences no running peer";
    REMOVALS_OUTLIVE_BOOTS = "removals-outlive-boots", "X-14: a node that gives way admits";
    THE_DEAD_FENCE = "the-dead-fence", "X-14: a node without a component refuses none";
    ISOLATED_PEERS_DECIDE = "isolated-peers-decide", "X-5: what they decided ends no boot";
    ISOLATED_NODES_WAIT = "isolated-nodes-wait", "X-11: an isolated node asks for its release";
    CLONES_FORGET_ISOLATIONS = "clones-forget-isolations", "X-11: the supervisor remembers them";
    RESTARTS_WITHOUT_LIMIT = "restarts-without-limit", "X-6: restarts are limited";
    RESETS_WITHOUT_LIMIT = "resets-without-limit", "X-6: who cannot live is isolated";
    RESETS_SHARE_A_LIMIT = "resets-share-a-limit", "X-6: resets have a limit of their own";
    HEIRS_COUNT_AGAIN = "heirs-count-again", "X-6: the count outlives the manager";
    COUNTS_ARE_NOT_SAVED = "counts-are-not-saved", "X-6: the count outlives all components";
    MEMBERS_NUMBER_VIEWS = "members-number-views", "M-6: the manager numbers the views";
    VIEWS_PRECEDE_FENCES = "views-precede-fences", "M-6: what a view removes is fenced before";
    OLD_VIEWS_ARE_SHOWN = "old-views-are-shown", "M-6: no view follows one of a later term";
    RELEASED_ARE_COUNTED = "released-are-counted", "X-6: who is released starts over";
}
