//! Clients of a node that lie, stay silent or leave: the node survives, others are served.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventFlags};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{SendFlags, send};
use weft::client::{Client, ClientError, Pipeline};
use weft::explain::{Code, Explain};
use weft::node::control::{Outcome, Payload, Refused, Reply, Request, Stopped, TakenMessage, Want};
use weft::packet::{Packet, PacketError, Socket};
use weft::process::{Pid, Pidfd, Signal};

use crate::PATIENCE;
use crate::place::{Nodes, Place, eventually};

fn connect(nodes: &Nodes, rank: usize) -> Socket {
    let path = nodes.dir.node_socket(rank).expect("a short path");
    Socket::connect(&path, PATIENCE).expect("the node listens")
}

/// Sends bytes that no client of ours would.
fn send_raw(socket: &Socket, bytes: &[u8]) {
    set_socket_send_buffer_size(socket, 2 * bytes.len()).expect("a socket");
    send(socket, bytes, SendFlags::empty()).expect("the node has room");
}

fn receive(socket: &Socket) -> Reply {
    socket.recv(PATIENCE).expect("the node answers").0
}

fn put(nodes: &Nodes, from: u16, to: u16, messages: &[&[u8]]) {
    let outcome = nodes.client(from).put(to, messages, PATIENCE).expect("the node answers");
    assert_eq!((outcome.put, outcome.stopped), (messages.len(), None));
}

fn texts(messages: &[TakenMessage]) -> Vec<&[u8]> {
    messages.iter().map(|message| message.payload.0.as_slice()).collect()
}

#[test]
fn nonsense_is_answered_and_the_connection_goes_on() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let socket = connect(&nodes, 0);
    let huge = vec![b'x'; Packet::MAX_LEN + 1];
    let unknown = br#"{"id":1,"what":"Explode"}"#;
    let missing = br#"{"what":{"Take":{"max":1,"timeout_ms":0}}}"#;
    for nonsense in [&b"\0\xff not JSON"[..], b"{}", unknown, missing, &huge] {
        send_raw(&socket, nonsense);
        let reply = receive(&socket);
        let malformed = matches!(reply.what, Outcome::Refused(Refused::Malformed(_)));
        assert!(reply.id == 0 && malformed, "{reply:?}");
    }
    socket.send(&Request { id: 7, what: Want::Status }, &[], PATIENCE).expect("it is open");
    assert!(matches!(receive(&socket), Reply { id: 7, what: Outcome::Status(_) }));
    nodes.assert_unharmed();
}

#[test]
fn extreme_requests_are_answered() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let socket = connect(&nodes, 0);
    let extremes = [
        Want::Put { to: u16::MAX, messages: Vec::new(), timeout_ms: u64::MAX },
        Want::Put { to: 1, messages: Vec::new(), timeout_ms: u64::MAX },
        Want::Take { max: 0, timeout_ms: 0 },
        Want::Release { receipts: vec![0, u64::MAX, 0] },
        Want::Await { incarnation: u32::MAX, peers: usize::MAX, timeout_ms: 0 },
        Want::Await { incarnation: 0, peers: 0, timeout_ms: u64::MAX },
    ];
    for (id, what) in (1..).zip(extremes) {
        socket.send(&Request { id, what }, &[], PATIENCE).expect("it is open");
        assert_eq!(receive(&socket).id, id);
    }
    nodes.assert_unharmed();
}

#[test]
fn silent_clients_cost_others_nothing_until_there_are_too_many() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let mut early = nodes.client(0);
    let mut silent = Vec::new();
    let refused = loop {
        silent.push(connect(&nodes, 0));
        assert!(silent.len() < 1000, "no connection is one too many");
        match nodes.client(0).take(1, Duration::ZERO) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, ClientError::Refused { reason: Refused::Busy, .. }), "{refused}");
    early.take(1, Duration::ZERO).expect("who is connected is served");
    nodes.client(0).status().expect("the operator is served");
    drop(silent);
    eventually("there is room again", || nodes.client(0).take(1, Duration::ZERO).is_ok());
    nodes.assert_unharmed();
}

#[test]
fn what_a_client_took_goes_back_when_it_leaves() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 2");
    put(&nodes, 0, 1, &[b"a", b"b", b"c"]);
    let mut first = nodes.client(1);
    let taken = first.take(2, PATIENCE).expect("two messages");
    assert_eq!(texts(&taken), [b"a", b"b"]);
    assert_eq!(first.release(vec![taken[0].receipt]).expect("an answer"), 1);

    let mut second = nodes.client(1);
    assert_eq!(second.release(vec![taken[1].receipt]).expect("an answer"), 0, "not its own");
    drop(first);
    let mut left = Vec::new();
    eventually("the rest comes again", || {
        left.extend(second.take(2, Duration::from_millis(10)).expect("an answer"));
        left.len() == 2
    });
    left.sort_by_key(|message| message.receipt);
    assert_eq!(texts(&left), [b"b", b"c"]);
    assert_eq!(left[0].receipt, taken[1].receipt);
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    put(&nodes, 0, 1, &[b"held"]);
    let deaf = connect(&nodes, 1);
    let take = Want::Take { max: 1, timeout_ms: 60_000 };
    deaf.send(&Request { id: 1, what: take }, &[], PATIENCE).expect("it is open");
    let mut id = 1;
    let ended = loop {
        id += 1;
        match deaf.send(&Request { id, what: Want::Status }, &[], PATIENCE) {
            Ok(()) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(ended, PacketError::Closed), "{ended}");
    let taken = nodes.client(1).take(1, PATIENCE).expect("it goes back");
    assert_eq!(texts(&taken), [b"held"]);
    nodes.assert_unharmed();
}

