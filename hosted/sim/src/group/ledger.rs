//! What the promises of groups are about.

use std::collections::{BTreeMap, BTreeSet};

use weft_core::group::GroupId;
use weft_core::ids::Peer;

use super::Epoch;
use super::calls::CallLedger;
use super::node::GroupEvent;
use crate::protocol::Violation;

/// A member, and one root's stream.
type Who = (Epoch, GroupId, Epoch);

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
    /// The last epoch of each peer that has begun.
    present: BTreeMap<Peer, u32>,
    /// Those that have died and are removed for it, or were removed.
    out: BTreeSet<Epoch>,
    /// Those that have come back, and take part.
    open: BTreeSet<(GroupId, Epoch)>,
    /// The furthest that any incarnation has delivered, and whether the present one has begun.
    at: BTreeMap<Who, (Reached, bool)>,
    /// Where a member that has come back began, while it has delivered nothing.
    first: BTreeMap<Who, u64>,
    /// Messages that such a member has not delivered: they are values.
    skipped: BTreeSet<(GroupId, Epoch, u64)>,
    /// Whether a message is whole, as each member says.
    verdicts: BTreeMap<(GroupId, Epoch, u64, Epoch), bool>,
    /// The last message of a root that was lost, as each member says.
    lasts: BTreeMap<(GroupId, Epoch, Epoch), u64>,
    calls: CallLedger,
}

/// Before and behind all.
const NONE: Epoch = (Peer(0), 0);
const LAST: Epoch = (Peer(u16::MAX), u32::MAX);

fn broken(checker: &'static str, what: String) -> Result<(), Violation> {
    Err(Violation::new(checker, what))
}

impl GroupLedger {
    /// What was handed out and not released is handed out again.
    pub(super) fn begin(&mut self, epoch: Epoch) {
        self.present.insert(epoch.0, epoch.1);
        for (_, (_, has_begun)) in self.at.iter_mut().filter(|(who, _)| who.0 == epoch) {
            *has_begun = false;
        }
    }

    /// A member that is removed delivers nothing more after its end.
    pub(super) fn end(&mut self, epoch: Epoch) {
        self.remove(epoch);
        self.at.retain(|who, _| who.0 != epoch);
    }

    /// What a member that is removed delivers does not bind the others.
    fn remove(&mut self, epoch: Epoch) {
        self.out.insert(epoch);
        self.verdicts.retain(|(.., by), _| *by != epoch);
        self.lasts.retain(|(.., by), _| *by != epoch);
        self.calls.remove(epoch);
    }

    /// The present epochs of those of `list` that are not removed, and that the others count.
    fn bound(&self, group: GroupId, list: &[Peer]) -> Vec<Epoch> {
        let present = list.iter().filter_map(|peer| Some((*peer, *self.present.get(peer)?)));
        let is_bound = |epoch: &Epoch| {
            let is_counted = epoch.1 == 1 || self.open.contains(&(group, *epoch));
            is_counted && !self.out.contains(epoch)
        };
        present.filter(is_bound).collect()
    }

    /// Judges an event of a member of the group of `list`.
    pub(super) fn judge(
        &mut self,
        (by, event): (Epoch, &GroupEvent),
        list: &[Peer],
        is_doomed: impl Fn(Epoch) -> bool,
    ) -> Result<(), Violation> {
        match *event {
            GroupEvent::Arrived { group, .. }
            | GroupEvent::Left { group, .. }
            | GroupEvent::Gathered { group, .. } => {
                let bound = self.bound(group, list);
                self.calls.judge(by, event, (list, &bound))
            }
            GroupEvent::Opened { group, left, taken, ref roots } => {
                self.open(by, (group, list), (left, taken), roots);
                Ok(())
            }
            GroupEvent::Chunk { group, root, seq, offset, ref bytes, message_len, is_last } => {
                let after = match is_last {
                    true => Reached { seq: seq + 1, offset: 0 },
                    false => Reached { seq, offset: offset + bytes.len() as u64 },
                };
                let who = (by, group, root);
                self.pass(who, seq)?;
                self.move_on(who, Reached { seq, offset }, after)?;
                if is_last && offset + bytes.len() as u64 != message_len {
                    return broken("order", format!("{by:?}: {event:?} is not the end"));
                }
                if is_last { self.note(by, (group, root, seq), true) } else { Ok(()) }
            }
            GroupEvent::Removed { peer, last } => {
                (1..=last).for_each(|epoch| self.remove((peer, epoch)));
                Ok(())
            }
            GroupEvent::Changed { .. } => broken("integrity", format!("{by:?}: {event:?}")),
            GroupEvent::Abandoned { group, root, seq } => {
                self.pass((by, group, root), seq)?;
                let (at, _) = self.place((by, group, root));
                let here = Reached { seq, offset: if at.seq == seq { at.offset } else { 0 } };
                // The entry that abandons it has a number, too.
                let after = Reached { seq: seq + 2, offset: 0 };
                let after = if is_doomed(root) { here } else { after };
                self.move_on((by, group, root), here, after)?;
                self.note(by, (group, root, seq), false)
            }
            GroupEvent::RootLost { group, root, last } => self.judge_end(by, (group, root), last),
        }
    }

