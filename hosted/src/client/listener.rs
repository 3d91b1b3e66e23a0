//! What other nodes broadcast, each message once, whatever the component goes through.

use std::time::Duration;

use super::{Client, ClientError, Patience};
use crate::clock::Deadline;
use crate::node::control::{Deliveries, Refused};

/// The receiving side of the broadcast at one node. Each origin is held by one listener at a time:
/// by who asks for it alone, or was handed something of it.
#[derive(Debug)]
pub struct Listener {
    client: Client,
    /// For each origin, the last message that was dealt with, by this one where it holds it.
    after: Vec<u64>,
    /// How long its node may take to begin and to end.
    patience: Duration,
}

impl Listener {
    /// Receives at the client's node, beginning with what the last listener has not dealt with.
    /// The node, which may be starting its next component, is waited for up to `patience`, at the
    /// end too.
    ///
    /// # Errors
    /// [`ClientError`], but not that the component was lost: the next one is asked.
    pub fn begin(mut client: Client, patience: Duration) -> Result<Self, ClientError> {
        let at_once = Patience { others: Duration::ZERO, node: patience };
        loop {
            match client.deliveries(None, Vec::new(), 0, at_once) {
                Err(ClientError::Refused { reason: Refused::ComponentLost, .. }) => {}
                begun => return begun.map(|begun| Self { client, after: begun.after, patience }),
            }
        }
    }

    /// Messages of `origin`, or of every other node, that were not dealt with: up to `max`, at
    /// least one unless `patience` ends. A conflict with `origin` answers at once; without an
    /// `origin` the honest ones are waited for, and conflicts are told with what came.
    ///
    /// With an `origin` this one holds it, and gives back all others. Without one it waits for
    /// those that no other listener holds, and holds what it was handed something of.
    ///
    /// # Errors
    /// [`ClientError`], another one holds `origin`, for instance; but not that the component was
    /// lost: the next one goes on.
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

    /// Message `seq` of `origin`, and all before it, have been dealt with.
    pub fn note_dealt_with(&mut self, origin: u16, seq: u64) {
        if let Some(after) = self.after.get_mut(usize::from(origin)) {
            *after = seq.max(*after);
        }
    }

    /// Ends, so that the next listener may begin at once, behind what this one has dealt with.
    ///
    /// # Errors
    /// [`ClientError`], but not that the component was lost: the next one is told.
    pub fn end(mut self) -> Result<(), ClientError> {
        loop {
            match self.client.end_deliveries(self.after.clone(), self.patience) {
                Err(ClientError::Refused { reason: Refused::ComponentLost, .. }) => {}
                ended => return ended,
            }
        }
    }
}
