//! `[group]`: the sizes of groups, whose members broadcast along trees.

use super::key;
use super::limit::LimitError;
use super::section::Section;
use super::{Cluster, ClusterError};

/// The sizes of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// `count`: 1 for the group of all nodes; 0, the default, for none, which takes no memory.
    pub count: usize,
    /// `entries`: messages that a root may be ahead of the slowest member; a power of two from 8 to
    /// 1024.
    pub entries: usize,
    /// `blocks`: blocks that a root may be ahead; a power of two from 2 to 64.
    pub blocks: usize,
    /// `block_len`: bytes of a block of a long message; a power of two from 4096 to 1 MiB. Every
    /// node keeps `blocks` of these for every node.
    pub block_len: usize,
}

impl Default for Group {
    fn default() -> Self {
        Self { count: 0, entries: 64, blocks: 16, block_len: 64 * 1024 }
    }
}

impl Group {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, ClusterError> {
        let default = Self::default();
        let number = |key, otherwise: usize| {
            let value = section.number(key)?;
            Ok(value.map_or(otherwise, |value| value as usize))
        };
        Ok(Self {
            count: number(&key::GROUP_COUNT, default.count)?,
            entries: number(&key::GROUP_ENTRIES, default.entries)?,
            blocks: number(&key::GROUP_BLOCKS, default.blocks)?,
            block_len: number(&key::GROUP_BLOCK_LEN, default.block_len)?,
        })
    }

    pub(super) fn check(&self) -> Result<(), LimitError> {
        let numbers = [
            (key::GROUP_COUNT, self.count),
            (key::GROUP_ENTRIES, self.entries),
            (key::GROUP_BLOCKS, self.blocks),
            (key::GROUP_BLOCK_LEN, self.block_len),
        ];
        numbers.into_iter().try_for_each(|(key, value)| key.limit.admit(key.path, value as u64))
    }
}

/// The windows of all nodes fit below 4 GiB, whatever a file sets.
const _: () = {
    // An entry and its payload take 1 KiB at most.
    let window = key::GROUP_ENTRIES_MAX * 1024 + key::GROUP_BLOCKS_MAX * key::GROUP_BLOCK_LEN_MAX;
    assert!(window * Cluster::NODES_MAX as u64 <= u32::MAX as u64);
};
