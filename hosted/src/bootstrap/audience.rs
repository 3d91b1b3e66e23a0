//! The sessions with the peers that were met, and what must be sent on them, over any transport.
//!
//! The own incarnation and the sessions are behind one lock, so that a peer that is met while an
//! incarnation is announced does not miss it. The lock is never held during a wait for a peer: an
//! alarm to one peer goes out whatever another peer does.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_core::ids::{Incarnation, Peer};

use super::session_message::SessionMessage;
use super::{AnnouncedIncarnation, BootstrapEvent, Datagram, Fenced, HandOver, News, Offer};

/// Receives events, from several threads.
pub(super) type Sink = Box<dyn Fn(BootstrapEvent) + Send + Sync>;

/// The connection to one peer that was met.
pub(super) trait PeerLine {
    /// Why a message was not sent.
    type Error: Display;

    /// Sends a message, with the process or the memory that it is about where descriptors can
    /// travel.
    fn tell(&self, word: &SessionMessage, fd: Option<BorrowedFd<'_>>) -> Result<(), Self::Error>;

    /// Sends a message if it need not wait; fails otherwise.
    fn tell_at_once(&self, word: &SessionMessage) -> Result<(), Self::Error>;

    /// Ends the session, at both ends.
    fn shut_down(&self);
}

/// The sessions with all peers, and the own incarnation.
pub(super) struct Audience<L> {
    sink: Sink,
    over: AtomicBool,
    sessions: Mutex<Sessions<L>>,
}

struct Sessions<L> {
    announced: Option<Arc<AnnouncedIncarnation>>,
    peers: BTreeMap<Peer, Arc<Session<L>>>,
    count: u64,
}

struct Session<L> {
    number: u64,
    line: L,
}

impl<L: PeerLine> Session<L> {
    /// Sends a message. A failure ends the session: the next one begins with what the peer has
    /// missed.
    fn tell(&self, peer: Peer, word: &SessionMessage, fd: Option<BorrowedFd<'_>>) {
        if let Err(error) = self.line.tell(word, fd) {
            tracing::debug!(%error, peer = peer.0, "a message to a peer cannot be sent");
            self.line.shut_down();
        }
    }
}

impl<L: PeerLine> Audience<L> {
    pub(super) fn new(sink: Sink) -> Self {
        let sessions = Sessions { announced: None, peers: BTreeMap::new(), count: 0 };
        Self { sink, over: AtomicBool::new(false), sessions: Mutex::new(sessions) }
    }

    /// Ends everything: each thread leaves at its next look.
    pub(super) fn dismiss(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(super) fn publish(&self, event: BootstrapEvent) {
        (self.sink)(event);
    }

    pub(super) fn has_met(&self, peer: Peer) -> bool {
        self.sessions().peers.contains_key(&peer)
    }

    pub(super) fn announce(&self, announced: AnnouncedIncarnation) {
        let (word, announced) = (SessionMessage::alive(&announced), Arc::new(announced));
        let peers = {
            let mut sessions = self.sessions();
            sessions.announced = Some(Arc::clone(&announced));
            sessions.peers.clone()
        };
        for (peer, session) in &peers {
            session.tell(*peer, &word, announced.process.as_ref().map(AsFd::as_fd));
        }
    }

    pub(super) fn retract(&self, incarnation: Incarnation) {
        let peers = {
            let mut sessions = self.sessions();
            sessions.announced = None;
            sessions.peers.clone()
        };
        for (peer, session) in &peers {
            session.tell(*peer, &SessionMessage::dead(incarnation), None);
        }
    }

    pub(super) fn offer(&self, peer: Peer, offer: &Offer) {
        self.tell_one(peer, &SessionMessage::offer(offer));
    }

    pub(super) fn refuse(&self, peer: Peer, fenced: Fenced) {
        self.tell_one(peer, &SessionMessage::fenced(fenced));
    }

    pub(super) fn isolate(&self, peer: Peer, boot: Incarnation) {
        self.tell_one(peer, &SessionMessage::Isolated { boot: boot.0 });
    }

    pub(super) fn note_other_memory(&self, peer: Peer) {
        self.tell_one(peer, &SessionMessage::OtherMemory);
    }

    pub(super) fn release(&self, peer: Peer, boot: Incarnation) {
        self.tell_one(peer, &SessionMessage::Released { boot: boot.0 });
    }

    pub(super) fn contradict(&self, peer: Peer, boot: Incarnation) {
        self.tell_one(peer, &SessionMessage::Free { boot: boot.0 });
    }

    pub(super) fn ask_for_release(&self, peer: Peer, boot: Incarnation) {
        self.tell_one(peer, &SessionMessage::AskForRelease { boot: boot.0 });
    }

    pub(super) fn want_tensor(&self, peer: Peer, which: HandOver) {
        self.tell_one(peer, &SessionMessage::TensorWanted(which));
    }

    /// A descriptor that cannot travel is refused, and costs no session: the kernel bounds how many
    /// are under way.
    pub(super) fn hand_tensor(&self, peer: Peer, which: HandOver, memory: Option<BorrowedFd<'_>>) {
        let Some(session) = self.session(peer) else { return };
        if let Some(memory) = memory {
            let word = SessionMessage::TensorHanded { which, is_there: true };
            match session.line.tell(&word, Some(memory)) {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, peer = peer.0, "a tensor is not handed over"),
            }
        }
        session.tell(peer, &SessionMessage::TensorHanded { which, is_there: false }, None);
    }

