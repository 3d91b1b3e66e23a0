//! Starting, joining, rejoining, and the database that a joiner receives.

use super::net::{MS, Net, Part4, timing};
use crate::dirnet::*;
use crate::ids::{Incarnation, Rank};
use crate::time::Instant;
use std::vec::Vec;

/// G-13: the original sent NIUA to backups, which did not handle it.
#[test]
pub(in crate::dirnet) fn g13_a_return_is_known_to_the_backups_at_once() {
    let mut net = Net::settled(4);
    net.lost.extend(["REPLY_DB", "REQUEST_DB"]);
    net.crash(3);
    net.run_while(9_000, |net| net.rules(3, Verdict::Admitted).len() == 1);
    net.run(5);
    for node in [1, 2] {
        let standing = net.component(node).database().standing(Rank(3));
        assert!(standing.is_up() && standing.incarnation.boot == Incarnation(2), "at node {node}");
    }
}

/// G-19: the original took the first answer, however old.
#[test]
pub(in crate::dirnet) fn g19_a_joiner_takes_the_highest_term() {
    let mut net = Net::settled(3);
    net.crash(2);
    net.run(100);
    net.boot(2);
    let now = net.now;
    let old = net.frame(0, Message::Nmi);
    let term = Term { epoch: 8, claimant: Rank(1) };
    let new = Frame { term, ..net.frame(1, Message::Nmi) };
    net.deliver(2, old).unwrap();
    net.deliver(2, new).unwrap();
    assert_eq!(net.component(2).role(), Role::Joining, "it collects until the deadline");
    net.run_while(1_000, |net| net.component(2).role() != Role::Joining);
    assert!(net.now - now >= timing().join.0);
    assert!(net.component(2).term() >= term);
}

/// G-19: on silence, a node takes its static role, above the stored term.
#[test]
pub(in crate::dirnet) fn g19_after_a_blackout_the_terms_go_on() {
    let mut net = Net::settled(3);
    net.crash(0);
    net.run_while(3_000, |net| net.manager() == Some(1));
    let before = net.component(1).term();
    (0..3).for_each(|node| net.crash(node));
    net.run(1_000);
    net.boot_all();
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole());
    assert!(net.component(0).term() > before, "no term is used twice");
}

/// G-19: a node that knows it was removed has no static role to fall back on, whatever it hears.
#[test]
pub(in crate::dirnet) fn g19_who_was_removed_asks_until_it_is_answered() {
    let mut net = Net::settled(3);
    net.resets_work = false;
    net.cut_off(0);
    net.run_while(3_000, |net| net.component(2).term().claimant == Rank(1));
    net.run(1_000);
    net.cuts.clear();
    net.run_while(3_000, |net| net.reported(News::Excluded) == 1);
    net.cut_off(0);
    net.run(500);
    // Another node asks as well, and does not answer.
    let asks = net.frame(2, Message::Witm);
    assert_eq!(net.deliver(0, asks), Err(Reject::Joining));
    net.run(5_000);
    assert_eq!(
        (net.component(0).role(), net.component(0).incarnation().boot.0),
        (Role::Joining, 2)
    );
    assert!(net.rules(0, Verdict::TookOver).is_empty());
    net.cuts.clear();
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole() && net.manager() == Some(1));
}

/// G-19: if all nodes ask, none is manager, and the static roles apply.
#[test]
pub(in crate::dirnet) fn g19_where_all_were_removed_the_static_role_stands() {
    let mut net = Net::settled(2);
    for (node, by) in [(0, 1), (1, 0)] {
        net.refuse(node, 1, (by, Incarnation(1)), Term { epoch: 9, claimant: Rank(by) });
    }
    assert_eq!(net.reported(News::Excluded), 2);
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole() && net.manager() == Some(0));
}

/// G-19, found by the swarm: an isolated node runs no component that could ask or answer.
#[test]
pub(in crate::dirnet) fn g19_where_all_others_were_removed_none_waits_for_an_isolated_node() {
    let mut net = Net::settled(3);
    assert_eq!(net.input(0, |it, now| it.isolate(now, Rank(2))), Ok(()));
    net.run(1_000);
    net.crash(2);
    for (node, by) in [(0, 1), (1, 0)] {
        net.refuse(node, 1, (by, Incarnation(1)), Term { epoch: 9, claimant: Rank(by) });
    }
    net.run(3_000);
    assert_eq!(net.component(0).role(), Role::Manager);
    assert_eq!(net.component(1).term().claimant, Rank(0));
}

