//! the manager hands over to another node, in order.

use super::net::{Net, timing};
use crate::dirnet::*;
use crate::ids::Rank;

fn hand_over(net: &mut Net, to: u16) -> Result<(), Reject> {
    let manager = net.manager().expect("there is one");
    net.input(manager, |it, now| it.hand_over(now, Rank(to)))
}

/// The last HANDOVER that was sent.
fn sent(net: &Net) -> Frame {
    let frame = |output: &Output| match output {
        Output::Send { frame, .. } if frame.message.name() == "HANDOVER" => Some(*frame),
        _ => None,
    };
    net.log.iter().rev().find_map(|(_, _, output)| frame(output)).expect("one was sent")
}

fn incarnations(net: &Net) -> std::vec::Vec<ComponentIncarnation> {
    (0..net.nodes.len()).map(|node| net.component(node as u16).incarnation()).collect()
}

/// All are members again, under `manager`.
fn assert_whole(net: &mut Net, manager: u16) {
    net.run_while(20_000, |net| net.is_whole() && net.manager() == Some(manager));
    assert!(net.is_whole() && net.manager() == Some(manager), "{:?}", net.manager());
}

#[test]
pub(in crate::dirnet) fn x17_the_next_one_claims_and_the_manager_is_a_backup_in_place() {
    let mut net = Net::settled(4);
    let before = incarnations(&net);
    for (to, epoch) in [(2, 2), (3, 3), (0, 4), (1, 5)] {
        let manager = net.manager().expect("there is one");
        assert_eq!(hand_over(&mut net, to), Ok(()));
        assert_eq!(net.manager(), Some(manager), "it manages until a later term arrives");
        // The claim itself is announced.
        net.lost.extend(["BEAT", "DB"]);
        let took = net.run_while(1_000, |net| net.manager() == Some(to));
        net.lost.clear();
        assert!(took <= 3, "{took} ms");
        assert_eq!(net.component(manager).term(), Term { epoch, claimant: Rank(to) });
        assert_eq!(net.component(manager).role(), Role::Backup);
        assert_eq!(net.rules(to, Verdict::TookOver), [Rule::HandOver]);
        net.run(2_000);
        assert_whole(&mut net, to);
        let record = net.component(to).database().record(Rank(manager)).expect("it is a member");
        assert_eq!(record.role, Part::Backup as u8);
    }
    assert_eq!((incarnations(&net), net.resets().len()), (before, 0));
    assert_eq!(net.verdicts().len(), 4, "nothing else was decided");
    let suspected = |node| net.reported(News::Suspected(Rank(node)));
    assert_eq!((0..4).map(suspected).sum::<usize>(), 0);
}

#[test]
pub(in crate::dirnet) fn x17_a_handover_that_is_lost_changes_nothing_and_may_be_repeated() {
    let mut net = Net::settled(3);
    net.lost.push("HANDOVER");
    assert_eq!(hand_over(&mut net, 2), Ok(()));
    net.run(3_000);
    assert!(net.manager() == Some(0) && net.verdicts().is_empty());
    net.lost.clear();
    for _ in 0..3 {
        assert_eq!(hand_over(&mut net, 2), Ok(()));
    }
    net.run(3_000);
    assert_eq!((net.manager(), net.component(0).term().epoch), (Some(2), 2), "one term later");
    assert_eq!(net.verdicts().len(), 1);
}

#[test]
pub(in crate::dirnet) fn x17_only_the_manager_of_the_term_hands_over() {
    let mut net = Net::settled(4);
    net.lost.push("HANDOVER");
    assert_eq!(hand_over(&mut net, 2), Ok(()));
    let order = sent(&net);
    let term = order.term;
    let by_backup = Frame { message: order.message, ..net.frame(3, Message::Nmi) };
    let by_task = Frame { seat: Seat::ImAliveTask, sequence: 7, ..order };
    let of_later = Frame { term: Term { epoch: 9, claimant: Rank(3) }, ..order };
    let in_its_name = net.input(2, |it, now| it.handle_message(now, Rank(3), &order));
    assert_eq!(in_its_name, Err(Reject::Forged));
    assert_eq!(net.deliver(2, by_backup), Err(Reject::NotManager));
    assert_eq!(net.deliver(2, by_task), Err(Reject::WrongSeat));
    assert_eq!(net.component(2).term(), term);
    // A node that names another's term is followed to it, and hands over nothing.
    assert_eq!(net.deliver(2, of_later), Err(Reject::NotManager));
    assert_eq!(net.component(2).role(), Role::Backup);
    assert_eq!(net.rules(2, Verdict::TookOver), []);
}

