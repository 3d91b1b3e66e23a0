//! The I'm-Alive Task of a node: a thread of its supervisor with an endpoint of its own.
//!
//! ```text
//!   frames, the component's end ───▶ thread ── frames ───▶ components of the other nodes
//!   the component's flag ───────────▶        └─ orders ──▶ the supervisor's main thread: spawn
//! ```
//!
//! The machine is core's; this is its driver: its clock, its mailbox (a bounded queue), its output
//! (the sessions between supervisors) and its input (the flag in shared memory). It shares nothing
//! with the component, which may hang, and little with the main thread, which may be slow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use weft_core::dirnet::{Alarm, Frame, ImAliveTask, Message, News, Output, Post, Spawned};
use weft_core::ids::{Incarnation, Peer, PeerSet, Rank};
use weft_core::time::Instant;

use crate::bootstrap::{Datagram, DatagramPort, DatagramSender};
use crate::clock::now_ns;
use crate::node::component::{no_frame, overseer};
use crate::node::control::Payload;
use crate::node::refusals::Refusals;
use crate::process::{ProcessError, start_thread};
use crate::shm::Flag;

/// The most frames that wait for the thread; more are dropped, as any frame may be, and counted.
const INBOX: usize = 256;

/// A frame for the thread was dropped unread.
const INBOX_FULL: &str = "inbox-full";

/// An order or a report of the task to its supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// End what is left of the component and start the one of this generation.
    Spawn { generation: u32 },
    /// The alarm was raised.
    Alarm(Alarm),
    /// A report for the operator.
    Tell(News),
}

/// Sends orders to the supervisor's main thread, and never waits for it.
pub(super) type Sink = Box<dyn Fn(Order) + Send>;

enum Input {
    Datagram { from: Rank, bytes: Vec<u8> },
    Ended,
    Alone,
    Spawned(Spawned),
}

/// The peers that an injected partition has cut off, for every transport of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Cut(Arc<AtomicU64>);

impl Cut {
    /// Moves the cut.
    pub(super) fn set(&self, peers: PeerSet) {
        self.0.store(peers.bits(), Ordering::Relaxed);
    }

    /// Whether `peer` is beyond it.
    pub(super) fn has(&self, peer: Peer) -> bool {
        self.0.load(Ordering::Relaxed) & PeerSet::only(peer).bits() != 0
    }
}

/// The handle of the thread, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct ImAlive {
    boot: Incarnation,
    inputs: SyncSender<Input>,
    refusals: Refusals,
}

struct Thread {
    task: ImAliveTask,
    flag: Flag,
    /// Its longest sleep: the component watches this thread, too.
    nap: Duration,
    datagrams: Box<dyn DatagramSender>,
    cut: Cut,
    sink: Sink,
    refusals: Refusals,
}

impl ImAlive {
    /// Starts the task of one boot of a node.
    pub(super) fn start(
        post: Post,
        flag: Flag,
        datagrams: Box<dyn DatagramSender>,
        cut: Cut,
        sink: Sink,
    ) -> Result<Self, ProcessError> {
        let (inputs, received) = sync_channel(INBOX);
        let nap = Duration::from_nanos(overseer::bound_ns(&post.profile) / 8);
        let boot = post.boot;
        let (task, refusals) = (ImAliveTask::new(post), Refusals::default());
        let mut running =
            Thread { task, flag, nap, datagrams, cut, sink, refusals: refusals.clone() };
        start_thread("weft-im-alive", move || running.run(&received))?;
        Ok(Self { boot, inputs, refusals })
    }

    /// The boot that it watches.
    pub(super) const fn boot(&self) -> Incarnation {
        self.boot
    }

    /// How many frames it has refused, by reason.
    pub(super) fn refused(&self) -> BTreeMap<String, u32> {
        self.refusals.counts()
    }

    /// Hands a frame from `from` to the thread.
    pub(super) fn handle_datagram(&self, from: Rank, bytes: Vec<u8>) {
        self.put(Input::Datagram { from, bytes });
    }

