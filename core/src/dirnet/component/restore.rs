//! A component begins with the database that an earlier one of its node has saved.
//!
//! What the node said of its tasks and what their errors were goes on under the new life. What an
//! operator has to undo, isolation, goes on too, and who is isolated is fenced again, since the
//! earlier component may have died before it was. Who was a member goes on as one: should it be
//! dead and everybody else have begun anew meanwhile, nobody would miss it. Who was down is learned
//! anew: two halves of a partition remove each other, and if both remembered that in all their
//! lives, neither would ever speak to the other again. How often nodes were reset goes on, or one
//! that cannot live would be reset for ever if it brought all others down. A snapshot that does not
//! hold is counted, and what is missing is asked for, as by any joiner (G-23): the own entry, too,
//! as the others know it from earlier lives.

use super::sync::Past;
use super::{Component, Output, Role};
use crate::dirnet::{Database, ImageError, Level, Life, Record, Reject, Task};
use crate::time::Instant;

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    /// Takes the first snapshot that holds, if any does.
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

    /// What earlier lives of this node have said of its tasks: the own entry as it was restored, or
    /// as another member knew it; that of a first life where nobody knows of an earlier one. None
    /// while that is not known.
    #[must_use]
    pub fn past(&self) -> Option<&[Task]> {
        let is_settled = match self.role() {
            Role::Joining | Role::Excluded => false,
            // It asks nobody.
            Role::Manager => true,
            Role::Backup => self.sync.past == Past::Settled,
        };
        self.db.record(self.me()).filter(|_| is_settled).map(Record::tasks)
    }

    /// Another member has been asked for the own entry, and has this of an earlier life. It goes on
    /// behind what this life has said by now, which is nothing about tasks.
    pub(super) fn learn_past(&mut self, said: &Record<TASKS>) {
        if core::mem::replace(&mut self.sync.past, Past::Settled) == Past::Settled {
            return;
        }
        let me = self.me();
        let Some(own) = self.db.record(me).copied() else { return };
        let is_earlier = said.life != Life::default() && said.life < self.life;
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
        if is_forgotten || standing.is_past(self.life) || self.life < record.life {
            return Err(ImageError::Field);
        }
        if record.life != Life::default() && record.task_count != fresh.task_count {
            return Err(ImageError::Count);
        }
        Ok(db)
    }

    fn go_on_with(&mut self, db: Database<NODES, TASKS>, fresh: &Record<TASKS>) {
        self.db = db;
        if let Some(record) = self.db.record(self.me()).filter(|it| it.life < self.life) {
            let went_on = record.gone_on_as(fresh);
            self.db.merge(self.me(), &went_on);
        }
        for node in self.config.others().iter() {
            match self.db.standing(node).level {
                Level::Isolated => self.sync.refences.insert(node),
                Level::Up if crate::dirnet::MEMBERS_ARE_FORGOTTEN.is_planted() => {
                    self.db.forget_standing(node);
                }
                Level::Up | Level::Released => {}
                Level::Down => self.db.forget_standing(node),
            }
        }
    }

    /// Fences one of those again whom an earlier component knew as isolated.
    pub(super) fn refence(&mut self) {
        let Some(node) = self.sync.refences.iter().next() else { return };
        self.sync.refences.remove(node);
        let standing = self.db.standing(node);
        if standing.level == Level::Isolated {
            self.outputs.push(Output::Fence { node, boot: standing.life.boot });
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
