//! Where `weft down` calls: a socket of the launcher, so that a cluster can be ended whatever its
//! nodes are doing, and none of them is started again meanwhile.
//!
//! ```text
//!   weft down ── Call::End ──▶ door ── Event::Stop ──▶ keeper ── ends every node
//!             ◀── Ended { nodes } ──────────────────────┘
//! ```
//!
//! One such call is all that it takes, so the thread ends with it, or with the door. A connection
//! that says nothing, or anything else, ends nothing and delays no call.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::keeper::KeeperEvent;
use crate::packet::{Caller, Callers, Listener, PacketError, Socket};
use crate::process::{ProcessError, start_thread};
use crate::runtime_dir::ClusterDir;

/// How long a caller may take to receive the reply.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Callers that may be connected without a call yet, and how long each may take.
const CALLERS_MAX: usize = 16;
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long no call is accepted after one could not be.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A call.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum DoorCall {
    /// End the cluster.
    End,
}

/// The reply to a caller.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct DoorReply {
    /// So many nodes ran, and have ended.
    nodes: usize,
}

/// The open door; to be dropped once the keeper has ended.
#[derive(Debug)]
pub(super) struct Door {
    path: PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    /// Opens it at `path`: the first call becomes an event.
    pub(super) fn open(
        path: PathBuf,
        events: SyncSender<KeeperEvent>,
    ) -> Result<Self, ProcessError> {
        let refused = |error| ProcessError::Spawn(io::Error::other(error));
        let listener = Listener::bind(&path).map_err(refused)?;
        let thread = start_thread("weft-door", move || answer(listener, &events))?;
        Ok(Self { path, thread: Some(thread) })
    }
}

impl Door {
    /// Leaves it: another cluster's door may be at the path by now, and a call there would end that
    /// cluster. The thread ends with the process.
    pub(super) fn leave(mut self) {
        self.thread = None;
        self.path = PathBuf::new();
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let called = Socket::connect(&self.path, Duration::ZERO);
        // Its own call lets the thread go; refused, it has answered another call. Where the socket
        // was removed nothing can call any more: the thread ends with the process.
        if let Ok(_) | Err(PacketError::Connect { errno: Errno::CONNREFUSED, .. }) = &called {
            if let Ok(socket) = &called {
                // A thread that has answered another call meanwhile has closed this connection.
                let _ = socket.send(&DoorCall::End, &[], Duration::ZERO);
            }
            if let Some(thread) = self.thread.take() {
                let _ = thread.join();
            }
        }
    }
}

/// Waits for a call, and answers how many nodes have ended.
fn answer(listener: Listener, events: &SyncSender<KeeperEvent>) {
    let mut callers = Callers::new(listener, CALLERS_MAX, CALL_TIMEOUT);
    let socket = loop {
        match callers.next(Duration::MAX) {
            Ok(Some(Caller { socket, first: DoorCall::End, .. })) => break socket,
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "`weft down` cannot call here");
                std::thread::park_timeout(ACCEPT_AGAIN);
            }
        }
    };
    drop(callers);
    let (ended, nodes) = sync_channel(1);
    // A keeper that is gone has ended them before.
    if events.send(KeeperEvent::Stop { ended: Some(ended) }).is_ok() {
        let nodes = nodes.recv().unwrap_or(0);
        // Who called may have given up waiting.
        let _ = socket.send(&DoorReply { nodes }, &[], ANSWER_TIMEOUT);
    }
}

/// Has the launcher of a cluster end it; how many nodes it has ended, or none if there is no
/// launcher: it was killed, or the nodes were started by hand.
///
/// # Errors
/// [`PacketError`]: it does not answer within `timeout`.
pub fn call_off(dir: &ClusterDir, timeout: Duration) -> Result<Option<usize>, PacketError> {
    let Ok(path) = dir.launcher_socket() else { return Ok(None) };
    let socket = match Socket::connect(&path, timeout) {
        Ok(socket) => socket,
        Err(PacketError::Connect { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    // A launcher that is about to end by itself may have closed the connection.
    match socket.send(&DoorCall::End, &[], timeout).and_then(|()| socket.recv(timeout)) {
        Ok((DoorReply { nodes }, _)) => Ok(Some(nodes)),
        // It was about to end by itself.
        Err(PacketError::Closed) => Ok(Some(0)),
        Err(error) => Err(error),
    }
}
