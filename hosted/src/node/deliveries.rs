//! What other origins broadcast, on its way to the one client that receives it.
//!
//! ```text
//!   … dealt with │ handed out, stands in the replay ring │ not taken yet: holds up the window
//!              after                                delivered
//! ```
//!
//! A message counts as delivered once it was taken for the client, so a node whose client is slow,
//! or that has none, holds up the origin's window and nothing is lost. What was taken stands in
//! the ring until many more were delivered, so that a client goes on where it was when the
//! component dies under it: it says after which message, and gets each of them once. The next
//! client begins behind what this one has dealt with; the supervisor keeps that across components.
//!
//! A conflict answers at once who asks for that origin alone. Who asks for all of them waits for
//! the honest ones, and is told of it when nothing came.

use weft_core::ids::Peer;
use weft_core::neb::{Conflict, PROOF_LEN_MAX, Proof, SLOT_LEN_MAX, Standing};

use super::NodeEndpoint;
use super::control::{
    ConflictStatus, DeliveredMessage, Deliveries, HeldProof, MESSAGES_MAX, OriginStatus, Outcome,
    Payload, Refused, TakenMessage, WindowStatus,
};
use super::link::Ticket;
use super::puts::Answer;
use crate::signing::PublicKey;

/// Messages of one origin in one reply, so that all of them still stand when they are asked for
/// again: fewer than the smallest ring has beyond the depth.
const BURST: usize = 32;

/// What a client asks for.
#[derive(Debug)]
pub(super) struct DeliverJob {
    pub(super) ticket: Ticket,
    /// Only of this origin.
    pub(super) origin: Option<u16>,
    /// For each origin, the last message that was dealt with; none for where the last client was.
    pub(super) after: Vec<u64>,
    pub(super) max: usize,
    pub(super) deadline_ns: u64,
}

/// The receiving side of the broadcast.
#[derive(Debug)]
pub(super) struct DeliveryLine {
    receiver: Option<u64>,
    waiting: Option<DeliverJob>,
    /// For each origin, the last message that a client has dealt with.
    after: Vec<u64>,
    /// For each origin, its first conflict.
    conflicts: Vec<Option<ConflictStatus>>,
    /// Conflicts and proofs on their way to the supervisor.
    disputes: Vec<ConflictStatus>,
    proofs: Vec<HeldProof>,
}

impl DeliveryLine {
    /// Goes on after what clients of earlier lives have dealt with.
    pub(super) fn new(endpoint: &mut NodeEndpoint, dealt_with: &[u64]) -> Self {
        let conflicts = vec![None; dealt_with.len()];
        let (disputes, proofs) = (Vec::new(), Vec::new());
        let after = dealt_with.to_vec();
        let mut line = Self { receiver: None, waiting: None, after, conflicts, disputes, proofs };
        line.note_dealt_with(endpoint, dealt_with);
        line
    }

    /// Takes on what a client asks for: one client, one question at a time.
    pub(super) fn begin(&mut self, job: DeliverJob) -> Option<Answer> {
        let nodes = u16::try_from(self.after.len()).unwrap_or(u16::MAX);
        let (ticket, client) = (job.ticket, job.ticket.client);
        let refused = if self.receiver.is_some_and(|receiver| receiver != client) {
            Refused::OtherReceiver
        } else if let Some(rank) = job.origin.filter(|origin| *origin >= nodes) {
            Refused::OutOfRange { rank, nodes }
        } else if !job.after.is_empty() && job.after.len() != self.after.len() {
            positions_of(job.after.len())
        } else {
            self.receiver = Some(client);
            // A client that asks again has given up what it asked before.
            self.waiting = Some(job);
            return None;
        };
        Some((ticket, Outcome::Refused(refused)))
    }

    /// The client that receives has dealt with all that is told, and leaves; answered with where
    /// the next one begins.
    pub(super) fn end(
        &mut self,
        endpoint: &mut NodeEndpoint,
        client: u64,
        told: &[u64],
    ) -> Outcome {
        if self.receiver.is_some_and(|receiver| receiver != client) {
            return Outcome::Refused(Refused::OtherReceiver);
        }
        if told.len() != self.after.len() {
            return Outcome::Refused(positions_of(told.len()));
        }
        self.note_dealt_with(endpoint, told);
        self.forget(client);
        Outcome::Delivered(Deliveries { after: self.after.clone(), ..Deliveries::default() })
    }

    /// The client has left: another may receive, beginning with what this one has not dealt with.
    pub(super) fn forget(&mut self, client: u64) {
        if self.receiver == Some(client) {
            self.receiver = None;
            self.waiting = None;
        }
    }

