//! Bootstrap on one host: nodes meet at each other's Unix sockets.
//!
//! The node of the higher rank calls, again every fifty milliseconds until it is answered; the
//! node of the lower rank listens. One thread listens, one reads each peer. All of them end
//! within a fraction of a second after the bootstrap is dropped.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use weft_core::fabric::Layout;
use weft_core::ids::{Incarnation, Peer};

use super::audience::Audience;
use super::hello::{Hello, Refusal};
use super::session::{self, SessionError};
use super::{Bootstrap, Courier, Letter, Life, News, Offer, ShutOut, Tidings};
use crate::packet::{Listener, PacketError, Socket};
use crate::process::{ProcessError, start_thread};
use crate::runtime_dir::{ClusterDir, RuntimeDirError};
use crate::shm::{Grant, NodeMemory};

/// How long a thread waits before it looks whether it is still wanted.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long after a failed call the next one is made.
const CALL_EVERY: Duration = Duration::from_millis(50);

/// Bootstrap over the Unix sockets of a cluster's directory.
pub struct LocalBootstrap {
    shared: Arc<Shared>,
}

/// Why the node cannot be met.
#[derive(Debug)]
pub enum LocalError {
    /// A path cannot be a socket's.
    Path(RuntimeDirError),
    /// The socket cannot be made.
    Packet(PacketError),
    /// A thread cannot be started.
    Thread(ProcessError),
}

impl std::fmt::Display for LocalError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(error) => error.fmt(f),
            Self::Packet(error) => error.fmt(f),
            Self::Thread(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LocalError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Path(error) => Some(error),
            Self::Packet(error) => Some(error),
            Self::Thread(error) => Some(error),
        }
    }
}

struct Shared {
    hello: Hello,
    layout: Layout,
    /// None when nodes reach each other's memory by other means than descriptors.
    memory: Option<Arc<NodeMemory>>,
    audience: Audience<Socket>,
}

impl LocalBootstrap {
    /// Begins to meet the other nodes of `hello`'s cluster in `dir`, and to hand them what they
    /// may reach of `memory`, if there is one; what is learned goes to `sink`, from several
    /// threads.
    ///
    /// # Errors
    /// [`LocalError`].
    pub fn start(
        dir: &ClusterDir,
        hello: Hello,
        layout: Layout,
        memory: Option<Arc<NodeMemory>>,
        sink: impl Fn(Tidings) + Send + Sync + 'static,
    ) -> Result<Self, LocalError> {
        let rank = hello.rank;
        let own = dir.peer_socket(usize::from(rank)).map_err(LocalError::Path)?;
        let others = (0..rank).map(|peer| Ok((Peer(peer), dir.peer_socket(usize::from(peer))?)));
        let others = others.collect::<Result<Vec<_>, _>>().map_err(LocalError::Path)?;
        // A node that returns finds the socket of its former self; nobody listens there.
        let _ = std::fs::remove_file(&own);
        let listener = Listener::bind(&own).map_err(LocalError::Packet)?;
        let audience = Audience::new(Box::new(sink));
        let shared = Arc::new(Shared { hello, layout, memory, audience });
        let listening = Arc::clone(&shared);
        start_thread("weft-bootstrap", move || listening.listen(&listener))
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
    fn announce(&mut self, life: Life) {
        self.shared.audience.announce(life);
    }

    fn retract(&mut self, incarnation: Incarnation) {
        self.shared.audience.retract(incarnation);
    }

    fn offer(&mut self, peer: Peer, offer: &Offer) {
        self.shared.audience.offer(peer, offer);
    }

    fn shut_out(&mut self, peer: Peer, word: ShutOut) {
        self.shared.audience.shut_out(peer, word);
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

    fn courier(&self) -> Box<dyn Courier> {
        Box::new(LocalCourier(Arc::clone(&self.shared)))
    }
}

/// Hands letters over at the sockets of this host.
struct LocalCourier(Arc<Shared>);

impl Courier for LocalCourier {
    fn send(&self, peer: Peer, letter: &Letter) {
        self.0.audience.send(peer, letter);
    }
}

impl Drop for LocalBootstrap {
    fn drop(&mut self) {
        self.shared.audience.dismiss();
    }
}

impl Shared {
    fn nodes(&self) -> u16 {
        self.layout.peers()
    }

    fn listen(self: &Arc<Self>, listener: &Listener) {
        while !self.audience.is_over() {
            match listener.accept(LOOK_EVERY) {
                Ok(socket) => {
                    let shared = Arc::clone(self);
                    let heard = start_thread("weft-caller", move || shared.receive(&socket));
                    // It hears that nobody is there, and calls again.
                    if let Err(error) = heard {
                        tracing::warn!(%error, "a peer is turned away");
                        thread::park_timeout(LOOK_EVERY);
                    }
                }
                Err(PacketError::TimedOut { .. }) => {}
                Err(error) => {
                    tracing::warn!(%error, "peers cannot be accepted");
                    thread::park_timeout(LOOK_EVERY);
                }
            }
        }
    }

    fn receive(&self, socket: &Socket) {
        let grant = |peer: Peer| {
            // Nodes of lower ranks are called and do not call; one that is met does not call again.
            if peer.0 < self.hello.rank || self.audience.has_met(peer) {
                return Err(Refusal::Rank { rank: peer.0 });
            }
            Ok(self.grant(peer))
        };
        let met = session::answer(socket, &self.hello, self.nodes(), grant);
        self.attend(socket, met);
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
                self.attend(&socket, met);
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

    /// Reads a peer that was met until it cannot be heard any more.
    fn attend(&self, socket: &Socket, met: Result<(Peer, Grant), SessionError>) {
        let (peer, grant) = match met {
            Ok(met) => met,
            Err(SessionError::Refused(reason)) => {
                let who = "a process of this host".to_owned();
                return self.audience.publish(Tidings::Refused { who, reason });
            }
            Err(SessionError::Packet(error)) => {
                return tracing::debug!(%error, "a handshake ended early");
            }
        };
        let Ok(speaking) = socket.try_clone() else { return };
        let hear = || session::hear(socket, LOOK_EVERY);
        self.audience.attend(peer, speaking, News::Met(grant), hear);
    }
}
