//! Everything that can happen in a small configuration: depth-first, each state once.
//!
//! ```text
//!   state ── step of a peer, or its crash at each of its operations ──▶ state
//!         ── work lands, completes, is torn, loses its pair; a message arrives, or does not
//!         ── a dead life is fenced; the next one begins; two join; time passes to a deadline
//! ```
//!
//! The same machines, world and ledger as in a run, without a clock: every order of everything
//! is tried. States are told apart by a 64-bit hash of all that decides what may happen next.
//! What is bounded is said in [`Bounds`]; where nothing more may happen within them, everything
//! is let go on in fairness, and the protocol's goal must be reached.
//!
//! What is not told apart, and why nothing is lost by it:
//! - a work's landing and its completion: the poster may take its next step at any later time;
//! - a round that changes nothing, which is no move (its crash is one);
//! - deaths that differ in regions that the next life overwrites unread
//!   ([`Protocol::forgotten`]): nobody reaches the memory of a dead peer;
//! - fences and joins between peers that have nothing to do with each other
//!   ([`Protocol::talk`]), which the protocol vouches for.
//!
//! What is not tried: work that lands in the middle of a round, which is one move and ends early
//! only by a crash. Runs of seeds do that.

pub(super) mod shared;
mod state;

use std::collections::HashSet;
use std::fmt;
use std::hash::BuildHasherDefault;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use weft_core::ids::Peer;

use super::fold::Folded;
use super::panics;
use super::protocol::{Protocol, Violation};
use super::world::Choice;
use state::State;

/// How much may happen on each path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Rounds of each peer's loop that do something; what the protocol's configuration says
    /// when nothing is given.
    pub steps: Option<u32>,
    /// Crashes, at any operation.
    pub crashes: u32,
    /// Later lives that begin while others go on; without any, the dead stay dead until the end.
    pub births: u32,
    /// Torn work, lost pairs, lost and repeated messages.
    pub faults: u32,
    /// How often time may pass to the next deadline.
    pub waits: u32,
    /// States after which the explorer gives up.
    pub states_max: u64,
}

/// Something that happens on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// A round of the loop.
    Step(Peer),
    /// A round of the loop that ends with the process, after so many operations.
    Crash(Peer, u32),
    /// The fabric goes on, or goes wrong.
    Fabric(Choice),
    /// The first shuts the dead life of the second out.
    Fence(Peer, Peer),
    /// The next life of a dead peer begins.
    Birth(Peer),
    /// The two take each other up.
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
            Self::Fence(by, peer) => write!(f, "{by} fences {peer}"),
            Self::Birth(peer) => write!(f, "{peer} is born again"),
            Self::Join(one, other) => write!(f, "{one} and {other} take each other up"),
            Self::Wait => f.write_str("time passes to the next deadline"),
        }
    }
}

/// What the explorer saw.
#[derive(Clone, Debug)]
pub struct Found {
    /// Different states.
    pub states: u64,
    /// Whether there was nothing left to see within the bounds.
    pub finished: bool,
    /// The broken promise, and the path to it, a line for each move.
    pub violation: Option<(Violation, Vec<String>)>,
}

/// Fingerprints.
type Seen = HashSet<u64, BuildHasherDefault<Folded>>;

/// The way to a state, last move first.
type Path = Option<Rc<Way>>;

struct Way {
    last: Move,
    before: Path,
}

fn moves_of(mut path: &Path) -> Vec<String> {
    let mut moves = Vec::new();
    while let Some(way) = path {
        moves.push(way.last.to_string());
        path = &way.before;
    }
    moves.reverse();
    moves
}

/// Explores the small configuration of `P` within `bounds`, as far as it has one. `on_state` is
/// called now and then with the number of states so far.
pub fn explore<P: Protocol>(bounds: &Bounds, on_state: &dyn Fn(u64)) -> Option<Found> {
    let mut first = State::<P>::small(bounds)?;
    let (mut seen, mut idle, mut settled) = (Seen::default(), Seen::default(), Seen::default());
    seen.insert(first.fingerprint());
    let mut found = Found { states: 1, finished: false, violation: None };
    if let Some(violation) = first.violation.take() {
        found.violation = Some((violation, Vec::new()));
        return Some(found);
    }
    let mut open: Vec<(State<P>, Path)> = vec![(first, None)];
    while let Some((state, path)) = open.pop() {
        let next =
            panics::quietly(|| catch_unwind(AssertUnwindSafe(|| state.successors(&mut idle))));
        let next = next.unwrap_or_else(|panic| {
            found.violation = Some((Violation::new("panic", panic), moves_of(&path)));
            Vec::new()
        });
        if found.violation.is_some() {
            return Some(found);
        }
        let mut is_end = true;
        for (last, mut successor) in next {
            is_end = false;
            if !seen.insert(successor.fingerprint()) && successor.violation.is_none() {
                continue;
            }
            let way = Some(Rc::new(Way { last, before: path.clone() }));
            if let Some(violation) = successor.violation.take() {
                found.violation = Some((violation, moves_of(&way)));
                return Some(found);
            }
            open.push((successor, way));
        }
        if is_end && let Err(violation) = state.settle(&mut settled) {
            found.violation = Some((violation, moves_of(&path)));
            return Some(found);
        }
        found.states = seen.len() as u64;
        if found.states.is_multiple_of(1024) {
            on_state(found.states);
        }
        if found.states > bounds.states_max {
            return Some(found);
        }
    }
    found.finished = true;
    Some(found)
}
