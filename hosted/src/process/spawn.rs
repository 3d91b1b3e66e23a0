//! Starting a child, this same program or another, that cannot outlive its parent.
//!
//! ```text
//!   parent: move each given descriptor above all chosen numbers, occupy the numbers
//!   fork
//!   child:  parent-death signal, parent still there?, close-on-exec for all, dup2 to the numbers
//!   exec /proc/self/exe
//! ```
//!
//! The own program is started through /proc/self/exe, so that an upgrade of the file in between
//! does not mix two versions in one node.
//!
//! The parent-death signal is that of the *thread*: the kernel sends it when the thread that
//! called [`Spawn::start`] ends. Start children from a thread that lives as long as the process
//! means to. The kernel forgets the signal if the program is set-uid or carries capabilities.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process_group, set_parent_process_death_signal,
};

use super::{Liveness, Pidfd, ProcessError};

/// A child process to be.
#[derive(Debug)]
pub struct Spawn {
    command: Command,
    parent_death: Signal,
    inherited: Vec<Inherited>,
}

/// A child process, held both ways: reaped through `child`, watched and ended through `pidfd`.
#[derive(Debug)]
pub struct Spawned {
    /// For reaping, and for its standard streams.
    pub child: Child,
    /// For watching and signalling.
    pub pidfd: Pidfd,
}

impl Spawned {
    /// Signals the child and every descendant that has stayed in its process group. To be called
    /// before the child is reaped: until then the group's number is its own.
    ///
    /// # Errors
    /// [`ProcessError::Os`].
    pub fn signal_group(&self, signal: Signal) -> Result<(), ProcessError> {
        let group = Pid::from_child(&self.child);
        kill_process_group(group, signal).map_err(ProcessError::os("killpg"))
    }

