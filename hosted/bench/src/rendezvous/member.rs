//! One member: its endpoint with a rendezvous, as the source or as the destination of all values.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use weft_core::endpoint::Plan;
use weft_core::fabric::{Fabric, Layout, Memory};
use weft_core::ids::Peer;
use weft_core::rendezvous::{
    Adapter, Digest, Draft, Dtype, Expect, Key, LEAVES_MAX, PartSizes, Path, Place, Received,
    RendezvousConfig, RendezvousEvent, RendezvousSizes, RequestId, Shape,
};
use weft_core::time::Instant;

use super::{INLINE, MEGABYTE, PARTS, TensorWhat, values};
use crate::cell::Cell;
use crate::crew::{INCARNATION, meet, take_seat};
use crate::error::BenchError;
use crate::figure::Samples;
use crate::seat::BenchSeat;
use weft::clock::now_ns;
use weft::shm::{NodeMemory, OwnMemory, ShmFabric, Wait};

const SOURCE: Peer = Peer(0);
const DESTINATION: Peer = Peer(1);
const PATIENCE: Duration = Duration::from_secs(30);
/// Requests in the table of `posted`.
const POSTED: usize = 1024;
const HOPS: usize = 2_000;

/// One row: what is done so many times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) what: TensorWhat,
    pub(super) bytes: usize,
    times: usize,
}

impl Work {
    pub(super) fn all(bytes: impl Iterator<Item = usize>) -> Vec<Self> {
        let hop = Self { what: TensorWhat::Hop, bytes: 8, times: HOPS };
        let inline = Self { what: TensorWhat::Inline, bytes: INLINE, times: HOPS };
        let each = bytes.map(|bytes| {
            let what = if bytes <= MEGABYTE { TensorWhat::Read } else { TensorWhat::Parts };
            Self { what, bytes, times: values(bytes) }
        });
        [hop, inline].into_iter().chain(each).collect()
    }

    pub(super) fn each(what: TensorWhat, bytes: impl Iterator<Item = usize>) -> Vec<Self> {
        let whole = bytes.filter(|bytes| *bytes <= MEGABYTE);
        whole.map(|bytes| Self { what, bytes, times: values(bytes) }).collect()
    }

    /// Values that are written, and receives that are cancelled while memory as long is lent.
    pub(super) fn written(bytes: impl Iterator<Item = usize>) -> Vec<Self> {
        let cancel = |work: Self| Self { what: TensorWhat::Cancel, ..work };
        let written = Self::each(TensorWhat::Write, bytes);
        written.into_iter().flat_map(|work| [work, cancel(work)]).collect()
    }

    const fn parts(self) -> u32 {
        if matches!(self.what, TensorWhat::Parts) { PARTS } else { 1 }
    }

    /// Whether the value is sent before it is asked for.
    const fn is_sent_first(self) -> bool {
        matches!(self.what, TensorWhat::Parts)
    }
}

/// What the members show each other.
#[derive(Debug, Default)]
pub(super) struct MeetingBoard {
    /// When the value of this number was sent.
    sent_ns: AtomicU64,
    /// Values that are sent before they are asked for, and cancels that are over.
    stored: AtomicU64,
    over: AtomicBool,
}

impl MeetingBoard {
    /// Releases the other member when this one has failed.
    pub(super) fn guard<T>(&self, ended: Result<T, BenchError>) -> Result<T, BenchError> {
        if ended.is_err() {
            self.over.store(true, Ordering::Release);
        }
        ended
    }
}

pub(super) struct MeetingMember {
    seat: BenchSeat,
    key: Key,
    /// The number of the value, which is its step.
    step: i64,
}

fn plan_of(longest: usize, (path, digest): (Path, Digest)) -> Result<Plan, BenchError> {
    let refused = |error: &dyn std::fmt::Display| BenchError::Plan(error.to_string());
    // Twice the longest, so that the next is written while one is read.
    let pool = (2 * longest.next_power_of_two()).max(MEGABYTE) as u32;
    let leaf_len = pool.div_ceil(LEAVES_MAX).next_power_of_two().max(4096);
    let sizes = RendezvousSizes {
        peers: 2,
        slots: 64,
        leaf_len,
        offer_leaves: pool / leaf_len,
        landing_leaves: pool / leaf_len,
        inline: INLINE as u16,
        piece_len: MEGABYTE as u32,
        digest,
        path,
        parts: PartSizes::NONE,
        lane_slots: 64,
    };
    let config = RendezvousConfig::new(sizes).map_err(|error| refused(&error))?;
    let base = Cell { bytes: 8, writers: 1 }.plan()?;
    let plan = Plan::new(base.mailbox(), base.lane()).map_err(|error| refused(&error))?;
    plan.with_rendezvous(config).map_err(|error| refused(&error))
}

