//! One test's own place: a runtime directory, and every process that was started in it.
//!
//! Processes are known by the runtime directory in their environment, which they hand down, so
//! a node whose parent was killed is found as well. When the test ends, however it ends, all of
//! them are killed and the place is removed.

use std::cell::Cell;
use std::env;
use std::fs::{self, DirBuilder, File, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use weft::client::{self, Client};
use weft::clock::Deadline;
use weft::cluster::Cluster;
use weft::node::control::OriginStatus;
use weft::process::{Liveness, Pid, Pidfd, Signal};
use weft::runtime_dir::{ClusterDir, Environment, RuntimeDir, choose};

use crate::PATIENCE;
use crate::said::Said;

/// The longest path of a place that leaves room for the sockets in it.
const PATH_LEN_MAX: usize = 70;

/// What a cluster file ends with where no slow node must be suspected.
pub(crate) const CALM: &str = "[dirnet.timing]\nreceive_us = 60_000_000\n\
                               window_us = 60_000_000\nalarm_us = 30_000_000\n";

/// A runtime directory and what was started in it.
pub(crate) struct Place {
    path: PathBuf,
    commands: Cell<u32>,
}

/// A process of a place.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pidfd: Pidfd,
    /// The subcommand: `up`, `node`, `component`.
    pub(crate) role: String,
}

/// A command under way.
pub(crate) struct Running {
    child: Child,
    pidfd: Pidfd,
    log: PathBuf,
}

/// A cluster that runs in a place.
#[derive(Clone)]
pub(crate) struct Nodes {
    pub(crate) dir: ClusterDir,
    pub(crate) cluster: Cluster,
}

impl Place {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = base().join(format!("t{}-{count}", std::process::id()));
        for part in ["r", "f"] {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(path.join(part));
            made.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        Self { path, commands: Cell::new(0) }
    }

    pub(crate) fn runtime_dir(&self) -> PathBuf {
        self.path.join("r")
    }

    /// Where a file of this name would be, outside the runtime directory.
    pub(crate) fn path_of(&self, name: &str) -> String {
        let path = self.path.join("f").join(name);
        path.into_os_string().into_string().expect("the path is UTF-8")
    }

