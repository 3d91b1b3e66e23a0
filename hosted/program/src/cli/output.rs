//! Text for people or JSON for scripts.
//!
//! A reader that has gone away, as `head` does, ends nothing. Any other failure to write is noted
//! and ends the program with an error once the command has done what it was to do.

use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write, stderr, stdout};
use std::iter;
use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, WeakProgressBar};
use rustix::io::Errno;
use serde::Serialize;

use super::failure::{Failure, unwritable};
use weft::process::{has_stdout, start_thread};

/// When progress is written first where there is no terminal.
const PROGRESS_FIRST: Duration = Duration::from_secs(2);
/// How often it is written after that.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// Where results go, and in which form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    json: bool,
    /// Why standard output did not take everything.
    lost: &'static OnceLock<io::Error>,
}

/// Standard output, for text on its way there.
///
/// # Errors
/// The program was started without one.
pub(super) fn standard_output() -> io::Result<StdoutLock<'static>> {
    if has_stdout() { Ok(stdout().lock()) } else { Err(Errno::BADF.into()) }
}

/// The bytes of a message as fields of a JSON object: `text`, and beside it `base64` where the text
/// is not all of them, because they are not UTF-8.
#[derive(Debug, Serialize)]
pub(super) struct Content<'a> {
    text: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl<'a> From<&'a [u8]> for Content<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let base64 = matches!(text, Cow::Owned(_)).then(|| STANDARD.encode(bytes));
        Self { text, base64 }
    }
}

/// Writes an object as a line, and does not return before it is written.
pub(super) fn write_line(out: &mut impl Write, object: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(object)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

impl Output {
    /// Made once; what it notes lives as long as the program.
    pub(super) fn new(json: bool) -> Self {
        Self { json, lost: Box::leak(Box::default()) }
    }

    pub(super) const fn is_json(self) -> bool {
        self.json
    }

    /// The result: `object` as the last line, or `text` for people.
    pub(super) fn finish(self, object: &impl Serialize, text: &str) {
        if self.json {
            match serde_json::to_string(object) {
                Ok(line) => self.write(&format!("{line}\n")),
                Err(error) => tracing::error!(%error, "the result cannot be written as JSON"),
            }
        } else {
            self.write(text);
        }
    }

    /// A line on the way to the result; people only.
    pub(super) fn say(self, line: &str) {
        if !self.json {
            self.write(&format!("{line}\n"));
        }
    }

    /// Text as it is.
    pub(super) fn write(self, text: &str) {
        let written = standard_output().and_then(|mut out| {
            out.write_all(text.as_bytes())?;
            out.flush()
        });
        match written {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                // The first error is reported.
                let _ = self.lost.set(error);
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Whether everything was written that had a reader.
    pub(super) fn check(self) -> Result<(), Failure> {
        self.lost.get().map_or(Ok(()), |error| Err(unwritable(error)))
    }

    /// A progress bar over `len` steps; where standard error is no terminal, a line now and then.
    pub(super) fn progress(self, len: u64, what: &'static str) -> ProgressBar {
        let is_terminal = stderr().is_terminal();
        let target = if self.json || !is_terminal {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let style = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} {eta}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        // What comes through a pipe has no length before its end.
        let len = (len > 0).then_some(len);
        let bar = ProgressBar::with_draw_target(len, target).with_style(style);
        bar.set_message(what);
        if !self.json && !is_terminal {
            print_progress(bar.downgrade());
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }
}

/// How long each line of progress is waited for.
fn progress_pauses() -> impl Iterator<Item = Duration> {
    iter::once(PROGRESS_FIRST).chain(iter::repeat(PROGRESS_EVERY))
}

/// Writes how far the bar is after each of the pauses, until it has finished or is gone.
fn print_progress(bar: WeakProgressBar) {
    let print = move || {
        for pause in progress_pauses() {
            std::thread::park_timeout(pause);
            let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) else { return };
            let (position, message) = (bar.position(), bar.message());
            // A reader that has gone away ends nothing.
            let _ = match bar.length() {
                Some(len) => writeln!(stderr(), "{message}: {position} of {len}"),
                None => writeln!(stderr(), "{message}: {position}"),
            };
        }
    };
    if let Err(error) = start_thread("weft-progress", print) {
        tracing::debug!(%error, "no progress is shown");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_without_a_terminal_shows_soon_and_then_rarely() {
        let seconds: Vec<_> = progress_pauses().take(3).map(|pause| pause.as_secs()).collect();
        assert_eq!(seconds, [2, 10, 10]);
    }
}
