//! `[rendezvous]`: the memory in which tensors wait for their receivers, and are received.

use super::ClusterError;
use super::key;
use super::limit::LimitError;
use super::section::Section;

/// The sizes of the rendezvous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendezvous {
    /// `pool_mib`: MiB that a node keeps for tensors that it sends, and as many for tensors that it
    /// receives; 0, the default, for no rendezvous.
    pub pool_mib: usize,
    /// `store_mib`: the most MiB that a node keeps for clients, of tensors that they send and that
    /// they receive.
    pub store_mib: usize,
}

impl Default for Rendezvous {
    fn default() -> Self {
        Self { pool_mib: 0, store_mib: 1024 }
    }
}

impl Rendezvous {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, ClusterError> {
        let default = Self::default();
        let number = |key, default| {
            let number: Option<u64> = section.number(key)?;
            Ok(number.map_or(default, |value| value as usize))
        };
        Ok(Self {
            pool_mib: number(&key::RENDEZVOUS_POOL_MIB, default.pool_mib)?,
            store_mib: number(&key::RENDEZVOUS_STORE_MIB, default.store_mib)?,
        })
    }

    pub(super) fn check(&self) -> Result<(), LimitError> {
        let (pool, store) = (key::RENDEZVOUS_POOL_MIB, key::RENDEZVOUS_STORE_MIB);
        pool.limit.admit(pool.path, self.pool_mib as u64)?;
        store.limit.admit(store.path, self.store_mib as u64)
    }

    /// The most bytes that a node keeps for clients.
    #[must_use]
    pub const fn store_len(&self) -> u64 {
        (self.store_mib as u64) << 20
    }

    /// The longest tensor in bytes: a piece of a pool is a power of two.
    #[must_use]
    pub const fn tensor_len(&self) -> usize {
        if self.pool_mib == 0 { 0 } else { 1 << (self.pool_mib.ilog2() + 20) }
    }
}
