//! Barriers and all-gathers.

use super::*;

fn remove(members: &mut [Member<'_>], removed: u16) {
    for (fabric, groups) in members {
        groups
            .remove(
                fabric,
                Decision { term: Term::of_epoch(1), removed: Peer(removed), last: Incarnation(1) },
            )
            .unwrap();
    }
}

/// Those that leave their barrier now.
fn leavers(members: &mut [Member<'_>]) -> Vec<u16> {
    let left = members
        .iter_mut()
        .filter_map(|(fabric, groups)| groups.leave(fabric, WORLD).map(|_| fabric.me().0));
    left.collect()
}

fn arrive((fabric, groups): &mut Member<'_>) -> u64 {
    groups.arrive(fabric, WORLD).unwrap()
}

fn gather((fabric, groups): &mut Member<'_>, mine: &[u8]) {
    groups.all_gather(fabric, WORLD, mine).unwrap();
}

/// The values, taken.
fn values((fabric, groups): &mut Member<'_>) -> Option<Vec<Option<Vec<u8>>>> {
    let gathered = groups.gathered(fabric, WORLD)?;
    let values = gathered.values[..usize::from(gathered.count)].iter().map(|value| {
        value.map(|(_, at, len)| {
            let mut bytes = vec![0; len as usize];
            fabric.memory().copy_out(at.region, at.offset, &mut bytes);
            bytes
        })
    });
    let values = values.collect();
    groups.end_gather(fabric, WORLD);
    assert_eq!(groups.gathered(fabric, WORLD), None);
    Some(values)
}

/// GT-10.
#[test]
fn a_barrier_is_left_once_the_last_has_arrived() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    for (number, last) in [(1, 3), (2, 0), (3, 1)] {
        for at in (0..4).filter(|at| *at != last) {
            // To arrive twice is to arrive once.
            assert_eq!([arrive(&mut members[at]), arrive(&mut members[at])], [number; 2]);
        }
        run(&mut members);
        assert_eq!(leavers(&mut members), []);
        arrive(&mut members[last]);
        run(&mut members);
        assert_eq!(leavers(&mut members), [0, 1, 2, 3]);
        assert_eq!(leavers(&mut members), []);
    }
}

/// GT-10: the coordinator is removed after one member alone has learned of the release.
#[test]
fn survivors_leave_a_barrier_whose_coordinator_is_removed() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    members.iter_mut().for_each(|member| assert_eq!(arrive(member), 1));
    // Member 3 stands below member 1: 2 is the only one that hears the coordinator.
    for at in [3, 1, 0, 2].repeat(8) {
        let is_silent = at == 1 && members[0].1.calls(WORLD).unwrap().left == 1;
        if !is_silent {
            run(core::slice::from_mut(&mut members[at]));
        }
        leavers(&mut members[..1]);
    }
    let mut survivors = members.split_off(1);
    remove(&mut survivors, 0);
    run(&mut survivors);
    assert_eq!(leavers(&mut survivors), [1, 2, 3]);
}

/// GT-10: a member that never arrives is waited for until it is removed.
#[test]
fn a_barrier_does_not_wait_for_a_removed_member() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    members.iter_mut().filter(|it| it.0.me() != Peer(1)).for_each(|it| assert_eq!(arrive(it), 1));
    run(&mut members);
    assert_eq!(leavers(&mut members), []);
    members.remove(1);
    remove(&mut members, 1);
    run(&mut members);
    assert_eq!(leavers(&mut members), [0, 2, 3]);
}

/// GT-19: the arrival of an earlier incarnation stands.
#[test]
fn a_component_that_begins_again_is_still_in_its_barrier() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    members[..3].iter_mut().for_each(|member| assert_eq!(arrive(member), 1));
    run(&mut members);
    restart_root(&mut members, start(&net, (config, regions), 2, 0));
    run(&mut members);
    assert_eq!(members[0].1.calls(WORLD).unwrap(), Calls { arrived: 1, ..Calls::default() });
    assert_eq!(leavers(&mut members), []);
    arrive(&mut members[3]);
    run(&mut members);
    assert_eq!(leavers(&mut members), [0, 1, 2, 3]);
}

