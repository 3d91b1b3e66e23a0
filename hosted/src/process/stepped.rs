//! How many instructions a child executes between two marks: the kernel steps it.
//!
//! ```text
//!   parent   count_instructions ── continue ──▶ │ step, step, step … ▶ │ ── continue ──▶ its end
//!   child    begin_to_be_stepped                mark   what counts   mark
//! ```
//!
//! Marks alternate: the first of two begins what is counted, the second ends it. A count includes
//! the way out of the first mark and into the second; two marks with nothing between them measure
//! that. A step costs microseconds, and counts are the same on a busy host: no noise moves them.
//! Instructions of the kernel are not counted, nor are other threads of the child stepped.

use std::process::Child;
use std::ptr;

use rustix::io::Errno;

use super::ProcessError;

/// Between two marks no more is counted.
const INSTRUCTIONS_MAX: u64 = 100_000_000;

/// Lets the parent count; for a child that was started by the thread that counts. The kernel ends
/// this process after `seconds`, whatever it waits for.
///
/// # Errors
/// [`ProcessError::Os`] where the kernel, or a filter of system calls, forbids it.
pub fn begin_to_be_stepped(seconds: u32) -> Result<(), ProcessError> {
    let none = ptr::null_mut::<libc::c_void>();
    // SAFETY: the request takes neither address nor data.
    let status = unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, none, none) };
    checked("ptrace TRACEME", status)?;
    // SAFETY: the call takes a number alone.
    unsafe { libc::alarm(seconds) };
    Ok(())
}

/// Begins what is counted, or ends it: a process that is not stepped stops here.
pub fn mark() {
    // SAFETY: the call takes a number alone, and no handler can be set for this signal.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Steps `child`, which was started by this thread, and returns the counts between its marks, in
/// their order, once it has ended.
///
/// # Errors
/// [`ProcessError::Stepped`] when the child fails, ends between two marks, or executes too many
/// instructions there; [`ProcessError::Os`].
pub fn count_instructions(child: &mut Child) -> Result<Vec<u64>, ProcessError> {
    let counted = step(child);
    if counted.is_err() {
        // Neither reaping nor ending it can fail in a way that matters: its error is known.
        let _ = child.kill();
        let _ = child.wait();
    }
    counted
}

fn step(child: &Child) -> Result<Vec<u64>, ProcessError> {
    let pid = libc::pid_t::try_from(child.id()).map_err(|_| ProcessError::NotPidfd)?;
    let failed = |what: String| Err(ProcessError::Stepped { what });
    let (mut counts, mut counted, mut is_first) = (Vec::new(), None, true);
    loop {
        let status = wait(pid)?;
        if libc::WIFSIGNALED(status) {
            return failed(format!("was ended by signal {}", libc::WTERMSIG(status)));
        }
        if libc::WIFEXITED(status) {
            return match (libc::WEXITSTATUS(status), counted) {
                (0, None) => Ok(counts),
                (0, Some(_)) => failed("ended between two marks".to_owned()),
                (status, _) => failed(format!("ended with status {status}")),
            };
        }
        if std::mem::take(&mut is_first) {
            // It must not outlive its parent.
            request(libc::PTRACE_SETOPTIONS, pid, libc::PTRACE_O_EXITKILL)?;
        }
        let mut pass_on = 0;
        match libc::WSTOPSIG(status) {
            libc::SIGTRAP => counted = counted.map(|count: u64| count + 1),
            libc::SIGSTOP => match counted.take() {
                Some(count) => counts.push(count),
                None => counted = Some(0),
            },
            signal => pass_on = signal,
        }
        if counted.is_some_and(|count| count > INSTRUCTIONS_MAX) {
            return failed(format!("executes more than {INSTRUCTIONS_MAX} between two marks"));
        }
        let how = if counted.is_some() { libc::PTRACE_SINGLESTEP } else { libc::PTRACE_CONT };
        request(how, pid, pass_on)?;
    }
}

/// Waits for the next stop of the child, or its end: its alarm ends it.
fn wait(pid: libc::pid_t) -> Result<libc::c_int, ProcessError> {
    let mut status = 0;
    loop {
        // SAFETY: the child is this process' own, and the number lives on this stack.
        let reaped = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        match checked("waitpid", reaped.into()) {
            Err(ProcessError::Os { errno: Errno::INTR, .. }) => {}
            checked => return checked.map(|()| status),
        }
    }
}

fn request(what: libc::c_uint, pid: libc::pid_t, data: libc::c_int) -> Result<(), ProcessError> {
    let (none, data) = (ptr::null_mut::<libc::c_void>(), libc::c_long::from(data));
    // SAFETY: none of the requests of this file reads or writes at an address.
    let status = unsafe { libc::ptrace(what, pid, none, data) };
    checked("ptrace", status)
}

fn checked(call: &'static str, status: libc::c_long) -> Result<(), ProcessError> {
    if status >= 0 {
        return Ok(());
    }
    let errno = Errno::from_io_error(&std::io::Error::last_os_error());
    Err(ProcessError::Os { call, errno: errno.unwrap_or(Errno::IO) })
}
