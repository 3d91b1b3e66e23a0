//! One incarnation of a peer: its groups, and what it was asked to send.

use std::collections::VecDeque;

use weft_core::decision::Decision;
use weft_core::fabric::{At, Completion, Fabric, Memory};
use weft_core::group::{Delivery, Grank, Group, GroupId, Groups, Receipt};
use weft_core::ids::{Incarnation, Peer, PeerSet, Term};

use super::calls::Value;
use super::{Epoch, GROUPS, Groupings, PEERS};
use crate::protocol::{Seat, Violation};

/// Completions that one round handles.
const BATCH: usize = 4;
/// Deliveries that one round takes.
const TAKES: usize = 4;
/// Chunks that are held back, at most.
const HANDS_MAX: usize = 5;

/// What a node observes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupEvent {
    /// A part of a message was delivered.
    Chunk {
        /// The group.
        group: GroupId,
        /// The sender, in its epoch.
        root: Epoch,
        /// The number of the message.
        seq: u64,
        /// Where in the message it begins.
        offset: u64,
        /// Its bytes.
        bytes: Vec<u8>,
        /// Bytes of the whole message.
        message_len: u64,
        /// The message is whole with it.
        is_last: bool,
    },
    /// The bytes of a chunk that was delivered and not yet released have changed.
    Changed {
        /// The group.
        group: GroupId,
        /// The sender, in its epoch.
        root: Epoch,
        /// The number of the message.
        seq: u64,
    },
    /// A message will not become whole.
    Abandoned {
        /// The group.
        group: GroupId,
        /// The sender, in its epoch.
        root: Epoch,
        /// The number of the message.
        seq: u64,
    },
    /// A decision has removed a member.
    Removed {
        /// Whom.
        peer: Peer,
        /// The last of its epochs that is removed.
        last: u32,
    },
    /// A member has come back and takes part.
    Opened {
        /// The group.
        group: GroupId,
        /// Barriers that it goes on behind.
        left: u64,
        /// All-gathers that it goes on behind.
        taken: u64,
        /// The roots that it receives from, and how many messages of each lie before.
        roots: Vec<(Epoch, u64)>,
    },
    /// A root was removed, and this is its last message.
    RootLost {
        /// The group.
        group: GroupId,
        /// The root, in its epoch.
        root: Epoch,
        /// The number of its last message.
        last: u64,
    },
    /// A member arrives at a barrier.
    Arrived {
        /// The group.
        group: GroupId,
        /// The number of the barrier.
        number: u64,
    },
    /// A member has left a barrier.
    Left {
        /// The group.
        group: GroupId,
        /// The number of the barrier.
        number: u64,
    },
    /// A member has the values of an all-gather.
    Gathered {
        /// The group.
        group: GroupId,
        /// The number of the all-gather.
        number: u64,
        /// The value of each member with its epoch, and its number among the messages of that.
        values: Vec<Value>,
    },
}

impl GroupEvent {
    /// The group that it is about; none of a removal.
    pub(super) const fn group(&self) -> Option<GroupId> {
        match self {
            Self::Removed { .. } => None,
            Self::Chunk { group, .. }
            | Self::Changed { group, .. }
            | Self::Opened { group, .. }
            | Self::Abandoned { group, .. }
            | Self::RootLost { group, .. }
            | Self::Arrived { group, .. }
            | Self::Left { group, .. }
            | Self::Gathered { group, .. } => Some(*group),
        }
    }
}

/// A message that was begun.
#[derive(Clone, Copy, Debug, Hash)]
struct BegunMessage {
    seq: u64,
    offset: u64,
    len: u64,
}

/// A chunk that was delivered and not released.
#[derive(Clone, Debug, Hash)]
struct Unreleased {
    name: (GroupId, Epoch, u64),
    at: At,
    bytes: Vec<u8>,
    receipt: Receipt,
}

/// The groups of one incarnation.
#[derive(Clone, Debug, Hash)]
pub struct GroupNode {
    me: Peer,
    incarnation: Incarnation,
    /// Boxed, so that a copy of the node does not move the room of those that are not open.
    groups: Groups<PEERS, GROUPS, Box<Group<PEERS>>>,
    /// Messages that were ordered and had no room yet, for each group.
    owed: [u32; GROUPS],
    drafts: [Option<BegunMessage>; GROUPS],
    /// Oldest first.
    hands: VecDeque<Unreleased>,
    /// Roots whose end was delivered, for each group.
    lost: [PeerSet; GROUPS],
    /// Groups that it has come back to, and that have not opened yet.
    closed: [bool; GROUPS],
    /// It was removed in an earlier incarnation: it takes no part.
    retired: bool,
    /// The term of the last removal.
    term: Term,
}

