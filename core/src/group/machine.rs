//! All groups of one member: lanes, and the frames on them.

use core::borrow::{Borrow, BorrowMut};

use super::calls::Calls;
use super::config::{Config, Regions};
use super::member::{FIRST, Group};
use super::outcome::{
    Counters, Delivery, Gathered, GroupId, OpenError, Receipt, SendError, Standing, UnknownReceipt,
};
use super::seats::Grank;
use super::stream::Stream;
use super::turn::Turn;
use super::work::Errand;
use crate::decision::{Decision, Removals, RemoveError};
use crate::fabric::{At, Completion, Fabric};
use crate::ids::{Incarnation, Peer, PeerSet};
use crate::lane::{LaneReader, LaneWriter};
use crate::wire::group::{Head, Spread};

/// Frames of one peer that a poll handles.
const BATCH: usize = 16;

#[derive(Clone, Copy, Debug, Hash)]
struct Lanes {
    writer: LaneWriter,
    reader: LaneReader,
}

/// The groups of one member: up to `GROUPS` of up to `PEERS` members each.
///
/// The caller polls, hands in completions, and takes deliveries; nothing waits. A [`Group`] lies
/// where `P` has it: in this value, or in a box, which a thread with a small stack needs for many
/// members.
#[derive(Clone, Debug, Hash)]
pub struct Groups<const PEERS: usize, const GROUPS: usize, P = Group<PEERS>> {
    config: Config,
    regions: Regions,
    incarnation: Incarnation,
    epoch: Incarnation,
    me: Peer,
    removals: Removals<PEERS>,
    /// Those that are admitted.
    reachable: PeerSet,
    lanes: [Option<Lanes>; PEERS],
    groups: [Option<P>; GROUPS],
    turn: Turn,
    counters: Counters,
}

fn one<P: Borrow<Group<N>>, const N: usize>(
    groups: &[Option<P>],
    id: GroupId,
) -> Option<&Group<N>> {
    groups.get(usize::from(id.0))?.as_ref().map(P::borrow)
}

fn one_mut<P: BorrowMut<Group<N>>, const N: usize>(
    groups: &mut [Option<P>],
    id: GroupId,
) -> Option<&mut Group<N>> {
    groups.get_mut(usize::from(id.0))?.as_mut().map(P::borrow_mut)
}

fn each_mut<P: BorrowMut<Group<N>>, const N: usize>(
    groups: &mut [Option<P>],
) -> impl Iterator<Item = &mut Group<N>> {
    groups.iter_mut().flatten().map(P::borrow_mut)
}

