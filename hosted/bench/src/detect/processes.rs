//! Faults at real processes: a cluster over shared memory under each profile, its nodes' chronicles
//! read as one.
//!
//! ```text
//!   start ──▶ at rest for a while: is there a verdict?  no ──▶ strike, read what followed, again
//!                                                     yes ──▶ reported; no fault
//! ```
//!
//! A profile that processes cannot keep on this host judges the living, so what it would show of
//! faults means nothing. `rdma` wants a processor for each node: on fewer its nodes, which take
//! turns of milliseconds, find each other silent after 350 µs.

use std::time::Duration;

use weft_core::dirnet::{News, Verdict};
use weft_core::ids::Rank;

use super::DetectPlan;
use super::fault::{Decision, DetectFault, Target};
use super::moments::{FaultSeries, Moments};
use super::report::{DetectionRow, FaultGround, Rest};
use super::strike::DetectStrike;
use crate::error::BenchError;
use weft::clock::{Deadline, now_ns};
use weft::cluster::{Cluster, ClusterName, DirNet, Profile, Restart};
use weft::launch::{LaunchError, Launched};
use weft::node::chronicle::{Entry, What};

const NODES: usize = 4;
/// How long any step may take on a busy host.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// How long a cluster without faults may take to agree on a manager.
const SETTLE: Duration = Duration::from_secs(20);
/// How long it is watched then.
const AT_REST: Duration = Duration::from_secs(5);

/// Strikes as `plan` says under `profile`, if processes keep that on this host.
pub(super) fn detect(
    profile: Profile,
    plan: &DetectPlan,
    on_part: &mut impl FnMut(),
) -> Result<(Rest, Vec<DetectionRow>), BenchError> {
    let name = format!("bench-{}-{profile}", std::process::id());
    let name = name.parse::<ClusterName>().unwrap_or_default();
    // As many restarts as there are faults: what is measured is not patience with a bad program.
    let restart = Restart { max: 10_000, within_s: 1 };
    let reset = Restart { max: 255, within_s: 86_400 };
    let dirnet = DirNet { profile, reset, ..DirNet::default() };
    let cluster = Cluster { name, nodes: NODES, restart, dirnet, ..Cluster::default() };
    let mut launched = Launched::start(&cluster).map_err(BenchError::Launch)?;
    let found = measure(&mut launched, plan, on_part);
    let stopped = launched.stop().map_err(BenchError::Directory);
    found.and_then(|found| stopped.map(|()| found))
}

fn measure(
    launched: &mut Launched,
    plan: &DetectPlan,
    on_part: &mut impl FnMut(),
) -> Result<(Rest, Vec<DetectionRow>), BenchError> {
    let rest = watch_rest(launched)?;
    on_part();
    let mut detections = Vec::new();
    for (fault, target) in plan.struck() {
        if rest.is_kept {
            detections.push(strike_all(launched, fault, target, plan.rounds)?);
        }
        on_part();
    }
    Ok((rest, detections))
}

/// Watches a cluster without faults.
fn watch_rest(launched: &mut Launched) -> Result<Rest, BenchError> {
    let profile = launched.cluster().dirnet.profile.as_str();
    let came_together = match launched.await_running(SETTLE) {
        Ok(()) => await_well(launched, SETTLE).is_ok(),
        Err(LaunchError::Client(_)) => false,
        Err(error) => return Err(BenchError::Launch(error)),
    };
    let began = now_ns();
    let deadline = Deadline::after(AT_REST);
    while !deadline.has_passed() {
        // Only a node that is reset gives notice; none is wanted.
        launched.next_notice(deadline.remaining()).ok();
    }
    let entries = chronicles(launched, began);
    let false_verdicts = entries.iter().filter(|entry| removal(&entry.what).is_some()).count();
    let is_kept = came_together && false_verdicts == 0;
    let watched_ms = u64::try_from(AT_REST.as_millis()).unwrap_or(u64::MAX);
    Ok(Rest { profile, nodes: NODES, came_together, watched_ms, false_verdicts, is_kept })
}

