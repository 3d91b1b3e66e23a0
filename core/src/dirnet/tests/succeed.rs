//! Succession: the manager is lost.

use super::net::{MS, Net, timing};
use crate::dirnet::*;
use crate::ids::Rank;
use std::vec::Vec;

/// (R + W) + j·MID + δ after the last heartbeat, which is up to S before the crash.
fn accepted_within(dead_candidates: u64) -> u64 {
    let t = timing();
    let span = t.receive.0 + t.window.0 + dead_candidates * t.candidate.0 + t.delay.0;
    (span + t.send.0) / MS + 2
}

/// The nodes crash at once. A single survivor gets a report from its transport, without which it
/// could not know.
fn crash_all(net: &mut Net, nodes: impl IntoIterator<Item = u16>) {
    let nodes: Vec<_> = nodes.into_iter().collect();
    let is_reported = nodes.len() + 1 == net.nodes.len();
    nodes.iter().for_each(|node| if is_reported { net.part(*node) } else { net.crash(*node) });
}

/// G-1: in the original no backup ever concluded that the manager was dead.
#[test]
pub(in crate::dirnet) fn g1_the_managers_death_is_noticed_and_it_is_followed() {
    let mut net = Net::settled(4);
    net.crash(0);
    let took = net.run_while(5_000, |net| net.manager() == Some(1));
    assert_eq!(net.manager(), Some(1));
    assert!(took <= accepted_within(0), "{took} ms");
    assert_eq!(net.rules(1, Verdict::TookOver), [Rule::Succession]);
    net.run_while(5_000, Net::is_whole);
    assert!(net.is_whole());
    assert_eq!(net.manager(), Some(1), "the old manager is a backup now");
}

/// G-9: the original only incremented the number; a dead successor left no manager and no timer.
#[test]
pub(in crate::dirnet) fn g9_dead_candidates_are_passed_over() {
    for dead in 1..=3 {
        let mut net = Net::settled(5);
        net.resets_work = false;
        crash_all(&mut net, 0..=dead);
        let took = net.run_while(9_000, |net| net.manager().is_some());
        assert_eq!(net.manager(), Some(dead + 1));
        assert!(took <= accepted_within(u64::from(dead)), "{dead} dead: {took} ms");
    }
}

#[test]
pub(in crate::dirnet) fn g9_a_successor_that_is_known_to_be_down_is_not_waited_for() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    net.crash(1);
    net.run(2_000);
    net.crash(0);
    let took = net.run_while(5_000, |net| net.manager() == Some(2));
    assert!(net.manager() == Some(2) && took <= accepted_within(0), "{took} ms");
}

/// G-8: all of the original's backups acted on one fault.
#[test]
pub(in crate::dirnet) fn g8_one_backup_succeeds_and_the_others_wait() {
    let mut net = Net::settled(6);
    net.crash(0);
    net.run(3_000);
    let claims = net.verdicts().into_iter().filter(|e| e.verdict == Verdict::TookOver);
    assert_eq!(claims.map(|e| e.observer).collect::<Vec<_>>(), [Rank(1)]);
}

/// G-8: a late or duplicate SPAN does not affect a component that was already recovered.
#[test]
pub(in crate::dirnet) fn g8_a_repeated_span_does_nothing() {
    let mut net = Net::settled(3);
    net.hang(2);
    net.run_while(5_000, Net::is_whole);
    let span = net.log.iter().find_map(|(_, _, output)| match output {
        Output::Send { frame, .. } if matches!(frame.message, Message::Span { .. }) => Some(*frame),
        _ => None,
    });
    let (frame, progress) = (span.unwrap(), net.component(2).progress());
    let now = crate::time::Instant(net.now);
    let task = net.nodes[2].task.as_mut().unwrap();
    assert_eq!(task.handle_message(now, Rank(0), &frame, progress), Err(Reject::OldLife));
    assert_eq!(task.poll_output(), None);
}

/// G-10: two managers in the original ignored each other.
#[test]
pub(in crate::dirnet) fn g10_two_halves_that_meet_again_have_one_manager() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    for (one, other) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
        net.cuts.extend([(one, other), (other, one)]);
    }
    net.run(3_000);
    assert_eq!(net.component(0).role(), Role::Manager);
    assert_eq!(net.component(2).role(), Role::Manager);
    assert!(net.component(0).term() != net.component(2).term());
    net.cuts.clear();
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole(), "the half of the lower term came back in later lives");
    assert_eq!(net.manager(), Some(2));
}

/// G-10: a rival's higher term turns a manager into a backup.
#[test]
pub(in crate::dirnet) fn g10_the_higher_term_wins_and_a_lower_one_is_told() {
    let mut net = Net::settled(3);
    let term = Term { epoch: 9, claimant: Rank(2) };
    let claim = Frame { term, ..net.frame(2, Message::Nmi) };
    net.deliver(0, claim).unwrap();
    assert_eq!((net.component(0).role(), net.component(0).term()), (Role::Backup, term));
    let old = net.frame(1, Message::Enia);
    assert_eq!(net.deliver(0, old), Err(Reject::OldTerm));
    assert!(
        matches!(net.log.last(), Some((_, 0, Output::Send { frame, .. })) if frame.term == term)
    );
}

