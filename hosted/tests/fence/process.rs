//! A peer in another process: killed by the fence, or dead by itself.

use std::os::fd::{AsFd, RawFd};
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use weft::clock::{Deadline, now_ns};
use weft::packet::Socket;
use weft::process::{Liveness, Pidfd, Spawn, Spawned, adopt_inherited};
use weft::shm::{Grant, Mapping};
use weft_core::endpoint::{Event, PutError};
use weft_core::fabric::{Access, Fabric, Layout, Memory, PostError, Region, RegionSpec};
use weft_core::lane::SendError;
use weft_core::time::{self, Instant};

use crate::pair::{A, B, FIRST, Member, Pair, SECOND};

/// How long anything may take before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);
const CHILD_VARIABLE: &str = "WEFT_TEST_FENCE_CHILD";
const SOCKET: RawFd = 3;

/// This test program again, as the process of peer B.
fn start_child() -> (Spawned, Socket) {
    let (ours, theirs) = Socket::pair().expect("a pair");
    let spawn = Spawn::own_program()
        .args(["--exact", "process::child"])
        .env(CHILD_VARIABLE, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    (spawn.inherit(SOCKET, theirs.into()).start().expect("a child"), ours)
}

/// The region of A's memory that `spec` describes and B may write, and its place in a grant.
fn writable_by_b(layout: &Layout) -> (Region, RegionSpec, usize) {
    let granted = |spec: &RegionSpec| spec.peers.contains(B) && !spec.access.is_empty();
    let specs = (0..).map(Region).zip(layout.regions().iter().copied());
    let specs = specs.filter(|(_, spec)| granted(spec)).zip(2..);
    let mut writable = specs.filter(|((_, spec), _)| spec.access.contains(Access::REMOTE_WRITE));
    let ((region, spec), place) = writable.next().expect("a mailbox has slots");
    (region, spec, place)
}

/// The child's half of the tests: writes to A's memory by its own mapping, past every gate.
/// Nothing to do otherwise.
#[test]
fn child() {
    if std::env::var_os(CHILD_VARIABLE).is_none() {
        return;
    }
    let socket = Socket::from_fd(adopt_inherited(SOCKET).expect("inherited")).expect("a socket");
    let ((place, len), fds): ((usize, usize), _) = socket.recv(PATIENCE).expect("a grant");
    let memory = Mapping::writable(fds[place].as_fd(), len).expect("a right to write");
    loop {
        memory.words()[0].fetch_add(1, Ordering::Relaxed);
    }
}

/// A, and B in another process that writes to A's memory without end.
fn written_to() -> (Pair, Member, Spawned, Region) {
    let pair = Pair::new();
    let mut a = pair.member(A, FIRST);
    let (child, socket) = start_child();
    pair.admit(&mut a, B, FIRST, Some(child.pidfd.try_clone().expect("a pidfd")));
    let layout = pair.plan.layout();
    let (region, spec, place) = writable_by_b(layout);
    let grant: Grant = pair.memory(A).grant(layout, B).expect("descriptors");
    socket.send(&(place, spec.len as usize), &grant.borrow(), PATIENCE).expect("it listens");
    (pair, a, child, region)
}

/// Waits until the word changes.
fn await_change(a: &mut Member, region: Region) {
    let before = a.fabric().memory().load(region, 0);
    let deadline = Deadline::after(PATIENCE);
    while a.fabric().memory().load(region, 0) == before {
        assert!(!deadline.has_passed(), "the child does not write");
        thread::yield_now();
    }
}

#[test]
fn a_fence_kills_the_process_and_its_writes_have_stopped() {
    let (_pair, mut a, mut child, region) = written_to();
    await_change(&mut a, region);
    await_change(&mut a, region);
    a.fence(B).expect("it can be killed");
    assert!(child.pidfd.is_dead().expect("a pidfd"), "fence waits for the end");
    let last = a.fabric().memory().load(region, 0);
    for _ in 0..1000 {
        // A living child would take one of these turns and write on.
        thread::yield_now();
        assert_eq!(a.fabric().memory().load(region, 0), last);
    }
    child.child.wait().expect("it has ended");
}

/// A polls, posts nothing, and learns of the end all the same: once, within a millisecond.
#[test]
fn the_end_of_a_process_is_an_event_for_who_posts_nothing() {
    let (_pair, mut a, mut child, _region) = written_to();
    let mut now = Instant(now_ns());
    a.poll(now);
    assert_eq!(a.poll_event(), None, "it runs");
    child.child.kill().expect("a child");
    child.child.wait().expect("it has ended");
    now = now.after(time::Duration::from_millis(1));
    a.poll(now);
    assert_eq!(a.poll_event(), Some(Event::Gone { peer: B }));
    a.poll(now.after(time::Duration::from_millis(1)));
    assert_eq!(a.poll_event(), None, "once");
    a.fence(B).expect("it has ended");
}

#[test]
fn a_process_that_was_never_admitted_is_fenced_all_the_same() {
    let pair = Pair::new();
    let mut a = pair.member(A, FIRST);
    let (mut child, _socket) = start_child();
    let memory = pair.remote(B, A);
    a.fabric().connect(B, memory, Some(child.pidfd.try_clone().expect("a pidfd")));
    a.fence(B).expect("it can be killed");
    assert!(child.pidfd.is_dead().expect("a pidfd"));
    child.child.wait().expect("it has ended");
}

#[test]
fn posts_to_a_dead_process_fail_until_its_next_life_is_admitted() {
    let pair = Pair::new();
    let (mut a, mut b) = (pair.member(A, FIRST), pair.member(B, FIRST));
    let (mut child, _socket) = start_child();
    pair.admit(&mut a, B, FIRST, Some(child.pidfd.try_clone().expect("a pidfd")));
    pair.admit(&mut b, A, FIRST, None);
    a.poll(Instant(now_ns()));
    a.send(B, 1, b"alive").expect("it is alive");

    child.pidfd.kill().expect("a child");
    assert_eq!(child.pidfd.wait_dead(PATIENCE).expect("a pidfd"), Liveness::Dead);
    a.poll(Instant(u64::MAX));
    assert_eq!(a.send(B, 1, b"dead"), Err(SendError::Post(PostError::Gone)));
    assert_eq!(a.put(B, 1, b"dead"), Err(PutError::Post(PostError::Gone)));
    a.fence(B).expect("it is dead");

    let own = Pidfd::of_self().expect("a pidfd");
    let mut next = pair.member(B, SECOND);
    pair.admit(&mut a, B, SECOND, Some(own));
    pair.admit(&mut next, A, FIRST, None);
    a.send(B, 1, b"again").expect("it is alive again");
    let message = next.take_lane().expect("it has landed");
    assert_eq!(message.payload, b"again");
    child.child.wait().expect("it has ended");
}
