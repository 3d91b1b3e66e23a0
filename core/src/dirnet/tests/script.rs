//! What a recovery script sends through the backbone: orders to tasks, and votes.

use super::net::Net;
use crate::dirnet::*;
use crate::ids::{Rank, Term};
use crate::vote::{BallotKind, VoteMessage, VoteOutcome};

pub(super) fn outcome() -> VoteMessage {
    VoteMessage::Outcome(VoteOutcome {
        term: Term { epoch: 1, claimant: Rank(0) },
        number: 1,
        nversion: 0,
        round: 1,
        voters: 0b11,
        agreed: 0b11,
        kind: BallotKind::Number,
        value: 7,
        is_final: true,
    })
}

/// RL-10: what another member sends is no outcome.
#[test]
fn a_member_accepts_an_outcome_of_its_manager_only() {
    let mut net = Net::settled(3);
    let message = outcome();
    let usurped = net.frame(2, Message::Vote(message));
    assert_eq!(net.deliver(1, usurped), Err(Reject::NotManager));
    net.input(0, |it, now| it.send_vote(now, Rank(1), message));
    net.log.clear();
    net.run(5);
    let incarnation = net.component(0).incarnation();
    let heard = (1, Output::Vote { from: Rank(0), incarnation, message });
    assert!(net.log.iter().any(|(_, at, output)| (*at, *output) == heard));
}

/// RL-3: its identity includes the term of the manager.
#[test]
fn the_order_of_a_script_reaches_the_node_of_the_task() {
    let mut net = Net::settled(3);
    let (action, order) =
        (TaskAction::Restart, ScriptOrder { evaluation: 1, index: 0, seen: 0, mark: 0 });
    let order_task = |net: &mut Net, at, task| {
        net.input(at, |it, now| it.order_task(now, (Rank(2), task), action, order))
    };
    assert_eq!(order_task(&mut net, 1, 1), Err(Reject::NotManager));
    assert_eq!(order_task(&mut net, 0, 2), Err(Reject::NoSuchTask));
    assert_eq!(order_task(&mut net, 0, 1), Ok(()));
    net.run(5);
    let term = net.component(2).term();
    let ordered = (2, Output::Task { task: 1, action, order: Some((term, order)) });
    assert!(net.log.iter().any(|(_, at, output)| (*at, *output) == ordered));
}
