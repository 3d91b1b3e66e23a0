//! The database outlives the components (D-58), even if all of them end at once.

use super::net::Net;
use crate::dirnet::*;
use crate::ids::{Incarnation, Rank};

/// A cluster of three in which a task of node 1 has had three errors and node 2 is isolated.
fn marked() -> Net {
    let mut net = Net::settled(3);
    for at_us in [5, 6, 7] {
        let change = Change::TaskError { task: 1, kind: 9, at_us, alpha: None };
        net.input(1, |it, now| it.handle_change(now, change)).unwrap();
    }
    net.input(0, |it, now| it.isolate(now, Rank(2))).unwrap();
    net.run(500);
    net.crash(2);
    net
}

fn assert_marked(net: &Net, node: u16) {
    let db = net.component(node).database();
    assert_eq!(db.standing(Rank(2)).level, Level::Isolated, "at node {node}");
    let record = db.record(Rank(1)).unwrap();
    assert_eq!((record.error_count, record.tasks()[1].errors), (3, 3), "at node {node}");
    assert!(record.errors().map(|error| error.at_us).eq([5, 6, 7]), "at node {node}");
}

fn refused(net: &Net, node: u16, reason: Reject) -> u32 {
    net.component(node).rejects().of(reason)
}

#[test]
pub(in crate::dirnet) fn all_components_end_at_once_and_nothing_is_lost() {
    let mut net = marked();
    net.log.clear();
    for node in [0, 1] {
        net.crash(node);
    }
    for node in [0, 1] {
        net.boot(node);
        assert_marked(&net, node);
    }
    net.run(9_000);
    let role = |node| net.component(node).role();
    assert_eq!([role(0), role(1)], [Role::Manager, Role::Backup]);
    for node in [0, 1] {
        assert_marked(&net, node);
        let incarnation = net.component(node).database().record(Rank(1)).unwrap().incarnation;
        assert_eq!(
            incarnation.boot,
            Incarnation(2),
            "the next incarnation goes on with the record"
        );
        let fenced = Output::Fence { node: Rank(2), boot: Incarnation(1) };
        assert!(net.log.iter().any(|(_, at, output)| *at == node && *output == fenced));
    }
}

/// A torn snapshot is counted, and the one before is used.
#[test]
pub(in crate::dirnet) fn the_one_before_a_torn_snapshot_is_used() {
    let mut net = marked();
    net.crash(1);
    let [newest, before] = &mut net.nodes[1].saved;
    before.clone_from(newest);
    let last = newest.len() - 1;
    newest[last] ^= 1;
    net.boot(1);
    assert_eq!(refused(&net, 1, Reject::ImageChecksum), 1);
    assert_marked(&net, 1);
}

/// A component has saved an error and ends before any node learns of it: it is reported to the next
/// component again.
#[test]
pub(in crate::dirnet) fn an_error_that_is_told_again_is_counted_once() {
    let mut net = marked();
    net.crash(1);
    net.boot(1);
    for at_us in [6, 7, 8] {
        let change = Change::TaskError { task: 1, kind: 9, at_us, alpha: None };
        net.input(1, |it, now| it.handle_change(now, change)).unwrap();
    }
    let record = net.component(1).database().record(Rank(1)).unwrap();
    assert_eq!((record.error_count, record.tasks()[1].errors, record.seq), (4, 4, 1));
    assert!(record.errors().map(|error| error.at_us).eq([5, 6, 7, 8]));
}

/// A database may be older than a release: the released node reports the release itself.
#[test]
fn who_was_released_is_believed_about_isolations_that_are_over() {
    let mut net = marked();
    net.crash(1);
    net.boot(1);
    let level = |net: &Net| net.component(1).database().standing(Rank(2)).level;
    for (boot, expected) in [(0, Level::Isolated), (1, Level::Released), (9, Level::Released)] {
        net.input(1, |it, now| it.learn_release(now, Rank(2), Incarnation(boot)));
        assert_eq!(level(&net), expected);
    }
    net.input(1, |it, now| it.learn_release(now, Rank(0), Incarnation(9)));
    assert!(net.component(1).database().standing(Rank(0)).is_up());
}