fn strike_all(
    launched: &Launched,
    fault: DetectFault,
    target: Target,
    rounds: u32,
) -> Result<DetectionRow, BenchError> {
    let mut all = Vec::new();
    for _ in 0..rounds {
        let manager = await_well(launched, PATIENCE)?;
        let other = (manager + 1) % u16::try_from(NODES).unwrap_or(1);
        let victim = if target == Target::Manager { manager } else { other };
        all.push(strike(&DetectStrike { launched, fault, target, manager, victim })?);
    }
    let profile = launched.cluster().dirnet.profile;
    Ok(FaultSeries { ground: FaultGround::Shm, profile, fault, target }.sum_up(&all))
}

/// Waits until all agree on a manager, and no node is suspected or removed.
pub(crate) fn await_well(launched: &Launched, patience: Duration) -> Result<u16, BenchError> {
    let deadline = Deadline::after(patience);
    while !deadline.has_passed() {
        let standing = |rank| {
            let mut client = launched.connect(rank, deadline.remaining()).ok()?;
            client.status().ok()?.dirnet
        };
        let all: Option<Vec<_>> = launched.ranks().map(standing).collect();
        let Some(all) = all else { continue };
        let manager = all[0].manager;
        let agree = all.iter().all(|it| {
            let is_calm = it.suspects.is_empty() && it.removed.is_empty();
            it.manager == manager && it.epoch == all[0].epoch && it.is_member() && is_calm
        });
        if agree && all[usize::from(manager)].role == "manager" {
            return Ok(manager);
        }
    }
    Err(BenchError::Stuck { patience })
}

/// Strikes once, and reads in the chronicles what followed.
fn strike(strike: &DetectStrike<'_>) -> Result<Moments, BenchError> {
    let DetectStrike { launched, fault, target, victim, .. } = *strike;
    let timing = launched.cluster().dirnet.timing();
    let began = now_ns();
    if strike.prepare()? {
        let is_kept = |entry: &Entry| decision(entry, victim) == Some(Decision::Kept);
        await_ok(launched, || Ok(chronicles(launched, began).iter().any(is_kept)))?;
    }
    let began = now_ns();
    strike.strike()?;
    let expects = fault.expects(target);
    let heal_at_ns = now_ns() + 2 * (timing.receive.0 + timing.window.0);
    let (mut moments, mut is_mended) = (Moments::default(), !strike.lasts());
    let is_done = || {
        moments = moments_of(&chronicles(launched, began), began, fault, target, victim);
        let is_due = match fault {
            DetectFault::Partition => now_ns() >= heal_at_ns,
            DetectFault::KillUnderCut | DetectFault::NodeUnderCut => moments.admission.is_some(),
            _ => moments.verdict.is_some(),
        };
        if is_due && !is_mended {
            is_mended = true;
            strike.mend()?;
        }
        Ok(is_mended && (moments.admission.is_some() || !expects.removes()))
    };
    await_ok(launched, is_done)?;
    if !expects.removes() {
        await_well(launched, PATIENCE)?;
        moments.admission = Some(now_ns() - began);
        let entries = chronicles(launched, began);
        moments.is_right &= !entries.iter().any(|entry| removal(&entry.what).is_some());
    }
    Ok(moments)
}

/// Looks until it is so.
fn await_ok(
    launched: &Launched,
    mut is_so: impl FnMut() -> Result<bool, BenchError>,
) -> Result<(), BenchError> {
    let deadline = Deadline::after(PATIENCE);
    while !is_so()? {
        if deadline.has_passed() {
            return Err(BenchError::Stuck { patience: PATIENCE });
        }
        // Between two reads of a chronicle there is nothing to find.
        launched.next_notice(LOOK_EVERY).ok();
    }
    Ok(())
}

/// How often chronicles are read: seldom, so that reading them does not slow what they record.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What all nodes that answer have noted since, in the order of time.
fn chronicles(launched: &Launched, after_ns: u64) -> Vec<Entry> {
    let of = |rank| {
        let mut client = launched.connect(rank, LOOK_EVERY).ok()?;
        client.whole_chronicle(None, after_ns).ok()
    };
    let mut all: Vec<Entry> = launched.ranks().filter_map(of).flatten().collect();
    all.sort_by_key(|entry| entry.at_ns);
    all
}

