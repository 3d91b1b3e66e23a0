//! An endpoint's bare fabric, and waiting that ends.

use std::sync::Arc;
use std::time::Duration;

use rustix::thread::sched_yield;
use weft_core::fabric::{
    Access, At, Completion, CompletionFlags, Fabric, INLINE_LEN, Layout, LayoutError, Memory, Op,
    PostError, Region, RegionSpec, Work, WorkId,
};
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::time::Instant;
use weft_driver::{Config, Device, DeviceChoice, Heap, RemoteEnd, VerbsFabric};

use super::error::VerbsBenchError;
use super::subject::VerbsSubject;
use weft::clock::now_ns;

/// The one incarnation of every endpoint here.
pub(super) const INCARNATION: Incarnation = Incarnation(1);
/// The process that measures.
pub(super) const LEADER: Peer = Peer(0);
/// The other one.
pub(super) const FOLLOWER: Peer = Peer(1);

/// Written by the other endpoint.
const TARGET: Region = Region(0);
/// Where own writes come from: two messages, used in turns.
const SOURCE: Region = Region(1);
/// Added to by the other endpoint.
const WORD: At = At { region: Region(2), offset: 0 };
/// Read by the other endpoint, a pattern.
const PATTERN: Region = Region(3);
/// Where own reads go.
const INTO: Region = Region(4);

/// The word of the pattern at `offset`.
fn pattern(offset: u32) -> u64 {
    u64::from(offset).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}

fn layout() -> Result<Layout, LayoutError> {
    let mut layout = Layout::new(2);
    let peers = PeerSet::first(2);
    for (len, access) in [
        (VerbsSubject::BYTES_MAX, Access::REMOTE_WRITE),
        (2 * VerbsSubject::BYTES_MAX, Access::empty()),
        (64, Access::REMOTE_ATOMIC),
        (VerbsSubject::BYTES_MAX, Access::REMOTE_READ),
        (VerbsSubject::BYTES_MAX, Access::empty()),
    ] {
        layout.add(RegionSpec { len, access, peers })?;
    }
    Ok(layout)
}

/// Waiting that ends by a deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpinWait {
    /// Empty looks between two turns of others: few when there is one processor for both.
    yield_every: u32,
    patience: Duration,
    deadline_ns: u64,
    idle: u32,
    now: Instant,
}

impl SpinWait {
    pub(super) fn new(yield_every: u32) -> Self {
        let now = Instant(now_ns());
        Self { yield_every, patience: Duration::ZERO, deadline_ns: u64::MAX, idle: 0, now }
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
    pub(super) fn idle(&mut self) -> Result<(), VerbsBenchError> {
        self.idle = self.idle.wrapping_add(1);
        if self.idle.is_multiple_of(self.yield_every) {
            sched_yield();
            if self.tick().0 >= self.deadline_ns {
                return Err(VerbsBenchError::Stuck { patience: self.patience });
            }
        }
        std::hint::spin_loop();
        Ok(())
    }
}

/// An endpoint without any machine.
#[derive(Debug)]
pub(super) struct BareEnd {
    fabric: VerbsFabric<Heap>,
    other: Peer,
    pub(super) vigil: SpinWait,
    /// Additions that the other endpoint's word has seen from here.
    added: u64,
    message: Box<[u8]>,
}

impl BareEnd {
    pub(super) fn new(
        me: Peer,
        device: &DeviceChoice,
        vigil: SpinWait,
    ) -> Result<Self, VerbsBenchError> {
        let layout = layout().map_err(|_| VerbsBenchError::OutOfStep("no layout"))?;
        let memory = Arc::new(Heap::new(&layout));
        for offset in (0..VerbsSubject::BYTES_MAX).step_by(8) {
            memory.store(PATTERN, offset, pattern(offset));
        }
        let device = Device::open(device)?;
        let fabric = VerbsFabric::new(me, layout, device, Config::default(), memory)?;
        let other = if me == LEADER { FOLLOWER } else { LEADER };
        let message = vec![0x5a; INLINE_LEN].into();
        Ok(Self { fabric, other, vigil, added: 0, message })
    }

    /// This end, to be sent to the other endpoint.
    pub(super) fn prepare(&mut self) -> Result<Vec<u8>, VerbsBenchError> {
        Ok(self.fabric.prepare(self.other, INCARNATION)?.to_bytes())
    }

