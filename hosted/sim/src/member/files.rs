//! What of a node outlives its processes: files, and what its supervisor keeps for its component.

use std::collections::BTreeMap;

use weft_core::dirnet::{
    ComponentIncarnation, Database, Kept, Progress, SNAPSHOT_LEN_MAX, TASKS_MAX, Term,
};
use weft_core::ids::{Incarnation, Rank};

use super::NODES;

/// Of one node.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeFiles {
    /// The last component that was started, and which incarnation of its peer that is.
    last: Option<(ComponentIncarnation, Incarnation)>,
    term: Option<Term>,
    /// The newest first.
    snapshots: [Vec<u8>; 2],
    digest: Option<u32>,
    /// The last boot of this node that its peers have removed, as far as it was notified.
    removed: Incarnation,
    /// The last isolation of this node that its supervisor knows to be released.
    pub(super) released: Incarnation,
    /// By the supervisor, in its present boot: the removed boots of peers.
    acknowledged: BTreeMap<Rank, Incarnation>,
    /// The generation that the manager has ordered.
    pub(super) wanted: u32,
    /// What the component shows to its I'm-Alive Task.
    pub(super) progress: Progress,
}

impl NodeFiles {
    /// The supervisor of a new boot begins.
    pub(super) fn begin_boot(&mut self) {
        self.acknowledged.clear();
        self.wanted = 0;
    }

    /// The next component begins, as this incarnation of its peer, in that boot.
    pub(super) fn begin_component(
        &mut self,
        peer: Incarnation,
        boot: Incarnation,
    ) -> ComponentIncarnation {
        let last = self.last.filter(|(last, _)| last.boot == boot);
        let next = last.map_or(0, |(last, _)| last.generation + 1);
        let generation = if last.is_some() { next.max(self.wanted) } else { 0 };
        let incarnation = ComponentIncarnation { boot, generation };
        self.last = Some((incarnation, peer));
        self.progress = Progress { generation, ..Progress::default() };
        incarnation
    }

    /// The last component that was started.
    pub(super) fn incarnation(&self) -> ComponentIncarnation {
        let none = ComponentIncarnation { boot: Incarnation(0), generation: 0 };
        self.last.map_or(none, |(last, _)| last)
    }

    /// The boot of that incarnation of the component's peer, if it is the last one.
    pub(super) fn boot_of(&self, peer: Incarnation) -> Option<Incarnation> {
        self.last.filter(|(_, last)| *last == peer).map(|(last, _)| last.boot)
    }

    /// The newest snapshot is lost: what is left is older.
    pub(super) fn lose_newest(&mut self) {
        self.snapshots[0] = std::mem::take(&mut self.snapshots[1]);
        self.digest = None;
    }

    pub(super) fn keep(&mut self, term: Term) {
        self.term = Some(term);
    }

    /// Saves what the first `nodes` nodes are known to be, if that has changed.
    pub(super) fn save(&mut self, nodes: u16, database: &Database<NODES, TASKS_MAX>) {
        if self.digest != Some(database.digest()) {
            self.digest = Some(database.digest());
            self.snapshots.swap(0, 1);
            self.snapshots[0] = database.save(nodes, &mut [0; SNAPSHOT_LEN_MAX]).to_vec();
        }
    }

    pub(super) fn kept(&self) -> Kept<'_> {
        let snapshots = self.snapshots.each_ref().map(Vec::as_slice);
        Kept { term: self.term, snapshots, removed: self.removed }
    }

    /// A peer has removed the boots of this node up to `boot`.
    pub(super) fn handle_removed(&mut self, boot: Incarnation) {
        self.removed = boot.max(self.removed);
    }

    /// The isolations of this node up to this one are released.
    pub(super) fn handle_released(&mut self, boot: Incarnation) {
        self.released = boot.max(self.released);
    }

    /// The supervisor admits the boots of `node` up to `boot` no more.
    pub(super) fn acknowledge(&mut self, node: Rank, boot: Incarnation) {
        let last = self.acknowledged.entry(node).or_default();
        *last = boot.max(*last);
    }

    /// Whether the supervisor admits that boot of `node`.
    pub(super) fn admits(&self, node: Rank, boot: Incarnation) -> bool {
        self.acknowledged.get(&node).is_none_or(|removed| boot > *removed)
    }
}
