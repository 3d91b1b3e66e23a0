//! The static configuration that every component of a cluster starts with.

use core::fmt;

use super::{Members, Profile, Term};
use crate::ids::{PeerSet, Rank};
use crate::time::Duration;

/// The part that the cluster file gives a node. There are three: an agent is never a manager
/// (G-28).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Part {
    /// Decides for the network.
    Manager,
    /// Watches the manager and may succeed it.
    #[default]
    Backup,
    /// Takes part, and never succeeds a manager.
    Agent,
}

/// At most `max` restarts `within` a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RestartLimit {
    /// The most restarts in one window (r).
    pub max: u16,
    /// The length of the window (t).
    pub within: Duration,
}

impl RestartLimit {
    /// The largest r for which every restart is remembered; beyond it, some are remembered as a
    /// group.
    pub const EXACT: u16 = 7;
}

/// How often a recovery is tried before it escalates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Restarts of one task, and clones of one component; at most [`RestartLimit::EXACT`].
    pub restarts: RestartLimit,
    /// Resets of one node. A node that never comes back is reset once per
    /// [`Timing::reset_period`](super::Timing::reset_period), so the window must be longer than
    /// `max` of them; then the node is isolated in the end.
    pub resets: RestartLimit,
}

/// Why a configuration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// A cluster has 1 to `NODES` nodes, at most 64.
    Nodes(usize),
    /// This node is not one of them.
    NotAMember(Rank),
    /// There must be exactly one manager (G-28).
    Managers(usize),
    /// There are never that many members.
    MinAlive(u16),
    /// More restarts than can be remembered, or a limit of restarts or resets over a window of
    /// zero.
    RestartLimit(RestartLimit),
    /// A node that never comes back would be reset forever, once per `period`.
    ResetWindow {
        /// The limit of resets.
        resets: RestartLimit,
        /// [`Timing::reset_period`](super::Timing::reset_period).
        period: Duration,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(n) => write!(f, "{n} nodes; a cluster has 1 to {}", PeerSet::CAPACITY),
            Self::NotAMember(rank) => write!(f, "node {rank} is no member"),
            Self::Managers(n) => write!(f, "{n} managers; a cluster starts with exactly one"),
            Self::MinAlive(n) => write!(f, "min_alive = {n} is more than there are nodes"),
            Self::RestartLimit(limit) => {
                let most = RestartLimit::EXACT;
                write!(f, "{} times in {} ns; ", limit.max, limit.within.0)?;
                write!(f, "at most {most} restarts, and some time for restarts and resets")
            }
            Self::ResetWindow { resets: RestartLimit { max, within }, period } => {
                write!(
                    f,
                    "{max} resets within {} ns, of which each may take {} ns: ",
                    within.0, period.0
                )?;
                write!(f, "a node that never comes back would be reset forever")
            }
        }
    }
}

impl core::error::Error for ConfigError {}

/// A checked configuration of a cluster of at most `NODES` nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config<const NODES: usize> {
    me: Rank,
    nodes: u16,
    parts: [Part; NODES],
    manager: Rank,
    profile: Profile,
    min_alive: u16,
    limits: Limits,
}

impl<const NODES: usize> Config<NODES> {
    /// The configuration of node `me` of a cluster with these parts. Decisions need `min_alive`
    /// members that are thought alive, including the one that decides; 1 prefers availability
    /// (G-11).
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn new(
        me: Rank,
        parts: &[Part],
        profile: Profile,
        min_alive: u16,
        limits: Limits,
    ) -> Result<Self, ConfigError> {
        const { assert!(NODES <= PeerSet::CAPACITY, "members are kept in a set of 64") };
        let nodes = match u16::try_from(parts.len()) {
            Ok(nodes) if nodes > 0 && parts.len() <= NODES => nodes,
            Ok(_) | Err(_) => return Err(ConfigError::Nodes(parts.len())),
        };
        if me.0 >= nodes {
            return Err(ConfigError::NotAMember(me));
        }
        let managers = (0..).map(Rank).zip(parts).filter(|(_, part)| **part == Part::Manager);
        let manager = match (managers.clone().count(), managers.map(|(rank, _)| rank).next()) {
            (1, Some(rank)) => rank,
            (count, _) => return Err(ConfigError::Managers(count)),
        };
        if min_alive > nodes {
            return Err(ConfigError::MinAlive(min_alive));
        }
        let Limits { restarts, resets } = limits;
        if restarts.max > RestartLimit::EXACT || restarts.within.0 == 0 {
            return Err(ConfigError::RestartLimit(restarts));
        }
        if resets.within.0 == 0 {
            return Err(ConfigError::RestartLimit(resets));
        }
        let period = profile.timing().reset_period();
        if period.0.saturating_mul(u64::from(resets.max)) >= resets.within.0 {
            return Err(ConfigError::ResetWindow { resets, period });
        }
        let mut all = [Part::default(); NODES];
        all[..parts.len()].copy_from_slice(parts);
        Ok(Self { me, nodes, parts: all, manager, profile, min_alive, limits })
    }

    /// The rank of this node.
    #[must_use]
    pub const fn me(&self) -> Rank {
        self.me
    }

