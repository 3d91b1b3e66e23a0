//! What is old, or of another incarnation, boot, round or term, is no evidence.

use super::net::{MS, Net, timing};
use crate::dirnet::*;
use crate::ids::{Incarnation, Rank};
use crate::time::Instant;

fn incarnation(boot: u32, generation: u32) -> ComponentIncarnation {
    ComponentIncarnation { boot: Incarnation(boot), generation }
}

/// Node 1 sends the manager the report that `by` has fenced this boot of node 3.
fn report_fence(
    net: &mut Net,
    boot: u32,
    by: u16,
    its: ComponentIncarnation,
) -> Result<(), Reject> {
    // No two frames of a sender have one number.
    net.run(1);
    let (node, boot) = (Rank(3), Incarnation(boot));
    let report = Message::Fenced { node, boot, by: Rank(by), incarnation: its };
    net.deliver(0, net.frame(1, report))
}

/// Node 3 dies in its boot `boot`, and no member's report of its fence arrives.
fn fencing(net: &mut Net, boot: usize) {
    net.lost.push("FENCED");
    net.crash(3);
    net.run_while(5_000, |net| net.rules(3, Verdict::NodeDown).len() == boot);
    net.run(10);
    assert_eq!(net.resets().len(), boot - 1);
}

/// The alarm of the task of `node` about its component of this generation.
fn alarm(net: &Net, node: u16, generation: u32, alarm: Alarm) -> Frame {
    let frame = net.frame(node, Message::Teif { generation, alarm });
    Frame { seat: Seat::ImAliveTask, ..frame }
}

/// What another member passes on may be of a component that has ended: its clone has fenced
/// nothing.
#[test]
pub(in crate::dirnet) fn g11_the_fence_of_a_component_that_has_ended_is_none() {
    let mut net = Net::settled(4);
    net.hang(2);
    net.run_while(5_000, |net| net.rules(2, Verdict::AgentDown).len() == 1 && net.is_whole());
    net.run(1_000);
    fencing(&mut net, 1);
    assert_eq!(report_fence(&mut net, 1, 1, incarnation(1, 0)), Ok(()));
    assert_eq!(report_fence(&mut net, 1, 2, incarnation(1, 0)), Err(Reject::OldLife));
    assert_eq!(net.resets().len(), 0);
    assert_eq!(report_fence(&mut net, 1, 2, incarnation(1, 1)), Ok(()));
    assert_eq!(net.resets().len(), 1);
}

/// Node 2 has fenced node 3; then its component is replaced, and admits whichever peer runs.
#[test]
pub(in crate::dirnet) fn g11_a_fence_ends_with_the_component_that_made_it() {
    let mut net = Net::settled(4);
    fencing(&mut net, 1);
    assert_eq!(report_fence(&mut net, 1, 2, incarnation(1, 0)), Ok(()));
    net.hang(2);
    let is_back = |net: &Net| {
        net.component(0).database().standing(Rank(2)) == Standing::up(incarnation(1, 1))
    };
    net.run_while(5_000, is_back);
    assert!(is_back(&net) && net.resets().is_empty());
    assert_eq!(report_fence(&mut net, 1, 1, incarnation(1, 0)), Ok(()));
    assert_eq!(net.resets().len(), 0, "the clone of node 2 has not fenced node 3");
}

/// Reports of the boot before are late.
#[test]
pub(in crate::dirnet) fn g11_the_fence_of_an_earlier_boot_is_not_that_of_the_next() {
    let mut net = Net::settled(4);
    net.crash(3);
    net.run_while(5_000, |net| net.resets().len() == 1 && net.is_whole());
    net.run(1_000);
    fencing(&mut net, 2);
    for (boot, resets) in [(1, 1), (2, 2)] {
        for by in [1, 2] {
            assert_eq!(report_fence(&mut net, boot, by, incarnation(1, 0)), Ok(()));
        }
        assert_eq!(net.resets().len(), resets, "boot {boot}");
    }
}

