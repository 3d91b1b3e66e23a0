//! Load on the control sockets: clients that pipeline, that do not read, that only take a place.
//!
//! ```text
//!   client ──Put, Put, Put…──▶ supervisor ──▶ component      each writes without waiting for
//!          ◀──reply, reply……──            ◀──               the replies and reads all of them
//! ```
//!
//! Clients cannot end a component, stop the supervisor or keep an operator out.
//! `WEFT_LOAD_CLIENTS` and `WEFT_LOAD_S` set how many clients pipeline, and for how many seconds;
//! `ci/load` runs the long form.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use weft::client::{ClientError, Inbox};
use weft::clock::Deadline;
use weft::node::control::{Outcome, Payload, Refused, Reply, Request, Want};
use weft::packet::{PacketError, Socket};

use crate::PATIENCE;
use crate::place::{Nodes, Place, eventually};
use crate::storm::setting;

fn connect(nodes: &Nodes, rank: usize) -> Socket {
    let path = nodes.dir.node_socket(rank).expect("a short path");
    Socket::connect(&path, PATIENCE).expect("the node listens")
}

fn put(to: u16, len: usize) -> Want {
    Want::Put { to, messages: vec![Payload(vec![b'p'; len])], timeout_ms: 0 }
}

/// The number of a client's last request.
const LAST: u64 = u64::MAX;

/// What became of the requests of one client.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    put: u64,
    refused: u64,
    lost: u64,
}

impl Answers {
    fn note(&mut self, what: Outcome) {
        match what {
            Outcome::Put(outcome) => self.put += outcome.put as u64,
            Outcome::Refused(Refused::ComponentLost) => self.lost += 1,
            other => {
                assert_eq!(other, Outcome::Refused(Refused::Busy));
                self.refused += 1;
            }
        }
    }

    const fn and(self, other: Self) -> Self {
        Self {
            put: self.put + other.put,
            refused: self.refused + other.refused,
            lost: self.lost + other.lost,
        }
    }
}

/// Pipelines puts to node 1 over one connection to node 0 until `is_over`, as fast as the node
/// takes them, and reads every reply.
fn pipeline(nodes: &Nodes, len: usize, is_over: &AtomicBool) -> Answers {
    let socket = connect(nodes, 0);
    let mut answers = Answers::default();
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut sent = 0;
            while !is_over.load(Ordering::Relaxed) {
                let request = Request { id: sent, what: put(1, len) };
                match socket.send(&request, &[], Duration::from_millis(100)) {
                    Ok(()) => sent += 1,
                    Err(PacketError::TimedOut { .. }) => {}
                    Err(error) => panic!("{error}\n{}", nodes.state()),
                }
            }
            let what = Want::Chronicle { about: None, after_ns: u64::MAX };
            socket.send(&Request { id: LAST, what }, &[], PATIENCE).expect("it is open");
            sent
        });
        // The last request is the supervisor's own, and its answer may come before others.
        let mut read = 0;
        loop {
            let (Reply { id, what }, _) = socket.recv::<Reply>(PATIENCE).expect("an answer");
            if id == LAST {
                break;
            }
            answers.note(what);
            read += 1;
        }
        for _ in read..sender.join().expect("it sends") {
            answers.note(socket.recv::<Reply>(PATIENCE).expect("an answer").0.what);
        }
    });
    answers
}

/// Takes and releases what comes to node 1 until `is_over`.
fn drain(nodes: &Nodes, is_over: &AtomicBool) -> u64 {
    let mut inbox = Inbox::new(nodes.client(1));
    let mut received = 0;
    while !is_over.load(Ordering::Relaxed) {
        let messages = inbox.receive(usize::MAX, Duration::from_millis(20));
        received += messages.expect("the node answers").len() as u64;
    }
    received
}

/// Runs `clients` that pipeline for `time`; what became of their requests.
fn load(nodes: &Nodes, clients: usize, len: usize, time: Duration, act: impl FnOnce()) -> Answers {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let drained = scope.spawn(|| drain(nodes, &is_over));
        let pipelines: Vec<_> =
            (0..clients).map(|_| scope.spawn(|| pipeline(nodes, len, &is_over))).collect();
        let deadline = Deadline::after(time);
        act();
        while !deadline.has_passed() {
            thread::park_timeout(deadline.remaining());
        }
        is_over.store(true, Ordering::Relaxed);
        println!("{} received", drained.join().expect("the inbox"));
        let ended = pipelines.into_iter().map(|client| client.join().expect("a client"));
        ended.fold(Answers::default(), Answers::and)
    })
}

/// Resident memory of a process in KiB.
fn resident(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a process");
    line.split_whitespace().nth(1).expect("a number").parse().expect("a number")
}

/// Resident memory of the supervisor and the component of a node, in KiB.
fn memory(nodes: &Nodes, rank: u16) -> (u64, u64) {
    let status = nodes.client(rank).status().expect("a status");
    (resident(status.supervisor_pid), resident(status.component_pid.expect("it runs")))
}

#[test]
fn one_client_that_pipelines_puts_loses_no_component() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let answers = load(&nodes, 1, 16, Duration::from_secs(5), || {});
    println!("{answers:?}");
    assert_eq!(answers.lost, 0, "{answers:?}\n{}", nodes.state());
    assert!(answers.put > 0, "{answers:?}");
    nodes.assert_unharmed();
}

#[test]
fn sixty_clients_with_large_puts_lose_no_component() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    // Longer than a slot, so that all of it is carried to the component and refused there.
    let answers = load(&nodes, 60, 60_000, Duration::from_secs(3), || {});
    assert_eq!(answers.lost, 0, "{answers:?}\n{}", nodes.state());
    nodes.assert_unharmed();
}

