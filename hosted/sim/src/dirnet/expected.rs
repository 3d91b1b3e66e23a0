//! What a seed makes of each planted bug of the DIR net: the seed that shows it and the checker,
//! or why none does. The explorer is asked about those of admissions. Every bug has a scenario,
//! too, in core (`ci/mutants dirnet`).
//!
//! A seed is a shortcut: where it no longer shows the bug, all from the first are tried.

use crate::subject::{Expected, Explorer};

const CHECKED: &str = "a run begins with settings that have passed this check";
const LOGS: &str = "no promise of a run is about what is logged";
const PARTS: &str = "no promise of a run says which nodes may manage";
const TASKS: &str = "no task of a run reports an error";
const HONEST: &str = "no node of a run sends an order that is not its own";
const REVIVED: &str =
    "what it leaves undone, the launcher or an operator does in the end, where no manager decides";
const LATER: &str =
    "another guard has the same effect later, and no promise of a run bounds that time";
const RARE: &str =
    "faults must meet within a few messages, and none of the first 500 seeds draws them so";

/// A node that no manager resets, or that does not come back for another reason.
const LIVENESS: &[&str] = &["progress", "reset"];

const fn seen(name: &'static str, seed: u64, checkers: &'static [&'static str]) -> Expected {
    Expected::seen(name, seed, checkers)
}

const fn scripted(name: &'static str, why: &'static str) -> Expected {
    Expected::scripted(name, why)
}

/// The explorer finds it, too, by one of `checkers`.
const fn and_found(expected: Expected, checkers: &'static [&'static str]) -> Expected {
    Expected { explorer: Explorer::Finds(checkers), ..expected }
}

