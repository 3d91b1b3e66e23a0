//! What clients send and receive by name, for the store of the supervisor.
//!
//! ```text
//!   sealed memory ─▶ [ line ] ─ tried in each pass ─▶ offer ─ consumed ─▶ reported
//!   request ─▶ receive ─ a value has landed ─▶ sealed memory, reported ─▶ its source drops it
//! ```
//!
//! The order of the last line is what loses nothing: the source learns of the receipt with the poll
//! after the event of its end, so the event is taken only once the link has room for the memory.
//! The kernel has it then, whatever kills this process.

use std::collections::VecDeque;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::PollFlags;
use weft_core::fabric::{Fabric, Memory};
use weft_core::ids::Rank;
use weft_core::rendezvous::{Expect, OfferId, Received, RendezvousEvent, RequestId, Shape};

use super::{Component, TensorError};
use crate::clock::{Deadline, now_ns};
use crate::node::NodeError;
use crate::node::control::{Outcome, Refused, TensorKey, TensorOutcome, TensorRefused, TensorWant};
use crate::node::link::{FromComponent, TensorNews, Ticket};
use crate::node::puts::Answer;
use crate::readiness::{Readiness, await_events};
use crate::shm::{SealedDraft, SegmentError};
use crate::tensor::{SealedTensor, ShapeText};

/// Bytes that are copied at a time.
const CHUNK: usize = 64 * 1024;

/// A tensor that waits for room.
#[derive(Debug)]
struct Sending {
    number: u64,
    key: TensorKey,
    value: Value,
    deadline_ns: u64,
}

/// What is sent.
#[derive(Debug)]
enum Value {
    Dead,
    /// A copy of these bytes.
    Copied(SealedTensor),
    /// The memory itself, which the supervisor keeps.
    HandedOver(Shape),
}

/// A tensor that waits for its receiver.
#[derive(Debug)]
struct Offered {
    offer: OfferId,
    number: u64,
    step: i64,
}

/// A receive for a client.
#[derive(Debug)]
struct Receiving {
    request: RequestId,
    ticket: Ticket,
    key: TensorKey,
    deadline_ns: u64,
    /// What it has ended with, in memory of its own.
    landed: Option<(Shape, OwnedFd)>,
}

/// A receive that its source has no room for: it keeps a share of its waiters for each node.
#[derive(Debug)]
struct Unasked {
    ticket: Ticket,
    key: TensorKey,
    deadline_ns: u64,
}

/// What the supervisor has ordered: no more than its store holds, and its clients ask.
#[derive(Debug, Default)]
pub(super) struct TensorClients {
    line: VecDeque<Sending>,
    offers: Vec<Offered>,
    receives: Vec<Receiving>,
    /// The oldest of a source is asked for when a receive from it has ended.
    unasked: VecDeque<Unasked>,
}

impl TensorClients {
    /// When the next tensor in line, or receive that is not asked for, has waited for too long.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        let unasked = self.unasked.iter().map(|it| it.deadline_ns);
        self.line.iter().map(|sending| sending.deadline_ns).chain(unasked).min()
    }

    /// The client that a receive is for.
    pub(super) fn ticket_of(&self, request: RequestId) -> Option<Ticket> {
        let mut receives = self.receives.iter();
        receives.find(|it| it.request == request).map(|it| it.ticket)
    }
}

impl Component {
    /// Has a tensor of the store sent, now or when there is room.
    pub(super) fn begin_tensor(
        &mut self,
        (number, key): (u64, TensorKey),
        (shape, mut fds): (Option<ShapeText>, Vec<OwnedFd>),
        deadline_ns: u64,
    ) -> Result<(), NodeError> {
        let unmade = NodeError::Link("a tensor without its memory");
        let shape = shape.map(|shape| Shape::try_from(&shape).map_err(|_| unmade)).transpose()?;
        let value = match (shape, fds.pop()) {
            (None, _) => Value::Dead,
            (Some(shape), Some(fd)) => Value::Copied(SealedTensor::open(shape, fd)?),
            (Some(shape), None) => Value::HandedOver(shape),
        };
        self.tensor_clients.line.push_back(Sending { number, key, value, deadline_ns });
        Ok(())
    }

