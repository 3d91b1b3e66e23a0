//! Every message and the state that it is in.

use std::collections::BTreeMap;

use weft_core::ids::{Incarnation, Peer, PeerSet};

use super::name::Name;
use super::node::MailboxEvent;
use crate::protocol::{HistoryEntry, HistoryEvent, Violation};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct MessageFate {
    put: bool,
    withdrawn: bool,
    /// Deliveries in the present incarnation of the owner that were not given back.
    delivered: u32,
    ever_delivered: bool,
    released: u32,
    /// Of those, in earlier incarnations of the owner.
    released_before: u32,
    /// How often it was put again in doubt: the first put and each of these may have left a copy.
    repeats: u32,
    /// It was taken and restored.
    restored: bool,
    /// The memory that may have held it was lost.
    excused: bool,
}

/// The messages of one lane, between two incarnations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct LaneTraffic {
    sent: u32,
    heard: u32,
}

/// One incarnation of a peer.
type Process = (Peer, Incarnation);

/// The part of the history that the promises are about.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct MailboxLedger {
    liars: PeerSet,
    /// Liars write over reservation words and nothing else, of mailboxes that were fresh.
    words_alone: bool,
    /// Peers whose memory a liar has written to.
    spoiled: PeerSet,
    /// Owners of mailboxes with tickets that the fabric answered wrongly.
    misled: PeerSet,
    /// Owners that have noticed forged tickets, or whose first incarnation has ended.
    noticed: PeerSet,
    /// By owner and sender: the message delivered under each incarnation and sequence.
    ids: BTreeMap<(Peer, Peer, (u16, u32)), Name>,
    fates: BTreeMap<Name, MessageFate>,
    /// The last message delivered to each owner in its present incarnation, by sender.
    last: BTreeMap<(Peer, Process), u32>,
    lanes: BTreeMap<(Process, Process), LaneTraffic>,
    alive: BTreeMap<Peer, Incarnation>,
}

fn broken(checker: &'static str, what: String) -> Result<(), Violation> {
    Err(Violation::new(checker, what))
}

impl MailboxLedger {
    pub(super) const fn set_liars(&mut self, liars: PeerSet, words_alone: bool) {
        self.liars = liars;
        // Their own mailboxes have no owner.
        self.spoiled = liars;
        self.words_alone = words_alone;
    }

    pub(crate) fn judge(&mut self, entry: &HistoryEntry<MailboxEvent>) -> Result<(), Violation> {
        let (owner, incarnation) = (entry.peer, entry.incarnation);
        match &entry.what {
            HistoryEvent::Began => self.begin_incarnation(owner, incarnation),
            HistoryEvent::Died => {
                self.alive.remove(&owner);
            }
            HistoryEvent::Lied(to) => self.spoiled.insert(*to),
            HistoryEvent::Calm => {}
            HistoryEvent::Recorded(event) => return self.judge_event((owner, incarnation), event),
        }
        Ok(())
    }

    /// Messages that the previous incarnation had taken and not released are delivered again.
    fn begin_incarnation(&mut self, owner: Peer, incarnation: Incarnation) {
        self.alive.insert(owner, incarnation);
        if incarnation > Incarnation(1) {
            self.noticed.insert(owner);
        }
        for (name, fate) in &mut self.fates {
            if name.to.0 == owner {
                fate.delivered = 0;
                fate.released_before = fate.released;
            }
        }
        self.last.retain(|(to, _), _| *to != owner);
    }

    fn judge_event(&mut self, by: Process, event: &MailboxEvent) -> Result<(), Violation> {
        match event {
            MailboxEvent::Staged(name) => {
                self.fates.insert(*name, MessageFate::default());
            }
            MailboxEvent::Put(name) => self.fates.entry(*name).or_default().put = true,
            MailboxEvent::Unknown(_) | MailboxEvent::Fenced(_) | MailboxEvent::Admitted(..) => {}
            MailboxEvent::Repeated(name) => self.fates.entry(*name).or_default().repeats += 1,
            MailboxEvent::Restored(name) => {
                let fate = self.fates.entry(*name).or_default();
                (fate.delivered, fate.restored) = (fate.delivered.saturating_sub(1), true);
            }
            MailboxEvent::Forgot => self.forget(by.0),
            MailboxEvent::Misled(owner) => self.misled.insert(*owner),
            MailboxEvent::Noticed => return self.judge_noticed(by.0),
            MailboxEvent::Withdrawn(name) => self.fates.entry(*name).or_default().withdrawn = true,
            MailboxEvent::Taken { sender, id, payload } => {
                return self.judge_taken(by, (*sender, *id), payload);
            }
            MailboxEvent::Released(name) => self.fates.entry(*name).or_default().released += 1,
            MailboxEvent::Sent(name) => {
                self.lanes.entry((name.from, name.to)).or_default().sent += 1;
            }
            MailboxEvent::Heard { sender, payload } => {
                return self.judge_heard(by, *sender, payload);
            }
        }
        Ok(())
    }

    /// The memory of `owner` is lost, possibly with the messages that are under way.
    fn forget(&mut self, owner: Peer) {
        for (_, fate) in self.fates.iter_mut().filter(|(name, _)| name.to.0 == owner) {
            fate.excused = true;
        }
    }

