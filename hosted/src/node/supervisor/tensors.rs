//! Tensors by name for clients: the store that outlives the component (RZ-17).
//!
//! ```text
//!   client ── sealed memory ──▶ store ── the same ──▶ component ─▶ its pool ═▶ another node
//!   client ◀─ sealed memory ─── store ◀─ sealed memory ─ component ◀═ reads ══ another node
//! ```
//!
//! A tensor that a client sends is dropped once its receiver has it; one that was received, once a
//! client has released it. Each component is given what the last one had not done: so a tensor is
//! sent again if its component is lost after its receiver had it, and its receiver can then receive
//! it once more. No memory is mapped here, so that no tensor is too long for the loop.

mod room;
mod store;

use std::os::fd::{AsFd, OwnedFd};

use weft_core::ids::Peer;
use weft_core::rendezvous::{Key, Shape};
use weft_core::wire::rendezvous::INLINE_LEN_MAX;

use room::Waiting;
pub(super) use store::{KEPT_MAX, Places, TensorStore};
use store::{Receive, StoredTensor, TensorStage};

use super::Supervisor;
use crate::bootstrap::HandOver;
use crate::clock::now_ns;
use crate::node::control::{
    Outcome, Refused, TensorKey, TensorOutcome, TensorRefused, TensorWant, Want,
};
use crate::node::link::{TensorNews, Ticket, ToComponent};
use crate::node::{REQUESTS, TENSOR_FRAME};
use crate::shm::SealedBytes;
use crate::tensor::ShapeText;

/// The most tensors that a program hands over: as many as its rendezvous has offers.
const OWN_MAX: usize = REQUESTS;

impl Supervisor {
    /// Whether the sealed memory of a tensor itself goes to its receiver (RZ-18): any that does not
    /// come within a message.
    const fn is_handed_over(&self, bytes: u64) -> bool {
        self.cluster.hands_over() && bytes > INLINE_LEN_MAX as u64
    }

    pub(super) fn handle_tensor_request(
        &mut self,
        ticket: Ticket,
        what: TensorWant,
        deadline_ns: u64,
        mut fds: Vec<OwnedFd>,
    ) {
        let outcome = match &what {
            TensorWant::Send { key, shape, waits } => {
                let stage = TensorStage::Waiting { ticket, waits: *waits, deadline_ns };
                self.keep_sent(key, (shape.as_ref(), &mut fds), stage).map(|number| {
                    self.clients.begin_tensor(ticket);
                    self.hand_over_tensor(number);
                })
            }
            TensorWant::Receive { key } => self.check_receive(ticket, key).map(|reserved| {
                let receive = Receive { key: key.clone(), deadline_ns, reserved };
                self.tensors.receives.insert(ticket, receive);
                self.clients.begin_tensor(ticket);
                // It may have been received for a client that has left.
                self.give_received();
                self.hand_over_receive(ticket);
            }),
            TensorWant::Release { number } => {
                let released = self.tensors.release(ticket.client, *number);
                let done = Outcome::Tensor(TensorOutcome::Released(released));
                return self.clients.finish(ticket, done);
            }
            TensorWant::EndStep { step, is_aborted } => {
                let why =
                    if *is_aborted { TensorRefused::Aborted } else { TensorRefused::StepOver };
                for waiting in self.tensors.end_step(*step) {
                    self.refuse_tensor(waiting, why.clone());
                }
                let what = Want::Tensor { timeout_ms: 0, what };
                return self.forward(ticket, ToComponent::Request { ticket, what }, Vec::new());
            }
            TensorWant::List { after } => {
                let list = self.tensors.list(*after);
                return self.clients.finish(ticket, Outcome::Tensor(TensorOutcome::Listed(list)));
            }
        };
        let Err(refused) = outcome else { return };
        match self.tensors.awaited_bytes(&what, &refused) {
            Some(bytes) => {
                self.clients.begin_tensor(ticket);
                let waiting = Waiting::Request { ticket, what, fds, bytes, deadline_ns };
                self.tensors.waiting.push(waiting);
            }
            None => self.clients.finish(ticket, Outcome::Refused(refused)),
        }
    }

    fn refuse_tensor(&mut self, ticket: Ticket, why: TensorRefused) {
        self.clients.finish(ticket, Outcome::Refused(Refused::Tensor(why)));
    }

