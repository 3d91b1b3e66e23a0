//! What clusters of a benchmark leave when it is ended.
//!
//! ```text
//!   weft bench detect ── pipe ──▶ weft bench sweep PID   in a process group of its own
//!     └ cluster bench-PID-lan       └ at the pipe's end: waits for the last node, clears
//! ```
//!
//! The nodes die with the process that has started them, but their tasks and the directory of their
//! cluster do not, and a process that is killed clears nothing. The pipe ends with that process,
//! however it ends.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::cli::failure::Failure;
use weft::clock::Deadline;
use weft::process::ProcessError;
use weft::runtime_dir::{ClaimError, RuntimeDir};
use weft_bench::group::RIVAL_FILES;

/// How long the last node may take to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The process that clears up behind this one.
pub(super) struct Sweeper {
    child: Child,
    /// Closed by the end of this process.
    pipe: Option<ChildStdin>,
}

impl Sweeper {
    pub(super) fn start() -> Result<Self, Failure> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("weft").args(["bench", "sweep", &std::process::id().to_string()]);
        // Ctrl-C at the terminal does not reach it.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let started = command.spawn();
        let mut child = started.map_err(|error| Failure::new(ProcessError::Spawn(error)))?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // It has looked then, and says nothing.
        let _ = self.child.wait();
    }
}

/// Waits for the end of the process that has started this one, and clears up behind it.
pub(super) fn run(process: u32) -> Result<(), Failure> {
    // Nothing is written to it; an error is its end as well.
    let _ = io::stdin().read_to_end(&mut Vec::new());
    let prefix = format!("bench-{process}-");
    let dir = RuntimeDir::open().map_err(Failure::new)?;
    for (name, _) in dir.list().map_err(Failure::new)? {
        if !name.to_string().starts_with(&prefix) {
            continue;
        }
        for file in RIVAL_FILES {
            // Of a benchmark with another rival, or none, it is not there.
            let _ = fs::remove_file(dir.path().join(name.to_string()).join(file));
        }
        let deadline = Deadline::after(PATIENCE);
        loop {
            match dir.clear(&name) {
                // By nodes that are ending.
                Err(ClaimError::NameInUse { .. }) if !deadline.has_passed() => {
                    thread::park_timeout(LOOK_EVERY);
                }
                cleared => break cleared.map(drop).map_err(Failure::new)?,
            }
        }
    }
    Ok(())
}