/// G-19: no component of the removed boot has taken part in the net, so it has kept no term.
#[test]
pub(in crate::dirnet) fn g19_a_removed_node_that_never_took_part_asks() {
    let net = Net::new(2);
    let begin = |removed| {
        let kept = Kept { term: None, snapshots: [&[], &[]], removed: Incarnation(removed) };
        let incarnation = ComponentIncarnation { boot: Incarnation(2), generation: 0 };
        Part4::new(Instant(0), net.config(0), incarnation, 2, kept).role()
    };
    assert_eq!((begin(0), begin(1)), (Role::Manager, Role::Joining));
}

/// G-20: in the original a rebooted node exported no mailbox.
#[test]
pub(in crate::dirnet) fn g20_a_joiner_can_be_reached() {
    let mut net = Net::settled(3);
    net.crash(2);
    net.run(50);
    net.boot(2);
    let probe = net.frame(1, Message::Probe { round: 5 });
    assert_eq!(net.deliver(2, probe), Ok(()));
    let answers = |output: &Output| match output {
        Output::Send { frame, .. } => frame.message == Message::Alive { round: 5 },
        _ => false,
    };
    assert!(net.log.iter().any(|(_, at, output)| *at == 2 && answers(output)));
}

/// G-21: the original's clone waited for a gossip that had ended.
#[test]
pub(in crate::dirnet) fn g21_a_clone_joins_and_does_not_start() {
    let mut net = Net::settled(3);
    net.crash(0);
    net.run_while(9_000, |net| net.is_whole() && net.manager() == Some(1));
    let (term, asked) = (net.component(1).term(), net.sent["WITM"]);
    net.hang(0);
    net.run_while(9_000, |net| {
        net.component(1).database().standing(Rank(0)).incarnation.generation == 1
    });
    let clone = net.component(0);
    assert_eq!((clone.role(), clone.term()), (Role::Backup, term));
    assert!(net.sent["WITM"] > asked, "the clone has asked, not begun with the first roles");
}

/// G-23: the original's second loop never stopped, and total failure was reported as success.
#[test]
pub(in crate::dirnet) fn g23_the_next_member_is_asked_and_failure_is_said() {
    let mut net = Net::settled(4);
    net.crash(3);
    net.run(2_500);
    net.cuts.insert((0, 3));
    let lost_beats_only = |net: &mut Net| net.cuts.clear();
    net.run(300);
    lost_beats_only(&mut net);
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole());
    net.log.clear();
    net.lost.extend(["REPLY_DB", "NOTHING_NEWER"]);
    net.hang(2);
    net.run(4_000);
    assert!(net.reported(News::NoDatabase) > 0);
    let sources: Vec<u16> = net
        .log
        .iter()
        .filter_map(|(_, at, output)| match output {
            Output::Send { to, frame, .. }
                if *at == 2 && matches!(frame.message, Message::RequestDb { .. }) =>
            {
                to.iter().next().map(|to| to.0)
            }
            _ => None,
        })
        .collect();
    assert!([0, 1, 3].iter().all(|node| sources.contains(node)), "{sources:?}");
}

/// G-24: the original waited for a dead node's part without a limit.
#[test]
pub(in crate::dirnet) fn g24_a_node_that_is_absent_at_the_start_is_told_of() {
    let mut net = Net::new(4);
    for node in [0, 1, 2] {
        net.boot(node);
    }
    net.run(4_000);
    assert_eq!(net.reported(News::Absent(Rank(3))), 1);
    assert!(net.resets().is_empty());
    let digests: Vec<_> = (0..3).map(|n| net.component(n).database().digest()).collect();
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]));
    net.boot(3);
    net.run(1_000);
    assert!(net.is_whole());
}

/// G-25: a loss is noticed by the digest and requested; a duplicate changes nothing.
#[test]
pub(in crate::dirnet) fn g25_a_lost_change_is_repaired() {
    let mut net = Net::settled(4);
    net.lost.push("DB");
    let change = Change::TaskStatus { task: 1, status: 9 };
    net.input(2, |component, now| component.handle_change(now, change)).unwrap();
    net.run(10);
    net.lost.clear();
    assert!(!net.is_whole());
    net.run_while(2_000, Net::is_whole);
    assert!(net.is_whole());
    let task = net.component(3).database().record(Rank(2)).unwrap().tasks()[1];
    assert_eq!(task.status, 9);
}

/// Many joins at once: all nodes but the manager come back at the same moment.
#[test]
pub(in crate::dirnet) fn all_but_one_join_at_once() {
    let mut net = Net::settled(7);
    (1..7).for_each(|node| net.crash(node));
    net.run(3_000);
    (1..7).for_each(|node| net.boot(node));
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole());
    assert_eq!(net.manager(), Some(0));
}