/// When it was decided that the node `victim` is removed or isolated, if the chronicles of the
/// others say so.
pub(crate) fn decided_ns(launched: &Launched, after_ns: u64, victim: u16) -> Option<u64> {
    let entries = chronicles(launched, after_ns);
    let of_victim = entries.iter().filter(|entry| entry.node == victim);
    let decided = [Decision::Node, Decision::Isolated];
    let mut removed =
        of_victim.filter(|entry| removal(&entry.what).is_some_and(|it| decided.contains(&it)));
    removed.next().map(|entry| entry.at_ns)
}

/// The decision that removes the node that an entry is about.
fn removal(what: &What) -> Option<Decision> {
    let removals = [
        (Verdict::AgentDown, Decision::Component),
        (Verdict::NodeDown, Decision::Node),
        (Verdict::Isolated, Decision::Isolated),
    ];
    removals.into_iter().find(|(verdict, _)| what.is_verdict(*verdict)).map(|(_, it)| it)
}

/// The decision about `victim` that an entry is.
fn decision(entry: &Entry, victim: u16) -> Option<Decision> {
    let is_succession = |what: &What| {
        what.is_verdict(Verdict::TookOver)
            && matches!(what, What::Verdict(note) if note.rule == "succession")
    };
    match &entry.what {
        what if entry.node != victim => is_succession(what).then_some(Decision::Succeeded),
        what if what.is_news(News::OneWay(Rank(victim))) => Some(Decision::Kept),
        what if what.is_news(News::Unheard) => Some(Decision::Unheard),
        what => removal(what),
    }
}

fn moments_of(
    entries: &[Entry],
    began: u64,
    fault: DetectFault,
    target: Target,
    victim: u16,
) -> Moments {
    let expects = fault.expects(target);
    let mut moments = Moments::default();
    for entry in entries.iter().filter(|entry| entry.at_ns >= began) {
        let after = Some(entry.at_ns - began);
        let is_victim = entry.node == victim;
        match &entry.what {
            What::Suspected | What::Alarm { .. } if is_victim => {
                moments.suspicion = moments.suspicion.or(after);
            }
            what if is_victim && what.is_verdict(Verdict::Admitted) => {
                let is_back = moments.verdict.is_some();
                moments.admission = moments.admission.or(after.filter(|_| is_back));
            }
            _ => {}
        }
        let Some(decision) = decision(entry, victim) else { continue };
        if decision == Decision::Succeeded {
            moments.takeover = moments.takeover.or(after);
        }
        // A component that cannot be started again has ended first, which is decided first.
        let is_first_step = fault == DetectFault::FailedStarts && decision == Decision::Component;
        let counts = (decision.removes() && !is_first_step) || decision == expects;
        if counts && moments.verdict.is_none() {
            moments.verdict = after;
            moments.is_right = decision == expects;
        }
    }
    moments
}

#[cfg(test)]
mod tests {
    use weft::node::chronicle::VerdictNote;

    use super::*;

    fn verdict(at_ns: u64, observer: u16, node: u16, verdict: &str) -> Entry {
        let note = VerdictNote {
            verdict: verdict.to_owned(),
            rule: "succession".to_owned(),
            incarnation: String::new(),
            term: String::new(),
            alarm: None,
            asked: vec![],
            met_component: vec![],
            met_task: vec![],
            met_neither: vec![],
            silent_us: None,
        };
        Entry { at_ns, observer, node, what: What::Verdict(note) }
    }

    #[test]
    fn the_first_of_each_after_the_fault_counts() {
        let entries = [
            verdict(5, 1, 0, "node down"),
            Entry { at_ns: 20, observer: 1, node: 0, what: What::Suspected },
            Entry { at_ns: 21, observer: 2, node: 0, what: What::Suspected },
            verdict(30, 1, 1, "takes over as manager"),
            verdict(40, 1, 0, "node down"),
            verdict(50, 1, 2, "admitted"),
            verdict(60, 1, 0, "admitted"),
        ];
        let moments = moments_of(&entries, 10, DetectFault::Node, Target::Manager, 0);
        let times = [moments.suspicion, moments.takeover, moments.verdict, moments.admission];
        assert_eq!(times, [Some(10), Some(20), Some(30), Some(50)]);
        assert!(moments.is_right);
        assert!(!moments_of(&entries, 10, DetectFault::Hang, Target::Manager, 0).is_right);
    }
}
