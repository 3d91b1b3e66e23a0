//! A sequence of broadcasts by one client that no other client of the node interrupts, each message
//! once, even if the component dies and restarts.
//!
//! A node broadcasts for one client at a time: others wait until this one has left. When the
//! component dies with a request, its successor knows by number how much of it was broadcast, and
//! only the rest is handed over again. If a client leaves before its end, the node broadcasts
//! the client's abort marker.

use std::convert::Infallible;
use std::time::Duration;

use super::{Client, ClientError, Patience, broadcast};
use crate::clock::Deadline;
use crate::node::control::{BroadcastOutcome, Payload, Refused, Then};

/// The sending side of the broadcast at one node.
#[derive(Debug)]
pub struct Speaker {
    client: Client,
    tag: u64,
    marker: Vec<u8>,
    /// The number of the last message that the node broadcast.
    last: u64,
}

impl Speaker {
    /// Begins to broadcast messages with this tag once no other client is in the middle of a
    /// sequence, within `timeout`. If the speaker is dropped before [`Self::end`], or its process
    /// ends, the node broadcasts the abort marker `will` behind the messages sent so far, if there
    /// are any, as soon as the window has room.
    ///
    /// # Errors
    /// [`ClientError`], for instance if another sender did not end in time, or the window has no
    /// room for the abort marker of one that has left.
    pub fn begin(
        client: Client,
        tag: u64,
        marker: &[u8],
        timeout: Duration,
    ) -> Result<Self, ClientError> {
        let mut speaker = Self { client, tag, marker: marker.to_vec(), last: 0 };
        speaker.last = speaker.ask_last(&speaker.go_on(), timeout)?;
        Ok(speaker)
    }

    /// As [`Self::begin`]; whenever `every` has passed and another sender is still active, `look`
    /// decides whether to go on waiting. The place in the queue is kept.
    ///
    /// # Errors
    /// What `look` says, before all others; inside, as [`Self::begin`].
    pub fn begin_looking<E>(
        client: Client,
        (tag, marker): (u64, &[u8]),
        timeout: Duration,
        every: Duration,
        mut look: impl FnMut() -> Result<(), E>,
    ) -> Result<Result<Self, ClientError>, E> {
        let mut speaker = Self { client, tag, marker: marker.to_vec(), last: 0 };
        let last = speaker.ask_last_looking(&speaker.go_on(), timeout, (every, &mut look))?;
        Ok(last.map(|last| Self { last, ..speaker }))
    }

    /// Ends the sequence: other clients may broadcast, and the abort marker is dropped.
    ///
    /// # Errors
    /// [`ClientError`], if components are lost until the deadline.
    pub fn end(mut self, timeout: Duration) -> Result<(), ClientError> {
        self.ask_last(&Then::Rest, timeout).map(drop)
    }

    /// Broadcasts as many of the messages as the window takes before `patience` ends. A node whose
    /// component is lost is asked once more by then, however long the next one takes.
    ///
    /// # Errors
    /// [`ClientError`], if components are lost until the deadline. A broadcast that stopped
    /// early is no error but a [`BroadcastOutcome`].
    pub fn broadcast(
        &mut self,
        messages: &[&[u8]],
        patience: impl Into<Patience>,
    ) -> Result<BroadcastOutcome, ClientError> {
        let (patience, before, mut done) = (patience.into(), self.last, 0);
        let room = Deadline::after(patience.others);
        let answer = Deadline::after(patience.whole());
        loop {
            let left = Patience { others: room.remaining(), node: answer.remaining() };
            match self.client.cast(self.tag, &messages[done..], self.go_on(), left) {
                Ok(outcome) => {
                    self.last = outcome.last;
                    return Ok(BroadcastOutcome { broadcast: done + outcome.broadcast, ..outcome });
                }
                Err(error) if !is_loss(&error) || answer.has_passed() => return Err(error),
                Err(_) => {}
            }
            let last = self.ask_last(&self.go_on(), patience.whole())?;
            done = usize::try_from(last.saturating_sub(before)).unwrap_or(usize::MAX);
            done = done.min(messages.len());
        }
    }

    fn go_on(&self) -> Then {
        Then::GoOn { marker: Payload(self.marker.clone()) }
    }

    /// The number of the last message that the node broadcast.
    fn ask_last(&mut self, then: &Then, timeout: Duration) -> Result<u64, ClientError> {
        let wait: &mut dyn FnMut() -> Result<(), Infallible> = &mut || Ok(());
        let Ok(last) = self.ask_last_looking(then, timeout, (Duration::MAX, wait));
        last
    }

    /// As [`Self::ask_last`], as long as `look` has nothing against it.
    fn ask_last_looking<E>(
        &mut self,
        then: &Then,
        timeout: Duration,
        (every, look): (Duration, &mut dyn FnMut() -> Result<(), E>),
    ) -> Result<Result<u64, ClientError>, E> {
        let deadline = Deadline::after(timeout);
        loop {
            let left = Patience::from(deadline.remaining());
            let want = broadcast(self.tag, &[], then.clone(), left);
            let answer = self.client.ask_looking(want, left.whole(), (every, &mut *look))?;
            match answer.and_then(|answer| self.client.broadcasted(answer)) {
                Ok(BroadcastOutcome { stopped: Some(_), .. }) => {
                    let (rank, reason) = (self.client.rank(), Refused::WindowFull);
                    return Ok(Err(ClientError::Refused { rank, reason }));
                }
                Err(error) if is_loss(&error) && !deadline.has_passed() => {}
                outcome => return Ok(outcome.map(|outcome| outcome.last)),
            }
        }
    }
}

const fn is_loss(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { reason: Refused::ComponentLost, .. })
}