/// Node 3 never receives the removal of node 2. The manager, which waits for its fence, dies; so
/// does its successor's knowledge of who has fenced what.
#[test]
pub(in crate::dirnet) fn g18_a_successor_waits_for_the_fences_of_its_own_term() {
    let mut net = Net::settled(4);
    net.lost.extend(["ANID", "REPLY_DB"]);
    net.crash(2);
    net.run_while(5_000, |net| !net.rules(2, Verdict::NodeDown).is_empty());
    let (node, level) = (Rank(2), Level::Down);
    let removal = Message::Anid { node, incarnation: incarnation(1, 0), level };
    assert_eq!(net.deliver(1, net.frame(0, removal)), Ok(()));
    net.crash(0);
    net.run(2_000);
    assert_eq!(net.component(3).term().claimant, Rank(1));
    assert_eq!(net.resets().len(), 0, "node 3 has fenced neither");
    net.lost.clear();
    net.run_while(9_000, |net| net.resets().iter().any(|(_, it)| *it == node));
    assert_eq!(net.nodes[3].fenced.get(&2), Some(&1));
}

/// Node 3 was slow once. A backup, which does not watch it, remembers the alarm until it becomes
/// manager, and the whole of node 3 dies.
#[test]
pub(in crate::dirnet) fn g5_an_old_alarm_says_nothing_about_a_new_silence() {
    let mut net = Net::settled(4);
    let slow = alarm(&net, 3, 0, Alarm::NoProgress);
    assert_eq!(net.deliver(1, slow), Err(Reject::NotForMe));
    net.run(3_000);
    net.crash(0);
    net.crash(3);
    net.run_while(5_000, |net| !net.rules(3, Verdict::NodeDown).is_empty());
    assert_eq!((net.rules(3, Verdict::AgentDown).len(), net.manager()), (0, Some(1)));
}

#[test]
pub(in crate::dirnet) fn g8_an_alarm_about_a_component_that_was_replaced_is_late() {
    let mut net = Net::settled(3);
    net.hang(2);
    net.run_while(5_000, |net| net.rules(2, Verdict::AgentDown).len() == 1 && net.is_whole());
    net.run(1_000);
    let late = alarm(&net, 2, 0, Alarm::Ended);
    assert_eq!(net.deliver(0, late), Err(Reject::OldLife));
}

/// Node 1 has met node 3 in an earlier suspicion, and its answer was delayed.
#[test]
pub(in crate::dirnet) fn x8_a_testimony_of_another_round_is_none() {
    let mut net = Net::settled(3);
    net.crash(2);
    net.run_while(1_000, |net| net.component(0).suspects(Rank(2)));
    let question = Question { node: Rank(2), asker: Rank(0), round: 9 };
    let seen = Seen { component: true, task: true };
    let late = Message::Testimony { question, witness: Rank(1), seen };
    assert_eq!(net.deliver(0, net.frame(1, late)), Err(Reject::Late));
}

/// Node 2 alone reaches node 0, and stands still as node 1 succeeds it: it has had no time to echo
/// the new manager, which waits for its testimony all the same.
#[test]
pub(in crate::dirnet) fn x8_a_member_that_has_yet_to_follow_a_new_manager_is_waited_for() {
    let mut net = Net::settled(4);
    net.cuts.extend([(0, 1), (1, 0), (0, 3), (3, 0)]);
    net.run_while(1_000, |net| net.component(1).suspects(Rank(0)));
    let turn = timing().window.0 / MS;
    net.stall(2, 2 * turn + 20);
    net.run_while(1_000, |net| net.component(1).role() == Role::Manager);
    net.run(turn + 10);
    assert_eq!(net.rules(0, Verdict::NodeDown).len(), 0, "node 2 has not answered");
    net.run(1_000);
    assert_eq!(net.rules(0, Verdict::NodeDown).len(), 0, "node 2 meets it");
}

/// What the transport reports is not waited for.
#[test]
pub(in crate::dirnet) fn d43_a_node_that_the_transport_has_lost_is_a_suspect_at_once() {
    let mut net = Net::settled(3);
    // No heartbeat is in flight.
    net.run(10);
    net.part(2);
    let took = net.run_while(5_000, |net| !net.rules(2, Verdict::NodeDown).is_empty());
    let Timing { window, delay, .. } = timing();
    assert!(took <= (window.0 + delay.0) / MS, "{took} ms");
}

/// Backups hear nothing of each other while all is well, so nothing else would disprove the report
/// of an earlier boot's end.
#[test]
pub(in crate::dirnet) fn x9_the_end_of_an_earlier_boot_was_not_that_of_the_next() {
    let mut net = Net::settled(3);
    net.part(2);
    net.run_while(5_000, |net| net.resets().len() == 1 && net.is_whole());
    net.run(1_000);
    net.cut_off(1);
    net.input(1, |it, now| it.handle_gone(now, Rank(0)));
    net.run(5_000);
    assert_eq!(net.rules(1, Verdict::TookOver), []);
}