impl GroupNode {
    pub(super) fn new(run: &Groupings, seat: &mut Seat<'_, GroupEvent>) -> Self {
        let (me, incarnation) = (seat.me(), seat.incarnation);
        let epoch = run.epoch_of(me, incarnation);
        let groups = Groups::new(&seat.fabric, run.config, run.regions, incarnation);
        let mut groups = groups.in_epoch(Incarnation(epoch));
        for (id, list) in run.groups().filter(|(_, list)| list.contains(&me)) {
            // Of one that has come back, the program asks for the group at some time.
            if groups.is_begun(&seat.fabric, id, list).expect("a list that was drawn is valid") {
                groups.open(&seat.fabric, id, list).expect("a list that was drawn is valid");
            }
        }
        let mut node = Self {
            me,
            incarnation,
            groups,
            owed: [0; GROUPS],
            drafts: [None; GROUPS],
            hands: VecDeque::new(),
            lost: [PeerSet::EMPTY; GROUPS],
            closed: [epoch > 1; GROUPS],
            retired: run.is_out(me, incarnation),
            term: Term::of_epoch(0),
        };
        // An earlier incarnation may have ended before it could say so.
        node.note_opened(run, seat);
        node
    }

    /// Records the groups that this member has come back to.
    fn note_opened(&mut self, run: &Groupings, seat: &mut Seat<'_, GroupEvent>) {
        for (id, list) in run.groups().filter(|(_, list)| list.contains(&self.me)) {
            let is_closed = self.groups.is_fresh(id) || !self.groups.is_opened(id);
            if is_closed || !self.closed[usize::from(id.0)] {
                continue;
            }
            self.closed[usize::from(id.0)] = false;
            let roots = (0..).map(Grank).zip(list).filter(|(_, peer)| **peer != self.me);
            let roots = roots.filter_map(|(grank, peer)| {
                let epoch = self.groups.epoch(id, grank).filter(|epoch| epoch.0 > 0)?;
                Some(((*peer, epoch.0), self.groups.standing(id, grank)?.released.entries))
            });
            let roots = roots.collect();
            let calls = self.groups.calls(id).unwrap_or_default();
            let (left, taken) = (calls.left, calls.taken);
            seat.record(GroupEvent::Opened { group: id, left, taken, roots });
        }
    }

    /// Its incarnation.
    pub(super) const fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    pub(super) fn admit(
        &mut self,
        (peer, incarnation): (Peer, Incarnation),
        seat: &mut Seat<'_, GroupEvent>,
    ) {
        if !self.retired {
            self.groups.prepare(&seat.fabric, peer, incarnation);
        }
        seat.fabric.admit(peer, incarnation).expect("a later incarnation is admitted");
        if !self.retired {
            self.groups.handle_admitted(peer);
        }
    }

    pub(super) fn fence(&mut self, peer: Peer) {
        self.groups.handle_fenced(peer);
    }

    /// The manager has decided to remove `peer`, in a term of its own. A later manager repeats
    /// earlier decisions, for members that learn of the two in the other order.
    pub(super) fn remove(&mut self, (peer, epoch): Epoch, seat: &mut Seat<'_, GroupEvent>) {
        let last = Incarnation(epoch);
        if !self.groups.counts(peer, last) {
            return;
        }
        self.term = self.term.max(Term::of_epoch(1 + u32::from(peer.0)));
        let decision = Decision { term: self.term, removed: peer, last };
        let removed = self.groups.remove(&mut seat.fabric, decision);
        removed.expect("a simulated peer is fenced at once");
        seat.record(GroupEvent::Removed { peer, last: epoch });
    }

    pub(super) fn step(&mut self, run: &Groupings, seat: &mut Seat<'_, GroupEvent>) {
        let mut done = [Completion::NONE; BATCH];
        let count = seat.fabric.poll(seat.now, &mut done);
        for completion in &done[..count] {
            self.groups.handle_completion(&seat.fabric, completion);
        }
        let is_ordered = seat.is_ordered();
        if self.retired {
            return;
        }
        let group = seat.draw(run.lists.len() as u64) as usize;
        if is_ordered && run.lists[group].contains(&self.me) {
            self.owed[group] += 1;
        }
        for (id, list) in run.groups() {
            if list.contains(&self.me) {
                if !self.groups.is_opened(id) {
                    if seat.draw(8) != 0 {
                        continue;
                    }
                    let opened = self.groups.open(&seat.fabric, id, list);
                    opened.expect("a list that was drawn is valid");
                }
                self.call(run, id, seat);
                self.send(run, id, seat);
            }
        }
        self.groups.poll(&mut seat.fabric);
        self.note_opened(run, seat);
        for (id, list) in run.groups() {
            self.take(list, id, seat);
        }
        self.release(seat);
    }

