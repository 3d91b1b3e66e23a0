//! Refused inputs, by reason; every reason is counted.

use super::net::Net;
use crate::dirnet::*;
use crate::ids::{Incarnation, Rank};

/// Sends that frame to node 0 and expects that result.
fn expect(change: impl Fn(Frame) -> Frame, message: Message, reason: Reject) {
    let mut net = Net::settled(3);
    let before = net.component(0).rejects().of(reason);
    let frame = change(net.frame(1, message));
    assert_eq!(net.deliver(0, frame), Err(reason), "{}", message.name());
    assert_eq!(net.component(0).rejects().of(reason), before + 1);
}

#[test]
pub(in crate::dirnet) fn words_of_strangers_and_of_old_are_refused() {
    let incarnation =
        |boot, generation| ComponentIncarnation { boot: Incarnation(boot), generation };
    let stranger = Rank(7);
    expect(|f| Frame { sender: stranger, ..f }, Message::Nmi, Reject::UnknownSender);
    let agent = Term { epoch: 3, claimant: stranger };
    expect(|f| Frame { term: agent, ..f }, Message::Nmi, Reject::BadTerm);
    let old = Term { epoch: 0, claimant: Rank(0) };
    expect(|f| Frame { term: old, ..f }, Message::Enia, Reject::OldTerm);
    expect(|f| Frame { incarnation: incarnation(0, 0), ..f }, Message::Enia, Reject::Fenced);
}

#[test]
pub(in crate::dirnet) fn a_frame_in_another_name_is_refused() {
    let mut net = Net::settled(3);
    let frame = net.frame(1, Message::Nmi);
    let refused = net.input(0, |component, now| component.handle_message(now, Rank(2), &frame));
    assert_eq!(refused, Err(Reject::Forged));
    let (node, incarnation) = (Rank(1), net.component(1).incarnation());
    let report = net.frame(1, Message::Anid { node, incarnation, level: Level::Isolated });
    let refused = net.input(0, |component, now| component.handle_message(now, Rank(2), &report));
    assert_eq!(refused, Err(Reject::Forged));
    assert!(net.component(0).database().standing(node).is_up());
}

#[test]
pub(in crate::dirnet) fn a_repeated_frame_is_refused() {
    let mut net = Net::settled(3);
    let frame = net.frame(1, Message::Enia);
    assert_eq!(net.deliver(0, frame), Ok(()));
    assert_eq!(net.deliver(0, frame), Err(Reject::Duplicate));
}

#[test]
pub(in crate::dirnet) fn only_the_manager_decides() {
    let (node, incarnation) =
        (Rank(2), ComponentIncarnation { boot: Incarnation(1), generation: 0 });
    let anid = Message::Anid { node, incarnation, level: Level::Down };
    expect(|f| f, anid, Reject::NotManager);
    expect(|f| f, Message::Niua { node, incarnation }, Reject::Late);
    let mut net = Net::settled(3);
    let introduced = net.frame(1, Message::Niua { node: Rank(0), incarnation });
    assert_eq!(net.deliver(2, introduced), Err(Reject::NotManager));
    let guard = Message::Guard { task: 0, action: TaskAction::Isolate, order: None };
    expect(|f| f, guard, Reject::NotManager);
    expect(|f| f, Message::Rouse, Reject::WrongSeat);
    let question = Question { node, asker: Rank(0), round: 9 };
    let late = Message::Testimony { question, witness: Rank(1), seen: Seen::default() };
    expect(|f| f, late, Reject::Late);
    // Only the witness itself has its testimony passed on.
    let question = Question { asker: Rank(2), ..question };
    let passed = Message::Testimony { question, witness: Rank(2), seen: Seen::default() };
    expect(|f| f, passed, Reject::BadSubject);
    expect(|f| f, Message::Alive { round: 9 }, Reject::Late);
}

