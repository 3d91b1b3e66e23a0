//! Which sender holds a missing ticket? The owner reads every sender's claim (MB-7).
//!
//! ```text
//!   tickets owed at the start ──▶ read all claims ──▶ all answered ──▶ judge each ticket:
//!                                    │  ▲                 held by a live claim → wait for it
//!                          Reserving │  │ read again      its message is there → deliver it
//!                                    └──┘                 otherwise            → skip it
//! ```
//!
//! Why a skip is safe: the claim of a reservation is stored before its ticket is given out, so all
//! tickets that are owed when the inquiry begins have a claim. A sender whose claim is then `Idle`,
//! or a different reservation from the first one read, has finished all earlier writes; a claim
//! `Holding` names what its sender still writes. A fenced sender writes nothing.

use super::mutants::{FENCED_WAITED_FOR, RESERVING_BELIEVED, SKIP_WITHOUT_FENCE};
use super::{Config, OWNER_WORK, Regions};
use crate::fabric::{Completion, CompletionFlags, Fabric, Memory, Op, Work, WorkId};
use crate::ids::{Peer, PeerSet};
use crate::wire::slot::{Sealing, Stamp};
use crate::wire::{CELL_LEN, Claim};

/// Marks a claim read among the owner's works.
pub(super) const CLAIM_READ: u64 = 1 << 48;

/// One round of questions.
#[derive(Clone, Debug, Hash)]
pub(super) struct Inquiry<const PEERS: usize> {
    active: bool,
    round: u16,
    /// For each half, by parity of its epoch: the epoch and the tickets owed at the start.
    subjects: [(u32, u32); 2],
    /// Senders whose claim must still be read.
    waiting: PeerSet,
    /// Those whose read was posted and has not completed.
    reading: PeerSet,
    reserving: [Option<u32>; PEERS],
    holding: [Claim; PEERS],
    /// Senders whose claim is `Holding`.
    holders: PeerSet,
}

impl<const PEERS: usize> Inquiry<PEERS> {
    pub(super) const fn new() -> Self {
        Self {
            active: false,
            round: 0,
            subjects: [(0, 0); 2],
            waiting: PeerSet::EMPTY,
            reading: PeerSet::EMPTY,
            reserving: [None; PEERS],
            holding: [Claim::Idle; PEERS],
            holders: PeerSet::EMPTY,
        }
    }

    pub(super) const fn is_active(&self) -> bool {
        self.active
    }

    /// Begins to read the claims of `senders`, about the tickets owed in the two halves.
    pub(super) fn begin(&mut self, senders: PeerSet, subjects: [(u32, u32); 2]) {
        *self = Self {
            active: true,
            waiting: senders,
            subjects,
            round: self.round,
            // They still hold for the tickets that they name, until their senders answer again.
            holding: self.holding,
            holders: self.holders,
            ..Self::new()
        };
        self.round = self.round.wrapping_add(1);
    }

    /// Posts the reads that are due. A refused read is posted again by the next call; a peer that
    /// is gone keeps the inquiry open until it is fenced.
    pub(super) fn ask(&mut self, fabric: &mut impl Fabric, config: &Config, regions: Regions) {
        let from = regions.claim(fabric.me());
        let len = match config.sealing(fabric) {
            Sealing::Checksum => CELL_LEN as u32,
            Sealing::Stamp => size_of::<u64>() as u32,
        };
        for peer in self.waiting.iter() {
            if self.reading.contains(peer) {
                continue;
            }
            let into = regions.landing(config, peer);
            let op = Op::Read { from, into, len };
            let id = self.work_id(peer);
            if fabric.post(peer, Work { id, op, flags: CompletionFlags::empty() }).is_ok() {
                self.reading.insert(peer);
            }
        }
    }

    /// Handles the completed read of a claim.
    pub(super) fn handle_completion(
        &mut self,
        fabric: &impl Fabric,
        config: &Config,
        regions: Regions,
        completion: &Completion,
    ) {
        let peer = completion.peer;
        if !self.active || completion.id != self.work_id(peer) || !self.reading.contains(peer) {
            return;
        }
        self.reading.remove(peer);
        if completion.outcome.is_err() {
            return;
        }
        let at = regions.landing(config, peer);
        let claim = match config.sealing(fabric) {
            Sealing::Checksum => {
                let mut copy = [0; CELL_LEN];
                fabric.memory().copy_out(at.region, at.offset, &mut copy);
                Claim::decode(&copy, |bytes| fabric.crc32c(bytes))
            }
            Sealing::Stamp => Claim::from_word(fabric.memory().load(at.region, at.offset)),
        };
        // A torn claim was being written: it is read again.
        if let Some(claim) = claim {
            self.hear(peer, claim);
        }
    }

    fn hear(&mut self, peer: Peer, claim: Claim) {
        match claim {
            Claim::Idle => self.settle(peer),
            Claim::Holding { .. } => {
                self.settle(peer);
                self.holders.insert(peer);
                self.holding[peer.index()] = claim;
            }
            Claim::Reserving { .. } if RESERVING_BELIEVED.is_planted() => self.settle(peer),
            Claim::Reserving { sequence } => match self.reserving[peer.index()] {
                Some(first) if first != sequence => self.settle(peer),
                Some(_) | None => self.reserving[peer.index()] = Some(sequence),
            },
        }
    }

