//! a supervisor that hangs while its component continues.

use super::net::{Net, timing};
use crate::dirnet::*;
use crate::ids::Rank;

/// The supervisor of `node` is stopped: its I'm-Alive Task falls silent, and the component reports
/// it once per R until `done`.
fn stop_supervisor(net: &mut Net, node: u16, done: impl Fn(&Net) -> bool) {
    net.nodes[usize::from(node)].task = None;
    let incarnation = net.component(node).incarnation();
    for _ in 0..20 {
        let is_same = |it: &Component<8, 2>| it.incarnation() == incarnation;
        if done(net) || !net.nodes[usize::from(node)].component.as_ref().is_some_and(is_same) {
            return;
        }
        net.input(node, |component, now| component.handle_supervisor_hung(now));
        net.run(timing().receive.0 / super::net::MS);
    }
}

/// The node's own component is evidence enough: no other member is asked.
#[test]
pub(in crate::dirnet) fn x13_a_hung_supervisor_is_a_node_failure() {
    let mut net = Net::settled(4);
    stop_supervisor(&mut net, 2, |net| !net.resets().is_empty());
    assert_eq!(net.rules(2, Verdict::NodeDown), [Rule::SupervisorHung]);
    assert!(!net.sent.contains_key("WITNESS"), "{:?}", net.sent);
    net.run_while(5_000, Net::is_whole);
    assert!(net.is_whole());
}

#[test]
pub(in crate::dirnet) fn x13_a_manager_whose_supervisor_hangs_is_followed_and_removed() {
    let mut net = Net::settled(4);
    stop_supervisor(&mut net, 0, |net| !net.resets().is_empty());
    assert_eq!(net.rules(0, Verdict::NodeDown), [Rule::SupervisorHung]);
    net.run_while(5_000, Net::is_whole);
    assert!(net.is_whole());
    assert_eq!(net.manager(), Some(1));
}

/// Only the component itself may report it.
#[test]
pub(in crate::dirnet) fn x13_an_im_alive_task_reports_no_supervisor() {
    let mut net = Net::settled(3);
    let generation = net.component(1).incarnation().generation;
    let alarm = Message::Teif { generation, alarm: Alarm::SupervisorHung };
    let frame = Frame { seat: Seat::ImAliveTask, ..net.frame(1, alarm) };
    assert_eq!(net.deliver(0, frame), Err(Reject::WrongSeat));
    let alarm = Message::Teif { generation: generation + 1, alarm: Alarm::SupervisorHung };
    let other = net.frame(1, alarm);
    assert_eq!(net.deliver(0, other), Err(Reject::OldLife), "of another component");
    assert!(!net.component(0).suspects(Rank(1)) && net.rules(1, Verdict::NodeDown).is_empty());
}
