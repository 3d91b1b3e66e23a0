//! The frame: 64 bytes over a lane, little-endian.
//!
//! ```text
//! byte  0      1      2        4         6          8       12     16           20         24
//!       │ kind │ seat │ sender │ subject │ claimant │ epoch │ boot │ generation │ sequence │ …
//!
//!       24 … 64: REPLY_DB      │ index count 0 0 │ checksum │ 32 bytes of the image │
//!                REQUEST_DB    │ eight words │ 0 0                                   │
//!                all others    │ up to seven words; unused are zero │ view: 3 words  │
//! ```
//!
//! The subject is the node that the message is about, the original's `subid`; zero where there is
//! none. The lane's slot carries the checksum. A frame holds no pointer and no `local` flag (G-29):
//! timer expiries are not messages and have no number here.

use core::fmt;

use super::database::VERSION_WORDS;
use super::{
    Alarm, Change, ComponentIncarnation, ImagePart, Level, Members, Message, Question, ScriptOrder,
    ScriptVersion, Seat, Seen, TaskAction, Term, Version, ViewTag,
};
use crate::ids::{Incarnation, OrderId, Rank};
use crate::vote::{VOTE_WORDS, VoteMessage};

/// Bytes of a frame.
pub const FRAME_LEN: usize = 64;

const BODY: usize = 24;
const WORDS: usize = (FRAME_LEN - BODY) / 4;
/// The words before the tag of the view.
const BEFORE_VIEW: usize = WORDS - 3;

/// A message with everything by which its receiver judges it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The rank of the sender.
    pub sender: Rank,
    /// The sender's endpoint.
    pub seat: Seat,
    /// The term that the sender knew.
    pub term: Term,
    /// The sender's incarnation.
    pub incarnation: ComponentIncarnation,
    /// Counts the messages of this endpoint in this incarnation; a retransmission repeats it.
    pub sequence: u32,
    /// The last view of a manager, in its own frames that have room.
    pub view: ViewTag,
    /// The message.
    pub message: Message,
}

/// Why bytes are not a frame. No further checks were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameError {
    /// A frame has 64 bytes.
    Length,
    /// No message has this number.
    Kind(u8),
    /// A field holds an invalid value.
    Field,
    /// Unused bytes are not zero.
    Padding,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length => f.write_str("a frame has 64 bytes"),
            Self::Kind(kind) => write!(f, "no message has the number {kind}"),
            Self::Field => f.write_str("a field holds a value that it cannot have"),
            Self::Padding => f.write_str("bytes that are not used are not zero"),
        }
    }
}

impl core::error::Error for FrameError {}

mod kind {
    pub(super) const TEIF: u8 = 1;
    pub(super) const ENIA: u8 = 2;
    pub(super) const ROUSE: u8 = 3;
    pub(super) const WITM: u8 = 4;
    pub(super) const NMI: u8 = 5;
    pub(super) const NIUA: u8 = 6;
    pub(super) const ANID: u8 = 7;
    pub(super) const SPAN: u8 = 8;
    pub(super) const DB: u8 = 9;
    pub(super) const REQUEST_DB: u8 = 10;
    pub(super) const REPLY_DB: u8 = 11;
    pub(super) const NOTHING_NEWER: u8 = 12;
    pub(super) const FENCED: u8 = 13;
    pub(super) const WITNESS: u8 = 14;
    pub(super) const TESTIMONY: u8 = 15;
    pub(super) const PROBE: u8 = 16;
    pub(super) const ALIVE: u8 = 17;
    pub(super) const GUARD: u8 = 18;
    pub(super) const OUTBID: u8 = 19;
    pub(super) const VOTE: u8 = 21;
    pub(super) const OUTCOME: u8 = 22;
    pub(super) const VOTED: u8 = 23;
    pub(super) const HANDOVER: u8 = 24;
}

/// What follows the header: a number, a subject, and up to ten words.
struct Body {
    kind: u8,
    subject: Rank,
    words: [u32; WORDS],
}

impl Body {
    fn new(kind: u8, subject: Rank, words: &[u32]) -> Self {
        let mut all = [0; WORDS];
        all[..words.len()].copy_from_slice(words);
        Self { kind, subject, words: all }
    }

