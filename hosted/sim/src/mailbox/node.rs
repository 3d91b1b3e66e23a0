//! One incarnation of a peer: its mailbox, its outboxes, its lanes, and its orders.
//!
//! The machines are composed as in [`weft_core::endpoint::Endpoint`]; they are separate here so
//! that a node can be copied and compared while the world owns the fabric.

use std::collections::VecDeque;

use weft_core::endpoint::Plan;
use weft_core::fabric::{Completion, Fabric, Memory, Region};
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::lane::{LANE_WORK, LaneReader, LaneWriter};
use weft_core::mailbox::{Mailbox, Message, OUTBOX_WORK, OWNER_WORK, Outbox, PutEvent, Receipt};
use weft_core::wire::crc32c;
use weft_core::wire::slot::{Stamp, TRAILER_LEN, Trailer, seal};

use super::name::{ALIKE, Name};
use super::{LOCAL, Mailboxes, PEERS, SLOT_HALVES, SLOTS, TrafficMix, WORD};
use crate::protocol::Seat;

/// Completions that one round handles.
const BATCH: usize = 4;
/// Messages that one outbox may keep.
const STAGED_MAX: usize = 12;
/// Taken messages that are held back, at most.
const HANDS_MAX: usize = 6;

/// What a node observes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailboxEvent {
    /// The message is on its way to its owner from now on.
    Staged(Name),
    /// The message is in its owner's memory.
    Put(Name),
    /// The message may be in its owner's memory or not.
    Unknown(Name),
    /// The message is not in its owner's memory and will not be.
    Withdrawn(Name),
    /// The message that was in doubt may be put a second time.
    Repeated(Name),
    /// The peer's memory was lost with its last incarnation.
    Forgot,
    /// The owner noticed forged tickets.
    Noticed,
    /// The fabric answered a reservation wrongly, or executed one after it had reported its
    /// failure.
    Misled(Peer),
    /// The delivered message was restored, and must be delivered again.
    Restored(Name),
    /// A message was delivered.
    Taken {
        /// The sender, as reported by the mailbox.
        sender: Peer,
        /// The sender's incarnation and sequence, as reported by the mailbox.
        id: (u16, u32),
        /// The bytes.
        payload: Vec<u8>,
    },
    /// The message was processed and released.
    Released(Name),
    /// The message is in the lane.
    Sent(Name),
    /// A lane delivered a message.
    Heard {
        /// The writer of the lane.
        sender: Peer,
        /// The bytes.
        payload: Vec<u8>,
    },
    /// The peer was fenced by this node.
    Fenced(Peer),
    /// That incarnation of the peer was admitted by this node.
    Admitted(Peer, Incarnation),
}

#[derive(Clone, Debug, Hash)]
struct Lanes {
    writer: LaneWriter,
    reader: LaneReader,
    theirs: Incarnation,
    sent: u32,
    /// To be sent as soon as there is room.
    pending: u32,
}

/// What a node keeps of a message until it is released.
pub(crate) type Hand = (Receipt, Option<Name>);

/// The message in the node's hands, and that it was taken.
pub(crate) fn hand(message: &Message<'_>) -> (Hand, MailboxEvent) {
    let (sender, payload) = (message.sender, message.payload.to_vec());
    let id = (message.incarnation, message.sequence);
    ((message.receipt, Name::of(&payload)), MailboxEvent::Taken { sender, id, payload })
}

/// The machines of one incarnation.
#[derive(Clone, Debug, Hash)]
pub struct MailboxNode {
    me: Peer,
    incarnation: Incarnation,
    mailbox: Mailbox<SLOTS, PEERS>,
    outboxes: Vec<Outbox>,
    unposted: PeerSet,
    lanes: Vec<Option<Lanes>>,
    /// By owner: what is staged, and how many messages were made.
    staged: Vec<VecDeque<Name>>,
    made: Vec<u32>,
    /// Taken and not released.
    hands: VecDeque<Hand>,
    /// Forged tickets that were recorded.
    noticed: u64,
    /// Messages in doubt after a loss are always put again.
    repeats: bool,
}

