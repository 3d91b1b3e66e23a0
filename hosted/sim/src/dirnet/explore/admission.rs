//! Every interleaving of admissions in a small cluster (X-14): the shipped [`Supervision`] of each
//! node, and what goes between them, without a clock.
//!
//! ```text
//!   settled ── the next message arrives: between supervisors, from a component, to a component
//!           ── a component ends; a node crashes, noticed or not; a session ends with neither
//!           ── what is missing starts: a supervisor with its note, a component with its database
//!              or without it; two supervisors meet; a component enters the DIR net
//!           ── a component removes, isolates or releases a node; any other learns of it
//!           ── work for a peer is lost; the next deadline of a supervisor comes
//! ```
//!
//! The components of the DIR net are not here ([`explore`](super) has them): a component merges
//! what it learns, fences what that ends, and reports both. Any of them may decide, in its own term
//! or the next one, so that decisions of several terms are met in any order.
//!
//! What keeps the number of states small, by name:
//! - *Prefix*: all nodes have admitted each other in their first boots.
//! - *Fences at once*: a component fences when it learns of a decision. Its supervisor learns of
//!   the fence later, as the report of it is under way.
//! - *Gossip*: a component that learns of a decision reads it from one that knows it, in one move.
//!   A frame that was sent before and arrives later brings an older standing, which merges to
//!   nothing.
//! - *Isolation apart*: an isolation spreads as such, and not also as a removal; the members of the
//!   DIR net notify the removed boot as well.
//! - *Deadlines together*: no time passes between two inputs, so that a supervisor's deadlines come
//!   in the order of their waits.
//! - *Whole inputs*: a node crashes between two inputs, not between two orders of one. The swarm
//!   does that.
//! - *Starts at once*: a component starts without a back-off, and none hangs; `Starts` decides
//!   that.
//!
//! Invariants, checked in every state, by definition ([`Heard`](crate::dirnet::admission::Heard)):
//! no incarnation of a peer is admitted before the fence of the one before, after its own fence, or
//! after FENCED for its boot; nor one of an isolated node, by a supervisor that has learned of the
//! isolation and of no release with that number or a higher one; no boot ends for a decision of an
//! older term than its own about that peer; of two nodes that have fenced each other, not both end;
//! no standing goes back. Where nothing is under way, all agree on who is isolated, and admit each
//! other.

mod goals;
mod node;
mod world;

use std::fmt;

use self::world::AdmissionWorld;
use super::WalkState;
use crate::dirnet::admission::{Between, Down, Up};
use crate::explore::Bounds;
use crate::protocol::Violation;

/// The clusters to explore: what ends without a decision, then decisions.
const CLUSTERS: &[(u16, AdmissionBudget)] = &[
    (2, AdmissionBudget { ends: 1, crashes: 1, unnoticed: 1, ..CALM }),
    (2, AdmissionBudget { ends: 1, cuts: 1, ..CALM }),
    (2, AdmissionBudget { cuts: 1, losses: 1, ..CALM }),
    (3, AdmissionBudget { crashes: 1, ..CALM }),
    (3, AdmissionBudget { cuts: 1, ..CALM }),
    (2, AdmissionBudget { ends: 1, removals: 2, ..CALM }),
    (3, AdmissionBudget { removals: 1, ..CALM }),
    (2, AdmissionBudget { ends: 1, isolations: 1, releases: 1, ..CALM }),
    (2, AdmissionBudget { cuts: 1, isolations: 1, releases: 1, ..CALM }),
    (2, AdmissionBudget { isolations: 2, releases: 1, ..CALM }),
    (2, AdmissionBudget { crashes: 1, forgets: 1, isolations: 1, ..CALM }),
    (3, AdmissionBudget { isolations: 1, ..CALM }),
];

const CALM: AdmissionBudget = AdmissionBudget {
    ends: 0,
    crashes: 0,
    unnoticed: 0,
    cuts: 0,
    losses: 0,
    forgets: 0,
    removals: 0,
    isolations: 0,
    releases: 0,
};

