//! Tensors by name: sent at one member, received at another, in either order.
//!
//! ```text
//!   send(to, name, tensor) ──▶ own memory ◀══ reads ══ receive(from, name) ─▶ Event::Ended
//!         Event::Consumed ◀─── the next poll says so ◀─────── take_tensor ◀─────┘
//! ```
//!
//! A tensor is received once, or there is a reason why not ([`Received`]); both ends keep their
//! memory until it is quiet ([`weft_core::rendezvous`]). A receiver that saves what it has before
//! its next poll receives nothing twice and loses nothing, whatever kills it: the sender learns of
//! the receipt with that poll, and offers the tensor again to an incarnation that comes without it.
//! What an incarnation has sent ends with it: the next one sends it again, as the example `tensors`
//! does. `[rendezvous]` in the cluster file sets the memory: `rendezvous.pool_mib` is 0, no
//! rendezvous, unless it is set.
//!
//! [`Received`]: super::Received

use std::time::Duration;

use weft_core::ids::Rank;
use weft_core::rendezvous::{Expect, OfferId, RequestId, Shape, UnknownRequest};

use super::shared::Behind;
use super::{
    CallError, Member, MemberEnded, MemberHandle, SealedTensor, Tensor, TensorError, TensorName,
    TensorView,
};
use crate::node::Component;

impl Member {
    /// Sends a tensor to `to`, which may be this member: it is copied, and waits for its receiver
    /// ([`Event::Consumed`](super::Event::Consumed)).
    ///
    /// # Errors
    /// [`TensorError`]; nothing changed.
    pub fn send(
        &mut self,
        to: Rank,
        name: TensorName<'_>,
        tensor: TensorView<'_>,
    ) -> Result<OfferId, TensorError> {
        let value = Some((tensor.shape(), tensor.bytes()));
        self.component.send_tensor(to, (name.edge, name.step), value)
    }

    /// As [`Self::send`], and of any length. Where all nodes are on one host, nothing is copied:
    /// its receiver maps the same memory, and no process can change it. Elsewhere a tensor that is
    /// longer than a piece of the pool is copied part by part, as it is fetched. The memory stays
    /// until the receiver has it, also when `tensor` is dropped.
    ///
    /// # Errors
    /// [`TensorError`]; nothing changed.
    pub fn send_sealed(
        &mut self,
        to: Rank,
        name: TensorName<'_>,
        tensor: &SealedTensor,
    ) -> Result<OfferId, TensorError> {
        self.component.send_sealed(to, (name.edge, name.step), tensor)
    }

    /// Sends a dead tensor: its receiver learns that there is none
    /// ([`Received::Dead`](super::Received::Dead)).
    ///
    /// # Errors
    /// [`TensorError`]; nothing changed.
    pub fn send_dead(&mut self, to: Rank, name: TensorName<'_>) -> Result<OfferId, TensorError> {
        self.component.send_tensor(to, (name.edge, name.step), None)
    }

    /// Asks `from` for a tensor, which it may send earlier or later. Two events follow, each once:
    /// [`Event::Ended`](super::Event::Ended) after `timeout` at the latest, and
    /// [`Event::Returned`](super::Event::Returned).
    ///
    /// # Errors
    /// [`TensorError`]; nothing was begun.
    pub fn receive(
        &mut self,
        from: Rank,
        name: TensorName<'_>,
        expect: Expect,
        timeout: Duration,
    ) -> Result<RequestId, TensorError> {
        self.component.receive_tensor(from, (name.edge, name.step), expect, timeout)
    }

    /// Ends a receive by order, unless it has ended.
    ///
    /// # Errors
    /// [`UnknownRequest`].
    pub fn cancel(&mut self, request: RequestId) -> Result<(), UnknownRequest> {
        self.component.cancel_tensor(request)
    }

    /// The shape of the tensor that [`Self::take_tensor`] will return.
    #[must_use]
    pub fn tensor_shape(&mut self, request: RequestId) -> Option<Shape> {
        self.component.tensor_shape(request)
    }

    /// The tensor of a receive that has ended with one, once: what was handed over is mapped, all
    /// else copied, and its memory is free for the next. Take each: what is not taken keeps its
    /// memory, and no more than 16 are handed over at a time.
    pub fn take_tensor(&mut self, request: RequestId) -> Option<Tensor> {
        take(&mut self.component, request)
    }

    /// Drops the tensors of a step that were sent here, and ends its receives, here and at members
    /// that wait for them, with [`Received::StepOver`](super::Received::StepOver).
    ///
    /// # Errors
    /// [`TensorError::NoRendezvous`].
    pub fn clean_step(&mut self, step: i64) -> Result<(), TensorError> {
        self.component.end_step(step, false)
    }

    /// As [`Self::clean_step`], with [`Received::Aborted`](super::Received::Aborted). The first end
    /// of a step stands.
    ///
    /// # Errors
    /// [`TensorError::NoRendezvous`].
    pub fn abort_step(&mut self, step: i64) -> Result<(), TensorError> {
        self.component.end_step(step, true)
    }
}

