//! The tensors that a node keeps for clients, each in sealed memory that no process changes.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use crate::node::control::{KeptTensor, TensorKey, TensorList, TensorRefused, TensorState};
use crate::node::link::Ticket;
use crate::tensor::ShapeText;

/// The most tensors in a store: each has a descriptor.
pub(in super::super) const KEPT_MAX: usize = 128;
/// The most tensors that one client may hold.
const HELD_MAX: usize = 16;
/// The most tensors in one reply, so that it fits into a packet with the longest names.
const LISTED_MAX: usize = 24;
/// How long after a deadline a component may still answer; one that hangs answers never.
const GRACE_NS: u64 = 1_000_000_000;

/// A tensor that is kept.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) key: TensorKey,
    /// None of a dead one.
    pub(super) memory: Option<(ShapeText, OwnedFd)>,
    pub(super) bytes: u64,
    pub(super) stage: Stage,
}

/// What a tensor waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Room in the memory that its receiver reads, for its sender, which may wait for more.
    Waiting { ticket: Ticket, waits: bool, deadline_ns: u64 },
    /// Its receiver; with it, maybe, its sender.
    Sent { sender: Option<(Ticket, u64)> },
    /// A client, or the word of the one that holds it.
    Received { holder: Option<u64> },
}

/// A receive that waits.
#[derive(Debug)]
pub(super) struct Receive {
    pub(super) key: TensorKey,
    pub(super) deadline_ns: u64,
}

/// The tensors that a node keeps, and the receives for which it reserves room.
#[derive(Debug)]
pub(in super::super) struct TensorStore {
    /// The most bytes.
    limit: u64,
    pub(super) kept: BTreeMap<u64, Kept>,
    pub(super) receives: BTreeMap<Ticket, Receive>,
    count: u64,
}

impl TensorStore {
    pub(in super::super) const fn new(limit: u64) -> Self {
        Self { limit, kept: BTreeMap::new(), receives: BTreeMap::new(), count: 0 }
    }

    /// Bytes that are kept, and those that a receive may still bring, each `longest` at the most.
    fn bytes(&self, longest: u64) -> u64 {
        let kept: u64 = self.kept.values().map(|it| it.bytes).sum();
        kept + self.receives.len() as u64 * longest
    }

    /// Whether there is room for one more tensor of `bytes`.
    pub(super) fn check_room(&self, bytes: u64, longest: u64) -> Result<(), TensorRefused> {
        if self.kept.len() + self.receives.len() >= KEPT_MAX {
            return Err(TensorRefused::Full { limit: KEPT_MAX });
        }
        let (used, limit) = (self.bytes(longest), self.limit);
        if used + bytes > limit {
            return Err(TensorRefused::StoreFull { bytes: used, limit });
        }
        Ok(())
    }

    /// Keeps a tensor, under the number that is returned.
    pub(super) fn keep(&mut self, kept: Kept) -> u64 {
        self.count += 1;
        self.kept.insert(self.count, kept);
        self.count
    }

    /// Whether the client holds as many tensors as one may.
    pub(super) fn is_greedy(&self, client: u64) -> bool {
        let held = Stage::Received { holder: Some(client) };
        self.kept.values().filter(|it| it.stage == held).count() >= HELD_MAX
    }

    /// Drops a tensor that the client holds; whether it held it.
    pub(super) fn release(&mut self, client: u64, number: u64) -> bool {
        let held = Stage::Received { holder: Some(client) };
        let holds = self.kept.get(&number).is_some_and(|it| it.stage == held);
        holds && self.kept.remove(&number).is_some()
    }

    /// The client has left: what it held goes to the next one that asks for it.
    pub(super) fn forget(&mut self, client: u64) {
        self.receives.retain(|ticket, _| ticket.client != client);
        for kept in self.kept.values_mut() {
            if kept.stage == (Stage::Received { holder: Some(client) }) {
                kept.stage = Stage::Received { holder: None };
            }
        }
    }

    /// Drops the tensors of a step, except those that clients hold; the senders that waited.
    pub(super) fn end_step(&mut self, step: i64) -> Vec<Ticket> {
        let mut waiting = Vec::new();
        self.kept.retain(|_, kept| {
            let is_held = matches!(kept.stage, Stage::Received { holder: Some(_) });
            let is_over = kept.key.step == step && !is_held;
            if is_over {
                waiting.extend(kept.sender());
            }
            !is_over
        });
        waiting
    }

    /// A tensor that was received and has no holder, and the oldest receive of its name.
    pub(super) fn match_one(&self) -> Option<(u64, Ticket)> {
        let free = self.kept.iter().filter(|(_, it)| it.is_free());
        free.filter_map(|(number, kept)| {
            let (ticket, _) = self.receives.iter().find(|(_, it)| it.key == kept.key)?;
            Some((*number, *ticket))
        })
        .next()
    }

    /// When the next wait ends, at the latest.
    pub(in super::super) fn next_deadline_ns(&self) -> Option<u64> {
        let receives = self.receives.values().map(|it| it.late_ns());
        receives.chain(self.kept.values().filter_map(Kept::late_ns)).min()
    }