#[test]
fn many_pipelining_clients_lose_no_component_and_memory_stays_bounded() {
    let clients = usize::try_from(setting("WEFT_LOAD_CLIENTS", 100)).expect("a count");
    let time = Duration::from_secs(setting("WEFT_LOAD_S", 5));
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let before = memory(&nodes, 0);
    let answers = load(&nodes, clients, 16, time, || {});
    let after = memory(&nodes, 0);
    println!("{clients} clients for {time:?}: {answers:?}");
    println!("resident KiB (supervisor, component): before {before:?}, after {after:?}");
    assert_eq!(answers.lost, 0, "{answers:?}\n{}", nodes.state());
    // A window of 128 KiB and one more packet for each client, and what the allocator keeps.
    const ROOM_KIB: u64 = 64 * 1024;
    assert!(after.0 < before.0 + ROOM_KIB && after.1 < before.1 + ROOM_KIB, "{before:?} {after:?}");
    nodes.assert_unharmed();
}

#[test]
fn a_kill_is_found_and_repaired_under_load() {
    let time = Duration::from_secs(setting("WEFT_LOAD_S", 5));
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let mut recovered_us = None;
    let answers = load(&nodes, 16, 16, time, || {
        let mut client = nodes.client(0);
        let before = client.status().expect("a status").incarnation;
        client.kill().expect("it runs");
        let status = client.await_running(before + 1, PATIENCE).expect("the next component runs");
        recovered_us = status.last_recovery_us;
    });
    println!("{answers:?}; recovered after {recovered_us:?} us");
    assert!(recovered_us.is_some());
    assert_eq!(nodes.client(0).status().expect("a status").restarts, 1, "{}", nodes.state());
}

/// Asks for the status again and again and reads no reply, until the node ends the connection.
fn be_deaf(nodes: &Nodes, is_over: &AtomicBool) {
    let mut socket = connect(nodes, 0);
    let mut id = 0;
    while !is_over.load(Ordering::Relaxed) {
        id += 1;
        match socket.send(&Request { id, what: Want::Status }, &[], Duration::from_millis(1)) {
            Ok(()) | Err(PacketError::TimedOut { .. }) => {}
            Err(_) => socket = connect(nodes, 0),
        }
    }
}

#[test]
fn clients_that_do_not_read_delay_no_other() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let is_over = AtomicBool::new(false);
    let mut answers = 0;
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| be_deaf(&nodes, &is_over));
        }
        let deadline = Deadline::after(Duration::from_secs(3));
        let mut client = nodes.client(0);
        while !deadline.has_passed() {
            client.chronicle(None, u64::MAX).expect("an answer");
            answers += 1;
        }
        is_over.store(true, Ordering::Relaxed);
    });
    nodes.assert_unharmed();
    // Each reply that was waited for took 200 ms: with six such clients, 15 answers in 3 s.
    assert!(answers > 60, "{answers} answers\n{}", nodes.state());
}

#[test]
fn a_burst_of_connections_to_the_peers_socket_ends_no_supervisor() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let path = nodes.dir.peer_socket(0).expect("a short path");
    let supervisor = nodes.client(0).status().expect("a status").supervisor_pid;
    let mut open = Vec::new();
    let mut most_threads = 0;
    for count in 0..4000 {
        if let Ok(socket) = Socket::connect(&path, PATIENCE) {
            open.push(socket);
        }
        if open.len() > 800 {
            open.clear();
        }
        if count % 50 == 0 {
            let threads = fs::read_dir(format!("/proc/{supervisor}/task")).expect("it runs");
            most_threads = most_threads.max(threads.count());
        }
    }
    assert!(most_threads < 32, "{most_threads} threads");
    nodes.assert_unharmed();
}

#[test]
fn clients_that_only_take_a_place_keep_no_operator_out() {
    let place = Place::new();
    let (up, nodes) = place.up_calm(2);
    let idle: Vec<Socket> = (0..400).map(|_| connect(&nodes, 0)).collect();
    nodes.client(0).status().expect("a place is kept for the operator");
    let refused = nodes.client(0).take(1, Duration::ZERO);
    let is_busy =
        |error: &ClientError| matches!(error, ClientError::Refused { reason: Refused::Busy, .. });
    assert!(refused.is_err_and(|error| is_busy(&error)), "the place is for nothing else");
    eventually("the oldest idle connection gives up its place", || {
        match nodes.client(0).take(1, Duration::ZERO) {
            Ok(_) => true,
            Err(error) => {
                assert!(is_busy(&error), "{error}");
                false
            }
        }
    });
    place.weft("down --name t").done();
    drop(idle);
    up.wait().done();
}

#[test]
fn a_bare_connect_to_the_launcher_ends_nothing() {
    let place = Place::new();
    let (up, nodes) = place.up_calm(2);
    let path = nodes.dir.launcher_socket().expect("a short path");
    let bare = Socket::connect(&path, PATIENCE).expect("the launcher listens");
    drop(Socket::connect(&path, PATIENCE).expect("the launcher listens"));
    let nonsense = Socket::connect(&path, PATIENCE).expect("the launcher listens");
    nonsense.send(&"nonsense", &[], PATIENCE).expect("it is open");
    // It has been read and refused when the connection is at its end.
    assert!(matches!(nonsense.recv::<u8>(PATIENCE), Err(PacketError::Closed)));
    nodes.assert_unharmed();
    // A silent connection holds up no command.
    place.weft("down --name t").done();
    drop(bare);
    up.wait().done();
}
