//! What the promises of groups are about.

use std::collections::BTreeMap;

use weft_core::group::GroupId;
use weft_core::ids::{Peer, PeerSet};

use super::calls::CallLedger;
use super::node::GroupEvent;
use crate::protocol::Violation;

/// A member, and one root's stream.
type Who = (Peer, GroupId, Peer);

/// How far a member has delivered a stream: the number of the next message, and the next byte of
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Reached {
    seq: u64,
    offset: u64,
}

/// What was delivered so far.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct GroupLedger {
    doomed: PeerSet,
    /// Those that have died of those, or were removed.
    out: PeerSet,
    /// The furthest that any incarnation has delivered, and whether the present one has begun.
    at: BTreeMap<Who, (Reached, bool)>,
    /// Whether a message is whole, as each member says.
    verdicts: BTreeMap<(GroupId, Peer, u64, Peer), bool>,
    /// The last message of a root that was lost, as each member says.
    lasts: BTreeMap<(GroupId, Peer, Peer), u64>,
    calls: CallLedger,
}

/// Behind all peers.
const LAST: Peer = Peer(u16::MAX);

fn broken(checker: &'static str, what: String) -> Result<(), Violation> {
    Err(Violation::new(checker, what))
}

impl GroupLedger {
    pub(super) fn of(doomed: PeerSet) -> Self {
        Self { doomed, ..Self::default() }
    }

    /// What was handed out and not released is handed out again.
    pub(super) fn begin(&mut self, peer: Peer) {
        for (_, (_, has_begun)) in self.at.iter_mut().filter(|(who, _)| who.0 == peer) {
            *has_begun = false;
        }
    }

    /// A member that is removed delivers nothing more after its end.
    pub(super) fn end(&mut self, peer: Peer) {
        if self.doomed.contains(peer) {
            self.remove(peer);
            self.at.retain(|who, _| who.0 != peer);
        }
    }

    /// What a member that is removed delivers does not bind the others.
    fn remove(&mut self, peer: Peer) {
        self.out.insert(peer);
        self.verdicts.retain(|(.., by), _| *by != peer);
        self.lasts.retain(|(.., by), _| *by != peer);
        self.calls.remove(peer);
    }

    /// Judges an event of a member of the group of `list`.
    pub(super) fn judge(
        &mut self,
        by: Peer,
        event: &GroupEvent,
        list: &[Peer],
    ) -> Result<(), Violation> {
        match *event {
            GroupEvent::Arrived { .. } | GroupEvent::Left { .. } | GroupEvent::Gathered { .. } => {
                self.calls.judge(by, event, (list, self.out))
            }
            GroupEvent::Chunk { group, root, seq, offset, ref bytes, message_len, is_last } => {
                let after = match is_last {
                    true => Reached { seq: seq + 1, offset: 0 },
                    false => Reached { seq, offset: offset + bytes.len() as u64 },
                };
                self.move_on((by, group, root), Reached { seq, offset }, after)?;
                if is_last && offset + bytes.len() as u64 != message_len {
                    return broken("order", format!("{by}: {event:?} is not the end"));
                }
                if is_last { self.note(by, (group, root, seq), true) } else { Ok(()) }
            }
            GroupEvent::Removed { peer } => {
                self.remove(peer);
                Ok(())
            }
            GroupEvent::Changed { .. } => broken("integrity", format!("{by}: {event:?}")),
            GroupEvent::Abandoned { group, root, seq } => {
                let (at, _) = self.place((by, group, root));
                let here = Reached { seq, offset: if at.seq == seq { at.offset } else { 0 } };
                // The entry that abandons it has a number, too.
                let after = Reached { seq: seq + 2, offset: 0 };
                let after = if self.doomed.contains(root) { here } else { after };
                self.move_on((by, group, root), here, after)?;
                self.note(by, (group, root, seq), false)
            }
            GroupEvent::RootLost { group, root, last } => {
                let (at, _) = self.place((by, group, root));
                if at.seq <= last {
                    return broken("agreement", format!("{by} lacks of {root} {at:?} to {last}"));
                }
                if self.out.contains(by) {
                    return Ok(());
                }
                let agreed = self.last_of(group, root).unwrap_or(last);
                if agreed != last {
                    let what = format!("{by} has {last} of {root} in {group:?}, others {agreed}");
                    return broken("agreement", what);
                }
                self.lasts.insert((group, root, by), last);
                let behind = (group, root, last + 1, Peer(0))..=(group, root, u64::MAX, LAST);
                match self.verdicts.range(behind).find(|(_, is_whole)| **is_whole) {
                    Some(late) => {
                        broken("verdict", format!("{late:?} is whole behind the last, {last}"))
                    }
                    None => Ok(()),
                }
            }
        }
    }

    /// The last message of a root that was lost, as those say who know it.
    fn last_of(&self, group: GroupId, root: Peer) -> Option<u64> {
        self.lasts.range((group, root, Peer(0))..=(group, root, LAST)).next().map(|(_, last)| *last)
    }

    fn place(&self, who: Who) -> (Reached, bool) {
        let first = (Reached { seq: 1, offset: 0 }, true);
        let (mut at, has_begun) = self.at.get(&who).copied().unwrap_or(first);
        let (_, group, root) = who;
        // The consumer does not receive values.
        while at.offset == 0 && self.calls.is_value(group, root, at.seq) {
            at.seq += 1;
        }
        (at, has_begun)
    }

    fn move_on(&mut self, who: Who, here: Reached, after: Reached) -> Result<(), Violation> {
        let (at, has_begun) = self.place(who);
        if here > at {
            return broken("order", format!("{who:?} delivers {here:?} and was at {at:?}"));
        }
        if here < at && has_begun {
            return broken("once", format!("{who:?} delivers {here:?} and was at {at:?}"));
        }
        self.at.insert(who, (after, true));
        Ok(())
    }

    fn note(
        &mut self,
        by: Peer,
        message: (GroupId, Peer, u64),
        is_whole: bool,
    ) -> Result<(), Violation> {
        if self.out.contains(by) {
            return Ok(());
        }
        let (group, root, seq) = message;
        let mut others =
            self.verdicts.range((group, root, seq, Peer(0))..=(group, root, seq, LAST));
        if others.any(|(_, other)| *other != is_whole) {
            return broken("verdict", format!("{message:?}: whole at {by} is {is_whole}"));
        }
        self.verdicts.insert((group, root, seq, by), is_whole);
        let last = self.last_of(group, root);
        if is_whole && last.is_some_and(|last| seq > last) {
            return broken("verdict", format!("{by} has {message:?}, behind the last {last:?}"));
        }
        Ok(())
    }
}
