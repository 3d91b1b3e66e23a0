//! One member: its endpoint, and the progress that it reports to the others.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use weft_core::endpoint::Plan;
use weft_core::ids::Peer;
use weft_core::neb::BroadcastError;

use super::{BATCH, Counts, NebCell};
use crate::crew::{meet, take_seat};
use crate::error::BenchError;
use crate::parcel;
use crate::seat::BenchSeat;
use weft::clock::now_ns;
use weft::shm::{NodeMemory, Wait};

const ORIGIN: Peer = Peer(0);
/// Messages before those that are counted.
const WARM_UP: u64 = 64;
/// How long nothing may move.
const PATIENCE: Duration = Duration::from_secs(30);
/// Every so many messages, counts are shown with the delivery.
pub(super) const SHOW_EVERY: u64 = 16;

const _: () = assert!(WARM_UP.is_multiple_of(SHOW_EVERY) && SHOW_EVERY.is_multiple_of(BATCH));

/// What the members show one another, each in cache lines of its own.
#[derive(Debug)]
pub(super) struct Board {
    shown: Vec<MemberProgress>,
    pub(super) over: AtomicBool,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct MemberProgress {
    /// The last broadcast delivered, and when.
    delivered: AtomicU64,
    delivered_ns: AtomicU64,
    /// How many hops have come, and when the last one did.
    hops: AtomicU64,
    hop_ns: AtomicU64,
    operations: AtomicU64,
    progress_reads: AtomicU64,
    completions: AtomicU64,
}

impl Board {
    pub(super) fn new(members: u16) -> Self {
        let shown = (0..members).map(|_| MemberProgress::default()).collect();
        Self { shown, over: AtomicBool::new(false) }
    }

    fn of(&self, peer: Peer) -> &MemberProgress {
        &self.shown[peer.index()]
    }

    /// When the last member delivered message `seq`, once all have.
    fn delivered_by_all(&self, seq: u64) -> Option<u64> {
        let others = &self.shown[1..];
        let all = others.iter().all(|shown| shown.delivered.load(Ordering::Acquire) >= seq);
        let times = others.iter().map(|shown| shown.delivered_ns.load(Ordering::Relaxed));
        all.then(|| times.max().unwrap_or_default())
    }

    fn counts(&self) -> Counts {
        let sum = |of: fn(&MemberProgress) -> &AtomicU64| {
            self.shown.iter().map(|shown| of(shown).load(Ordering::Acquire)).sum()
        };
        Counts {
            operations: sum(|shown| &shown.operations),
            progress_reads: sum(|shown| &shown.progress_reads),
            completions: sum(|shown| &shown.completions),
        }
    }
}

/// A member of the benchmark.
pub(super) struct NebMember {
    seat: BenchSeat,
}

impl NebMember {
    /// Member `me` over `memory`, connected with all others.
    pub(super) fn new(
        me: u16,
        plan: &Plan,
        memory: &[NodeMemory],
        wait: Wait,
    ) -> Result<Self, BenchError> {
        let own = memory[usize::from(me)].grant_owner()?;
        let mut seat = take_seat(plan, Peer(me), &own, wait, Vec::new())?;
        for (peer, theirs) in (0..).map(Peer).zip(memory).filter(|(peer, _)| peer.0 != me) {
            let grant = theirs.grant(plan.layout(), Peer(me))?;
            meet(&mut seat, plan.layout(), peer, &grant, None)?;
        }
        Ok(Self { seat })
    }

    /// Takes up broadcasting with all: by now every gate is open.
    pub(super) fn begin(&mut self, members: u16) {
        let me = self.seat.endpoint.me();
        if let Some((broadcast, _)) = self.seat.endpoint.broadcast() {
            let others = (0..members).map(Peer).filter(|peer| *peer != me);
            others.for_each(|peer| broadcast.handle_admitted(peer));
        }
    }

    /// Delivers and takes until it is over.
    pub(super) fn serve(&mut self, board: &Board) -> Result<(), BenchError> {
        let shown = board.of(self.seat.endpoint.me());
        let mut hops = 0;
        self.seat.vigil.begin(PATIENCE);
        while !board.over.load(Ordering::Relaxed) {
            self.seat.poll()?;
            let delivered = self.deliver(shown)?;
            let taken = self.seat.take(|message| {
                let len = message.payload.len();
                parcel::expect(message.sender, message.payload, len, hops)
            })?;
            if taken.is_some() {
                hops += 1;
                shown.hop_ns.store(now_ns(), Ordering::Relaxed);
                shown.hops.store(hops, Ordering::Release);
            }
            if delivered || taken.is_some() {
                self.seat.vigil.begin(PATIENCE);
            } else {
                self.seat.vigil.idle()?;
            }
        }
        Ok(())
    }

    /// Takes what was broadcast; whether there was anything.
    fn deliver(&mut self, shown: &MemberProgress) -> Result<bool, BenchError> {
        let mut last = 0;
        let Some((broadcast, fabric)) = self.seat.endpoint.broadcast() else { return Ok(false) };
        while let Some(message) = broadcast.take_from(fabric, ORIGIN) {
            let (seq, len) = (message.seq, message.payload.len());
            parcel::expect(ORIGIN, message.payload, len, seq)?;
            last = seq;
        }
        if last > 0 {
            let now = now_ns();
            if last.is_multiple_of(SHOW_EVERY) {
                self.show(shown);
            }
            shown.delivered_ns.store(now, Ordering::Relaxed);
            shown.delivered.store(last, Ordering::Release);
        }
        Ok(last > 0)
    }

