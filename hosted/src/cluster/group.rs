//! `[group]`: the sizes of all groups, whose members broadcast along trees. `[[groups]]`: the
//! groups beside the one of all nodes.
//!
//! The sizes are shared, because the windows of all groups lie in one region. The tables are
//! `[[groups]]` because TOML has no `[[group]]` beside a `[group]`.

use weft_core::group::{Costs, Tree};

use super::key;
use super::limit::{Limit, LimitError};
use super::section::FileSection;
use super::topology::Topology;
use super::{Cluster, ClusterError, ClusterName};

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
    /// node keeps `blocks` of these for every node and group.
    pub block_len: usize,
    /// `topology`: along which trees messages travel.
    pub topology: Topology,
    /// `latency`: how many messages a member can send while one travels to the next member, from 1
    /// to 63; the ratio of the tree that is called "fibonacci".
    pub latency: usize,
    /// `[[groups]]`: the groups beside the one of all nodes.
    pub named: Vec<NamedGroup>,
}

/// One of `[[groups]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedGroup {
    /// `name`: as a cluster's name; no two groups have the same, and none is called "all".
    pub name: String,
    /// `members`: their ranks, two or more, in the order of their ranks within the group.
    pub members: Vec<u16>,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            count: 0,
            entries: 64,
            blocks: 16,
            block_len: 64 * 1024,
            topology: Topology::Auto,
            latency: 4,
            named: Vec::new(),
        }
    }
}

impl Group {
    /// The name of the group of all nodes.
    pub const ALL: &str = "all";
    /// The most groups, that of all nodes included.
    pub const PLACES_MAX: usize = 8;

    /// How many groups there are.
    #[must_use]
    pub const fn places(&self) -> usize {
        self.count + self.named.len()
    }

    /// The trees along which entries travel.
    #[must_use]
    pub fn tree(&self) -> Tree {
        let latency = u8::try_from(self.latency).unwrap_or(Costs::MAX);
        Tree { class: self.topology.class(), costs: Costs::postal(latency) }
    }

    /// All groups of a cluster of `nodes`, in the order of their numbers.
    #[must_use]
    pub fn groups(&self, nodes: usize) -> Vec<NamedGroup> {
        let members = (0..Cluster::NODES_MAX as u16).take(nodes).collect();
        let all = NamedGroup { name: Self::ALL.to_owned(), members };
        let all = (self.count > 0).then_some(all);
        all.into_iter().chain(self.named.iter().cloned()).collect()
    }

    pub(super) fn read(section: &FileSection<'_>) -> Result<Self, ClusterError> {
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
            topology: section.word(key::GROUP_TOPOLOGY)?.unwrap_or_default(),
            latency: number(&key::GROUP_LATENCY, default.latency)?,
            named: Vec::new(),
        })
    }

    /// Takes in one of `[[groups]]`.
    pub(super) fn read_named(
        &mut self,
        section: &FileSection<'_>,
        nodes: usize,
    ) -> Result<(), ClusterError> {
        let missing = |key| section.missing(key);
        let name = section.text(key::GROUPS_NAME)?;
        let name = name.ok_or_else(|| missing(key::GROUPS_NAME))?;
        let members = section.ranks(key::GROUPS_MEMBERS, nodes)?;
        let members = members.ok_or_else(|| missing(key::GROUPS_MEMBERS))?;
        self.named.push(NamedGroup { name, members });
        self.check_named(nodes).map_err(|source| section.limit(source.key, source))
    }

    /// Whether the last of `[[groups]]` may follow those before it.
    fn check_named(&self, nodes: usize) -> Result<(), LimitError> {
        let Some((NamedGroup { name, members }, earlier)) = self.named.split_last() else {
            return Ok(());
        };
        if name.parse::<ClusterName>().is_err() {
            return Err(Limit::Name.refuse(key::GROUPS_NAME, format!("{name:?}")));
        }
        if name == Self::ALL {
            return Err(Limit::OwnName.refuse(key::GROUPS_NAME, format!("{name:?}")));
        }
        if earlier.iter().any(|other| other.name == *name) {
            return Err(Limit::Once.refuse(key::GROUPS_NAME, format!("{name:?}")));
        }
        let limit = Limit::Range { min: 0, max: nodes.saturating_sub(1) as u64 };
        for (index, rank) in members.iter().enumerate() {
            limit.admit(key::GROUPS_MEMBERS, u64::from(*rank))?;
            if members[..index].contains(rank) {
                return Err(Limit::Once.refuse(key::GROUPS_MEMBERS, rank.to_string()));
            }
        }
        let (count, len) = (key::GROUPS_MEMBERS_COUNT, members.len());
        let admitted = count.limit.admit(count.path, len as u64);
        admitted.map_err(|_| count.limit.refuse(count.path, format!("a list of {len}")))?;
        self.check_places(nodes)
    }

    /// Whether there is a place for so many groups, and their windows fit below 4 GiB.
    fn check_places(&self, nodes: usize) -> Result<(), LimitError> {
        key::GROUPS.limit.admit(key::GROUPS.path, self.named.len() as u64)?;
        let window = self.entries * ENTRY_BYTES_MAX + self.blocks * self.block_len;
        let fit = u32::MAX as usize / (window * nodes).max(1);
        let max = fit.saturating_sub(self.count) as u64;
        let why = "the windows of all groups fit into less than 4 GiB";
        let limit = Limit::Reasoned { min: 0, max, why };
        limit.admit(key::GROUPS.path, self.named.len() as u64)
    }

    pub(super) fn check(&self, nodes: usize) -> Result<(), LimitError> {
        let numbers = [
            (key::GROUP_COUNT, self.count),
            (key::GROUP_ENTRIES, self.entries),
            (key::GROUP_BLOCKS, self.blocks),
            (key::GROUP_BLOCK_LEN, self.block_len),
            (key::GROUP_LATENCY, self.latency),
        ];
        numbers.into_iter().try_for_each(|(key, value)| key.limit.admit(key.path, value as u64))?;
        (1..=self.named.len()).try_for_each(|count| {
            let named = self.named[..count].to_vec();
            Self { named, ..self.clone() }.check_named(nodes)
        })
    }
}

/// Bytes that an entry and its payload take at most.
const ENTRY_BYTES_MAX: usize = 1024;

/// The windows of one group fit below 4 GiB, whatever a file sets.
const _: () = {
    let window = key::GROUP_ENTRIES_MAX * ENTRY_BYTES_MAX as u64
        + key::GROUP_BLOCKS_MAX * key::GROUP_BLOCK_LEN_MAX;
    assert!(window * Cluster::NODES_MAX as u64 <= u32::MAX as u64);
};
