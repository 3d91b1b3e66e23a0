//! How large, how patient and how rough a run is.

use weft_core::dirnet::{Part, Timing};

use crate::cluster::Profile;
use crate::sim::dirnet::strike::{MS, NODES_MAX, STORM_MS, Weather};
use crate::sim::draws::Draws;

/// What stays the same throughout a run. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The part of each node at the first start.
    pub(crate) parts: Vec<Part>,
    /// What a strike takes for a millisecond: a run with shorter deadlines is as much shorter.
    pub(crate) unit: u64,
    /// The profile of all nodes.
    pub(crate) timing: Timing,
    /// What its strikes are.
    pub(crate) weather: Weather,
    /// A message takes 1 to so long.
    pub(crate) delay_max: u64,
    /// Out of a thousand messages.
    pub(crate) lost: u64,
    /// At most so many heartbeats in a row are lost on one link.
    pub(crate) lost_in_a_row_max: u32,
    /// Out of a thousand messages.
    pub(crate) repeated: u64,
    /// Out of a thousand ends of a node, and of ways to it, so many are noticed by another node's
    /// transport before anything is missed.
    pub(crate) noticed: u64,
    /// From when on nothing is lost or repeated, and what is dead is started.
    pub(crate) calm_from: u64,
    /// A fence holds within so long.
    pub(crate) fence_max: u64,
    /// How long a process takes to start.
    pub(crate) spawn: u64,
    /// How long a node takes to begin its next life.
    pub(crate) reboot: u64,
    /// Decisions need so many members.
    pub(crate) min_alive: u16,
    /// Whether somebody can reset a node.
    pub(crate) resets_work: bool,
}

impl Setting {
    /// `nodes` nodes in a good network: what is sent arrives.
    pub(crate) fn fair(nodes: u16, timing: Timing, delay_max: u64) -> Self {
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
            spawn: 30 * MS,
            reboot: 400 * MS,
            min_alive: 1,
            resets_work: true,
        }
    }

    pub(super) fn draw(draws: &mut Draws) -> Self {
        let count = draws.between(2, u64::from(NODES_MAX)) as usize;
        let (timing, unit) = profile(draws);
        // Only `lan` outlasts the stalls that a run of nothing else has.
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
            // A fence may fail, and is tried again until it holds.
            fence_max: draws.pick(&[5, 5, 5, 1_500]) * unit,
            min_alive: draws.pick(&[1, 1, count as u16 / 2 + 1]),
            spawn: 30 * unit,
            reboot: 400 * unit,
            ..Self::fair(count as u16, timing, delay_max)
        }
    }
}

/// The profile of a run and what it takes for a millisecond. Most have the default profile. A run
/// of `rdma`, with its short periods, is twenty times as short: it still has ten thousands of
/// events.
fn profile(draws: &mut Draws) -> (Timing, u64) {
    let profile = draws.pick(&[Profile::Lan, Profile::Host, Profile::Rdma]);
    match profile {
        _ if draws.chance(4, 5) => (Timing::LAN, MS),
        Profile::Rdma if draws.chance(1, 4) => (profile.timing(), MS / 20),
        Profile::Rdma | Profile::Lan => (Timing::LAN, MS),
        Profile::Host => (profile.timing(), MS),
    }
}
