//! Members that were removed and come back (GT-20).

use super::*;

const ALL: [Peer; 4] = [Peer(0), Peer(1), Peer(2), Peer(3)];

/// The epochs of `removed` up to `last` are over, as this member knows.
pub(super) fn remove((fabric, groups): &mut Member<'_>, removed: u16, last: u32) {
    let decision =
        Decision { term: Term::of_epoch(1), removed: Peer(removed), last: Incarnation(last) };
    groups.remove(fabric, decision).unwrap();
}

/// The next epoch of `me`, over the memory of the one before, admitted by all of `others` and not
/// polled yet.
pub(super) fn come_back<'net>(
    (net, at): Placed<'net>,
    others: &mut [Member<'net>],
    (me, epoch, theirs): (u16, u32, u32),
) -> Member<'net> {
    let (fabric, groups) = start(net, at, epoch, me);
    let mut groups = groups.in_epoch(Incarnation(epoch));
    groups.open(&fabric, WORLD, &ALL).unwrap();
    let mut member = (fabric, groups);
    for other in others {
        remove(other, me, epoch - 1);
        admit(other, Peer(me), epoch);
        let peer = other.0.me();
        if theirs > 1 {
            remove(&mut member, peer.0, theirs - 1);
        }
        admit(&mut member, peer, theirs);
    }
    member
}

/// The last of four comes back in `epoch`, and all of them run.
pub(super) fn replace_last<'net>(at: Placed<'net>, members: &mut Vec<Member<'net>>, epoch: u32) {
    members.pop();
    let back = come_back(at, members, (3, epoch, 1));
    members.push(back);
    run(members);
}

fn texts(member: &mut Member<'_>) -> Vec<(u64, Vec<u8>)> {
    take(member).0
}

#[test]
fn a_member_that_comes_back_receives_what_is_sent_from_then_on_and_sends_again() {
    for spread in [Spread::Flat, Spread::Pipeline] {
        let (net, config, regions) = net(spread);
        let mut members = members(&net, (config, regions));
        send(&mut members[0], b"before");
        send(&mut members[3], b"mine");
        run(&mut members);
        members.iter_mut().for_each(|member| drop(take(member)));
        run(&mut members);
        replace_last((&net, (config, regions)), &mut members, 2);
        assert!(!members[3].1.is_fresh(WORLD) && members[3].1.is_open(WORLD));
        // The loss of the earlier epoch is handed out before anything of the present one.
        let lost = Delivery::RootLost { root: Grank(3), epoch: Incarnation(1), last: 1 };
        assert_eq!(send(&mut members[3], b"again"), 1);
        run(&mut members);
        for member in &mut members[..3] {
            assert_eq!(member.1.receive(&member.0, WORLD), Some(lost));
            assert_eq!(texts(member), [(1, b"again".to_vec())]);
        }
        send(&mut members[0], &message(200));
        run(&mut members);
        assert_eq!(texts(&mut members[3]), [(2, message(200))]);
    }
}

/// What some member has not released stays in the window, and is received.
#[test]
fn a_member_that_comes_back_begins_behind_what_is_stable() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    for text in [b"one", b"two", b"six"] {
        send(&mut members[0], text);
    }
    run(&mut members);
    texts(&mut members[2]);
    let (fabric, groups) = &mut members[1];
    let Some(Delivery::Chunk(first)) = groups.receive(fabric, WORLD) else { panic!("a message") };
    groups.release(fabric, first.receipt).unwrap();
    replace_last((&net, (config, regions)), &mut members, 2);
    let received = texts(&mut members[3]);
    assert_eq!(received.last(), Some(&(3, b"six".to_vec())));
    assert_eq!(received.first().map(|it| it.0), Some(2), "member 1 has released the first alone");
}

#[test]
fn a_member_does_not_come_back_before_all_have_closed_its_earlier_stream() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    members.pop();
    // Member 2 is silent: of the other two, neither knows the end.
    let back = come_back((&net, (config, regions)), &mut members[..2], (3, 2, 1));
    members.push(back);
    for at in [0, 1, 3].repeat(8) {
        run(core::slice::from_mut(&mut members[at]));
    }
    assert!(members[3].1.is_fresh(WORLD));
    assert!(!members[0].1.live(WORLD).contains(Peer(3)));
    let (fabric, groups) = &mut members[3];
    assert_eq!(groups.broadcast(fabric, WORLD, 0, b"x"), Err(SendError::NotOpen));
    remove(&mut members[2], 3, 1);
    admit(&mut members[2], Peer(3), 2);
    admit(&mut members[3], Peer(2), 1);
    run(&mut members);
    assert!(members.iter().all(|(_, groups)| groups.live(WORLD).count() == 4));
    assert!(!members[3].1.is_fresh(WORLD));
}

/// No member has stayed that could welcome the others.
#[test]
fn where_all_have_come_back_they_begin_together() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    send(&mut members[0], b"lost");
    members.iter_mut().for_each(|(fabric, groups)| {
        groups.arrive(fabric, WORLD).unwrap();
    });
    run(&mut members);
    let (fabric, groups) = &mut members[0];
    assert_eq!(groups.leave(fabric, WORLD), Some(1));
    let mut back: Vec<Member<'_>> = Vec::new();
    for me in 0..4 {
        members.remove(0);
        let mut member = come_back((&net, (config, regions)), &mut back, (me, 2, 2));
        for other in me + 1..4 {
            remove(&mut member, other, 1);
        }
        back.push(member);
    }
    run(&mut back);
    assert!(back.iter().all(|(_, groups)| !groups.is_fresh(WORLD)));
    assert!(back.iter().all(|it| it.1.calls(WORLD) == Some(Calls::default())), "nothing is left");
    assert_eq!(send(&mut back[2], b"first"), 1);
    run(&mut back);
    assert_eq!(take(&mut back[1]), (Vec::from([(1, b"first".to_vec())]), Vec::new()));
}

