//! The messages of groups: the entry of a message, and the frames that travel over lanes.
//!
//! ```text
//! entry  0     8       12   16    24      32        40    48     49      50   60      64
//!        │ seq │ epoch │ 0  │ len │ first │ members │ tag │ kind │ class │ 0  │ crc32c │ payload …
//! frame  0       2      4       8
//!        │ group │ root │ epoch │ FORWARD  entry, payload
//!                               │ HOLD     entries, base, mask
//!                               │ ACK      entries, blocks, epochs
//!                               │ NEED     next
//!                               │ REPORT   entries, base, mask, epochs, footing
//!                               │ SYNC     arrived, released, epochs
//!                               │ AGREE    list, sizes, live, epochs, heard │ fresh << 1
//!                               │ WELCOME  entries, blocks, released, gathers, since
//! ```
//!
//! The checksum of an entry runs over entry and payload with its own field as zero: entries are
//! read out of other members' memory, too. A frame needs none, since a lane's slot has one. Blocks
//! are counted from 0; `base` is the number of blocks held without a gap, bit i of `mask` the block
//! base + 1 + i. `live` is the set of members that the sender counts, and `epochs` the digest of
//! those with their epochs. Unused bytes are zero, and a frame that differs there is none.

use super::{u16_at, u32_at, u64_at};

/// Length of an entry in bytes.
pub const ENTRY_LEN: usize = 64;

/// Length of the head of a frame in bytes.
pub const HEAD_LEN: usize = 8;

/// The longest payload of an entry: with it a FORWARD fits into a lane's slot.
pub const EAGER_MAX: u16 = 896;

/// The longest frame in bytes.
pub const FRAME_LEN_MAX: usize = HEAD_LEN + ENTRY_LEN + EAGER_MAX as usize;

mod field {
    pub(super) const EPOCH: usize = 8;
    pub(super) const LEN: usize = 16;
    pub(super) const FIRST: usize = 24;
    pub(super) const MEMBERS: usize = 32;
    pub(super) const TAG: usize = 40;
    pub(super) const KIND: usize = 48;
    pub(super) const CLASS: usize = 49;
    pub(super) const CRC: usize = 60;
}

/// What an entry is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A message whose payload follows the entry.
    #[default]
    Small,
    /// A message whose payload is in blocks.
    Long,
    /// The message before it ends behind the blocks that were written: `first` is the next one.
    Abandon,
    /// A value of the all-gather that its tag numbers; its payload follows the entry.
    Gather,
}

/// How the blocks of a long message travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spread {
    /// All members read from the root.
    #[default]
    Flat,
    /// By the binomial pipeline.
    Pipeline,
    /// Each member reads from the one before it.
    Pipe,
    /// Each member reads from its predecessor in the tree of halves.
    Binary,
    /// Each member reads from its predecessor in the tree of unequal parts.
    Fibonacci,
}

impl Spread {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Flat, Self::Pipeline, Self::Pipe, Self::Binary, Self::Fibonacci];

    /// The set that holds this one alone.
    #[must_use]
    pub const fn bit(self) -> u8 {
        1 << self as u8
    }

    fn decode(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|spread| 1 + *spread as u8 == byte)
    }
}

/// One message of a root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Counts the root's messages from 1.
    pub seq: u64,
    /// The epoch of the root: the incarnation in which its memory began.
    pub epoch: u32,
    /// Bytes of the message.
    pub len: u64,
    /// The number of its first block.
    pub first: u64,
    /// The members that take part, as granks.
    pub members: u64,
    /// The application's.
    pub tag: u64,
    /// What it is about.
    pub kind: EntryKind,
    /// How its blocks travel.
    pub spread: Spread,
}

fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    bytes[offset..offset + value.len()].copy_from_slice(value);
}

impl Entry {
    /// Bytes that follow the entry in its slot.
    #[must_use]
    pub fn payload_len(&self) -> usize {
        match self.kind {
            EntryKind::Small | EntryKind::Gather => usize::try_from(self.len).unwrap_or(usize::MAX),
            EntryKind::Long | EntryKind::Abandon => 0,
        }
    }

    /// Writes the entry before its payload, which lies in `slot` already, and its checksum.
    ///
    /// # Panics
    /// When `slot` is not as long as the two: a bug of the caller.
    pub fn seal(&self, slot: &mut [u8], checksum: impl Fn(&[u8]) -> u32) {
        assert!(slot.len() == ENTRY_LEN + self.payload_len(), "an entry and its payload");
        slot[..ENTRY_LEN].fill(0);
        put(slot, 0, &self.seq.to_le_bytes());
        put(slot, field::EPOCH, &self.epoch.to_le_bytes());
        put(slot, field::LEN, &self.len.to_le_bytes());
        put(slot, field::FIRST, &self.first.to_le_bytes());
        put(slot, field::MEMBERS, &self.members.to_le_bytes());
        put(slot, field::TAG, &self.tag.to_le_bytes());
        slot[field::KIND] = 1 + self.kind as u8;
        slot[field::CLASS] = 1 + self.spread as u8;
        let crc = checksum(slot);
        put(slot, field::CRC, &crc.to_le_bytes());
    }

