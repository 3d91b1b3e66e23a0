//! Your program is the member.
//!
//! ```text
//!   weft run -n 4 -- ./app                   node r
//!    └ launcher ─▶ supervisor (the node: memory, I'm-Alive Task, control socket)
//!                    └ ./app       Member::join() takes the link and adopts the memory
//!                       └ your loop: poll or wait, events, take, put, broadcast, deliver
//! ```
//!
//! A [`Member`] is the endpoint of its node, in your process: what you put goes straight into the
//! memory of its receiver, and what you take is lent from your own. `weft component` is a program
//! over it like any other.
//!
//! You own the loop. [`Member::poll`] moves everything on and never waits; [`Member::wait`] does
//! the same and waits as the cluster file says (`wait`: spin, yield, futex) until there is
//! something to do. Then drain the [events](Member::events), [take](Member::take) what has arrived
//! and [deliver](Member::deliver) what was broadcast.
//!
//! **A member that does not poll is hung.** Its I'm-Alive Task raises the alarm when no poll came
//! for `dirnet.timing.alarm_us` (350 ms in the profile `host`, 100 ms in `lan`), the process is
//! killed, and the next incarnation is started. Join first, then prepare: a process that has not
//! joined within half of `dirnet.timing.clone_ms` is killed as well. One longer step is announced:
//! [`Member::working`]. A program that computes for long gives the loop a thread of its own.
//!
//! **Spawned.** [`Member::spawn`] does so, and returns a [`MemberHandle`] for any thread: each call
//! has a timeout and says when there is no room, and a descriptor is readable while there is
//! something to drain. A call that waits moves the member on itself, so a message passes through no
//! thread in between.
//!
//! **How it ends.** With exit status 0 the program has finished: its node keeps its place until all
//! programs have finished. It discards what is broadcast to it and what was being put;
//! further puts are refused ([`PutError::Finished`]). Any other end is the failure of this
//! incarnation, and the next one is started within `restart`.
//!
//! **Delivery.** A message is in the mailbox of its receiver, which outlives the program, until
//! [`Member::release`]; one that was taken and not released is taken again by the next incarnation.
//! A message whose write was under way when its receiver failed is put again, under the same number
//! ([`Message::sequence`]). When a sender is killed while a batch is on its way, any part of that
//! batch may arrive: number what must be complete, as the example `ring` does. Broadcasts are
//! delivered once, also across incarnations: what an incarnation delivered and did not save, the
//! next one reads again ([`Member::delivered`]), as the example `replicated_log` does.
//!
//! **Two numbers.** [`Member::incarnation`], [`Event::Joined`] and [`Event::Removed`] name a start
//! of a program ([`Incarnation`]); views and verdicts name what the manager has counted, the boot
//! of the node and the generation in it ([`View::incarnation`], shown as `boot/generation`). Both
//! rise; compare each with its own kind.
//!
//! # Views
//! A [`View`] is a membership: the members and their incarnations, decided by the manager of a term
//! and numbered by it. Each member shows one after the other ([`Event::View`], [`Member::view`]):
//! - Two members that show the same [number](View::number) show the same members in the same
//!   incarnations, with a probability of 1 − 2⁻⁶⁴ for each number.
//! - Numbers are ordered, and the numbers that a node shows rise, under every manager and in every
//!   incarnation. A member may skip views; it shows none in another order.
//! - What an incarnation has shown and its next view no longer contains is fenced at its node: it
//!   changes no byte there.
//! - A member shows only views that contain its own incarnation.
//!
//! A component that has ended stays in the view until the next one of its node has joined, or its
//! node is removed: [`Event::Removed`] comes first. A member that does not hear its manager keeps
//! its view, and [says so](Member::is_view_stale). With `dirnet.min_alive = 1` both sides of a
//! partition go on, each with a manager and a term of its own, and so with numbers of its own: who
//! needs one membership at a time demands a majority, and pauses while its view is stale.

mod error;
mod group;
mod handle;
mod refused;
mod shared;
mod tasks;
mod tensors;
mod working;

use std::time::Duration;

