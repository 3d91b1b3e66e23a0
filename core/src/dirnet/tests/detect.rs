//! Suspicion, verdict, recovery: what the manager does about its backups.

use super::net::{MS, Net, Part4, timing};
use super::script::outcome;
use crate::dirnet::*;
use crate::ids::Rank;
use crate::time::{Duration, Instant};
use std::vec::Vec;

/// R + W, with a period and a few milliseconds for messages.
fn verdict_within() -> u64 {
    let t = timing();
    (t.receive.0 + t.window.0 + t.send.0) / MS + 5
}

#[test]
pub(in crate::dirnet) fn everybody_started_at_once_agrees() {
    for count in 1..=8 {
        let mut net = Net::new(count);
        net.boot_all();
        let took = net.run_while(2_000, Net::is_whole);
        assert!(net.is_whole(), "{count} nodes after {took} ms");
        assert_eq!(net.manager(), Some(0));
    }
}

/// Each backup costs two heartbeats per period, and there is no other traffic (`SPEC.md`, Cost).
#[test]
pub(in crate::dirnet) fn a_quiet_cluster_sends_heartbeats_only() {
    let mut net = Net::settled(7);
    net.run(10 * timing().send.0 / MS);
    assert_eq!(net.sent.keys().collect::<Vec<_>>(), [&"BEAT"]);
    assert!((114..=132).contains(&net.sent["BEAT"]), "{:?}", net.sent);
}

#[test]
pub(in crate::dirnet) fn a_crashed_node_is_removed_fenced_reset_and_rejoins() {
    let mut net = Net::settled(4);
    net.crash(2);
    let took = net.run_while(2_000, |net| !net.rules(2, Verdict::NodeDown).is_empty());
    assert!(took <= verdict_within(), "{took} ms");
    assert_eq!(net.rules(2, Verdict::NodeDown), [Rule::Silence]);
    let messages: usize = net.sent.values().sum::<usize>() - net.sent["BEAT"];
    net.run_while(2_000, |net| !net.resets().is_empty());
    let cost: usize = net.sent.values().sum::<usize>() - net.sent["BEAT"];
    // Each of the n - 2 others is asked, probes twice, testifies, is notified and fences.
    assert!(messages <= cost && cost <= 6 * 2, "a verdict costs 6(n - 2): {:?}", net.sent);
    net.run_while(5_000, Net::is_whole);
    assert!(net.is_whole());
    assert_eq!(net.rules(2, Verdict::Admitted), [Rule::Joined]);
}

#[test]
pub(in crate::dirnet) fn a_hung_component_is_told_from_a_dead_node_and_cloned() {
    let mut net = Net::settled(4);
    net.hang(3);
    net.run_while(5_000, |net| net.is_whole());
    assert!(net.is_whole());
    assert!(net.rules(3, Verdict::NodeDown).is_empty());
    assert_eq!(net.rules(3, Verdict::AgentDown).len(), 1);
    assert_eq!(alarm_of_the_first_verdict(&net), Some(Alarm::NoProgress));
    assert_eq!(net.component(3).incarnation().generation, 1);
    assert!(net.resets().is_empty());
}

/// The alarm in the evidence of the first verdict that a component is down.
fn alarm_of_the_first_verdict(net: &Net) -> Option<Alarm> {
    let is_down = |e: &&Explanation| e.verdict == Verdict::AgentDown;
    net.verdicts().iter().find(is_down).and_then(|e| e.evidence.alarm)
}

/// G-2: the original had one TEIF timer for all suspects; here one suspect's return leaves the
/// other's window open.
#[test]
pub(in crate::dirnet) fn g2_one_suspect_that_returns_does_not_save_another() {
    let mut net = Net::settled(4);
    net.crash(1);
    net.cuts.insert((2, 0));
    net.run_while(1_000, |net| net.component(0).suspects(Rank(2)));
    assert!(net.component(0).suspects(Rank(1)));
    net.cuts.clear();
    net.run(verdict_within());
    assert_eq!(net.rules(1, Verdict::NodeDown), [Rule::Silence]);
    assert!(net.rules(2, Verdict::NodeDown).is_empty());
}

