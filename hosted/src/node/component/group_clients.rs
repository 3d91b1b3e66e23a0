//! What clients do with the groups of their node: send, receive, enter barriers.
//!
//! ```text
//!   request ─▶ [ line ] ─▶ tried in each pass ─▶ done, or refused past its deadline
//! ```
//!
//! No byte of a message goes through a socket: a client sends sealed memory, and receives where in
//! the memory of its node a message lies, which it may read.
//!
//! A client has its turn to send until it rests or leaves; if it leaves in the middle, its abort
//! marker is sent before the next one has its turn. What a client receives stays where it lies
//! until the client reports it as processed, so the next client, or the next incarnation, is given
//! again what the last one has not. What is owed to senders that are gone does not outlive the
//! component: receivers of their files wait until their timeout then.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};

use weft_core::group::{Chunk, Delivery, Grank, GroupId, Standing};
use weft_core::ids::{Peer, Rank};

use super::Component;
use super::groups::GroupError;
use crate::cluster::{self, Topology};
use crate::node::control::{
    GroupDone, GroupOutcome, GroupPart, GroupReceived, GroupRefused, GroupRun, GroupStatus,
    GroupWant, GroupWindow, Outcome, Refused, RootStatus, Then,
};
use crate::node::link::Ticket;
use crate::node::puts::Answer;
use crate::shm::SealedBytes;

/// The most requests in line, and how many of them may have memory.
const LINE_MAX: usize = 256;
const MEMORIES_MAX: usize = 64;

/// A request in line.
#[derive(Debug)]
struct GroupJob {
    ticket: Ticket,
    id: GroupId,
    what: GroupWant,
    /// The message of a send.
    message: Option<SealedBytes>,
    deadline_ns: u64,
}

/// The client that sends to a group.
#[derive(Debug)]
struct SendingClient {
    /// None once it has left in the middle: its marker is owed.
    client: Option<u64>,
    tag: u64,
    marker: Vec<u8>,
    has_sent: bool,
}

/// The client that receives of a member.
#[derive(Clone, Copy, Debug)]
struct MemberReader {
    client: u64,
    process: u32,
    /// It was given a part of what the member has sent.
    has_begun: bool,
}

/// The requests of clients about groups.
#[derive(Debug, Default)]
pub(super) struct GroupClients {
    line: VecDeque<GroupJob>,
    turns: BTreeMap<GroupId, SendingClient>,
    readers: BTreeMap<(GroupId, Rank), MemberReader>,
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
            GroupError::TooLong { limit } => {
                Self::refused(GroupRefused::TooLong { limit: limit as u64 })
            }
            GroupError::ValueTooLong { limit } => {
                Self::refused(GroupRefused::TooLong { limit: u64::from(limit) })
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
        (what, fds): (GroupWant, Vec<OwnedFd>),
        deadline_ns: u64,
    ) -> Option<Answer> {
        let line = &self.group_clients.line;
        let memories = line.iter().filter(|job| job.message.is_some()).count();
        let is_busy = line.len() >= LINE_MAX || memories >= MEMORIES_MAX;
        let refused = match self.group_named(name) {
            Ok(_) if is_busy => Refused::Busy,
            Ok(id) => match self.message_of(&what, fds) {
                Ok(message) => {
                    let job = GroupJob { ticket, id, what, message, deadline_ns };
                    self.group_clients.line.push_back(job);
                    return None;
                }
                Err(refused) => Refused::Group(refused),
            },
            Err(GroupError::NotAMember) => self.no_member(name, self.rank()),
            Err(_) => {
                let groups = self.groups.iter().map(|group| group.name.clone()).collect();
                Refused::Group(GroupRefused::Unknown { groups })
            }
        };
        Some((ticket, Outcome::Refused(refused)))
    }

