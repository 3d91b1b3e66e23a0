//! Protection domains and registrations: what the device may touch, and for whom.
//!
//! A device looks a key up within the protection domain of the queue pair that it came through,
//! and keys can be guessed. So every peer has a domain of its own, and in it each region is
//! registered with exactly the rights that the layout gives to this peer:
//!
//! ```text
//!   domain for peer 1          domain for peer 2
//!     region 0  read, write      region 0  read, write
//!     region 1  read             region 1  (none: source and target of own work)
//!     scratch   (none)           scratch   (none)
//! ```
//!
//! The device may write to every region on this endpoint's own behalf (reads end there); verbs
//! demand that right beside remote writes and atomics anyway. The price is that pinned memory
//! counts once for every peer against the limit of locked memory.
//!
//! Taking back. A fence ends all of a peer's rights at once, and for that the driver destroys the
//! queue pair and deregisters; it does not invalidate type-2 memory windows. Measured on emulated
//! soft-RoCE (kernel 6.1, `weft bench verbs`, medians in µs; [`Revocation`](crate::Revocation)
//! checks after each that the very next write is refused):
//!
//! | way | grant, 4 KiB | revoke, 4 KiB | grant, 1 MiB | revoke, 1 MiB |
//! |---|---|---|---|---|
//! | one registration, deregistered | 94 | 38 | 119 | 49 |
//! | one window, invalidated | 100 | 33 | 75 | 32 |
//! | the fence as shipped: drain and destroy the pair, all registrations | | 535 | | 429 |
//!
//! An invalidation saves a fifth to a third of one deregistration, and nothing of a fence, whose
//! time goes into the pair. It would have to be posted to that pair, which is in error when a
//! fence is called for, and a pair in error takes no work; the pair must go in any case, since its
//! other requests are to end. What windows would buy is one registration of the memory for all
//! peers instead of one for each; what they would cost is a device that has type-2 windows.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use weft_core::fabric::{Access, At, Layout, Region};
use weft_core::ids::Peer;

use crate::device::Context;
use crate::ffi::{self, ibv_access_flags as flags};
use crate::{Errno, Error, Grant, HostMemory, Verb};

/// `ibv_pd`, deallocated when dropped.
#[derive(Debug)]
pub(crate) struct Domain {
    raw: NonNull<ffi::ibv_pd>,
    _context: Arc<Context>,
}

// SAFETY: verbs on a domain may be called from any thread.
unsafe impl Send for Domain {}
// SAFETY: as above; a domain is not changed after its allocation.
unsafe impl Sync for Domain {}

impl Domain {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self, Error> {
        // SAFETY: the context is open.
        let raw = unsafe { ffi::ibv_alloc_pd(context.as_ptr()) };
        match NonNull::new(raw) {
            Some(raw) => Ok(Self { raw, _context: Arc::clone(context) }),
            None => Err(Error::Verb(Verb::AllocDomain, Errno::last())),
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::ibv_pd {
        self.raw.as_ptr()
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: allocated once and freed once; registrations and pairs in it share it by `Arc`
        // and so are gone. A failure leaves it to the kernel, which frees it with the context.
        unsafe { ffi::ibv_dealloc_pd(self.as_ptr()) };
    }
}

/// `ibv_mr`, taken back when dropped: a run of words that the device may touch.
#[derive(Debug)]
pub(crate) struct Registration<K> {
    raw: NonNull<ffi::ibv_mr>,
    address: u64,
    local_key: u32,
    remote_key: u32,
    _domain: Arc<Domain>,
    /// Keeps the words where they are.
    keeper: Arc<K>,
}

// SAFETY: verbs on a registration may be called from any thread, and so may the keeper be
// dropped on one.
unsafe impl<K: Send + Sync> Send for Registration<K> {}

impl<K> Registration<K> {
    /// Registers the words that `pick` finds in `keeper`, for the remote rights `access`.
    pub(crate) fn new(
        domain: &Arc<Domain>,
        keeper: &Arc<K>,
        pick: impl FnOnce(&K) -> &[AtomicU64],
        access: Access,
    ) -> Result<Self, Error> {
        Self::with_rights(domain, keeper, pick, rights_of(access))
    }

    /// Registers words for this endpoint itself, and to bind windows over.
    pub(crate) fn windowed(
        domain: &Arc<Domain>,
        keeper: &Arc<K>,
        pick: impl FnOnce(&K) -> &[AtomicU64],
    ) -> Result<Self, Error> {
        let rights = flags::IBV_ACCESS_LOCAL_WRITE | flags::IBV_ACCESS_MW_BIND;
        Self::with_rights(domain, keeper, pick, rights)
    }

