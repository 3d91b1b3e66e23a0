//! Watching a cluster by a descriptor, for an event loop.
//!
//! ```text
//!   weft::client::Watcher ── thread ──▶ [ QUEUE ] ──▶ next()     fileno() is readable meanwhile
//! ```
//!
//! The thread waits while the queue is full, and the node keeps what it does not ask for, within
//! its own bound. It ends with the object, within a turn.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use pyo3::prelude::*;
use rustix::event::{EventfdFlags, eventfd};
use weft::client::{ClientError, Watcher as WeftWatcher};
use weft::clock::Deadline;
use weft::cluster::ClusterName;
use weft::process::{ProcessError, start_thread};

use crate::error::{OrRaise, Raise, refused};
use crate::home::Home;
use crate::misuse::Misuse;
use crate::waiting::seconds;

/// The most events between the thread and the program.
const QUEUE: usize = 64;
/// How long the thread asks before it looks whether it is still wanted.
const TURN: Duration = Duration::from_millis(200);

type News = Result<String, ClientError>;

/// Watches a cluster. Use `weft.watch`.
#[pyclass(frozen, module = "weft")]
pub(crate) struct Watcher(Home<WatchChannel>);

struct WatchChannel {
    /// What comes, and what shows to the thread that it is wanted; none once it was closed.
    news: Mutex<Option<(Receiver<News>, Arc<()>)>>,
    notice: Arc<OwnedFd>,
}

#[pymethods]
impl Watcher {
    /// Finds the running cluster, and begins to watch it.
    #[new]
    #[pyo3(signature = (name, patience))]
    fn new(py: Python<'_>, name: &str, patience: f64) -> PyResult<Self> {
        let patience = seconds(py, patience)?;
        let name: ClusterName = name.parse().map_err(|error| refused(py, &error))?;
        let started = py.detach(|| WeftWatcher::start(&name, patience));
        let watcher = started.map_err(|error| refused(py, &error))?;
        let ((sender, news), wanted) = (sync_channel(QUEUE), Arc::new(()));
        let is_wanted = Arc::downgrade(&wanted);
        let started = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| ProcessError::Os { call: "eventfd", errno })
            .and_then(|notice| {
                let notice = Arc::new(notice);
                let out = (sender, Arc::clone(&notice), is_wanted);
                start_thread("weft-watch", move || watch(watcher, patience, &out))?;
                Ok(notice)
            });
        let notice = started.map_err(|error| refused(py, &error))?;
        Ok(Self(Home::new(WatchChannel { news: Mutex::new(Some((news, wanted))), notice })))
    }

    /// Readable while there may be an event. Do not read from it.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        Ok(self.0.get().or_raise(py)?.notice.as_raw_fd())
    }

    /// The next event, as `weft watch --json` prints it; None if there is none now.
    fn next(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let channel = self.0.get().or_raise(py)?;
        // Ahead of the look, so that an event which comes from here on is seen by the descriptor.
        let _ = rustix::io::read(&channel.notice, &mut [0; 8]);
        let news = channel.news.lock().unwrap_or_else(PoisonError::into_inner);
        match news.as_ref().map(|(news, _)| news.try_recv()) {
            Some(Ok(event)) => {
                // There may be another one behind it.
                let _ = rustix::io::write(&channel.notice, &1_u64.to_ne_bytes());
                event.map(Some).map_err(|error| refused(py, &error))
            }
            Some(Err(TryRecvError::Empty)) => Ok(None),
            Some(Err(TryRecvError::Disconnected)) | None => Err(Misuse::Closed.raise(py)),
        }
    }

    /// Ends it.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let channel = self.0.get().or_raise(py)?;
        channel.news.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(())
    }
}

/// Hands on what happens, until the object is gone, or no node has answered for `patience`.
fn watch(
    mut watcher: WeftWatcher,
    patience: Duration,
    (sender, notice, is_wanted): &(SyncSender<News>, Arc<OwnedFd>, Weak<()>),
) {
    let mut deadline = Deadline::after(patience);
    while is_wanted.strong_count() > 0 {
        let news = match watcher.next(TURN) {
            Ok(Some(event)) => Ok(serde_json::to_string(&event).unwrap_or_default()),
            Ok(None) => {
                deadline = Deadline::after(patience);
                continue;
            }
            Err(_) if !deadline.has_passed() => continue,
            Err(error) => Err(error),
        };
        let is_over = news.is_err();
        if sender.send(news).is_err() {
            return;
        }
        let _ = rustix::io::write(notice, &1_u64.to_ne_bytes());
        if is_over {
            return;
        }
        deadline = Deadline::after(patience);
    }
}
