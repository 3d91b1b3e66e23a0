//! The form of every error in this crate: a cause, a cure and a code.
//!
//! A person reads the cause (the error's `Display`: one sentence in lower case that names the
//! values involved) and the cure (what to type or change next). A script reads the code: a
//! word for `--json` and a number for the exit status. Both are a promise: a code is never
//! renamed and a number is never given to another code.
//!
//! | exit | codes |
//! |---|---|
//! | 1 | `internal` |
//! | 2 | `usage`, the number that command lines everywhere reserve for it |
//! | 10–18 | the cluster: its file, its name, whether it runs, what it has |
//! | 20–29 | what was to be sent |
//! | 30–39 | what happened on the way |
//! | 40–45 | the machine |
//! | 50 | `verification`: the program ran and its own check failed |
//! | 130 | `interrupted`, as shells number an end by SIGINT |
//!
//! Non-goals: translation, and chains of causes; an error that wraps another names it in its
//! own sentence and keeps it as `source`.

use std::error::Error;
use std::{fmt, io};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use serde::{Serialize, Serializer};

/// The nodes of these ranks in a sentence: "node 3", "nodes 0, 1 and 3", "no node".
#[must_use]
pub fn nodes(ranks: &[u16]) -> String {
    let numbers = |ranks: &[u16]| ranks.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    match ranks {
        [] => "no node".to_owned(),
        [one] => format!("node {one}"),
        [first @ .., last] => format!("nodes {} and {last}", numbers(first)),
    }
}

/// So many of a thing in a sentence, whose plural ends in s: "1 order", "2 orders".
#[must_use]
pub fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// How often in a sentence: "once", "3 times".
#[must_use]
pub fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { format!("{number} times") }
}

