//! Work ids: a read of one stream.

use super::GROUP_WORK;
use super::seats::Grank;
use crate::fabric::WorkId;

/// The purpose of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Errand {
    pub(super) group: u16,
    pub(super) root: Grank,
    /// Which of the reads of the stream.
    pub(super) index: usize,
}

impl Errand {
    pub(super) fn id(self) -> WorkId {
        let detail = u64::from(self.group) << 24 | u64::from(self.root.0) << 8;
        WorkId::new(GROUP_WORK, detail | self.index as u64 & 0xff)
    }

    /// The purpose of the work with this id; `None` if [`Self::id`] did not make it.
    pub(super) fn of(id: WorkId) -> Option<Self> {
        let field = |shift: u32| (id.detail() >> shift & 0xffff) as u16;
        let index = usize::from(field(0) & 0xff);
        let is_own = id.machine() == GROUP_WORK;
        is_own.then(|| Self { group: field(24), root: Grank(field(8)), index })
    }
}
