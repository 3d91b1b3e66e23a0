//! The puts of the program itself: staged in the outboxes, and put by the loop.
//!
//! ```text
//!   put ──▶ staged ── next pass ──▶ flushed ──▶ in the owner's memory
//!             ▲                        │
//!             └── full, or the owner is lost: after a pause, when it is admitted again ┘
//! ```
//!
//! An outbox holds messages of the program or of one client, never of both. Messages stay staged
//! until they are put: a mailbox that is full is tried again with pauses that double up to a
//! millisecond, and an owner that restarts gets them as its next incarnation. Those whose write was
//! under way when the owner was lost are put again under the same numbers.

use weft_core::endpoint::{Event, PutError as Refused};
use weft_core::fabric::PostError;
use weft_core::ids::{Peer, PeerSet};
use weft_core::mailbox::StageError;

use super::control::Latency;
use super::puts::{PAUSE_NS_MAX, PAUSE_NS_MIN};
use super::{NodeEndpoint, PEERS};

/// Why a message was not accepted. Nothing changed, and the caller still has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// The batch for that member is full, or on its way: poll, then try again.
    #[error("the batch for this member holds {limit} messages and is full")]
    Full {
        /// The most messages of a batch.
        limit: u32,
    },
    /// The message is longer than a slot.
    #[error("the message is longer than {limit} bytes")]
    TooLong {
        /// The length of a slot: `mailbox.message_len`.
        limit: usize,
    },
    /// No incarnation of that member is admitted now.
    #[error("no incarnation of that member is admitted now")]
    NotAMember,
    /// The program of that member has finished: it takes no message any more.
    #[error("the program of that member has finished")]
    Finished,
    /// The cluster has no such rank.
    #[error("there is no member of that rank")]
    NoSuchRank,
}

/// The outboxes that hold messages of the program.
#[derive(Debug)]
pub(super) struct OwnPuts {
    held: PeerSet,
    /// The most messages of an outbox.
    batch: u32,
    retry_at_ns: [u64; PEERS],
    pause_ns: [u64; PEERS],
    /// When the first of what is staged was.
    staged_ns: [u64; PEERS],
    latency: Latency,
}

impl OwnPuts {
    pub(super) const fn new(batch: u32) -> Self {
        let (retry_at_ns, pause_ns) = ([0; PEERS], [PAUSE_NS_MIN; PEERS]);
        let (staged_ns, latency) = ([0; PEERS], Latency::NONE);
        Self { held: PeerSet::EMPTY, batch, retry_at_ns, pause_ns, staged_ns, latency }
    }

    /// How long batches took that are put.
    pub(super) const fn latency(&self) -> &Latency {
        &self.latency
    }

    /// The outboxes that no put of a client may use.
    pub(super) const fn held(&self) -> PeerSet {
        self.held
    }

    /// Stages one message for `to`; the program's last pass was at `passed_ns`.
    ///
    /// # Errors
    /// [`PutError`].
    #[inline]
    pub(super) fn stage(
        &mut self,
        endpoint: &mut NodeEndpoint,
        to: Peer,
        payload: &[u8],
        passed_ns: u64,
    ) -> Result<(), PutError> {
        if !endpoint.admitted().contains(to) {
            return Err(PutError::NotAMember);
        }
        // A client's messages are staged there.
        if !self.held.contains(to) && endpoint.outbox(to).is_ok_and(|it| it.staged() > 0) {
            return Err(PutError::Full { limit: self.batch });
        }
        endpoint.stage(to, 0, payload).map_err(|error| match error {
            Refused::Stage(StageError::TooLong { limit }) => {
                PutError::TooLong { limit: usize::from(limit) }
            }
            Refused::Stage(StageError::Busy | StageError::BatchFull { .. }) | Refused::Post(_) => {
                PutError::Full { limit: self.batch }
            }
            Refused::UnknownPeer => PutError::NoSuchRank,
        })?;
        self.hold(to, passed_ns);
        Ok(())
    }

    /// Something is staged for `to`; the latency of the batch counts from the first of it.
    fn hold(&mut self, to: Peer, now_ns: u64) {
        if !self.held.contains(to) {
            self.held.insert(to);
            self.staged_ns[to.index()] = now_ns;
        }
    }

