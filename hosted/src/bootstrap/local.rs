//! Bootstrap on one host: nodes meet at each other's Unix sockets.
//!
//! The node of the higher rank calls, every fifty milliseconds until it is answered; the node of
//! the lower rank listens. One thread listens and reads every caller's hello; one reads each peer
//! that was met. All of them end within a fraction of a second after the bootstrap is dropped.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use weft_core::fabric::Layout;
use weft_core::ids::{Incarnation, Peer};

use super::audience::Audience;
use super::hello::{Hello, Refusal};
use super::session::{self, SessionError};
use super::{
    AnnouncedIncarnation, Bootstrap, BootstrapEvent, Datagram, DatagramSender, Fenced, HandOver,
    News, Offer,
};
use crate::packet::{Caller, Callers, Listener, PacketError, Socket};
use crate::process::{ProcessError, start_thread};
use crate::runtime_dir::{ClusterDir, RuntimeDirError};
use crate::shm::{Grant, NodeMemory};

/// How long a thread waits before it checks whether it must end.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The most callers at a time that have not sent their hello; one more ends the oldest.
const HALF_OPEN_MAX: usize = 64;
/// The pause between a failed call and the next.
const CALL_EVERY: Duration = Duration::from_millis(50);

/// Bootstrap over the Unix sockets of a cluster's directory.
pub struct LocalBootstrap {
    shared: Arc<LocalShared>,
}

