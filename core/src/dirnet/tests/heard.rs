//! A manager knows whether it is heard, and a claim needs an answer.

use super::net::{MS, Net, Part4, timing};
use crate::dirnet::*;
use crate::ids::{Incarnation, Rank};
use crate::time::Instant;
use std::vec::Vec;

/// R + W, a new suspicion and a turn of each candidate.
fn decided_within(candidates: u64) -> u64 {
    let t = timing();
    (2 * t.verdict_after().0 + candidates * t.candidate.0 + 2 * t.send.0) / MS
}

/// Node 1 hears no other node, and all others hear it.
#[test]
pub(in crate::dirnet) fn x9_a_deaf_backup_deposes_no_manager() {
    let mut net = Net::settled(3);
    let term = net.component(0).term();
    net.cuts.extend([(0, 1), (2, 1)]);
    net.run(5_000);
    assert_eq!((net.manager(), net.component(0).term()), (Some(0), term));
    assert_eq!((net.verdicts(), net.reported(News::Unheard)), (Vec::new(), 1));
    net.cuts.clear();
    net.run(1_000);
    assert!(net.is_whole() && net.component(1).is_heard(Instant(net.now)));
}

/// Found by the swarm: node 1 starts alone, and its link to the manager stays cut once it reaches
/// node 2. It knew neither, so it asked none, and node 2 had no reason to send it anything.
#[test]
pub(in crate::dirnet) fn x8_a_backup_that_has_met_no_node_asks_all() {
    let mut net = Net::new(3);
    net.min_alive = 2;
    net.cut_off(1);
    net.boot_all();
    net.run(1_000);
    assert_eq!(net.component(1).role(), Role::Backup);
    net.cuts = [(0, 1), (1, 0)].into_iter().collect();
    net.run(3_000);
    assert!(net.component(0).database().standing(Rank(1)).is_up());
}

/// The manager hears no other node, and all others hear it: it stops deciding, and another takes
/// over.
#[test]
pub(in crate::dirnet) fn x9_a_deaf_manager_is_followed() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    net.cuts.extend([(1, 0), (2, 0), (3, 0)]);
    net.run_while(5_000, |net| !net.component(0).is_heard(Instant(net.now)));
    assert!(net.now / MS < 1_000 + decided_within(0));
    let follows = |net: &Net| (1..4).all(|node| net.component(node).term().claimant == Rank(1));
    let took = net.run_while(5_000, follows);
    assert!(follows(&net) && took <= decided_within(0), "{took} ms");
    assert!(net.log.iter().any(|(_, at, o)| (*at, *o) == (0, Output::Tell(News::Unheard))));
    net.cuts.clear();
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole() && net.manager() == Some(1));
}

/// The manager hears all others, of which node 2 alone hears it: of four it needs two.
#[test]
pub(in crate::dirnet) fn x9_a_manager_that_too_few_members_hear_is_followed() {
    let mut net = Net::settled_with(4, 3);
    net.cuts.extend([(0, 1), (0, 3)]);
    net.run(5_000);
    assert_eq!((net.manager(), net.rules(0, Verdict::NodeDown).len()), (Some(2), 0));
    net.crash(3);
    net.run_while(5_000, |net| !net.rules(3, Verdict::NodeDown).is_empty());
    assert_eq!(net.rules(3, Verdict::NodeDown), [Rule::Silence]);
}

/// Its first two candidates do not hear it and meet it through the last one, which passes over
/// both; `weft bench detect` found that it then counted too few members alive.
#[test]
pub(in crate::dirnet) fn x9_a_manager_that_only_the_last_candidate_hears_is_followed() {
    for both_ways in [false, true] {
        let mut net = Net::settled_with(4, 3);
        net.cuts.extend([(0, 1), (0, 2)]);
        if both_ways {
            net.cuts.extend([(1, 0), (2, 0)]);
        }
        net.run(5_000);
        assert_eq!((net.manager(), net.rules(0, Verdict::NodeDown).len()), (Some(3), 0));
    }
}

