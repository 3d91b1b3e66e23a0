//! Standing of a node: its latest incarnation, the state of that, and whether the node is isolated.
//!
//! ```text
//!  1/0 up ─▶ 1/1 up ─▶ 1 down ─▶ 2/0 up ─▶ …          incarnations: one line
//!  isolated since 1 ─▶ released up to 1 ─▶ isolated since 4 ─▶ …   above all of them (X-11)
//! ```
//!
//! A standing only moves forward, in whatever order messages arrive: standings form a lattice, and
//! [`merged`](Standing::merged) is its join. A decision about one incarnation of a node never
//! affects the next (G-8).
//!
//! An isolation is numbered by the boot that it ended. A release ends the isolations up to its
//! number. Nothing else does, neither a later incarnation nor an earlier release. So a node is
//! isolated while the last isolation has a higher number than the last release, in any order of
//! arrival. A node that is isolated again before it has come back is isolated in the boot in which
//! it would come back.

use super::{ComponentIncarnation, Level};
use crate::ids::Incarnation;

/// What becomes of an incarnation that a node announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It may be admitted.
    Admit,
    /// Its boot is over, as all up to this one are.
    Fence(Incarnation),
    /// The node is isolated since this boot, whatever incarnation it announces.
    Isolate(Incarnation),
}

/// The latest incarnation of a node and its level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Standing {
    /// The incarnation. Boot zero: never seen.
    pub incarnation: ComponentIncarnation,
    /// The level of the incarnation.
    pub level: Level,
    /// Whether the incarnation was removed.
    is_down: bool,
    /// The number of the last isolation; zero for none.
    isolated: Incarnation,
    /// Isolations up to this number are over.
    released: Incarnation,
}

impl Standing {
    /// A member with this incarnation.
    #[must_use]
    pub const fn up(incarnation: ComponentIncarnation) -> Self {
        let never = Incarnation(0);
        Self { incarnation, level: Level::Up, is_down: false, isolated: never, released: never }
    }

    /// A node that was removed in this incarnation, isolated since, or released from all isolations
    /// up to it.
    #[must_use]
    pub fn removed(incarnation: ComponentIncarnation, level: Level) -> Self {
        let is_down = level != Level::Up;
        // All generations of a boot are removed together.
        let generation = if is_down { 0 } else { incarnation.generation };
        let mut standing = Self {
            incarnation: ComponentIncarnation { generation, ..incarnation },
            is_down,
            ..Self::default()
        };
        match level {
            Level::Isolated => standing.isolated = incarnation.boot,
            Level::Released => standing.released = incarnation.boot,
            Level::Up | Level::Down => {}
        }
        standing.leveled()
    }

    /// The isolation numbered `boot`, the boot that it ended.
    #[must_use]
    pub fn isolate(boot: Incarnation) -> Self {
        Self::removed(ComponentIncarnation { boot, generation: 0 }, Level::Isolated)
    }

    /// Isolations up to the number `up_to` are over; nothing else is known of the node.
    #[must_use]
    pub fn release(up_to: Incarnation) -> Self {
        Self { released: up_to, ..Self::default() }
    }

    /// The incarnation that an isolation of `incarnation` ends: a later one if an isolation of it
    /// is already over.
    pub(super) fn to_isolate(self, incarnation: ComponentIncarnation) -> ComponentIncarnation {
        if self.released < incarnation.boot {
            return incarnation;
        }
        ComponentIncarnation { boot: self.released.next(), generation: 0 }
    }

    /// Whether the node was ever heard from.
    #[must_use]
    pub fn is_known(self) -> bool {
        self.incarnation.boot != Incarnation(0)
    }

    /// Whether the node is a member.
    #[must_use]
    pub fn is_up(self) -> bool {
        self.is_known() && self.level == Level::Up
    }

    /// The number of the isolation in force, if any.
    #[must_use]
    pub fn isolation(self) -> Option<Incarnation> {
        (self.level == Level::Isolated).then_some(self.isolated)
    }

    /// The number up to which isolations are over; zero if there was none.
    #[must_use]
    pub const fn released(self) -> Incarnation {
        self.released
    }