    /// The entry at the head of a private copy of `slot`, without a look at its checksum.
    #[must_use]
    pub fn peek(slot: &[u8]) -> Option<Self> {
        if slot.len() < ENTRY_LEN {
            return None;
        }
        let kind = match slot[field::KIND] {
            1 => EntryKind::Small,
            2 => EntryKind::Long,
            3 => EntryKind::Abandon,
            4 => EntryKind::Gather,
            _ => return None,
        };
        let spread = Spread::decode(slot[field::CLASS])?;
        let is_blank = |range: core::ops::Range<usize>| slot[range].iter().all(|byte| *byte == 0);
        let entry = Self {
            seq: u64_at(slot, 0),
            epoch: u32_at(slot, field::EPOCH),
            len: u64_at(slot, field::LEN),
            first: u64_at(slot, field::FIRST),
            members: u64_at(slot, field::MEMBERS),
            tag: u64_at(slot, field::TAG),
            kind,
            spread,
        };
        let is_possible = entry.seq > 0 && entry.len <= 1 << 63 && entry.first <= BLOCKS_MAX;
        (is_possible && is_blank(12..16) && is_blank(50..field::CRC)).then_some(entry)
    }

    /// The entry at the head of `slot`, a private copy that holds its payload too; none if it is
    /// torn or no entry. The checksum field is zero afterwards.
    #[must_use]
    pub fn open(slot: &mut [u8], checksum: impl Fn(&[u8]) -> u32) -> Option<Self> {
        let entry = Self::peek(slot)?;
        let used = ENTRY_LEN.checked_add(entry.payload_len())?;
        let slot = slot.get_mut(..used)?;
        let crc = u32_at(slot, field::CRC);
        slot[field::CRC..ENTRY_LEN].fill(0);
        let is_whole = checksum(slot) == crc;
        put(slot, field::CRC, &crc.to_le_bytes());
        is_whole.then_some(entry)
    }
}

/// The blocks of a stream that a member holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// Held without a gap.
    pub base: u64,
    /// Held behind the first gap: bit i is block base + 1 + i.
    pub mask: u64,
}

impl Blocks {
    /// Whether `block` is held.
    #[must_use]
    pub const fn contains(&self, block: u64) -> bool {
        if block < self.base {
            return true;
        }
        match block - self.base {
            0 => false,
            ahead => ahead <= 64 && self.mask >> (ahead - 1) & 1 == 1,
        }
    }

    /// Adds `block`, which lies at most 64 past the first gap.
    pub const fn insert(&mut self, block: u64) {
        if block < self.base || block - self.base > 64 {
            return;
        }
        if block > self.base {
            self.mask |= 1 << (block - self.base - 1);
            return;
        }
        let run = self.mask.trailing_ones();
        self.base += 1 + run as u64;
        // Of 64 blocks behind a gap of one, none is left.
        self.mask = if run >= 63 { 0 } else { self.mask >> (run + 1) };
    }
}

/// What a member holds of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Held {
    /// Messages without a gap.
    pub entries: u64,
    /// Blocks.
    pub blocks: Blocks,
}

/// Whose stream a frame is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Head {
    /// The group.
    pub group: u16,
    /// The root, as a grank; of AGREE, SYNC and WELCOME, the sender.
    pub root: u16,
    /// The epoch of that member.
    pub epoch: u32,
}

/// How far the barriers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sync {
    /// The last that the sender's subtree has arrived at.
    pub arrived: u64,
    /// The last that all live members have arrived at.
    pub released: u64,
    /// Under which members and epochs the subtree was formed.
    pub epochs: u64,
}

/// On what a member reports what it holds of the stream of a root that was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Footing {
    /// It takes nothing more but what others report.
    #[default]
    Frozen,
    /// These are the messages of the stream, and it holds them all.
    Closed,
    /// It takes no part in that epoch of the root, or has closed it and counts a later one.
    Absent,
}

/// What a member holds of the stream of a root that was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Report {
    /// What it holds.
    pub held: Held,
    /// The members and epochs of the round.
    pub epochs: u64,
    /// On what footing.
    pub footing: Footing,
}

