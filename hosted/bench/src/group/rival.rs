//! `MPI_Bcast`, where an MPI is installed: compiled once, run in every round.

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{GroupCell, messages, warm_up};
use crate::figure::Samples;
use weft::cluster::ClusterName;
use weft::process::{Liveness, ProcessError, Signal, Spawn, Spawned, start_thread};
use weft::runtime_dir::{ClaimedDir, RuntimeDir};

/// The rival's program.
const SOURCE: &str = include_str!("bcast.c");
/// What the directory of the program holds, besides what a cluster has.
pub const FILES: [&str; 2] = ["bcast", "bcast.c"];
/// How long the compiler, and one run, may take: far above any stall of a host.
const PATIENCE: Duration = Duration::from_secs(120);

/// The program, or why there is no figure.
pub(super) struct MpiRival(Result<MpiProgram, String>);

/// The compiled program, in the directory of a cluster that has no nodes.
struct MpiProgram {
    path: PathBuf,
    dir: Option<ClaimedDir>,
}

impl Drop for MpiProgram {
    fn drop(&mut self) {
        // What stays behind is in a directory of no cluster that runs.
        for file in FILES {
            let _ = fs::remove_file(self.path.with_file_name(file));
        }
        let _ = self.dir.take().map(ClaimedDir::remove);
    }
}

impl MpiRival {
    pub(super) fn compile() -> Self {
        Self(compile())
    }

    /// Measures all `cells` among `members` processes; after a failure no more.
    pub(super) fn turn(&mut self, members: u16, cells: &mut [GroupCell]) {
        let Ok(program) = &self.0 else { return };
        if let Err(cause) = program.turn(members, cells) {
            self.0 = Err(cause);
        }
    }

    /// Who the rival is, or why it has no figure and what to do.
    pub(super) fn standing(self) -> String {
        self.0.map_or_else(|cause| cause, |_| "MPI_Bcast, as compiled by mpicc -O2".to_owned())
    }
}

fn compile() -> Result<MpiProgram, String> {
    let cause = |error: &dyn std::fmt::Display| format!("no directory for the rival: {error}");
    let name = format!("bench-{}-mpi", std::process::id());
    let name: ClusterName = name.parse().map_err(|error| cause(&error))?;
    let dir = RuntimeDir::open().map_err(|error| cause(&error))?;
    let dir = dir.claim(&name).map_err(|error| cause(&error))?;
    let [path, source] = FILES.map(|file| dir.dir().path().join(file));
    let program = MpiProgram { path, dir: Some(dir) };
    fs::write(&source, SOURCE).map_err(|error| cause(&error))?;
    run(Spawn::program("mpicc").args(["-O2", "-o"]).arg(&program.path).arg(&source), "mpicc")?;
    Ok(program)
}

impl MpiProgram {
    fn turn(&self, members: u16, cells: &mut [GroupCell]) -> Result<(), String> {
        let each = cells.iter().flat_map(|cell| {
            [cell.bytes, messages(cell.bytes), warm_up(cell.bytes)].map(|word| word.to_string())
        });
        let mut spawn = Spawn::program("mpirun").args(["-n", &members.to_string()]).arg(&self.path);
        spawn = spawn.args(each);
        // Open MPI's own settings; others ignore them. Without them it takes
        // processors for its own; where they are shared it yields while it waits, as members do.
        let yields = u8::from(usize::from(members) > crate::host::processors()).to_string();
        for (key, value) in [
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
            ("OMPI_MCA_mpi_yield_when_idle", &yields),
        ] {
            spawn = spawn.env(key, value);
        }
        let words = run(spawn, "mpirun")?;
        for cell in cells {
            let mut samples = Samples::default();
            words.lines().filter_map(|line| read(line, cell.bytes)).for_each(|ns| {
                samples.push(ns, 1);
            });
            if samples.figure().is_none() {
                return Err(format!("mpirun printed no figure for {} bytes", cell.bytes));
            }
            cell.mpi.add(samples);
        }
        Ok(())
    }
}

/// The figure of a line, if it is one of messages of `bytes`.
fn read(line: &str, bytes: usize) -> Option<u64> {
    let (length, ns) = line.split_once(' ')?;
    (length.parse() == Ok(bytes)).then(|| ns.parse().ok())?
}

/// Runs to its end; what it has printed.
fn run(spawn: Spawn, tool: &str) -> Result<String, String> {
    let spawn = spawn.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut spawned = spawn.start().map_err(|error| match error {
        ProcessError::Spawn(error) if error.kind() == io::ErrorKind::NotFound => format!(
            "no {tool}, so nothing to compare with: install an MPI (`apt-get install openmpi-bin \
             libopenmpi-dev`)"
        ),
        error => format!("{tool} cannot be started: {error}"),
    })?;
    let (stdout, stderr) = (spawned.child.stdout.take(), spawned.child.stderr.take());
    let (printed, complained) = (collect(stdout), collect(stderr));
    let is_over = matches!(spawned.pidfd.wait_dead(PATIENCE), Ok(Liveness::Dead));
    let ended = end(&mut spawned);
    // They end with the processes that write.
    let [printed, complained] =
        [printed, complained].map(|words| words.and_then(|it| it.join().ok()).unwrap_or_default());
    match ended {
        Some(status) if is_over && status.success() => Ok(printed),
        Some(_) | None => {
            let last = complained.lines().rev().map(str::trim).find(|line| !line.is_empty());
            let last = last.unwrap_or("it said nothing");
            Err(format!("{tool} failed: {last}; run `{tool} --version` by hand to see why"))
        }
    }
}

/// Reads in a thread of its own: a process whose pipe is full does not end.
fn collect(stream: Option<impl Read + Send + 'static>) -> Option<JoinHandle<String>> {
    let mut stream = stream?;
    let read = start_thread("weft-bench-mpi", move || {
        let mut words = String::new();
        // Bytes that are no text are no figures either.
        let _ = stream.read_to_string(&mut words);
        words
    });
    read.ok()
}

/// Ends what is left of its processes, and reaps it.
fn end(spawned: &mut Spawned) -> Option<ExitStatus> {
    // A group whose processes have all ended takes no signal.
    let _ = spawned.signal_group(Signal::KILL);
    spawned.child.wait().ok()
}
