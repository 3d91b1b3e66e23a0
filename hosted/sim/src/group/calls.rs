//! What barriers and all-gathers promise.

use std::collections::{BTreeMap, BTreeSet};

use weft_core::group::GroupId;
use weft_core::ids::Peer;

use super::Living;
use super::node::GroupEvent;
use crate::protocol::Violation;

/// A value with the life of its member, and its number among the messages of that.
pub(super) type Value = Option<(u32, u64, Vec<u8>)>;

/// What members have entered and left so far.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct CallLedger {
    /// The last barrier that a member has arrived at, and the last that it has left.
    barriers: BTreeMap<(GroupId, Living), (u64, u64)>,
    /// What each member has gathered.
    gathered: BTreeMap<(GroupId, u64, Living), Vec<Value>>,
    /// Messages that are values: they are received by no consumer.
    values: BTreeSet<(GroupId, Living, u64)>,
    /// The last all-gather that a member which came back has no part in.
    since: BTreeMap<(GroupId, Living), u64>,
}

impl CallLedger {
    /// What a member that is removed has gathered does not bind the others.
    pub(super) fn remove(&mut self, living: Living) {
        self.gathered.retain(|(.., by), _| *by != living);
    }

    /// Whether message `seq` of `root` is a value that a member has gathered.
    pub(super) fn is_value(&self, group: GroupId, root: Living, seq: u64) -> bool {
        self.values.contains(&(group, root, seq))
    }

    /// `by` has come back, and goes on behind these calls. All `bound` members count it: what they
    /// have arrived at before may be left without it.
    pub(super) fn open(
        &mut self,
        (by, group): (Living, GroupId),
        (left, taken): (u64, u64),
        bound: &[Living],
    ) {
        let others = bound.iter().filter(|other| **other != by);
        let least = others.map(|other| self.arrived(group, *other)).min().unwrap_or(left);
        self.barriers.entry((group, by)).or_insert((left.max(least), left));
        self.since.entry((group, by)).or_insert(taken);
    }

    fn arrived(&self, group: GroupId, living: Living) -> u64 {
        self.barriers.get(&(group, living)).map_or(0, |it| it.0)
    }

    /// `bound` are the present lives of those members that are not removed and that all count.
    pub(super) fn judge(
        &mut self,
        by: Living,
        event: &GroupEvent,
        (list, bound): (&[Peer], &[Living]),
    ) -> Result<(), Violation> {
        match event {
            GroupEvent::Arrived { group, number } => {
                let arrived = &mut self.barriers.entry((*group, by)).or_default().0;
                *arrived = (*arrived).max(*number);
                Ok(())
            }
            GroupEvent::Left { group, number } => {
                let late = bound.iter().find(|it| self.arrived(*group, **it) < *number).copied();
                let left = &mut self.barriers.entry((*group, by)).or_default().1;
                let last = std::mem::replace(left, *number);
                if late.is_none() && last < *number {
                    return Ok(());
                }
                let what = format!("{by:?} has left {last}, and leaves {number} before {late:?}");
                Err(Violation::new("barrier", what))
            }
            GroupEvent::Gathered { group, number, values } => {
                self.judge_values(by, (*group, *number), values, (list, bound))
            }
            GroupEvent::Chunk { .. }
            | GroupEvent::Changed { .. }
            | GroupEvent::Opened { .. }
            | GroupEvent::Abandoned { .. }
            | GroupEvent::Removed { .. }
            | GroupEvent::RootLost { .. } => Ok(()),
        }
    }

    fn judge_values(
        &mut self,
        by: Living,
        (group, number): (GroupId, u64),
        values: &[Value],
        (list, bound): (&[Peer], &[Living]),
    ) -> Result<(), Violation> {
        let broken = |what: String| Err(Violation::new("gather", format!("{by:?}: {what}")));
        for (peer, value) in list.iter().zip(values) {
            let living = bound.iter().find(|(other, _)| other == peer);
            let has_part = |living: &&Living| self.since(group, **living) < number;
            match value {
                Some((life, seq, _)) => drop(self.values.insert((group, (*peer, *life), *seq))),
                None if living.filter(has_part).is_some() => {
                    return broken(format!("no value {number} of {peer}, which is live"));
                }
                None => {}
            }
        }
        if !bound.contains(&by) {
            return Ok(());
        }
        let all = (group, number, (Peer(0), 0))..=(group, number, (Peer(u16::MAX), 0));
        if let Some(other) = self.gathered.range(all).find(|(_, other)| *other != values) {
            return broken(format!("gathers {values:?} in {number}, another {other:?}"));
        }
        self.gathered.insert((group, number, by), values.to_vec());
        Ok(())
    }

    fn since(&self, group: GroupId, living: Living) -> u64 {
        self.since.get(&(group, living)).copied().unwrap_or(0)
    }
}
