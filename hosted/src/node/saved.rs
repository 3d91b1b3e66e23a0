//! The replicated database, saved beyond the processes of a node (D-58).
//!
//! ```text
//!   place 0:  number (8) │ snapshot          written in turn; the higher number is the newer
//!   place 1:  number (8) │ snapshot
//! ```
//!
//! It is in the cluster's directory beside the note of the last term, where it outlives the
//! component and the supervisor, and where the last node of a cluster finds it when there is no
//! other node to ask. A snapshot is written over the older one, and its number after it: a kill in
//! between leaves the newer one whole. The restore verifies the checksums.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use weft_core::dirnet::{Database, ImageError, SNAPSHOT_LEN_MAX, TASKS_MAX};

use super::{NodeError, PEERS, kept};

const NUMBER_LEN: usize = 8;
const PLACE_LEN: u64 = (NUMBER_LEN + SNAPSHOT_LEN_MAX) as u64;

/// Opens the file at `path`, which may be absent, for [`SavedDatabase::adopt`] in another process.
/// What another version of Weft has saved there is refused, and stays unchanged.
pub(super) fn open(path: &Path, nodes: usize) -> Result<File, NodeError> {
    let file = kept::open(path)?;
    let nodes = u16::try_from(nodes).unwrap_or(u16::MAX);
    for index in [0, 1] {
        let (_, snapshot) = read_place(&file, index).map_err(|it| NodeError::kept(&file, it))?;
        let restored = Database::<PEERS, TASKS_MAX>::restore(nodes, &snapshot);
        if matches!(restored, Err(ImageError::Format)) {
            return Err(NodeError::Format { path: path.to_owned() });
        }
    }
    Ok(file)
}

/// The two last snapshots.
#[derive(Debug)]
pub(super) struct SavedDatabase {
    file: File,
    /// The number of the newest one, whose place is this number modulo 2.
    number: u64,
    /// The digest of the database that this process saved last.
    digest: Option<u32>,
}

impl SavedDatabase {
    /// Takes over the open file, and reads the snapshots in it, the newest first; a missing one is
    /// empty.
    pub(super) fn adopt(fd: OwnedFd) -> Result<(Self, [Vec<u8>; 2]), NodeError> {
        let file = File::from(fd);
        let read = |index| read_place(&file, index).map_err(|error| NodeError::kept(&file, error));
        let mut found = [read(0)?, read(1)?];
        found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        let number = found[0].0;
        Ok((Self { file, number, digest: None }, found.map(|(_, snapshot)| snapshot)))
    }

    /// Saves the entries of the first `nodes` nodes, if any has changed since.
    pub(super) fn save<const NODES: usize, const TASKS: usize>(
        &mut self,
        nodes: u16,
        database: &Database<NODES, TASKS>,
    ) -> Result<(), NodeError> {
        if self.digest == Some(database.digest()) {
            return Ok(());
        }
        let number = self.number + 1;
        let at = place(number);
        let mut space = [0; SNAPSHOT_LEN_MAX];
        let snapshot = database.save(nodes, &mut space);
        let written = self.file.write_all_at(snapshot, at + NUMBER_LEN as u64);
        let numbered = written.and_then(|()| self.file.write_all_at(&number.to_le_bytes(), at));
        numbered.map_err(|error| NodeError::kept(&self.file, error))?;
        (self.number, self.digest) = (number, Some(database.digest()));
        Ok(())
    }
}

const fn place(number: u64) -> u64 {
    number % 2 * PLACE_LEN
}