pub use error::{CallError, MemberEnded, MemberError, SaveError, WorkingError};
pub use group::{
    ALL, Group, GroupChunk, GroupDelivery, GroupError, GroupInPlace, GroupReceipt, GroupStanding,
    GroupValues, UnknownGroupReceipt,
};
pub use handle::{Delivered, MemberHandle, Taken, TakenBatch};
pub use weft_core::dirnet::{Members, ViewNumber};
pub use weft_core::ids::{Incarnation, Rank};
pub use weft_core::mailbox::{Message, Receipt, UnknownReceipt};
pub use weft_core::neb::Message as Delivery;

pub use weft_core::rendezvous::{
    BadKey, BadShape, Dtype, Expect, OfferId, Received, RequestId, Shape, UnknownRequest,
};

pub use crate::node::control::{TaskNotice, TaskNotices, Vote, VoteDenied, VoteResult};
pub use crate::node::{
    BroadcastError, Event, JoinError, PutError, TaskRefused, TensorError, Verdict,
};
pub use crate::tensor::{Element, SealedTensor, Tensor, TensorName, TensorView, ViewError};

use crate::clock::Deadline;
use crate::node::{Component, Flow, NodeError, PEERS};
use crate::shm::Waiter;

/// A membership on which all members that show its number agree.
pub type View = weft_core::dirnet::View<PEERS>;

/// How long [`Member::join`] waits to be admitted.
pub const JOIN_TIMEOUT: Duration = Duration::from_secs(10);
pub use crate::node::PROGRAM_STOP_TIMEOUT as STOP_TIMEOUT;

/// A member of a cluster: this process, one in a process.
///
/// It is bound to the thread that polls it.
pub struct Member {
    component: Box<Component>,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member")
            .field("rank", &self.rank())
            .field("incarnation", &self.incarnation())
            .finish_non_exhaustive()
    }
}

impl Member {
    /// Takes over what the node that started this process hands to it, and returns once the DIR net
    /// has admitted it, within [`JOIN_TIMEOUT`].
    ///
    /// # Errors
    /// [`JoinError`]; [`JoinError::NotAMember`] in a process that no node has started. This process
    /// cannot join again.
    pub fn join() -> Result<Self, JoinError> {
        Self::join_within(JOIN_TIMEOUT)
    }

