//! Puts of any length: a client splits what one request cannot carry, here and in broadcasts.
//!
//! ```text
//!   messages ──▶ [ PAYLOAD_LEN_MAX bytes, MESSAGES_MAX messages ] ──▶ put ──▶ the next ones
//!                     the first part that stops ends the whole ◀───────┘
//! ```

use std::time::Duration;

use super::{Client, ClientError, millis};
use crate::clock::Deadline;
use crate::node::control::{
    MESSAGES_MAX, Outcome, PAYLOAD_LEN_MAX, Payload, PutOutcome, Stopped, Want,
};

impl Client {
    /// Puts messages into the mailbox of `to`, in order: however many, in as many requests as that
    /// takes, all within `timeout`. Messages of other clients may arrive in between.
    ///
    /// # Errors
    /// [`ClientError`], if none was put. A put that stopped early is no error but a [`PutOutcome`],
    /// also where the node fails behind the first request ([`Stopped::Interrupted`]).
    pub fn put(
        &mut self,
        to: u16,
        messages: &[&[u8]],
        timeout: Duration,
    ) -> Result<PutOutcome, ClientError> {
        let deadline = Deadline::after(timeout);
        let mut whole = PutOutcome::default();
        loop {
            let (batch, rest) = split_request(&messages[whole.put..]);
            let part = match self.put_batch(to, batch, deadline.remaining()) {
                Err(error) if whole.put == 0 => return Err(error),
                // An error would hide how many were put before.
                Err(_) => PutOutcome {
                    unknown: batch.len(),
                    stopped: Some(Stopped::Interrupted),
                    ..PutOutcome::default()
                },
                Ok(part) => part,
            };
            let (put, full) = (whole.put + part.put, whole.full + part.full);
            whole = PutOutcome { put, full, ..part };
            if part.put < batch.len() || rest.is_empty() {
                return Ok(whole);
            }
        }
    }

    /// Puts what one request carries.
    fn put_batch(
        &mut self,
        to: u16,
        batch: &[&[u8]],
        timeout: Duration,
    ) -> Result<PutOutcome, ClientError> {
        let messages = batch.iter().map(|message| Payload(message.to_vec())).collect();
        match self.ask(Want::Put { to, messages, timeout_ms: millis(timeout) }, timeout)? {
            // A count beyond what was sent would have messages skipped.
            Outcome::Put(outcome) if outcome.put <= batch.len() => Ok(outcome),
            other => Err(self.out_of_place(&other)),
        }
    }
}

/// What the next request carries of `messages`, at least one, and the rest.
pub(super) fn split_request<'a, 'm>(messages: &'a [&'m [u8]]) -> (&'a [&'m [u8]], &'a [&'m [u8]]) {
    let mut len = 0;
    let fits = |message: &&&[u8]| {
        len += message.len();
        len <= PAYLOAD_LEN_MAX
    };
    let count = messages.iter().take(MESSAGES_MAX).take_while(fits).count();
    // One that is too long even alone is the node's to refuse.
    messages.split_at(count.max(1).min(messages.len()))
}

#[cfg(test)]
pub(super) mod tests {
    use std::thread;

    use super::*;
    use crate::node::control::{Refused, Reply, Request};
    use crate::packet::Socket;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// What comes of `act` when a node answers its requests like this; it ends then.
    pub(in crate::client) fn against<T>(answers: Vec<Outcome>, act: impl FnOnce(Client) -> T) -> T {
        let (near, far) = Socket::pair().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                for what in answers {
                    let (Request { id, .. }, _) = far.recv(PATIENCE).unwrap();
                    far.send(&Reply { id, what }, &[], PATIENCE).unwrap();
                }
            });
            act(Client { rank: 0, socket: near, requests: 0 })
        })
    }

    fn put(messages: &[&[u8]], answers: Vec<Outcome>) -> Result<PutOutcome, ClientError> {
        against(answers, |mut client| client.put(1, messages, PATIENCE))
    }

    fn all(put: usize) -> Outcome {
        Outcome::Put(PutOutcome { put, full: 1, ..PutOutcome::default() })
    }

    #[test]
    fn a_request_carries_as_much_as_its_limits_allow_and_one_message_at_least() {
        let split = |messages: &[&[u8]]| split_request(messages).0.len();
        let long = [0; PAYLOAD_LEN_MAX + 1];
        assert_eq!(split(&[]), 0);
        assert_eq!(split(&[&[0; 1][..]; MESSAGES_MAX + 1]), MESSAGES_MAX);
        assert_eq!(split(&[&[0; 1024][..]; 65]), 64);
        assert_eq!((split(&[&long, b"1"]), split(&[b"1", &long])), (1, 1));
    }

    #[test]
    fn a_put_of_several_requests_ends_with_the_first_that_stops() {
        let messages = [&[0; 1024][..]; 150];
        let outcome = put(&messages, vec![all(64), all(64), all(22)]).unwrap();
        assert_eq!(outcome, PutOutcome { put: 150, full: 3, ..PutOutcome::default() });

        let full = PutOutcome { put: 3, stopped: Some(Stopped::Full), ..PutOutcome::default() };
        let outcome = put(&messages, vec![all(64), Outcome::Put(full)]).unwrap();
        assert_eq!((outcome.put, outcome.stopped), (67, Some(Stopped::Full)));
    }

    #[test]
    fn a_put_that_fails_in_the_middle_says_how_much_was_put() {
        let messages = [&[0; 1024][..]; 150];
        let lost = Outcome::Refused(Refused::ComponentLost);
        let outcome = put(&messages, vec![all(64), lost.clone()]).unwrap();
        let stopped = Some(Stopped::Interrupted);
        assert_eq!((outcome.put, outcome.unknown, outcome.stopped), (64, 64, stopped));
        let failed = put(&messages, vec![lost]);
        assert!(matches!(failed, Err(ClientError::Refused { .. })), "none was put: {failed:?}");
    }
}
