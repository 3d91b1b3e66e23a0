//! The lanes of an endpoint: messages and pulses between two members, beside the mailbox.

use super::{Endpoint, Machine, Plan};
use crate::fabric::{Fabric, PostError};
use crate::ids::{Incarnation, Peer, PeerSet};
use crate::lane::{LaneMessage, LaneReader, LaneWriter, PULSE_LEN, SendError};

/// Both directions of the lanes with one peer.
#[derive(Clone, Debug, Hash)]
pub(super) struct Lanes {
    writer: LaneWriter,
    pub(super) reader: LaneReader,
}

impl Lanes {
    /// New lanes with an incarnation of a peer, which is not admitted yet.
    pub(super) fn begin(
        fabric: &impl Fabric,
        plan: &Plan,
        mine: Incarnation,
        theirs: (Peer, Incarnation),
    ) -> Self {
        let (config, regions) = (plan.lane(), plan.lane_regions());
        let reader = LaneReader::new(fabric, config, regions, mine, theirs);
        let writer = LaneWriter::new(fabric, config, regions, mine, theirs);
        regions.still_pulse(fabric, theirs.0);
        Self { writer, reader }
    }
}

impl<F: Fabric, const SLOTS: usize, const PEERS: usize, M: Machine + Default>
    Endpoint<F, SLOTS, PEERS, M>
{
    /// Sends a lane message to `to`.
    ///
    /// # Errors
    /// [`SendError`]; for a peer that is not admitted, [`PostError::Gone`].
    pub fn send(&mut self, to: Peer, kind: u16, payload: &[u8]) -> Result<(), SendError> {
        match self.lanes.get_mut(to.index()) {
            Some(Some(lanes)) => lanes.writer.send(&mut self.fabric, kind, payload),
            Some(None) | None => Err(SendError::Post(PostError::Gone)),
        }
    }

    /// Overwrites the own pulse in the memory of `to`: a present state, never queued.
    ///
    /// # Errors
    /// [`PostError`]; for a peer that is not admitted, [`PostError::Gone`].
    pub fn pulse(&mut self, to: Peer, bytes: &[u8; PULSE_LEN]) -> Result<(), PostError> {
        if to == self.me() || !self.admitted.contains(to) {
            return Err(PostError::Gone);
        }
        self.plan.lane_regions().post_pulse(&mut self.fabric, to, bytes)
    }

    /// A copy of the last pulse of `from`: it may be torn, and is all zero if there was none in its
    /// present incarnation; `None` for a peer that is not admitted.
    pub fn pulse_of(&self, from: Peer) -> Option<[u8; PULSE_LEN]> {
        let is_heard = from != self.me() && self.admitted.contains(from);
        is_heard.then(|| self.plan.lane_regions().copy_pulse(&self.fabric, from))
    }

    /// The next lane message of any admitted peer.
    pub fn take_lane(&mut self) -> Option<LaneMessage<'_>> {
        // The lanes from the one whose turn it is on, then those before it.
        let peers = self.admitted.without(PeerSet::only(self.me()));
        let behind = peers.without(PeerSet::first(self.lane_turn));
        let mut ready = None;
        for peer in behind.iter().chain(peers.without(behind).iter()) {
            let Some(lanes) = &mut self.lanes[peer.index()] else { continue };
            lanes.reader.poll(&mut self.fabric);
            if ready.is_none() && lanes.reader.is_ready(&self.fabric) {
                ready = Some(peer.index());
            }
        }
        let ready = ready?;
        self.lane_turn = (ready + 1) % PEERS;
        self.lanes[ready].as_mut()?.reader.take(&mut self.fabric)
    }
}
