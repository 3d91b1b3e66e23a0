//! The replicated database: an entry and a standing for every node.
//!
//! An entry is changed only by its own node, a standing only by the manager; both only move
//! forward, so copies converge whatever was lost or repeated (G-25). The digest covers versions,
//! not contents: equal digests mean equal entries and standings. Each entry also holds when its
//! node was reset, by the local clock: that is saved, and never sent.

use super::record::ChangeError;
use super::replay::is_after;
use super::resets::Resets;
use super::{Change, ComponentIncarnation, Image, Record, Standing};
use crate::checksum::crc32c;
use crate::ids::{Incarnation, Rank};
use crate::time::{Duration, Instant};

/// Number of 32-bit words that a version occupies in a frame.
pub(super) const VERSION_WORDS: usize = 8;

/// How recent the knowledge of a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Version {
    /// The incarnation that wrote the entry.
    pub incarnation: ComponentIncarnation,
    /// The number of its changes so far.
    pub seq: u32,
    /// The standing of the node.
    pub standing: Standing,
}

impl Version {
    /// The version as words of a frame.
    pub(super) const fn words(self) -> [u32; VERSION_WORDS] {
        let [boot, generation, down, isolated, released] = self.standing.words();
        let ComponentIncarnation { boot: Incarnation(incarnation), generation: of } =
            self.incarnation;
        [incarnation, of, self.seq, boot, generation, down, isolated, released]
    }

    /// The version that [`Self::words`] encoded.
    pub(super) fn from_words(words: &[u32]) -> Option<Self> {
        let &[boot, generation, seq, ref standing @ ..] = words else { return None };
        let standing = Standing::from_words(standing.try_into().ok()?)?;
        Some(Self {
            incarnation: ComponentIncarnation { boot: Incarnation(boot), generation },
            seq,
            standing,
        })
    }

    /// Whether anything in `other` is newer.
    #[must_use]
    pub fn lacks(self, other: Self) -> bool {
        is_newer((other.incarnation, other.seq), (self.incarnation, self.seq))
            || self.standing.is_before(other.standing)
    }

    fn digest(self, node: Rank) -> u32 {
        let mut bytes = [0; 4 * VERSION_WORDS + 2];
        for (chunk, word) in bytes.chunks_exact_mut(4).zip(self.words()) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes[4 * VERSION_WORDS..].copy_from_slice(&node.0.to_le_bytes());
        scatter(crc32c(&bytes))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Entry<const TASKS: usize> {
    standing: Standing,
    record: Record<TASKS>,
    resets: Resets,
}

/// The database of up to `NODES` nodes with up to `TASKS` tasks each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Database<const NODES: usize, const TASKS: usize> {
    entries: [Entry<TASKS>; NODES],
    digest: u32,
}

impl<const NODES: usize, const TASKS: usize> Default for Database<NODES, TASKS> {
    fn default() -> Self {
        Self { entries: [Entry::default(); NODES], digest: 0 }
    }
}

impl<const NODES: usize, const TASKS: usize> Database<NODES, TASKS> {
    /// The entry of `node`, as it describes itself.
    #[must_use]
    pub fn record(&self, node: Rank) -> Option<&Record<TASKS>> {
        self.entry(node).map(|entry| &entry.record)
    }

    /// The standing of `node`; a rank outside the cluster was never seen.
    #[must_use]
    pub fn standing(&self, node: Rank) -> Standing {
        self.entry(node).map(|entry| entry.standing).unwrap_or_default()
    }

    /// The version of the entry of `node`.
    #[must_use]
    pub fn version(&self, node: Rank) -> Version {
        self.entry(node).map(Entry::version).unwrap_or_default()
    }

    /// The digest over all versions; equal for equal databases.
    #[must_use]
    pub const fn digest(&self) -> u32 {
        self.digest
    }

