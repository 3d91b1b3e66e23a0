//! The image of a script: header, words, strings, lines.
//!
//! ```text
//!   0  magic "WRL1"      │  4 version u16 = 1   │  6 flags u16 (bit 0: lines)
//!   8  words u16         │ 10 tasks u16         │ 12 nodes u8 │ 13 groups u8
//!  14  watchdogs u8      │ 15 N-versions u8     │ 16 length of the pool u16
//!  18  lines u16         │ 20 source digest u64 │ 28 CRC-32C u32 of all but itself
//!  32  words, 8 bytes each │ pool: each string behind its length, a byte │ lines, u16 each
//! ```
//!
//! Little-endian throughout. A [`Rcode`] has the lengths that its header says and an intact
//! checksum; what the words mean is for the verifier.

use super::limits::{IMAGE_MAX, POOL_MAX, TEXT_MAX, WORDS_MAX};
use super::{Reason, Rejected, Word};
use crate::checksum::crc32c_of;

const MAGIC: [u8; 4] = *b"WRL1";
const VERSION: u16 = 1;
const FLAG_LINES: u16 = 1;
const CRC_AT: usize = 28;

/// The first bytes of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Header {
    /// How many words it has.
    pub words: u16,
    /// How many tasks are declared.
    pub tasks: u16,
    /// How many nodes the cluster has.
    pub nodes: u8,
    /// How many groups are declared.
    pub groups: u8,
    /// How many watchdogs are declared.
    pub watchdogs: u8,
    /// How many N-version tasks are declared.
    pub nversions: u8,
    /// The length of the string pool in bytes.
    pub pool_len: u16,
    /// How many lines it has: as many as words, or none.
    pub lines: u16,
    /// The digest of the source.
    pub source: u64,
}

impl Header {
    /// The length in bytes.
    pub const LEN: usize = 32;

    /// The header as bytes, with a checksum of 0: see [`seal`].
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &MAGIC);
        put(4, &VERSION.to_le_bytes());
        put(6, &(if self.lines == 0 { 0 } else { FLAG_LINES }).to_le_bytes());
        put(8, &self.words.to_le_bytes());
        put(10, &self.tasks.to_le_bytes());
        put(12, &[self.nodes, self.groups, self.watchdogs, self.nversions]);
        put(16, &self.pool_len.to_le_bytes());
        put(18, &self.lines.to_le_bytes());
        put(20, &self.source.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let [.., s0, s1, s2, s3, s4, s5, s6, s7, _, _, _, _] = *bytes;
        Self {
            words: short(8),
            tasks: short(10),
            nodes: bytes[12],
            groups: bytes[13],
            watchdogs: bytes[14],
            nversions: bytes[15],
            pool_len: short(16),
            lines: short(18),
            source: u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]),
        }
    }

    /// The length of the image.
    #[must_use]
    pub fn image_len(&self) -> usize {
        let [words, pool, lines] = [self.words, self.pool_len, self.lines].map(usize::from);
        Self::LEN + words * Word::LEN + pool + lines * 2
    }
}

/// Writes the checksum of `image` into its header; does nothing if it is shorter than one.
pub fn seal(image: &mut [u8]) {
    if image.len() >= Header::LEN {
        let crc = checksum(image);
        image[CRC_AT..Header::LEN].copy_from_slice(&crc.to_le_bytes());
    }
}

/// CRC-32C of all but the field that holds it.
fn checksum(image: &[u8]) -> u32 {
    let (head, rest) = image.split_at(CRC_AT);
    crc32c_of(&[head, rest.split_at(4).1])
}

/// The bytes of an image whose lengths and checksum are right.
#[derive(Clone, Copy, Debug)]
pub struct Rcode<'a> {
    header: Header,
    words: &'a [u8],
    pool: &'a [u8],
    lines: &'a [u8],
}

impl<'a> Rcode<'a> {
    /// Looks at the header, the lengths and the checksum of `image`.
    ///
    /// # Errors
    /// [`Reason::Length`], [`Reason::Magic`], [`Reason::Version`], [`Reason::Checksum`],
    /// [`Reason::Limit`].
    pub fn new_checked(image: &'a [u8]) -> Result<Self, Rejected> {
        let refuse = |reason| Err(Rejected { word: 0, reason });
        let Some((head, rest)) = image.split_first_chunk::<{ Header::LEN }>() else {
            return refuse(if image.starts_with(&MAGIC) { Reason::Length } else { Reason::Magic });
        };
        if !head.starts_with(&MAGIC) {
            return refuse(Reason::Magic);
        }
        let header = Header::from_bytes(head);
        let flags = if header.lines == 0 { 0 } else { FLAG_LINES };
        let [version, found] = [4, 6].map(|at| u16::from_le_bytes([head[at], head[at + 1]]));
        if version != VERSION || found != flags {
            return refuse(Reason::Version);
        }
        if image.len() > IMAGE_MAX
            || image.len() != header.image_len()
            || ![0, header.words].contains(&header.lines)
        {
            return refuse(Reason::Length);
        }
        if checksum(image).to_le_bytes() != head[CRC_AT..] {
            return refuse(Reason::Checksum);
        }
        if usize::from(header.words) > WORDS_MAX || usize::from(header.pool_len) > POOL_MAX {
            return refuse(Reason::Limit);
        }
        let (words, rest) = rest.split_at(usize::from(header.words) * Word::LEN);
        let (pool, lines) = rest.split_at(usize::from(header.pool_len));
        Ok(Self { header, words, pool, lines })
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Identifies the image: another one has another number, and none has 0.
    #[must_use]
    pub fn digest(&self) -> u64 {
        // The source's digest tells scripts apart, the checksum what they were translated to.
        let all = [self.words, self.pool, self.lines];
        let crc = u64::from(crc32c_of(&all)) << 32 | u64::from(crc32c_of(&all[..1]));
        (self.header.source.rotate_left(17) ^ crc).max(1)
    }

    /// The word at `index`.
    #[inline]
    #[must_use]
    pub fn word(&self, index: u16) -> Option<Word> {
        let bytes = self.words.get(usize::from(index) * Word::LEN..)?.first_chunk()?;
        Some(Word::from_bytes(*bytes))
    }

    /// The string at `offset` of the pool, if one of at most [`TEXT_MAX`] bytes lies there.
    #[must_use]
    pub fn text(&self, offset: u16) -> Option<&'a str> {
        let (len, rest) = self.pool.get(usize::from(offset)..)?.split_first()?;
        let len = usize::from(*len);
        let bytes = rest.get(..len).filter(|_| len <= TEXT_MAX)?;
        core::str::from_utf8(bytes).ok()
    }

    /// The line of the source that the word at `index` is of, if the image has lines.
    #[must_use]
    pub fn line(&self, index: u16) -> Option<u16> {
        let bytes = self.lines.get(usize::from(index) * 2..)?.first_chunk()?;
        Some(u16::from_le_bytes(*bytes))
    }
}