    /// `by` has come back, and takes from each root what lies behind the messages that it names.
    fn open(
        &mut self,
        by: Epoch,
        (group, list): (GroupId, &[Peer]),
        calls: (u64, u64),
        roots: &[(Epoch, u64)],
    ) {
        if !self.open.insert((group, by)) {
            return;
        }
        for (root, before) in roots {
            let first = before + 1;
            self.at.insert((by, group, *root), (Reached { seq: first, offset: 0 }, true));
            self.first.insert((by, group, *root), first);
        }
        let bound = self.bound(group, list);
        self.calls.open((by, group), calls, &bound);
    }

    /// One that has come back does not deliver values of all-gathers that it has no part in, and
    /// passes over a long message in whose middle it began.
    fn pass(&mut self, who: Who, seq: u64) -> Result<(), Violation> {
        let (by, group, root) = who;
        if by.1 == 1 {
            return Ok(());
        }
        let (at, has_begun) = self.place(who);
        if at.offset > 0 || at.seq >= seq {
            return Ok(());
        }
        let first = self.first.get(&who).copied().unwrap_or(0);
        for passed in at.seq..seq {
            let name = (group, root, passed);
            let of = (group, root, passed, NONE)..=(group, root, passed, LAST);
            if passed != first && self.verdicts.range(of).next().is_some() {
                return broken("order", format!("{who:?} passes over {name:?}, a message"));
            }
            if passed != first {
                self.skipped.insert(name);
            }
        }
        self.at.insert(who, (Reached { seq, offset: 0 }, has_begun));
        Ok(())
    }

    fn judge_end(
        &mut self,
        by: Epoch,
        (group, root): (GroupId, Epoch),
        last: u64,
    ) -> Result<(), Violation> {
        self.pass((by, group, root), last + 1)?;
        let (at, _) = self.place((by, group, root));
        if at.seq <= last {
            return broken("agreement", format!("{by:?} lacks of {root:?} {at:?} to {last}"));
        }
        if self.out.contains(&by) {
            return Ok(());
        }
        let agreed = self.last_of(group, root).unwrap_or(last);
        if agreed != last {
            let what = format!("{by:?} has {last} of {root:?} in {group:?}, others {agreed}");
            return broken("agreement", what);
        }
        self.lasts.insert((group, root, by), last);
        let behind = (group, root, last + 1, NONE)..=(group, root, u64::MAX, LAST);
        match self.verdicts.range(behind).find(|(_, is_whole)| **is_whole) {
            Some(late) => broken("verdict", format!("{late:?} is whole behind the last, {last}")),
            None => Ok(()),
        }
    }

    /// The last message of a root that was lost, as those say who know it.
    fn last_of(&self, group: GroupId, root: Epoch) -> Option<u64> {
        self.lasts.range((group, root, NONE)..=(group, root, LAST)).next().map(|(_, last)| *last)
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
        by: Epoch,
        message: (GroupId, Epoch, u64),
        is_whole: bool,
    ) -> Result<(), Violation> {
        if self.out.contains(&by) {
            return Ok(());
        }
        let (group, root, seq) = message;
        if self.skipped.contains(&message) {
            return broken("order", format!("{by:?}: another has passed over {message:?}"));
        }
        let mut others = self.verdicts.range((group, root, seq, NONE)..=(group, root, seq, LAST));
        if others.any(|(_, other)| *other != is_whole) {
            return broken("verdict", format!("{message:?}: whole at {by:?} is {is_whole}"));
        }
        self.verdicts.insert((group, root, seq, by), is_whole);
        let last = self.last_of(group, root);
        if is_whole && last.is_some_and(|last| seq > last) {
            return broken("verdict", format!("{by:?} has {message:?}, behind the last {last:?}"));
        }
        Ok(())
    }
}