    fn of(message: &Message) -> Self {
        use Message as M;
        const NO_NODE: Rank = Rank(0);
        match *message {
            M::Teif { generation, alarm } => {
                Self::new(kind::TEIF, NO_NODE, &[generation, alarm as u32])
            }
            M::Enia => Self::new(kind::ENIA, NO_NODE, &[]),
            M::Rouse => Self::new(kind::ROUSE, NO_NODE, &[]),
            M::Witm => Self::new(kind::WITM, NO_NODE, &[]),
            M::Nmi => Self::new(kind::NMI, NO_NODE, &[]),
            M::Niua { node, incarnation } => {
                Self::new(kind::NIUA, node, &[incarnation.boot.0, incarnation.generation])
            }
            M::Anid { node, incarnation, level } => Self::new(
                kind::ANID,
                node,
                &[incarnation.boot.0, incarnation.generation, level as u32],
            ),
            M::Span { node, incarnation } => {
                Self::new(kind::SPAN, node, &[incarnation.boot.0, incarnation.generation])
            }
            M::Db { seq, change } => Self::new(kind::DB, NO_NODE, &change_words(seq, change)),
            M::RequestDb { node, have } => Self::new(kind::REQUEST_DB, node, &have.words()),
            M::ReplyDb(part) => {
                let mut words = [0; WORDS];
                words[0] = u32::from(part.index) | u32::from(part.count) << 8;
                words[1] = part.checksum;
                for (word, chunk) in words[2..].iter_mut().zip(part.bytes.chunks_exact(4)) {
                    *word = word_at(chunk, 0);
                }
                Self::new(kind::REPLY_DB, part.node, &words)
            }
            M::NothingNewer { node } => Self::new(kind::NOTHING_NEWER, node, &[]),
            M::Fenced { node, boot, by, incarnation } => {
                let ComponentIncarnation { boot: own, generation } = incarnation;
                Self::new(kind::FENCED, node, &[boot.0, own.0, generation, u32::from(by.0)])
            }
            M::Witness { question: Question { node, asker, round }, unheard } => {
                let [low, high] = halves(unheard.bits());
                Self::new(kind::WITNESS, node, &[round, u32::from(asker.0), low, high])
            }
            M::Testimony { question: Question { node, asker, round }, witness, seen } => {
                let seen = u32::from(seen.component) | u32::from(seen.task) << 1;
                let [asker, witness] = [asker, witness].map(|rank| u32::from(rank.0));
                Self::new(kind::TESTIMONY, node, &[round, asker, witness, seen])
            }
            M::Probe { round } => Self::new(kind::PROBE, NO_NODE, &[round]),
            M::Alive { round } => Self::new(kind::ALIVE, NO_NODE, &[round]),
            M::Guard { task, action, order } => {
                Self::new(kind::GUARD, NO_NODE, &guard_words(task, action, order))
            }
            M::Vote(vote) => {
                let kind = match vote {
                    VoteMessage::Vote(_) => kind::VOTE,
                    VoteMessage::Outcome(_) => kind::OUTCOME,
                    VoteMessage::Voted { .. } => kind::VOTED,
                };
                Self::new(kind, NO_NODE, &vote.words())
            }
            M::Outbid { term } => Self::new(kind::OUTBID, term.claimant, &[term.epoch]),
            M::HandOver { incarnation: ComponentIncarnation { boot, generation }, echo } => {
                Self::new(kind::HANDOVER, NO_NODE, &[boot.0, generation, echo])
            }
        }
    }

