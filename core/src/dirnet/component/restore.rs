//! Restores the database that an earlier component of this node saved.
//!
//! The node's task states and their errors continue under the new incarnation. An isolation, which
//! only an operator can end, continues too, and the isolated node is fenced again, since the
//! earlier component may have died before it fenced it. Members stay members: if one has died and
//! all other nodes have restarted meanwhile, no node would miss it otherwise. Which nodes were down
//! is not restored but learned again: two halves of a partition remove each other, and if all of
//! their incarnations remembered that, the halves would never speak to each other again. Reset
//! counts continue; otherwise a node that cannot start would be reset forever if it brought all
//! others down. A snapshot that fails its checks is counted, and what is missing is requested, as
//! by any joiner (G-23), including this node's own entry as the others know it from earlier
//! incarnations.

use super::sync::Past;
use super::{Component, Role};
use crate::dirnet::{ComponentIncarnation, Database, ImageError, Level, Record, Reject, Task};
use crate::time::Instant;

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    /// Restores the first valid snapshot, if there is one.
    pub(super) fn restore(&mut self, now: Instant, snapshots: [&[u8]; 2], fresh: &Record<TASKS>) {
        self.sync.past = Past::Missing;
        if crate::dirnet::SNAPSHOTS_ARE_IGNORED.is_planted() {
            return;
        }
        for bytes in snapshots.into_iter().filter(|bytes| !bytes.is_empty()) {
            match self.restored(bytes, fresh) {
                Ok(mut db) => {
                    db.forget_later_resets(now);
                    self.sync.past = Past::Settled;
                    return self.go_on_with(db, fresh);
                }
                Err(error) => self.rejects.note(error.into()),
            }
        }
    }

    /// What earlier incarnations of this node recorded of its tasks: this node's own entry as it
    /// was restored, or as another member knew it; the entry of a first incarnation if no node
    /// knows of an earlier one. `None` while that is not known.
    #[must_use]
    pub fn past(&self) -> Option<&[Task]> {
        let is_settled = match self.role() {
            Role::Joining | Role::Excluded => false,
            // A manager requests it from no other node.
            Role::Manager => true,
            Role::Backup => self.sync.past == Past::Settled,
        };
        self.db.record(self.me()).filter(|_| is_settled).map(Record::tasks)
    }

    /// Merges this node's own entry of an earlier incarnation, as another member returned it on
    /// request. The entry continues after what this incarnation has recorded by now, which does not
    /// concern tasks.
    pub(super) fn learn_past(&mut self, said: &Record<TASKS>) {
        if core::mem::replace(&mut self.sync.past, Past::Settled) == Past::Settled {
            return;
        }
        let me = self.me();
        let Some(own) = self.db.record(me).copied() else { return };
        let is_earlier = said.incarnation != ComponentIncarnation::default()
            && said.incarnation < self.incarnation;
        if is_earlier && said.task_count == own.task_count && own.error_count == 0 {
            let (seq, status) = (own.seq.wrapping_add(1), own.status);
            self.db.merge(me, &Record { seq, status, ..said.gone_on_as(&own) });
        }
    }

    fn restored(
        &self,
        bytes: &[u8],
        fresh: &Record<TASKS>,
    ) -> Result<Database<NODES, TASKS>, ImageError> {
        let db = Database::restore(self.config.nodes(), bytes)?;
        let me = self.me();
        let (standing, record) = (db.standing(me), db.record(me).copied().unwrap_or_default());
        let is_forgotten =
            standing.isolation().is_some() && crate::dirnet::ISOLATED_NODES_FORGET.is_planted();
        if is_forgotten
            || standing.is_past(self.incarnation)
            || self.incarnation < record.incarnation
        {
            return Err(ImageError::Field);
        }
        if record.incarnation != ComponentIncarnation::default()
            && record.task_count != fresh.task_count
        {
            return Err(ImageError::Count);
        }
        Ok(db)
    }

    fn go_on_with(&mut self, db: Database<NODES, TASKS>, fresh: &Record<TASKS>) {
        self.db = db;
        if let Some(record) =
            self.db.record(self.me()).filter(|it| it.incarnation < self.incarnation)
        {
            let went_on = record.gone_on_as(fresh);
            self.db.merge(self.me(), &went_on);
        }
        for node in self.config.others().iter() {
            match self.db.standing(node).level {
                Level::Isolated => self.sync.refences.insert(node),
                Level::Up if crate::dirnet::MEMBERS_ARE_FORGOTTEN.is_planted() => {
                    self.db.forget_standing(node);
                }
                Level::Up => {}
                // That its isolations are over is not forgotten.
                Level::Released if crate::dirnet::RELEASED_STAY_REMOVED.is_planted() => {}
                Level::Down | Level::Released => self.db.forget_standing(node),
            }
        }
    }

    /// Fences again one of the nodes that an earlier component knew to be isolated.
    pub(super) fn refence(&mut self) {
        let Some(node) = self.sync.refences.iter().next() else { return };
        self.sync.refences.remove(node);
        let standing = self.db.standing(node);
        if standing.level == Level::Isolated {
            self.fence(node, standing.incarnation.boot);
        }
    }
}

impl From<ImageError> for Reject {
    fn from(error: ImageError) -> Self {
        match error {
            ImageError::Checksum => Self::ImageChecksum,
            ImageError::Count => Self::ImageCount,
            ImageError::Field => Self::ImageField,
            ImageError::Format => Self::ImageFormat,
        }
    }
}
