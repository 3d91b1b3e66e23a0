//! Readers that live, die, leave and lie, and a writer that ends.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use super::*;
use crate::explain::Explain;
use crate::packet::{Listener, Socket};
use crate::process::Pidfd;
use crate::scratch::Scratch;
use crate::shm::Mapping;
use weft_core::fabric::Words;

const NOW: Duration = Duration::ZERO;
const SOON: Duration = Duration::from_secs(20);
const PLAN: FanPlan = FanPlan { slots: 2, message_len: 21 };

struct Rig {
    _folder: Scratch,
    path: PathBuf,
    writer: FanWriter,
}

fn rig() -> Rig {
    let folder = Scratch::new();
    let path = folder.path().join("fan.sock");
    let writer = FanWriter::bind(&path, PLAN).unwrap();
    Rig { _folder: folder, path, writer }
}

impl Rig {
    fn reader(&mut self, name: &str) -> Result<FanReader, FanError> {
        let (path, name) = (self.path.clone(), name.to_owned());
        let joining = thread::spawn(move || FanReader::join(&path, &name, SOON));
        while !joining.is_finished() {
            let count = self.writer.readers().count();
            self.writer.admit(count + 1, Duration::from_millis(1)).unwrap();
        }
        joining.join().unwrap()
    }

    /// A reader in a process of its own, which reads nothing.
    fn mortal(&mut self, name: &str) -> Mortal {
        let child = Command::new("/bin/sleep").arg("600").spawn().unwrap();
        let pidfd = Pidfd::from_child(&child).unwrap();
        let count = Segment::create("weft-test", FanPlan::COUNT_LEN).unwrap();
        let socket = Socket::connect(&self.path, SOON).unwrap();
        let asked = JoinRequest { version: VERSION, name: name.to_owned() };
        let shown = count.read_only_fd().unwrap();
        socket.send(&asked, &[shown.as_fd(), pidfd.as_fd()], SOON).unwrap();
        let count_before = self.writer.readers().count();
        assert!(self.writer.admit(count_before + 1, SOON).unwrap());
        Mortal { child, pidfd, count, _socket: socket }
    }
}

struct Mortal {
    child: Child,
    pidfd: Pidfd,
    count: Segment,
    _socket: Socket,
}

