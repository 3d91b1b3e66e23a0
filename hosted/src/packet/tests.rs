//! Packets that arrive whole, with their descriptors, or not at all.

use std::io::{IoSlice, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::{Errno, FdFlags, fcntl_getfd};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use serde::{Deserialize, Serialize};

use super::{Listener, Packet, PacketError, Socket};
use crate::scratch::Scratch;

const SOON: Duration = Duration::from_secs(20);

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Greeting {
    name: String,
    rank: u32,
}

fn greeting() -> Greeting {
    Greeting { name: "weft".into(), rank: 3 }
}

fn send_raw(socket: &Socket, bytes: &[u8]) {
    let mut control = SendAncillaryBuffer::default();
    let iov = &[IoSlice::new(bytes)];
    sendmsg(socket, iov, &mut control, SendFlags::empty()).unwrap();
}

#[test]
fn value_and_descriptors_arrive_together() {
    let (left, right) = Socket::pair().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    left.send(&greeting(), &[reader.as_fd(), writer.as_fd()], SOON).unwrap();

    let (value, mut fds): (Greeting, _) = right.recv(SOON).unwrap();
    assert_eq!(value, greeting());
    assert_eq!(fds.len(), 2);
    for fd in &fds {
        assert!(fcntl_getfd(fd).unwrap().contains(FdFlags::CLOEXEC));
    }
    drop((reader, writer));
    let mut writer = std::fs::File::from(fds.pop().unwrap());
    writer.write_all(b"through").unwrap();
    drop(writer);
    let text = std::io::read_to_string(std::fs::File::from(fds.pop().unwrap())).unwrap();
    assert_eq!(text, "through");
}

#[test]
fn most_descriptors_pass_and_one_more_is_refused() {
    let (left, right) = Socket::pair().unwrap();
    let (reader, _writer) = std::io::pipe().unwrap();
    let fds: Vec<BorrowedFd<'_>> = vec![reader.as_fd(); Packet::MAX_DESCRIPTORS + 1];
    let error = left.send(&1, &fds, SOON).unwrap_err();
    assert!(matches!(error, PacketError::TooManyDescriptors { count: 254 }));

    left.send(&2, &fds[1..], SOON).unwrap();
    let (value, fds): (u8, Vec<OwnedFd>) = right.recv(SOON).unwrap();
    assert_eq!((value, fds.len()), (2, Packet::MAX_DESCRIPTORS));
}

#[test]
fn longest_value_passes_and_one_more_byte_is_refused() {
    let (left, right) = Socket::pair().unwrap();
    let longest = "x".repeat(Packet::MAX_LEN - 2);
    left.send(&longest, &[], SOON).unwrap();
    assert_eq!(right.recv::<String>(SOON).unwrap().0, longest);

    let error = left.send(&format!("{longest}x"), &[], SOON).unwrap_err();
    assert!(matches!(error, PacketError::TooLong { len } if len == Packet::MAX_LEN + 1));
    assert!(right.try_recv::<String>().unwrap().is_none());
}

#[test]
fn oversized_packet_of_a_peer_is_refused_and_the_next_one_arrives() {
    let (left, right) = Socket::pair().unwrap();
    rustix::net::sockopt::set_socket_send_buffer_size(&left, 4 * Packet::MAX_LEN).unwrap();
    send_raw(&left, &vec![b'1'; Packet::MAX_LEN + 1]);
    left.send(&7, &[], SOON).unwrap();

    assert!(matches!(right.recv::<u8>(SOON), Err(PacketError::TruncatedData)));
    assert_eq!(right.recv::<u8>(SOON).unwrap().0, 7);
}

#[test]
fn malformed_packet_is_refused_and_the_next_one_arrives() {
    let (left, right) = Socket::pair().unwrap();
    send_raw(&left, b"{\"name\": ");
    left.send(&"of another type", &[], SOON).unwrap();
    left.send(&greeting(), &[], SOON).unwrap();

    let error = right.recv::<Greeting>(SOON).unwrap_err();
    assert!(error.to_string().contains("EOF while parsing"), "{error}");
    assert!(matches!(right.recv::<Greeting>(SOON), Err(PacketError::Decode(_))));
    assert_eq!(right.recv::<Greeting>(SOON).unwrap().0, greeting());
}

#[test]
fn descriptors_of_a_malformed_packet_are_closed() {
    let (left, right) = Socket::pair().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    left.send(&"not a number", &[writer.as_fd()], SOON).unwrap();
    drop(writer);

    assert!(matches!(right.recv::<u8>(SOON), Err(PacketError::Decode(_))));
    // The pipe ends only when no writer is left anywhere.
    assert_eq!(std::io::read_to_string(reader).unwrap(), "");
}

#[test]
fn last_words_arrive_before_the_end_even_after_a_reset() {
    let (left, right) = Socket::pair().unwrap();
    left.send(&"never read", &[], SOON).unwrap();
    right.send(&"last words", &[], SOON).unwrap();
    drop(right);

    assert_eq!(left.recv::<String>(SOON).unwrap().0, "last words");
    assert!(matches!(left.recv::<String>(SOON), Err(PacketError::Closed)));
    assert!(matches!(left.send(&1, &[], SOON), Err(PacketError::Closed)));
}

#[test]
fn shut_down_connection_ends_for_every_handle_after_what_has_arrived() {
    let (left, right) = Socket::pair().unwrap();
    let second = right.try_clone().unwrap();
    left.send(&greeting(), &[], SOON).unwrap();
    right.shut_down();
    let (value, _): (Greeting, _) = second.recv(SOON).unwrap();
    assert_eq!(value, greeting());
    assert!(matches!(second.recv::<Greeting>(SOON), Err(PacketError::Closed)));
    assert!(matches!(left.recv::<Greeting>(SOON), Err(PacketError::Closed)));
    assert!(matches!(left.send(&greeting(), &[], SOON), Err(PacketError::Closed)));
}

#[test]
fn silence_times_out_and_takes_nothing() {
    let (left, right) = Socket::pair().unwrap();
    let error = right.recv::<u8>(Duration::from_millis(2)).unwrap_err();
    assert!(matches!(error, PacketError::TimedOut { call: "recv", .. }));
    left.send(&5, &[], SOON).unwrap();
    assert_eq!(right.recv::<u8>(Duration::ZERO).unwrap().0, 5);
}

#[test]
fn full_connection_times_out_and_then_drains_in_order() {
    let (left, right) = Socket::pair().unwrap();
    let mut sent = 0_u32;
    let error = loop {
        match left.send(&sent, &[], Duration::from_millis(2)) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, PacketError::TimedOut { call: "send", .. }));
    for expected in 0..sent {
        assert_eq!(right.recv::<u32>(SOON).unwrap().0, expected);
    }
    left.send(&sent, &[], SOON).unwrap();
}

