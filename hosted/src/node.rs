//! One node: a supervisor process and, below it, a component process.
//!
//! ```text
//!   weft node ── supervisor ───── control socket ◀── weft put, get, status, …
//!                 │  owns the node's memory, meets the peers, counts the restarts
//!                 │ link (descriptors, requests, replies)
//!                component ──── endpoint loop over its fabric ◀─────▶ other components
//! ```
//!
//! The supervisor owns the node's memory segments, so they outlive a component that crashes: the
//! next one finds the mailbox unchanged. The supervisor's I'm-Alive Task reports a component that
//! has ended, or makes no progress; the DIR net's manager decides (SPAN), and the next incarnation
//! is started, at most as often as the cluster file allows. The end of the old incarnation is
//! reported to every peer, which fences it, and so is the start of the new one, which is admitted.
//! Whatever `kill -9` hits, no residue remains: the component dies with its supervisor, and memory
//! without a holder is freed.
//!
//! A node whose supervisor dies is down: the DIR net has it fenced, and below `weft up` the
//! launcher starts it again as a later boot. `weft node` leaves that to the operator.

mod abort_markers;
mod casts;
mod changes;
pub mod chronicle;
mod component;
pub mod control;
mod deliveries;
mod error;
pub mod evidence;
mod fabric;
mod faults;
#[doc(hidden)]
pub mod heard;
mod holds;
pub mod hook;
mod im_alive;
mod incarnation;
mod intensity;
mod kept;
mod link;
mod membership;
mod own_puts;
mod places;
mod puts;
mod refusals;
mod reset;
mod saved;
mod scripts;
mod supervisor;
mod takes;
mod tasks;

pub(crate) use changes::Changes;
pub use changes::WatchEvent;
pub use component::{
    BroadcastError, Event, GroupError, JoinError, TaskRefused, TensorError, Verdict,
};
pub(crate) use component::{Component, Flow};
pub use error::NodeError;
pub use fabric::{NodeFabric, VerbsError, VerbsPort};
use faults::CutFabric;
pub use own_puts::PutError;
pub(crate) use reset::ToLauncher;
pub use reset::{Launcher, OperatorAlarm, ResetNode, ResetOutcome};
pub(crate) use supervisor::IsolationNote;
pub use supervisor::{ProgramRun, run as run_supervisor};
pub use tasks::{VARIABLE_CLUSTER, VARIABLE_CONTROL, VARIABLE_NODE, VARIABLE_TASK};

use weft_core::endpoint::{BROADCAST_DEPTH, Endpoint, Machines, Plan, PlanError};
use weft_core::time::Duration;
use weft_core::wire::broadcast::Form;
use weft_core::wire::rendezvous::INLINE_LEN_MAX;
use weft_core::{group, lane, mailbox, neb, rendezvous};

use crate::cluster::{self, Cluster};

/// How long a program has between the order to stop and its end; then it is killed.
pub const PROGRAM_STOP_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// The largest mailbox that a cluster file may ask for.
pub const SLOTS: usize = 4096;
/// The largest cluster.
pub const PEERS: usize = Cluster::NODES_MAX;
/// The length of the longest lane message: 64 bytes, as control messages have.
const LANE_MESSAGE_LEN: u16 = 64;

/// How soon a broadcast reads again what was torn, and the progress of members that are behind.
const NEB_RETRY: neb::Retry =
    neb::Retry { after: Duration::from_micros(5), after_max: Duration::from_millis(1) };

/// The places for groups.
const GROUPS: usize = cluster::Group::PLACES_MAX;
/// The longest message of a group that travels with its entry.
pub(crate) const GROUP_EAGER: u16 = 896;
const GROUP_LANE_SLOTS: u32 = 16;

/// Of each name there is one frame: members have no loops within a step.
const TENSOR_FRAME: &str = "0:0";
/// Receives, values and waiters of a node, each.
const REQUESTS: usize = 64;
/// Beside them, as many for parts of values: one at least for each peer.
const PART_REQUESTS: usize = PEERS;
const TENSOR_LANE_SLOTS: u32 = 16;
const LEAF_LEN_MIN: u32 = 4096;
/// Bytes of a tensor that are read at once: a pass of the loop takes eight of these at most.
const TENSOR_PIECE_LEN: u32 = 256 * 1024;

/// The fabric of a hosted node's endpoint.
type EndpointFabric = CutFabric<NodeFabric>;
/// The endpoint of a hosted node.
type NodeEndpoint = Endpoint<EndpointFabric, SLOTS, PEERS, NodeMachines>;

/// The groups of a node's endpoint: each in a box, for a program may join in a thread whose stack
/// is small.
pub type NodeGroups = group::Groups<PEERS, GROUPS, Box<group::Group<PEERS>>>;
/// The rendezvous of a node's endpoint.
pub type NodeRendezvous = rendezvous::Adapter<PEERS, { REQUESTS + PART_REQUESTS }>;
/// An endpoint of a node's size over one fabric alone, for measurements.
pub type PlainEndpoint<F> = Endpoint<F, SLOTS, PEERS, NodeMachines>;

/// The machines that a node may have. They stand apart: most clusters have none of them.
pub type NodeMachines = Machines<Box<NodeGroups>, Box<NodeRendezvous>>;