/// G-3: a suspicion that ended leaves nothing behind; the next has its full window and no alarm of
/// the one before.
#[test]
pub(in crate::dirnet) fn g3_the_second_suspicion_begins_anew() {
    let mut net = Net::settled(3);
    let incarnation = net.component(1).incarnation();
    net.cuts.insert((1, 0));
    net.run_while(1_000, |net| net.component(0).suspects(Rank(1)));
    net.run(100);
    net.cuts.clear();
    let alarm = Message::Teif { generation: incarnation.generation, alarm: Alarm::NoProgress };
    let frame = Frame { seat: Seat::ImAliveTask, ..net.frame(1, alarm) };
    net.run(timing().send.0 / MS);
    assert!(!net.component(0).suspects(Rank(1)));
    net.deliver(0, frame).unwrap();
    net.run(100);
    net.crash(1);
    net.run_while(1_000, |net| net.component(0).suspects(Rank(1)));
    let window = net.run_while(1_000, |net| !net.rules(1, Verdict::NodeDown).is_empty());
    assert!(window + 2 >= timing().window.0 / MS, "{window} ms");
    assert!(
        net.rules(1, Verdict::AgentDown).is_empty(),
        "the alarm was before a sign of incarnation"
    );
}

/// G-5: the original answered an early alarm with ENIA, forgot it, and reset the node.
#[test]
pub(in crate::dirnet) fn g5_an_alarm_before_the_suspicion_is_used_by_it() {
    let mut net = Net::settled(3);
    net.hang(1);
    net.run_while(1_000, |net| net.sent.contains_key("TEIF"));
    net.lost.push("TEIF");
    net.lost.push("TESTIMONY");
    net.run(verdict_within());
    assert_eq!(net.rules(1, Verdict::AgentDown), [Rule::AlarmBefore]);
}

/// G-7: the original's task sent its alarm once and slept.
#[test]
pub(in crate::dirnet) fn g7_an_alarm_that_is_lost_is_repeated() {
    let mut net = Net::settled(3);
    net.lost.push("TEIF");
    net.lost.push("TESTIMONY");
    net.hang(1);
    net.run_while(1_000, |net| net.component(0).suspects(Rank(1)));
    assert!(net.sent["TEIF"] >= 2);
    net.lost.retain(|name| *name != "TEIF");
    net.run(verdict_within());
    assert_eq!(net.rules(1, Verdict::AgentDown), [Rule::AlarmInWindow]);
}

/// G-11, X-1: without a second observer's testimony no node is removed, let alone reset.
#[test]
pub(in crate::dirnet) fn g11_a_reset_needs_a_second_observer() {
    let mut net = Net::settled(4);
    for node in [1, 2, 3] {
        net.crash(node);
    }
    net.run(5_000);
    for node in [1, 2, 3] {
        assert_eq!(net.reported(News::Uncorroborated(Rank(node))), 1);
    }
    assert_eq!(net.verdicts(), []);
    assert!(net.resets().is_empty());
    (1..4).for_each(|node| net.boot(node));
    net.run_while(5_000, Net::is_whole);
    assert!(net.is_whole() && net.manager() == Some(0));
}

/// G-11: a manager that is cut off finds all others silent, and does not harm them; they have
/// second observers, and continue without it.
#[test]
pub(in crate::dirnet) fn g11_a_manager_that_is_cut_off_removes_nobody() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    net.cut_off(0);
    net.run(5_000);
    assert_eq!(net.component(0).role(), Role::Manager);
    assert_eq!(net.component(1).role(), Role::Manager);
    let removed: Vec<_> = net.verdicts().into_iter().filter(is_removal).map(|e| e.node).collect();
    assert_eq!(removed, [Rank(0)]);
    net.cuts.clear();
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole() && net.manager() == Some(1));
    assert!(
        (1..4).all(|node| net.component(node).incarnation().boot.0 == 1),
        "no other node started again"
    );
}

