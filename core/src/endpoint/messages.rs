//! Messages of the own mailbox: taken, released, restored.

use super::{Endpoint, Machine};
use crate::fabric::Fabric;
use crate::mailbox::{Message, Receipt, Run, UnknownReceipt};
use crate::time::Instant;

impl<F: Fabric, const SLOTS: usize, const PEERS: usize, M: Machine + Default>
    Endpoint<F, SLOTS, PEERS, M>
{
    /// The next message of the own mailbox. A loop that takes has to [`poll`](Self::poll) as well:
    /// between two polls the next ticket's message alone is found, and only in the half that the
    /// last poll found open.
    #[inline(always)]
    pub fn take(&mut self, now: Instant) -> Option<Message<'_>> {
        self.mailbox.take(&self.fabric, now)
    }

    /// The next messages of the own mailbox that came together, `limit` at most: see
    /// [`Mailbox::take_run`](crate::mailbox::Mailbox::take_run).
    #[inline(always)]
    pub fn take_run(
        &mut self,
        now: Instant,
        limit: u32,
        deal: impl FnMut(&Message<'_>),
    ) -> Option<Run> {
        self.mailbox.take_run(&self.fabric, now, limit, deal)
    }

    /// Whether [`Self::take`] would return a message: the last look before the caller sleeps.
    pub fn has_message(&mut self, now: Instant) -> bool {
        self.mailbox.has_message(&self.fabric, now)
    }

    /// The message of `receipt` has been processed.
    ///
    /// # Errors
    /// [`UnknownReceipt`].
    #[inline(always)]
    pub fn release(&mut self, receipt: Receipt) -> Result<(), UnknownReceipt> {
        self.mailbox.release(&self.fabric, receipt)
    }

    /// As [`Self::release`] for each of `receipts`, for less: see
    /// [`Mailbox::release_all`](crate::mailbox::Mailbox::release_all).
    ///
    /// # Errors
    /// [`UnknownReceipt`] at the first such receipt: those before it are released.
    #[inline]
    pub fn release_all(
        &mut self,
        receipts: impl IntoIterator<Item = Receipt>,
    ) -> Result<(), UnknownReceipt> {
        self.mailbox.release_all(&self.fabric, receipts)
    }

    /// As [`Self::release`] for all messages of `run`.
    ///
    /// # Errors
    /// [`UnknownReceipt`]: nothing is released.
    #[inline]
    pub fn release_run(&mut self, run: Run) -> Result<(), UnknownReceipt> {
        self.mailbox.release_run(&self.fabric, run)
    }

    /// The message of `receipt` was taken and not processed: it is delivered again, after later
    /// messages of its sender if they have been delivered already.
    ///
    /// # Errors
    /// [`UnknownReceipt`].
    pub fn restore(&mut self, receipt: Receipt) -> Result<(), UnknownReceipt> {
        self.mailbox.restore(receipt)
    }
}
