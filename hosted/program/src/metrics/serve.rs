//! Serving a node's metrics: one scraper at a time, each within a deadline.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use super::request::{HEAD_LEN_MAX, reply, wanted};
use super::table;
use weft::client::Client;
use weft::clock::Deadline;
use weft::cluster::Cluster;
use weft::explain::{Code, Explain};
use weft::node::NodeError;
use weft::process::{ProcessError, start_thread};
use weft::readiness::{Readiness, await_any, await_events};
use weft::runtime_dir::{ClusterDir, RuntimeDirError};

/// How long a scraper may take to send its request and to read the reply.
const SCRAPER: Duration = Duration::from_secs(2);
/// How long the node may take to answer.
const ANSWER: Duration = Duration::from_secs(2);
/// A text that is not older is served again, so that no scraper keeps the node busy.
const FRESH: Duration = Duration::from_millis(250);
/// The longest reply of a node.
const REPLY_LEN_MAX: usize = 16 << 20;
/// How long the thread sleeps at most while no scraper comes.
const IDLE: Duration = Duration::from_secs(60);

/// Why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MetricsError {
    /// The port of a node cannot be listened at.
    #[error("metrics of node {rank} cannot be served at {address}: {source}")]
    Port {
        /// The node.
        rank: u16,
        /// Its address.
        address: SocketAddr,
        /// How many nodes need a port.
        nodes: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The socket cannot be made.
    #[error("metrics cannot be served at {}: {source}", path.display())]
    Socket {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A node's metrics cannot be read.
    #[error("no metrics come from {}: {source}", path.display())]
    Fetch {
        /// The path of the node's socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path of the socket is too long.
    #[error(transparent)]
    Directory(#[from] RuntimeDirError),
    /// Another process is this node.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// No thread could be started.
    #[error(transparent)]
    Thread(#[from] ProcessError),
}

impl Explain for MetricsError {
    fn code(&self) -> Code {
        match self {
            Self::Port { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                Code::Permission
            }
            Self::Port { .. } => Code::Busy,
            Self::Socket { .. } => Code::RuntimeDir,
            Self::Fetch { .. } => Code::NodeUnreachable,
            Self::Directory(source) => source.code(),
            Self::Node(source) => source.code(),
            Self::Thread(source) => source.code(),
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Port { address, nodes, .. } => format!(
                "see with `ss -ltnp sport = :{}` which process has it, or set metrics.port so that \
                 {nodes} ports from it on are free; 0 serves at the socket alone",
                address.port(),
            ),
            Self::Socket { .. } => "see that the directory can be written".to_owned(),
            Self::Fetch { .. } => {
                "see with `weft status` whether the node runs, and start it if it does not"
                    .to_owned()
            }
            Self::Directory(source) => source.cure(),
            Self::Node(source) => source.cure(),
            Self::Thread(source) => source.cure(),
        }
    }
}

/// Whether the ports of all nodes of `cluster` are free on this host.
///
/// # Errors
/// [`MetricsError::Port`], for the first that is not.
pub(crate) fn check_ports(cluster: &Cluster) -> Result<(), MetricsError> {
    let ranks = 0..u16::try_from(cluster.nodes).unwrap_or(u16::MAX);
    ranks.into_iter().try_for_each(|rank| listen(cluster, rank).map(drop))
}

/// Listens at the port of node `rank`, if it has one.
fn listen(cluster: &Cluster, rank: u16) -> Result<Option<TcpListener>, MetricsError> {
    let listener = cluster.metrics.address(rank).map(|address| {
        let bound = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        bound.map_err(|source| MetricsError::Port { rank, address, nodes: cluster.nodes, source })
    });
    listener.transpose()
}

/// Where a node serves its metrics.
pub(crate) struct Sockets {
    local: UnixListener,
    port: Option<TcpListener>,
}

impl Sockets {
    /// Makes both, for node `rank` of `cluster` in `dir`.
    ///
    /// # Errors
    /// [`MetricsError`].
    pub(crate) fn open(
        dir: &ClusterDir,
        cluster: &Cluster,
        rank: u16,
    ) -> Result<Self, MetricsError> {
        if usize::from(rank) >= cluster.nodes {
            return Err(NodeError::OutOfRange { rank, nodes: cluster.nodes }.into());
        }
        Ok(Self { local: local(dir, rank)?, port: listen(cluster, rank)? })
    }

    /// As [`Self::open`], but without a port that is taken.
    ///
    /// # Errors
    /// [`MetricsError`].
    pub(crate) fn reopen(
        dir: &ClusterDir,
        cluster: &Cluster,
        rank: u16,
    ) -> Result<Self, MetricsError> {
        let port = listen(cluster, rank).unwrap_or_else(|error| {
            tracing::error!(%error, "the metrics are served at the socket alone");
            None
        });
        Ok(Self { local: local(dir, rank)?, port })
    }

    /// Serves the node's metrics until the process ends.
    ///
    /// # Errors
    /// [`MetricsError::Thread`].
    pub(crate) fn serve(
        self,
        dir: ClusterDir,
        cluster: Cluster,
        rank: u16,
    ) -> Result<(), MetricsError> {
        let mut source = MetricsSource { dir, cluster, rank, text: String::new(), fresh: None };
        start_thread("weft-metrics", move || {
            loop {
                self.serve_one(&mut source);
            }
        })?;
        Ok(())
    }

    /// Waits for a scraper and serves it.
    fn serve_one(&self, source: &mut MetricsSource) {
        let listeners = [Some(self.local.as_fd()), self.port.as_ref().map(AsFd::as_fd)];
        let fds = listeners.into_iter().flatten();
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let waited = await_any(&mut fds, IDLE).map_err(io::Error::from);
        let local = || self.local.accept().map(|(it, _)| OwnedFd::from(it));
        let port = |it: &TcpListener| it.accept().map(|(it, _)| OwnedFd::from(it));
        let accepted = [Some(waited.and_then(|()| local())), self.port.as_ref().map(port)];
        for scraper in accepted.into_iter().flatten() {
            match scraper {
                Ok(fd) => {
                    if let Err(error) = Scraper::new(fd).and_then(|mut it| it.serve(source)) {
                        tracing::debug!(%error, "a scraper was not served");
                    }
                }
                // None is there, or the one that was is gone.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => {
                    tracing::error!(%error, "no scraper can be accepted");
                    // The loop must not spin while the process has no descriptor left.
                    std::thread::park_timeout(FRESH);
                }
            }
        }
    }
}

/// The socket of node `rank` in `dir`. What a process has left there that is dead is removed.
fn local(dir: &ClusterDir, rank: u16) -> Result<UnixListener, MetricsError> {
    let path = dir.metrics_socket(usize::from(rank))?;
    let bind = || UnixListener::bind(&path);
    let bound = bind().or_else(|error| match UnixStream::connect(&path) {
        Err(dead) if dead.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(&path)?;
            bind()
        }
        Ok(_) | Err(_) => Err(error),
    });
    let listening = bound.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    listening.map_err(|source| match source.kind() {
        ErrorKind::AddrInUse => NodeError::RankTaken { rank }.into(),
        _ => MetricsError::Socket { path, source },
    })
}

/// The node whose metrics are served, and the last of them.
struct MetricsSource {
    dir: ClusterDir,
    cluster: Cluster,
    rank: u16,
    text: String,
    /// Until when they are fresh.
    fresh: Option<Deadline>,
}

impl MetricsSource {
    fn text(&mut self) -> &str {
        if self.fresh.is_none_or(|until| until.has_passed()) {
            let Self { dir, cluster, rank, .. } = &*self;
            let client = Client::connect(dir, cluster, *rank, Duration::ZERO);
            let status = client.and_then(|mut client| client.status_within(ANSWER));
            if let Err(error) = &status {
                tracing::debug!(%error, "the node does not answer a scraper");
            }
            self.text = table::render(&cluster.name, *rank, status.ok().as_ref());
            self.fresh = Some(Deadline::after(FRESH));
        }
        &self.text
    }
}

/// A connection of a scraper, or to a node's metrics.
struct Scraper {
    socket: fs::File,
    deadline: Deadline,
}

impl Scraper {
    fn new(fd: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self { socket: fd.into(), deadline: Deadline::after(SCRAPER) })
    }

    fn serve(&mut self, source: &mut MetricsSource) -> io::Result<()> {
        let mut head = Vec::new();
        let wanted = loop {
            if let Some(wanted) = wanted(&head) {
                break wanted;
            }
            self.read(&mut head, HEAD_LEN_MAX)?;
        };
        // The node's own time to answer is not the scraper's.
        let text = source.text();
        self.deadline = Deadline::after(SCRAPER);
        self.write(reply(wanted, text).as_bytes())
    }

    /// Reads what has arrived, up to `len_max` bytes in all; none at the end is an error.
    fn read(&mut self, bytes: &mut Vec<u8>, len_max: usize) -> io::Result<usize> {
        let mut part = [0; 4096];
        let room = part.len().min(len_max.saturating_sub(bytes.len()));
        loop {
            match self.socket.read(&mut part[..room]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(len) => {
                    bytes.extend_from_slice(&part[..len]);
                    return Ok(len);
                }
                Err(error) => self.wait(PollFlags::IN, error)?,
            }
        }
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.socket.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(len) => bytes = &bytes[len..],
                Err(error) => self.wait(PollFlags::OUT, error)?,
            }
        }
        Ok(())
    }

    /// Waits after a call that would have blocked.
    fn wait(&self, events: PollFlags, error: io::Error) -> io::Result<()> {
        if error.kind() == ErrorKind::Interrupted {
            return Ok(());
        }
        if error.kind() != ErrorKind::WouldBlock {
            return Err(error);
        }
        match await_events(self.socket.as_fd(), events, self.deadline)? {
            Readiness::Ready => Ok(()),
            Readiness::TimedOut => Err(ErrorKind::TimedOut.into()),
        }
    }
}

/// The metrics that the node with the socket at `path` serves.
///
/// # Errors
/// [`MetricsError::Fetch`].
pub(crate) fn fetch(path: &Path) -> Result<String, MetricsError> {
    let read = || {
        let mut node = Scraper::new(UnixStream::connect(path)?.into())?;
        node.write(b"GET /metrics HTTP/1.1\r\nHost: weft\r\n\r\n")?;
        node.deadline = Deadline::after(ANSWER + SCRAPER);
        let mut reply = Vec::new();
        loop {
            match node.read(&mut reply, REPLY_LEN_MAX) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
        }
        let reply = String::from_utf8(reply).map_err(|_| ErrorKind::InvalidData)?;
        match reply.split_once("\r\n\r\n") {
            Some((head, text)) if head.starts_with("HTTP/1.1 200") => Ok(text.to_owned()),
            Some(_) | None => Err(ErrorKind::InvalidData.into()),
        }
    };
    read().map_err(|source| MetricsError::Fetch { path: path.to_owned(), source })
}
