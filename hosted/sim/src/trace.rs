//! The trace of a run: the same for the same seed on every machine.

use std::fmt::Write;

/// The lines of a run, kept only on request.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    lines: Option<String>,
}

impl Trace {
    /// Keeps nothing.
    #[must_use]
    pub const fn off() -> Self {
        Self { lines: None }
    }

    /// Keeps every line.
    #[must_use]
    pub const fn on() -> Self {
        Self { lines: Some(String::new()) }
    }

    /// Adds what `line` says, under the time `now` in nanoseconds.
    pub(super) fn note(&mut self, now: u64, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            // Writing to a string does not fail.
            let _ = writeln!(lines, "{:>9}.{:03} us  {}", now / 1_000, now % 1_000, line());
        }
    }

    /// The lines so far; nothing is kept of them.
    pub fn take(&mut self) -> String {
        self.lines.as_mut().map(std::mem::take).unwrap_or_default()
    }
}
