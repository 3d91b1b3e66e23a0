//! Every interleaving of a small cluster with faults (X-7), without a clock: any deadline may come
//! before any message, so nothing that is proven here depends on a timeout.
//!
//! ```text
//!   settled ── the next message of any lane arrives, is lost, arrives twice
//!           ── a node crashes
//!           ── the next deadline of any node comes, at which it does more than count and beat
//!           ── a fence is carried out; a node that is ordered to reset restarts with its last term
//!           ── the last heartbeat of any node to any other arrives
//!           ── a manager is ordered to hand over
//!           ── a component ends, and its node's I'm-Alive Task raises the alarm and repeats it
//! ```
//!
//! Lanes are FIFO, as under the shipped transport. Heartbeats arrive as often as a cluster's budget
//! allows, otherwise never, which is the worst case; a fence blocks nothing. The number of
//! deadlines is bounded, and with it the depth, as long as no two nodes answer each other without
//! end.
//!
//! What keeps the number of states small, by name:
//! - *Prefix*: succession begins where the manager has died and all others suspect it and have
//!   asked each other, as one order of events leads there; from there on every order is walked.
//! - *Quiet tasks*: the I'm-Alive Task of a component that runs finds progress and does nothing,
//!   and where no component ends tasks are silent. A clone starts at once.
//! - *Shared lanes*: the two endpoints of a node receive what one other node sends in the order in
//!   which it was sent.
//!
//! Invariants, checked in every state: no term has two managers or a manager other than its
//! claimant; no node's term decreases, not even across its reset; a claim is above all terms that
//! its claimant knew; no node is reset before each running member that its manager knows has
//! fenced it; members that show one number show one view, the numbers of a member rise, and it has
//! fenced what its view does not contain.

mod admission;
mod world;

use std::fmt;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};

use weft_core::ids::Rank;

use self::world::{NetWorld, ScriptBudget};
use crate::explore::path::Path;
use crate::explore::{Bounds, Exploration, Findings, Seen, Unexplored};
use crate::panics;
use crate::protocol::Violation;
use crate::shared::fingerprint;

/// The clusters to explore. Two deadlines make a suspicion and a verdict; with three nodes, the
/// third is that of the witness, or the turn of a candidate.
const CLUSTERS: [(Begin, Budget); 15] = [
    (Begin::Settled(2), Budget { deadlines: 5, ..FAULTY }),
    (Begin::Settled(3), Budget { deadlines: 2, ..FAULTY }),
    (Begin::Settled(3), Budget { deadlines: 3, crashes: 1, starts: 1, ..CALM }),
    (Begin::Settled(3), Budget { deadlines: 2, crashes: 1, beats: 2, ..CALM }),
    (Begin::Settled(4), Budget { deadlines: 1, ..CALM }),
    (Begin::Rivals, Budget { deadlines: 1, ..FAULTY }),
    (Begin::Bereft(3), Budget { deadlines: 3, ..FAULTY }),
    (Begin::Bereft(4), Budget { deadlines: 2, crashes: 1, ..CALM }),
    (Begin::Bereft(4), Budget { deadlines: 2, crashes: 0, ..FAULTY }),
    (Begin::Settled(2), Budget { deadlines: 3, crashes: 1, ends: 1, starts: 1, ..CALM }),
    (Begin::Settled(3), Budget { deadlines: 1, crashes: 1, ends: 1, starts: 1, ..CALM }),
    (Begin::Settled(3), Budget { handovers: 1, crashes: 1, ..FAULTY }),
    (Begin::Settled(3), Budget { handovers: 1, deadlines: 2, crashes: 1, ..CALM }),
    (Begin::Settled(3), Budget { handovers: 2, crashes: 0, ..CALM }),
    (Begin::Settled(2), Budget { handovers: 2, deadlines: 2, crashes: 1, ..FAULTY }),
];

/// Those with a recovery script: an error, and the manager fails at any point; an error, and a
/// message that is lost or repeated; a reload while an error is answered, and the manager fails;
/// and one between two errors.
const SCRIPTED: [(Begin, Budget); 4] = [
    (
        Begin::Scripted(2, ScriptBudget { errors: 1, ticks: 3, loads: 0 }),
        Budget { deadlines: 3, crashes: 1, starts: 1, ..CALM },
    ),
    (
        Begin::Scripted(3, ScriptBudget { errors: 1, ticks: 3, loads: 0 }),
        Budget { crashes: 0, ..FAULTY },
    ),
    (
        Begin::Scripted(2, ScriptBudget { errors: 1, ticks: 2, loads: 1 }),
        Budget { deadlines: 3, crashes: 1, ..CALM },
    ),
    (
        Begin::Scripted(2, ScriptBudget { errors: 2, ticks: 4, loads: 1 }),
        Budget { crashes: 0, ..CALM },
    ),
];