/// G-10: the original's backups followed the sender of the last heartbeat, so they alternated
/// between two managers.
#[test]
pub(in crate::dirnet) fn g10_a_backup_does_not_go_back_to_a_lower_term() {
    let mut net = Net::settled(3);
    let old = net.frame(0, Message::Nmi);
    let term = Term { epoch: 9, claimant: Rank(2) };
    let claim = Frame { term, ..net.frame(2, Message::Nmi) };
    net.deliver(1, claim).unwrap();
    assert_eq!(net.component(1).term(), term);
    assert_eq!(net.deliver(1, old), Err(Reject::OldTerm));
    assert_eq!((net.component(1).role(), net.component(1).term()), (Role::Backup, term));
    let reported = net.log.iter().any(|(_, at, output)| match output {
        Output::Send { to, frame, .. } => {
            *at == 1 && to.contains(Rank(0)) && (frame.term, frame.message) == (term, Message::Nmi)
        }
        _ => false,
    });
    assert!(reported, "a node that is behind learns of it");
}

/// G-10: node 0 was removed and starts again; it hears one member ask but no answer, its own
/// request is not heard, and it takes its static role in a term above all others. Then it is heard.
/// The others refuse it, and their manager claims a higher term.
#[test]
pub(in crate::dirnet) fn g10_a_removed_nodes_claim_is_refused_until_it_is_admitted() {
    let mut net = Net::settled(4);
    net.cuts.extend([(1, 0), (2, 0), (3, 0)]);
    net.lost.push("WITM");
    net.nodes[0].kept = Some(Term { epoch: 7, claimant: Rank(0) });
    net.crash(0);
    net.run_while(9_000, |net| net.nodes[0].component.is_some());
    let asks = net.frame(3, Message::Witm);
    assert_eq!(net.deliver(0, asks), Err(Reject::Joining));
    let reigns =
        |net: &Net| net.nodes[0].component.as_ref().is_some_and(|c| c.role() == Role::Manager);
    net.run_while(9_000, reigns);
    let claimed = net.component(0).term();
    assert!(reigns(&net) && claimed.epoch == 8, "{claimed}");
    net.run(3_000);
    for node in 1..4 {
        assert_eq!(net.component(node).term().claimant, Rank(1), "at node {node}");
        assert!(net.component(node).rejects().of(Reject::RemovedClaimant) > 0, "at node {node}");
        assert!(net.rules(node, Verdict::NodeDown).is_empty());
    }
    assert!(net.component(1).term() > claimed);
    net.cuts.clear();
    net.lost.clear();
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole() && net.manager() == Some(1));
}

/// G-15: after adoption the one watch is on the new manager: its death is noticed too.
#[test]
pub(in crate::dirnet) fn g15_the_watch_follows_the_manager() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    net.crash(0);
    net.run_while(5_000, |net| net.manager() == Some(1));
    net.run(100);
    net.crash(1);
    net.run_while(5_000, |net| net.manager() == Some(2));
    assert_eq!(net.manager(), Some(2));
}

/// G-15: a manager whose term was relayed is watched too; the original renewed a timer that was
/// never declared.
#[test]
pub(in crate::dirnet) fn g15_a_manager_by_hearsay_is_watched() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    net.crash(3);
    let term = Term { epoch: 9, claimant: Rank(3) };
    let hearsay = Frame { term, ..net.frame(1, Message::Enia) };
    net.deliver(2, hearsay).unwrap();
    assert_eq!((net.component(2).role(), net.component(2).term()), (Role::Backup, term));
    net.run_while(2_000, |net| net.component(2).suspects(Rank(3)));
    assert!(net.component(2).suspects(Rank(3)));
}

/// G-17: in the original any node's alarm renewed the watch on the manager.
#[test]
pub(in crate::dirnet) fn g17_another_nodes_alarms_do_not_mask_the_manager() {
    let mut net = Net::settled(4);
    net.crash(0);
    net.hang(3);
    let took = net.run_while(5_000, |net| net.component(1).role() == Role::Manager);
    assert!(took <= accepted_within(0), "{took} ms");
}

/// G-22: the original's winner restarted, read its old role again and became a backup.
#[test]
pub(in crate::dirnet) fn g22_the_winner_is_manager_without_a_restart() {
    let mut net = Net::settled(3);
    let incarnation = net.component(1).incarnation();
    net.crash(0);
    net.run_while(5_000, |net| net.component(1).role() == Role::Manager);
    assert_eq!(
        (net.component(1).role(), net.component(1).incarnation()),
        (Role::Manager, incarnation)
    );
}

