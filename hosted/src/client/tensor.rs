//! What a client does with the tensors of its node: send, receive, end a step, list.
//!
//! The bytes go as a descriptor of sealed memory ([`SealedTensor`]), and are copied neither by the
//! client nor by its node. The node keeps them, so a lost component is no error here.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use weft_core::ids::Rank;
use weft_core::rendezvous::Shape;

use super::{Client, ClientError, SLACK, millis};
use crate::clock::Deadline;
use crate::explain::Code;
use crate::node::control::{
    KeptTensor, Outcome, Refused, TensorKey, TensorList, TensorOutcome, TensorRefused, TensorWant,
    Want,
};
use crate::tensor::{SealedTensor, ShapeText, TensorName};

/// When a send ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendUntil {
    /// Once the node keeps the tensor.
    Kept,
    /// Once its receiver has it.
    Received,
}

/// A tensor that was received. The node keeps it until it is released
/// ([`Client::release_tensor`]), and gives it to another client if this one leaves before.
#[derive(Debug)]
pub struct ReceivedTensor {
    /// The node's number of it.
    pub number: u64,
    /// The tensor; none if its sender has sent a dead one.
    pub tensor: Option<SealedTensor>,
}

impl Client {
    /// Has the node send `tensor` to `to`, or a dead one; the node's number of it. Waits up to
    /// `timeout` for room, or for its receiver.
    ///
    /// # Errors
    /// [`ClientError`]; the node does not keep it, unless it says so.
    pub fn send_tensor(
        &mut self,
        to: Rank,
        name: TensorName<'_>,
        tensor: Option<&SealedTensor>,
        (until, timeout): (SendUntil, Duration),
    ) -> Result<u64, ClientError> {
        let key = key_of(name, Rank(self.rank), to);
        let shape = tensor.map(|tensor| ShapeText::from(tensor.view().shape()));
        let want = TensorWant::Send { key, shape, waits: until == SendUntil::Received };
        let fds: Vec<_> = tensor.iter().map(|tensor| tensor.as_fd()).collect();
        match self.ask_tensor(want, &fds, timeout)? {
            (TensorOutcome::Sent { number } | TensorOutcome::Consumed { number }, _) => Ok(number),
            (other, _) => Err(self.out_of_place(&Outcome::Tensor(other))),
        }
    }

    /// Receives a tensor of `from`, which may send it earlier or later. Of several under one name
    /// the oldest comes first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn receive_tensor(
        &mut self,
        from: Rank,
        name: TensorName<'_>,
        timeout: Duration,
    ) -> Result<ReceivedTensor, ClientError> {
        let want = TensorWant::Receive { key: key_of(name, from, Rank(self.rank)) };
        let (outcome, mut fds) = self.ask_tensor(want, &[], timeout)?;
        let TensorOutcome::Received { number, shape } = outcome else {
            return Err(self.out_of_place(&Outcome::Tensor(outcome)));
        };
        let Some(text) = shape else { return Ok(ReceivedTensor { number, tensor: None }) };
        let opened = match (Shape::try_from(&text), fds.pop()) {
            (Ok(shape), Some(fd)) => {
                SealedTensor::open(shape, fd).map_err(|error| error.to_string())
            }
            (Ok(_), None) => Err("its descriptor did not arrive".to_owned()),
            (Err(error), _) => Err(error.to_string()),
        };
        let rank = self.rank;
        let tensor = opened.map_err(|why| {
            let reason = Refused::Tensor(TensorRefused::NotSealed(why));
            ClientError::Refused { rank, reason }
        })?;
        Ok(ReceivedTensor { number, tensor: Some(tensor) })
    }

    /// The tensor of this number was processed: the node drops it. Whether this client held it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn release_tensor(&mut self, number: u64) -> Result<bool, ClientError> {
        match self.ask_tensor(TensorWant::Release { number }, &[], Duration::ZERO)? {
            (TensorOutcome::Released(held), _) => Ok(held),
            (other, _) => Err(self.out_of_place(&Outcome::Tensor(other))),
        }
    }

    /// Drops the tensors of a step that the node keeps and no client holds, and ends its receives,
    /// here and at nodes that wait for them: as cleaned up, or as aborted.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn end_step(
        &mut self,
        step: i64,
        is_aborted: bool,
        timeout: Duration,
    ) -> Result<(), ClientError> {
        match self.ask_tensor(TensorWant::EndStep { step, is_aborted }, &[], timeout)? {
            (TensorOutcome::Ended, _) => Ok(()),
            (other, _) => Err(self.out_of_place(&Outcome::Tensor(other))),
        }
    }

    /// All tensors that the node keeps.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn tensors(&mut self) -> Result<TensorList, ClientError> {
        let (mut after, mut all): (u64, Vec<KeptTensor>) = (0, Vec::new());
        loop {
            match self.ask_tensor(TensorWant::List { after }, &[], Duration::ZERO)? {
                (TensorOutcome::Listed(mut list), _) => {
                    let Some(last) = list.kept.last() else {
                        list.kept = all;
                        return Ok(list);
                    };
                    after = last.number;
                    all.append(&mut list.kept);
                }
                (other, _) => return Err(self.out_of_place(&Outcome::Tensor(other))),
            }
        }
    }

    fn ask_tensor(
        &mut self,
        what: TensorWant,
        fds: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<(TensorOutcome, Vec<OwnedFd>), ClientError> {
        let deadline = Deadline::after(timeout.saturating_add(SLACK));
        let timeout_ms = millis(timeout);
        self.request_with(Want::Tensor { timeout_ms, what }, fds, deadline)?;
        match self.answer_with(deadline)? {
            (Outcome::Tensor(outcome), fds) => Ok((outcome, fds)),
            (other, _) => Err(self.out_of_place(&other)),
        }
    }
}