/// How many events of each kind may happen on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct AdmissionBudget {
    /// Components that end while their node runs on.
    ends: u32,
    /// Nodes that crash, and those of them whose peers do not notice.
    crashes: u32,
    unnoticed: u32,
    /// Sessions that end although both supervisors run.
    cuts: u32,
    /// Reports of lost work for a peer.
    losses: u32,
    /// Components that start without their database.
    forgets: u32,
    /// Decisions.
    removals: u32,
    isolations: u32,
    releases: u32,
}

impl AdmissionBudget {
    fn within(self, bounds: &Bounds) -> Self {
        Self { crashes: self.crashes.min(bounds.crashes), ..self }
    }
}

/// An event on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AdmissionMove {
    /// A message between two supervisors.
    Deliver(Lane, Between),
    /// One from a component, and one to it.
    Up(u16, Up),
    Down(u16, Down),
    Start(u16),
    Begin(u16),
    BeginBare(u16),
    Enter(u16),
    Meet(u16, u16),
    Expire(u16),
    /// The second learns from the first of the isolations and releases of a node.
    Tell(Lane, u16),
    /// The second learns from the first of the removal of a node.
    TellRemoval(Lane, u16),
    Crash(u16),
    Vanish(u16),
    End(u16),
    Cut(u16, u16),
    Lose(u16, u16),
    Remove(u16, u16),
    Isolate(u16, u16),
    Release(u16, u16),
}

/// Sender and receiver.
type Lane = (u16, u16);

impl fmt::Display for AdmissionMove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deliver((from, to), message) => {
                write!(f, "the supervisor of {to} receives {message:?} of {from}")
            }
            Self::Up(at, message) => {
                write!(f, "the supervisor of {at} receives {message:?} of its component")
            }
            Self::Down(at, message) => write!(f, "the component of {at} receives {message:?}"),
            Self::Start(at) => write!(f, "the supervisor of {at} starts"),
            Self::Begin(at) => write!(f, "the component of {at} starts"),
            Self::BeginBare(at) => write!(f, "the component of {at} starts without its database"),
            Self::Enter(at) => write!(f, "the component of {at} is ordered to enter"),
            Self::Meet(one, other) => write!(f, "{one} and {other} meet"),
            Self::Expire(at) => write!(f, "the next deadline of the supervisor of {at} comes"),
            Self::Tell((from, to), of) => write!(f, "{to} learns from {from} how {of} stands"),
            Self::TellRemoval((from, to), of) => {
                write!(f, "{to} learns from {from} that {of} is removed")
            }
            Self::Crash(at) => write!(f, "{at} crashes"),
            Self::Vanish(at) => write!(f, "{at} crashes unnoticed"),
            Self::End(at) => write!(f, "the component of {at} ends"),
            Self::Cut(one, other) => write!(f, "the session of {one} and {other} ends"),
            Self::Lose(at, peer) => write!(f, "{at} loses work for {peer}"),
            Self::Remove(at, peer) => write!(f, "{at} removes {peer}"),
            Self::Isolate(at, peer) => write!(f, "{at} isolates {peer}"),
            Self::Release(at, peer) => write!(f, "{at} releases {peer}"),
        }
    }
}

impl WalkState for AdmissionWorld {
    type Move = AdmissionMove;

    fn successors(&self) -> Vec<(AdmissionMove, Self)> {
        let done = |next: AdmissionMove| {
            let mut world = self.clone();
            world.act(next);
            (next, world)
        };
        self.moves().into_iter().map(done).collect()
    }

    fn check(&self, next: &mut Self) -> Result<(), Violation> {
        match next.broken.take() {
            Some((checker, what)) => Err(Violation::new(checker, what)),
            None if next.free_moves().is_empty() => next.check_rest(),
            None => Ok(()),
        }
    }
}

