//! The clients of a node: their places, their windows, and which of their requests are open.
//!
//! ```text
//!   client's socket ── while its window is open ──▶ open: REQUESTS_OPEN_MAX, PAYLOAD_MAX bytes
//!          ◀── replies, kept while there is no room ──┘
//! ```
//!
//! The socket is the queue: a client whose window is closed, or that leaves replies unread, is not
//! read, which delays that client alone. All windows together are what the link and the component
//! have room for ([`REQUESTS_MAX`]). Nothing here waits for a client.
//!
//! A place is taken from the connection until the component has forgotten the client. When all are
//! taken, the client that has been idle for longest, and long enough, gives up its place; failing
//! that, the connection is one of a few for the operator, which carry no messages.

mod awaited;
mod open;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::PollFlags;

use super::tensors::KEPT_MAX;
use crate::node::NodeError;
use crate::node::control::{
    HolderStatus, Outcome, REQUESTS_OPEN_MAX, Refused, Reply, Request, Want,
};
use crate::node::link::{REQUESTS_MAX, Ticket};
use crate::packet::{Credentials, Encoded, Listener, Packet, PacketError, Socket};

pub(super) use awaited::{Awaited, Watching};
use open::Open;

/// The most clients at a time.
const PLACES: usize = 128;
/// Connections beyond those, for the operator; one too many ends the oldest.
const OPERATORS: usize = 8;
/// Payload bytes under way at which a client is no longer read.
const PAYLOAD_MAX: usize = 128 * 1024;
/// The most connections that are accepted in one pass.
const ACCEPTS_A_PASS: usize = 64;
/// How long a client must have been idle before another may take its place.
const IDLE_NS_MIN: u64 = 10_000_000_000;
/// How long a client may leave its socket full before it is disconnected.
const UNREAD_NS_MAX: u64 = 5_000_000_000;
/// How long no connection is accepted after accepting one failed.
const ACCEPT_AGAIN_NS: u64 = 100_000_000;

/// The requests, and the end, of every client that has or had a place, the abort markers, and the
/// tensors of the store.
const _: () =
    assert!((2 * PLACES + 2 * OPERATORS) * (REQUESTS_OPEN_MAX + 1) + 64 + KEPT_MAX <= REQUESTS_MAX);

/// The kind of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionKind {
    Place,
    Operator,
}

/// A connected client.
struct ConnectedClient {
    socket: Socket,
    seat: ConnectionKind,
    /// Each with the descriptor that goes with it.
    replies: VecDeque<(Encoded, Option<OwnedFd>)>,
    /// Since when its socket has had no room.
    unread_since_ns: u64,
    /// Since when no request of it was under way.
    idle_since_ns: u64,
    /// Whether the component has seen a request of it.
    is_known_below: bool,
}

/// The clients and their open requests.
pub(super) struct Clients {
    listener: Listener,
    accept_again_at_ns: u64,
    connected: BTreeMap<u64, ConnectedClient>,
    open: BTreeMap<Ticket, Open>,
    /// Those that have left, until the supervisor polls them.
    left: VecDeque<u64>,
    /// Those that the component has not forgotten yet.
    leaving: BTreeSet<u64>,
    count: u64,
}

impl Clients {
    /// Listens at `path`.
    pub(super) fn listen(path: &Path) -> Result<Self, NodeError> {
        // A node that returns finds the socket of its former process, on which no process listens.
        let _ = std::fs::remove_file(path);
        Ok(Self {
            listener: Listener::bind(path)?,
            accept_again_at_ns: 0,
            connected: BTreeMap::new(),
            open: BTreeMap::new(),
            left: VecDeque::new(),
            leaving: BTreeSet::new(),
            count: 0,
        })
    }

