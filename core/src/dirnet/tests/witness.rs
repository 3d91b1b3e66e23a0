//! All members are asked about a suspect, and one that reaches it prevents its removal.

use super::net::Net;
use crate::dirnet::*;
use crate::ids::{Incarnation, Rank};
use std::vec::Vec;

fn cut(net: &mut Net, links: &[(u16, u16)]) {
    net.cuts.extend(links.iter().flat_map(|(one, other)| [(*one, *other), (*other, *one)]));
}

fn removed(net: &Net) -> Vec<Explanation> {
    let is_removal = |e: &Explanation| matches!(e.verdict, Verdict::NodeDown | Verdict::Isolated);
    net.verdicts().into_iter().filter(is_removal).collect()
}

/// The manager and the suspect's successor do not reach node 3; four others do.
#[test]
pub(in crate::dirnet) fn x8_one_negative_testimony_removes_no_node_that_others_meet() {
    let mut net = Net::settled(7);
    cut(&mut net, &[(3, 0), (3, 4)]);
    net.run(5_000);
    assert_eq!(removed(&net), []);
    assert_eq!(net.reported(News::OneWay(Rank(3))), 1, "the link is reported");
    assert_eq!(net.manager(), Some(0));
}

/// The manager hears none for a while and reports that too few are left to decide; then node 1
/// answers that it meets node 3, which is reported, too: who waits for that must not wait forever.
#[test]
pub(in crate::dirnet) fn x8_a_link_is_reported_after_a_doubt_was() {
    let mut net = Net::settled_with(4, 3);
    cut(&mut net, &[(0, 3)]);
    net.cuts.extend([(1, 0), (2, 0)]);
    net.run_while(900, |net| net.reported(News::TooFew) > 0);
    assert!(net.reported(News::TooFew) > 0 && net.reported(News::OneWay(Rank(3))) == 0);
    net.cuts.retain(|(from, _)| ![1, 2].contains(from));
    net.run(2_000);
    assert_eq!((net.reported(News::OneWay(Rank(3))), net.manager()), (1, Some(0)));
}

/// Nodes 1 and 2 do not reach the manager, and both ask node 3, which does.
#[test]
pub(in crate::dirnet) fn x8_a_witness_answers_two_askers() {
    let mut net = Net::settled(4);
    cut(&mut net, &[(0, 1), (0, 2)]);
    net.run(5_000);
    assert_eq!((net.verdicts(), net.manager()), (Vec::new(), Some(0)));
}

/// Every path of four nodes. Each end is reached by one node, and reaches all others through it: no
/// node is removed, and none claims a term.
#[test]
pub(in crate::dirnet) fn x8_the_nodes_of_a_path_meet_each_other() {
    for path in 0..4_u16.pow(4) {
        let path = [0, 1, 2, 3].map(|at| path / 4_u16.pow(at) % 4);
        if (0..4).any(|node| !path.contains(&node)) {
            continue;
        }
        let mut net = Net::settled(4);
        cut(&mut net, &[(path[0], path[2]), (path[0], path[3]), (path[1], path[3])]);
        net.run(5_000);
        assert_eq!((net.verdicts(), net.manager()), (Vec::new(), Some(0)), "{path:?}");
    }
}

/// Nodes 2 and 3 were cut off when node 1 was asked about them, and too few were left to decide. By
/// the time there are enough, nodes 1 and 2 reach node 3, which only the manager does not hear.
#[test]
pub(in crate::dirnet) fn x8_testimonies_expire_and_are_asked_for_again() {
    let mut net = Net::settled_with(4, 3);
    cut(&mut net, &[(0, 2), (1, 2), (0, 3), (1, 3)]);
    net.run(3_000);
    assert!(net.reported(News::TooFew) > 0);
    net.cuts.clear();
    cut(&mut net, &[(0, 2), (0, 3)]);
    // Not for long: node 1, which reaches all, succeeds a manager that too few hear.
    net.run(100);
    net.cuts.clear();
    cut(&mut net, &[(0, 3)]);
    net.run(5_000);
    assert_eq!(removed(&net), []);
    assert_eq!(net.component(0).role(), Role::Manager);
}