/// Lanes neither lose nor duplicate, where such faults would lead to too many states.
const CALM: Budget = Budget {
    deadlines: 0,
    crashes: u32::MAX,
    losses: 0,
    repeats: 0,
    beats: 0,
    starts: 0,
    ends: 0,
    handovers: 0,
};
const FAULTY: Budget = Budget { losses: 1, repeats: 1, ..CALM };

/// Asked for, and too many states for every run.
pub(crate) fn left_out() -> Vec<Unexplored> {
    let left_out = [
        (
            "n = 4, the manager dead, 2 deadlines, 1 crash, 1 message lost, 1 repeated",
            "the crash without the faults, the faults without the crash, and three nodes with both",
        ),
        (
            "n = 3, 3 deadlines, 1 crash, 1 component ended",
            "one deadline, three among two nodes, and the swarm",
        ),
        (
            "admission, n = 3, 1 isolation, 1 release",
            "the isolation alone, both among two nodes, and the swarm",
        ),
    ];
    let why = |instead: &str| format!("too many states for every run; in its place: {instead}");
    left_out.map(|(name, instead)| Unexplored { name: name.to_owned(), why: why(instead) }).into()
}

/// How many events of each kind may happen on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Budget {
    deadlines: u32,
    crashes: u32,
    losses: u32,
    repeats: u32,
    /// Heartbeats that arrive.
    beats: u32,
    /// Resets that are carried out.
    starts: u32,
    /// Components that end while their node, with its I'm-Alive Task, runs on.
    ends: u32,
    /// Orders of an operator to a manager to hand over.
    handovers: u32,
}

impl Budget {
    /// Limits the budget to `bounds`; `waits` adds deadlines.
    fn within(self, bounds: &Bounds) -> Self {
        let faults = |own: u32| if own > 0 { bounds.faults.unwrap_or(own) } else { 0 };
        Self {
            deadlines: self.deadlines + bounds.waits.unwrap_or(0),
            crashes: self.crashes.min(bounds.crashes),
            losses: faults(self.losses),
            repeats: faults(self.repeats),
            starts: self.starts.min(bounds.starts.unwrap_or(u32::MAX)),
            ..self
        }
    }
}

/// The initial state of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    /// That many nodes, all of which follow one of them.
    Settled(u16),
    /// That many nodes, whose manager has died: all others suspect it.
    Bereft(u16),
    /// Two managers, each of which has removed an earlier incarnation of the other.
    Rivals,
    /// That many nodes with a recovery script.
    Scripted(u16, ScriptBudget),
}

impl Begin {
    fn world(self, budget: Budget) -> NetWorld {
        match self {
            Self::Settled(count) => NetWorld::settled(count, budget),
            Self::Bereft(count) => NetWorld::bereft(count, budget),
            Self::Rivals => NetWorld::rivals(budget),
            Self::Scripted(count, scripts) => NetWorld::scripted(count, budget, scripts),
        }
    }
}

/// A state of a walk.
trait WalkState: Clone + Hash {
    /// An event that leads to the next state.
    type Move: fmt::Display;

    /// Every event that may happen next, and the state that it leads to.
    fn successors(&self) -> Vec<(Self::Move, Self)>;

    /// Checks the invariants on the step from here to `next`, and records there what it adds.
    fn check(&self, next: &mut Self) -> Result<(), Violation>;
}

/// How many states there are between two progress reports.
const TELL_EVERY: u64 = 1024;

