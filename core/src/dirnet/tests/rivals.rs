//! Two managers, each in a later incarnation than the one that the other holds removed (G-10).

use super::net::Net;
use crate::dirnet::*;
use crate::ids::{Incarnation, Rank};

const fn incarnation(boot: u32) -> ComponentIncarnation {
    ComponentIncarnation { boot: Incarnation(boot), generation: 0 }
}

/// Nodes 0 and 1 are cut from 2 and 3. In each half the backup restarts, learns which nodes its
/// half has removed, and follows the manager, which then dies: nodes 1 and 3 are managers in their
/// second incarnations, and each holds the other's first one removed.
fn rivals() -> Net {
    let mut net = Net::settled(4);
    net.resets_work = false;
    for (one, other) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
        net.cuts.extend([(one, other), (other, one)]);
    }
    net.run(3_000);
    for node in [1, 3] {
        net.crash(node);
        net.boot(node);
    }
    net.run(1_000);
    for (manager, node) in [(0, 1), (2, 3)] {
        assert_eq!(net.component(node).term().claimant, Rank(manager));
        net.part(manager);
    }
    net.run(2_000);
    for (node, other) in [(1, Rank(3)), (3, Rank(1))] {
        let component = net.component(node);
        assert_eq!((component.role(), component.incarnation()), (Role::Manager, incarnation(2)));
        let removed = Standing::removed(incarnation(1), Level::Down);
        assert_eq!(component.database().standing(other), removed);
    }
    net
}

/// Found by the swarm: neither spoke to the other, and both stayed managers forever.
#[test]
pub(in crate::dirnet) fn g10_managers_that_removed_each_others_earlier_lives_meet() {
    let mut net = rivals();
    let before = net.component(1).term().max(net.component(3).term());
    net.cuts.clear();
    let took = net.run_while(1_000, |net| net.manager().is_some());
    assert!(net.manager().is_some(), "not after {took} ms");
    assert!(net.component(1).term() > before, "the higher claim is above both");
    for node in [1, 3] {
        assert_eq!(net.component(node).incarnation(), incarnation(2), "no node starts again");
    }
    net.boot(0);
    net.boot(2);
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole());
}

/// Only one of the two hears the other: the one that is heard learns of its rival from the answer.
#[test]
pub(in crate::dirnet) fn g10_rivals_meet_if_either_is_heard_first() {
    for deaf in [1, 3] {
        let mut net = rivals();
        net.cuts.clear();
        net.lost.push("BEAT");
        let other = 4 - deaf;
        let word = net.frame(other, Message::Nmi);
        let _ = net.deliver(deaf, word);
        net.run(5);
        net.lost.clear();
        net.run_while(1_000, |net| net.manager().is_some());
        assert!(net.manager().is_some(), "{deaf} heard {other} first");
    }
}

/// Nodes 0 and 1 are cut from 2 and 3. Node 1 restarts and follows node 0, which dies: node 1 is
/// manager in an incarnation that no node has removed, and fences nodes 2 and 3, whose term is
/// higher.
fn uneven_rivals() -> Net {
    let mut net = Net::settled(4);
    net.resets_work = false;
    for (one, other) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
        net.cuts.extend([(one, other), (other, one)]);
    }
    net.run(3_000);
    net.crash(1);
    net.boot(1);
    net.run(1_000);
    net.part(0);
    net.run_while(2_000, |net| net.component(1).role() == Role::Manager);
    assert_eq!(
        (net.component(1).incarnation(), net.component(2).incarnation()),
        (incarnation(2), incarnation(1))
    );
    assert!(net.component(1).term() < net.component(2).term());
    net
}

/// Found by the swarm: nodes 2 and 3 heard node 1, had removed it, and had the higher term; so they
/// stayed, although it could never hear them, and there were two managers forever.
#[test]
pub(in crate::dirnet) fn g10_who_is_shut_out_by_a_life_that_it_has_not_removed_begins_anew() {
    let mut net = uneven_rivals();
    net.cuts.clear();
    net.run_while(2_000, |net| net.manager() == Some(1));
    assert_eq!(net.manager(), Some(1));
    assert_eq!(net.reported(News::Excluded), 2);
    net.boot(0);
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole());
    assert_eq!([1, 2, 3].map(|node| net.component(node).incarnation()), [incarnation(2); 3]);
}

/// Node 2 was removed and claims a term in its second incarnation.
fn claimant() -> (Net, Frame) {
    let mut net = Net::settled(4);
    net.resets_work = false;
    let word = net.frame(2, Message::Nmi);
    net.crash(2);
    net.run_while(5_000, |net| !net.rules(2, Verdict::NodeDown).is_empty());
    net.run(100);
    let term = Term { epoch: 5, claimant: Rank(2) };
    (net, Frame { term, incarnation: incarnation(2), ..word })
}