/// How a member has opened the group, and whom it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Agree {
    /// Digest of the list of members.
    pub list: u64,
    /// Digest of the sizes.
    pub sizes: u64,
    /// The members that the sender counts, as granks.
    pub live: u64,
    /// Digest of those with their epochs.
    pub epochs: u64,
    /// It has received the receiver's.
    pub heard: bool,
    /// It has come back, and takes nothing yet.
    pub fresh: bool,
}

/// Where a member that comes back begins, as one says that counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Welcome {
    /// Messages of the sender that lie before.
    pub entries: u64,
    /// Blocks of the sender that lie before.
    pub blocks: u64,
    /// The last barrier that the sender knows to be released.
    pub released: u64,
    /// The last all-gather that the sender has begun.
    pub gathers: u64,
    /// The last all-gather that the sender has no part in.
    pub since: u64,
}

/// Above every number of a message, a barrier and an all-gather.
const CALLS_MAX: u64 = 1 << 62;
/// Above every number of a block.
const BLOCKS_MAX: u64 = 1 << 62;

/// What a frame says, FORWARD apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// What the sender holds. To which message a block belongs, and how long it is, is certain to
    /// a receiver that has these messages: one among them may have ended another before its end.
    Hold(Held),
    /// What the sender's subtree has released.
    Ack {
        /// Messages.
        entries: u64,
        /// Blocks.
        blocks: u64,
        /// Under which members and epochs the subtree was formed.
        epochs: u64,
    },
    /// The receiver is the sender's predecessor, which begins with this message.
    Need {
        /// Its number.
        next: u64,
    },
    /// What the sender holds of the stream of a removed root.
    Report(Report),
    /// How far the barriers are.
    Sync(Sync),
    /// How the sender has opened the group.
    Agree(Agree),
    /// Where the receiver begins, and where the sender did.
    Welcome(Welcome),
}

/// The kind of a FORWARD on a lane.
pub const FORWARD: u16 = 1;
const HOLD: u16 = 2;
const ACK: u16 = 3;
const NEED: u16 = 4;
const REPORT: u16 = 5;
const SYNC: u16 = 6;
const AGREE: u16 = 7;
const WELCOME: u16 = 8;

const WORDS_MAX: usize = 5;

impl Head {
    /// The head as bytes.
    #[must_use]
    pub fn encode(self) -> [u8; HEAD_LEN] {
        let mut bytes = [0; HEAD_LEN];
        put(&mut bytes, 0, &self.group.to_le_bytes());
        put(&mut bytes, 2, &self.root.to_le_bytes());
        put(&mut bytes, 4, &self.epoch.to_le_bytes());
        bytes
    }

    /// The head of a frame and what follows it; none of a frame that is too short.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (head, rest) = bytes.split_at_checked(HEAD_LEN)?;
        let (group, root, epoch) = (u16_at(head, 0), u16_at(head, 2), u32_at(head, 4));
        Some((Self { group, root, epoch }, rest))
    }
}

impl Frame {
    /// The frame with its head: kind, bytes, and how many of them.
    #[must_use]
    pub fn encode(&self, head: Head) -> (u16, [u8; HEAD_LEN + 8 * WORDS_MAX], usize) {
        let (kind, words, count) = match *self {
            Self::Hold(Held { entries, blocks }) => {
                (HOLD, [entries, blocks.base, blocks.mask, 0, 0], 3)
            }
            Self::Ack { entries, blocks, epochs } => (ACK, [entries, blocks, epochs, 0, 0], 3),
            Self::Need { next } => (NEED, [next, 0, 0, 0, 0], 1),
            Self::Report(Report { held: Held { entries, blocks }, epochs, footing }) => {
                (REPORT, [entries, blocks.base, blocks.mask, epochs, footing as u64], 5)
            }
            Self::Sync(Sync { arrived, released, epochs }) => {
                (SYNC, [arrived, released, epochs, 0, 0], 3)
            }
            Self::Agree(Agree { list, sizes, live, epochs, heard, fresh }) => {
                (AGREE, [list, sizes, live, epochs, u64::from(heard) | u64::from(fresh) << 1], 5)
            }
            Self::Welcome(Welcome { entries, blocks, released, gathers, since }) => {
                (WELCOME, [entries, blocks, released, gathers, since], 5)
            }
        };
        let mut bytes = [0; HEAD_LEN + 8 * WORDS_MAX];
        put(&mut bytes, 0, &head.encode());
        for (at, word) in words.iter().enumerate() {
            put(&mut bytes, HEAD_LEN + 8 * at, &word.to_le_bytes());
        }
        (kind, bytes, HEAD_LEN + 8 * count)
    }

