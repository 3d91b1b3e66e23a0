//! What to do about each refusal of a member's call, and under which code scripts know it.

use weft_core::group::UnknownReceipt as UnknownGroupReceipt;
use weft_core::mailbox::UnknownReceipt;
use weft_core::rendezvous::UnknownRequest;

use super::{
    BroadcastError, CallError, GroupError, PutError, SaveError, TensorError, WorkingError,
};
use crate::explain::{Code, Explain};

impl<E: Explain> Explain for CallError<E> {
    fn code(&self) -> Code {
        match self {
            Self::Ended(ended) => ended.code(),
            Self::Refused(refused) => refused.code(),
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Ended(ended) => ended.cure(),
            Self::Refused(refused) => refused.cure(),
        }
    }
}

impl Explain for PutError {
    fn code(&self) -> Code {
        match self {
            Self::Full { .. } => Code::MailboxFull,
            Self::TooLong { .. } => Code::MessageTooLong,
            Self::NotAMember => Code::ComponentLost,
            Self::Finished => Code::Abandoned,
            Self::NoSuchRank => Code::NodeOutOfRange,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Full { .. } => "poll, then try again",
            Self::TooLong { .. } => "split it, or raise mailbox.message_len",
            Self::NotAMember => "wait for its `Joined`, or choose another",
            Self::Finished => "put to a member that still runs, or end",
            Self::NoSuchRank => "name a rank below the size of the cluster",
        }
        .to_owned()
    }
}

impl Explain for BroadcastError {
    fn code(&self) -> Code {
        match self {
            Self::WindowFull => Code::WindowFull,
            Self::TooLong { .. } => Code::MessageTooLong,
            Self::Left => Code::Standing,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::WindowFull => "poll until every member has delivered, then try again",
            Self::TooLong { .. } => "split it, or raise neb.message_len",
            Self::Left => "restart the cluster, or set neb.membership to \"decided\"",
        }
        .to_owned()
    }
}

impl Explain for GroupError {
    fn code(&self) -> Code {
        match self {
            Self::UnknownGroup | Self::NotAMember => Code::ClusterFile,
            Self::Opening | Self::Gathering | Self::Unfinished => Code::Busy,
            Self::WindowFull { .. } => Code::WindowFull,
            Self::TooLong { .. } | Self::ValueTooLong { .. } => Code::MessageTooLong,
            Self::NotBegun => Code::Usage,
            Self::TimedOut => Code::Timeout,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::UnknownGroup => "set group.count to 1 for \"all\", or add it to [[groups]]",
            Self::NotAMember => "add its rank to `members` in the cluster file",
            Self::Opening => "poll, then try again",
            Self::WindowFull { .. } => "poll until every member has received, then try again",
            Self::TooLong { .. } => "begin it, then write it in parts",
            Self::Unfinished => "write the rest of it first",
            Self::NotBegun => "begin one first",
            Self::ValueTooLong { .. } => "broadcast it instead",
            Self::Gathering => "take its values first",
            Self::TimedOut => {
                "call again, and this member goes on where it is; receive what was sent before"
            }
        }
        .to_owned()
    }
}

impl Explain for TensorError {
    fn code(&self) -> Code {
        match self {
            Self::NoRendezvous => Code::ClusterFile,
            Self::NoSuchRank => Code::NodeOutOfRange,
            Self::BadName(_) => Code::Key,
            Self::Full { .. } => Code::Busy,
            Self::TooLong { .. } => Code::MessageTooLong,
            Self::NoSpace => Code::StoreFull,
            Self::PeerGone => Code::ComponentLost,
            Self::Finished => Code::Abandoned,
            Self::StepOver | Self::Aborted => Code::StepOver,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::NoRendezvous => "set rendezvous.pool_mib in the cluster file",
            Self::NoSuchRank => "name a rank below the size of the cluster",
            Self::BadName(_) => "name it with 1 to 480 bytes without `;`",
            Self::Full { .. } => "drain the events, and wait until one has ended",
            Self::TooLong { .. } => "send it with `send_sealed`, or raise rendezvous.pool_mib",
            Self::NoSpace => "wait until a tensor is consumed",
            Self::PeerGone => "receive them from another member",
            Self::Finished => "end, or exchange tensors with a member that still runs",
            Self::StepOver | Self::Aborted => "name a later step",
        }
        .to_owned()
    }
}

impl Explain for SaveError {
    fn code(&self) -> Code {
        match self {
            Self::NoState => Code::ClusterFile,
            Self::TooLong { .. } => Code::MessageTooLong,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::NoState => {
                "set component.state in the cluster file, or run it with `--state 1MiB`"
            }
            Self::TooLong { .. } => "raise component.state",
        }
        .to_owned()
    }
}

impl Explain for WorkingError {
    fn code(&self) -> Code {
        match self {
            Self::TooLong { .. } => Code::ClusterFile,
            Self::Thread(_) => Code::Limit,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::TooLong { .. } => {
                "announce parts of it, raise component.working_s, or spawn the member"
            }
            Self::Thread(_) => "raise the limit on processes",
        }
        .to_owned()
    }
}

/// A receipt or a request is used twice, or is another member's.
macro_rules! explain_as_usage {
    ($($error:ty: $cure:literal,)*) => {
        $(impl Explain for $error {
            fn code(&self) -> Code {
                Code::Usage
            }

            fn cure(&self) -> String {
                $cure.to_owned()
            }
        })*
    };
}

explain_as_usage! {
    UnknownReceipt: "release each message once, in the incarnation that has taken it",
    UnknownGroupReceipt: "release the parts of a root in order, each once",
    UnknownRequest: "cancel a receive that has not ended",
}