#[test]
pub(in crate::dirnet) fn what_is_about_nobody_is_refused() {
    let node = Rank(40);
    let question = Question { node, asker: Rank(1), round: 1 };
    let unheard = Members::NONE;
    expect(|f| f, Message::Witness { question, unheard }, Reject::BadSubject);
    let question = Question { node: Rank(2), asker: node, round: 1 };
    expect(|f| f, Message::Witness { question, unheard }, Reject::BadSubject);
    let have = Version::default();
    expect(|f| f, Message::RequestDb { node, have }, Reject::BadSubject);
    let part = ImagePart { node, index: 0, count: 1, checksum: 0, bytes: [0; 32] };
    expect(|f| f, Message::ReplyDb(part), Reject::BadSubject);
    let part = ImagePart { node: Rank(1), ..part };
    expect(|f| f, Message::ReplyDb(part), Reject::ImageChecksum);
    let part = ImagePart { count: 200, ..part };
    expect(|f| f, Message::ReplyDb(part), Reject::ImageCount);
    let change = Change::TaskStatus { task: 9, status: 0 };
    expect(|f| f, Message::Db { seq: 1, change }, Reject::NoSuchTask);
    expect(|f| f, Message::Db { seq: 7, change }, Reject::Gap);
    expect(|f| f, Message::Db { seq: 0, change }, Reject::Repeated);
    // Nor is there another boot of the receiver.
    let incarnation = ComponentIncarnation { boot: Incarnation(2), generation: 0 };
    for node in [node, Rank(1)] {
        let mut net = Net::settled(3);
        let order = net.frame(0, Message::Anid { node, incarnation, level: Level::Down });
        assert_eq!(net.deliver(1, order), Err(Reject::BadSubject));
    }
}

/// frames of a removed incarnation are ignored, and it is notified once it can be reached.
#[test]
pub(in crate::dirnet) fn x5_a_removed_life_is_not_heard() {
    let mut net = Net::settled(3);
    net.resets_work = false;
    let word = net.frame(1, Message::Nmi);
    net.crash(1);
    net.run(1_000);
    assert_eq!(net.deliver(0, word), Err(Reject::Fenced));
    assert_eq!(net.deliver(2, word), Err(Reject::Fenced));
}

/// A node that was removed as it stood still may not hear the manager: any member that it reaches
/// notifies it.
#[test]
pub(in crate::dirnet) fn x5_a_removed_boot_that_runs_on_is_notified_by_any_member() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    let question = Question { node: Rank(0), asker: Rank(1), round: 9 };
    let asks = net.frame(1, Message::Witness { question, unheard: Members::NONE });
    net.stall(1, 5_000);
    net.run_while(2_000, |net| !net.component(3).database().standing(Rank(1)).is_up());
    assert_eq!(net.deliver(3, asks), Err(Reject::Fenced));
    let (_, at, output) = *net.log.last().unwrap();
    let Output::Send { to, frame, .. } = output else { panic!("{output:?}") };
    assert_eq!((at, to, frame.message.name()), (3, Members::only(Rank(1)), "ANID"));
    assert_eq!(net.component(1).role(), Role::Backup);
    assert_eq!(net.deliver(1, frame), Ok(()));
    assert_eq!(net.reported(News::Excluded), 1);
}

/// The question of a removed boot comes over a member that does not know of its removal.
#[test]
fn x9_who_asks_and_who_passes_the_question_on_both_learn_of_a_removal() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    net.crash(1);
    net.run_while(2_000, |net| !net.component(3).database().standing(Rank(1)).is_up());
    let question = Question { node: Rank(0), asker: Rank(1), round: 9 };
    let passed_on = net.frame(2, Message::Witness { question, unheard: Members::NONE });
    assert_eq!(net.deliver(3, passed_on), Ok(()));
    let both = [Rank(1), Rank(2)].into_iter().collect();
    let is_removal = |output: &Output| {
        matches!(output, Output::Send { to, frame, .. }
        if *to == both && frame.message.name() == "ANID")
    };
    assert!(net.log.iter().any(|(_, at, output)| *at == 3 && is_removal(output)));
}