/// A frame that was in flight when the end of its sender was reported.
#[test]
pub(in crate::dirnet) fn x9_a_frame_from_before_the_end_of_its_sender_disproves_no_report() {
    let mut net = Net::settled(3);
    let last = net.frame(1, Message::Enia);
    net.part(1);
    net.part(0);
    assert_eq!(net.deliver(2, last), Ok(()));
    net.run(5_000);
    assert_eq!(net.rules(2, Verdict::TookOver), [Rule::LastAlive]);
}

/// Node 2 was slow once, and went on: nothing that a backup hears would disprove its end later.
#[test]
pub(in crate::dirnet) fn x9_an_alarm_that_reports_no_end_is_no_loss() {
    let mut net = Net::settled(3);
    let slow = alarm(&net, 2, 0, Alarm::NoProgress);
    assert_eq!(net.deliver(1, slow), Err(Reject::NotForMe));
    net.run(3_000);
    net.cut_off(1);
    net.input(1, |it, now| it.handle_gone(now, Rank(0)));
    net.run(5_000);
    assert_eq!(net.rules(1, Verdict::TookOver), []);
}

/// Node 0 was heard for long after its end was reported.
#[test]
fn x9_a_node_that_is_heard_after_its_end_was_reported_is_alive() {
    let mut net = Net::settled(3);
    net.input(1, |it, now| it.handle_gone(now, Rank(0)));
    net.run(3_000);
    net.cut_off(1);
    net.input(1, |it, now| it.handle_gone(now, Rank(2)));
    net.run(5_000);
    assert_eq!(net.rules(1, Verdict::TookOver), []);
}

/// Heartbeat of node `from` that follows `term`.
fn beat(net: &Net, from: u16, term: Term) -> Beat {
    let incarnation = net.component(from).incarnation();
    Beat { term, incarnation, sequence: 1_000_000, digest: 0, echo: 0, is_heard: true }
}

/// The manager is not heard any more. A heartbeat of node 1 was delayed, which echoes what the
/// manager sent in the present term and follows the one before.
#[test]
pub(in crate::dirnet) fn x9_an_echo_from_an_earlier_term_is_none() {
    let mut net = Net::settled(3);
    net.run(100);
    let sent = net.log.iter().filter_map(|(_, at, output)| match output {
        Output::Beat { beat, .. } if *at == 0 => Some(beat.sequence),
        _ => None,
    });
    let echo = sent.max().expect("the manager sends heartbeats");
    net.cut_off(0);
    net.run_while(5_000, |net| !net.component(0).is_heard(Instant(net.now)));
    let term = net.component(0).term();
    let late = Beat { echo, ..beat(&net, 1, Term { epoch: term.epoch - 1, ..term }) };
    let heard = net.input(0, |it, now| it.handle_heartbeat(now, Rank(1), &late));
    assert_eq!(heard, Err(Reject::OldTerm));
    assert!(!net.component(0).is_heard(Instant(net.now)));
}

/// Too few members hear the manager, node 1 succeeds it, and it claims again: its frames show that
/// it lives before its first heartbeat comes.
#[test]
pub(in crate::dirnet) fn x9_a_manager_that_claims_again_is_not_deaf_as_before() {
    let mut net = Net::settled_with(3, 2);
    net.cut_off(2);
    let term = net.component(2).term();
    let unheard = Beat { is_heard: false, ..beat(&net, 0, term) };
    assert_eq!(net.input(2, |it, now| it.handle_heartbeat(now, Rank(0), &unheard)), Ok(()));
    for (after, claimant) in [(1, 1), (2, 0)] {
        let term = Term { epoch: term.epoch + after, claimant: Rank(claimant) };
        let claim = Frame { term, ..net.frame(claimant, Message::Nmi) };
        assert_eq!(net.deliver(2, claim), Ok(()));
    }
    let term = net.component(2).term();
    assert_eq!(term.claimant, Rank(0));
    let receive = timing().receive.0 / MS;
    net.run(receive - 1);
    let sign = Frame { term, ..net.frame(0, Message::Enia) };
    assert_eq!(net.deliver(2, sign), Ok(()));
    net.log.clear();
    net.run(receive - 1);
    assert_eq!(net.reported(News::Suspected(Rank(0))), 0);
}