    /// Writes a file, outside the runtime directory.
    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path_of(name);
        fs::write(&path, text).expect("a file can be written");
        path
    }

    /// Writes a file that may be executed.
    pub(crate) fn program(&self, text: &str) -> String {
        let path = self.file("program", text);
        fs::set_permissions(&path, Permissions::from_mode(0o700)).expect("ours");
        path
    }

    /// Overwrites a file of the runtime directory with what makes no sense.
    pub(crate) fn damage(&self, name: &str) {
        fs::write(self.runtime_dir().join(name), [0xA5; 300]).expect("a file can be written");
    }

    /// The files outside the runtime directory whose names contain `part`.
    pub(crate) fn files(&self, part: &str) -> Vec<String> {
        let mut files = names(&self.path.join("f"));
        files.retain(|name| name.contains(part));
        files
    }

    /// Starts `weft` with these arguments, words between spaces, and this standard input.
    pub(crate) fn start(&self, arguments: &str, input: &str) -> Running {
        self.start_changed(arguments, input, |command| command)
    }

    /// Starts `weft` as [`Self::start`] does, but for what is changed about it.
    pub(crate) fn start_changed(
        &self,
        arguments: &str,
        input: &str,
        change: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.args(arguments.split_whitespace());
        self.launch(command, input, change)
    }

    /// Runs a script of the shell to its end, where README.md would have it run: `weft` is found,
    /// and so are the files of the source tree. What it writes stays in this place.
    pub(crate) fn shell(&self, script: &str) -> Said {
        let program = Path::new(env!("CARGO_BIN_EXE_weft"));
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        for name in ["README.md", "hosted"] {
            let _ = symlink(root.join(name), self.path_of(name));
        }
        let paths = env::var_os("PATH").unwrap_or_default();
        let own = [program.parent().expect("a folder").to_owned()];
        let paths = env::join_paths(own.into_iter().chain(env::split_paths(&paths)));
        let mut command = Command::new("bash");
        command.args(["-ec", script]).current_dir(self.path.join("f"));
        let paths = paths.expect("no colon");
        self.launch(command, "", |command| command.env("PATH", paths)).wait()
    }

    fn launch(
        &self,
        mut command: Command,
        input: &str,
        change: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Running {
        let number = self.commands.replace(self.commands.get() + 1);
        let log = self.path.join("f").join(number.to_string());
        let stream = |end| File::create(log.with_extension(end)).expect("a file can be made");
        let input = self.file(&format!("{number}.in"), input);
        command
            .env("WEFT_RUNTIME_DIR", self.runtime_dir())
            .stdin(File::open(input).expect("it was just written"))
            .stdout(Stdio::from(stream("out")))
            .stderr(Stdio::from(stream("err")));
        let child = change(&mut command).spawn().expect("the program can be started");
        let pidfd = Pidfd::from_child(&child).expect("a child has a pidfd");
        Running { child, pidfd, log }
    }

    /// Runs `weft` to its end.
    pub(crate) fn weft(&self, arguments: &str) -> Said {
        self.start(arguments, "").wait()
    }

    /// Runs `weft` to its end, with this standard input.
    pub(crate) fn weft_with(&self, arguments: &str, input: &str) -> Said {
        self.start(arguments, input).wait()
    }

    /// Starts `weft up` and waits until it says that the nodes of cluster `t` run.
    pub(crate) fn up(&self, arguments: &str) -> (Running, Nodes) {
        let up = self.start(&format!("up --name t {arguments}"), "");
        let nodes = self.find();
        up.await_said("nodes run");
        (up, nodes)
    }

    /// As [`Self::up`], a cluster in which no slow node is suspected.
    pub(crate) fn up_calm(&self, nodes: u16) -> (Running, Nodes) {
        self.up(&self.file("calm.toml", format!("name = \"t\"\nnodes = {nodes}\n{CALM}")))
    }

    /// The running cluster `t`.
    pub(crate) fn find(&self) -> Nodes {
        let dir = RuntimeDir::at(self.runtime_dir()).expect("it is private");
        let name = "t".parse().expect("a legal name");
        let found = client::find_in(&dir, &name, PATIENCE);
        let (dir, cluster) = found.unwrap_or_else(|error| panic!("{error}\n{}", self.logs()));
        Nodes { dir, cluster }
    }

    /// Every living process that was started here, directly or not.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let entries = fs::read_dir("/proc").expect("/proc can be listed");
        let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let mark = format!("WEFT_RUNTIME_DIR={}", self.runtime_dir().display());
        numbers.filter_map(|number| Process::marked(number, &mark)).collect()
    }

    /// Kills every process of these roles at once and waits for their end.
    pub(crate) fn kill(&self, roles: &[&str]) {
        let processes = self.processes();
        let named = processes.iter().filter(|process| roles.contains(&process.role.as_str()));
        let named: Vec<&Process> = named.collect();
        assert!(!named.is_empty(), "no process is one of {roles:?}: {processes:?}");
        for process in &named {
            process.pidfd.kill().expect("a process of this user");
        }
        for process in &named {
            assert_eq!(process.pidfd.wait_dead(PATIENCE).expect("a pidfd"), Liveness::Dead);
        }
    }

    /// Waits until every process has ended by itself.
    pub(crate) fn await_no_process(&self) {
        loop {
            let processes = self.processes();
            if processes.is_empty() {
                return;
            }
            for process in &processes {
                let liveness = process.pidfd.wait_dead(PATIENCE).expect("a pidfd");
                assert_eq!(liveness, Liveness::Dead, "{process:?} is alive\n{}", self.logs());
            }
        }
    }

    /// Asserts that the processes have ended and that no file is left, here or in /dev/shm.
    pub(crate) fn assert_nothing_left(&self) {
        let processes = self.processes();
        assert!(processes.is_empty(), "{processes:?}\n{}", self.logs());
        assert_eq!(names(&self.runtime_dir()), [""; 0]);
        let shared = names(Path::new("/dev/shm"));
        assert!(!shared.iter().any(|name| name.contains("weft")), "{shared:?}");
    }

    /// What the commands said so far.
    pub(crate) fn logs(&self) -> String {
        let folder = self.path.join("f");
        let logs = names(&folder).into_iter().filter(|name| name.ends_with(".err"));
        logs.map(|name| fs::read_to_string(folder.join(name)).unwrap_or_default()).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        loop {
            let processes = self.processes();
            let killed = processes.iter().all(|process| process.pidfd.kill().is_ok());
            let dead = |process: &Process| process.pidfd.wait_dead(PATIENCE);
            let ended = processes.iter().all(|process| matches!(dead(process), Ok(Liveness::Dead)));
            if processes.is_empty() || !killed || !ended {
                break;
            }
        }
        // A test that fails to clean up has already said more important things.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Process {
    /// The process with this number, if it carries the mark in its environment.
    fn marked(number: i32, mark: &str) -> Option<Self> {
        let pidfd = Pidfd::open(Pid::from_raw(number)?).ok()?;
        // Read after the pidfd was opened: one that ended and left its number has none.
        let environment = fs::read(format!("/proc/{number}/environ")).ok()?;
        let marked = environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes());
        let command = fs::read(format!("/proc/{number}/cmdline")).ok()?;
        let role = command.split(|byte| *byte == 0).nth(1)?;
        let role = String::from_utf8_lossy(role).into_owned();
        (marked && matches!(pidfd.is_dead(), Ok(false))).then_some(Self { pidfd, role })
    }
}

