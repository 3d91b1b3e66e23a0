//! Exhaustive exploration of a small configuration: depth-first, each state once.
//!
//! ```text
//!   state ── step of a peer, or its crash at each of its operations ──▶ state
//!         ── work lands, completes, is torn, loses its pair; a message arrives, or does not
//!         ── a dead incarnation is fenced; the next one begins; two join;
//!            time passes to a deadline
//! ```
//!
//! The same machines, world and ledger as in a run, without a clock: every order of all moves is
//! explored. States are distinguished by a 64-bit hash of everything that determines later moves.
//! [`Bounds`] lists the bounds; in a state without a move within them, all pending work completes
//! in fairness, and the protocol's goal must be reached.
//!
//! Partial-order and symmetry reductions, and why they lose no violation:
//! - a work's landing and its completion are one move: the poster may take its next step at any
//!   later time;
//! - a round that changes nothing is not a move (its crash is one);
//! - deaths that differ in regions that the next incarnation overwrites unread
//!   ([`Protocol::forgotten`]) are the same: no peer reads the memory of a dead one;
//! - peers that do not communicate ([`Protocol::talk`], which the protocol guarantees) are neither
//!   fenced nor joined;
//! - a write that asks for no completion, is the last of its pair and goes where no other peer can
//!   read affects its target's moves only, so it lands right before one of them. If its poster dies
//!   first, it lands late, before its target fences the poster;
//! - a write that [overtakes](weft_core::fabric::CompletionFlags::APART) reads or atomics completes
//!   behind them, so if no other peer can read its place it, too, affects its target's moves only,
//!   and lands right before one of them: had they landed first, it would follow in its turn;
//! - peers that are [alike](Small::alike) are renamed in the order in which work first lands in
//!   them, a peer that dies before that last; every path then becomes one that is explored. The
//!   order in which their rounds post shows only in the death of the poster, and then only in reads
//!   whose results are unused;
//! - reads that a dead poster left under way change nothing at any time, and its writes to a target
//!   that has fenced it bounce;
//! - such a write that only its target can see lands right before a move of the target, or before
//!   the target fences the dead poster;
//! - a fence that does nothing else ([`Fencing::FencesOnly`](super::protocol::Fencing)) changes the
//!   gate of its peer and ends that peer's work for the dead one. Only moves of that peer and late
//!   work of the dead one depend on it, and it changes no node and no memory. So on every path the
//!   fence can be delayed until right before the peer's next move, past the moves of all others,
//!   and left out if there is none; nodes and history pass through the same values. Late work that
//!   would have bounced in between has not landed then, either. So one order of the survivors'
//!   fences remains, and only fences that a next round can observe;
//! - a read of what [stands](Protocol::stands) permanently, and its handling, once no peer may fail
//!   any more and no time passes, comes before all other moves. Later it would return the same,
//!   since its target is alive and what is shown there stays. No move of the others depends on it:
//!   a round that handles it posts reads, shows nothing that others read, and its records are
//!   judged the same after theirs. Moves of the reader in between have the same result, which the
//!   protocol guarantees: it counts votes in sets. What the reader asks for next stands as well and
//!   is read at once. So on every path the first such read may be moved to the front with the same
//!   end; a path is as long as its posted work, so no cycle postpones a move forever. While a peer
//!   may still die, both orders are possible, and all are explored.
//!
//! [`Pace::AtOnce`](super::protocol::Pace) is a bound, and a configuration's name says so: the
//! completion of each work is handled before any other move.
//!
//! Not explored: work that lands in the middle of a round, which is one move and ends early only by
//! a crash, but for what the round itself posts to a fabric that answers at once. Runs of seeds do
//! that.

pub(super) mod path;
mod state;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use foldhash::fast::FixedState;
use weft_core::ids::Peer;

use super::panics;
use super::protocol::{Protocol, Small, Violation};
use super::world::Choice;
use path::Path;
use state::ExploredState;