impl MeetingMember {
    /// Both, connected.
    pub(super) fn pair(longest: usize, form: (Path, Digest)) -> Result<(Self, Self), BenchError> {
        let plan = plan_of(longest, form)?;
        let memory = |name| NodeMemory::create(name, plan.layout());
        let (source, destination) = (memory("weft-bench-source")?, memory("weft-bench-sink")?);
        let new = |me, own, other| Self::new(&plan, me, (own, other));
        Ok((new(SOURCE, &source, &destination)?, new(DESTINATION, &destination, &source)?))
    }

    fn new(
        plan: &Plan,
        me: Peer,
        (own, theirs): (&NodeMemory, &NodeMemory),
    ) -> Result<Self, BenchError> {
        let mut seat = take_seat(plan, me, &own.grant_owner()?, Wait::Spin, Vec::new())?;
        let (config, at) = plan.rendezvous().ok_or(NO_RENDEZVOUS)?;
        let started = (INCARNATION, INCARNATION.0);
        let adapter = Box::new(Adapter::new(seat.endpoint.fabric(), config, at, started));
        let begun = seat.endpoint.begin_rendezvous(adapter);
        debug_assert!(begun.is_ok(), "no peer is admitted yet");
        let other = Peer(1 - me.0);
        meet(&mut seat, plan.layout(), other, &theirs.grant(plan.layout(), me)?, None)?;
        let key = key()?;
        Ok(Self { seat, key, step: 0 })
    }

