//! One member: its endpoint, and the progress that it reports to the others.

use std::time::Duration;

use weft_core::decision::Decision;
use weft_core::endpoint::Plan;
use weft_core::fabric::{Fabric, Memory};
use weft_core::group::{Chunk, Delivery, GroupId, Groups, SendError};
use weft_core::ids::{Incarnation, Peer, Term};

use super::board::GroupBoard;
use super::{GroupCell, messages, warm_up};
use crate::crew::{INCARNATION, meet, take_seat};
use crate::error::BenchError;
use crate::figure::Samples;
use crate::parcel::mark;
use crate::seat::BenchSeat;
use weft::clock::now_ns;
use weft::node::NodeGroups;
use weft::process::Pidfd;
use weft::shm::{Grant, Wait};

const ALL: GroupId = GroupId(0);
const ROOT: Peer = Peer(0);
/// How long nothing may move.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many windows long a message must be for a removal in its middle.
const RESUMED_WINDOWS: usize = 4;

/// What the receivers do with a message: its tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    InPlace,
    CopiedOut,
    /// In place; the last member stops in the middle.
    Struck,
}

impl Manner {
    const fn of(tag: u64) -> Self {
        match tag {
            1 => Self::CopiedOut,
            2 => Self::Struck,
            _ => Self::InPlace,
        }
    }
}

/// A member of the benchmark.
pub(super) struct GroupMember {
    seat: BenchSeat,
    block_len: usize,
    /// The longest message that travels with its entry.
    eager: usize,
    /// Messages that this member has sent.
    sent: u64,
    /// The bytes of the user: what the root sends, and where others copy to.
    own: Vec<u8>,
    has_removed: bool,
}

impl GroupMember {
    /// Member `me` over its own memory, connected with no other yet.
    pub(super) fn new(
        me: Peer,
        plan: &Plan,
        own: &Grant,
        wait: Wait,
        guarded: Vec<(Peer, Pidfd)>,
    ) -> Result<Self, BenchError> {
        let mut seat = take_seat(plan, me, own, wait, guarded)?;
        let (config, at) = plan.groups().ok_or(NO_GROUP)?;
        let members: Vec<_> = (0..plan.layout().peers()).map(Peer).collect();
        let fabric = seat.endpoint.fabric();
        let mut groups = Box::new(Groups::new(fabric, config, at, INCARNATION));
        let refused = |error: &dyn std::fmt::Display| BenchError::Plan(error.to_string());
        groups.open(fabric, ALL, &members).map_err(|error| refused(&error))?;
        let begun = seat.endpoint.begin_groups(groups);
        debug_assert!(begun.is_ok(), "no peer is admitted yet");
        let sizes = config.sizes();
        let (block_len, eager) = (sizes.block_len as usize, usize::from(sizes.eager));
        Ok(Self { seat, block_len, eager, sent: 0, own: Vec::new(), has_removed: false })
    }

    /// Connects with `peer`.
    pub(super) fn meet(
        &mut self,
        plan: &Plan,
        peer: Peer,
        grant: &Grant,
    ) -> Result<(), BenchError> {
        meet(&mut self.seat, plan.layout(), peer, grant, None)
    }

    pub(super) fn peer(&self) -> Peer {
        self.seat.endpoint.me()
    }

    pub(super) fn index(&self) -> usize {
        self.peer().index()
    }