    /// The entry of `node` in the form in which it is sent.
    #[must_use]
    pub fn image(&self, node: Rank) -> Option<Image> {
        self.entry(node).map(|entry| Image::of(entry.standing, &entry.record))
    }

    /// Moves the standing of `node` forward; returns whether it moved. A released node starts over.
    pub(super) fn advance(&mut self, node: Rank, standing: Standing) -> bool {
        let mut moved = false;
        self.change(node, |entry| {
            let merged = entry.standing.merged(standing);
            moved = merged != entry.standing;
            let is_released = entry.standing.released() < merged.released();
            if is_released && !super::RELEASED_ARE_COUNTED.is_planted() {
                entry.resets = Resets::default();
            }
            entry.standing = merged;
        });
        moved
    }

    /// When `node` was reset.
    pub(super) fn resets(&self, node: Rank) -> Resets {
        self.entry(node).map(|entry| entry.resets).unwrap_or_default()
    }

    /// The same, for counting.
    pub(super) fn resets_mut(&mut self, node: Rank) -> Option<&mut Resets> {
        self.entries.get_mut(usize::from(node.0)).map(|entry| &mut entry.resets)
    }

    /// Forgets the resets later than `now`.
    pub(super) fn forget_later_resets(&mut self, now: Instant) {
        self.entries.iter_mut().for_each(|entry| entry.resets.forget_later(now));
    }

    /// Shifts the resets to an origin of time that lies `by` later.
    pub(super) fn rebase(&mut self, by: Duration) {
        self.entries.iter_mut().for_each(|entry| entry.resets.rebase(by));
    }

    /// Forgets which incarnation of `node` had which standing: for a component that starts again
    /// and has heard from no member yet. What was released stays released.
    pub(super) fn forget_standing(&mut self, node: Rank) {
        self.change(node, |entry| entry.standing = entry.standing.without_incarnation());
    }

    /// Applies a change of `node` to its entry.
    pub(super) fn apply(
        &mut self,
        node: Rank,
        incarnation: ComponentIncarnation,
        seq: u32,
        change: Change,
    ) -> Result<(), ChangeError> {
        let mut result = Err(ChangeError::Gap);
        self.change(node, |entry| result = entry.record.apply(incarnation, seq, change));
        result
    }

    /// Merges what is newer in a copy of the entry of `node`; returns whether anything was.
    pub(super) fn merge(&mut self, node: Rank, record: &Record<TASKS>) -> bool {
        let mut moved = false;
        self.change(node, |entry| {
            let mine = &mut entry.record;
            moved = is_newer((record.incarnation, record.seq), (mine.incarnation, mine.seq));
            if moved {
                *mine = *record;
            }
        });
        moved
    }

    fn entry(&self, node: Rank) -> Option<&Entry<TASKS>> {
        self.entries.get(usize::from(node.0))
    }

