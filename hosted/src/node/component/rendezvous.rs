//! What the program of a member sends and receives by name, straight on the endpoint.
//!
//! What an incarnation has sent and its receiver does not have ends with it.

use std::os::fd::AsFd;

use weft_core::endpoint::Plan;
use weft_core::fabric::{Fabric, Memory};
use weft_core::ids::{Peer, Rank};
use weft_core::rendezvous::{
    Adapter, BadKey, Expect, Key, OfferError, OfferId, Place, ReceiveError, RendezvousEvent,
    RequestId, Shape, UnknownRequest,
};
use weft_core::time::Instant;
use zerocopy::IntoBytes;

use super::{Component, Event};
use crate::clock::now_ns;
use crate::node::control::TensorStatus;
use crate::node::{EndpointFabric, NodeEndpoint, NodeRendezvous, REQUESTS, TENSOR_FRAME};
use crate::shm::SealedBytes;
use crate::tensor::Tensor;

/// Why a tensor was not sent, or not asked for. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// The cluster file has no rendezvous.
    #[error("this cluster has no rendezvous")]
    NoRendezvous,
    /// The rank is none of this cluster.
    #[error("there is no member of that rank")]
    NoSuchRank,
    /// The edge cannot be a part of a key.
    #[error("the name is refused: {0}")]
    BadName(BadKey),
    /// There are as many of them as there may be.
    #[error("{limit} of them are open")]
    Full {
        /// How many tensors may wait for their receivers, and how many receives may be open.
        limit: usize,
    },
    /// The tensor is longer than any piece of the pool.
    #[error("the tensor is longer than {limit} bytes")]
    TooLong {
        /// The longest tensor.
        limit: usize,
    },
    /// Other tensors take the memory.
    #[error("other tensors wait for their receivers in that memory")]
    NoSpace,
    /// This member was removed.
    #[error("that member was removed, and its tensors are lost")]
    PeerGone,
    /// The program of this member has finished.
    #[error("the program of that member has finished")]
    Finished,
    /// The step was cleaned up.
    #[error("the step was cleaned up at this member")]
    StepOver,
    /// The step was aborted.
    #[error("the step was aborted at this member")]
    Aborted,
}

/// Gives the endpoint its rendezvous, where the plan has a place for it.
pub(super) fn begin(endpoint: &mut NodeEndpoint, plan: &Plan) {
    let Some((sizes, at)) = plan.rendezvous() else { return };
    let incarnation = endpoint.incarnation();
    let adapter = Adapter::new(endpoint.fabric(), sizes, at, (incarnation, incarnation.0));
    let begun = endpoint.begin_rendezvous(Box::new(adapter));
    debug_assert!(begun.is_ok(), "no peer is admitted before the endpoint is made");
}

impl Component {
    pub(super) fn with_tensors<T>(
        &mut self,
        act: impl FnOnce(&mut NodeRendezvous, &mut EndpointFabric) -> T,
    ) -> Result<T, TensorError> {
        let (adapter, fabric) = self.endpoint.rendezvous().ok_or(TensorError::NoRendezvous)?;
        Ok(act(adapter, fabric))
    }

    /// The key of what `source` sends to `destination`, one of which is this member.
    fn key(&self, source: Rank, destination: Rank, edge: &str) -> Result<Key, TensorError> {
        if [source, destination].iter().any(|rank| usize::from(rank.0) >= self.cluster.nodes) {
            return Err(TensorError::NoSuchRank);
        }
        if [source, destination].iter().any(|rank| self.events.has_finished(Peer(rank.0))) {
            return Err(TensorError::Finished);
        }
        let ends = ((Peer(source.0), None), Peer(destination.0));
        Key::new(ends.0, ends.1, (edge, TENSOR_FRAME)).map_err(TensorError::BadName)
    }

    /// Sends the bytes of a tensor of `shape`, or a dead one.
    pub(crate) fn send_tensor(
        &mut self,
        to: Rank,
        (edge, step): (&str, i64),
        tensor: Option<(Shape, &[u8])>,
    ) -> Result<OfferId, TensorError> {
        let (key, now) = (self.key(self.rank(), to, edge)?, Instant(now_ns()));
        let name = (&key, Place::whole(step));
        let sent = self.with_tensors(|adapter, fabric| match tensor {
            Some(value) => adapter.send_bytes(fabric, now, name, value),
            None => adapter.send_dead(fabric, now, name),
        })?;
        sent.map_err(|error| self.not_offered(error))
    }

    /// Sends a tensor of `shape` that the supervisor keeps under `number`, to a node of this host.
    pub(super) fn hand_over_tensor(
        &mut self,
        to: Rank,
        (edge, step): (&str, i64),
        value: (Shape, u64),
    ) -> Result<OfferId, TensorError> {
        let (key, now) = (self.key(self.rank(), to, edge)?, Instant(now_ns()));
        let name = (&key, Place::whole(step));
        let sent =
            self.with_tensors(|adapter, fabric| adapter.hand_over(fabric, now, name, value))?;
        sent.map_err(|error| self.not_offered(error))
    }

