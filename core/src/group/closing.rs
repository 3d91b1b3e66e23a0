//! The end of the stream of a removed root, the same at all survivors (GT-16).
//!
//! ```text
//!   frozen: no read, no entry any more ── reads completed ──▶ REPORT{R, entries, blocks} to all
//!   reports of all live members for the same R ──▶ entries up to the most that any reported
//!     ──▶ T: the last message all of whose blocks are with someone
//!     ──▶ blocks up to T from those who reported them ──▶ closed
//! ```
//!
//! What is delivered is held, and what is held is reported, so T never falls below what a survivor
//! delivered. When R grows, the round begins again; what was fetched meanwhile is reported too.

use super::mutants::{END_IS_MINIMUM, MIXED_ROUND};
use super::note::Position;
use super::seats::Grank;
use super::stream::Members;
use crate::wire::group::Held;

/// What a member holds of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Report {
    pub(super) removed: u64,
    pub(super) held: Held,
}

/// What the consumer was handed of the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Ending {
    #[default]
    Nothing,
    /// That the message behind the last one will not become whole.
    Abandoned,
    End,
}

/// A round, or reports of others before this member knows of the removal.
#[derive(Clone, Debug, Hash)]
pub(super) struct Closing<const PEERS: usize> {
    /// The last report of each member, the own one included.
    reports: [Option<Report>; PEERS],
    /// Who must be sent the own report.
    pub(super) report_due: u64,
    /// This member knows of the removal.
    pub(super) is_begun: bool,
    /// Behind the last message, once it is known.
    pub(super) end: Option<Position>,
    /// Everything up to the end is held.
    pub(super) is_closed: bool,
    pub(super) ending: Ending,
}

impl<const PEERS: usize> Closing<PEERS> {
    pub(super) const fn new() -> Self {
        Self {
            reports: [None; PEERS],
            report_due: 0,
            end: None,
            is_begun: false,
            is_closed: false,
            ending: Ending::Nothing,
        }
    }

    /// The removed set grew: all report again.
    pub(super) fn begin_round(&mut self, members: &Members) {
        self.reports[members.me.index()] = None;
        (self.report_due, self.is_begun) = (0, true);
        (self.end, self.is_closed) = (None, false);
    }

    /// The own report of this round, if it was made.
    pub(super) const fn own(&self, members: &Members) -> Option<Report> {
        self.reports[members.me.index()]
    }

    /// Reports what is held: from now on nothing is added but what others have reported.
    pub(super) const fn report(&mut self, members: &Members, report: Report) {
        self.reports[members.me.index()] = Some(report);
        self.report_due = members.others();
    }

    pub(super) const fn say_again(&mut self, grank: Grank) {
        self.report_due |= grank.bit();
    }

    /// The first report of a round stands.
    pub(super) fn handle_report(&mut self, grank: Grank, report: Report) {
        let place = &mut self.reports[grank.index()];
        if place.is_none_or(|before| before.removed != report.removed) {
            *place = Some(report);
        }
    }

    /// Whether all live members have reported in this round.
    pub(super) fn is_complete(&self, members: &Members) -> bool {
        let is_of_round = |grank: Grank| {
            let report = self.reports[grank.index()];
            report.is_some_and(|report| {
                let is_theirs = MIXED_ROUND.is_planted() && grank != members.me;
                report.removed == members.removed() || is_theirs
            })
        };
        self.own(members).is_some() && self.live(members).all(is_of_round)
    }

    /// The most entries that were reported: those before the end are among them.
    pub(super) fn entries(&self, members: &Members) -> u64 {
        let reported = self
            .live(members)
            .filter_map(|grank| self.reports[grank.index()])
            .map(|it| it.held.entries);
        let most = if END_IS_MINIMUM.is_planted() { reported.min() } else { reported.max() };
        most.unwrap_or(0)
    }

    /// Whether any has reported `block`.
    pub(super) fn has_block(&self, members: &Members, block: u64) -> bool {
        self.live(members).any(|grank| self.holds_block(grank, block))
    }

    pub(super) fn holds_block(&self, grank: Grank, block: u64) -> bool {
        self.reports[grank.index()].is_some_and(|report| report.held.blocks.contains(block))
    }

    pub(super) fn holds_entry(&self, grank: Grank, seq: u64) -> bool {
        self.reports[grank.index()].is_some_and(|report| report.held.entries >= seq)
    }

    fn live(&self, members: &Members) -> impl Iterator<Item = Grank> + use<PEERS> {
        let live = members.live;
        (0..members.count).map(Grank).filter(move |grank| live & grank.bit() != 0)
    }
}
