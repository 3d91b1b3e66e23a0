//! The incarnation numbers of a node, remembered across supervisors.
//!
//! The number is in the cluster's directory, so a node that is started again in a running cluster
//! does not repeat an incarnation that its peers have fenced. Its file is locked for as long as the
//! supervisor runs, so that no node is run twice. A damaged note counts as none: the peers remember
//! the incarnations that they have fenced, and report them.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use weft_core::ids::Incarnation;

use super::NodeError;
use crate::regular_file;

/// More than a number and the blanks around it take.
const NOTE_LEN_MAX: u64 = 256;

/// Gives out the incarnations of one node.
#[derive(Debug)]
pub(super) struct Incarnations {
    path: PathBuf,
    file: File,
    last: Incarnation,
    /// Whether the file did not hold a number.
    is_forgotten: bool,
}

/// Whether a node has run before, as far as its host remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lives {
    /// Its very first incarnation is next.
    None,
    /// It has run.
    Some,
}

impl Incarnations {
    /// Continues after the last one noted in the file at `path`, which may be absent. If another
    /// supervisor holds the file, the error is [`io::ErrorKind::WouldBlock`].
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = regular_file::update(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let mut bytes = Vec::new();
        // A longer note is a damaged one.
        (&file).take(NOTE_LEN_MAX).read_to_end(&mut bytes)?;
        let text = str::from_utf8(&bytes).map(str::trim).ok();
        let last = match text {
            Some("") => Some(0),
            // No node starts so often that it reaches the last number: that is damage, too.
            text => text.and_then(|text| text.parse().ok()).filter(|last| *last < u32::MAX),
        };
        let (path, is_forgotten) = (path.to_owned(), last.is_none());
        Ok(Self { path, file, last: Incarnation(last.unwrap_or(0)), is_forgotten })
    }

    /// Whether the note was damaged, so that only peers know the last number.
    pub(super) const fn are_forgotten(&self) -> bool {
        self.is_forgotten
    }

    /// Continues after `floor`: an incarnation that peers remember, and this host may not.
    pub(super) fn raise(&mut self, floor: Incarnation) {
        self.last = self.last.max(floor);
    }

    /// Whether there was an incarnation before.
    pub(super) const fn lives(&self) -> Lives {
        if self.last.0 == 0 && !self.is_forgotten { Lives::None } else { Lives::Some }
    }

    /// The next incarnation; noted before it is used.
    pub(super) fn next(&mut self) -> Result<Incarnation, NodeError> {
        // The largest number is never saved: in the file it counts as damage.
        let next = self.last.0.checked_add(1).filter(|next| *next < u32::MAX);
        let Some(next) = next.map(Incarnation) else {
            let error = io::Error::new(io::ErrorKind::InvalidData, "all incarnations are used up");
            return Err(NodeError::Incarnation { path: self.path.clone(), error });
        };
        // Of fixed length, and in one call: no kill leaves half a number.
        let note = format!("{:010}\n", next.0);
        let noted = self.file.write_all_at(note.as_bytes(), 0);
        // A damaged note may have been longer.
        let noted = noted.and_then(|()| self.file.set_len(note.len() as u64));
        noted.map_err(|error| NodeError::Incarnation { path: self.path.clone(), error })?;
        self.last = next;
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_later_supervisor_goes_on_counting_and_not_beside_the_first() {
        let scratch = Scratch::new();
        let file = scratch.path().join("node-0.incarnation");
        let mut first = Incarnations::open(&file).unwrap();
        assert_eq!(first.next().unwrap(), Incarnation(1));
        assert_eq!(first.next().unwrap(), Incarnation(2));
        first.raise(Incarnation(1));
        let refused = Incarnations::open(&file).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(first);
        let mut second = Incarnations::open(&file).unwrap();
        assert_eq!(second.next().unwrap(), Incarnation(3));
        second.raise(Incarnation(9));
        assert_eq!(second.next().unwrap(), Incarnation(10));
    }

    #[test]
    fn the_last_incarnation_is_found_again_and_has_no_successor() {
        let scratch = Scratch::new();
        let file = scratch.path().join("node-0.incarnation");
        std::fs::write(&file, "4294967293\n").unwrap();
        let mut last = Incarnations::open(&file).unwrap();
        assert_eq!(last.next().unwrap(), Incarnation(u32::MAX - 1));
        drop(last);
        let mut again = Incarnations::open(&file).unwrap();
        assert!(!again.are_forgotten());
        let refused = again.next().unwrap_err();
        assert!(matches!(refused, NodeError::Incarnation { .. }), "{refused}");
    }

    #[test]
    fn a_damaged_note_is_forgotten_and_not_taken_for_that_of_a_first_life() {
        let scratch = Scratch::new();
        let file = scratch.path().join("node-0.incarnation");
        for damage in [&b"seven"[..], &[0xA5; 300], b"99999999999\n", b"4294967295\n"] {
            std::fs::write(&file, damage).unwrap();
            let mut damaged = Incarnations::open(&file).unwrap();
            assert!(damaged.are_forgotten() && damaged.lives() == Lives::Some);
            damaged.raise(Incarnation(6));
            assert_eq!(damaged.next().unwrap(), Incarnation(7));
            drop(damaged);
            let mut next = Incarnations::open(&file).unwrap();
            assert!(!next.are_forgotten());
            assert_eq!(next.next().unwrap(), Incarnation(8));
        }
        std::fs::write(&file, "").unwrap();
        let empty = Incarnations::open(&file).unwrap();
        assert!(!empty.are_forgotten() && empty.lives() == Lives::None);
    }
}