#[test]
pub(in crate::dirnet) fn a_joiner_that_dies_while_joining_is_noticed() {
    let mut net = Net::settled(4);
    net.crash(3);
    net.run(200);
    net.boot(3);
    net.run(20);
    net.crash(3);
    net.run_while(20_000, Net::is_whole);
    assert!(net.is_whole(), "it was reset and came back");
}

/// The component's node is lost with it, as the transports report: the deadline of a clone or a
/// joiner is not waited for. Two windows: one for its task's alarm, one for the second observer.
#[test]
pub(in crate::dirnet) fn g18_a_node_that_is_lost_as_it_joins_is_not_waited_for() {
    let is_removed = |net: &Net| !net.rules(2, Verdict::NodeDown).is_empty();
    let limit = 2 * timing().window.0 / MS;
    assert!(limit < timing().clone.0 / MS);
    // A clone of it is expected.
    let mut net = Net::settled(4);
    net.hang(2);
    net.run_while(5_000, |net| !net.rules(2, Verdict::AgentDown).is_empty());
    net.part(2);
    let took = net.run_while(9_000, is_removed);
    assert!(is_removed(&net) && took <= limit, "{took} ms");
    // Its next incarnation was heard from.
    let mut net = Net::settled(4);
    net.crash(2);
    net.run_while(5_000, |net| !net.resets().is_empty());
    net.log.clear();
    net.run_while(5_000, |net| net.nodes[2].component.is_some());
    net.run(2);
    net.part(2);
    let took = net.run_while(9_000, is_removed);
    assert!(is_removed(&net) && took <= limit, "{took} ms");
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole());
}

/// The link was lost, not the node: its clone gets its full time.
#[test]
pub(in crate::dirnet) fn g18_a_clone_is_awaited_where_only_the_link_was_lost() {
    let mut net = Net::settled(4);
    // The clone takes longer to start than the windows last.
    net.spawn = 900 * MS;
    net.hang(2);
    net.run_while(5_000, |net| !net.rules(2, Verdict::AgentDown).is_empty());
    for node in [0, 1, 3] {
        net.input(node, |it, now| it.handle_parted(now, Rank(2)));
    }
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole());
    assert_eq!((net.rules(2, Verdict::NodeDown).len(), net.resets().len()), (0, 0));
}

#[test]
pub(in crate::dirnet) fn a_joiner_in_mid_succession_finds_the_new_manager() {
    for wait in [0, 150, 300, 390, 410, 500] {
        let mut net = Net::settled(4);
        net.crash(3);
        net.run(2_000 - 600);
        net.crash(0);
        net.run(wait);
        if net.nodes[3].component.is_none() {
            net.boot(3);
        }
        net.run_while(20_000, Net::is_whole);
        assert!(net.is_whole(), "after {wait} ms");
    }
}

#[test]
pub(in crate::dirnet) fn a_manager_that_restarts_before_it_is_missed_goes_on_in_a_new_term() {
    let mut net = Net::settled(3);
    let before = net.component(0).term();
    net.crash(0);
    net.boot(0);
    net.run(3_000);
    assert!(net.is_whole());
    assert!(net.component(1).term() > before);
}

/// A node is reset, its component dies before it has joined, and its task reports that: the manager
/// need not wait until the reboot deadline.
#[test]
pub(in crate::dirnet) fn a_component_that_dies_before_its_node_is_admitted_is_cloned() {
    let mut net = Net::settled(4);
    net.crash(3);
    net.run_while(5_000, |net| !net.resets().is_empty());
    net.lost.push("WITM");
    net.run_while(2_000, |net| net.nodes[3].component.is_some());
    net.run(5);
    net.hang(3);
    net.lost.clear();
    let took = net.run_while(3_000, |net| !net.rules(3, Verdict::AgentDown).is_empty());
    assert!(!net.rules(3, Verdict::AgentDown).is_empty(), "not after {took} ms");
    net.run_while(5_000, Net::is_whole);
    assert!(net.is_whole());
}

/// Two of three nodes are needed, and node 1 alone is left of the term of manager 0 when node 2,
/// which was removed, comes back and knows a later term. Found by the swarm: each waited for the
/// other.
#[test]
pub(in crate::dirnet) fn g11_a_node_that_asks_for_the_manager_counts_as_alive() {
    let mut net = Net::settled_with(3, 2);
    net.resets_work = false;
    net.crash(2);
    net.run_while(3_000, |net| !net.rules(2, Verdict::NodeDown).is_empty());
    net.run(1_000);
    let later = net.component(1).term().claimed_by(Rank(2)).unwrap();
    net.nodes[2].kept = Some(later);
    net.crash(0);
    net.boot(2);
    let took = net.run_while(5_000, |net| net.manager().is_some());
    assert!(net.manager().is_some(), "none after {took} ms");
}
