//! The broadcast's part of the demonstration: all nodes at once, then one that equivocates.
//!
//! ```text
//!   node 0 … 3   a text of its own to all others, at the same time ──▶ twelve digests, all equal
//!   node 2       two different messages under one number ──▶ a conflict; who delivers, delivers
//!                                                            the same
//! ```

use std::collections::BTreeSet;
use std::thread;

use super::{DemoError, PATIENCE, TextInput};
use crate::transfer::{Cutter, HEADER_LEN, Joiner, Piece};
use weft::client::{Client, Listener};
use weft::clock::Deadline;
use weft::launch::Launched;
use weft::node::control::{DeliveredMessage, MESSAGES_MAX, Payload};

/// The node that equivocates at the end.
const LIAR: u16 = 2;
/// How much of the input each node broadcasts.
const TEXT_LEN_MAX: usize = 32 * 1024;
/// Messages of one request.
const BATCH: usize = 32;

/// What the broadcast has shown.
#[derive(Debug, Default)]
pub(super) struct BroadcastWatch {
    /// Texts received whole.
    pub(super) received: usize,
    /// Of those, with the digest of what was sent.
    pub(super) equal: usize,
    /// Messages delivered.
    pub(super) delivered: u64,
    /// Messages delivered twice or out of order.
    pub(super) repeated: u64,
    /// The nodes that received the original message, and those that received the altered one.
    pub(super) sent_to: (Vec<u16>, Vec<u16>),
    /// Nodes that have reported the conflict.
    pub(super) disputed: Vec<u16>,
    /// Nodes that have delivered one of the two messages.
    pub(super) believed: Vec<u16>,
    /// How many different messages they have delivered.
    pub(super) stories: usize,
}

/// One node's ear, which notes what must not happen.
struct BroadcastEar {
    rank: u16,
    listener: Listener,
    /// For each origin, the last message delivered.
    last: Vec<u64>,
    delivered: u64,
    repeated: u64,
}

/// Shows all of it on a running cluster.
pub(super) fn show(launched: &Launched, input: &TextInput) -> Result<BroadcastWatch, DemoError> {
    let ranks: Vec<u16> = launched.ranks().collect();
    let message_len = launched.cluster().neb.message_len;
    let text = input.lines().join("\n");
    let text = &text.as_bytes()[..text.len().min(TEXT_LEN_MAX)];
    let mut shown = BroadcastWatch::default();
    let (mut ears, mut mouths) = (Vec::new(), Vec::new());
    for rank in &ranks {
        ears.push(BroadcastEar::open(launched.connect(*rank, PATIENCE)?, ranks.len())?);
        mouths.push(launched.connect(*rank, PATIENCE)?);
    }
    let (digests, heard) = thread::scope(|scope| {
        let speak = |mouth| scope.spawn(move || speak(mouth, text, message_len));
        let speakers: Vec<_> = mouths.into_iter().map(speak).collect();
        let hear = |ear| scope.spawn(move || BroadcastEar::hear_texts(ear));
        let hearers: Vec<_> = ears.iter_mut().map(hear).collect();
        let digests = speakers.into_iter().map(join).collect::<Result<Vec<_>, _>>()?;
        let heard = hearers.into_iter().map(join).collect::<Result<Vec<_>, _>>()?;
        Ok::<_, DemoError>((digests, heard))
    })?;
    for (origin, digest) in heard.into_iter().flatten() {
        shown.received += 1;
        shown.equal += usize::from(digests[usize::from(origin)] == digest);
    }
    let lie = launched.connect(LIAR, PATIENCE)?.equivocate()?;
    let mut stories = BTreeSet::new();
    for ear in ears.iter_mut().filter(|ear| ear.rank != LIAR) {
        match ear.hear_lie(lie.seq)? {
            Some(story) => {
                shown.believed.push(ear.rank);
                stories.insert(story.0);
            }
            None => shown.disputed.push(ear.rank),
        }
    }
    shown.stories = stories.len();
    shown.sent_to = (lie.original, lie.altered);
    shown.delivered = ears.iter().map(|ear| ear.delivered).sum();
    shown.repeated = ears.iter().map(|ear| ear.repeated).sum();
    Ok(shown)
}

/// Broadcasts a text under the node's own name; its digest.
fn speak(mut client: Client, text: &[u8], message_len: usize) -> Result<String, DemoError> {
    let rank = client.rank();
    let text = [format!("node {rank}: ").as_bytes(), text].concat();
    let mut cutter = Cutter::default();
    let parts = text.chunks(message_len - HEADER_LEN);
    let mut messages: Vec<Vec<u8>> = parts.map(|part| cutter.part(part)).collect();
    messages.push(cutter.end());
    for batch in messages.chunks(BATCH) {
        let batch: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
        let outcome = client.broadcast(u64::from(rank), &batch, PATIENCE)?;
        if let Some(why) = outcome.stopped {
            return Err(DemoError::Stopped(format!("node {rank} cannot broadcast: {why:?}")));
        }
    }
    Ok(cutter.digest())
}

impl BroadcastEar {
    fn open(client: Client, nodes: usize) -> Result<Self, DemoError> {
        let rank = client.rank();
        let listener = Listener::begin(client, PATIENCE)?;
        Ok(Self { rank, listener, last: vec![0; nodes], delivered: 0, repeated: 0 })
    }

    /// Every other node's text, to its end: origins and digests.
    fn hear_texts(&mut self) -> Result<Vec<(u16, String)>, DemoError> {
        let deadline = Deadline::after(PATIENCE);
        let mut joiners = vec![Joiner::default(); self.last.len()];
        let mut ended = Vec::new();
        while ended.len() + 1 < joiners.len() {
            let left = deadline.remaining();
            let heard = self.listener.listen(None, MESSAGES_MAX, left)?;
            if heard.messages.is_empty() {
                return Err(self.silence());
            }
            for message in heard.messages {
                self.note(&message);
                let joiner = &mut joiners[usize::from(message.origin)];
                let joined = joiner.join(&message.payload.0);
                let piece = joined.map_err(|error| DemoError::Stopped(error.to_string()))?;
                if piece == Piece::End {
                    ended.push((message.origin, joiner.digest()));
                }
            }
        }
        Ok(ended)
    }

    /// What was delivered here as message `seq` of the liar; nothing when it is disputed.
    fn hear_lie(&mut self, seq: u64) -> Result<Option<Payload>, DemoError> {
        let heard = self.listener.listen(Some(LIAR), 1, PATIENCE)?;
        for message in heard.messages {
            self.note(&message);
            if message.seq == seq {
                return Ok(Some(message.payload));
            }
        }
        let is_disputed = heard.conflicts.iter().any(|conflict| conflict.seq == seq);
        if is_disputed { Ok(None) } else { Err(self.silence()) }
    }

    fn note(&mut self, message: &DeliveredMessage) {
        let last = &mut self.last[usize::from(message.origin)];
        self.delivered += 1;
        self.repeated += u64::from(message.seq != *last + 1);
        *last = message.seq;
        self.listener.note_dealt_with(message.origin, message.seq);
    }

    fn silence(&self) -> DemoError {
        DemoError::Stopped(format!("node {} hears nothing more", self.rank))
    }
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, Result<T, DemoError>>) -> Result<T, DemoError> {
    thread.join().unwrap_or_else(|_| Err(DemoError::Stopped("a thread panicked".to_owned())))
}
