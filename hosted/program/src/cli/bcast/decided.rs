//! Terminal conditions of a broadcast: why nothing more comes from an origin, as the nodes report.
//!
//! ```text
//!   nothing came, or went, for a moment ─▶ all nodes are asked ─▶ decided: it ends, with why
//!            ▲                                                        │ not: more may still
//!            └──────────────── waited for, until the deadline ────────┘ come back, or receive
//! ```
//!
//! A conflict, a removal and a memory that is lost are for good. A node that is silent, that hangs,
//! or that was removed where the membership is "fixed" may come back, and is waited for.

use std::time::Duration;

use super::held;
use super::intake::Intake;
use crate::cli::failure::Failure;
use crate::cli::survey::Survey;
use weft::client::Patience;
use weft::clock::Deadline;
use weft::explain::Code;
use weft::node::control::ConflictStatus;
use weft_core::neb::number_in_epoch;

/// Time without progress after which the nodes are asked.
pub(super) const MOMENT: Duration = Duration::from_secs(2);

/// [`MOMENT`], but no longer than the time that is left.
pub(super) fn moment(deadline: Deadline) -> Patience {
    let node = deadline.remaining();
    Patience { others: node.min(MOMENT), node }
}

/// Why a node receives nothing more from an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OriginEnd {
    /// A node saw a conflict about it: this one, or another, for which its window stays full.
    Disputed {
        /// The node that saw it.
        by: u16,
        /// The first conflict that it saw.
        conflict: ConflictStatus,
    },
    /// The DIR net removed it.
    Removed,
    /// It has lost its broadcast memory.
    Lost,
    /// Its window stays full: it waits for this node, which has lost its broadcast memory.
    Held {
        /// The node that is waited for.
        by: u16,
    },
}

/// Why nothing more comes to `node`: of `origin`, or of any other node without one; of a file whose
/// message `last` has come, or of the next file.
pub(super) fn over(
    survey: &Survey,
    node: u16,
    origin: Option<u16>,
    last: Option<u64>,
) -> Option<(u16, OriginEnd)> {
    let of = |origin: u16| Some((origin, over_of(survey, node, origin, last)?));
    if let Some(origin) = origin {
        return of(origin);
    }
    let others = survey.ranks().filter(|rank| *rank != node);
    let overs = others.map(of).collect::<Option<Vec<_>>>()?;
    let is_dispute = |it: &&(u16, OriginEnd)| matches!(it.1, OriginEnd::Disputed { .. });
    overs.iter().find(is_dispute).or(overs.first()).copied()
}

fn over_of(survey: &Survey, node: u16, origin: u16, last: Option<u64>) -> Option<OriginEnd> {
    let here = survey.row(node, origin)?;
    if let Some(conflict) = here.first_conflict.filter(|first| first.seq == here.delivered + 1) {
        return Some(OriginEnd::Disputed { by: node, conflict });
    }
    // A node that was removed and is back broadcasts in another epoch.
    let first_of = |number: u64| number - number_in_epoch(number);
    if last.is_some_and(|last| first_of(here.delivered) > first_of(last)) {
        return Some(OriginEnd::Removed);
    }
    if here.delivered < here.broadcast {
        return None;
    }
    if survey.lost().contains(&origin) {
        return Some(OriginEnd::Lost);
    }
    if survey.goes_on_without(node, origin) {
        return Some(OriginEnd::Removed);
    }
    let there = survey.row(origin, origin)?;
    if there.broadcast > here.delivered {
        return None;
    }
    let dispute = survey.dispute(origin).map(|(by, conflict)| OriginEnd::Disputed { by, conflict });
    if !there.window.is_full() {
        // No file begins behind a conflict; one that has begun goes on while there is room.
        return dispute.filter(|_| last.is_none());
    }
    let lost = survey.lost().first().map(|by| OriginEnd::Held { by: *by });
    lost.or(dispute)
}

