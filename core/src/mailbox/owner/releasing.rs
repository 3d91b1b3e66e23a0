//! What was taken is released, alone or together, or restored.
//!
//! A released message is marked in the journal, so that no successor delivers it again. Those that
//! are released together share a store for each word of the journal; the call returns behind the
//! last store, as that of a single release does.

use super::super::half::{Bits, Place};
use super::{Mailbox, Receipt, Run, UnknownReceipt};
use crate::fabric::Fabric;

impl<const SLOTS: usize, const PEERS: usize> Mailbox<SLOTS, PEERS> {
    /// The message of `receipt` has been processed; it is not delivered again.
    ///
    /// # Errors
    /// [`UnknownReceipt`].
    #[inline(always)]
    pub fn release(
        &mut self,
        fabric: &impl Fabric,
        receipt: Receipt,
    ) -> Result<(), UnknownReceipt> {
        let Receipt(stamp) = receipt;
        let place = Place { config: &self.config, regions: self.regions };
        let half = &mut self.halves[(stamp.epoch & 1) as usize];
        if !half.is_taken(stamp) {
            return Err(UnknownReceipt);
        }
        half.finish(fabric, place, stamp.ticket);
        Ok(())
    }

    /// As [`Self::release`] for each of `receipts`: neighbours, up to 64, share one store to the
    /// journal.
    ///
    /// # Errors
    /// [`UnknownReceipt`] at the first such receipt: those before it are released, those behind it
    /// are not.
    pub fn release_all(
        &mut self,
        fabric: &impl Fabric,
        receipts: impl IntoIterator<Item = Receipt>,
    ) -> Result<(), UnknownReceipt> {
        let place = Place { config: &self.config, regions: self.regions };
        let mut due: Option<Bits> = None;
        let mut released = Ok(());
        for Receipt(stamp) in receipts {
            let half = &mut self.halves[(stamp.epoch & 1) as usize];
            if !half.is_taken(stamp) {
                released = Err(UnknownReceipt);
                break;
            }
            half.finish_unjournalled(stamp.ticket);
            let bits = Bits::of(stamp);
            let union = due.and_then(|due| due.union(bits));
            if let (None, Some(due)) = (union, due) {
                place.journal(fabric, due);
            }
            due = union.or(Some(bits));
        }
        if let Some(due) = due {
            place.journal(fabric, due);
        }
        released
    }

    /// As [`Self::release`] for all messages of `run`.
    ///
    /// # Errors
    /// [`UnknownReceipt`] if one of them was released or restored already: nothing is released.
    #[inline]
    pub fn release_run(&mut self, fabric: &impl Fabric, run: Run) -> Result<(), UnknownReceipt> {
        let place = Place { config: &self.config, regions: self.regions };
        let half = &mut self.halves[(run.first.epoch & 1) as usize];
        if half.finish_run(fabric, place, run) { Ok(()) } else { Err(UnknownReceipt) }
    }

    /// The message of `receipt` was taken and not processed: it is delivered again, after later
    /// messages of its sender if they have been delivered already.
    ///
    /// # Errors
    /// [`UnknownReceipt`].
    pub fn restore(&mut self, receipt: Receipt) -> Result<(), UnknownReceipt> {
        let Receipt(stamp) = receipt;
        let half = self.half(stamp.epoch);
        if !half.is_taken(stamp) {
            return Err(UnknownReceipt);
        }
        half.restore(stamp.ticket);
        Ok(())
    }
}