/// An event on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NetMove {
    Deliver(Lane, &'static str),
    Lose(Lane, &'static str),
    Repeat(Lane, &'static str),
    Crash(Rank),
    End(Rank),
    Alarm(Rank),
    Expire(Rank),
    /// The node that fences, and the node that is fenced.
    Fence(Rank, Rank),
    Reset(Rank),
    Beat(Lane),
    /// An operator has the first node, which manages, hand over to the second.
    HandOver(Rank, Rank),
    /// A task of the node reports an error.
    Error(Rank),
    /// The next deadline of the node's script member.
    Tick(Rank),
    /// A script arrives at the node.
    Carry(Rank),
    /// The node, which manages, is handed another script.
    Load(Rank),
}

/// Sender and receiver.
type Lane = (Rank, Rank);

impl fmt::Display for NetMove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deliver((from, to), what) => write!(f, "{to} hears {what} of {from}"),
            Self::Lose((from, to), what) => write!(f, "{what} of {from} to {to} is lost"),
            Self::Repeat((from, to), what) => write!(f, "{what} of {from} to {to} is doubled"),
            Self::Crash(node) => write!(f, "{node} crashes"),
            Self::End(node) => write!(f, "the component of {node} ends"),
            Self::Alarm(node) => write!(f, "the task of {node} repeats its alarm"),
            Self::Expire(node) => write!(f, "the next deadline of {node} comes"),
            Self::Fence(at, node) => write!(f, "{at} fences {node}"),
            Self::Reset(node) => write!(f, "{node} is reset"),
            Self::Beat((from, to)) => write!(f, "{to} hears the heartbeat of {from}"),
            Self::HandOver(node, to) => write!(f, "{node} hands over to {to}"),
            Self::Error(node) => write!(f, "the task of {node} reports an error"),
            Self::Tick(node) => write!(f, "the next deadline of the script at {node} comes"),
            Self::Carry(node) => write!(f, "{node} holds another script"),
            Self::Load(node) => write!(f, "{node} is handed another script"),
        }
    }
}

/// Explores [`CLUSTERS`] and the admissions of small clusters, by name, within `bounds`: at most
/// that many crashes, faults of lanes and resets, and `waits` additional deadlines. A component
/// runs when it is called and takes no steps of its own; for bounds that require steps there is
/// nothing to explore. `on_states` is called from time to time with the number of new states.
pub(crate) fn explore(bounds: &Bounds, on_states: &(dyn Fn(u64) + Sync)) -> Findings {
    if !is_within(&CLUSTERS, bounds) {
        return Findings::new();
    }
    let mut findings = explore_all(admission::clusters(bounds), bounds, on_states);
    if findings.iter().all(|(_, found)| found.violation.is_none()) {
        findings.extend(explore_all(clusters(&CLUSTERS, bounds), bounds, on_states));
    }
    findings
}

/// Explores [`SCRIPTED`] in the same way.
pub(crate) fn explore_scripts(bounds: &Bounds, on_states: &(dyn Fn(u64) + Sync)) -> Findings {
    if !is_within(&SCRIPTED, bounds) {
        return Findings::new();
    }
    explore_all(clusters(&SCRIPTED, bounds), bounds, on_states)
}

/// Whether any of the clusters has what `bounds` ask for.
fn is_within(clusters: &[(Begin, Budget)], bounds: &Bounds) -> bool {
    let most = clusters.iter().map(|(_, budget)| budget.starts).max();
    bounds.starts <= most && bounds.steps.is_none()
}

/// The clusters within `bounds`, by name.
fn clusters(all: &[(Begin, Budget)], bounds: &Bounds) -> impl Iterator<Item = (String, NetWorld)> {
    let all = all.iter().map(|(begin, budget)| (*begin, budget.within(bounds)));
    all.map(|(begin, budget)| (name(begin, budget), begin.world(budget)))
}

/// Explores one after the other, until a promise is broken.
fn explore_all<S: WalkState>(
    clusters: impl Iterator<Item = (String, S)>,
    bounds: &Bounds,
    on_states: &(dyn Fn(u64) + Sync),
) -> Findings {
    let mut findings = Findings::new();
    for (name, first) in clusters {
        let found = walk(first, bounds.states_max, on_states);
        let broken = found.violation.is_some();
        findings.push((name, found));
        if broken {
            break;
        }
    }
    findings
}

/// The name of a cluster: its initial state and all events that may happen.
fn name(begin: Begin, budget: Budget) -> String {
    let mut name = match begin {
        Begin::Settled(count) => format!("n = {count}"),
        Begin::Bereft(count) => format!("n = {count}, the manager dead"),
        Begin::Rivals => "2 managers".to_owned(),
        Begin::Scripted(count, ScriptBudget { errors, ticks, loads }) => {
            let mut name = format!("n = {count}");
            name += &counted(errors, "error", "errors");
            name += &counted(ticks, "tick", "ticks");
            name + &counted(loads, "reload", "reloads")
        }
    };
    name += &counted(budget.deadlines, "deadline", "deadlines");
    name += &counted(budget.crashes, "crash", "crashes");
    name += &counted(budget.losses, "message lost", "messages lost");
    name += &counted(budget.repeats, "repeated", "repeated");
    name += &counted(budget.beats, "heartbeat", "heartbeats");
    name += &counted(budget.starts, "reset", "resets");
    name += &counted(budget.ends, "component ended", "components ended");
    name += &counted(budget.handovers, "handover", "handovers");
    name
}