    /// Ends the session with `peer`, if there is one; its thread leaves soon after.
    pub(super) fn end(&self, peer: Peer) {
        if let Some(session) = self.session(peer) {
            session.line.shut_down();
        }
    }

    /// Sends a `Datagram`, or drops it; a dropped one is no evidence about the peer.
    pub(super) fn send(&self, peer: Peer, datagram: &Datagram) {
        let Some(session) = self.session(peer) else { return };
        if let Err(error) = session.line.tell_at_once(&SessionMessage::Datagram(datagram.clone())) {
            tracing::debug!(%error, peer = peer.0, "a frame is dropped");
        }
    }

    fn tell_one(&self, peer: Peer, word: &SessionMessage) {
        // If the session has ended meanwhile, the next one begins with the incarnation that runs
        // then.
        if let Some(session) = self.session(peer) {
            session.tell(peer, word, None);
        }
    }

    fn session(&self, peer: Peer) -> Option<Arc<Session<L>>> {
        self.sessions().peers.get(&peer).cloned()
    }

    /// Passes on the events of a peer that was met, `met` first, until `hear` fails or the
    /// bootstrap ends. `hear` waits for a short while only; no event is `Ok(None)`.
    pub(super) fn attend<E: Display>(
        &self,
        peer: Peer,
        line: L,
        met: News,
        mut hear: impl FnMut() -> Result<Option<News>, E>,
    ) {
        // Of two connections under one rank at once, the second is dropped.
        let Some(session) = self.join(peer, line) else { return };
        let tell = |news| (self.sink)(BootstrapEvent::Heard { peer, session, news });
        tell(met);
        while !self.is_over() {
            match hear() {
                Ok(Some(news)) => tell(news),
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(%error, peer = peer.0, "a peer is not heard any more");
                    break;
                }
            }
        }
        self.leave(peer, session);
        tell(News::Parted);
    }

    /// Announces the own incarnation to `peer`, now and whenever it changes; returns the session's
    /// number.
    fn join(&self, peer: Peer, line: L) -> Option<u64> {
        let mut sessions = self.sessions();
        if sessions.peers.contains_key(&peer) {
            return None;
        }
        sessions.count += 1;
        let number = sessions.count;
        let session = Arc::new(Session { number, line });
        // A connection that has just been made has room for this.
        if let Some(announced) = &sessions.announced {
            session.tell(
                peer,
                &SessionMessage::alive(announced),
                announced.process.as_ref().map(AsFd::as_fd),
            );
        }
        sessions.peers.insert(peer, session);
        Some(number)
    }

    fn leave(&self, peer: Peer, number: u64) {
        let mut sessions = self.sessions();
        if sessions.peers.get(&peer).is_some_and(|session| session.number == number) {
            sessions.peers.remove(&peer);
        }
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions<L>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
