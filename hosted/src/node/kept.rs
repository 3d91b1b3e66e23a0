//! What a node must not forget, persistent beyond its processes: the last term that it has known
//! (D-8, G-19), and what it has voted and accepted (RL-10).
//!
//! Each is in the cluster's directory beside the note of the incarnation. A record is written in
//! one call at one offset and carries its checksum: a kill leaves the old one or the new one, and
//! anything else is refused, since a node that forgot a term could claim it again. A missing note
//! is refused, too: the very first incarnation of a node writes one that says that there is no
//! term yet.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use weft_core::checksum::crc32c;
use weft_core::dirnet::Term;
use weft_core::ids::{Incarnation, Rank};
use weft_core::recovery::{VOTER_LEN, Voter};

use super::NodeError;
use super::incarnation::Lives;
use crate::regular_file;

const RECORD_LEN: usize = 12;

/// No term was known yet.
const NO_TERM: Term = Term { epoch: 0, claimant: Rank(0) };

/// Opens the file at `path`, which may be absent, for another process.
pub(super) fn open(path: &Path) -> Result<File, NodeError> {
    regular_file::update(path).map_err(|error| NodeError::Kept { path: path.to_owned(), error })
}

/// Opens the note at `path` for [`KeptTerm::adopt`] in another process, and checks that it is
/// whole.
pub(super) fn open_term(path: &Path, lives: Lives) -> Result<File, NodeError> {
    let file = open(path)?;
    let looked = file.metadata().and_then(|metadata| match (metadata.len(), lives) {
        (0, Lives::None) => file.write_all_at(&encode(NO_TERM), 0),
        _ => read(&file).map(drop),
    });
    looked.map_err(|error| NodeError::Kept { path: path.to_owned(), error })?;
    Ok(file)
}

/// The path of an open file, for people.
pub(super) fn path_of(file: &File) -> PathBuf {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::fs::read_link(link).unwrap_or_default()
}

/// The note of the last term.
#[derive(Debug)]
pub(super) struct KeptTerm {
    file: File,
}

impl KeptTerm {
    /// Takes over the open file, and returns its term.
    pub(super) fn adopt(fd: OwnedFd) -> Result<(Self, Option<Term>), NodeError> {
        let file = File::from(fd);
        let term = read(&file).map_err(|error| NodeError::kept(&file, error))?;
        Ok((Self { file }, term))
    }

    /// Saves `term`.
    pub(super) fn keep(&self, term: Term) -> Result<(), NodeError> {
        let kept = self.file.write_all_at(&encode(term), 0);
        kept.map_err(|error| NodeError::kept(&self.file, error))
    }
}

/// Opens the note of votes at `path` for [`KeptVotes::adopt`] in another process, and checks that
/// it is whole: a node that forgot what it has accepted could accept something else (RL-10).
pub(super) fn open_votes(path: &Path, lives: Lives) -> Result<File, NodeError> {
    let file = open(path)?;
    let looked = file.metadata().and_then(|metadata| match (metadata.len(), lives) {
        (0, Lives::None) => file.write_all_at(&Voter::default().save(Incarnation(0)), 0),
        _ => read_voter(&file, Incarnation(0)).map(drop),
    });
    looked.map_err(|error| NodeError::Kept { path: path.to_owned(), error })?;
    Ok(file)
}

/// The note of what the node has voted and accepted.
#[derive(Debug)]
pub(super) struct KeptVotes {
    file: File,
    boot: Incarnation,
}

impl KeptVotes {
    /// Takes over the open file for this boot of the node, and returns what it holds.
    pub(super) fn adopt(fd: OwnedFd, boot: Incarnation) -> Result<(Self, Voter), NodeError> {
        let file = File::from(fd);
        let voter = read_voter(&file, boot).map_err(|error| NodeError::kept(&file, error))?;
        Ok((Self { file, boot }, voter))
    }

    /// Saves what `voter` holds.
    pub(super) fn keep(&self, voter: &Voter) -> Result<(), NodeError> {
        let kept = self.file.write_all_at(&voter.save(self.boot), 0);
        kept.map_err(|error| NodeError::kept(&self.file, error))
    }
}