/// Configurations that are explored at the same time; each needs gigabytes of memory.
const THREADS: usize = 2;
/// States between two reports of their number.
const REPORT_EVERY: u64 = 1024;

/// The bounds of each path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Rounds of each peer's loop that change something; `None` for the configuration's number.
    pub steps: Option<u32>,
    /// Crashes, at any operation; fewer where a configuration says so.
    pub crashes: u32,
    /// Restarts while others go on; without any, dead peers stay dead until the end. `None` for the
    /// configuration's number.
    pub starts: Option<u32>,
    /// Torn work, lost pairs, lost and repeated messages; as above.
    pub faults: Option<u32>,
    /// How often time may pass to the next deadline; `None` for the configuration's number.
    pub waits: Option<u32>,
    /// States of one configuration after which the explorer gives up.
    pub states_max: u64,
}

/// A move on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// A round of the loop.
    Step(Peer),
    /// A round of the loop in which the process dies after that many operations.
    Crash(Peer, u32),
    /// A move of the fabric, or a fault of it.
    Fabric(Choice),
    /// The first fences the dead incarnation of the second.
    Fence(Peer, Peer),
    /// A pair is lost, and its target is restarted for it, not its poster.
    Loss(Choice, Peer),
    /// A round of the loop in which the post with this number is refused.
    Refuse(Peer, u32),
    /// The peer is removed: the others fence it, and it ends.
    Remove(Peer),
    /// The next incarnation of a dead peer begins.
    Birth(Peer),
    /// The two admit each other.
    Join(Peer, Peer),
    /// Time passes to the next deadline.
    Wait,
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(peer) => write!(f, "{peer} takes a step"),
            Self::Crash(peer, after) => write!(f, "{peer} dies after {after} operations"),
            Self::Fabric(choice) => write!(f, "{choice:?}"),
            Self::Loss(choice, peer) => write!(f, "{choice:?}, and {peer} is restarted"),
            Self::Refuse(peer, post) => {
                write!(f, "{peer} takes a step, and its post {post} is refused")
            }
            Self::Remove(peer) => write!(f, "{peer} is removed"),
            Self::Fence(by, peer) => write!(f, "{by} fences {peer}"),
            Self::Birth(peer) => write!(f, "{peer} is started again"),
            Self::Join(one, other) => write!(f, "{one} and {other} take each other up"),
            Self::Wait => f.write_str("time passes to the next deadline"),
        }
    }
}

/// What the explorer saw.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// Different states.
    pub states: u64,
    /// Whether there was nothing left to see within the bounds.
    pub finished: bool,
    /// The broken promise, and the path to it, a line for each move.
    pub violation: Option<(Violation, Vec<String>)>,
}

/// What was seen of each configuration, by name.
pub type Findings = Vec<(String, Exploration)>;

/// A configuration that is asked for and not explored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexplored {
    /// What people would call it.
    pub name: String,
    /// Why not, and what is explored in its place.
    pub why: String,
}

/// Fingerprints.
pub(crate) type Seen = HashSet<u64, FixedState>;

/// Explores every small configuration of `P` within `bounds`, on two threads where there are so
/// many; by name. None is begun once a promise is broken. `on_states` is called now and then with
/// how many more states were seen.
pub fn explore<P: Protocol>(bounds: &Bounds, on_states: &(dyn Fn(u64) + Sync)) -> Findings {
    let count = P::small().len();
    let (next, broken) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        let mut done = Vec::new();
        loop {
            if broken.load(Ordering::Relaxed) {
                return done;
            }
            let index = next.fetch_add(1, Ordering::Relaxed);
            // States share what they do not change within one thread, so each makes its own.
            let Some(small) = P::small().into_iter().nth(index) else { return done };
            let name = name(&small, bounds);
            let first = ExploredState::small(small, bounds);
            let found = walk_from(first, bounds, on_states, &mut |_| ());
            tracing::info!(name, states = found.states, finished = found.finished, "explored");
            broken.fetch_or(found.violation.is_some(), Ordering::Relaxed);
            done.push((index, name, found));
        }
    };
    let mut done = thread::scope(|scope| {
        let threads = THREADS.min(count);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.flat_map(|done| done.unwrap_or_else(|panic| resume_unwind(panic))).collect::<Vec<_>>()
    });
    done.sort_by_key(|(index, ..)| *index);
    done.into_iter().map(|(_, name, found)| (name, found)).collect()
}

