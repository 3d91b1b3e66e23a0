//! Bootstrap between hosts: nodes meet over TCP, inside a channel that only holders of the
//! cluster's key can speak on.
//!
//! ```text
//!   key        the cluster's key, from its file
//!   noise      the channel's cryptography, and why this pattern
//!   frame      bytes on the connection, each whole before its deadline
//!   half_open  callers that have not authenticated: a bounded number
//!   greeting   the handshake
//!   channel    the session: messages and keep-alives
//!   directory  where the others are met: listed, or registered with etcd
//!   etcd       its calls
//!   calling    the threads: which node calls, which listens, which callers are accepted
//!   reported   refusals that were reported lately
//! ```
//!
//! The node of the higher rank calls, every fifth of a second until it is answered; the node of the
//! lower rank listens. A refusal is reported once a minute for each reason and peer.
//!
//! What this does not do: it carries no data, which goes over verbs; it does not hide that nodes
//! meet, nor how often; and members are not protected from each other.

mod calling;
mod channel;
mod directory;
mod error;
mod etcd;
mod frame;
mod greeting;
mod half_open;
mod key;
mod noise;
mod reported;

pub use error::{LinkError, NetworkError};
pub use etcd::DirectoryFault;
pub use frame::{Frame, Frames, Kind};
pub use key::{Key, KeyError};

use std::net::{SocketAddr, TcpListener};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};
use weft_core::ids::{Incarnation, Peer};

use super::{
    AnnouncedIncarnation, Bootstrap, BootstrapEvent, Datagram, DatagramSender, Fenced, HandOver,
    Hello, Offer,
};
use crate::process::start_thread;
use calling::CallingShared;

/// The time limits of the network bootstrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From the connection to the end of the handshake.
    pub handshake: Duration,
    /// For sending one message to a peer.
    pub word: Duration,
    /// After how long an idle side sends a keep-alive.
    pub pause: Duration,
    /// How long a peer may send nothing before it counts as gone.
    pub silence: Duration,
    /// The pause between a failed call and the next.
    pub call_again: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            word: Duration::from_secs(1),
            pause: Duration::from_secs(1),
            silence: Duration::from_secs(5),
            call_again: Duration::from_millis(200),
        }
    }
}

/// Where the nodes of a cluster are met, and with which key.
#[derive(Clone, Debug)]
pub struct Meeting {
    /// Where.
    pub addresses: Addresses,
    /// The cluster's key.
    pub key: Key,
    /// The time limits.
    pub timing: Timing,
}

/// How the addresses of nodes are known, each HOST:PORT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// All of them, in the order of ranks.
    Listed(Vec<String>),
    /// Each node registers its own with etcd, where the others find it.
    Registered {
        /// Where etcd is reached.
        endpoints: Vec<String>,
        /// Where this node is met: it listens there, and others call that address. Port 0 is
        /// replaced by the one that the system chooses.
        own: String,
    },
}

impl Addresses {
    /// Names the port of this node where it is registered; whether it is.
    fn name_port(&mut self, port: u16) -> bool {
        let Self::Registered { own, .. } = self else { return false };
        if let Some(host) = own.strip_suffix(":0") {
            *own = format!("{host}:{port}");
        }
        true
    }

    /// Of the node of this rank among so many.
    fn of(&self, rank: u16, nodes: u16) -> Result<String, NetworkError> {
        match self {
            Self::Registered { own, .. } => Ok(own.clone()),
            Self::Listed(all) => {
                let own = all.get(usize::from(rank)).filter(|_| all.len() == usize::from(nodes));
                own.cloned().ok_or(NetworkError::Addresses { nodes, found: all.len() })
            }
        }
    }
}

/// Bootstrap over TCP.
pub struct NetworkBootstrap {
    shared: Arc<CallingShared>,
    address: SocketAddr,
}