/// The manager resets node 3 for the third time, is cut off before it hears of its return, and
/// waits for it in vain.
#[test]
pub(in crate::dirnet) fn x9_a_manager_that_is_not_heard_isolates_no_node() {
    let mut net = Net::settled(4);
    for resets in 1..=3 {
        net.run(2_000);
        net.crash(3);
        net.run_while(5_000, |net| net.resets().len() == resets);
    }
    net.resets_work = false;
    net.cut_off(0);
    net.run(30_000);
    assert!(net.component(1).database().standing(Rank(3)).is_up());
    assert_eq!(net.rules(3, Verdict::Isolated), []);
    net.cuts.clear();
    net.run(30_000);
    let stands = |node: u16| net.component(node).database().standing(Rank(3));
    assert!((0..3).all(|node| stands(node).is_up()), "{:?}", stands(0));
}

/// Nodes 1 and 2 are dead, their first resets fail, and no echo is left: the manager repeats the
/// resets that it has decided, orders the clone that a task asks for, and admits whichever node
/// echoes.
#[test]
pub(in crate::dirnet) fn x9_a_lone_survivor_brings_the_others_back() {
    let mut net = Net::settled(3);
    net.resets_work = false;
    net.crash(2);
    net.run_while(5_000, |net| !net.rules(2, Verdict::NodeDown).is_empty());
    net.lost.push("TEIF");
    net.hang(1);
    net.run_while(5_000, |net| !net.component(0).is_heard(Instant(net.now)));
    net.lost.clear();
    net.resets_work = true;
    net.run(30_000);
    assert!(net.is_whole() && net.component(1).incarnation().generation == 1);
}

/// The deaf manager is removed and restarts, still deaf: each of its incarnations used to claim a
/// term.
#[test]
pub(in crate::dirnet) fn x9_a_node_that_starts_and_hears_none_claims_no_term() {
    let mut net = Net::settled(4);
    net.cuts.extend([(1, 0), (2, 0), (3, 0)]);
    net.run(3_000);
    let removals = net.rules(0, Verdict::NodeDown).len();
    assert!(removals > 0 && net.component(0).incarnation().boot.0 > 1);
    let term = net.component(1).term();
    assert_eq!((net.component(0).role(), term.claimant), (Role::Joining, Rank(1)));
    net.run(5_000);
    assert_eq!(net.component(1).term(), term);
    net.cuts.clear();
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole() && net.component(1).term() == term);
}

/// The manager hears node 1, which does not hear it, and no node may succeed it; the task of node 2
/// asks for a reset. That needs two of three.
#[test]
pub(in crate::dirnet) fn x9_a_member_that_does_not_hear_the_manager_does_not_count() {
    let mut net = Net::new(3);
    (net.parts[1], net.parts[2]) = (Part::Agent, Part::Agent);
    net.min_alive = 2;
    net.boot_all();
    net.run(1_000);
    net.cuts.insert((0, 1));
    net.run(1_000);
    net.nodes[2].cannot_spawn = true;
    net.hang(2);
    net.run(5_000);
    assert!(net.rules(2, Verdict::NodeDown).is_empty(), "{:?}", net.verdicts());
    net.cuts.clear();
    net.run_while(5_000, |net| !net.rules(2, Verdict::NodeDown).is_empty());
    assert_eq!(net.rules(2, Verdict::NodeDown), [Rule::SpawnFailed]);
}

/// Node 1 is deaf; then node 2 dies.
#[test]
pub(in crate::dirnet) fn x9_a_node_that_dies_where_two_links_are_cut_one_way_is_removed() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    net.cuts.extend([(0, 1), (2, 1), (3, 1)]);
    net.run(1_000);
    net.crash(2);
    net.run_while(5_000, |net| !net.rules(2, Verdict::NodeDown).is_empty());
    assert_eq!(
        (net.rules(2, Verdict::NodeDown), net.manager()),
        (Vec::from([Rule::Silence]), Some(0))
    );
}

#[test]
pub(in crate::dirnet) fn x9_the_last_one_claims_when_the_end_of_all_others_is_reported() {
    let mut net = Net::settled(4);
    for node in [0, 1, 3] {
        net.crash(node);
    }
    net.run(5_000);
    assert_eq!((net.component(2).role(), net.reported(News::Unheard)), (Role::Backup, 1));
    for node in [0, 1, 3] {
        net.part(node);
        assert_eq!(net.component(2).role(), Role::Backup);
    }
    net.run(decided_within(3));
    assert_eq!(net.rules(2, Verdict::TookOver), [Rule::LastAlive]);
}

