//! The handle of a member whose loop has a thread of its own: `Clone`, for all threads of a
//! program.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use weft_core::ids::{Incarnation, Rank};
use weft_core::mailbox::{Message, Receipt, UnknownReceipt};

use super::shared::{Behind, SharedMember};
use super::{
    BroadcastError, CallError, Delivery, Event, Group, GroupError, Member, MemberEnded, PutError,
    SaveError, View,
};
use crate::node::{Component, NodeError, PROGRAM_STOP_TIMEOUT};
use crate::process::start_thread;

/// A member that any thread uses, and that needs no poll ([`Member::spawn`]).
///
/// A call that waits has a timeout, and [`Duration::ZERO`] asks for what is there now. Each queue
/// is bounded: a call for which there is no room by its timeout is refused, and nothing changed.
/// Once the member is over, calls that would wait return [`MemberEnded`] at once.
///
/// The descriptor ([`AsFd`]) is readable while there is an event, a message, a broadcast or a
/// delivery of the group to drain, and after the end: for epoll, `AsyncFd` and asyncio. Drain with
/// timeouts of zero until nothing is left; do not read from it.
///
/// The last handle that is dropped waits until what was put has arrived, for
/// [`STOP_TIMEOUT`](super::STOP_TIMEOUT) at most. The thread goes on until the process ends, so
/// that the program is not taken for hung.
#[derive(Clone, Debug)]
pub struct MemberHandle {
    inner: Arc<HandleInner>,
}

struct HandleInner {
    shared: Arc<SharedMember>,
    rank: Rank,
    size: u16,
    name: String,
    incarnation: Incarnation,
    message_len: usize,
    broadcast_len: usize,
}

impl MemberHandle {
    pub(super) fn shared(&self) -> &SharedMember {
        &self.inner.shared
    }
}

impl HandleInner {
    fn flush(&self, timeout: Duration) -> Result<bool, MemberEnded> {
        let flushed = self.shared.call(timeout, Behind::Return, |component| {
            (0..self.size).all(|rank| component.unput(Rank(rank)) == 0).then_some(())
        });
        flushed.map(|flushed| flushed.is_some())
    }
}

impl std::fmt::Debug for HandleInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rank, incarnation) = (&self.rank, &self.incarnation);
        f.debug_struct("Member").field("rank", rank).field("incarnation", incarnation).finish()
    }
}

/// A message that was taken from the mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The sender.
    pub sender: Rank,
    /// The sender's number for it: [`Message::sequence`].
    pub sequence: u32,
    /// What [`MemberHandle::release`] takes.
    pub receipt: Receipt,
    /// Its bytes.
    pub payload: Vec<u8>,
}

/// A broadcast that was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The member that broadcast it.
    pub origin: Rank,
    /// Its number among those of its origin, from 1.
    pub seq: u64,
    /// Its bytes.
    pub payload: Vec<u8>,
}

impl Delivered {
    fn of(message: Delivery<'_>) -> Self {
        let origin = Rank(message.origin.0);
        Self { origin, seq: message.seq, payload: message.payload.to_vec() }
    }
}

/// Messages that were taken in one call; reuse it, and it allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct TakenBatch {
    heads: Vec<Head>,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    sender: Rank,
    sequence: u32,
    receipt: Receipt,
    end: usize,
}

impl TakenBatch {
    /// How many messages it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Its messages as sender, sequence, receipt and payload, in the order of the mailbox.
    pub fn iter(&self) -> impl Iterator<Item = (Rank, u32, Receipt, &[u8])> + '_ {
        let mut start = 0;
        self.heads.iter().map(move |head| {
            let payload = &self.bytes[start..head.end];
            start = head.end;
            (head.sender, head.sequence, head.receipt, payload)
        })
    }

    fn clear(&mut self) {
        self.heads.clear();
        self.bytes.clear();
    }

    /// Takes messages until there are `max`, or no more.
    pub(super) fn fill(&mut self, max: usize, component: &mut Component) {
        self.clear();
        let left = |batch: &Self| u32::try_from(max - batch.len()).unwrap_or(u32::MAX);
        while component.take_run(left(self), |message| self.push(message)).is_some() {}
    }

    fn push(&mut self, message: &Message<'_>) {
        self.bytes.extend_from_slice(message.payload);
        self.heads.push(Head {
            sender: Rank(message.sender.0),
            sequence: message.sequence,
            receipt: message.receipt,
            end: self.bytes.len(),
        });
    }
}

impl Member {
    /// Gives the loop a thread of its own, so that the program need not poll, and returns the first
    /// handle.
    ///
    /// # Errors
    /// [`NodeError`]: the system refuses the thread or a descriptor. End the program.
    pub fn spawn(mut self) -> Result<MemberHandle, NodeError> {
        let (rank, size, name) = (self.rank(), self.size(), self.name().to_owned());
        let (incarnation, message_len) = (self.incarnation(), self.message_len());
        let broadcast_len = self.broadcast_len();
        let waiter = self.component.take_waiter();
        // A component takes its waiter out once, here, and a member is spawned once.
        let waiter = waiter.ok_or(NodeError::Link("a member without its bell"))?;
        let shared = Arc::new(SharedMember::new(self.component)?);
        let looping = Arc::clone(&shared);
        start_thread("weft-member", move || looping.run(waiter))?;
        let inner =
            HandleInner { shared, rank, size, name, incarnation, message_len, broadcast_len };
        Ok(MemberHandle { inner: Arc::new(inner) })
    }
}