/// The one that comes back goes on behind barriers that were left, and has no part in an all-gather
/// that was begun.
#[test]
fn barriers_and_all_gathers_go_on_across_a_return() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    let arrive = |(fabric, groups): &mut Member<'_>| groups.arrive(fabric, WORLD).unwrap();
    let leave = |(fabric, groups): &mut Member<'_>| groups.leave(fabric, WORLD);
    members.iter_mut().for_each(|member| assert_eq!(arrive(member), 1));
    run(&mut members);
    members.iter_mut().for_each(|member| assert_eq!(leave(member), Some(1)));
    let (fabric, groups) = &mut members[0];
    groups.all_gather(fabric, WORLD, b"a").unwrap();
    replace_last((&net, (config, regions)), &mut members, 2);
    for (fabric, groups) in &mut members[1..3] {
        groups.all_gather(fabric, WORLD, b"b").unwrap();
    }
    members.iter_mut().for_each(|member| assert_eq!(arrive(member), 2));
    run(&mut members);
    members.iter_mut().for_each(|member| assert_eq!(leave(member), Some(2)));
    for (fabric, groups) in &members[..3] {
        let values = groups.gathered(fabric, WORLD).expect("it does not wait").values;
        assert_eq!(values.map(|value| value.is_some()), [true, true, true, false]);
    }
    let (fabric, groups) = &mut members[3];
    assert_eq!(groups.all_gather(fabric, WORLD, b"c"), Ok(2));
}

/// A decision about an earlier epoch arrives late: the present one stays.
#[test]
fn a_late_decision_about_an_earlier_epoch_changes_nothing() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    replace_last((&net, (config, regions)), &mut members, 4);
    remove(&mut members[0], 3, 2);
    run(&mut members);
    assert!(members[0].1.live(WORLD).contains(Peer(3)));
    send(&mut members[0], b"still here");
    run(&mut members);
    assert_eq!(texts(&mut members[3]), [(1, b"still here".to_vec())]);
}

/// GT-20: who takes part in all-gathers alone goes on to the next epoch of a member, too, and is
/// handed the end of the one before when it receives.
#[test]
fn one_that_only_gathers_does_not_wait_for_a_member_that_came_back() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    send(&mut members[3], b"mine");
    run(&mut members);
    members.iter_mut().for_each(|member| drop(take(member)));
    run(&mut members);
    replace_last((&net, (config, regions)), &mut members, 2);
    for (at, (fabric, groups)) in members.iter_mut().enumerate() {
        groups.all_gather(fabric, WORLD, &[at as u8]).unwrap();
    }
    run(&mut members);
    for (fabric, groups) in &mut members {
        let gathered = groups.gathered(fabric, WORLD).expect("nothing was received meanwhile");
        assert!(gathered.values[..4].iter().all(Option::is_some), "{:?}", gathered.values);
        groups.end_gather(fabric, WORLD);
    }
    let lost = Delivery::RootLost { root: Grank(3), epoch: Incarnation(1), last: 1 };
    for (fabric, groups) in &mut members[..3] {
        assert_eq!(groups.receive(fabric, WORLD), Some(lost));
    }
}

/// Others may count an epoch from the moment at which it has opened the group, and no earlier.
#[test]
fn an_epoch_has_begun_once_it_has_opened_the_group() {
    let (net, config, regions) = net(Spread::Flat);
    let has_begun = |incarnation, epoch| {
        let (fabric, groups) = start(&net, (config, regions), incarnation, 3);
        groups.in_epoch(Incarnation(epoch)).is_begun(&fabric, WORLD, &ALL).unwrap()
    };
    assert!(has_begun(1, 1), "all open it in the first");
    assert!(!has_begun(2, 2));
    drop(come_back((&net, (config, regions)), &mut [], (3, 3, 1)));
    assert!(has_begun(4, 3), "a later incarnation of it");
    assert!(!has_begun(5, 5), "the next");
}

/// A program may ask for a group long after a decision.
#[test]
fn a_group_that_is_opened_after_a_removal_is_without_the_removed_member() {
    let (net, config, regions) = net(Spread::Flat);
    let mut member = start(&net, (config, regions), 1, 0);
    remove(&mut member, 2, 1);
    let (fabric, mut groups) = member;
    groups.open(&fabric, WORLD, &ALL).unwrap();
    assert!(!groups.live(WORLD).contains(Peer(2)));
    assert!([0, 1, 3].map(Peer).iter().all(|peer| groups.live(WORLD).contains(*peer)));
}

/// The frames that the others sent before are lost; they send them again.
#[test]
fn a_member_that_opens_the_group_late_is_heard_and_hears_the_others() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members: Vec<_> = (0..4).map(|me| start(&net, (config, regions), 1, me)).collect();
    let open = |(fabric, groups): &mut Member<'_>| groups.open(fabric, WORLD, &ALL).unwrap();
    members[..3].iter_mut().for_each(open);
    for (one, member) in members.iter_mut().enumerate() {
        (0..4).filter(|other| *other != one).for_each(|it| admit(member, Peer(it as u16), 1));
    }
    run(&mut members);
    assert!(!members.iter().any(|(_, groups)| groups.is_open(WORLD)));
    open(&mut members[3]);
    run(&mut members);
    assert!(members.iter().all(|(_, groups)| groups.is_open(WORLD)));
}