    /// Goes through barriers and all-gathers, as many as the run has.
    fn call(&mut self, run: &Groupings, id: GroupId, seat: &mut Seat<'_, GroupEvent>) {
        let Some(calls) = self.groups.calls(id).filter(|_| self.groups.is_open(id)) else { return };
        let is_idle = calls.arrived == calls.left;
        if is_idle && calls.left < run.barriers && seat.draw(8) == 0 {
            // First: what the memory holds counts, also if the process ends before it returns.
            seat.record(GroupEvent::Arrived { group: id, number: calls.arrived + 1 });
            let arrived = self.groups.arrive(&mut seat.fabric, id);
            assert_eq!(arrived, Ok(calls.arrived + 1), "barriers are numbered one after the other");
        }
        if let Some(number) = self.groups.leave(&seat.fabric, id) {
            seat.record(GroupEvent::Left { group: id, number });
        }
        if calls.sent == calls.taken && calls.sent < run.gathers && seat.draw(8) == 0 {
            let mine = run.value_of(id, self.me, calls.sent + 1);
            // What was refused is sent later.
            let _sent = self.groups.all_gather(&mut seat.fabric, id, &mine);
        }
        let Some(gathered) = self.groups.gathered(&seat.fabric, id) else { return };
        if seat.draw(3) == 0 {
            let values = gathered.values[..usize::from(gathered.count)].iter();
            let values = (0..).map(Grank).zip(values).map(|(grank, value)| {
                let (seq, at, len) = (*value)?;
                let epoch = self.groups.epoch(id, grank).map_or(0, |epoch| epoch.0);
                let mut bytes = vec![0; len as usize];
                seat.fabric.memory().copy_out(at.region, at.offset, &mut bytes);
                Some((epoch, seq, bytes))
            });
            let values: Vec<Value> = values.collect();
            seat.record(GroupEvent::Gathered { group: id, number: gathered.number, values });
            self.groups.end_gather(&seat.fabric, id);
        }
    }

    /// Writes blocks of the message that was begun, or sends the next.
    fn send(&mut self, run: &Groupings, id: GroupId, seat: &mut Seat<'_, GroupEvent>) {
        let at = usize::from(id.0);
        while let Some(draft) = self.drafts[at] {
            let space = self.groups.space(&seat.fabric, id);
            let Some((place, len)) = space.filter(|_| seat.draw(3) < 2) else { return };
            let name = (id, (self.me, run.epoch_of(self.me, self.incarnation)), draft.seq);
            let bytes = run.bytes_of(name, draft.offset, len as usize);
            seat.fabric.memory().copy_in(place.region, place.offset, &bytes);
            self.groups.commit(&mut seat.fabric, id).expect("there was space");
            let offset = draft.offset + u64::from(len);
            self.drafts[at] = (offset < draft.len).then_some(BegunMessage { offset, ..draft });
        }
        if self.owed[at] == 0 {
            return;
        }
        let Some(me) = grank(&run.lists[at], self.me) else { return };
        let held = self.groups.standing(id, me).map_or(0, |standing| standing.held.entries);
        let seq = held + 1;
        let own = (self.me, run.epoch_of(self.me, self.incarnation));
        let len = run.len_of(id, own, seq);
        let is_small = len <= u64::from(run.config.sizes().eager);
        let spread = run.spread_of(self.me, seq);
        self.groups.set_spread(id, spread).expect("it is one of its groups");
        let sent = if is_small || seat.draw(3) == 1 {
            let bytes = run.bytes_of((id, own, seq), 0, len as usize);
            self.groups.broadcast(&mut seat.fabric, id, seq, &bytes)
        } else {
            let begun = self.groups.begin(&mut seat.fabric, id, seq, len);
            if begun.is_ok() {
                self.drafts[at] = Some(BegunMessage { seq, offset: 0, len });
            }
            begun
        };
        // What was refused is sent later.
        if let Ok(number) = sent {
            assert_eq!(number, seq, "messages are numbered one after the other");
            self.owed[at] -= 1;
        }
    }

