//! `[dirnet]`: who watches whom, how patiently, and who decides.

use weft_core::checksum::fnv1a;
use weft_core::dirnet::Timing;

use super::Restart;
use super::key::{self, RESET_WITHIN_S_MAX};
use super::limit::{Limit, LimitError};
use super::timing::Overrides;
use crate::words::words;

/// The DIR net of a cluster: detection, isolation, recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirNet {
    /// `profile`: how long silence is borne.
    pub profile: Profile,
    /// `timing`: values that are set instead of the profile's.
    pub timing: Overrides,
    /// `min_alive`: how many members, itself included, must show that they hear a manager before
    /// it removes a node, 1 to 32. A majority: at most one side of a partition removes a node. 1:
    /// one other member must, so every side of two or more removes nodes, and a node that is cut
    /// off alone removes none. [`DirNet::min_alive`] has the default.
    pub min_alive: Option<u16>,
    /// `roles`: the part of every node at the first start; node 0 is the manager and all others
    /// are backups when it is not given.
    pub roles: Option<Vec<Part>>,
    /// `reset`: how often a node that fails is reset, 0 to 255 times; at the next failure it is
    /// isolated. More than 7 are counted in sixths of the window. The window holds all of them for
    /// a node that never comes back, each with the time that it has for that; where it is not
    /// given, it is 180 s or as long as that takes.
    pub reset: Restart,
}

impl DirNet {
    /// The part of each of `nodes` nodes.
    #[must_use]
    pub fn parts(&self, nodes: usize) -> Vec<Part> {
        let first = |rank| if rank == 0 { Part::Manager } else { Part::Backup };
        self.roles.clone().unwrap_or_else(|| (0..nodes).map(first).collect())
    }

    /// How many members a verdict needs: as set; a majority of three nodes or more, and 1 of two,
    /// where a majority would be both and no node could ever be removed.
    #[must_use]
    pub fn min_alive(&self, nodes: usize) -> u16 {
        let default = if nodes > 2 { majority(nodes) } else { 1 };
        self.min_alive.unwrap_or_else(|| u16::try_from(default).unwrap_or(u16::MAX))
    }

    /// The values in force: the profile's, with those that are set.
    #[must_use]
    pub fn timing(&self) -> Timing {
        self.timing.apply(self.profile.timing())
    }

    /// A number that differs, all but certainly, when two nodes of a cluster of `nodes` would judge
    /// each other differently: by their timing, `min_alive`, `reset`, or the part of any node.
    #[must_use]
    pub fn digest(&self, nodes: usize) -> u64 {
        let t = self.timing();
        let spans = [t.send, t.receive, t.clear, t.alarm, t.window, t.delay];
        let others = [t.candidate, t.join, t.clone, t.reboot].map(|span| span.0);
        let parts = self.parts(nodes).into_iter().map(|part| part as u64);
        let numbers = spans.map(|span| span.0).into_iter().chain(others);
        let reset = [self.reset.max as u64, self.reset.within_s];
        let numbers = numbers.chain([u64::from(t.losses), u64::from(self.min_alive(nodes))]);
        fnv1a(numbers.chain(reset).chain(parts))
    }

    /// How many of `nodes` must hear each other for a verdict: `min_alive`, and of three or more a
    /// second observer.
    #[must_use]
    pub fn deciding(&self, nodes: usize) -> usize {
        usize::from(self.min_alive(nodes)).max(if nodes > 2 { 2 } else { 1 })
    }

    /// What a partition leads to where `min_alive` is set below a majority, in a sentence.
    #[must_use]
    pub fn partition_risk(&self, nodes: usize) -> Option<String> {
        let (min_alive, majority) = (self.min_alive?, majority(nodes));
        (nodes > 1 && usize::from(min_alive) < majority).then(|| {
            format!(
                "warning: after a network split both sides would remove each other \
                 (dirnet.min_alive = {min_alive}); set it to {majority} so that only a majority can"
            )
        })
    }