    /// Gives the child `patience` to end by itself, kills it otherwise, and reaps it.
    pub fn end(&mut self, patience: Duration) {
        if !matches!(self.pidfd.wait_dead(patience), Ok(Liveness::Dead)) {
            // One that is dead by now takes no harm, one that cannot be killed is init's.
            let _ = self.pidfd.kill();
        }
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
struct Inherited {
    number: RawFd,
    fd: OwnedFd,
}

impl Spawn {
    /// A child that will be killed when its parent thread ends. It is in a process group of its
    /// own: Ctrl-C at the terminal is its parent's business, who ends it in order.
    #[must_use]
    pub fn own_program() -> Self {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("weft").process_group(0);
        Self { command, parent_death: Signal::KILL, inherited: Vec::new() }
    }

    /// A child that runs another program, a path or a name that is looked up in `PATH`; otherwise
    /// as [`Self::own_program`].
    #[must_use]
    pub fn program(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.process_group(0);
        Self { command, parent_death: Signal::KILL, inherited: Vec::new() }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(mut self, args: I) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable of the child's environment, which is otherwise the parent's.
    #[must_use]
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    /// Where standard input comes from.
    #[must_use]
    pub fn stdin(mut self, stdio: Stdio) -> Self {
        self.command.stdin(stdio);
        self
    }

    /// Where standard output goes.
    #[must_use]
    pub fn stdout(mut self, stdio: Stdio) -> Self {
        self.command.stdout(stdio);
        self
    }

    /// Where standard error goes.
    #[must_use]
    pub fn stderr(mut self, stdio: Stdio) -> Self {
        self.command.stderr(stdio);
        self
    }

    /// The signal the child gets when the parent thread ends, in place of SIGKILL.
    #[must_use]
    pub fn parent_death_signal(mut self, signal: Signal) -> Self {
        self.parent_death = signal;
        self
    }

    /// Hands `fd` down; the child finds it at `number`, with
    /// [`adopt_inherited`](super::adopt_inherited).
    #[must_use]
    pub fn inherit(mut self, number: RawFd, fd: OwnedFd) -> Self {
        self.inherited.push(Inherited { number, fd });
        self
    }

    /// Starts the child. The parent's copies of the inherited descriptors are closed.
    ///
    /// # Errors
    /// [`ProcessError::ReservedNumber`] and [`ProcessError::NumberTwice`] for the chosen
    /// numbers, [`ProcessError::Spawn`] and [`ProcessError::Os`] from the system. No child is
    /// left behind.
    pub fn start(mut self) -> Result<Spawned, ProcessError> {
        self.check_numbers()?;
        let sources = self.sources_above_numbers()?;
        let placeholders = self.occupy_numbers()?;
        let moves: Vec<(RawFd, RawFd)> = std::iter::zip(&sources, &self.inherited)
            .map(|(source, inherited)| (source.as_raw_fd(), inherited.number))
            .collect();
        let (parent, signal) = (getpid(), self.parent_death);
        // SAFETY: the closure runs in the forked child, where only async-signal-safe work is
        // allowed. It and `become_child` make plain system calls on captured numbers; they
        // neither allocate, lock nor panic: an error is built from an errno, without a box.
        unsafe {
            self.command.pre_exec(move || become_child(parent, signal, &moves));
        }
        let started = self.command.spawn().map_err(ProcessError::Spawn);
        drop((sources, placeholders));
        let mut child = started?;
        match Pidfd::from_child(&child) {
            Ok(pidfd) => Ok(Spawned { child, pidfd }),
            Err(error) => {
                // The one kill by number: the child is ours and unreaped, so the number is its.
                child.kill().map_err(ProcessError::Spawn)?;
                child.wait().map_err(ProcessError::Spawn)?;
                Err(error)
            }
        }
    }

    fn check_numbers(&self) -> Result<(), ProcessError> {
        for (index, Inherited { number, .. }) in self.inherited.iter().enumerate() {
            if *number <= libc::STDERR_FILENO {
                return Err(ProcessError::ReservedNumber { number: *number });
            }
            if self.inherited[..index].iter().any(|earlier| earlier.number == *number) {
                return Err(ProcessError::NumberTwice { number: *number });
            }
        }
        Ok(())
    }

    /// Duplicates above every chosen number, so that no dup2 in the child overwrites a
    /// descriptor that another one still needs, nor copies one onto itself.
    fn sources_above_numbers(&self) -> Result<Vec<OwnedFd>, ProcessError> {
        let highest = self.inherited.iter().map(|inherited| inherited.number).max();
        let floor = highest.unwrap_or(0).saturating_add(1);
        self.inherited
            .iter()
            .map(|inherited| rustix::io::fcntl_dupfd_cloexec(&inherited.fd, floor))
            .collect::<Result<_, _>>()
            .map_err(ProcessError::os("dup above the inherited numbers"))
    }

    /// Makes sure that the chosen numbers are in use while the child is started. `Command`
    /// opens a pipe, by which the child reports a failed exec; on a free chosen number, the
    /// child's dup2 would turn that report into bytes on an inherited descriptor.
    fn occupy_numbers(&self) -> Result<Vec<OwnedFd>, ProcessError> {
        self.inherited
            .iter()
            .map(|inherited| rustix::io::fcntl_dupfd_cloexec(&inherited.fd, inherited.number))
            .collect::<Result<_, _>>()
            .map_err(ProcessError::os("dup onto the inherited numbers"))
    }
}

/// The child's work between fork and exec. Async-signal-safe: system calls only.
fn become_child(parent: Pid, signal: Signal, moves: &[(RawFd, RawFd)]) -> io::Result<()> {
    set_parent_process_death_signal(Some(signal))?;
    // A parent that died before the line above sends no signal any more; its child has been
    // given another parent by then.
    if getppid() != Some(parent) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    // Descriptors that other code opened without close-on-exec end here as well.
    // SAFETY: close_range takes three numbers, and with this flag it closes nothing now.
    let marked = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            libc::STDERR_FILENO + 1,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if marked < 0 {
        return Err(io::Error::last_os_error());
    }
    for (source, number) in moves {
        // SAFETY: dup2 takes two numbers. What it closes at `number` belongs to the child's copy
        // of the table, of which nothing but the chosen descriptors survives exec.
        if unsafe { libc::dup2(*source, *number) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