fn read_voter(file: &File, boot: Incarnation) -> io::Result<Voter> {
    if file.metadata()?.len() != VOTER_LEN as u64 {
        return Err(damaged());
    }
    let mut record = [0; VOTER_LEN];
    file.read_exact_at(&mut record, 0)?;
    Voter::restore(&record, boot).ok_or_else(damaged)
}

/// The term in the note, if one was known.
fn read(file: &File) -> io::Result<Option<Term>> {
    if file.metadata()?.len() != RECORD_LEN as u64 {
        return Err(damaged());
    }
    let mut record = [0; RECORD_LEN];
    // At a fixed offset, not where an earlier component stopped reading.
    file.read_exact_at(&mut record, 0)?;
    Ok(Some(decode(record)?).filter(|term| *term != NO_TERM))
}

fn encode(term: Term) -> [u8; RECORD_LEN] {
    let mut record = [0; RECORD_LEN];
    record[..4].copy_from_slice(&term.epoch.to_le_bytes());
    record[4..6].copy_from_slice(&term.claimant.0.to_le_bytes());
    let crc = crc32c(&record[..8]);
    record[8..].copy_from_slice(&crc.to_le_bytes());
    record
}

fn decode(record: [u8; RECORD_LEN]) -> io::Result<Term> {
    let [a, b, c, d, low, high, _, _, ..] = record;
    let term = Term {
        epoch: u32::from_le_bytes([a, b, c, d]),
        claimant: Rank(u16::from_le_bytes([low, high])),
    };
    if encode(term) == record { Ok(term) } else { Err(damaged()) }
}

fn damaged() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "its content is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Explain;
    use crate::scratch::Scratch;

    const TERM: Term = Term { epoch: 7, claimant: Rank(300) };

    #[test]
    fn a_term_outlives_whoever_kept_it() {
        let scratch = Scratch::new();
        let path = scratch.path().join("term");
        let file = open_term(&path, Lives::None).unwrap();
        let (first, none) = KeptTerm::adopt(file.into()).unwrap();
        assert_eq!(none, None);
        first.keep(Term { epoch: 6, claimant: Rank(1) }).unwrap();
        first.keep(TERM).unwrap();
        drop(first);
        let file = open_term(&path, Lives::Some).unwrap();
        for _ in 0..2 {
            let (_, kept) = KeptTerm::adopt(file.try_clone().unwrap().into()).unwrap();
            assert_eq!(kept, Some(TERM));
        }
    }

    #[test]
    fn a_damaged_note_is_refused() {
        let scratch = Scratch::new();
        let path = scratch.path().join("term");
        let is_refused = || {
            let refused = open_term(&path, Lives::Some);
            matches!(refused, Err(NodeError::Kept { path: reported, error })
                if reported == path && error.kind() == ErrorKind::InvalidData)
        };
        for at in 0..RECORD_LEN {
            let mut record = encode(TERM);
            record[at] ^= 1;
            std::fs::write(&path, record).unwrap();
            assert!(is_refused(), "{at}");
        }
        std::fs::write(&path, [0; RECORD_LEN - 1]).unwrap();
        assert!(is_refused());
    }

    #[test]
    fn a_note_that_is_gone_is_refused_but_for_the_very_first_life() {
        let scratch = Scratch::new();
        let path = scratch.path().join("term");
        assert!(open_term(&path, Lives::Some).is_err());
        assert!(open_term(&path, Lives::None).is_ok());
        assert!(open_term(&path, Lives::Some).is_ok(), "it says that no term is known");
    }

    #[test]
    fn what_is_no_regular_file_is_refused_by_name() {
        let scratch = Scratch::new();
        let path = scratch.path().join("term");
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        for lives in [Lives::None, Lives::Some] {
            let refused = open_term(&path, lives).unwrap_err();
            let (reported, cure) = (refused.to_string(), refused.cure());
            assert!(reported.contains("term: it is a symbolic link"), "{reported}");
            assert!(cure.starts_with("remove "), "{cure}");
        }
    }

    #[test]
    fn a_file_is_named() {
        let scratch = Scratch::new();
        let path = scratch.path().join("term");
        assert_eq!(path_of(&open(&path).unwrap()), path.canonicalize().unwrap());
    }
}
