//! A member of the DIR net: its machine over the lanes and pulses of an endpoint.
//!
//! ```text
//!   pulses in own memory ─▶ look ───────────┐               ┌─▶ lanes, pulses: posted here
//!   lane messages ────────▶ handle_frame ───┼─▶ Component ──┼─▶ fences, removals: done here
//!   clock ────────────────▶ handle_timeout ─┘               └─▶ poll_output: the host's part
//! ```
//!
//! After each input, and each [`Event::Fenced`](super::Event::Fenced) of the endpoint, the caller
//! drains [`Member::poll_output`]. What is left to it is small: to save the database and the term,
//! to restart what the manager has reset, to carry out actions on tasks, to forward frames to
//! I'm-Alive Tasks, to report, and to admit peers, but none of a boot that [`Boots`] names as
//! removed.
//!
//! A fence that fails is tried again by the endpoint until it holds; until then it is confirmed to
//! no node. A frame or heartbeat that cannot be posted is dropped: the DIR net tolerates losses.

use super::mutants::{FAILED_FENCE_CONFIRMED, REMOVAL_FORGOTTEN};
use super::{Endpoint, Machine, Plan};
use crate::decision::{Decision, Removals};
use crate::dirnet::{
    Beat, Component, Database, FRAME_LEN, Frame, FrameError, Output, PARTS_MAX, Profile, Seat,
};
use crate::fabric::Fabric;
use crate::ids::{Incarnation, Peer, PeerSet, Rank};
use crate::lane::PULSE_LEN;
use crate::time::{Duration, Instant};

/// The kind of a lane message that is a [`Frame`] of the DIR net.
pub const FRAME_KIND: u16 = 3;

/// Pulses are looked at this many times in the period in which one is sent.
const LOOKS: u64 = 8;
/// No deadline.
const NEVER: Instant = Instant(u64::MAX);

/// The fewest slots of a lane: an entry of the database is sent in one go, and what finds its lane
/// full is dropped, again and again.
pub const LANE_SLOTS_MIN: u32 = PARTS_MAX.next_power_of_two() as u32;

const _: () = assert!(crate::dirnet::BEAT_LEN == PULSE_LEN);

/// Which boot of each peer an endpoint has admitted last, and which it has removed by decision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Boots<const PEERS: usize> {
    admitted: [Incarnation; PEERS],
    removals: Removals<PEERS>,
}

impl<const PEERS: usize> Default for Boots<PEERS> {
    fn default() -> Self {
        Self { admitted: [Incarnation(0); PEERS], removals: Removals::default() }
    }
}

impl<const PEERS: usize> Boots<PEERS> {
    /// Whether an incarnation of this boot of `peer` may be admitted: an admission that was decided
    /// before the boot was removed is stale.
    #[must_use]
    pub fn admits(&self, peer: Peer, boot: Incarnation) -> bool {
        peer.index() < PEERS && self.removals.counts(peer, boot)
    }

    /// An incarnation of this boot of `peer` is about to be admitted. Every earlier one must be
    /// fenced: a removal of a boot before this one fences no more.
    pub fn handle_admitted(&mut self, peer: Peer, boot: Incarnation) {
        if let Some(admitted) = self.admitted.get_mut(peer.index()) {
            *admitted = boot;
        }
    }

    /// The boots of `peer` up to this one are removed by decision.
    pub(super) fn handle_removed(&mut self, peer: Peer, boot: Incarnation) {
        if !REMOVAL_FORGOTTEN.is_planted() {
            self.removals.insert(peer, boot);
        }
    }

    /// The boot of `peer` that was admitted last; 0 if none was.
    #[must_use]
    pub fn admitted(&self, peer: Peer) -> Incarnation {
        self.admitted.get(peer.index()).copied().unwrap_or_default()
    }
}

