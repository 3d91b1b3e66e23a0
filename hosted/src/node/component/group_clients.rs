//! What clients do with the groups of their node: send, receive, enter barriers.
//!
//! ```text
//!   request ─▶ [ line ] ─▶ tried in each pass ─▶ done, or refused past its deadline
//! ```
//!
//! A client has its turn to send until it rests or leaves; if it leaves in the middle, its abort
//! marker is sent before the next one has its turn. What a client receives stays where it lies
//! until the client reports it as processed, so the next client, or the next incarnation, is given
//! again what the last one has not. What is owed to senders that are gone does not outlive the
//! component: receivers of their files wait until their timeout then.

use std::collections::{BTreeMap, VecDeque};

use weft_core::group::{Delivery, Grank, GroupId};
use weft_core::ids::{Peer, Rank};

use super::Component;
use super::groups::GroupError;
use crate::node::control::{
    DeliveredMessage, GroupOutcome, GroupPart, GroupReceived, GroupRefused, GroupStatus, GroupWant,
    Outcome, PAYLOAD_LEN_MAX, Payload, Refused, RootStatus, Then,
};
use crate::node::link::Ticket;
use crate::node::puts::Answer;

/// The most requests in line.
const LINE_MAX: usize = 256;

/// A request in line.
#[derive(Debug)]
struct GroupJob {
    ticket: Ticket,
    id: GroupId,
    what: GroupWant,
    deadline_ns: u64,
}

/// The client that sends to a group.
#[derive(Debug)]
struct Turn {
    /// None once it has left in the middle: its marker is owed.
    client: Option<u64>,
    tag: u64,
    marker: Vec<u8>,
    has_sent: bool,
}

/// The client that receives of a member.
#[derive(Clone, Copy, Debug)]
struct Reader {
    client: u64,
    process: u32,
    /// It was given a part of what the member has sent.
    has_begun: bool,
}

/// The requests of clients about groups.
#[derive(Debug, Default)]
pub(super) struct GroupClients {
    line: VecDeque<GroupJob>,
    turns: BTreeMap<GroupId, Turn>,
    readers: BTreeMap<(GroupId, Rank), Reader>,
}

impl GroupClients {
    /// The client has left: what it waits for is dropped, and what it did not process goes to the
    /// next one.
    pub(super) fn forget(&mut self, client: u64) {
        self.line.retain(|job| job.ticket.client != client);
        self.readers.retain(|_, reader| reader.client != client);
        self.turns.retain(|_, turn| turn.client != Some(client) || turn.has_sent);
        let turns = self.turns.values_mut().filter(|turn| turn.client == Some(client));
        turns.for_each(|turn| turn.client = None);
    }

    /// When the next request in line times out.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        self.line.iter().map(|job| job.deadline_ns).min()
    }

    /// Whether no client waits, and no abort marker is owed.
    pub(super) fn is_idle(&self) -> bool {
        self.line.is_empty() && self.turns.values().all(|turn| turn.client.is_some())
    }
}

/// What an attempt came to: done, refused for good, or why it still waits.
enum Attempt {
    Done(GroupOutcome),
    Refused(Refused),
    Waits(Outcome),
}

impl Attempt {
    fn refused(why: GroupRefused) -> Self {
        Self::Refused(Refused::Group(why))
    }

    fn waits(why: GroupRefused) -> Self {
        Self::Waits(Outcome::Refused(Refused::Group(why)))
    }

    fn of(error: GroupError) -> Self {
        match error {
            GroupError::Opening => Self::waits(GroupRefused::Opening),
            GroupError::WindowFull { hindmost } => {
                Self::waits(GroupRefused::WindowFull { hindmost: hindmost.map(|rank| rank.0) })
            }
            // An earlier incarnation began a message, which is abandoned once there is room.
            GroupError::Unfinished => Self::waits(GroupRefused::WindowFull { hindmost: None }),
            GroupError::TooLong { .. } | GroupError::ValueTooLong { .. } => {
                Self::refused(GroupRefused::TooLong)
            }
            GroupError::UnknownGroup
            | GroupError::NotAMember
            | GroupError::NotBegun
            | GroupError::Gathering
            | GroupError::TimedOut => Self::Refused(Refused::Malformed(error.to_string())),
        }
    }
}

