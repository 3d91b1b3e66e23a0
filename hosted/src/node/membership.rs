//! Greeting peers over their lanes: a peer counts as joined once a hello has been answered.
//!
//! ```text
//!   admitted ──▶ hello {mine, yours} ──lane──▶ the peer's component
//!   joined   ◀─────────lane── welcome {mine, yours} ◀──┘
//! ```
//!
//! Then each sends the keys that it holds, with their owners, where broadcasts are signed.
//!
//! Both messages carry the two incarnations, so those of an earlier pair are not mistaken for the
//! present ones. A lane that cannot be written yet, because the peer has not admitted this
//! incarnation, is tried again.

use weft_core::endpoint::FRAME_KIND;
use weft_core::ids::{Incarnation, Peer, PeerSet};

use super::NodeEndpoint;
use crate::signing::PublicKey;

const HELLO: u16 = 1;
const WELCOME: u16 = 2;
/// The kind of a lane message with the key that the sender holds for a node.
const KEY: u16 = 4;
/// The greetings of a component that stands in for a program that has finished.
const HELLO_FINISHED: u16 = 5;
const WELCOME_FINISHED: u16 = 6;

/// The most messages handled at a time, so that a chatty peer does not starve the rest of the loop.
const HEARD_MAX: usize = 256;

/// What arrived over the lanes.
#[derive(Debug, Default)]
pub(super) struct LaneArrivals {
    /// The peers that have now joined, with their incarnations, and whether their programs have
    /// finished.
    pub(super) joined: Vec<(Peer, Incarnation, bool)>,
    /// The peers whose programs have finished, by their hello.
    pub(super) finished: PeerSet,
    /// Frames of the DIR net.
    pub(super) frames: Vec<(Peer, Vec<u8>)>,
    /// The keys that members report to hold: reporter, owner, key.
    pub(super) keys: Vec<(Peer, Peer, PublicKey)>,
}

/// What must still be sent to one peer.
#[derive(Clone, Copy, Debug, Default)]
struct Greeting {
    /// The incarnation that is admitted; none when zero.
    theirs: Incarnation,
    hello_due: bool,
    welcome_due: bool,
    /// The owners whose keys must be sent to it.
    keys_due: PeerSet,
}

/// The greetings with all peers.
#[derive(Debug)]
pub(super) struct Greetings {
    mine: Incarnation,
    /// Whether this component stands in for a program that has finished.
    finished: bool,
    nodes: usize,
    greetings: Vec<Greeting>,
    /// Something must still be sent: nearly every pass finds nothing.
    is_due: bool,
}

impl Greetings {
    pub(super) fn new(nodes: usize, mine: Incarnation, finished: bool) -> Self {
        Self { mine, finished, nodes, greetings: vec![Greeting::default(); nodes], is_due: false }
    }

    /// Greets the incarnation `theirs` of `peer`, which was admitted.
    pub(super) fn handle_admitted(&mut self, peer: Peer, theirs: Incarnation) {
        if let Some(greeting) = self.greetings.get_mut(peer.index()) {
            let keys_due = PeerSet::first(self.nodes);
            *greeting = Greeting { theirs, hello_due: true, welcome_due: false, keys_due };
            self.is_due = true;
        }
    }

    /// The incarnation of `peer` that is admitted, if one is.
    pub(super) fn incarnation_of(&self, peer: Peer) -> Option<Incarnation> {
        let theirs = self.greetings.get(peer.index())?.theirs;
        (theirs != Incarnation(0)).then_some(theirs)
    }

    /// `peer` was fenced: nothing more is sent to that incarnation.
    pub(super) fn handle_fenced(&mut self, peer: Peer) {
        if let Some(greeting) = self.greetings.get_mut(peer.index()) {
            *greeting = Greeting::default();
        }
    }

    /// Announces the key of `owner` to every peer.
    pub(super) fn announce_key(&mut self, owner: Peer) {
        for greeting in self.greetings.iter_mut().filter(|it| it.theirs != Incarnation(0)) {
            greeting.keys_due.insert(owner);
            self.is_due = true;
        }
    }