/// G-11: if `min_alive` is a majority, no half of a partition removes any node. A node counts as
/// alive if the manager that decides has heard from it, not the manager before.
#[test]
pub(in crate::dirnet) fn g11_halves_that_are_too_small_remove_nobody() {
    for half in [[0, 1], [0, 2], [0, 3]] {
        let mut net = Net::settled_with(4, 3);
        let is_in = |node: u16| half.contains(&node);
        let pairs = (0..4).flat_map(|one| (0..4).map(move |other| (one, other)));
        net.cuts.extend(pairs.filter(|(one, other)| is_in(*one) != is_in(*other)));
        net.run(5_000);
        assert!(!net.verdicts().iter().any(is_removal), "{half:?}: {:?}", net.verdicts());
        net.cuts.clear();
        net.run_while(9_000, Net::is_whole);
        assert!(net.is_whole(), "{half:?}");
    }
}

/// G-11: in a partition of two and five only the five are a majority, and the manager is one of the
/// two.
#[test]
pub(in crate::dirnet) fn g11_a_minority_with_the_manager_removes_no_node_of_the_majority() {
    let mut net = Net::settled_with(7, 4);
    let pairs = (0..2).flat_map(|one| (2..7).flat_map(move |other| [(one, other), (other, one)]));
    net.cuts.extend(pairs);
    let removed = |net: &Net| net.verdicts().into_iter().filter(is_removal).map(|it| it.node);
    net.run_while(9_000, |net| (0..2).all(|node| removed(net).any(|it| it == Rank(node))));
    assert!(removed(&net).all(|node| node.0 < 2), "{:?}", net.verdicts());
    net.cuts.clear();
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole());
    assert!(
        (2..7).all(|node| net.component(node).incarnation().boot.0 == 1),
        "a memory was replaced"
    );
}

fn is_removal(verdict: &Explanation) -> bool {
    matches!(verdict.verdict, Verdict::NodeDown | Verdict::Isolated)
}

/// A manager that claims a term above that of a joiner completes what it has begun.
#[test]
pub(in crate::dirnet) fn g33_a_reset_survives_the_managers_next_term() {
    let mut net = Net::settled(4);
    net.lost.push("FENCED");
    net.crash(3);
    net.run_while(3_000, |net| !net.rules(3, Verdict::NodeDown).is_empty());
    let term = Term { epoch: 9, claimant: Rank(2) };
    let asks = Frame { term, ..net.frame(2, Message::Witm) };
    net.deliver(0, asks).unwrap();
    assert!(net.component(0).term() > term && net.resets().is_empty());
    net.lost.clear();
    net.run_while(3_000, |net| !net.resets().is_empty());
    assert_eq!(net.resets().len(), 1);
}

#[test]
pub(in crate::dirnet) fn g11_a_node_is_fenced_everywhere_before_it_is_reset() {
    let mut net = Net::settled(4);
    net.lost.push("FENCED");
    net.crash(3);
    net.run(verdict_within() + 1_000);
    assert_eq!(net.rules(3, Verdict::NodeDown), [Rule::Silence]);
    assert!(net.resets().is_empty());
    net.lost.clear();
    net.run(1_000);
    assert_eq!(net.resets().len(), 1);
}

/// Found by the swarm: a manager that had lost the standings of the others learned of one of them
/// after a verdict, from a copy of the database, and did not wait for its fence. If that node is
/// dead, it is waited for until it is removed itself.
#[test]
pub(in crate::dirnet) fn g11_a_member_that_is_known_by_hearsay_fences_before_the_reset() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    net.lost.extend(["REPLY_DB", "FENCED"]);
    net.crash(0);
    net.forget_saved(0);
    net.crash(2);
    net.boot(0);
    net.run_while(1_000, |net| net.component(0).role() == Role::Manager);
    net.run(50);
    net.crash(3);
    net.run_while(1_000, |net| !net.rules(3, Verdict::NodeDown).is_empty());
    assert_eq!(net.rules(3, Verdict::NodeDown), [Rule::Silence]);
    let is_met = |net: &Net| net.component(0).database().standing(Rank(2)).is_up();
    assert!(!is_met(&net));
    net.lost.retain(|name| *name != "REPLY_DB");
    net.run_while(1_000, is_met);
    assert!(is_met(&net));
    net.lost.clear();
    let is_reset = |net: &Net| net.resets().iter().any(|(_, node)| *node == Rank(3));
    net.run_while(3_000, is_reset);
    assert!(is_reset(&net));
    assert_eq!(net.rules(2, Verdict::NodeDown), [Rule::Silence], "it was removed before");
}

