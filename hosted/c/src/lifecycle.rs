//! Joining, the loop, its thread, the end.

use std::ffi::{c_char, c_int, c_void};
use std::os::fd::{AsFd, AsRawFd};

use weft::Member;
use weft::member::{Incarnation, MemberEnded, Rank};

use crate::border::{Out, call, call_or, ok_or_none, timeout};
use crate::code::weft_code;
use crate::error::Refusal;
use crate::handle::{self, Form, with};

/// A member of a cluster: this process.
pub struct weft_member(());

/// What a member knows of itself and of its cluster from the start.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct weft_identity {
    /// The rank of this member.
    pub rank: u16,
    /// How many members the cluster has, running or not: ranks are 0 to size - 1.
    pub size: u16,
    /// One higher for each start of a process at this node.
    pub incarnation: u32,
    /// The longest message of the mailbox, in bytes.
    pub message_len: usize,
    /// The longest broadcast, in bytes.
    pub broadcast_len: usize,
    /// The name of the cluster.
    pub name: [c_char; 33],
}

const _: () = assert!(weft::cluster::ClusterName::LEN_MAX < 33);

/// The version of the library, as a text that stays valid.
#[unsafe(no_mangle)]
pub extern "C" fn weft_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Makes this process a member: takes over what the node that started it hands to it, and waits
/// until the cluster has admitted it. Join first, then prepare: the node kills a program that does
/// not join.
///
/// The member is polled, by this thread, and is this process's for all time: once joined, or
/// refused by anything but WEFT_NULL, a process does not join again.
///
/// Errors: WEFT_NOT_JOINED (this process was not started by a node, or has joined), WEFT_TIMED_OUT,
/// WEFT_STOPPING, WEFT_FAILED.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_join(member: *mut *mut weft_member, timeout_us: u64) -> weft_code {
    // SAFETY: the caller's promise.
    let member = unsafe { Out::new(member, "member") };
    call(|| {
        let member = member?;
        member.set(handle::admit(Member::join_within(timeout(timeout_us))?)?);
        Ok(weft_code::WEFT_OK)
    })
}

/// Gives the member a thread of its own that polls. The handle stays the same; from now on it is
/// for all threads.
///
/// Errors: WEFT_FORM (it is spawned already); WEFT_FAILED, and then the member is closed.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_spawn(member: *mut weft_member) -> weft_code {
    call(|| handle::spawn(member).map(|()| weft_code::WEFT_OK))
}

/// Closes the member. A polled one goes nowhere from here on, so its program should end. A spawned
/// one waits for 5 s at most until what was put has arrived, unless another thread is in a call;
/// its thread goes on until the process ends. A program may also end without it; see weft_flush.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_close(member: *mut weft_member) -> weft_code {
    call(|| handle::close(member).map(|()| weft_code::WEFT_OK))
}

/// Writes what the member knows of itself to `identity`.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_identify(
    member: *mut weft_member,
    identity: *mut weft_identity,
) -> weft_code {
    // SAFETY: the caller's promise.
    let identity = unsafe { Out::new(identity, "identity") };
    call(|| {
        let identity = identity?;
        identity.set(with(member, |form| Ok(identify(&form)))?);
        Ok(weft_code::WEFT_OK)
    })
}

fn identify(form: &Form<'_>) -> weft_identity {
    let (Rank(rank), size, Incarnation(incarnation), text) = match form {
        Form::Polled(it) => (it.rank(), it.size(), it.incarnation(), it.name()),
        Form::Spawned(it) => (it.rank(), it.size(), it.incarnation(), it.name()),
    };
    let (message_len, broadcast_len) = match form {
        Form::Polled(it) => (it.message_len(), it.broadcast_len()),
        Form::Spawned(it) => (it.message_len(), it.broadcast_len()),
    };
    let mut name = [0; 33];
    // One place stays 0, the end of the text.
    for (to, from) in name.iter_mut().take(32).zip(text.bytes()) {
        *to = from.cast_signed();
    }
    weft_identity { rank, size, incarnation, message_len, broadcast_len, name }
}