    /// What to wait for: each connection, and the listener under the number 0.
    pub(super) fn watched(
        &self,
        now_ns: u64,
    ) -> impl Iterator<Item = (u64, BorrowedFd<'_>, PollFlags)> {
        let accepts = now_ns >= self.accept_again_at_ns;
        let listener = accepts.then(|| (0, self.listener.as_fd(), PollFlags::IN));
        let clients = self.connected.iter().map(|(number, client)| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, self.has_window(*number));
            flags.set(PollFlags::OUT, !client.replies.is_empty());
            (*number, client.socket.as_fd(), flags)
        });
        listener.into_iter().chain(clients)
    }

    /// Whether this client may have another request under way.
    fn has_window(&self, client: u64) -> bool {
        let reads = self.connected.get(&client).is_some_and(|client| client.replies.is_empty());
        let (mut count, mut payload) = (0, 0);
        for open in self.of(client) {
            count += 1;
            payload += open.payload_len;
        }
        reads && count < REQUESTS_OPEN_MAX && payload < PAYLOAD_MAX
    }

    /// Whether so many have left that the component has not forgotten that no request is sent to
    /// it.
    pub(super) fn is_crowded(&self) -> bool {
        self.leaving.len() >= PLACES
    }

    /// Accepts the connections that wait.
    pub(super) fn accept(&mut self, now_ns: u64) {
        for _ in 0..ACCEPTS_A_PASS {
            match self.listener.try_accept() {
                Ok(Some(socket)) if socket.authorize_same_user().is_ok() => {
                    self.add(socket, now_ns);
                }
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "clients cannot be accepted");
                    self.accept_again_at_ns = now_ns + ACCEPT_AGAIN_NS;
                    return;
                }
            }
        }
    }

    fn add(&mut self, socket: Socket, now_ns: u64) {
        let seat = match self.seats(ConnectionKind::Place) + self.leaving.len() < PLACES {
            true => ConnectionKind::Place,
            false if self.end_idle(now_ns) => ConnectionKind::Place,
            false => {
                if self.seats(ConnectionKind::Operator) >= OPERATORS {
                    self.end_oldest_operator();
                }
                ConnectionKind::Operator
            }
        };
        self.count += 1;
        let client = ConnectedClient {
            socket,
            seat,
            replies: VecDeque::new(),
            unread_since_ns: 0,
            idle_since_ns: now_ns,
            is_known_below: false,
        };
        self.connected.insert(self.count, client);
    }

    fn seats(&self, seat: ConnectionKind) -> usize {
        self.connected.values().filter(|client| client.seat == seat).count()
    }

    /// Ends the client that has been idle for longest; whether one has been for long enough.
    fn end_idle(&mut self, now_ns: u64) -> bool {
        let clients = self.connected.iter();
        let idle = clients.filter(|(number, client)| {
            client.seat == ConnectionKind::Place
                && now_ns >= client.idle_since_ns + IDLE_NS_MIN
                && self.of(**number).next().is_none()
        });
        let oldest = idle.min_by_key(|(_, client)| client.idle_since_ns);
        let Some(oldest) = oldest.map(|(number, _)| *number) else { return false };
        tracing::info!(pid = self.pid(oldest), "an idle client gives up its place");
        self.end(oldest);
        true
    }

    fn end_oldest_operator(&mut self) {
        let mut clients = self.connected.iter();
        let oldest = clients.find(|(_, client)| client.seat == ConnectionKind::Operator);
        if let Some(oldest) = oldest.map(|(number, _)| *number) {
            tracing::info!(pid = self.pid(oldest), "too many clients: the oldest is disconnected");
            self.end(oldest);
        }
    }

    /// The process at the other end.
    fn pid(&self, client: u64) -> Option<i32> {
        Some(self.credentials(client)?.pid?.as_raw_nonzero().get())
    }

    fn credentials(&self, client: u64) -> Option<Credentials> {
        self.connected.get(&client)?.socket.peer_credentials().ok()
    }

    /// Names the process of `holder`, as the kernel attests it.
    fn name(&self, holder: &mut HolderStatus) {
        holder.process = self.pid(holder.client);
        holder.program = self.credentials(holder.client).and_then(Credentials::program);
    }

    /// Disconnects a client; what it has open ends.
    pub(super) fn end(&mut self, client: u64) {
        let Some(ended) = self.connected.remove(&client) else { return };
        self.open.retain(|ticket, _| ticket.client != client);
        self.left.push_back(client);
        if ended.is_known_below {
            self.leaving.insert(client);
        }
    }

    /// The next client that has left, and whether the component knows it.
    pub(super) fn poll_left(&mut self) -> Option<(u64, bool)> {
        let client = self.left.pop_front()?;
        Some((client, self.leaving.contains(&client)))
    }

    /// The component has forgotten a client that has left.
    pub(super) fn handle_forgotten(&mut self, client: u64) {
        self.leaving.remove(&client);
    }

    /// The component has ended: the next one knows no client.
    pub(super) fn handle_component_gone(&mut self) {
        self.leaving.clear();
        self.connected.values_mut().for_each(|client| client.is_known_below = false);
    }

    /// A component starts, and receives what is known of the connected clients.
    pub(super) fn handle_component_begins(&mut self) {
        self.connected.values_mut().for_each(|client| client.is_known_below = true);
    }

    /// Records that the component knows this client.
    fn note_known_below(&mut self, client: u64) {
        if let Some(client) = self.connected.get_mut(&client) {
            client.is_known_below = true;
        }
    }

    /// Whether this client is connected.
    pub(super) fn is_connected(&self, client: u64) -> bool {
        self.connected.contains_key(&client)
    }

    /// Reads the next request of a client, while its window is open, and opens it. A malformed
    /// request is answered here, and so is one that an operator's connection does not carry.
    pub(super) fn hear(
        &mut self,
        client: u64,
        flags: PollFlags,
        now_ns: u64,
    ) -> Option<(Ticket, Want, Vec<OwnedFd>)> {
        if !self.has_window(client) {
            // What it has not sent in time is lost with it.
            if flags.intersects(PollFlags::HUP | PollFlags::ERR) {
                self.end(client);
            }
            return None;
        }
        let known = self.connected.get(&client)?;
        let seat = known.seat;
        let (request, fds) = match known.socket.try_recv::<Request>() {
            Ok(Some(heard)) => heard,
            Ok(None) => return None,
            Err(error @ (PacketError::Decode(_) | PacketError::TruncatedData)) => {
                self.refuse(client, 0, Refused::Malformed(error.to_string()), now_ns);
                return None;
            }
            Err(_) => {
                self.end(client);
                return None;
            }
        };
        let Request { id, what } = request;
        let ticket = Ticket { client, id };
        if self.open.contains_key(&ticket) {
            let why = format!("request {id} is under way: number each request");
            self.refuse(client, id, Refused::Malformed(why), now_ns);
            return None;
        }
        if seat == ConnectionKind::Operator && !what.is_operators() {
            self.refuse(client, id, Refused::Busy, now_ns);
            return None;
        }
        self.open.insert(ticket, Open::heard(&what));
        Some((ticket, what, fds))
    }

    fn refuse(&mut self, client: u64, id: u64, reason: Refused, now_ns: u64) {
        self.reply(client, &Reply { id, what: Outcome::Refused(reason) }, None, now_ns);
    }

    /// Replies to a client, with a descriptor if there is one: at once where there is room.
    fn reply(&mut self, client: u64, reply: &Reply, fd: Option<OwnedFd>, now_ns: u64) {
        let is_idle = self.of(client).next().is_none();
        let Some(known) = self.connected.get_mut(&client) else { return };
        if is_idle {
            known.idle_since_ns = now_ns;
        }
        let packet = match Packet::encode(reply) {
            Ok(packet) => packet,
            Err(error) => {
                tracing::error!(%error, client, "a reply is no packet");
                return self.end(client);
            }
        };
        if known.replies.is_empty() {
            known.unread_since_ns = now_ns;
        }
        known.replies.push_back((packet, fd));
        self.flush(client, now_ns);
    }

    /// Sends the replies that there is room for.
    pub(super) fn flush(&mut self, client: u64, now_ns: u64) {
        let Some(known) = self.connected.get_mut(&client) else { return };
        while let Some((first, fd)) = known.replies.front() {
            let fd = fd.as_ref().map(AsFd::as_fd);
            match known.socket.try_send(first, fd.as_slice()) {
                Ok(true) => {
                    known.replies.pop_front();
                    known.unread_since_ns = now_ns;
                }
                Ok(false) => return,
                Err(_) => return self.end(client),
            }
        }
    }

    /// Disconnects the clients that do not read.
    pub(super) fn end_unread(&mut self, now_ns: u64) {
        let is_deaf = |client: &ConnectedClient| {
            !client.replies.is_empty() && now_ns >= client.unread_since_ns + UNREAD_NS_MAX
        };
        let deaf = self.connected.iter().filter(|(_, client)| is_deaf(client));
        for client in deaf.map(|(number, _)| *number).collect::<Vec<_>>() {
            let (pid, program) =
                (self.pid(client), self.credentials(client).and_then(Credentials::program));
            tracing::error!(pid, program, "client disconnected: it does not read its replies");
            self.end(client);
        }
    }
}
