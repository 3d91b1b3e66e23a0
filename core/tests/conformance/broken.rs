//! A loopback endpoint that does one thing wrong.
//!
//! ```text
//!   post ─ spoil_post ─▶ late ─ deliver, at poll ─▶ loopback ─ spoil_poll ─▶ ready ─▶ poll
//!              └───────────────── at once ────────────▶
//! ```

mod spoil;

use std::cell::Cell;
use std::collections::VecDeque;

use weft_core::fabric::conformance::{PEERS, layout};
use weft_core::fabric::loopback::DEPTH;
use weft_core::fabric::{
    At, Completion, CompletionFlags, Fabric, Failure, FenceError, Layout, Memory, Op, Placement,
    PostError, Posted, Region, Work,
};
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::Instant;

use crate::faults::Fault;
use crate::rig::{Polls, Sound};
use crate::works::keep;

pub(crate) struct Broken {
    inner: Sound,
    fault: Fault,
    layout: Layout,
    polls: Polls,
    /// Works that this fabric delivers when polled, with the polls of their target at the time.
    late: VecDeque<(Peer, Work<'static>, u32)>,
    ready: VecDeque<Completion>,
    staging: Vec<u8>,
    fenced: Cell<bool>,
    count: u32,
}

impl Broken {
    pub(crate) fn new(inner: Sound, fault: Fault, polls: Polls) -> Self {
        Self {
            inner,
            fault,
            layout: layout(),
            polls,
            late: VecDeque::new(),
            ready: VecDeque::new(),
            staging: Vec::new(),
            fenced: Cell::new(false),
            count: 0,
        }
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// Whether the fault keeps this work until a poll.
    fn delays(&self, peer: Peer, work: &Work<'_>) -> bool {
        match self.fault {
            Fault::ReversesBatches
            | Fault::ApartPassesAll
            | Fault::NeedsTargetToPoll
            | Fault::FencesOnPaper
            | Fault::AnswersAhead => true,
            Fault::OneStagingBuffer | Fault::EndsFirst | Fault::TearsWords => {
                matches!(work.op, Op::Write { .. })
            }
            Fault::ReadsLate | Fault::TearsReads => matches!(work.op, Op::Read { .. }),
            Fault::ApartLate => work.flags.contains(CompletionFlags::APART),
            Fault::QuietAfterSignalled => work.flags.contains(CompletionFlags::QUIET),
            Fault::OwnAtomicsInTwoSteps => peer == self.inner.me(),
            _ => false,
        }
    }

    fn delay(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        work.op.check(&self.layout, peer).map_err(PostError::Rejected)?;
        if let Op::Write { bytes, .. } = work.op {
            self.staging = bytes.to_vec();
        }
        if let Some(op) = self.part(&work.op) {
            let flags = work.flags | CompletionFlags::QUIET;
            self.inner.post(peer, Work { op, flags, ..work })?;
        }
        let work = match work.op {
            // The first step, now: what the word is. The second, at the poll: what it becomes.
            Op::FetchAdd { at, add } if self.has(Fault::OwnAtomicsInTwoSteps) => {
                let old = self.inner.memory().load(at.region, at.offset);
                let op = Op::CompareSwap { at, expected: old, new: old.wrapping_add(add) };
                Work { op, ..work }
            }
            // Its first half is read now.
            Op::Read { from, into, len } if self.has(Fault::TearsReads) => {
                let behind = |at: At| At { offset: at.offset + len.min(4), ..at };
                let op = Op::Read { from: behind(from), into: behind(into), len: len - len.min(4) };
                Work { op, ..work }
            }
            _ => work,
        };
        let polls = self.polls.get(peer.index()).map_or(0, Cell::get);
        self.late.push_back((peer, keep(work), polls));
        Ok(())
    }

    /// What is placed at once of a work of which the rest comes later.
    fn part<'a>(&self, op: &Op<'a>) -> Option<Op<'a>> {
        match *op {
            Op::Write { to, bytes } if self.has(Fault::TearsWords) => {
                Some(Op::Write { to, bytes: &bytes[..bytes.len().min(4)] })
            }
            Op::Write { to, bytes } if self.has(Fault::EndsFirst) => {
                let start = bytes.len().saturating_sub(1) & !7;
                let to = At { offset: to.offset + start as u32, ..to };
                Some(Op::Write { to, bytes: &bytes[start..] })
            }
            Op::Read { from, into, len } if self.has(Fault::TearsReads) => {
                Some(Op::Read { from, into, len: len.min(4) })
            }
            _ => None,
        }
    }

    /// Carries out what was kept.
    fn deliver(&mut self) {
        if self.has(Fault::ReversesBatches) {
            self.late.make_contiguous().reverse();
        }
        if self.has(Fault::ApartPassesAll) {
            let is_apart = |work: &Work<'_>| work.flags.contains(CompletionFlags::APART);
            self.late.make_contiguous().sort_by_key(|(_, work, _)| !is_apart(work));
        }
        if self.has(Fault::QuietAfterSignalled) {
            self.count += 1;
            if !self.count.is_multiple_of(4) {
                return;
            }
        }
        for (peer, mut work, polls) in std::mem::take(&mut self.late) {
            let helped = self.polls[peer.index()].get() > polls || peer == self.inner.me();
            if self.has(Fault::NeedsTargetToPoll) && !helped {
                self.late.push_back((peer, work, polls));
                continue;
            }
            if let (Fault::OneStagingBuffer, Op::Write { to, bytes }) = (self.fault, work.op) {
                let len = bytes.len().min(self.staging.len());
                work.op = Op::Write { to, bytes: self.staging[..len].to_vec().leak() };
            }
            if let (Fault::OwnAtomicsInTwoSteps, Op::CompareSwap { at, expected, new }) =
                (self.fault, work.op)
            {
                self.finish_in_two_steps(at, expected, new, &work);
                continue;
            }
            self.hand_over(peer, work);
        }
    }

