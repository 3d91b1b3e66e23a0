//! Where the other nodes are met: as the cluster file lists them, or as they have registered.
//!
//! ```text
//!   /weft/CLUSTER/FINGERPRINT OF THE KEY/RANK   →   {"address": "HOST:PORT", "run": N}
//! ```
//!
//! With etcd, a node registers its own address under a lease of [`TTL`], keeps the lease, and reads
//! the entries of the others once a second. An address that was read stays known: nodes that have
//! met need etcd no more, and it may be restarted, with its data or without. Clusters of one name
//! with different keys do not see each other.
//!
//! An entry is a hint and no proof: who answers at the address is a member only if it holds the
//! cluster's key, and has the rank that was called. So a wrong entry keeps two nodes apart, which
//! both report, and does no other harm.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use weft_core::ids::Peer;

use super::etcd::{DirectoryFault, EtcdClient, LeaseId, Stored};
use super::{Addresses, Key};
use crate::bootstrap::Hello;
use crate::clock::Deadline;

/// How long an entry outlives its node.
const TTL: Duration = Duration::from_secs(10);
/// How often a lease is kept.
const KEEP_EVERY: Duration = Duration::from_secs(3);
/// How often the entries are read.
pub(super) const READ_EVERY: Duration = Duration::from_secs(1);
/// The longest address that is believed.
const ADDRESS_LEN_MAX: usize = 300;

/// What a node registers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DirectoryEntry {
    /// HOST:PORT.
    address: String,
    /// The run of the node: another one of the same rank is another process.
    run: u64,
}

/// The addresses of a cluster's nodes.
pub(super) enum Directory {
    Listed(Vec<String>),
    Registered(Registry),
}

impl Directory {
    pub(super) fn new(addresses: Addresses, hello: &Hello, key: &Key, run: u64) -> Self {
        match addresses {
            Addresses::Listed(addresses) => Self::Listed(addresses),
            Addresses::Registered { endpoints, own } => {
                let prefix = format!("/weft/{}/{}/", hello.cluster, fingerprint(key));
                Self::Registered(Registry {
                    etcd: EtcdClient::new(endpoints),
                    prefix,
                    rank: hello.rank,
                    own: DirectoryEntry { address: own, run },
                    known: Mutex::default(),
                })
            }
        }
    }

    /// Where `peer` is met, if that is known.
    pub(super) fn address_of(&self, peer: Peer) -> Option<String> {
        match self {
            Self::Listed(addresses) => addresses.get(peer.index()).cloned(),
            Self::Registered(registry) => registry.known().get(&peer.0).cloned(),
        }
    }
}

/// The addresses that nodes register with etcd.
pub(super) struct Registry {
    etcd: EtcdClient,
    prefix: String,
    rank: u16,
    own: DirectoryEntry,
    known: Mutex<BTreeMap<u16, String>>,
}

/// How far a node has come with its registration.
#[derive(Debug, Default)]
pub(super) struct Registration {
    /// The lease, and when it must be kept.
    held: Option<(LeaseId, Deadline)>,
    /// The run that is registered under this node's rank, and when its lease is over unless it
    /// keeps it: the entry of a node that has ended is no reason to report anything.
    rival: Option<(u64, Deadline)>,
}

impl Registry {
    fn known(&self) -> MutexGuard<'_, BTreeMap<u16, String>> {
        // One value that is consistent at all times.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One round: keeps this node registered, and reads where the others are.
    pub(super) fn refresh(&self, registration: &mut Registration) -> Result<(), DirectoryFault> {
        let lease = self.keep(registration)?;
        let mut own = None;
        for stored in self.etcd.range(&self.prefix)? {
            let Some((rank, address)) = self.read(&stored) else { continue };
            if rank == self.rank {
                own = Some(stored);
            } else {
                self.known().insert(rank, address);
            }
        }
        self.register(&lease, own.as_ref(), &mut registration.rival)
    }

    /// A lease that etcd has: one that it lost with its data is replaced.
    fn keep(&self, registration: &mut Registration) -> Result<LeaseId, DirectoryFault> {
        let lease = match registration.held.take() {
            Some(held) if !held.1.has_passed() => {
                return Ok(registration.held.insert(held).0.clone());
            }
            // Kept for the next round, should etcd not answer in this one.
            Some((lease, keep_at)) => {
                registration.held = Some((lease.clone(), keep_at));
                if self.etcd.keep_alive(&lease)? { lease } else { self.etcd.grant(TTL)? }
            }
            None => self.etcd.grant(TTL)?,
        };
        registration.held = Some((lease.clone(), Deadline::after(KEEP_EVERY)));
        Ok(lease)
    }

    /// The rank and the address of an entry; none of one that no node has written.
    fn read(&self, stored: &Stored) -> Option<(u16, String)> {
        let rank = stored.key.strip_prefix(self.prefix.as_bytes())?;
        let rank = std::str::from_utf8(rank).ok()?.parse().ok()?;
        let entry: DirectoryEntry = serde_json::from_slice(&stored.value).ok()?;
        (entry.address.len() <= ADDRESS_LEN_MAX).then_some((rank, entry.address))
    }

    fn register(
        &self,
        lease: &LeaseId,
        seen: Option<&Stored>,
        rival: &mut Option<(u64, Deadline)>,
    ) -> Result<(), DirectoryFault> {
        let own = |it: &Stored| serde_json::from_slice::<DirectoryEntry>(&it.value).ok();
        if let Some(stored) = seen {
            let entry = own(stored);
            if entry.as_ref() == Some(&self.own) && stored.lease == *lease {
                return Ok(());
            }
            // This process listens at its own address, so an entry with it is of an earlier run.
            if let Some(other) = entry.filter(|it| it.address != self.own.address) {
                return self.await_expiry(other, rival);
            }
        }
        let key = format!("{}{}", self.prefix, self.rank);
        let value = serde_json::to_vec(&self.own).unwrap_or_default();
        // If another node was first, the next round finds its entry.
        self.etcd.put_if(&key, &value, lease, seen).map(|_is_put| ())
    }

    fn await_expiry(
        &self,
        DirectoryEntry { address, run }: DirectoryEntry,
        rival: &mut Option<(u64, Deadline)>,
    ) -> Result<(), DirectoryFault> {
        let known = rival.take().filter(|(known, _)| *known == run);
        let (_, expires_at) = rival.insert(known.unwrap_or((run, Deadline::after(TTL))));
        if expires_at.has_passed() {
            return Err(DirectoryFault::Registered { rank: self.rank, address });
        }
        Ok(())
    }

    /// Takes this node's entry out at its orderly end; otherwise the entry expires.
    pub(super) fn leave(&self, registration: &Registration) {
        let revoked = registration.held.as_ref().map_or(Ok(()), |(it, _)| self.etcd.revoke(it));
        if let Err(fault) = revoked {
            tracing::debug!(%fault, "the entry of this node stays until it expires");
        }
    }
}

/// What sets clusters of one name apart, and says nothing of the key.
fn fingerprint(key: &Key) -> String {
    let digest = Sha256::new().chain_update(b"weft discovery").chain_update(key.bytes()).finalize();
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
