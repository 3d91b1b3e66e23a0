//! What barriers and all-gathers promise.

use std::collections::{BTreeMap, BTreeSet};

use weft_core::group::GroupId;
use weft_core::ids::{Peer, PeerSet};

use super::node::GroupEvent;
use crate::protocol::Violation;

/// A value with its number among the messages of its member.
pub(super) type Value = Option<(u64, Vec<u8>)>;

/// What members have entered and left so far.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct CallLedger {
    /// The last barrier that a member has arrived at, and the last that it has left.
    barriers: BTreeMap<(GroupId, Peer), (u64, u64)>,
    /// What each member has gathered.
    gathered: BTreeMap<(GroupId, u64, Peer), Vec<Value>>,
    /// Messages that are values: they are received by no consumer.
    values: BTreeSet<(GroupId, Peer, u64)>,
}

impl CallLedger {
    /// What a member that is removed has gathered does not bind the others.
    pub(super) fn remove(&mut self, peer: Peer) {
        self.gathered.retain(|(.., by), _| *by != peer);
    }

    /// Whether message `seq` of `root` is a value that a member has gathered.
    pub(super) fn is_value(&self, group: GroupId, root: Peer, seq: u64) -> bool {
        self.values.contains(&(group, root, seq))
    }

    pub(super) fn judge(
        &mut self,
        by: Peer,
        event: &GroupEvent,
        (list, out): (&[Peer], PeerSet),
    ) -> Result<(), Violation> {
        match event {
            GroupEvent::Arrived { group, number } => {
                self.barriers.entry((*group, by)).or_default().0 = *number;
                Ok(())
            }
            GroupEvent::Left { group, number } => {
                let arrived = |peer: Peer| self.barriers.get(&(*group, peer)).map_or(0, |it| it.0);
                let is_late = |peer: &&Peer| !out.contains(**peer) && arrived(**peer) < *number;
                let late = list.iter().find(is_late).copied();
                let left = &mut self.barriers.entry((*group, by)).or_default().1;
                let last = std::mem::replace(left, *number);
                if late.is_none() && last < *number {
                    return Ok(());
                }
                let what = format!("{by} has left {last}, and leaves {number} before {late:?}");
                Err(Violation::new("barrier", what))
            }
            GroupEvent::Gathered { group, number, values } => {
                self.judge_values(by, (*group, *number), values, (list, out))
            }
            GroupEvent::Chunk { .. }
            | GroupEvent::Changed { .. }
            | GroupEvent::Abandoned { .. }
            | GroupEvent::Removed { .. }
            | GroupEvent::RootLost { .. } => Ok(()),
        }
    }

    fn judge_values(
        &mut self,
        by: Peer,
        (group, number): (GroupId, u64),
        values: &[Value],
        (list, out): (&[Peer], PeerSet),
    ) -> Result<(), Violation> {
        let broken = |what: String| Err(Violation::new("gather", format!("{by}: {what}")));
        for (peer, value) in list.iter().zip(values) {
            match value {
                Some((seq, _)) => drop(self.values.insert((group, *peer, *seq))),
                None if !out.contains(*peer) => {
                    return broken(format!("no value {number} of {peer}, which is live"));
                }
                None => {}
            }
        }
        if out.contains(by) {
            return Ok(());
        }
        let all = (group, number, Peer(0))..=(group, number, Peer(u16::MAX));
        if let Some(other) = self.gathered.range(all).find(|(_, other)| *other != values) {
            return broken(format!("gathers {values:?} in {number}, another {other:?}"));
        }
        self.gathered.insert((group, number, by), values.to_vec());
        Ok(())
    }
}
