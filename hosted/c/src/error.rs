//! Why a call was refused, and the last refusal of each thread.
//!
//! ```text
//!   refusal ─▶ code, returned
//!           └▶ kept as it is ── weft_last_error ─▶ cause, cure: put into words only then
//! ```
//!
//! A program that puts until there is no room is refused all the time, so a refusal that is no end
//! costs a copy and allocates nothing.

use std::cell::RefCell;
use std::ffi::c_char;
use std::fmt::{Arguments, Display, Write};

use weft::client::ClientError;
use weft::explain::{Explain, advice};
use weft::member::{
    BroadcastError, CallError, GroupError, JoinError, MemberEnded, MemberError, PutError,
    SaveError, TaskRefused, TensorError, UnknownReceipt, VoteDenied, WorkingError,
};

use crate::border::{Out, call_or};
use crate::code::weft_code;

/// The last error of a thread.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct weft_error {
    /// What the function returned.
    pub code: weft_code,
    /// What happened: UTF-8, lent.
    pub cause: *const c_char,
    /// What to do: UTF-8, lent.
    pub cure: *const c_char,
}

/// Why a call was refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The pointer of this name.
    Null(&'static str),
    /// The handle of this kind.
    Closed(&'static str),
    Thread(&'static str),
    Busy(&'static str),
    Forked,
    Buffer {
        needed: usize,
        capacity: usize,
    },
    Utf8(&'static str),
    /// Cause and cure.
    Argument(&'static str, &'static str),
    Form(&'static str, &'static str),
    Put(PutError),
    Broadcast(BroadcastError),
    Receipt,
    Request,
    Group(GroupError),
    Tensor(TensorError),
    Save(SaveError),
    Task(TaskRefused),
    /// What ends a member, or keeps it from its start.
    Over {
        code: weft_code,
        cause: String,
        cure: String,
    },
    Panicked,
}

thread_local! {
    static LAST: RefCell<Option<Refusal>> = const { RefCell::new(None) };
    /// Cause and cure as C reads them.
    static TEXTS: RefCell<[String; 2]> = const { RefCell::new([String::new(), String::new()]) };
}

/// Keeps a refusal for `weft_last_error`.
pub(crate) fn keep(refusal: Refusal) -> weft_code {
    let code = refusal.code();
    // A thread that ends has none to ask any more.
    let _ = LAST.try_with(|last| last.replace(Some(refusal)));
    code
}

/// Writes the last error of this thread to `error`. A call that succeeds leaves it as it is.
///
/// Returns WEFT_NONE if no call of this thread was refused.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_last_error(error: *mut weft_error) -> weft_code {
    // SAFETY: the caller's promise.
    let error = unsafe { Out::new(error, "error") };
    call_or(weft_code::WEFT_PANIC, || {
        let Ok(error) = error else { return weft_code::WEFT_NULL };
        let said = LAST.try_with(|last| Some(texts(last.borrow().as_ref()?)));
        let Some(said) = said.ok().flatten() else { return weft_code::WEFT_NONE };
        error.set(said);
        weft_code::WEFT_OK
    })
}

fn texts(refusal: &Refusal) -> weft_error {
    TEXTS.with_borrow_mut(|[cause, cure]| {
        cause.clear();
        cure.clear();
        refusal.say(cause, cure);
        for text in [&mut *cause, &mut *cure] {
            // The end of a text in C.
            text.retain(|letter| letter != '\0');
            text.push('\0');
        }
        let code = refusal.code();
        weft_error { code, cause: cause.as_ptr().cast(), cure: cure.as_ptr().cast() }
    })
}

impl Refusal {
    pub(crate) const fn code(&self) -> weft_code {
        match self {
            Self::Null(_) => weft_code::WEFT_NULL,
            Self::Closed(_) => weft_code::WEFT_CLOSED,
            Self::Thread(_) => weft_code::WEFT_THREAD,
            Self::Busy(_) => weft_code::WEFT_BUSY,
            Self::Forked => weft_code::WEFT_FORKED,
            Self::Buffer { .. } => weft_code::WEFT_BUFFER,
            Self::Utf8(_) => weft_code::WEFT_UTF8,
            Self::Argument(..) => weft_code::WEFT_ARGUMENT,
            Self::Form(..) => weft_code::WEFT_FORM,
            Self::Receipt | Self::Request => weft_code::WEFT_RECEIPT,
            Self::Put(error) => put_code(*error),
            Self::Broadcast(error) => broadcast_code(*error),
            Self::Group(error) => group_code(*error),
            Self::Tensor(error) => tensor_code(*error),
            Self::Save(SaveError::NoState) => weft_code::WEFT_NOT_CONFIGURED,
            Self::Save(SaveError::TooLong { .. }) => weft_code::WEFT_TOO_LONG,
            Self::Task(error) => task_code(error),
            Self::Over { code, .. } => *code,
            Self::Panicked => weft_code::WEFT_PANIC,
        }
    }

    /// Writes cause and cure behind what is there.
    fn say(&self, cause: &mut String, cure: &mut String) {
        let error: &dyn Explain = match self {
            Self::Put(error) => error,
            Self::Broadcast(error) => error,
            Self::Group(error) => error,
            Self::Tensor(error) => error,
            Self::Save(error) => error,
            Self::Task(error) => error,
            own => return own.say_own(cause, cure),
        };
        // Writing to a string does not fail.
        let _ = write!(cause, "{error}");
        cure.push_str(&error.cure());
    }

    fn say_own(&self, cause: &mut String, cure: &mut String) {
        let mut say = |what: Arguments<'_>, then: &str| {
            // Writing to a string does not fail.
            let _ = cause.write_fmt(what);
            cure.push_str(then);
        };
        match self {
            Self::Null(name) => {
                say(format_args!("`{name}` is null or not aligned"), "pass memory of its type");
            }
            Self::Closed(kind) => say(
                format_args!("this is no open {kind}"),
                "use what was returned when it was opened, until it is closed",
            ),
            Self::Thread(kind) => {
                let then = match *kind {
                    "member" => "use it in the thread that joined, or call weft_spawn there",
                    _ => "open one in each thread",
                };
                say(format_args!("this {kind} belongs to another thread"), then);
            }
            Self::Busy(kind) => say(
                format_args!("the {kind} is in use by a call of this thread"),
                "return from its callback first",
            ),
            Self::Forked => say(
                format_args!("this process was forked from a member"),
                "use the member in its parent, and call exec here",
            ),
            Self::Buffer { needed, capacity } => say(
                format_args!("the buffer has {capacity} bytes, and {needed} are needed"),
                "pass a longer one; nothing is lost",
            ),
            Self::Utf8(name) => say(
                format_args!("`{name}` is not UTF-8"),
                "pass a text in UTF-8 that ends with a 0 byte",
            ),
            Self::Argument(what, then) | Self::Form(what, then) => {
                say(format_args!("{what}"), then);
            }
            Self::Receipt => say(
                format_args!("the receipt names no message that was taken and not released"),
                "release each message once",
            ),
            Self::Request => say(
                format_args!("no tensor of this request is there"),
                "wait for its WEFT_EVENT_ENDED with WEFT_RECEIVED_VALUE, and take it once",
            ),
            Self::Over { cause: what, cure: then, .. } => say(format_args!("{what}"), then),
            _ => say(
                format_args!("a bug in Weft has ended a call"),
                "end the program, and report the panic that was printed",
            ),
        }
    }
}

const fn put_code(error: PutError) -> weft_code {
    match error {
        PutError::Full { .. } => weft_code::WEFT_FULL,
        PutError::TooLong { .. } => weft_code::WEFT_TOO_LONG,
        PutError::NotAMember => weft_code::WEFT_ABSENT,
        PutError::Finished => weft_code::WEFT_FINISHED,
        PutError::NoSuchRank => weft_code::WEFT_RANK,
    }
}

const fn broadcast_code(error: BroadcastError) -> weft_code {
    match error {
        BroadcastError::WindowFull => weft_code::WEFT_FULL,
        BroadcastError::TooLong { .. } => weft_code::WEFT_TOO_LONG,
        BroadcastError::Left => weft_code::WEFT_LEFT,
    }
}

const fn group_code(error: GroupError) -> weft_code {
    match error {
        GroupError::UnknownGroup | GroupError::NotAMember => weft_code::WEFT_UNKNOWN,
        GroupError::Opening => weft_code::WEFT_OPENING,
        GroupError::WindowFull { .. } => weft_code::WEFT_FULL,
        GroupError::TooLong { .. } | GroupError::ValueTooLong { .. } => weft_code::WEFT_TOO_LONG,
        GroupError::Unfinished | GroupError::NotBegun | GroupError::Gathering => {
            weft_code::WEFT_ORDER
        }
        GroupError::TimedOut => weft_code::WEFT_TIMED_OUT,
        _ => weft_code::WEFT_FAILED,
    }
}

const fn tensor_code(error: TensorError) -> weft_code {
    match error {
        TensorError::NoRendezvous => weft_code::WEFT_NOT_CONFIGURED,
        TensorError::NoSuchRank => weft_code::WEFT_RANK,
        TensorError::BadName(_) => weft_code::WEFT_ARGUMENT,
        TensorError::Full { .. } | TensorError::NoSpace => weft_code::WEFT_FULL,
        TensorError::TooLong { .. } => weft_code::WEFT_TOO_LONG,
        TensorError::PeerGone => weft_code::WEFT_PEER_GONE,
        TensorError::Finished => weft_code::WEFT_FINISHED,
        TensorError::StepOver => weft_code::WEFT_STEP_OVER,
        TensorError::Aborted => weft_code::WEFT_ABORTED,
        _ => weft_code::WEFT_FAILED,
    }
}

const fn task_code(error: &TaskRefused) -> weft_code {
    match error {
        TaskRefused::NoTask { .. } | TaskRefused::Vote(VoteDenied::NoVersion { .. }) => {
            weft_code::WEFT_UNKNOWN
        }
        TaskRefused::Vote(VoteDenied::NoScript) => weft_code::WEFT_NOT_CONFIGURED,
        TaskRefused::Vote(
            VoteDenied::VotedAlready | VoteDenied::RoundOver { .. } | VoteDenied::RoundOpen { .. },
        ) => weft_code::WEFT_ORDER,
        TaskRefused::Vote(VoteDenied::NumbersOnly | VoteDenied::RoundZero) => {
            weft_code::WEFT_ARGUMENT
        }
        TaskRefused::NoNode => weft_code::WEFT_NODE_ENDED,
        _ => weft_code::WEFT_FAILED,
    }
}

macro_rules! from {
    ($($error:ident => $variant:ident),* $(,)?) => {$(
        impl From<$error> for Refusal {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

from! {
    PutError => Put,
    BroadcastError => Broadcast,
    GroupError => Group,
    TensorError => Tensor,
    SaveError => Save,
    TaskRefused => Task,
}

impl From<UnknownReceipt> for Refusal {
    fn from(UnknownReceipt: UnknownReceipt) -> Self {
        Self::Receipt
    }
}

impl<E: Display> From<CallError<E>> for Refusal
where
    Self: From<E>,
{
    fn from(error: CallError<E>) -> Self {
        match error {
            CallError::Ended(ended) => ended.into(),
            CallError::Refused(refused) => refused.into(),
        }
    }
}

impl From<MemberError> for Refusal {
    fn from(error: MemberError) -> Self {
        MemberEnded::from(error).into()
    }
}

impl From<MemberEnded> for Refusal {
    fn from(ended: MemberEnded) -> Self {
        let code = match ended {
            MemberEnded::Stopping => weft_code::WEFT_STOPPING,
            MemberEnded::Excluded => weft_code::WEFT_EXCLUDED,
            MemberEnded::NodeEnded => weft_code::WEFT_NODE_ENDED,
            MemberEnded::Panicked => weft_code::WEFT_PANIC,
            _ => weft_code::WEFT_FAILED,
        };
        Self::over(code, &ended)
    }
}

impl From<JoinError> for Refusal {
    fn from(error: JoinError) -> Self {
        let code = match error {
            JoinError::TimedOut { .. } => weft_code::WEFT_TIMED_OUT,
            JoinError::Stopped => weft_code::WEFT_STOPPING,
            JoinError::Node(_) => weft_code::WEFT_FAILED,
            _ => weft_code::WEFT_NOT_JOINED,
        };
        Self::over(code, &error)
    }
}

impl From<ClientError> for Refusal {
    fn from(error: ClientError) -> Self {
        let code = match error {
            ClientError::OutOfRange { .. } => weft_code::WEFT_RANK,
            _ => weft_code::WEFT_CLUSTER,
        };
        Self::over(code, &error)
    }
}

impl From<WorkingError> for Refusal {
    fn from(error: WorkingError) -> Self {
        let code = match error {
            WorkingError::TooLong { .. } => weft_code::WEFT_TOO_LONG,
            _ => weft_code::WEFT_FAILED,
        };
        Self::over(code, &error)
    }
}

impl Refusal {
    fn over(code: weft_code, error: &(dyn Explain + 'static)) -> Self {
        Self::Over { code, cause: error.to_string(), cure: advice(error).1 }
    }
}

#[cfg(test)]
mod tests {
    use weft::member::{BadKey, Rank};

    use super::*;

    fn all() -> Vec<Refusal> {
        let limit = 4;
        let put = [
            PutError::Full { limit },
            PutError::TooLong { limit: 4 },
            PutError::NotAMember,
            PutError::Finished,
            PutError::NoSuchRank,
        ];
        let broadcast = [
            BroadcastError::WindowFull,
            BroadcastError::TooLong { limit: 4 },
            BroadcastError::Left,
        ];
        let group = [
            GroupError::UnknownGroup,
            GroupError::NotAMember,
            GroupError::Opening,
            GroupError::WindowFull { hindmost: Some(Rank(1)) },
            GroupError::TooLong { limit: 4 },
            GroupError::Unfinished,
            GroupError::NotBegun,
            GroupError::ValueTooLong { limit: 4 },
            GroupError::Gathering,
            GroupError::TimedOut,
        ];
        let tensor = [
            TensorError::NoRendezvous,
            TensorError::NoSuchRank,
            TensorError::BadName(BadKey::NoEdge),
            TensorError::Full { limit: 4 },
            TensorError::TooLong { limit: 4 },
            TensorError::NoSpace,
            TensorError::PeerGone,
            TensorError::Finished,
            TensorError::StepOver,
            TensorError::Aborted,
        ];
        let mut all = vec![
            Refusal::Null("error"),
            Refusal::Closed("mask"),
            Refusal::Thread("member"),
            Refusal::Thread("mask"),
            Refusal::Busy("member"),
            Refusal::Forked,
            Refusal::Buffer { needed: 5, capacity: 4 },
            Refusal::Utf8("group"),
            Refusal::Receipt,
            Refusal::Request,
            Refusal::Panicked,
            MemberEnded::Stopping.into(),
            MemberError::NodeEnded.into(),
            JoinError::Forked.into(),
            WorkingError::TooLong { bound: std::time::Duration::from_secs(60) }.into(),
            SaveError::NoState.into(),
            SaveError::TooLong { limit: 4 }.into(),
        ];
        all.extend(put.map(Refusal::from));
        all.extend(broadcast.map(Refusal::from));
        all.extend(group.map(Refusal::from));
        all.extend(tensor.map(Refusal::from));
        all
    }

    #[test]
    fn every_refusal_has_a_code_a_cause_and_a_cure() {
        for refusal in all() {
            let (mut cause, mut cure) = (String::new(), String::new());
            refusal.say(&mut cause, &mut cure);
            assert!(refusal.code() > weft_code::WEFT_NONE, "{refusal:?}");
            assert!(cause.len() > 10 && cure.len() > 5, "{refusal:?}: {cause:?}, {cure:?}");
        }
    }

    #[test]
    fn the_last_refusal_of_a_thread_is_kept_with_its_words() {
        assert_eq!(keep(PutError::NotAMember.into()), weft_code::WEFT_ABSENT);
        let mut error = weft_error {
            code: weft_code::WEFT_OK,
            cause: std::ptr::null(),
            cure: std::ptr::null(),
        };
        // SAFETY: it is memory for an error.
        assert_eq!(unsafe { weft_last_error(&raw mut error) }, weft_code::WEFT_OK);
        // SAFETY: lent until the next call of this thread.
        let cause = unsafe { std::ffi::CStr::from_ptr(error.cause) };
        assert_eq!(
            (error.code, cause),
            (weft_code::WEFT_ABSENT, c"no incarnation of that member is admitted now")
        );
        // SAFETY: null is refused.
        assert_eq!(unsafe { weft_last_error(std::ptr::null_mut()) }, weft_code::WEFT_NULL);
    }
}
