//! What the promises of groups are about.

use std::collections::BTreeMap;

use weft_core::group::GroupId;
use weft_core::ids::{Peer, PeerSet};

use super::node::Event;
use crate::protocol::Violation;

/// A member, and one root's stream.
type Who = (Peer, GroupId, Peer);

/// How far a member has delivered a stream: the number of the next message, and the next byte of
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct At {
    seq: u64,
    offset: u64,
}

/// What was delivered so far.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Ledger {
    doomed: PeerSet,
    /// The furthest that any incarnation has delivered, and whether the present one has begun.
    at: BTreeMap<Who, (At, bool)>,
    /// Whether a message is whole.
    verdicts: BTreeMap<(GroupId, Peer, u64), bool>,
    /// The last message of a root that was lost.
    lasts: BTreeMap<(GroupId, Peer), u64>,
}

fn broken(checker: &'static str, what: String) -> Result<(), Violation> {
    Err(Violation::new(checker, what))
}

impl Ledger {
    pub(super) fn of(doomed: PeerSet) -> Self {
        Self { doomed, ..Self::default() }
    }

    /// What was handed out and not released is handed out again.
    pub(super) fn begin(&mut self, peer: Peer) {
        for (_, (_, has_begun)) in self.at.iter_mut().filter(|(who, _)| who.0 == peer) {
            *has_begun = false;
        }
    }

    pub(super) fn judge(
        &mut self,
        by: Peer,
        event: &Event,
        is_binding: bool,
    ) -> Result<(), Violation> {
        match *event {
            Event::Chunk { group, root, seq, offset, ref bytes, message_len, is_last } => {
                let after = match is_last {
                    true => At { seq: seq + 1, offset: 0 },
                    false => At { seq, offset: offset + bytes.len() as u64 },
                };
                self.move_on((by, group, root), At { seq, offset }, after)?;
                if is_last && offset + bytes.len() as u64 != message_len {
                    return broken("order", format!("{by}: {event:?} is not the end"));
                }
                if is_last && is_binding { self.note(by, (group, root, seq), true) } else { Ok(()) }
            }
            Event::Abandoned { group, root, seq } => {
                let (at, _) = self.place((by, group, root));
                let here = At { seq, offset: if at.seq == seq { at.offset } else { 0 } };
                // The entry that abandons it has a number, too.
                let after = At { seq: seq + 2, offset: 0 };
                let after = if self.doomed.contains(root) { here } else { after };
                self.move_on((by, group, root), here, after)?;
                if is_binding { self.note(by, (group, root, seq), false) } else { Ok(()) }
            }
            Event::RootLost { group, root, last } => {
                let (at, _) = self.place((by, group, root));
                if at.seq <= last {
                    return broken("agreement", format!("{by} lacks of {root} {at:?} to {last}"));
                }
                if !is_binding {
                    return Ok(());
                }
                let agreed = *self.lasts.entry((group, root)).or_insert(last);
                if agreed != last {
                    let what = format!("{by} has {last} of {root} in {group:?}, others {agreed}");
                    return broken("agreement", what);
                }
                let key = (group, root, last);
                let mut behind = self.verdicts.range(key..).skip_while(|(k, _)| **k == key);
                match behind.next() {
                    Some((late, true)) if (late.0, late.1) == (group, root) => {
                        broken("verdict", format!("{late:?} is whole behind the last, {last}"))
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    fn place(&self, who: Who) -> (At, bool) {
        let first = (At { seq: 1, offset: 0 }, true);
        self.at.get(&who).copied().unwrap_or(first)
    }

    fn move_on(&mut self, who: Who, here: At, after: At) -> Result<(), Violation> {
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
        let agreed = *self.verdicts.entry(message).or_insert(is_whole);
        if agreed != is_whole {
            return broken("verdict", format!("{message:?}: whole at {by} is {is_whole}"));
        }
        let last = self.lasts.get(&(message.0, message.1));
        if is_whole && last.is_some_and(|last| message.2 > *last) {
            return broken("verdict", format!("{by} has {message:?}, behind the last {last:?}"));
        }
        Ok(())
    }
}