    fn message(&self) -> Result<Message, FrameError> {
        use Message as M;
        let (node, w) = (self.subject, &self.words);
        let incarnation = ComponentIncarnation { boot: Incarnation(w[0]), generation: w[1] };
        let (message, used) = match self.kind {
            kind::TEIF => (M::Teif { generation: w[0], alarm: alarm(w[1])? }, 2),
            kind::ENIA => (M::Enia, 0),
            kind::ROUSE => (M::Rouse, 0),
            kind::WITM => (M::Witm, 0),
            kind::NMI => (M::Nmi, 0),
            kind::NIUA => (M::Niua { node, incarnation }, 2),
            kind::ANID => (M::Anid { node, incarnation, level: removal(w[2])? }, 3),
            kind::SPAN => (M::Span { node, incarnation }, 2),
            kind::DB => (M::Db { seq: w[0], change: change(w)? }, 6),
            kind::REQUEST_DB => {
                let have = Version::from_words(&w[..VERSION_WORDS]).ok_or(FrameError::Field)?;
                (M::RequestDb { node, have }, VERSION_WORDS)
            }
            kind::REPLY_DB => (M::ReplyDb(part(node, w)?), WORDS),
            kind::NOTHING_NEWER => (M::NothingNewer { node }, 0),
            kind::FENCED => {
                let incarnation =
                    ComponentIncarnation { boot: Incarnation(w[1]), generation: w[2] };
                (M::Fenced { node, boot: Incarnation(w[0]), by: rank(w[3])?, incarnation }, 4)
            }
            kind::WITNESS => {
                let unheard = Members::of_bits(u64::from(w[2]) | u64::from(w[3]) << 32);
                (M::Witness { question: question(node, w)?, unheard }, 4)
            }
            kind::TESTIMONY => {
                let seen = Seen { component: w[3] & 1 != 0, task: w[3] & 2 != 0 };
                if w[3] > 3 {
                    return Err(FrameError::Field);
                }
                (M::Testimony { question: question(node, w)?, witness: rank(w[2])?, seen }, 4)
            }
            kind::PROBE => (M::Probe { round: w[0] }, 1),
            kind::ALIVE => (M::Alive { round: w[0] }, 1),
            kind::GUARD => (guard(w)?, 6),
            kind::VOTE => (vote(VoteMessage::vote, w)?, VOTE_WORDS),
            kind::OUTCOME => (vote(VoteMessage::outcome, w)?, VOTE_WORDS),
            kind::VOTED => (vote(VoteMessage::voted, w)?, VOTE_WORDS),
            kind::OUTBID => (M::Outbid { term: Term { epoch: w[0], claimant: node } }, 1),
            kind::HANDOVER => (M::HandOver { incarnation, echo: w[2] }, 3),
            kind => return Err(FrameError::Kind(kind)),
        };
        let has_no_subject = matches!(
            message,
            M::Teif { .. }
                | M::Enia
                | M::Rouse
                | M::Witm
                | M::Nmi
                | M::Db { .. }
                | M::Probe { .. }
                | M::Alive { .. }
                | M::Guard { .. }
                | M::Vote(_)
                | M::HandOver { .. }
        );
        let end = if message.has_room_for_view() { BEFORE_VIEW } else { WORDS };
        let is_clean = w[used..end].iter().all(|word| *word == 0);
        if !is_clean || (has_no_subject && node != Rank(0)) {
            return Err(FrameError::Padding);
        }
        Ok(message)
    }
}

fn alarm(word: u32) -> Result<Alarm, FrameError> {
    use Alarm::{Ended, NoProgress, SpawnFailed, SupervisorHung, TimersStopped};
    let all = [NoProgress, Ended, SpawnFailed, TimersStopped, SupervisorHung];
    all.into_iter().find(|alarm| *alarm as u32 == word).ok_or(FrameError::Field)
}

fn action(word: u32) -> Result<TaskAction, FrameError> {
    use TaskAction::{Answer, Clear, Isolate, Release, Restart, Send, Start, Stop, Warn};
    let all = [Restart, Isolate, Start, Stop, Release, Answer, Clear, Send, Warn];
    all.into_iter().find(|action| *action as u32 == word).ok_or(FrameError::Field)
}

/// Decodes a level of a removed incarnation.
fn removal(word: u32) -> Result<Level, FrameError> {
    let all = [Level::Down, Level::Isolated, Level::Released];
    all.into_iter().find(|level| *level as u32 == word).ok_or(FrameError::Field)
}

fn guard_words(task: u8, action: TaskAction, order: Option<ScriptOrder>) -> [u32; 6] {
    let head = [u32::from(task), action as u32];
    match order {
        None => [head[0], head[1], 0, 0, 0, 0],
        Some(ScriptOrder { evaluation, index, seen, mark }) => {
            [head[0] | BY_SCRIPT, head[1], evaluation, u32::from(index), seen, mark]
        }
    }
}

fn guard(w: &[u32; WORDS]) -> Result<Message, FrameError> {
    let (task, action) = (byte(w[0] & !BY_SCRIPT)?, action(w[1])?);
    let order = match w[0] & BY_SCRIPT {
        0 if w[2..6] != [0; 4] => return Err(FrameError::Padding),
        0 => None,
        _ => {
            let index = u16::try_from(w[3]).map_err(|_| FrameError::Field)?;
            Some(ScriptOrder { evaluation: w[2], index, seen: w[4], mark: w[5] })
        }
    };
    Ok(Message::Guard { task, action, order })
}

