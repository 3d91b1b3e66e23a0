//! The processes of one cell as the owner holds them.
//!
//! The owner makes all processes' memory and hands it out, as a supervisor does for its component;
//! writers know the owner and not each other.

use std::os::fd::{AsFd, BorrowedFd};
use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;
use weft_core::fabric::{FenceError, Layout};
use weft_core::ids::{Incarnation, Peer};

use super::cell::Cell;
use super::error::BenchError;
use super::exchange::ExchangeLines;
use super::phase::{FromWriter, PATIENCE, Phase, SOCKET_FD, ToWriter};
use super::seat::{BenchSeat, Vigil};
use weft::node::PlainEndpoint;
use weft::packet::Socket;
use weft::process::{Liveness, Pidfd, Spawn, Spawned};
use weft::shm::{Bell, Grant, NodeMemory, OwnMemory, RemoteMemory, Segment, ShmFabric};
use weft::shm::{Wait, Waiter};

/// The one incarnation of every process here.
pub(super) const INCARNATION: Incarnation = Incarnation(1);
/// The owner.
pub(super) const OWNER: Peer = Peer(0);

/// How long a writer that speaks its last words may take to die.
const LAST_WORDS: Duration = Duration::from_millis(50);
/// How long a writer may take to end when its socket has closed.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Owner and writers, ready to measure.
#[derive(Debug)]
pub(super) struct Crew {
    pub(super) seat: BenchSeat,
    pub(super) lines: ExchangeLines,
    writers: Vec<CrewWriter>,
}

#[derive(Debug)]
struct CrewWriter {
    memory: NodeMemory,
    worker: Worker,
}

/// A process that takes part, as the one that has started it holds it.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) peer: Peer,
    spawned: Spawned,
    /// Closed to end the process.
    socket: Option<Socket>,
}

impl Crew {
    /// Starts the writers of `cell` and admits them.
    pub(super) fn start(cell: Cell, wait: Wait) -> Result<Self, BenchError> {
        let plan = cell.plan()?;
        let layout = plan.layout();
        let memory = NodeMemory::create("weft-bench-owner", layout)?;
        let shared = ExchangeLines::segment()?;
        let writers = (1..=cell.writers).map(|rank| CrewWriter::start(Peer(rank), layout));
        let writers = writers.collect::<Result<Vec<_>, _>>()?;
        let guarded = writers.iter().map(|writer| writer.worker.guarded());
        let guarded = guarded.collect::<Result<Vec<_>, _>>()?;
        let mut seat = take_seat(&plan, OWNER, &memory.grant_owner()?, wait, guarded)?;
        for writer in &writers {
            let word = ToWriter::Start {
                rank: writer.worker.peer.0,
                writers: cell.writers,
                bytes: cell.bytes,
                wait: wait.into(),
            };
            writer.greet(&word, layout, &memory, &shared)?;
        }
        for writer in &writers {
            writer.worker.await_ready()?;
            let grant = writer.memory.grant(layout, OWNER)?;
            let (peer, process) = writer.worker.guarded()?;
            meet(&mut seat, layout, peer, &grant, Some(process))?;
        }
        Ok(Self { seat, lines: ExchangeLines::map(shared.writable_fd())?, writers })
    }

    /// Lets the writers take part in `phase` while `measure` does the owner's part of it.
    pub(super) fn run(
        &mut self,
        phase: Phase,
        span: Duration,
        measure: impl FnOnce(&mut BenchSeat, &ExchangeLines) -> Result<(), BenchError>,
    ) -> Result<(), BenchError> {
        let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let word = ToWriter::Run { phase, millis };
        self.writers.iter().try_for_each(|writer| writer.worker.send(&word, &[]))?;
        self.seat.vigil.begin(span + PATIENCE);
        // Whatever the owner stumbled over, a writer that is dead is why.
        measure(&mut self.seat, &self.lines).map_err(|error| {
            let lost = self.writers.iter().find_map(|writer| writer.worker.lost());
            lost.unwrap_or(error)
        })
    }
}

impl CrewWriter {
    fn start(peer: Peer, layout: &Layout) -> Result<Self, BenchError> {
        let memory = NodeMemory::create(&format!("weft-bench-{peer}"), layout)?;
        Ok(Self { memory, worker: Worker::start(peer, "writer")? })
    }

