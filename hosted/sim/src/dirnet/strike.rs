//! The faults of a run: a list of strikes, drawn before it starts.

use crate::draws::Draws;

pub(super) const MS: u64 = 1_000_000;
/// Faults happen before this time.
pub(super) const STORM_MS: u64 = 8_000;
/// The longest stall that the profile `lan` tolerates.
const STALL_MS: u64 = 160;
/// The maximum number of nodes in a run.
pub(super) const NODES_MAX: u16 = 7;
/// The distance between two stalls of one node, so that they do not add up.
const STALLS_APART_MS: u64 = 700;

/// Damage to snapshots; the number selects the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotDamage {
    /// A bit of the newest is flipped.
    Flip(u64),
    /// The newest is truncated.
    Cut(u64),
    /// A bit of the newest is flipped, and the one before it is truncated.
    Both(u64),
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetStrike {
    /// The node is gone.
    Crash(u16),
    /// The node is gone after this many further outputs of its processes.
    CrashBetween(u16, u32),
    /// The node is gone, and is started again at once.
    Restart(u16),
    /// The component hangs forever.
    Hang(u16),
    /// The component's process ends.
    End(u16),
    /// The component's timers die; it still answers.
    StopTimers(u16),
    /// The whole node stalls.
    Stall(u16, u64),
    /// The component stalls.
    StallComponent(u16, u64),
    /// No message gets from the first node to the second.
    Cut(u16, u16, u64),
    /// The supervisor stalls, with its I'm-Alive Task; the component continues.
    StopSupervisor(u16, u64),
    /// No process can be started on the node.
    RefuseSpawns(u16, u64),
    /// The saved database of the node is damaged; its next component finds it so.
    Damage(u16, SnapshotDamage),
    /// The first half hears nothing from the second, and vice versa.
    Partition(u64),
    /// No message gets from the first node to the second any more.
    Sever(u16, u16),
    /// The node hears no other.
    Deafen(u16, u64),
    /// No process can be started on any node.
    RefuseAllSpawns(u64),
    /// These ways are cut: bit `from * 7 + to` each.
    CutSet(u64, u64),
    /// The transport of the first node loses the second, although both are alive and the link is
    /// up.
    Lose(u16, u16),
    /// An operator has the second node isolated, by the next manager from the first.
    Isolate(u16, u16),
    /// An operator has the node released.
    Release(u16),
    /// An operator has the second node made the manager, by the next manager from the first.
    HandOver(u16, u16),
}

/// The bit of the way from one node to another in a [`NetStrike::CutSet`].
pub(super) const fn way(from: u16, to: u16) -> u64 {
    1 << (from * NODES_MAX + to)
}

/// The kind of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// Only stalls.
    Stalls,
    /// Every kind of fault.
    Storm,
}

/// The strikes of a run with `nodes` nodes, with their times in [units](super::net::Setting::unit).
pub(super) fn draw(
    draws: &mut Draws,
    orders: &mut Draws,
    nodes: u16,
    weather: Weather,
) -> Vec<(u64, NetStrike)> {
    let mut strikes = match weather {
        Weather::Stalls => stalls(draws, nodes),
        Weather::Storm => storm(draws, orders, nodes),
    };
    // Behind all others: what a seed had before, it still has.
    strikes.extend(handovers(orders, nodes));
    // The sort is stable: damage comes before an end at the same time.
    strikes.sort_by_key(|(at, _)| *at);
    strikes
}

fn stalls(draws: &mut Draws, nodes: u16) -> Vec<(u64, NetStrike)> {
    let mut strikes = Vec::new();
    for node in 0..nodes {
        let mut at = 1_000 + draws.below(STALLS_APART_MS);
        while at < STORM_MS {
            let span = draws.between(1, STALL_MS);
            let strike = match draws.below(2) {
                0 => NetStrike::Stall(node, span),
                _ => NetStrike::StallComponent(node, span),
            };
            strikes.push((at, strike));
            at += STALLS_APART_MS + draws.below(900);
        }
    }
    strikes
}

