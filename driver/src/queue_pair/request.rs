//! One request to the device: what to do there, with which bytes here.
//!
//! Plain data until the moment of posting; then a work request of verbs is built on the stack,
//! posted and forgotten. Keys and addresses are checked by the device, not here.

use std::ptr::null_mut;

use crate::ffi::{
    self, Zeroed, ibv_send_flags as flags, ibv_send_wr_atomic, ibv_send_wr_rdma,
    ibv_send_wr_target, ibv_wr_opcode as opcode,
};
use crate::send_queue::{Fetch, Place, Signal};

/// What is done to the peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Write,
    Read,
    FetchAdd { add: u64 },
    CompareSwap { expected: u64, new: u64 },
}

impl Action {
    /// What it brings back.
    pub(crate) const fn fetch(self) -> Fetch {
        match self {
            Self::Write => Fetch::Nothing,
            Self::Read => Fetch::Bytes,
            Self::FetchAdd { .. } | Self::CompareSwap { .. } => Fetch::Word,
        }
    }
}

/// The bytes at this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Data<'a> {
    /// None at all.
    Nothing,
    /// Copied by the post itself.
    Inline(&'a [u8]),
    /// In registered memory.
    Registered { address: u64, len: u32, key: u32 },
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) place: Place,
    pub(crate) action: Action,
    pub(crate) data: Data<'a>,
    /// Where in the peer, in the peer's own terms.
    pub(crate) address: u64,
    /// The peer's key.
    pub(crate) key: u32,
    pub(crate) signal: Signal,
}

impl Request<'_> {
    /// Lends the request in verbs' terms.
    pub(super) fn with_raw<R>(&self, post: impl FnOnce(*mut ffi::ibv_send_wr) -> R) -> R {
        let (address, len, key) = match self.data {
            Data::Nothing => (0, 0, 0),
            // Read by the processor during the call, never by the device.
            Data::Inline(bytes) => (bytes.as_ptr().expose_provenance() as u64, len_of(bytes), 0),
            Data::Registered { address, len, key } => (address, len, key),
        };
        let mut data = ffi::ibv_sge { addr: address, length: len, lkey: key };
        let mut raw = ffi::ibv_send_wr {
            wr_id: self.place.0,
            next: null_mut(),
            sg_list: &raw mut data,
            num_sge: i32::from(self.data != Data::Nothing),
            opcode: self.opcode(),
            send_flags: self.flags(),
            wr: self.target(),
            ..ffi::ibv_send_wr::zeroed()
        };
        post(&raw mut raw)
    }

    const fn opcode(&self) -> opcode::Type {
        match self.action {
            Action::Write => opcode::IBV_WR_RDMA_WRITE,
            Action::Read => opcode::IBV_WR_RDMA_READ,
            Action::FetchAdd { .. } => opcode::IBV_WR_ATOMIC_FETCH_AND_ADD,
            Action::CompareSwap { .. } => opcode::IBV_WR_ATOMIC_CMP_AND_SWP,
        }
    }

    fn flags(&self) -> u32 {
        [
            (self.signal == Signal::Yes, flags::IBV_SEND_SIGNALED),
            (matches!(self.data, Data::Inline(_)), flags::IBV_SEND_INLINE),
        ]
        .into_iter()
        .filter(|(is_set, _)| *is_set)
        .fold(0, |all, (_, flag)| all | flag)
    }

    const fn target(&self) -> ibv_send_wr_target {
        let (remote_addr, rkey) = (self.address, self.key);
        let (compare_add, swap) = match self.action {
            Action::Write | Action::Read => {
                return ibv_send_wr_target { rdma: ibv_send_wr_rdma { remote_addr, rkey } };
            }
            Action::FetchAdd { add } => (add, 0),
            Action::CompareSwap { expected, new } => (expected, new),
        };
        let atomic = ibv_send_wr_atomic { remote_addr, compare_add, swap, rkey };
        ibv_send_wr_target { atomic }
    }
}

fn len_of(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("writes from bytes are short, which the port has checked")
}
