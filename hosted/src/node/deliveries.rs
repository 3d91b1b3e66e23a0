//! The broadcasts of other origins, on their way to the clients that receive them: one client for
//! each origin.
//!
//! ```text
//!   … processed │ handed out, still in the replay ring │ not taken yet: holds up the window
//!             after                                delivered
//! ```
//!
//! A message counts as delivered once it was taken for the client, so a node whose client is slow,
//! or that has none, holds up the origin's window and nothing is lost. What was taken stays in the
//! ring until many more were delivered, so a client continues where it was when the component dies:
//! it names the last message that it has, and gets each later one once. The next client begins
//! after what this one has processed.
//!
//! A client that asks for one origin holds it from then on, and no other. A client that asks for
//! all origins holds those of which it was handed a message, and waits for those that no other
//! client holds.
//!
//! What an origin broadcast before `behind`, where it or this node returned, is handed to no
//! client.
//!
//! A conflict is reported at once to a client that asks for that origin alone. A client that asks
//! for all of them waits for the other origins, and gets the conflict when no message came.

use weft_core::ids::Peer;
use weft_core::neb::{Conflict, PROOF_LEN_MAX, Proof, SLOT_LEN_MAX, Standing, number_in_epoch};

use super::NodeEndpoint;
use super::control::{
    ConflictStatus, DeliveredMessage, Deliveries, HeldProof, MESSAGES_MAX, OriginStatus, Outcome,
    Payload, Refused, TakenMessage, WindowStatus,
};
use super::link::Ticket;
use super::places::{Places, ReceivingClient};
use super::puts::Answer;
use crate::signing::PublicKey;

/// The most clients that wait.
const LINE_MAX: usize = 256;

/// The most messages of one origin in one reply, so that all of them are still in the ring when
/// they are asked for again: fewer than the smallest ring has beyond the depth.
const BURST: usize = 32;

/// A client's request for deliveries.
#[derive(Debug)]
pub(super) struct DeliverJob {
    pub(super) ticket: Ticket,
    /// The client's process.
    pub(super) process: u32,
    /// Only this origin.
    pub(super) origin: Option<u16>,
    /// For each origin, the last message that was processed; none to continue after the last
    /// client.
    pub(super) after: Vec<u64>,
    pub(super) max: usize,
    pub(super) deadline_ns: u64,
}

impl DeliverJob {
    const fn receiver(&self) -> ReceivingClient {
        ReceivingClient { client: self.ticket.client, process: self.process }
    }
}

/// The receiving side of the broadcast.
#[derive(Debug)]
pub(super) struct DeliveryLine {
    /// One request a client, in the order of arrival.
    waiting: Vec<DeliverJob>,
    places: Places,
    /// The places as last sent to the supervisor.
    confirmed: Places,
    /// For each origin, its first conflict.
    conflicts: Vec<Option<ConflictStatus>>,
    /// Conflicts and proofs on their way to the supervisor.
    disputes: Vec<ConflictStatus>,
    proofs: Vec<HeldProof>,
}

impl DeliveryLine {
    /// Continues where the clients of earlier incarnations were.
    pub(super) fn new(places: Places) -> Self {
        let conflicts = vec![None; places.len()];
        let (disputes, proofs) = (Vec::new(), Vec::new());
        let (waiting, confirmed) = (Vec::new(), places.clone());
        Self { waiting, places, confirmed, conflicts, disputes, proofs }
    }

    /// Takes on a client's request.
    pub(super) fn begin(&mut self, endpoint: &mut NodeEndpoint, job: DeliverJob) -> Option<Answer> {
        let nodes = u16::try_from(self.places.len()).unwrap_or(u16::MAX);
        let (ticket, client) = (job.ticket, job.ticket.client);
        // A client's new request replaces its former one.
        self.waiting.retain(|other| other.ticket.client != client);
        let holder = job.origin.and_then(|origin| self.places.other_holder(Peer(origin), client));
        let refused = if let Some(rank) = job.origin.filter(|origin| *origin >= nodes) {
            Refused::OutOfRange { rank, nodes }
        } else if !job.after.is_empty() && job.after.len() != self.places.len() {
            positions_of(job.after.len())
        } else if let (Some(origin), Some(ReceivingClient { process, .. })) = (job.origin, holder) {
            Refused::OtherReceiver { origin, process }
        } else if self.waiting.len() >= LINE_MAX {
            Refused::Busy
        } else {
            self.note_dealt_with(endpoint, client, &job.after);
            if let Some(origin) = job.origin.map(Peer) {
                self.places.hold(origin, job.receiver());
                self.places.give_back(client, Some(origin));
            }
            self.waiting.push(job);
            return None;
        };
        Some((ticket, Outcome::Refused(refused)))
    }

    /// Ends a client's receiving, after all that it has processed; the answer says where the next
    /// client begins.
    pub(super) fn end(
        &mut self,
        endpoint: &mut NodeEndpoint,
        client: u64,
        confirmed: &[u64],
    ) -> Outcome {
        if confirmed.len() != self.places.len() {
            return Outcome::Refused(positions_of(confirmed.len()));
        }
        self.note_dealt_with(endpoint, client, confirmed);
        self.forget(client);
        Outcome::Delivered(Deliveries { after: self.places.after(), ..Deliveries::default() })
    }