    /// Begins a receive, or ends a step.
    pub(super) fn request_tensor(
        &mut self,
        ticket: Ticket,
        what: TensorWant,
        timeout_ms: u64,
    ) -> Result<Option<Answer>, NodeError> {
        let done = match what {
            TensorWant::Receive { key } => {
                let deadline_ns = now_ns().saturating_add(timeout_ms.saturating_mul(1_000_000));
                self.ask_for(ticket, key, deadline_ns).map(|()| None)
            }
            TensorWant::EndStep { step, is_aborted } => {
                self.tensor_clients.offers.retain(|it| it.step != step);
                let ended = self.end_step(step, is_aborted);
                ended.map(|()| Some(Outcome::Tensor(TensorOutcome::Ended)))
            }
            TensorWant::Send { .. } | TensorWant::Release { .. } | TensorWant::List { .. } => {
                return Err(NodeError::Link("a request that is the supervisor's"));
            }
        };
        let what = match done {
            Ok(None) => return Ok(None),
            Ok(Some(done)) => done,
            Err(error) => Outcome::Refused(Refused::Tensor(refused(error))),
        };
        Ok(Some((ticket, what)))
    }

    /// Asks a peer for a tensor.
    fn ask_for(
        &mut self,
        ticket: Ticket,
        key: TensorKey,
        deadline_ns: u64,
    ) -> Result<(), TensorError> {
        let timeout = Duration::from_nanos(deadline_ns.saturating_sub(now_ns()));
        let name = (key.edge.as_str(), key.step);
        let request = self.receive_tensor(Rank(key.from), name, Expect::any(), timeout)?;
        let receiving = Receiving { request, ticket, key, deadline_ns, landed: None };
        self.tensor_clients.receives.push(receiving);
        Ok(())
    }

    /// The client has left: what it waits for ends, and what it has landed goes to the store.
    pub(super) fn forget_tensors_of(&mut self, client: u64) {
        self.tensor_clients.unasked.retain(|it| it.ticket.client != client);
        let receives = self.tensor_clients.receives.iter();
        let left: Vec<_> =
            receives.filter(|it| it.ticket.client == client).map(|it| it.request).collect();
        for request in left {
            // One that has ended has its event.
            let _ = self.cancel_tensor(request);
        }
    }

    /// Sends what has room, reports what was consumed, and hands over what was received; whether
    /// there was anything.
    pub(super) fn step_tensors(&mut self, now_ns: u64) -> Result<bool, NodeError> {
        let mut moved = self.step_hand_over()?;
        // A program drains its own events.
        if self.identity.owned {
            return Ok(moved);
        }
        moved |= !self.tensor_clients.line.is_empty() && self.send_line(now_ns)?;
        self.refuse_unasked(now_ns)?;
        if !self.has_tensor_event() {
            return Ok(moved);
        }
        self.secure_landed()?;
        while self.has_tensor_event() && self.has_link_room() {
            moved = true;
            match self.endpoint.rendezvous().and_then(|(adapter, _)| adapter.poll_event()) {
                Some(RendezvousEvent::Ended { request, outcome }) => {
                    self.end_receive(request, outcome)?;
                }
                Some(RendezvousEvent::Consumed { offer }) => {
                    self.note_consumed(offer);
                    let offers = &mut self.tensor_clients.offers;
                    let Some(at) = offers.iter().position(|it| it.offer == offer) else { continue };
                    let Offered { number, .. } = offers.swap_remove(at);
                    self.tell(&FromComponent::Tensor { number, news: TensorNews::Consumed })?;
                }
                Some(RendezvousEvent::Returned { .. }) | None => {}
            }
        }
        Ok(moved)
    }

    /// Whether what is sent now is in the socket at once.
    pub(super) fn has_link_room(&self) -> bool {
        let now = Deadline::after(Duration::ZERO);
        let ready = await_events(self.socket.as_fd(), PollFlags::OUT, now);
        self.outgoing.is_empty() && matches!(ready, Ok(Readiness::Ready))
    }