/// Of two halves that have removed each other, no member ends on the other half's removal of it,
/// whichever has the higher term: their managers settle which half ends.
#[test]
pub(in crate::dirnet) fn x5_no_member_believes_a_node_that_it_holds_removed() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    for (one, other) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
        net.cuts.extend([(one, other), (other, one)]);
    }
    net.run(3_000);
    for (by, of) in [(1, 3), (3, 1)] {
        let incarnation = net.component(of).incarnation();
        let removal = Message::Anid { node: Rank(of), incarnation, level: Level::Down };
        let removal = net.frame(by, removal);
        assert_eq!(net.deliver(of, removal), Err(Reject::Fenced));
        assert_ne!(net.component(of).role(), Role::Excluded);
    }
    // One that has removed none ends only on the report of its own or of a later term.
    let (node, incarnation) = (Rank(1), net.component(1).incarnation());
    let removal = net.frame(0, Message::Anid { node, incarnation, level: Level::Down });
    let mut net = Net::settled(4);
    let earlier = Term { epoch: 0, claimant: Rank(0) };
    let removal = Frame { sender: Rank(2), term: earlier, ..removal };
    assert_eq!(net.deliver(1, removal), Err(Reject::OldTerm));
    assert_eq!(net.component(1).role(), Role::Backup);
}

/// Two halves that have removed each other notify each other once, not forever.
#[test]
pub(in crate::dirnet) fn x5_a_removal_is_not_answered_with_a_removal() {
    let mut net = Net::settled(3);
    net.resets_work = false;
    let incarnation = net.component(0).incarnation();
    let word = net.frame(1, Message::Nmi);
    let removal = net.frame(1, Message::Anid { node: Rank(0), incarnation, level: Level::Down });
    net.crash(1);
    net.run(1_000);
    let said = |net: &Net| net.sent.get("ANID").copied();
    let before = said(&net);
    assert_eq!(net.deliver(0, removal), Err(Reject::Fenced));
    assert_eq!(said(&net), before);
    assert_eq!(net.deliver(0, word), Err(Reject::Fenced));
    assert_eq!(said(&net), before.map(|count| count + 1));
}

/// Found by the explorer: the manager of a lower term that has removed this incarnation accepts
/// none of its messages, so an answer would trigger the same removal again, and so on.
#[test]
pub(in crate::dirnet) fn x5_a_removal_in_an_old_term_is_not_answered() {
    let mut net = Net::settled(3);
    let (node, incarnation) = (Rank(1), net.component(1).incarnation());
    let term = Term { epoch: 0, claimant: Rank(0) };
    let said = |net: &Net| net.sent.get("NMI").copied().unwrap_or_default();
    let removal = Message::Anid { node, incarnation, level: Level::Down };
    let removal = Frame { term, ..net.frame(0, removal) };
    assert_eq!(net.deliver(1, removal), Err(Reject::OldTerm));
    assert_eq!((said(&net), net.component(1).role()), (0, Role::Backup));
    let word = Frame { term, sequence: removal.sequence + 1, ..net.frame(0, Message::Enia) };
    assert_eq!(net.deliver(1, word), Err(Reject::OldTerm));
    assert_eq!(said(&net), 1);
}

/// G-29: a reply is a frame of its own, from the replier.
#[test]
pub(in crate::dirnet) fn g29_an_answer_carries_the_answerers_name() {
    let mut net = Net::settled(3);
    let probe = net.frame(1, Message::Probe { round: 3 });
    net.deliver(2, probe).unwrap();
    let (_, at, output) = *net.log.last().unwrap();
    let Output::Send { frame, .. } = output else { panic!("{output:?}") };
    assert_eq!((at, frame.sender, frame.message), (2, Rank(2), Message::Alive { round: 3 }));
}

/// A removed component accepts no messages and requests nothing.
#[test]
pub(in crate::dirnet) fn a_removed_component_is_silent() {
    let net = Net::settled(3);
    let incarnation = net.component(1).incarnation();
    let anid = Message::Anid { node: Rank(1), incarnation, level: Level::Down };
    let frame = net.frame(0, anid);
    let mut component = net.component(1).clone();
    let now = crate::time::Instant(net.now);
    assert_eq!(component.handle_message(now, Rank(0), &frame), Ok(()));
    while component.poll_output().is_some() {}
    assert_eq!((component.role(), component.poll_timeout()), (Role::Excluded, None));
    assert_eq!(component.handle_message(now, Rank(0), &frame), Err(Reject::Excluded));
}