impl Component {
    /// Queues a request about the group `name`, or refuses it at once.
    pub(super) fn begin_group(
        &mut self,
        ticket: Ticket,
        name: &str,
        what: GroupWant,
        deadline_ns: u64,
    ) -> Option<Answer> {
        let refused = match self.group_named(name) {
            Ok(_) if self.group_clients.line.len() >= LINE_MAX => Refused::Busy,
            Ok(id) => {
                self.group_clients.line.push_back(GroupJob { ticket, id, what, deadline_ns });
                return None;
            }
            Err(GroupError::NotAMember) => self.no_member(name, self.rank()),
            Err(_) => {
                let groups = self.groups.iter().map(|group| group.name.clone()).collect();
                Refused::Group(GroupRefused::Unknown { groups })
            }
        };
        Some((ticket, Outcome::Refused(refused)))
    }

    fn no_member(&self, name: &str, rank: Rank) -> Refused {
        let group = self.groups.iter().find(|group| group.name == name);
        let members = group.map(|group| group.members.iter().map(|rank| rank.0).collect());
        let members = members.unwrap_or_default();
        Refused::Group(GroupRefused::NotAMember { rank: rank.0, members })
    }

    /// Tries every request in line once, in order.
    pub(super) fn step_groups(&mut self, now_ns: u64) -> Vec<Answer> {
        if self.group_clients.is_idle() {
            return Vec::new();
        }
        self.send_owed_markers();
        let mut answers = Vec::new();
        for job in std::mem::take(&mut self.group_clients.line) {
            let outcome = match self.try_group(&job) {
                Attempt::Done(done) => Outcome::Group(done),
                Attempt::Refused(refused) => Outcome::Refused(refused),
                Attempt::Waits(late) if now_ns >= job.deadline_ns => late,
                Attempt::Waits(_) => {
                    self.group_clients.line.push_back(job);
                    continue;
                }
            };
            answers.push((job.ticket, outcome));
        }
        answers
    }

    /// Sends the abort markers of clients that have left in the middle, where there is room.
    fn send_owed_markers(&mut self) {
        let owed = self.group_clients.turns.iter().filter(|(_, turn)| turn.client.is_none());
        let owed: Vec<_> = owed.map(|(id, turn)| (*id, turn.tag, turn.marker.clone())).collect();
        for (id, tag, marker) in owed {
            let sent = self.group_broadcast(id, tag, &marker);
            let waits = matches!(
                sent,
                Err(GroupError::WindowFull { .. } | GroupError::Opening | GroupError::Unfinished)
            );
            if !waits {
                self.group_clients.turns.remove(&id);
            }
        }
    }

    fn try_group(&mut self, job: &GroupJob) -> Attempt {
        match &job.what {
            GroupWant::Send { tag, message, then } => {
                self.try_send(job, *tag, message.as_ref(), then)
            }
            GroupWant::Receive { root, process, done } => {
                let client = job.ticket.client;
                let reader = Reader { client, process: *process, has_begun: false };
                self.try_receive(job.id, root.map(Rank), reader, *done)
            }
            GroupWant::Barrier => match self.group_arrive(job.id) {
                Ok(_) => match self.group_leave(job.id) {
                    Some(number) => Attempt::Done(GroupOutcome::Left { number }),
                    None => Attempt::waits(GroupRefused::Waiting),
                },
                Err(error) => Attempt::of(error),
            },
        }
    }

