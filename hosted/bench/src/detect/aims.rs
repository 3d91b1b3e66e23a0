//! The goals of the DIR net, and whether this run reached them.

use super::fault::DetectFault;
use super::report::{Accuracy, DetectReport, DetectionRow, FaultGround, Rest, Trouble};
use crate::verdict::AimVerdict;
use weft::cluster::Profile;

/// A dedicated polling processor notices within so long.
const RDMA_US: u64 = 600;
/// At least this many of a thousand verdicts distinguish component and node failures.
const RIGHT_PER_THOUSAND: usize = 999;
/// At least so many times as many false verdicts by others.
const FEWER: f64 = 50.0;

pub(super) fn judge(report: &DetectReport) -> Vec<AimVerdict> {
    let mut verdicts: Vec<_> =
        Profile::ALL.iter().map(|profile| soon(&report.detections, *profile)).collect();
    verdicts.push(soon_enough(&report.detections));
    verdicts.push(right(&report.detections));
    verdicts.push(kept(&report.detections));
    verdicts.push(back(&report.detections));
    verdicts.extend([Profile::Host, Profile::Lan].map(|profile| at_rest(&report.rest, profile)));
    verdicts.push(none_with_few_losses(&report.accuracy));
    verdicts.extend(
        [Trouble::Losses, Trouble::Stalls, Trouble::LongStalls]
            .map(|trouble| fewer(&report.accuracy, trouble)),
    );
    verdicts.push(quiet(report));
    verdicts.push(cheap(report));
    verdicts
}

fn simulated(rows: &[DetectionRow]) -> impl Iterator<Item = &DetectionRow> {
    rows.iter().filter(|row| row.ground == FaultGround::Simulated)
}

/// The slowest verdict on a crash of a node.
fn slowest(rows: &[DetectionRow], profile: Profile) -> Option<u64> {
    let crashes = simulated(rows).filter(|row| row.fault == DetectFault::Node);
    let crashes = crashes.filter(|row| row.profile == profile.as_str());
    crashes.filter_map(|row| row.verdict).map(|span| span.max_us).max()
}

fn soon(rows: &[DetectionRow], profile: Profile) -> AimVerdict {
    let timing = profile.timing();
    // The last heartbeat may arrive δ after the crash, and the machine looks when it is due.
    let limit_us = (timing.receive.0 + timing.window.0 + timing.delay.0) / 1_000;
    let aim = format!("{profile}: every crash of a node judged within R + W + one delay");
    let Some(slowest) = slowest(rows, profile) else { return AimVerdict::unmeasured(aim) };
    let found = format!("{slowest} us at most, and {limit_us} us are allowed");
    AimVerdict { aim, reached: Some(slowest <= limit_us), found }
}

fn soon_enough(rows: &[DetectionRow]) -> AimVerdict {
    let aim = format!("rdma: every crash of a node judged within {RDMA_US} us");
    let Some(slowest) = slowest(rows, Profile::Rdma) else { return AimVerdict::unmeasured(aim) };
    AimVerdict { aim, reached: Some(slowest <= RDMA_US), found: format!("{slowest} us at most") }
}

fn right(rows: &[DetectionRow]) -> AimVerdict {
    let aim = "component and node failures distinguished in 999 of 1000 verdicts".to_owned();
    let judged: usize = simulated(rows).map(|row| row.judged).sum();
    let right: usize = simulated(rows).map(|row| row.right).sum();
    if judged == 0 {
        return AimVerdict::unmeasured(aim);
    }
    let reached = right * 1_000 >= judged * RIGHT_PER_THOUSAND;
    AimVerdict { aim, reached: Some(reached), found: format!("{right} of {judged}") }
}

/// Those that virtual time has not: cut links, hung supervisors and orders among them.
fn kept(rows: &[DetectionRow]) -> AimVerdict {
    let aim = "each strike at processes led to its own decision first, and to no other".to_owned();
    let strikes = || rows.iter().filter(|row| !row.fault.is_simulated());
    let runs: usize = strikes().map(|row| row.runs).sum();
    let right: usize = strikes().map(|row| row.right).sum();
    if runs == 0 {
        return AimVerdict::unmeasured(aim);
    }
    AimVerdict { aim, reached: Some(runs == right), found: format!("{right} of {runs}") }
}

