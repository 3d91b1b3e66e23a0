//! The output of the members of a run: one pipe for each stream of each rank, and one thread that
//! writes their lines with the rank in front.
//!
//! A line that is longer than [`LINE_MAX`] is broken. A program waits while this command's own
//! output is not read, as it would at a terminal; no node does.

use std::io::{self, PipeReader, Read, Write, stderr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use super::super::output::standard_output;
use crate::cli::failure::Failure;
use weft::explain::Code;
use weft::process::start_thread;
use weft::readiness::await_any;

/// The longest line, in bytes.
const LINE_MAX: usize = 64 << 10;
/// How long a stream may be silent at the end before it counts as finished: a descendant of a
/// program may keep it open.
const LAST_WORDS: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug)]
enum To {
    Out,
    Err,
}

/// One stream of one member.
#[derive(Debug)]
struct OutputStream {
    rank: usize,
    to: To,
    pipe: Option<PipeReader>,
    /// The line that has no end yet.
    line: Vec<u8>,
}

/// The streams of all members.
#[derive(Debug)]
pub(super) struct OutputLines {
    streams: Vec<OutputStream>,
}

/// The thread that writes them; dropped once the programs have ended.
#[derive(Debug)]
pub(super) struct Writing {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl OutputLines {
    /// Pipes for so many members; the ends to write to are standard output and standard error of
    /// each.
    pub(super) fn new(nodes: usize) -> Result<(Self, Vec<[OwnedFd; 2]>), Failure> {
        let (mut streams, mut outputs) = (Vec::new(), Vec::new());
        for rank in 0..nodes {
            let mut pipe = |to| {
                let (reader, writer) = io::pipe().map_err(|error| {
                    let cause = format!("no pipe for the output of a program: {error}");
                    Failure::of(Code::Limit, cause, "raise `ulimit -n`, or use `--output DIR`")
                })?;
                streams.push(OutputStream { rank, to, pipe: Some(reader), line: Vec::new() });
                Ok::<_, Failure>(OwnedFd::from(writer))
            };
            outputs.push([pipe(To::Out)?, pipe(To::Err)?]);
        }
        Ok((Self { streams }, outputs))
    }

    /// Writes what comes from now on.
    pub(super) fn start(mut self) -> Result<Writing, Failure> {
        let ended = Arc::new(AtomicBool::new(false));
        let is_over = ended.clone();
        let thread = start_thread("weft-output", move || {
            while self.pass() || !is_over.load(Ordering::Relaxed) {}
            self.streams.iter_mut().for_each(OutputStream::end);
        });
        Ok(Writing { ended, thread: Some(thread.map_err(Failure::new)?) })
    }

    /// Waits for output and writes it; whether any stream is open and has spoken.
    fn pass(&mut self) -> bool {
        let open: Vec<&mut OutputStream> =
            self.streams.iter_mut().filter(|it| it.pipe.is_some()).collect();
        let mut fds: Vec<_> = open
            .iter()
            .filter_map(|stream| stream.pipe.as_ref())
            .map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN))
            .collect();
        if fds.is_empty() || await_any(&mut fds, LAST_WORDS).is_err() {
            std::thread::park_timeout(LAST_WORDS);
            return false;
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let spoken = open.into_iter().zip(ready).filter(|(_, ready)| *ready);
        spoken.map(|(stream, _)| stream.read()).count() > 0
    }
}

impl OutputStream {
    /// Reads what there is, and writes whole lines.
    fn read(&mut self) {
        let mut bytes = [0; 16 << 10];
        let read = self.pipe.as_mut().map(|pipe| pipe.read(&mut bytes));
        match read {
            Some(Ok(len)) if len > 0 => self.line.extend_from_slice(&bytes[..len]),
            Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Some(_) | None => return self.end(),
        }
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            self.write(end);
            self.line.drain(..=end);
        }
        if self.line.len() >= LINE_MAX {
            self.end_line();
        }
    }

    fn end(&mut self) {
        self.pipe = None;
        if !self.line.is_empty() {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        self.write(self.line.len());
        self.line.clear();
    }

    /// Writes the line up to `end`, with the rank in front.
    fn write(&self, end: usize) {
        let mut text = format!("[{}] ", self.rank).into_bytes();
        text.extend_from_slice(&self.line[..end]);
        text.push(b'\n');
        // A reader that has gone away ends nothing.
        let _ = match self.to {
            To::Out => standard_output().and_then(|mut out| {
                out.write_all(&text)?;
                out.flush()
            }),
            To::Err => stderr().write_all(&text),
        };
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of it was reported on standard error.
            let _ = thread.join();
        }
    }
}
