//! `weft watch --exec`: a program for each event, one at a time.
//!
//! ```text
//!   events ─▶ [ WAITING_MAX ] ─▶ thread ─▶ PROGRAM, at most TIMEOUT each
//! ```
//!
//! A program that fails or takes too long is reported, and the next event gets its own. An event
//! that finds no room is counted and reported; the watcher does not wait for a program.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::cli::failure::Failure;
use weft::client::WatchEvent;
use weft::explain::Code;
use weft::process::{Liveness, Pidfd, start_thread};

/// The most events that wait for the program.
const WAITING_MAX: usize = 64;
/// How long the program may take for one event.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A program that is run for each event.
pub(super) struct Hook {
    events: SyncSender<WatchEvent>,
    thread: JoinHandle<u64>,
    /// How many events found no room.
    refused: u64,
}

impl Hook {
    /// Takes events for the program at `path`, which must be executable.
    pub(super) fn start(path: &Path) -> Result<Self, Failure> {
        rustix::fs::access(path, rustix::fs::Access::EXEC_OK).map_err(|errno| {
            let cause = format!("--exec {}: {errno}", path.display());
            Failure::of(Code::Usage, cause, "give the path of a file that is executable")
        })?;
        let (events, waiting) = sync_channel(WAITING_MAX);
        let path = path.to_owned();
        let thread = start_thread("weft-exec", move || serve(&path, &waiting));
        let thread = thread.map_err(Failure::new)?;
        Ok(Self { events, thread, refused: 0 })
    }

    /// Hands an event to the program when its turn comes.
    pub(super) fn offer(&mut self, event: &WatchEvent) {
        if let Err(TrySendError::Full(_)) = self.events.try_send(event.clone()) {
            self.refused += 1;
            tracing::error!(count = self.refused, "the program of --exec is slow: events are lost");
        }
    }

    /// Waits for what is left; an error if any event had no success.
    pub(super) fn end(self) -> Result<(), Failure> {
        let Self { events, thread, refused } = self;
        drop(events);
        let failed = thread.join().unwrap_or(1);
        if failed + refused == 0 {
            return Ok(());
        }
        let cause = format!("--exec: {failed} runs failed, and {refused} events found no room");
        Err(Failure::of(Code::Internal, cause, "read what the program printed on standard error"))
    }
}

/// Runs the program for each event; returns how many runs failed.
fn serve(path: &Path, events: &Receiver<WatchEvent>) -> u64 {
    let mut failed = 0;
    for event in events {
        if let Err(cause) = run(path, &event) {
            failed += 1;
            tracing::error!(program = %path.display(), cause, "--exec");
        }
    }
    failed
}

fn run(path: &Path, event: &WatchEvent) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let json = serde_json::to_vec(event).map_err(|error| error.to_string())?;
    let optional = |value: Option<String>| value.unwrap_or_default();
    let mut child = Command::new(path)
        .env("WEFT_EVENT", super::name_of(event.event))
        .env("WEFT_VIEW", event.view.to_string())
        .env("WEFT_TERM", &event.term)
        .env("WEFT_RANK", optional(event.rank.map(|rank| rank.to_string())))
        .env("WEFT_INCARNATION", optional(event.incarnation.clone()))
        .env("WEFT_VERDICT", optional(event.verdict.clone()))
        .stdin(Stdio::piped())
        .spawn()
        .map_err(text)?;
    // An event is shorter than a pipe, so this does not wait; a program may leave it unread.
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(&json);
    }
    let pidfd = Pidfd::from_child(&child).map_err(|error| error.to_string())?;
    let is_late = pidfd.wait_dead(TIMEOUT).is_ok_and(|it| it == Liveness::Alive);
    if is_late {
        // It fails only for a process that is dead already.
        let _ = pidfd.kill();
    }
    let status = child.wait().map_err(text)?;
    match status.success() {
        _ if is_late => Err(format!("killed: it took longer than {} s", TIMEOUT.as_secs())),
        true => Ok(()),
        false => Err(status.to_string()),
    }
}
