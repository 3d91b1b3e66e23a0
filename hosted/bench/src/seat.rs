//! A process's place in the benchmark: its endpoint, and its patience.
//!
//! The loop is an integrator's: take, drain events, and one step of waiting when nothing moved. At
//! each sixteenth turn the clock is read and the endpoint polled; protocol time may be that coarse.

use std::time::Duration;

use rustix::thread::sched_yield;
use weft_core::endpoint::Event;
use weft_core::ids::Peer;
use weft_core::mailbox::{Message, Receipt};
use weft_core::time::Instant;

use super::error::BenchError;
use weft::clock::now_ns;
use weft::node::PlainEndpoint;
use weft::process::Pidfd;
use weft::shm::{ShmFabric, Waiter};

/// Empty polls between two looks at the clock.
const CLOCK_EVERY: u32 = 16;
/// Looks for a message between two polls: a message needs none, but the half of a mailbox that is
/// full and what is late do.
const POLL_EVERY: u32 = 16;
/// Empty polls in a row after which even a spinner lets others run: whom it waits for may be
/// waiting for this very processor when another process has the other one.
pub(super) const YIELD_EVERY: u32 = 256;
/// Empty polls between two looks at deadline and guarded processes, which cost system calls.
const GUARD_EVERY: u32 = 4096;

/// Waiting that ends: by a deadline, or by the death of a process that is waited for.
#[derive(Debug)]
pub(super) struct Vigil {
    waiter: Waiter,
    guarded: Vec<(Peer, Pidfd)>,
    patience: Duration,
    deadline_ns: u64,
    idle: u32,
    now: Instant,
}

impl Vigil {
    pub(super) fn new(waiter: Waiter, guarded: Vec<(Peer, Pidfd)>) -> Self {
        let (patience, now) = (Duration::ZERO, Instant(now_ns()));
        Self { waiter, guarded, patience, deadline_ns: u64::MAX, idle: 0, now }
    }

    /// Waits from now on for `patience` at most.
    pub(super) fn begin(&mut self, patience: Duration) {
        self.patience = patience;
        let patience_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        self.deadline_ns = self.tick().0.saturating_add(patience_ns);
    }

    /// The time, as it was last read.
    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    /// Reads the clock.
    pub(super) fn tick(&mut self) -> Instant {
        self.now = Instant(now_ns());
        self.now
    }

    /// One step of waiting.
    pub(super) fn idle(&mut self) -> Result<(), BenchError> {
        self.waiter.idle(|| false, Duration::ZERO)?;
        self.idle = self.idle.wrapping_add(1);
        if self.idle.is_multiple_of(CLOCK_EVERY) {
            self.tick();
        }
        if self.idle.is_multiple_of(YIELD_EVERY) {
            sched_yield();
        }
        if self.idle.is_multiple_of(GUARD_EVERY) {
            self.check()?;
        }
        Ok(())
    }

    fn check(&self) -> Result<(), BenchError> {
        for (writer, process) in &self.guarded {
            if process.is_dead()? {
                return Err(BenchError::WriterLost { writer: *writer, words: String::new() });
            }
        }
        if self.now.0 >= self.deadline_ns {
            return Err(BenchError::Stuck { patience: self.patience });
        }
        Ok(())
    }
}

/// An endpoint and its loop.
#[derive(Debug)]
pub(super) struct BenchSeat {
    pub(super) endpoint: Box<PlainEndpoint<ShmFabric>>,
    pub(super) vigil: Vigil,
    /// Looks for a message so far.
    rounds: u32,
}

impl BenchSeat {
    pub(super) const fn new(endpoint: Box<PlainEndpoint<ShmFabric>>, vigil: Vigil) -> Self {
        Self { endpoint, vigil, rounds: 0 }
    }

    /// Puts one message, and returns when it is in the owner's memory. Nothing may be staged
    /// before.
    // At each place, as the calls of a loop that knows to whom it puts are.
    #[inline(always)]
    pub(super) fn put(&mut self, to: Peer, kind: u16, payload: &[u8]) -> Result<(), BenchError> {
        self.endpoint.stage(to, kind, payload)?;
        if self.endpoint.flush_now(to)? == Some(1) { Ok(()) } else { self.flush_rest(to) }
    }