impl<const PEERS: usize, const GROUPS: usize, P> Groups<PEERS, GROUPS, P>
where
    P: BorrowMut<Group<PEERS>> + From<Group<PEERS>>,
{
    /// The groups of `fabric.me()`, none of which is open. No peer is reachable before
    /// [`Self::handle_admitted`].
    ///
    /// # Panics
    /// When the configuration is larger than `PEERS` or `GROUPS`.
    #[must_use]
    pub fn new(
        fabric: &impl Fabric,
        config: Config,
        regions: Regions,
        incarnation: Incarnation,
    ) -> Self {
        let sizes = config.sizes();
        assert!(usize::from(sizes.peers) <= PEERS, "more members than PEERS");
        assert!(usize::from(sizes.groups) <= GROUPS, "more groups than GROUPS");
        Self {
            config,
            regions,
            incarnation,
            epoch: Incarnation(FIRST),
            me: fabric.me(),
            removals: Removals::default(),
            reachable: PeerSet::EMPTY,
            lanes: [const { None }; PEERS],
            groups: [const { None }; GROUPS],
            turn: Turn::default(),
            counters: Counters::default(),
        }
    }

    /// The epoch of this member, named by the incarnation in which it began, is not the first,
    /// whose number is 1: what an earlier one has left in the groups' memory is void, and the
    /// member takes part once the others count it.
    #[must_use]
    pub fn in_epoch(self, epoch: Incarnation) -> Self {
        Self { epoch, ..self }
    }

    /// Opens group `id` with `members` in the order of their granks, and continues from the memory
    /// of an earlier incarnation of the same epoch. Nothing is sent before all live members have
    /// opened it with the same list and sizes.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(
        &mut self,
        fabric: &impl Fabric,
        id: GroupId,
        members: &[Peer],
    ) -> Result<(), OpenError> {
        let has_place = id.0 < u16::from(self.config.sizes().groups);
        let place = self.groups.get_mut(usize::from(id.0)).filter(|_| has_place);
        let place = place.ok_or(OpenError::NoPlace)?;
        if place.is_some() {
            return Err(OpenError::IsOpen);
        }
        let at = (self.config, self.regions);
        let mut group: P = Group::open(fabric, at, id, members, self.epoch)?;
        self.removals.iter().for_each(|(peer, last)| group.borrow_mut().remove(peer, last));
        *place = Some(group);
        Ok(())
    }

    /// Whether the others may count this member, so that it must [open](Self::open) the group
    /// before any is admitted: in the first epoch always, later once an incarnation of this epoch
    /// has opened it. Until then it may be opened at any time: a member without a consumer
    /// then fills no window.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn is_begun(
        &self,
        fabric: &impl Fabric,
        id: GroupId,
        members: &[Peer],
    ) -> Result<bool, OpenError> {
        let at = (self.config, self.regions);
        Group::<PEERS>::is_begun(fabric, at, id, members, self.epoch)
    }

    /// `peer` is about to be admitted in its incarnation `theirs`: begins new lanes with it. Comes
    /// before [`Fabric::admit`], since it clears what the peer may write. Before an incarnation of
    /// a later epoch than the first, the epochs before that are removed ([`Self::remove`]).
    pub fn prepare(&mut self, fabric: &impl Fabric, peer: Peer, theirs: Incarnation) {
        if peer == self.me || peer.0 >= self.config.sizes().peers {
            return;
        }
        // Checked by Config::new.
        let Ok(config) = self.config.lanes() else { return };
        let (at, mine) = (self.regions.lanes, self.incarnation);
        let reader = LaneReader::new(fabric, config, at, mine, (peer, theirs));
        let writer = LaneWriter::new(fabric, config, at, mine, (peer, theirs));
        self.lanes[peer.index()] = Some(Lanes { writer, reader });
        each_mut(&mut self.groups).for_each(|group| group.handle_connection(peer));
    }

    /// `peer` is admitted: frames for it are sent.
    pub fn handle_admitted(&mut self, peer: Peer) {
        if peer != self.me && peer.0 < self.config.sizes().peers {
            self.reachable.insert(peer);
        }
    }

    /// `peer` is fenced and may come back: nothing is exchanged with it until then.
    pub fn handle_fenced(&mut self, peer: Peer) {
        if peer == self.me || peer.0 >= self.config.sizes().peers {
            return;
        }
        self.reachable.remove(peer);
        self.lanes[peer.index()] = None;
        each_mut(&mut self.groups).for_each(|group| group.handle_connection(peer));
    }

    /// Removes epochs of a member from all groups by decision: fences it; then trees are formed
    /// without it, and its own streams are closed. A later epoch is counted again once it is
    /// admitted. Nothing happens where those epochs are removed already.
    ///
    /// # Errors
    /// [`RemoveError`]; nothing changed.
    pub fn remove(
        &mut self,
        fabric: &mut impl Fabric,
        decision: Decision,
    ) -> Result<(), RemoveError> {
        let Decision { removed: peer, last, .. } = decision;
        if !self.counts(peer, last) {
            return Ok(());
        }
        // A later epoch is a member in some group: the earlier ones were fenced before it was.
        let mut open = self.groups.iter().flatten().map(P::borrow);
        let is_past = open.any(|it| it.epoch(peer) > Some(last));
        if !is_past {
            // First, so that no posted write of the peer lands in a stream that is being closed.
            self.removals.execute(fabric, decision, self.config.sizes().peers)?;
            self.handle_fenced(peer);
        }
        self.removals.insert(peer, last);
        each_mut(&mut self.groups).for_each(|group| group.remove(peer, last));
        Ok(())
    }

    /// Whether an epoch of `peer` up to `last` is not removed yet.
    #[must_use]
    pub fn counts(&self, peer: Peer, last: Incarnation) -> bool {
        self.removals.counts(peer, last)
    }

    /// The members of `group` that this one counts: those that no decision has removed, and those
    /// that have come back.
    #[must_use]
    pub fn live(&self, group: GroupId) -> PeerSet {
        let group = one(&self.groups, group);
        group.map_or(PeerSet::EMPTY, Group::live)
    }

    /// The epoch of `root` whose messages are received now: once it is removed, up to
    /// [`Delivery::RootLost`], and from there on the next.
    #[must_use]
    pub fn epoch(&self, group: GroupId, root: Grank) -> Option<Incarnation> {
        let group = one(&self.groups, group)?;
        Some(Incarnation(group.streams.get(root.index())?.note.epoch))
    }

    /// The counters of this incarnation.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Sends `payload` to all members, and returns the number of the message: whole, or not at
    /// all.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn broadcast(
        &mut self,
        fabric: &mut impl Fabric,
        group: GroupId,
        tag: u64,
        payload: &[u8],
    ) -> Result<u64, SendError> {
        let seq = self.group(group)?.broadcast(fabric, tag, payload)?;
        self.speak(fabric);
        Ok(seq)
    }

    /// Begins a message of `len` bytes, whose blocks are written with [`Self::space`] and
    /// [`Self::commit`]; returns its number.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn begin(
        &mut self,
        fabric: &mut impl Fabric,
        group: GroupId,
        tag: u64,
        len: u64,
    ) -> Result<u64, SendError> {
        let seq = self.group(group)?.begin(fabric, tag, len)?;
        self.speak(fabric);
        Ok(seq)
    }

    /// The blocks of the messages that this member sends from now on travel so; before the first
    /// call, and in each incarnation, as [`Sizes::spread`](super::Sizes::spread) says.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn set_spread(&mut self, group: GroupId, spread: Spread) -> Result<(), SendError> {
        self.group(group)?.spread = spread;
        Ok(())
    }

    /// Where the next block of the message that was begun goes, and its bytes; none while the
    /// window is full, and where none was begun.
    #[must_use]
    pub fn space(&self, fabric: &impl Fabric, group: GroupId) -> Option<(At, u32)> {
        let group = one(&self.groups, group)?;
        group.streams[group.members.me.index()].space(fabric)
    }

    /// The block at [`Self::space`] is written, and the members may read it.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn commit(&mut self, fabric: &mut impl Fabric, group: GroupId) -> Result<(), SendError> {
        self.group(group)?.commit(fabric)?;
        self.speak(fabric);
        Ok(())
    }

    /// The next delivery in `group`. Messages of one root come in order; roots take turns.
    pub fn receive(&mut self, fabric: &impl Fabric, group: GroupId) -> Option<Delivery> {
        self.group(group).ok()?.receive(fabric)
    }

    /// The consumer is done with the chunk of `receipt` and with all chunks of its root before it:
    /// their memory may be used again.
    ///
    /// # Errors
    /// [`UnknownReceipt`].
    pub fn release(
        &mut self,
        fabric: &impl Fabric,
        receipt: Receipt,
    ) -> Result<(), UnknownReceipt> {
        self.group(receipt.group).map_err(|_| UnknownReceipt)?.release(fabric, receipt)
    }

    /// Arrives at the next barrier of `group`, and returns its number. An arrival at a barrier that
    /// was not [left](Self::leave) stands: its number is returned again.
    ///
    /// # Errors
    /// [`SendError::NotOpen`].
    pub fn arrive(&mut self, fabric: &mut impl Fabric, group: GroupId) -> Result<u64, SendError> {
        let number = self.group(group)?.arrive(fabric)?;
        self.speak(fabric);
        Ok(number)
    }

    /// Leaves the barrier that this member has arrived at, once all live members have; its number.
    pub fn leave(&mut self, fabric: &impl Fabric, group: GroupId) -> Option<u64> {
        self.group(group).ok()?.leave(fabric)
    }

    /// Sends `mine` as this member's value of the next all-gather, and returns the number of that.
    /// All members must do so: messages that one of them sends behind its value are received once
    /// the receiver has taken the values.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn all_gather(
        &mut self,
        fabric: &mut impl Fabric,
        group: GroupId,
        mine: &[u8],
    ) -> Result<u64, SendError> {
        let number = self.group(group)?.all_gather(fabric, mine)?;
        self.speak(fabric);
        Ok(number)
    }

    /// The values of the all-gather that this member has entered, once each is held or its member
    /// is removed; until [`Self::end_gather`].
    #[must_use]
    pub fn gathered(&self, fabric: &impl Fabric, group: GroupId) -> Option<Gathered<PEERS>> {
        one(&self.groups, group)?.gathered(fabric)
    }

    /// The values of [`Self::gathered`] were taken: their memory may be used again. Nothing happens
    /// before there are any.
    pub fn end_gather(&mut self, fabric: &impl Fabric, group: GroupId) {
        if let Ok(group) = self.group(group) {
            group.end_gather(fabric);
        }
    }

    /// The barriers and all-gathers of this member, those of earlier incarnations included.
    #[must_use]
    pub fn calls(&self, group: GroupId) -> Option<Calls> {
        Some(one(&self.groups, group)?.note.calls)
    }

    /// What is known of `root` in `group`.
    #[must_use]
    pub fn standing(&self, group: GroupId, root: Grank) -> Option<Standing> {
        let group = one(&self.groups, group)?;
        let stream = group.streams.get(root.index()).filter(|_| root.0 < group.members.count)?;
        Some(stream.standing(&group.members))
    }

    /// From whom this member receives the entries of `root`; none at the root, and of one that was
    /// removed.
    #[must_use]
    pub fn predecessor(&self, group: GroupId, root: Grank) -> Option<Grank> {
        one(&self.groups, group)?.streams.get(root.index())?.predecessor
    }

    /// Whether this incarnation has opened `group`.
    #[must_use]
    pub fn is_opened(&self, group: GroupId) -> bool {
        self.groups.get(usize::from(group.0)).is_some_and(Option::is_some)
    }

    /// Whether all live members have opened `group` in the same way.
    #[must_use]
    pub fn is_open(&self, group: GroupId) -> bool {
        let group = one(&self.groups, group);
        group.is_some_and(|group| group.is_open)
    }

    /// Whether this member has come back to `group`, and does not take part yet: not all members
    /// count it.
    #[must_use]
    pub fn is_fresh(&self, group: GroupId) -> bool {
        let group = one(&self.groups, group);
        group.is_some_and(|group| group.is_fresh)
    }

    /// Whether everything that is held was released, here and at all members that acknowledge to
    /// this root.
    #[must_use]
    pub fn is_idle(&self, group: GroupId) -> bool {
        let group = one(&self.groups, group);
        group.is_none_or(|group| {
            let streams = group.streams.iter().take(usize::from(group.members.count));
            let mut led = streams.filter(|stream| stream.is_led(&group.members));
            led.all(Stream::is_idle)
        })
    }

    /// Makes all progress that is possible now. Never waits.
    #[inline(never)]
    pub fn poll(&mut self, fabric: &mut impl Fabric) {
        self.turn.advance(self.config.sizes().peers);
        self.hear(fabric);
        for group in each_mut(&mut self.groups) {
            group.work(fabric, &mut self.counters);
        }
        self.speak(fabric);
    }

    /// Continues the work that `completion` belongs to; ignores other completions.
    pub fn handle_completion(&mut self, fabric: &impl Fabric, completion: &Completion) {
        let Some(Errand { group, root, index }) = Errand::of(completion.id) else { return };
        if let Some(group) = one_mut(&mut self.groups, GroupId(group)) {
            let is_read = completion.outcome.is_ok();
            group.handle_read(fabric, (root, index), is_read, &mut self.counters);
        }
    }

    fn group(&mut self, id: GroupId) -> Result<&mut Group<PEERS>, SendError> {
        one_mut(&mut self.groups, id).ok_or(SendError::NotOpen)
    }

    fn in_turn(&self) -> impl Iterator<Item = Peer> + use<PEERS, GROUPS, P> {
        self.turn.order(self.config.sizes().peers).map(Peer)
    }

    fn hear(&mut self, fabric: &mut impl Fabric) {
        for peer in self.in_turn() {
            let Some(lanes) = &mut self.lanes[peer.index()] else { continue };
            lanes.reader.poll(fabric);
            // A peer that sends without pause does not keep the others waiting.
            for _ in 0..BATCH {
                if !lanes.reader.is_ready(fabric) {
                    break;
                }
                let Some(message) = lanes.reader.take(fabric) else { break };
                let head = Head::decode(message.payload);
                let group =
                    head.and_then(|(head, _)| one_mut(&mut self.groups, GroupId(head.group)));
                match (head, group) {
                    (Some((head, rest)), Some(group)) => {
                        let frame = (message.kind, head, rest);
                        group.handle_frame(fabric, peer, frame, &mut self.counters);
                    }
                    // A member may open the group after its peers: they send their state again.
                    _ => self.counters.bad_frames += 1,
                }
            }
        }
    }

    fn speak(&mut self, fabric: &mut impl Fabric) {
        for peer in self.in_turn().filter(|peer| self.reachable.contains(*peer)) {
            let Some(lanes) = &mut self.lanes[peer.index()] else { continue };
            for group in each_mut(&mut self.groups) {
                let said = group.say(fabric, (peer, &mut lanes.writer), &mut self.counters);
                // What was not sent is still due.
                if said.is_err() {
                    break;
                }
            }
        }
    }
}