    /// The message of a send, in memory that its client cannot change any more.
    fn message_of(
        &self,
        what: &GroupWant,
        mut fds: Vec<OwnedFd>,
    ) -> Result<Option<SealedBytes>, GroupRefused> {
        let len = match what {
            GroupWant::Send { len, .. } => *len,
            GroupWant::Receive { .. } | GroupWant::Hold | GroupWant::Open | GroupWant::Barrier => {
                None
            }
        };
        if fds.len() != usize::from(len.is_some()) {
            return Err(GroupRefused::NotSealed(format!("{} descriptors came with it", fds.len())));
        }
        let Some((len, fd)) = len.zip(fds.pop()) else { return Ok(None) };
        let limit = self.group_window_len() as u64;
        if len > limit {
            return Err(GroupRefused::TooLong { limit });
        }
        let opened = SealedBytes::open(fd.as_fd(), len);
        opened.map(Some).map_err(|error| GroupRefused::NotSealed(error.to_string()))
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
            GroupWant::Send { tag, topology, then, len: _ } => {
                self.try_send(job, *tag, *topology, then)
            }
            GroupWant::Receive { root, process, done } => {
                let client = job.ticket.client;
                let reader = MemberReader { client, process: *process, has_begun: false };
                self.try_receive(job.id, root.map(Rank), reader, *done)
            }
            // The memory is the supervisor's.
            GroupWant::Hold => Attempt::Refused(Refused::Busy),
            GroupWant::Open if self.group_is_open(job.id) => Attempt::Done(GroupOutcome::Open),
            GroupWant::Open => Attempt::waits(GroupRefused::Opening),
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
        topology: Option<Topology>,
        then: &Then,
    ) -> Attempt {
        let (id, client) = (job.id, job.ticket.client);
        let turn = self.group_clients.turns.get(&id);
        if turn.is_some_and(|turn| turn.client != Some(client)) {
            return Attempt::Waits(Outcome::Refused(Refused::OtherSender));
        }
        let has_sent = turn.is_some_and(|turn| turn.has_sent);
        let last = match &job.message {
            None => {
                let me = self.rank();
                self.group_standing(id, me).map_or(0, |standing| standing.held.entries)
            }
            Some(message) => {
                let topology = topology.unwrap_or(self.cluster.group.topology);
                let chosen = self.group_set_topology(id, topology);
                match chosen.and_then(|()| self.group_broadcast(id, tag, message.bytes())) {
                    Ok(seq) => seq,
                    Err(error) => return Attempt::of(error),
                }
            }
        };
        match then {
            Then::Rest => drop(self.group_clients.turns.remove(&id)),
            Then::GoOn { marker } => {
                let (marker, has_sent) = (marker.0.clone(), has_sent || job.message.is_some());
                let turn = SendingClient { client: Some(client), tag, marker, has_sent };
                self.group_clients.turns.insert(id, turn);
            }
        }
        Attempt::Done(GroupOutcome::Sent { last })
    }

    fn try_receive(
        &mut self,
        id: GroupId,
        root: Option<Rank>,
        reader: MemberReader,
        done: Option<GroupDone>,
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
        if let Some(done) = done {
            self.note_processed(id, done);
        }
        match self.group_for(id, root, reader) {
            Some(received) => Attempt::Done(GroupOutcome::Received(Some(received))),
            None => Attempt::Waits(Outcome::Group(GroupOutcome::Received(None))),
        }
    }

    /// The client has processed a part of a message.
    fn note_processed(&mut self, id: GroupId, done: GroupDone) {
        let GroupDone { origin, seq, through } = done;
        let group = &mut self.groups[usize::from(id.0)];
        let Some(origin) = group.grank(Rank(origin)) else { return };
        let mut last = None;
        group.due.retain(|delivery| match *delivery {
            Delivery::Chunk(chunk) if (chunk.root, chunk.seq) == (origin, seq) => {
                let is_done = chunk.offset + u64::from(chunk.len) <= through;
                last = if is_done { Some(chunk.receipt) } else { last };
                !is_done
            }
            Delivery::Abandoned { root, seq: of } => (root, of) != (origin, seq),
            // The end of a root is given to each client that waits for more of it.
            Delivery::Chunk(_) | Delivery::RootLost { .. } => true,
        });
        // That of the last part releases those before it, too.
        if let Some(receipt) = last {
            let released = self.group_release(receipt);
            debug_assert!(released.is_ok(), "the chunks of a root are released in its order");
        }
    }