    /// What the death of the manager's node leads to, in a sentence, where no other node may become
    /// manager.
    #[must_use]
    pub fn succession_risk(&self, nodes: usize) -> Option<String> {
        let parts = self.parts(nodes);
        let manager = parts.iter().position(|part| *part == Part::Manager)?;
        if nodes < 2 || parts.contains(&Part::Backup) {
            return None;
        }
        let key = key::DIRNET_ROLES;
        Some(format!(
            "warning: {key} has no backup, so no node can decide while node {manager} is down"
        ))
    }

    pub(super) fn check(&self, nodes: usize) -> Result<(), LimitError> {
        let limit = Limit::Range { min: 1, max: nodes as u64 };
        limit.admit(key::DIRNET_MIN_ALIVE.path, u64::from(self.min_alive(nodes)))?;
        self.timing.check_limits()?;
        self.check_reset()?;
        let Some(roles) = &self.roles else { return Ok(()) };
        let exactly = |found: usize, limit: Limit, what: &str| {
            let is_right = limit.admit(key::DIRNET_ROLES, found as u64).is_ok();
            let refused = || limit.refuse(key::DIRNET_ROLES, format!("{found} {what}"));
            is_right.then_some(()).ok_or_else(refused)
        };
        let (role, roles_wanted) = (if roles.len() == 1 { "role" } else { "roles" }, nodes as u64);
        exactly(roles.len(), Limit::Exactly { count: roles_wanted, what: "roles" }, role)?;
        let managers = roles.iter().filter(|part| **part == Part::Manager).count();
        exactly(managers, Limit::Exactly { count: 1, what: "manager" }, "managers")
    }
}

impl DirNet {
    /// A node that never comes back is reset again and again while the window holds fewer.
    fn check_reset(&self) -> Result<(), LimitError> {
        let Restart { max, within_s } = self.reset;
        let resets = max as u64;
        key::DIRNET_RESET_MAX.limit.admit(key::DIRNET_RESET_MAX.path, resets)?;
        let window = key::DIRNET_RESET_WITHIN_S;
        window.limit.admit(window.path, within_s)?;
        let period_ms = self.timing().reset_period().0.div_ceil(1_000_000);
        let limit = Limit::ResetWindow { min_s: self.reset_window_min_s(), resets, period_ms };
        limit.admit(window.path, within_s)
    }

    /// The shortest window that holds all resets of a node that never comes back.
    fn reset_window_min_s(&self) -> u64 {
        let period = self.timing().reset_period();
        period.0.saturating_mul(self.reset.max as u64) / 1_000_000_000 + 1
    }

    /// `reset.within_s` where it is not given: the default, or so long that it fits what is.
    pub(super) fn reset_window_s(&self) -> u64 {
        let default = Self::default().reset.within_s;
        self.reset_window_min_s().clamp(default, RESET_WITHIN_S_MAX)
    }
}

impl Default for DirNet {
    fn default() -> Self {
        let (profile, timing) = (Profile::default(), Overrides::default());
        // By hand a node is rarely killed so often; one that cannot live is given up in minutes.
        let reset = Restart { max: 3, within_s: 180 };
        Self { profile, timing, min_alive: None, roles: None, reset }
    }
}

/// The least number that is more than half.
const fn majority(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// How long silence is borne before it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// For many processes on one host, whose processors they share with others.
    #[default]
    Host,
    /// For hosts of their own, or nearly so.
    Lan,
    /// For dedicated polling processors.
    Rdma,
}

/// What a node is at the first start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Decides for the network.
    Manager,
    /// Watches the manager and may follow it.
    Backup,
    /// Takes part, and never follows a manager.
    Agent,
}

words!(
    Profile,
    key::DIRNET_PROFILE,
    "set dirnet.profile to one of these",
    Host = "host",
    Lan = "lan",
    Rdma = "rdma",
);
words!(
    Part,
    key::DIRNET_ROLES,
    "set dirnet.roles to one of these for each node",
    Manager = "manager",
    Backup = "backup",
    Agent = "agent",
);
