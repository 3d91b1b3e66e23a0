//! The private copy of the slot that was last looked at.
//!
//! A slot is copied out of the origin's ring once, exposed, and then compared with the copy of each
//! other member. While the buffer still holds that slot, it need not be copied out of the replay
//! region again for each comparison.

use super::config::SLOT_LEN_MAX;
use super::exposed::Exposed;
use super::map::Map;
use super::mutants::{SKIP_CHECKSUM, TRUST_ORIGIN_BUFFER};
use crate::fabric::{At, Fabric, Memory};
use crate::wire::broadcast::{Header, Stamp};

/// A buffer for one slot, and the exposed message that it holds.
#[derive(Clone)]
pub(super) struct OwnCopy {
    bytes: [u8; SLOT_LEN_MAX],
    of: Option<Stamp>,
    /// The bytes were found whole since they were copied.
    is_checked: bool,
}

impl OwnCopy {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; SLOT_LEN_MAX], of: None, is_checked: false }
    }

    /// The bytes as they are.
    pub(super) const fn bytes(&self) -> &[u8; SLOT_LEN_MAX] {
        &self.bytes
    }

    /// The buffer, to be filled with another slot; its content is invalid.
    pub(super) const fn clear(&mut self) -> &mut [u8; SLOT_LEN_MAX] {
        self.of = None;
        &mut self.bytes
    }

    /// The buffer holds the copy that was exposed as `exposed`.
    pub(super) const fn note(&mut self, exposed: &Exposed) {
        self.of = Some(exposed.stamp());
        self.is_checked = true;
    }

    /// The message of `exposed`: from the buffer if it is still there, otherwise from the replay
    /// region, which no other member can write.
    pub(super) fn recall(&mut self, fabric: &impl Fabric, map: &Map, exposed: &Exposed) -> &[u8] {
        if self.of == Some(exposed.stamp()) && !TRUST_ORIGIN_BUFFER.is_planted() {
            return &self.bytes[..exposed.used()];
        }
        self.of = Some(exposed.stamp());
        self.is_checked = false;
        exposed.copy_out(fabric, map, &mut self.bytes)
    }

    /// As [`Self::recall`]; nothing if the replay region no longer holds that message.
    pub(super) fn recall_whole(
        &mut self,
        fabric: &impl Fabric,
        map: &Map,
        exposed: &Exposed,
    ) -> Option<&[u8]> {
        self.recall(fabric, map, exposed);
        let slot = &mut self.bytes[..exposed.used()];
        if !self.is_checked && !is_whole(fabric, exposed.stamp(), slot) {
            self.of = None;
            return None;
        }
        self.is_checked = true;
        Some(slot)
    }

    /// The message with the stamp `due` that lies at `at`; nothing if it does not lie there.
    pub(super) fn read(
        &mut self,
        fabric: &impl Fabric,
        (at, len): (At, usize),
        due: Stamp,
    ) -> Option<&[u8]> {
        let slot = &mut self.clear()[..len];
        fabric.memory().copy_out(at.region, at.offset, slot);
        is_whole(fabric, due, slot).then_some(slot)
    }
}

fn is_whole(fabric: &impl Fabric, due: Stamp, slot: &mut [u8]) -> bool {
    let opened = Header::open(slot, |bytes| fabric.crc32c(bytes));
    opened.is_ok_and(|header| header.stamp == due) || SKIP_CHECKSUM.is_planted()
}
