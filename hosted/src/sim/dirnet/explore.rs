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

use weft_core::ids::Rank;

use self::world::World;
use crate::sim::explore::path::Path;
use crate::sim::explore::{Bounds, Findings, Found};
use crate::sim::fold::Folded;
use crate::sim::panics;
use crate::sim::protocol::Violation;

/// Clusters that are walked: how they begin, deadlines that come, and whether messages are lost and
/// repeated. Two deadlines are a suspicion and a verdict, and with it a succession.
const CLUSTERS: [(Begin, u32, Lanes); 4] = [
    (Begin::Settled(2), 5, Lanes::Faulty),
    (Begin::Settled(3), 2, Lanes::Faulty),
    (Begin::Settled(4), 1, Lanes::Faultless),
    (Begin::Rivals, 1, Lanes::Faulty),
];

/// How a cluster is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    /// So many nodes, one of which everybody follows.
    Settled(u16),
    /// Two managers, each of which has removed an earlier life of the other.
    Rivals,
}

impl Begin {
    fn world(self, deadlines: u32, bounds: &Bounds) -> World {
        match self {
            Self::Settled(count) => World::settled(count, deadlines, bounds),
            Self::Rivals => World::rivals(deadlines, bounds),
        }
    }
}

/// What lanes do in a cluster that is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lanes {
    /// They lose and repeat as many messages as the bounds say.
    Faulty,
    /// They lose and repeat nothing: the bounds' faults would be too many states.
    Faultless,
}

/// Messages lost, and as many repeated, unless the explorer is told otherwise.
const FAULTS: u32 = 1;

/// States between two words about how many there are.
const TELL_EVERY: u64 = 1024;

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

/// Explores [`CLUSTERS`], by name: `crashes` nodes crash, `faults` messages are lost and as many
/// repeated, and `waits` deadlines more come. Nobody is born again here, and nobody is stepped;
/// within bounds that ask for it there is nothing to explore. `on_states` is called now and then
/// with how many more states were seen.
pub(crate) fn explore(bounds: &Bounds, on_states: &(dyn Fn(u64) + Sync)) -> Findings {
    let mut findings = Findings::new();
    if bounds.births.is_some_and(|births| births > 0) || bounds.steps.is_some() {
        return findings;
    }
    for (begin, deadlines, lanes) in CLUSTERS {
        let deadlines = deadlines + bounds.waits.unwrap_or(0);
        let faults = if lanes == Lanes::Faulty { faults_of(bounds) } else { 0 };
        let bounds = Bounds { faults: Some(faults), ..*bounds };
        let found = walk((begin, deadlines), &bounds, on_states);
        let broken = found.violation.is_some();
        findings.push((name(begin, deadlines, &bounds), found));
        if broken {
            break;
        }
    }
    findings
}

/// How many messages may be lost, and as many repeated.
fn faults_of(bounds: &Bounds) -> u32 {
    bounds.faults.unwrap_or(FAULTS)
}

/// What a cluster is called: how it begins, and all that may happen to it.
fn name(begin: Begin, deadlines: u32, bounds: &Bounds) -> String {
    let counted = |number, one: &str, many: &str| match number {
        0 => String::new(),
        1 => format!(", 1 {one}"),
        _ => format!(", {number} {many}"),
    };
    let mut name = match begin {
        Begin::Settled(count) => format!("n = {count}"),
        Begin::Rivals => "2 managers".to_owned(),
    };
    name += &counted(deadlines, "deadline", "deadlines");
    name += &counted(bounds.crashes, "crash", "crashes");
    name +=
        &counted(faults_of(bounds), "message lost, 1 repeated", "messages lost, as many repeated");
    name
}

