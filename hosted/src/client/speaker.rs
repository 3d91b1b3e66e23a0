//! Broadcasts of any length, split as puts are; and a sequence of them by one client that no other
//! client of the node interrupts, each message once, even if the component dies and restarts.
//!
//! A node broadcasts for one client at a time: others wait until this one has left. When the
//! component dies with a request, its successor knows by number how much of it was broadcast, and
//! only the rest is handed over again. If a client leaves before its end, the node broadcasts
//! the client's abort marker.

use std::convert::Infallible;
use std::time::Duration;

use super::put::split_request;
use super::{Client, ClientError, Patience, is_loss, millis};
use crate::clock::Deadline;
use crate::node::control::{
    BroadcastOutcome, BroadcastStopped, Outcome, Payload, Refused, Then, Want,
};

impl Client {
    /// Broadcasts messages to all members, in order, each with this tag: however many, in as many
    /// requests as that takes, all within `timeout`. Broadcasts of other clients may come in
    /// between; use a [`Speaker`] for a sequence that none may interrupt.
    ///
    /// # Errors
    /// [`ClientError`], if none was broadcast. A broadcast that stopped early is no error but a
    /// [`BroadcastOutcome`], also where the node fails behind the first request
    /// ([`BroadcastStopped::Interrupted`]).
    pub fn broadcast(
        &mut self,
        tag: u64,
        messages: &[&[u8]],
        timeout: Duration,
    ) -> Result<BroadcastOutcome, ClientError> {
        let deadline = Deadline::after(timeout);
        let mut whole = BroadcastOutcome::default();
        loop {
            let (part, rest) = split_request(&messages[whole.broadcast..]);
            let outcome = match self.cast(tag, part, Then::Rest, deadline.remaining().into()) {
                Err(error) if whole.broadcast == 0 => return Err(error),
                // An error would hide how many were broadcast before.
                Err(_) => {
                    let stopped = Some(BroadcastStopped::Interrupted);
                    BroadcastOutcome { broadcast: 0, last: whole.last, stopped }
                }
                Ok(outcome) => outcome,
            };
            let is_over = outcome.broadcast < part.len() || rest.is_empty();
            whole = BroadcastOutcome { broadcast: whole.broadcast + outcome.broadcast, ..outcome };
            if is_over {
                return Ok(whole);
            }
        }
    }

    /// Broadcasts what one request carries.
    fn cast(
        &mut self,
        tag: u64,
        part: &[&[u8]],
        then: Then,
        patience: Patience,
    ) -> Result<BroadcastOutcome, ClientError> {
        let answer = self.ask(want(tag, part, then, patience), patience.whole())?;
        let outcome = self.broadcasted(answer)?;
        // A count beyond what was sent would have messages skipped.
        if outcome.broadcast > part.len() {
            return Err(self.out_of_place(&Outcome::Broadcast(outcome)));
        }
        Ok(outcome)
    }

    fn broadcasted(&self, answer: Outcome) -> Result<BroadcastOutcome, ClientError> {
        match answer {
            Outcome::Broadcast(outcome) => Ok(outcome),
            other => Err(self.out_of_place(&other)),
        }
    }
}

fn want(tag: u64, messages: &[&[u8]], then: Then, patience: Patience) -> Want {
    let messages = messages.iter().map(|message| Payload(message.to_vec())).collect();
    Want::Broadcast { tag, messages, timeout_ms: millis(patience.others), then }
}

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

    /// Broadcasts as many of the messages as the window takes before `patience` ends, in as many
    /// requests as that takes. A node whose
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
            let (part, rest) = split_request(&messages[done..]);
            match self.client.cast(self.tag, part, self.go_on(), left) {
                Ok(outcome) => {
                    (self.last, done) = (outcome.last, done + outcome.broadcast);
                    if outcome.broadcast < part.len() || rest.is_empty() {
                        return Ok(BroadcastOutcome { broadcast: done, ..outcome });
                    }
                    continue;
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
            let want = want(self.tag, &[], then.clone(), left);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::put::tests::against;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn answer(broadcast: usize, last: u64, stopped: Option<BroadcastStopped>) -> Outcome {
        Outcome::Broadcast(BroadcastOutcome { broadcast, last, stopped })
    }

    #[test]
    fn a_broadcast_of_several_requests_ends_with_the_first_that_stops() {
        let messages = [&[0; 1024][..]; 150];
        let broadcast = |answers| {
            against(answers, |mut client| client.broadcast(7, &messages, PATIENCE)).unwrap()
        };
        let parts = || vec![answer(64, 64, None), answer(64, 128, None)];
        let whole = broadcast([parts(), vec![answer(22, 150, None)]].concat());
        assert_eq!(whole, BroadcastOutcome { broadcast: 150, last: 150, stopped: None });

        let stopped = Some(BroadcastStopped::Alone);
        let alone = broadcast([parts(), vec![answer(0, 128, stopped)]].concat());
        assert_eq!(alone, BroadcastOutcome { broadcast: 128, last: 128, stopped });
    }

    #[test]
    fn a_broadcast_that_fails_in_the_middle_says_how_much_was_broadcast() {
        let messages = [&[0; 1024][..]; 150];
        let lost = Outcome::Refused(Refused::ComponentLost);
        let broadcast =
            |answers| against(answers, |mut client| client.broadcast(7, &messages, PATIENCE));
        let cut = broadcast(vec![answer(64, 64, None), lost.clone()]).unwrap();
        let stopped = Some(BroadcastStopped::Interrupted);
        assert_eq!(cut, BroadcastOutcome { broadcast: 64, last: 64, stopped });
        let failed = broadcast(vec![lost]);
        assert!(matches!(failed, Err(ClientError::Refused { .. })), "none was sent: {failed:?}");
    }

    /// Of the second request 10 messages were broadcast, and the answer was lost.
    #[test]
    fn a_sequence_of_several_requests_goes_on_by_number_where_one_was_lost() {
        let messages = [&[0; 1024][..]; 150];
        let lost = Outcome::Refused(Refused::ComponentLost);
        let answers = vec![
            answer(0, 5, None),
            answer(64, 69, None),
            lost,
            answer(0, 79, None),
            answer(64, 143, None),
            answer(12, 155, None),
        ];
        let outcome = against(answers, |client| {
            let mut speaker = Speaker::begin(client, 7, b"", PATIENCE)?;
            speaker.broadcast(&messages, PATIENCE)
        });
        let whole = BroadcastOutcome { broadcast: 150, last: 155, stopped: None };
        assert_eq!(outcome.unwrap(), whole);
    }
}
