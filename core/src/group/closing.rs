//! The end of the stream of a removed root, the same at all survivors (GT-16).
//!
//! ```text
//!   frozen: no more reads or entries ── reads completed ──▶ REPORT{epochs, entries, blocks} to all
//!   reports of all live members for the same epochs ──▶ entries up to the most that any reported
//!     ──▶ T: the last message all of whose blocks are with someone
//!   a report of a member that has closed it ──▶ its T
//!     ──▶ blocks up to T from those who reported them ──▶ closed ──▶ REPORT{T} to all
//! ```
//!
//! What is delivered is held, and what is held is reported, so T never falls below what a survivor
//! delivered. When the members change, the round begins again where the stream is not closed; what
//! was fetched meanwhile is reported too. T of a stream that is closed somewhere is its T
//! everywhere.

use super::mutants::{END_IS_MINIMUM, MIXED_ROUND};
use super::note::Position;
use super::seats::{Grank, Members};
use crate::wire::group::{Footing, Report};

/// What the consumer was handed of the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Ending {
    #[default]
    Nothing,
    /// That the message behind the last one will not become whole.
    Abandoned,
    End,
}

/// A round of this member.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Closing {
    /// What it has reported in this round.
    pub(super) own: Option<Report>,
    /// Behind the last message, once it is known.
    pub(super) end: Option<Position>,
    /// Everything up to the end is held.
    pub(super) is_closed: bool,
    /// No other member asks for anything of this epoch any more.
    pub(super) is_settled: bool,
    pub(super) ending: Ending,
}

impl Closing {
    /// Of a stream that was closed before, whose last message ends there.
    pub(super) const fn closed(end: Position, ending: Ending) -> Self {
        Self { own: None, end: Some(end), is_closed: true, is_settled: false, ending }
    }

    /// The members have changed: all report again where the stream is not closed.
    pub(super) fn begin_round(&mut self) {
        if !self.is_closed {
            *self = Self { ending: self.ending, ..Self::default() };
        }
    }
}

/// The last report of each other member, about whichever epoch of the root.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Reports<const PEERS: usize>([Option<(u32, Report)>; PEERS]);

impl<const PEERS: usize> Reports<PEERS> {
    pub(super) const fn new() -> Self {
        Self([None; PEERS])
    }

    /// The first report of a round stands, and one about a later epoch answers for the earlier.
    pub(super) fn handle(&mut self, grank: Grank, epoch: u32, report: Report) {
        let place = &mut self.0[grank.index()];
        if place.is_some_and(|(before, _)| before > epoch) {
            return;
        }
        let of = |epoch: u32, report: Report| (epoch, report.epochs, report.footing);
        if place.is_none_or(|(before, it)| of(before, it) != of(epoch, report)) {
            *place = Some((epoch, report));
        }
    }

    /// `grank` is removed, and its memory is no longer read.
    pub(super) const fn forget(&mut self, grank: Grank) {
        self.0[grank.index()] = None;
    }

    /// The epoch that `grank` has reported on.
    pub(super) fn epoch_of(&self, grank: Grank) -> Option<u32> {
        self.0[grank.index()].map(|(epoch, _)| epoch)
    }

    /// What `grank` has reported on `epoch`. One that reports on a later epoch has closed this one.
    fn of(&self, grank: Grank, epoch: u32) -> Option<Report> {
        let (about, report) = self.0[grank.index()].filter(|(about, _)| *about >= epoch)?;
        let absent = Report { footing: Footing::Absent, ..Report::default() };
        Some(if about == epoch { report } else { absent })
    }

    /// Whether all other live members have reported in this round.
    pub(super) fn is_complete(&self, epoch: u32, members: &Members) -> bool {
        let is_of_round = |report: Report| {
            report.footing != Footing::Frozen
                || report.epochs == members.epochs
                || MIXED_ROUND.is_planted()
        };
        others(members).all(|grank| self.of(grank, epoch).is_some_and(is_of_round))
    }

    /// Whether no other live member will ask for anything of this epoch any more.
    pub(super) fn is_settled(&self, epoch: u32, members: &Members) -> bool {
        let is_past = |report: Report| report.footing != Footing::Frozen;
        others(members).all(|grank| self.of(grank, epoch).is_some_and(is_past))
    }

    /// Whether all other live members have removed the epochs up to `epoch` of the root, and need
    /// nothing of them any more: each counts the next as soon as it is connected to that.
    pub(super) fn are_past(&self, epoch: u32, members: &Members) -> bool {
        let is_past =
            |(about, report): (u32, Report)| about == epoch && report.footing != Footing::Frozen;
        others(members).all(|grank| self.0[grank.index()].is_some_and(is_past))
    }

    /// The last message, as a member says that has closed the stream.
    pub(super) fn end(&self, epoch: u32, members: &Members) -> Option<u64> {
        let mut reports = others(members).filter_map(|grank| self.of(grank, epoch));
        reports.find(|it| it.footing == Footing::Closed).map(|report| report.held.entries)
    }

    /// The most entries that were reported, `own` included: those before the end are among them.
    pub(super) fn entries(&self, epoch: u32, members: &Members, own: u64) -> u64 {
        let reports = others(members).filter_map(|grank| self.of(grank, epoch));
        // One that takes no part holds nothing, and bounds nothing.
        let takers = reports.filter(|report| report.footing != Footing::Absent);
        let entries = takers.map(|report| report.held.entries);
        if END_IS_MINIMUM.is_planted() {
            return entries.min().map_or(own, |least| least.min(own));
        }
        entries.max().map_or(own, |most| most.max(own))
    }

    /// Whether any other has reported `block`.
    pub(super) fn has_block(&self, epoch: u32, members: &Members, block: u64) -> bool {
        others(members).any(|grank| self.holds_block(epoch, grank, block))
    }

    pub(super) fn holds_block(&self, epoch: u32, grank: Grank, block: u64) -> bool {
        self.of(grank, epoch).is_some_and(|report| report.held.blocks.contains(block))
    }

    pub(super) fn holds_entry(&self, epoch: u32, grank: Grank, seq: u64) -> bool {
        self.of(grank, epoch).is_some_and(|report| report.held.entries >= seq)
    }
}

fn others(members: &Members) -> impl Iterator<Item = Grank> + use<> {
    let others = members.others();
    (0..members.count).map(Grank).filter(move |grank| others & grank.bit() != 0)
}