/// The explorer finds it, by one of `checkers`, and no seed does.
const fn explored(name: &'static str, checkers: &'static [&'static str]) -> Expected {
    Expected::explored(name, checkers, RARE)
}

/// One row for each, in the order of the guards.
pub(crate) const EXPECTED: &[Expected] = &[
    seen("dirnet/suspicion-never-ends", 42, LIVENESS),
    seen("dirnet/one-window-for-all", 166, &["detection"]),
    seen("dirnet/suspicion-leaves-alarm", 27, &["explanation"]),
    scripted("dirnet/window-is-unchecked", CHECKED),
    scripted("dirnet/early-alarm-is-forgotten", LATER),
    seen("dirnet/old-alarms-count", 3, &["explanation"]),
    scripted("dirnet/alarms-of-others-count", RARE),
    seen("dirnet/anything-rouses", 128, &["accuracy"]),
    seen("dirnet/alarm-once", 27, LIVENESS),
    scripted("dirnet/span-is-repeated", LATER),
    scripted("dirnet/spans-of-any-boot-count", RARE),
    scripted("dirnet/late-alarms-count", RARE),
    seen("dirnet/all-succeed", 40, LIVENESS),
    seen("dirnet/successor-unseen", 29, LIVENESS),
    seen("dirnet/no-candidate-timer", 56, LIVENESS),
    seen("dirnet/rivals-are-ignored", 20, LIVENESS),
    seen("dirnet/old-terms-are-heard", 4211, LIVENESS),
    seen("dirnet/reset-without-witness", 6, &["explanation"]),
    seen("dirnet/met-managers-are-followed", 37, &["budget"]),
    seen("dirnet/terms-are-kept-back", 1359, LIVENESS),
    scripted("dirnet/joiners-vouch", RARE),
    scripted("dirnet/answers-are-signs", RARE),
    seen("dirnet/managerless-are-deaf", 704, LIVENESS),
    scripted("dirnet/managers-have-no-incarnation", RARE),
    scripted("dirnet/the-outvoted-stay", RARE),
    seen("dirnet/none-introduces", 3, LIVENESS),
    seen("dirnet/one-witness-removes", 37, &["budget", "progress", "reset"]),
    scripted("dirnet/probes-need-the-term", RARE),
    scripted("dirnet/silent-witnesses-count", RARE),
    scripted("dirnet/members-alone-probe", RARE),
    scripted("dirnet/far-witnesses-owe-nothing", RARE),
    scripted("dirnet/backups-ask-directly", RARE),
    scripted("dirnet/questions-are-not-passed-on", RARE),
    scripted("dirnet/heirs-ask-directly", RARE),
    scripted("dirnet/spans-are-not-passed-on", LATER),
    scripted("dirnet/links-are-not-reported", LOGS),
    seen("dirnet/strangers-are-not-asked", 1792, LIVENESS),
    scripted("dirnet/last-asker-counts", RARE),
    scripted("dirnet/alive-of-before", RARE),
    seen("dirnet/testimonies-never-expire", 162, &["explanation"]),
    seen("dirnet/testimonies-of-any-round-count", 3, &["explanation"]),
    scripted("dirnet/followers-of-before-owe-nothing", RARE),
    seen("dirnet/unmet-tasks-are-ignored", 1, &["accuracy"]),
    scripted("dirnet/claims-need-no-answer", RARE),
    scripted("dirnet/reports-are-disproved", RARE),
    scripted("dirnet/any-alarm-is-a-loss", RARE),
    scripted("dirnet/ends-outlive-boots", RARE),
    scripted("dirnet/unheard-managers-stay", RARE),
    scripted("dirnet/half-heard-managers-stay", RARE),
    scripted("dirnet/the-passed-are-dead", RARE),
    scripted("dirnet/deafness-outlives-terms", RARE),
    scripted("dirnet/echoes-of-any-term", RARE),
    scripted("dirnet/unheard-managers-isolate", RARE),
    scripted("dirnet/the-deaf-begin", RARE),
    scripted("dirnet/claimants-learn-no-removal", RARE),
    scripted("dirnet/old-answers-count", RARE),
    scripted("dirnet/old-losses-count", RARE),
    scripted("dirnet/refused-claims-answer-nothing", RARE),
    scripted("dirnet/joiners-answer-nothing", RARE),
    scripted("dirnet/one-stands-in", RARE),
    scripted("dirnet/lost-agents-count-as-dead", RARE),
    seen("dirnet/numbers-only-grow", 0, &["budget", "progress"]),
    seen("dirnet/reset-before-fences", 0, &["fence"]),
    scripted("dirnet/strangers-are-not-watched", RARE),
    seen("dirnet/losses-change-nothing", 0, &["detection"]),
    seen("dirnet/overtaken-fences-go-on", 2369, &["budget", "detection"]),
    seen("dirnet/latecomers-fence-nothing", 6, &["fence"]),
    scripted("dirnet/past-members-fence", RARE),
    scripted("dirnet/clones-inherit-fences", RARE),
    seen("dirnet/fences-of-any-boot-count", 221, &["fence"]),
    scripted("dirnet/fences-are-passed-on-once", RARE),
    scripted("dirnet/joiners-count-as-dead", RARE),
    scripted("dirnet/claims-end-suspicions", RARE),
    seen("dirnet/fences-are-not-passed-on", 3, LIVENESS),
    scripted("dirnet/repeated-resets-are-rash", RARE),
    seen("dirnet/removal-is-not-heard", 3, LIVENESS),
    scripted("dirnet/return-is-not-heard", LATER),
    scripted("dirnet/verdicts-are-not-spread", REVIVED),
    seen("dirnet/watch-is-not-turned", 173, LIVENESS),
    scripted("dirnet/traffic-is-no-sign", LATER),
    scripted("dirnet/any-alarm-renews", LATER),
    scripted("dirnet/failed-spawns-need-witnesses", REVIVED),
    scripted("dirnet/hung-supervisors-stay", REVIVED),
    seen("dirnet/clones-are-forgotten", 82, &["detection"]),
    scripted("dirnet/lost-joiners-are-awaited", REVIVED),
    seen("dirnet/heirs-owe-nothing", 6, LIVENESS),
    seen("dirnet/learned-removals-are-done", 192, LIVENESS),
    seen("dirnet/heirs-inherit-fences", 101, &["fence"]),
    scripted("dirnet/first-answer-wins", LATER),
    seen("dirnet/outcasts-claim", 175, &["outcast"]),
    scripted("dirnet/the-isolated-are-awaited", RARE),
    seen("dirnet/removed-nodes-claim", 11, &["outcast"]),
    scripted("dirnet/terms-race", RARE),
    scripted("dirnet/refused-claims-stand", RARE),
    scripted("dirnet/rivals-stay-out", RARE),
    scripted("dirnet/far-rivals-stay-out", RARE),
    seen("dirnet/removed-hear-nothing", 196, LIVENESS),
    explored("dirnet/old-removals-count", &["progress"]),
    seen("dirnet/alone-it-removes", 6, &["explanation"]),
    scripted("dirnet/unheard-count-as-alive", RARE),
    scripted("dirnet/joiners-are-deaf", LATER),
    seen("dirnet/clones-start-again", 0, &["one-manager", "terms"]),
    seen("dirnet/winner-starts-over", 0, LIVENESS),
    scripted("dirnet/missing-database-is-fine", LATER),
    scripted("dirnet/absent-are-awaited", LATER),
    scripted("dirnet/updates-without-sequence", LATER),
    scripted("dirnet/error-overwrites-status", TASKS),
    scripted("dirnet/errors-trigger-nothing", TASKS),
    scripted("dirnet/agent-manages", PARTS),
    seen("dirnet/answers-in-place", 3, LIVENESS),
    seen("dirnet/first-expiry-repeats", 90, &["detection"]),
    scripted("dirnet/messages-are-progress", RARE),
    scripted("dirnet/latecomers-vouch", RARE),
    seen("dirnet/nothing-is-reset", 0, LIVENESS),
    seen("dirnet/snapshots-are-ignored", 0, &["snapshots"]),
    scripted("dirnet/members-are-forgotten", LATER),
    scripted("dirnet/own-past-is-not-asked-for", LATER),
    seen("dirnet/damage-is-restored", 0, &["snapshots"]),
    scripted("dirnet/errors-are-repeated", TASKS),
    scripted("dirnet/no-local-health", LATER),
    scripted("dirnet/deaf-are-answered", LATER),
    and_found(seen("dirnet/stale-releases-count", 14, &["isolation"]), &["standing"]),
    and_found(seen("dirnet/later-boots-are-free", 601, &["isolation"]), &["standing"]),
    scripted("dirnet/releases-bring-back-the-past", RARE),
    scripted("dirnet/isolation-is-hearsay", RARE),
    seen("dirnet/isolated-nodes-forget", 385, &["isolation"]),
    scripted("dirnet/released-never-lead", RARE),
    scripted("dirnet/released-stay-removed", RARE),
    scripted("dirnet/forgotten-boots-are-damage", RARE),
    scripted("dirnet/backups-keep-removals", RARE),
    scripted("dirnet/fenced-are-heard", RARE),
    and_found(seen("dirnet/removed-run-on", 34, LIVENESS), &["progress"]),
    scripted("dirnet/released-run-on", RARE),
    and_found(seen("dirnet/fenced-stay-out", 6, &["budget", "progress"]), &["progress"]),
    and_found(seen("dirnet/removals-outlive-boots", 37, LIVENESS), &["progress"]),
    explored("dirnet/the-dead-fence", &["both-ended"]),
    seen("dirnet/the-starting-fence", 987, &["admission"]),
    explored("dirnet/ended-boots-fence", &["both-ended"]),
    and_found(seen("dirnet/late-removals-count", 186, &["admission"]), &["admission"]),
    and_found(seen("dirnet/terms-are-confused", 11, &["admission"]), &["admission"]),
    and_found(seen("dirnet/admitted-before-fenced", 0, &["admission"]), &["admission"]),
    and_found(seen("dirnet/stale-standings-win", 0, &["standing"]), &["standing"]),
    explored("dirnet/contradicted-forget-fences", &["progress"]),
    scripted("dirnet/isolated-peers-decide", RARE),
    seen("dirnet/isolated-nodes-wait", 63, LIVENESS),
    explored("dirnet/late-isolations-wait", &["standing"]),
    scripted("dirnet/unseen-isolations-end-nothing", RARE),
    scripted("dirnet/ordered-is-entered", RARE),
    seen("dirnet/clones-forget-isolations", 14, LIVENESS),
    scripted("dirnet/restarts-without-limit", REVIVED),
    scripted("dirnet/resets-without-limit", REVIVED),
    scripted("dirnet/resets-share-a-limit", REVIVED),
    scripted("dirnet/heirs-count-again", REVIVED),
    scripted("dirnet/counts-are-not-saved", REVIVED),
    seen("dirnet/members-number-views", 0, &["view-agreement"]),
    seen("dirnet/views-precede-fences", 0, &["view-fence"]),
    scripted("dirnet/releases-fence-nothing", RARE),
    seen("dirnet/old-views-are-shown", 28, &["view-monotone"]),
    seen("dirnet/handed-over-terms-go-on", 0, &["one-manager"]),
    scripted("dirnet/any-node-hands-over", HONEST),
    seen("dirnet/late-handovers-count", 0, &["explanation"]),
    scripted("dirnet/released-are-counted", REVIVED),
];
