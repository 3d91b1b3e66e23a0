//! A queue pair and its states, as types.
//!
//! ```text
//!   Reset ──▶ Init ──▶ ReadyToReceive ──▶ ReadyToSend ─┐
//!                            (a failed step destroys it)  ├─ fail ──▶ Error ─ destroy
//!             Init ────────────────────────────────────┘
//! ```
//!
//! Only a pair that is ready to send takes posts, and each by `&mut`. In `Init` nothing of the
//! peer arrives, and in `Error` nothing does any more: what it posts fails on its own side.
//! Destroying the pair is the barrier behind which no packet of the peer's is being carried out.
//!
//! Reliable connected only. A pair keeps its completion queue and its protection domain alive.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::completion::CompletionQueue;
use crate::ffi::{self, Zeroed, ibv_qp_attr_mask as mask};
use crate::region::Domain;
use crate::{Config, Device, End, Errno, Error, Verb};

mod request;

pub(crate) use request::{Action, Data, Request};

/// Fresh.
#[derive(Debug)]
pub(crate) enum Reset {}
/// Tied to a port and to the peer's rights.
#[derive(Debug)]
pub(crate) enum Init {}
/// Takes what the peer posts.
#[derive(Debug)]
pub(crate) enum ReadyToReceive {}
/// Takes posts.
#[derive(Debug)]
pub(crate) enum ReadyToSend {}
/// Takes nothing, and ends what was posted.
#[derive(Debug)]
pub(crate) enum Failed {}

/// A queue pair in one of its states.
#[derive(Debug)]
pub(crate) struct QueuePair<State> {
    handle: Handle,
    /// Up to how many bytes a write is handed over with the work.
    inline_len: u32,
    state: PhantomData<State>,
}

/// `ibv_qp`, destroyed when dropped.
#[derive(Debug)]
struct Handle {
    raw: NonNull<ffi::ibv_qp>,
    exists: bool,
    _completions: Arc<CompletionQueue>,
    _domain: Arc<Domain>,
}

// SAFETY: verbs on a queue pair may be called from any thread.
unsafe impl Send for Handle {}

impl Handle {
    fn modify(
        &self,
        attributes: &mut ffi::ibv_qp_attr,
        fields: mask::Type,
        verb: Verb,
    ) -> Result<(), Error> {
        let fields = fields.cast_signed();
        // SAFETY: the pair exists, and the attributes are valid in all fields that are named.
        let returned = unsafe {
            ffi::ibv_modify_qp(self.raw.as_ptr(), std::ptr::from_mut(attributes), fields)
        };
        Errno::check(returned).map_err(|errno| Error::Verb(verb, errno))
    }

    fn destroy(&mut self) -> Result<(), Error> {
        if self.exists {
            // SAFETY: the pair exists; that it does no more is noted below.
            let returned = unsafe { ffi::ibv_destroy_qp(self.raw.as_ptr()) };
            Errno::check(returned).map_err(|errno| Error::Verb(Verb::DestroyQueuePair, errno))?;
            self.exists = false;
        }
        Ok(())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // No caller is left to report a failure to; the kernel destroys it with the context.
        let _ = self.destroy();
    }
}

impl<State> QueuePair<State> {
    fn into<Next>(self) -> QueuePair<Next> {
        QueuePair { handle: self.handle, inline_len: self.inline_len, state: PhantomData }
    }

    /// The number by which the peer addresses it.
    pub(crate) fn number(&self) -> u32 {
        // SAFETY: a pair ends with the `QueuePair` that it is in, and its number never changes.
        unsafe { self.handle.raw.as_ref() }.qp_num
    }

    /// What asynchronous events name it by.
    pub(crate) fn token(&self) -> usize {
        self.handle.raw.as_ptr().addr()
    }