    fn judge_noticed(&mut self, owner: Peer) -> Result<(), Violation> {
        self.noticed.insert(owner);
        if self.spoiled.contains(owner) || self.misled.contains(owner) {
            return Ok(());
        }
        broken("false alarm", format!("{owner} noticed forged tickets, and nothing was wrong"))
    }

    fn judge_taken(
        &mut self,
        by: Process,
        (sender, id): (Peer, (u16, u32)),
        payload: &[u8],
    ) -> Result<(), Violation> {
        let vanished = self.judge_vanished(by.0, payload);
        let result = self.hold_taken(by, (sender, id), payload);
        // A liar may spoil, forge and repeat messages of others.
        if self.spoiled.contains(by.0) { vanished } else { result }
    }

    /// Whether a message that was put before this one is gone, and its owner did not notice.
    fn judge_vanished(&self, owner: Peer, payload: &[u8]) -> Result<(), Violation> {
        let Some(name) = Name::of(payload) else { return Ok(()) };
        let Some(last) = self.last.get(&(owner, name.from)) else { return Ok(()) };
        if !self.words_alone || self.noticed.contains(owner) {
            return Ok(());
        }
        let between = (last + 1..name.number).map(|number| Name { number, ..name });
        let is_gone = |fate: &&MessageFate| fate.put && !fate.ever_delivered && !fate.excused;
        let gone = between.filter_map(|name| self.fates.get(&name)).filter(is_gone).count();
        if gone == 0 {
            return Ok(());
        }
        broken("unseen", format!("{gone} messages before {name:?} are gone, and not noticed"))
    }

    fn hold_taken(
        &mut self,
        by: Process,
        (sender, id): (Peer, (u16, u32)),
        payload: &[u8],
    ) -> Result<(), Violation> {
        let Some(name) = Name::of(payload) else {
            return broken("integrity", format!("{sender} to {}: {payload:?}", by.0));
        };
        if name.from.0 != sender || name.to != (by.0, Incarnation(0)) {
            return broken("integrity", format!("{name:?} came from {sender} to {}", by.0));
        }
        let Some(fate) = self.fates.get_mut(&name) else {
            return broken("integrity", format!("{name:?} was never put"));
        };
        let before = *fate;
        fate.delivered += 1;
        fate.ever_delivered = true;
        fate.restored = false;
        if self.ids.insert((by.0, sender, id), name).is_some_and(|other| other != name) {
            return broken("names", format!("{name:?} came under the name {id:?} of another"));
        }
        if before.repeats > 0 {
            // One copy for each put, less those that an earlier owner released; an owner delivers
            // each of them once. They have the same name, so that their order is meaningless.
            let copies = (1 + before.repeats).saturating_sub(before.released_before);
            if before.delivered < copies {
                return Ok(());
            }
            return broken("once", format!("{name:?} came more often than its {copies} copies"));
        }
        if before.withdrawn {
            return broken("withdrawn", format!("{name:?} was delivered"));
        }
        if before.delivered > 0 {
            return broken("once", format!("{name:?} came twice in one incarnation of {}", by.0));
        }
        if before.released > 0 {
            return broken("once", format!("{name:?} came again after its release"));
        }
        if before.restored {
            return Ok(());
        }
        let last = self.last.insert((by.0, name.from), name.number);
        if last.is_some_and(|last| last >= name.number) {
            return broken("order", format!("{name:?} came after #{}", last.unwrap_or(0)));
        }
        Ok(())
    }

    fn judge_heard(&mut self, by: Process, sender: Peer, payload: &[u8]) -> Result<(), Violation> {
        if self.liars.contains(sender) {
            // A lane identifies its writer; a liar may send anything through its own.
            return Ok(());
        }
        let Some(name) = Name::of(payload) else {
            return broken("integrity", format!("lane {sender} to {}: {payload:?}", by.0));
        };
        if name.from.0 != sender || name.to != by {
            return broken("integrity", format!("{name:?} was heard by {}.{}", by.0, by.1));
        }
        let traffic = self.lanes.entry((name.from, name.to)).or_default();
        let expected = traffic.heard + 1;
        if name.number > traffic.sent {
            return broken("integrity", format!("{name:?} was never sent"));
        }
        if name.number < expected {
            return broken("once", format!("{name:?} was heard again"));
        }
        if name.number > expected {
            return broken("loss", format!("{name:?} was heard, #{expected} was not"));
        }
        traffic.heard = expected;
        Ok(())
    }

    /// Messages that were put and not delivered, or sent through a lane that still exists and not
    /// received.
    pub(crate) fn check_nothing_lost(&self) -> Result<(), Violation> {
        for (name, fate) in &self.fates {
            let is_held = !self.spoiled.contains(name.to.0) && !fate.excused;
            if is_held && fate.put && fate.released == 0 {
                let how_far = if fate.ever_delivered { "released" } else { "delivered" };
                return broken("loss", format!("{name:?} was put and never {how_far}"));
            }
        }
        for ((from, to), traffic) in &self.lanes {
            let stands = [from, to].iter().all(|end| self.alive.get(&end.0) == Some(&end.1));
            if stands && traffic.heard < traffic.sent {
                let LaneTraffic { sent, heard } = traffic;
                let lane = format!("lane {from:?} to {to:?}");
                return broken("loss", format!("{lane}: {heard} of {sent} messages heard"));
            }
        }
        Ok(())
    }
}
