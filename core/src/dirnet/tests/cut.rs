//! A link that stays cut, while both its nodes reach a third (G-11).

use super::net::{MS, Net, timing};
use crate::dirnet::*;
use crate::ids::{Incarnation, Rank};
use crate::time::Instant;
use std::vec::Vec;

/// Longer than it takes to lose a manager and to pass over every candidate.
const STEADY_MS: u64 = 5_000;

/// Every pair of nodes in clusters of 3 to 5, which leaves at least a third node.
fn for_each_link(act: impl Fn(u16, u16, u16)) {
    for count in 3..=5 {
        for one in 0..count {
            (one + 1..count).for_each(|other| act(count, one, other));
        }
    }
}

fn cut(net: &mut Net, one: u16, other: u16) {
    net.cuts.extend([(one, other), (other, one)]);
}

/// There is one manager, which all nodes follow and which stays.
fn assert_settles(net: &mut Net, what: impl core::fmt::Debug) {
    net.run(9_000);
    let (manager, term) = (net.manager(), net.component(0).term());
    assert!(manager.is_some(), "{what:?}");
    net.run(STEADY_MS);
    assert_eq!((net.manager(), net.component(0).term()), (manager, term), "{what:?}");
}

/// Found by a thought experiment: each end passed over the candidates, which heard the manager, and
/// claimed a term; the other learned of it indirectly, did the same, and so on forever.
#[test]
pub(in crate::dirnet) fn g11_the_ends_of_a_link_that_stays_cut_do_not_outbid_each_other() {
    for_each_link(|count, one, other| {
        let mut net = Net::settled(count);
        cut(&mut net, one, other);
        assert_settles(&mut net, (count, one, other));
        assert!(net.verdicts().is_empty(), "the others meet both: {:?}", net.verdicts());
        let mut net = Net::new(count);
        cut(&mut net, one, other);
        net.boot_all();
        assert_settles(&mut net, (count, one, other));
    });
}

/// Others reach the manager until it dies: then no node waits for longer than before.
#[test]
pub(in crate::dirnet) fn g11_a_manager_that_others_meet_is_followed_when_it_dies() {
    let t = timing();
    for_each_link(|count, one, other| {
        let mut net = Net::settled(count);
        cut(&mut net, one, other);
        net.run(3_000);
        let manager = net.manager().expect("it stays");
        if count == 3 && ![one, other].contains(&manager) {
            return;
        }
        net.resets_work = false;
        net.crash(manager);
        let candidates = t.candidate.0 * u64::from(count);
        let limit = (t.receive.0 + 2 * t.window.0 + candidates) / MS;
        net.run_while(limit, |net| net.manager().is_some());
        assert!(net.manager().is_some(), "{count} nodes, {one} and {other}");
    });
}

/// One end or another node restarts: a node that only some members hear is a member nevertheless.
#[test]
pub(in crate::dirnet) fn g11_a_life_that_its_manager_does_not_hear_is_introduced() {
    for_each_link(|count, one, other| {
        for node in 0..count {
            for late_ms in [0, 3_000] {
                let mut net = Net::settled(count);
                net.resets_work = false;
                cut(&mut net, one, other);
                net.run(1_000);
                net.crash(node);
                net.run(late_ms);
                net.boot(node);
                assert_settles(&mut net, (count, one, other, node, late_ms));
                let manager = net.component(net.manager().expect("it stays"));
                let incarnation = net.component(node).incarnation();
                assert_eq!(manager.database().standing(Rank(node)), Standing::up(incarnation));
                let removed = (0..count).filter(|n| !net.rules(*n, Verdict::NodeDown).is_empty());
                let removed = removed.filter(|n| *n != node).collect::<Vec<_>>();
                let case = (count, one, other, node, late_ms);
                assert!(late_ms > 0 || removed.is_empty(), "{removed:?} of {case:?}");
            }
        }
    });
}