#[test]
fn who_waits_for_a_message_does_not_hold_up_who_does_not() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 2");
    let waiting = connect(&nodes, 1);
    let take = Want::Take { max: 1, timeout_ms: u64::MAX };
    waiting.send(&Request { id: 1, what: take }, &[], PATIENCE).expect("it is open");
    assert_eq!(nodes.client(1).take(1, Duration::ZERO).expect("an answer"), []);
    put(&nodes, 0, 1, &[b"at last"]);
    let Outcome::Taken(taken) = receive(&waiting).what else { panic!("it waits for a message") };
    assert_eq!(texts(&taken), [b"at last"]);
}

/// Fills the mailbox of node 1, and leaves with a put in line that would wait forever.
fn fill_and_leave(nodes: &Nodes) {
    let mut client = nodes.client(0);
    // On a busy host a batch may end short of a full mailbox, which refuses even one message.
    for batch in [&[&b"fill"[..]; 64][..], &[b"fill"]] {
        let put = |client: &mut Client| client.put(1, batch, Duration::ZERO).expect("an answer");
        while put(&mut client).stopped != Some(Stopped::Full) {}
    }
    let socket = connect(nodes, 0);
    let messages = vec![Payload(b"left behind".to_vec())];
    let what = Want::Put { to: 1, messages, timeout_ms: u64::MAX };
    socket.send(&Request { id: 1, what }, &[], PATIENCE).expect("it is open");
    socket.send(&Request { id: 2, what: Want::Status }, &[], PATIENCE).expect("it is open");
    assert_eq!(receive(&socket).id, 2, "the put waits");
}

#[test]
fn a_put_ends_at_its_own_deadline_whoever_stands_before_it() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    fill_and_leave(&nodes);
    let patient = connect(&nodes, 0);
    let what = |timeout_ms| {
        let messages = vec![Payload(b"patient".to_vec())];
        Want::Put { to: 1, messages, timeout_ms }
    };
    patient.send(&Request { id: 1, what: what(u64::MAX) }, &[], PATIENCE).expect("it is open");
    let outcome = nodes.client(0).put(1, &[b"hasty"], Duration::ZERO).expect("an answer");
    assert_eq!((outcome.put, outcome.stopped), (0, Some(Stopped::Full)));
    let mut owner = nodes.client(1);
    let mut last = Vec::new();
    eventually("room is made and the patient put goes through", || {
        let taken = owner.take(usize::MAX, Duration::from_millis(10)).expect("an answer");
        owner.release(taken.iter().map(|message| message.receipt).collect()).expect("an answer");
        last.extend(taken.into_iter().map(|message| message.payload.0));
        last.last().is_some_and(|last| last == b"patient")
    });
    assert!(last.iter().all(|message| message != b"hasty"));
}

#[test]
fn a_message_longer_than_a_slot_or_a_packet_is_too_long() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let mut client = nodes.client(0);
    let slot = vec![0; 257];
    let outcome = client.put(1, &[b"before", &slot, b"behind"], PATIENCE).expect("an answer");
    assert_eq!((outcome.put, outcome.stopped), (1, Some(Stopped::TooLong { limit: 256 })));
    // Around the length at which first the link and then the packet has no room for it.
    for len in (98_150..98_300).step_by(3) {
        match client.put(1, &[&vec![0; len]], Duration::ZERO) {
            Ok(outcome) => assert_eq!(outcome.put, 0),
            Err(error) => assert!([Code::MessageTooLong, Code::Protocol].contains(&error.code())),
        }
    }
    assert_eq!(texts(&nodes.client(1).take(9, PATIENCE).expect("one")), [b"before"]);
    nodes.assert_unharmed();
}