/// A node does not come back from its reset. Meanwhile node 2 restarts and is not notified that the
/// node was removed: it has fenced no node.
#[test]
pub(in crate::dirnet) fn g11_a_member_that_came_after_a_reset_fences_before_the_next() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    net.crash(3);
    net.run_while(3_000, |net| net.resets().len() == 1);
    net.lost.extend(["REPLY_DB", "ANID"]);
    net.crash(2);
    net.forget_saved(2);
    net.boot(2);
    net.run_while(2_000, |net| {
        net.component(0).database().standing(Rank(2)).incarnation.boot.0 == 2
    });
    net.run(2 * timing().reboot.0 / MS);
    assert!(!net.component(2).database().standing(Rank(3)).is_known());
    assert_eq!(net.resets().len(), 1, "it waits for the fence of node 2");
    net.lost.clear();
    net.run_while(1_000, |net| net.resets().len() == 2);
    assert_eq!(net.resets().len(), 2);
    assert_eq!(net.component(2).database().standing(Rank(3)).level, Level::Down);
}

#[test]
pub(in crate::dirnet) fn g11_too_few_remove_nobody() {
    let mut net = Net::settled_with(3, 2);
    net.crash(1);
    net.crash(2);
    net.run(2_000);
    assert!(net.reported(News::TooFew) > 0);
    assert!(net.verdicts().iter().all(|e| e.verdict != Verdict::NodeDown));
}

/// a node that a second observer reaches is not removed, however deaf the first observer is.
#[test]
pub(in crate::dirnet) fn x1_a_one_way_partition_removes_nobody() {
    let mut net = Net::settled(4);
    net.cuts.insert((2, 0));
    net.run(5_000);
    assert_eq!(net.reported(News::OneWay(Rank(2))), 1);
    assert!(net.verdicts().is_empty(), "{:?}", net.verdicts());
    net.cuts.clear();
    net.run(500);
    assert!(net.is_whole() && net.reported(News::Restored(Rank(2))) == 1);
}

/// G-12, G-14: the original never reported that a backup was dead, and no node handled the report.
#[test]
pub(in crate::dirnet) fn g12_g14_every_removal_is_known_and_fenced_everywhere() {
    let mut net = Net::settled(5);
    net.resets_work = false;
    net.crash(4);
    net.run(1_000);
    for node in 0..4 {
        let standing = net.component(node).database().standing(Rank(4));
        assert_eq!(standing.level, Level::Down, "at node {node}");
    }
    let fences = net.log.iter().filter(|(_, _, o)| matches!(o, Output::Fence { .. })).count();
    assert_eq!(fences, 4);
}

/// G-16: the original renewed a timer on database traffic, but kept the suspicion.
#[test]
pub(in crate::dirnet) fn g16_any_current_frame_ends_a_suspicion() {
    let mut net = Net::settled(3);
    // Only the change arrives from node 1, which suspects the manager itself and asks the others in
    // vain.
    net.lost.extend(["BEAT", "WITNESS", "TESTIMONY", "PROBE", "ALIVE"]);
    net.run_while(1_000, |net| net.component(0).suspects(Rank(1)));
    let change = Change::TaskStatus { task: 0, status: 1 };
    net.input(1, |component, now| component.handle_change(now, change)).unwrap();
    net.run(5);
    assert!(!net.component(0).suspects(Rank(1)));
}

/// G-18: the original lost track of a clone that never started.
#[test]
pub(in crate::dirnet) fn g18_a_clone_that_never_joins_is_a_node_that_is_down() {
    let mut net = Net::settled(3);
    net.lost.push("WITM");
    net.lost.push("SPAN");
    net.hang(2);
    net.run_while(1_000, |net| !net.rules(2, Verdict::AgentDown).is_empty());
    assert!(net.rules(2, Verdict::NodeDown).is_empty());
    net.run(timing().clone.0 / MS + verdict_within());
    assert_eq!(net.rules(2, Verdict::NodeDown), [Rule::NeverJoined]);
    assert_eq!(net.resets().len(), 1);
}