/// The manager reaches neither node 1, which stalls, nor node 2. Found by the graphs: node 2 knew
/// nothing of node 1's removal, and answered the question on which that claimed a term.
#[test]
pub(in crate::dirnet) fn x9_a_member_that_its_manager_does_not_reach_learns_of_a_removal() {
    let mut net = Net::settled(5);
    net.resets_work = false;
    cut(&mut net, 0, 1);
    cut(&mut net, 0, 2);
    net.run(1_000);
    net.stall(1, 1_500);
    let is_removed =
        |at| move |net: &Net| net.component(at).database().standing(Rank(1)).level == Level::Down;
    net.run_while(1_500, is_removed(0));
    let window = timing().window.0 / MS;
    let took = net.run_while(2 * window, is_removed(2));
    assert!(is_removed(2)(&net), "not within {took} ms");
    net.run(9_000);
    let removed = |node: &u16| !net.rules(*node, Verdict::NodeDown).is_empty();
    assert_eq!((0..5).filter(removed).collect::<Vec<_>>(), [1]);
    let claims = |e: &Explanation| e.verdict == Verdict::TookOver && e.incarnation.boot.0 == 1;
    assert!(!net.verdicts().iter().any(claims), "the removed boot claims a term");
}

/// Found by the swarm: node 1 hears node 3 alone, which does not hear it. The question of node 1
/// about its manager reached node 3 through node 4, which was sent the removal of node 2 in its
/// place: node 1 never fenced that, and no manager reset it.
#[test]
fn g14_a_member_learns_of_a_removal_from_one_that_does_not_hear_it() {
    let mut net = Net::settled(5);
    net.cuts.extend([(0, 1), (4, 1), (1, 3)]);
    net.run(1_000);
    let dead = net.component(2).incarnation();
    net.crash(2);
    net.run(5_000);
    let standing = net.component(0).database().standing(Rank(2));
    assert!(standing.is_up() && standing.incarnation > dead, "{standing:?}");
    assert!(net.nodes[1].fenced[&2] >= dead.boot.0, "node 1 has fenced it");
}

/// The manager and a member do not reach each other, in one direction or in both, and a third node
/// dies: the member's fence is reported through the others, and the node is reset.
#[test]
pub(in crate::dirnet) fn g11_a_fence_is_reported_through_a_member_that_reaches_the_manager() {
    let ways: [&[(u16, u16)]; 3] = [&[(0, 1), (1, 0)], &[(0, 1)], &[(1, 0)]];
    // The report may be lost on its first way.
    for (way, lost_ms) in ways.into_iter().flat_map(|way| [(way, 0), (way, 700)]) {
        let mut net = Net::settled(4);
        net.cuts.extend(way);
        net.run(1_000);
        net.crash(3);
        if lost_ms > 0 {
            net.lost = Vec::from(["FENCED"]);
            net.run(lost_ms);
            net.lost.clear();
        }
        let took = net.run_while(3_000, |net| !net.resets().is_empty());
        let [(_, node)] = net.resets()[..] else { panic!("{way:?}: {took} ms, no reset") };
        assert_eq!(node, Rank(3), "{way:?}");
        assert_eq!(net.nodes[1].fenced.get(&3), Some(&1), "{way:?}: it has fenced that boot");
        net.run(9_000);
        assert!(net.component(0).database().standing(Rank(3)).is_up(), "{way:?}");
    }
}

/// Node 3 reaches node 1 alone, which reaches the manager through node 2 alone.
#[test]
pub(in crate::dirnet) fn g11_a_fence_is_reported_through_two_members() {
    let mut net = Net::settled(5);
    net.cuts.extend([(3, 0), (3, 2), (3, 4)]);
    cut(&mut net, 0, 1);
    net.run(1_000);
    net.crash(4);
    let took = net.run_while(3_000, |net| !net.resets().is_empty());
    assert_eq!(net.resets().len(), 1, "not within {took} ms");
}

/// Node 3 hears its manager, which does not hear it, and misses the news that node 1 has come back:
/// node 1 tells it, and passes its report on. No other member is left.
#[test]
pub(in crate::dirnet) fn g11_a_member_that_is_not_heard_meets_who_has_come_back() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    net.cuts.insert((3, 0));
    net.run(1_000);
    net.crash(1);
    net.run_while(3_000, |net| !net.rules(1, Verdict::NodeDown).is_empty());
    net.lost.push("NIUA");
    net.crash(2);
    net.boot(1);
    let is_reset = |net: &Net| net.resets().iter().any(|(_, node)| *node == Rank(2));
    let took = net.run_while(5_000, is_reset);
    assert!(is_reset(&net), "not within {took} ms");
}