#[test]
fn a_put_above_the_length_of_a_packet_is_split_and_arrives_in_order() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let mut messages: Vec<Vec<u8>> = (0..900_u16).map(|n| n.to_le_bytes().repeat(128)).collect();
    messages.push(vec![0; 257]);
    let lent: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    assert!(lent.iter().map(|message| message.len()).sum::<usize>() > Packet::MAX_LEN);
    std::thread::scope(|scope| {
        let mut owner = nodes.client(1);
        let arrived = scope.spawn(move || {
            let mut arrived: Vec<Vec<u8>> = Vec::new();
            eventually("all have arrived", || {
                let taken = owner.take(usize::MAX, Duration::from_millis(10)).expect("an answer");
                owner.release(taken.iter().map(|it| it.receipt).collect()).expect("an answer");
                arrived.extend(taken.into_iter().map(|message| message.payload.0));
                arrived.len() >= 900
            });
            arrived
        });
        let outcome = nodes.client(0).put(1, &lent, PATIENCE).expect("the node answers");
        assert_eq!((outcome.put, outcome.stopped), (900, Some(Stopped::TooLong { limit: 256 })));
        assert!(arrived.join().expect("they arrive") == messages[..900], "in order, each once");
    });
}

#[test]
fn a_client_pipelines_and_its_descriptor_wakes_an_event_loop() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let (mut sender, mut owner) = (Pipeline::new(nodes.client(0)), Pipeline::new(nodes.client(1)));
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll");
    let is_due = EventFlags::IN;
    epoll::add(&epoll, &owner, epoll::EventData::new_u64(7), is_due).expect("a descriptor");
    let mut events = Vec::with_capacity(4);
    let mut takes: Vec<u64> = Vec::new();
    for _ in 0..4 {
        takes.push(owner.take(1, PATIENCE).expect("there is room"));
    }
    let none = epoll::wait(&epoll, spare_capacity(&mut events), Some(&Timespec::default()));
    assert_eq!(none, Ok(0), "nothing has come");
    for number in 0..4_u8 {
        sender.put(1, &[&[number]], PATIENCE).expect("there is room");
    }
    let mut arrived = Vec::new();
    while arrived.len() < 4 {
        events.clear();
        epoll::wait(
            &epoll,
            spare_capacity(&mut events),
            Some(&Timespec { tv_sec: 10, tv_nsec: 0 }),
        )
        .expect("an epoll");
        assert_eq!(events.iter().map(|it| it.data.u64()).collect::<Vec<_>>(), [7]);
        while let Some((number, what)) = owner.poll_answer().expect("the node answers") {
            let Outcome::Taken(taken) = what else { panic!("{what:?}") };
            assert!(takes.contains(&number));
            arrived.extend(taken.into_iter().map(|message| message.payload.0));
        }
    }
    assert_eq!(arrived, [[0], [1], [2], [3]]);
    for _ in 0..4 {
        let answer = sender.wait_answer(PATIENCE).expect("the node answers");
        assert!(matches!(answer, Some((_, Outcome::Put(it))) if it.put == 1), "{answer:?}");
    }
    assert_eq!((sender.under_way(), owner.under_way()), (0, 0));
}

#[test]
fn a_component_that_hangs_loses_what_was_with_it_and_nothing_else() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 2");
    let number = nodes.client(0).status().expect("a status").component_pid.expect("it runs");
    let component = Pidfd::open(Pid::from_raw(number).expect("a number")).expect("it runs");
    component.signal(Signal::STOP).expect("a process of this user");
    let socket = connect(&nodes, 0);
    for id in 1..=20 {
        let messages = vec![Payload(vec![0; 60_000])];
        let what = Want::Put { to: 1, messages, timeout_ms: 0 };
        socket.send(&Request { id, what }, &[], PATIENCE).expect("it is open");
    }
    nodes.client(0).await_running(2, PATIENCE).expect("the next component runs");
    let mut answers: Vec<Reply> = (1..=20).map(|_| receive(&socket)).collect();
    answers.sort_by_key(|reply| reply.id);
    let lost = Outcome::Refused(Refused::ComponentLost);
    assert_eq!(answers[0].what, lost, "it was with the component");
    assert!(matches!(answers[19].what, Outcome::Put(_)), "no client holds it");
}

#[test]
fn a_node_outside_the_cluster_has_no_client() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 2");
    let refused = Client::connect(&nodes.dir, &nodes.cluster, 2, Duration::ZERO).map(drop);
    assert!(matches!(refused, Err(ClientError::OutOfRange { rank: 2, nodes: 2 })));
    let refused = nodes.client(0).put(2, &[b"a"], PATIENCE);
    let reason = Refused::OutOfRange { rank: 2, nodes: 2 };
    assert!(matches!(refused, Err(ClientError::Refused { reason: found, .. }) if found == reason));
}

#[test]
fn descriptors_that_nobody_asked_for_are_closed() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 2");
    let socket = connect(&nodes, 0);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let sent: OwnedFd = writer.into();
    let request = Request { id: 1, what: Want::Status };
    socket.send(&request, &[std::os::fd::AsFd::as_fd(&sent)], PATIENCE).expect("it is open");
    assert_eq!(receive(&socket).id, 1);
    drop(sent);
    // The end of the pipe is seen once no process holds the other one.
    assert_eq!(std::io::read_to_string(reader).expect("a pipe"), "");
}