    /// What `reader` is given next, which stays.
    fn group_for(
        &mut self,
        id: GroupId,
        root: Option<Rank>,
        reader: MemberReader,
    ) -> Option<GroupReceived> {
        let (groups, fabric) = self.endpoint.groups()?;
        let live = groups.live(id);
        let due = &mut self.groups[usize::from(id.0)].due;
        // No more than the windows hold: what is not released is handed out once.
        due.extend(std::iter::from_fn(|| groups.receive(fabric, id)));
        let mut granks: Vec<Grank> = Vec::new();
        for grank in self.groups[usize::from(id.0)].due.iter().map(root_of) {
            if !granks.contains(&grank) {
                granks.push(grank);
            }
        }
        for grank in granks {
            let of = self.group_member(id, grank);
            let holder = self.group_clients.readers.get(&(id, of)).copied();
            let is_wanted = root.is_none_or(|root| root == of);
            if !is_wanted || holder.is_some_and(|it| it.client != reader.client) {
                continue;
            }
            let mut has_begun = holder.is_some_and(|it| it.has_begun);
            if live.contains(Peer(of.0))
                && let Some(last) = self.take_end(id, grank)
            {
                // It ends what came before it, and says nothing about what is sent now.
                self.group_clients.readers.remove(&(id, of));
                if has_begun && root.is_some() {
                    return Some(GroupReceived::RootLost { root: of.0, last });
                }
                has_begun = false;
            }
            // Who has received nothing of it may receive what it sends once it is back.
            if let Some(received) = self.next_of(id, grank, root.is_some() && has_begun) {
                has_begun |= matches!(received, GroupReceived::Run(_));
                self.group_clients.readers.insert((id, of), MemberReader { has_begun, ..reader });
                return Some(received);
            }
        }
        None
    }

    /// The last message before the end of `grank`, if that is due next: it is due no more.
    fn take_end(&mut self, id: GroupId, grank: Grank) -> Option<u64> {
        let due = &mut self.groups[usize::from(id.0)].due;
        let at = due.iter().position(|delivery| root_of(delivery) == grank)?;
        let Delivery::RootLost { last, .. } = due[at] else { return None };
        due.remove(at);
        Some(last)
    }

    /// What comes next of the member `grank`: a message once it is whole, if the window holds it.
    /// Its end is for a reader that `waits` for more of it.
    fn next_of(&self, id: GroupId, grank: Grank, waits: bool) -> Option<GroupReceived> {
        let root = self.group_member(id, grank).0;
        let due = &self.groups[usize::from(id.0)].due;
        let mut of_root = due.iter().filter(|delivery| root_of(delivery) == grank);
        let first = match *of_root.next()? {
            Delivery::Chunk(chunk) => chunk,
            Delivery::Abandoned { seq, .. } => return Some(GroupReceived::Abandoned { root, seq }),
            Delivery::RootLost { last, .. } => {
                return waits.then_some(GroupReceived::RootLost { root, last });
            }
        };
        let Chunk { seq, tag, message_len, offset, .. } = first;
        let part = |chunk: Chunk| (chunk.at.offset, chunk.len);
        let (mut parts, mut is_last) = (vec![part(first)], first.is_last);
        for delivery in of_root {
            match *delivery {
                Delivery::Chunk(chunk) if chunk.seq == seq => {
                    parts.push(part(chunk));
                    is_last = chunk.is_last;
                }
                Delivery::Abandoned { seq: of, .. } if of == seq => {
                    return Some(GroupReceived::Abandoned { root, seq });
                }
                _ => break,
            }
        }
        let is_due = is_last || message_len > self.group_window_len() as u64;
        let run = GroupRun { origin: root, seq, tag, message_len, offset, parts, is_last };
        is_due.then_some(GroupReceived::Run(run))
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
        if !groups.is_opened(id) {
            status.standing = GroupPart::Unopened;
            return status;
        }
        let is_open = groups.is_open(id);
        status.standing = if is_open { GroupPart::Open } else { GroupPart::Opening };
        let live = groups.live(id);
        let removed = ranks.iter().filter(|rank| !live.contains(Peer(rank.0)));
        status.removed = removed.map(|rank| rank.0).collect();
        let cluster::Group { entries, blocks, .. } = self.cluster.group;
        let window = |standing: &Standing| GroupWindow {
            entries: standing.held.entries - standing.stable.entries,
            entries_max: entries as u64,
            blocks: standing.held.blocks - standing.stable.blocks,
            blocks_max: blocks as u64,
            // Where nothing is on its way, no member is behind.
            hindmost: standing
                .hindmost
                .filter(|_| standing.held != standing.stable)
                .and_then(|grank| ranks.get(grank.index()))
                .map(|it| it.0),
        };
        let row = |(grank, rank): (u16, &Rank)| {
            let standing = groups.standing(id, Grank(grank)).unwrap_or_default();
            RootStatus {
                root: rank.0,
                held: standing.held.entries,
                delivered: standing.released.entries,
                by_all: (*rank == me).then_some(standing.stable.entries),
                window: (*rank == me).then(|| window(&standing)),
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