    /// Whether `other` knows more: a later incarnation, its removal, an isolation or a release.
    #[must_use]
    pub fn is_before(self, other: Self) -> bool {
        self.merged(other) != self
    }

    /// Whether the incarnation `incarnation` is over.
    pub(super) fn is_past(self, incarnation: ComponentIncarnation) -> bool {
        Self::up(incarnation).order() < self.order()
    }

    /// Whether the boot is over because the last release names a later one: the isolation that it
    /// ended was of that one, whether or not it was known here. The boot that it names may be the
    /// one in which a node comes back that was isolated twice.
    fn is_before_release(self, boot: Incarnation) -> bool {
        boot < self.released && !super::RELEASES_BRING_BACK_THE_PAST.is_planted()
    }

    /// What becomes of an incarnation of this boot.
    pub(super) fn admission(self, boot: Incarnation) -> Admission {
        match self.isolation() {
            Some(since) => Admission::Isolate(since),
            None if self.is_before_release(boot)
                || self.is_past(ComponentIncarnation { boot, generation: 0 }) =>
            {
                Admission::Fence(self.incarnation.boot.max(self.released))
            }
            None => Admission::Admit,
        }
    }

    /// The join of two standings. Removal ends all generations of a boot.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        let is_later = self.order() < other.order() || super::STALE_STANDINGS_WIN.is_planted();
        let later = if is_later { other } else { self };
        Self {
            isolated: self.isolated.max(other.isolated),
            released: self.released.max(other.released),
            ..later
        }
        .leveled()
    }

    /// The isolations and releases only.
    pub(super) fn without_incarnation(self) -> Self {
        let Self { isolated, released, .. } = self;
        Self { isolated, released, ..Self::default() }.leveled()
    }

    fn order(self) -> (Incarnation, bool, u32) {
        (self.incarnation.boot, self.is_down, self.incarnation.generation)
    }

    fn leveled(self) -> Self {
        let holds = match self.isolated {
            _ if super::STALE_RELEASES_COUNT.is_planted() => self.released == Incarnation(0),
            isolated if isolated < self.incarnation.boot => {
                !super::LATER_BOOTS_ARE_FREE.is_planted()
            }
            _ => true,
        };
        let level = match self.is_down {
            _ if self.isolated > self.released && holds => Level::Isolated,
            true if self.released >= self.incarnation.boot => Level::Released,
            true => Level::Down,
            false => Level::Up,
        };
        Self { level, ..self }
    }

    /// The standing as numbers: boot, generation, 1 if that was removed, isolation, release.
    pub(super) const fn words(self) -> [u32; 5] {
        let ComponentIncarnation { boot, generation } = self.incarnation;
        [boot.0, generation, self.is_down as u32, self.isolated.0, self.released.0]
    }

    /// The standing that [`Self::words`] encoded.
    pub(super) fn from_words(
        [boot, generation, down, isolated, released]: [u32; 5],
    ) -> Option<Self> {
        let incarnation = ComponentIncarnation { boot: Incarnation(boot), generation };
        let is_down = match down {
            0 => false,
            1 if generation == 0 => true,
            _ => return None,
        };
        // The number may be higher than a boot that is known: incarnations are forgotten,
        // isolations are not.
        if isolated > boot && super::FORGOTTEN_BOOTS_ARE_DAMAGE.is_planted() {
            return None;
        }
        let (isolated, released) = (Incarnation(isolated), Incarnation(released));
        Some(Self { incarnation, level: Level::Up, is_down, isolated, released }.leveled())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn incarnation(boot: u32, generation: u32) -> ComponentIncarnation {
        ComponentIncarnation { boot: Incarnation(boot), generation }
    }

    #[test]
    fn a_standing_only_moves_forward() {
        let forward = [
            Standing::default(),
            Standing::up(incarnation(1, 0)),
            Standing::up(incarnation(1, 7)),
            Standing::removed(incarnation(1, 3), Level::Down),
            Standing::removed(incarnation(1, 0), Level::Isolated),
        ];
        for (at, early) in forward.iter().enumerate() {
            for (other, late) in forward.iter().enumerate().filter(|(other, _)| *other != at) {
                assert_eq!(early.is_before(*late), at < other, "{early:?} {late:?}");
            }
        }
    }

    #[test]
    fn a_node_is_removed_once_whatever_its_generation() {
        let first = Standing::removed(incarnation(0, 0), Level::Down);
        let again = Standing::removed(incarnation(0, 5), Level::Down);
        assert!(!first.is_before(again) && !again.is_before(first));
    }

    #[test]
    fn x11_an_isolation_ends_with_its_release_and_with_no_later_incarnation() {
        let isolated = Standing::removed(incarnation(1, 0), Level::Isolated);
        let back = isolated.merged(Standing::up(incarnation(2, 0)));
        assert_eq!((back.level, back.isolation()), (Level::Isolated, Some(Incarnation(1))));
        assert_eq!(Standing::up(incarnation(2, 0)).merged(isolated), back);
        let released = back.merged(Standing::removed(incarnation(1, 0), Level::Released));
        assert_eq!((released.level, released.incarnation), (Level::Up, incarnation(2, 0)));
        assert!(!released.is_before(isolated), "an old database isolates no node again");
        let again = released.merged(Standing::removed(incarnation(2, 0), Level::Isolated));
        assert_eq!(again.isolation(), Some(Incarnation(2)));
    }

    /// Any standing that can result from three messages.
    fn standings() -> impl Strategy<Value = Standing> {
        let one = (0..4u32, 0..2u32, 0..5u8).prop_map(|(boot, generation, what)| {
            let incarnation = incarnation(boot, generation);
            match what {
                0 => Standing::up(incarnation),
                1 => Standing::removed(incarnation, Level::Down),
                2 => Standing::removed(incarnation, Level::Isolated),
                3 => Standing::removed(incarnation, Level::Released),
                _ => Standing::release(incarnation.boot),
            }
        });
        proptest::collection::vec(one, 0..4)
            .prop_map(|all| all.into_iter().fold(Standing::default(), Standing::merged))
    }

    proptest! {
        #[test]
        fn x11_standings_are_a_lattice(a in standings(), b in standings(), c in standings()) {
            prop_assert_eq!(a.merged(b), b.merged(a));
            prop_assert_eq!(a.merged(b).merged(c), a.merged(b.merged(c)));
            prop_assert_eq!(a.merged(a), a);
            prop_assert!(!a.merged(b).is_before(a) && !a.merged(b).is_before(b));
        }

        #[test]
        fn x11_a_release_of_its_number_alone_ends_an_isolation(
            before in standings(), after in standings(), boot in 1..4u32,
        ) {
            let isolated = Standing::removed(incarnation(boot, 0), Level::Isolated);
            let stands = before.merged(isolated).merged(after);
            let released = before.released().max(after.released());
            prop_assert_eq!(stands.isolation().is_none(), stands.isolated <= released);
            prop_assert!(boot <= stands.isolated.0);
            let freed = stands.merged(Standing::release(stands.isolated));
            prop_assert!(freed.isolation().is_none());
        }
    }

    #[test]
    fn x11_a_node_that_has_not_come_back_can_be_isolated_again() {
        let isolated = Standing::removed(incarnation(3, 1), Level::Isolated);
        assert_eq!(Standing::default().to_isolate(incarnation(3, 1)), incarnation(3, 1));
        let released = isolated.merged(Standing::release(Incarnation(3)));
        assert_eq!(released.level, Level::Released);
        let again = released.to_isolate(incarnation(3, 1));
        let again = released.merged(Standing::removed(again, Level::Isolated));
        assert_eq!(again.isolation(), Some(Incarnation(4)));
        assert_eq!(again.merged(released), again, "an earlier release does not end it");
    }

    #[test]
    fn a_standing_is_had_back_from_its_words() {
        let standing = Standing::removed(incarnation(3, 1), Level::Isolated)
            .merged(Standing::up(incarnation(4, 2)));
        assert_eq!(Standing::from_words(standing.words()), Some(standing));
        let forgotten = standing.without_incarnation();
        assert_eq!(Standing::from_words(forgotten.words()), Some(forgotten));
        for broken in [[1, 0, 2, 0, 0], [1, 1, 1, 0, 0]] {
            assert_eq!(Standing::from_words(broken), None);
        }
    }
}
