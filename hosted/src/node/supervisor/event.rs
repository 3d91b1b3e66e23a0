//! The supervisor's inputs other than the messages of its clients and its component.
//!
//! ```text
//!   signals, peers, tasks ──▶ [ EVENTS ] ──┐
//!   I'm-Alive Task ─────────▶ [ ORDERS ] ──┴──▶ main thread, which a bell wakes
//! ```
//!
//! No client can fill these queues. The I'm-Alive Task has its own, and never waits for room in it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weft_core::ids::Incarnation;

use crate::bootstrap::BootstrapEvent;
use crate::node::NodeError;
use crate::node::im_alive::Order;
use crate::node::tasks::TaskRun;
use crate::packet::PacketError;
use crate::process::start_thread;

/// The most events that wait for the main thread. With more, their sources wait, each in a thread
/// of its own for which nothing else waits.
const EVENTS: usize = 1024;
/// The most orders of the I'm-Alive Task that wait: a few for each incarnation of the component.
const ORDERS: usize = 256;

/// An event for the main thread.
pub(super) enum SupervisorEvent {
    /// A signal orders the node to end.
    Stop,
    /// An event of the peers.
    Bootstrap(BootstrapEvent),
    /// The process of a task has ended.
    TaskEnded(TaskRun),
}

/// The sending end of the main thread's queues.
#[derive(Clone)]
pub(super) struct SupervisorQueues {
    events: SyncSender<SupervisorEvent>,
    orders: SyncSender<(Incarnation, Order)>,
    bell: Arc<OwnedFd>,
}

/// The main thread's end.
pub(super) struct SupervisorInbox {
    pub(super) events: Receiver<SupervisorEvent>,
    /// The orders of the I'm-Alive Task of the boot that began with this incarnation.
    pub(super) orders: Receiver<(Incarnation, Order)>,
    bell: Arc<OwnedFd>,
}

/// Makes the queues.
pub(super) fn queues() -> Result<(SupervisorQueues, SupervisorInbox), NodeError> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let unmade = |errno| PacketError::Os { call: "eventfd", errno };
    let bell = Arc::new(eventfd(0, flags).map_err(unmade)?);
    let (event_sender, events) = sync_channel(EVENTS);
    let (order_sender, orders) = sync_channel(ORDERS);
    let sender =
        SupervisorQueues { events: event_sender, orders: order_sender, bell: Arc::clone(&bell) };
    Ok((sender, SupervisorInbox { events, orders, bell }))
}

impl SupervisorQueues {
    /// Queues an event, and waits for room. Only for threads for which nothing waits.
    pub(super) fn bring(&self, event: SupervisorEvent) {
        // The main thread is gone only when the process is about to end.
        let _ = self.events.send(event);
        self.ring();
    }

    /// Queues an order, and never waits.
    pub(super) fn order(&self, boot: Incarnation, order: Order) {
        if let Err(error) = self.orders.try_send((boot, order)) {
            tracing::error!(%error, ?order, "the main thread does not take orders");
        }
        self.ring();
    }

    fn ring(&self) {
        // A bell that cannot count further is ringing already.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

impl SupervisorInbox {
    /// Silences the bell. Call it before looking at the queues.
    pub(super) fn hush(&self) -> Result<(), Errno> {
        match rustix::io::read(&self.bell, &mut [0; 8]) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}

impl AsFd for SupervisorInbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// Turns SIGINT, SIGTERM and SIGHUP into [`SupervisorEvent::Stop`].
pub(super) fn listen_for_signals(events: SupervisorQueues) -> Result<(), NodeError> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(NodeError::Signals)?;
    start_thread("weft-signals", move || {
        for _ in signals.forever() {
            events.bring(SupervisorEvent::Stop);
        }
    })?;
    Ok(())
}
