//! A rival's program that runs as a pair: a server, and a client that ends with figures.

use std::fs;
use std::io::{self, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use weft::clock::Deadline;
use weft::process::{Liveness, ProcessError, Spawn, Spawned};

/// How long a server may take to listen, and a run to end: far above any stall of a host.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a server is looked at until it listens.
const LOOK: Duration = Duration::from_millis(2);

/// Why a pair has said nothing of use.
#[derive(Debug)]
pub(super) enum PairError {
    /// There is no such program.
    Missing,
    /// One of the two ended too early or not at all: the last line that it said.
    Failed(String),
    /// A process could not be started or watched.
    Process(ProcessError),
}

impl From<ProcessError> for PairError {
    fn from(error: ProcessError) -> Self {
        match error {
            ProcessError::Spawn(error) if error.kind() == io::ErrorKind::NotFound => Self::Missing,
            error => Self::Process(error),
        }
    }
}

/// Killed and reaped when dropped.
pub(super) struct ToolProcess(Spawned);

impl Drop for ToolProcess {
    fn drop(&mut self) {
        // One that is dead takes no harm.
        let _ = self.0.pidfd.kill();
        let _ = self.0.child.wait();
    }
}

impl ToolProcess {
    /// Starts the program of `spawn`, whose words are kept.
    pub(super) fn start(spawn: Spawn) -> Result<Self, PairError> {
        let spawn = spawn.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(Self(spawn.start()?))
    }

    /// Returns once it listens at `port`; the client is not started before, since it does not try
    /// twice.
    pub(super) fn await_listening(self, port: u16) -> Result<Self, PairError> {
        let deadline = Deadline::after(PATIENCE);
        while !is_listening(port) {
            if self.0.pidfd.wait_dead(LOOK)? == Liveness::Dead || deadline.has_passed() {
                return Err(PairError::Failed(last_line(&self.words())));
            }
        }
        Ok(self)
    }

    /// All that it has said once it has ended by itself.
    pub(super) fn finish(self) -> Result<String, PairError> {
        if self.0.pidfd.wait_dead(PATIENCE)? != Liveness::Dead {
            return Err(PairError::Failed("it does not end".to_owned()));
        }
        Ok(self.words())
    }

    /// All that it has said, once it has ended; its end is brought about if need be.
    fn words(mut self) -> String {
        // One that is dead takes no harm.
        let _ = self.0.pidfd.kill();
        let mut words = String::new();
        let child = &mut self.0.child;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        // Bytes that are no text are no figures either.
        let _ = stdout.map(|mut stream| stream.read_to_string(&mut words));
        let _ = stderr.map(|mut stream| stream.read_to_string(&mut words));
        words
    }
}

/// The last line of `words` that says anything.
pub(super) fn last_line(words: &str) -> String {
    let says = |line: &&str| line.contains(|symbol: char| symbol.is_alphanumeric());
    let last = words.lines().rev().map(str::trim).find(says);
    last.unwrap_or("it said nothing").to_owned()
}

/// A port of this host where no process listens.
pub(super) fn free_port() -> Result<u16, PairError> {
    let bound = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    bound.map(|address| address.port()).map_err(|error| PairError::Failed(error.to_string()))
}

/// Whether a process of this host listens at `port`.
fn is_listening(port: u16) -> bool {
    const LISTEN: &str = "0A";
    let wanted = format!(":{port:04X}");
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|table| {
        let text = fs::read_to_string(table).unwrap_or_default();
        text.lines().any(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (local, state) = (words.next(), words.nth(1));
            local.is_some_and(|local| local.ends_with(&wanted)) && state == Some(LISTEN)
        })
    })
}

/// Where a program called `name` is: in `folder`, in its `bin`, or in PATH.
pub(super) fn find(name: &str, folder: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [folder.to_owned(), folder.join("bin")].into_iter();
    let all = folders.chain(std::env::split_paths(&path));
    all.map(|folder| folder.join(name)).find(|program| program.is_file())
}