/// The report of an incarnation that is over says nothing of the present one.
#[test]
fn g11_a_fence_that_is_passed_on_is_of_the_present_incarnation() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    net.lost = Vec::from(["FENCED"]);
    net.crash(3);
    net.run_while(5_000, |net| !net.rules(3, Verdict::NodeDown).is_empty());
    let present = net.component(1).incarnation();
    let earlier = ComponentIncarnation { boot: Incarnation(0), generation: 0 };
    let report = |net: &Net, incarnation| {
        let (node, boot, by) = (Rank(3), Incarnation(1), Rank(1));
        net.frame(2, Message::Fenced { node, boot, by, incarnation })
    };
    let frame = report(&net, earlier);
    assert_eq!(net.deliver(0, frame), Err(Reject::OldLife));
    let next = Frame { sequence: frame.sequence + 1, ..report(&net, present) };
    assert_eq!(net.deliver(0, next), Ok(()));
    // Its own fence is no news to the member that has made it.
    let again = Frame { sequence: frame.sequence + 2, ..report(&net, present) };
    assert_eq!(net.deliver(1, again), Err(Reject::NotForMe));
}

/// A ring of six, where each node reaches only its two neighbours.
#[test]
pub(in crate::dirnet) fn g10_terms_do_not_race_where_links_are_not_transitive() {
    let mut net = Net::settled(6);
    for one in 0..6 {
        for other in (one + 1..6).filter(|other| ![1, 5].contains(&(other - one))) {
            cut(&mut net, one, other);
        }
    }
    net.run(5_000);
    let epoch = |net: &Net| {
        let running = net.nodes.iter().filter_map(|node| node.component.as_ref());
        running.map(|it| it.term().epoch).max()
    };
    let before = epoch(&net).expect("some run");
    net.run(10_000);
    let claimed = epoch(&net).expect("some run") - before;
    assert!(claimed <= 4, "{claimed} terms in 10 s");
}

/// Found by the swarm: two managers that had removed each other claimed higher terms as often as a
/// third node reported the other's, and no term lasted.
#[test]
pub(in crate::dirnet) fn g10_a_manager_waits_before_it_goes_above_a_term_again() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    net.crash(2);
    net.run_while(5_000, |net| !net.rules(2, Verdict::NodeDown).is_empty());
    net.run(100);
    for claimed in 1..=2 {
        let before = net.component(0).term().epoch;
        for _ in 0..10 {
            let Term { epoch, .. } = net.component(0).term();
            let term = Term { epoch: epoch + 1, claimant: Rank(2) };
            let said = Frame { term, ..net.frame(3, Message::Nmi) };
            assert_eq!(net.deliver(0, said), Err(Reject::RemovedClaimant));
        }
        let epoch = net.component(0).term().epoch;
        assert_eq!(epoch - before, 2, "round {claimed}: it goes above the first term alone");
        net.run(500);
    }
}

/// Found by the swarm: the manager did not hear that a joiner knew a higher term, and no node
/// reported it; so the joiner asked forever.
#[test]
pub(in crate::dirnet) fn g11_a_joiner_that_knows_a_higher_term_is_asked_for() {
    let mut net = Net::settled(4);
    cut(&mut net, 0, 3);
    net.run(1_000);
    let term = Term { epoch: 9, claimant: Rank(3) };
    net.refuse(3, 1, (1, Incarnation(1)), term);
    assert_eq!(net.reported(News::Excluded), 1);
    net.nodes[3].kept = Some(term);
    net.run_while(1_000, |net| net.nodes[3].component.is_some());
    assert_settles(&mut net, ());
    assert!(net.component(3).term() > term);
}