    /// The client has left: others may receive, beginning with what this one has not processed.
    pub(super) fn forget(&mut self, client: u64) {
        self.places.give_back(client, None);
        self.waiting.retain(|job| job.ticket.client != client);
    }

    /// The places, if they have changed since the last call.
    pub(super) fn take_places(&mut self) -> Option<Places> {
        (self.confirmed != self.places).then(|| {
            self.confirmed.clone_from(&self.places);
            self.places.clone()
        })
    }

    /// Whether no client waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Records conflicts, whether a client asks or not; whether there were any.
    pub(super) fn note_conflicts(&mut self, endpoint: &mut NodeEndpoint) -> bool {
        let mut is_new = false;
        while let Some(conflict) =
            endpoint.broadcast().and_then(|(broadcast, _)| broadcast.take_conflict())
        {
            self.note_conflict(endpoint, conflict);
            is_new = true;
        }
        is_new
    }

    /// Hands out what there is.
    pub(super) fn step(&mut self, endpoint: &mut NodeEndpoint, now_ns: u64) -> Vec<Answer> {
        let mut answers = Vec::new();
        for job in std::mem::take(&mut self.waiting) {
            match self.serve(endpoint, &job, now_ns) {
                Some(outcome) => answers.push((job.ticket, outcome)),
                None => self.waiting.push(job),
            }
        }
        answers
    }

    /// The answer to a client's request, if there is one yet.
    fn serve(
        &mut self,
        endpoint: &mut NodeEndpoint,
        job: &DeliverJob,
        now_ns: u64,
    ) -> Option<Outcome> {
        match self.hand_out(endpoint, job) {
            Ok(found) => {
                let is_answer = !found.messages.is_empty()
                    || job.origin.is_some() && !found.conflicts.is_empty()
                    || job.max == 0
                    || now_ns >= job.deadline_ns;
                is_answer.then_some(Outcome::Delivered(found))
            }
            Err(refused) => Some(Outcome::Refused(refused)),
        }
    }

    /// Records what a client reports as processed for each origin.
    fn note_dealt_with(&mut self, endpoint: &mut NodeEndpoint, client: u64, confirmed: &[u64]) {
        let delivered = |origin| standing(endpoint, origin).delivered;
        self.places.note_dealt_with(client, confirmed, delivered);
    }

    fn note_conflict(&mut self, endpoint: &mut NodeEndpoint, conflict: Conflict) {
        let Conflict { origin, seq, replayer } = conflict;
        let status = ConflictStatus { origin: origin.0, seq, replayer: replayer.0 };
        if let Some(proof) = prove(endpoint, conflict) {
            tracing::warn!(origin = origin.0, seq, "an origin lies, and it is proven");
            self.proofs.push(proof);
        } else {
            tracing::warn!(?status, "an origin or a replayer lies");
        }
        self.disputes.push(status);
        let Standing { behind, .. } = standing(endpoint, origin);
        let first = &mut self.conflicts[origin.index()];
        if first.is_none_or(|first| status.seq < first.seq || first.seq <= behind) {
            *first = Some(status);
        }
    }

    /// Takes the new conflicts.
    pub(super) fn take_disputes(&mut self) -> Vec<ConflictStatus> {
        std::mem::take(&mut self.disputes)
    }

    /// Takes the new proofs.
    pub(super) fn take_proofs(&mut self) -> Vec<HeldProof> {
        std::mem::take(&mut self.proofs)
    }

    /// The earliest deadline of the clients that wait.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        self.waiting.iter().map(|job| job.deadline_ns).min()
    }

    /// This node's state for every origin.
    pub(super) fn status(&self, endpoint: &mut NodeEndpoint) -> Vec<OriginStatus> {
        let row = |origin: Peer| {
            let standing = standing(endpoint, origin);
            let Standing { seen, delivered, behind, conflicts, damaged, .. } = standing;
            let first_conflict = self.conflicts[origin.index()].filter(|first| first.seq > behind);
            let key = key_of(endpoint, origin);
            let layout = endpoint.broadcast().map(|(broadcast, _)| broadcast.layout().0);
            let (settled, window) = window(standing, layout.map_or(0, |sizes| sizes.slots()));
            OriginStatus {
                origin: origin.0,
                broadcast: seen,
                delivered,
                settled,
                window,
                conflicts,
                first_conflict,
                damaged: damaged.map(|node| node.0),
                key,
            }
        };
        ranks(self.places.len()).map(row).collect()
    }

    fn hand_out(
        &mut self,
        endpoint: &mut NodeEndpoint,
        job: &DeliverJob,
    ) -> Result<Deliveries, Refused> {
        let me = endpoint.me();
        let mut found = Deliveries { after: self.places.after(), ..Deliveries::default() };
        let Some((broadcast, _)) = endpoint.broadcast() else { return Ok(found) };
        let longest = DeliveredMessage::encoded_len_max(broadcast.layout().0.message_len().into());
        let mut room = TakenMessage::REPLY_LEN_MAX - found.after.len() * 24;
        let max = job.max.min(MESSAGES_MAX);
        let client = job.ticket.client;
        for origin in ranks(self.places.len()) {
            let is_asked_for = origin != me && job.origin.is_none_or(|only| Peer(only) == origin);
            if !is_asked_for || self.places.other_holder(origin, client).is_some() {
                continue;
            }
            let Standing { behind, .. } = standing(endpoint, origin);
            let due = self.places.after_of(origin).max(behind) + 1;
            for seq in (due..).take(BURST) {
                if found.messages.len() >= max || room < longest {
                    return Ok(found);
                }
                let Some(message) = next(endpoint, origin, seq)? else { break };
                room -= DeliveredMessage::encoded_len_max(message.payload.0.len());
                found.messages.push(message);
                self.places.hold(origin, job.receiver());
            }
            // A conflict is due once everything before it was processed.
            let conflict = self.conflicts[origin.index()];
            found.conflicts.extend(conflict.filter(|conflict| max > 0 && conflict.seq == due));
        }
        Ok(found)
    }
}

