//! Snapshots: the whole database as bytes, for memory that outlives the component.
//!
//! ```text
//!  checksum (4) │ length of what follows (4) │ nodes (1) │ format (1) │
//!  per node: length (2), entry, resets
//!  resets:  last boot (4) and time (8), groups (1), per group: time (8), count (1)
//! ```
//!
//! The checksum covers everything after it. A process killed while it writes leaves bytes with a
//! wrong checksum, so of two buffers written alternately one is always valid. An entry is encoded
//! as in [`Image`](super::Image), whose layout the format number identifies; the times of resets
//! are of the node's own clock.

use super::image::{self, IMAGE_LEN_MAX, ImageError};
use super::resets::{RESETS_LEN_MAX, Resets};
use super::{Database, Term};
use crate::checksum::crc32c;
use crate::ids::{Incarnation, Rank};

const HEAD: usize = 8;
/// 0: a standing was an incarnation and a level. 1: it also holds isolation and release (X-11). 2:
/// an entry also holds which orders of a recovery script were judged, and the last kind of error.
const FORMAT: u8 = 4;

/// Bytes of the largest snapshot.
pub const SNAPSHOT_LEN_MAX: usize = HEAD + 2 + 64 * (2 + IMAGE_LEN_MAX + RESETS_LEN_MAX);

/// What is left of earlier incarnations of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept<'a> {
    /// The last [`Output::Keep`](super::Output::Keep); none on the very first start, the only one
    /// that takes the roles of the cluster file (G-21).
    pub term: Option<Term>,
    /// What [`Database::save`] wrote, the newest first; an empty slice means none. The first valid
    /// one is restored, and each invalid one is counted.
    pub snapshots: [&'a [u8]; 2],
    /// The last boot of this node that its peers have removed, as far as its supervisor knows:
    /// [`Supervision::removed`](super::Supervision::removed). Zero: none. A component that was
    /// killed for it may not have saved it.
    pub removed: Incarnation,
}

impl From<Option<Term>> for Kept<'_> {
    fn from(term: Option<Term>) -> Self {
        Self { term, ..Self::default() }
    }
}