impl Running {
    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Said {
        let liveness = self.pidfd.wait_dead(PATIENCE).expect("a pidfd");
        let (out, err) = (self.said("out"), self.said("err"));
        assert_eq!(liveness, Liveness::Dead, "it hangs\n{out}{err}");
        let status = self.child.wait().expect("it has ended").code();
        Said { status, out, err }
    }

    /// What it has written so far to `out` or `err`.
    pub(crate) fn said(&self, end: &str) -> String {
        fs::read_to_string(self.log.with_extension(end)).expect("it was made")
    }

    /// Asserts that it has not ended. `/proc` would not do: a program just started has no command
    /// line there until its exec is done, which `spawn` does not wait for.
    #[track_caller]
    pub(crate) fn assert_goes_on(&self) {
        let has_ended = self.pidfd.is_dead().expect("a pidfd");
        assert!(!has_ended, "it has ended\n{}{}", self.said("out"), self.said("err"));
    }

    /// Waits until it has written `text`; fails at once when it ends without.
    #[track_caller]
    pub(crate) fn await_said(&self, text: &str) {
        eventually(text, || {
            let has_ended = self.pidfd.is_dead().expect("a pidfd");
            let (out, err) = (self.said("out"), self.said("err"));
            let is_said = out.contains(text) || err.contains(text);
            assert!(is_said || !has_ended, "it ended without {text:?}\n{out}{err}");
            is_said
        });
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process number")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.pidfd.signal(signal).expect("a process of this user");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has been waited for takes no signal any more.
        let _ = self.pidfd.kill();
        let _ = self.child.wait();
    }
}

impl Nodes {
    pub(crate) fn ranks(&self) -> impl Iterator<Item = u16> + use<> {
        0..u16::try_from(self.cluster.nodes).expect("at most 32")
    }

