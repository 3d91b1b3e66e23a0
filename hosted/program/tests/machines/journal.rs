//! What a writer or a reader of messages did, line by line, in a file that outlives its machine.
//!
//! ```text
//!   draft N         it is about to send the next N messages
//!   note PUT UNKNOWN    so many of them were put, and so many after those perhaps
//!   INCARNATION FROM MESSAGE      it received this
//! ```

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use weft::node::control::PutOutcome;

use crate::ledger::{Received, Sent, Stream};

/// A journal under way. A line is one write, and on the other side when that returns.
pub(crate) struct Journal(File);

impl Journal {
    pub(crate) fn create(path: &Path) -> Self {
        let file = OpenOptions::new().append(true).create_new(true).open(path);
        Self(file.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    fn write(&mut self, line: &[u8]) {
        self.0.write_all(line).expect("the folder outside takes it");
    }

    pub(crate) fn draft(&mut self, count: usize) {
        self.write(format!("draft {count}\n").as_bytes());
    }

    pub(crate) fn note(&mut self, outcome: &PutOutcome) {
        self.write(format!("note {} {}\n", outcome.put, outcome.unknown).as_bytes());
    }

    pub(crate) fn received(&mut self, from: u16, incarnation: u16, message: &[u8]) {
        let head = format!("{incarnation} {from} ");
        self.write(&[head.as_bytes(), message, b"\n"].concat());
    }
}

/// The whole lines of a journal; none if it was never begun. Power may be cut in the middle of one.
fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8(text).expect("lines of text");
    let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    whole.map(str::to_owned).collect()
}

/// What a writer of `stream` did.
pub(crate) fn sent(path: &Path, stream: Stream) -> Sent {
    let mut sent = Sent::new(stream);
    let mut open = 0;
    let mut close = |count, outcome| {
        sent.note(count, Ok(outcome)).expect("an outcome is no error");
    };
    for line in lines(path) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| word.parse().unwrap_or_else(|_| panic!("{line}"));
        match words[..] {
            ["draft", count] => open = number(count),
            ["note", put, unknown] => {
                let (put, unknown) = (number(put), number(unknown));
                let outcome = PutOutcome { put, unknown, ..PutOutcome::default() };
                close(std::mem::take(&mut open), outcome);
            }
            _ => panic!("{}: {line}", path.display()),
        }
    }
    // Its power was cut before it heard what became of them.
    close(open, PutOutcome { unknown: open, ..PutOutcome::default() });
    sent
}

/// Adds what a reader received, as `to`.
pub(crate) fn receive(path: &Path, to: u16, received: &mut Received) {
    for line in lines(path) {
        let mut words = line.splitn(3, ' ');
        let mut number = || words.next().and_then(|it| it.parse().ok());
        let (Some(incarnation), Some(from)) = (number(), number()) else { panic!("{line}") };
        let message = words.next().unwrap_or_default();
        received.note_payload(to, (from, incarnation), message.as_bytes());
    }
}
