//! The two ways in which verbs take a right back, side by side on one device.
//!
//! ```text
//!   deregister    register for the peer ─▶ ibv_dereg_mr
//!   invalidate    register for itself once; bind a type-2 window for the peer ─▶ local invalidate
//! ```
//!
//! [`Revocation::of`] grants a right in one of the ways, sees that the peer can use it, takes it
//! back and sees that the peer cannot any more. The driver itself uses neither alone: a fence
//! destroys the peer's queue pair, which ends every right at once, and the registrations go with
//! it (why, and the figures, are said in the header of `region.rs`). This file is what those
//! figures come from.
//!
//! A window is bound to one queue pair and dies with it; invalidating it leaves the pair and the
//! peer's other rights alone, which is what a fence must not do.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weft_core::fabric::{Access, Failure};
use weft_core::time::{Duration, Instant};

use crate::completion::CompletionQueue;
use crate::ffi::{self, Zeroed, ibv_wr_opcode as opcode};
use crate::queue_pair::{Action, Data, QueuePair, ReadyToSend, Request};
use crate::region::{Domain, Registration};
use crate::send_queue::{Place, Signal};
use crate::{Config, Device, End, Errno, Error, Verb};

/// How often a queue is polled for a completion before the device is given up.
const POLLS: u32 = 50_000_000;

/// A way to take a right back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A registration of the peer's own, taken back.
    Deregister,
    /// A type-2 memory window over a registration, invalidated.
    Invalidate,
}

/// One right, granted and taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// How long granting took.
    pub grant: Duration,
    /// How long taking back took.
    pub revoke: Duration,
    /// What the peer's next write came to; success would be a failure of the device.
    pub after: Result<(), Failure>,
    /// Whether that write has left every byte as it was.
    pub is_unchanged: bool,
}

type Words = Box<[AtomicU64]>;

/// Two connected pairs on one device: the owner of the memory, and a peer.
struct Bench {
    domain: Arc<Domain>,
    owner: QueuePair<ReadyToSend>,
    peer: QueuePair<ReadyToSend>,
    owners: Arc<CompletionQueue>,
    peers: Arc<CompletionQueue>,
}

impl Revocation {
    /// Grants a right to `len` bytes (a multiple of 8) on `device`, and takes it back.
    ///
    /// # Errors
    /// [`Error`]; nothing is left behind.
    pub fn of(
        way: Way,
        device: &Device,
        len: usize,
        mut now: impl FnMut() -> Instant,
    ) -> Result<Self, Error> {
        let mut bench = Bench::new(device)?;
        let words: Words = (0..len / 8).map(|_| AtomicU64::new(0)).collect();
        let words = Arc::new(words);
        let (grant, revoke);
        let after = match way {
            Way::Deregister => {
                let begun = now();
                let right = Registration::new(&bench.domain, &words, all, Access::REMOTE_WRITE)?;
                grant = now().since(begun);
                let (address, key) = (right.address(), right.remote_key());
                bench.write(address, key, 1)?.map_err(|_| unusable())?;
                let begun = now();
                drop(right);
                revoke = now().since(begun);
                bench.write(address, key, 2)?
            }
            Way::Invalidate => {
                let whole = Registration::windowed(&bench.domain, &words, all)?;
                let window = Window::new(&bench.domain)?;
                let begun = now();
                let key = window.bind(&mut bench, &whole, len as u64)?;
                grant = now().since(begun);
                bench.write(whole.address(), key, 1)?.map_err(|_| unusable())?;
                let begun = now();
                bench.invalidate(key)?;
                revoke = now().since(begun);
                bench.write(whole.address(), key, 2)?
            }
        };
        Ok(Self { grant, revoke, after, is_unchanged: is_unchanged(&words) })
    }
}

fn all(words: &Words) -> &[AtomicU64] {
    words
}

fn is_unchanged(words: &Words) -> bool {
    let mut rest = words.iter();
    rest.next().is_some_and(|first| first.load(Ordering::Acquire) == 1)
        && rest.all(|word| word.load(Ordering::Relaxed) == 0)
}

/// The right that was granted is none.
fn unusable() -> Error {
    Error::Verb(Verb::BindWindow, Errno::INVAL)
}