/// Damages what components have saved before some of them end.
fn damages(draws: &mut Draws, strikes: &[(u64, NetStrike)]) -> Vec<(u64, NetStrike)> {
    let ended = strikes.iter().filter_map(|(at, strike)| match strike {
        NetStrike::Crash(node)
        | NetStrike::Restart(node)
        | NetStrike::Hang(node)
        | NetStrike::End(node) => Some((*at, *node)),
        _ => None,
    });
    let mut damages = Vec::new();
    for (at, node) in ended {
        if draws.chance(1, 2) {
            damages.push((at, NetStrike::Damage(node, damage(draws))));
        }
    }
    damages
}

/// Some runs lose up to three links, or one direction of them, permanently, at once or during the
/// storm. Two nodes that do not reach each other have a third that reaches both.
fn severed(draws: &mut Draws, nodes: u16) -> Vec<(u64, NetStrike)> {
    if nodes < 3 || !draws.chance(1, 4) {
        return Vec::new();
    }
    let at = draws.pick(&[0, 1]) * draws.below(STORM_MS);
    let (mut cut, mut strikes) = (Vec::new(), Vec::new());
    for _ in 0..draws.pick(&[1, 1, 2, 3]) {
        let one = draws.below(u64::from(nodes)) as u16;
        let other = (one + 1 + draws.below(u64::from(nodes) - 1) as u16) % nodes;
        let is_both_ways = draws.chance(2, 3);
        cut.push((one.min(other), one.max(other)));
        if !have_common_neighbours(nodes, &cut) {
            cut.pop();
            continue;
        }
        strikes.push((at, NetStrike::Sever(one, other)));
        if is_both_ways {
            strikes.push((at, NetStrike::Sever(other, one)));
        }
    }
    strikes
}

/// Whether a third node reaches both ends of each of these links.
fn have_common_neighbours(nodes: u16, cut: &[(u16, u16)]) -> bool {
    let meet = |one: u16, other: u16| !cut.contains(&(one.min(other), one.max(other)));
    let mut thirds = cut.iter().map(|(one, other)| {
        let is_third = |it: u16| it != *one && it != *other && meet(it, *one) && meet(it, *other);
        (0..nodes).any(is_third)
    });
    thirds.all(|has_third| has_third)
}

/// Damage at any time, at a rate drawn for each run.
fn rot(draws: &mut Draws, nodes: u16) -> Vec<(u64, NetStrike)> {
    let count = draws.pick(&[0, 0, 2, 20]);
    let strike = |_| {
        let at = draws.below(STORM_MS);
        let node = draws.below(u64::from(nodes)) as u16;
        (at, NetStrike::Damage(node, damage(draws)))
    };
    (0..count).map(strike).collect()
}

/// Some runs stall a supervisor, for less or for more than it may.
fn stopped(draws: &mut Draws, nodes: u16) -> Vec<(u64, NetStrike)> {
    if !draws.chance(1, 4) {
        return Vec::new();
    }
    let node = draws.below(u64::from(nodes)) as u16;
    let span = draws.between(100, 6_000);
    vec![(draws.below(STORM_MS), NetStrike::StopSupervisor(node, span))]
}

/// Some runs have up to half of the nodes isolated, and some of these released, in any order.
fn ordered(draws: &mut Draws, nodes: u16) -> Vec<(u64, NetStrike)> {
    if !draws.chance(1, 4) {
        return Vec::new();
    }
    let (first, targets) = (draws.below(u64::from(nodes)), draws.between(1, u64::from(nodes) / 2));
    let count = draws.between(1, 6);
    let order = |_| {
        let at = draws.below(STORM_MS);
        let by = draws.below(u64::from(nodes)) as u16;
        let node = ((first + draws.below(targets)) % u64::from(nodes)) as u16;
        let isolates = draws.chance(2, 3);
        (at, if isolates { NetStrike::Isolate(by, node) } else { NetStrike::Release(node) })
    };
    (0..count).map(order).collect()
}

