//! What happens to a supervisor, and the threads that notice it.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weft_core::ids::Incarnation;

use crate::bootstrap::Tidings;
use crate::node::NodeError;
use crate::node::control::{Outcome, Refused, Reply, Request};
use crate::node::im_alive::Order;
use crate::node::link::FromComponent;
use crate::node::tasks::Run;
use crate::packet::{Listener, PacketError, Socket};
use crate::process::{Pidfd, start_thread};

/// Clients at a time: each costs a thread and two descriptors.
const CLIENTS_MAX: usize = 128;

/// Something to act on.
pub(super) enum Event {
    /// A signal asks the node to end.
    Stop,
    /// News of the peers.
    Tidings(Tidings),
    /// The component of that life said something.
    Said { incarnation: Incarnation, word: FromComponent },
    /// The component of that life has ended.
    Ended { incarnation: Incarnation },
    /// The I'm-Alive Task of the life that began with `boot` asks for something.
    Order { boot: Incarnation, order: Order },
    /// The process of a task has ended.
    TaskEnded(Run),
    /// A client has connected.
    Came { client: u64, socket: Socket },
    /// A client has left.
    Left { client: u64 },
    /// A client wants something.
    Wants { client: u64, request: Request },
    /// A client said something that is no request.
    Nonsense { client: u64, error: String },
}

/// Turns SIGINT, SIGTERM and SIGHUP into [`Event::Stop`].
pub(super) fn listen_for_signals(events: SyncSender<Event>) -> Result<(), NodeError> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(NodeError::Signals)?;
    start_thread("weft-signals", move || {
        for _ in signals.forever() {
            if events.send(Event::Stop).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

/// Accepts clients at `path` for as long as the process lives.
pub(super) fn listen_for_clients(path: &Path, events: SyncSender<Event>) -> Result<(), NodeError> {
    // A node that returns finds the socket of its former self; nobody listens there.
    let _ = std::fs::remove_file(path);
    let listener = Listener::bind(path)?;
    let connected = Arc::new(());
    start_thread("weft-door", move || {
        for client in 1.. {
            let socket = match listener.accept(Duration::MAX) {
                Ok(socket) if socket.authorize_same_user().is_ok() => socket,
                Ok(_) | Err(PacketError::TimedOut { .. }) => continue,
                Err(error) => {
                    tracing::warn!(%error, "clients cannot be accepted");
                    thread::park_timeout(Duration::from_millis(100));
                    continue;
                }
            };
            if Arc::strong_count(&connected) > CLIENTS_MAX {
                let busy = Reply { id: 0, what: Outcome::Refused(Refused::Busy) };
                // It is told in any case, by the end of the connection.
                let _ = socket.send(&busy, &[], Duration::ZERO);
                continue;
            }
            let (events, counted) = (events.clone(), Arc::clone(&connected));
            let reading = start_thread("weft-client", move || {
                read_client(client, &socket, &events);
                drop(counted);
            });
            if let Err(error) = reading {
                tracing::warn!(%error, "a client is turned away");
            }
        }
    })?;
    Ok(())
}

fn read_client(client: u64, socket: &Socket, events: &SyncSender<Event>) {
    let Ok(speaking) = socket.try_clone() else { return };
    if events.send(Event::Came { client, socket: speaking }).is_err() {
        return;
    }
    loop {
        let event = match socket.recv::<Request>(Duration::MAX) {
            Ok((request, _)) => Event::Wants { client, request },
            Err(PacketError::TimedOut { .. }) => continue,
            Err(error @ (PacketError::Decode(_) | PacketError::TruncatedData)) => {
                Event::Nonsense { client, error: error.to_string() }
            }
            Err(_) => break,
        };
        if events.send(event).is_err() {
            return;
        }
    }
    // The main thread is gone only when the process is about to end.
    let _ = events.send(Event::Left { client });
}

/// Turns what the component says, and its end, into events. The end comes last.
pub(super) fn listen_to_component(
    incarnation: Incarnation,
    link: &Socket,
    process: &Pidfd,
    events: &SyncSender<Event>,
) -> Result<(), NodeError> {
    let (link, process) = (link.try_clone()?, process.try_clone()?);
    let events = events.clone();
    start_thread("weft-link", move || {
        loop {
            match link.recv::<FromComponent>(Duration::MAX) {
                Ok((word, _)) => {
                    if events.send(Event::Said { incarnation, word }).is_err() {
                        return;
                    }
                }
                Err(PacketError::TimedOut { .. }) => {}
                Err(_) => break,
            }
        }
        // The link closes a moment before the process has ended; only its end is certain.
        while !matches!(process.wait_dead(Duration::MAX), Ok(crate::process::Liveness::Dead)) {}
        let _ = events.send(Event::Ended { incarnation });
    })?;
    Ok(())
}