/// Two of five are left, and decisions need three. A third node joins, but does not hear them.
#[test]
pub(in crate::dirnet) fn x9_a_manager_that_too_few_hear_knows_it() {
    let mut net = Net::new(5);
    net.min_alive = 3;
    [0, 1].into_iter().for_each(|node| net.boot(node));
    net.cuts.extend([(0, 2), (1, 2)]);
    // A manager that has just started its term may yet be heard.
    net.run(2_000);
    net.boot(2);
    net.run(5_000);
    let level = |net: &Net| net.component(0).database().standing(Rank(2));
    let heard = |net: &Net| net.component(0).is_heard(Instant(net.now));
    assert!(!heard(&net));
    net.cuts.clear();
    net.run(2_000);
    assert!(level(&net).is_up() && heard(&net));
}

/// Node 2 has asked, since its turn is next, and node 3 has answered; then node 2 stands still.
/// Meanwhile the manager is heard again by all others.
#[test]
pub(in crate::dirnet) fn x9_a_candidate_that_stood_still_asks_again() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    net.crash(1);
    net.cuts.extend([(0, 2), (0, 3)]);
    let has_asked = |net: &Net| {
        let asks = |o: &Output| {
            let Output::Send { frame, .. } = o else { return false };
            let Message::Testimony { question, .. } = frame.message else { return false };
            question.node == Rank(0)
        };
        net.log.iter().any(|(_, at, output)| *at == 3 && asks(output))
    };
    net.run_while(3_000, has_asked);
    net.run(5);
    let mut candidate = net.component(2).clone();
    let mut now = net.now;
    assert_eq!(candidate.role(), Role::Backup);
    for _ in 0..40 {
        now += 2_000 * MS;
        candidate.handle_timeout(Instant(now));
        while candidate.poll_output().is_some() {}
        assert_eq!(candidate.role(), Role::Backup, "what it was sent is old");
    }
}

/// Node 3, to which the manager's link is cut, is sent the answer that only the manager's task was
/// reached. Then it stands still, and the manager is heard again by all others.
#[test]
pub(in crate::dirnet) fn x9_a_candidate_that_stood_still_doubts_the_loss_again() {
    let mut net = Net::settled(4);
    net.cuts.insert((0, 3));
    net.run_while(3_000, |net| net.reported(News::OneWay(Rank(0))) > 0);
    net.stall_component(0, 3_000);
    let is_lost = |net: &Net| {
        let answers = |o: &Output| {
            let Output::Send { frame, .. } = o else { return false };
            let Message::Testimony { question, seen, .. } = frame.message else { return false };
            (question.node, question.asker) == (Rank(0), Rank(3)) && seen.task && !seen.component
        };
        net.log.iter().any(|(_, _, output)| answers(output))
    };
    net.run_while(3_000, is_lost);
    assert!(is_lost(&net));
    net.run(timing().window.0 / MS + 1);
    let mut candidate = net.component(3).clone();
    assert_eq!((candidate.role(), candidate.term().claimant), (Role::Backup, Rank(0)));
    let mut now = net.now;
    for _ in 0..40 {
        now += 2_000 * MS;
        candidate.handle_timeout(Instant(now));
        while candidate.poll_output().is_some() {}
        assert_eq!(candidate.role(), Role::Backup, "the loss is old");
    }
}

/// For three seconds the component `left`, as long as it is a backup, hears nothing but `message`,
/// once every `period_ms`.
fn hears_only(
    net: &Net,
    left: &mut Part4,
    period_ms: u64,
    mut message: impl FnMut(&mut Part4, Instant),
) {
    for ms in 1..3_000_u64 {
        let now = Instant(net.now + ms * MS);
        left.handle_timeout(now);
        while left.poll_output().is_some() {}
        if ms.is_multiple_of(period_ms) && left.role() == Role::Backup {
            message(left, now);
            while left.poll_output().is_some() {}
        }
    }
}