#[test]
fn one_thread_sends_while_another_receives() {
    let (left, right) = Socket::pair().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..500_u32).for_each(|n| left.send(&n, &[], SOON).unwrap()));
        scope.spawn(|| (0..500_u32).for_each(|n| right.send(&n, &[], SOON).unwrap()));
        for socket in [&left, &right] {
            scope.spawn(move || {
                (0..500_u32).for_each(|n| assert_eq!(socket.recv::<u32>(SOON).unwrap().0, n));
            });
        }
    });
}

#[test]
fn peer_is_this_user_and_this_process() {
    let scratch = Scratch::new();
    let path = scratch.path().join("credentials.sock");
    let listener = Listener::bind(&path).unwrap();
    let client = Socket::connect(&path, SOON).unwrap();
    let server = listener.accept(SOON).unwrap();
    for socket in [&client, &server] {
        let credentials = socket.peer_credentials().unwrap();
        assert_eq!(credentials.pid, Some(rustix::process::getpid()));
        socket.authorize_same_user().unwrap();
    }
    client.try_clone().unwrap().send(&1, &[], SOON).unwrap();
    assert_eq!(server.recv::<u8>(SOON).unwrap().0, 1);
}

#[test]
fn taken_path_and_missing_path_are_named() {
    let scratch = Scratch::new();
    let path = scratch.path().join("taken.sock");
    let missing = Socket::connect(&path, SOON).unwrap_err();
    assert!(matches!(missing, PacketError::Connect { errno: Errno::NOENT, .. }));
    let listener = Listener::bind(&path).unwrap();
    assert!(listener.try_accept().unwrap().is_none());
    let taken = Listener::bind(&path).unwrap_err();
    assert!(matches!(taken, PacketError::Bind { errno: Errno::ADDRINUSE, .. }));
    assert!(taken.to_string().contains("taken.sock"), "{taken}");
    drop(listener);
    let stale = Socket::connect(&path, SOON).unwrap_err();
    assert!(matches!(stale, PacketError::Connect { errno: Errno::CONNREFUSED, .. }));
}

#[test]
fn full_backlog_and_idle_listener_time_out() {
    let scratch = Scratch::new();
    let path = scratch.path().join("backlog.sock");
    let listener = Listener::bind(&path).unwrap();
    let idle = listener.accept(Duration::from_millis(2)).unwrap_err();
    assert!(matches!(idle, PacketError::TimedOut { call: "accept", .. }));
    let mut waiting = Vec::new();
    let error = loop {
        match Socket::connect(&path, Duration::from_millis(2)) {
            Ok(socket) => waiting.push(socket),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, PacketError::TimedOut { call: "connect", .. }));
    listener.accept(SOON).unwrap();
    Socket::connect(&path, SOON).unwrap();
}

#[test]
fn other_descriptors_are_not_adopted() {
    let (reader, _writer) = std::io::pipe().unwrap();
    assert!(matches!(Socket::from_fd(reader.into()), Err(PacketError::NotPacketSocket)));
    let (stream, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    assert!(stream.as_raw_fd() > 2);
    assert!(matches!(Socket::from_fd(stream.into()), Err(PacketError::NotPacketSocket)));
}
