//! Tensors that the nodes of one host hand over (RZ-18): the sealed memory itself goes from store
//! to store, and no byte is copied.
//!
//! ```text
//!   adapter ── token ──▶ FetchTensor ──▶ own supervisor ── TensorWanted ──▶ the source's
//!   adapter ◀─ ended ─── HandedOver ◀─── own supervisor ◀─ TensorHanded ─── and its memory
//! ```
//!
//! A program's own tensors are kept by its supervisor for as long as its incarnation runs. The
//! source drops its tensor once the end of the receive was taken here. A receive that ends before
//! its memory comes leaves the tensor where it is.

use std::os::fd::{AsFd, OwnedFd};

use weft_core::ids::{Incarnation, Rank};
use weft_core::rendezvous::{HandOver, OfferId, Received, RequestId, Shape};
use weft_core::wire::rendezvous::INLINE_LEN_MAX;

use super::{Component, TensorError};
use crate::node::NodeError;
use crate::node::control::TensorRefused;
use crate::node::link::{FromComponent, OWN_NUMBERS, Ticket};
use crate::shm::{SealedBytes, SealedDraft};
use crate::tensor::SealedTensor;

/// The most tensors that are being handed over, or were and are not taken: each has a descriptor.
const FETCHES_MAX: usize = 16;

/// A tensor that is being fetched, or is here.
#[derive(Debug)]
pub(super) struct Fetch {
    pub(super) number: u64,
    pub(super) request: RequestId,
    pub(super) shape: Shape,
    /// What its parts are copied into, and how many bytes of them.
    pub(super) draft: Option<SealedDraft>,
    pub(super) written: u64,
    pub(super) memory: Option<OwnedFd>,
    pub(super) refused: Option<TensorRefused>,
}

/// All of them, and what the program hands over itself.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    count: u64,
    open: Vec<Fetch>,
    lent: Vec<Lent>,
}

/// A tensor that the program hands over; the supervisor keeps its memory.
#[derive(Debug)]
struct Lent {
    number: u64,
    offer: OfferId,
    step: i64,
}

impl Fetches {
    /// The number of the next tensor that is fetched or handed over.
    const fn next_number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Those that have memory, or will: none that waits for room in the store.
    fn begun(&self) -> usize {
        self.open.iter().filter(|it| it.refused.is_none()).count()
    }

    /// The one that is open and is such.
    pub(super) fn find(&mut self, is_it: impl Fn(&Fetch) -> bool) -> Option<&mut Fetch> {
        self.open.iter_mut().find(|it| is_it(it))
    }

    /// Drops what has come of one.
    pub(super) fn forget(&mut self, number: u64) {
        self.open.retain(|it| it.number != number);
    }

    /// The shape of what was handed over for a receive.
    pub(super) fn shape(&self, request: RequestId) -> Option<Shape> {
        let handed = self.open.iter().find(|it| it.request == request && it.memory.is_some());
        handed.map(|it| it.shape)
    }

    /// Takes out what was handed over for a receive.
    pub(super) fn take(&mut self, request: RequestId) -> Option<(Shape, OwnedFd)> {
        let at = self.open.iter().position(|it| it.request == request && it.memory.is_some())?;
        let fetch = self.open.swap_remove(at);
        fetch.memory.map(|memory| (fetch.shape, memory))
    }

    /// A receive has ended: what it fetched without success is forgotten; why it was refused.
    pub(super) fn note_end(
        &mut self,
        request: RequestId,
        outcome: Received,
    ) -> Option<TensorRefused> {
        if outcome == Received::Value {
            return None;
        }
        let at = self.open.iter().position(|it| it.request == request)?;
        self.open.swap_remove(at).refused
    }
}

impl Component {
    /// Sends a tensor of the program: its memory itself, if its receiver can have it so. It is
    /// copied otherwise, part by part if it is longer than a piece of the pool.
    pub(crate) fn send_sealed(
        &mut self,
        to: Rank,
        name: (&str, i64),
        tensor: &SealedTensor,
    ) -> Result<OfferId, TensorError> {
        let view = tensor.view();
        let bytes = view.bytes();
        if !self.cluster.hands_over() && bytes.len() > self.cluster.rendezvous.tensor_len() {
            // Its receiver fetches one part after the other.
            let copied = tensor.try_clone().map_err(|_| TensorError::NoSpace)?;
            let number = OWN_NUMBERS | self.fetches.next_number();
            let offer = self.hand_over_tensor(to, name, (view.shape(), number))?;
            self.parts.keep((offer, number), name.1, copied);
            return Ok(offer);
        }
        if !self.cluster.hands_over() || bytes.len() <= INLINE_LEN_MAX {
            return self.send_tensor(to, name, Some((view.shape(), bytes)));
        }
        // The supervisor has the memory before the receiver can learn of it.
        if !self.has_link_room() {
            return Err(TensorError::NoSpace);
        }
        let number = OWN_NUMBERS | self.fetches.next_number();
        let word = FromComponent::KeepTensor { number, to: to.0 };
        self.tell_with(&word, &[tensor.as_fd()]).map_err(|_| TensorError::NoSpace)?;
        let sent = self.hand_over_tensor(to, name, (view.shape(), number));
        match sent {
            Ok(offer) => self.fetches.lent.push(Lent { number, offer, step: name.1 }),
            Err(_) => self.tell(&FromComponent::DropTensor { number }).unwrap_or_default(),
        }
        sent
    }