fn key_of(name: TensorName<'_>, from: Rank, to: Rank) -> TensorKey {
    TensorKey { from: from.0, to: to.0, edge: name.edge.to_owned(), step: name.step }
}

/// The cause, for people.
pub(super) fn fmt_refused(
    rank: u16,
    why: &TensorRefused,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match why {
        TensorRefused::NoRendezvous => f.write_str("the cluster has no rendezvous"),
        TensorRefused::BadName(why) => write!(f, "the name of the tensor is refused: {why}"),
        TensorRefused::NotSealed(why) => write!(f, "this is not the memory of a tensor: {why}"),
        TensorRefused::Full { limit } => {
            write!(f, "node {rank} has {limit} tensors and receives, and room for no more")
        }
        TensorRefused::TooLong { limit } => {
            write!(f, "the tensor is longer than {limit} bytes, the longest that node {rank} takes")
        }
        TensorRefused::NoSpace => write!(
            f,
            "other tensors wait for their receivers in the pool of node {rank}, which had no piece \
             for this one in time"
        ),
        TensorRefused::StoreFull { needed, bytes, limit } => write!(
            f,
            "the store of node {rank} has had no room for {needed} bytes in time: {bytes} of \
             {limit} are taken, or reserved for receives"
        ),
        TensorRefused::Held { limit } => write!(
            f,
            "this client holds {limit} tensors that it received of node {rank}, as many as it may"
        ),
        TensorRefused::Descriptors { places, open_files } => write!(
            f,
            "node {rank} may open {open_files} files, and has room for {places} tensors and \
             receives among them"
        ),
        TensorRefused::PeerGone => f.write_str(
            "the node that sends the tensor was lost or removed, and the tensor with it",
        ),
        TensorRefused::Finished => f.write_str("the program of that node has finished"),
        TensorRefused::StepOver => f.write_str("the step was cleaned up"),
        TensorRefused::Aborted => f.write_str("the step was aborted"),
        TensorRefused::Corrupt => f.write_str(
            "the bytes of the tensor were damaged on the way; it is still at its source",
        ),
        TensorRefused::NotSent => f.write_str("the tensor was not sent in time"),
        TensorRefused::NotReceived { number } => write!(
            f,
            "node {rank} keeps the tensor as number {number}, and has not learned in time that its \
             receiver has it"
        ),
        TensorRefused::NoWaiter => f.write_str(
            "the sending node has had no room for one more receive of this node in time",
        ),
    }
}

pub(super) const fn code(why: &TensorRefused) -> Code {
    match why {
        TensorRefused::NoRendezvous => Code::Usage,
        TensorRefused::Finished => Code::Standing,
        TensorRefused::BadName(_) => Code::Key,
        TensorRefused::NotSealed(_) => Code::Protocol,
        TensorRefused::Full { .. }
        | TensorRefused::Held { .. }
        | TensorRefused::Descriptors { .. }
        | TensorRefused::NoWaiter => Code::Busy,
        TensorRefused::TooLong { .. } => Code::MessageTooLong,
        TensorRefused::NoSpace | TensorRefused::StoreFull { .. } => Code::StoreFull,
        TensorRefused::PeerGone => Code::ComponentLost,
        TensorRefused::StepOver | TensorRefused::Aborted => Code::StepOver,
        TensorRefused::Corrupt => Code::TensorCorrupt,
        TensorRefused::NotSent | TensorRefused::NotReceived { .. } => Code::Timeout,
    }
}

pub(super) fn cure(why: &TensorRefused) -> String {
    match why {
        TensorRefused::NoRendezvous => {
            "set rendezvous.pool_mib in the cluster file, for instance to 16"
        }
        TensorRefused::BadName(_) => {
            "name it with 1 to 480 bytes of text without `;`, between nodes of this cluster"
        }
        TensorRefused::NotSealed(_) => {
            "send a `SealedTensor`, and run the same build of weft everywhere"
        }
        TensorRefused::Full { .. } => {
            "receive them with `weft recv`, or drop them with `weft tensors cleanup --step N`; \
             `weft tensors ls` shows them"
        }
        TensorRefused::NoSpace => {
            "receive them with `weft recv`, drop them with `weft tensors cleanup --step N`, or \
             raise rendezvous.pool_mib; `weft tensors ls` shows them"
        }
        TensorRefused::Held { .. } => "release one of them before the next receive",
        TensorRefused::TooLong { .. } => "split it, or raise rendezvous.store_mib",
        TensorRefused::Descriptors { .. } => {
            "receive tensors with `weft recv`, or start the node under a higher `ulimit -n`"
        }
        TensorRefused::StoreFull { .. } => {
            "receive tensors with `weft recv`, drop them with `weft tensors cleanup --step N`, or \
             raise rendezvous.store_mib: a receive reserves as much as a piece of the pool until \
             its tensor is there"
        }
        TensorRefused::PeerGone => {
            "run `weft status` to see which nodes run, and have the tensor sent again"
        }
        TensorRefused::Finished => "use a node whose program runs",
        TensorRefused::StepOver | TensorRefused::Aborted => "name a later step",
        TensorRefused::Corrupt => "receive it again",
        TensorRefused::NotSent => "send it with `weft send`, or raise `--timeout`",
        TensorRefused::NotReceived { .. } => {
            "wait, if it is being received; else receive it with `weft recv`, or drop it with \
             `weft tensors cleanup --step N`"
        }
        TensorRefused::NoWaiter => "wait for other receives to end, and try again",
    }
    .to_owned()
}
