//! Abort markers: what a node broadcasts for a client that leaves in the middle of a
//! transfer, so that its receivers do not wait for the rest.
//!
//! ```text
//!   it leaves ─▶ kept by the supervisor ─▶ the component, behind what is in line
//!                  ▲  again to every next one     │ the last message broadcast is the client's:
//!                  │                              │   broadcast, once there is room
//!                  └─────────── executed ─────────┘ it is not, or is this marker: void
//! ```
//!
//! An injected equivocation (`weft inject equivocate`) belongs to no client, and is skipped.
//!
//! An abort marker waits for as long as the window is full: the receivers that make room are those
//! that need it. It is sent to every component until one has executed it, and is executed once,
//! since the last message that was broadcast is in the memory of the supervisor.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::control::Payload;

/// The most abort markers that are kept at a time. Behind one that waits nothing is broadcast, so
/// that those behind it are void; but a component may report late that it has executed one.
const KEPT_MAX: usize = 64;

/// The abort marker of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AbortMarker {
    /// The tag of the client's broadcasts.
    pub(super) tag: u64,
    pub(super) message: Payload,
}

/// The abort markers that no component has executed yet.
#[derive(Debug, Default)]
pub(super) struct AbortMarkers {
    kept: BTreeMap<u64, AbortMarker>,
    count: u64,
}

impl AbortMarkers {
    /// Keeps an abort marker and returns its number; none when there are too many.
    pub(super) fn keep(&mut self, marker: AbortMarker) -> Option<u64> {
        if self.kept.len() >= KEPT_MAX {
            return None;
        }
        self.count += 1;
        self.kept.insert(self.count, marker);
        Some(self.count)
    }

    /// Removes one that a component has executed.
    pub(super) fn handle_executed(&mut self, number: u64) {
        self.kept.remove(&number);
    }

    /// Those that are kept, in the order in which they were left.
    pub(super) fn kept(&self) -> impl Iterator<Item = (u64, &AbortMarker)> {
        self.kept.iter().map(|(number, marker)| (*number, marker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(tag: u64) -> AbortMarker {
        AbortMarker { tag, message: Payload(vec![1]) }
    }

    #[test]
    fn a_marker_is_kept_until_it_is_executed() {
        let mut abort_markers = AbortMarkers::default();
        let numbers: Vec<_> =
            [7, 8, 9].into_iter().filter_map(|tag| abort_markers.keep(marker(tag))).collect();
        abort_markers.handle_executed(numbers[1]);
        abort_markers.handle_executed(numbers[1]);
        let kept: Vec<_> = abort_markers.kept().collect();
        assert_eq!(kept, [(numbers[0], &marker(7)), (numbers[2], &marker(9))]);
    }

    #[test]
    fn there_is_room_for_so_many() {
        let mut abort_markers = AbortMarkers::default();
        let kept = (0..100).filter_map(|tag| abort_markers.keep(marker(tag))).count();
        assert_eq!(kept, KEPT_MAX);
        abort_markers.handle_executed(1);
        assert_eq!(
            abort_markers.keep(marker(1)),
            Some(KEPT_MAX as u64 + 1),
            "no number is used again"
        );
    }
}
