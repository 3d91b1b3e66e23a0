//! Links: which are cut, temporarily or permanently, and what is lost.

use weft_core::ids::Rank;

use super::{Net, NetFlight};

impl Net {
    pub(super) fn cut(&mut self, cut: (u16, u16), ms: u64) {
        self.cuts.insert(cut);
        let (from, to) = cut;
        self.lose_way(from, to);
        self.post_at(self.now + ms * self.setting.unit, NetFlight::Heal { cut });
    }

    /// Cuts the link permanently.
    pub(super) fn sever(&mut self, from: u16, to: u16) {
        self.severed.insert((from, to));
        self.lose_way(from, to);
    }

    fn lose_way(&mut self, from: u16, to: u16) {
        let boot = self.node(from).boot;
        self.part(to, (from, boot), true);
        if self.setting.cuts_sessions && from != to {
            self.part_supervisors(from, to);
        }
    }

    /// The transport of one node may notice that it has lost an incarnation of another: the whole
    /// node, or only its component.
    pub(super) fn part(&mut self, at: u16, (node, boot): (u16, u32), is_whole: bool) {
        if at != node && self.draws.chance(self.setting.noticed, 1_000) {
            let after = self.draws.between(1, self.setting.delay_max);
            let incarnation = self.node(at).boot;
            self.post_at(
                self.now + after,
                NetFlight::Parted { at, incarnation, node, boot, is_whole },
            );
        }
    }

    /// The transport of `at` falsely reports that it has lost `node`.
    pub(super) fn lose(&mut self, at: u16, node: u16) {
        let (incarnation, boot) = (self.node(at).boot, self.node(node).boot);
        self.post_at(self.now, NetFlight::Parted { at, incarnation, node, boot, is_whole: true });
    }

    pub(super) fn is_cut(&self, from: u16, to: u16) -> bool {
        self.cuts.contains(&(from, to)) || self.severed.contains(&(from, to))
    }

    /// Whether the two ends of a link will hear each other.
    pub(super) fn meet(&self, one: Rank, other: Rank) -> bool {
        !self.severed.contains(&(one.0, other.0)) && !self.severed.contains(&(other.0, one.0))
    }

    /// Whether one more message may get lost on this link.
    pub(super) fn may_lose(&mut self, from: u16, to: u16, flight: &NetFlight) -> bool {
        let is_beat = matches!(flight, NetFlight::Beat { .. });
        let in_a_row = self.lost_in_a_row.entry((from, to)).or_default();
        *in_a_row += u32::from(is_beat);
        *in_a_row <= self.setting.lost_in_a_row_max
    }
}