impl Drop for Mortal {
    fn drop(&mut self) {
        self.pidfd.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn all_readers_receive_all_messages_in_order() {
    let mut rig = rig();
    let readers = ["a", "b", "c"].map(|name| rig.reader(name).unwrap());
    let reading = readers.map(|mut reader| {
        thread::spawn(move || {
            for number in 0..5000_u32 {
                let message = reader.receive(SOON).unwrap().expect("a message");
                let len = number as usize % 18;
                assert_eq!(message, [&number.to_le_bytes()[..], &vec![7; len]].concat());
            }
        })
    });
    for number in 0..5000_u32 {
        let bytes = [&number.to_le_bytes()[..], &vec![7; number as usize % 18]].concat();
        let lost = rig.writer.send(&bytes, SOON).unwrap();
        assert_eq!(lost, [""; 0]);
    }
    reading.into_iter().for_each(|it| it.join().unwrap());
}

#[test]
fn a_reader_that_dies_before_it_counts_is_skipped_by_name() {
    let mut rig = rig();
    let mut alive = rig.reader("alive").unwrap();
    let mortal = rig.mortal("mortal");
    rig.writer.send(b"0", NOW).unwrap();
    rig.writer.send(b"1", NOW).unwrap();
    assert_eq!(alive.receive(NOW).unwrap().unwrap(), b"0");
    let full = rig.writer.send(b"2", NOW).unwrap_err();
    assert!(matches!(&full, FanError::Full { name, message: 0, .. } if name == "mortal"), "{full}");
    let killing = thread::spawn(move || drop(mortal));
    assert_eq!(rig.writer.send(b"2", SOON).unwrap(), ["mortal"]);
    killing.join().unwrap();
    assert_eq!(rig.writer.readers().collect::<Vec<_>>(), ["alive"]);
    assert_eq!(alive.receive(NOW).unwrap().unwrap(), b"1");
    assert_eq!(alive.receive(NOW).unwrap().unwrap(), b"2");
}

#[test]
fn a_reader_that_leaves_is_waited_for_no_more_and_not_named() {
    let mut rig = rig();
    let leaving = rig.reader("leaving").unwrap();
    for _ in 0..PLAN.slots {
        rig.writer.send(b"x", NOW).unwrap();
    }
    rig.writer.send(b"x", NOW).unwrap_err();
    drop(leaving);
    assert_eq!(rig.writer.send(b"x", SOON).unwrap(), [""; 0]);
    assert_eq!(rig.writer.readers().count(), 0);
}

#[test]
fn what_was_published_is_read_before_the_end_of_its_writer() {
    for closes in [true, false] {
        let mut rig = rig();
        let mut reader = rig.reader("reader").unwrap();
        rig.writer.send(b"last", NOW).unwrap();
        if closes {
            drop(rig.writer);
        } else {
            // The pidfd of a process that has ended stands for that of a writer that has.
            let mut child = Command::new("/bin/true").spawn().unwrap();
            reader.writer = Pidfd::from_child(&child).unwrap();
            child.wait().unwrap();
        }
        assert_eq!(reader.receive(SOON).unwrap().unwrap(), b"last");
        let ended = reader.receive(SOON).unwrap_err();
        let is_so = matches!(
            (closes, &ended),
            (true, FanError::Closed) | (false, FanError::WriterEnded { .. })
        );
        assert!(is_so, "{ended}");
        assert!(!ended.cure().is_empty());
    }
}

#[test]
fn a_count_that_no_reader_can_have_is_not_believed() {
    let mut rig = rig();
    let mortal = rig.mortal("mortal");
    let count = Mapping::writable(mortal.count.writable_fd(), FanPlan::COUNT_LEN).unwrap();
    rig.writer.send(b"0", NOW).unwrap();
    rig.writer.send(b"1", NOW).unwrap();
    for nonsense in [3, u64::MAX] {
        Words(count.words()).store(0, nonsense);
        rig.writer.send(b"2", NOW).unwrap_err();
    }
    Words(count.words()).store(0, 1);
    rig.writer.send(b"2", NOW).unwrap();
    Words(count.words()).store(0, 0);
    rig.writer.send(b"3", NOW).unwrap_err();
}

#[test]
fn a_damaged_ring_is_an_error() {
    let mut rig = rig();
    let mut reader = rig.reader("reader").unwrap();
    rig.writer.send(b"0", NOW).unwrap();
    let words = Words(rig.writer.ring.words());
    for (at, value) in [(0, 2), (FanPlan::LEN, u64::MAX)] {
        let at = PLAN.slot(0) + at;
        let before = words.load(at);
        words.store(at, value);
        let damaged = reader.receive(NOW).unwrap_err();
        assert!(matches!(damaged, FanError::Damaged { message: 0 }), "{damaged}");
        words.store(at, before);
    }
    assert_eq!(reader.receive(NOW).unwrap().unwrap(), b"0");
}

#[test]
fn a_path_has_one_living_writer() {
    let rig = rig();
    let second = FanWriter::bind(&rig.path, PLAN).map(drop).unwrap_err();
    assert!(matches!(second, FanError::PathInUse { .. }), "{second}");
    let left = rig.path.with_extension("left");
    drop(Listener::bind(&left).unwrap());
    drop(FanWriter::bind(&left, PLAN).expect("what a dead one has left is removed"));
    assert!(!left.exists());
    fs::write(&left, "mine").unwrap();
    let refused = FanWriter::bind(&left, PLAN).map(drop).unwrap_err();
    assert!(matches!(refused, FanError::NotASocket { .. }), "{refused}");
    assert_eq!(fs::read(&left).unwrap(), b"mine");
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut rig = rig();
    let _first = rig.reader("a").unwrap();
    let taken = rig.reader("a").map(drop).unwrap_err();
    assert!(matches!(taken, FanError::NameInUse { .. }), "{taken}");
    for name in ["", &"n".repeat(NAME_MAX + 1)] {
        let refused = FanReader::join(&rig.path, name, NOW).map(drop).unwrap_err();
        assert!(matches!(refused, FanError::Name { .. }), "{refused}");
    }
    let long = rig.writer.send(&[0; 22], NOW).unwrap_err();
    assert!(matches!(long, FanError::TooLong { len: 22, limit: 21 }), "{long}");
    let absent = FanReader::join(&rig.path.with_extension("no"), "b", NOW).map(drop).unwrap_err();
    assert!(matches!(absent, FanError::NoWriter { .. }), "{absent}");
    for (slots, message_len) in [(0, 8), (SLOTS_MAX + 1, 8), (1, MESSAGE_LEN_MAX + 1)] {
        let plan = FanPlan { slots, message_len };
        let refused = FanWriter::bind(&rig.path.with_extension("no"), plan).map(drop).unwrap_err();
        assert!(matches!(refused, FanError::Plan { .. }), "{refused}");
    }
}

#[test]
fn callers_that_send_nonsense_are_no_readers_and_hold_up_no_message() {
    let mut rig = rig();
    let _mute = Socket::connect(&rig.path, SOON).unwrap();
    let senseless = Socket::connect(&rig.path, SOON).unwrap();
    senseless.send(&7, &[], SOON).unwrap();
    let bare = Socket::connect(&rig.path, SOON).unwrap();
    let asked = JoinRequest { version: VERSION, name: "bare".to_owned() };
    bare.send(&asked, &[], SOON).unwrap();
    let newer = Socket::connect(&rig.path, SOON).unwrap();
    newer.send(&JoinRequest { version: 2, name: "newer".to_owned() }, &[], SOON).unwrap();
    rig.writer.send(b"0", NOW).unwrap();
    rig.writer.send(b"1", NOW).unwrap();
    assert_eq!(rig.writer.readers().count(), 0);
    let (answer, _) = newer.recv::<JoinAnswer>(SOON).unwrap();
    assert!(matches!(answer, JoinAnswer::OtherVersion { version: VERSION }), "{answer:?}");
}