impl Bench {
    fn new(device: &Device) -> Result<Self, Error> {
        let config = Config::DEFAULT;
        let domain = Arc::new(Domain::new(device.context())?);
        let prepare = || {
            let completions = Arc::new(CompletionQueue::new(device.context(), config.depth)?);
            let pair = QueuePair::new(&domain, &completions, &config)?;
            let rights = ffi::ibv_access_flags::IBV_ACCESS_REMOTE_WRITE
                | ffi::ibv_access_flags::IBV_ACCESS_LOCAL_WRITE;
            let pair = pair.initialise(device, rights)?;
            let end = End {
                queue_pair: pair.number(),
                first_packet: 0,
                local_id: device.local_id(),
                gid: device.address().gid,
                mtu: device.mtu(),
                reads_answered: 1,
                grants: Vec::new(),
            };
            Ok::<_, Error>((completions, pair, end))
        };
        let ((owners, owner, of_owner), (peers, peer, of_peer)) = (prepare()?, prepare()?);
        let owner = owner.ready_to_receive(device, &of_owner, &of_peer, &config)?;
        let peer = peer.ready_to_receive(device, &of_peer, &of_owner, &config)?;
        let owner = owner.ready_to_send(device, &of_owner, &of_peer, &config)?;
        let peer = peer.ready_to_send(device, &of_peer, &of_owner, &config)?;
        Ok(Self { domain, owner, peer, owners, peers })
    }

    /// The peer's write of `value` to the first word.
    fn write(&mut self, address: u64, key: u32, value: u64) -> Result<Result<(), Failure>, Error> {
        let bytes = value.to_le_bytes();
        let (place, signal) = (Place(0), Signal::Yes);
        let data = Data::Inline(&bytes);
        let posted =
            self.peer.post(&Request { place, action: Action::Write, data, address, key, signal });
        posted.map_err(|errno| Error::Verb(Verb::PostSend, errno))?;
        await_one(&self.peers)
    }

    /// The owner takes the window behind `key` back, as work of its own pair.
    fn invalidate(&mut self, key: u32) -> Result<(), Error> {
        let mut request = ffi::ibv_send_wr::zeroed();
        request.opcode = opcode::IBV_WR_LOCAL_INV;
        request.send_flags = ffi::ibv_send_flags::IBV_SEND_SIGNALED;
        request.invalidate_rkey = key;
        self.run(&mut request, Verb::InvalidateWindow)
    }

    fn run(&mut self, request: &mut ffi::ibv_send_wr, verb: Verb) -> Result<(), Error> {
        // SAFETY: the request names a window and a registration that outlive this call, which
        // waits for its end; it has no bytes of its own.
        let posted = unsafe { self.owner.post_raw(request) };
        posted.map_err(|errno| Error::Verb(verb, errno))?;
        await_one(&self.owners)?.map_err(|_| Error::Verb(verb, Errno::INVAL))
    }
}

/// How the one work under way ended.
fn await_one(completions: &CompletionQueue) -> Result<Result<(), Failure>, Error> {
    for _ in 0..POLLS {
        if let Some(end) = completions.poll(1).iter().next() {
            return Ok(end.outcome);
        }
        std::hint::spin_loop();
    }
    Err(Error::Verb(Verb::PostSend, Errno::TIMEDOUT))
}

/// `ibv_mw` of type 2, deallocated when dropped.
struct Window {
    raw: NonNull<ffi::ibv_mw>,
    _domain: Arc<Domain>,
}

impl Window {
    fn new(domain: &Arc<Domain>) -> Result<Self, Error> {
        // SAFETY: the domain exists, in an open context.
        let raw = unsafe { ffi::ibv_alloc_mw(domain.as_ptr(), ffi::ibv_mw_type::IBV_MW_TYPE_2) };
        match NonNull::new(raw) {
            Some(raw) => Ok(Self { raw, _domain: Arc::clone(domain) }),
            None => Err(Error::Verb(Verb::AllocWindow, Errno::last())),
        }
    }

    /// Opens `len` bytes of `whole` to writes through the owner's pair; returns the key to them.
    fn bind(&self, bench: &mut Bench, whole: &Registration<Words>, len: u64) -> Result<u32, Error> {
        // SAFETY: the window exists, and its key changes by binding alone.
        let old = unsafe { self.raw.as_ref() }.rkey;
        // The lowest byte is the binder's to choose, and must be another each time.
        let key = (old & !0xff) | (old.wrapping_add(1) & 0xff);
        let mut request = ffi::ibv_send_wr::zeroed();
        request.opcode = opcode::IBV_WR_BIND_MW;
        request.send_flags = ffi::ibv_send_flags::IBV_SEND_SIGNALED;
        request.bind_mw = ffi::ibv_send_wr_bind_mw {
            mw: self.raw.as_ptr(),
            rkey: key,
            bind_info: ffi::ibv_mw_bind_info {
                mr: whole.as_ptr(),
                addr: whole.address(),
                length: len,
                mw_access_flags: ffi::ibv_access_flags::IBV_ACCESS_REMOTE_WRITE,
            },
        };
        bench.run(&mut request, Verb::BindWindow)?;
        Ok(key)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: allocated once and freed once, before the registration and the domain that it
        // was made over: no thread holds it longer than the call of `Revocation::of`.
        unsafe { ffi::ibv_dealloc_mw(self.raw.as_ptr()) };
    }
}