impl NetworkBootstrap {
    /// Starts to meet the other nodes of `hello`'s cluster of `nodes`. Events go to `sink`, from
    /// several threads.
    ///
    /// # Errors
    /// [`NetworkError`].
    pub fn start(
        hello: Hello,
        nodes: u16,
        mut meeting: Meeting,
        sink: impl Fn(BootstrapEvent) + Send + Sync + 'static,
    ) -> Result<Self, NetworkError> {
        let rank = hello.rank;
        let own = meeting.addresses.of(rank, nodes)?;
        let refused = |source| NetworkError::Listen { address: own.clone(), source };
        let listener = TcpListener::bind(&own).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        // Non-blocking, so that the thread can check between callers whether it must end.
        listener.set_nonblocking(true).map_err(refused)?;
        let is_registered = meeting.addresses.name_port(address.port());
        let mut run = [0; 8];
        getrandom(&mut run[..], GetRandomFlags::empty())
            .map_err(|errno| NetworkError::Random(errno.into()))?;
        let run = u64::from_le_bytes(run);
        let shared = Arc::new(CallingShared::new(hello, nodes, meeting, run, Box::new(sink)));
        // If a thread does not start, dropping this ends those that did.
        let begun = Self { shared, address };
        let listening = Arc::clone(&begun.shared);
        begin("weft-listen", move || listening.listen(&listener))?;
        if is_registered {
            let registering = Arc::clone(&begun.shared);
            begin("weft-register", move || registering.register())?;
        }
        for peer in 0..rank {
            let calling = Arc::clone(&begun.shared);
            begin("weft-call", move || calling.call(Peer(peer)))?;
        }
        Ok(begun)
    }

    /// The address at which this node is met.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

fn begin(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), NetworkError> {
    start_thread(name, run).map(drop).map_err(NetworkError::Thread)
}

impl Bootstrap for NetworkBootstrap {
    fn announce(&mut self, announced: AnnouncedIncarnation) {
        self.shared.audience().announce(announced);
    }

    fn retract(&mut self, incarnation: Incarnation) {
        self.shared.audience().retract(incarnation);
    }

    fn offer(&mut self, peer: Peer, offer: &Offer) {
        self.shared.audience().offer(peer, offer);
    }

    fn refuse(&mut self, peer: Peer, fenced: Fenced) {
        self.shared.audience().refuse(peer, fenced);
    }

    fn isolate(&mut self, peer: Peer, boot: Incarnation) {
        self.shared.audience().isolate(peer, boot);
    }

    fn note_other_memory(&mut self, peer: Peer) {
        self.shared.audience().note_other_memory(peer);
    }

    fn release(&mut self, peer: Peer, boot: Incarnation) {
        self.shared.audience().release(peer, boot);
    }

    fn contradict(&mut self, peer: Peer, boot: Incarnation) {
        self.shared.audience().contradict(peer, boot);
    }

    fn ask_for_release(&mut self, peer: Peer, boot: Incarnation) {
        self.shared.audience().ask_for_release(peer, boot);
    }

    fn want_tensor(&mut self, peer: Peer, which: HandOver) {
        self.shared.audience().want_tensor(peer, which);
    }

    fn hand_tensor(&mut self, peer: Peer, which: HandOver, memory: Option<BorrowedFd<'_>>) {
        self.shared.audience().hand_tensor(peer, which, memory);
    }

    fn datagrams(&self) -> Box<dyn DatagramSender> {
        Box::new(NetworkDatagrams(Arc::clone(&self.shared)))
    }
}

/// Sends each `Datagram` inside the channels.
struct NetworkDatagrams(Arc<CallingShared>);

impl DatagramSender for NetworkDatagrams {
    fn send(&self, peer: Peer, datagram: &Datagram) {
        self.0.audience().send(peer, datagram);
    }
}

impl Drop for NetworkBootstrap {
    fn drop(&mut self) {
        self.shared.audience().dismiss();
    }
}
