//! What a cluster asks of the machine it runs on.
//!
//! Estimates from above, so that a machine that passes is large enough; the exact layout of
//! segments is the business of the fabric. All nodes are taken to run on this one machine, which is
//! the most that a machine is asked for.

use weft::cluster::Cluster;
use weft::shm::Wait;

/// What a cluster asks of the machine, all of its nodes on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Demand {
    /// Processes that poll.
    pub(super) nodes: usize,
    /// How they poll.
    pub(super) wait: Wait,
    /// Files that one process has open.
    pub(super) open_files: u64,
    /// Address space of one process.
    pub(super) address_bytes: u64,
    /// Shared memory of all nodes together.
    pub(super) segment_bytes: u64,
    /// The keys of the cluster file that have most of it used.
    pub(super) largest: &'static str,
    /// Memory that one node locks if peers reach it over RDMA: registered once for each of them.
    pub(super) locked_bytes: u64,
}

impl Demand {
    pub(super) fn of(cluster: &Cluster) -> Self {
        let nodes = cluster.nodes as u64;
        let slot_bytes = cluster.mailbox.message_len as u64 + SLOT_OVERHEAD_BYTES;
        let mailbox = MAILBOX_HALVES * cluster.mailbox.slots as u64 * slot_bytes;
        let lanes = nodes * cluster.lane.slots as u64 * slot_bytes;
        let cast_bytes = cluster.neb.message_len as u64 + SLOT_OVERHEAD_BYTES;
        let rings = RINGS_PER_ORIGIN * nodes * cluster.neb.slots as u64 * cast_bytes;
        let state = cluster.component.as_ref().map_or(0, |it| STATE_SLOTS * it.state as u64);
        let entries = cluster.group.entries as u64 * GROUP_ENTRY_BYTES;
        let stream = entries + (cluster.group.blocks * cluster.group.block_len) as u64;
        let groups = cluster.group.places() as u64 * nodes * stream;
        let pools = TENSOR_POOLS * ((cluster.rendezvous.pool_mib as u64) << 20);
        let tensors = pools + cluster.rendezvous.parts_len() as u64;
        let own = mailbox + lanes + rings + groups + tensors;
        let registered = nodes * (own + nodes * PAGE_BYTES);
        let segment_bytes = registered + nodes * state;
        let parts = [
            (mailbox, "mailbox.slots or mailbox.message_len"),
            (lanes, "lane.slots or mailbox.message_len"),
            (rings, "neb.slots or neb.message_len"),
            (groups, "group.blocks or group.block_len"),
            (tensors, "rendezvous.pool_mib"),
            (state, "component.state"),
        ];
        let largest =
            parts.into_iter().max_by_key(|(bytes, _)| *bytes).map_or("", |(_, keys)| keys);
        // For each peer, and twice for itself.
        let pairs = nodes + 1;
        Self {
            nodes: cluster.nodes,
            wait: cluster.wait,
            open_files: FILES_BASE + FILES_PER_NODE * nodes,
            address_bytes: ADDRESS_BASE + ADDRESS_PER_NODE * nodes + segment_bytes,
            segment_bytes,
            largest,
            locked_bytes: pairs * (registered / nodes + PAIR_BYTES),
        }
    }
}

impl Demand {
    /// What one node asks of its machine.
    pub(super) fn of_node(cluster: &Cluster) -> Self {
        let all = Self::of(cluster);
        Self { nodes: 1, segment_bytes: all.segment_bytes / cluster.nodes as u64, ..all }
    }
}