/// A component that has ended answered an earlier probe, and its answer was delayed.
#[test]
pub(in crate::dirnet) fn x8_an_answer_to_another_probe_is_none() {
    let mut net = Net::settled(3);
    let late = net.frame(2, Message::Alive { round: 0 });
    net.crash(2);
    let probes = |(_, at, output): &(u64, u16, Output)| {
        let Output::Send { frame, .. } = output else { return false };
        *at == 1 && matches!(frame.message, Message::Probe { .. })
    };
    net.run_while(1_000, |net| net.log.iter().any(probes));
    assert_eq!(net.deliver(1, late), Err(Reject::Late));
}

/// The task of node 3 has started a clone by itself, and its alarm about that came first.
#[test]
pub(in crate::dirnet) fn g5_an_alarm_about_another_incarnation_is_none() {
    let mut net = Net::settled(4);
    let of_clone = alarm(&net, 3, 1, Alarm::NoProgress);
    net.crash(3);
    // A heartbeat that is under way ends what an alarm before it says.
    net.run(20);
    assert_eq!(net.deliver(0, of_clone), Ok(()));
    net.run_while(5_000, |net| !net.rules(3, Verdict::NodeDown).is_empty());
    assert_eq!(net.rules(3, Verdict::AgentDown), []);
}

/// A manager that claims a higher term goes on suspecting: one that has to do so again and again
/// would never remove a dead node.
#[test]
pub(in crate::dirnet) fn g10_a_suspicion_outlives_the_managers_next_term() {
    let mut net = Net::settled(3);
    net.crash(2);
    net.run_while(1_000, |net| net.component(0).suspects(Rank(2)));
    let term = net.component(0).term().claimed_by(Rank(1)).unwrap();
    let outbid = net.frame(1, Message::Outbid { term });
    assert_eq!(net.deliver(0, outbid), Ok(()));
    assert!(net.component(0).term() > term && net.component(0).suspects(Rank(2)));
}

/// G-10: each member names the manager to it; it is admitted once it follows that manager.
#[test]
fn g10_a_later_incarnation_in_an_earlier_term_is_not_admitted() {
    let mut net = Net::settled(3);
    let term = Term { epoch: 0, claimant: Rank(0) };
    let early = Frame { term, incarnation: incarnation(2, 0), ..net.frame(2, Message::Enia) };
    for (at, answers) in [(0, 1), (1, 2)] {
        assert_eq!(net.deliver(at, early), Err(Reject::OldTerm));
        let standing = net.component(at).database().standing(Rank(2));
        assert_eq!(standing, Standing::up(incarnation(1, 0)), "at node {at}");
        assert_eq!(net.sent.get("NMI"), Some(&answers));
    }
}

/// The manager names itself again: a heartbeat that was heard before remains so.
#[test]
fn g13_a_member_that_is_named_again_does_not_start_over() {
    let mut net = Net::settled(3);
    let last = beat(&net, 0, net.component(0).term());
    let hear = |net: &mut Net| net.input(1, |it, now| it.handle_heartbeat(now, Rank(0), &last));
    assert_eq!(hear(&mut net), Ok(()));
    let named = Message::Niua { node: Rank(0), incarnation: last.incarnation };
    let named = net.frame(0, named);
    assert_eq!(net.deliver(1, named), Ok(()));
    assert_eq!(hear(&mut net), Err(Reject::Duplicate));
}

/// Each would count as one more reset of the node.
#[test]
fn g14_a_late_removal_of_an_earlier_boot_is_not_carried_out_again() {
    let mut net = Net::settled(3);
    net.crash(2);
    net.run_while(9_000, Net::is_whole);
    let removal =
        Message::Anid { node: Rank(2), incarnation: incarnation(1, 0), level: Level::Down };
    let removal = net.frame(0, removal);
    net.log.clear();
    assert_eq!(net.deliver(1, removal), Ok(()));
    assert!(net.component(1).database().standing(Rank(2)).is_up());
    assert!(!net.log.iter().any(|(_, _, o)| matches!(o, Output::Fence { .. })), "{:?}", net.log);
}

/// where one member suffices to decide, a manager that hears this backup is not deaf to it.
#[test]
fn x9_a_manager_that_hears_a_backup_is_not_deaf_to_it() {
    let mut net = Net::settled(3);
    net.cuts.extend([(0, 1), (0, 2)]);
    net.run(150);
    let unheard = Beat { is_heard: false, ..beat(&net, 0, net.component(0).term()) };
    assert_eq!(net.input(1, |it, now| it.handle_heartbeat(now, Rank(0), &unheard)), Ok(()));
    net.run(150);
    assert!(!net.component(1).suspects(Rank(0)));
    assert!(net.component(2).suspects(Rank(0)));
}