    /// Hands out what there is, and notes conflicts whether anybody asks or not.
    pub(super) fn step(&mut self, endpoint: &mut NodeEndpoint, now_ns: u64) -> Option<Answer> {
        while let Some(conflict) =
            endpoint.broadcast().and_then(|(broadcast, _)| broadcast.take_conflict())
        {
            self.note_conflict(endpoint, conflict);
        }
        let job = self.waiting.take()?;
        self.note_dealt_with(endpoint, &job.after);
        match self.hand_out(endpoint, &job) {
            Ok(found) => {
                let is_answer = !found.messages.is_empty()
                    || job.origin.is_some() && !found.conflicts.is_empty()
                    || job.max == 0
                    || now_ns >= job.deadline_ns;
                if is_answer {
                    return Some((job.ticket, Outcome::Delivered(found)));
                }
                self.waiting = Some(job);
                None
            }
            Err(refused) => Some((job.ticket, Outcome::Refused(refused))),
        }
    }

    /// A client has dealt with what is told of each origin.
    fn note_dealt_with(&mut self, endpoint: &mut NodeEndpoint, told: &[u64]) {
        for (origin, (after, told)) in (0..).map(Peer).zip(self.after.iter_mut().zip(told)) {
            *after = (*told).min(standing(endpoint, origin).delivered);
        }
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
        let first = &mut self.conflicts[origin.index()];
        if first.is_none_or(|first| status.seq < first.seq) {
            *first = Some(status);
        }
    }

    /// The conflicts that are new.
    pub(super) fn take_disputes(&mut self) -> Vec<ConflictStatus> {
        std::mem::take(&mut self.disputes)
    }

    /// The proofs that are new.
    pub(super) fn take_proofs(&mut self) -> Vec<HeldProof> {
        std::mem::take(&mut self.proofs)
    }

    /// When the client that waits gives up.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        self.waiting.as_ref().map(|job| job.deadline_ns)
    }

    /// How this node stands with every origin.
    pub(super) fn status(&self, endpoint: &mut NodeEndpoint) -> Vec<OriginStatus> {
        let row = |origin: Peer| {
            let Standing { seen, delivered, settled, conflicts } = standing(endpoint, origin);
            let first_conflict = self.conflicts[origin.index()];
            let key = key_of(endpoint, origin);
            let layout = endpoint.broadcast().map(|(broadcast, _)| broadcast.layout().0);
            let slots = layout.map_or(0, |sizes| sizes.slots());
            OriginStatus {
                origin: origin.0,
                broadcast: seen,
                delivered,
                settled,
                window: WindowStatus { used: seen.saturating_sub(settled), slots },
                conflicts,
                first_conflict,
                key,
            }
        };
        ranks(self.after.len()).map(row).collect()
    }

    fn hand_out(
        &self,
        endpoint: &mut NodeEndpoint,
        job: &DeliverJob,
    ) -> Result<Deliveries, Refused> {
        let me = endpoint.me();
        let mut found = Deliveries { after: self.after.clone(), ..Deliveries::default() };
        let Some((broadcast, _)) = endpoint.broadcast() else { return Ok(found) };
        let longest = DeliveredMessage::encoded_len_max(broadcast.layout().0.message_len().into());
        let mut room = TakenMessage::REPLY_LEN_MAX - found.after.len() * 24;
        let max = job.max.min(MESSAGES_MAX);
        let is_asked_for =
            |origin: &Peer| *origin != me && job.origin.is_none_or(|only| Peer(only) == *origin);
        for origin in ranks(self.after.len()).filter(is_asked_for) {
            for seq in (self.after[origin.index()] + 1..).take(BURST) {
                if found.messages.len() >= max || room < longest {
                    return Ok(found);
                }
                let Some(message) = next(endpoint, origin, seq)? else { break };
                room -= DeliveredMessage::encoded_len_max(message.payload.0.len());
                found.messages.push(message);
            }
            // It is news once everything before it has been dealt with.
            let due = self.after[origin.index()] + 1;
            let conflict = self.conflicts[origin.index()];
            found.conflicts.extend(conflict.filter(|conflict| max > 0 && conflict.seq == due));
        }
        Ok(found)
    }
}

fn positions_of(origins: usize) -> Refused {
    Refused::Malformed(format!("positions of {origins} origins"))
}

/// Message `seq` of `origin`: again if it was taken before, else if it can be delivered.
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

/// The proof that the origin of `conflict` lies, if it can be proven.
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

/// What `origin` signs with, as far as this node knows.
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