/// Node 2, removed or also released, came back while node 4 was not notified of its return, and
/// succeeds the manager.
fn readmitted(is_released: bool) -> Net {
    let mut net = Net::settled(5);
    net.resets_work = false;
    cut(&mut net, 2, 4);
    for node in [1, 2] {
        net.crash(node);
        net.run_while(5_000, |net| !net.rules(node, Verdict::NodeDown).is_empty());
    }
    if is_released {
        assert_eq!(net.input(0, |it, now| it.isolate(now, Rank(2))), Ok(()));
        assert_eq!(net.input(0, |it, now| it.release(now, Rank(2))), Ok(()));
    }
    net.run(100);
    net.lost.extend(["NIUA", "REPLY_DB"]);
    net.boot(2);
    let is_up = |net: &Net, at: u16| net.component(at).database().standing(Rank(2)).is_up();
    net.run_while(5_000, |net| is_up(net, 0));
    let niua =
        net.frame(0, Message::Niua { node: Rank(2), incarnation: net.component(2).incarnation() });
    assert_eq!(net.deliver(3, niua), Ok(()));
    assert!(is_up(&net, 0) && is_up(&net, 3) && !is_up(&net, 4));
    net.crash(0);
    net
}

/// Found by the swarm: no message of node 2 reaches node 4, which held it removed, refused its term
/// when others reported it, and could claim none itself: it stayed in the earlier term.
#[test]
pub(in crate::dirnet) fn g11_a_backup_learns_the_term_of_a_manager_that_it_held_removed() {
    let mut net = readmitted(false);
    net.lost.clear();
    net.run_while(9_000, |net| net.manager() == Some(2));
    assert_eq!(net.manager(), Some(2));
    let standing = net.component(4).database().standing(Rank(2));
    assert_eq!(standing, Standing::up(net.component(2).incarnation()));
    let is_removed = |node| !net.rules(node, Verdict::NodeDown).is_empty();
    assert!(!is_removed(3) && !is_removed(4));
}

/// Found by the swarm: a backup that held the next manager released, not merely removed, refused
/// its term from any member, and stayed alone in the term before.
#[test]
pub(in crate::dirnet) fn x11_a_backup_learns_the_term_of_a_manager_that_it_held_released() {
    let mut net = readmitted(true);
    let standing = |net: &Net| net.component(4).database().standing(Rank(2));
    assert_eq!(standing(&net).level, Level::Released);
    net.lost.clear();
    let follows = |net: &Net| net.component(4).term().claimant == Rank(2);
    net.run_while(9_000, follows);
    assert!(follows(&net));
    assert!(standing(&net).is_up(), "it is admitted before it is followed");
    net.run_while(9_000, |net| net.manager() == Some(2));
    assert_eq!(net.manager(), Some(2));
    assert_eq!(standing(&net).incarnation, net.component(2).incarnation());
}

/// Found by hand: the one witness that reached the old manager hung as the verdict was due. Its
/// silence counted although it was about to be replaced, and so did the testimony of its clone,
/// which was not yet a member.
#[test]
pub(in crate::dirnet) fn x8_a_witness_that_is_replaced_is_waited_for() {
    for count in [4, 5] {
        for hangs_at in (0..1_500).step_by(20) {
            for is_killed in [false, true] {
                let mut net = Net::settled(count);
                (1..count - 1).for_each(|other| cut(&mut net, 0, other));
                net.run(hangs_at);
                match is_killed {
                    true => net.hang(count - 1),
                    false => net.stall_component(count - 1, 1_500),
                }
                net.run(9_000);
                let case = (count, hangs_at, is_killed);
                assert!(
                    net.rules(0, Verdict::NodeDown).is_empty(),
                    "{case:?} {:?}",
                    net.verdicts()
                );
                assert!(
                    net.rules(0, Verdict::AgentDown).is_empty(),
                    "{case:?} {:?}",
                    net.verdicts()
                );
                assert!(net.manager().is_some(), "{case:?}");
            }
        }
    }
}

