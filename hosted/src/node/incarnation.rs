//! Which life of the node comes next, remembered across supervisors.
//!
//! The number lies in the cluster's directory, so a node that is started again in a running
//! cluster does not repeat an incarnation its peers have fenced.

use std::fs;
use std::io;
use std::path::PathBuf;

use weft_core::ids::Incarnation;

/// Gives out the incarnations of one node.
#[derive(Debug)]
pub(super) struct Incarnations {
    file: PathBuf,
    last: Incarnation,
}

impl Incarnations {
    /// Goes on after the last one noted in `file`, which may be absent.
    pub(super) fn open(file: PathBuf) -> io::Result<Self> {
        let last = match fs::read_to_string(&file) {
            Ok(text) => text.trim().parse().map_err(|_| {
                let path = file.display();
                io::Error::new(io::ErrorKind::InvalidData, format!("{path} holds no number"))
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        Ok(Self { file, last: Incarnation(last) })
    }

    /// The next life; noted before it is used.
    pub(super) fn next(&mut self) -> io::Result<Incarnation> {
        let next = self.last.next();
        let draft = self.file.with_extension("incarnation.new");
        fs::write(&draft, format!("{next}\n"))?;
        fs::rename(&draft, &self.file)?;
        self.last = next;
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_later_supervisor_goes_on_counting() {
        let scratch = Scratch::new();
        let file = scratch.path().join("node-0.incarnation");
        let mut first = Incarnations::open(file.clone()).unwrap();
        assert_eq!(first.next().unwrap(), Incarnation(1));
        assert_eq!(first.next().unwrap(), Incarnation(2));
        let mut second = Incarnations::open(file).unwrap();
        assert_eq!(second.next().unwrap(), Incarnation(3));
    }

    #[test]
    fn a_damaged_note_is_refused() {
        let scratch = Scratch::new();
        let file = scratch.path().join("node-0.incarnation");
        fs::write(&file, "seven").unwrap();
        let error = Incarnations::open(file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