/// Walks one cluster.
fn walk((begin, deadlines): (Begin, u32), bounds: &Bounds, on_states: &dyn Fn(u64)) -> Found {
    let first = begin.world(deadlines, bounds);
    let mut seen = HashSet::<u64, BuildHasherDefault<Folded>>::default();
    seen.insert(fingerprint(&first));
    let mut open: Vec<(World, Path<Move>)> = vec![(first, Path::default())];
    let (mut told, mut violation) = (0, None);
    while let Some((world, path)) = open.pop() {
        let next = panics::quietly(|| catch_unwind(AssertUnwindSafe(|| world.successors())));
        let next = next.unwrap_or_else(|panic| {
            violation = Some((Violation::new("panic", panic), path.in_words()));
            Vec::new()
        });
        for (last, mut successor) in next {
            let broken = world.check(&mut successor);
            let is_new = seen.insert(fingerprint(&successor));
            let way = path.then(last);
            if let Err(broken) = broken {
                violation = Some((broken, way.in_words()));
                break;
            }
            if is_new {
                open.push((successor, way));
            }
        }
        let states = seen.len() as u64;
        if states >= told + TELL_EVERY {
            on_states(states - told);
            told = states;
        }
        if violation.is_some() || states > bounds.states_max {
            return Found { states, finished: false, violation };
        }
    }
    Found { states: seen.len() as u64, finished: true, violation: None }
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
        births: Some(0),
        faults: Some(1),
        waits: Some(0),
        states_max: 1_000_000,
    };

    #[test]
    fn x7_no_interleaving_of_a_few_deadlines_breaks_a_term() {
        for (begin, deadlines) in
            [(Begin::Settled(2), 3), (Begin::Settled(3), 1), (Begin::Rivals, 1)]
        {
            let found = walk((begin, deadlines), &BOUNDS, &|_| {});
            assert_eq!((found.finished, found.violation), (true, None));
            assert!(found.states > 300, "{} states of {begin:?}", found.states);
        }
    }

    /// However what they say overtakes each other: they do not go above each other for ever.
    #[test]
    fn x7_of_two_managers_that_meet_one_stays() {
        let calm = Bounds { crashes: 0, faults: Some(0), ..BOUNDS };
        let mut open = vec![World::rivals(0, &calm)];
        assert_eq!(open[0].managers(), 2);
        let mut ends = 0;
        while let Some(world) = open.pop() {
            let next = world.successors();
            ends += u32::from(next.is_empty());
            assert!(!next.is_empty() || world.managers() == 1, "nobody says any more");
            open.extend(next.into_iter().map(|(_, next)| next));
        }
        assert!(ends > 1, "{ends} ways");
    }

    #[test]
    fn x7_the_walk_meets_successions() {
        // Between two nodes, a suspicion and a conclusion. Among more, a claim needs the answer of
        // a witness (X-9), which has one once its probe of the manager has found none.
        let answered = |mut world: World| loop {
            let next =
                world.successors().into_iter().find(|(what, _)| matches!(what, Move::Deliver(..)));
            let Some((_, next)) = next else { return world };
            world = next;
        };
        let reached = |first: World| {
            let mut open = vec![first];
            while let Some(world) = open.pop() {
                if world.reigns() > 1 {
                    return true;
                }
                for (_, mut next) in world.expiries() {
                    world.check(&mut next).expect("it is kept");
                    open.push(answered(next));
                }
            }
            false
        };
        let begun = |count, deadlines| {
            let settled = World::settled(count, deadlines, &BOUNDS);
            let mut next = settled.successors().into_iter();
            let lost = next.find(|(what, _)| *what == Move::Crash(Rank(0)));
            lost.map(|(_, world)| world).expect("a crash is allowed")
        };
        for (count, deadlines) in [(2, 2), (3, 3), (4, 3)] {
            assert!(!reached(begun(count, 1)), "{count} nodes");
            assert!(reached(begun(count, deadlines)), "{count} nodes");
        }
    }

    #[test]
    fn what_it_cannot_do_it_refuses() {
        assert!(explore(&Bounds { births: Some(1), ..BOUNDS }, &|_| {}).is_empty());
        assert!(explore(&Bounds { steps: Some(1), ..BOUNDS }, &|_| {}).is_empty());
    }

    #[test]
    fn it_gives_up_where_it_is_told() {
        let found = walk((Begin::Settled(3), 2), &Bounds { states_max: 100, ..BOUNDS }, &|_| {});
        assert!(!found.finished && found.states > 100 && found.violation.is_none());
    }

    #[test]
    fn a_name_says_the_size_and_the_bounds() {
        let calm = Bounds { crashes: 1, faults: Some(0), ..BOUNDS };
        assert_eq!(name(Begin::Settled(4), 2, &calm), "n = 4, 2 deadlines, 1 crash");
        let named = name(Begin::Settled(2), 1, &BOUNDS);
        assert_eq!(named, "n = 2, 1 deadline, 2 crashes, 1 message lost, 1 repeated");
    }
}