/// Node 2 never hears the manager. Both witnesses reach it no longer either; the first candidate
/// dies before it claims, and by the turn of node 2 the other witness reaches the manager again.
#[test]
pub(in crate::dirnet) fn x8_what_was_testified_before_a_candidates_turn_is_asked_again() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    cut(&mut net, 0, 2);
    net.run(3_000);
    cut(&mut net, 0, 1);
    cut(&mut net, 0, 3);
    net.run(390);
    net.crash(1);
    net.cuts.remove(&(0, 3));
    net.cuts.remove(&(3, 0));
    net.run(3_000);
    assert!(net.rules(0, Verdict::NodeDown).is_empty(), "{:?}", net.verdicts());
}

/// The same for a witness that was just admitted, and has had no time to echo a heartbeat.
#[test]
pub(in crate::dirnet) fn x8_a_witness_that_was_just_admitted_is_waited_for() {
    let mut net = Net::settled(4);
    net.hang(3);
    net.run(1);
    cut(&mut net, 1, 0);
    cut(&mut net, 1, 2);
    let is_admitted = |net: &Net| {
        net.component(0).database().standing(Rank(3)).incarnation.generation == 1
            && net.component(0).suspects(Rank(1))
    };
    net.run_while(9_000, is_admitted);
    assert!(is_admitted(&net));
    let mut manager = net.component(0).clone();
    let window = Instant(net.now).after(timing().window);
    while let Some(due) = manager.poll_timeout().filter(|due| *due <= window) {
        manager.handle_timeout(due);
        while let Some(output) = manager.poll_output() {
            assert!(!matches!(output, Output::Verdict(_)), "{output:?}");
        }
    }
}

/// While the manager that removed it is heard, only the NIUA of its current incarnation readmits a
/// claimant; an isolated claimant is not readmitted at all.
#[test]
pub(in crate::dirnet) fn g11_no_claimant_is_readmitted_against_the_manager() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    net.crash(2);
    net.run_while(5_000, |net| !net.rules(2, Verdict::NodeDown).is_empty());
    net.run(100);
    let term = Term { epoch: 5, claimant: Rank(2) };
    let incarnation = ComponentIncarnation { boot: Incarnation(2), generation: 0 };
    let said = |net: &Net, from| {
        let niua = Message::Niua { node: Rank(2), incarnation };
        Frame { term, ..net.frame(from, niua) }
    };
    let is_up = |net: &Net| net.component(1).database().standing(Rank(2)).is_up();
    let (hearsay, first) = (said(&net, 3), said(&net, 0));
    assert_eq!(net.deliver(1, hearsay), Err(Reject::RemovedClaimant));
    assert!(!is_up(&net));
    let readmits = |frame: Frame| {
        let mut node = net.component(1).clone();
        let _ = node.handle_message(Instant(net.now), Rank(0), &frame);
        node.database().standing(Rank(2)).is_up()
    };
    assert!(!readmits(Frame { incarnation, ..first }), "another incarnation of the manager");
    assert!(readmits(first));
    let mut isolated = net.component(1).clone();
    let anid = Message::Anid { node: Rank(2), incarnation, level: Level::Isolated };
    let now = Instant(net.now);
    assert_eq!(isolated.handle_message(now, Rank(0), &net.frame(0, anid)), Ok(()));
    while isolated.poll_output().is_some() {}
    // The NIUA names a later incarnation than the one that was isolated.
    let next = ComponentIncarnation { boot: Incarnation(3), generation: 0 };
    let niua = Message::Niua { node: Rank(2), incarnation: next };
    let again = Frame { sequence: first.sequence + 1, message: niua, ..first };
    assert_eq!(isolated.handle_message(now, Rank(0), &again), Err(Reject::RemovedClaimant));
    assert_eq!(isolated.database().standing(Rank(2)).level, Level::Isolated);
    assert_eq!(net.deliver(1, first), Err(Reject::RemovedClaimant));
    assert!(is_up(&net));
}

