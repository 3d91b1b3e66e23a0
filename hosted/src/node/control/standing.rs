//! The state of nodes in the DIR net, and an operator's orders about whole nodes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ScriptStatus;
use weft_core::dirnet::{Timing, View};
use weft_core::ids::{Incarnation, Rank};

/// A peer as a node sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerStatus {
    /// Its rank.
    pub rank: u16,
    /// Its running incarnation, when it has one.
    pub incarnation: Option<u32>,
    /// Whether messages have gone to it and back.
    pub joined: bool,
}

/// An order about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeOrder {
    /// Fence it everywhere, end its component and its tasks, and admit no later incarnation of it.
    Isolate,
    /// Admit its later incarnations again.
    Release,
    /// Make it the manager. The order may be lost, and may be repeated.
    HandOver,
}

/// The state of a component in the DIR net.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirNetStatus {
    /// `manager`, `backup`, `agent`, `joining` or `excluded`.
    pub role: String,
    /// The epoch of the term that it knows.
    pub epoch: u32,
    /// The manager of that term.
    pub manager: u16,
    /// Its boot: the number of the boot's first incarnation.
    pub boot: u32,
    /// How many components there were before it in that boot.
    pub generation: u32,
    /// Its timing.
    pub timing: TimingStatus,
    /// The nodes that it suspects.
    pub suspects: Vec<u16>,
    /// The nodes that were removed and have not come back.
    pub removed: Vec<u16>,
    /// Of those, the ones that may not come back before they are released.
    pub isolated: Vec<u16>,
    /// The view that it shows.
    pub view: ViewStatus,
    /// Whether the membership may be another by now: it does not hear its manager, is itself a
    /// manager that is not heard, or knows of a later view that it cannot show yet.
    pub stale: bool,
    /// What it knows of the nodes that have tasks.
    pub database: Vec<EntryStatus>,
    /// The nodes that take no part in broadcasts any more, this one included.
    pub left_broadcasts: Vec<u16>,
    /// How many frames it has refused, by reason.
    pub refused: BTreeMap<String, u32>,
    /// The recovery script, if the cluster has one.
    pub script: Option<ScriptStatus>,
}

impl DirNetStatus {
    /// Whether it is a member, and not still joining.
    #[must_use]
    pub fn is_member(&self) -> bool {
        ["manager", "backup", "agent"].contains(&self.role.as_str())
    }
}

/// A view: a membership on which all members that show its number agree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewStatus {
    /// Its number; the later of two views has the higher one, and zero is no view.
    pub number: u64,
    /// The epoch of the term in which it was decided.
    pub epoch: u32,
    /// The manager that decided it.
    pub manager: u16,
    /// The members, by rank.
    pub members: Vec<MemberStatus>,
}

/// A member of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Its rank.
    pub rank: u16,
    /// The boot of its node.
    pub boot: u32,
    /// How many components that boot had before this one.
    pub generation: u32,
}

impl<const NODES: usize> From<&View<NODES>> for ViewStatus {
    fn from(view: &View<NODES>) -> Self {
        let number = view.number();
        let member = |node: Rank| {
            let incarnation = view.incarnation(node)?;
            let Incarnation(boot) = incarnation.boot;
            Some(MemberStatus { rank: node.0, boot, generation: incarnation.generation })
        };
        Self {
            number: number.to_bits(),
            epoch: number.term.epoch,
            manager: view.manager().0,
            members: view.members().iter().filter_map(member).collect(),
        }
    }
}

/// The timing in force: the profile of the cluster file, with the values that the file sets. Core's
/// [`Timing`] gives the meaning of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimingStatus {
    /// The profile's name.
    pub profile: String,
    /// S.
    pub send_us: u64,
    /// R.
    pub receive_us: u64,
    /// C.
    pub clear_us: u64,
    /// A.
    pub alarm_us: u64,
    /// W.
    pub window_us: u64,
    /// δ.
    pub delay_us: u64,
    /// k.
    pub losses: u32,
    /// MID.
    pub candidate_us: u64,
    /// JOIN.
    pub join_us: u64,
    /// How soon a clone must be heard of, in milliseconds.
    pub clone_ms: u64,
    /// How soon a node that was reset must be heard of, in milliseconds.
    pub reboot_ms: u64,
}

impl TimingStatus {
    /// The status of `timing`, which is based on the profile of this name.
    #[must_use]
    pub fn new(profile: &str, timing: &Timing) -> Self {
        Self {
            profile: profile.to_owned(),
            send_us: timing.send.as_micros(),
            receive_us: timing.receive.as_micros(),
            clear_us: timing.clear.as_micros(),
            alarm_us: timing.alarm.as_micros(),
            window_us: timing.window.as_micros(),
            delay_us: timing.delay.as_micros(),
            losses: timing.losses,
            candidate_us: timing.candidate.as_micros(),
            join_us: timing.join.as_micros(),
            clone_ms: timing.clone.as_micros() / 1_000,
            reboot_ms: timing.reboot.as_micros() / 1_000,
        }
    }
}

/// The entry of a node that has tasks in the replicated database, as one component knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryStatus {
    /// The node.
    pub node: u16,
    /// How many errors its tasks have had, in all of its incarnations.
    pub errors: u32,
    /// How many errors each task has had.
    pub task_errors: Vec<u16>,
}