    /// The number of nodes.
    #[must_use]
    pub const fn nodes(&self) -> u16 {
        self.nodes
    }

    /// The timing profile.
    #[must_use]
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The limits of recovery attempts.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The number of members that must be thought alive for a decision.
    #[must_use]
    pub const fn min_alive(&self) -> u16 {
        self.min_alive
    }

    /// The term that the cluster file assigns.
    #[must_use]
    pub const fn first_term(&self) -> Term {
        Term { epoch: 1, claimant: self.manager }
    }

    /// Whether `rank` is a member that may be manager.
    #[must_use]
    pub fn may_manage(&self, rank: Rank) -> bool {
        if super::AGENT_MANAGES.is_planted() {
            return rank.0 < self.nodes;
        }
        self.others_and_me().contains(rank)
            && self.parts.get(usize::from(rank.0)).is_some_and(|part| *part != Part::Agent)
    }

    /// Every member but this node.
    #[must_use]
    pub fn others(&self) -> Members {
        self.others_and_me().without(self.me)
    }

    /// The members after `rank`, in ring order, `rank` itself last.
    pub fn ring_after(&self, rank: Rank) -> impl Iterator<Item = Rank> + use<NODES> {
        let nodes = self.nodes;
        (1..=nodes).map(move |step| Rank((rank.0 % nodes + step) % nodes))
    }

    fn others_and_me(&self) -> Members {
        (0..self.nodes).map(Rank).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dirnet::Timing;
    use std::vec::Vec;

    const LIMITS: Limits = Limits {
        restarts: RestartLimit { max: 3, within: Duration::from_millis(1_000) },
        resets: RestartLimit { max: 3, within: Duration::from_millis(100_000) },
    };

    fn config(me: u16, parts: &[Part], min_alive: u16) -> Result<Config<4>, ConfigError> {
        let profile = Profile::new(Timing::LAN).unwrap();
        Config::new(Rank(me), parts, profile, min_alive, LIMITS)
    }

    fn limited(restarts: RestartLimit, resets: RestartLimit) -> Result<Config<4>, ConfigError> {
        let profile = Profile::new(Timing::LAN).unwrap();
        Config::new(Rank(0), &[Part::Manager], profile, 1, Limits { restarts, resets })
    }

    #[test]
    fn x6_limits_that_cannot_be_kept_are_refused() {
        let Limits { restarts, resets } = LIMITS;
        let many = RestartLimit { max: RestartLimit::EXACT + 1, ..resets };
        let never = RestartLimit { within: Duration(0), ..resets };
        for (restarts, resets, odd) in
            [(many, resets, many), (never, resets, never), (restarts, never, never)]
        {
            assert_eq!(limited(restarts, resets), Err(ConfigError::RestartLimit(odd)));
        }
    }

    #[test]
    fn x6_resets_that_no_node_can_reach_are_refused_to_the_nanosecond() {
        let period = Timing::LAN.reset_period();
        let within = |max: u16, more| {
            let within = Duration(u64::from(max) * period.0 + more);
            RestartLimit { max, within }
        };
        for max in [1, 2, RestartLimit::EXACT, u16::MAX] {
            let resets = within(max, 0);
            let refused = ConfigError::ResetWindow { resets, period };
            assert_eq!(limited(LIMITS.restarts, resets), Err(refused));
            assert!(limited(LIMITS.restarts, within(max, 1)).is_ok(), "{max}");
        }
        assert!(limited(LIMITS.restarts, within(0, 1)).is_ok(), "never reset, always isolated");
    }

    #[test]
    fn g28_exactly_one_manager_is_configured() {
        use Part::{Agent, Backup, Manager};
        assert_eq!(config(0, &[Backup, Agent], 1), Err(ConfigError::Managers(0)));
        assert_eq!(config(0, &[Manager, Backup, Manager], 1), Err(ConfigError::Managers(2)));
        let one = config(0, &[Agent, Manager, Backup], 1).unwrap();
        assert_eq!(one.first_term(), Term { epoch: 1, claimant: Rank(1) });
        assert!(!one.may_manage(Rank(0)) && one.may_manage(Rank(2)) && !one.may_manage(Rank(3)));
    }

    #[test]
    fn numbers_that_fit_no_cluster_are_refused() {
        use Part::{Backup, Manager};
        let five = [Manager, Backup, Backup, Backup, Backup];
        assert_eq!(config(0, &five, 1), Err(ConfigError::Nodes(5)));
        assert_eq!(config(0, &[], 1), Err(ConfigError::Nodes(0)));
        assert_eq!(config(2, &five[..2], 1), Err(ConfigError::NotAMember(Rank(2))));
        assert_eq!(config(0, &five[..2], 3), Err(ConfigError::MinAlive(3)));
    }

    #[test]
    fn the_ring_goes_round_once_and_ends_where_it_began() {
        let config = config(0, &[Part::Manager, Part::Backup, Part::Backup], 1).unwrap();
        let ring: Vec<_> = config.ring_after(Rank(1)).collect();
        assert_eq!(ring, [2, 0, 1].map(Rank));
    }
}