    /// Checks a name, one end of which is this node's.
    fn check_key(&self, key: &TensorKey, own: u16) -> Result<(), Refused> {
        let nodes = u16::try_from(self.cluster.nodes).unwrap_or(u16::MAX);
        if self.cluster.rendezvous.pool_mib == 0 {
            return Err(Refused::Tensor(TensorRefused::NoRendezvous));
        }
        if self.supervision.is_isolated() {
            return Err(Refused::Isolated);
        }
        if self.starts.has_given_up() {
            return Err(Refused::GivenUp);
        }
        if own != self.rank {
            return Err(Refused::Malformed(format!("node {own} is another node")));
        }
        if let Some(rank) = [key.from, key.to].into_iter().find(|rank| *rank >= nodes) {
            return Err(Refused::OutOfRange { rank, nodes });
        }
        let name = (key.edge.as_str(), TENSOR_FRAME);
        let checked = Key::new((Peer(key.from), None), Peer(key.to), name);
        checked.map(drop).map_err(|why| Refused::Tensor(TensorRefused::BadName(why.to_string())))
    }

    /// Checks a receive; the bytes for which it reserves room.
    fn check_receive(&self, ticket: Ticket, key: &TensorKey) -> Result<u64, Refused> {
        self.check_key(key, key.to)?;
        self.tensors.check_held(ticket.client).map_err(Refused::Tensor)?;
        if self.tensors.has_received(key) {
            return Ok(0);
        }
        // What is longer reserves its room when it is handed over.
        let longest = self.cluster.rendezvous.tensor_len() as u64;
        self.tensors.check_room(longest).map_err(Refused::Tensor)?;
        Ok(longest)
    }

    /// Keeps a tensor that a client sends; its number. Its memory is taken only if it is kept.
    fn keep_sent(
        &mut self,
        key: &TensorKey,
        (shape, fds): (Option<&ShapeText>, &mut Vec<OwnedFd>),
        stage: TensorStage,
    ) -> Result<u64, Refused> {
        self.check_key(key, key.from)?;
        if fds.len() != usize::from(shape.is_some()) {
            let why = format!("{} descriptors came with it", fds.len());
            return Err(Refused::Tensor(TensorRefused::NotSealed(why)));
        }
        let (mut bytes, longest) = (0, self.cluster.longest_tensor());
        if let Some((shape, fd)) = shape.zip(fds.last()) {
            let checked = Shape::try_from(shape);
            bytes = checked.map_err(|error| Refused::Malformed(error.to_string()))?.bytes();
            if bytes > longest {
                return Err(Refused::Tensor(TensorRefused::TooLong { limit: longest }));
            }
            SealedBytes::check(fd.as_fd(), bytes)
                .map_err(|error| Refused::Tensor(TensorRefused::NotSealed(error.to_string())))?;
        }
        self.tensors.check_turn(key, bytes).map_err(Refused::Tensor)?;
        let memory = shape.cloned().zip(fds.pop());
        Ok(self.tensors.keep(StoredTensor { key: key.clone(), memory, bytes, stage }))
    }