    pub(crate) fn client(&self, rank: u16) -> Client {
        Client::connect(&self.dir, &self.cluster, rank, PATIENCE)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Waits until every node exchanges messages with every other.
    pub(crate) fn await_joined(&self) {
        for rank in self.ranks() {
            let joined = self.client(rank).await_joined(0, self.cluster.nodes - 1, PATIENCE);
            joined.unwrap_or_else(|error| panic!("{error}\n{}", self.state()));
        }
    }

    /// What the component of `rank` knows of what `origin` broadcasts, once one answers.
    pub(crate) fn origin(&self, rank: u16, origin: u16) -> OriginStatus {
        let mut known = None;
        eventually("a component answers", || {
            let status = self.client(rank).status().expect("a status");
            known = status.broadcasts.into_iter().nth(usize::from(origin));
            known.is_some()
        });
        known.expect("it was found")
    }

    /// Waits until some node holds a proof that `origin` sent different nodes different messages.
    pub(crate) fn await_proof(&self, origin: u16) -> u16 {
        let mut holder = None;
        eventually("a node holds a proof", || {
            holder = self.ranks().filter(|rank| *rank != origin).find(|rank| {
                let status = self.client(*rank).status().expect("a status");
                status.proofs.iter().any(|proof| proof.origin == origin)
            });
            holder.is_some()
        });
        holder.expect("it was found")
    }

    /// Kills the supervisor of one node and waits for its end.
    pub(crate) fn kill(&self, rank: u16) {
        let status = self.client(rank).status().expect("a status");
        let supervisor = Pid::from_raw(status.supervisor_pid).expect("a number");
        let supervisor = Pidfd::open(supervisor).expect("it was just alive");
        supervisor.kill().expect("a process of this user");
        assert_eq!(supervisor.wait_dead(PATIENCE).expect("a pidfd"), Liveness::Dead);
    }

    /// Asserts that every node exchanges messages with every other, and that no component has
    /// ended since it was first started. Of a cluster that is not calm that says less: there a busy
    /// machine may end one.
    #[track_caller]
    pub(crate) fn assert_unharmed(&self) {
        self.await_joined();
        for rank in self.ranks() {
            let status = self.client(rank).status().expect("a status");
            assert_eq!(status.restarts, 0, "{}", self.state());
        }
    }

    /// Every node as it sees itself, for the message of a test that fails.
    pub(crate) fn state(&self) -> String {
        let look = |rank| {
            let client = Client::connect(&self.dir, &self.cluster, rank, Duration::ZERO);
            let status = client.and_then(|mut client| client.status());
            format!("{rank}: {status:?}\n")
        };
        self.ranks().map(look).collect::<String>() + &self.timeline()
    }

    /// What all nodes have noted lately, in the order of time.
    fn timeline(&self) -> String {
        const SHOWN: usize = 150;
        let noted = |rank| {
            let client = Client::connect(&self.dir, &self.cluster, rank, Duration::ZERO);
            client.and_then(|mut client| client.whole_chronicle(None, 0)).unwrap_or_default()
        };
        let mut entries: Vec<_> = self.ranks().flat_map(noted).collect();
        entries.sort_by_key(|entry| entry.at_ns);
        let first = entries.len().saturating_sub(SHOWN);
        let line = |entry: &weft::node::chronicle::Entry| {
            let ms = entry.at_ns / 1_000_000;
            format!("{ms} {} of {}: {}\n", entry.observer, entry.node, entry.what)
        };
        entries[first..].iter().map(line).collect()
    }
}

/// A test that fails says what its nodes were doing.
impl Drop for Nodes {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.state());
        }
    }
}

/// Waits for a state that no event reports.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Deadline::after(PATIENCE);
    while !holds() {
        assert!(!deadline.has_passed(), "not in time: {what}");
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// Where places are: below the build directory, or where the program itself would go when the
/// path of that is too long for sockets or open to other users.
fn base() -> PathBuf {
    let build = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let environment = Environment { weft_runtime_dir: Some(build.clone()), ..Environment::read() };
    if choose(&environment).is_ok() && build.as_os_str().len() <= PATH_LEN_MAX {
        return build;
    }
    let own = Environment { weft_runtime_dir: None, ..environment };
    choose(&own).expect("this user has a directory for sockets")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a directory that can be listed");
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| name(entry.expect("an entry"))).collect()
}