/// What a configuration is called, and how much may happen in it.
fn name<P>(small: &Small<P>, bounds: &Bounds) -> String {
    let counted = |number, one: &str, many: &str| match number {
        0 => String::new(),
        1 => format!(", {one}"),
        _ => format!(", {number} {many}"),
    };
    let mut name = small.name.clone();
    let steps = bounds.steps.map(|steps| vec![steps; small.orders.len()]);
    if let Some(steps) = steps.or_else(|| small.steps.clone()) {
        let steps: Vec<_> = steps.iter().map(u32::to_string).collect();
        name += &format!(", rounds {}", steps.join("/"));
    }
    name += &counted(bounds.crashes.min(small.crashes), "a crash", "crashes");
    name += &counted(bounds.starts.unwrap_or(small.starts), "a start", "starts");
    name += &counted(bounds.faults.unwrap_or(small.faults), "a mishap", "mishaps");
    name += &counted(small.refusals, "a full queue", "full queues");
    name += &counted(small.removable.count(), "a removal", "removals");
    name += &counted(bounds.waits.unwrap_or(small.waits), "a wait", "waits");
    name
}

/// Explores `small` as [`explore`] does, and with reads of what stands handled at any time.
#[cfg(feature = "mutants")]
pub(super) fn walk_twice<P: Protocol>(small: &Small<P>, bounds: &Bounds) -> [Exploration; 2] {
    let first = || ExploredState::small(small.clone(), bounds);
    [first(), first().read_at_will()].map(|first| walk_from(first, bounds, &|_| (), &mut |_| ()))
}

/// Explores what follows from `first`; `look` is shown every state.
fn walk_from<P: Protocol>(
    mut first: ExploredState<P>,
    bounds: &Bounds,
    on_states: &dyn Fn(u64),
    look: &mut dyn FnMut(&ExploredState<P>),
) -> Exploration {
    let (mut seen, mut idle, mut settled) = (Seen::default(), Seen::default(), Seen::default());
    seen.insert(first.fingerprint());
    let mut found = Exploration { states: 1, finished: false, violation: None };
    if let Some(violation) = first.violation.take() {
        found.violation = Some((violation, Vec::new()));
        return found;
    }
    let mut reported = 0;
    let mut open: Vec<(ExploredState<P>, Path<Move>)> = vec![(first, Path::default())];
    while let Some((state, path)) = open.pop() {
        look(&state);
        let next =
            panics::quietly(|| catch_unwind(AssertUnwindSafe(|| state.successors(&mut idle))));
        let next = next.unwrap_or_else(|panic| {
            found.violation = Some((Violation::new("panic", panic), path.in_words()));
            Vec::new()
        });
        if found.violation.is_some() {
            return found;
        }
        let mut is_end = true;
        for (last, mut successor) in next {
            is_end = false;
            if !seen.insert(successor.fingerprint()) && successor.violation.is_none() {
                continue;
            }
            let way = path.then(last);
            if let Some(violation) = successor.violation.take() {
                found.violation = Some((violation, way.in_words()));
                return found;
            }
            open.push((successor, way));
        }
        if is_end && let Err(violation) = state.settle(&mut settled) {
            found.violation = Some((violation, path.in_words()));
            return found;
        }
        found.states = seen.len() as u64;
        if found.states >= reported + REPORT_EVERY {
            on_states(found.states - reported);
            reported = found.states;
        }
        if found.states > bounds.states_max {
            return found;
        }
    }
    found.finished = true;
    found
}