    /// Hands the component what it has to do for the store: it has just started.
    pub(super) fn hand_over_tensors(&mut self) {
        self.tensors.own.clear();
        let numbers: Vec<u64> = self.tensors.kept.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.hand_over_tensor(number));
        let receives: Vec<Ticket> = self.tensors.receives.keys().copied().collect();
        receives.into_iter().for_each(|ticket| self.hand_over_receive(ticket));
    }

    /// Has the component send a tensor, if there is one: if not, the next one is given it.
    fn hand_over_tensor(&mut self, number: u64) {
        let Some(kept) = self.tensors.kept.get(&number).filter(|_| self.is_ready()) else { return };
        let timeout_ms = match kept.stage {
            TensorStage::Waiting { deadline_ns, .. } => millis_until(deadline_ns),
            // It has been promised.
            TensorStage::Sent { .. } => u64::MAX,
            TensorStage::Received { .. } => return,
        };
        let shape = kept.memory.as_ref().map(|(shape, _)| shape.clone());
        let word = ToComponent::Tensor { number, key: kept.key.clone(), shape, timeout_ms };
        let copied = kept.memory.as_ref().filter(|_| !self.is_handed_over(kept.bytes));
        let Some(component) = &mut self.component else { return };
        match copied {
            Some((_, fd)) => component.tell(&word, &[fd.as_fd()]),
            None => component.tell(&word, &[]),
        }
    }

    /// The component fetches what `peer` hands over (RZ-18), for a client or for the program; or in
    /// parts, for a client that has room for it.
    pub(super) fn fetch_tensor(
        &mut self,
        peer: Peer,
        which: HandOver,
        (ticket, bytes): (Option<Ticket>, u64),
    ) {
        match ticket.map_or(Ok(()), |ticket| self.tensors.reserve(ticket, bytes)) {
            Err(why) => {
                if let Some(ticket) = ticket.filter(|it| self.clients.has_open(*it)) {
                    let waiting = Waiting::Fetch { ticket, peer, which, bytes };
                    self.tensors.waiting.push(waiting);
                }
                self.tell_handed_over(which, Err(why));
            }
            Ok(()) if !self.cluster.hands_over() => self.tell_handed_over(which, Ok(None)),
            Ok(()) if peer.0 == self.rank => self.hand_tensor(peer, which),
            Ok(()) => self.bootstrap.want_tensor(peer, which),
        }
    }

    /// `peer`, or this node itself, fetches a tensor that is kept here.
    pub(super) fn hand_tensor(&mut self, peer: Peer, which: HandOver) {
        let lent_by = self.component.as_ref().map(|it| it.incarnation.0);
        let is_lent = self.cluster.hands_over() && lent_by == Some(which.lent_by);
        // What the program has lent was sent before its receiver could learn of it, and may wait in
        // the link.
        if is_lent && self.tensors.lent(which.number, peer.0).is_none() {
            self.hear_component();
        }
        let memory = self.tensors.lent(which.number, peer.0).filter(|_| is_lent);
        if peer.0 == self.rank {
            let memory = memory.and_then(|fd| fd.try_clone().ok());
            self.handle_handed_tensor(which, memory);
        } else {
            self.bootstrap.hand_tensor(peer, which, memory.map(AsFd::as_fd));
        }
    }

    /// The program hands a tensor over: its memory stays until the program drops it, or ends.
    pub(super) fn keep_own_tensor(&mut self, number: u64, to: u16, mut fds: Vec<OwnedFd>) {
        let Some(memory) = fds.pop() else { return };
        if self.tensors.own.len() < OWN_MAX {
            self.tensors.own.insert(number, (to, memory));
        } else {
            tracing::error!(number, "the program hands over more tensors than it may");
        }
    }

    /// What the component wanted, if it is kept.
    pub(super) fn handle_handed_tensor(&mut self, which: HandOver, memory: Option<OwnedFd>) {
        self.tell_handed_over(which, memory.map(Some).ok_or(TensorRefused::PeerGone));
    }

    fn tell_handed_over(
        &mut self,
        which: HandOver,
        memory: Result<Option<OwnedFd>, TensorRefused>,
    ) {
        let (incarnation, fetch) = which.fetched_by;
        let is_present = self.component.as_ref().is_some_and(|it| it.incarnation.0 == incarnation);
        if is_present {
            let word = |refused| ToComponent::HandedOver { fetch, refused };
            match memory {
                Ok(Some(memory)) => self.tell(&word(None), &[memory.as_fd()]),
                Ok(None) => self.tell(&word(None), &[]),
                Err(why) => self.tell(&word(Some(why)), &[]),
            }
        }
    }

    fn hand_over_receive(&mut self, ticket: Ticket) {
        let Some(receive) = self.tensors.receives.get(&ticket) else { return };
        let timeout_ms = millis_until(receive.deadline_ns);
        let what = TensorWant::Receive { key: receive.key.clone() };
        if self.is_ready() {
            let what = Want::Tensor { timeout_ms, what };
            self.tell(&ToComponent::Request { ticket, what }, &[]);
        }
    }

    /// The component reports what became of a tensor.
    pub(super) fn handle_tensor_news(&mut self, number: u64, news: TensorNews) {
        // The step of one that is not kept was ended.
        let Some(kept) = self.tensors.kept.get_mut(&number) else { return };
        let sender = kept.sender();
        match news {
            TensorNews::Sent => {
                let TensorStage::Waiting { ticket, waits, deadline_ns } = kept.stage else {
                    return;
                };
                kept.stage = TensorStage::Sent { sender: waits.then_some((ticket, deadline_ns)) };
                if !waits {
                    let sent = Outcome::Tensor(TensorOutcome::Sent { number });
                    self.clients.finish(ticket, sent);
                }
            }
            TensorNews::Refused(why) => {
                self.tensors.kept.remove(&number);
                match sender {
                    Some(ticket) => self.refuse_tensor(ticket, why),
                    None => tracing::warn!(number, ?why, "a tensor that was sent is dropped"),
                }
            }
            TensorNews::Consumed => {
                self.tensors.kept.remove(&number);
                if let Some(ticket) = sender {
                    let consumed = Outcome::Tensor(TensorOutcome::Consumed { number });
                    self.clients.finish(ticket, consumed);
                }
            }
        }
    }

    /// The component has received a tensor, and its source has dropped it.
    pub(super) fn handle_received(
        &mut self,
        ticket: Ticket,
        key: TensorKey,
        shape: Option<ShapeText>,
        mut fds: Vec<OwnedFd>,
    ) {
        let bytes =
            shape.as_ref().and_then(|it| Shape::try_from(it).ok()).map_or(0, |it| it.bytes());
        if shape.is_some() && fds.is_empty() {
            tracing::error!("a tensor was received without its memory");
            return;
        }
        let (memory, stage) = (shape.zip(fds.pop()), TensorStage::Received { holder: None });
        // The receive has reserved its room.
        self.tensors.keep(StoredTensor { key, memory, bytes, stage });
        if !self.clients.has_open(ticket) {
            self.tensors.receives.remove(&ticket);
        }
        self.give_received();
    }

    /// Gives tensors that were received to the clients that wait for them.
    fn give_received(&mut self) {
        while let Some((number, ticket)) = self.tensors.match_one() {
            self.tensors.receives.remove(&ticket);
            if !self.clients.has_open(ticket) {
                continue;
            }
            let Some(kept) = self.tensors.kept.get_mut(&number) else { return };
            let shape = kept.memory.as_ref().map(|(shape, _)| shape.clone());
            let received = Outcome::Tensor(TensorOutcome::Received { number, shape });
            let fd = kept.memory.as_ref().map(|(_, fd)| fd.try_clone()).transpose();
            match fd {
                Ok(fd) => {
                    kept.stage = TensorStage::Received { holder: Some(ticket.client) };
                    match fd {
                        Some(fd) => self.clients.finish_with(ticket, received, fd),
                        None => self.clients.finish(ticket, received),
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "a tensor cannot be given to a client");
                    self.clients.finish(ticket, Outcome::Refused(Refused::Busy));
                }
            }
        }
    }

    /// A client has left.
    pub(super) fn forget_tensors_of(&mut self, client: u64) {
        self.tensors.forget(client);
        self.give_received();
    }

    /// Answers those that have waited for too long.
    pub(super) fn answer_tensors(&mut self, now_ns: u64) {
        let clients = &self.clients;
        self.tensors.receives.retain(|ticket, _| clients.has_open(*ticket));
        if self.tensors.next_deadline_ns().is_none_or(|at| now_ns < at) {
            return;
        }
        let late = self.tensors.receives.iter().filter(|(_, it)| now_ns >= it.late_ns());
        let mut late: Vec<_> = late.map(|(ticket, _)| (*ticket, Refused::TimedOut)).collect();
        late.iter().for_each(|(ticket, _)| drop(self.tensors.receives.remove(ticket)));
        for (number, kept) in &mut self.tensors.kept {
            if kept.late_ns().is_none_or(|at| now_ns < at) {
                continue;
            }
            // What a component that hangs makes of the former is not known: the next one sends it.
            let why = match kept.stage {
                TensorStage::Waiting { .. } => Refused::TimedOut,
                _ => Refused::Tensor(TensorRefused::NotReceived { number: *number }),
            };
            late.extend(kept.sender().map(|ticket| (ticket, why)));
            kept.stage = TensorStage::Sent { sender: None };
        }
        late.into_iter()
            .for_each(|(ticket, why)| self.clients.finish(ticket, Outcome::Refused(why)));
    }
}

fn millis_until(deadline_ns: u64) -> u64 {
    deadline_ns.saturating_sub(now_ns()).div_ceil(1_000_000)
}