    /// The source's part of all work.
    pub(super) fn serve(&mut self, board: &MeetingBoard, work: &[Work]) -> Result<(), BenchError> {
        for work in work {
            for _ in 0..work.times {
                self.seat.vigil.begin(PATIENCE);
                match work.what {
                    TensorWhat::Hop => self.answer_hop(board)?,
                    TensorWhat::Cancel => self.answer_cancel(board)?,
                    _ => self.send(board, *work)?,
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, board: &MeetingBoard, work: Work) -> Result<(), BenchError> {
        self.step += 1;
        let (parts, step) = (work.parts(), self.step);
        let part_len = work.bytes / parts as usize;
        let shape = Shape::new(Dtype::U8, &[(part_len * parts as usize) as u64]);
        let shape = shape.map_err(|_| NO_RENDEZVOUS)?;
        let mut drafts = Vec::new();
        for _ in 0..parts {
            let (adapter, fabric) = self.seat.endpoint.rendezvous().ok_or(NO_RENDEZVOUS)?;
            let draft = adapter.reserve(shape, part_len as u64).map_err(|_| NO_ROOM)?;
            let (at, end) = (draft.at(), part_len as u32);
            // All of it is written by this processor, as by a program that has made it.
            let chunk = [step.to_le_bytes()[0]; 4096];
            let mut done = 0;
            while done < end {
                let len = (end - done).min(4096);
                fabric.memory().copy_in(at.region, at.offset + done, &chunk[..len as usize]);
                done += len;
            }
            fabric.memory().copy_in(at.region, at.offset, &step.to_le_bytes());
            drafts.push(draft);
        }
        while !work.is_sent_first() && self.waiters()? == 0 {
            self.pass(board)?;
        }
        board.sent_ns.store(now_ns(), Ordering::Release);
        for (part, draft) in (0..).zip(drafts) {
            self.store(Place { step, part, parts }, draft)?;
        }
        if work.is_sent_first() {
            board.stored.store(step.unsigned_abs(), Ordering::Release);
        }
        let mut consumed = 0;
        while consumed < parts {
            self.pass(board)?;
            let (adapter, _) = self.seat.endpoint.rendezvous().ok_or(NO_RENDEZVOUS)?;
            while let Some(RendezvousEvent::Consumed { .. }) = adapter.poll_event() {
                consumed += 1;
            }
        }
        Ok(())
    }

    fn store(&mut self, place: Place, draft: Draft) -> Result<(), BenchError> {
        let now = self.seat.vigil.now();
        let (adapter, fabric) = self.seat.endpoint.rendezvous().ok_or(NO_RENDEZVOUS)?;
        let sent = adapter.send(fabric, now, (&self.key, place), draft);
        sent.map(drop).map_err(|_| NO_ROOM)
    }

    fn waiters(&mut self) -> Result<u16, BenchError> {
        Ok(self.seat.endpoint.rendezvous().ok_or(NO_RENDEZVOUS)?.0.used()[2])
    }

    fn answer_hop(&mut self, board: &MeetingBoard) -> Result<(), BenchError> {
        self.take(board)?;
        self.seat.put(DESTINATION, 1, &[0; 8])
    }

    fn answer_cancel(&mut self, board: &MeetingBoard) -> Result<(), BenchError> {
        self.step += 1;
        while board.stored.load(Ordering::Acquire) < self.step.unsigned_abs() {
            self.pass(board)?;
        }
        Ok(())
    }

    fn take(&mut self, board: &MeetingBoard) -> Result<(), BenchError> {
        while self.seat.take(|_| Ok(()))?.is_none() {
            self.pass(board)?;
        }
        Ok(())
    }

    /// The destination's part of all work: the samples of each.
    pub(super) fn measure(
        &mut self,
        board: &MeetingBoard,
        work: &[Work],
    ) -> Result<Vec<Samples>, BenchError> {
        let mut all = Vec::new();
        for work in work {
            let mut samples = Samples::default();
            for number in 0..work.times {
                self.seat.vigil.begin(PATIENCE);
                let span = match work.what {
                    TensorWhat::Hop => self.hop(board)?,
                    TensorWhat::Cancel => self.cancel(board)?,
                    _ => self.receive(board, *work)?,
                };
                // The first ones touch the memory.
                if number >= work.times.div_ceil(8).min(work.times - 1) {
                    samples.push(span, 1);
                }
            }
            all.push(samples);
        }
        self.finish(board)?;
        Ok(all)
    }

    /// Waits until the source can learn that the last value was received.
    fn finish(&mut self, board: &MeetingBoard) -> Result<(), BenchError> {
        self.seat.vigil.begin(PATIENCE);
        loop {
            let (adapter, _) = self.seat.endpoint.rendezvous().ok_or(NO_RENDEZVOUS)?;
            while adapter.poll_event().is_some() {}
            if adapter.used()[0] == 0 {
                return Ok(());
            }
            self.pass(board)?;
        }
    }

    fn hop(&mut self, board: &MeetingBoard) -> Result<u64, BenchError> {
        let began = now_ns();
        self.seat.put(SOURCE, 1, &[0; 8])?;
        self.take(board)?;
        Ok((now_ns() - began) / 2)
    }

    fn ask(&mut self, place: Place) -> Result<RequestId, BenchError> {
        let now = self.seat.vigil.tick();
        let how = (Expect::any(), Instant(u64::MAX));
        let (adapter, fabric) = self.seat.endpoint.rendezvous().ok_or(NO_RENDEZVOUS)?;
        adapter.receive(fabric, now, (&self.key, place), how).map_err(|_| NO_ROOM)
    }

    fn receive(&mut self, board: &MeetingBoard, work: Work) -> Result<u64, BenchError> {
        self.step += 1;
        let (step, parts) = (self.step, work.parts());
        if work.is_sent_first() {
            self.await_stored(board)?;
        }
        let asked_ns = now_ns();
        let mut open = (0..parts)
            .map(|part| self.ask(Place { step, part, parts }))
            .collect::<Result<Vec<_>, _>>()?;
        while !open.is_empty() {
            let (request, outcome) = self.next_end(board)?;
            if outcome != Received::Value {
                return Err(BenchError::OutOfStep("a value was not received"));
            }
            self.check(request, step)?;
            open.retain(|it| *it != request);
        }
        let ended = now_ns();
        let began =
            if work.is_sent_first() { asked_ns } else { board.sent_ns.load(Ordering::Acquire) };
        Ok(ended.saturating_sub(began))
    }

    /// Looks at the value where it has landed, and gives its memory back.
    fn check(&mut self, request: RequestId, step: i64) -> Result<(), BenchError> {
        let (adapter, fabric) = self.seat.endpoint.rendezvous().ok_or(NO_RENDEZVOUS)?;
        let tensor = adapter.tensor(request).ok_or(NO_RENDEZVOUS)?;
        let mut mark = [0; 8];
        fabric.memory().copy_out(tensor.at.region, tensor.at.offset, &mut mark);
        if mark != step.to_le_bytes() {
            return Err(BenchError::OutOfStep("another value was received"));
        }
        adapter.release(request).map_err(|_| NO_RENDEZVOUS)
    }

    fn next_end(&mut self, board: &MeetingBoard) -> Result<(RequestId, Received), BenchError> {
        loop {
            let (adapter, _) = self.seat.endpoint.rendezvous().ok_or(NO_RENDEZVOUS)?;
            match adapter.poll_event() {
                Some(RendezvousEvent::Ended { request, outcome }) => return Ok((request, outcome)),
                Some(_) => {}
                None => self.pass(board)?,
            }
        }
    }

    fn await_stored(&mut self, board: &MeetingBoard) -> Result<(), BenchError> {
        while board.stored.load(Ordering::Acquire) < self.step.unsigned_abs() {
            self.pass(board)?;
        }
        Ok(())
    }

    /// Cancels a receive for which the source has been lent memory and has no value: how long until
    /// that memory is returned.
    fn cancel(&mut self, board: &MeetingBoard) -> Result<u64, BenchError> {
        self.step += 1;
        let request = self.ask(Place::whole(self.step))?;
        self.pass(board)?;
        let now = self.seat.vigil.now();
        let began = now_ns();
        let (adapter, fabric) = self.seat.endpoint.rendezvous().ok_or(NO_RENDEZVOUS)?;
        adapter.cancel(fabric, now, request).map_err(|_| NO_RENDEZVOUS)?;
        if adapter.quarantined() == 0 {
            return Err(BenchError::OutOfStep("no memory was lent"));
        }
        loop {
            let (adapter, _) = self.seat.endpoint.rendezvous().ok_or(NO_RENDEZVOUS)?;
            match adapter.poll_event() {
                Some(RendezvousEvent::Returned { request: it }) if it == request => break,
                Some(_) => {}
                None => self.pass(board)?,
            }
        }
        let ended = now_ns();
        board.stored.store(self.step.unsigned_abs(), Ordering::Release);
        Ok(ended - began)
    }

    fn pass(&mut self, board: &MeetingBoard) -> Result<(), BenchError> {
        self.seat.endpoint.poll(self.seat.vigil.now());
        if board.over.load(Ordering::Relaxed) {
            return Err(BenchError::OutOfStep(OTHER_ENDED));
        }
        self.seat.vigil.idle()
    }
}

/// What one more receive costs, in a table that is filled up to its last slot.
pub(super) fn posted() -> Result<Samples, BenchError> {
    let refused = |error: &dyn std::fmt::Display| BenchError::Plan(error.to_string());
    let sizes = RendezvousSizes {
        peers: 2,
        slots: POSTED as u16,
        leaf_len: 4096,
        offer_leaves: 1,
        landing_leaves: 1,
        inline: INLINE as u16,
        piece_len: 4096,
        digest: Digest::Off,
        path: Path::Read,
        parts: PartSizes::NONE,
        lane_slots: 64,
    };
    let config = RendezvousConfig::new(sizes).map_err(|error| refused(&error))?;
    let mut layout = Layout::new(2);
    let at = config.add_regions(&mut layout).map_err(|error| refused(&error))?;
    let memory = NodeMemory::create("weft-bench-posted", &layout)?;
    let own = OwnMemory::map(&layout, &memory.grant_owner()?)?;
    let mut fabric = ShmFabric::new(DESTINATION, INCARNATION, layout, own, Wait::Spin);
    let started = (INCARNATION, INCARNATION.0);
    let mut adapter = Box::new(Adapter::<2, POSTED>::new(&fabric, config, at, started));
    let (key, mut samples) = (key()?, Samples::default());
    // The last quarter: the table is nearly full. No peer is reached, so none is sent.
    for number in 0..POSTED {
        let place = Place::whole(number as i64);
        let began = now_ns();
        let how = (Expect::any(), Instant(u64::MAX));
        let asked = adapter.receive(&mut fabric, Instant(began), (&key, place), how);
        let ended = now_ns();
        asked.map_err(|_| NO_ROOM)?;
        if number >= POSTED * 3 / 4 {
            samples.push(ended - began, 1);
        }
    }
    Ok(samples)
}

fn key() -> Result<Key, BenchError> {
    let key = Key::new((SOURCE, None), DESTINATION, ("bench", "0:0"));
    key.map_err(|error| BenchError::Plan(error.to_string()))
}

/// What a member says when the other one has failed.
pub(super) const OTHER_ENDED: &str = "the other member has ended";
const NO_RENDEZVOUS: BenchError = BenchError::OutOfStep("a plan without a rendezvous");
const NO_ROOM: BenchError = BenchError::OutOfStep("the rendezvous refused what it has room for");
