//! Faults in virtual time: the shipped machines, a network that takes up to δ.

use weft_core::dirnet::{Message, News, Output, Rule, Timing, Verdict};
use weft_core::ids::Rank;

use super::fault::{Decision, DetectFault, Target};
use super::moments::{FaultSeries, Moments};
use super::report::{DetectTraffic, DetectionRow, FaultGround};
use weft::cluster::Profile;
use weft_sim::dirnet::{Event, Lab, NetStrike, Setting};
use weft_sim::draws::{Draws, Purpose};

pub(super) const NODES: u16 = 4;
/// A quiet cluster is watched for so many periods.
const QUIET_PERIODS: u64 = 100;
const MS: u64 = 1_000_000;

/// Faults of one kind, at any time within a period.
pub(super) fn detect(
    profile: Profile,
    fault: DetectFault,
    target: Target,
    runs: u32,
) -> Option<DetectionRow> {
    let timing = profile.timing();
    let all: Vec<_> = (0..u64::from(runs))
        .map(|seed| {
            let (mut lab, victim) = settled(&timing, target, seed)?;
            Some(strike(&mut lab, &timing, fault, victim).0)
        })
        .collect::<Option<_>>()?;
    Some(FaultSeries { ground: FaultGround::Simulated, profile, fault, target }.sum_up(&all))
}

/// A cluster somewhere in its period, and the node that will be struck.
fn settled(timing: &Timing, target: Target, seed: u64) -> Option<(Lab, Rank)> {
    let mut draws = Draws::new(seed, Purpose::Setup);
    let setting =
        Setting { fence_max: timing.delay.0, ..Setting::fair(NODES, *timing, timing.delay.0) };
    let begin = timing.join.0 * 4 + timing.receive.0 * 2 + draws.below(timing.send.0);
    let mut lab = Lab::settled(setting, seed, begin);
    let manager = (0..1_000).find_map(|_| {
        lab.run_for(timing.send.0);
        lab.manager()
    })?;
    lab.take_events();
    let other = Rank((manager.0 + 1 + draws.below(u64::from(NODES) - 1) as u16) % NODES);
    Some((lab, if target == Target::Manager { manager } else { other }))
}

/// Strikes once and watches until the node is a member again; and counts frames up to the order to
/// reset the node, if there is one.
fn strike(lab: &mut Lab, timing: &Timing, fault: DetectFault, victim: Rank) -> (Moments, u64) {
    let (began, node) = (lab.now().0, victim.0);
    let verdict_ns = timing.receive.0 + timing.window.0;
    match fault {
        DetectFault::Kill => lab.strike(NetStrike::End(node)),
        DetectFault::Hang => lab.strike(NetStrike::Hang(node)),
        DetectFault::Silence => lab.strike(NetStrike::StopTimers(node)),
        DetectFault::Node => lab.strike(NetStrike::Crash(node)),
        DetectFault::Partition => {
            for other in (0..NODES).filter(|other| *other != node) {
                let ms = (2 * verdict_ns).div_ceil(MS);
                lab.strike(NetStrike::Cut(node, other, ms));
                lab.strike(NetStrike::Cut(other, node, ms));
            }
        }
        // Struck at processes alone.
        _ => {}
    }
    let (mut moments, mut frames, mut is_reset) = (Moments::default(), 0, false);
    let patience = 10 * verdict_ns + timing.clone.0.min(2_000 * MS) + 5_000 * MS;
    while lab.now().0 < began + patience && moments.admission.is_none() {
        lab.run_for(timing.send.0);
        for event in lab.take_events() {
            frames += if is_reset { 0 } else { frames_of(&event) };
            is_reset |= matches!(event.2, Output::Reset { node, .. } if node == victim);
            note(&mut moments, &event, began, victim, fault);
        }
        // Who comes back with a higher term than the manager's is no member by its verdict: the
        // period in which all nodes agree on it counts.
        if moments.verdict.is_some() && lab.manager().is_some() {
            moments.admission = moments.admission.or(Some(lab.now().0 - began));
        }
    }
    (moments, frames)
}

/// Frames to others.
fn frames_of((_, from, output): &Event) -> u64 {
    match output {
        Output::Send { to, .. } => u64::from(to.without(*from).count()),
        _ => 0,
    }
}

fn note(moments: &mut Moments, event: &Event, began: u64, victim: Rank, fault: DetectFault) {
    let (at, by, output) = event;
    let after = Some(at - began);
    match output {
        Output::Tell(News::Suspected(node)) if *node == victim && *by != victim => {
            moments.suspicion = moments.suspicion.or(after);
        }
        Output::Send { frame, .. } if *by == victim => {
            if let Message::Teif { .. } = frame.message {
                moments.suspicion = moments.suspicion.or(after);
            }
        }
        // A manager that only begins another term takes nothing over, nor does who is cut off.
        Output::Verdict(why) if why.verdict == Verdict::TookOver && *by != victim => {
            let is_new = why.rule == Rule::Succession;
            moments.takeover = moments.takeover.or(after.filter(|_| is_new));
        }
        Output::Verdict(why) if why.node == victim => match why.verdict {
            Verdict::AgentDown | Verdict::NodeDown | Verdict::Isolated => {
                if moments.verdict.is_none() {
                    moments.verdict = after;
                    let is_component = why.verdict == Verdict::AgentDown;
                    moments.is_right =
                        is_component == (fault.expects(Target::Backup) == Decision::Component);
                }
            }
            Verdict::Admitted if moments.verdict.is_some() => {
                moments.admission = moments.admission.or(after);
            }
            Verdict::Admitted | Verdict::TookOver => {}
        },
        _ => {}
    }
}

/// What heartbeats and verdicts cost.
pub(super) fn traffic(profile: Profile, runs: u32) -> DetectTraffic {
    let timing = profile.timing();
    let mut quiet: Option<f64> = None;
    let mut frames_max = 0;
    for seed in 0..u64::from(runs) {
        let Some((mut lab, victim)) = settled(&timing, Target::Backup, seed) else { continue };
        let before = lab.heartbeats();
        lab.run_for(QUIET_PERIODS * timing.send.0);
        let frames = (lab.heartbeats() - before) as f64 / QUIET_PERIODS as f64;
        quiet = Some(quiet.map_or(frames, |most| most.max(frames)));
        lab.take_events();
        frames_max = frames_max.max(strike(&mut lab, &timing, DetectFault::Node, victim).1);
    }
    DetectTraffic { profile: profile.as_str(), nodes: NODES, frames_per_period: quiet, frames_max }
}
