//! What a client broadcasts at one node and nobody is to interrupt, each message once, whatever the
//! component goes through.
//!
//! A node broadcasts for one client at a time: others wait until this one has left. When the
//! component dies with a request, its successor knows by number how much of it was broadcast, and
//! only the rest is handed over again.

use std::time::Duration;

use super::{Client, ClientError};
use crate::clock::Deadline;
use crate::node::control::{BroadcastOutcome, Refused, Then};

/// The sending side of the broadcast at one node.
#[derive(Debug)]
pub struct Speaker {
    client: Client,
    tag: u64,
    /// The number of the last message that the node has broadcast.
    last: u64,
}

impl Speaker {
    /// Begins to broadcast messages with this tag once nobody else is in the midst of something,
    /// within `timeout`. Dropping it ends it.
    ///
    /// # Errors
    /// [`ClientError`]; another one did not end in time, for instance.
    pub fn begin(client: Client, tag: u64, timeout: Duration) -> Result<Self, ClientError> {
        let mut speaker = Self { client, tag, last: 0 };
        speaker.last = speaker.ask_last(timeout)?;
        Ok(speaker)
    }

    /// Broadcasts as many of the messages as the window takes within `timeout`.
    ///
    /// # Errors
    /// [`ClientError`], when components are lost until the time is over. A broadcast that stopped
    /// early is no error but a [`BroadcastOutcome`].
    pub fn broadcast(
        &mut self,
        messages: &[&[u8]],
        timeout: Duration,
    ) -> Result<BroadcastOutcome, ClientError> {
        let (before, mut done, deadline) = (self.last, 0, Deadline::after(timeout));
        loop {
            let left = deadline.remaining();
            match self.client.cast(self.tag, &messages[done..], Then::GoOn, left) {
                Ok(outcome) => {
                    self.last = outcome.last;
                    return Ok(BroadcastOutcome { broadcast: done + outcome.broadcast, ..outcome });
                }
                Err(error) if !is_loss(&error) || deadline.has_passed() => return Err(error),
                Err(_) => {}
            }
            let broadcast = self.ask_last(timeout)?.saturating_sub(before);
            done = usize::try_from(broadcast).unwrap_or(usize::MAX).min(messages.len());
        }
    }

    /// The number of the last message that the node has broadcast.
    fn ask_last(&mut self, timeout: Duration) -> Result<u64, ClientError> {
        let deadline = Deadline::after(timeout);
        loop {
            match self.client.cast(self.tag, &[], Then::GoOn, deadline.remaining()) {
                Ok(outcome) => return Ok(outcome.last),
                Err(error) if !is_loss(&error) || deadline.has_passed() => return Err(error),
                Err(_) => {}
            }
        }
    }
}

const fn is_loss(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { reason: Refused::ComponentLost, .. })
}