/// G-28: the original allowed agents to become manager.
#[test]
pub(in crate::dirnet) fn g28_an_agent_never_succeeds() {
    let mut net = Net::new(4);
    net.parts[1] = Part::Agent;
    net.boot_all();
    net.run(1_000);
    net.crash(0);
    net.run_while(5_000, |net| net.manager().is_some());
    assert_eq!(net.manager(), Some(2));
    let usurper = Term { epoch: 50, claimant: Rank(1) };
    let claim = Frame { term: usurper, ..net.frame(1, Message::Nmi) };
    assert_eq!(net.deliver(3, claim), Err(Reject::BadTerm));
}

/// Only the manager's component dies: another node becomes manager, and the node stays a member.
#[test]
pub(in crate::dirnet) fn a_managers_component_is_cloned_and_comes_back_as_a_backup() {
    let mut net = Net::settled(3);
    net.hang(0);
    net.run_while(5_000, Net::is_whole);
    assert!(net.is_whole());
    assert_eq!(net.manager(), Some(1));
    assert_eq!((net.rules(0, Verdict::AgentDown).len(), net.resets().len()), (1, 0));
}

/// All nodes but one are dead: it becomes manager, resets no node, and admits them again.
#[test]
pub(in crate::dirnet) fn the_last_one_is_manager() {
    let mut net = Net::settled(4);
    crash_all(&mut net, [0, 1, 3]);
    net.run(5_000);
    assert_eq!(net.manager(), Some(2));
    assert_eq!(net.rules(2, Verdict::TookOver), [Rule::LastAlive]);
    for node in [0, 1, 3] {
        net.boot(node);
    }
    net.run(5_000);
    assert!(net.is_whole());
    assert_eq!(net.manager(), Some(2));
}

/// The only component left hangs: its own task recovers it.
#[test]
pub(in crate::dirnet) fn the_last_component_is_cloned_by_its_own_task() {
    let mut net = Net::settled(2);
    net.resets_work = false;
    net.crash(1);
    net.run(2_000);
    net.hang(0);
    net.run(10_000);
    assert_eq!(net.component(0).role(), Role::Manager);
    assert!(net.component(0).incarnation().generation >= 1);
}

/// A backup's clone has heard only from the manager, which then dies; nodes 2 and 3 are members
/// from which it has not heard.
fn ignorant_successor() -> Net {
    let mut net = Net::settled(4);
    net.lost.extend(["REPLY_DB", "NIUA"]);
    for other in [2, 3] {
        net.cuts.extend([(1, other), (other, 1)]);
    }
    net.hang(1);
    net.forget_saved(1);
    let is_backup = |net: &Net| {
        let clone =
            net.nodes[1].component.as_ref().filter(|clone| clone.incarnation().generation == 1);
        clone.is_some_and(|clone| clone.role() == Role::Backup)
    };
    net.run_while(2_000, is_backup);
    assert!(is_backup(&net));
    assert!(!net.component(1).database().standing(Rank(2)).is_known());
    net.crash(0);
    net
}

/// Found by a storm of kills: a component died together with the manager that knew of it, and the
/// next manager refused the alarms of a node from which it had never heard.
#[test]
pub(in crate::dirnet) fn a_component_that_the_new_manager_never_met_is_cloned() {
    let mut net = ignorant_successor();
    net.hang(2);
    net.cuts.remove(&(2, 1));
    net.cuts.remove(&(1, 2));
    let is_cloned = |net: &Net| !net.rules(2, Verdict::AgentDown).is_empty();
    let took = net.run_while(5_000, is_cloned);
    assert!(took <= accepted_within(0) + timing().receive.0 / MS, "{took} ms");
    net.cuts.clear();
    net.lost.clear();
    net.run_while(5_000, Net::is_whole);
    assert!(net.is_whole());
}

/// The same for a whole node that died together with the manager: it is known only through others,
/// and is watched nevertheless.
#[test]
pub(in crate::dirnet) fn a_node_that_the_new_manager_knows_by_hearsay_is_watched() {
    let mut net = ignorant_successor();
    net.crash(2);
    net.cuts.clear();
    net.lost.clear();
    net.run_while(5_000, |net| !net.rules(2, Verdict::NodeDown).is_empty());
    assert_eq!(net.rules(2, Verdict::NodeDown), [Rule::Silence]);
    net.run_while(30_000, Net::is_whole);
    assert!(net.is_whole());
}

/// after j dead candidates a manager is accepted within (R+W) + j·MID + δ, wherever in their
/// periods the manager and its candidates crash.
#[test]
pub(in crate::dirnet) fn x7_a_manager_is_accepted_in_time() {
    let t = timing();
    for (count, dead) in [(2, 0), (3, 0), (3, 1), (4, 0), (4, 1)] {
        let candidates = t.candidate.0 * u64::from(dead);
        let limit = t.receive.0 + t.window.0 + candidates + t.delay.0;
        for phase in 0..t.send.0 / MS {
            let mut net = Net::settled(count);
            net.run(phase);
            let began = net.now;
            crash_all(&mut net, 0..=dead);
            while net.manager() != Some(dead + 1) {
                net.run(1);
                let took = net.now - began;
                assert!(took <= limit, "{count} nodes, {dead} candidates, {phase} ms: {took} ns");
            }
            assert!(net.now - began >= t.window.0, "sooner than any verdict");
        }
    }
}
