//! The configurations of groups that the explorer walks.

use weft_core::group::{Class, Costs, Sizes, Spread, Tree};
use weft_core::ids::{Peer, PeerSet};

use super::Groupings;
use crate::protocol::{Pace, Small};

/// One configuration: who sends, and who is removed when it dies.
struct Case {
    name: &'static str,
    members: u16,
    messages: u32,
    spread: Spread,
    eager: u16,
    doomed: &'static [u16],
}

const CASES: &[Case] = &[
    Case {
        name: "n = 2, one small message",
        members: 2,
        messages: 1,
        spread: Spread::Flat,
        eager: 64,
        doomed: &[],
    },
    Case {
        name: "n = 2, one small message, root removed",
        members: 2,
        messages: 1,
        spread: Spread::Flat,
        eager: 64,
        doomed: &[0],
    },
    Case {
        name: "n = 2, one long message",
        members: 2,
        messages: 1,
        spread: Spread::Flat,
        eager: 0,
        doomed: &[0],
    },
    Case {
        name: "n = 3, one small message, any removed",
        members: 3,
        messages: 1,
        spread: Spread::Flat,
        eager: 64,
        doomed: &[0, 1, 2],
    },
    Case {
        name: "n = 3, one long message by the pipeline, any removed",
        members: 3,
        messages: 1,
        spread: Spread::Pipeline,
        eager: 0,
        doomed: &[0, 1, 2],
    },
];

/// All of them.
pub(super) fn all() -> Vec<Small<Groupings>> {
    CASES.iter().map(Case::small).collect()
}

impl Case {
    fn small(&self) -> Small<Groupings> {
        let sizes = Sizes {
            peers: self.members,
            groups: 1,
            entries: 2,
            blocks: 2,
            block_len: 8,
            eager: self.eager,
            lane_slots: 4,
            tree: Tree { class: Class::Binary, costs: Costs::postal(1) },
            spread: self.spread,
        };
        let list: Vec<_> = (0..self.members).map(Peer).collect();
        let mut doomed = PeerSet::EMPTY;
        self.doomed.iter().copied().map(Peer).for_each(|peer| doomed.insert(peer));
        let protocol = Groupings::new(sizes, vec![list], doomed, 3);
        let mut orders = vec![0; usize::from(self.members)];
        orders[0] = self.messages;
        let small = Small::of(self.name, protocol, orders);
        Small { crashes: 1, pace: Pace::AtOnce, ..small }
    }
}