    /// Changes an entry and updates the digest.
    fn change(&mut self, node: Rank, change: impl FnOnce(&mut Entry<TASKS>)) {
        let Some(entry) = self.entries.get_mut(usize::from(node.0)) else { return };
        let before = entry.version();
        change(entry);
        let after = entry.version();
        if before != after {
            self.digest ^= digest(before, node) ^ digest(after, node);
        }
    }
}

/// Whether the change with that incarnation and number comes after the other one.
fn is_newer(this: (ComponentIncarnation, u32), that: (ComponentIncarnation, u32)) -> bool {
    this.0 > that.0 || (this.0 == that.0 && is_after(this.1, that.1))
}

/// CRCs are linear: where two nodes differ alike, the difference cancels out in a sum. So each CRC
/// is scattered first (the finaliser of MurmurHash3).
const fn scatter(crc: u32) -> u32 {
    let mixed = (crc ^ crc >> 16).wrapping_mul(0x85eb_ca6b);
    let mixed = (mixed ^ mixed >> 13).wrapping_mul(0xc2b2_ae35);
    mixed ^ mixed >> 16
}

/// An unknown entry contributes zero, so that a larger table has the same digest.
fn digest(version: Version, node: Rank) -> u32 {
    if version == Version::default() { 0 } else { version.digest(node) }
}

impl<const TASKS: usize> Entry<TASKS> {
    fn version(&self) -> Version {
        Version {
            incarnation: self.record.incarnation,
            seq: self.record.seq,
            standing: self.standing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dirnet::Level;
    use proptest::prelude::*;
    use std::vec::Vec;

    const INCARNATION: ComponentIncarnation =
        ComponentIncarnation { boot: Incarnation(1), generation: 0 };

    /// A random update of a node: a standing or an entry.
    fn words() -> impl Strategy<Value = [u32; 4]> {
        (0..3u32, 0..2u32, 1..4u32, 0..4u32).prop_map(|(a, b, c, d)| [a, b, c, d])
    }

    fn hear(db: &mut Database<3, 1>, [node, what, boot, number]: [u32; 4]) {
        let node = Rank(u16::try_from(node).unwrap());
        let incarnation = ComponentIncarnation { boot: Incarnation(boot), generation: 0 };
        if what == 0 {
            let levels = [Level::Up, Level::Down, Level::Isolated, Level::Released];
            db.advance(node, Standing::removed(incarnation, levels[number as usize]));
        } else {
            let mut record = Record::new(incarnation, 0, 1);
            record.seq = number.wrapping_sub(2);
            db.merge(node, &record);
        }
    }

    proptest! {
        #[test]
        fn g25_copies_that_heard_the_same_in_any_order_are_equal(
            said in proptest::collection::vec(words(), 0..20), seed in any::<u64>(),
        ) {
            let mut shuffled = said.clone();
            let len = shuffled.len();
            for (at, swap) in (0..len).zip(seed..) {
                shuffled.swap(at, usize::try_from(swap.wrapping_mul(31) % len as u64).unwrap());
            }
            let (mut one, mut other) = (Database::default(), Database::default());
            said.iter().for_each(|word| hear(&mut one, *word));
            shuffled.iter().chain(&said).for_each(|word| hear(&mut other, *word));
            prop_assert_eq!(one, other);
        }
    }

    #[test]
    fn g25_a_change_is_in_the_digest() {
        let mut db = Database::<2, 1>::default();
        db.merge(Rank(1), &Record::new(INCARNATION, 0, 1));
        let before = db.digest();
        assert_eq!(db.apply(Rank(1), INCARNATION, 1, Change::Status(1)), Ok(()));
        assert_ne!(db.digest(), before);
        let change = db.apply(Rank(1), INCARNATION, 1, Change::Status(2));
        assert_eq!(change, Err(ChangeError::Repeated));
        assert!(db.advance(Rank(0), Standing::removed(INCARNATION, Level::Down)));
        assert!(!db.advance(Rank(0), Standing::up(INCARNATION)));
    }

    /// Found by the simulator: sums of CRCs alone cancelled out, and a joiner that lacked four
    /// entries took its database to be complete.
    #[test]
    fn g25_copies_that_lack_several_entries_have_another_digest() {
        let known = |nodes: &[u16]| {
            let mut db = Database::<6, 1>::default();
            for node in nodes {
                db.advance(Rank(*node), Standing::up(INCARNATION));
            }
            db.digest()
        };
        let mut digests: Vec<u32> = (0..1_u16 << 6)
            .map(|set| known(&(0..6).filter(|node| set >> node & 1 == 1).collect::<Vec<_>>()))
            .collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), 64);
    }

    #[test]
    fn a_node_that_is_no_member_changes_nothing() {
        let mut db = Database::<2, 1>::default();
        assert!(
            !db.advance(Rank(2), Standing::up(INCARNATION))
                && !db.merge(Rank(9), &Record::default())
        );
        assert_eq!(db.apply(Rank(2), INCARNATION, 1, Change::Status(1)), Err(ChangeError::Gap));
        assert_eq!(db, Database::default());
    }
}