    fn finish_in_two_steps(&mut self, at: At, expected: u64, new: u64, work: &Work<'_>) {
        self.inner.memory().store(at.region, at.offset, new);
        let outcome = Ok(expected);
        self.ready.push_back(Completion { id: work.id, peer: self.inner.me(), outcome });
    }

    /// Posts to the loopback, making room when it is full.
    fn hand_over(&mut self, peer: Peer, work: Work<'_>) {
        while let Err(error) = self.inner.post(peer, work) {
            match error {
                PostError::Full => self.reap(),
                PostError::Gone | PostError::Rejected(_) => {
                    let outcome = Err(Failure::Gone);
                    self.ready.push_back(Completion { id: work.id, peer, outcome });
                    return;
                }
            }
        }
    }

    /// Whether works that may be answered at once are, rightly or with a fault.
    fn answers(&self) -> bool {
        matches!(
            self.fault,
            Fault::None
                | Fault::AnswersAhead
                | Fault::AnswersEarly
                | Fault::AnswersAndCompletes
                | Fault::AnswersDenialsAsDone
        )
    }

    /// Takes all completions out of the loopback, spoiled.
    fn reap(&mut self) {
        let mut done = [Completion::NONE; DEPTH];
        let count = self.inner.poll(Instant(0), &mut done);
        for completion in &done[..count] {
            self.spoil_completion(*completion);
        }
    }
}

impl Fabric for Broken {
    type Memory = Self;

    fn me(&self) -> Peer {
        self.inner.me()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn placement(&self) -> Placement {
        self.inner.placement()
    }

    fn post(&mut self, mut peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        if self.has(Fault::WrapsPeers) {
            peer = Peer(peer.0 % PEERS as u16);
        }
        if self.delays(peer, &work) {
            return self.delay(peer, work);
        }
        let spoiled = self.spoil_work(work);
        self.inner.post(peer, spoiled).or_else(|error| self.spoil_refusal(peer, work, error))
    }

    fn post_now(&mut self, peer: Peer, work: Work<'_>) -> Result<Posted, PostError> {
        if !self.answers() {
            return self.post(peer, work).map(|()| Posted::Pending);
        }
        if self.has(Fault::AnswersEarly) {
            self.delay(peer, work)?;
            return Ok(Posted::Ended(Ok(0)));
        }
        self.inner.post(peer, work)?;
        self.reap();
        let Some(done) = self.ready.pop_back() else { return Ok(Posted::Pending) };
        if self.has(Fault::AnswersAndCompletes) {
            self.ready.push_back(done);
        }
        let denials_as_done = self.has(Fault::AnswersDenialsAsDone);
        Ok(Posted::Ended(if denials_as_done { done.outcome.or(Ok(0)) } else { done.outcome }))
    }

    fn poll(&mut self, _now: Instant, done: &mut [Completion]) -> usize {
        let mine = &self.polls[self.inner.me().index()];
        mine.set(mine.get() + 1);
        self.deliver();
        self.reap();
        match self.fault {
            Fault::InventsCompletions if self.ready.is_empty() && !done.is_empty() => {
                done[0] = Completion::NONE;
                return 1;
            }
            Fault::EmptySliceDrops if done.is_empty() => drop(self.ready.pop_front()),
            Fault::ShortSliceDrops if self.ready.len() > done.len() => {
                self.ready.truncate(done.len());
            }
            _ => {}
        }
        let count = done.len().min(self.ready.len());
        for (place, completion) in done.iter_mut().zip(self.ready.drain(..count)) {
            *place = completion;
        }
        count
    }

    fn memory(&self) -> &Self {
        self
    }

    fn fence(&mut self, peer: Peer) -> Result<(), FenceError> {
        match self.fault {
            Fault::FenceDoesNothing | Fault::FencesOnPaper => Ok(()),
            Fault::FencesOnce if self.fenced.replace(true) => Err(FenceError::StillReaching),
            _ => self.inner.fence(peer),
        }
    }

    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError> {
        match self.inner.admit(peer, incarnation) {
            Err(FenceError::NotReady) if self.has(Fault::AdmitsTheFenced) => Ok(()),
            admitted => admitted,
        }
    }

    fn crc32c(&self, bytes: &[u8]) -> u32 {
        let sum = self.inner.crc32c(bytes);
        // Wrong where a vectorised checksum goes wrong: in the tail.
        sum ^ u32::from(self.has(Fault::WrongChecksum) && bytes.len() % 8 == 7)
    }
}

impl Memory for Broken {
    fn load(&self, region: Region, offset: u32) -> u64 {
        let word = self.inner.memory().load(region, offset);
        if self.has(Fault::SwapsBytesOfWords) { word.swap_bytes() } else { word }
    }

    fn store(&self, region: Region, offset: u32, value: u64) {
        let value = if self.has(Fault::SwapsBytesOfWords) { value.swap_bytes() } else { value };
        self.inner.memory().store(region, offset, value);
    }

    fn copy_out(&self, region: Region, offset: u32, into: &mut [u8]) {
        self.inner.memory().copy_out(region, offset, into);
    }

    fn copy_in(&self, region: Region, offset: u32, bytes: &[u8]) {
        self.inner.memory().copy_in(region, offset, bytes);
    }
}
