//! What barriers and all-gathers promise.

use std::collections::{BTreeMap, BTreeSet};

use weft_core::group::GroupId;
use weft_core::ids::Peer;

use super::Epoch;
use super::node::GroupEvent;
use crate::protocol::Violation;

/// A value with the epoch of its member, and its number among the messages of that.
pub(super) type Value = Option<(u32, u64, Vec<u8>)>;

/// What members have entered and left so far.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct CallLedger {
    /// The last barrier that a member has arrived at, and the last that it has left.
    barriers: BTreeMap<(GroupId, Epoch), (u64, u64)>,
    /// What each member has gathered.
    gathered: BTreeMap<(GroupId, u64, Epoch), Vec<Value>>,
    /// Messages that are values: they are received by no consumer.
    values: BTreeSet<(GroupId, Epoch, u64)>,
    /// The last all-gather that a member which came back has no part in.
    since: BTreeMap<(GroupId, Epoch), u64>,
}

impl CallLedger {
    /// What a member that is removed has gathered does not bind the others.
    pub(super) fn remove(&mut self, epoch: Epoch) {
        self.gathered.retain(|(.., by), _| *by != epoch);
    }

    /// Whether message `seq` of `root` is a value that a member has gathered.
    pub(super) fn is_value(&self, group: GroupId, root: Epoch, seq: u64) -> bool {
        self.values.contains(&(group, root, seq))
    }

    /// `by` has come back, and goes on behind these calls. All `bound` members count it: what they
    /// have arrived at before may be left without it.
    pub(super) fn open(
        &mut self,
        (by, group): (Epoch, GroupId),
        (left, taken): (u64, u64),
        bound: &[Epoch],
    ) {
        let others = bound.iter().filter(|other| **other != by);
        let least = others.map(|other| self.arrived(group, *other)).min().unwrap_or(left);
        self.barriers.entry((group, by)).or_insert((left.max(least), left));
        self.since.entry((group, by)).or_insert(taken);
    }

    fn arrived(&self, group: GroupId, epoch: Epoch) -> u64 {
        self.barriers.get(&(group, epoch)).map_or(0, |it| it.0)
    }

    /// `bound` are the present epochs of those members that are not removed and that all count.
    pub(super) fn judge(
        &mut self,
        by: Epoch,
        event: &GroupEvent,
        (list, bound): (&[Peer], &[Epoch]),
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
        by: Epoch,
        (group, number): (GroupId, u64),
        values: &[Value],
        (list, bound): (&[Peer], &[Epoch]),
    ) -> Result<(), Violation> {
        let broken = |what: String| Err(Violation::new("gather", format!("{by:?}: {what}")));
        for (peer, value) in list.iter().zip(values) {
            let epoch = bound.iter().find(|(other, _)| other == peer);
            let has_part = |epoch: &&Epoch| self.since(group, **epoch) < number;
            match value {
                Some((epoch, seq, _)) => drop(self.values.insert((group, (*peer, *epoch), *seq))),
                None if epoch.filter(has_part).is_some() => {
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

    fn since(&self, group: GroupId, epoch: Epoch) -> u64 {
        self.since.get(&(group, epoch)).copied().unwrap_or(0)
    }
}
