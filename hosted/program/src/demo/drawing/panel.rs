//! One act: its lanes, its numbered moments, and below them the same in words.

use std::fmt::Write as _;

use super::axis::{Axis, LEFT, PLOT};
use super::{MARGIN, escape};
use crate::demo::timeline::{BlowRecovery, Moment, MomentKind};
use crate::demo::traffic::ArrivalCounts;
use crate::demo::{COLLECTOR, NODES};

/// The height of a lane, with the gap below it.
const LANE: u32 = 52;
const LANE_GAP: u32 = 8;
/// What stands above the lanes.
const TITLES: u32 = 52;
/// What stands between the lanes and the words: the times.
const TIMES: u32 = 34;
const ROW: u32 = 17;
/// Numbers closer than this would cover each other.
const NUMBER_GAP: f64 = 17.0;
/// How many columns an area has.
const COLUMNS: u64 = 135;

pub(super) struct Panel<'a> {
    recovery: &'a BlowRecovery,
    axis: Axis,
    /// For each node that streams, what arrived in each column.
    columns: Vec<Vec<u64>>,
}

/// A stretch of a lane: its class, from when to when after the blow.
type Stretch = (&'static str, u64, u64);

impl<'a> Panel<'a> {
    pub(super) fn new(recovery: &'a BlowRecovery, flow: &ArrivalCounts, began_ns: u64) -> Self {
        let last_us = recovery.moments.last().map_or(0, |moment| moment.after_us);
        let axis = Axis::up_to(last_us);
        let blow_us = recovery.blow_us(began_ns);
        let first_us = blow_us.saturating_sub(axis.before_us());
        let columns = columns_of(axis.span_us());
        let time = |column: u64| (first_us + axis.span_us() * column / columns) * 1_000;
        let count = |rank: u16| {
            let arrived = |column| {
                // A millisecond belongs to the column in which it begins.
                let (from, to) = (time(column), time(column + 1).saturating_sub(1_000_000));
                flow.arrived(rank, from, to.max(from))
            };
            (0..columns).map(arrived).collect()
        };
        Self { recovery, axis, columns: (0..COLLECTOR).map(count).collect() }
    }

    pub(super) fn height(&self) -> u32 {
        let moments = u32::try_from(self.recovery.moments.len()).unwrap_or(0);
        TITLES + self.lanes_height() + TIMES + moments * ROW + 26
    }

    fn lanes_height(&self) -> u32 {
        LANE * u32::try_from(NODES).unwrap_or(0)
    }

    pub(super) fn draw(&self, svg: &mut String, top: u32) {
        let BlowRecovery { node, words, .. } = self.recovery;
        // Writing to a string does not fail.
        let _ = writeln!(
            svg,
            "<text class=\"h2\" x=\"{MARGIN}\" y=\"{}\">node {node}: {words}</text>\
             <text class=\"dim\" x=\"{MARGIN}\" y=\"{}\">{}</text>",
            top + 20,
            top + 39,
            escape(&self.recovery.steps())
        );
        let lanes = top + TITLES;
        for rank in (0..).take(NODES) {
            self.draw_lane(svg, rank, lanes + LANE * u32::from(rank));
        }
        self.axis.draw(svg, lanes, lanes + self.lanes_height() - LANE_GAP);
        self.draw_numbers(svg, lanes);
        self.draw_words(svg, lanes + self.lanes_height() + TIMES);
    }

    fn draw_lane(&self, svg: &mut String, rank: u16, top: u32) {
        let height = LANE - LANE_GAP;
        let bottom = top + height;
        let stretches = if rank == self.recovery.node { self.stretches() } else { Vec::new() };
        let _ = writeln!(
            svg,
            "<rect class=\"runs\" x=\"{LEFT}\" y=\"{top}\" width=\"{PLOT}\" height=\"{height}\"/>"
        );
        for (class, from_us, to_us) in stretches {
            let (from, to) = (self.axis.x(from_us), self.axis.x(to_us));
            let _ = writeln!(
                svg,
                "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{top}\" width=\"{:.1}\" \
                 height=\"{height}\"/>",
                (to - from).max(0.0)
            );
        }
        self.draw_flow(svg, rank, bottom, height);
        let mut part = if rank == COLLECTOR { "agent, collects" } else { "" };
        for (manager, from_us, to_us) in self.terms() {
            if manager != rank {
                continue;
            }
            part = "manager";
            let _ = writeln!(
                svg,
                "<line class=\"term\" x1=\"{:.1}\" y1=\"{top}\" x2=\"{:.1}\" y2=\"{top}\"/>",
                self.axis.place(from_us),
                self.axis.place(to_us)
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{}\">node {rank}</text>\
             <text class=\"dim\" x=\"{MARGIN}\" y=\"{}\">{part}</text>",
            top + 18,
            top + 34
        );
    }

    /// What arrived of a stream, as an area whose top is the most that arrived of any.
    fn draw_flow(&self, svg: &mut String, rank: u16, bottom: u32, height: u32) {
        let Some(columns) = self.columns.get(usize::from(rank)) else { return };
        let most = self.columns.iter().flatten().max().copied().unwrap_or(0).max(1);
        let share = |count: u64| {
            let ratio = f64::from(u32::try_from(count).unwrap_or(u32::MAX))
                / f64::from(u32::try_from(most).unwrap_or(u32::MAX));
            f64::from(bottom) - ratio * f64::from(height - 6)
        };
        let count = u64::try_from(columns.len()).unwrap_or(1);
        let mut path = format!("M{LEFT},{bottom}");
        for (column, arrived) in (0..).zip(columns) {
            let from = self.axis.place(self.axis.span_us() * column / count);
            let to = self.axis.place(self.axis.span_us() * (column + 1) / count);
            let y = share(*arrived);
            let _ = write!(path, "L{from:.1},{y:.1}L{to:.1},{y:.1}");
        }
        let _ = writeln!(svg, "<path class=\"flow\" d=\"{path}L{},{bottom}Z\"/>", LEFT + PLOT);
    }

    /// How the struck node fared.
    fn stretches(&self) -> Vec<Stretch> {
        let recovery = self.recovery;
        if recovery.name == "task" {
            return Vec::new();
        }
        let find = |is_it: &dyn Fn(&Moment) -> bool| {
            recovery.moments.iter().find(|moment| is_it(moment)).map(|moment| moment.after_us)
        };
        let away = recovery.away_us;
        let started = recovery.milestone_us("started").unwrap_or(away);
        let own_end = |moment: &Moment| {
            moment.kind == MomentKind::Sign
                && moment.what.contains("ended:")
                && moment.after_us <= started
        };
        let ended = find(&own_end).unwrap_or(0);
        let first = if recovery.name == "hang" { "hangs" } else { "gone" };
        vec![(first, 0, ended), ("gone", ended, started), ("begins", started, away)]
    }

    /// Who reigns, from when to when after the axis begins.
    fn terms(&self) -> Vec<(u16, u64, u64)> {
        let [(_, before), (_, after)] = self.recovery.terms;
        let end = self.axis.span_us();
        if before == after {
            return vec![(before, 0, end)];
        }
        let blow = self.axis.before_us();
        let taken = blow + self.recovery.milestone_us("taken over").unwrap_or(0);
        vec![(before, 0, blow), (after, taken, end)]
    }

    /// A number for each moment in the lane of the node that recorded it, and a line to the lane of
    /// the node that it is about.
    fn draw_numbers(&self, svg: &mut String, lanes: u32) {
        let middle = |rank: u16| lanes + LANE * u32::from(rank) + (LANE - LANE_GAP) / 2;
        let mut last = [f64::NEG_INFINITY; NODES];
        for (number, moment) in (1..).zip(&self.recovery.moments) {
            let lane = moment.observer.unwrap_or(moment.node);
            let at = self.axis.x(moment.after_us);
            let free = &mut last[usize::from(lane)];
            let x = at.max(*free + NUMBER_GAP);
            *free = x;
            let (y, subject) = (middle(lane), middle(moment.node));
            if y != subject {
                let _ = writeln!(
                    svg,
                    "<line class=\"thread\" x1=\"{x:.1}\" y1=\"{y}\" x2=\"{at:.1}\" \
                     y2=\"{subject}\"/>"
                );
            }
            let class = class(moment.kind);
            let words = escape(&moment.to_string());
            let _ = writeln!(
                svg,
                "<g><title>{}</title><circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y}\" r=\"8\"/>\
                 <text class=\"number\" x=\"{x:.1}\" y=\"{}\">{number}</text></g>",
                words.trim(),
                f64::from(y) + 3.5
            );
        }
    }

    fn draw_words(&self, svg: &mut String, top: u32) {
        for (number, moment) in (1..).zip(&self.recovery.moments) {
            let y = top + ROW * (number - 1);
            let Moment { node, what, .. } = moment;
            let by = match moment.observer {
                None => format!("node {node}"),
                Some(by) if by == *node => format!("node {by}"),
                Some(by) => format!("node {by} about node {node}"),
            };
            let _ = writeln!(
                svg,
                "<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"7\"/>\
                 <text class=\"number\" x=\"{}\" y=\"{}\">{number}</text>\
                 <text class=\"dim\" x=\"120\" y=\"{y}\" text-anchor=\"end\">{}</text>\
                 <text x=\"{LEFT}\" y=\"{y}\">{by}: {}</text>",
                class(moment.kind),
                MARGIN + 8,
                y - 4,
                MARGIN + 8,
                f64::from(y) - 0.5,
                moment.after(),
                escape(what)
            );
        }
    }
}

/// As many columns as there are milliseconds, up to a limit.
fn columns_of(span_us: u64) -> u64 {
    (span_us / 1_000).clamp(1, COLUMNS)
}

const fn class(kind: MomentKind) -> &'static str {
    match kind {
        MomentKind::Blow => "blow",
        MomentKind::Sign => "sign",
        MomentKind::Verdict => "verdict",
        MomentKind::Deed => "deed",
        MomentKind::Return => "return",
    }
}
