//! The verbs that can fail, by name, and the error numbers they fail with.
//!
//! Control-path verbs only: posting and polling report by the port's own words.

use std::fmt;

/// An operating system's error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", std::io::Error::from_raw_os_error(self.0))]
pub struct Errno(pub i32);

impl Errno {
    /// Not permitted; also where nothing at all may be pinned.
    pub const PERM: Self = Self(1);
    /// Not enough memory, or more of it pinned than the limit allows.
    pub const NOMEM: Self = Self(12);
    /// Not allowed.
    pub const ACCES: Self = Self(13);
    /// Not an argument that is taken.
    pub const INVAL: Self = Self(22);

    /// Not within any time that makes sense.
    pub const TIMEDOUT: Self = Self(110);

    /// The error of the call that just failed.
    #[cfg(feature = "verbs")]
    pub(crate) fn last() -> Self {
        Self(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }

    /// The error of a verb that returns it, or returns -1 and leaves it behind.
    #[cfg(feature = "verbs")]
    pub(crate) fn check(returned: i32) -> Result<(), Self> {
        match returned {
            0 => Ok(()),
            1.. => Err(Self(returned)),
            ..0 => Err(Self::last()),
        }
    }
}

/// A call of the control path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Opening the device.
    OpenDevice,
    /// Asking for its limits.
    QueryDevice,
    /// Asking for the port's state.
    QueryPort,
    /// Asking for the port's addresses.
    QueryGids,
    /// Making the descriptor of asynchronous events non-blocking.
    WatchEvents,
    /// Drawing the initial packet number.
    DrawRandom,
    /// Allocating a protection domain.
    AllocDomain,
    /// Registering memory.
    RegisterMemory,
    /// Taking a registration back.
    DeregisterMemory,
    /// Creating a completion queue.
    CreateCompletionQueue,
    /// Creating a queue pair.
    CreateQueuePair,
    /// Moving a queue pair to init.
    ModifyToInit,
    /// Moving a queue pair to ready to receive.
    ModifyToReadyToReceive,
    /// Moving a queue pair to ready to send.
    ModifyToReadyToSend,
    /// Moving a queue pair to error.
    ModifyToError,
    /// Destroying a queue pair.
    DestroyQueuePair,
    /// Posting, and waiting for the end of what was posted.
    PostSend,
    /// Allocating a memory window.
    AllocWindow,
    /// Binding a memory window.
    BindWindow,
    /// Invalidating a memory window.
    InvalidateWindow,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenDevice => "ibv_open_device",
            Self::QueryDevice => "ibv_query_device",
            Self::QueryPort => "ibv_query_port",
            Self::QueryGids => "ibv_query_gid_table",
            Self::WatchEvents => "non-blocking mode of asynchronous events",
            Self::DrawRandom => "getrandom",
            Self::AllocDomain => "ibv_alloc_pd",
            Self::RegisterMemory => "ibv_reg_mr",
            Self::DeregisterMemory => "ibv_dereg_mr",
            Self::CreateCompletionQueue => "ibv_create_cq",
            Self::CreateQueuePair => "ibv_create_qp",
            Self::ModifyToInit => "ibv_modify_qp to init",
            Self::ModifyToReadyToReceive => "ibv_modify_qp to ready to receive",
            Self::ModifyToReadyToSend => "ibv_modify_qp to ready to send",
            Self::ModifyToError => "ibv_modify_qp to error",
            Self::DestroyQueuePair => "ibv_destroy_qp",
            Self::PostSend => "ibv_post_send",
            Self::AllocWindow => "ibv_alloc_mw",
            Self::BindWindow => "binding a memory window",
            Self::InvalidateWindow => "invalidating a memory window",
        })
    }
}
