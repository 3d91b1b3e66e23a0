//! The layout of the regions (N-9, traps T2 and T5).
//!
//! ```text
//! bcast[q]  ring of W slots              remote writes by q alone, in its inbound region
//! replay    n rings of W slots           remote reads by all, written by the member itself
//! landing   votes, then progresses       no remote access
//!           [origin][seq mod depth][replayer], one slot each: one place per read under way
//!           [peer], one whole progress each
//! progress  two cells for each origin,   remote reads by all, written by the member itself
//!           each member's epoch, own state
//! ```
//!
//! `bcast[me]` holds an origin's own messages: its writes are posted from there, and its next
//! incarnation finds there the messages that were under way.

use super::config::{Config, Shown};
use super::mutants::SHARED_LANDING;
use crate::fabric::{Access, At, Inbound, Layout, LayoutError, Region, RegionSpec};
use crate::ids::{Incarnation, Peer, PeerSet};
use crate::wire::CELL_LEN;
use crate::wire::broadcast::Stamp;

/// The regions of the broadcast in the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Regions {
    rings: Inbound,
    replay: Region,
    landing: Region,
    progress: Region,
}

/// Computes every address from the sizes and the regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Map {
    pub(super) config: Config,
    pub(super) regions: Regions,
}

impl Config {
    /// Adds the broadcast's three regions and a ring from each origin to `layout`.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn add_regions(&self, layout: &mut Layout) -> Result<Regions, LayoutError> {
        // Checked by Config::new: no region reaches 4 GiB.
        let len = |bytes: u64| u32::try_from(bytes).map_err(|_| LayoutError::BadLength(u32::MAX));
        let all = PeerSet::first(usize::from(self.peers()));
        let rings = layout.add_inbound(len(self.ring_len())?)?;
        let mut add = |len, access, peers| layout.add(RegionSpec { len, access, peers });
        let shown = Access::REMOTE_READ;
        Ok(Regions {
            rings,
            replay: add(len(self.replay_len())?, shown, all)?,
            landing: add(len(self.landing_len())?, Access::empty(), PeerSet::EMPTY)?,
            progress: add(self.progress_len(), shown, all)?,
        })
    }

    /// The stamp of message `seq` of `origin`.
    #[must_use]
    pub const fn stamp(&self, origin: Peer, seq: u64) -> Stamp {
        #[expect(clippy::cast_possible_truncation, reason = "generations are counted modulo 2^32")]
        let generation = (seq >> self.slots().trailing_zeros()) as u32;
        Stamp { seq, generation, origin }
    }

    /// Which slot of a ring message `seq` uses.
    #[must_use]
    pub const fn index(&self, seq: u64) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "rings have powers of two of slots")]
        let index = seq as u32 & (self.slots() - 1);
        index
    }

    /// Where `origin` writes its message `seq`, at every member.
    #[must_use]
    pub const fn written_at(&self, regions: &Regions, origin: Peer, seq: u64) -> At {
        let ring = regions.rings.of(origin);
        At { offset: ring.offset + self.index(seq) * self.stride(), ..ring }
    }

    /// Where every member exposes its copy of message `seq` of `origin`.
    #[must_use]
    pub const fn exposed_at(&self, regions: &Regions, origin: Peer, seq: u64) -> At {
        let slot = origin.0 as u32 * self.slots() + self.index(seq);
        At { region: regions.replay, offset: slot * self.stride() }
    }

    /// Where every member shows that it has delivered `delivered` messages of `origin`: one of two
    /// cells, used alternately.
    #[must_use]
    pub const fn shown_at(&self, regions: &Regions, origin: Peer, delivered: u64) -> At {
        Map::cell(At { region: regions.progress, offset: 0 }, origin, delivered)
    }

    /// Where every member shows that it counts `epoch` of `member`, as the progress of the place
    /// that is returned beside the address.
    #[must_use]
    pub const fn counted_at(
        &self,
        regions: &Regions,
        member: Peer,
        epoch: Incarnation,
    ) -> (At, Peer) {
        let place = Shown::Counted(member).place(self.peers());
        (Map::cell(At { region: regions.progress, offset: 0 }, place, epoch.0 as u64), place)
    }
}

impl Regions {
    /// Where a member exposes its copies.
    #[must_use]
    pub const fn replay(&self) -> Region {
        self.replay
    }

    /// Where reads of the others' replays and progress land.
    #[must_use]
    pub const fn landing(&self) -> Region {
        self.landing
    }
}

impl Map {
    /// Where `origin` writes its message `seq`.
    pub(super) const fn bcast(&self, origin: Peer, seq: u64) -> At {
        self.config.written_at(&self.regions, origin, seq)
    }

