//! From the decision that a node is removed to the event, the watcher and the mask.
//!
//! ```text
//!   one node is killed ─▶ decision ─▶ event, watcher     its process has ended before, and so its
//!   another is isolated ─▶ decision ─▶ mask              bit would be gone before the decision
//! ```

use std::time::Duration;

use super::program::ProgramLine;
use super::{MemberScript, PATIENCE, Programs, VerdictSpans};
use crate::detect::processes;
use crate::error::BenchError;
use weft::client::{Kind, Watcher};
use weft::clock::{Deadline, now_ns};
use weft::node::control::NodeOrder;
use weft::process::start_thread;
use weft::shm::{Mask, Wait};

const NODES: usize = 4;

/// Kills so many nodes, one after the other.
pub(super) fn run(faults: u32, on_part: &mut impl FnMut()) -> Result<VerdictSpans, BenchError> {
    let mut spans = VerdictSpans::default();
    for _ in 0..faults {
        let mut programs =
            Programs::start(NODES, Wait::default(), MemberScript::Events, Duration::ZERO)?;
        let mut joined = [None; NODES];
        while joined.contains(&None) {
            if let (rank, ProgramLine::Joined { at_ns }) = programs.next()? {
                joined[usize::from(rank)].get_or_insert(at_ns);
            }
        }
        let last_ns = joined.into_iter().flatten().max().unwrap_or_default();
        spans.join.push(last_ns - programs.began_ns, 1);
        strike(&mut programs, &mut spans)?;
        isolate(&programs, &mut spans)?;
        programs.stop()?;
        on_part();
    }
    Ok(spans)
}

fn strike(programs: &mut Programs, spans: &mut VerdictSpans) -> Result<(), BenchError> {
    let manager = processes::await_well(&programs.launched, PATIENCE)?;
    // A watcher begins at node 0: it is measured at a node that stays.
    let mut others = (1..NODES as u16).filter(|rank| *rank != manager);
    let (victim, observer) = others.next().zip(others.next()).ok_or_else(stuck)?;
    let name = programs.launched.cluster().name.clone();
    let mut watcher = Watcher::start(&name, PATIENCE)?;
    let watching = start_thread("weft-bench-watch", move || {
        let deadline = Deadline::after(PATIENCE);
        while let Ok(Some(event)) = watcher.next(deadline.remaining()) {
            let at_ns = now_ns();
            if event.event == Kind::Removed && event.rank == Some(victim) {
                return Some(at_ns);
            }
        }
        None
    })?;
    let began_ns = now_ns();
    programs.launched.connect(victim, PATIENCE)?.kill_node()?;
    let event_ns = loop {
        match programs.next()? {
            (rank, ProgramLine::Removed { rank: removed, at_ns })
                if (rank, removed) == (observer, victim) && at_ns > began_ns =>
            {
                break at_ns;
            }
            _ => {}
        }
    };
    let watch_ns = watching.join().ok().flatten().ok_or_else(stuck)?;
    let decided_ns = decided_ns(programs, began_ns, victim, &[event_ns, watch_ns])?;
    spans.event.push(event_ns - decided_ns, 1);
    spans.watch.push(watch_ns - decided_ns, 1);
    Ok(())
}

/// Has the manager isolate a node, and looks at the page of another one.
fn isolate(programs: &Programs, spans: &mut VerdictSpans) -> Result<(), BenchError> {
    let manager = processes::await_well(&programs.launched, PATIENCE)?;
    let mut others = (0..NODES as u16).filter(|rank| *rank != manager);
    let (victim, observer) = others.next().zip(others.next()).ok_or_else(stuck)?;
    let mask = programs.launched.connect(observer, PATIENCE)?.mask()?;
    let before = before(&mask, victim)?;
    let masking = start_thread("weft-bench-mask", move || gone_ns(&mask, victim, before))?;
    let began_ns = now_ns();
    programs.launched.connect(manager, PATIENCE)?.order_node(victim, NodeOrder::Isolate)?;
    let mask_ns = masking.join().ok().flatten().ok_or_else(stuck)?;
    spans.mask.push(mask_ns - decided_ns(programs, began_ns, victim, &[mask_ns])?, 1);
    Ok(())
}

/// The incarnation of `rank` that is shown, once there is one.
fn before(mask: &Mask, rank: u16) -> Result<(u32, u32), BenchError> {
    let deadline = Deadline::after(PATIENCE);
    while !deadline.has_passed() {
        let shown = mask.load().and_then(|it| mask.incarnation(it.number, rank));
        if let Some(incarnation) = shown {
            return Ok(incarnation);
        }
        std::thread::yield_now();
    }
    Err(stuck())
}

/// When `incarnation` of `rank` was no longer shown. A view may be missed here: then the next boot
/// is in its place.
fn gone_ns(mask: &Mask, rank: u16, incarnation: (u32, u32)) -> Option<u64> {
    let deadline = Deadline::after(PATIENCE);
    while !deadline.has_passed() {
        let is_gone = mask.load().is_some_and(|shown| {
            let now = mask.incarnation(shown.number, rank);
            shown.members >> rank & 1 == 0 || now.is_some_and(|it| it != incarnation)
        });
        if is_gone {
            return Some(now_ns());
        }
        std::thread::yield_now();
    }
    None
}

/// When the removal of `victim` was decided: before it was `seen`, or something else was.
fn decided_ns(
    programs: &Programs,
    began_ns: u64,
    victim: u16,
    seen: &[u64],
) -> Result<u64, BenchError> {
    let deadline = Deadline::after(PATIENCE);
    // A node that is busy may not answer at once.
    while !deadline.has_passed() {
        let decided = processes::decided_ns(&programs.launched, began_ns, victim);
        if let Some(decided_ns) = decided.filter(|it| seen.iter().all(|at_ns| it < at_ns)) {
            return Ok(decided_ns);
        }
    }
    Err(stuck())
}

const fn stuck() -> BenchError {
    BenchError::Stuck { patience: PATIENCE }
}