/// The snapshot at one place, with the rest of a longer one behind it; empty where none was ever
/// finished. A place with a number that it cannot have was damaged: it counts as the oldest, and
/// the restore judges its content.
fn read_place(file: &File, index: u64) -> io::Result<(u64, Vec<u8>)> {
    let mut bytes = vec![0; NUMBER_LEN + SNAPSHOT_LEN_MAX];
    let mut len = 0;
    while len < bytes.len() {
        let from = place(index) + len as u64;
        match file.read_at(&mut bytes[len..], from)? {
            0 => break,
            read => len += read,
        }
    }
    bytes.truncate(len);
    let number = bytes.first_chunk().map_or(0, |number| u64::from_le_bytes(*number));
    if number == 0 {
        return Ok((0, Vec::new()));
    }
    let is_possible = number % 2 == index && number != u64::MAX;
    Ok((if is_possible { number } else { 0 }, bytes.split_off(NUMBER_LEN)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Explain;
    use crate::scratch::Scratch;
    use weft_core::dirnet::{
        Change, ComponentIncarnation, Config, Kept, Limits, Part, Profile, RestartLimit, Timing,
    };
    use weft_core::ids::{Incarnation, Rank};
    use weft_core::time::{Duration, Instant};

    type Component = weft_core::dirnet::Component<2, 2>;

    /// A component of the only node, after so many changes.
    fn component(changes: u8) -> Component {
        let profile = Profile::new(Timing::LAN).unwrap();
        let limit = RestartLimit { max: 0, within: Duration(1) };
        let limits = Limits { restarts: limit, resets: limit };
        let config = Config::new(Rank(0), &[Part::Manager], profile, 1, limits).unwrap();
        let incarnation = ComponentIncarnation { boot: Incarnation(1), generation: 0 };
        let mut component = Component::new(Instant(0), config, incarnation, 1, Kept::default());
        while component.poll_output().is_some() {}
        for status in 1..=changes {
            component.handle_change(Instant(0), Change::TaskStatus { task: 0, status }).unwrap();
            while component.poll_output().is_some() {}
        }
        component
    }

    fn adopt(path: &Path) -> (SavedDatabase, [Vec<u8>; 2]) {
        SavedDatabase::adopt(kept::open(path).unwrap().into()).unwrap()
    }

    /// The status of the task in a snapshot; none if the snapshot is not valid.
    fn status(snapshot: &[u8]) -> Option<u8> {
        let restored = Database::<2, 2>::restore(1, snapshot).ok()?;
        restored.record(Rank(0)).map(|record| record.tasks()[0].status)
    }

    #[test]
    fn the_last_two_are_found_the_newest_first_whoever_saved_them() {
        let scratch = Scratch::new();
        let path = scratch.path().join("database");
        let (mut saved, none) = adopt(&path);
        assert_eq!(none, [Vec::<u8>::new(), Vec::new()]);
        for changes in 1..=3 {
            saved.save(1, component(changes).database()).unwrap();
            saved.save(1, component(changes).database()).unwrap();
        }
        assert_eq!(adopt(&path).1.map(|found| status(&found)), [Some(3), Some(2)]);
        let (mut next, _) = adopt(&path);
        next.save(1, component(4).database()).unwrap();
        assert_eq!(adopt(&path).1.map(|found| status(&found)), [Some(4), Some(3)]);
    }

    /// The snapshots of earlier versions had no format byte: in its place was the upper byte of a
    /// count.
    #[test]
    fn x11_what_another_version_has_saved_is_refused_and_stays() {
        let scratch = Scratch::new();
        let path = scratch.path().join("database");
        let (mut saved, _) = adopt(&path);
        saved.save(1, component(1).database()).unwrap();
        assert!(open(&path, 1).is_ok());
        let mut bytes = std::fs::read(&path).unwrap();
        let at = usize::try_from(place(1)).unwrap() + NUMBER_LEN;
        let len = component(1).database().save(1, &mut [0; SNAPSHOT_LEN_MAX]).len();
        bytes[at + 9] = 0;
        let checksum = weft_core::checksum::crc32c(&bytes[at + 4..at + len]);
        bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
        std::fs::write(&path, &bytes).unwrap();
        let refused = open(&path, 1).unwrap_err();
        assert!(refused.to_string().contains("another version of Weft"), "{refused}");
        assert!(refused.cure().contains("move "), "{}", refused.cure());
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }

    /// With nothing else in the file, it is returned and does not count as missing.
    #[test]
    fn a_place_whose_number_is_damaged_is_the_oldest_and_is_written_next() {
        let scratch = Scratch::new();
        let path = scratch.path().join("database");
        for damage in [[0xA5; 300].to_vec(), vec![0xFF; 2 * (NUMBER_LEN + SNAPSHOT_LEN_MAX)]] {
            std::fs::write(&path, damage).unwrap();
            let (mut saved, found) = adopt(&path);
            assert!(
                found.iter().any(|snapshot| !snapshot.is_empty() && status(snapshot).is_none())
            );
            saved.save(1, component(1).database()).unwrap();
            saved.save(1, component(2).database()).unwrap();
            assert_eq!(adopt(&path).1.map(|found| status(&found)), [Some(2), Some(1)]);
        }
    }

    /// Whatever part of the next one was written, the one before is still the newest valid one.
    #[test]
    fn a_save_that_is_cut_short_anywhere_leaves_the_one_before() {
        let scratch = Scratch::new();
        let path = scratch.path().join("database");
        let (mut saved, _) = adopt(&path);
        saved.save(1, component(1).database()).unwrap();
        saved.save(1, component(2).database()).unwrap();
        let before = std::fs::read(&path).unwrap();
        saved.save(1, component(3).database()).unwrap();
        let after = std::fs::read(&path).unwrap();
        // Number 3 is written where number 1 was.
        let at = usize::try_from(place(3)).unwrap() + NUMBER_LEN;
        let len = component(3).database().save(1, &mut [0; SNAPSHOT_LEN_MAX]).len();
        for cut in at..at + len {
            let mut torn = before.clone();
            torn[at..cut].copy_from_slice(&after[at..cut]);
            std::fs::write(&path, &torn).unwrap();
            let (_, [newest, _]) = adopt(&path);
            assert_eq!(status(&newest), Some(2), "{cut}");
        }
    }
}
