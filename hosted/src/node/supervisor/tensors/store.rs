//! The tensors that a node keeps for clients, each in sealed memory that no process changes.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use super::room::Waiting;
use crate::node::control::{
    KeptTensor, TensorKey, TensorList, TensorRefused, TensorState, TensorStatus,
};
use crate::node::link::Ticket;
use crate::tensor::ShapeText;

/// The most tensors in a store: each has a descriptor.
pub(in super::super) const KEPT_MAX: usize = 128;
/// Descriptors that a node has beside those of tensors: of its clients, its own memory and files,
/// its tasks; and of each peer: its session, its process and its memory.
const FILES_OF_NODE: usize = 256;
const FILES_OF_PEER: usize = 16;
/// The most tensors that one client may hold.
const HELD_MAX: usize = 16;
/// The most tensors in one reply, so that it fits into a packet with the longest names.
const LISTED_MAX: usize = 24;
/// How long after a deadline a component may still answer; one that hangs answers never.
const GRACE_NS: u64 = 1_000_000_000;

/// How many tensors and receives a node may have: each takes a descriptor, or will.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Places {
    count: usize,
    /// How many files the node may open (`RLIMIT_NOFILE`); none without a limit.
    open_files: Option<u64>,
}

impl Places {
    /// What is left beside all else that a node of `nodes` opens.
    pub(in super::super) fn beside(nodes: usize, open_files: Option<u64>) -> Self {
        let others = FILES_OF_NODE + FILES_OF_PEER * nodes;
        let left = open_files.map_or(usize::MAX, |all| usize::try_from(all).unwrap_or(usize::MAX));
        Self { count: left.saturating_sub(others).min(KEPT_MAX), open_files }
    }
}

/// A tensor that is kept.
#[derive(Debug)]
pub(super) struct StoredTensor {
    pub(super) key: TensorKey,
    /// None of a dead one.
    pub(super) memory: Option<(ShapeText, OwnedFd)>,
    pub(super) bytes: u64,
    pub(super) stage: TensorStage,
}

/// What a tensor waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TensorStage {
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
    /// Bytes for which it has room.
    pub(super) reserved: u64,
}

/// The tensors that a node keeps, and the receives for which it reserves room.
#[derive(Debug)]
pub(in super::super) struct TensorStore {
    /// The most bytes.
    limit: u64,
    /// The most tensors and receives: as many as descriptors allow.
    places: Places,
    pub(super) kept: BTreeMap<u64, StoredTensor>,
    pub(super) receives: BTreeMap<Ticket, Receive>,
    /// What has no room yet.
    pub(super) waiting: Vec<Waiting>,
    /// What the program of this incarnation hands over, and to which node: its own memory, in no
    /// store.
    pub(in super::super) own: BTreeMap<u64, (u16, OwnedFd)>,
    count: u64,
}

impl TensorStore {
    pub(in super::super) const fn new(limit: u64, places: Places) -> Self {
        Self {
            limit,
            places,
            kept: BTreeMap::new(),
            receives: BTreeMap::new(),
            waiting: Vec::new(),
            own: BTreeMap::new(),
            count: 0,
        }
    }

    /// Bytes that are kept, and those that receives may still bring.
    fn bytes(&self) -> u64 {
        let kept = self.kept.values().map(|it| it.bytes);
        kept.chain(self.receives.values().map(|it| it.reserved)).sum()
    }

    /// Whether there is room for one more tensor of `bytes`.
    pub(super) fn check_room(&self, bytes: u64) -> Result<(), TensorRefused> {
        if self.kept.len() + self.receives.len() >= self.places.count {
            return Err(match self.places.open_files {
                Some(open_files) if self.places.count < KEPT_MAX => {
                    TensorRefused::Descriptors { places: self.places.count, open_files }
                }
                Some(_) | None => TensorRefused::Full { limit: self.places.count },
            });
        }
        self.check_bytes(bytes)
    }