fn vote(
    read: impl Fn([u32; VOTE_WORDS]) -> Option<VoteMessage>,
    words: &[u32; WORDS],
) -> Result<Message, FrameError> {
    let (own, _) = words.split_first_chunk().ok_or(FrameError::Field)?;
    read(*own).map(Message::Vote).ok_or(FrameError::Field)
}

fn question(node: Rank, words: &[u32; WORDS]) -> Result<Question, FrameError> {
    Ok(Question { node, asker: rank(words[1])?, round: words[0] })
}

fn rank(word: u32) -> Result<Rank, FrameError> {
    u16::try_from(word).map(Rank).map_err(|_| FrameError::Field)
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves")]
const fn halves(bits: u64) -> [u32; 2] {
    [bits as u32, (bits >> 32) as u32]
}

fn byte(word: u32) -> Result<u8, FrameError> {
    u8::try_from(word).map_err(|_| FrameError::Field)
}

fn part(node: Rank, words: &[u32; WORDS]) -> Result<ImagePart, FrameError> {
    let [index, count, 0, 0] = words[0].to_le_bytes() else { return Err(FrameError::Padding) };
    let mut bytes = [0; ImagePart::LEN];
    for (chunk, word) in bytes.chunks_exact_mut(4).zip(&words[2..]) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    if index >= count {
        return Err(FrameError::Field);
    }
    Ok(ImagePart { node, index, count, checksum: words[1], bytes })
}

/// In the first word of GUARD: a recovery script's order follows.
const BY_SCRIPT: u32 = 1 << 8;

const STATUS: u32 = 1;
const ROLE: u32 = 2;
const REBOOTS: u32 = 3;
const TASK_STATUS: u32 = 4;
const TASK_ERROR: u32 = 5;
const TASK_ANSWERED: u32 = 6;
const SCRIPT_HELD: u32 = 7;
const SCRIPT_USED: u32 = 8;
const TASK_PHASE: u32 = 9;
/// In the first word of an error: an α-count is given.
const WITH_ALPHA: u32 = 1 << 24;

fn change_words(seq: u32, change: Change) -> [u32; 6] {
    match change {
        Change::Status(status) => [seq, STATUS, u32::from(status), 0, 0, 0],
        Change::Role(role) => [seq, ROLE, u32::from(role), 0, 0, 0],
        Change::Reboots(count) => [seq, REBOOTS, count, 0, 0, 0],
        Change::TaskStatus { task, status } => {
            [seq, TASK_STATUS, u32::from(task), u32::from(status), 0, 0]
        }
        Change::TaskPhase { task, phase } => {
            [seq, TASK_PHASE, u32::from(task), u32::from(phase), 0, 0]
        }
        Change::TaskError { task, kind, at_us, alpha } => {
            let what = u32::from(task) | u32::from(kind) << 8;
            let [low, high] = halves(at_us);
            match alpha {
                None => [seq, TASK_ERROR, what, low, high, 0],
                Some(alpha) => [seq, TASK_ERROR, what | WITH_ALPHA, low, high, u32::from(alpha)],
            }
        }
        Change::TaskAnswered { task, mark, judged, is_cleared } => {
            let OrderId { term, evaluation, index } = judged;
            let what = u32::from(task) | u32::from(mark) << 8 | u32::from(is_cleared) << 24;
            let place = u32::from(term.claimant.0) | u32::from(index) << 16;
            [seq, TASK_ANSWERED, what, term.epoch, evaluation, place]
        }
        Change::ScriptHeld(digest) => {
            let [low, high] = halves(digest);
            [seq, SCRIPT_HELD, low, high, 0, 0]
        }
        Change::ScriptUsed(ScriptVersion { term, number, digest }) => {
            let [low, high] = halves(digest);
            let place = u32::from(term.claimant.0) | u32::from(number) << 16;
            [seq, SCRIPT_USED, low, high, term.epoch, place]
        }
    }
}

fn change(w: &[u32; WORDS]) -> Result<Change, FrameError> {
    let (change, used) = match w[1] {
        STATUS => (Change::Status(byte(w[2])?), 3),
        ROLE => (Change::Role(byte(w[2])?), 3),
        REBOOTS => (Change::Reboots(w[2]), 3),
        TASK_STATUS => (Change::TaskStatus { task: byte(w[2])?, status: byte(w[3])? }, 4),
        TASK_ERROR => {
            let [task, low, high, flag] = w[2].to_le_bytes();
            let (alpha, used) = match flag {
                0 => (None, 5),
                1 => (Some(u16::try_from(w[5]).map_err(|_| FrameError::Field)?), 6),
                _ => return Err(FrameError::Field),
            };
            let at_us = u64::from(w[3]) | u64::from(w[4]) << 32;
            (Change::TaskError { task, kind: u16::from_le_bytes([low, high]), at_us, alpha }, used)
        }
        TASK_ANSWERED => {
            let [task, low, high, flag] = w[2].to_le_bytes();
            if flag > 1 {
                return Err(FrameError::Field);
            }
            let [a, b, c, d] = w[5].to_le_bytes();
            let term = Term { epoch: w[3], claimant: Rank(u16::from_le_bytes([a, b])) };
            let judged = OrderId { term, evaluation: w[4], index: u16::from_le_bytes([c, d]) };
            let (mark, is_cleared) = (u16::from_le_bytes([low, high]), flag == 1);
            (Change::TaskAnswered { task, mark, judged, is_cleared }, 6)
        }
        TASK_PHASE => (Change::TaskPhase { task: byte(w[2])?, phase: byte(w[3])? }, 4),
        SCRIPT_HELD => (Change::ScriptHeld(u64::from(w[2]) | u64::from(w[3]) << 32), 4),
        SCRIPT_USED => {
            let [a, b, c, d] = w[5].to_le_bytes();
            let term = Term { epoch: w[4], claimant: Rank(u16::from_le_bytes([a, b])) };
            let digest = u64::from(w[2]) | u64::from(w[3]) << 32;
            let number = u16::from_le_bytes([c, d]);
            (Change::ScriptUsed(ScriptVersion { term, number, digest }), 6)
        }
        _ => return Err(FrameError::Field),
    };
    if w[used..6].iter().any(|word| *word != 0) {
        return Err(FrameError::Padding);
    }
    Ok(change)
}

impl Frame {
    /// The frame as bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; FRAME_LEN] {
        let mut body = Body::of(&self.message);
        if self.message.has_room_for_view() {
            body.words[BEFORE_VIEW..].copy_from_slice(&self.view.words());
        }
        let mut bytes = [0; FRAME_LEN];
        bytes[0] = body.kind;
        bytes[1] = self.seat as u8;
        for (at, rank) in [(2, self.sender), (4, body.subject), (6, self.term.claimant)] {
            bytes[at..at + 2].copy_from_slice(&rank.0.to_le_bytes());
        }
        let head =
            [self.term.epoch, self.incarnation.boot.0, self.incarnation.generation, self.sequence];
        for (chunk, word) in bytes[8..].chunks_exact_mut(4).zip(head.iter().chain(&body.words)) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Decodes the frame in a private copy of a lane message. Does not check whether its ranks are
    /// members, its term is current, or its incarnation is fenced: the machines do.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let bytes: &[u8; FRAME_LEN] = bytes.try_into().map_err(|_| FrameError::Length)?;
        let seat = match bytes[1] {
            0 => Seat::Component,
            1 => Seat::ImAliveTask,
            _ => return Err(FrameError::Field),
        };
        let rank = |at: usize| Rank(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        let words = core::array::from_fn(|index| word_at(bytes, BODY + 4 * index));
        let message = Body { kind: bytes[0], subject: rank(4), words }.message()?;
        let [.., count, low, high] = words;
        let view = match message.has_room_for_view() {
            true => ViewTag::from_words([count, low, high]).ok_or(FrameError::Field)?,
            false => ViewTag::default(),
        };
        Ok(Self {
            sender: rank(2),
            seat,
            term: Term { epoch: word_at(bytes, 8), claimant: rank(6) },
            incarnation: ComponentIncarnation {
                boot: Incarnation(word_at(bytes, 12)),
                generation: word_at(bytes, 16),
            },
            sequence: word_at(bytes, 20),
            view,
            message,
        })
    }
}

fn word_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests;