/// Moves everything on and never waits: messages, broadcasts, failure detection. Call it at least
/// every few milliseconds.
///
/// Returns WEFT_OK if something was done, WEFT_NONE if not, and WEFT_STOPPING once the program is
/// ordered to end: it goes on all the same, for 5 s, so that what was begun can be ended.
///
/// Errors: WEFT_NODE_ENDED, WEFT_FAILED: end the program. WEFT_FORM: a spawned member polls itself.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_poll(member: *mut weft_member) -> weft_code {
    call(|| polled(member, |it| Ok(it.poll()?)))
}

/// As weft_poll, and where there is nothing to do, waits until there is: until a poll has done
/// something, or there is an event, a message or a delivery; WEFT_NONE by the end of the timeout.
/// It spins, yields or sleeps as `wait` in the cluster file says.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_wait(member: *mut weft_member, timeout_us: u64) -> weft_code {
    call(|| polled(member, |it| Ok(it.wait(timeout(timeout_us))?)))
}

fn polled(
    member: *const weft_member,
    act: impl FnOnce(&mut Member) -> Result<bool, Refusal>,
) -> Result<weft_code, Refusal> {
    with(member, |form| {
        let Form::Polled(member) = form else {
            return Err(Refusal::Form("a spawned member polls itself", "leave this call out"));
        };
        let progress = act(member)?;
        if member.is_stopping() {
            return Err(MemberEnded::Stopping.into());
        }
        Ok(ok_or_none(progress))
    })
}

/// Writes a descriptor to `descriptor` that is readable while a spawned member has something to
/// drain, and after its end: for poll and epoll. Drain with timeouts of 0 until nothing is left; do
/// not read from it, and do not close it. It is valid until weft_close.
///
/// Errors: WEFT_FORM: a polled member has none.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_descriptor(
    member: *mut weft_member,
    descriptor: *mut c_int,
) -> weft_code {
    // SAFETY: the caller's promise.
    let descriptor = unsafe { Out::new(descriptor, "descriptor") };
    call(|| {
        let descriptor = descriptor?;
        with(member, |form| match form {
            Form::Polled(_) => Err(Refusal::Form(
                "a polled member has no descriptor",
                "call weft_spawn first, or weft_wait instead",
            )),
            Form::Spawned(handle) => Ok(handle.as_fd().as_raw_fd()),
        })
        .map(|fd| descriptor.set(fd))?;
        Ok(weft_code::WEFT_OK)
    })
}

/// A step of a program, with what weft_working was given for it.
pub type weft_step = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// Calls `step(context)`, which takes long and polls nothing, while a thread polls in place of the
/// program: up to the limit it does not count as hung, after that it does. What arrives meanwhile
/// waits. The step cannot use the member (WEFT_BUSY). A spawned member needs no such thread, and
/// the step is called as it is.
///
/// Errors: WEFT_TOO_LONG (the limit is above component.working_s), WEFT_FAILED; the step was not
/// called.
///
/// # Safety
/// POINTERS above; `context` is passed on as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_working(
    member: *mut weft_member,
    limit_us: u64,
    step: weft_step,
    context: *mut c_void,
) -> weft_code {
    call(|| {
        let step = step.ok_or(Refusal::Null("step"))?;
        // SAFETY: the caller's function, with what it wants; it returns, as HANDLES demands.
        let step = || unsafe { step(context) };
        with(member, |form| match form {
            Form::Polled(member) => Ok(member.working(timeout(limit_us), step)?),
            Form::Spawned(_) => {
                step();
                Ok(())
            }
        })?;
        Ok(weft_code::WEFT_OK)
    })
}

/// The name of a code as this header spells it, as a text that stays valid; "?" for none.
#[unsafe(no_mangle)]
pub extern "C" fn weft_code_name(code: c_int) -> *const c_char {
    call_or(c"?".as_ptr(), || crate::code::name(code).as_ptr())
}
