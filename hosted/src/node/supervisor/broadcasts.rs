//! The broadcast state that a node must not lose with a component: conflicts that were seen, proofs
//! that were found, which client receives each origin and how much it has processed, which client
//! may broadcast, and the abort markers of clients that have left in the middle of a broadcast.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use weft_core::ids::Peer;
use weft_core::neb::Proof;

use super::Supervisor;
use super::clients::Clients;
use super::send_queue::{Asked, Cast, SendQueue};
use crate::clock::now_ns;
use crate::node::abort_markers::AbortMarkers;
use crate::node::chronicle::What;
use crate::node::control::{
    ConflictStatus, HeldProof, OriginStatus, Outcome, ProofStatus, Refused,
};
use crate::node::link::{Ticket, ToComponent};
use crate::node::places::Places;
use crate::signing::PublicKey;

/// The most conflicts that are remembered.
const DISPUTES_MAX: usize = 1024;

/// The broadcast state that outlives components.
#[derive(Debug)]
pub(super) struct BroadcastState {
    /// The first proof against each origin.
    proofs: BTreeMap<u16, HeldProof>,
    /// By origin and number: the member that showed something else.
    disputes: BTreeMap<(u16, u64), u16>,
    /// The receivers, as last reported by a component.
    places: Places,
    pub(super) abort_markers: AbortMarkers,
    pub(super) send_queue: SendQueue,
}

impl BroadcastState {
    pub(super) fn new(nodes: usize) -> Self {
        let (proofs, disputes) = (BTreeMap::new(), BTreeMap::new());
        Self {
            proofs,
            disputes,
            places: Places::new(nodes),
            abort_markers: AbortMarkers::default(),
            send_queue: SendQueue::default(),
        }
    }

    /// A proof against `origin`, or against any node.
    pub(super) fn proof(&self, origin: Option<u16>) -> Option<HeldProof> {
        let mut proofs = self.proofs.values();
        proofs.find(|proof| origin.is_none_or(|rank| rank == proof.origin)).cloned()
    }

    /// The proofs that are held.
    pub(super) fn proofs(&self) -> Vec<ProofStatus> {
        self.proofs.values().map(HeldProof::status).collect()
    }

    /// The places of connected clients: what each receives, and how much it has processed.
    pub(super) fn places(&self, clients: &Clients) -> Places {
        let mut places = self.places.clone();
        places.retain(|client| clients.is_connected(client));
        places
    }

    /// Records the places that the component reports.
    pub(super) fn note_places(&mut self, places: Places) {
        self.places = places;
    }

    /// Records a conflict that a component has seen; a later one reports the same at most once
    /// more. Whether it is the first about its origin.
    pub(super) fn note_conflict(&mut self, conflict: ConflictStatus) -> bool {
        let ConflictStatus { origin, seq, replayer } = conflict;
        if self.disputes.len() >= DISPUTES_MAX {
            return false;
        }
        let is_first = self.disputes.range((origin, 0)..=(origin, u64::MAX)).next().is_none();
        self.disputes.entry((origin, seq)).or_insert(replayer);
        is_first
    }

    /// Adds the knowledge of earlier components to an answer of the present one.
    pub(super) fn complete(&self, what: &mut Outcome) {
        if let Outcome::Status(status) = what {
            status.broadcasts.iter_mut().for_each(|row| self.complete_row(row));
        }
    }

    fn complete_row(&self, row: &mut OriginStatus) {
        let origin = row.origin;
        let mut known = self.disputes.range((origin, 0)..=(origin, u64::MAX));
        let count = u32::try_from(known.clone().count()).unwrap_or(u32::MAX);
        row.conflicts = row.conflicts.max(count);
        let known = known.next().map(|(&(origin, seq), &replayer)| ConflictStatus {
            origin,
            seq,
            replayer,
        });
        // The one that was reported before.
        let both = [known, row.first_conflict];
        row.first_conflict = both.into_iter().flatten().min_by_key(|conflict| conflict.seq);
    }
}

/// Whether `held` proves by `key`, its origin's, what it claims.
fn proves(held: &HeldProof, PublicKey(key): PublicKey) -> bool {
    let verified = Proof::decode(&held.bytes.0).and_then(|proof| proof.verify_by(&key));
    verified == Ok((Peer(held.origin), held.seq))
}

impl Supervisor {
    /// Handles a conflict that a component has seen.
    pub(super) fn note_dispute(&mut self, conflict: ConflictStatus) {
        let ConflictStatus { origin, seq, replayer } = conflict;
        if self.broadcasts.note_conflict(conflict) {
            self.note(origin, What::Disputed { seq, replayer });
        }
    }

    /// Handles a component's proof: if it is valid, it ends the origin's broadcasts.
    pub(super) fn note_proof(&mut self, proof: HeldProof) {
        let (origin, seq) = (proof.origin, proof.seq);
        let keys = self.reach.keys();
        let key = keys.iter().find(|(peer, _)| peer.0 == origin).map(|(_, key)| *key);
        if !key.is_some_and(|key| proves(&proof, key)) {
            tracing::warn!(
                origin,
                seq,
                "what the component holds against an origin proves nothing"
            );
            return;
        }
        if let Entry::Vacant(first) = self.broadcasts.proofs.entry(origin) {
            first.insert(proof);
            tracing::error!(origin, seq, "sent different messages under one number: proven");
            self.note(origin, What::Proven { seq });
        }
    }