impl<const NODES: usize, const TASKS: usize> Database<NODES, TASKS> {
    /// Writes the entries of the first `nodes` nodes to `out`; returns the bytes that were written.
    ///
    /// # Panics
    /// If the database has fewer nodes than that, or `nodes` is more than 64.
    pub fn save<'a>(&self, nodes: u16, out: &'a mut [u8; SNAPSHOT_LEN_MAX]) -> &'a [u8] {
        let mut len = HEAD;
        let mut put = |bytes: &[u8]| {
            out[len..len + bytes.len()].copy_from_slice(bytes);
            len += bytes.len();
        };
        put(&[u8::try_from(nodes).unwrap_or(u8::MAX), FORMAT]);
        for node in 0..nodes {
            let image = self.image(Rank(node)).expect("a node of the cluster");
            let entry = image.bytes();
            put(&u16::try_from(entry.len()).unwrap_or(u16::MAX).to_le_bytes());
            put(entry);
            self.resets(Rank(node)).save(&mut put);
        }
        let body = u32::try_from(len - HEAD).unwrap_or(u32::MAX);
        out[4..HEAD].copy_from_slice(&body.to_le_bytes());
        let checksum = crc32c(&out[4..len]);
        out[..4].copy_from_slice(&checksum.to_le_bytes());
        &out[..len]
    }

    /// Restores the database of `nodes` nodes from the beginning of `bytes`; more bytes may follow.
    ///
    /// # Errors
    /// [`ImageError`].
    pub fn restore(nodes: u16, bytes: &[u8]) -> Result<Self, ImageError> {
        let (checksum, rest) = bytes.split_first_chunk().ok_or(ImageError::Count)?;
        let (body, _) = rest.split_first_chunk().ok_or(ImageError::Count)?;
        let body = usize::try_from(u32::from_le_bytes(*body)).unwrap_or(usize::MAX);
        let len = body.checked_add(4).ok_or(ImageError::Count)?;
        let checked = rest.get(..len).ok_or(ImageError::Count)?;
        let holds = crc32c(checked) == u32::from_le_bytes(*checksum);
        if !holds && !super::DAMAGE_IS_RESTORED.is_planted() {
            return Err(ImageError::Checksum);
        }
        let (count, mut left) = checked[4..].split_first_chunk().ok_or(ImageError::Count)?;
        let [count, format] = *count;
        if format != FORMAT {
            return Err(ImageError::Format);
        }
        if u16::from(count) != nodes || usize::from(nodes) > NODES {
            return Err(ImageError::Count);
        }
        let mut database = Self::default();
        for node in (0..nodes).map(Rank) {
            let (len, rest) = left.split_first_chunk().ok_or(ImageError::Count)?;
            let len = usize::from(u16::from_le_bytes(*len));
            let (entry, rest) = rest.split_at_checked(len).ok_or(ImageError::Count)?;
            let (standing, record) = image::entry(entry)?;
            database.merge(node, &record);
            database.advance(node, standing);
            let (resets, rest) = Resets::restore(rest)?;
            if let Some(mine) = database.resets_mut(node)
                && !super::COUNTS_ARE_NOT_SAVED.is_planted()
            {
                *mine = resets;
            }
            left = rest;
        }
        if left.is_empty() { Ok(database) } else { Err(ImageError::Count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dirnet::{Change, ComponentIncarnation, Level, Record, RestartLimit, Standing};
    use crate::ids::Incarnation;
    use crate::time::{Duration, Instant};
    use std::vec::Vec;

    type Three = Database<3, 2>;

    const INCARNATION: ComponentIncarnation =
        ComponentIncarnation { boot: Incarnation(4), generation: 2 };
    const LIMIT: RestartLimit = RestartLimit { max: 3, within: Duration(100) };

    fn database() -> Three {
        let mut database = Three::default();
        for node in [Rank(0), Rank(1)] {
            database.merge(node, &Record::new(INCARNATION, 0, 2));
            database.advance(node, Standing::up(INCARNATION));
        }
        for seq in 1..=20 {
            let change = Change::TaskError { task: 1, kind: 7, at_us: u64::from(seq), alpha: None };
            database.apply(Rank(1), INCARNATION, seq, change).unwrap();
        }
        database.advance(Rank(2), Standing::removed(INCARNATION, Level::Isolated));
        database.resets_mut(Rank(2)).unwrap().note(
            Instant(9),
            INCARNATION.boot,
            LIMIT,
            Duration(1),
        );
        database
    }

    fn saved(database: &Three) -> Vec<u8> {
        database.save(3, &mut [0; SNAPSHOT_LEN_MAX]).to_vec()
    }

    /// The snapshot with a matching checksum.
    fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
        let checksum = crc32c(&bytes[4..]).to_le_bytes();
        bytes[..4].copy_from_slice(&checksum);
        bytes
    }

    #[test]
    fn a_database_comes_back_with_its_records_and_marks() {
        let database = database();
        let mut bytes = saved(&database);
        assert_eq!(Three::restore(3, &bytes), Ok(database.clone()));
        bytes.extend([0xAB; 9]);
        assert_eq!(Three::restore(3, &bytes), Ok(database));
    }

    #[test]
    fn the_largest_fits() {
        let mut largest = Database::<64, 16>::default();
        for node in (0..64).map(Rank) {
            largest.merge(node, &Record::new(INCARNATION, 0, 16));
            for seq in 1..=8 {
                let change = Change::TaskError { task: 15, kind: 1, at_us: 1, alpha: None };
                largest.apply(node, INCARNATION, seq, change).unwrap();
                let resets = largest.resets_mut(node).unwrap();
                resets.note(Instant(u64::from(seq)), Incarnation(seq), LIMIT, Duration(1));
            }
        }
        let mut out = [0; SNAPSHOT_LEN_MAX];
        let bytes = largest.save(64, &mut out);
        assert_eq!(bytes.len(), SNAPSHOT_LEN_MAX);
        assert!(Database::<64, 16>::restore(64, bytes) == Ok(largest));
    }

    #[test]
    fn one_that_was_torn_anywhere_is_refused() {
        let (old, mut new) = (saved(&Three::default()), database());
        new.advance(Rank(0), Standing::removed(INCARNATION, Level::Down));
        let new = saved(&new);
        let mut old = old;
        old.resize(new.len(), 0);
        for at in 1..new.len() {
            let torn = [&new[..at], &old[at..]].concat();
            if torn != new {
                let restored = Three::restore(3, &torn);
                assert_eq!(restored, Err(ImageError::Checksum), "{at}");
            }
            let short = Three::restore(3, &new[..at]);
            assert_eq!(short, Err(ImageError::Count), "{at}");
        }
    }

    #[test]
    fn wrong_counts_are_refused_though_the_checksum_holds() {
        let bytes = saved(&database());
        assert_eq!(Three::restore(2, &bytes), Err(ImageError::Count));
        assert_eq!(Database::<3, 1>::restore(3, &bytes), Err(ImageError::Count));
        assert_eq!(Database::<2, 2>::restore(3, &bytes), Err(ImageError::Count));
        // The number of nodes, the length of an entry, bytes after the last one.
        for (at, value) in [(8, 2), (8, 4), (10, 0), (10, 31), (11, 1)] {
            let mut wrong = bytes.clone();
            wrong[at] = value;
            assert_eq!(Three::restore(3, &sealed(wrong)), Err(ImageError::Count), "{at} {value}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        let body = u32::try_from(longer.len() - 8).unwrap();
        longer[4..8].copy_from_slice(&body.to_le_bytes());
        assert_eq!(Three::restore(3, &sealed(longer)), Err(ImageError::Count));
        let mut format = bytes.clone();
        format[9] += 1;
        assert_eq!(Three::restore(3, &sealed(format)), Err(ImageError::Format));
        let mut level = bytes;
        level[12 + 8] = 9;
        assert_eq!(Three::restore(3, &sealed(level)), Err(ImageError::Field));
    }

    /// Flips every bit of a valid snapshot, with a matching checksum.
    #[test]
    fn no_snapshot_panics_and_what_is_accepted_can_be_saved_again() {
        let bytes = saved(&database());
        for at in 4..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                if let Ok(restored) = Three::restore(3, &sealed(changed)) {
                    let again = Three::restore(3, &saved(&restored));
                    assert_eq!(again, Ok(restored), "{at} {bit}");
                }
            }
        }
    }
}