    /// What is kept behind the number `after`.
    pub(super) fn list(&self, after: u64, longest: u64) -> TensorList {
        let listed = |(number, kept): (&u64, &Kept)| KeptTensor {
            number: *number,
            key: kept.key.clone(),
            shape: kept.memory.as_ref().map(|(shape, _)| shape.clone()),
            bytes: kept.bytes,
            state: match kept.stage {
                Stage::Waiting { .. } => TensorState::Waiting,
                Stage::Sent { .. } => TensorState::Sent,
                Stage::Received { holder: None } => TensorState::Received,
                Stage::Received { holder: Some(_) } => TensorState::Held,
            },
        };
        let behind = self.kept.range(after.saturating_add(1)..);
        TensorList {
            bytes: self.bytes(longest),
            limit: self.limit,
            receives: self.receives.len(),
            kept: behind.take(LISTED_MAX).map(listed).collect(),
        }
    }
}

impl Receive {
    pub(super) const fn late_ns(&self) -> u64 {
        self.deadline_ns.saturating_add(GRACE_NS)
    }
}

impl Kept {
    const fn is_free(&self) -> bool {
        matches!(self.stage, Stage::Received { holder: None })
    }

    /// The sender that waits for a word about it.
    pub(super) const fn sender(&self) -> Option<Ticket> {
        match self.stage {
            Stage::Waiting { ticket, .. } | Stage::Sent { sender: Some((ticket, _)) } => {
                Some(ticket)
            }
            Stage::Sent { sender: None } | Stage::Received { .. } => None,
        }
    }

    /// When its sender has waited for too long.
    pub(super) const fn late_ns(&self) -> Option<u64> {
        match self.stage {
            Stage::Waiting { deadline_ns, .. } => Some(deadline_ns.saturating_add(GRACE_NS)),
            Stage::Sent { sender: Some((_, deadline_ns)) } => Some(deadline_ns),
            Stage::Sent { sender: None } | Stage::Received { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn key(edge: &str, step: i64) -> TensorKey {
        TensorKey { from: 0, to: 1, edge: edge.to_owned(), step }
    }

    fn kept(edge: &str, step: i64, stage: Stage) -> Kept {
        Kept { key: key(edge, step), memory: None, bytes: MIB, stage }
    }

    const fn ticket(client: u64) -> Ticket {
        Ticket { client, id: 1 }
    }

    #[test]
    fn rz17_a_store_refuses_what_it_may_not_hold_and_counts_what_receives_may_bring() {
        let mut store = TensorStore::new(4 * MIB);
        store.keep(kept("a", 0, Stage::Sent { sender: None }));
        assert_eq!(store.check_room(3 * MIB, 2 * MIB), Ok(()));
        let full = TensorRefused::StoreFull { bytes: MIB, limit: 4 * MIB };
        assert_eq!(store.check_room(3 * MIB + 1, 2 * MIB), Err(full));
        store.receives.insert(ticket(7), Receive { key: key("b", 0), deadline_ns: 5 });
        let full = TensorRefused::StoreFull { bytes: 3 * MIB, limit: 4 * MIB };
        assert_eq!(store.check_room(2 * MIB, 2 * MIB), Err(full));
        for _ in 0..KEPT_MAX {
            store.keep(kept("a", 0, Stage::Sent { sender: None }));
        }
        let full = TensorRefused::Full { limit: KEPT_MAX };
        assert_eq!(store.check_room(0, 0), Err(full));
    }

    #[test]
    fn rz17_what_a_client_that_left_had_received_goes_to_the_next() {
        let mut store = TensorStore::new(4 * MIB);
        let number = store.keep(kept("a", 0, Stage::Received { holder: Some(7) }));
        store.receives.insert(ticket(7), Receive { key: key("a", 0), deadline_ns: 5 });
        store.receives.insert(ticket(8), Receive { key: key("a", 0), deadline_ns: 5 });
        assert_eq!(store.match_one(), None, "it is held");
        assert!(!store.release(8, number), "by another");
        store.forget(7);
        assert_eq!(store.match_one(), Some((number, ticket(8))));
        assert!(!store.release(7, number));
    }

    #[test]
    fn rz7_the_end_of_a_step_drops_what_no_client_holds() {
        let mut store = TensorStore::new(4 * MIB);
        let waiting = Stage::Waiting { ticket: ticket(3), waits: false, deadline_ns: 9 };
        for stage in [waiting, Stage::Sent { sender: Some((ticket(4), 8)) }] {
            store.keep(kept("a", 1, stage));
        }
        assert_eq!(store.next_deadline_ns(), Some(8));
        let held = store.keep(kept("a", 1, Stage::Received { holder: Some(7) }));
        let other = store.keep(kept("a", 2, Stage::Received { holder: None }));
        assert_eq!(store.end_step(1), [ticket(3), ticket(4)]);
        let left: Vec<_> = store.list(0, 0).kept.iter().map(|it| it.number).collect();
        assert_eq!(left, [held, other]);
        assert_eq!(store.list(held, 0).kept[0].state, TensorState::Received);
    }
}
