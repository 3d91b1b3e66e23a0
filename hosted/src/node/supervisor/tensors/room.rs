//! Requests that wait until the store has room for them.
//!
//! Each is tried in every turn of the loop, whatever waits before it: a receive, which makes room
//! once its client has released it, is never behind a tensor that is too long. Only what is sent
//! under one name keeps its order.

use std::os::fd::OwnedFd;

use weft_core::ids::Peer;

use super::store::TensorStore;
use crate::bootstrap::HandOver;
use crate::node::control::{Outcome, Refused, TensorKey, TensorRefused, TensorWant};
use crate::node::link::Ticket;
use crate::node::supervisor::Supervisor;

/// The most tensors that wait to be kept: each has a descriptor.
const SENDS_MAX: usize = 32;

/// What waits.
#[derive(Debug)]
pub(super) enum Waiting {
    /// A request of a client, with the memory that came with it.
    Request { ticket: Ticket, what: TensorWant, fds: Vec<OwnedFd>, bytes: u64, deadline_ns: u64 },
    /// What a receive fetches from a peer, and how long it is. It ends with the receive.
    Fetch { ticket: Ticket, peer: Peer, which: HandOver, bytes: u64 },
}

impl Waiting {
    const fn ticket(&self) -> Ticket {
        match self {
            Self::Request { ticket, .. } | Self::Fetch { ticket, .. } => *ticket,
        }
    }

    /// The name under which a tensor is to be sent.
    const fn sent(&self) -> Option<&TensorKey> {
        match self {
            Self::Request { what: TensorWant::Send { key, .. }, .. } => Some(key),
            Self::Request { .. } | Self::Fetch { .. } => None,
        }
    }

    pub(super) const fn deadline_ns(&self) -> Option<u64> {
        match self {
            Self::Request { deadline_ns, .. } => Some(*deadline_ns),
            Self::Fetch { .. } => None,
        }
    }
}

impl TensorStore {
    /// For how many bytes, beside a place, a request waits that was refused for that reason; none
    /// if it does not wait.
    pub(super) fn awaited_bytes(&self, what: &TensorWant, why: &Refused) -> Option<u64> {
        let sends = || self.waiting.iter().filter(|it| it.sent().is_some()).count();
        if matches!(what, TensorWant::Send { .. }) && sends() >= SENDS_MAX {
            return None;
        }
        match why {
            Refused::Tensor(TensorRefused::StoreFull { needed, .. }) => Some(*needed),
            Refused::Tensor(TensorRefused::Full { .. }) => Some(0),
            _ => None,
        }
    }

    /// Whether there is room for a tensor of that name, and none that was sent before waits.
    pub(super) fn check_turn(&self, key: &TensorKey, bytes: u64) -> Result<(), TensorRefused> {
        let is_first = !self.waiting.iter().any(|it| it.sent() == Some(key));
        if is_first { self.check_room(bytes) } else { Err(self.full(bytes)) }
    }

    fn has_room_for(&self, waiting: &Waiting) -> Result<(), TensorRefused> {
        match waiting {
            Waiting::Request { what: TensorWant::Send { key, .. }, bytes, .. } => {
                self.check_turn(key, *bytes)
            }
            Waiting::Request { bytes, .. } => self.check_room(*bytes),
            Waiting::Fetch { ticket, bytes, .. } => self.check_more(*ticket, *bytes).map(drop),
        }
    }
}

impl Supervisor {
    /// Begins what has room now, and refuses what has waited for too long.
    pub(in super::super) fn admit_tensors(&mut self, now_ns: u64) {
        for waiting in std::mem::take(&mut self.tensors.waiting) {
            // Its client has left, or was answered.
            if !self.clients.has_open(waiting.ticket()) {
                continue;
            }
            let room = self.tensors.has_room_for(&waiting);
            let is_late = waiting.deadline_ns().is_some_and(|at| now_ns >= at);
            match (room, waiting) {
                (Err(why), Waiting::Request { ticket, .. }) if is_late => {
                    self.clients.finish(ticket, Outcome::Refused(Refused::Tensor(why)));
                }
                (Ok(()), Waiting::Request { ticket, what, fds, deadline_ns, .. }) => {
                    self.handle_tensor_request(ticket, what, deadline_ns, fds);
                }
                (Ok(()), Waiting::Fetch { ticket, peer, which, bytes }) => {
                    self.fetch_tensor(peer, which, (Some(ticket), bytes));
                }
                (_, waiting) => self.tensors.waiting.push(waiting),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::{Places, StoredTensor, TensorStage};
    use super::*;

    const LIMIT: u64 = 100;

    fn key(edge: &str) -> TensorKey {
        TensorKey { from: 0, to: 1, edge: edge.to_owned(), step: 0 }
    }

    fn send(edge: &str) -> TensorWant {
        TensorWant::Send { key: key(edge), shape: None, waits: false }
    }

    fn waiting(id: u64, edge: &str, bytes: u64) -> Waiting {
        let ticket = Ticket { client: 1, id };
        let (what, fds) = (send(edge), Vec::new());
        Waiting::Request { ticket, what, fds, bytes, deadline_ns: id }
    }

    fn full(needed: u64, bytes: u64) -> TensorRefused {
        TensorRefused::StoreFull { needed, bytes, limit: LIMIT }
    }

    #[test]
    fn rz17_what_is_sent_under_one_name_keeps_its_order_and_passes_all_others() {
        let mut store = TensorStore::new(LIMIT, Places::beside(2, None));
        let (memory, stage) = (None, TensorStage::Sent { sender: None });
        store.keep(StoredTensor { key: key("z"), memory, bytes: 60, stage });
        store.waiting.push(waiting(1, "a", 50));
        assert_eq!(store.has_room_for(&waiting(2, "b", 40)), Ok(()));
        assert_eq!(store.has_room_for(&waiting(2, "b", 41)), Err(full(41, 60)));
        assert_eq!(store.has_room_for(&waiting(3, "a", 1)), Err(full(1, 60)), "behind the first");
        assert_eq!(store.check_turn(&key("a"), 1), Err(full(1, 60)));
        store.waiting.clear();
        assert_eq!(store.check_turn(&key("a"), 1), Ok(()));
    }

    #[test]
    fn rz17_what_waits_for_room_is_bounded_where_it_has_descriptors() {
        let mut store = TensorStore::new(LIMIT, Places::beside(2, None));
        let refused = Refused::Tensor(full(7, 100));
        let receive = TensorWant::Receive { key: key("r") };
        for id in 1..=SENDS_MAX as u64 {
            assert_eq!(store.awaited_bytes(&send("a"), &refused), Some(7));
            store.waiting.push(waiting(id, "a", 7));
        }
        assert_eq!(store.awaited_bytes(&send("b"), &refused), None);
        assert_eq!(store.awaited_bytes(&receive, &refused), Some(7));
        let full = Refused::Tensor(TensorRefused::Full { limit: 9 });
        assert_eq!(store.awaited_bytes(&receive, &full), Some(0));
        let few = Refused::Tensor(TensorRefused::Descriptors { places: 1, open_files: 9 });
        assert_eq!(store.awaited_bytes(&receive, &few), None);
        assert_eq!(store.awaited_bytes(&receive, &Refused::Isolated), None);
        assert_eq!(store.next_deadline_ns(), Some(1));
    }
}