    /// How many messages for `to` were accepted and are not known to be in its memory.
    pub(super) fn unput(&self, endpoint: &mut NodeEndpoint, to: Peer) -> usize {
        let staged = endpoint.outbox(to).map_or(0, |outbox| outbox.staged() as usize);
        if self.held.contains(to) { staged } else { 0 }
    }

    /// Starts to put what is staged and not under way; whether there was any.
    #[inline]
    pub(super) fn flush(&mut self, endpoint: &mut NodeEndpoint, now_ns: u64) -> bool {
        let mut begun = false;
        for peer in self.held.iter() {
            let is_idle = endpoint.outbox(peer).is_ok_and(|outbox| outbox.is_idle());
            if !is_idle || now_ns < self.retry_at_ns[peer.index()] {
                continue;
            }
            match endpoint.flush(peer) {
                Ok(()) => begun = true,
                // It is tried again when the next incarnation is admitted.
                Err(Refused::Post(PostError::Gone)) => {}
                Err(_) => self.pause(peer, now_ns),
            }
        }
        begun
    }

    /// Handles the outcome of a flush; whether it was one of the program's.
    #[inline]
    pub(super) fn handle_event(&mut self, event: Event, now_ns: u64) -> bool {
        let (to, is_put) = match event {
            Event::Put { to, left, .. } => {
                // There is room: a sender that always has more must not wait as at a full mailbox.
                self.pause_ns[to.index()] = PAUSE_NS_MIN;
                if left == 0 && self.held.contains(to) {
                    self.held.remove(to);
                    self.latency.record(self.staged_ns[to.index()], now_ns);
                    return true;
                }
                (to, true)
            }
            Event::Full { to } | Event::TicketUnknown { to } => (to, false),
            Event::Lost { peer, .. } => (peer, true),
            Event::Gone { .. } | Event::Fenced { .. } | Event::LaneLost { .. } => return false,
        };
        let is_own = self.held.contains(to);
        if is_own && !is_put {
            self.pause(to, now_ns);
        }
        is_own
    }

    fn pause(&mut self, to: Peer, now_ns: u64) {
        let pause_ns = &mut self.pause_ns[to.index()];
        self.retry_at_ns[to.index()] = now_ns.saturating_add(*pause_ns);
        *pause_ns = (*pause_ns * 2).min(PAUSE_NS_MAX);
    }

    /// When the next pause is over.
    pub(super) fn next_retry_ns(&self) -> Option<u64> {
        self.held.iter().map(|peer| self.retry_at_ns[peer.index()]).filter(|at| *at > 0).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latency_of_a_batch_is_that_of_its_first_message_until_all_are_put() {
        let to = Peer(1);
        let mut puts = OwnPuts::new(31);
        puts.hold(to, 100);
        puts.hold(to, 900);
        assert!(puts.handle_event(Event::Put { to, count: 1, left: 1 }, 950));
        assert_eq!(puts.latency(), &Latency::NONE, "one is still staged");
        assert!(puts.handle_event(Event::Put { to, count: 1, left: 0 }, 1_000));
        assert_eq!((puts.latency().sum_ns, puts.latency().counts.iter().sum()), (900, 1_u64));
    }

    #[test]
    fn m4_pauses_double_while_the_mailbox_is_full_and_begin_again_once_there_is_room() {
        let to = Peer(1);
        let mut puts = OwnPuts::new(31);
        puts.held.insert(to);
        let full = |puts: &mut OwnPuts, now_ns| {
            assert!(puts.handle_event(Event::Full { to }, now_ns));
            puts.next_retry_ns().expect("a pause") - now_ns
        };
        assert_eq!([full(&mut puts, 10), full(&mut puts, 20)], [PAUSE_NS_MIN, 2 * PAUSE_NS_MIN]);
        // The rest of the batch stays staged.
        assert!(puts.handle_event(Event::Put { to, count: 3, left: 5 }, 30));
        assert_eq!(full(&mut puts, 40), PAUSE_NS_MIN);
    }
}