    fn take(&mut self, list: &[Peer], group: GroupId, seat: &mut Seat<'_, GroupEvent>) {
        for _ in 0..TAKES {
            if self.hands.len() >= HANDS_MAX {
                return;
            }
            let Some(delivery) = self.groups.receive(&seat.fabric, group) else { return };
            let groups = &self.groups;
            let peer = |root: Grank| {
                (list[root.index()], groups.epoch(group, root).map_or(0, |epoch| epoch.0))
            };
            let event = match delivery {
                Delivery::Chunk(chunk) => {
                    let mut bytes = vec![0; chunk.len as usize];
                    let memory = seat.fabric.memory();
                    memory.copy_out(chunk.at.region, chunk.at.offset, &mut bytes);
                    self.hands.push_back(Unreleased {
                        name: (group, peer(chunk.root), chunk.seq),
                        at: chunk.at,
                        bytes: bytes.clone(),
                        receipt: chunk.receipt,
                    });
                    GroupEvent::Chunk {
                        group,
                        root: peer(chunk.root),
                        seq: chunk.seq,
                        offset: chunk.offset,
                        bytes,
                        message_len: chunk.message_len,
                        is_last: chunk.is_last,
                    }
                }
                Delivery::Abandoned { root, seq } => {
                    GroupEvent::Abandoned { group, root: peer(root), seq }
                }
                Delivery::RootLost { root, epoch, last } => {
                    self.lost[usize::from(group.0)].insert(list[root.index()]);
                    GroupEvent::RootLost { group, root: (list[root.index()], epoch.0), last }
                }
            };
            seat.record(event);
        }
    }

    fn release(&mut self, seat: &mut Seat<'_, GroupEvent>) {
        while seat.draw(4) < 3 {
            let Some(hand) = self.hands.pop_front() else { return };
            let mut bytes = vec![0; hand.bytes.len()];
            seat.fabric.memory().copy_out(hand.at.region, hand.at.offset, &mut bytes);
            if bytes != hand.bytes {
                let (group, root, seq) = hand.name;
                seat.record(GroupEvent::Changed { group, root, seq });
            }
            let released = self.groups.release(&seat.fabric, hand.receipt);
            released.expect("a chunk that was delivered can be released");
        }
    }

    /// What this node still has to do, if anything.
    pub(super) fn unfinished(&self, run: &Groupings) -> Option<String> {
        let me = self.me;
        if self.owed.iter().any(|owed| *owed > 0) {
            return Some(format!("{me} has no room for {:?} messages", self.owed));
        }
        if self.drafts.iter().any(Option::is_some) {
            return Some(format!("{me} has no room for blocks of {:?}", self.drafts));
        }
        if !self.hands.is_empty() {
            return Some(format!("{me} has not released {:?}", self.hands));
        }
        for (id, list) in run.groups().filter(|(_, list)| list.contains(&me)) {
            let calls = self.groups.calls(id).unwrap_or_default();
            if (calls.left, calls.taken) != (run.barriers, run.gathers) {
                return Some(format!("{me}: {id:?} has {calls:?}"));
            }
            if !self.groups.is_open(id) || !self.groups.is_idle(id) {
                let standing = (0..list.len() as u16)
                    .map(|root| self.groups.standing(id, Grank(root)))
                    .collect::<Vec<_>>();
                let is_open = self.groups.is_open(id);
                return Some(format!("{me}: {id:?}, open {is_open}, has {standing:?}"));
            }
            let lost = self.lost[usize::from(id.0)];
            // One that has come back hears nothing of those that were out before.
            let is_first = run.epoch_of(me, self.incarnation) == 1;
            let live = self.groups.live(id);
            let is_lost = |root: &&Peer| is_first && !live.contains(**root);
            if let Some(root) = list.iter().filter(is_lost).find(|root| !lost.contains(**root)) {
                return Some(format!("{me} does not know the end of {root} in {id:?}"));
            }
        }
        None
    }

    /// Whether `other` has delivered all messages of this root.
    pub(super) fn check_delivered(&self, run: &Groupings, other: &Self) -> Result<(), Violation> {
        for (id, list) in run.groups() {
            let (Some(root), Some(_)) = (grank(list, self.me), grank(list, other.me)) else {
                continue;
            };
            let sent = self.groups.standing(id, root);
            let received = other.groups.standing(id, root);
            let [sent, received] = [sent, received].map(|it| it.map(|standing| standing.released));
            if sent != received {
                let (me, other) = (self.me, other.me);
                let what = format!("{other} has {received:?} of {sent:?} of {me} in {id:?}");
                return Err(Violation::new("liveness", what));
            }
        }
        Ok(())
    }
}

fn grank(list: &[Peer], peer: Peer) -> Option<Grank> {
    let at = list.iter().position(|it| *it == peer)?;
    u16::try_from(at).ok().map(Grank)
}
