//! Who is served first, so that no peer and no root starves another (GT-18).

use core::hash::{Hash, Hasher};

/// The number that is served first, of `0..count`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn(u16);

impl Turn {
    /// The next number begins.
    pub(super) const fn advance(&mut self, count: u16) {
        self.pass(self.0, count);
    }

    /// `served` comes last from now on.
    pub(super) const fn pass(&mut self, served: u16, count: u16) {
        self.0 = (served + 1) % count;
    }

    /// All of `0..count`, the first one first.
    pub(super) fn order(self, count: u16) -> impl Iterator<Item = u16> + use<> {
        (0..count).map(move |ahead| (self.0 + ahead) % count)
    }
}

impl Hash for Turn {
    /// The order of service decides no promise. If it distinguished states, no round of the
    /// explorer would be one that changes nothing, and it would never finish.
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}
