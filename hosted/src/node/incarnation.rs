//! Which life of the node comes next, remembered across supervisors.
//!
//! The number lies in the cluster's directory, so a node that is started again in a running
//! cluster does not repeat an incarnation its peers have fenced. Its file is locked for as long
//! as the supervisor lives, so that no node is run twice.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use weft_core::ids::Incarnation;

use super::NodeError;

/// Gives out the incarnations of one node.
#[derive(Debug)]
pub(super) struct Incarnations {
    path: PathBuf,
    file: File,
    last: Incarnation,
}

/// Whether a node has lived before, as far as its host remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lives {
    /// Its very first life is about to begin.
    None,
    /// It has lived.
    Some,
}

impl Incarnations {
    /// Goes on after the last one noted in the file at `path`, which may be absent. That another
    /// supervisor has it is [`io::ErrorKind::WouldBlock`].
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut open = OpenOptions::new();
        let mut file = open.read(true).write(true).create(true).truncate(false).open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let last = match text.trim() {
            "" => 0,
            number => number
                .parse()
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it holds no number"))?,
        };
        Ok(Self { path: path.to_owned(), file, last: Incarnation(last) })
    }

    /// Goes on behind `floor`: a life that peers remember, though this host may have forgotten it.
    pub(super) fn raise(&mut self, floor: Incarnation) {
        self.last = self.last.max(floor);
    }

    /// Whether there was a life before.
    pub(super) const fn lives(&self) -> Lives {
        if self.last.0 == 0 { Lives::None } else { Lives::Some }
    }

    /// The next life; noted before it is used.
    pub(super) fn next(&mut self) -> Result<Incarnation, NodeError> {
        let next = self.last.next();
        // Always as long, and in one call: no kill leaves half a number.
        let noted = self.file.write_all_at(format!("{:010}\n", next.0).as_bytes(), 0);
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
    fn a_damaged_note_is_refused() {
        let scratch = Scratch::new();
        let file = scratch.path().join("node-0.incarnation");
        std::fs::write(&file, "seven").unwrap();
        let error = Incarnations::open(&file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
