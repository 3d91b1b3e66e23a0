//! Broadcasts of other nodes, each message once, even if the component dies and restarts.

use std::time::Duration;

use super::{Client, ClientError, Patience};
use crate::clock::Deadline;
use crate::node::control::{Deliveries, Refused};

/// The receiving side of the broadcast at one node. Each origin has one listener at a time: the one
/// that asked for that origin alone, or that received a message of it.
#[derive(Debug)]
pub struct Listener {
    client: Client,
    /// For each origin, the last message that was processed, by this listener if it holds the
    /// origin.
    after: Vec<u64>,
    /// How long its node may take to begin and to end.
    patience: Duration,
}

impl Listener {
    /// Receives at the client's node, beginning behind the last message that was processed. Waits
    /// up to `patience` for a node that is starting its next component, at the end too.
    ///
    /// # Errors
    /// [`ClientError`], but a lost component is no error: the next one is asked.
    pub fn begin(mut client: Client, patience: Duration) -> Result<Self, ClientError> {
        let at_once = Patience { others: Duration::ZERO, node: patience };
        loop {
            match client.deliveries(None, Vec::new(), 0, at_once) {
                Err(ClientError::Refused { reason: Refused::ComponentLost, .. }) => {}
                begun => return begun.map(|begun| Self { client, after: begun.after, patience }),
            }
        }
    }

    /// Messages of `origin`, or of every other node, that were not processed: up to `max`, at least
    /// one unless `patience` ends. A conflict about `origin` is returned at once; without an
    /// `origin` the call waits for messages of other origins and returns conflicts with them.
    ///
    /// With an `origin` this listener holds that origin alone. Without one it waits for the origins
    /// that no other listener holds, and holds each origin of which it received a message.
    ///
    /// # Errors
    /// [`ClientError`], for instance if another listener holds `origin`. A lost component is no
    /// error: the next one continues.
    pub fn listen(
        &mut self,
        origin: Option<u16>,
        max: usize,
        patience: impl Into<Patience>,
    ) -> Result<Deliveries, ClientError> {
        let Patience { others, node } = patience.into();
        let (others, node) = (Deadline::after(others), Deadline::after(node));
        loop {
            let left = Patience { others: others.remaining(), node: node.remaining() };
            match self.client.deliveries(origin, self.after.clone(), max, left) {
                Err(ClientError::Refused { reason: Refused::ComponentLost, .. }) => {}
                heard => {
                    let heard = heard?;
                    self.after.clone_from(&heard.after);
                    return Ok(heard);
                }
            }
        }
    }

    /// Marks message `seq` of `origin`, and all before it, as processed.
    pub fn note_dealt_with(&mut self, origin: u16, seq: u64) {
        if let Some(after) = self.after.get_mut(usize::from(origin)) {
            *after = seq.max(*after);
        }
    }

    /// Ends the subscription, so that the next listener can continue behind the last processed
    /// message at once.
    ///
    /// # Errors
    /// [`ClientError`], but a lost component is no error: the next one is asked.
    pub fn end(mut self) -> Result<(), ClientError> {
        loop {
            match self.client.end_deliveries(self.after.clone(), self.patience) {
                Err(ClientError::Refused { reason: Refused::ComponentLost, .. }) => {}
                ended => return ended,
            }
        }
    }
}