#[test]
pub(in crate::dirnet) fn x17_a_handover_of_an_earlier_term_does_nothing() {
    let mut net = Net::settled(4);
    net.lost.push("HANDOVER");
    assert_eq!(hand_over(&mut net, 2), Ok(()));
    let stale = sent(&net);
    net.lost.clear();
    assert_eq!(hand_over(&mut net, 3), Ok(()));
    net.run_while(1_000, |net| net.manager() == Some(3));
    let repeated = sent(&net);
    assert_eq!(net.deliver(2, stale), Err(Reject::OldTerm));
    assert_eq!(net.deliver(3, repeated), Err(Reject::Duplicate));
    let again = Frame { sequence: repeated.sequence.wrapping_add(9), ..repeated };
    assert_eq!(net.deliver(3, again), Err(Reject::OldTerm));
    assert_eq!(net.component(3).term().epoch, 2);
    assert_whole(&mut net, 3);
}

/// The receiver stands still before the message arrives. After a short while the order may be
/// repeated; after a long one it is another boot's.
#[test]
pub(in crate::dirnet) fn x17_a_handover_that_took_long_does_nothing() {
    for ms in [160, 10_000] {
        let mut net = Net::settled(4);
        net.stall(2, ms);
        assert_eq!(hand_over(&mut net, 2), Ok(()));
        let order = sent(&net);
        net.run(ms + 20);
        let late = ms == 160;
        assert_eq!(net.rules(2, Verdict::TookOver), [], "after {ms} ms");
        net.run(3_000);
        assert_whole(&mut net, 0);
        if late {
            assert_eq!(net.component(2).rejects().of(Reject::Late), 1);
            let again = Frame { sequence: order.sequence.wrapping_add(9), ..order };
            assert_eq!(net.deliver(2, again), Err(Reject::Late), "it echoes an old heartbeat");
        }
        assert_eq!(hand_over(&mut net, 2), Ok(()));
        assert_whole(&mut net, 2);
    }
}

/// Heartbeats are counted from shortly before the count wraps.
#[test]
fn x17_a_heartbeat_of_before_the_wrap_is_as_old_as_any() {
    let mut net = Net::settled(4);
    net.lost.push("HANDOVER");
    let within = u32::try_from(timing().receive.0 / timing().send.0).expect("a few");
    let mut wrapped = 0;
    for _ in 0..100 {
        assert_eq!(hand_over(&mut net, 2), Ok(()));
        let order = sent(&net);
        let Message::HandOver { incarnation, echo } = order.message else { panic!("it is one") };
        let old = echo.wrapping_sub(within + 1);
        wrapped += u32::from(old > echo);
        let message = Message::HandOver { incarnation, echo: old };
        assert_eq!(net.deliver(2, Frame { message, ..order }), Err(Reject::Late), "{old} {echo}");
        net.run(timing().send.as_micros() / 1_000);
    }
    assert!(wrapped > 0, "the count wraps within the test");
}

/// It was for a component that has ended, and whose clone has come as far with its heartbeats.
#[test]
fn x17_a_handover_to_an_earlier_incarnation_does_nothing() {
    let mut net = Net::settled(4);
    net.lost.push("HANDOVER");
    net.hang(2);
    net.run_while(5_000, |net| net.rules(2, Verdict::AgentDown).len() == 1 && net.is_whole());
    net.run(1_000);
    assert_eq!(hand_over(&mut net, 2), Ok(()));
    let order = sent(&net);
    let Message::HandOver { incarnation, echo } = order.message else { panic!("it is one") };
    assert_eq!(incarnation, net.component(2).incarnation());
    let before = ComponentIncarnation { generation: 0, ..incarnation };
    let message = Message::HandOver { incarnation: before, echo };
    let sequence = order.sequence.wrapping_add(9);
    assert_eq!(net.deliver(2, Frame { message, sequence, ..order }), Err(Reject::Late));
    assert_eq!(net.deliver(2, order), Ok(()));
}