/// What a member leaves to its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemberOutput {
    /// The boots of `node` up to `boot` are about to be fenced: drop what is under way with them.
    Fencing {
        /// The node.
        node: Rank,
        /// The last boot that will be fenced.
        boot: Incarnation,
    },
    /// They are fenced and removed from all machines. Once no admission of them is under way, call
    /// [`Member::handle_acknowledged`]: the manager resets the node no sooner.
    Removed {
        /// The node.
        node: Rank,
        /// The last boot that is removed.
        boot: Incarnation,
        /// Whether that is new: a removal is repeated until all members have confirmed it.
        is_new: bool,
    },
    /// As the machine orders: anything but heartbeats, fences, and frames to components.
    Order(Output),
}

/// One node's part in the DIR net, over its endpoint.
#[derive(Clone, Debug, Hash)]
pub struct Member<const NODES: usize, const TASKS: usize> {
    machine: Component<NODES, TASKS>,
    /// The last pulse of each peer that was handled.
    seen: [[u8; PULSE_LEN]; NODES],
    look_every: Duration,
    look_at: Instant,
    /// The peer whose pulse is looked at next, within a look.
    looks_at: usize,
    /// Nodes of which fences are due, and those of them that the host knows of.
    due: PeerSet,
    announced: PeerSet,
}

impl<const NODES: usize, const TASKS: usize> Member<NODES, TASKS> {
    /// The member whose machine has this `profile`, over an endpoint of that `plan`. Drain
    /// [`Self::poll_output`] before the first input.
    ///
    /// # Panics
    /// When the lanes of the plan have fewer than [`LANE_SLOTS_MIN`] slots, or shorter messages
    /// than a [`Frame`].
    #[must_use]
    pub const fn new(
        now: Instant,
        machine: Component<NODES, TASKS>,
        profile: Profile,
        plan: &Plan,
    ) -> Self {
        let lane = plan.lane();
        assert!(lane.slots() >= LANE_SLOTS_MIN, "a lane holds an entry of the database");
        assert!(lane.message_len() as usize >= FRAME_LEN, "a lane message holds a frame");
        Self {
            machine,
            seen: [[0; PULSE_LEN]; NODES],
            look_every: Duration(profile.timing().send.0 / LOOKS),
            look_at: now,
            looks_at: 0,
            due: PeerSet::EMPTY,
            announced: PeerSet::EMPTY,
        }
    }

    /// What it knows and decides.
    #[must_use]
    pub const fn machine(&self) -> &Component<NODES, TASKS> {
        &self.machine
    }

    /// The machine, for inputs that are not the endpoint's: orders, changes of tasks, losses.
    /// Drain [`Self::poll_output`] after each.
    pub const fn machine_mut(&mut self) -> &mut Component<NODES, TASKS> {
        &mut self.machine
    }

    /// When heartbeats are looked at next.
    #[must_use]
    pub const fn next_look(&self) -> Instant {
        self.look_at
    }