/// The manager claims a term above a refused claim and admits the claimant. If the claimant refuses
/// the manager in turn and claims again, it is already a member: the higher term wins.
#[test]
pub(in crate::dirnet) fn g10_a_claimant_that_claims_again_is_followed() {
    let (mut net, claim) = claimant();
    assert_eq!(net.deliver(0, claim), Err(Reject::RemovedClaimant));
    let term = Term { epoch: 6, claimant: Rank(0) };
    assert_eq!((net.component(0).role(), net.component(0).term()), (Role::Manager, term));
    net.run(5);
    for node in [0, 1, 3] {
        let standing = net.component(node).database().standing(Rank(2));
        assert_eq!(standing, Standing::up(incarnation(2)), "at node {node}");
    }
    let term = Term { epoch: 7, claimant: Rank(2) };
    let again = Frame { term, sequence: claim.sequence + 1, ..claim };
    assert_eq!(net.deliver(0, again), Ok(()));
    assert_eq!((net.component(0).role(), net.component(0).term()), (Role::Backup, term));
}

/// A claimant that dies before it claims again leaves the manager unchanged.
#[test]
pub(in crate::dirnet) fn g10_a_claimant_that_dies_is_removed_again() {
    let (mut net, claim) = claimant();
    assert_eq!(net.deliver(0, claim), Err(Reject::RemovedClaimant));
    net.log.clear();
    net.run_while(2_000, |net| !net.rules(2, Verdict::NodeDown).is_empty());
    assert_eq!(net.rules(2, Verdict::NodeDown), [Rule::Silence]);
    assert_eq!((net.manager(), net.component(0).term().epoch), (Some(0), 6));
}

/// A node that only relays a claim gives no evidence of the claimant's incarnation: no node is
/// admitted on a relayed claim.
#[test]
pub(in crate::dirnet) fn g10_a_claimant_is_not_admitted_by_hearsay() {
    let (mut net, claim) = claimant();
    let other = Message::Niua { node: Rank(3), incarnation: incarnation(2) };
    let other = Frame { term: claim.term, ..net.frame(0, other) };
    assert_eq!(net.deliver(1, other), Err(Reject::RemovedClaimant));
    let standing = net.component(1).database().standing(Rank(3));
    assert_eq!(standing, Standing::up(incarnation(1)), "the claim is another node's");
    let hearsay = Frame { term: claim.term, ..net.frame(1, Message::Enia) };
    assert_eq!(net.deliver(0, hearsay), Err(Reject::RemovedClaimant));
    assert_eq!(net.component(0).term(), Term { epoch: 6, claimant: Rank(0) });
    assert!(!net.component(0).database().standing(Rank(2)).is_up());
    // It goes on to watch the member that has reported the claim.
    net.crash(1);
    net.run(300);
    assert!(net.component(0).suspects(Rank(1)));
}

/// The manager does not hear the claimant, but a member does. Found by the swarm: each of two
/// managers claimed a term above the other's whenever a member reported it, and neither followed.
#[test]
pub(in crate::dirnet) fn g10_a_claimant_that_a_member_hears_is_admitted() {
    let (mut net, claim) = claimant();
    assert_eq!(net.deliver(1, claim), Err(Reject::RemovedClaimant));
    net.run(20);
    let manager = net.component(0);
    assert!(manager.role() == Role::Manager && manager.term() > claim.term);
    assert_eq!(manager.database().standing(Rank(2)), Standing::up(incarnation(2)));
}

/// Found by the swarm: the manager learned of a node's next boot from a member's database alone,
/// while it still waited for a fence of the boot before. It waited for that of the next boot, too,
/// and never watched it.
#[test]
pub(in crate::dirnet) fn d43_a_member_whose_earlier_boot_is_still_fenced_is_watched() {
    let mut net = Net::settled(4);
    net.lost.push("FENCED");
    net.crash(3);
    net.run_while(9_000, |net| !net.component(0).database().standing(Rank(3)).is_up());
    // Node 1 misses the manager, and is the only one that hears the next boot of node 3.
    for (one, other) in [(0, 1), (0, 3), (2, 3)] {
        net.cuts.extend([(one, other), (other, one)]);
    }
    net.run(500);
    net.boot(3);
    net.run_while(9_000, |net| net.component(1).database().standing(Rank(3)).is_up());
    net.crash(3);
    net.cuts.clear();
    net.run_while(9_000, |net| net.component(0).database().standing(Rank(3)).is_up());
    assert!(net.component(0).database().standing(Rank(3)).is_up());
    net.lost.clear();
    net.run_while(30_000, Net::is_whole);
    assert!(net.is_whole(), "the manager misses node 3");
}

/// Node 3 is heard for the first time as it still sends in the term of a manager that was
/// succeeded, and ends. Found by the swarm: the next manager held it as a member, and never watched
/// it.
#[test]
pub(in crate::dirnet) fn d43_a_node_that_is_met_in_an_earlier_term_is_watched() {
    let mut net = Net::new(4);
    (0..3).for_each(|node| net.boot(node));
    net.run_while(5_000, |net| net.reported(News::Absent(Rank(3))) > 0);
    let earlier = net.frame(0, Message::Enia);
    net.crash(0);
    net.run_while(5_000, |net| net.manager() == Some(1));
    let first = Frame { sender: Rank(3), incarnation: incarnation(1), ..earlier };
    net.run_while(5_000, |net| net.reported(News::Absent(Rank(3))) > 1);
    assert_eq!(net.deliver(1, first), Err(Reject::OldTerm));
    assert!(net.component(1).database().standing(Rank(3)).is_up());
    net.run_while(2_000, |net| net.component(1).suspects(Rank(3)));
    assert!(net.component(1).suspects(Rank(3)), "the manager waits for nothing");
}