    /// The claim of `peer` is known.
    fn settle(&mut self, peer: Peer) {
        self.waiting.remove(peer);
        self.holders.remove(peer);
    }

    /// The senders known to hold a missing ticket; empty if none is known. A ticket never changes
    /// its holder, so answers to earlier inquiries count as well.
    pub(super) fn holders(&self, stamp: Stamp) -> PeerSet {
        let mut found = PeerSet::EMPTY;
        for peer in self.holders.iter() {
            if self.holding[peer.index()].holds(stamp) {
                found.insert(peer);
            }
        }
        found
    }

    /// `peer` was fenced: it writes nothing any more, whatever its claim says.
    pub(super) fn forget(&mut self, peer: Peer) {
        if FENCED_WAITED_FOR.is_planted() {
            return;
        }
        self.waiting.remove(peer);
        self.reading.remove(peer);
        self.holders.remove(peer);
    }

    /// Ends the inquiry once all claims are known. Its findings hold until the next `begin`.
    pub(super) fn conclude(&mut self) -> bool {
        let concluded = self.active && self.waiting.is_empty();
        if concluded {
            self.active = false;
        }
        concluded
    }

    /// Whether a ticket whose message is missing now can be skipped: it was given out before the
    /// inquiry began, and no sender holds it.
    pub(super) fn clears(&self, stamp: Stamp) -> bool {
        let (epoch, owed) = self.subjects[(stamp.epoch & 1) as usize];
        epoch == stamp.epoch
            && stamp.ticket < owed
            && (SKIP_WITHOUT_FENCE.is_planted()
                || !self.holders.iter().any(|peer| self.may_write(peer, stamp)))
    }

    /// Whether `peer` still writes the slot of `stamp`, even under an epoch that this owner never
    /// opened: a damaged word gives out such tickets, and the slot must not be reused during the
    /// write.
    fn may_write(&self, peer: Peer, stamp: Stamp) -> bool {
        let Claim::Holding { first, .. } = self.holding[peer.index()] else {
            return false;
        };
        let written = Stamp { epoch: first.epoch, ..stamp };
        first.epoch & 1 == stamp.epoch & 1 && self.holding[peer.index()].holds(written)
    }

    fn work_id(&self, peer: Peer) -> WorkId {
        let detail = CLAIM_READ | u64::from(peer.0) << 16 | u64::from(self.round);
        WorkId::new(OWNER_WORK, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Peer = Peer(0);
    const B: Peer = Peer(1);

    fn inquiry() -> Inquiry<2> {
        let mut inquiry = Inquiry::new();
        inquiry.begin(PeerSet::first(2), [(4, 8), (3, 2)]);
        inquiry
    }

    fn ticket(epoch: u32, ticket: u32) -> Stamp {
        Stamp { epoch, ticket }
    }

    #[test]
    fn a_ticket_without_a_holder_is_cleared() {
        let mut inquiry = inquiry();
        inquiry.hear(A, Claim::Idle);
        assert!(!inquiry.conclude());
        inquiry.hear(B, Claim::Idle);
        assert!(inquiry.conclude());
        assert!(inquiry.clears(ticket(4, 7)) && inquiry.clears(ticket(3, 1)));
    }

    #[test]
    fn a_ticket_given_out_later_is_not_cleared() {
        let mut inquiry = inquiry();
        inquiry.hear(A, Claim::Idle);
        inquiry.hear(B, Claim::Idle);
        assert!(inquiry.conclude());
        assert!(!inquiry.clears(ticket(4, 8)) && !inquiry.clears(ticket(6, 0)));
    }

    #[test]
    fn a_holder_is_waited_for_until_it_is_fenced() {
        let mut inquiry = inquiry();
        inquiry.hear(A, Claim::Holding { first: ticket(4, 2), count: 2 });
        inquiry.hear(B, Claim::Idle);
        assert!(inquiry.conclude());
        assert!(!inquiry.clears(ticket(4, 3)) && inquiry.clears(ticket(4, 4)));
        inquiry.forget(A);
        assert!(inquiry.clears(ticket(4, 3)));
    }

    #[test]
    fn a_reservation_is_asked_again_until_it_is_another() {
        let mut inquiry = inquiry();
        inquiry.hear(B, Claim::Idle);
        inquiry.hear(A, Claim::Reserving { sequence: 5 });
        inquiry.hear(A, Claim::Reserving { sequence: 5 });
        assert!(!inquiry.conclude());
        inquiry.hear(A, Claim::Reserving { sequence: 6 });
        assert!(inquiry.conclude());
    }

    #[test]
    fn a_fenced_sender_need_not_answer() {
        let mut inquiry = inquiry();
        inquiry.hear(B, Claim::Idle);
        inquiry.forget(A);
        assert!(inquiry.conclude());
    }
}
