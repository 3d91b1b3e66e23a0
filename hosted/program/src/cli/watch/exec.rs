//! `weft watch --exec`: a program for each event, by the queue that hooks have.
//!
//! A program that fails or takes too long is reported, and the next event gets its own. An event
//! that finds no room is counted and reported; the watcher does not wait for a program.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::cli::failure::Failure;
use weft::client::WatchEvent;
use weft::explain::Code;
use weft::node::hook::{HookQueue, WAITING_MAX};
use weft::process::find_program;

/// A program that is run for each event.
pub(super) struct Exec {
    command: Vec<String>,
    queue: HookQueue,
    failed: Arc<AtomicU64>,
    /// How many events found no room.
    missed: u64,
}

impl Exec {
    /// Takes events for the program at `path`, which may run for up to `limit` for each.
    pub(super) fn start(path: &Path, limit: Duration) -> Result<Self, Failure> {
        let usage = |cause: String| {
            let cure = "give the path of an executable file, or the name of one in PATH";
            Failure::of(Code::Usage, format!("--exec: {cause}"), cure)
        };
        let text = path.to_str().ok_or_else(|| usage("the path is not UTF-8".to_owned()))?;
        find_program(text).map_err(|error| usage(error.to_string()))?;
        let failed = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&failed);
        let program = text.to_owned();
        let queue = HookQueue::start("weft-hooks", limit, WAITING_MAX, move |event, result| {
            if let Err(failure) = result {
                count.fetch_add(1, Ordering::Relaxed);
                tracing::error!(program, event = %event.event, %failure, "--exec");
            }
        });
        let queue = queue.map_err(Failure::new)?;
        Ok(Self { command: vec![text.to_owned()], queue, failed, missed: 0 })
    }

    /// Hands an event to the program when its turn comes.
    pub(super) fn offer(&mut self, event: &WatchEvent) {
        if let Err(failure) = self.queue.offer(&self.command, event) {
            self.missed += 1;
            tracing::error!(missed = self.missed, event = %event.event, %failure, "--exec");
        }
    }

    /// Waits for what is left; an error if any event had no success.
    pub(super) fn end(self) -> Result<(), Failure> {
        let Self { queue, failed, missed, .. } = self;
        queue.end();
        let failed = failed.load(Ordering::Relaxed);
        if failed + missed == 0 {
            return Ok(());
        }
        let cause = format!("--exec: {failed} runs failed, and {missed} events found no room");
        Err(Failure::of(Code::Internal, cause, "read what was reported on standard error"))
    }
}