fn back(rows: &[DetectionRow]) -> AimVerdict {
    let aim = "every fault leads to a verdict and to readmission".to_owned();
    let runs: usize = rows.iter().map(|row| row.runs).sum();
    let came_back: usize = rows.iter().map(|row| row.admitted.min(row.judged)).sum();
    if runs == 0 {
        return AimVerdict::unmeasured(aim);
    }
    AimVerdict { aim, reached: Some(came_back == runs), found: format!("{came_back} of {runs}") }
}

/// `rdma` is for hosts with a processor for each node; it appears in the report only.
fn at_rest(rows: &[Rest], profile: Profile) -> AimVerdict {
    let aim = format!("{profile}: no verdict among processes without faults");
    let Some(row) = rows.iter().find(|row| row.profile == profile.as_str()) else {
        return AimVerdict::unmeasured(aim);
    };
    let found = format!("{} verdicts in {} ms", row.false_verdicts, row.watched_ms);
    AimVerdict { aim, reached: Some(row.is_kept), found }
}

fn find<'a>(rows: &'a [Accuracy], trouble: Trouble, detector: &str) -> Option<&'a Accuracy> {
    rows.iter().find(|row| row.trouble == trouble && row.detector == detector)
}

fn none_with_few_losses(rows: &[Accuracy]) -> AimVerdict {
    let aim = "no false verdict while losses stay within the limit".to_owned();
    let Some(row) = find(rows, Trouble::FewLosses, "weft") else {
        return AimVerdict::unmeasured(aim);
    };
    let found = format!("{} in {} heartbeats", row.false_verdicts, row.heartbeats);
    AimVerdict { aim, reached: Some(row.false_verdicts == 0), found }
}

fn fewer(rows: &[Accuracy], trouble: Trouble) -> AimVerdict {
    let aim = format!("{trouble}: {FEWER:.0} times fewer false verdicts than foca, by heartbeats");
    let both = find(rows, trouble, "weft").zip(find(rows, trouble, "foca"));
    let Some((ours, theirs)) = both else {
        let found = "without foca: build with --features rivals".to_owned();
        return AimVerdict { aim, reached: None, found };
    };
    let found = format!("{:.2} and {:.2} in 10^6", ours.per_million, theirs.per_million);
    // Where neither was ever wrong, nothing is shown.
    let reached = (theirs.false_verdicts > 0 || ours.false_verdicts > 0)
        .then_some(ours.per_million * FEWER <= theirs.per_million);
    AimVerdict { aim, reached, found }
}

fn quiet(report: &DetectReport) -> AimVerdict {
    let aim = "2(n-1) frames in a quiet period".to_owned();
    let per = report.traffic.iter().filter_map(|row| Some((row.frames_per_period?, row.nodes)));
    let Some((frames, nodes)) = per.max_by(|one, other| one.0.total_cmp(&other.0)) else {
        return AimVerdict::unmeasured(aim);
    };
    let allowed = f64::from(2 * (nodes - 1));
    let found = format!("{frames:.2} of {nodes} nodes");
    // One more heartbeat of each may fall into the span that was watched.
    AimVerdict { aim, reached: Some(frames <= allowed * 1.01), found }
}

fn cheap(report: &DetectReport) -> AimVerdict {
    // Each other member is asked, probes twice, testifies, is informed and fences.
    let aim = "6(n-2) frames from a crash to its reset".to_owned();
    let Some(row) = report.traffic.iter().max_by_key(|row| row.frames_max) else {
        return AimVerdict::unmeasured(aim);
    };
    let reached = row.frames_max <= 6 * u64::from(row.nodes.saturating_sub(2));
    let found = format!("{} of {} nodes, from the crash to the reset", row.frames_max, row.nodes);
    AimVerdict { aim, reached: Some(reached), found }
}
