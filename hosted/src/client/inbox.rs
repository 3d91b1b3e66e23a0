//! Messages of one node's mailbox, each of them once.
//!
//! A message is released when the caller asks for more, that is, when it has dealt with it.
//! If the component dies in between, its successor delivers again what was not released; the
//! inbox knows the receipts of what it has handed out and drops those. The same holds for what a
//! slow caller keeps longer than `mailbox.hold_s`, unless another client is given it first.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Client, ClientError};
use crate::clock::Deadline;
use crate::node::control::{MESSAGES_MAX, Refused, TakenMessage};

/// The receiving side of a [`Client`].
#[derive(Debug)]
pub struct Inbox {
    client: Client,
    /// Handed out by the last `receive`.
    out: Vec<u64>,
    /// Handed out earlier, and perhaps not released by a component that died.
    doubtful: BTreeSet<u64>,
    redelivered: u64,
    /// Of what was handed out, how many are not known to be released.
    unreleased: u64,
}

impl Inbox {
    /// Receives what comes to the client's node.
    #[must_use]
    pub const fn new(client: Client) -> Self {
        Self { client, out: Vec::new(), doubtful: BTreeSet::new(), redelivered: 0, unreleased: 0 }
    }

    /// Messages that a component delivered again after the one before had died, and that were
    /// not handed out a second time.
    #[must_use]
    pub const fn redelivered(&self) -> u64 {
        self.redelivered
    }

    /// Of what `receive` handed out last, only the first `count` were dealt with. The others go
    /// back when the client leaves.
    pub fn keep_first(&mut self, count: usize) {
        self.out.truncate(count);
    }

    /// Up to `max` messages, at least one unless `timeout` passes. What was handed out before
    /// is released: call this when it has been dealt with.
    ///
    /// # Errors
    /// [`ClientError`], but not that the component was lost: the next one goes on.
    pub fn receive(
        &mut self,
        max: usize,
        timeout: Duration,
    ) -> Result<Vec<TakenMessage>, ClientError> {
        let deadline = Deadline::after(timeout);
        self.release()?;
        loop {
            match self.client.take(max, deadline.remaining()) {
                Ok(messages) => {
                    let empty = messages.is_empty();
                    let fresh = self.sort_out(messages)?;
                    if !fresh.is_empty() || empty && deadline.has_passed() {
                        return Ok(fresh);
                    }
                }
                // The next component is asked once it is ready.
                Err(ClientError::Refused { reason: Refused::ComponentLost, .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Releases what was handed out. When the component is lost meanwhile, what it had not
    /// released comes again and is known by its receipt.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn release(&mut self) -> Result<(), ClientError> {
        let out = std::mem::take(&mut self.out);
        if out.is_empty() {
            return Ok(());
        }
        match self.client.release(out.clone()) {
            Ok(count) if count == out.len() => Ok(()),
            Ok(count) => {
                self.note_unreleased(out, count);
                Ok(())
            }
            Err(ClientError::Refused { reason: Refused::ComponentLost, .. }) => {
                self.note_unreleased(out, 0);
                Ok(())
            }
            Err(error) => {
                self.out = out;
                Err(error)
            }
        }
    }

    /// Releases what was handed out, also what went back meanwhile and was not given to another
    /// client, and leaves. Returns how many messages were handed out and are not known to be
    /// released: they were held for longer than `mailbox.hold_s`, or the component was lost, and
    /// another client may be given them, too.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn finish(mut self) -> Result<u64, ClientError> {
        self.release()?;
        while self.unreleased > 0 {
            let before = self.unreleased;
            let Ok(messages) = self.client.take(MESSAGES_MAX, Duration::ZERO) else { break };
            // What was not handed out before goes back as the client leaves.
            self.sort_out(messages)?;
            if self.unreleased == before {
                break;
            }
        }
        Ok(self.unreleased)
    }

    /// Of `out`, `released` were released, and it is not known which.
    fn note_unreleased(&mut self, out: Vec<u64>, released: usize) {
        self.unreleased += out.len().saturating_sub(released) as u64;
        self.doubtful.extend(out);
    }

    /// Drops what was handed out before, releasing it, and notes the rest as handed out.
    fn sort_out(&mut self, messages: Vec<TakenMessage>) -> Result<Vec<TakenMessage>, ClientError> {
        let (again, fresh): (Vec<_>, Vec<_>) =
            messages.into_iter().partition(|message| self.doubtful.contains(&message.receipt));
        if !again.is_empty() {
            self.redelivered += again.len() as u64;
            let receipts = again.iter().map(|message| message.receipt).collect();
            match self.client.release(receipts) {
                Ok(count) => self.unreleased = self.unreleased.saturating_sub(count as u64),
                Err(ClientError::Refused { reason: Refused::ComponentLost, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.out.extend(fresh.iter().map(|message| message.receipt));
        if let Some(delivered) = self.out.last().map(|receipt| epoch(*receipt)) {
            // Slots of older epochs have been used again, so nothing of them can come any more.
            // Of the epoch behind the one just delivered, something may have come before it.
            let age = |receipt: u64| delivered.wrapping_sub(epoch(receipt)).cast_signed();
            self.doubtful.retain(|receipt| age(*receipt) <= 2);
        }
        Ok(fresh)
    }
}

/// The high half of a receipt: the pass over the slots that it belongs to.
const fn epoch(receipt: u64) -> u32 {
    (receipt >> 32) as u32
}
