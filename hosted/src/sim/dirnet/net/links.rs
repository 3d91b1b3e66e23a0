//! Links: what is cut, for a while or for good, and what gets lost.

use weft_core::ids::Rank;

use super::{Flight, MS, Net};

impl Net {
    pub(super) fn cut(&mut self, cut: (u16, u16), ms: u64) {
        self.cuts.insert(cut);
        let (from, to) = cut;
        let boot = self.node(from).boot;
        self.part(to, from, boot);
        self.post_at(self.now + ms * MS, Flight::Heal { cut });
    }

    /// Cuts it for good.
    pub(super) fn sever(&mut self, from: u16, to: u16) {
        self.severed.insert((from, to));
        let boot = self.node(from).boot;
        self.part(to, from, boot);
    }

    pub(super) fn is_cut(&self, from: u16, to: u16) -> bool {
        self.cuts.contains(&(from, to)) || self.severed.contains(&(from, to))
    }

    /// Whether the two ends of a link will hear each other.
    pub(super) fn meet(&self, one: Rank, other: Rank) -> bool {
        !self.severed.contains(&(one.0, other.0)) && !self.severed.contains(&(other.0, one.0))
    }

    /// Whether one more message may get lost on this link.
    pub(super) fn may_lose(&mut self, from: u16, to: u16, flight: &Flight) -> bool {
        let is_beat = matches!(flight, Flight::Beat { .. });
        let in_a_row = self.lost_in_a_row.entry((from, to)).or_default();
        *in_a_row += u32::from(is_beat);
        *in_a_row <= self.setting.lost_in_a_row_max
    }
}