/// Why the node cannot be met.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The path of a socket is not usable.
    #[error("{0}")]
    Path(#[source] RuntimeDirError),
    /// The socket cannot be made.
    #[error("{0}")]
    Packet(#[source] PacketError),
    /// A thread cannot be started.
    #[error("{0}")]
    Thread(#[source] ProcessError),
}

struct LocalShared {
    hello: Hello,
    layout: Layout,
    /// None when nodes reach each other's memory by other means than descriptors.
    memory: Option<Arc<NodeMemory>>,
    audience: Audience<Socket>,
}

impl LocalBootstrap {
    /// Starts to meet the other nodes of `hello`'s cluster in `dir`, and to grant them what they
    /// may reach of `memory`, if there is one. Events go to `sink`, from several threads.
    ///
    /// # Errors
    /// [`LocalError`].
    pub fn start(
        dir: &ClusterDir,
        hello: Hello,
        layout: Layout,
        memory: Option<Arc<NodeMemory>>,
        sink: impl Fn(BootstrapEvent) + Send + Sync + 'static,
    ) -> Result<Self, LocalError> {
        let rank = hello.rank;
        let own = dir.peer_socket(usize::from(rank)).map_err(LocalError::Path)?;
        let others = (0..rank).map(|peer| Ok((Peer(peer), dir.peer_socket(usize::from(peer))?)));
        let others = others.collect::<Result<Vec<_>, _>>().map_err(LocalError::Path)?;
        // A node that returns finds the socket of its former process, on which no process listens.
        let _ = std::fs::remove_file(&own);
        let listener = Listener::bind(&own).map_err(LocalError::Packet)?;
        let audience = Audience::new(Box::new(sink));
        let shared = Arc::new(LocalShared { hello, layout, memory, audience });
        let listening = Arc::clone(&shared);
        start_thread("weft-bootstrap", move || listening.listen(listener))
            .map_err(LocalError::Thread)?;
        for (peer, path) in others {
            let calling = Arc::clone(&shared);
            start_thread("weft-calling", move || calling.call(peer, &path))
                .map_err(LocalError::Thread)?;
        }
        Ok(Self { shared })
    }
}

impl Bootstrap for LocalBootstrap {
    fn announce(&mut self, announced: AnnouncedIncarnation) {
        self.shared.audience.announce(announced);
    }

    fn retract(&mut self, incarnation: Incarnation) {
        self.shared.audience.retract(incarnation);
    }

    fn offer(&mut self, peer: Peer, offer: &Offer) {
        self.shared.audience.offer(peer, offer);
    }

    fn refuse(&mut self, peer: Peer, fenced: Fenced) {
        self.shared.audience.refuse(peer, fenced);
    }

    fn isolate(&mut self, peer: Peer, boot: Incarnation) {
        self.shared.audience.isolate(peer, boot);
    }

    fn note_other_memory(&mut self, peer: Peer) {
        self.shared.audience.note_other_memory(peer);
    }

    fn release(&mut self, peer: Peer, boot: Incarnation) {
        self.shared.audience.release(peer, boot);
    }

    fn contradict(&mut self, peer: Peer, boot: Incarnation) {
        self.shared.audience.contradict(peer, boot);
    }

    fn ask_for_release(&mut self, peer: Peer, boot: Incarnation) {
        self.shared.audience.ask_for_release(peer, boot);
    }

    fn want_tensor(&mut self, peer: Peer, which: HandOver) {
        self.shared.audience.want_tensor(peer, which);
    }

    fn hand_tensor(&mut self, peer: Peer, which: HandOver, memory: Option<BorrowedFd<'_>>) {
        self.shared.audience.hand_tensor(peer, which, memory);
    }

    fn datagrams(&self) -> Box<dyn DatagramSender> {
        Box::new(LocalDatagrams(Arc::clone(&self.shared)))
    }
}

/// Sends each `Datagram` over the sockets of this host.
struct LocalDatagrams(Arc<LocalShared>);

impl DatagramSender for LocalDatagrams {
    fn send(&self, peer: Peer, datagram: &Datagram) {
        self.0.audience.send(peer, datagram);
    }
}

impl Drop for LocalBootstrap {
    fn drop(&mut self) {
        self.shared.audience.dismiss();
    }
}

impl LocalShared {
    fn nodes(&self) -> u16 {
        self.layout.peers()
    }

    fn listen(self: &Arc<Self>, listener: Listener) {
        let mut callers = Callers::new(listener, HALF_OPEN_MAX, session::HANDSHAKE_TIMEOUT);
        let met = Arc::new(());
        while !self.audience.is_over() {
            match callers.next::<Hello>(LOOK_EVERY) {
                Ok(Some(caller)) => self.receive(caller, &met),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "peers cannot be accepted");
                    thread::park_timeout(LOOK_EVERY);
                }
            }
        }
    }

    /// Answers a caller; one that is met is read by a thread of its own.
    fn receive(self: &Arc<Self>, caller: Caller<Hello>, met: &Arc<()>) {
        // One thread a peer, and one more for a former thread that has not ended yet.
        if Arc::strong_count(met) > 2 * usize::from(self.nodes()) {
            return tracing::debug!("too many peers at once: the caller calls again");
        }
        let grant = |peer: Peer| {
            // Nodes of lower ranks are called and do not call; one that is met does not call again.
            if peer.0 < self.hello.rank || self.audience.has_met(peer) {
                return Err(Refusal::Rank { rank: peer.0 });
            }
            Ok(self.grant(peer))
        };
        let peer = match session::answer(&caller, &self.hello, self.nodes(), grant) {
            Ok(peer) => peer,
            Err(error) => return self.note_not_met(error),
        };
        let (shared, met) = (Arc::clone(self), Arc::clone(met));
        let reading = start_thread("weft-caller", move || {
            shared.attend(&caller.socket, peer, Grant(caller.fds));
            drop(met);
        });
        // The caller sees the end of the connection, and calls again.
        if let Err(error) = reading {
            tracing::warn!(%error, "a peer is turned away");
        }
    }

    fn call(&self, peer: Peer, path: &Path) {
        while !self.audience.is_over() {
            if let Ok(socket) = Socket::connect(path, LOOK_EVERY) {
                let grant = self.grant(peer);
                let met = session::greet(&socket, &self.hello, self.nodes(), &grant);
                let met = met.and_then(|met| match met {
                    (Peer(rank), _) if rank != peer.0 => Err(Refusal::Rank { rank }.into()),
                    met => Ok(met),
                });
                match met {
                    Ok((peer, grant)) => self.attend(&socket, peer, grant),
                    Err(error) => self.note_not_met(error),
                }
            }
            thread::park_timeout(CALL_EVERY);
        }
    }

    /// What `peer` may reach; nothing when descriptors have run out, which the peer refuses.
    fn grant(&self, peer: Peer) -> Grant {
        let Some(memory) = &self.memory else { return Grant(Vec::new()) };
        memory.grant(&self.layout, peer).unwrap_or_else(|error| {
            tracing::warn!(%error, peer = peer.0, "memory cannot be granted");
            Grant(Vec::new())
        })
    }

    fn note_not_met(&self, error: SessionError) {
        match error {
            SessionError::Refused(reason) => {
                let who = "a process of this host".to_owned();
                self.audience.publish(BootstrapEvent::Refused { who, reason });
            }
            SessionError::Packet(error) => tracing::debug!(%error, "a handshake ended early"),
        }
    }

    /// Reads a peer that was met until its session ends.
    fn attend(&self, socket: &Socket, peer: Peer, grant: Grant) {
        let Ok(speaking) = socket.try_clone() else { return };
        let hear = || session::hear(socket, LOOK_EVERY);
        self.audience.attend(peer, speaking, News::Met(grant), hear);
    }
}
