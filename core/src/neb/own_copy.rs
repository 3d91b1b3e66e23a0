//! The private copy of the slot that was last looked at.
//!
//! A slot is copied out of the origin's ring once, exposed, and then compared with what each
//! other member shows of it. As long as the buffer still holds that slot it need not be copied
//! out of the replay region again for every comparison: the bytes there are these.

use super::config::SLOT_LEN_MAX;
use super::exposed::Exposed;
use super::map::Map;
use super::mutants::TRUST_ORIGIN_BUFFER;
use crate::fabric::Fabric;
use crate::wire::broadcast::Stamp;

/// A buffer for one slot, and which exposed one it holds.
#[derive(Clone)]
pub(super) struct OwnCopy {
    bytes: [u8; SLOT_LEN_MAX],
    of: Option<Stamp>,
}

impl OwnCopy {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; SLOT_LEN_MAX], of: None }
    }

    /// The bytes as they are.
    pub(super) const fn bytes(&self) -> &[u8; SLOT_LEN_MAX] {
        &self.bytes
    }

    /// The buffer for something else; what it held is forgotten.
    pub(super) const fn anew(&mut self) -> &mut [u8; SLOT_LEN_MAX] {
        self.of = None;
        &mut self.bytes
    }

    /// The buffer holds what `exposed` was made of.
    pub(super) const fn note(&mut self, exposed: &Exposed) {
        self.of = Some(exposed.stamp());
    }

    /// What `exposed` stands for: from the buffer if it still holds that, else from the replay
    /// region, which nobody else can write.
    pub(super) fn recall(&mut self, fabric: &impl Fabric, map: &Map, exposed: &Exposed) -> &[u8] {
        if self.of == Some(exposed.stamp()) && !TRUST_ORIGIN_BUFFER.is_planted() {
            return &self.bytes[..exposed.used()];
        }
        self.of = Some(exposed.stamp());
        exposed.copy_out(fabric, map, &mut self.bytes)
    }
}