    fn show(&mut self, shown: &MemberProgress) {
        let Some((broadcast, _)) = self.seat.endpoint.broadcast() else { return };
        let counters = broadcast.counters();
        shown.operations.store(counters.writes + counters.reads, Ordering::Relaxed);
        shown.progress_reads.store(counters.progress_reads, Ordering::Relaxed);
        shown.completions.store(counters.completions, Ordering::Release);
    }

    /// The origin's part: everything that is measured.
    pub(super) fn measure(
        &mut self,
        board: &Board,
        bytes: usize,
        messages: u64,
    ) -> Result<NebCell, BenchError> {
        let mut cell = NebCell::default();
        let mut payload = vec![0; bytes];
        let mut before = Counts::default();
        for number in 0..WARM_UP + messages {
            if number == WARM_UP {
                before = self.counts(board);
            }
            let (began, seq) = self.broadcast(board, &mut payload)?;
            let ended = self.await_ns(board, |board| board.delivered_by_all(seq))?;
            let hop = self.hop(board, &mut payload[..bytes.min(super::HOP_LEN_MAX)], number)?;
            if number >= WARM_UP {
                cell.latency.push(ended.saturating_sub(began), 1);
                cell.hop.push(hop, 1);
            }
        }
        let after = self.counts(board);
        cell.counts[0] = after.since(before);
        let began = now_ns();
        let mut last = 0;
        for _ in 0..messages / BATCH {
            for _ in 0..BATCH {
                last = self.stage(board, &mut payload)?.1;
            }
            self.flush();
        }
        let ended = self.await_ns(board, |board| board.delivered_by_all(last))?;
        cell.rate_ns = ended.saturating_sub(began);
        cell.counts[1] = self.counts(board).since(after);
        Ok(cell)
    }

    /// Broadcasts the next message once the window takes it; when that began, and its number.
    fn broadcast(&mut self, board: &Board, payload: &mut [u8]) -> Result<(u64, u64), BenchError> {
        let staged = self.stage(board, payload)?;
        self.flush();
        Ok(staged)
    }

    /// Sends what was staged, and takes it where it came from.
    fn flush(&mut self) {
        if let Some((broadcast, fabric)) = self.seat.endpoint.broadcast() {
            broadcast.flush(fabric);
            while broadcast.take_from(fabric, ORIGIN).is_some() {}
        }
    }

    /// Stages the next message once the window takes it; when that began, and its number.
    fn stage(&mut self, board: &Board, payload: &mut [u8]) -> Result<(u64, u64), BenchError> {
        loop {
            let Some((broadcast, fabric)) = self.seat.endpoint.broadcast() else {
                return Err(BenchError::OutOfStep("a plan without a broadcast"));
            };
            let next = broadcast.standing(ORIGIN).map_or(0, |standing| standing.seen) + 1;
            parcel::write(payload, next);
            let began = now_ns();
            match broadcast.stage(fabric, 0, payload) {
                Ok(seq) => return Ok((began, seq)),
                Err(BroadcastError::WindowFull) => {
                    self.flush();
                    self.step(board)?;
                }
                Err(BroadcastError::TooLong) => {
                    return Err(BenchError::OutOfStep("a message longer than its slot"));
                }
            }
        }
    }

    /// One hop of the mailbox to the last member, from the call to its being taken.
    fn hop(&mut self, board: &Board, payload: &mut [u8], number: u64) -> Result<u64, BenchError> {
        let to = Peer(u16::try_from(board.shown.len() - 1).unwrap_or(0));
        parcel::write(payload, number);
        let began = now_ns();
        self.seat.put(to, parcel::DATA, payload)?;
        let shown = board.of(to);
        let arrived = |_: &Board| {
            let is_there = shown.hops.load(Ordering::Acquire) > number;
            is_there.then(|| shown.hop_ns.load(Ordering::Relaxed))
        };
        Ok(self.await_ns(board, arrived)?.saturating_sub(began))
    }

    fn await_ns(
        &mut self,
        board: &Board,
        mut is_there: impl FnMut(&Board) -> Option<u64>,
    ) -> Result<u64, BenchError> {
        self.seat.vigil.begin(PATIENCE);
        loop {
            if let Some(at_ns) = is_there(board) {
                return Ok(at_ns);
            }
            self.step(board)?;
        }
    }

    fn step(&mut self, board: &Board) -> Result<(), BenchError> {
        self.seat.poll()?;
        if board.over.load(Ordering::Relaxed) {
            return Err(BenchError::OutOfStep("a member has ended"));
        }
        self.seat.vigil.idle()
    }

    /// What all have counted by now: each has shown it with its last delivery.
    fn counts(&mut self, board: &Board) -> Counts {
        self.show(board.of(ORIGIN));
        board.counts()
    }
}
