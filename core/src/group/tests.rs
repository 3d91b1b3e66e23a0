//! Members over the loopback fabric.

mod calls;
mod planted;
mod returns;

use std::vec;
use std::vec::Vec;

use super::*;
use crate::decision::Decision;
use crate::fabric::loopback::{Loopback, Net};
use crate::fabric::{Completion, Fabric, Failure, Layout, Memory};
use crate::ids::{Incarnation, Peer, Term};
use crate::time::Instant;

const PEERS: usize = 4;
const WORDS: usize = 8192;
const WORLD: GroupId = GroupId(0);

/// A net, and where the groups are in its memory.
type Placed<'net> = (&'net Net<PEERS, WORDS>, (Config, Regions));
type Member<'net> = (Loopback<'net, PEERS, WORDS>, Groups<PEERS, 1>);

fn sizes(spread: Spread) -> Sizes {
    let tree = Tree { class: Class::Binary, costs: Costs::postal(1) };
    Sizes {
        peers: PEERS as u16,
        groups: 1,
        entries: 4,
        blocks: 4,
        block_len: 64,
        eager: 32,
        lane_slots: 4,
        tree,
        spread,
    }
}

fn net(spread: Spread) -> (Net<PEERS, WORDS>, Config, Regions) {
    let config = Config::new(sizes(spread)).unwrap();
    let mut layout = Layout::new(PEERS as u16);
    let regions = config.add_regions(&mut layout).unwrap();
    (Net::new(layout), config, regions)
}

fn start<'net>(
    net: &'net Net<PEERS, WORDS>,
    (config, regions): (Config, Regions),
    incarnation: u32,
    me: u16,
) -> Member<'net> {
    let incarnation = Incarnation(incarnation);
    let fabric = net.endpoint(Peer(me), incarnation);
    let groups = Groups::new(&fabric, config, regions, incarnation);
    (fabric, groups)
}

fn join(members: &mut [Member<'_>]) {
    let all = [0, 1, 2, 3].map(Peer);
    for (fabric, groups) in members.iter_mut() {
        groups.open(fabric, WORLD, &all).unwrap();
    }
    for one in 0..members.len() {
        for other in (0..members.len()).filter(|other| *other != one) {
            let peer = members[other].0.me();
            admit(&mut members[one], peer, 1);
        }
    }
    run(members);
}

fn send((fabric, groups): &mut Member<'_>, bytes: &[u8]) -> u64 {
    groups.broadcast(fabric, WORLD, 0, bytes).unwrap()
}

/// All four, which have opened the group together.
fn members(net: &Net<PEERS, WORDS>, at: (Config, Regions)) -> Vec<Member<'_>> {
    let mut members: Vec<_> = (0..4).map(|me| start(net, at, 1, me)).collect();
    join(&mut members);
    members
}

fn admit((fabric, groups): &mut Member<'_>, peer: Peer, incarnation: u32) {
    groups.prepare(fabric, peer, Incarnation(incarnation));
    fabric.admit(peer, Incarnation(incarnation)).unwrap();
    groups.handle_admitted(peer);
}

/// Polls until nothing can change any more.
fn run(members: &mut [Member<'_>]) {
    for _ in 0..200 {
        for (fabric, groups) in members.iter_mut() {
            let mut done = [Completion::NONE; 8];
            let count = fabric.poll(Instant(0), &mut done);
            done[..count].iter().for_each(|it| groups.handle_completion(fabric, it));
            groups.poll(fabric);
        }
    }
}

/// Everything that is delivered now, released at once.
fn take((fabric, groups): &mut Member<'_>) -> (Vec<(u64, Vec<u8>)>, Vec<Delivery>) {
    let (mut messages, mut ends) = (Vec::new(), Vec::new());
    let mut bytes = Vec::new();
    while let Some(delivery) = groups.receive(fabric, WORLD) {
        let Delivery::Chunk(chunk) = delivery else {
            ends.push(delivery);
            continue;
        };
        assert_eq!(chunk.offset, bytes.len() as u64);
        let mut part = vec![0; chunk.len as usize];
        fabric.memory().copy_out(chunk.at.region, chunk.at.offset, &mut part);
        bytes.extend(part);
        groups.release(fabric, chunk.receipt).unwrap();
        assert_eq!(groups.release(fabric, chunk.receipt), Err(UnknownReceipt));
        if chunk.is_last {
            messages.push((chunk.seq, core::mem::take(&mut bytes)));
        }
    }
    (messages, ends)
}

fn message(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + len) as u8).collect()
}