    /// Reports that the component's process has ended.
    pub(super) fn handle_ended(&self) {
        self.put(Input::Ended);
    }

    /// Reports that no component of another node runs.
    pub(super) fn handle_alone(&self) {
        self.put(Input::Alone);
    }

    /// Reports the result of a spawn.
    pub(super) fn handle_spawned(&self, spawned: Spawned) {
        self.put(Input::Spawned(spawned));
    }

    fn put(&self, input: Input) {
        if let Err(error) = self.inputs.try_send(input) {
            tracing::debug!(%error, "the I'm-Alive Task does not keep up");
            self.refusals.count(INBOX_FULL);
        }
    }
}

impl Thread {
    fn run(&mut self, inputs: &Receiver<Input>) {
        loop {
            let due = self.task.poll_timeout();
            let left = due.map(|due| Duration::from_nanos(due.0.saturating_sub(now_ns())));
            let input = inputs.recv_timeout(left.unwrap_or(self.nap).min(self.nap));
            let now = Instant(now_ns());
            self.flag.note_task();
            match input {
                Ok(Input::Datagram { from, bytes }) => self.handle_datagram(now, from, &bytes),
                Ok(Input::Ended) => self.task.handle_ended(now),
                Ok(Input::Alone) => self.task.handle_alone(),
                Ok(Input::Spawned(spawned)) => self.task.handle_spawned(now, spawned),
                Err(RecvTimeoutError::Timeout) => {
                    if due.is_some_and(|due| due <= now) {
                        self.task.handle_timeout(now, self.flag.load());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while let Some(output) = self.task.poll_output() {
                self.carry_out(output);
            }
        }
    }

    fn handle_datagram(&mut self, now: Instant, from: Rank, bytes: &[u8]) {
        let frame = match Frame::decode(bytes) {
            Ok(frame) => frame,
            Err(error) => {
                tracing::debug!(%error, from = from.0, "no frame");
                return self.refusals.count(no_frame(error));
            }
        };
        if let Err(reason) = self.task.handle_message(now, from, &frame, self.flag.load()) {
            let message = frame.message.name();
            tracing::debug!(%reason, from = from.0, message, "the I'm-Alive Task refuses a frame");
            self.refusals.count(reason.name());
        }
    }

    fn carry_out(&self, output: Output) {
        match output {
            Output::Send { to, seat: _, frame } => {
                // The frames first: no other thread of this process delays an alarm.
                let bytes = Payload(frame.encode().to_vec());
                let datagram = Datagram { to: DatagramPort::Component, bytes };
                for rank in to.iter().filter(|rank| !self.cut.has(Peer(rank.0))) {
                    self.datagrams.send(Peer(rank.0), &datagram);
                }
                if let Message::Teif { alarm, .. } = frame.message {
                    (self.sink)(Order::Alarm(alarm));
                }
            }
            Output::Spawn { generation } => (self.sink)(Order::Spawn { generation }),
            Output::Tell(news) => (self.sink)(Order::Tell(news)),
            // Only a component has these outputs.
            Output::Beat { .. }
            | Output::Keep(_)
            | Output::Fence { .. }
            | Output::Reset { .. }
            | Output::Task { .. }
            | Output::Vote { .. }
            | Output::Verdict(_) => tracing::error!(?output, "no I'm-Alive Task wants this"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its inbox is never read.
    #[test]
    fn what_a_full_inbox_drops_is_counted() {
        let (inputs, _inbox) = sync_channel(2);
        let im_alive = ImAlive { boot: Incarnation(1), inputs, refusals: Refusals::default() };
        im_alive.handle_datagram(Rank(1), Vec::new());
        im_alive.handle_ended();
        assert!(im_alive.refused().is_empty());
        im_alive.handle_datagram(Rank(2), Vec::new());
        im_alive.handle_ended();
        assert_eq!(im_alive.refused().get(INBOX_FULL), Some(&2));
    }
}