    /// Receives until it is over, or until this member is struck.
    pub(super) fn serve(&mut self, board: &GroupBoard) -> Result<(), BenchError> {
        self.seat.vigil.begin(PATIENCE);
        while !board.is_over() {
            self.seat.poll()?;
            if board.is_decided() {
                self.remove(board)?;
            }
            let Some(chunk) = self.next()? else {
                self.seat.vigil.idle()?;
                continue;
            };
            let is_last_member = self.seat.endpoint.me() == board.last();
            let is_struck = is_last_member && Manner::of(chunk.tag) == Manner::Struck;
            if is_struck && chunk.offset >= chunk.message_len / 2 {
                board.note_struck();
                return Ok(());
            }
            self.receive(&chunk, board)?;
            self.seat.vigil.begin(PATIENCE);
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Chunk>, BenchError> {
        let (groups, fabric) = self.seat.endpoint.groups().ok_or(NO_GROUP)?;
        match groups.receive(fabric, ALL) {
            Some(Delivery::Chunk(chunk)) => Ok(Some(chunk)),
            None => Ok(None),
            Some(Delivery::Abandoned { .. } | Delivery::RootLost { .. }) => {
                // The last member sends nothing, and its stream ends with it.
                if self.has_removed { Ok(None) } else { Err(BenchError::OutOfStep("a lost root")) }
            }
        }
    }

    fn receive(&mut self, chunk: &Chunk, board: &GroupBoard) -> Result<(), BenchError> {
        let len = chunk.len as usize;
        let start = usize::try_from(chunk.offset).unwrap_or(usize::MAX);
        let (groups, fabric) = self.seat.endpoint.groups().ok_or(NO_GROUP)?;
        let mut head = [0; 8];
        fabric.memory().copy_out(chunk.at.region, chunk.at.offset, &mut head[..len.min(8)]);
        if len >= 8 && head != mark(chunk.seq, chunk.offset) {
            let (expected, writer) = (chunk.seq, ROOT);
            return Err(BenchError::WrongMessage { writer, expected, found: None });
        }
        if Manner::of(chunk.tag) == Manner::CopiedOut {
            // Allocated with the first message, which is not counted.
            if self.own.len() < start + len {
                self.own.resize(usize::try_from(chunk.message_len).unwrap_or(usize::MAX), 0);
            }
            let into = &mut self.own[start..start + len];
            fabric.memory().copy_out(chunk.at.region, chunk.at.offset, into);
        }
        let released = groups.release(fabric, chunk.receipt);
        debug_assert!(released.is_ok(), "it was handed out just now");
        let end = if chunk.is_last { 0 } else { chunk.offset + u64::from(chunk.len) };
        board.note_received(self.index(), end);
        if chunk.is_last {
            board.note_delivered(self.index(), chunk.seq, now_ns());
        }
        Ok(())
    }

    /// The root's part: every length in every manner.
    pub(super) fn measure_all(
        &mut self,
        board: &GroupBoard,
        cells: &mut [GroupCell],
        window: usize,
    ) -> Result<(), BenchError> {
        self.seat.vigil.begin(PATIENCE);
        while !self.is(|groups| groups.is_open(ALL))? {
            self.step(board)?;
        }
        for cell in &mut *cells {
            let (in_place, calls) = self.measure(board, cell.bytes, Manner::InPlace)?;
            let (copied_out, _) = self.measure(board, cell.bytes, Manner::CopiedOut)?;
            cell.in_place.add(in_place);
            cell.copied_out.add(copied_out);
            cell.call.add(calls);
        }
        // Last, since a member is removed by it.
        let long = cells.iter_mut().filter(|cell| cell.bytes >= RESUMED_WINDOWS * window);
        let longest = long.max_by_key(|cell| cell.bytes).filter(|_| board.last() > Peer(1));
        longest.map_or(Ok(()), |cell| self.resume(board, cell))
    }

    /// From the call to the last delivery, and how long the calls of short messages take.
    fn measure(
        &mut self,
        board: &GroupBoard,
        bytes: usize,
        manner: Manner,
    ) -> Result<(Samples, Samples), BenchError> {
        let (mut samples, mut calls) = (Samples::default(), Samples::default());
        let uncounted = warm_up(bytes);
        for number in 0..uncounted + messages(bytes) {
            let (began, returned) = self.begin(bytes, manner)?;
            let mut written = if bytes <= self.eager { bytes } else { 0 };
            while written < bytes {
                let more = self.write(written, bytes)?;
                written += more;
                if more > 0 { self.seat.poll()? } else { self.step(board)? }
            }
            let ended = self.await_delivery(board)?;
            if number >= uncounted {
                samples.push(ended.saturating_sub(began), 1);
                calls.push(returned - began, 1);
            }
            // The acknowledgements of this message are no part of the next one.
            while !self.is(|groups| groups.is_idle(ALL))? {
                self.step(board)?;
            }
        }
        Ok((samples, calls))
    }

    /// Sends one message, in the middle of which a member is removed.
    fn resume(&mut self, board: &GroupBoard, cell: &mut GroupCell) -> Result<(), BenchError> {
        self.begin(cell.bytes, Manner::Struck)?;
        let (mut written, mut decided) = (0, None);
        while written < cell.bytes {
            let more = self.write(written, cell.bytes)?;
            written += more;
            // What the others have and wait for is what the window still holds of the struck one.
            let is_stuck = more == 0 && board.is_struck();
            if decided.is_none() && is_stuck && board.is_received(written as u64) {
                decided = Some((now_ns(), written));
                board.note_decided();
                self.remove(board)?;
            }
            self.step(board)?;
        }
        let ended = self.await_delivery(board)?;
        let never = BenchError::OutOfStep("a member did not stop in the middle");
        let (decided_ns, written) = decided.ok_or(never)?;
        let (mut resumed, mut rest) = (Samples::default(), Samples::default());
        resumed.push(ended.saturating_sub(decided_ns), 1);
        let share = (cell.bytes - written) as f64 / cell.bytes as f64;
        rest.push_value(share * cell.in_place.last().unwrap_or(f64::NAN));
        cell.resume.add(resumed);
        cell.rest.add(rest);
        Ok(())
    }

    /// Begins a message of `bytes`, and sends it whole if it travels with its entry; when the call
    /// began and returned.
    fn begin(&mut self, bytes: usize, manner: Manner) -> Result<(u64, u64), BenchError> {
        self.seat.vigil.begin(PATIENCE);
        self.own.resize(bytes.max(self.own.len()), 0x5A);
        self.sent += 1;
        for at in (0..bytes).step_by(self.block_len) {
            if let Some(head) = self.own[at..bytes].first_chunk_mut() {
                *head = mark(self.sent, at as u64);
            }
        }
        let (eager, tag) = (self.eager, manner as u64);
        let (groups, fabric) = self.seat.endpoint.groups().ok_or(NO_GROUP)?;
        let began = now_ns();
        let seq = match bytes <= eager {
            true => groups.broadcast(fabric, ALL, tag, &self.own[..bytes]),
            false => groups.begin(fabric, ALL, tag, bytes as u64),
        };
        let (seq, returned) = (seq.map_err(refused)?, now_ns());
        debug_assert_eq!(seq, self.sent, "every message of this root has the next number");
        Ok((began, returned))
    }

    /// Writes blocks into the window as far as it has room; how many bytes.
    fn write(&mut self, from: usize, bytes: usize) -> Result<usize, BenchError> {
        let (groups, fabric) = self.seat.endpoint.groups().ok_or(NO_GROUP)?;
        let mut written = from;
        while written < bytes
            && let Some((at, len)) = groups.space(fabric, ALL)
        {
            let block = &self.own[written..written + len as usize];
            fabric.memory().copy_in(at.region, at.offset, block);
            groups.commit(fabric, ALL).map_err(refused)?;
            written += block.len();
        }
        Ok(written - from)
    }

    fn await_delivery(&mut self, board: &GroupBoard) -> Result<u64, BenchError> {
        loop {
            if let Some(at_ns) = board.delivered_by_all(self.sent) {
                return Ok(at_ns);
            }
            self.step(board)?;
        }
    }

    fn step(&mut self, board: &GroupBoard) -> Result<(), BenchError> {
        self.seat.poll()?;
        if board.is_over() {
            return Err(BenchError::OutOfStep("a member has ended"));
        }
        self.seat.vigil.idle()
    }

    /// Executes the decision about the last member, once.
    fn remove(&mut self, board: &GroupBoard) -> Result<(), BenchError> {
        if std::mem::replace(&mut self.has_removed, true) {
            return Ok(());
        }
        let decision =
            Decision { term: Term::of_epoch(1), removed: board.last(), last: Incarnation(1) };
        let removed = self.seat.endpoint.remove(decision);
        removed.map_err(|_| BenchError::OutOfStep("a member cannot be removed"))
    }

    fn is(&mut self, is: impl FnOnce(&NodeGroups) -> bool) -> Result<bool, BenchError> {
        Ok(is(self.seat.endpoint.groups().ok_or(NO_GROUP)?.0))
    }
}

const NO_GROUP: BenchError = BenchError::OutOfStep("a plan without a group");

fn refused(_: SendError) -> BenchError {
    BenchError::OutOfStep("the group refused a message for which it has room")
}
