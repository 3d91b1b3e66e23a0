//! Recorded traffic that is sent again; calls that reach the wrong node.

use std::io::{Read, Write};
use std::net::TcpStream;

use weft::bootstrap::{BootstrapEvent, News, Refusal, Timing};

use crate::PATIENCE;
use crate::node::{Node, hello, key};
use crate::relay::Relay;

const PREFACE_LEN: usize = 8;
const HEAD_LEN: usize = 3;

/// How many of these bytes are the preface and the greeting.
fn greeting_len(said: &[u8]) -> Option<usize> {
    let head = said.get(PREFACE_LEN..PREFACE_LEN + HEAD_LEN)?;
    let len = PREFACE_LEN + HEAD_LEN + usize::from(u16::from_le_bytes([head[1], head[2]]));
    (said.len() >= len).then_some(len)
}

/// Sends what was recorded, and waits for the end.
fn say_again(node: &Node, said: &[u8]) {
    let mut stream = TcpStream::connect(node.address()).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(said).expect("it is open");
    // Whatever the answer; the connection may also end with a reset.
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn a_greeting_that_was_heard_is_refused_and_its_node_unharmed() {
    let key = key();
    let first = Node::first(&key);
    let relay = Relay::to(first.address(), usize::MAX);
    let mut second = Node::start(hello(1), &[relay.address], key, Timing::default());
    assert!(matches!(first.news(), News::Met(_)));
    let said = relay.said_first();
    greeting_len(&said).expect("it was met by it");
    say_again(&first, &said);
    assert_eq!(first.refusal(), Refusal::Replayed);
    // The session goes on: the next event belongs to it.
    second.announce(5);
    assert!(matches!(first.news(), News::Alive(announced) if announced.incarnation.0 == 5));
}

/// The listener has never seen a greeting that did not get through; an attacker that replays it
/// still lacks the secret that belongs to it.
#[test]
fn a_greeting_that_was_held_back_is_worth_nothing_to_its_thief() {
    let key = key();
    let stolen = {
        let decoy = Node::first(&key);
        let relay = Relay::to(decoy.address(), usize::MAX);
        let _second = Node::start(hello(1), &[relay.address], key.clone(), Timing::default());
        assert!(matches!(decoy.news(), News::Met(_)));
        relay.said_first()
    };
    greeting_len(&stolen).expect("it was met by it");
    let first = Node::first(&key);
    say_again(&first, &stolen);
    assert_eq!(first.refusal(), Refusal::Replayed);
}

#[test]
fn a_caller_cannot_be_answered_by_a_recording() {
    let key = key();
    let first = Node::first(&key);
    let mut stream = TcpStream::connect(first.address()).expect("it listens");
    // Another caller's connection, in the direction from the listener.
    let relay = Relay::to(first.address(), usize::MAX);
    let _second = Node::start(hello(1), &[relay.address], key.clone(), Timing::default());
    assert!(matches!(first.news(), News::Met(_)));
    let said = relay.said_first();
    let greeting = greeting_len(&said).expect("it was met by it");
    stream.write_all(&said[..greeting]).expect("it is open");
    let mut answer = vec![0; PREFACE_LEN + HEAD_LEN];
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.read_exact(&mut answer).expect("it answers, with a refusal");

    let liar = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = liar.local_addr().expect("it is bound");
    let caller = Node::start(hello(1), &[address], key, Timing::default());
    let (mut accepted, _) = liar.accept().expect("it is called");
    let mut rest = vec![0; usize::from(u16::from_le_bytes([answer[9], answer[10]]))];
    stream.read_exact(&mut rest).expect("the whole frame");
    answer.extend(rest);
    accepted.write_all(&answer).expect("it is open");
    assert_eq!(caller.refusal(), Refusal::Key);
}

/// Node 2 calls node 0 through a wire that ends at node 1. The first message that node 1 receives
/// from it afterwards belongs to the session that it had, which was neither ended nor begun again.
#[test]
fn a_call_that_is_led_to_another_node_is_refused_and_harms_no_session() {
    let key = key();
    let first = Node::first(&key);
    let second = Node::start(hello(1), &[first.address()], key.clone(), Timing::default());
    assert!(matches!(second.news(), News::Met(_)));
    let relay = Relay::to(second.address(), usize::MAX);
    let wires = [relay.address, second.address()];
    let mut third = Node::start(hello(2), &wires, key, Timing::default());
    let reason = Refusal::Addressee { meant: 0, found: 1 };
    let mut met = 0;
    for _ in 0..2 {
        match second.next() {
            BootstrapEvent::Heard { news: News::Met(_), .. } => met += 1,
            BootstrapEvent::Refused { reason: found, .. } => assert_eq!(found, reason),
            other @ BootstrapEvent::Heard { .. } => panic!("{other:?}"),
        }
    }
    assert_eq!(met, 1, "one session, and one refusal");
    // Reported once; the calls go on, several in this time.
    relay.await_callers(4);
    third.announce(5);
    assert!(matches!(second.news(), News::Alive(announced) if announced.incarnation.0 == 5));
}