    /// Queues a client's broadcast: it starts at once, or when it is the client's turn.
    pub(super) fn ask_to_send(&mut self, ticket: Ticket, cast: Cast) {
        match self.broadcasts.send_queue.ask(ticket, cast) {
            Asked::Now(cast) => {
                let what = cast.want(now_ns());
                self.forward(ticket, ToComponent::Request { ticket, what }, Vec::new());
            }
            Asked::Later => {}
            Asked::Full => self.clients.finish(ticket, Outcome::Refused(Refused::Busy)),
        }
    }

    /// Cleans up after the clients that have left.
    pub(super) fn take_leave(&mut self) {
        while let Some((client, is_known_below)) = self.clients.poll_left() {
            self.parked.retain(|(ticket, ..)| ticket.client != client);
            self.tasks.handle_left(client);
            self.forget_tensors_of(client);
            self.end_turn(client, is_known_below);
        }
    }

    /// A client has left: what it has not broadcast yet is dropped, and if it was in the middle of
    /// a broadcast, its abort marker is broadcast before anything of another client.
    fn end_turn(&mut self, client: u64, is_known_below: bool) {
        let marker = self.broadcasts.send_queue.forget(client);
        if is_known_below && self.component.is_some() {
            self.tell(&ToComponent::Left { client }, &[]);
        } else {
            self.clients.handle_forgotten(client);
        }
        let Some(marker) = marker else { return };
        if let Some(number) = self.broadcasts.abort_markers.keep(marker.clone()) {
            self.tell(&ToComponent::Execute { number, marker }, &[]);
        } else {
            tracing::warn!(
                client,
                "too many abort markers: receivers do not learn that it has left"
            );
        }
    }

    /// Sends a component that is ready the abort markers that none has executed.
    pub(super) fn send_abort_markers(&mut self) {
        let kept = self.broadcasts.abort_markers.kept();
        let kept: Vec<_> = kept.map(|(number, marker)| (number, marker.clone())).collect();
        for (number, marker) in kept {
            self.tell(&ToComponent::Execute { number, marker }, &[]);
        }
    }

    /// Hands over the broadcasts of the client whose turn it is; refuses those that have waited
    /// past their deadline for another client.
    pub(super) fn pass_turn(&mut self, now_ns: u64) {
        loop {
            let clients = &self.clients;
            let next = self.broadcasts.send_queue.next(|ticket| clients.has_open(ticket));
            let Some((ticket, cast)) = next else { break };
            let what = cast.want(now_ns);
            self.forward(ticket, ToComponent::Request { ticket, what }, Vec::new());
        }
        for ticket in self.broadcasts.send_queue.take_overdue(now_ns) {
            self.clients.finish(ticket, Outcome::Refused(Refused::OtherSender));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::control::WindowStatus;

    fn conflict(origin: u16, seq: u64, replayer: u16) -> ConflictStatus {
        ConflictStatus { origin, seq, replayer }
    }

    fn row(origin: u16, conflicts: u32, first: Option<ConflictStatus>) -> OriginStatus {
        OriginStatus {
            origin,
            broadcast: 9,
            delivered: 4,
            settled: 4,
            window: WindowStatus::default(),
            conflicts,
            first_conflict: first,
            damaged: None,
            key: None,
        }
    }

    #[test]
    fn a_liar_fills_what_is_kept_and_not_the_chronicle() {
        let mut broadcasts = BroadcastState::new(3);
        let many = (1..).take(2 * DISPUTES_MAX).map(|seq| conflict(1, seq, 0));
        assert_eq!(many.filter(|it| broadcasts.note_conflict(*it)).count(), 1);
        assert!(!(0..9).any(|_| broadcasts.note_conflict(conflict(2, 1, 0))));
    }

    #[test]
    fn conflicts_of_earlier_components_are_told_and_none_is_counted_twice() {
        let mut broadcasts = BroadcastState::new(3);
        for known in [conflict(1, 6, 2), conflict(1, 5, 0), conflict(1, 5, 2), conflict(2, 1, 0)] {
            let is_first = known.seq == 6 || known.origin == 2;
            assert_eq!(broadcasts.note_conflict(known), is_first, "{known:?}");
        }
        let completed = |mut row| {
            broadcasts.complete_row(&mut row);
            row
        };
        let first = Some(conflict(1, 5, 0));
        assert_eq!(completed(row(1, 0, None)), row(1, 2, first));
        assert_eq!(completed(row(1, 1, Some(conflict(1, 6, 2)))), row(1, 2, first));
        assert_eq!(completed(row(1, 1, Some(conflict(1, 5, 2)))), row(1, 2, first));
        assert_eq!(completed(row(0, 0, None)), row(0, 0, None));
    }
}