/// Code and cure of `error`: those of the limit that was met underneath, where it was one, and its
/// own elsewhere. An error near the surface knows what was tried, and not why it failed.
#[must_use]
pub fn advice(error: &(dyn Explain + 'static)) -> (Code, String) {
    let mut limit = None;
    let mut below: Option<&(dyn Error + 'static)> = Some(error);
    while let (Some(error), None) = (below, limit) {
        limit = errno_of(error).and_then(cure_of_limit);
        below = error.source();
    }
    match limit {
        Some(cure) => (Code::Limit, cure.to_owned()),
        None => (error.code(), error.cure()),
    }
}

fn errno_of(error: &(dyn Error + 'static)) -> Option<Errno> {
    let io = || error.downcast_ref::<io::Error>().and_then(Errno::from_io_error);
    error.downcast_ref::<Errno>().copied().or_else(io)
}

/// How to raise the limit that `errno` says was met, where it says that.
fn cure_of_limit(errno: Errno) -> Option<&'static str> {
    match errno {
        Errno::MFILE => Some("raise the limit on open files of a process: `ulimit -n 1024`"),
        Errno::NFILE => Some("raise the limit on open files of the system: `sysctl fs.file-max`"),
        Errno::FBIG => Some("raise the limit on the size of files: `ulimit -f unlimited`"),
        Errno::NOMEM if getrlimit(Resource::As).current.is_some() => {
            Some("raise the limit on address space: `ulimit -v unlimited`")
        }
        _ => None,
    }
}

/// An error that says what to do next.
pub trait Explain: Error {
    /// The code that scripts rely on.
    fn code(&self) -> Code;

    /// What to type or change so that the same command works: one sentence, lower case.
    fn cure(&self) -> String;
}

/// The stable error codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Code {
    /// The command line makes no sense.
    Usage,
    /// A key, a value or the syntax of a cluster file.
    ClusterFile,
    /// Not a legal cluster name.
    ClusterName,
    /// A living cluster, or a task of a node, has this name.
    NameInUse,
    /// No cluster of this name.
    ClusterNotRunning,
    /// A cluster of this name left its sockets behind and no process answers them.
    ClusterDead,
    /// The cluster has no node of this rank.
    NodeOutOfRange,
    /// The node has no task of this name.
    TaskUnknown,
    /// The task has no process: it cannot be started, or does not run.
    TaskNotRunning,
    /// The order does not fit the node's state in the DIR net.
    Standing,
    /// The node is isolated until an operator releases it.
    Isolated,
    /// Another client holds an exclusive resource, or too many ask at once.
    Busy,
    /// The program of the node has what the client asks for.
    Owned,
    /// The message does not fit into a slot.
    MessageTooLong,
    /// The mailbox stayed full past the deadline.
    MailboxFull,
    /// The window of a broadcast stayed full past the deadline, or does for good.
    WindowFull,
    /// The name of a tensor can be no part of a key.
    Key,
    /// A node keeps as many bytes of tensors as it may, or has no room for one more.
    StoreFull,
    /// An input file does not exist.
    InputMissing,
    /// An input file is not text.
    InputBinary,
    /// An input file exists and cannot be read.
    InputUnreadable,
    /// The deadline passed.
    Timeout,
    /// The component process of a node ended and did not come back.
    ComponentLost,
    /// A node does not answer.
    NodeUnreachable,
    /// A peer speaks another version, or lays its memory out in another way.
    Protocol,
    /// Members show different messages for one slot of a broadcast: one of them is faulty.
    Conflict,
    /// A file that is received has no end: its origin began another.
    CutShort,
    /// The sender of a file that is received gave up before its end, or its node was removed.
    Abandoned,
    /// The step of a tensor was cleaned up or aborted.
    StepOver,
    /// The bytes of a tensor were damaged on the way.
    TensorCorrupt,
    /// The given data is not a valid proof of equivocation.
    ProofInvalid,
    /// The directory of control sockets cannot be used.
    RuntimeDir,
    /// Memory segments could not be made.
    Memory,
    /// The operating system denied this user permission.
    Permission,
    /// No RDMA device that could be used, or no driver in this build.
    Rdma,
    /// A result cannot be written to its destination.
    Output,
    /// A limit of this process or of the system is too low.
    Limit,
    /// A demo or a benchmark found its own result wrong.
    Verification,
    /// A recovery script has errors; its diagnostics were printed.
    Script,
    /// A file is no image of a recovery script, or the verifier refuses it.
    Image,
    /// A file holds no tensors, or tensors that are not supported, or cannot hold those.
    TensorFile,
    /// Ctrl-C or SIGTERM.
    Interrupted,
    /// A bug in Weft.
    Internal,
}

impl Code {
    /// Every code, in the order of declaration.
    pub const ALL: [Self; 43] = [
        Self::Usage,
        Self::ClusterFile,
        Self::ClusterName,
        Self::NameInUse,
        Self::ClusterNotRunning,
        Self::ClusterDead,
        Self::NodeOutOfRange,
        Self::TaskUnknown,
        Self::TaskNotRunning,
        Self::Standing,
        Self::Isolated,
        Self::Busy,
        Self::Owned,
        Self::MessageTooLong,
        Self::MailboxFull,
        Self::WindowFull,
        Self::Key,
        Self::StoreFull,
        Self::InputMissing,
        Self::InputBinary,
        Self::InputUnreadable,
        Self::Timeout,
        Self::ComponentLost,
        Self::NodeUnreachable,
        Self::Protocol,
        Self::Conflict,
        Self::CutShort,
        Self::Abandoned,
        Self::StepOver,
        Self::TensorCorrupt,
        Self::ProofInvalid,
        Self::RuntimeDir,
        Self::Memory,
        Self::Permission,
        Self::Rdma,
        Self::Output,
        Self::Limit,
        Self::Verification,
        Self::Script,
        Self::Image,
        Self::TensorFile,
        Self::Interrupted,
        Self::Internal,
    ];

    /// The word for scripts, in snake case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.entry().0
    }

    /// The exit status of a program that ends with this error; never 0.
    #[must_use]
    pub const fn exit_status(self) -> u8 {
        self.entry().1
    }

    const fn entry(self) -> (&'static str, u8) {
        match self {
            Self::Internal => ("internal", 1),
            Self::Usage => ("usage", 2),
            Self::ClusterFile => ("cluster_file", 10),
            Self::ClusterName => ("cluster_name", 11),
            Self::NameInUse => ("name_in_use", 12),
            Self::ClusterNotRunning => ("cluster_not_running", 13),
            Self::ClusterDead => ("cluster_dead", 14),
            Self::NodeOutOfRange => ("node_out_of_range", 15),
            Self::TaskUnknown => ("task_unknown", 16),
            Self::TaskNotRunning => ("task_not_running", 19),
            Self::Standing => ("standing", 17),
            Self::Isolated => ("isolated", 18),
            Self::Busy => ("busy", 26),
            Self::Owned => ("owned", 27),
            Self::MessageTooLong => ("message_too_long", 20),
            Self::MailboxFull => ("mailbox_full", 21),
            Self::WindowFull => ("window_full", 25),
            Self::InputMissing => ("input_missing", 22),
            Self::InputBinary => ("input_binary", 23),
            Self::InputUnreadable => ("input_unreadable", 24),
            Self::Key => ("key", 28),
            Self::StoreFull => ("store_full", 29),
            Self::Timeout => ("timeout", 30),
            Self::ComponentLost => ("component_lost", 31),
            Self::NodeUnreachable => ("node_unreachable", 32),
            Self::Protocol => ("protocol", 33),
            Self::Conflict => ("conflict", 34),
            Self::ProofInvalid => ("proof_invalid", 35),
            Self::CutShort => ("cut_short", 36),
            Self::Abandoned => ("abandoned", 37),
            Self::StepOver => ("step_over", 38),
            Self::TensorCorrupt => ("tensor_corrupt", 39),
            Self::RuntimeDir => ("runtime_dir", 40),
            Self::Memory => ("memory", 41),
            Self::Permission => ("permission", 42),
            Self::Rdma => ("rdma", 43),
            Self::Output => ("output", 44),
            Self::Limit => ("limit", 45),
            Self::Verification => ("verification", 50),
            Self::Script => ("script", 51),
            Self::Image => ("image", 52),
            Self::TensorFile => ("tensor_file", 53),
            Self::Interrupted => ("interrupted", 130),
        }
    }
}