    /// Lets the other endpoint in.
    pub(super) fn open(&mut self, end: &[u8]) -> Result<(), VerbsBenchError> {
        let end = RemoteEnd::from_bytes(end).map_err(weft_driver::Error::End)?;
        self.fabric.connect(self.other, end)?;
        Ok(self.fabric.open(self.other, INCARNATION)?)
    }

    /// Runs one work to its end.
    fn run(&mut self, op: Op<'_>) -> Result<u64, VerbsBenchError> {
        self.post_when_taken(op, CompletionFlags::empty())?;
        loop {
            if let Some(done) = self.poll() {
                return Ok(done.outcome?);
            }
            self.vigil.idle()?;
        }
    }

    /// Posts a work as soon as the queue has room.
    fn post_when_taken(
        &mut self,
        op: Op<'_>,
        flags: CompletionFlags,
    ) -> Result<(), VerbsBenchError> {
        while let Err(refused) = self.post(op, flags) {
            if refused != PostError::Full {
                return Err(refused.into());
            }
            match self.poll() {
                Some(done) => drop(done.outcome?),
                None => self.vigil.idle()?,
            }
        }
        Ok(())
    }

    fn post(&mut self, op: Op<'_>, flags: CompletionFlags) -> Result<(), PostError> {
        self.fabric.post(self.other, Work { id: WorkId(0), op, flags })
    }

    fn poll(&mut self) -> Option<Completion> {
        let mut done = [Completion::NONE];
        (self.fabric.poll(self.vigil.now(), &mut done) == 1).then_some(done[0])
    }

    /// Writes a message of `bytes` bytes with this number at its end; it is there on return.
    pub(super) fn write(&mut self, bytes: u32, number: u64) -> Result<(), VerbsBenchError> {
        let (to, last) = (At { region: TARGET, offset: 0 }, bytes - 8);
        let len = bytes as usize;
        if len <= INLINE_LEN {
            let mut message = std::mem::take(&mut self.message);
            message[len - 8..len].copy_from_slice(&number.to_le_bytes());
            let done = self.run(Op::Write { to, bytes: &message[..len] });
            self.message = message;
            done?;
        } else {
            let offset = (number % 2) as u32 * VerbsSubject::BYTES_MAX;
            self.fabric.memory().store(SOURCE, offset + last, number);
            let from = At { region: SOURCE, offset };
            self.run(Op::WriteFrom { to, from, len: bytes })?;
        }
        Ok(())
    }

    /// Waits for the message of this length and number.
    pub(super) fn await_write(&mut self, bytes: u32, number: u64) -> Result<(), VerbsBenchError> {
        while self.fabric.memory().load(TARGET, bytes - 8) != number {
            self.vigil.idle()?;
        }
        Ok(())
    }

    /// Writes `count` messages as fast as the queue takes them, and then this number at the end
    /// of the last one; all is there on return.
    pub(super) fn stream(
        &mut self,
        bytes: u32,
        count: u32,
        number: u64,
    ) -> Result<(), VerbsBenchError> {
        let from = At { region: SOURCE, offset: 0 };
        let op = Op::WriteFrom { to: At { region: TARGET, offset: 0 }, from, len: bytes };
        for _ in 0..count {
            self.post_when_taken(op, CompletionFlags::QUIET)?;
        }
        let to = At { region: TARGET, offset: bytes - 8 };
        self.run(Op::Write { to, bytes: &number.to_le_bytes() })?;
        Ok(())
    }

    /// Reads `bytes` bytes of the other endpoint's pattern.
    pub(super) fn read(&mut self, bytes: u32) -> Result<(), VerbsBenchError> {
        let last = bytes - 8;
        self.fabric.memory().store(INTO, last, 0);
        let (from, into) = (At { region: PATTERN, offset: 0 }, At { region: INTO, offset: 0 });
        self.run(Op::Read { from, into, len: bytes })?;
        let (expected, found) = (pattern(last), self.fabric.memory().load(INTO, last));
        check("the last word of a read", expected, found)
    }

    /// Adds one to the other endpoint's word.
    pub(super) fn add(&mut self) -> Result<(), VerbsBenchError> {
        let old = self.run(Op::FetchAdd { at: WORD, add: 1 })?;
        check("the old value of an addition", self.added, old)?;
        self.added += 1;
        Ok(())
    }
}

pub(super) fn check(what: &'static str, expected: u64, found: u64) -> Result<(), VerbsBenchError> {
    if expected == found { Ok(()) } else { Err(VerbsBenchError::Wrong { what, expected, found }) }
}