    fn check_bytes(&self, bytes: u64) -> Result<(), TensorRefused> {
        let fits = self.bytes().checked_add(bytes).is_some_and(|all| all <= self.limit);
        if fits { Ok(()) } else { Err(self.full(bytes)) }
    }

    /// There is no room for a tensor of `bytes`.
    pub(super) fn full(&self, needed: u64) -> TensorRefused {
        TensorRefused::StoreFull { needed, bytes: self.bytes(), limit: self.limit }
    }

    /// How many bytes more a receive needs for a tensor of `bytes`, if there is room for them.
    pub(super) fn check_more(&self, ticket: Ticket, bytes: u64) -> Result<u64, TensorRefused> {
        let Some(receive) = self.receives.get(&ticket) else { return Err(TensorRefused::NotSent) };
        let more = bytes.saturating_sub(receive.reserved);
        self.check_bytes(more)?;
        Ok(more)
    }

    /// A receive turns out to bring a tensor of `bytes`.
    pub(super) fn reserve(&mut self, ticket: Ticket, bytes: u64) -> Result<(), TensorRefused> {
        let more = self.check_more(ticket, bytes)?;
        if let Some(receive) = self.receives.get_mut(&ticket) {
            receive.reserved += more;
        }
        Ok(())
    }

    /// The memory of a tensor that is handed over to node `to`. The numbers of a program's are
    /// others than those of clients ([`OWN_NUMBERS`](crate::node::link::OWN_NUMBERS)).
    pub(super) fn lent(&self, number: u64, to: u16) -> Option<&OwnedFd> {
        if let Some((_, fd)) = self.own.get(&number).filter(|(of, _)| *of == to) {
            return Some(fd);
        }
        let kept = self.kept.get(&number)?;
        // Its component may have said that it is sent, and this has not been heard yet.
        let is_lent = kept.key.to == to && !matches!(kept.stage, TensorStage::Received { .. });
        kept.memory.as_ref().filter(|_| is_lent).map(|(_, fd)| fd)
    }

    /// Keeps a tensor, under the number that is returned.
    pub(super) fn keep(&mut self, kept: StoredTensor) -> u64 {
        self.count += 1;
        self.kept.insert(self.count, kept);
        self.count
    }

    /// Whether the client may hold one tensor more.
    pub(super) fn check_held(&self, client: u64) -> Result<(), TensorRefused> {
        let held = TensorStage::Received { holder: Some(client) };
        let is_greedy = self.kept.values().filter(|it| it.stage == held).count() >= HELD_MAX;
        if is_greedy { Err(TensorRefused::Held { limit: HELD_MAX }) } else { Ok(()) }
    }

    /// Whether a tensor of that name was received, and no client holds it.
    pub(super) fn has_received(&self, key: &TensorKey) -> bool {
        self.kept.values().any(|it| it.is_free() && it.key == *key)
    }

    /// Drops a tensor that the client holds; whether it held it.
    pub(super) fn release(&mut self, client: u64, number: u64) -> bool {
        let held = TensorStage::Received { holder: Some(client) };
        let holds = self.kept.get(&number).is_some_and(|it| it.stage == held);
        holds && self.kept.remove(&number).is_some()
    }

    /// The client has left: what it held goes to the next one that asks for it.
    pub(super) fn forget(&mut self, client: u64) {
        self.receives.retain(|ticket, _| ticket.client != client);
        for kept in self.kept.values_mut() {
            if kept.stage == (TensorStage::Received { holder: Some(client) }) {
                kept.stage = TensorStage::Received { holder: None };
            }
        }
    }