    /// Where the copy of message `seq` of `origin` is exposed.
    pub(super) const fn replay(&self, origin: Peer, seq: u64) -> At {
        self.config.exposed_at(&self.regions, origin, seq)
    }

    /// Where the replay of message `seq` of `origin` by `replayer` is read into.
    pub(super) fn landing(&self, origin: Peer, seq: u64, replayer: Peer) -> At {
        let (depth, peers) = (u32::from(self.config.depth()), u32::from(self.config.peers()));
        let place = u32::from(origin.0) * depth + self.place(seq);
        let who = if SHARED_LANDING.is_planted() { 0 } else { u32::from(replayer.0) };
        let offset = (place * peers + who) * self.config.stride();
        At { region: self.regions.landing, offset }
    }

    /// Which of the ballots of an origin message `seq` has.
    pub(super) const fn place(&self, seq: u64) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "the depth is a power of two")]
        let place = seq as u32 & (self.config.depth() as u32 - 1);
        place
    }

    /// Where the progress of `peer` is read into.
    pub(super) const fn progress_landing(&self, peer: Peer) -> At {
        #[expect(clippy::cast_possible_truncation, reason = "no region reaches 4 GiB")]
        let start = self.config.votes_len() as u32;
        let offset = start + peer.0 as u32 * self.config.progress_len();
        At { region: self.regions.landing, offset }
    }

    /// Everything that a member shows of its progress.
    pub(super) const fn progress(&self) -> At {
        At { region: self.regions.progress, offset: 0 }
    }

    /// The two cells of the number in `place`, in a progress that begins at `start`; `turn` is
    /// what it has become.
    pub(super) const fn cell(start: At, place: Peer, turn: u64) -> At {
        let cell = place.0 as u32 * 2 + (turn & 1) as u32;
        At { region: start.region, offset: start.offset + cell * CELL_LEN as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Membership, Retry, Sizes};
    use super::*;
    use crate::time::Duration;
    use crate::wire::broadcast::Form;
    use std::collections::BTreeSet;

    fn map() -> (Map, Layout) {
        let config = Config::new(Sizes {
            peers: 3,
            slots: 8,
            depth: 2,
            message_len: 40,
            form: Form::Unsigned,
            membership: Membership::Fixed,
            retry: Retry { after: Duration(1), after_max: Duration(1) },
        });
        let (config, mut layout) = (config.unwrap(), Layout::new(3));
        let regions = config.add_regions(&mut layout).unwrap();
        (Map { config, regions }, layout)
    }

    /// Trap T2.
    #[test]
    fn no_two_reads_under_way_share_a_place() {
        let (map, layout) = map();
        let stride = u64::from(map.config.stride());
        let mut starts = BTreeSet::new();
        for origin in (0..3).map(Peer) {
            for seq in 7..9 {
                starts.extend((0..3).map(|q| map.landing(origin, seq, Peer(q)).offset));
            }
        }
        starts.extend((0..3).map(|q| map.progress_landing(Peer(q)).offset));
        assert_eq!(starts.len(), 3 * 2 * 3 + 3);
        let gaps = starts.iter().zip(starts.iter().skip(1)).map(|(a, b)| u64::from(b - a));
        let lens: Vec<u64> = gaps.collect();
        assert!(lens[..18].iter().all(|len| *len == stride));
        assert!(lens[18..].iter().all(|len| *len == u64::from(map.config.progress_len())));
        let end = u64::from(map.progress_landing(Peer(3)).offset);
        assert_eq!(layout.spec(map.regions.landing).map(|spec| u64::from(spec.len)), Some(end));
    }

    /// Trap T5.
    #[test]
    fn a_ring_is_writable_by_its_origin_alone() {
        let (map, layout) = map();
        for origin in (0..3).map(Peer) {
            let spec = layout.spec(map.bcast(origin, 1).region).unwrap();
            assert_eq!((spec.access, spec.peers), (Access::REMOTE_WRITE, PeerSet::only(origin)));
        }
        for region in [map.regions.replay, map.regions.progress] {
            assert!(!layout.allows(region, Peer(0), Access::REMOTE_WRITE));
        }
    }

    #[test]
    fn a_slot_used_again_has_another_generation() {
        let (map, _) = map();
        let (first, again) = (map.config.stamp(Peer(1), 5), map.config.stamp(Peer(1), 13));
        assert_eq!(map.bcast(Peer(1), 5), map.bcast(Peer(1), 13));
        assert_eq!((first.generation, again.generation), (0, 1));
    }

    use std::vec::Vec;
}
