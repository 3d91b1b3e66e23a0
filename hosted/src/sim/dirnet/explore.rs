//! Every interleaving of a small cluster in trouble (X-7), without a clock: any deadline may come
//! before any message, so nothing that is proven here rests on a timeout.
//!
//! ```text
//!   settled ── the next message of any lane arrives, is lost, arrives twice
//!           ── a node crashes
//!           ── the next deadline of any node comes, at which it does more than count and beat
//! ```
//!
//! Lanes keep their order, as they do under the shipped transport. No heartbeat is ever
//! delivered, the worst there is, and a fence keeps nothing out. How many deadlines come is
//! bounded, and with it the depth, as long as no two nodes answer each other for ever.
//!
//! Held at every state: no term has two reigns, none is reigned by another than its claimant, no
//! node's term goes down, and a claim is above all terms its claimant knew.

mod world;

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use weft_core::ids::Rank;

use self::world::World;
use crate::sim::explore::{Bounds, Found};
use crate::sim::fold::Folded;
use crate::sim::panics;
use crate::sim::protocol::Violation;

/// Clusters that are walked: nodes, deadlines that come, and whether messages are lost and
/// repeated. Two deadlines are a suspicion and a verdict, and with it a succession.
const CLUSTERS: [(u16, u32, Lanes); 4] =
    [(2, 5, Lanes::Faulty), (3, 2, Lanes::Faulty), (4, 1, Lanes::Faulty), (4, 2, Lanes::Faultless)];

/// What lanes do in a cluster that is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lanes {
    /// They lose and repeat as many messages as the bounds say.
    Faulty,
    /// They lose and repeat nothing: the bounds' faults would be too many states.
    Faultless,
}

/// Something that happens on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    Deliver(Lane, &'static str),
    Lose(Lane, &'static str),
    Repeat(Lane, &'static str),
    Crash(Rank),
    Expire(Rank),
}

/// From whom to whom.
type Lane = (Rank, Rank);

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deliver((from, to), what) => write!(f, "{to} hears {what} of {from}"),
            Self::Lose((from, to), what) => write!(f, "{what} of {from} to {to} is lost"),
            Self::Repeat((from, to), what) => write!(f, "{what} of {from} to {to} is doubled"),
            Self::Crash(node) => write!(f, "{node} crashes"),
            Self::Expire(node) => write!(f, "the next deadline of {node} comes"),
        }
    }
}

struct Way {
    last: Move,
    before: Path,
}

/// The way to a state, last move first.
type Path = Option<Rc<Way>>;

fn in_words(mut path: &Path) -> Vec<String> {
    let mut moves = Vec::new();
    while let Some(way) = path {
        moves.push(way.last.to_string());
        path = &way.before;
    }
    moves.reverse();
    moves
}

/// Explores [`CLUSTERS`]: `crashes` nodes crash, `faults` messages are lost and as many repeated,
/// and `waits` deadlines more come. Nobody is born again here, and nobody is stepped.
pub(crate) fn explore(bounds: &Bounds, on_state: &dyn Fn(u64)) -> Option<Found> {
    if bounds.births > 0 || bounds.steps.is_some() {
        return None;
    }
    let mut found = Found { states: 0, finished: true, violation: None };
    for (count, deadlines, lanes) in CLUSTERS {
        let deadlines = deadlines + bounds.waits.unwrap_or(0);
        let faults = if lanes == Lanes::Faulty { bounds.faults } else { 0 };
        let walk = Walk { states: found.states, states_max: bounds.states_max, on_state };
        found = walk.over(World::settled(count, deadlines, &Bounds { faults, ..*bounds }));
        if !found.finished || found.violation.is_some() {
            break;
        }
    }
    Some(found)
}

/// One cluster's walk.
struct Walk<'a> {
    /// Those of the clusters before.
    states: u64,
    states_max: u64,
    on_state: &'a dyn Fn(u64),
}

impl Walk<'_> {
    fn over(&self, first: World) -> Found {
        let mut seen = HashSet::<u64, BuildHasherDefault<Folded>>::default();
        seen.insert(fingerprint(&first));
        let mut open: Vec<(World, Path)> = vec![(first, None)];
        let mut violation = None;
        while let Some((world, path)) = open.pop() {
            let next = panics::quietly(|| catch_unwind(AssertUnwindSafe(|| world.successors())));
            let next = next.unwrap_or_else(|panic| {
                violation = Some((Violation::new("panic", panic), in_words(&path)));
                Vec::new()
            });
            for (last, mut successor) in next {
                let broken = world.check(&mut successor);
                let is_new = seen.insert(fingerprint(&successor));
                let way = Some(Rc::new(Way { last, before: path.clone() }));
                if let Err(broken) = broken {
                    violation = Some((broken, in_words(&way)));
                    break;
                }
                if is_new {
                    open.push((successor, way));
                }
            }
            let states = self.states + seen.len() as u64;
            if states.is_multiple_of(1024) {
                (self.on_state)(states);
            }
            if violation.is_some() || states > self.states_max {
                return Found { states, finished: false, violation };
            }
        }
        Found { states: self.states + seen.len() as u64, finished: true, violation: None }
    }
}

fn fingerprint(world: &World) -> u64 {
    let mut hasher = Folded::default();
    world.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        steps: None,
        crashes: 2,
        births: 0,
        faults: 1,
        waits: Some(0),
        states_max: 1_000_000,
    };

    fn walk(count: u16, deadlines: u32) -> Found {
        let walk = Walk { states: 0, states_max: BOUNDS.states_max, on_state: &|_| {} };
        walk.over(World::settled(count, deadlines, &BOUNDS))
    }

    #[test]
    fn x7_no_interleaving_of_a_few_deadlines_breaks_a_term() {
        for (count, deadlines) in [(2, 3), (3, 1)] {
            let found = walk(count, deadlines);
            assert_eq!((found.finished, found.violation), (true, None));
            assert!(found.states > 300, "{} states of {count}", found.states);
        }
    }

    #[test]
    fn x7_the_walk_meets_successions() {
        // Two deadlines are a suspicion and a conclusion: whoever follows has claimed by then.
        let reached = |first: World| {
            let mut open = vec![first];
            while let Some(world) = open.pop() {
                if world.reigns() > 1 {
                    return true;
                }
                for (_, mut next) in world.expiries() {
                    world.check(&mut next).expect("it is kept");
                    open.push(next);
                }
            }
            false
        };
        for count in 2..=4 {
            assert!(!reached(World::settled(count, 1, &BOUNDS)), "{count} nodes");
            assert!(reached(World::settled(count, 2, &BOUNDS)), "{count} nodes");
        }
    }

    #[test]
    fn what_it_cannot_do_it_refuses() {
        assert!(explore(&Bounds { births: 1, ..BOUNDS }, &|_| {}).is_none());
        assert!(explore(&Bounds { steps: Some(1), ..BOUNDS }, &|_| {}).is_none());
    }

    #[test]
    fn it_gives_up_where_it_is_told() {
        let found = explore(&Bounds { states_max: 100, ..BOUNDS }, &|_| {}).expect("it explores");
        assert!(!found.finished && found.states > 100 && found.violation.is_none());
    }
}