    fn try_send(
        &mut self,
        job: &GroupJob,
        tag: u64,
        message: Option<&Payload>,
        then: &Then,
    ) -> Attempt {
        let (id, client) = (job.id, job.ticket.client);
        let turn = self.group_clients.turns.get(&id);
        if turn.is_some_and(|turn| turn.client != Some(client)) {
            return Attempt::Waits(Outcome::Refused(Refused::OtherSender));
        }
        let has_sent = turn.is_some_and(|turn| turn.has_sent);
        let last = match message {
            None => {
                let me = self.rank();
                self.group_standing(id, me).map_or(0, |standing| standing.held.entries)
            }
            Some(message) => match self.group_broadcast(id, tag, &message.0) {
                Ok(seq) => seq,
                Err(error) => return Attempt::of(error),
            },
        };
        match then {
            Then::Rest => drop(self.group_clients.turns.remove(&id)),
            Then::GoOn { marker } => {
                let (marker, has_sent) = (marker.0.clone(), has_sent || message.is_some());
                let turn = Turn { client: Some(client), tag, marker, has_sent };
                self.group_clients.turns.insert(id, turn);
            }
        }
        Attempt::Done(GroupOutcome::Sent { last })
    }

    fn try_receive(
        &mut self,
        id: GroupId,
        root: Option<Rank>,
        reader: Reader,
        done: Option<(u16, u64)>,
    ) -> Attempt {
        if let Some(root) = root {
            let group = &self.groups[usize::from(id.0)];
            if !group.members.contains(&root) {
                return Attempt::Refused(self.no_member(&group.name.clone(), root));
            }
            let holder = self.group_clients.readers.entry((id, root)).or_insert(reader);
            if holder.client != reader.client {
                let (origin, process) = (root.0, holder.process);
                return Attempt::Refused(Refused::OtherReceiver { origin, process });
            }
        }
        if let Some((root, seq)) = done {
            self.note_processed(id, Rank(root), seq);
        }
        match self.group_for(id, root, reader) {
            Some(delivery) => {
                let received = self.received(id, delivery);
                Attempt::Done(GroupOutcome::Received(Some(received)))
            }
            None => Attempt::Waits(Outcome::Group(GroupOutcome::Received(None))),
        }
    }

    /// The client has processed message `seq` of `root`.
    fn note_processed(&mut self, id: GroupId, root: Rank, seq: u64) {
        let is_it = |component: &Self, delivery: &Delivery| match *delivery {
            Delivery::Chunk(chunk) => {
                (component.group_member(id, chunk.root), chunk.seq) == (root, seq)
            }
            Delivery::Abandoned { root: of, seq: other } => {
                (component.group_member(id, of), other) == (root, seq)
            }
            // It is true for each client that asks.
            Delivery::RootLost { .. } => false,
        };
        let due = &self.groups[usize::from(id.0)].due;
        let Some(index) = due.iter().position(|delivery| is_it(self, delivery)) else { return };
        if let Some(Delivery::Chunk(chunk)) = self.groups[usize::from(id.0)].due.remove(index) {
            let released = self.group_release(chunk.receipt);
            debug_assert!(released.is_ok(), "the chunks of a root are released in its order");
        }
    }