/// The clusters to explore within `bounds`, and the name of each.
pub(super) fn clusters(bounds: &Bounds) -> impl Iterator<Item = (String, impl WalkState)> {
    let clusters = CLUSTERS.iter().map(|(count, budget)| (*count, budget.within(bounds)));
    clusters.map(|(count, budget)| (name(count, budget), AdmissionWorld::settled(count, budget)))
}

/// The name of a cluster: its nodes and all events that may happen.
fn name(count: u16, budget: AdmissionBudget) -> String {
    let counted = [
        (budget.ends, "component ended", "components ended"),
        (budget.crashes, "crash", "crashes"),
        (budget.unnoticed, "unnoticed", "unnoticed"),
        (budget.cuts, "session ended", "sessions ended"),
        (budget.losses, "lost work", "lost works"),
        (budget.forgets, "database lost", "databases lost"),
        (budget.removals, "removal", "removals"),
        (budget.isolations, "isolation", "isolations"),
        (budget.releases, "release", "releases"),
    ];
    let mut name = format!("admission, n = {count}");
    for (number, one, many) in counted {
        name += &super::counted(number, one, many);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::super::walk;
    use super::*;

    const STATES_MAX: u64 = 200_000;

    #[test]
    fn x14_no_interleaving_of_a_few_faults_and_decisions_breaks_a_promise() {
        for (count, budget) in [
            (2, AdmissionBudget { ends: 1, crashes: 1, unnoticed: 1, ..CALM }),
            (2, AdmissionBudget { cuts: 1, losses: 1, ..CALM }),
            (2, AdmissionBudget { removals: 2, ..CALM }),
            (3, AdmissionBudget { cuts: 1, ..CALM }),
        ] {
            let found = walk(AdmissionWorld::settled(count, budget), STATES_MAX, &|_| {});
            assert_eq!((found.finished, found.violation), (true, None), "{}", name(count, budget));
            assert!(found.states > 1_000, "{} states", found.states);
        }
    }

    /// Each removes the other, in terms of their own: the one with the older decision gives way.
    #[test]
    fn x14_the_walk_meets_boots_that_give_way() {
        let mut world = AdmissionWorld::settled(2, AdmissionBudget { removals: 2, ..CALM });
        world.act(AdmissionMove::Remove(0, 1));
        world.act(AdmissionMove::Remove(1, 0));
        while let Some(next) = world.free_moves().into_iter().next() {
            world.act(next);
        }
        let boots = [0, 1].map(|node| world.at(node).boot.0);
        assert_eq!((boots, world.broken), ([1, 2], None));
    }

    /// Of the cluster that is left out: 1 learns of its release before its isolation and runs on,
    /// and the deadline of 2 for its refusal comes while it is isolated there.
    #[test]
    fn x14_a_boot_that_ran_on_through_its_isolation_ends() {
        let mut world =
            AdmissionWorld::settled(3, AdmissionBudget { isolations: 1, releases: 1, ..CALM });
        let decisions = [AdmissionMove::Isolate(2, 1), AdmissionMove::Release(2, 1)];
        let gossip = [AdmissionMove::Tell((2, 0), 1), AdmissionMove::Tell((0, 1), 1)];
        decisions.into_iter().chain(gossip).for_each(|next| world.act(next));
        for at in [1, 0, 2, 2] {
            let report = *world.at(at).up.front().expect("its component has reported");
            world.act(AdmissionMove::Up(at, report));
        }
        world.act(AdmissionMove::Expire(2));
        while let Some(next) = world.free_moves().into_iter().next() {
            world.act(next);
        }
        let boots = [0, 1, 2].map(|node| world.at(node).boot.0);
        assert_eq!((boots, world.check_rest(), world.broken), ([1, 2, 1], Ok(()), None));
    }

    #[test]
    fn a_name_says_the_size_and_the_bounds() {
        let budget = AdmissionBudget { ends: 1, removals: 2, ..CALM };
        assert_eq!(name(3, budget), "admission, n = 3, 1 component ended, 2 removals");
    }
}
