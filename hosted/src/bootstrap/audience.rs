//! The peers that were met, and what they are to be told, whatever carries it.
//!
//! The own incarnation and the sessions lie behind one lock, so that a peer that is met while an
//! incarnation is announced does not miss it. The lock is never held while a peer is waited for: an
//! alarm to one peer goes out whatever another one does.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_core::ids::{Incarnation, Peer};

use super::word::Word;
use super::{Letter, Life, News, Offer, ShutOut, Tidings};
use crate::process::Pidfd;

/// Takes tidings to whoever acts on them, from several threads.
pub(super) type Sink = Box<dyn Fn(Tidings) + Send + Sync>;

/// The way to one peer that was met.
pub(super) trait Line {
    /// Why a word does not go out.
    type Error: Display;

    /// Says a word, with the process that it is about where descriptors can travel.
    fn tell(&self, word: &Word, process: Option<&Pidfd>) -> Result<(), Self::Error>;

    /// Says a word if that can be done at once, and else not.
    fn tell_at_once(&self, word: &Word) -> Result<(), Self::Error>;

    /// Ends the session, at both ends.
    fn shut_down(&self);
}

/// The sessions with all peers, and the own life.
pub(super) struct Audience<L> {
    sink: Sink,
    over: AtomicBool,
    sessions: Mutex<Sessions<L>>,
}

struct Sessions<L> {
    life: Option<Arc<Life>>,
    peers: BTreeMap<Peer, Arc<Session<L>>>,
    count: u64,
}

struct Session<L> {
    number: u64,
    line: L,
}

impl<L: Line> Session<L> {
    /// A session with a peer that cannot be told is ended: the next one begins with what the
    /// peer has missed.
    fn tell(&self, peer: Peer, word: &Word, process: Option<&Pidfd>) {
        if let Err(error) = self.line.tell(word, process) {
            tracing::debug!(%error, peer = peer.0, "a peer cannot be told");
            self.line.shut_down();
        }
    }
}

impl<L: Line> Audience<L> {
    pub(super) fn new(sink: Sink) -> Self {
        let sessions = Sessions { life: None, peers: BTreeMap::new(), count: 0 };
        Self { sink, over: AtomicBool::new(false), sessions: Mutex::new(sessions) }
    }

    /// Nobody wants to know any more: every thread ends at its next look.
    pub(super) fn dismiss(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(super) fn publish(&self, tidings: Tidings) {
        (self.sink)(tidings);
    }

    pub(super) fn has_met(&self, peer: Peer) -> bool {
        self.sessions().peers.contains_key(&peer)
    }

    pub(super) fn announce(&self, life: Life) {
        let (word, life) = (Word::alive(&life), Arc::new(life));
        let peers = {
            let mut sessions = self.sessions();
            sessions.life = Some(Arc::clone(&life));
            sessions.peers.clone()
        };
        for (peer, session) in &peers {
            session.tell(*peer, &word, life.process.as_ref());
        }
    }

    pub(super) fn retract(&self, incarnation: Incarnation) {
        let peers = {
            let mut sessions = self.sessions();
            sessions.life = None;
            sessions.peers.clone()
        };
        for (peer, session) in &peers {
            session.tell(*peer, &Word::dead(incarnation), None);
        }
    }

    pub(super) fn offer(&self, peer: Peer, offer: &Offer) {
        self.tell_one(peer, &Word::offer(offer));
    }

    pub(super) fn shut_out(&self, peer: Peer, word: ShutOut) {
        self.tell_one(peer, &Word::shut_out(word));
    }

    pub(super) fn isolate(&self, peer: Peer, boot: Incarnation) {
        self.tell_one(peer, &Word::Isolated { boot: boot.0 });
    }

    pub(super) fn note_other_memory(&self, peer: Peer) {
        self.tell_one(peer, &Word::OtherMemory);
    }

    pub(super) fn release(&self, peer: Peer, boot: Incarnation) {
        self.tell_one(peer, &Word::Released { boot: boot.0 });
    }

    pub(super) fn contradict(&self, peer: Peer, boot: Incarnation) {
        self.tell_one(peer, &Word::Free { boot: boot.0 });
    }

    /// Ends the session with `peer`, if there is one; its thread leaves in a moment.
    pub(super) fn end(&self, peer: Peer) {
        if let Some(session) = self.session(peer) {
            session.line.shut_down();
        }
    }

    /// Hands a letter over, or drops it: that says nothing about the peer.
    pub(super) fn send(&self, peer: Peer, letter: &Letter) {
        let Some(session) = self.session(peer) else { return };
        if let Err(error) = session.line.tell_at_once(&Word::Letter(letter.clone())) {
            tracing::debug!(%error, peer = peer.0, "a frame is dropped");
        }
    }

    fn tell_one(&self, peer: Peer, word: &Word) {
        // A peer that was lost meanwhile is told of the life that runs when it is met again.
        if let Some(session) = self.session(peer) {
            session.tell(peer, word, None);
        }
    }

    fn session(&self, peer: Peer) -> Option<Arc<Session<L>>> {
        self.sessions().peers.get(&peer).cloned()
    }

    /// Passes on what a peer says that was met, `met` first, until `hear` fails or everything is
    /// over. `hear` waits for a short while only; nothing heard is `Ok(None)`.
    pub(super) fn attend<E: Display>(
        &self,
        peer: Peer,
        line: L,
        met: News,
        mut hear: impl FnMut() -> Result<Option<News>, E>,
    ) {
        // Of two who called in one name at once, the second one is not listened to.
        let Some(session) = self.join(peer, line) else { return };
        let tell = |news| (self.sink)(Tidings::Heard { peer, session, news });
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

    /// Tells `peer` of the own life, now and from now on; numbers the session.
    fn join(&self, peer: Peer, line: L) -> Option<u64> {
        let mut sessions = self.sessions();
        if sessions.peers.contains_key(&peer) {
            return None;
        }
        sessions.count += 1;
        let number = sessions.count;
        let session = Arc::new(Session { number, line });
        // A connection that has just been made has room for this.
        if let Some(life) = &sessions.life {
            session.tell(peer, &Word::alive(life), life.process.as_ref());
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
