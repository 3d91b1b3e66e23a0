//! Which messages there are, and what may still become of each.

use std::collections::BTreeMap;

use weft_core::ids::{Incarnation, Peer, PeerSet};

use super::name::Name;
use super::node::Event;
use crate::sim::protocol::{Entry, Violation, What};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Fate {
    put: bool,
    withdrawn: bool,
    /// Delivered in the present life of the owner.
    delivered: bool,
    ever_delivered: bool,
    released: bool,
}

/// How much went through one lane, between two lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Traffic {
    sent: u32,
    heard: u32,
}

type Life = (Peer, Incarnation);

/// The history, as far as the promises are about it.
#[derive(Clone, Debug, Default, Hash)]
pub(in crate::sim) struct Ledger {
    liars: PeerSet,
    /// Whose memory a liar has written to: their mailboxes promise nothing any more.
    spoiled: PeerSet,
    fates: BTreeMap<Name, Fate>,
    /// The last message delivered to each owner from each life, in its present life.
    last: BTreeMap<(Peer, Life), u32>,
    lanes: BTreeMap<(Life, Life), Traffic>,
    lives: BTreeMap<Peer, Incarnation>,
}

fn broken(checker: &'static str, what: String) -> Result<(), Violation> {
    Err(Violation::new(checker, what))
}

impl Ledger {
    pub(super) const fn set_liars(&mut self, liars: PeerSet) {
        self.liars = liars;
    }

    pub(in crate::sim) fn judge(&mut self, entry: &Entry<Event>) -> Result<(), Violation> {
        let (owner, life) = (entry.peer, entry.life);
        match &entry.what {
            What::Born => self.begin_life(owner, life),
            What::Died => {
                self.lives.remove(&owner);
            }
            What::Lied(to) => self.spoiled.insert(*to),
            What::Calm => {}
            What::Recorded(event) => return self.judge_event((owner, life), event),
        }
        Ok(())
    }

    /// What the life before had taken and not released is delivered again.
    fn begin_life(&mut self, owner: Peer, life: Incarnation) {
        self.lives.insert(owner, life);
        for (name, fate) in &mut self.fates {
            if name.to.0 == owner {
                fate.delivered = false;
            }
        }
        self.last.retain(|(to, _), _| *to != owner);
    }

    fn judge_event(&mut self, by: Life, event: &Event) -> Result<(), Violation> {
        match event {
            Event::Staged(name) => {
                self.fates.insert(*name, Fate::default());
            }
            Event::Put(name) => self.fates.entry(*name).or_default().put = true,
            Event::Unknown(_) | Event::Fenced(_) | Event::Admitted(..) => {}
            Event::Withdrawn(name) => self.fates.entry(*name).or_default().withdrawn = true,
            Event::Taken { sender, payload } => return self.judge_taken(by, *sender, payload),
            Event::Released(name) => self.fates.entry(*name).or_default().released = true,
            Event::Sent(name) => self.lanes.entry((name.from, name.to)).or_default().sent += 1,
            Event::Heard { sender, payload } => return self.judge_heard(by, *sender, payload),
        }
        Ok(())
    }

    fn judge_taken(&mut self, by: Life, sender: Peer, payload: &[u8]) -> Result<(), Violation> {
        let result = self.hold_taken(by, sender, payload);
        // A member that lies may spoil, forge and repeat what others put into the mailbox that it
        // writes to, and nothing else.
        if self.spoiled.contains(by.0) { Ok(()) } else { result }
    }

    fn hold_taken(&mut self, by: Life, sender: Peer, payload: &[u8]) -> Result<(), Violation> {
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
        fate.delivered = true;
        fate.ever_delivered = true;
        if before.withdrawn {
            return broken("withdrawn", format!("{name:?} was delivered"));
        }
        if before.delivered {
            return broken("once", format!("{name:?} came twice in one life of {}", by.0));
        }
        if before.released {
            return broken("once", format!("{name:?} came again after its release"));
        }
        let last = self.last.insert((by.0, name.from), name.number);
        if last.is_some_and(|last| last >= name.number) {
            return broken("order", format!("{name:?} came after #{}", last.unwrap_or(0)));
        }
        Ok(())
    }

    fn judge_heard(&mut self, by: Life, sender: Peer, payload: &[u8]) -> Result<(), Violation> {
        if self.liars.contains(sender) {
            // A lane says whose it is; what a liar puts into its own is its own affair.
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

    /// What was put and not delivered, or sent in a lane that still stands and not heard.
    pub(in crate::sim) fn check_nothing_lost(&self) -> Result<(), Violation> {
        for (name, fate) in &self.fates {
            let is_promised = !self.liars.contains(name.to.0) && !self.spoiled.contains(name.to.0);
            if is_promised && fate.put && !fate.released {
                let how_far = if fate.ever_delivered { "released" } else { "delivered" };
                return broken("loss", format!("{name:?} was put and never {how_far}"));
            }
        }
        for ((from, to), traffic) in &self.lanes {
            let stands = [from, to].iter().all(|end| self.lives.get(&end.0) == Some(&end.1));
            if stands && traffic.heard < traffic.sent {
                let Traffic { sent, heard } = traffic;
                let lane = format!("lane {from:?} to {to:?}");
                return broken("loss", format!("{lane}: {heard} of {sent} messages heard"));
            }
        }
        Ok(())
    }
}