/// So many events of one kind, for a name.
fn counted(number: u32, one: &str, many: &str) -> String {
    match number {
        0 => String::new(),
        1 => format!(", 1 {one}"),
        _ => format!(", {number} {many}"),
    }
}

/// Explores one cluster.
fn walk<S: WalkState>(first: S, states_max: u64, on_states: &dyn Fn(u64)) -> Exploration {
    let mut seen = Seen::default();
    seen.insert(fingerprint(&first));
    let mut open: Vec<(S, Path<S::Move>)> = vec![(first, Path::default())];
    let (mut reported, mut violation) = (0, None);
    while let Some((world, path)) = open.pop() {
        let next = panics::quietly(|| catch_unwind(AssertUnwindSafe(|| world.successors())));
        let next = next.unwrap_or_else(|panic| {
            violation = Some((Violation::new("panic", panic), path.in_words()));
            Vec::new()
        });
        for (last, mut successor) in next {
            let broken = world.check(&mut successor);
            let is_new = seen.insert(fingerprint(&successor));
            if let Err(broken) = broken {
                violation = Some((broken, path.then(last).in_words()));
                break;
            }
            if is_new {
                open.push((successor, path.then(last)));
            }
        }
        let states = seen.len() as u64;
        if states >= reported + TELL_EVERY {
            on_states(states - reported);
            reported = states;
        }
        if violation.is_some() || states > states_max {
            return Exploration { states, finished: false, violation };
        }
    }
    Exploration { states: seen.len() as u64, finished: true, violation: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        steps: None,
        crashes: 2,
        starts: None,
        faults: Some(1),
        waits: Some(0),
        states_max: 1_000_000,
    };

    fn budget(deadlines: u32) -> Budget {
        Budget { deadlines, ..FAULTY }.within(&BOUNDS)
    }

    #[test]
    fn x7_no_interleaving_of_a_few_deadlines_breaks_a_term() {
        for (begin, deadlines) in [
            (Begin::Settled(2), 3),
            (Begin::Settled(3), 1),
            (Begin::Rivals, 1),
            (Begin::Bereft(3), 2),
        ] {
            let found = walk(begin.world(budget(deadlines)), BOUNDS.states_max, &|_| {});
            assert_eq!((found.finished, found.violation), (true, None));
            assert!(found.states > 300, "{} states of {begin:?}", found.states);
        }
    }

    /// Without the failures of managers, which are too many states for a test.
    #[test]
    fn rl3_no_interleaving_answers_an_error_twice_or_never() {
        for (begin, budget) in SCRIPTED.into_iter().filter(|(_, budget)| budget.crashes == 0) {
            let found = walk(begin.world(budget.within(&BOUNDS)), BOUNDS.states_max, &|_| {});
            assert_eq!((found.finished, found.violation), (true, None));
            assert!(found.states > 300, "{} states of {begin:?}", found.states);
        }
    }

    /// A node is removed, fenced by both others, reset, and restarts.
    #[test]
    fn x7_the_walk_meets_resets() {
        let mut world = NetWorld::settled(3, Budget { deadlines: 9, starts: 1, ..CALM });
        let act = |world: &mut NetWorld, wanted: fn(&NetMove) -> bool| {
            let next = world.successors().into_iter().find(|(what, _)| wanted(what));
            let Some((_, mut next)) = next else { return false };
            world.check(&mut next).expect("it is kept");
            *world = next;
            true
        };
        assert!(act(&mut world, |what| *what == NetMove::Crash(Rank(2))));
        let is_idle = |what: &NetMove| matches!(what, NetMove::Deliver(..) | NetMove::Fence(..));
        // The manager and its witness take turns: a suspicion, a testimony, a verdict.
        for turn in 0..9 {
            while act(&mut world, is_idle) {}
            if act(&mut world, |what| *what == NetMove::Reset(Rank(2))) {
                return;
            }
            match turn % 2 {
                0 => act(&mut world, |what| *what == NetMove::Expire(Rank(0))),
                _ => act(&mut world, |what| *what == NetMove::Expire(Rank(1))),
            };
        }
        panic!("no reset");
    }

    /// A component ends, its task raises the alarm, the manager orders a clone, and that asks who
    /// the manager is.
    #[test]
    fn x7_the_walk_meets_clones() {
        let mut world = NetWorld::settled(3, Budget { deadlines: 9, ends: 1, ..CALM });
        let wanted: [fn(&NetMove) -> bool; 3] = [
            |what| matches!(what, NetMove::Deliver(..)),
            |what| *what == NetMove::End(Rank(2)),
            |what| *what == NetMove::Expire(Rank(0)),
        ];
        for _ in 0..60 {
            let mut next = world.successors();
            if next.iter().any(|(what, _)| matches!(what, NetMove::Deliver((Rank(2), _), "WITM"))) {
                return;
            }
            let found = wanted.iter().find_map(|is| next.iter().position(|(what, _)| is(what)));
            let (_, mut then) = next.swap_remove(found.expect("it goes on"));
            world.check(&mut then).expect("it is kept");
            world = then;
        }
        panic!("no clone");
    }

    /// In whatever order their messages overtake each other, they do not claim higher terms
    /// forever.
    #[test]
    fn x7_of_two_managers_that_meet_one_stays() {
        let mut open = vec![NetWorld::rivals(Budget { crashes: 0, ..CALM })];
        assert_eq!(open[0].managers(), 2);
        let mut ends = 0;
        while let Some(world) = open.pop() {
            let next = world.successors();
            ends += u32::from(next.is_empty());
            assert!(!next.is_empty() || world.managers() == 1, "no frame is in flight");
            open.extend(next.into_iter().map(|(_, next)| next));
        }
        assert!(ends > 1, "{ends} ways");
    }

    #[test]
    fn x7_the_walk_meets_successions() {
        // Between two nodes, a suspicion and a conclusion. Among more, a claim needs the answer of
        // a witness (X-9), which it gives once its probe of the manager has found none.
        let answered = |mut world: NetWorld| loop {
            let next = world
                .successors()
                .into_iter()
                .find(|(what, _)| matches!(what, NetMove::Deliver(..)));
            let Some((_, next)) = next else { return world };
            world = next;
        };
        let reached = |first: NetWorld| {
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
            let settled = NetWorld::settled(count, budget(deadlines));
            let mut next = settled.successors().into_iter();
            let lost = next.find(|(what, _)| *what == NetMove::Crash(Rank(0)));
            lost.map(|(_, world)| world).expect("a crash is allowed")
        };
        for (count, deadlines) in [(2, 2), (3, 3), (4, 3)] {
            assert!(!reached(begun(count, 1)), "{count} nodes");
            assert!(reached(begun(count, deadlines)), "{count} nodes");
        }
    }

    /// In whatever order, the manager hands over to one after the other.
    #[test]
    fn x17_the_walk_meets_handovers() {
        let mut open = vec![NetWorld::settled(2, Budget { handovers: 2, crashes: 0, ..CALM })];
        let mut seen = Seen::default();
        let (mut most, mut ends) = (0, 0);
        while let Some(world) = open.pop() {
            most = most.max(world.reigns());
            let next = world.successors();
            ends += u32::from(next.is_empty());
            assert!(!next.is_empty() || world.managers() == 1, "no frame is in flight");
            for (_, mut next) in next {
                world.check(&mut next).expect("it is kept");
                if seen.insert(fingerprint(&next)) {
                    open.push(next);
                }
            }
        }
        assert!(most == 3 && ends > 1, "{most} terms, {ends} ways");
    }

    #[test]
    fn what_it_cannot_do_it_refuses() {
        assert!(explore(&Bounds { starts: Some(2), ..BOUNDS }, &|_| {}).is_empty());
        assert!(explore(&Bounds { steps: Some(1), ..BOUNDS }, &|_| {}).is_empty());
    }

    #[test]
    fn it_gives_up_at_its_limit() {
        let found = walk(NetWorld::settled(3, budget(2)), 100, &|_| {});
        assert!(!found.finished && found.states > 100 && found.violation.is_none());
    }

    #[test]
    fn a_name_says_the_size_and_the_bounds() {
        let calm = Budget { deadlines: 2, crashes: 1, beats: 2, starts: 1, ..CALM };
        assert_eq!(
            name(Begin::Settled(4), calm),
            "n = 4, 2 deadlines, 1 crash, 2 heartbeats, 1 reset"
        );
        let named = name(Begin::Settled(2), budget(1));
        assert_eq!(named, "n = 2, 1 deadline, 2 crashes, 1 message lost, 1 repeated");
    }
}