/// GT-14: small ones down the tree, long ones in blocks.
#[test]
fn messages_of_every_length_reach_all_members() {
    for spread in Spread::ALL {
        let (net, config, regions) = net(spread);
        let mut members = members(&net, (config, regions));
        let mut seq = 0;
        for len in [0, 1, 31, 32, 33, 64, 65, 200, 256] {
            let root = len % 4;
            let sent = message(len);
            let (fabric, groups) = &mut members[root];
            groups.broadcast(fabric, WORLD, 7, &sent).unwrap();
            run(&mut members);
            for (_, member) in members.iter_mut().enumerate().filter(|(it, _)| *it != root) {
                let (messages, ends) = take(member);
                assert_eq!(messages.len(), 1, "{spread:?} {len}");
                assert_eq!((&messages[0].1, ends.len()), (&sent, 0));
            }
            run(&mut members);
            assert!(members.iter().all(|(_, groups)| groups.is_idle(WORLD)), "{spread:?} {len}");
            seq += 1;
        }
        assert_eq!(seq, 9);
    }
}

/// GT-4: how blocks travel is in the entry.
#[test]
fn messages_that_travel_in_different_ways_are_under_way_at_once() {
    for first in Spread::ALL {
        let (net, config, regions) = net(first);
        let mut members = members(&net, (config, regions));
        let sent = message(64);
        let (fabric, groups) = &mut members[3];
        for spread in Spread::ALL.into_iter().filter(|spread| *spread != first) {
            groups.set_spread(WORLD, spread).unwrap();
            groups.broadcast(fabric, WORLD, 0, &sent).unwrap();
        }
        run(&mut members);
        for member in &mut members[..3] {
            let (messages, _) = take(member);
            assert_eq!(messages.len(), 4, "{first:?}");
            assert!(messages.iter().all(|(_, bytes)| *bytes == sent));
        }
        run(&mut members);
        assert!(members.iter().all(|(_, groups)| groups.is_idle(WORLD)), "{first:?}");
    }
}

/// GT-15: a consumer that does not release holds up its root, and the root names it.
#[test]
fn a_slow_consumer_fills_the_window() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    for _ in 0..4 {
        send(&mut members[0], b"x");
        run(&mut members);
        for fast in [1, 2] {
            assert_eq!(take(&mut members[fast]).0.len(), 1);
        }
    }
    run(&mut members);
    let (fabric, groups) = &mut members[0];
    let refused = groups.broadcast(fabric, WORLD, 0, b"x");
    assert!(matches!(refused, Err(SendError::WindowFull { .. })), "{refused:?}");
    assert_eq!(take(&mut members[3]).0.len(), 4);
    run(&mut members);
    assert_eq!(send(&mut members[0], b"x"), 5);
}

/// GT-16: of a removed root all survivors have the same messages.
#[test]
fn survivors_of_a_root_agree_on_its_last_message() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    // Member 1 alone has received the message when its root is lost.
    send(&mut members[0], &message(100));
    for _ in 0..8 {
        for at in [0, 1] {
            run(core::slice::from_mut(&mut members[at]));
        }
    }
    let mut survivors = members.split_off(1);
    for (fabric, groups) in &mut survivors {
        groups
            .remove(
                fabric,
                Decision { term: Term::of_epoch(1), removed: Peer(0), last: Incarnation(1) },
            )
            .unwrap();
    }
    run(&mut survivors);
    for member in &mut survivors {
        let (messages, ends) = take(member);
        assert_eq!(messages, [(1, message(100))]);
        assert_eq!(ends, [Delivery::RootLost { root: Grank(0), epoch: Incarnation(1), last: 1 }]);
    }
}

