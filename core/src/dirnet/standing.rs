//! Where a node stands: its latest life and how far that has come.
//!
//! ```text
//!  life 1/0 up ─▶ 1/1 up ─▶ 1 down ─▶ (1 isolated ─▶ 1 released) ─▶ 2/0 up …
//! ```
//!
//! A standing only moves forward, whatever order words arrive in: two of them merge into the
//! later one, and what was said about one life of a node never hits the next (G-8). Only a
//! manager's word moves one (NIUA, ANID).

use super::{Level, Life};
use crate::ids::Incarnation;

/// The latest life of a node and its level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Standing {
    /// Which life. Boot zero: never seen.
    pub life: Life,
    /// How far it has come.
    pub level: Level,
}

impl Standing {
    /// A member with this life.
    #[must_use]
    pub const fn up(life: Life) -> Self {
        Self { life, level: Level::Up }
    }

    /// A node that was removed in this life.
    #[must_use]
    pub const fn removed(life: Life, level: Level) -> Self {
        Self { life, level }
    }

    /// Whether the node was ever heard of.
    #[must_use]
    pub fn is_known(self) -> bool {
        self.life.boot != Incarnation(0)
    }

    /// Whether the node is a member.
    #[must_use]
    pub fn is_up(self) -> bool {
        self.is_known() && self.level == Level::Up
    }

    /// Whether `other` is a later standing. Removal ends all generations of a boot.
    #[must_use]
    pub fn is_before(self, other: Self) -> bool {
        self.order() < other.order()
    }

    fn order(self) -> (Incarnation, Level, u32) {
        match self.level {
            Level::Up => (self.life.boot, Level::Up, self.life.generation),
            Level::Down | Level::Isolated | Level::Released => (self.life.boot, self.level, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_only_moves_forward() {
        let life = |boot, generation| Life { boot: Incarnation(boot), generation };
        let forward = [
            Standing::default(),
            Standing::up(life(1, 0)),
            Standing::up(life(1, 7)),
            Standing::removed(life(1, 3), Level::Down),
            Standing::removed(life(1, 0), Level::Isolated),
            Standing::removed(life(1, 0), Level::Released),
            Standing::up(life(2, 0)),
        ];
        for (at, early) in forward.iter().enumerate() {
            for (other, late) in forward.iter().enumerate() {
                assert_eq!(early.is_before(*late), at < other, "{early:?} {late:?}");
            }
        }
    }

    #[test]
    fn a_node_is_removed_once_whatever_its_generation() {
        let life = |generation| Life { boot: Incarnation(1), generation };
        let first = Standing::removed(life(0), Level::Down);
        let again = Standing::removed(life(5), Level::Down);
        assert!(!first.is_before(again) && !again.is_before(first));
    }
}
