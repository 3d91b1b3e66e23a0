//! Faults at real processes: a cluster over shared memory, its nodes' chronicles read as one.

use std::time::Duration;

use super::fault::{Fault, Target};
use super::moments::{Moments, Series};
use super::report::{Detection, Ground};
use crate::bench::error::BenchError;
use crate::client::{Client, ClientError};
use crate::clock::{Deadline, now_ns};
use crate::cluster::{Cluster, ClusterName, Restart};
use crate::launch::Launched;
use crate::node::chronicle::{Entry, What};
use crate::node::control;

/// What is struck: partitions are of hosts, and these processes share one.
pub(super) const STRUCK: [(Fault, Target); 8] = [
    (Fault::Kill, Target::Manager),
    (Fault::Kill, Target::Backup),
    (Fault::Hang, Target::Manager),
    (Fault::Hang, Target::Backup),
    (Fault::Silence, Target::Manager),
    (Fault::Silence, Target::Backup),
    (Fault::Node, Target::Manager),
    (Fault::Node, Target::Backup),
];
const NODES: usize = 4;
/// How long any step may take on a busy host.
const PATIENCE: Duration = Duration::from_secs(60);

/// Strikes `rounds` times with each fault, under the cluster file's own profile.
pub(super) fn detect(rounds: u32, on_part: impl FnMut()) -> Result<Vec<Detection>, BenchError> {
    let name = format!("bench-{}", std::process::id());
    let name = name.parse::<ClusterName>().unwrap_or_default();
    // As many restarts as there are faults: what is measured is not patience with a bad program.
    let restart = Restart { max: 10_000, within_s: 1 };
    let cluster = Cluster { name, nodes: NODES, restart, ..Cluster::default() };
    let mut launched = Launched::start(&cluster).map_err(BenchError::Launch)?;
    launched.await_running(PATIENCE).map_err(BenchError::Launch)?;
    let struck = strike_all(&launched, &cluster, rounds, on_part);
    let stopped = launched.stop().map_err(BenchError::Directory);
    struck.and_then(|detections| stopped.map(|()| detections))
}

fn strike_all(
    launched: &Launched,
    cluster: &Cluster,
    rounds: u32,
    mut on_part: impl FnMut(),
) -> Result<Vec<Detection>, BenchError> {
    let mut detections = Vec::new();
    for (fault, target) in STRUCK {
        let mut all = Vec::new();
        for _ in 0..rounds {
            let manager = await_well(launched)?;
            let other = (manager + 1) % u16::try_from(NODES).unwrap_or(1);
            let victim = if target == Target::Manager { manager } else { other };
            all.push(strike(launched, fault, victim)?);
        }
        let profile = cluster.dirnet.profile;
        detections.push(Series { ground: Ground::Shm, profile, fault, target }.sum_up(&all));
        on_part();
    }
    Ok(detections)
}

fn connect(launched: &Launched, rank: u16) -> Result<Client, ClientError> {
    launched.connect(rank, PATIENCE)
}

/// Waits until all agree on a manager, and nobody is suspected or removed.
fn await_well(launched: &Launched) -> Result<u16, BenchError> {
    let deadline = Deadline::after(PATIENCE);
    while !deadline.has_passed() {
        let standing = |rank| connect(launched, rank).ok()?.status().ok()?.dirnet;
        let all: Option<Vec<_>> = launched.ranks().map(standing).collect();
        let Some(all) = all else { continue };
        let manager = all[0].manager;
        let agree = all.iter().all(|it| {
            let is_member = it.role == "manager" || it.role == "backup";
            let is_calm = it.suspects.is_empty() && it.removed.is_empty();
            it.manager == manager && it.epoch == all[0].epoch && is_member && is_calm
        });
        if agree && all[usize::from(manager)].role == "manager" {
            return Ok(manager);
        }
    }
    Err(BenchError::Stuck { patience: PATIENCE })
}

/// Strikes once, and reads in the chronicles what followed.
fn strike(launched: &Launched, fault: Fault, victim: u16) -> Result<Moments, BenchError> {
    let mut client = connect(launched, victim)?;
    let began = now_ns();
    match fault {
        Fault::Kill => client.kill()?,
        Fault::Hang => client.inject(control::Fault::Hang)?,
        Fault::Silence => client.inject(control::Fault::Silence)?,
        Fault::Node => client.kill_node()?,
        Fault::Partition => return Err(BenchError::OutOfStep("a partition of one host")),
    }
    let deadline = Deadline::after(PATIENCE);
    loop {
        let moments = moments_of(&chronicles(launched, began), began, fault, victim);
        if moments.admission.is_some() {
            return Ok(moments);
        }
        if deadline.has_passed() {
            return Err(BenchError::Stuck { patience: PATIENCE });
        }
        // Until somebody reads a chronicle again there is nothing to be found in it.
        launched.next_notice(LOOK_EVERY).ok();
    }
}

/// How often chronicles are read: seldom, so that reading them does not slow what they tell of.
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

fn moments_of(entries: &[Entry], began: u64, fault: Fault, victim: u16) -> Moments {
    let mut moments = Moments::default();
    for entry in entries.iter().filter(|entry| entry.at_ns >= began) {
        let after = Some(entry.at_ns - began);
        let is_victim = entry.node == victim;
        match &entry.what {
            What::Suspected | What::Alarm { .. } if is_victim => {
                moments.suspicion = moments.suspicion.or(after);
            }
            What::Verdict(note) => match note.verdict.as_str() {
                "takes over as manager" if note.rule == "succession" && !is_victim => {
                    moments.takeover = moments.takeover.or(after);
                }
                "component down" | "node down" | "isolated"
                    if is_victim && moments.verdict.is_none() =>
                {
                    moments.verdict = after;
                    let is_component = note.verdict == "component down";
                    moments.is_right = fault.is_of_component() == is_component;
                }
                "admitted" if is_victim && moments.verdict.is_some() => {
                    moments.admission = moments.admission.or(after);
                }
                _ => {}
            },
            _ => {}
        }
    }
    moments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::chronicle::VerdictNote;

    fn verdict(at_ns: u64, observer: u16, node: u16, verdict: &str) -> Entry {
        let note = VerdictNote {
            verdict: verdict.to_owned(),
            rule: "succession".to_owned(),
            life: String::new(),
            term: String::new(),
            alarm: None,
            testimonies: 0,
            met_component: false,
            met_task: false,
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
        let moments = moments_of(&entries, 10, Fault::Node, 0);
        let times = [moments.suspicion, moments.takeover, moments.verdict, moments.admission];
        assert_eq!(times, [Some(10), Some(20), Some(30), Some(50)]);
        assert!(moments.is_right);
        assert!(!moments_of(&entries, 10, Fault::Hang, 0).is_right);
    }
}
