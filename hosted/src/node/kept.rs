//! The last term that a node has known, remembered beyond its processes (D-8, G-19).
//!
//! It lies in the cluster's directory beside the note of the incarnation. A record is written in
//! one call at one place and carries its check: a kill leaves the old one or the new one, and
//! anything else is refused, since a node that forgot a term could claim it again.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use weft_core::checksum::crc32c;
use weft_core::dirnet::Term;
use weft_core::ids::Rank;

const RECORD_LEN: usize = 12;

/// Opens the file at `path`, which may be absent, for [`KeptTerm::adopt`] in another process.
pub(super) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// The note of the last term.
#[derive(Debug)]
pub(super) struct KeptTerm {
    file: File,
}

impl KeptTerm {
    /// Takes over the open file, and tells what is in it.
    pub(super) fn adopt(fd: OwnedFd) -> io::Result<(Self, Option<Term>)> {
        let file = File::from(fd);
        let len = file.metadata()?.len();
        let mut record = [0; RECORD_LEN];
        let term = match usize::try_from(len) {
            Ok(0) => None,
            Ok(RECORD_LEN) => {
                // By its place, not from where an earlier component has read to.
                file.read_exact_at(&mut record, 0)?;
                Some(decode(record)?)
            }
            Ok(_) | Err(_) => return Err(damaged()),
        };
        Ok((Self { file }, term))
    }

    /// Remembers `term`.
    pub(super) fn keep(&self, term: Term) -> io::Result<()> {
        self.file.write_all_at(&encode(term), 0)
    }
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
    io::Error::new(ErrorKind::InvalidData, "the note of the last term is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    const TERM: Term = Term { epoch: 7, claimant: Rank(300) };

    #[test]
    fn a_term_outlives_whoever_kept_it() {
        let scratch = Scratch::new();
        let path = scratch.path().join("term");
        let (first, none) = KeptTerm::adopt(open(&path).unwrap().into()).unwrap();
        assert_eq!(none, None);
        first.keep(Term { epoch: 6, claimant: Rank(1) }).unwrap();
        first.keep(TERM).unwrap();
        drop(first);
        let file = open(&path).unwrap();
        for _ in 0..2 {
            let (_, kept) = KeptTerm::adopt(file.try_clone().unwrap().into()).unwrap();
            assert_eq!(kept, Some(TERM));
        }
    }

    #[test]
    fn a_damaged_note_is_refused() {
        let scratch = Scratch::new();
        let path = scratch.path().join("term");
        for at in 0..RECORD_LEN {
            let mut record = encode(TERM);
            record[at] ^= 1;
            std::fs::write(&path, record).unwrap();
            assert!(KeptTerm::adopt(open(&path).unwrap().into()).is_err(), "{at}");
        }
        std::fs::write(&path, [0; RECORD_LEN - 1]).unwrap();
        assert!(KeptTerm::adopt(open(&path).unwrap().into()).is_err());
    }
}
