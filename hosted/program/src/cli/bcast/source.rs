//! The input of a broadcast, cut into messages as data arrives.
//!
//! ```text
//!   the first bytes ──▶ more, as long as they are there at once ──▶ a request's worth, or the end
//!     (waited for)        └ the input pauses, a moment after the first: what there is
//! ```
//!
//! All messages of a file are full except the last. When a slow input such as a terminal or
//! `tail -f` pauses, receivers already have everything from before the pause.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, stdin};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use rustix::event::PollFlags;

use crate::cli::failure::Failure;
use crate::transfer::{Cutter, HEADER_LEN};
use weft::clock::Deadline;
use weft::explain::Code;
use weft::node::control::{MESSAGES_MAX, PAYLOAD_LEN_MAX};
use weft::process::start_thread;
use weft::readiness::{Readiness, await_events};

/// How long after its first bytes a batch waits for more.
const LINGER: Duration = Duration::from_millis(20);

/// An opened input.
pub(super) struct InputSource {
    input: File,
    /// Its length in bytes, if known.
    len: u64,
}

/// Messages of one request.
pub(super) struct Batch {
    pub(super) messages: Vec<Vec<u8>>,
    /// Whether the input ends after them.
    pub(super) is_last: bool,
}

impl InputSource {
    /// A file, or standard input without one or for `-`. A FIFO is opened once another process
    /// opens it to write, within `timeout`. It is read as it comes, however much that is.
    pub(super) fn open(file: Option<&Path>, timeout: Duration) -> Result<Self, Failure> {
        let Some(path) = file.filter(|path| path.as_os_str() != "-") else {
            let input = stdin().as_fd().try_clone_to_owned().map_err(|error| unreadable(&error))?;
            return Ok(Self { input: File::from(input), len: 0 });
        };
        let opened = open_within(path, timeout).and_then(|input| {
            let metadata = input.metadata()?;
            if metadata.is_dir() {
                return Err(ErrorKind::IsADirectory.into());
            }
            Ok(Self { input, len: metadata.len() })
        });
        opened.map_err(|error| {
            let code = match error.kind() {
                ErrorKind::NotFound => Code::InputMissing,
                _ => Code::InputUnreadable,
            };
            let cause = format!("{} cannot be read: {error}", path.display());
            let cure = match error.kind() {
                ErrorKind::TimedOut => "start a program that writes to it, or raise `--timeout`",
                _ => "name a readable file",
            };
            Failure::of(code, cause, cure)
        })
    }

    /// The length in bytes, or 0 if it is unknown.
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    /// Waits for the next bytes, or the end, and cuts them into messages of at most `message_len`
    /// bytes: as many as one request carries beside the end, or fewer if the input pauses.
    pub(super) fn read_batch(
        &mut self,
        cutter: &mut Cutter,
        message_len: usize,
    ) -> Result<Batch, Failure> {
        let part_len = message_len - HEADER_LEN;
        let mut bytes = vec![0; batch_max(message_len) * part_len];
        let (mut filled, mut is_last, mut linger) = (0, false, None);
        while filled < bytes.len() && linger.is_none_or(|until| self.has_more(until)) {
            match self.input.read(&mut bytes[filled..]) {
                Ok(0) => {
                    is_last = true;
                    break;
                }
                Ok(count) => {
                    filled += count;
                    linger.get_or_insert_with(|| Deadline::after(LINGER));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(&error)),
            }
        }
        let parts = bytes[..filled].chunks(part_len);
        Ok(Batch { messages: parts.map(|part| cutter.part(part)).collect(), is_last })
    }

    /// Whether there is input before `until`. Where poll fails, true: the read returns the error.
    fn has_more(&self, until: Deadline) -> bool {
        await_events(self.input.as_fd(), PollFlags::IN, until) != Ok(Readiness::TimedOut)
    }
}

/// Opens a file; a FIFO opens only when another process does so to write. The thread that waits for
/// that ends with the command.
fn open_within(path: &Path, timeout: Duration) -> io::Result<File> {
    if !fs::metadata(path)?.file_type().is_fifo() {
        return File::open(path);
    }
    let (sender, opened) = sync_channel(1);
    let owned = path.to_owned();
    // Without a receiver the wait was given up.
    start_thread("weft-open", move || drop(sender.send(File::open(owned))))
        .map_err(io::Error::other)?;
    let late = || io::Error::new(ErrorKind::TimedOut, "no process has opened it to write");
    opened.recv_timeout(timeout).map_err(|_| late())?
}

fn unreadable(error: &io::Error) -> Failure {
    let cause = format!("the input cannot be read: {error}");
    Failure::of(Code::InputUnreadable, cause, "check the input of `weft bcast`")
}

/// Messages of one request, besides the end; one where a request carries none with it.
const fn batch_max(message_len: usize) -> usize {
    match (PAYLOAD_LEN_MAX / message_len).saturating_sub(1) {
        0 => 1,
        fit if fit < MESSAGES_MAX - 1 => fit,
        _ => MESSAGES_MAX - 1,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeWriter, Write, pipe};
    use std::os::fd::OwnedFd;

    use super::*;
    use crate::transfer::{Joiner, Piece};

    const MESSAGE_LEN: usize = 1024;

    fn piped() -> (InputSource, PipeWriter) {
        let (reader, writer) = pipe().expect("a pipe");
        (InputSource { input: File::from(OwnedFd::from(reader)), len: 0 }, writer)
    }

    /// What the messages of a batch hold, and whether it is the last.
    fn read(source: &mut InputSource, cutter: &mut Cutter, joiner: &mut Joiner) -> (Vec<u8>, bool) {
        let batch = source.read_batch(cutter, MESSAGE_LEN).unwrap_or_else(|_| panic!("it is open"));
        assert!(batch.messages.len() <= batch_max(MESSAGE_LEN));
        let mut bytes = Vec::new();
        for message in &batch.messages {
            assert!(message.len() <= MESSAGE_LEN);
            match joiner.join(message).expect("in order") {
                Piece::Bytes(part) => bytes.extend_from_slice(part),
                other => panic!("{other:?}"),
            }
        }
        (bytes, batch.is_last)
    }

    #[test]
    fn what_was_there_when_the_input_pauses_is_a_batch() {
        let (mut source, mut writer) = piped();
        let (mut cutter, mut joiner) = Default::default();
        for line in ["a line\n", "half a li", "ne\n"] {
            writer.write_all(line.as_bytes()).expect("it is open");
            let batch = read(&mut source, &mut cutter, &mut joiner);
            assert_eq!(batch, (line.as_bytes().to_vec(), false));
        }
        drop(writer);
        assert_eq!(read(&mut source, &mut cutter, &mut joiner), (Vec::new(), true));
    }

    #[test]
    fn what_is_there_at_once_fills_batches() {
        let (mut source, mut writer) = piped();
        let (mut cutter, mut joiner) = Default::default();
        let full = batch_max(MESSAGE_LEN) * (MESSAGE_LEN - HEADER_LEN);
        let bytes: Vec<u8> = (0..full + 100).map(|at| (at % 251) as u8).collect();
        let writing = {
            let bytes = bytes.clone();
            std::thread::spawn(move || writer.write_all(&bytes))
        };
        let mut got = Vec::new();
        loop {
            let (part, is_last) = read(&mut source, &mut cutter, &mut joiner);
            got.extend(part);
            if is_last {
                break;
            }
        }
        writing.join().expect("it ran").expect("it is open");
        assert_eq!(got, bytes);
    }
}