// A code declared after `Internal` would be missing from `ALL`.
const _: () = assert!(Code::Internal as usize + 1 == Code::ALL.len());

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The codes that scripts rely on; lines are added, never changed.
    const PROMISED: &str = "\
1 internal
2 usage
10 cluster_file
11 cluster_name
12 name_in_use
13 cluster_not_running
14 cluster_dead
15 node_out_of_range
16 task_unknown
17 standing
18 isolated
19 task_not_running
20 message_too_long
21 mailbox_full
22 input_missing
23 input_binary
24 input_unreadable
25 window_full
26 busy
27 owned
28 key
29 store_full
30 timeout
31 component_lost
32 node_unreachable
33 protocol
34 conflict
35 proof_invalid
36 cut_short
37 abandoned
38 step_over
39 tensor_corrupt
40 runtime_dir
41 memory
42 permission
43 rdma
44 output
45 limit
50 verification
51 script
52 image
53 tensor_file
130 interrupted
";

    #[test]
    fn codes_are_the_promised_ones() {
        let mut codes = Code::ALL;
        codes.sort_by_key(|code| code.exit_status());
        let table: String =
            codes.iter().map(|code| format!("{} {code}\n", code.exit_status())).collect();
        assert_eq!(table, PROMISED);
    }

    #[test]
    fn words_and_numbers_are_unique() {
        let words: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        let numbers: BTreeSet<_> = Code::ALL.iter().map(|code| code.exit_status()).collect();
        assert_eq!(words.len(), Code::ALL.len());
        assert_eq!(numbers.len(), Code::ALL.len());
        assert!(!numbers.contains(&0));
    }

    #[test]
    fn json_carries_the_word() {
        let json = serde_json::to_string(&Code::MailboxFull).expect("a string serialises");
        assert_eq!(json, "\"mailbox_full\"");
    }

    #[test]
    fn nodes_and_numbers_are_named_as_a_sentence_names_them() {
        let named = [&[][..], &[3], &[0, 3], &[0, 1, 3]].map(nodes);
        assert_eq!(named, ["no node", "node 3", "nodes 0 and 3", "nodes 0, 1 and 3"]);
        assert_eq!([0, 1, 2].map(|it| count(it, "order")), ["0 orders", "1 order", "2 orders"]);
        assert_eq!([0, 1, 2].map(times), ["0 times", "once", "2 times"]);
    }
}