    /// Drops the tensors of a step, except those that clients hold; the senders that waited.
    pub(super) fn end_step(&mut self, step: i64) -> Vec<Ticket> {
        let mut waiting = Vec::new();
        self.kept.retain(|_, kept| {
            let is_held = matches!(kept.stage, TensorStage::Received { holder: Some(_) });
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
        let waiting = self.waiting.iter().filter_map(Waiting::deadline_ns);
        receives.chain(self.kept.values().filter_map(StoredTensor::late_ns)).chain(waiting).min()
    }

    /// What is kept, in numbers.
    pub(in super::super) fn status(&self) -> TensorStatus {
        TensorStatus {
            kept: self.kept.len(),
            kept_bytes: self.bytes(),
            store_bytes: self.limit,
            ..TensorStatus::default()
        }
    }

    /// What is kept behind the number `after`.
    pub(super) fn list(&self, after: u64) -> TensorList {
        let listed = |(number, kept): (&u64, &StoredTensor)| KeptTensor {
            number: *number,
            key: kept.key.clone(),
            shape: kept.memory.as_ref().map(|(shape, _)| shape.clone()),
            bytes: kept.bytes,
            state: match kept.stage {
                TensorStage::Waiting { .. } => TensorState::Waiting,
                TensorStage::Sent { .. } => TensorState::Sent,
                TensorStage::Received { holder: None } => TensorState::Received,
                TensorStage::Received { holder: Some(_) } => TensorState::Held,
            },
        };
        let behind = self.kept.range(after.saturating_add(1)..);
        TensorList {
            bytes: self.bytes(),
            limit: self.limit,
            receives: self.receives.len(),
            waiting: self.waiting.len(),
            kept: behind.take(LISTED_MAX).map(listed).collect(),
        }
    }
}

impl Receive {
    pub(super) const fn late_ns(&self) -> u64 {
        self.deadline_ns.saturating_add(GRACE_NS)
    }
}

impl StoredTensor {
    const fn is_free(&self) -> bool {
        matches!(self.stage, TensorStage::Received { holder: None })
    }

    /// The sender that waits for a word about it.
    pub(super) const fn sender(&self) -> Option<Ticket> {
        match self.stage {
            TensorStage::Waiting { ticket, .. }
            | TensorStage::Sent { sender: Some((ticket, _)) } => Some(ticket),
            TensorStage::Sent { sender: None } | TensorStage::Received { .. } => None,
        }
    }

    /// When its sender has waited for too long.
    pub(super) const fn late_ns(&self) -> Option<u64> {
        match self.stage {
            TensorStage::Waiting { deadline_ns, .. } => Some(deadline_ns.saturating_add(GRACE_NS)),
            TensorStage::Sent { sender: Some((_, deadline_ns)) } => Some(deadline_ns),
            TensorStage::Sent { sender: None } | TensorStage::Received { .. } => None,
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

    fn kept(edge: &str, step: i64, stage: TensorStage) -> StoredTensor {
        StoredTensor { key: key(edge, step), memory: None, bytes: MIB, stage }
    }

    fn receive(edge: &str, reserved: u64) -> Receive {
        Receive { key: key(edge, 0), deadline_ns: 5, reserved }
    }

    const fn ticket(client: u64) -> Ticket {
        Ticket { client, id: 1 }
    }

    #[test]
    fn rz17_a_store_refuses_what_it_may_not_hold_and_counts_what_receives_may_bring() {
        let mut store = TensorStore::new(4 * MIB, Places::beside(2, None));
        store.keep(kept("a", 0, TensorStage::Sent { sender: None }));
        assert_eq!(store.check_room(3 * MIB), Ok(()));
        let full = |needed, bytes| TensorRefused::StoreFull { needed, bytes, limit: 4 * MIB };
        assert_eq!(store.check_room(3 * MIB + 1), Err(full(3 * MIB + 1, MIB)));
        store.receives.insert(ticket(7), receive("b", 2 * MIB));
        assert_eq!(store.check_room(2 * MIB), Err(full(2 * MIB, 3 * MIB)));
        for _ in 0..KEPT_MAX {
            store.keep(kept("a", 0, TensorStage::Sent { sender: None }));
        }
        let full = TensorRefused::Full { limit: KEPT_MAX };
        assert_eq!(store.check_room(0), Err(full));
    }

    #[test]
    fn rz18_a_store_has_no_more_places_than_descriptors() {
        let mut store = TensorStore::new(4 * MIB, Places::beside(2, Some(256 + 32 + 1)));
        assert_eq!(store.check_room(0), Ok(()));
        store.keep(kept("a", 0, TensorStage::Sent { sender: None }));
        let full = TensorRefused::Descriptors { places: 1, open_files: 289 };
        assert_eq!(store.check_room(0), Err(full));
        for (open_files, count) in [(0, 0), (288, 0), (1024, KEPT_MAX), (u64::MAX, KEPT_MAX)] {
            assert_eq!(Places::beside(2, Some(open_files)).count, count, "{open_files}");
        }
    }

    #[test]
    fn rz18_what_is_handed_over_has_its_room_before_it_comes() {
        let mut store = TensorStore::new(4 * MIB, Places::beside(2, None));
        assert_eq!(store.reserve(ticket(7), MIB), Err(TensorRefused::NotSent), "it has left");
        store.receives.insert(ticket(7), receive("a", MIB));
        assert_eq!(store.reserve(ticket(7), 3 * MIB), Ok(()));
        assert_eq!(store.reserve(ticket(7), MIB), Ok(()), "it has more than that");
        let full = |needed| TensorRefused::StoreFull { needed, bytes: 3 * MIB, limit: 4 * MIB };
        assert_eq!(store.reserve(ticket(7), 5 * MIB), Err(full(2 * MIB)));
        assert_eq!(store.check_room(2 * MIB), Err(full(2 * MIB)));
        assert_eq!(store.reserve(ticket(7), u64::MAX).map_err(drop), Err(()));
    }

    #[test]
    fn rz17_what_a_client_that_left_had_received_goes_to_the_next() {
        let mut store = TensorStore::new(4 * MIB, Places::beside(2, None));
        let number = store.keep(kept("a", 0, TensorStage::Received { holder: Some(7) }));
        store.receives.insert(ticket(7), receive("a", 0));
        store.receives.insert(ticket(8), receive("a", 0));
        assert_eq!(store.match_one(), None, "it is held");
        assert!(!store.release(8, number), "by another");
        assert!(!store.has_received(&key("a", 0)), "none that is free");
        for _ in 1..HELD_MAX {
            assert_eq!(store.check_held(7), Ok(()));
            store.keep(kept("b", 0, TensorStage::Received { holder: Some(7) }));
        }
        assert_eq!(store.check_held(7), Err(TensorRefused::Held { limit: HELD_MAX }));
        assert_eq!(store.check_held(8), Ok(()));
        store.forget(7);
        assert!(store.has_received(&key("a", 0)));
        assert_eq!(store.match_one(), Some((number, ticket(8))));
        assert!(!store.release(7, number));
    }

    #[test]
    fn rz7_the_end_of_a_step_drops_what_no_client_holds() {
        let mut store = TensorStore::new(4 * MIB, Places::beside(2, None));
        let waiting = TensorStage::Waiting { ticket: ticket(3), waits: false, deadline_ns: 9 };
        for stage in [waiting, TensorStage::Sent { sender: Some((ticket(4), 8)) }] {
            store.keep(kept("a", 1, stage));
        }
        assert_eq!(store.next_deadline_ns(), Some(8));
        let held = store.keep(kept("a", 1, TensorStage::Received { holder: Some(7) }));
        let other = store.keep(kept("a", 2, TensorStage::Received { holder: None }));
        assert_eq!(store.end_step(1), [ticket(3), ticket(4)]);
        let left: Vec<_> = store.list(0).kept.iter().map(|it| it.number).collect();
        assert_eq!(left, [held, other]);
        assert_eq!(store.list(held).kept[0].state, TensorState::Received);
    }
}