impl MailboxNode {
    pub(super) fn new(run: &Mailboxes, seat: &mut Seat<'_, MailboxEvent>) -> Self {
        let plan = &run.plan;
        let (me, incarnation) = (seat.me(), seat.incarnation);
        if incarnation == Incarnation(1) {
            age(run, seat);
        } else if seat.draw(8) == 7 {
            forget(plan, seat);
            seat.record(MailboxEvent::Forgot);
        }
        let (sizes, regions) = (plan.mailbox(), plan.mailbox_regions());
        let mut mailbox = Mailbox::attach(&seat.fabric, sizes, regions);
        mailbox.handle_admitted(me);
        if !run.stalls {
            // The world bars work that was posted to an earlier incarnation.
            mailbox.handle_all_named();
        } else if incarnation > Incarnation(1) {
            // A reservation at the previous owner may be executed here after its sender has seen it
            // fail: its ticket is skipped and counted as forged although no member lied.
            seat.record(MailboxEvent::Misled(me));
        }
        let peers = plan.layout().peers();
        let outboxes = (0..peers).map(Peer).map(|owner| {
            let mut outbox = Outbox::new(&seat.fabric, sizes, regions, owner, incarnation);
            if owner != me {
                // Nothing is posted to a peer before it is admitted.
                outbox.lose();
            }
            outbox
        });
        Self {
            me,
            incarnation,
            mailbox,
            outboxes: outboxes.collect(),
            unposted: PeerSet::EMPTY,
            lanes: vec![None; usize::from(peers)],
            staged: vec![VecDeque::new(); usize::from(peers)],
            made: vec![0; usize::from(peers)],
            hands: VecDeque::new(),
            noticed: 0,
            repeats: run.repeats,
        }
    }

    /// The work that this node still has to do, if any. It does not wait for `liars`, which are not
    /// admitted again.
    pub(super) fn unfinished(&self, liars: PeerSet) -> Option<String> {
        let kept = |staged: &&VecDeque<Name>| {
            staged.front().is_some_and(|name| !liars.contains(name.to.0))
        };
        if let Some(staged) = self.staged.iter().find(kept) {
            return Some(format!("keeps {staged:?}"));
        }
        let waits = |lanes: &&Lanes| lanes.pending > 0;
        if let Some(lanes) = self.lanes.iter().flatten().find(waits) {
            return Some(format!("waits for room: {} lane messages", lanes.pending));
        }
        let owed = self.mailbox.owed();
        (owed > 0).then(|| format!("owes {owed} messages"))
    }

    pub(super) fn fence(&mut self, peer: Peer, seat: &mut Seat<'_, MailboxEvent>) {
        self.lanes[peer.index()] = None;
        if let Some(event) = self.outboxes[peer.index()].lose() {
            self.note(peer, event, seat);
        }
        seat.fabric.fence(peer).expect("a simulated peer is fenced at once");
        self.mailbox.handle_fenced(peer);
        seat.record(MailboxEvent::Fenced(peer));
    }

    pub(super) fn admit(
        &mut self,
        run: &Mailboxes,
        theirs: (Peer, Incarnation),
        seat: &mut Seat<'_, MailboxEvent>,
    ) {
        let (peer, incarnation) = theirs;
        let plan = &run.plan;
        let (config, regions) = (plan.lane(), plan.lane_regions());
        let reader = LaneReader::new(&seat.fabric, config, regions, self.incarnation, theirs);
        let writer = LaneWriter::new(&seat.fabric, config, regions, self.incarnation, theirs);
        seat.fabric.admit(peer, incarnation).expect("a later incarnation is admitted");
        self.lanes[peer.index()] =
            Some(Lanes { writer, reader, theirs: incarnation, sent: 0, pending: 0 });
        self.mailbox.handle_admitted(peer);
        if self.lanes.iter().flatten().count() + 1 == self.lanes.len() {
            self.mailbox.handle_all_named();
        }
        self.outboxes[peer.index()].readmit(&seat.fabric);
        seat.record(MailboxEvent::Admitted(peer, incarnation));
    }

    pub(super) fn step(&mut self, run: &Mailboxes, seat: &mut Seat<'_, MailboxEvent>) {
        let mut done = [Completion::NONE; BATCH];
        let count = seat.fabric.poll(seat.now, &mut done);
        for peer in std::mem::take(&mut self.unposted).iter() {
            let event = self.outboxes[peer.index()].poll(&mut seat.fabric);
            self.note_progress(peer, event, seat);
        }
        for completion in &done[..count] {
            self.handle_completion(completion, seat);
        }
        self.mailbox.poll(&mut seat.fabric, seat.now);
        self.take(seat);
        self.release(seat);
        self.hear(seat);
        if seat.is_ordered() {
            self.obey(run, seat);
        }
        self.send(seat);
        self.flush(seat);
    }

    fn handle_completion(&mut self, completion: &Completion, seat: &mut Seat<'_, MailboxEvent>) {
        match completion.id.machine() {
            OUTBOX_WORK => {
                let peer = completion.peer;
                let outbox = &mut self.outboxes[peer.index()];
                let event = outbox.handle_completion(&mut seat.fabric, completion);
                self.note_progress(peer, event, seat);
            }
            OWNER_WORK => self.mailbox.handle_completion(&mut seat.fabric, completion),
            // A lane with failed work is useless until it is set up again.
            machine => assert_eq!(machine, LANE_WORK, "a completion of no machine"),
        }
    }