#[test]
fn x17_an_order_that_cannot_be_carried_out_is_refused() {
    let mut net = Net::new(5);
    net.parts[4] = Part::Agent;
    net.resets_work = false;
    net.boot_all();
    net.run(1_000);
    net.crash(3);
    let receive = timing().receive.0 / 1_000_000;
    net.run(receive + 50);
    assert!(net.component(0).suspects(Rank(3)));
    let mut refused = |node, why| assert_eq!(hand_over(&mut net, node), Err(why), "{node}");
    refused(0, Reject::BadSubject);
    refused(3, Reject::BadSubject);
    refused(4, Reject::BadSubject);
    refused(7, Reject::BadSubject);
    assert_eq!(net.input(0, |it, now| it.isolate(now, Rank(2))), Ok(()));
    assert_eq!(hand_over(&mut net, 2), Err(Reject::BadSubject));
    assert_eq!(net.input(1, |it, now| it.hand_over(now, Rank(0))), Err(Reject::NotManager));
    assert_eq!(net.sent.get("HANDOVER"), None);
}

/// G-11: a claim needs `min_alive` members.
#[test]
fn x17_too_few_hand_over_to_none() {
    let mut net = Net::settled_with(3, 3);
    assert_eq!(hand_over(&mut net, 1), Ok(()));
    assert_whole(&mut net, 1);
    net.lost.push("HANDOVER");
    assert_eq!(hand_over(&mut net, 0), Ok(()));
    let order = sent(&net);
    assert_eq!(net.input(1, |it, now| it.isolate(now, Rank(2))), Ok(()));
    net.run(5);
    assert_eq!(net.deliver(0, order), Err(Reject::BadSubject), "it knows of the isolation");
    assert_eq!(net.log.last(), Some(&(net.now, 0, Output::Tell(News::TooFew))));
    let refused = net.input(1, |it, now| it.hand_over(now, Rank(0)));
    assert_eq!(refused, Err(Reject::BadSubject));
}

/// Two orders at once: each receiver claims a term of its own, and the higher one wins.
#[test]
fn x17_of_two_that_are_handed_over_to_one_is_followed() {
    let mut net = Net::settled(5);
    assert_eq!(hand_over(&mut net, 2), Ok(()));
    assert_eq!(hand_over(&mut net, 3), Ok(()));
    assert_whole(&mut net, 3);
    assert_eq!(net.component(0).term(), Term { epoch: 2, claimant: Rank(3) });
    assert!(net.resets().is_empty());
}

#[test]
fn x17_whichever_of_the_two_dies_the_others_have_a_manager() {
    // The manager before, or the next one; before the message arrives, before the claim does, and
    // later.
    for (dead, after) in [0, 2].into_iter().flat_map(|dead| [0, 1, 2, 30].map(|ms| (dead, ms))) {
        let mut net = Net::settled(4);
        assert_eq!(hand_over(&mut net, 2), Ok(()));
        net.run(after);
        net.crash(dead);
        net.run(3_000);
        net.run_while(20_000, Net::is_whole);
        assert!(net.is_whole(), "node {dead} has died after {after} ms");
        assert_eq!(net.resets().len(), 1);
    }
}

/// A suspicion, fences that are awaited, a clone, and an isolation.
#[test]
fn x17_what_the_manager_has_begun_is_completed() {
    let mut net = Net::settled(5);
    net.crash(4);
    net.run_while(5_000, |net| net.component(0).suspects(Rank(4)));
    assert_eq!(hand_over(&mut net, 1), Ok(()));
    assert_whole(&mut net, 1);
    assert_eq!(net.resets().len(), 1);

    net.run(1_000);
    net.lost.push("FENCED");
    net.crash(4);
    net.run_while(5_000, |net| !net.rules(4, Verdict::NodeDown).is_empty());
    assert_eq!(hand_over(&mut net, 2), Ok(()));
    net.run_while(100, |net| net.manager() == Some(2));
    net.lost.clear();
    assert_whole(&mut net, 2);
    assert_eq!(net.resets().len(), 2);

    net.run(1_000);
    net.spawn *= 10;
    net.hang(4);
    net.run_while(5_000, |net| !net.rules(4, Verdict::AgentDown).is_empty());
    assert_eq!(hand_over(&mut net, 3), Ok(()));
    assert_whole(&mut net, 3);
    assert_eq!(net.component(4).incarnation().generation, 1);

    assert_eq!(net.input(3, |it, now| it.isolate(now, Rank(4))), Ok(()));
    assert_eq!(net.input(3, |it, now| it.hand_over(now, Rank(0))), Ok(()));
    net.run(3_000);
    let level = |at| net.component(at).database().standing(Rank(4)).level;
    assert_eq!([0, 1, 2, 3].map(level), [Level::Isolated; 4]);
    assert_eq!(net.component(0).role(), Role::Manager);
    assert_eq!(net.input(0, |it, now| it.release(now, Rank(4))), Ok(()));
    assert_whole(&mut net, 0);
}