/// Lays out the memory of a node of `cluster`.
///
/// # Errors
/// [`NodeError::Plan`], for sizes that [`Cluster::check`] would have refused.
pub fn plan(cluster: &Cluster) -> Result<Plan, NodeError> {
    let refused = |reason: &dyn std::fmt::Display| NodeError::Plan(reason.to_string());
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    let short = |value: usize| u16::try_from(value).unwrap_or(u16::MAX);
    let peers = short(cluster.nodes);
    let stall_after = Duration::from_micros(cluster.mailbox.stall_after_us);
    let slots = number(cluster.mailbox.slots);
    let len = short(cluster.mailbox.message_len);
    let mailbox = mailbox::Config::new(peers, slots, len, stall_after).map_err(|e| refused(&e))?;
    let mailbox = match cluster.mailbox.checksum {
        cluster::Checksum::Auto => mailbox,
        cluster::Checksum::Always => mailbox.with_checksums(),
    };
    let lane = lane::Config::new(peers, number(cluster.lane.slots), LANE_MESSAGE_LEN)
        .map_err(|e| refused(&e))?;
    let neb = neb::Sizes {
        peers,
        slots: number(cluster.neb.slots),
        depth: BROADCAST_DEPTH as u16,
        message_len: short(cluster.neb.message_len),
        form: match cluster.neb.form {
            cluster::Form::Unsigned => Form::Unsigned,
            cluster::Form::Signed => Form::Signed,
        },
        membership: match cluster.neb.membership {
            cluster::Membership::Decided => neb::Membership::Decided,
            cluster::Membership::Fixed => neb::Membership::Fixed,
        },
        retry: NEB_RETRY,
    };
    let neb = neb::Config::new(neb).map_err(|e| refused(&e))?;
    let plan = Plan::new(mailbox, lane).and_then(|plan| plan.with_broadcast(neb));
    let plan = plan.map_err(|e: PlanError| refused(&e))?;
    let plan = match group_sizes(cluster) {
        None => plan,
        Some(sizes) => {
            let sizes = group::Config::new(sizes).map_err(|e| refused(&e))?;
            plan.with_groups(sizes).map_err(|e| refused(&e))?
        }
    };
    match rendezvous_sizes(cluster) {
        None => Ok(plan),
        Some(sizes) => {
            let sizes = rendezvous::RendezvousConfig::new(sizes).map_err(|e| refused(&e))?;
            plan.with_rendezvous(sizes).map_err(|e| refused(&e))
        }
    }
}

/// The sizes of the rendezvous of `cluster`, if it has one.
#[must_use]
pub fn rendezvous_sizes(cluster: &Cluster) -> Option<rendezvous::RendezvousSizes> {
    // Below 4 GiB: checked with the file.
    let pool = u32::try_from(cluster.rendezvous.pool_mib << 20).unwrap_or(u32::MAX);
    let leaf_len = pool.div_ceil(rendezvous::LEAVES_MAX).max(LEAF_LEN_MIN).next_power_of_two();
    (pool > 0).then(|| rendezvous::RendezvousSizes {
        peers: u16::try_from(cluster.nodes).unwrap_or(u16::MAX),
        slots: REQUESTS as u16,
        parts: rendezvous::PartSizes {
            len: cluster.rendezvous.part_len() as u32,
            places: cluster::Rendezvous::PART_PLACES as u8,
            slots: PART_REQUESTS as u16,
        },
        leaf_len,
        offer_leaves: pool / leaf_len,
        landing_leaves: pool / leaf_len,
        inline: INLINE_LEN_MAX as u16,
        piece_len: TENSOR_PIECE_LEN,
        // The memory of one host has its own checks; a network's are weak for long values.
        digest: match cluster.fabric {
            cluster::FabricKind::Shm => rendezvous::Digest::Off,
            cluster::FabricKind::Verbs => rendezvous::Digest::Crc32c,
        },
        path: match cluster.rendezvous.path {
            cluster::TensorPath::Write => rendezvous::Path::Write,
            cluster::TensorPath::HandOver | cluster::TensorPath::Read => rendezvous::Path::Read,
        },
        lane_slots: TENSOR_LANE_SLOTS,
    })
}

/// The sizes of the groups of `cluster`, if it has any.
fn group_sizes(cluster: &Cluster) -> Option<group::Sizes> {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    let cluster::Group { entries, blocks, block_len, .. } = cluster.group;
    let places = cluster.group.places();
    (places > 0).then(|| group::Sizes {
        peers: u16::try_from(cluster.nodes).unwrap_or(u16::MAX),
        groups: u8::try_from(places).unwrap_or(u8::MAX),
        entries: number(entries),
        blocks: number(blocks),
        block_len: number(block_len),
        eager: GROUP_EAGER,
        lane_slots: GROUP_LANE_SLOTS,
        tree: cluster.group.tree(),
        spread: cluster.group.topology.spread(cluster.fabric),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_core::fabric::REGIONS_MAX;

    #[test]
    fn the_largest_cluster_with_all_machines_has_a_plan() {
        for pool_mib in [1, 3, 1500, 4095] {
            let mut cluster = Cluster { nodes: Cluster::NODES_MAX, ..Cluster::default() };
            (cluster.group.count, cluster.rendezvous.pool_mib) = (1, pool_mib);
            let plan = plan(&cluster).expect("a plan");
            let regions = plan.layout().regions().len();
            assert_eq!((regions, REGIONS_MAX), (43, 96), "there is room for more machines");
            let (sizes, at) = plan.rendezvous().expect("a rendezvous");
            let fabric = plan.layout().spec(at.offers()).expect("a region");
            let parts = cluster.rendezvous.parts_len();
            assert!((1 << 18..=16 << 20).contains(&parts), "{pool_mib}: {parts}");
            assert_eq!(fabric.len as usize, (pool_mib << 20) + parts);
            let pool = rendezvous::Pool::new(sizes.sizes().leaf_len, sizes.sizes().offer_leaves);
            let len = cluster.rendezvous.tensor_len() as u64;
            assert!(pool.could_hold(len) && !pool.could_hold(len + 1), "{pool_mib}");
        }
    }
}
