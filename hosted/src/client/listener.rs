//! What other nodes broadcast, each message once, whatever the component goes through.

use std::time::Duration;

use super::{Client, ClientError};
use crate::clock::Deadline;
use crate::node::control::{Deliveries, Refused};

/// The receiving side of the broadcast at one node. There is one at a time.
#[derive(Debug)]
pub struct Listener {
    client: Client,
    /// For each origin, the last message that was dealt with.
    after: Vec<u64>,
}

impl Listener {
    /// Receives at the client's node, beginning with what the last listener has not dealt with.
    ///
    /// # Errors
    /// [`ClientError`]; another one listens, for instance.
    pub fn begin(mut client: Client) -> Result<Self, ClientError> {
        let deliveries = client.deliveries(None, Vec::new(), 0, Duration::ZERO)?;
        Ok(Self { client, after: deliveries.after })
    }

    /// Messages of `origin`, or of every other node, that were not dealt with: up to `max`, at
    /// least one unless `timeout` passes. A conflict with `origin` answers at once; without an
    /// `origin` the honest ones are waited for, and conflicts are told with what came.
    ///
    /// # Errors
    /// [`ClientError`], but not that the component was lost: the next one goes on.
    pub fn listen(
        &mut self,
        origin: Option<u16>,
        max: usize,
        timeout: Duration,
    ) -> Result<Deliveries, ClientError> {
        let deadline = Deadline::after(timeout);
        loop {
            let left = deadline.remaining();
            match self.client.deliveries(origin, self.after.clone(), max, left) {
                Err(ClientError::Refused { reason: Refused::ComponentLost, .. }) => {}
                heard => return heard,
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
            match self.client.end_deliveries(self.after.clone()) {
                Err(ClientError::Refused { reason: Refused::ComponentLost, .. }) => {}
                ended => return ended,
            }
        }
    }
}