    /// The frame of `kind` whose head was taken off `words`; none if it is no frame.
    #[must_use]
    pub fn decode(kind: u16, words: &[u8]) -> Option<Self> {
        let word = |at: usize| u64_at(words, 8 * at);
        let held = |at: usize| {
            let blocks = Blocks { base: word(at + 1), mask: word(at + 2) };
            Held { entries: word(at), blocks }
        };
        match (kind, words.len()) {
            (HOLD, 24) => Some(Self::Hold(held(0))),
            (ACK, 24) => Some(Self::Ack { entries: word(0), blocks: word(1), epochs: word(2) }),
            (NEED, 8) => Some(Self::Need { next: word(0) }),
            (REPORT, 40) => {
                let footing = match word(4) {
                    0 => Footing::Frozen,
                    1 => Footing::Closed,
                    2 => Footing::Absent,
                    _ => return None,
                };
                Some(Self::Report(Report { held: held(0), epochs: word(3), footing }))
            }
            (SYNC, 24) if word(0).max(word(1)) <= CALLS_MAX => {
                let (arrived, released, epochs) = (word(0), word(1), word(2));
                Some(Self::Sync(Sync { arrived, released, epochs }))
            }
            (AGREE, 40) if word(4) <= 3 => {
                let (list, sizes, live, epochs) = (word(0), word(1), word(2), word(3));
                let (heard, fresh) = (word(4) & 1 == 1, word(4) & 2 == 2);
                Some(Self::Agree(Agree { list, sizes, live, epochs, heard, fresh }))
            }
            (WELCOME, 40) => {
                let (entries, blocks, released) = (word(0), word(1), word(2));
                let (gathers, since) = (word(3), word(4));
                let is_possible = entries.max(released).max(gathers).max(since) <= CALLS_MAX
                    && blocks <= BLOCKS_MAX;
                let welcome = Welcome { entries, blocks, released, gathers, since };
                is_possible.then_some(Self::Welcome(welcome))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::crc32c;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    fn entry(payload: &[u8]) -> (Entry, Vec<u8>) {
        let entry = Entry {
            seq: 7,
            epoch: 3,
            len: payload.len() as u64,
            first: 5,
            members: 0b111,
            tag: 9,
            ..Entry::default()
        };
        let mut slot = [&[0; ENTRY_LEN], payload].concat();
        entry.seal(&mut slot, crc32c);
        (entry, slot)
    }

    #[test]
    fn an_entry_round_trips_and_a_flipped_byte_is_noticed() {
        let (entry, slot) = entry(b"payload");
        assert_eq!(Entry::open(&mut slot.clone(), crc32c), Some(entry));
        for at in 0..slot.len() {
            let mut torn = slot.clone();
            torn[at] ^= 0x10;
            assert_eq!(Entry::open(&mut torn, crc32c), None, "byte {at}");
            assert_eq!(Entry::open(&mut slot[..at].to_vec(), crc32c), None, "{at} bytes");
        }
    }

    #[test]
    fn a_frame_round_trips_and_no_other_length_is_one() {
        let head = Head { group: 1, root: 2, epoch: 3 };
        let held = Held { entries: 2, blocks: Blocks { base: 4, mask: 5 } };
        for frame in [
            Frame::Hold(held),
            Frame::Ack { entries: 1, blocks: 2, epochs: 3 },
            Frame::Need { next: 9 },
            Frame::Report(Report { held, epochs: 1, footing: Footing::Absent }),
            Frame::Sync(Sync { arrived: 3, released: 2, epochs: 1 }),
            Frame::Agree(Agree { list: 1, sizes: 2, live: 3, epochs: 4, heard: true, fresh: true }),
            Frame::Welcome(Welcome { entries: 1, blocks: 2, released: 3, gathers: 4, since: 5 }),
        ] {
            let (kind, bytes, len) = frame.encode(head);
            let (found, words) = Head::decode(&bytes[..len]).unwrap();
            assert_eq!((found, Frame::decode(kind, words)), (head, Some(frame)));
            for cut in HEAD_LEN..len {
                assert_eq!(Frame::decode(kind, &bytes[HEAD_LEN..cut]), None);
            }
        }
        assert_eq!(Head::decode(&[0; HEAD_LEN - 1]), None);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(
            kind: u16, bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let _ = Frame::decode(kind, &bytes);
            let _ = Entry::open(&mut bytes.clone(), crc32c);
        }

        #[test]
        fn blocks_are_the_set_of_what_was_inserted(
            base in 0..1_u64 << 40, order in proptest::collection::vec(0..=64_u64, 0..200),
        ) {
            let (mut blocks, mut set) = (Blocks { base, mask: 0 }, BTreeSet::new());
            for block in order.into_iter().map(|ahead| base + ahead) {
                if block <= blocks.base + 64 {
                    blocks.insert(block);
                    set.insert(block);
                }
            }
            for block in base..base + 200 {
                prop_assert_eq!(blocks.contains(block), set.contains(&block));
            }
        }
    }
}
