//! How large, how patient and how rough a run is.

use weft_core::dirnet::{Part, Timing};

use crate::sim::dirnet::strike::{MS, STORM_MS, Weather};
use crate::sim::draws::Draws;
use crate::sim::fault::Keep;

/// What stays the same throughout a run. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The part of each node at the first start.
    pub(crate) parts: Vec<Part>,
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
    /// Whether somebody can reset a node.
    pub(crate) resets_work: bool,
}

impl Setting {
    /// `nodes` nodes in a good network: what is sent arrives.
    pub(crate) fn fair(nodes: u16, timing: Timing, delay_max: u64) -> Self {
        let first = |node| if node == 0 { Part::Manager } else { Part::Backup };
        Self {
            parts: (0..nodes).map(first).collect(),
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
            resets_work: true,
        }
    }

    pub(super) fn draw(draws: &mut Draws, keep: &Keep) -> Self {
        let count = draws.between(2, 7) as usize;
        let weather = if draws.chance(1, 4) { Weather::Stalls } else { Weather::Storm };
        let is_rough = weather == Weather::Storm && *keep == Keep::All;
        let mut parts = vec![Part::Backup; count];
        let manager = draws.index(parts.len());
        parts[manager] = Part::Manager;
        let agent = draws.index(parts.len());
        if draws.chance(1, 4) && count > 2 && agent != manager {
            parts[agent] = Part::Agent;
        }
        let delay_max = draws.magnitude(MS / 10, 20 * MS);
        Self {
            parts,
            weather,
            lost: if is_rough { draws.pick(&[0, 0, 10, 100]) } else { 0 },
            repeated: if is_rough { draws.pick(&[0, 10, 100]) } else { 0 },
            noticed: 500,
            resets_work: draws.chance(3, 4),
            calm_from: STORM_MS * MS,
            ..Self::fair(count as u16, Timing::LAN, delay_max)
        }
    }
}
