//! The model of small messages: how long a member is busy with a send, how long a message travels,
//! and which trees follow from that (GT-3).
//!
//! ```text
//!   gap     of a root that sends to all: its call with n members, less that with two, by n − 2
//!   delay   from the root's call to the delivery at one other member
//!   latency delay / gap: the sends that fit into one message's way; `group.latency`
//! ```
//!
//! A tree's time is that of its last member, by the schedule of sends that the tree fixes.

use std::fmt;

use serde::Serialize;
use weft_core::group::{Costs, Tree};

use super::{GroupCell, GroupSetting, turn};
use crate::error::BenchError;
use crate::host::{self, CpuStall, STALL_WATCH_NS};
use crate::report::MeasuredHost;
use weft::cluster::Topology;

/// Length of the messages.
const BYTES: usize = 8;
/// For how many members trees are compared.
const MEMBERS: [u16; 5] = [2, 4, 8, 16, 32];
/// The trees, the simplest first: of two that take as long it is chosen.
const TREES: [Topology; 4] =
    [Topology::Serial, Topology::Binary, Topology::Fibonacci, Topology::Pipe];

/// How long a small message takes along each tree.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModelRow {
    /// Members, the root included.
    pub members: u16,
    /// The root to each.
    pub serial_ns: f64,
    /// Halves.
    pub binary_ns: f64,
    /// Unequal parts, by the latency.
    pub fibonacci_ns: f64,
    /// Member to member.
    pub pipe_ns: f64,
    /// The one that takes the least.
    pub chosen: Topology,
}

/// What was measured, and what follows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelReport {
    /// How long a member is busy with a send.
    pub gap_ns: f64,
    /// How long a message travels to the next member.
    pub delay_ns: f64,
    /// Sends that fit into that: what to set `group.latency` to.
    pub latency: u8,
    /// By number of members.
    pub rows: Vec<ModelRow>,
    /// How the blocks of long messages travel on one host.
    pub blocks: Topology,
    /// The machine.
    pub host: MeasuredHost,
}

/// Measures with up to `members` members, in so many rounds.
///
/// # Errors
/// [`BenchError`].
pub fn run(
    members: u16,
    rounds: u32,
    are_processes: bool,
    mut on_turn: impl FnMut(),
) -> Result<ModelReport, BenchError> {
    let most = members.max(3);
    let (mut two, mut all) = (GroupCell::of(BYTES), GroupCell::of(BYTES));
    let mut stall = CpuStall::default();
    for _ in 0..rounds {
        for (members, cell) in [(2, &mut two), (most, &mut all)] {
            let topology = Topology::Serial;
            let setting = GroupSetting { members, topology, are_processes };
            turn(&setting, std::slice::from_mut(cell))?;
        }
        stall.watch(STALL_WATCH_NS);
        on_turn();
    }
    let median = |course: &super::Course| course.figure().map(|it| it.p50_ns);
    let measured = (median(&two.in_place), median(&two.call), median(&all.call));
    let (Some(delay_ns), Some(one), Some(several)) = measured else {
        return Err(BenchError::OutOfStep("a round without a sample"));
    };
    // A clock that ticks in tens of nanoseconds, or a noisy host, may show no difference.
    let gap_ns = ((several - one) / f64::from(most - 2)).max(1.0);
    Ok(ModelReport::new(gap_ns, delay_ns, host::describe(&stall)))
}

impl ModelReport {
    fn new(gap_ns: f64, delay_ns: f64, host: MeasuredHost) -> Self {
        let longest = f64::from(Costs::MAX);
        let latency = (delay_ns / gap_ns).round().clamp(1.0, longest) as u8;
        let rows = MEMBERS.map(|members| ModelRow::new(members, latency, gap_ns)).to_vec();
        Self { gap_ns, delay_ns, latency, rows, blocks: Topology::Serial, host }
    }

    /// What suits the largest group.
    fn chosen(&self) -> Topology {
        self.rows.last().map_or(Topology::Auto, |row| row.chosen)
    }
}

impl ModelRow {
    fn new(members: u16, latency: u8, gap_ns: f64) -> Self {
        let takes = TREES.map(|topology| {
            let tree = Tree { class: topology.class(), costs: Costs::postal(latency) };
            f64::from(takes(tree, members)) * gap_ns
        });
        let [serial_ns, binary_ns, fibonacci_ns, pipe_ns] = takes;
        let least = TREES.into_iter().zip(takes).min_by(|(_, a), (_, b)| a.total_cmp(b));
        let chosen = least.map_or(Topology::Auto, |(topology, _)| topology);
        Self { members, serial_ns, binary_ns, fibonacci_ns, pipe_ns, chosen }
    }
}

/// When the last member has the message, in gaps: each member sends one after the other.
fn takes(tree: Tree, members: u16) -> u32 {
    let Costs { gap, delay, arrival } = tree.costs;
    let (mut last, mut nodes) = (0, vec![(0, 1..members)]);
    while let Some((start, range)) = nodes.pop() {
        let mut send: u32 = start;
        for part in tree.parts(range) {
            last = last.max(send + u32::from(arrival));
            nodes.push((send + u32::from(delay), part.start + 1..part.end));
            send += u32::from(gap);
        }
    }
    last
}

impl fmt::Display for ModelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { gap_ns, delay_ns, latency, .. } = self;
        writeln!(f, "a send keeps its member busy for {gap_ns:.0} ns")?;
        writeln!(f, "a message travels for {delay_ns:.0} ns: {latency} sends")?;
        let titles = ["serial", "binary", "fibonacci", "pipe"];
        write!(f, "\n{:>8}", "#members")?;
        titles.iter().try_for_each(|title| write!(f, " {:>13}", format!("{title}[ns]")))?;
        writeln!(f, "  chosen")?;
        for row in &self.rows {
            let ModelRow { members, serial_ns, binary_ns, fibonacci_ns, pipe_ns, chosen } = row;
            writeln!(
                f,
                "{members:>8} {serial_ns:>13.0} {binary_ns:>13.0} {fibonacci_ns:>13.0} \
                 {pipe_ns:>13.0}  {chosen}"
            )?;
        }
        let (entries, blocks) = (self.chosen(), self.blocks);
        writeln!(f, "\nlong messages on one host: each member reads from the root ({blocks})")?;
        writeln!(f, "\n[group]\ntopology = \"{entries}\"\nlatency = {latency}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::CpuStall;

    #[test]
    fn the_tree_of_unequal_parts_is_never_worse_and_simple_ones_win_ties() {
        for latency in [1, 2, 4, 8, 32, 63] {
            for members in MEMBERS {
                let row = ModelRow::new(members, latency, 10.0);
                let others = [row.serial_ns, row.binary_ns, row.pipe_ns];
                assert!(others.iter().all(|ns| row.fibonacci_ns <= *ns), "{row:?}");
            }
        }
        assert_eq!(ModelRow::new(2, 4, 10.0).chosen, Topology::Serial);
        assert_eq!(ModelRow::new(32, 8, 10.0).chosen, Topology::Fibonacci);
        // Where a message travels for as long as all sends take, the root sends all.
        assert_eq!(ModelRow::new(8, 63, 10.0).chosen, Topology::Serial);
    }

    #[test]
    fn the_latency_is_one_that_a_cluster_file_takes() {
        for (gap, delay, latency) in [(100.0, 10.0, 1), (100.0, 420.0, 4), (1.0, 9000.0, 63)] {
            let report = ModelReport::new(gap, delay, host::describe(&CpuStall::default()));
            assert_eq!(report.latency, latency);
            assert!(report.to_string().contains(&format!("latency = {latency}")));
        }
    }
}