    /// Sends what is due; what cannot be sent now stays due.
    #[inline]
    pub(super) fn speak(
        &mut self,
        endpoint: &mut NodeEndpoint,
        key_of: impl Fn(Peer) -> Option<PublicKey>,
    ) {
        if self.is_due {
            self.is_due = self.speak_all(endpoint, key_of);
        }
    }

    fn speak_all(
        &mut self,
        endpoint: &mut NodeEndpoint,
        key_of: impl Fn(Peer) -> Option<PublicKey>,
    ) -> bool {
        let mine = self.mine;
        let mut left = false;
        for (peer, greeting) in (0..).map(Peer).zip(&mut self.greetings) {
            // Before the greeting, so that a peer that has joined has sent the keys that it holds.
            for owner in greeting.keys_due.iter() {
                let said = key_of(owner).map(|key| encode_key(owner, key));
                let is_due = said.is_some_and(|words| endpoint.send(peer, KEY, &words).is_err());
                left |= is_due;
                if !is_due {
                    greeting.keys_due.remove(owner);
                }
            }
            let words = encode(mine, greeting.theirs);
            let (hello, welcome) = match self.finished {
                false => (HELLO, WELCOME),
                true => (HELLO_FINISHED, WELCOME_FINISHED),
            };
            let due = [(hello, &mut greeting.hello_due), (welcome, &mut greeting.welcome_due)];
            for (kind, due) in due {
                *due = *due && endpoint.send(peer, kind, &words).is_err();
                left |= *due;
            }
        }
        left
    }

    /// Receives lane messages, up to a bound; nothing where none has arrived, as in nearly every
    /// pass.
    pub(super) fn listen(&mut self, endpoint: &mut NodeEndpoint) -> Option<LaneArrivals> {
        let mut heard = None;
        for _ in 0..HEARD_MAX {
            let Some(message) = endpoint.take_lane() else { break };
            let heard = heard.get_or_insert_with(LaneArrivals::default);
            let peer = message.sender;
            if message.kind == FRAME_KIND {
                heard.frames.push((peer, message.payload.to_vec()));
                endpoint.fabric().whole().note_heard(peer);
                continue;
            }
            if message.kind == KEY {
                let said = decode_key(message.payload).map(|(owner, key)| (peer, owner, key));
                heard.keys.extend(said);
                endpoint.fabric().whole().note_heard(peer);
                continue;
            }
            let Some(greeting) = self.greetings.get_mut(peer.index()) else { continue };
            if message.payload != encode(greeting.theirs, self.mine) {
                tracing::debug!(peer = peer.0, "a greeting between other lives");
                continue;
            }
            match message.kind {
                HELLO => (greeting.welcome_due, self.is_due) = (true, true),
                HELLO_FINISHED => {
                    (greeting.welcome_due, self.is_due) = (true, true);
                    heard.finished.insert(peer);
                }
                kind @ (WELCOME | WELCOME_FINISHED) => {
                    heard.joined.push((peer, greeting.theirs, kind == WELCOME_FINISHED));
                }
                kind => tracing::debug!(peer = peer.0, kind, "a lane message of unknown kind"),
            }
            endpoint.fabric().whole().note_heard(peer);
        }
        heard
    }
}

/// The owner, then its key.
fn encode_key(owner: Peer, PublicKey(key): PublicKey) -> [u8; 34] {
    let mut words = [0; 34];
    words[..2].copy_from_slice(&owner.0.to_le_bytes());
    words[2..].copy_from_slice(&key);
    words
}

fn decode_key(words: &[u8]) -> Option<(Peer, PublicKey)> {
    let (owner, key) = words.split_first_chunk::<2>()?;
    Some((Peer(u16::from_le_bytes(*owner)), PublicKey(key.try_into().ok()?)))
}

/// The sender's incarnation, then the receiver's.
fn encode(speaker: Incarnation, listener: Incarnation) -> [u8; 8] {
    let mut words = [0; 8];
    words[..4].copy_from_slice(&speaker.0.to_le_bytes());
    words[4..].copy_from_slice(&listener.0.to_le_bytes());
    words
}