    /// When to call [`Self::look`], [`Self::handle_timeout`] and [`Self::poll_output`] if no input
    /// comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        let machine = self.machine.poll_timeout().unwrap_or(NEVER);
        machine.min(self.look_at)
    }

    /// Handles the next new heartbeat if a look is due; `false` once the look is over. A torn
    /// heartbeat is read again by the next look.
    pub fn look<F: Fabric, const SLOTS: usize, const PEERS: usize, M: Machine + Default>(
        &mut self,
        endpoint: &Endpoint<F, SLOTS, PEERS, M>,
        now: Instant,
    ) -> bool {
        if now < self.look_at {
            return false;
        }
        while let Some(seen) = self.seen.get_mut(self.looks_at) {
            let peer = Peer(u16::try_from(self.looks_at).unwrap_or(u16::MAX));
            self.looks_at += 1;
            let copy = endpoint.pulse_of(peer).filter(|copy| copy != seen);
            let Some(copy) = copy else { continue };
            let Some(beat) = Beat::decode(&copy, |bytes| endpoint.crc32c(bytes)) else { continue };
            *seen = copy;
            // What it refuses, the machine counts.
            let _ = self.machine.handle_heartbeat(now, Rank(peer.0), &beat);
            return true;
        }
        self.looks_at = 0;
        self.look_at = now.after(self.look_every);
        false
    }

    /// Handles a deadline of the machine, if one is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.machine.poll_timeout().is_some_and(|due| due <= now) {
            self.machine.handle_timeout(now);
        }
    }

    /// Handles a lane message of [`FRAME_KIND`], or a frame that came another way, from `from`.
    /// What the machine refuses, it counts.
    ///
    /// # Errors
    /// [`FrameError`]: it is no frame.
    pub fn handle_frame(
        &mut self,
        now: Instant,
        from: Rank,
        bytes: &[u8],
    ) -> Result<(), FrameError> {
        let frame = Frame::decode(bytes)?;
        if let Err(_reason) = self.machine.handle_message(now, from, &frame) {
            debug!("a frame of {} from {} is refused", frame.message.name(), from.0);
        }
        Ok(())
    }

    /// No admission of the boots of `node` up to `boot` is under way any more: the removal holds
    /// for the whole node, and the manager is sent so.
    pub fn handle_acknowledged(&mut self, now: Instant, node: Rank, boot: Incarnation) {
        self.machine.handle_fenced(now, node, boot);
    }

    /// The next thing that the host has to do; what the endpoint can do is done before. `save` is
    /// called first, each time: it saves the database, if it has changed, beyond the end of this
    /// process, before any other node learns of its content.
    ///
    /// # Errors
    /// Those of `save`; nothing was posted.
    pub fn poll_output<F, E, const SLOTS: usize, const PEERS: usize, M>(
        &mut self,
        endpoint: &mut Endpoint<F, SLOTS, PEERS, M>,
        boots: &mut Boots<PEERS>,
        save: impl FnOnce(&Database<NODES, TASKS>) -> Result<(), E>,
    ) -> Result<Option<MemberOutput>, E>
    where
        F: Fabric,
        M: Machine + Default,
    {
        save(self.machine.database())?;
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Send { to, seat: Seat::Component, frame } => {
                    let bytes: [u8; FRAME_LEN] = frame.encode();
                    for rank in to.iter() {
                        let _ = endpoint.send(Peer(rank.0), FRAME_KIND, &bytes);
                    }
                }
                Output::Beat { to, beat } => {
                    let cell = beat.encode(|bytes| endpoint.crc32c(bytes));
                    let _ = endpoint.pulse(Peer(to.0), &cell);
                }
                Output::Fence { node, .. } => self.due.insert(Peer(node.0)),
                other => return Ok(Some(MemberOutput::Order(other))),
            }
        }
        // Behind everything that was decided together with them. One whose fence has failed waits
        // for the endpoint's next attempt.
        let mut refused = PeerSet::EMPTY;
        loop {
            let due = self.due.without(endpoint.unfenced()).without(refused);
            let next = self.machine.unfenced().find(|(node, _)| due.contains(Peer(node.0)));
            let Some((node, boot)) = next else { return Ok(None) };
            let peer = Peer(node.0);
            if !self.announced.contains(peer) {
                self.announced.insert(peer);
                return Ok(Some(MemberOutput::Fencing { node, boot }));
            }
            if endpoint.admitted().contains(peer)
                && boots.admitted(peer) <= boot
                && endpoint.fence(peer).is_err()
                && !FAILED_FENCE_CONFIRMED.is_planted()
            {
                continue;
            }
            let term = self.machine.term();
            if endpoint.remove(Decision { term, removed: peer, last: boot }).is_err() {
                refused.insert(peer);
                continue;
            }
            self.announced.remove(peer);
            self.due.remove(peer);
            let is_new = boots.admits(peer, boot);
            boots.handle_removed(peer, boot);
            // No view waits for the host: an admission that is under way is refused.
            self.machine.handle_carried_out(node, boot);
            return Ok(Some(MemberOutput::Removed { node, boot, is_new }));
        }
    }
}