    /// The receiver of an offer has it.
    pub(super) fn note_consumed(&mut self, offer: OfferId) {
        self.parts.note_consumed(offer);
        self.drop_lent(|it| it.offer == offer);
    }

    /// A step is over, and with it what is handed over in it.
    pub(super) fn note_step_over(&mut self, step: i64) {
        self.parts.note_step_over(step);
        self.drop_lent(|it| it.step == step);
    }

    fn drop_lent(&mut self, is_over: impl FnMut(&Lent) -> bool) {
        let lent = std::mem::take(&mut self.fetches.lent);
        let (over, lent): (Vec<_>, Vec<_>) = lent.into_iter().partition(is_over);
        self.fetches.lent = lent;
        for Lent { number, .. } in over {
            // A link that is lost ends this process.
            let _ = self.tell(&FromComponent::DropTensor { number });
        }
    }

    /// Asks the supervisor for what is handed over; whether there was any.
    pub(super) fn step_hand_over(&mut self) -> Result<bool, NodeError> {
        let mut asked = self.step_parts();
        while self.fetches.begun() < FETCHES_MAX {
            let next = self.endpoint.rendezvous().and_then(|(adapter, _)| adapter.poll_hand_over());
            let Some(hand_over) = next else { break };
            asked = true;
            self.fetch(hand_over)?;
        }
        Ok(asked)
    }

    fn fetch(&mut self, hand_over: HandOver) -> Result<(), NodeError> {
        let HandOver { request, source, token, shape } = hand_over;
        let own = (source == self.endpoint.me()).then_some(self.identity.incarnation);
        let lent_by = own.or_else(|| self.membership.incarnation_of(source));
        let Incarnation(lent_by) = lent_by.unwrap_or_default();
        let number = self.fetches.next_number();
        let (draft, memory, refused) = (None, None, None);
        let fetch = Fetch { number, request, shape, draft, written: 0, memory, refused };
        self.fetches.open.push(fetch);
        let ticket: Option<Ticket> = self.tensor_clients.ticket_of(request);
        let (peer, bytes) = (source.0, shape.bytes());
        // What a program receives has no room in the store.
        if !self.cluster.hands_over() && ticket.is_none() {
            self.begin_parts(number);
            return Ok(());
        }
        let word = FromComponent::FetchTensor {
            fetch: number,
            ticket,
            peer,
            lent_by,
            number: token,
            bytes,
        };
        self.tell(&word)
    }

    /// The supervisor has what was fetched, or room for what comes in parts, or neither.
    pub(super) fn handle_handed_over(
        &mut self,
        number: u64,
        refused: Option<TensorRefused>,
        mut fds: Vec<OwnedFd>,
    ) {
        // What is not open has ended: its memory is the source's alone again.
        let Some(fetch) = self.fetches.find(|it| it.number == number) else { return };
        if matches!(refused, Some(TensorRefused::StoreFull { .. })) {
            // It comes once there is room, or ends with its receive.
            fetch.refused = refused;
            return;
        }
        fetch.refused = None;
        if refused.is_none() && !self.cluster.hands_over() {
            return self.begin_parts(number);
        }
        let checked = fds.pop().map(|fd| {
            let checked = SealedBytes::check(fd.as_fd(), fetch.shape.bytes());
            checked.map(|()| fd).map_err(|error| TensorRefused::NotSealed(error.to_string()))
        });
        match (refused, checked) {
            (None, Some(Ok(fd))) => fetch.memory = Some(fd),
            (None, Some(Err(why))) | (Some(why), _) => fetch.refused = Some(why),
            (None, None) => fetch.refused = Some(TensorRefused::PeerGone),
        }
        let (request, is_there) = (fetch.request, fetch.memory.is_some());
        if let Some((adapter, _)) = self.endpoint.rendezvous()
            && adapter.handle_handed_over(request, is_there).is_err()
        {
            // It has ended meanwhile, and its event is not taken yet.
            self.fetches.forget(number);
        }
    }
}