/// Found by a storm of kills: a clone that ended before the manager had heard from it was awaited
/// for the full clone deadline, and its node was then removed.
#[test]
fn g18_a_clone_that_is_reported_before_it_joins_is_cloned_at_once() {
    let mut net = Net::settled(3);
    net.lost.push("SPAN");
    let ended = Message::Teif { generation: 1, alarm: Alarm::Ended };
    let ended = Frame { seat: Seat::ImAliveTask, ..net.frame(2, ended) };
    net.hang(2);
    net.run_while(1_000, |net| !net.rules(2, Verdict::AgentDown).is_empty());
    net.deliver(0, ended).unwrap();
    assert_eq!(net.rules(2, Verdict::AgentDown).len(), 2);
    assert!(net.rules(2, Verdict::NodeDown).is_empty());
}

/// G-6: the original had no agent recovery that could fail.
#[test]
pub(in crate::dirnet) fn g6_a_spawn_that_fails_is_a_node_that_is_reset() {
    let mut net = Net::settled(3);
    net.nodes[2].cannot_spawn = true;
    net.hang(2);
    net.run_while(5_000, |net| !net.resets().is_empty());
    assert_eq!(net.rules(2, Verdict::NodeDown), [Rule::SpawnFailed]);
}

/// the tasks of both others report that no component can be started; no second observer is
/// left.
#[test]
pub(in crate::dirnet) fn x12_a_node_whose_task_asks_for_a_reset_needs_no_witness() {
    let mut net = Net::settled(3);
    for node in [1, 2] {
        net.nodes[usize::from(node)].cannot_spawn = true;
        net.hang(node);
    }
    net.run_while(5_000, |net| net.resets().len() == 2);
    for node in [1, 2] {
        net.nodes[usize::from(node)].cannot_spawn = false;
        assert_eq!(net.rules(node, Verdict::NodeDown), [Rule::SpawnFailed], "node {node}");
    }
    net.run_while(5_000, Net::is_whole);
    assert!(net.is_whole());
}

/// G-30: the original's alarm read the top of its list, so that simultaneous expiries reported one
/// node repeatedly.
#[test]
pub(in crate::dirnet) fn g30_nodes_that_die_together_are_each_removed() {
    let mut net = Net::settled(6);
    for node in [2, 3, 4] {
        net.crash(node);
    }
    net.run(verdict_within() + 3 * timing().window.0 / MS);
    for node in [2, 3, 4] {
        assert_eq!(net.rules(node, Verdict::NodeDown), [Rule::Silence], "node {node}");
    }
    net.run(5_000);
    assert!(net.is_whole());
}

/// G-31: a component whose timers are dead still answers; the original took any message as a
/// heartbeat.
#[test]
pub(in crate::dirnet) fn g31_a_component_with_dead_timers_is_replaced() {
    let mut net = Net::settled(3);
    net.nodes[1].has_dead_timers = true;
    net.run_while(5_000, |net| net.is_whole() && net.component(1).incarnation().generation == 1);
    assert_eq!(net.component(1).incarnation().generation, 1);
    assert_eq!(alarm_of_the_first_verdict(&net), Some(Alarm::TimersStopped));
}

/// Found by the swarm: the timers of the manager and of its only possible successor had stopped.
/// Each answered the alarms about the other, and the answers counted as heartbeats.
#[test]
pub(in crate::dirnet) fn g31_two_with_dead_timers_do_not_quiet_each_others_alarms() {
    let mut net = Net::new(3);
    net.parts[2] = Part::Agent;
    net.boot_all();
    net.run(1_000);
    for node in [0, 1] {
        net.nodes[node].has_dead_timers = true;
    }
    let are_replaced = |net: &Net| {
        let generation =
            |node: usize| net.nodes[node].component.as_ref().map(|it| it.incarnation().generation);
        [0, 1].map(generation) == [Some(1); 2]
    };
    net.run_while(10_000, are_replaced);
    assert!(are_replaced(&net));
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole());
}

