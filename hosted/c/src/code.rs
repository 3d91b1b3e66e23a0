//! What a function returns. A number is never given to another code.

use std::ffi::{CStr, c_int};

/// The result of a function. Above WEFT_NONE each is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub enum weft_code {
    /// Done.
    WEFT_OK = 0,
    /// Nothing was there, or nothing came by the end of the timeout. No error.
    WEFT_NONE = 1,

    /// A pointer is null or not aligned.
    WEFT_NULL = 10,
    /// The handle is none that is open.
    WEFT_CLOSED = 11,
    /// The handle belongs to another thread.
    WEFT_THREAD = 12,
    /// The handle is in use by a call of this thread, whose callback this is.
    WEFT_BUSY = 13,
    /// This process was forked from the member.
    WEFT_FORKED = 14,
    /// The buffer is too small; the length says what is needed. Nothing is lost.
    WEFT_BUFFER = 15,
    /// A text is not UTF-8.
    WEFT_UTF8 = 16,
    /// An argument has no meaning.
    WEFT_ARGUMENT = 17,
    /// The receipt or the request is not open: released, taken or ended before, or never given out.
    WEFT_RECEIPT = 18,
    /// Only a polled member can do this, or only a spawned one.
    WEFT_FORM = 19,

    /// There is no room now.
    WEFT_FULL = 30,
    /// No incarnation of that member is admitted now.
    WEFT_ABSENT = 31,
    /// Not all members have joined the group yet.
    WEFT_OPENING = 32,
    /// The others did not come in time.
    WEFT_TIMED_OUT = 33,

    /// It is longer than the cluster file allows.
    WEFT_TOO_LONG = 40,
    /// There is no such rank.
    WEFT_RANK = 41,
    /// The program of that member has finished.
    WEFT_FINISHED = 42,
    /// There is no group or task of that name, or this member is not in it.
    WEFT_UNKNOWN = 43,
    /// The cluster file does not provide it.
    WEFT_NOT_CONFIGURED = 44,
    /// This node was removed or restarted, and takes no part in broadcasts: only where
    /// neb.membership is "fixed".
    WEFT_LEFT = 45,
    /// Another call has to come first.
    WEFT_ORDER = 46,
    /// That member was removed.
    WEFT_PEER_GONE = 47,
    /// The step was cleaned up.
    WEFT_STEP_OVER = 48,
    /// The step was aborted.
    WEFT_ABORTED = 49,

    /// This process is no member, and cannot become one.
    WEFT_NOT_JOINED = 60,
    /// The program is ordered to end.
    WEFT_STOPPING = 61,
    /// This member was removed from its cluster.
    WEFT_EXCLUDED = 62,
    /// The node of this member has ended.
    WEFT_NODE_ENDED = 63,
    /// The fabric, the memory or the system failed.
    WEFT_FAILED = 64,
    /// The cluster is not found, or does not answer.
    WEFT_CLUSTER = 65,
    /// A bug of Weft.
    WEFT_PANIC = 70,
}

/// A timeout that does not pass.
pub const WEFT_FOREVER: u64 = u64::MAX;

/// Each code with its name.
const NAMES: &[(weft_code, &CStr)] = &[
    (weft_code::WEFT_OK, c"WEFT_OK"),
    (weft_code::WEFT_NONE, c"WEFT_NONE"),
    (weft_code::WEFT_NULL, c"WEFT_NULL"),
    (weft_code::WEFT_CLOSED, c"WEFT_CLOSED"),
    (weft_code::WEFT_THREAD, c"WEFT_THREAD"),
    (weft_code::WEFT_BUSY, c"WEFT_BUSY"),
    (weft_code::WEFT_FORKED, c"WEFT_FORKED"),
    (weft_code::WEFT_BUFFER, c"WEFT_BUFFER"),
    (weft_code::WEFT_UTF8, c"WEFT_UTF8"),
    (weft_code::WEFT_ARGUMENT, c"WEFT_ARGUMENT"),
    (weft_code::WEFT_RECEIPT, c"WEFT_RECEIPT"),
    (weft_code::WEFT_FORM, c"WEFT_FORM"),
    (weft_code::WEFT_FULL, c"WEFT_FULL"),
    (weft_code::WEFT_ABSENT, c"WEFT_ABSENT"),
    (weft_code::WEFT_OPENING, c"WEFT_OPENING"),
    (weft_code::WEFT_TIMED_OUT, c"WEFT_TIMED_OUT"),
    (weft_code::WEFT_TOO_LONG, c"WEFT_TOO_LONG"),
    (weft_code::WEFT_RANK, c"WEFT_RANK"),
    (weft_code::WEFT_FINISHED, c"WEFT_FINISHED"),
    (weft_code::WEFT_UNKNOWN, c"WEFT_UNKNOWN"),
    (weft_code::WEFT_NOT_CONFIGURED, c"WEFT_NOT_CONFIGURED"),
    (weft_code::WEFT_LEFT, c"WEFT_LEFT"),
    (weft_code::WEFT_ORDER, c"WEFT_ORDER"),
    (weft_code::WEFT_PEER_GONE, c"WEFT_PEER_GONE"),
    (weft_code::WEFT_STEP_OVER, c"WEFT_STEP_OVER"),
    (weft_code::WEFT_ABORTED, c"WEFT_ABORTED"),
    (weft_code::WEFT_NOT_JOINED, c"WEFT_NOT_JOINED"),
    (weft_code::WEFT_STOPPING, c"WEFT_STOPPING"),
    (weft_code::WEFT_EXCLUDED, c"WEFT_EXCLUDED"),
    (weft_code::WEFT_NODE_ENDED, c"WEFT_NODE_ENDED"),
    (weft_code::WEFT_FAILED, c"WEFT_FAILED"),
    (weft_code::WEFT_CLUSTER, c"WEFT_CLUSTER"),
    (weft_code::WEFT_PANIC, c"WEFT_PANIC"),
];

/// The name of a code.
pub(crate) fn name(code: c_int) -> &'static CStr {
    let found = NAMES.iter().find(|(it, _)| *it as c_int == code);
    found.map_or(c"?", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_the_name_that_it_has_here() {
        for (code, word) in NAMES {
            assert_eq!(format!("{code:?}").as_bytes(), word.to_bytes());
            assert_eq!(name(*code as c_int), *word);
        }
        assert_eq!(name(2), c"?");
    }
}
