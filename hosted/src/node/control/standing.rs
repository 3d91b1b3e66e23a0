//! How nodes stand in the DIR net, and what an operator may have done with a whole one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What may be done with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeOrder {
    /// Shut it out everywhere, end its component and its tasks, and let no later life of it in.
    Isolate,
    /// Let it come back, as another life.
    Release,
}

/// How a component stands in the DIR net.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirNetStatus {
    /// `manager`, `backup`, `joining` or `excluded`.
    pub role: String,
    /// The reign it knows: how many there were.
    pub epoch: u32,
    /// And whose it is.
    pub manager: u16,
    /// The first life of its supervisor.
    pub boot: u32,
    /// How many components there were before it in that life of the node.
    pub generation: u32,
    /// The nodes that it suspects.
    pub suspects: Vec<u16>,
    /// The nodes that were removed and have not come back.
    pub removed: Vec<u16>,
    /// Of those, the ones that may not come back before they are released.
    pub isolated: Vec<u16>,
    /// What it knows of the nodes that have tasks.
    pub database: Vec<EntryStatus>,
    /// The nodes that take no part in broadcasts any more, this one included.
    pub left_broadcasts: Vec<u16>,
    /// How many words it has refused, by reason.
    pub refused: BTreeMap<String, u32>,
}

/// What the replicated database holds of a node that has tasks, as one component knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryStatus {
    /// Which node.
    pub node: u16,
    /// How many errors its tasks have had, in all its lives.
    pub errors: u32,
    /// And how many each of them.
    pub task_errors: Vec<u16>,
}