/// G-33: the original's reset was empty.
#[test]
pub(in crate::dirnet) fn g33_a_reset_is_asked_for_once_and_by_life() {
    let mut net = Net::settled(3);
    net.resets_work = false;
    net.crash(1);
    net.run(2_000);
    assert_eq!(net.resets().iter().map(|(_, node)| *node).collect::<Vec<_>>(), [Rank(1)]);
}

/// X-3 and the promise of the profile: a stall of 160 ms, on either side, causes no removal.
#[test]
pub(in crate::dirnet) fn x3_stalls_of_160_ms_remove_nobody() {
    let mut net = Net::settled(5);
    for (round, node) in (0..40).zip([0, 1, 0, 2, 3, 4, 0].into_iter().cycle()) {
        net.stall(node, 160);
        net.run(37 + 13 * (round % 9));
    }
    net.run(1_000);
    let removed = |e: &Explanation| e.verdict == Verdict::NodeDown;
    assert!(!net.verdicts().iter().any(removed), "{:?}", net.verdicts());
    assert!(net.is_whole() && net.resets().is_empty());
}

#[test]
pub(in crate::dirnet) fn x3_an_observer_that_slept_gives_the_others_their_time() {
    let net = Net::settled(3);
    let mut observer = net.component(0).clone();
    let late = Instant(net.now + timing().receive.0 + timing().window.0 + 100 * MS);
    observer.handle_timeout(late);
    let outputs: Vec<_> = core::iter::from_fn(|| observer.poll_output()).collect();
    assert!(outputs.iter().any(|output| matches!(output, Output::Tell(News::Lagged(_)))));
    assert!(!observer.suspects(Rank(1)), "it has not listened");
}

/// three clones, then the node is reset, then the operator is notified.
#[test]
pub(in crate::dirnet) fn x6_a_component_that_keeps_dying_escalates_to_the_operator() {
    let mut net = Net::settled(3);
    for _ in 0..400 {
        if net.nodes[2].component.is_some() {
            net.hang(2);
        }
        net.run(100);
    }
    assert_eq!(net.reported(News::Isolated(Rank(2))), 1);
    assert_eq!(net.resets().len(), 3);
    let standing = net.component(0).database().standing(Rank(2));
    assert_eq!(standing.level, Level::Isolated);
}

/// G-27: each error of a task is acted on once; many within t escalate.
#[test]
pub(in crate::dirnet) fn g27_an_error_of_a_task_triggers_recovery_once() {
    let mut net = Net::settled(3);
    let unknown = Change::TaskStatus { task: 2, status: 0 };
    let refused = net.input(2, |component, now| component.handle_change(now, unknown));
    assert_eq!(refused, Err(Reject::NoSuchTask));
    let error = |at_us| Change::TaskError { task: 1, kind: 4, at_us, alpha: None };
    let restarts = |net: &Net| {
        let is_restart = |o: &Output| matches!(o, Output::Task { task: 1, .. });
        net.log.iter().filter(|(_, at, o)| *at == 2 && is_restart(o)).count()
    };
    for (at, expected) in (1..=3).zip(1..) {
        net.input(2, |component, now| component.handle_change(now, error(at))).unwrap();
        net.run(10);
        assert_eq!(restarts(&net), expected);
    }
    net.input(2, |component, now| component.handle_change(now, error(4))).unwrap();
    net.run(10);
    assert_eq!(net.rules(2, Verdict::AgentDown), [Rule::TaskErrors]);
}

/// Too many errors of a task of the manager's own node: it orders a clone of itself. What it
/// awaited of that came due and stayed so, and its loop spun.
#[test]
fn g27_a_manager_that_orders_its_own_clone_awaits_nothing_of_itself() {
    let mut net = Net::settled(3);
    for at_us in 1..=4 {
        let error = Change::TaskError { task: 1, kind: 4, at_us, alpha: None };
        net.input(0, |component, now| component.handle_change(now, error)).unwrap();
    }
    assert_eq!(net.rules(0, Verdict::AgentDown), [Rule::TaskErrors]);
    net.input(0, |component, now| {
        let mut due = now;
        for _ in 0..5_000 {
            due = component.poll_timeout().map_or(due, |next| next.max(due));
            component.handle_timeout(due);
            while component.poll_output().is_some() {}
        }
        assert!(due > now.after(Duration(2 * timing().clone.0)), "the time stands at {due:?}");
    });
}