/// The last message that all members have delivered, and the window behind it. A component that was
/// just started has not read the others' progress; but an origin reuses a slot only once
/// all members have delivered its former message, and the numbers before those of its epoch are of
/// no message that is waited for.
fn window(standing: Standing, slots: u32) -> (u64, WindowStatus) {
    let Standing { seen, settled, .. } = standing;
    let begun = seen - number_in_epoch(seen);
    let settled = settled.max(seen.saturating_sub(slots.into())).max(begun);
    (settled, WindowStatus { used: seen.saturating_sub(settled), slots })
}

fn positions_of(origins: usize) -> Refused {
    Refused::Malformed(format!("positions of {origins} origins"))
}

/// Message `seq` of `origin`: from the ring if it was taken before, otherwise if it can be
/// delivered.
fn next(
    endpoint: &mut NodeEndpoint,
    origin: Peer,
    seq: u64,
) -> Result<Option<DeliveredMessage>, Refused> {
    let delivered = standing(endpoint, origin).delivered;
    let Some((broadcast, fabric)) = endpoint.broadcast() else { return Ok(None) };
    let message = if seq <= delivered {
        let again = broadcast.delivered(fabric, origin, seq);
        Some(again.ok_or(Refused::Forgotten { origin: origin.0, seq })?)
    } else {
        broadcast.take_from(fabric, origin)
    };
    Ok(message.map(|message| DeliveredMessage {
        origin: message.origin.0,
        seq: message.seq,
        tag: message.tag,
        payload: Payload(message.payload.to_vec()),
    }))
}

/// The proof that the origin of `conflict` has equivocated, if there is one.
fn prove(endpoint: &mut NodeEndpoint, conflict: Conflict) -> Option<HeldProof> {
    let PublicKey(public) = key_of(endpoint, conflict.origin)?;
    let (broadcast, fabric) = endpoint.broadcast()?;
    let mut slots = [[0; SLOT_LEN_MAX]; 2];
    let equivocation = broadcast.equivocation(fabric, conflict, &mut slots)?;
    let mut bytes = vec![0; PROOF_LEN_MAX];
    let len = Proof { public, equivocation }.encode(&mut bytes).ok()?;
    bytes.truncate(len);
    Some(HeldProof { origin: conflict.origin.0, seq: conflict.seq, bytes: Payload(bytes) })
}

/// The public key of `origin`, as far as this node knows.
fn key_of(endpoint: &mut NodeEndpoint, origin: Peer) -> Option<PublicKey> {
    let me = endpoint.me();
    let (broadcast, _) = endpoint.broadcast()?;
    let keys = broadcast.keys()?;
    let own = (origin == me).then(|| keys.own.verifying_key());
    let key = own.or(*keys.public.get(origin.index())?)?;
    Some(PublicKey(key.to_bytes()))
}

fn standing(endpoint: &mut NodeEndpoint, origin: Peer) -> Standing {
    let standing = endpoint.broadcast().and_then(|(broadcast, _)| broadcast.standing(origin));
    standing.unwrap_or_default()
}

fn ranks(nodes: usize) -> impl Iterator<Item = Peer> {
    (0..u16::try_from(nodes).unwrap_or(u16::MAX)).map(Peer)
}

#[cfg(test)]
mod tests {
    use weft_core::ids::Incarnation;
    use weft_core::neb::number_before;

    use super::*;

    #[test]
    fn no_window_is_fuller_than_it_is_large() {
        let standing = |seen, settled| Standing { seen, settled, ..Standing::default() };
        let window_of = |used| WindowStatus { used, slots: 256 };
        assert_eq!(window(standing(10, 4), 256), (4, window_of(6)));
        assert_eq!(window(standing(2096, 2096), 256), (2096, window_of(0)));
        assert_eq!(window(standing(2096, 0), 256), (1840, window_of(256)), "not read yet");
        let begun = number_before(Incarnation(2)).unwrap();
        assert_eq!(window(standing(begun, 0), 256), (begun, window_of(0)), "nothing sent yet");
    }
}
