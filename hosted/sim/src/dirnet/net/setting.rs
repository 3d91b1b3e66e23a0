//! The size, the timing and the faults of a run.

use weft_core::dirnet::{Part, Timing};

use crate::dirnet::strike::{MS, NODES_MAX, STORM_MS, Weather};
use crate::draws::Draws;

/// The constants of a run. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The part of each node at the first start.
    pub parts: Vec<Part>,
    /// The length of a strike's millisecond: a run with shorter deadlines is shorter by the same
    /// factor.
    pub unit: u64,
    /// The profile of all nodes.
    pub timing: Timing,
    /// The kind of strikes.
    pub weather: Weather,
    /// The maximum delay of a message; the minimum is 1.
    pub delay_max: u64,
    /// Messages lost, per thousand.
    pub lost: u64,
    /// The maximum number of consecutive heartbeats lost on one link.
    pub lost_in_a_row_max: u32,
    /// Messages duplicated, per thousand.
    pub repeated: u64,
    /// Ends of a node, or of a way to it, that another node's transport notices before anything is
    /// missed, per thousand.
    pub noticed: u64,
    /// The time after which nothing is lost or duplicated, and dead nodes are started.
    pub calm_from: u64,
    /// The maximum time until a fence holds.
    pub fence_max: u64,
    /// The maximum delay between supervisors, and between a supervisor and its component; the
    /// minimum is 1.
    pub late_max: u64,
    /// Whether a cut ends the session of two supervisors. On one host they have a way of their own.
    pub cuts_sessions: bool,
    /// The time that a process takes to start.
    pub spawn: u64,
    /// Whether a boot has begun before it is found that its first component cannot be started.
    pub boots_begin_early: bool,
    /// Whether nodes have booted already when they are started for the first time.
    pub has_booted: bool,
    /// The time that a node takes to boot.
    pub reboot: u64,
    /// The number of members that decisions need.
    pub min_alive: u16,
    /// Whether nodes can be reset: a launcher has started them.
    pub resets_work: bool,
    /// The tasks of each node.
    pub tasks: u8,
    /// The number before a node's first boot.
    pub first_boot: u32,
}

impl Setting {
    /// `nodes` nodes in a reliable network: every message arrives.
    pub fn fair(nodes: u16, timing: Timing, delay_max: u64) -> Self {
        let first = |node| if node == 0 { Part::Manager } else { Part::Backup };
        Self {
            parts: (0..nodes).map(first).collect(),
            unit: MS,
            timing,
            weather: Weather::Storm,
            delay_max,
            lost: 0,
            lost_in_a_row_max: u32::MAX,
            repeated: 0,
            noticed: 0,
            calm_from: u64::MAX,
            fence_max: 5 * MS,
            late_max: 1,
            cuts_sessions: false,
            spawn: 30 * MS,
            boots_begin_early: false,
            has_booted: true,
            reboot: 400 * MS,
            min_alive: 1,
            resets_work: true,
            tasks: 2,
            first_boot: 0,
        }
    }

    /// How long a node may be gone until a manager doubts it: a clone of it may be awaited.
    pub(super) fn noticed_after(&self) -> u64 {
        let timing = &self.timing;
        let silent = timing.receive.0 + timing.window.0;
        timing.clone.0 + 2 * silent + 1_000 * self.unit
    }

    pub(super) fn draw(draws: &mut Draws) -> Self {
        let count = draws.between(2, u64::from(NODES_MAX)) as usize;
        let (timing, unit) = profile(draws);
        // Only `lan` tolerates the stalls of a run that has nothing else.
        let stalls = timing == Timing::LAN && draws.chance(1, 4);
        let weather = if stalls { Weather::Stalls } else { Weather::Storm };
        let is_rough = weather == Weather::Storm;
        let mut parts = vec![Part::Backup; count];
        let manager = draws.index(parts.len());
        parts[manager] = Part::Manager;
        let agent = draws.index(parts.len());
        if draws.chance(1, 4) && count > 2 && agent != manager {
            parts[agent] = Part::Agent;
        }
        let delay_max = draws.magnitude(timing.delay.0 / 200, timing.delay.0);
        Self {
            parts,
            weather,
            lost: if is_rough { draws.pick(&[0, 0, 10, 100]) } else { 0 },
            repeated: if is_rough { draws.pick(&[0, 10, 100]) } else { 0 },
            noticed: 500,
            resets_work: draws.chance(3, 4),
            unit,
            calm_from: STORM_MS * unit,
            // A fence may fail, and is retried until it holds.
            fence_max: draws.pick(&[5, 5, 5, 1_500]) * unit,
            // A late supervisor is no stall that `lan` tolerates.
            late_max: if is_rough { (draws.pick(&[0, 1, 20, 300]) * unit).max(1) } else { unit },
            cuts_sessions: draws.chance(1, 3),
            min_alive: draws.pick(&[1, 1, count as u16 / 2 + 1]),
            spawn: 30 * unit,
            has_booted: false,
            reboot: 400 * unit,
            ..Self::fair(count as u16, timing, delay_max)
        }
    }
}

/// The profile of a run and the length of its millisecond. Most runs have the default profile. A
/// run of `rdma`, with its short periods, is twenty times as short; it still has tens of thousands
/// of events.
fn profile(draws: &mut Draws) -> (Timing, u64) {
    let timing = draws.pick(&[Timing::LAN, Timing::HOST, Timing::RDMA]);
    match timing {
        _ if draws.chance(4, 5) => (Timing::LAN, MS),
        Timing::RDMA if draws.chance(1, 4) => (timing, MS / 20),
        Timing::HOST => (timing, MS),
        _ => (Timing::LAN, MS),
    }
}