/// GT-5.
#[test]
fn a_wrong_list_of_members_is_refused() {
    let (net, config, regions) = net(Spread::Flat);
    let (fabric, mut groups) = start(&net, (config, regions), 1, 0);
    let mut open = |id, list: &[u16]| {
        let list: Vec<_> = list.iter().copied().map(Peer).collect();
        groups.open(&fabric, GroupId(id), &list)
    };
    assert_eq!(open(1, &[0, 1]), Err(OpenError::NoPlace));
    assert_eq!(open(0, &[0]), Err(OpenError::OneMember));
    assert_eq!(open(0, &[0, 1, 1]), Err(OpenError::Duplicate));
    assert_eq!(open(0, &[0, 4]), Err(OpenError::UnknownPeer));
    assert_eq!(open(0, &[1, 2]), Err(OpenError::NotAMember));
    assert_eq!(open(0, &[1, 0]), Ok(()));
    assert_eq!(open(0, &[1, 0]), Err(OpenError::IsOpen));
}

/// Member 0 begins again, as `root`, and the others admit it.
fn restart_root<'net>(members: &mut [Member<'net>], root: Member<'net>) {
    members[0] = root;
    let (fabric, groups) = &mut members[0];
    groups.open(fabric, WORLD, &[0, 1, 2, 3].map(Peer)).unwrap();
    for other in 1..4 {
        let (fabric, groups) = &mut members[other];
        fabric.fence(Peer(0)).unwrap();
        groups.handle_fenced(Peer(0));
        admit(&mut members[other], Peer(0), 2);
        admit(&mut members[0], Peer(other as u16), 1);
    }
}

/// Handed out and released: the first chunk, a whole block.
fn take_block((fabric, groups): &mut Member<'_>) {
    let first = groups.receive(fabric, WORLD);
    let Some(Delivery::Chunk(chunk)) = first else { panic!("{first:?}") };
    assert_eq!((chunk.len, chunk.is_last), (64, false));
    groups.release(fabric, chunk.receipt).unwrap();
}

/// GT-17: a message that a component did not finish is abandoned by the next.
#[test]
fn an_unfinished_message_is_abandoned_after_a_restart() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    let (fabric, groups) = &mut members[0];
    groups.begin(fabric, WORLD, 0, 200).unwrap();
    assert!(groups.space(fabric, WORLD).is_some_and(|(_, len)| len == 64));
    groups.commit(fabric, WORLD).unwrap();
    run(&mut members);
    restart_root(&mut members, start(&net, (config, regions), 2, 0));
    run(&mut members);
    send(&mut members[0], b"next");
    run(&mut members);
    for member in &mut members[1..] {
        take_block(member);
        let (messages, ends) = take(member);
        assert_eq!(ends, [Delivery::Abandoned { root: Grank(0), seq: 1 }]);
        assert_eq!(messages, [(3, b"next".to_vec())]);
    }
}

/// GT-14: member 2 is announced a block of message 3 and does not know yet that message 1 ended
/// before it, since entries come through member 1: the block is not one of message 1.
#[test]
fn a_block_that_is_announced_ahead_of_its_entry_waits_for_it() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    let (fabric, groups) = &mut members[0];
    groups.begin(fabric, WORLD, 0, 200).unwrap();
    groups.commit(fabric, WORLD).unwrap();
    run(&mut members);
    restart_root(&mut members, start(&net, (config, regions), 2, 0));
    // It agrees, and then forwards nothing.
    run(core::slice::from_mut(&mut members[1]));
    let run_others = |members: &mut [Member<'_>]| {
        for at in [0, 2, 3].repeat(8) {
            run(core::slice::from_mut(&mut members[at]));
        }
    };
    run_others(&mut members);
    assert_eq!(send(&mut members[0], &message(64)), 3);
    run_others(&mut members);
    take_block(&mut members[2]);
    assert_eq!(take(&mut members[2]), (Vec::new(), Vec::new()));
    run(&mut members);
    let ended = Delivery::Abandoned { root: Grank(0), seq: 1 };
    assert_eq!(take(&mut members[2]), (Vec::from([(3, message(64))]), Vec::from([ended])));
}