/// If no snapshot is valid, the others are asked.
#[test]
pub(in crate::dirnet) fn what_cannot_be_restored_is_asked_for() {
    let mut net = marked();
    net.crash(1);
    let [newest, before] = &mut net.nodes[1].saved;
    newest.truncate(9);
    before[12] ^= 1;
    net.boot(1);
    assert_eq!(refused(&net, 1, Reject::ImageCount), 1);
    assert_eq!(refused(&net, 1, Reject::ImageChecksum), 1);
    assert!(!net.component(1).database().standing(Rank(2)).is_known());
    net.run_while(9_000, |net| net.component(1).database().standing(Rank(2)).is_known());
    assert_eq!(net.component(1).database().standing(Rank(2)).level, Level::Isolated);
}

/// What a node recorded in an earlier incarnation is recovered from the others before it records
/// anything new.
#[test]
pub(in crate::dirnet) fn the_own_entry_is_had_back_where_it_cannot_be_restored() {
    let mut net = marked();
    let isolated = Change::TaskStatus { task: 1, status: 3 };
    net.input(1, |it, now| it.handle_change(now, isolated)).unwrap();
    net.run(500);
    net.crash(1);
    net.forget_saved(1);
    net.boot(1);
    assert_eq!(net.component(1).past(), None);
    net.run_while(9_000, |net| net.component(1).past().is_some());
    let known = |net: &Net| net.component(1).past().map(|tasks| (tasks[1].status, tasks[1].errors));
    assert_eq!(known(&net), Some((3, 3)));
    let killed = Change::TaskStatus { task: 0, status: 2 };
    net.input(1, |it, now| it.handle_change(now, killed)).unwrap();
    net.run(9_000);
    for node in [0, 1] {
        assert_marked(&net, node);
        let record = *net.component(node).database().record(Rank(1)).unwrap();
        assert_eq!((record.incarnation.boot, record.tasks()[0].status), (Incarnation(2), 2));
        assert_eq!(record.tasks()[1].status, 3, "at node {node}");
    }
}

/// A first incarnation has no past, and neither has one that no node knows.
#[test]
pub(in crate::dirnet) fn a_past_that_nobody_knows_is_settled_as_such() {
    let net = Net::settled(3);
    for node in 0..3 {
        let tasks = net.component(node).past().expect("a first incarnation");
        assert!(tasks.iter().all(|task| *task == Task::default()));
    }
    let mut net = Net::settled(3);
    net.crash(0);
    net.forget_saved(0);
    net.boot(0);
    net.run_while(9_000, |net| net.component(0).past().is_some());
    assert!(net.component(0).past().is_some());
}

/// A snapshot of a future incarnation, or of a node with other tasks, comes from another cluster.
#[test]
pub(in crate::dirnet) fn a_snapshot_of_another_is_refused() {
    let mut net = marked();
    net.crash(1);
    let mut other = Database::<8, 2>::default();
    let later = ComponentIncarnation { boot: Incarnation(9), generation: 0 };
    other.merge(Rank(1), &Record::new(later, 0, 2));
    net.nodes[1].saved[0] = other.save(3, &mut [0; SNAPSHOT_LEN_MAX]).to_vec();
    let mut other = Database::<8, 2>::default();
    let early = ComponentIncarnation { boot: Incarnation(1), generation: 0 };
    other.merge(Rank(1), &Record::new(early, 0, 1));
    net.nodes[1].saved[1] = other.save(3, &mut [0; SNAPSHOT_LEN_MAX]).to_vec();
    net.boot(1);
    assert_eq!(refused(&net, 1, Reject::ImageField), 1);
    assert_eq!(refused(&net, 1, Reject::ImageCount), 1);
}

/// Found by the swarm: two incarnations that had removed each other's predecessors stayed silent
/// forever.
#[test]
pub(in crate::dirnet) fn halves_that_removed_each_other_meet_again_in_their_next_lives() {
    let mut net = Net::settled(2);
    net.resets_work = false;
    net.cuts.extend([(0, 1), (1, 0)]);
    net.run(3_000);
    for (node, other) in [(0, Rank(1)), (1, Rank(0))] {
        assert_eq!(net.component(node).database().standing(other).level, Level::Down);
    }
    net.crash(0);
    net.crash(1);
    net.cuts.clear();
    net.boot_all();
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole());
}