/// GT-11, and more all-gathers than the window has entries, without a consumer.
#[test]
fn all_members_gather_the_values_of_all() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    for round in 0..10_u8 {
        let due: Vec<_> = (0..4).map(|me| Some(vec![round; me])).collect();
        for (member, mine) in members.iter_mut().zip(&due) {
            assert_eq!(values(member), None);
            gather(member, mine.as_ref().unwrap());
            let (fabric, groups) = member;
            // There are no values to take yet.
            groups.end_gather(fabric, WORLD);
            assert_eq!(groups.all_gather(fabric, WORLD, b"x"), Err(SendError::Gathering));
        }
        run(&mut members);
        members.iter_mut().for_each(|member| assert_eq!(values(member).as_ref(), Some(&due)));
        run(&mut members);
    }
    let (fabric, groups) = &mut members[0];
    assert_eq!(groups.all_gather(fabric, WORLD, &[0; 33]), Err(SendError::TooLong { limit: 32 }));
}

/// GT-11: member 1 alone has the value of member 0 when that is removed; 3 has never sent one.
#[test]
fn survivors_gather_the_same_values_of_removed_members() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    gather(&mut members[0], b"zero");
    for at in [0, 1].repeat(8) {
        run(core::slice::from_mut(&mut members[at]));
    }
    let mut survivors = members.split_off(1);
    remove(&mut survivors, 0);
    survivors[..2].iter_mut().for_each(|member| gather(member, b"mine"));
    run(&mut survivors);
    assert_eq!(values(&mut survivors[0]), None);
    survivors.truncate(2);
    remove(&mut survivors, 3);
    run(&mut survivors);
    let due = [&b"zero"[..], b"mine", b"mine"].map(|value| Some(value.to_vec()));
    let due = [&due[..], &[None]].concat();
    survivors.iter_mut().for_each(|member| assert_eq!(values(member).as_ref(), Some(&due)));
}

/// GT-11: a value does not overtake, and is not overtaken.
#[test]
fn values_keep_their_place_among_messages() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    for payload in [b"before", b"behind"] {
        send(&mut members[0], payload);
        if payload == b"before" {
            gather(&mut members[0], b"value");
        }
    }
    run(&mut members);
    assert_eq!(take(&mut members[1]).0, [(1, b"before".to_vec())]);
    members[1..].iter_mut().for_each(|member| gather(member, b""));
    run(&mut members);
    let gathered = values(&mut members[1]).expect("all values are there");
    assert_eq!(gathered[0].as_deref(), Some(&b"value"[..]));
    assert_eq!(take(&mut members[1]).0, [(3, b"behind".to_vec())]);
}

/// GT-19: the value of an earlier incarnation stands, also while its messages go on.
#[test]
fn a_component_that_begins_again_is_still_in_its_all_gather() {
    let (net, config, regions) = net(Spread::Flat);
    let mut members = members(&net, (config, regions));
    gather(&mut members[0], b"zero");
    run(&mut members);
    restart_root(&mut members, start(&net, (config, regions), 2, 0));
    run(&mut members);
    let calls = members[0].1.calls(WORLD).unwrap();
    assert_eq!((calls.sent, calls.taken), (1, 0));
    members[1..].iter_mut().for_each(|member| gather(member, b"other"));
    run(&mut members);
    for member in &mut members[1..] {
        assert_eq!(values(member).unwrap()[0].as_deref(), Some(&b"zero"[..]));
    }
    // The others have released it; it stays until it is taken here.
    for sent in 2..=5 {
        run(&mut members);
        members[1..].iter_mut().for_each(|member| drop(take(member)));
        let (fabric, groups) = &mut members[0];
        let refused = Err(SendError::WindowFull { hindmost: Some(Grank(1)) });
        let due = if sent < 5 { Ok(sent) } else { refused };
        assert_eq!(groups.broadcast(fabric, WORLD, 0, b"x"), due);
    }
    assert_eq!(values(&mut members[0]).unwrap()[0].as_deref(), Some(&b"zero"[..]));
}