/// GT-17, GT-19: what a consumer was handed and came back after is not handed out once more.
#[test]
fn an_abandoned_message_is_reported_once_across_a_restart() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    let (fabric, groups) = &mut members[0];
    groups.begin(fabric, WORLD, 0, 200).unwrap();
    groups.commit(fabric, WORLD).unwrap();
    run(&mut members);
    restart_root(&mut members, start(&net, (config, regions), 2, 0));
    run(&mut members);
    take_block(&mut members[1]);
    let ended = Delivery::Abandoned { root: Grank(0), seq: 1 };
    assert_eq!(take(&mut members[1]), (Vec::new(), Vec::from([ended])));
    let mut again = start(&net, (config, regions), 2, 1);
    again.1.open(&again.0, WORLD, &[0, 1, 2, 3].map(Peer)).unwrap();
    assert_eq!(take(&mut again), (Vec::new(), Vec::new()));
}

#[test]
fn a_message_of_no_bytes_is_whole_once_it_is_begun() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    let (fabric, groups) = &mut members[0];
    assert_eq!(groups.begin(fabric, WORLD, 0, 0), Ok(1));
    assert_eq!(groups.commit(fabric, WORLD), Err(SendError::NotBegun));
    assert_eq!(groups.broadcast(fabric, WORLD, 0, b"next"), Ok(2));
    run(&mut members);
    assert_eq!(take(&mut members[1]).0, [(1, Vec::new()), (2, b"next".to_vec())]);
}

#[test]
fn what_is_sent_is_announced_before_its_root_polls() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    send(&mut members[0], b"short");
    run(&mut members[1..]);
    assert_eq!(take(&mut members[1]).0, [(1, b"short".to_vec())]);
    let (fabric, groups) = &mut members[0];
    groups.begin(fabric, WORLD, 0, 200).unwrap();
    groups.commit(fabric, WORLD).unwrap();
    run(&mut members[1..]);
    take_block(&mut members[1]);
}

/// A read that fails is posted again; one whose post is refused does not count.
#[test]
fn reads_and_failed_reads_are_counted() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    send(&mut members[0], &message(200));
    let (fabric, groups) = &mut members[1];
    groups.poll(fabric);
    let mut done = [Completion::NONE; 8];
    let count = fabric.poll(Instant(0), &mut done);
    for it in &mut done[..count] {
        it.outcome = Err(Failure::DeadlinePassed);
        groups.handle_completion(fabric, it);
    }
    let counted = |member: &Member<'_>| {
        let counters = member.1.counters();
        (counters.reads, counters.failed_reads)
    };
    assert_eq!(counted(&members[1]), (4, 4));
    run(&mut members);
    members[1..].iter_mut().for_each(|member| assert_eq!(take(member).0, [(1, message(200))]));
    run(&mut members);
    send(&mut members[0], &message(200));
    // The connection is lost, and the group does not know yet.
    members[1].0.fence(Peer(0)).unwrap();
    run(&mut members[1..2]);
    assert_eq!((counted(&members[1]), take(&mut members[1]).0), ((8, 4), Vec::new()));
}

/// GT-15: what is released is acknowledged by quarters of the window, and when all is released.
#[test]
fn a_member_acknowledges_a_quarter_of_a_window_at_a_time() {
    let config = Config::new(Sizes { entries: 16, ..sizes(Spread::Flat) }).unwrap();
    let mut layout = Layout::new(PEERS as u16);
    let regions = config.add_regions(&mut layout).unwrap();
    let net: Net<PEERS, WORDS> = Net::new(layout);
    let mut members = members(&net, (config, regions));
    let stable = |it: &Member<'_>| it.1.standing(WORLD, Grank(0)).unwrap().stable.entries;
    for sent in 1..=3 {
        assert_eq!(send(&mut members[0], b"x"), sent);
    }
    run(&mut members);
    for (fabric, groups) in &mut members[1..] {
        let first = groups.receive(fabric, WORLD);
        let Some(Delivery::Chunk(chunk)) = first else { panic!("{first:?}") };
        groups.release(fabric, chunk.receipt).unwrap();
    }
    run(&mut members);
    assert_eq!(stable(&members[0]), 0);
    members[1..].iter_mut().for_each(|member| assert_eq!(take(member).0.len(), 2));
    run(&mut members);
    assert_eq!(stable(&members[0]), 3);
}