impl OriginEnd {
    /// The error for a receiver whose own node has seen no conflict.
    pub(super) fn failure(self, origin: u16, intake: &Intake) -> Failure {
        let has_begun = intake.origin().is_some();
        let rest = match has_begun {
            true => format!("{} bytes of its file", intake.joiner().len()),
            false => "this".to_owned(),
        };
        let elsewhere = "receive from another node, with `--origin RANK`";
        let restart = format!("it cannot broadcast until the cluster is restarted: {elsewhere}");
        let without_end = if has_begun { Code::Abandoned } else { Code::Standing };
        let (code, why, cure) = match self {
            Self::Disputed { by, .. } => {
                let why = format!("node {by} saw a conflict about it");
                (Code::Conflict, why, format!("it broadcasts nothing more: {elsewhere}"))
            }
            Self::Removed => {
                let cure = format!("broadcast again once it is back, or {elsewhere}");
                (without_end, "it was removed".to_owned(), cure)
            }
            Self::Lost => (without_end, "it has lost its broadcast memory".to_owned(), restart),
            Self::Held { by } => {
                let why = format!("its window is full and waits for node {by}");
                (without_end, why, held::restart_cure(by))
            }
        };
        Failure::of(code, format!("node {origin} sends nothing after {rest}: {why}"), cure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::survey::tests::{Seen, survey};
    use weft::cluster::Membership::{Decided, Fixed};
    use weft_core::ids::Incarnation;
    use weft_core::neb::number_before;

    const CONFLICT: ConflictStatus = ConflictStatus { origin: 0, seq: 5, replayer: 1 };

    #[test]
    fn a_conflict_here_ends_what_comes_of_its_origin_once_all_before_it_came() {
        let by = 1;
        for (delivered, expected) in
            [(4, Some((0, OriginEnd::Disputed { by, conflict: CONFLICT }))), (3, None)]
        {
            let seen = Seen { conflict: Some(CONFLICT), ..Seen::at(9, delivered) };
            assert_eq!(over(&survey(Decided, &[(1, seen)]), 1, Some(0), Some(1)), expected);
        }
    }

    #[test]
    fn a_conflict_elsewhere_ends_a_file_once_the_window_is_full_for_good_and_the_next_at_once() {
        let misled = (2, Seen { conflict: Some(CONFLICT), ..Seen::at(9, 4) });
        let origin = |used| (0, Seen { used, ..Seen::at(20, 20) });
        let over_of = |used, delivered, last| {
            let nodes = [origin(used), (1, Seen::at(20, delivered)), misled];
            over(&survey(Decided, &nodes), 1, Some(0), last)
        };
        let over = |used, delivered| over_of(used, delivered, Some(1));
        assert_eq!(over(16, 20), Some((0, OriginEnd::Disputed { by: 2, conflict: CONFLICT })));
        assert_eq!(over(15, 20), Some((0, OriginEnd::Disputed { by: 2, conflict: CONFLICT })));
        assert_eq!(over(14, 20), None, "the rest of the file may find room");
        assert_eq!(over(16, 19), None, "not all has come");
        let disputed = Some((0, OriginEnd::Disputed { by: 2, conflict: CONFLICT }));
        assert_eq!((over_of(1, 20, None), over_of(1, 19, None)), (disputed, None));
    }

    #[test]
    fn of_what_is_signed_a_conflict_elsewhere_that_is_not_proven_ends_nothing() {
        let over = |is_proven| {
            let conflict = Some(CONFLICT);
            let liar = Seen { conflict, is_proven: Some(is_proven), ..Seen::at(9, 4) };
            let origin = Seen { used: 16, ..Seen::at(20, 20) };
            let nodes = [(0, origin), (1, Seen::at(20, 20)), (2, liar)];
            over(&survey(Decided, &nodes), 1, Some(0), Some(1))
        };
        assert_eq!(over(true), Some((0, OriginEnd::Disputed { by: 2, conflict: CONFLICT })));
        assert_eq!(over(false), None);
    }

    #[test]
    fn who_was_removed_broadcasts_nothing_more_but_what_has_come_is_waited_for() {
        let at = |delivered| Seen { without: &[0], ..Seen::at(9, delivered) };
        let over = |delivered| over(&survey(Decided, &[(1, at(delivered))]), 1, Some(0), Some(1));
        assert_eq!((over(9), over(8)), (Some((0, OriginEnd::Removed)), None));
    }

    #[test]
    fn a_file_of_before_its_origin_returned_has_ended() {
        let of_second = number_before(Incarnation(2)).expect("a small incarnation");
        let at = Seen::at(of_second + 3, of_second);
        let over = |last| over(&survey(Decided, &[(1, at)]), 1, Some(0), Some(last));
        assert_eq!((over(9), over(of_second + 1)), (Some((0, OriginEnd::Removed)), None));
    }

    #[test]
    fn who_lost_its_memory_broadcasts_nothing_more_where_it_is_waited_for() {
        let lost = (2, Seen { without: &[2], ..Seen::at(0, 0) });
        let over = |membership, delivered, origin| {
            over(
                &survey(membership, &[(1, Seen::at(9, delivered)), lost]),
                1,
                Some(origin),
                Some(1),
            )
        };
        assert_eq!((over(Fixed, 9, 2), over(Fixed, 9, 0)), (Some((2, OriginEnd::Lost)), None));
        assert_eq!(over(Fixed, 8, 2), None, "not all has come");
        let held = |used, membership| {
            let origin = (0, Seen { used, ..Seen::at(9, 9) });
            super::over(
                &survey(membership, &[origin, (1, Seen::at(9, 9)), lost]),
                1,
                Some(0),
                Some(1),
            )
        };
        assert_eq!(held(16, Fixed), Some((0, OriginEnd::Held { by: 2 })));
        assert_eq!((held(14, Fixed), held(16, Decided)), (None, None));
        assert_eq!(over(Decided, 9, 2), None, "it is removed soon");
    }

    #[test]
    fn whoever_waits_for_anybody_waits_while_there_is_one() {
        let without: [&[u16]; 2] = [&[0], &[0, 2, 3]];
        let over = |without| {
            let seen = Seen { without, ..Seen::at(9, 9) };
            over(&survey(Decided, &[(1, seen)]), 1, None, None)
        };
        assert_eq!(without.map(over), [None, Some((0, OriginEnd::Removed))]);
        assert_eq!(super::over(&survey(Decided, &[]), 1, None, None), None, "it does not answer");
    }
}