    const fn not_offered(&self, error: OfferError) -> TensorError {
        let limit = self.cluster.rendezvous.tensor_len();
        match error {
            OfferError::Full => TensorError::Full { limit: REQUESTS },
            OfferError::TooLong => TensorError::TooLong { limit },
            OfferError::NoSpace => TensorError::NoSpace,
            OfferError::BadKey(why) => TensorError::BadName(why),
            OfferError::StepOver => TensorError::StepOver,
            OfferError::Aborted => TensorError::Aborted,
            // The key names this member, and a view has the bytes of its shape.
            OfferError::NotMine | OfferError::BadShape => TensorError::NoSuchRank,
        }
    }

    /// Asks `from` for a tensor, until `deadline`.
    pub(crate) fn receive_tensor(
        &mut self,
        from: Rank,
        (edge, step): (&str, i64),
        expect: Expect,
        timeout: std::time::Duration,
    ) -> Result<RequestId, TensorError> {
        let (key, now) = (self.key(from, self.rank(), edge)?, Instant(now_ns()));
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let how = (expect, Instant(now.0.saturating_add(timeout_ns)));
        let name = (&key, Place::whole(step));
        let asked = self.with_tensors(|adapter, fabric| adapter.receive(fabric, now, name, how))?;
        asked.map_err(|error| match error {
            ReceiveError::Full => TensorError::Full { limit: REQUESTS },
            ReceiveError::PeerGone => TensorError::PeerGone,
            ReceiveError::StepOver => TensorError::StepOver,
            ReceiveError::Aborted => TensorError::Aborted,
            // The key names this member, and a tensor is one part.
            ReceiveError::NotMine | ReceiveError::NoPart => TensorError::NoSuchRank,
        })
    }

    pub(crate) fn cancel_tensor(&mut self, request: RequestId) -> Result<(), UnknownRequest> {
        let now = Instant(now_ns());
        let cancelled = self.with_tensors(|adapter, fabric| adapter.cancel(fabric, now, request));
        cancelled.unwrap_or(Err(UnknownRequest))
    }

    /// The shape of the tensor with which `request` has ended.
    pub(crate) fn tensor_shape(&mut self, request: RequestId) -> Option<Shape> {
        let read = |it: &mut Self| {
            let shape = it.with_tensors(|adapter, _| adapter.tensor(request).map(|it| it.shape));
            shape.ok().flatten()
        };
        self.fetches.shape(request).or_else(|| read(self))
    }

    /// The tensor with which `request` has ended: what was handed over is mapped, what was read is
    /// copied, and its memory is free.
    pub(crate) fn take_tensor(&mut self, request: RequestId) -> Option<Tensor> {
        if let Some((shape, fd)) = self.fetches.take(request) {
            // A descriptor that was checked is mapped; without address space there is no tensor.
            let mapped = SealedBytes::open(fd.as_fd(), shape.bytes());
            let mapped = mapped.inspect_err(|error| tracing::error!(%error, "no tensor"));
            let released = self.with_tensors(|adapter, _| adapter.release(request));
            debug_assert!(matches!(released, Ok(Ok(()))), "it has ended with a value");
            return Some(Tensor::handed_over(shape, mapped.ok()?));
        }
        let taken = self.with_tensors(|adapter, fabric| {
            let tensor = adapter.tensor(request)?;
            adapter.release(request).ok()?;
            let mut words = vec![0; usize::try_from(tensor.bytes.div_ceil(8)).ok()?];
            let bytes = words.as_mut_bytes().get_mut(..usize::try_from(tensor.bytes).ok()?)?;
            // Nothing is read into what was released before the next poll.
            fabric.memory().copy_out(tensor.at.region, tensor.at.offset, bytes);
            Some(Tensor::new(tensor.shape, words))
        });
        taken.ok().flatten()
    }

    /// Ends a step: its receives end, and its tensors are dropped.
    pub(crate) fn end_step(&mut self, step: i64, is_aborted: bool) -> Result<(), TensorError> {
        self.note_step_over(step);
        self.with_tensors(
            |adapter, _| {
                if is_aborted { adapter.abort(step) } else { adapter.cleanup(step) }
            },
        )
    }

    /// What the component knows; the supervisor adds its store.
    pub(super) fn tensor_status(&mut self) -> Option<TensorStatus> {
        let (adapter, _) = self.endpoint.rendezvous()?;
        let [receives, offered, waiters] = adapter.used();
        Some(TensorStatus {
            offered,
            offered_bytes: adapter.offers().lent().into(),
            receives,
            received_bytes: adapter.landings().lent().into(),
            quarantined_bytes: adapter.quarantined(),
            waiters,
            rejects: adapter.rejects().total(),
            ..TensorStatus::default()
        })
    }

    pub(super) fn has_tensor_event(&mut self) -> bool {
        self.endpoint.rendezvous().is_some_and(|(adapter, _)| adapter.has_event())
    }

    /// The adapter keeps its events until they are drained, so that none is missed.
    pub(super) fn tensor_event(&mut self) -> Option<Event> {
        let (adapter, _) = self.endpoint.rendezvous()?;
        Some(match adapter.poll_event()? {
            RendezvousEvent::Ended { request, outcome } => {
                let refused = self.fetches.note_end(request, outcome);
                if let Some(why) = refused {
                    tracing::warn!(?why, "a tensor was not handed over");
                }
                Event::Ended { request, outcome }
            }
            RendezvousEvent::Returned { request } => Event::Returned { request },
            RendezvousEvent::Consumed { offer } => {
                self.note_consumed(offer);
                Event::Consumed { offer }
            }
        })
    }
}
