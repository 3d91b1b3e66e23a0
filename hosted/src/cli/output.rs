//! Text for people or JSON for scripts.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

/// Where results go, and in which form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    json: bool,
}

impl Output {
    pub(super) const fn new(json: bool) -> Self {
        Self { json }
    }

    pub(super) const fn is_json(self) -> bool {
        self.json
    }

    /// The result: `object` as the last line, or `text` for people.
    pub(super) fn finish(self, object: &impl Serialize, text: &str) {
        if self.json {
            match serde_json::to_string(object) {
                Ok(line) => write_out(&format!("{line}\n")),
                Err(error) => tracing::error!(%error, "the result cannot be written as JSON"),
            }
        } else {
            write_out(text);
        }
    }

    /// A line on the way to the result; people only.
    pub(super) fn say(self, line: &str) {
        if !self.json {
            write_out(&format!("{line}\n"));
        }
    }

    /// A progress bar over `len` steps, on a terminal only.
    pub(super) fn progress(self, len: u64, what: &'static str) -> ProgressBar {
        let target = if self.json || !stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let style = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} {eta}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(len), target).with_style(style);
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }
}

/// Writes to standard output. A reader that has gone away, as `head` does, ends nothing.
pub(super) fn write_out(text: &str) {
    let mut out = stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
