//! The saved databases of a node, and damage to them.
//!
//! Two snapshots are written alternately, as by a node on a host. For each, it is recorded whether
//! it was damaged since, so that a component's restore can be checked.

use weft_core::dirnet::{Database, Kept, Level, Reject, SNAPSHOT_LEN_MAX, TASKS_MAX, Term};
use weft_core::ids::{Incarnation, Rank};

use super::Machine;
use crate::dirnet::strike::SnapshotDamage;

/// A snapshot, and its content when it was saved.
#[derive(Clone, Debug, Default)]
struct Snapshot {
    bytes: Vec<u8>,
    saved: Vec<u8>,
}

impl Snapshot {
    fn is_damaged(&self) -> bool {
        self.bytes != self.saved
    }

    fn flip(&mut self, draw: u64) {
        let bits = self.bytes.len() as u64 * 8;
        if let Some(bit) = draw.checked_rem(bits) {
            self.bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
    }

    /// Truncates it, but not to nothing: an empty snapshot counts as none.
    fn cut(&mut self, draw: u64) {
        let len = self.bytes.len() as u64;
        if let Some(at) = draw.checked_rem(len.saturating_sub(1)) {
            self.bytes.truncate(1 + at as usize);
        }
    }
}

/// The last two snapshots of one node.
#[derive(Clone, Debug, Default)]
pub(super) struct SavedSnapshots {
    digest: u32,
    snapshots: [Snapshot; 2],
}

impl SavedSnapshots {
    /// Saves the entries of the first `nodes` nodes, if any has changed since.
    pub(super) fn save(&mut self, nodes: u16, db: &Database<8, TASKS_MAX>) {
        if db.digest() == self.digest {
            return;
        }
        self.digest = db.digest();
        self.snapshots.swap(0, 1);
        let saved = db.save(nodes, &mut [0; SNAPSHOT_LEN_MAX]).to_vec();
        self.snapshots[0] = Snapshot { bytes: saved.clone(), saved };
    }

    pub(super) fn kept(&self, term: Option<Term>, removed: Incarnation) -> Kept<'_> {
        let snapshots = self.snapshots.each_ref().map(|it| it.bytes.as_slice());
        Kept { term, snapshots, removed }
    }

    pub(super) fn damage(&mut self, damage: SnapshotDamage) {
        let [newest, before] = &mut self.snapshots;
        match damage {
            SnapshotDamage::Flip(draw) => newest.flip(draw),
            SnapshotDamage::Cut(draw) => newest.cut(draw),
            SnapshotDamage::Both(draw) => {
                newest.flip(draw);
                before.cut(draw / 7);
            }
        }
    }

    /// Whether the newest snapshot differs from what was saved.
    pub(super) fn is_newest_damaged(&self) -> bool {
        self.snapshots[0].is_damaged()
    }

    /// What is wrong with the state that `component`, which has just started, restored: each
    /// damaged snapshot must be counted, and the isolations must be those of the first intact one.
    pub(super) fn judge(&self, nodes: u16, component: &Machine) -> Option<String> {
        let is_damaged = |it: &&Snapshot| it.is_damaged();
        let damaged = self.snapshots.iter().take_while(is_damaged).count();
        let reasons =
            [Reject::ImageChecksum, Reject::ImageCount, Reject::ImageField, Reject::ImageFormat];
        let refused: u32 = reasons.iter().map(|reason| component.rejects().of(*reason)).sum();
        let (me, refused) = (component.me(), refused as usize);
        if refused < damaged {
            return Some(format!("node {me} took {} damaged snapshots", damaged - refused));
        }
        // An intact snapshot may still be refused for its content.
        let whole = self.snapshots.get(damaged).filter(|_| refused == damaged)?;
        let restored = Database::<8, TASKS_MAX>::restore(nodes, &whole.bytes).ok()?;
        let is_isolated =
            |db: &Database<8, TASKS_MAX>, node| db.standing(node).level == Level::Isolated;
        let others = (0..nodes).map(Rank).filter(|node| *node != me);
        let changed = others
            .into_iter()
            .find(|node| is_isolated(&restored, *node) != is_isolated(component.database(), *node));
        changed.map(|node| format!("node {me} has not restored where node {node} stands"))
    }
}