/// In some runs operators hand over, one time after the other or at once.
fn handovers(draws: &mut Draws, nodes: u16) -> Vec<(u64, NetStrike)> {
    if !draws.chance(1, 8) {
        return Vec::new();
    }
    let mut at = draws.below(STORM_MS);
    let order = |_| {
        at = (at + draws.pick(&[0, 30, 400, 3_000])) % STORM_MS;
        let by = draws.below(u64::from(nodes)) as u16;
        (at, NetStrike::HandOver(by, draws.below(u64::from(nodes)) as u16))
    };
    (0..4).map(order).collect()
}

/// In some runs a node that was just suspected fails again, and another is suspected meanwhile.
fn relapses(draws: &mut Draws, nodes: u16) -> Vec<(u64, NetStrike)> {
    if !draws.chance(1, 3) {
        return Vec::new();
    }
    let mut strikes = Vec::new();
    for _ in 0..draws.between(1, 3) {
        let (at, span) = (draws.below(STORM_MS), draws.between(100, 400));
        let node = draws.below(u64::from(nodes)) as u16;
        strikes.push((at, NetStrike::StallComponent(node, span)));
        let again = match draws.below(4) {
            0 => NetStrike::Crash(node),
            1 => NetStrike::Hang(node),
            2 => NetStrike::Stall(node, draws.between(200, 900)),
            _ => NetStrike::StallComponent(node, draws.between(200, 900)),
        };
        strikes.push((at + span + draws.between(20, 250), again));
        let other = draws.below(u64::from(nodes)) as u16;
        if other != node {
            let near = at + span + draws.below(200);
            strikes.push((near, NetStrike::StallComponent(other, draws.between(200, 400))));
        }
    }
    strikes
}

fn damage(draws: &mut Draws) -> SnapshotDamage {
    let place = draws.below(u64::MAX);
    match draws.below(3) {
        0 => SnapshotDamage::Flip(place),
        1 => SnapshotDamage::Cut(place),
        _ => SnapshotDamage::Both(place),
    }
}

fn storm(draws: &mut Draws, orders: &mut Draws, nodes: u16) -> Vec<(u64, NetStrike)> {
    let count = draws.between(1, 9);
    let mut strikes: Vec<_> = (0..count)
        .map(|_| {
            let at = draws.below(STORM_MS);
            let node = draws.below(u64::from(nodes)) as u16;
            let other = draws.below(u64::from(nodes)) as u16;
            let span = draws.between(10, 3_000);
            let strike = match draws.below(19) {
                0..=2 => NetStrike::Crash(node),
                3 => NetStrike::Restart(node),
                4 => NetStrike::Hang(node),
                5 => NetStrike::End(node),
                6 => NetStrike::StopTimers(node),
                7 => NetStrike::Stall(node, span),
                8 => NetStrike::StallComponent(node, span),
                9 => NetStrike::Cut(node, other, span),
                10 => NetStrike::RefuseSpawns(node, span),
                11 => NetStrike::Deafen(node, span),
                12 => NetStrike::RefuseAllSpawns(3 * span),
                13 => NetStrike::CutSet(draws.below(u64::MAX) & draws.below(u64::MAX), span),
                14 | 15 => NetStrike::Lose(node, other),
                16 => NetStrike::CrashBetween(node, draws.below(12) as u32),
                _ => NetStrike::Partition(span),
            };
            (at, strike)
        })
        .collect();
    strikes.sort_by_key(|(at, _)| *at);
    let mut all = damages(draws, &strikes);
    all.extend(rot(draws, nodes));
    let severed = severed(draws, nodes);
    let is_whole = severed.is_empty();
    all.extend(severed);
    all.append(&mut strikes);
    all.extend(stopped(draws, nodes));
    // Without an isolated node, nodes with a severed link may not reach each other.
    if is_whole {
        all.extend(ordered(orders, nodes));
    }
    all.extend(relapses(orders, nodes));
    all
}