    /// As [`Self::join`], within `timeout`.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn join_within(timeout: Duration) -> Result<Self, JoinError> {
        let mut member = Self { component: Box::new(Component::join()?) };
        let deadline = Deadline::after(timeout);
        while !member.component.is_admitted() {
            if member.is_stopping() {
                return Err(JoinError::Stopped);
            }
            if deadline.has_passed() {
                return Err(JoinError::TimedOut { after: timeout });
            }
            match member.wait(deadline.remaining()) {
                Ok(_) => {}
                Err(MemberError::NodeEnded) => return Err(JoinError::Stopped),
                Err(MemberError::Node(error)) => return Err(JoinError::Node(error)),
            }
        }
        Ok(member)
    }

    /// The rank of this member.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.component.rank()
    }

    /// How many members the cluster has, running or not.
    #[must_use]
    pub fn size(&self) -> u16 {
        u16::try_from(self.component.cluster().nodes).unwrap_or(u16::MAX)
    }

    /// The name of the cluster.
    #[must_use]
    pub fn name(&self) -> &str {
        self.component.cluster().name.as_str()
    }

    /// The incarnation of this member: one higher for each start of a process at this node.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.component.incarnation()
    }

    /// The longest message of the mailbox, in bytes.
    #[must_use]
    pub fn message_len(&self) -> usize {
        self.component.cluster().mailbox.message_len
    }

    /// The longest broadcast, in bytes.
    #[must_use]
    pub fn broadcast_len(&self) -> usize {
        self.component.cluster().neb.message_len
    }

    /// The members that this one exchanges messages with now, itself included. What others see may
    /// differ for as long as a change takes.
    pub fn members(&self) -> impl Iterator<Item = Rank> + use<> {
        self.component.members().iter().map(|peer| Rank(peer.0))
    }

    /// The view that this member shows: who the members are, by the decision of a manager. None
    /// before the first one. See [Views](self#views).
    #[must_use]
    pub fn view(&self) -> Option<&View> {
        self.component.view()
    }

    /// Whether the membership may be another by now: this member does not hear its manager, is
    /// itself a manager that is not heard, or knows of a later view that it cannot show yet.
    #[must_use]
    pub fn is_view_stale(&self) -> bool {
        self.component.is_view_stale()
    }

    /// The manager of the DIR net, once it is known.
    #[must_use]
    pub fn manager(&self) -> Option<Rank> {
        self.component.manager()
    }

    /// Whether [`Event::Stop`] has come: the program should end.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.component.is_stopping()
    }

    /// Moves everything on: puts, broadcasts, the DIR net, the requests of `weft status`. Never
    /// waits; whether there was anything to do. Call it at least every few milliseconds: see the
    /// [module](self).
    ///
    /// # Errors
    /// [`MemberError`]: end the program.
    pub fn poll(&mut self) -> Result<bool, MemberError> {
        let polled = self.component.pass();
        self.judge(polled)
    }

    /// As [`Self::poll`], and where there is nothing to do, waits until there is: until a poll has
    /// made progress, an event is due, or a message can be taken or delivered. Whether there is,
    /// by the end of `timeout`.
    ///
    /// # Errors
    /// [`MemberError`]: end the program.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, MemberError> {
        let waited = self.component.wait(timeout);
        self.judge(waited)
    }

    /// Polls until `attempt` returns something, and waits in between as [`Self::wait`] does; none
    /// by the end of `timeout`, or once the program is ordered to end. `attempt` is called after
    /// each poll, and no poll follows the call that returns something: what it was lent stays.
    ///
    /// # Errors
    /// [`MemberError`]: end the program.
    pub fn wait_until<T>(
        &mut self,
        timeout: Duration,
        attempt: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<Option<T>, MemberError> {
        let waiter = self.component.take_waiter();
        let mut waiter = waiter.ok_or(MemberError::NodeEnded)?;
        let waited = self.wait_with(&mut waiter, Deadline::after(timeout), attempt);
        self.component.return_waiter(waiter);
        waited
    }

    fn wait_with<T>(
        &mut self,
        waiter: &mut Waiter,
        deadline: Deadline,
        mut attempt: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<Option<T>, MemberError> {
        loop {
            let mut polled = self.poll();
            let mut done = attempt(self);
            if done.is_none() && matches!(polled, Ok(false)) && !deadline.has_passed() {
                let timeout = self.component.timeout().min(deadline.remaining());
                let again = || {
                    polled = self.poll();
                    // The poll may have brought what is waited for.
                    done = attempt(self);
                    done.is_some() || !matches!(polled, Ok(false))
                };
                if let Err(error) = waiter.idle(again, timeout) {
                    self.judge(Err(error.into()))?;
                }
            }
            if polled? {
                waiter.progress();
            }
            // Ordered to end: what is waited for may never come.
            if done.is_some() || self.is_stopping() || deadline.has_passed() {
                return Ok(done);
            }
        }
    }

    fn judge(&self, flow: Result<Flow, NodeError>) -> Result<bool, MemberError> {
        match flow {
            Ok(Flow::End) => Err(MemberError::NodeEnded),
            Ok(flow) => Ok(flow == Flow::Progress),
            Err(error) => {
                self.component.report_failure(&error);
                Err(MemberError::Node(error))
            }
        }
    }

    /// The next event, oldest first.
    pub fn next_event(&mut self) -> Option<Event> {
        self.component.next_event()
    }

    /// Drains the events, oldest first.
    pub fn events(&mut self) -> impl Iterator<Item = Event> + '_ {
        std::iter::from_fn(|| self.next_event())
    }

    /// Puts `payload` into the mailbox of `to`, which may be this member. It is on its way with the
    /// next poll, and is put as soon as there is room, also by the next incarnation of `to`.
    /// Messages to one member that are put between two polls travel together, and arrive in order.
    ///
    /// # Errors
    /// [`PutError`]; nothing changed.
    #[inline]
    pub fn put(&mut self, to: Rank, payload: &[u8]) -> Result<(), PutError> {
        self.component.put(to, payload)
    }

    /// Puts as many of `payloads` as the batch takes; how many those were.
    ///
    /// # Errors
    /// [`PutError`] of the first one, if none was accepted.
    pub fn put_batch<'p>(
        &mut self,
        to: Rank,
        payloads: impl IntoIterator<Item = &'p [u8]>,
    ) -> Result<usize, PutError> {
        let mut accepted = 0;
        for payload in payloads {
            match self.put(to, payload) {
                Ok(()) => accepted += 1,
                Err(error) if accepted == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(accepted)
    }

    /// How many messages for `to` were accepted and are not known to be in its memory yet.
    pub fn unput(&mut self, to: Rank) -> usize {
        self.component.unput(to)
    }

    /// The next message of the own mailbox, lent until the next call. It comes again, to the next
    /// incarnation of this member, unless it is [released](Self::release).
    #[inline]
    pub fn take(&mut self) -> Option<Message<'_>> {
        self.component.take()
    }

    /// The message of `receipt` has been processed: its slot is free.
    ///
    /// # Errors
    /// [`UnknownReceipt`].
    #[inline]
    pub fn release(&mut self, receipt: Receipt) -> Result<(), UnknownReceipt> {
        self.component.release(receipt)
    }

    /// Replaces `batch` with copies of up to `max` messages; how many.
    pub fn take_batch(&mut self, batch: &mut TakenBatch, max: usize) -> usize {
        batch.fill(max, &mut self.component);
        batch.len()
    }

    /// As [`Self::release`], for several.
    ///
    /// # Errors
    /// [`UnknownReceipt`]; those before the one that is unknown are released.
    pub fn release_all(
        &mut self,
        receipts: impl IntoIterator<Item = Receipt>,
    ) -> Result<(), UnknownReceipt> {
        self.component.release_all(receipts)
    }

    /// Broadcasts `payload` to all other members, and returns its number. No two of them deliver
    /// different messages under it.
    ///
    /// # Errors
    /// [`BroadcastError`]; nothing changed.
    pub fn broadcast(&mut self, payload: &[u8]) -> Result<u64, BroadcastError> {
        self.component.broadcast(payload)
    }

    /// The next broadcast of another member, in the order of its numbers, lent until the next call.
    /// It counts as delivered, and comes once.
    pub fn deliver(&mut self) -> Option<Delivery<'_>> {
        self.component.deliver()
    }

    /// Broadcast number `seq` of `origin`, which may be this member, if this or an earlier
    /// incarnation has delivered it. The last `neb.slots` − 16 of each origin are kept: an
    /// incarnation finds here what the one before has delivered and not [saved](Self::save).
    pub fn delivered(&mut self, origin: Rank, seq: u64) -> Option<Delivery<'_>> {
        self.component.delivered(origin, seq)
    }

    /// Replaces the record of this member, which outlives the program and not its node
    /// (`component.state`). An incarnation that is killed in the middle leaves the record before.
    /// Take, work, save, release: then each message has its effect exactly once, if the record says
    /// which messages it includes.
    ///
    /// # Errors
    /// [`SaveError`]; the record is as it was.
    pub fn save(&mut self, record: &[u8]) -> Result<(), SaveError> {
        save(&mut self.component, record)
    }

    /// The record that this or an earlier incarnation has saved.
    pub fn saved(&mut self) -> Option<Vec<u8>> {
        self.component.state()?.load()
    }

    /// Serves the clients of the node until it is ordered to end: what `weft component` does. At a
    /// node whose program has finished, discards what arrives.
    ///
    /// # Errors
    /// [`MemberError`].
    pub fn serve(mut self) -> Result<(), MemberError> {
        while !self.is_stopping() {
            match self.wait(Duration::MAX) {
                Ok(_) => {}
                Err(MemberError::NodeEnded) => return Ok(()),
                Err(error) => return Err(error),
            }
            self.events().for_each(drop);
            if self.component.has_finished() {
                self.discard();
            }
        }
        Ok(())
    }

    fn discard(&mut self) {
        while let Some(receipt) = self.take().map(|message| message.receipt) {
            let released = self.release(receipt);
            debug_assert!(released.is_ok(), "it was just taken");
        }
        while self.deliver().is_some() {}
        self.component.groups_join_in();
    }
}

fn save(component: &mut Component, record: &[u8]) -> Result<(), SaveError> {
    let state = component.state().ok_or(SaveError::NoState)?;
    let limit = state.capacity();
    if state.save(record) { Ok(()) } else { Err(SaveError::TooLong { limit }) }
}