    /// Moves it to error: from now on nothing of the peer is let in, and all outstanding work
    /// ends with a completion.
    pub(crate) fn fail(self) -> Result<QueuePair<Failed>, (QueuePair<Failed>, Error)> {
        let mut attributes = ffi::ibv_qp_attr::zeroed();
        attributes.qp_state = ffi::ibv_qp_state::IBV_QPS_ERR;
        let failed = self.handle.modify(&mut attributes, mask::IBV_QP_STATE, Verb::ModifyToError);
        match failed {
            Ok(()) => Ok(self.into()),
            Err(error) => Err((self.into(), error)),
        }
    }
}

impl QueuePair<Reset> {
    /// A pair in `domain` that reports to `completions`, with places for `depth` works. How many
    /// bytes the device takes inline is found by asking for less until it agrees.
    pub(crate) fn new(
        domain: &Arc<Domain>,
        completions: &Arc<CompletionQueue>,
        config: &Config,
    ) -> Result<Self, Error> {
        let mut inline_len = config.inline_len_max;
        loop {
            match Self::with_inline(domain, completions, config.depth, inline_len) {
                // Too much asked for: EINVAL from soft-RoCE, ENOMEM from others.
                Err(Error::Verb(_, Errno::INVAL | Errno::NOMEM)) if inline_len > 0 => {
                    inline_len /= 2;
                }
                made => return made,
            }
        }
    }

    fn with_inline(
        domain: &Arc<Domain>,
        completions: &Arc<CompletionQueue>,
        depth: u16,
        inline_len: u32,
    ) -> Result<Self, Error> {
        let mut wanted = ffi::ibv_qp_init_attr {
            qp_context: std::ptr::null_mut(),
            send_cq: completions.as_ptr(),
            recv_cq: completions.as_ptr(),
            srq: std::ptr::null_mut(),
            cap: ffi::ibv_qp_cap {
                max_send_wr: u32::from(depth),
                // Nothing is ever received, but some devices refuse a queue of nothing.
                max_recv_wr: 1,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: inline_len,
            },
            qp_type: ffi::ibv_qp_type::IBV_QPT_RC,
            sq_sig_all: 0,
        };
        // SAFETY: the domain and the queues exist, in the same context, and outlive the pair.
        let raw = unsafe { ffi::ibv_create_qp(domain.as_ptr(), &raw mut wanted) };
        let Some(raw) = NonNull::new(raw) else {
            return Err(Error::Verb(Verb::CreateQueuePair, Errno::last()));
        };
        let (_completions, _domain) = (Arc::clone(completions), Arc::clone(domain));
        let handle = Handle { raw, exists: true, _completions, _domain };
        Ok(Self { handle, inline_len, state: PhantomData })
    }

    /// Ties it to the device's port; `rights` is all that the peer may do anywhere.
    pub(crate) fn initialise(self, device: &Device, rights: u32) -> Result<QueuePair<Init>, Error> {
        let mut attributes = ffi::ibv_qp_attr::zeroed();
        attributes.qp_state = ffi::ibv_qp_state::IBV_QPS_INIT;
        attributes.port_num = device.port();
        attributes.qp_access_flags = rights;
        let fields = mask::IBV_QP_STATE
            | mask::IBV_QP_PKEY_INDEX
            | mask::IBV_QP_PORT
            | mask::IBV_QP_ACCESS_FLAGS;
        self.handle.modify(&mut attributes, fields, Verb::ModifyToInit)?;
        Ok(self.into())
    }
}

impl QueuePair<Init> {
    /// Addresses it to `remote`, from the device's own address.
    pub(crate) fn ready_to_receive(
        self,
        device: &Device,
        local: &End,
        remote: &End,
        config: &Config,
    ) -> Result<QueuePair<ReadyToReceive>, Error> {
        let mut attributes = ffi::ibv_qp_attr::zeroed();
        attributes.qp_state = ffi::ibv_qp_state::IBV_QPS_RTR;
        attributes.path_mtu = u32::from(local.mtu.min(remote.mtu));
        attributes.dest_qp_num = remote.queue_pair;
        attributes.rq_psn = remote.first_packet;
        attributes.max_dest_rd_atomic = local.reads_answered;
        attributes.min_rnr_timer = config.rnr_timer;
        let route = &mut attributes.ah_attr;
        route.dlid = remote.local_id;
        route.port_num = device.port();
        route.is_global = 1;
        route.grh.dgid = ffi::ibv_gid { raw: remote.gid.0 };
        route.grh.sgid_index = device.address().index;
        route.grh.hop_limit = HOPS_MAX;
        let fields = mask::IBV_QP_STATE
            | mask::IBV_QP_AV
            | mask::IBV_QP_PATH_MTU
            | mask::IBV_QP_DEST_QPN
            | mask::IBV_QP_RQ_PSN
            | mask::IBV_QP_MAX_DEST_RD_ATOMIC
            | mask::IBV_QP_MIN_RNR_TIMER;
        self.handle.modify(&mut attributes, fields, Verb::ModifyToReadyToReceive)?;
        Ok(self.into())
    }
}

