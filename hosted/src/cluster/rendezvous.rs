//! `[rendezvous]`: the memory in which tensors wait for their receivers, and are received.

use super::ClusterError;
use super::key;
use super::limit::LimitError;
use super::section::Section;

/// The sizes of the rendezvous.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendezvous {
    /// `pool_mib`: MiB that a node keeps for tensors that it sends, and as many for tensors that it
    /// receives; 0, the default, for no rendezvous.
    pub pool_mib: usize,
}

impl Rendezvous {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, ClusterError> {
        let pool_mib = section.number(&key::RENDEZVOUS_POOL_MIB)?;
        Ok(Self { pool_mib: pool_mib.map_or(0, |value| value as usize) })
    }

    pub(super) fn check(&self) -> Result<(), LimitError> {
        let key = key::RENDEZVOUS_POOL_MIB;
        key.limit.admit(key.path, self.pool_mib as u64)
    }

    /// The longest tensor in bytes: a piece of a pool is a power of two.
    #[must_use]
    pub const fn tensor_len(&self) -> usize {
        if self.pool_mib == 0 { 0 } else { 1 << (self.pool_mib.ilog2() + 20) }
    }
}
