//! `[rendezvous]`: the memory in which tensors wait for their receivers, and are received.

use super::ClusterError;
use super::key;
use super::limit::LimitError;
use super::section::FileSection;
use crate::words::words;

/// How a tensor that fits into no message comes to its receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TensorPath {
    /// What a client sends is handed over where all nodes are on one host: its sealed memory
    /// itself. All else is read.
    #[default]
    HandOver,
    /// It is copied into the memory of its source, and its receiver reads it there.
    Read,
    /// Its source writes it from there into memory that its receiver lends.
    Write,
}

words!(
    TensorPath,
    "rendezvous.path",
    "set rendezvous.path to \"hand_over\" to copy no tensor between the nodes of one host, or to \
     \"read\" or \"write\" to copy it as between hosts",
    HandOver = "hand_over",
    Read = "read",
    Write = "write",
);

/// The sizes of the rendezvous, and its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendezvous {
    /// `pool_mib`: MiB that a node keeps for tensors that it sends, and as many for tensors that it
    /// receives; 0, the default, for no rendezvous.
    pub pool_mib: usize,
    /// `store_mib`: the most MiB that a node keeps for clients, of tensors that they send and that
    /// they receive.
    pub store_mib: usize,
    /// `path`: how tensors travel that fit into no message.
    pub path: TensorPath,
}

impl Default for Rendezvous {
    fn default() -> Self {
        Self { pool_mib: 0, store_mib: 1024, path: TensorPath::default() }
    }
}

impl Rendezvous {
    /// Parts of longer tensors that a node lends at once.
    pub const PART_PLACES: usize = 4;
    const PART_LEN_MAX: usize = 4 << 20;

    pub(super) fn read(section: &FileSection<'_>) -> Result<Self, ClusterError> {
        let default = Self::default();
        let number = |key, default| {
            let number: Option<u64> = section.number(key)?;
            Ok(number.map_or(default, |value| value as usize))
        };
        Ok(Self {
            pool_mib: number(&key::RENDEZVOUS_POOL_MIB, default.pool_mib)?,
            store_mib: number(&key::RENDEZVOUS_STORE_MIB, default.store_mib)?,
            path: section.word(key::RENDEZVOUS_PATH)?.unwrap_or(default.path),
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

    /// Bytes of a part of a tensor that is longer than a piece of a pool: with the places for parts
    /// a pool is a quarter longer at most, and stays below 4 GiB.
    #[must_use]
    pub fn part_len(&self) -> usize {
        let pool = self.pool_mib << 20;
        let left = (u32::MAX as usize).saturating_sub(pool);
        let most = Self::PART_LEN_MAX.min(left / Self::PART_PLACES);
        // In whole pages, as a pool is.
        most.min(pool / (4 * Self::PART_PLACES)) / 4096 * 4096
    }

    /// Bytes of the places for parts.
    #[must_use]
    pub fn parts_len(&self) -> usize {
        self.part_len() * Self::PART_PLACES
    }

    /// The longest tensor in bytes that is sent whole: a piece of a pool is a power of two.
    #[must_use]
    pub const fn tensor_len(&self) -> usize {
        if self.pool_mib == 0 { 0 } else { 1 << (self.pool_mib.ilog2() + 20) }
    }
}