/// One fills while the other is drained; the number of slots is that of one.
const MAILBOX_HALVES: u64 = 2;
/// What an origin broadcasts, and what is shown of it.
const RINGS_PER_ORIGIN: u64 = 2;
/// An entry of a root's stream, and what each member shows of it.
const GROUP_ENTRY_BYTES: u64 = 1024;
/// Of what is sent, and of what is received.
const TENSOR_POOLS: u64 = 2;
/// The record and the one that replaces it.
const STATE_SLOTS: u64 = 2;
/// Header or trailer, and rounding up to cache lines.
const SLOT_OVERHEAD_BYTES: u64 = 128;
/// Rounding up of each node's segment at each other.
const PAGE_BYTES: u64 = 4096;
/// A pair's own: a page for each work that may be outstanding.
const PAIR_BYTES: u64 = weft_driver::Config::DEFAULT.depth as u64 * PAGE_BYTES;
/// Standard streams, sockets, handles on time and processes, and clients.
const FILES_BASE: u64 = 64;
/// A supervisor keeps its own segments for each peer, those of each peer, sockets and handles: of
/// 4 nodes one has up to 87 files open, of 12 nodes up to 247.
const FILES_PER_NODE: u64 = 20;
/// The program, its threads' stacks, and what the allocator reserves for each thread: of 4 nodes a
/// supervisor takes up to 760 MiB, of 12 nodes up to 1160 MiB.
const ADDRESS_BASE: u64 = 584 << 20;
/// Stack and reserve of a peer's thread.
const ADDRESS_PER_NODE: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use weft::cluster::{ClusterName, Program};

    #[test]
    fn demand_grows_with_the_cluster() {
        let cluster = |nodes| Cluster::default_named(ClusterName::default(), nodes).expect("legal");
        let small = Demand::of(&cluster(4));
        let large = Demand::of(&cluster(32));
        assert_eq!((small.open_files, large.open_files), (144, 704));
        assert!(small.address_bytes > (760 << 20) && large.address_bytes < 4 << 30);
        assert!(small.segment_bytes > 4 * 1024 * 256);
        assert!(large.segment_bytes > 8 * small.segment_bytes);
        assert!(small.locked_bytes > small.segment_bytes, "each peer's registration counts");
    }

    #[test]
    fn what_takes_most_memory_is_named() {
        let mut cluster = Cluster::default();
        let named = |cluster: &Cluster| Demand::of(cluster).largest;
        cluster.mailbox.slots = 4096;
        assert_eq!(named(&cluster), "mailbox.slots or mailbox.message_len");
        cluster.neb.slots = 4096;
        cluster.neb.message_len = 4096;
        assert_eq!(named(&cluster), "neb.slots or neb.message_len");
        cluster = Cluster::default();
        let before = Demand::of(&cluster).segment_bytes;
        (cluster.group.count, cluster.group.block_len) = (1, 1 << 20);
        assert_eq!(named(&cluster), "group.blocks or group.block_len");
        let stored = (cluster.nodes * cluster.nodes * cluster.group.blocks) as u64 * (1 << 20);
        assert!(Demand::of(&cluster).segment_bytes >= before + stored);
        cluster.rendezvous.pool_mib = 1024;
        assert_eq!(named(&cluster), "rendezvous.pool_mib");
    }

    #[test]
    fn m9_records_are_memory_that_is_not_registered() {
        let mut cluster = Cluster::default();
        let before = Demand::of(&cluster);
        let state = Program::STATE_MAX;
        cluster.component = Some(Program { program: "a".to_owned(), state, ..Program::default() });
        let demand = Demand::of(&cluster);
        let grown = demand.segment_bytes - before.segment_bytes;
        assert_eq!(grown, 2 * cluster.nodes as u64 * state as u64);
        assert_eq!((demand.locked_bytes, demand.largest), (before.locked_bytes, "component.state"));
    }

    #[test]
    fn the_largest_cluster_does_not_overflow() {
        let mut cluster = Cluster::default_named(ClusterName::default(), 32).expect("legal");
        cluster.mailbox.slots = 4096;
        cluster.mailbox.message_len = 4000;
        cluster.lane.slots = 1024;
        assert_eq!(cluster.check(), Ok(()));
        assert!(Demand::of(&cluster).segment_bytes < 8 << 30);
    }
}