/// Across as many routers as there may be.
const HOPS_MAX: u8 = 64;

impl QueuePair<ReadyToReceive> {
    /// Lets it send.
    pub(crate) fn ready_to_send(
        self,
        device: &Device,
        local: &End,
        remote: &End,
        config: &Config,
    ) -> Result<QueuePair<ReadyToSend>, Error> {
        let mut attributes = ffi::ibv_qp_attr::zeroed();
        attributes.qp_state = ffi::ibv_qp_state::IBV_QPS_RTS;
        attributes.timeout = config.timeout;
        attributes.retry_cnt = config.retry_count;
        attributes.rnr_retry = config.rnr_retry_count;
        attributes.sq_psn = local.first_packet;
        let reads = config.reads_in_flight_max.min(device.limits().reads_sent);
        attributes.max_rd_atomic = reads.min(remote.reads_answered);
        let fields = mask::IBV_QP_STATE
            | mask::IBV_QP_TIMEOUT
            | mask::IBV_QP_RETRY_CNT
            | mask::IBV_QP_RNR_RETRY
            | mask::IBV_QP_SQ_PSN
            | mask::IBV_QP_MAX_QP_RD_ATOMIC;
        self.handle.modify(&mut attributes, fields, Verb::ModifyToReadyToSend)?;
        Ok(self.into())
    }
}

impl QueuePair<ReadyToSend> {
    /// Whether the device promises that a write is placed in ascending order, by
    /// `ibv_query_qp_data_in_order`; `None` if the library is older than the question.
    pub(crate) fn data_in_order(&self) -> Option<bool> {
        let pair = self.handle.raw.as_ptr();
        // SAFETY: the pair exists. Without flags the answer is for the whole message.
        let answer = unsafe {
            ffi::ibv_query_qp_data_in_order(pair, ffi::ibv_wr_opcode::IBV_WR_RDMA_WRITE, 0)
        };
        answer.map(|answer| answer == 1)
    }

    pub(crate) const fn inline_len(&self) -> usize {
        self.inline_len as usize
    }

    /// Hands one request to the device.
    pub(crate) fn post(&mut self, request: &Request<'_>) -> Result<(), Errno> {
        request.with_raw(|raw| {
            // SAFETY: the request and what it points to are valid during the call, which copies
            // both, inline bytes included. What the device reaches later it looks up by key among
            // the registrations of the pair's domain.
            unsafe { self.post_raw(raw) }
        })
    }

    /// Hands one request to the device, in verbs' own terms.
    ///
    /// # Safety
    /// `raw` and what it points to are valid during the call, and windows and registrations that
    /// it names until it has completed.
    pub(crate) unsafe fn post_raw(&mut self, raw: *mut ffi::ibv_send_wr) -> Result<(), Errno> {
        let mut refused = std::ptr::null_mut();
        // SAFETY: the pair exists and is ready to send; of the request the caller has seen to it.
        let returned =
            unsafe { ffi::ibv_post_send(self.handle.raw.as_ptr(), raw, &raw mut refused) };
        Errno::check(returned)
    }
}

impl QueuePair<Failed> {
    /// Destroys it: when this returns, the device carries nothing of the peer's out any more.
    pub(crate) fn destroy(mut self) -> Result<(), Error> {
        self.handle.destroy()
    }
}
