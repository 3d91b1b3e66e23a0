//! Callers that are not nodes.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use weft::bootstrap::{News, Refusal, Timing, VERSION};

use crate::PATIENCE;
use crate::node::{Node, hello, key};

fn connect(node: &Node) -> TcpStream {
    let stream = TcpStream::connect(node.address()).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Whether the node ends the connection, with an answer or without.
fn is_ended(mut stream: &TcpStream) -> bool {
    match stream.read_to_end(&mut Vec::new()) {
        Ok(_) => true,
        // An end as well: the node has not read all that was sent.
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn what_is_not_wefts_is_let_go_at_once() {
    let first = Node::first(&key());
    let mut stream = connect(&first);
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it is open");
    assert_eq!(first.refusal(), Refusal::NotWeft);
    assert!(is_ended(&stream));
}

#[test]
fn garbage_behind_a_right_preface_is_no_key() {
    let first = Node::first(&key());
    let mut stream = connect(&first);
    let mut words = b"weft".to_vec();
    words.extend(VERSION.to_le_bytes());
    words.extend([1, 64, 0]);
    words.extend([0xa5; 64]);
    stream.write_all(&words).expect("it is open");
    assert_eq!(first.refusal(), Refusal::Key);
    assert!(is_ended(&stream));
}

#[test]
fn a_frame_longer_than_any_is_not_waited_for() {
    let first = Node::first(&key());
    let mut stream = connect(&first);
    let mut words = b"weft".to_vec();
    words.extend(VERSION.to_le_bytes());
    words.extend([1, 0xff, 0xff]);
    stream.write_all(&words).expect("it is open");
    assert_eq!(first.refusal(), Refusal::NotWeft);
    assert!(is_ended(&stream));
}

/// However it spreads its bytes, the handshake as a whole has one deadline.
#[test]
fn a_caller_that_stalls_is_let_go() {
    let short = Timing { handshake: Duration::from_millis(200), ..Timing::default() };
    let begun = [&b"weft"[..], &VERSION.to_le_bytes()].concat();
    let half = [&begun[..], b"\x01\x40\0half a frame"].concat();
    for words in [&b""[..], b"we", &begun, &half] {
        let first = Node::start(hello(0), &[], key(), short);
        let mut stream = connect(&first);
        stream.write_all(words).expect("it is open");
        assert_eq!(first.refusal(), Refusal::Stalled);
        assert!(is_ended(&stream));
    }
}

#[test]
fn a_listener_that_stalls_is_given_up_by_its_caller() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("it is bound");
    let short = Timing { handshake: Duration::from_millis(200), ..Timing::default() };
    let second = Node::start(hello(1), &[address], key(), short);
    assert_eq!(second.refusal(), Refusal::Stalled);
}

#[test]
fn a_flood_of_silent_callers_does_not_lock_a_node_out() {
    let key = key();
    // Their deadline is an hour: only their number ends them.
    let patient = Timing { handshake: Duration::from_secs(3600), ..Timing::default() };
    let first = Node::start(hello(0), &[], key.clone(), patient);
    let silent: Vec<TcpStream> = (0..200).map(|_| connect(&first)).collect();
    let _second = Node::start(hello(1), &[first.address()], key, Timing::default());
    assert!(matches!(first.news(), News::Met(_)));
    assert!(is_ended(&silent[0]), "the first to come is the first to go");
}