fn take(component: &mut Component, request: RequestId) -> Option<Tensor> {
    component.take_tensor(request)
}

impl MemberHandle {
    /// As [`Member::send`]; waits for room. What is too long for that is sealed in this thread, and
    /// sent so ([`Member::send_sealed`]).
    ///
    /// # Errors
    /// [`CallError`]; nothing changed.
    pub fn send(
        &self,
        to: Rank,
        name: TensorName<'_>,
        tensor: TensorView<'_>,
        timeout: Duration,
    ) -> Result<OfferId, CallError<TensorError>> {
        let value = (tensor.shape(), tensor.bytes());
        let send = |it: &mut Component| it.send_tensor(to, (name.edge, name.step), Some(value));
        match self.call_tensor(timeout, send) {
            Err(CallError::Refused(TensorError::TooLong { .. })) => {
                let no_memory = CallError::Refused(TensorError::NoSpace);
                let sealed = SealedTensor::copy_of(tensor).map_err(|_| no_memory)?;
                self.send_sealed(to, name, &sealed, timeout)
            }
            done => done,
        }
    }

    /// As [`Member::send_sealed`]; waits for room.
    ///
    /// # Errors
    /// [`CallError`]; nothing changed.
    pub fn send_sealed(
        &self,
        to: Rank,
        name: TensorName<'_>,
        tensor: &SealedTensor,
        timeout: Duration,
    ) -> Result<OfferId, CallError<TensorError>> {
        self.call_tensor(timeout, |it| it.send_sealed(to, (name.edge, name.step), tensor))
    }

    /// As [`Member::send_dead`]; waits for room.
    ///
    /// # Errors
    /// [`CallError`]; nothing changed.
    pub fn send_dead(
        &self,
        to: Rank,
        name: TensorName<'_>,
        timeout: Duration,
    ) -> Result<OfferId, CallError<TensorError>> {
        self.call_tensor(timeout, |it| it.send_tensor(to, (name.edge, name.step), None))
    }

    /// As [`Member::receive`]; waits for room, and then ends after `timeout` again. The events come
    /// by [`Self::next_event`].
    ///
    /// # Errors
    /// [`CallError`]; nothing was begun.
    pub fn receive(
        &self,
        from: Rank,
        name: TensorName<'_>,
        expect: Expect,
        timeout: Duration,
    ) -> Result<RequestId, CallError<TensorError>> {
        let name = (name.edge, name.step);
        self.call_tensor(timeout, |it| it.receive_tensor(from, name, expect, timeout))
    }

    fn call_tensor<T>(
        &self,
        timeout: Duration,
        mut act: impl FnMut(&mut Component) -> Result<T, TensorError>,
    ) -> Result<T, CallError<TensorError>> {
        let mut refused = TensorError::NoSpace;
        let called = self.shared().call(timeout, Behind::Pass, |component| match act(component) {
            Err(error @ (TensorError::Full { .. } | TensorError::NoSpace)) => {
                refused = error;
                None
            }
            done => Some(done),
        });
        called.map_err(CallError::Ended)?.unwrap_or(Err(refused)).map_err(CallError::Refused)
    }

    /// As [`Member::cancel`].
    ///
    /// # Errors
    /// [`CallError`].
    pub fn cancel(&self, request: RequestId) -> Result<(), CallError<UnknownRequest>> {
        let cancelled = self.shared().act(|component| component.cancel_tensor(request));
        cancelled.map_err(CallError::Ended)?.map_err(CallError::Refused)
    }

    /// As [`Member::tensor_shape`].
    ///
    /// # Errors
    /// [`MemberEnded::Panicked`].
    pub fn tensor_shape(&self, request: RequestId) -> Result<Option<Shape>, MemberEnded> {
        self.shared().act(|component| component.tensor_shape(request))
    }

    /// As [`Member::take_tensor`].
    ///
    /// # Errors
    /// [`MemberEnded::Panicked`].
    pub fn take_tensor(&self, request: RequestId) -> Result<Option<Tensor>, MemberEnded> {
        self.shared().act(|component| take(component, request))
    }

    /// As [`Member::clean_step`].
    ///
    /// # Errors
    /// [`CallError`].
    pub fn clean_step(&self, step: i64) -> Result<(), CallError<TensorError>> {
        self.end_step(step, false)
    }

    /// As [`Member::abort_step`].
    ///
    /// # Errors
    /// [`CallError`].
    pub fn abort_step(&self, step: i64) -> Result<(), CallError<TensorError>> {
        self.end_step(step, true)
    }

    fn end_step(&self, step: i64, is_aborted: bool) -> Result<(), CallError<TensorError>> {
        let ended = self.shared().act(|component| component.end_step(step, is_aborted));
        ended.map_err(CallError::Ended)?.map_err(CallError::Refused)
    }
}