/// an isolated node is fenced, not heard, and out until it is released and comes back in a
/// later incarnation.
#[test]
pub(in crate::dirnet) fn x5_an_isolated_node_stays_out_until_it_is_released() {
    let mut net = Net::settled(3);
    net.input(0, |component, now| component.isolate(now, Rank(1))).unwrap();
    net.run(3_000);
    for node in [0, 2] {
        let standing = net.component(node).database().standing(Rank(1));
        assert_eq!(standing.level, Level::Isolated);
    }
    assert!(net.component(0).rejects().of(Reject::Isolated) > 0, "its later incarnation knocked");
    net.input(0, |component, now| component.release(now, Rank(1))).unwrap();
    net.boot(1);
    net.run(2_000);
    assert!(net.is_whole());
    let wrong = net.input(2, |component, now| component.isolate(now, Rank(1)));
    assert_eq!(wrong, Err(Reject::NotManager));
}

/// D-23: a cluster of two, in which no other member could pass the order on.
#[test]
fn d23_a_clone_is_ordered_of_the_task_at_once() {
    let mut net = Net::settled(2);
    net.hang(1);
    net.run_while(2_000, |net| !net.rules(1, Verdict::AgentDown).is_empty());
    assert_eq!(net.sent.get("SPAN"), Some(&1));
}

/// G-18: what is heard of the component that a clone replaces is no sign of the clone.
#[test]
fn g18_a_late_frame_does_not_end_the_wait_for_a_clone() {
    let mut net = Net::settled(3);
    net.spawn = 1_000 * MS;
    let late = net.frame(2, Message::Enia);
    net.hang(2);
    net.run_while(1_000, |net| !net.rules(2, Verdict::AgentDown).is_empty());
    assert_eq!(net.deliver(0, late), Ok(()));
    net.log.clear();
    net.run(800);
    assert_eq!(net.reported(News::Suspected(Rank(2))), 0);
}

/// G-12: a copy of the removal is enough; it waits neither for R nor for W.
#[test]
fn g12_a_manager_that_was_removed_is_succeeded_at_once() {
    let mut net = Net::settled(4);
    let (node, incarnation) = (Rank(0), net.component(0).incarnation());
    let removal = net.frame(2, Message::Anid { node, incarnation, level: Level::Down });
    assert_eq!(net.deliver(1, removal), Ok(()));
    assert_eq!(net.component(1).role(), Role::Manager);
}

/// Whatever is handled first after a pause, the deadlines of all others are extended.
#[test]
fn x3_any_input_shows_that_an_observer_slept() {
    let net = Net::settled(3);
    let inputs: [fn(&mut Part4, Instant); 3] = [
        |it, now| it.handle_gone(now, Rank(2)),
        Part4::handle_supervisor_hung,
        |it, now| it.send_vote(now, Rank(2), outcome()),
    ];
    for (number, input) in inputs.into_iter().enumerate() {
        let mut observer = net.component(0).clone();
        input(&mut observer, Instant(net.now + 1_000 * MS));
        let mut outputs = core::iter::from_fn(|| observer.poll_output());
        assert!(outputs.any(|o| matches!(o, Output::Tell(News::Lagged(_)))), "input {number}");
    }
}

/// Node 2 waits for node 1, which is dead like the manager, and stands still until the turn of node
/// 1 would have ended.
#[test]
fn x3_a_backup_that_slept_gives_the_candidate_its_time() {
    let mut net = Net::settled(4);
    net.crash(0);
    net.crash(1);
    net.run(verdict_within() + 40);
    let mut backup = net.component(2).clone();
    backup.handle_timeout(Instant(net.now + timing().candidate.0));
    while backup.poll_output().is_some() {}
    assert_eq!(backup.role(), Role::Backup);
    net.run(timing().candidate.0 / MS);
    assert_eq!(net.component(2).role(), Role::Manager, "it did not sleep");
}