/// Both witnesses had answered when the manager stood still twice, each time for less than R; when
/// it continued, both reached node 3, which only the manager did not hear.
#[test]
pub(in crate::dirnet) fn x8_testimonies_from_before_a_stall_are_asked_for_again() {
    let mut net = Net::settled(4);
    cut(&mut net, &[(0, 3), (1, 3), (2, 3)]);
    net.run_while(1_000, |net| net.component(0).suspects(Rank(3)));
    net.run(20);
    net.cuts.clear();
    cut(&mut net, &[(0, 3)]);
    for _ in 0..2 {
        net.stall(0, 150);
        net.run(200);
    }
    net.run(5_000);
    assert_eq!(removed(&net), []);
}

/// node 4 was asked too, and could not answer.
#[test]
pub(in crate::dirnet) fn x8_an_explanation_names_who_was_asked_and_what_each_answered() {
    let mut net = Net::settled(5);
    net.crash(3);
    net.hang(4);
    net.lost.extend(["TEIF", "SPAN"]);
    net.run_while(3_000, |net| !removed(net).is_empty());
    let said = removed(&net)[0].evidence.testimonies;
    let members = |ranks: &[u16]| ranks.iter().copied().map(Rank).collect::<Members>();
    assert_eq!(said.asked, members(&[1, 2, 4]));
    assert_eq!(said.met_neither, members(&[1, 2]));
    assert_eq!((said.met.count(), said.met_task.count(), said.count()), (0, 0, 2));
}

/// The live nodes are the path 0, 2, 3, 1, and node 4, which reaches all of them, stands still.
/// Node 0 does not hear node 3, which reaches node 1; node 1 does not hear node 2, which reaches
/// node 0.
#[test]
pub(in crate::dirnet) fn x8_a_witness_that_does_not_hear_the_asker_is_asked_through_others() {
    let mut net = Net::settled(5);
    cut(&mut net, &[(0, 1), (0, 3), (1, 2)]);
    net.run(1_000);
    net.stall(4, 1_500);
    net.run(5_000);
    let removed = removed(&net);
    let nodes = removed.iter().map(|it| it.node.0).collect::<Vec<_>>();
    assert_eq!((nodes, net.manager()), (Vec::from([4]), Some(0)));
}

/// The manager, which reaches all, stands still; the others are the path 1, 3, 4, 2. Node 1
/// succeeds it, and suspects nodes 2 and 4 at the same time: node 3 reaches node 4 alone, and node
/// 4 reaches node 2.
#[test]
pub(in crate::dirnet) fn x8_a_new_manager_asks_through_others_at_once() {
    let mut net = Net::settled(5);
    cut(&mut net, &[(1, 2), (1, 4), (2, 3)]);
    net.run(1_000);
    net.stall(0, 1_500);
    net.run(5_000);
    let nodes = removed(&net).iter().map(|it| it.node.0).collect::<Vec<_>>();
    assert!(!nodes.contains(&3) && !nodes.contains(&4), "{nodes:?}");
    let about = |output: &Output| match output {
        Output::Send { frame: Frame { term, message, .. }, .. } => match message {
            Message::Witness { question, unheard } if term.claimant == Rank(1) => (*question
                == Question { node: Rank(2), asker: Rank(1), ..*question })
            .then_some(*unheard),
            _ => None,
        },
        _ => None,
    };
    let first = net.log.iter().find_map(|(_, _, output)| about(output));
    assert!(first.is_some_and(|unheard| unheard.contains(Rank(4))), "{first:?}");
}

/// Whether a node runs does not depend on what it follows, nor on whether it is a member yet.
#[test]
pub(in crate::dirnet) fn x8_a_probe_of_another_term_or_incarnation_is_answered() {
    let mut net = Net::settled(4);
    let earlier = net.component(1).term();
    net.resets_work = false;
    net.crash(0);
    net.run_while(3_000, |net| net.manager() == Some(1));
    net.run(1_000);
    let probe = net.frame(2, Message::Probe { round: 3 });
    assert!(probe.term > earlier);
    assert_eq!(net.deliver(3, Frame { term: earlier, ..probe }), Ok(()));
    let next = ComponentIncarnation { boot: Incarnation(2), generation: 0 };
    let probe = Frame { incarnation: next, ..net.frame(2, Message::Probe { round: 4 }) };
    assert_eq!(net.deliver(3, probe), Ok(()));
    assert_eq!(net.component(3).database().standing(Rank(2)).incarnation.boot, Incarnation(1));
}