impl MemberHandle {
    /// The rank of this member.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.inner.rank
    }

    /// How many members the cluster has, running or not.
    #[must_use]
    pub fn size(&self) -> u16 {
        self.inner.size
    }

    /// The name of the cluster.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The incarnation of this member.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.inner.incarnation
    }

    /// The longest message of the mailbox, in bytes.
    #[must_use]
    pub fn message_len(&self) -> usize {
        self.inner.message_len
    }

    /// The longest broadcast, in bytes.
    #[must_use]
    pub fn broadcast_len(&self) -> usize {
        self.inner.broadcast_len
    }

    /// As [`Member::members`].
    ///
    /// # Errors
    /// [`MemberEnded::Panicked`].
    pub fn members(&self) -> Result<Vec<Rank>, MemberEnded> {
        let ranks = |it: &mut Component| it.members().iter().map(|peer| Rank(peer.0)).collect();
        self.inner.shared.act(ranks)
    }

    /// As [`Member::view`].
    ///
    /// # Errors
    /// [`MemberEnded::Panicked`].
    pub fn view(&self) -> Result<Option<View>, MemberEnded> {
        self.inner.shared.act(|component| component.view().cloned())
    }

    /// As [`Member::is_view_stale`].
    ///
    /// # Errors
    /// [`MemberEnded::Panicked`].
    pub fn is_view_stale(&self) -> Result<bool, MemberEnded> {
        self.inner.shared.act(|component| component.is_view_stale())
    }

    /// As [`Member::manager`].
    ///
    /// # Errors
    /// [`MemberEnded::Panicked`].
    pub fn manager(&self) -> Result<Option<Rank>, MemberEnded> {
        self.inner.shared.act(|component| component.manager())
    }

    /// The next event, oldest first; none by the end of `timeout`.
    ///
    /// # Errors
    /// [`MemberEnded`], once no event is left.
    pub fn next_event(&self, timeout: Duration) -> Result<Option<Event>, MemberEnded> {
        self.inner.shared.call(timeout, Behind::Return, Component::next_event)
    }

    /// As [`Member::put`]; waits for room, and for an incarnation of `to` that is admitted.
    ///
    /// # Errors
    /// [`CallError`]; nothing changed.
    pub fn put(
        &self,
        to: Rank,
        payload: &[u8],
        timeout: Duration,
    ) -> Result<(), CallError<PutError>> {
        let mut refused = Ok(());
        let put = self.inner.shared.call(timeout, Behind::Pass, |component| {
            match component.put(to, payload) {
                waits @ Err(PutError::Full { .. } | PutError::NotAMember) => {
                    refused = waits;
                    None
                }
                done => Some(done),
            }
        });
        put.map_err(CallError::Ended)?.unwrap_or(refused).map_err(CallError::Refused)
    }

    /// As [`Member::put_batch`]; waits until one was accepted.
    ///
    /// # Errors
    /// [`CallError`] of the first one, if none was accepted.
    pub fn put_batch<'p>(
        &self,
        to: Rank,
        payloads: impl IntoIterator<Item = &'p [u8]>,
        timeout: Duration,
    ) -> Result<usize, CallError<PutError>> {
        let mut payloads = payloads.into_iter().peekable();
        let (mut accepted, mut refused) = (0, Ok(0));
        let put = self.inner.shared.call(timeout, Behind::Pass, |component| {
            while let Some(payload) = payloads.peek() {
                match component.put(to, payload) {
                    Ok(()) => accepted += 1,
                    // The next call reports it; this one reports what was accepted.
                    Err(_) if accepted > 0 => break,
                    Err(error @ (PutError::Full { .. } | PutError::NotAMember)) => {
                        refused = Err(error);
                        return None;
                    }
                    Err(error) => return Some(Err(error)),
                }
                payloads.next();
            }
            Some(Ok(accepted))
        });
        put.map_err(CallError::Ended)?.unwrap_or(refused).map_err(CallError::Refused)
    }

    /// Waits until all that was put is in the memory of its receivers; whether it is.
    ///
    /// # Errors
    /// [`MemberEnded`].
    pub fn flush(&self, timeout: Duration) -> Result<bool, MemberEnded> {
        self.inner.flush(timeout)
    }

    /// As [`Member::take`], copied; none by the end of `timeout`.
    ///
    /// # Errors
    /// [`MemberEnded`], once no message is left.
    pub fn take(&self, timeout: Duration) -> Result<Option<Taken>, MemberEnded> {
        self.inner.shared.call(timeout, Behind::Return, |component| {
            component.take().map(|message| Taken {
                sender: Rank(message.sender.0),
                sequence: message.sequence,
                receipt: message.receipt,
                payload: message.payload.to_vec(),
            })
        })
    }

    /// Replaces `batch` with up to `max` messages, as soon as there is one; how many. None by the
    /// end of `timeout`.
    ///
    /// # Errors
    /// [`MemberEnded`], once no message is left.
    pub fn take_batch(
        &self,
        batch: &mut TakenBatch,
        max: usize,
        timeout: Duration,
    ) -> Result<usize, MemberEnded> {
        batch.clear();
        self.inner.shared.call(timeout, Behind::Return, |component| {
            batch.fill(max, component);
            // A batch without room waits for nothing.
            (!batch.is_empty() || max == 0).then_some(())
        })?;
        Ok(batch.len())
    }

    /// As [`Member::release`].
    ///
    /// # Errors
    /// [`CallError`].
    pub fn release(&self, receipt: Receipt) -> Result<(), CallError<UnknownReceipt>> {
        let released = self.inner.shared.act(|component| component.release(receipt));
        released.map_err(CallError::Ended)?.map_err(CallError::Refused)
    }

    /// Releases the messages of `batch`.
    ///
    /// # Errors
    /// [`CallError`]; those before the one that is unknown are released.
    pub fn release_batch(&self, batch: &TakenBatch) -> Result<(), CallError<UnknownReceipt>> {
        self.release_all(batch.heads.iter().map(|head| head.receipt))
    }

    /// As [`Member::release_all`].
    ///
    /// # Errors
    /// [`CallError`]; those before the one that is unknown are released.
    pub fn release_all(
        &self,
        receipts: impl IntoIterator<Item = Receipt>,
    ) -> Result<(), CallError<UnknownReceipt>> {
        let mut receipts = receipts.into_iter();
        let released = self.inner.shared.act(|component| component.release_all(receipts.by_ref()));
        released.map_err(CallError::Ended)?.map_err(CallError::Refused)
    }

    /// As [`Member::broadcast`]; waits for room in the window.
    ///
    /// # Errors
    /// [`CallError`]; nothing changed.
    pub fn broadcast(
        &self,
        payload: &[u8],
        timeout: Duration,
    ) -> Result<u64, CallError<BroadcastError>> {
        let sent = self.inner.shared.call(timeout, Behind::Pass, |component| {
            match component.broadcast(payload) {
                Err(BroadcastError::WindowFull) => None,
                done => Some(done),
            }
        });
        let full = Err(BroadcastError::WindowFull);
        sent.map_err(CallError::Ended)?.unwrap_or(full).map_err(CallError::Refused)
    }

    /// As [`Member::deliver`], copied; none by the end of `timeout`.
    ///
    /// # Errors
    /// [`MemberEnded`], once no broadcast is left.
    pub fn deliver(&self, timeout: Duration) -> Result<Option<Delivered>, MemberEnded> {
        let deliver = |component: &mut Component| component.deliver().map(Delivered::of);
        self.inner.shared.call(timeout, Behind::Return, deliver)
    }

    /// As [`Member::delivered`], copied.
    ///
    /// # Errors
    /// [`MemberEnded::Panicked`].
    pub fn delivered(&self, origin: Rank, seq: u64) -> Result<Option<Delivered>, MemberEnded> {
        self.inner.shared.act(|component| component.delivered(origin, seq).map(Delivered::of))
    }

    /// Calls `act` with the group of that name ([`Member::group`]) until it returns something, and
    /// passes in between; none by the end of `timeout`. `act` holds up the member: it uses no
    /// handle, and waits for nothing.
    ///
    /// # Errors
    /// [`CallError`]; [`GroupError::UnknownGroup`], [`GroupError::NotAMember`].
    pub fn with_group<T>(
        &self,
        name: &str,
        timeout: Duration,
        mut act: impl FnMut(&mut Group<'_>) -> Option<T>,
    ) -> Result<Option<T>, CallError<GroupError>> {
        // The pass behind it sends what `act` has written before the loop wakes from its rest.
        let acted = self.inner.shared.call(timeout, Behind::Pass, |component| {
            Group::of(component, name).map(|mut group| act(&mut group)).transpose()
        });
        acted.map_err(CallError::Ended)?.transpose().map_err(CallError::Refused)
    }

    /// As [`Member::save`].
    ///
    /// # Errors
    /// [`CallError`]; the record is as it was.
    pub fn save(&self, record: &[u8]) -> Result<(), CallError<SaveError>> {
        let saved = self.inner.shared.act(|component| super::save(component, record));
        saved.map_err(CallError::Ended)?.map_err(CallError::Refused)
    }

    /// As [`Member::saved`].
    ///
    /// # Errors
    /// [`MemberEnded::Panicked`].
    pub fn saved(&self) -> Result<Option<Vec<u8>>, MemberEnded> {
        self.inner.shared.act(|component| component.state()?.load())
    }
}

impl Drop for HandleInner {
    fn drop(&mut self) {
        // A member that has ended puts nothing more.
        let _ = self.flush(PROGRAM_STOP_TIMEOUT);
    }
}

impl AsFd for MemberHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.shared.watch();
        self.inner.shared.due.as_fd()
    }
}
