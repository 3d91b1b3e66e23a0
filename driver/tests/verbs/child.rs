//! An endpoint in a process of its own, to be killed.
//!
//! The test's own program is started again for one test, which is the child when a variable says
//! so. Ends of the pair travel in hexadecimal, a line each, over its standard input and output.

use std::io::{BufRead, BufReader, StdinLock, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use weft_core::fabric::Fabric;
use weft_core::fabric::conformance::layout;
use weft_core::ids::{Incarnation, Peer};
use weft_driver::{Config, RemoteEnd};

use crate::rig::{self, End, FIRST};

const CHILD_VARIABLE: &str = "WEFT_TEST_VERBS_CHILD";
/// Begins the lines that are meant for the parent: the harness prints others.
const MARK: &str = "end: ";
/// The child's own name.
pub(crate) const PEER: Peer = Peer(1);
/// The parent's.
pub(crate) const PARENT: Peer = Peer(0);

/// A living child that has let the parent in.
pub(crate) struct PeerProcess {
    child: Child,
    _input: ChildStdin,
    _output: BufReader<ChildStdout>,
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.trim().chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn read_marked(lines: &mut impl BufRead) -> Vec<u8> {
    loop {
        let mut line = String::new();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "the other side is gone");
        if let Some((_, marked)) = line.split_once(MARK) {
            return from_hex(marked);
        }
    }
}

impl PeerProcess {
    /// Starts a peer for `parent`, which is endpoint 0 over the suite's layout.
    pub(crate) fn start(parent: &mut End) -> Self {
        let mine = parent.prepare(PEER, FIRST.1).unwrap().to_bytes();
        let (process, theirs) = Self::spawn("child::serve", FIRST.1, &mine);
        parent.connect(PEER, theirs).unwrap();
        parent.admit(PEER, FIRST.1).unwrap();
        process
    }

    /// Starts this program again to run `test` as `incarnation` of the peer, which is given `mine`.
    pub(crate) fn spawn(test: &str, incarnation: Incarnation, mine: &[u8]) -> (Self, RemoteEnd) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", test, "--nocapture"])
            .env(CHILD_VARIABLE, incarnation.0.to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        writeln!(input, "{MARK}{}", to_hex(mine)).unwrap();
        let theirs = RemoteEnd::from_bytes(&read_marked(&mut output)).unwrap();
        (Self { child, _input: input, _output: output }, theirs)
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        // Dead already when the test came to its end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Which incarnation of the peer this program is; none when it is the parent.
pub(crate) fn incarnation() -> Option<Incarnation> {
    Some(Incarnation(std::env::var(CHILD_VARIABLE).ok()?.parse().unwrap()))
}

/// What the child has to say once it has let the parent in.
pub(crate) struct Answer {
    mine: Vec<u8>,
    /// What the parent sends, to its end.
    pub(crate) input: StdinLock<'static>,
}

/// The child's half of an introduction: connects `end` with the parent's.
pub(crate) fn introduce(end: &mut End) -> Answer {
    let mut input = std::io::stdin().lock();
    let mine = end.prepare(PARENT, FIRST.0).unwrap().to_bytes();
    let theirs = RemoteEnd::from_bytes(&read_marked(&mut input)).unwrap();
    end.connect(PARENT, theirs).unwrap();
    Answer { mine, input }
}

impl Answer {
    /// Reports to the parent, which posts at once: it must have been admitted.
    pub(crate) fn give(&self) {
        println!("{MARK}{}", to_hex(&self.mine));
    }
}

/// The child's half: lets the parent in and does nothing more, until its input ends.
#[test]
fn serve() {
    if incarnation().is_none() {
        return;
    }
    let mut end = rig::end(PEER, &layout(), Config::default()).expect("the parent has a device");
    let mut answer = introduce(&mut end);
    end.admit(PARENT, FIRST.0).unwrap();
    answer.give();
    let mut rest = String::new();
    let _ = answer.input.read_line(&mut rest);
}
