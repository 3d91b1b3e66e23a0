//! Barriers: no member leaves one before all live members have arrived at it (GT-10).
//!
//! ```text
//!          coordinator: the first live member            arrived: the least of the subtree, up
//!           ▲ arrived      │ released                    released: what the coordinator found
//!         member 1      member 2                                   that all have arrived at, down
//!          ▲    ▲
//! ```
//!
//! Both numbers are cumulative and travel in one frame, so a new parent or child needs that frame
//! and nothing else. An arrival counts under the members and epochs under which its subtree was
//! formed, as an acknowledgement does. A release counts under any: what all live members have
//! arrived at, the rest of them have, too, and one that comes back begins behind it.

use super::mutants::{ARRIVALS_IGNORED, FOREIGN_ARRIVAL, NO_SYNC_AGAIN};
use super::seats::{Grank, Members, Seats};
use crate::wire::group::{Frame, Sync};

/// What the subtree of a child has arrived at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Arrivals {
    number: u64,
    epochs: u64,
}

/// The barriers of one group.
#[derive(Clone, Debug, Hash)]
pub(super) struct Barrier<const PEERS: usize> {
    parent: Option<Grank>,
    below: u64,
    heard: [Arrivals; PEERS],
    /// What the parent was sent last.
    said: u64,
    /// Who must be sent how far the barriers are.
    due: u64,
    pub(super) released: u64,
}

impl<const PEERS: usize> Barrier<PEERS> {
    /// `left` was released: an earlier incarnation has left it.
    pub(super) fn new(left: u64) -> Self {
        Self {
            parent: None,
            below: 0,
            heard: [Arrivals::default(); PEERS],
            said: 0,
            due: 0,
            released: left,
        }
    }

    /// Forms the tree over the live members.
    pub(super) fn arrange(&mut self, members: &Members) {
        let seats = Seats::new(members.count, Grank(0), members.live);
        let Some(own) = seats.position(members.me) else { return };
        self.parent = own.checked_sub(1).and_then(|at| seats.at(at / 2));
        let children = (2 * own + 1..=2 * own + 2).filter_map(|at| seats.at(at));
        self.below = children.fold(0, |set, grank| set | grank.bit());
        self.due = 0;
        // A parent or a child may be new, and what was said to the one before is lost with it.
        if !NO_SYNC_AGAIN.is_planted() {
            self.due = self.below | self.parent.map_or(0, Grank::bit);
        }
    }

    /// The connection to `grank` is new: it is sent again where this member stands.
    pub(super) fn handle_agreed(&mut self, grank: Grank) {
        self.due |= grank.bit() & (self.below | self.parent.map_or(0, Grank::bit));
    }

    /// The connection to `grank` is gone.
    pub(super) const fn forget(&mut self, grank: Grank) {
        self.heard[grank.index()] = Arrivals { number: 0, epochs: 0 };
    }

    /// What `from` says of its subtree, and of the coordinator.
    pub(super) fn handle_sync(&mut self, from: Grank, sync: Sync) {
        let Sync { arrived, released, epochs } = sync;
        self.heard[from.index()] = Arrivals { number: arrived, epochs };
        if released > self.released {
            self.released = released;
            self.due |= self.below;
        }
    }

    /// This member has arrived at `arrived`, or others have.
    pub(super) fn settle(&mut self, arrived: u64, members: &Members) {
        let least = self.least(arrived, members);
        match self.parent {
            None if least > self.released => {
                self.released = least;
                self.due |= self.below;
            }
            Some(parent) if least > self.said => self.due |= parent.bit(),
            None | Some(_) => {}
        }
    }

    /// The frame that `to` must be sent.
    pub(super) fn frame_for(&self, to: Grank, arrived: u64, members: &Members) -> Option<Frame> {
        let (released, epochs) = (self.released, members.epochs);
        let sync = Sync { arrived: self.least(arrived, members), released, epochs };
        (self.due & to.bit() != 0).then_some(Frame::Sync(sync))
    }

    /// `to` was sent it.
    pub(super) fn note_said(&mut self, to: Grank, arrived: u64, members: &Members) {
        self.due &= !to.bit();
        if self.parent == Some(to) {
            // It may be less than before: a child that is connected again has yet to say where it
            // stands, and then the parent must be sent more.
            self.said = self.least(arrived, members);
        }
    }

    fn least(&self, arrived: u64, members: &Members) -> u64 {
        let below = (0..members.count).map(Grank).filter(|grank| self.below & grank.bit() != 0);
        below.fold(arrived, |least, grank| {
            let Arrivals { number, epochs } = self.heard[grank.index()];
            // Under others the child's subtree may lack a member that it has here.
            let is_same = epochs == members.epochs || FOREIGN_ARRIVAL.is_planted();
            let number = if is_same { number } else { 0 };
            if ARRIVALS_IGNORED.is_planted() { least } else { least.min(number) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Member 1 of 4: member 0 is its parent, member 3 its child.
    #[test]
    fn a_parent_is_sent_more_once_a_child_is_connected_again() {
        let members = Members { count: 4, me: Grank(1), live: 0b1111, epochs: 0 };
        let child = Sync { arrived: 1, released: 0, epochs: 0 };
        let mut barrier = Barrier::<4>::new(0);
        barrier.arrange(&members);
        let say = |barrier: &mut Barrier<4>| {
            barrier.settle(1, &members);
            let frame = barrier.frame_for(Grank(0), 1, &members);
            barrier.note_said(Grank(0), 1, &members);
            frame.map(|frame| frame == Frame::Sync(child))
        };
        barrier.handle_sync(Grank(3), child);
        assert_eq!([say(&mut barrier), say(&mut barrier)], [Some(true), None]);
        barrier.forget(Grank(3));
        barrier.handle_agreed(Grank(0));
        assert_eq!(say(&mut barrier), Some(false));
        barrier.handle_sync(Grank(3), child);
        assert_eq!([say(&mut barrier), say(&mut barrier)], [Some(true), None]);
    }
}
