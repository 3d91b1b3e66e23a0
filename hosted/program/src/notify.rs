//! Reports to systemd, for a unit with `Type=notify`: that it runs, that it still does, that it
//! ends. Without `NOTIFY_SOCKET` nothing happens.
//!
//! ```text
//!   weft up     the nodes run ─▶ READY=1     each turn of its loop ─▶ WATCHDOG=1
//!   weft node   its supervisor answers ─▶ READY=1, and each further time ─▶ WATCHDOG=1
//! ```
//!
//! A node counts as ready before it has met others, which other hosts may start later. One that
//! hangs answers nothing, so systemd ends and restarts it.

use std::time::Duration;

use sd_notify::NotifyState;
use weft::client::Client;
use weft::clock::Deadline;
use weft::cluster::Cluster;
use weft::process::{ProcessError, start_thread};
use weft::runtime_dir::ClusterDir;

/// How long a node may take to answer.
const ANSWER: Duration = Duration::from_secs(2);
/// How often a node is asked that has not answered yet.
const START_EVERY: Duration = Duration::from_millis(100);
/// How often it is asked where systemd has set no watchdog.
const IDLE_EVERY: Duration = Duration::from_secs(10);

/// The unit runs: `status` says what.
pub(crate) fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The unit is about to end in order.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::error!(%error, "systemd cannot be notified");
    }
}

/// The watchdog of systemd, which a loop keeps quiet.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// How often it wants to hear; none without a watchdog.
    every: Option<Duration>,
    due: Deadline,
}

impl Watchdog {
    /// The watchdog of this process, if systemd has set one.
    pub(crate) fn of_unit() -> Self {
        // Twice within its time, as its manual advises.
        let every = sd_notify::watchdog_enabled().map(|within| within / 2);
        Self { every, due: Deadline::after(Duration::ZERO) }
    }

    /// The loop goes on.
    pub(crate) fn quiet(&mut self) {
        let Some(every) = self.every.filter(|_| self.due.has_passed()) else { return };
        notify(&[NotifyState::Watchdog]);
        self.due = Deadline::after(every);
    }
}

/// Notifies systemd, as long as the process lives, whenever node `rank` answers.
///
/// # Errors
/// No thread can be started.
pub(crate) fn follow(dir: ClusterDir, cluster: Cluster, rank: u16) -> Result<(), ProcessError> {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return Ok(());
    }
    start_thread("weft-notify", move || {
        let (mut watchdog, mut is_ready) = (Watchdog::of_unit(), false);
        loop {
            let client = Client::connect(&dir, &cluster, rank, Duration::ZERO);
            if client.is_ok_and(|mut client| client.status_within(ANSWER).is_ok()) {
                if !is_ready {
                    ready(&format!("node {rank} of cluster {}", cluster.name));
                    is_ready = true;
                }
                watchdog.quiet();
            }
            let every = watchdog.every.map_or(IDLE_EVERY, |every| every / 2);
            std::thread::park_timeout(if is_ready { every } else { START_EVERY });
        }
    })?;
    Ok(())
}