    /// Tries each tensor in line once; none waits for one of another name.
    fn send_line(&mut self, now_ns: u64) -> Result<bool, NodeError> {
        let mut moved = false;
        let mut waiting: VecDeque<Sending> = VecDeque::new();
        for sending in std::mem::take(&mut self.tensor_clients.line) {
            let key = &sending.key;
            let (to, name) = (Rank(key.to), (key.edge.as_str(), key.step));
            // Those of one name are received in the order in which they were sent.
            let longest = self.cluster.rendezvous.tensor_len() as u64;
            let sent = match (waiting.iter().any(|it| it.key == *key), &sending.value) {
                (true, _) => Err(TensorError::NoSpace),
                (false, Value::Dead) => self.send_tensor(to, name, None),
                (false, Value::Copied(tensor)) if tensor.view().shape().bytes() > longest => {
                    self.hand_over_tensor(to, name, (tensor.view().shape(), sending.number))
                }
                (false, Value::Copied(tensor)) => {
                    let view = tensor.view();
                    self.send_tensor(to, name, Some((view.shape(), view.bytes())))
                }
                (false, Value::HandedOver(shape)) => {
                    self.hand_over_tensor(to, name, (*shape, sending.number))
                }
            };
            let (number, step) = (sending.number, sending.key.step);
            let news = match sent {
                Ok(offer) => {
                    self.tensor_clients.offers.push(Offered { offer, number, step });
                    if let Value::Copied(tensor) = sending.value
                        && tensor.view().shape().bytes() > longest
                    {
                        self.parts.keep((offer, number), step, tensor);
                    }
                    TensorNews::Sent
                }
                Err(TensorError::NoSpace | TensorError::Full { .. })
                    if now_ns < sending.deadline_ns =>
                {
                    waiting.push_back(sending);
                    continue;
                }
                Err(error) => TensorNews::Refused(refused(error)),
            };
            moved = true;
            self.tell(&FromComponent::Tensor { number, news })?;
        }
        self.tensor_clients.line = waiting;
        Ok(moved)
    }

    /// Copies what has landed into memory of its own, before its source can learn that it is here.
    /// Where there is no memory for it this process ends, and the source still has it.
    fn secure_landed(&mut self) -> Result<(), NodeError> {
        let mut receives = std::mem::take(&mut self.tensor_clients.receives);
        for receiving in receives.iter_mut().filter(|it| it.landed.is_none()) {
            receiving.landed = self.copy_landed(receiving.request)?;
        }
        self.tensor_clients.receives = receives;
        Ok(())
    }

    fn copy_landed(&mut self, request: RequestId) -> Result<Option<(Shape, OwnedFd)>, NodeError> {
        let Some((adapter, fabric)) = self.endpoint.rendezvous() else { return Ok(None) };
        let Some(tensor) = adapter.tensor(request) else { return Ok(None) };
        let mut draft = SealedDraft::create("weft-tensor", tensor.bytes)?;
        let mut chunk = vec![0; CHUNK];
        let (mut at, mut left) = (tensor.at.offset, usize::try_from(tensor.bytes).unwrap_or(0));
        while left > 0 {
            let chunk = &mut chunk[..left.min(CHUNK)];
            fabric.memory().copy_out(tensor.at.region, at, chunk);
            draft.write_all(chunk).map_err(|error| SegmentError::unwritten(&error))?;
            (at, left) = (at + chunk.len() as u32, left - chunk.len());
        }
        Ok(Some((tensor.shape, draft.finish()?)))
    }

    fn end_receive(&mut self, request: RequestId, outcome: Received) -> Result<(), NodeError> {
        let receives = &mut self.tensor_clients.receives;
        let Some(at) = receives.iter().position(|it| it.request == request) else { return Ok(()) };
        let receiving = receives.swap_remove(at);
        if outcome == Received::NoSpace {
            let Receiving { ticket, key, deadline_ns, .. } = receiving;
            self.tensor_clients.unasked.push_back(Unasked { ticket, key, deadline_ns });
            return Ok(());
        }
        let from = receiving.key.from;
        self.report_end(receiving, outcome)?;
        self.ask_next(from)
    }