    fn note_progress(
        &mut self,
        peer: Peer,
        event: Option<PutEvent>,
        seat: &mut Seat<'_, MailboxEvent>,
    ) {
        match event {
            Some(event) => self.note(peer, event, seat),
            None if self.outboxes[peer.index()].is_unposted() => self.unposted.insert(peer),
            None => {}
        }
    }

    fn note(&mut self, owner: Peer, event: PutEvent, seat: &mut Seat<'_, MailboxEvent>) {
        let staged = &mut self.staged[owner.index()];
        match event {
            PutEvent::Put { count, left } => {
                staged
                    .drain(..count as usize)
                    .for_each(|name| seat.record(MailboxEvent::Put(name)));
                assert_eq!(staged.len(), left as usize, "messages staged");
            }
            PutEvent::Full => {}
            PutEvent::TicketUnknown => seat.record(MailboxEvent::Misled(owner)),
            PutEvent::Lost { unknown, .. } => {
                assert!(unknown as usize <= staged.len(), "more in doubt than staged");
                if self.repeats || seat.draw(2) == 1 {
                    // All of it is put again, under the same numbers.
                    let doubtful = staged.iter().take(unknown as usize);
                    doubtful.for_each(|name| seat.record(MailboxEvent::Repeated(*name)));
                    return;
                }
                for (place, name) in (0..).zip(staged.drain(..)) {
                    let in_doubt = place < unknown;
                    let event =
                        if in_doubt { MailboxEvent::Unknown } else { MailboxEvent::Withdrawn };
                    seat.record(event(name));
                }
                self.outboxes[owner.index()].discard();
            }
        }
    }

    fn take(&mut self, seat: &mut Seat<'_, MailboxEvent>) {
        for _ in 0..=seat.draw(3) {
            if self.hands.len() == HANDS_MAX {
                break;
            }
            let mut came = Vec::new();
            let run = if seat.draw(2) == 0 {
                let limit = (HANDS_MAX - self.hands.len()) as u32;
                let deal = |message: &Message<'_>| came.push(hand(message));
                self.mailbox.take_run(&seat.fabric, seat.now, limit, deal)
            } else {
                let message = self.mailbox.take(&seat.fabric, seat.now);
                came.extend(message.as_ref().map(hand));
                None
            };
            if came.is_empty() {
                break;
            }
            self.notice(seat);
            // What was taken together is often released so.
            let together = run.filter(|run| run.count() > 1 && seat.draw(2) == 1);
            let (hands, events): (Vec<_>, Vec<_>) = came.into_iter().unzip();
            events.into_iter().for_each(|event| seat.record(event));
            let Some(run) = together else {
                self.hands.extend(hands);
                continue;
            };
            let released = self.mailbox.release_run(&seat.fabric, run);
            released.expect("messages that were taken can be released");
            let names = hands.into_iter().filter_map(|(_, name)| name);
            names.for_each(|name| seat.record(MailboxEvent::Released(name)));
        }
        self.notice(seat);
    }

    fn notice(&mut self, seat: &mut Seat<'_, MailboxEvent>) {
        let forged = self.mailbox.counters().forged_tickets;
        if std::mem::replace(&mut self.noticed, forged) < forged {
            seat.record(MailboxEvent::Noticed);
        }
    }

    /// Messages are released in any order, some later than others.
    fn release(&mut self, seat: &mut Seat<'_, MailboxEvent>) {
        while !self.hands.is_empty() && seat.draw(4) < 3 {
            let which = seat.draw(self.hands.len() as u64) as usize;
            let Some((receipt, name)) = self.hands.remove(which) else {
                break;
            };
            if seat.draw(8) == 7 {
                self.mailbox.restore(receipt).expect("a message that was taken can be restored");
                name.into_iter().for_each(|name| seat.record(MailboxEvent::Restored(name)));
                continue;
            }
            let released = self.mailbox.release(&seat.fabric, receipt);
            released.expect("a message that was taken can be released");
            if let Some(name) = name {
                seat.record(MailboxEvent::Released(name));
            }
        }
    }

    fn hear(&mut self, seat: &mut Seat<'_, MailboxEvent>) {
        for lanes in self.lanes.iter_mut().flatten() {
            lanes.reader.poll(&mut seat.fabric);
            if lanes.reader.is_ready(&seat.fabric)
                && let Some(message) = lanes.reader.take(&mut seat.fabric)
            {
                let (sender, payload) = (message.sender, message.payload.to_vec());
                seat.record(MailboxEvent::Heard { sender, payload });
            }
        }
    }