/// Found by the swarm: after a partition had healed, all others followed an incarnation that the
/// last node of the other half had fenced and did not reach, and that node stayed in its term.
#[test]
pub(in crate::dirnet) fn g11_the_last_of_a_half_gives_way_to_the_other() {
    let term = Term { epoch: 5, claimant: Rank(2) };
    for is_last in [true, false] {
        let mut net = Net::settled(4);
        net.resets_work = false;
        net.crash(2);
        net.run_while(5_000, |net| !net.rules(2, Verdict::NodeDown).is_empty());
        net.run(100);
        let removed = net.component(1).database().standing(Rank(2)).incarnation;
        let said = net.frame(3, Message::Niua { node: Rank(2), incarnation: removed });
        net.crash(0);
        if is_last {
            net.crash(3);
        }
        for sequence in 1..=60 {
            if net.component(1).role() == Role::Backup {
                let said = Frame { term, sequence: said.sequence + sequence, ..said };
                assert_eq!(net.deliver(1, said), Err(Reject::RemovedClaimant));
                net.run(40);
            }
            if net.reported(News::Excluded) > 0 {
                break;
            }
        }
        assert_eq!(net.reported(News::Excluded), usize::from(is_last));
        if !is_last {
            assert_eq!(net.manager(), Some(1), "a member of its own half follows it");
        }
    }
}

/// Found by the swarm: the manager's next incarnation asked who the manager is, and was reached by
/// the others; so the backups did not succeed the previous one.
#[test]
pub(in crate::dirnet) fn g11_a_joiner_is_not_taken_for_the_manager_that_it_was() {
    let mut net = Net::settled(4);
    let term = net.component(1).term();
    net.crash(0);
    net.nodes[0].kept = Some(term);
    net.boot(0);
    let probe = Frame { term, ..net.frame(1, Message::Probe { round: 3 }) };
    assert_eq!(net.component(0).role(), Role::Joining);
    assert_eq!(net.deliver(0, probe), Err(Reject::Joining));
}

/// Found by the swarm: a node that did not hear the manager made the others probe it forever; the
/// manager answers them although its timers are dead, and the answers counted as heartbeats.
#[test]
pub(in crate::dirnet) fn g31_a_manager_with_dead_timers_is_missed_though_it_answers() {
    let mut net = Net::settled(4);
    cut(&mut net, 0, 3);
    net.run(3_000);
    assert_eq!(net.reported(News::OneWay(Rank(0))), 1);
    net.nodes[0].has_dead_timers = true;
    net.run_while(5_000, |net| net.component(1).role() == Role::Manager);
    assert_eq!(net.component(1).role(), Role::Manager);
    assert_settles(&mut net, ());
}

/// Found by the swarm: two nodes that did not hear each other asked the node between them without
/// end; its timers were dead, and its probes and testimonies counted as heartbeats.
#[test]
pub(in crate::dirnet) fn g31_a_witness_with_dead_timers_is_missed_though_it_testifies() {
    let mut net = Net::settled(3);
    cut(&mut net, 0, 2);
    net.run(3_000);
    assert_eq!(net.reported(News::OneWay(Rank(2))), 1);
    net.nodes[1].has_dead_timers = true;
    net.run_while(5_000, |net| !net.rules(1, Verdict::AgentDown).is_empty());
    assert!(!net.rules(1, Verdict::AgentDown).is_empty());
}

/// The manager does not reach the node, or the node alone reaches the manager: those that reach its
/// task pass the order on. The task would start its clone itself only after six alarms.
#[test]
pub(in crate::dirnet) fn x8_a_clone_is_ordered_through_a_member_that_reaches_the_task() {
    for is_one_way in [true, false] {
        let mut net = Net::settled(4);
        net.cuts.insert((0, 2));
        if !is_one_way {
            net.cuts.insert((2, 0));
        }
        net.run(1_000);
        let t = timing();
        // A verdict on silence, and the longest wait between two alarms.
        let allowed = t.receive.0 + t.window.0 + t.alarm.0 * 8;
        let before = net.component(2).incarnation();
        net.hang(2);
        let is_new = |net: &Net| {
            net.nodes[2]
                .component
                .as_ref()
                .is_some_and(|component| component.incarnation() > before)
        };
        let took = net.run_while(5_000, is_new);
        assert!(took * MS <= allowed, "{took} ms, one way: {is_one_way}");
        assert_eq!(net.reported(News::Unanswered(Rank(2))), 0);
    }
}