    /// A receive from that node has ended: there is room for the next one there.
    fn ask_next(&mut self, from: u16) -> Result<(), NodeError> {
        let is_of = |it: &Unasked| it.key.from == from;
        while let Some(at) = self.tensor_clients.unasked.iter().position(is_of) {
            let Some(next) = self.tensor_clients.unasked.remove(at) else { break };
            let Unasked { ticket, key, deadline_ns } = next;
            let Err(error) = self.ask_for(ticket, key, deadline_ns) else { break };
            self.answer(ticket, Outcome::Refused(Refused::Tensor(refused(error))))?;
        }
        Ok(())
    }

    /// Answers receives whose source had no room for them until their deadline.
    fn refuse_unasked(&mut self, now_ns: u64) -> Result<(), NodeError> {
        let is_late = |it: &Unasked| now_ns >= it.deadline_ns;
        while let Some(at) = self.tensor_clients.unasked.iter().position(is_late) {
            let Some(late) = self.tensor_clients.unasked.remove(at) else { break };
            let why = Refused::Tensor(TensorRefused::NoWaiter);
            self.answer(late.ticket, Outcome::Refused(why))?;
        }
        Ok(())
    }

    fn report_end(&mut self, receiving: Receiving, outcome: Received) -> Result<(), NodeError> {
        let Receiving { request, ticket, key, deadline_ns, landed } = receiving;
        let refused_by_host = self.fetches.note_end(request, outcome);
        let landed = landed.or_else(|| self.fetches.take(request));
        let why = match outcome {
            Received::Value | Received::Dead => {
                if let Some((adapter, _)) = self.endpoint.rendezvous() {
                    // A dead one has nothing to release.
                    let _ = adapter.release(request);
                }
                let shape = landed.as_ref().map(|(shape, _)| ShapeText::from(*shape));
                let word = FromComponent::Received { ticket, key, shape };
                let fds: Vec<_> = landed.iter().map(|(_, fd)| fd.as_fd()).collect();
                return self.tell_with(&word, &fds);
            }
            // It was sent, and waited for room in the store.
            Received::TimedOut => refused_by_host.unwrap_or(TensorRefused::NotSent),
            Received::Cancelled => TensorRefused::NotSent,
            Received::Aborted => TensorRefused::Aborted,
            // The store of that node outlives its component: the next one is asked, unless the node
            // was removed.
            Received::PeerGone | Received::SourceReborn => {
                let Err(error) = self.ask_for(ticket, key, deadline_ns) else { return Ok(()) };
                return self.answer(ticket, Outcome::Refused(Refused::Tensor(refused(error))));
            }
            Received::NotHandedOver => match refused_by_host {
                // The component that lent it is being replaced, or its step has just ended.
                None | Some(TensorRefused::PeerGone) => {
                    let Err(error) = self.ask_for(ticket, key, deadline_ns) else { return Ok(()) };
                    return self.answer(ticket, Outcome::Refused(Refused::Tensor(refused(error))));
                }
                Some(why) => why,
            },
            Received::Corrupt => TensorRefused::Corrupt,
            Received::TooLarge | Received::Mismatch(_) => {
                TensorRefused::TooLong { limit: self.cluster.longest_tensor() }
            }
            Received::StepOver => TensorRefused::StepOver,
            Received::NoSpace => TensorRefused::NoWaiter,
        };
        self.answer(ticket, Outcome::Refused(Refused::Tensor(why)))
    }
}

fn refused(error: TensorError) -> TensorRefused {
    match error {
        TensorError::NoRendezvous => TensorRefused::NoRendezvous,
        TensorError::BadName(why) => TensorRefused::BadName(why.to_string()),
        TensorError::Full { limit } => TensorRefused::Full { limit },
        TensorError::TooLong { limit } => TensorRefused::TooLong { limit: limit as u64 },
        TensorError::NoSpace => TensorRefused::NoSpace,
        TensorError::PeerGone => TensorRefused::PeerGone,
        TensorError::Finished => TensorRefused::Finished,
        TensorError::StepOver => TensorRefused::StepOver,
        TensorError::Aborted => TensorRefused::Aborted,
        TensorError::NoSuchRank => TensorRefused::BadName(error.to_string()),
    }
}