    /// Executes one order: a few messages for one mailbox, or one for a lane.
    fn obey(&mut self, run: &Mailboxes, seat: &mut Seat<'_, MailboxEvent>) {
        let lane = match run.traffic {
            TrafficMix::Mailbox => false,
            TrafficMix::Lanes => true,
            TrafficMix::Both => seat.draw(2) == 1,
        };
        if lane {
            let to = seat.draw(self.lanes.len() as u64) as usize;
            if let Some(lanes) = &mut self.lanes[to] {
                lanes.pending += 1 + seat.draw(3) as u32;
            }
            return;
        }
        let owners: Vec<Peer> = run.owners.iter().collect();
        let owner = owners[seat.draw(owners.len() as u64) as usize];
        let outbox = &mut self.outboxes[owner.index()];
        let made = self.made[owner.index()];
        for _ in 0..=run.more + seat.draw(4) {
            let staged = &mut self.staged[owner.index()];
            let number = self.made[owner.index()] + 1;
            let (from, to) = ((self.me, self.incarnation), (owner, Incarnation(0)));
            let alike = if run.alike { ALIKE } else { 0 };
            let name = Name { from, to, number: number | alike };
            if staged.len() < STAGED_MAX && outbox.stage(7, &name.payload()).is_ok() {
                self.made[owner.index()] = number;
                staged.push_back(name);
                seat.record(MailboxEvent::Staged(name));
            }
        }
        if seat.draws.is_none() && self.made[owner.index()] == made {
            // In an exploration, an order waits until it can be executed.
            *seat.orders += 1;
        }
    }

    fn send(&mut self, seat: &mut Seat<'_, MailboxEvent>) {
        let from = (self.me, self.incarnation);
        for (peer, lanes) in (0..).map(Peer).zip(&mut self.lanes) {
            let Some(lanes) = lanes else { continue };
            while lanes.pending > 0 {
                let name = Name { from, to: (peer, lanes.theirs), number: lanes.sent + 1 };
                if lanes.writer.send(&mut seat.fabric, 7, &name.payload()).is_err() {
                    break;
                }
                lanes.pending -= 1;
                lanes.sent += 1;
                seat.record(MailboxEvent::Sent(name));
            }
        }
    }

    fn flush(&mut self, seat: &mut Seat<'_, MailboxEvent>) {
        for peer in (0..self.outboxes.len() as u16).map(Peer) {
            let outbox = &mut self.outboxes[peer.index()];
            if outbox.is_idle() && outbox.staged() > 0 {
                // Refused messages stay staged for the next round. Both ways to learn of a put.
                let put = if outbox.staged().is_multiple_of(2) {
                    let _ = outbox.flush(&mut seat.fabric);
                    None
                } else {
                    outbox.flush_now(&mut seat.fabric).ok().flatten()
                };
                let event = match put {
                    Some(count) => Some(PutEvent::Put { count, left: outbox.staged() }),
                    None if outbox.has_ended() => outbox.poll(&mut seat.fabric),
                    None => None,
                };
                self.note_progress(peer, event, seat);
            }
        }
    }
}

/// The regions of a mailbox, which outlive its owner.
const KEPT: [Region; 3] = [WORD, SLOT_HALVES, LOCAL];

/// Clears the own mailbox, as if it were new.
fn forget(plan: &Plan, seat: &mut Seat<'_, MailboxEvent>) {
    for region in KEPT {
        let len = plan.layout().spec(region).map_or(0, |spec| spec.len);
        for offset in (0..len).step_by(8) {
            seat.fabric.memory().store(region, offset, 0);
        }
    }
}

/// Ages the own mailbox as `run` says: its last epoch used half of the slots and is drained, and
/// the other slots hold what a burst of nearly 2^32 epochs ago left there.
fn age(run: &Mailboxes, seat: &mut Seat<'_, MailboxEvent>) {
    let open = run.first_epoch;
    if open == 0 {
        return;
    }
    let config = run.plan.mailbox();
    let (slots, before) = (config.slots(), open.wrapping_sub(1));
    let (used, memory) = (slots / 2, seat.fabric.memory());
    for (epoch, owed, released) in [(before, used, (1 << used) - 1), (open, 0, 0)] {
        let record = (epoch & 1) * 16;
        memory.store(LOCAL, record, Stamp { epoch, ticket: owed }.to_word());
        memory.store(LOCAL, record + 8, released);
    }
    memory.store(WORD, 0, u64::from(open) << 32);
    let epoch = before & 1;
    for ticket in used..slots {
        let mut slot = [0; TRAILER_LEN];
        Trailer::default().write(&mut slot);
        seal(&mut slot, Stamp { epoch, ticket }, 1, ticket, crc32c);
        let end = (epoch * slots + ticket + 1) * config.stride();
        memory.copy_in(SLOT_HALVES, end - TRAILER_LEN as u32, &slot);
    }
}