    /// What `reader` is given next, which stays.
    fn group_for(&mut self, id: GroupId, root: Option<Rank>, reader: Reader) -> Option<Delivery> {
        let (mut looked, live) = (0, self.endpoint.groups()?.0.live(id));
        let members = self.groups[usize::from(id.0)].members.clone();
        let is_back = |it: &Delivery| {
            let rank = members.get(root_of(it).index());
            let is_lost = matches!(it, Delivery::RootLost { .. });
            is_lost && rank.is_some_and(|rank| live.contains(Peer(rank.0)))
        };
        loop {
            while let Some(delivery) = self.groups[usize::from(id.0)].due.get(looked).copied() {
                looked += 1;
                let is_lost = matches!(delivery, Delivery::RootLost { .. });
                let of = self.group_member(id, root_of(&delivery));
                let is_wanted = root.map_or(!is_lost, |root| root == of);
                let holder = self.group_clients.readers.get(&(id, of)).copied();
                let is_own = holder.is_none_or(|it| it.client == reader.client);
                let has_begun = holder.is_some_and(|it| it.has_begun);
                if is_back(&delivery) && is_own {
                    // It ends what came before it, and says nothing about what is sent now.
                    looked -= 1;
                    self.groups[usize::from(id.0)].due.remove(looked);
                    self.group_clients.readers.remove(&(id, of));
                    if is_wanted && has_begun {
                        return Some(delivery);
                    }
                    continue;
                }
                if is_wanted && is_own {
                    let has_begun = has_begun || matches!(delivery, Delivery::Chunk(_));
                    self.group_clients.readers.insert((id, of), Reader { has_begun, ..reader });
                    return Some(delivery);
                }
            }
            let (groups, fabric) = self.endpoint.groups()?;
            let next = groups.receive(fabric, id)?;
            self.groups[usize::from(id.0)].due.push_back(next);
        }
    }

    /// The reply about `delivery`.
    fn received(&self, id: GroupId, delivery: Delivery) -> GroupReceived {
        let root = self.group_member(id, root_of(&delivery)).0;
        match delivery {
            Delivery::Chunk(chunk) => {
                let is_whole = chunk.is_last && chunk.offset == 0;
                let len = chunk.len as usize;
                let mut bytes = vec![0; if is_whole && len <= PAYLOAD_LEN_MAX { len } else { 0 }];
                self.group_words(&chunk).copy_out(0, &mut bytes);
                let payload = Payload(bytes);
                let (origin, seq, tag) = (root, chunk.seq, chunk.tag);
                GroupReceived::Message(DeliveredMessage { origin, seq, tag, payload })
            }
            Delivery::Abandoned { seq, .. } => GroupReceived::Abandoned { root, seq },
            Delivery::RootLost { last, .. } => GroupReceived::RootLost { root, last },
        }
    }

    /// The groups of the cluster file, as this node sees them.
    pub(super) fn group_statuses(&mut self) -> Vec<GroupStatus> {
        (0..).map(GroupId).take(self.groups.len()).map(|id| self.group_status(id)).collect()
    }

    fn group_status(&mut self, id: GroupId) -> GroupStatus {
        let me = self.rank();
        let group = &self.groups[usize::from(id.0)];
        let (name, ranks) = (group.name.clone(), group.members.clone());
        let members = ranks.iter().map(|rank| rank.0).collect();
        let mut status = GroupStatus {
            name,
            members,
            standing: GroupPart::NotAMember,
            removed: Vec::new(),
            roots: Vec::new(),
        };
        if !ranks.contains(&me) {
            return status;
        }
        let Some((groups, _)) = self.endpoint.groups() else {
            return status;
        };
        let is_open = groups.is_open(id);
        status.standing = if is_open { GroupPart::Open } else { GroupPart::Opening };
        let live = groups.live(id);
        let removed = ranks.iter().filter(|rank| !live.contains(Peer(rank.0)));
        status.removed = removed.map(|rank| rank.0).collect();
        let row = |(grank, rank): (u16, &Rank)| {
            let standing = groups.standing(id, Grank(grank)).unwrap_or_default();
            RootStatus {
                root: rank.0,
                held: standing.held.entries,
                delivered: standing.released.entries,
                by_all: (*rank == me).then_some(standing.stable.entries),
            }
        };
        status.roots = (0..).zip(&ranks).map(row).collect();
        status
    }
}

const fn root_of(delivery: &Delivery) -> Grank {
    match delivery {
        Delivery::Chunk(chunk) => chunk.root,
        Delivery::Abandoned { root, .. } | Delivery::RootLost { root, .. } => *root,
    }
}