    fn greet(
        &self,
        word: &ToWriter,
        layout: &Layout,
        owner: &NodeMemory,
        lines: &Segment,
    ) -> Result<(), BenchError> {
        let own = self.memory.grant_owner()?;
        let owners = owner.grant(layout, self.worker.peer)?;
        let process = Pidfd::of_self()?;
        let mut fds: Vec<BorrowedFd<'_>> = own.borrow();
        fds.extend(owners.borrow());
        fds.extend([lines.writable_fd(), process.as_fd()]);
        self.worker.send(word, &fds)
    }
}

impl Worker {
    /// Starts `weft bench COMMAND` for `peer`, with a socket to this process.
    pub(super) fn start(peer: Peer, command: &str) -> Result<Self, BenchError> {
        let (ours, theirs) = Socket::pair()?;
        let spawn = Spawn::own_program().args(["bench", command]).stdin(Stdio::null());
        let spawn = spawn.stdout(Stdio::null()).inherit(SOCKET_FD, theirs.into());
        Ok(Self { peer, spawned: spawn.start()?, socket: Some(ours) })
    }

    /// Its peer and its process, to watch while one waits for it.
    pub(super) fn guarded(&self) -> Result<(Peer, Pidfd), BenchError> {
        Ok((self.peer, self.spawned.pidfd.try_clone()?))
    }

    pub(super) fn send(
        &self,
        word: &impl Serialize,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), BenchError> {
        let Some(socket) = &self.socket else { return Ok(()) };
        socket.send(word, fds, PATIENCE).map_err(|error| self.lost().unwrap_or(error.into()))
    }

    pub(super) fn await_ready(&self) -> Result<(), BenchError> {
        let Some(socket) = &self.socket else { return Ok(()) };
        match socket.recv(PATIENCE) {
            Ok((FromWriter::Ready, _)) => Ok(()),
            Ok((FromWriter::Failed { words }, _)) => {
                Err(BenchError::WriterLost { writer: self.peer, words })
            }
            Err(error) => Err(self.lost().unwrap_or(error.into())),
        }
    }

    /// Its last words, or that it has died; nothing while it lives.
    pub(super) fn lost(&self) -> Option<BenchError> {
        let is_dead = self.spawned.pidfd.wait_dead(LAST_WORDS).ok()? == Liveness::Dead;
        let words = match self.socket.as_ref()?.try_recv() {
            Ok(Some((FromWriter::Failed { words }, _))) => words,
            Ok(Some((FromWriter::Ready, _)) | None) | Err(_) if !is_dead => return None,
            Ok(Some((FromWriter::Ready, _)) | None) | Err(_) => "it was killed".to_owned(),
        };
        Some(BenchError::WriterLost { writer: self.peer, words })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.socket = None;
        self.spawned.end(END_TIMEOUT);
    }
}

/// The endpoint of `me` over its own memory.
pub(super) fn take_seat(
    plan: &weft_core::endpoint::Plan,
    me: Peer,
    grant: &Grant,
    wait: Wait,
    guarded: Vec<(Peer, Pidfd)>,
) -> Result<BenchSeat, BenchError> {
    let own = OwnMemory::map(plan.layout(), grant)?;
    let waiter = Waiter::new(wait, Bell::open(grant.bell())?);
    let fabric = ShmFabric::new(me, INCARNATION, plan.layout().clone(), own, wait);
    let endpoint = Box::new(PlainEndpoint::new(fabric, plan, INCARNATION));
    Ok(BenchSeat::new(endpoint, Vigil::new(waiter, guarded)))
}

/// Connects the endpoint of `seat` with `peer` and lets it in.
pub(super) fn meet(
    seat: &mut BenchSeat,
    layout: &Layout,
    peer: Peer,
    grant: &Grant,
    process: Option<Pidfd>,
) -> Result<(), BenchError> {
    let memory = RemoteMemory::map(layout, seat.endpoint.me(), grant)?;
    seat.endpoint.fabric().connect(peer, memory, process);
    let admitted = seat.endpoint.admit(peer, INCARNATION);
    admitted.map_err(|_: FenceError| BenchError::OutOfStep("a process cannot be admitted"))
}
