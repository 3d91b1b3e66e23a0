//! The configuration of the DIR net's machine, from the cluster file.

use weft_core::dirnet::{Config, Limits, Part, Profile, RestartLimit};
use weft_core::ids::Rank;
use weft_core::time;

use crate::cluster::{self, Cluster};
use crate::node::{NodeError, PEERS};

/// The configuration of core's machine that follows from the cluster file.
pub(in crate::node) fn config(cluster: &Cluster, me: Rank) -> Result<Config<PEERS>, NodeError> {
    let refused = |reason: &dyn std::fmt::Display| NodeError::Plan(reason.to_string());
    let part = |part: &cluster::Part| match part {
        cluster::Part::Manager => Part::Manager,
        cluster::Part::Backup => Part::Backup,
        cluster::Part::Agent => Part::Agent,
    };
    let parts: Vec<Part> = cluster.dirnet.parts(cluster.nodes).iter().map(part).collect();
    let profile = profile(cluster)?;
    Config::new(me, &parts, profile, cluster.dirnet.min_alive(cluster.nodes), limits(cluster))
        .map_err(|error| refused(&error))
}

/// The cluster's timing.
pub(in crate::node) fn profile(cluster: &Cluster) -> Result<Profile, NodeError> {
    Profile::new(cluster.dirnet.timing()).map_err(|rule| NodeError::Plan(rule.to_string()))
}

/// The limits on restarts of components and resets of nodes.
fn limits(cluster: &Cluster) -> Limits {
    let cluster::Restart { max, within_s } = cluster.dirnet.reset;
    let max = u8::try_from(max).unwrap_or(u8::MAX).into();
    let within = time::Duration::from_millis(within_s.saturating_mul(1_000));
    Limits { restarts: restart_limit(cluster), resets: RestartLimit { max, within } }
}

/// The restart intensity of the cluster file, in the numbers that core keeps.
fn restart_limit(cluster: &Cluster) -> RestartLimit {
    let within_ns = u128::from(cluster.restart.within_s) * 1_000_000_000;
    let most = usize::from(RestartLimit::EXACT);
    let max = cluster.restart.max.min(most);
    // The most that core counts, in a window shortened in proportion.
    let within_ns = match cluster.restart.max {
        wanted if wanted > most => within_ns * most as u128 / wanted as u128,
        _ => within_ns,
    };
    let max = u16::try_from(max).unwrap_or(RestartLimit::EXACT);
    let within_ns = u64::try_from(within_ns.max(1)).unwrap_or(u64::MAX);
    RestartLimit { max, within: time::Duration(within_ns) }
}

#[cfg(test)]
mod tests;