    /// Polls, while no put is under way: an event is the end of a peer.
    pub(super) fn poll(&mut self) -> Result<(), BenchError> {
        self.endpoint.poll(self.vigil.now());
        self.endpoint.poll_event().map_or(Ok(()), |event| Err(BenchError::Ended(event)))
    }

    /// Puts what is staged for `to`, and returns when all of it is in the owner's memory.
    #[inline(always)]
    pub(super) fn flush(&mut self, to: Peer) -> Result<(), BenchError> {
        self.endpoint.flush_now(to)?;
        self.flush_rest(to)
    }

    /// Goes on with a flush that has put a part, or has an event. Over shared memory a flush ends
    /// when it is posted.
    #[inline(never)]
    fn flush_rest(&mut self, to: Peer) -> Result<(), BenchError> {
        loop {
            match self.endpoint.poll_event() {
                Some(Event::Put { .. }) | None => {}
                Some(Event::Full { .. }) => self.vigil.idle()?,
                Some(event) => return Err(BenchError::Ended(event)),
            }
            if self.endpoint.outbox(to)?.staged() == 0 {
                return Ok(());
            }
            self.endpoint.flush_now(to)?;
        }
    }

    /// Takes the next message, if one has landed, and releases it when `deal` has dealt with it.
    #[inline]
    pub(super) fn take<R>(
        &mut self,
        deal: impl FnOnce(&Message<'_>) -> Result<R, BenchError>,
    ) -> Result<Option<R>, BenchError> {
        let Some((dealt, receipt)) = self.hold(deal)? else { return Ok(None) };
        self.release(receipt);
        Ok(Some(dealt))
    }

    /// Releases a message that was held.
    #[inline]
    pub(super) fn release(&mut self, receipt: Receipt) {
        let released = self.endpoint.release(receipt);
        debug_assert!(released.is_ok(), "it was taken and not released");
    }

    /// As [`Self::take`], but leaves it to the caller to release the message.
    #[inline(always)]
    pub(super) fn hold<R>(
        &mut self,
        deal: impl FnOnce(&Message<'_>) -> Result<R, BenchError>,
    ) -> Result<Option<(R, Receipt)>, BenchError> {
        let Some(message) = self.endpoint.take(self.vigil.now()) else { return Ok(None) };
        let receipt = message.receipt;
        Ok(Some((deal(&message)?, receipt)))
    }

    /// Takes the next messages that came together, and releases them when `deal` has dealt with
    /// each; how many there were.
    #[inline(always)]
    pub(super) fn take_run(
        &mut self,
        mut deal: impl FnMut(&Message<'_>) -> Result<(), BenchError>,
    ) -> Result<u64, BenchError> {
        let mut dealt = Ok(());
        let run = self.endpoint.take_run(self.vigil.now(), u32::MAX, |message| {
            if dealt.is_ok()
                && let Err(error) = deal(message)
            {
                note(&mut dealt, error);
            }
        });
        dealt?;
        let Some(run) = run else { return Ok(0) };
        let released = self.endpoint.release_run(run);
        debug_assert!(released.is_ok(), "they were taken and not released");
        Ok(u64::from(run.count()))
    }

    /// Waits for the next message, which its caller releases: behind the answer, that is sooner.
    pub(super) fn await_message<R>(
        &mut self,
        mut deal: impl FnMut(&Message<'_>) -> Result<R, BenchError>,
    ) -> Result<(R, Receipt), BenchError> {
        loop {
            self.rounds = self.rounds.wrapping_add(1);
            if self.rounds.is_multiple_of(POLL_EVERY) {
                self.vigil.tick();
                self.poll()?;
            }
            if let Some(held) = self.hold(&mut deal)? {
                return Ok(held);
            }
            self.vigil.idle()?;
        }
    }
}

/// Keeps the first error of a run: apart, or what deals with each message would be too long to be
/// inlined.
#[cold]
#[inline(never)]
fn note(dealt: &mut Result<(), BenchError>, error: BenchError) {
    *dealt = Err(error);
}