    fn with_rights(
        domain: &Arc<Domain>,
        keeper: &Arc<K>,
        pick: impl FnOnce(&K) -> &[AtomicU64],
        rights: u32,
    ) -> Result<Self, Error> {
        let words = pick(keeper);
        let address = words.as_ptr().cast_mut();
        let rights = rights.cast_signed();
        // SAFETY: the words are valid for `size_of_val` bytes for as long as the keeper is: it
        // lent them from a shared borrow, and the registration holds a share of it until it is
        // taken back. The device and peers may change them at any time, as atomics allow.
        let raw =
            unsafe { ffi::ibv_reg_mr(domain.as_ptr(), address.cast(), size_of_val(words), rights) };
        let Some(raw) = NonNull::new(raw) else {
            return Err(Error::Verb(Verb::RegisterMemory, Errno::last()));
        };
        // SAFETY: a registration that was made is valid until it is taken back, and its keys do
        // not change.
        let made = unsafe { raw.as_ref() };
        Ok(Self {
            raw,
            address: address.expose_provenance() as u64,
            local_key: made.lkey,
            remote_key: made.rkey,
            _domain: Arc::clone(domain),
            keeper: Arc::clone(keeper),
        })
    }

    /// The address of the first byte, as the device knows it.
    pub(crate) const fn address(&self) -> u64 {
        self.address
    }

    pub(crate) const fn local_key(&self) -> u32 {
        self.local_key
    }

    pub(crate) const fn remote_key(&self) -> u32 {
        self.remote_key
    }

    pub(crate) const fn as_ptr(&self) -> *mut ffi::ibv_mr {
        self.raw.as_ptr()
    }
}

impl<K> Drop for Registration<K> {
    fn drop(&mut self) {
        // SAFETY: registered once and taken back once.
        let returned = unsafe { ffi::ibv_dereg_mr(self.raw.as_ptr()) };
        if returned != 0 {
            // The device may still reach the words, so they must not become anything else.
            std::mem::forget(Arc::clone(&self.keeper));
        }
    }
}

/// The rights in verbs' terms. Writing for this endpoint itself is always among them.
fn rights_of(access: Access) -> u32 {
    let remote = [
        (Access::REMOTE_READ, flags::IBV_ACCESS_REMOTE_READ),
        (Access::REMOTE_WRITE, flags::IBV_ACCESS_REMOTE_WRITE),
        (Access::REMOTE_ATOMIC, flags::IBV_ACCESS_REMOTE_ATOMIC),
    ];
    let granted = remote.into_iter().filter(|(right, _)| access.contains(*right));
    granted.fold(flags::IBV_ACCESS_LOCAL_WRITE, |rights, (_, flag)| rights | flag)
}

/// An endpoint's own regions as one peer may reach them.
#[derive(Debug)]
pub(crate) struct GrantedRegions<M> {
    regions: Vec<(Registration<M>, Access)>,
}

impl<M: HostMemory> GrantedRegions<M> {
    pub(crate) fn new(
        domain: &Arc<Domain>,
        memory: &Arc<M>,
        layout: &Layout,
        peer: Peer,
    ) -> Result<Self, Error> {
        let mut regions = Vec::with_capacity(layout.regions().len());
        for (number, spec) in (0..).zip(layout.regions()) {
            let region = Region(number);
            let (expected, found) = (spec.len as usize, size_of_val(memory.words(region)));
            if expected != found {
                return Err(Error::MemoryLength { region, expected, found });
            }
            let access = if spec.peers.contains(peer) { spec.access } else { Access::empty() };
            let registration =
                Registration::new(domain, memory, |memory| memory.words(region), access)?;
            regions.push((registration, access));
        }
        Ok(Self { regions })
    }

    /// What is sent to the peer, region by region.
    pub(crate) fn grants(&self) -> Vec<Option<Grant>> {
        let grant = |(registration, access): &(Registration<M>, Access)| {
            let key = registration.remote_key;
            (!access.is_empty()).then_some(Grant { address: registration.address, key })
        };
        self.regions.iter().map(grant).collect()
    }

    /// Everything that the peer may do anywhere, in verbs' terms, for its queue pair.
    pub(crate) fn rights(&self) -> u32 {
        self.regions.iter().fold(0, |rights, (_, access)| rights | rights_of(*access))
    }

    /// Where `at` lies, and the key to it, for own work that was checked against the layout.
    pub(crate) fn local(&self, at: At) -> (u64, u32) {
        let (registration, _) = &self.regions[usize::from(at.region.0)];
        (registration.address + u64::from(at.offset), registration.local_key)
    }
}
