//! Children of this test program, and what they were given.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use super::*;
use crate::packet::Socket;
use crate::process::{Liveness, Signalled, adopt_inherited};

const SOON: Duration = Duration::from_secs(60);
/// Makes the test `child` act as the child, and names the number of its socket.
const CHILD_VARIABLE: &str = "WEFT_TEST_CHILD_SOCKET";
const SOCKET: RawFd = 3;
const PIPE: RawFd = 7;

/// This test binary again, with arguments to run only the child's half below.
fn child_half(socket_number: RawFd) -> Spawn {
    Spawn::own_program()
        .arg("--exact")
        .arg("process::spawn::tests::child")
        .env(CHILD_VARIABLE, socket_number.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
}

/// Open descriptor numbers above standard error.
fn open_numbers() -> Vec<RawFd> {
    let listing = std::fs::read_dir("/proc/self/fd").unwrap();
    let mut numbers: Vec<RawFd> = listing
        .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
        .filter(|number| *number > libc::STDERR_FILENO)
        .collect();
    // The descriptor of the listing itself was listed, and is closed by now.
    numbers.retain(|number| std::fs::read_link(format!("/proc/self/fd/{number}")).is_ok());
    numbers.sort_unstable();
    numbers
}

/// The child's half of the other tests; nothing to do otherwise.
#[test]
fn child() {
    let Some(number) = std::env::var_os(CHILD_VARIABLE) else {
        return;
    };
    let number = number.to_str().unwrap().parse().unwrap();
    let open = open_numbers();
    let socket = Socket::from_fd(adopt_inherited(number).unwrap()).unwrap();
    socket.send(&open, &[], SOON).unwrap();
    // Runs until it is asked to end, killed, or orphaned.
    let (status, _): (i32, _) = socket.recv(10 * SOON).unwrap();
    std::process::exit(status);
}

#[test]
fn child_has_exactly_the_given_descriptors_and_ends_by_itself() {
    let (ours, theirs) = Socket::pair().unwrap();
    let (reader, _writer) = io::pipe().unwrap();
    // Open, without close-on-exec, and not given: it must not be seen by the child.
    let stray = rustix::io::fcntl_dupfd_cloexec(&reader, 40).unwrap();
    rustix::io::fcntl_setfd(&stray, rustix::io::FdFlags::empty()).unwrap();

    let spawn = child_half(SOCKET).inherit(SOCKET, theirs.into()).inherit(PIPE, reader.into());
    let mut spawned = spawn.start().unwrap();
    let (open, _): (Vec<RawFd>, _) = ours.recv(SOON).unwrap();
    assert_eq!(open, [SOCKET, PIPE]);

    ours.send(&5, &[], SOON).unwrap();
    assert_eq!(spawned.pidfd.wait_dead(SOON).unwrap(), Liveness::Dead);
    assert_eq!(spawned.child.wait().unwrap().code(), Some(5));
}

#[test]
fn given_descriptors_may_take_each_others_numbers() {
    let (ours, theirs) = Socket::pair().unwrap();
    let (reader, _writer) = io::pipe().unwrap();
    let (theirs, reader) = (OwnedFd::from(theirs), OwnedFd::from(reader));
    let (socket_number, pipe_number) = (reader.as_raw_fd(), theirs.as_raw_fd());
    let spawn = child_half(socket_number).inherit(socket_number, theirs);
    let mut spawned = spawn.inherit(pipe_number, reader).start().unwrap();

    let (open, _): (Vec<RawFd>, _) = ours.recv(SOON).unwrap();
    let mut expected = [socket_number, pipe_number];
    expected.sort_unstable();
    assert_eq!(open, expected);
    assert_eq!(spawned.pidfd.kill().unwrap(), Signalled::Sent);
    assert_eq!(spawned.child.wait().unwrap().signal(), Some(libc::SIGKILL));
}

#[test]
fn child_dies_with_the_thread_that_started_it() {
    let (ours, theirs) = Socket::pair().unwrap();
    let starter = std::thread::spawn(move || {
        let spawn =
            child_half(SOCKET).inherit(SOCKET, theirs.into()).parent_death_signal(Signal::TERM);
        let spawned = spawn.start().unwrap();
        ours.recv::<Vec<RawFd>>(SOON).unwrap();
        assert!(!spawned.pidfd.is_dead().unwrap());
        // Returned along with the socket, so that its end is not what the child dies of.
        (spawned, ours)
    });
    let (mut spawned, _ours) = starter.join().unwrap();
    assert_eq!(spawned.pidfd.wait_dead(SOON).unwrap(), Liveness::Dead);
    assert_eq!(spawned.child.wait().unwrap().signal(), Some(libc::SIGTERM));
}

#[test]
fn bad_numbers_are_refused_before_anything_starts() {
    let pipe_end = || OwnedFd::from(io::pipe().unwrap().0);
    for number in [-1, 0, 1, 2] {
        let refused = child_half(SOCKET).inherit(number, pipe_end()).start();
        assert!(matches!(refused, Err(ProcessError::ReservedNumber { number: n }) if n == number));
    }
    let twice = child_half(SOCKET).inherit(9, pipe_end()).inherit(9, pipe_end()).start();
    assert!(matches!(twice, Err(ProcessError::NumberTwice { number: 9 })));
}