/// Manager 0 dies, and node 2 holds nodes 1 and 3 removed, which follow another term. Node 2 must
/// neither adopt that term nor wait forever. Found by the swarm.
#[test]
pub(in crate::dirnet) fn x9_a_claim_that_is_refused_is_an_answer() {
    let mut net = Net::settled(4);
    let first = ComponentIncarnation { boot: Incarnation(1), generation: 0 };
    for node in [Rank(1), Rank(3)] {
        let removed = net.frame(0, Message::Anid { node, incarnation: first, level: Level::Down });
        assert_eq!(net.deliver(2, removed), Ok(()));
        net.run(1);
    }
    let mut left = net.component(2).clone();
    let mut claim = net.frame(1, Message::Nmi);
    claim.term = Term { epoch: 5, claimant: Rank(1) };
    claim.incarnation = ComponentIncarnation { boot: Incarnation(2), generation: 0 };
    hears_only(&net, &mut left, 40, |left, now| {
        claim.sequence += 1;
        assert_eq!(left.handle_message(now, Rank(1), &claim), Err(Reject::RemovedClaimant));
    });
    assert_eq!(left.role(), Role::Manager);
}

/// The other half was reset, and each node of it knows a later term than the node that is left
/// here. They ask, and that node waits for an answer. Found by the swarm.
#[test]
pub(in crate::dirnet) fn x9_a_joiner_of_a_later_term_is_an_answer() {
    let net = Net::settled(4);
    let mut left = net.component(1).clone();
    let mut witm = net.frame(3, Message::Witm);
    witm.term = Term { epoch: 5, claimant: Rank(2) };
    witm.incarnation = ComponentIncarnation { boot: Incarnation(2), generation: 0 };
    hears_only(&net, &mut left, 100, |left, now| {
        assert_eq!(left.handle_message(now, Rank(3), &witm), Ok(()));
    });
    assert_eq!(left.role(), Role::Manager);
}

/// Manager 0 does not hear node 3. Node 1, which is asked first, does not reach the manager; node 2
/// reaches all.
#[test]
pub(in crate::dirnet) fn x9_a_node_that_its_manager_does_not_hear_is_introduced_by_any_that_does() {
    let mut net = Net::settled(4);
    net.cuts.extend([(3, 0), (0, 1), (1, 0)]);
    net.run(3_000);
    net.crash(3);
    net.run(1_000);
    // Nor does node 2 hear of it by its first entry, or by a fence that it passes on.
    net.lost.extend(["DB", "FENCED"]);
    net.boot(3);
    net.run(5_000);
    let standing = net.component(0).database().standing(Rank(3));
    assert_eq!(standing, Standing::up(net.component(3).incarnation()));
}

/// A decision needs both of two nodes, and the manager's timers stop.
#[test]
pub(in crate::dirnet) fn g11_a_node_whose_own_task_speaks_counts_as_alive() {
    let mut net = Net::settled_with(2, 2);
    net.nodes[0].has_dead_timers = true;
    net.run_while(5_000, |net| net.component(1).role() == Role::Manager);
    assert_eq!(net.component(1).role(), Role::Manager);
    net.run_while(5_000, Net::is_whole);
    assert!(net.is_whole());
}

/// It was manager, and all others are down as it starts again.
#[test]
fn x9_a_node_that_starts_alone_reports_that_it_is_not_heard() {
    let mut net = Net::settled(3);
    (0..3).for_each(|node| net.crash(node));
    net.boot(0);
    net.run(3_000);
    assert_eq!((net.component(0).role(), net.reported(News::Unheard)), (Role::Joining, 1));
}

/// All others may only be backups of it, do not hear it, and one of them dies: another observer is
/// left, but the manager may not decide.
#[test]
fn x9_a_manager_that_is_not_heard_reports_that_too_few_hear_it() {
    let mut net = Net::new(4);
    net.parts[1..].fill(Part::Agent);
    net.boot_all();
    net.run(1_000);
    net.cuts.extend([(0, 1), (0, 2), (0, 3)]);
    net.run(100);
    net.crash(3);
    net.run(450);
    assert!(!net.component(0).suspects(Rank(1)) && !net.component(0).suspects(Rank(2)));
    let reported = [News::TooFew, News::Uncorroborated(Rank(3))].map(|news| net.reported(news));
    assert_eq!(reported, [1, 0]);
}
