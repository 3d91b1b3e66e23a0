//! Two processes on one segment: what no test between threads can show.

mod stall;

use std::os::fd::{AsFd, RawFd};
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Bell, Idled, Mapping, ReadOnlyMapping, Segment, SegmentError, Wait, Waiter};
use crate::packet::Socket;
use crate::process::{Liveness, Spawn, Spawned, adopt_inherited};

const SOON: Duration = Duration::from_secs(60);
const CHILD_VARIABLE: &str = "WEFT_TEST_SHM_CHILD";
const SOCKET: RawFd = 3;
const LEN: usize = 4096;

fn start_child() -> (Spawned, Socket) {
    let (ours, theirs) = Socket::pair().unwrap();
    let spawn = Spawn::own_program()
        .arg("--exact")
        .arg("shm::tests::child")
        .env(CHILD_VARIABLE, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    (spawn.inherit(SOCKET, theirs.into()).start().unwrap(), ours)
}

/// The child's half of the test below; nothing to do otherwise.
#[test]
fn child() {
    if std::env::var_os(CHILD_VARIABLE).is_none() {
        return;
    }
    let socket = Socket::from_fd(adopt_inherited(SOCKET).unwrap()).unwrap();
    let (len, fds): (usize, _) = socket.recv(SOON).unwrap();
    let [writable, read_only, bell] = fds.try_into().unwrap();
    let refused = Mapping::writable(read_only.as_fd(), len).map(drop);
    assert!(matches!(refused, Err(SegmentError::Os { call: "mmap", .. })));

    let reader = ReadOnlyMapping::new(read_only.as_fd(), len).unwrap();
    let counter = Mapping::writable(writable.as_fd(), len).unwrap();
    let bell = Bell::open(bell.as_fd()).unwrap();
    counter.words()[1].store(reader.load(0) + 1, Ordering::Relaxed);
    loop {
        counter.words()[2].fetch_add(1, Ordering::Relaxed);
        bell.ring_if_armed().unwrap();
    }
}

#[test]
fn another_process_writes_rings_and_once_dead_writes_no_more() {
    let segment = Segment::create("weft-test", LEN).unwrap();
    let bell = Bell::segment("weft-test-bell").unwrap();
    let memory = Mapping::writable(segment.writable_fd(), LEN).unwrap();
    memory.words()[0].store(41, Ordering::Relaxed);
    let (mut spawned, socket) = start_child();
    let read_only = segment.read_only_fd().unwrap();
    let fds = [segment.writable_fd(), read_only.as_fd(), bell.writable_fd()];
    socket.send(&LEN, &fds, SOON).unwrap();

    let mut waiter = Waiter::new(Wait::Futex, Bell::open(bell.writable_fd()).unwrap());
    let count = || memory.words()[2].load(Ordering::Relaxed);
    while count() < 1000 {
        let seen = count();
        assert_ne!(waiter.idle(|| count() > seen, SOON), Ok(Idled::TimedOut));
    }
    assert_eq!(memory.words()[1].load(Ordering::Relaxed), 42);

    spawned.pidfd.kill().unwrap();
    assert_eq!(spawned.pidfd.wait_dead(SOON).unwrap(), Liveness::Dead);
    let last = count();
    for _ in 0..1000 {
        // A living child would take one of these turns and count on.
        std::thread::yield_now();
        assert_eq!(count(), last);
    }
    spawned.child.wait().unwrap();
}
