//! What the two ends of a pair must know of each other, as bytes.
//!
//! Bootstrap carries an [`End`] from one endpoint to the other, authenticated: a sender that can
//! forge one can name memory that was never granted to it, and reads there what the device allows.
//! An end is good for one pair of one incarnation, and useless afterwards: its queue pair is gone.
//!
//! ```text
//!   0   version = 1         8   queue pair, u32       32   path MTU, u8
//!   1   0                   12  first packet, u32     33   reads answered at once, u8
//!   2   local id, u16       16  address (GID), 16 B   34   count of regions, u16
//!   4   0, 0, 0, 0                                    36   count × { 0 or 1, u32
//!                                                             key, u32
//!   integers little-endian                                    address, u64 }
//! ```
//!
//! Every region of the layout has its place, in order; one without a grant is all zeros. Decoding
//! believes nothing: lengths, counts, ranges and unused bytes are checked.

use weft_core::fabric::{Layout, Region};

use crate::Gid;

const VERSION: u8 = 1;
const HEAD_LEN: usize = 36;
const GRANT_LEN: usize = 16;
/// Queue-pair and packet numbers have 24 bits.
pub(crate) const NUMBER_MAX: u32 = (1 << 24) - 1;
/// The codes of 256 and of 4096 bytes.
const MTU_CODES: std::ops::RangeInclusive<u8> = 1..=5;

/// The right to a region: where it begins, and the key that opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The address of its first byte, in the granting endpoint's own terms.
    pub address: u64,
    /// The remote key.
    pub key: u32,
}

/// One end of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The queue pair's number.
    pub queue_pair: u32,
    /// The number of its first packet: random, so that packets of an earlier incarnation do not
    /// fit.
    pub first_packet: u32,
    /// The port's local identifier; 0 on Ethernet.
    pub local_id: u16,
    /// The port's address.
    pub gid: Gid,
    /// The largest packet, as verbs number it: 1 for 256 bytes to 5 for 4096.
    pub mtu: u8,
    /// How many reads and atomics the device answers at once.
    pub reads_answered: u8,
    /// What the receiver of this end may reach, region by region.
    pub grants: Vec<Option<Grant>>,
}

/// The end that this endpoint has prepared, to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalEnd(pub End);

/// The end that a peer has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteEnd(pub End);

/// Why an end is refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndError {
    /// Fewer or more bytes than its count of regions says.
    #[error("the end of a pair is cut off at {found} bytes")]
    Length {
        /// How many there are.
        found: usize,
    },
    /// Not a version that this driver speaks.
    #[error("the end of a pair has version {0}, not {VERSION}")]
    Version(u8),
    /// A number, a size of packets or a count of reads that no device has.
    #[error("the end of a pair has a number that no device has")]
    OutOfRange,
    /// Bytes that are to be zero and are not.
    #[error("the end of a pair has stray bytes")]
    Padding,
    /// Not as many regions as the layout has.
    #[error("the end of a pair has {found} regions, the layout {expected}")]
    Regions {
        /// How many the layout has.
        expected: usize,
        /// How many the end has.
        found: usize,
    },
    /// A region that would leave the address space.
    #[error("region {} has no possible address", .0.0)]
    Address(Region),
}

impl LocalEnd {
    /// The bytes to send.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self(end) = self;
        let mut bytes = Vec::with_capacity(HEAD_LEN + end.grants.len() * GRANT_LEN);
        bytes.extend([VERSION, 0]);
        bytes.extend(end.local_id.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(end.queue_pair.to_le_bytes());
        bytes.extend(end.first_packet.to_le_bytes());
        bytes.extend(end.gid.0);
        bytes.extend([end.mtu, end.reads_answered]);
        // A layout holds at most 128 regions.
        bytes.extend(u16::try_from(end.grants.len()).unwrap_or(u16::MAX).to_le_bytes());
        for grant in &end.grants {
            let Grant { address, key } = grant.unwrap_or(Grant { address: 0, key: 0 });
            bytes.extend(u32::from(grant.is_some()).to_le_bytes());
            bytes.extend(key.to_le_bytes());
            bytes.extend(address.to_le_bytes());
        }
        bytes
    }
}

impl RemoteEnd {
    /// The end that a peer has sent.
    ///
    /// # Errors
    /// [`EndError`]: the bytes are no end of a pair.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, EndError> {
        let cut = EndError::Length { found: bytes.len() };
        let (head, rest) = bytes.split_first_chunk::<HEAD_LEN>().ok_or(cut)?;
        if head[0] != VERSION {
            return Err(EndError::Version(head[0]));
        }
        if head[1] != 0 || head[4..8] != [0; 4] {
            return Err(EndError::Padding);
        }
        let (grants, stray) = rest.as_chunks::<GRANT_LEN>();
        if !stray.is_empty() || grants.len() != usize::from(u16::from_le_bytes(at(head, 34))) {
            return Err(cut);
        }
        let end = End {
            local_id: u16::from_le_bytes(at(head, 2)),
            queue_pair: u32::from_le_bytes(at(head, 8)),
            first_packet: u32::from_le_bytes(at(head, 12)),
            gid: Gid(at(head, 16)),
            mtu: head[32],
            reads_answered: head[33],
            grants: grants.iter().map(grant).collect::<Result<_, _>>()?,
        };
        end.check_numbers()?;
        Ok(Self(end))
    }
}

fn grant(bytes: &[u8; GRANT_LEN]) -> Result<Option<Grant>, EndError> {
    match (u32::from_le_bytes(at(bytes, 0)), &bytes[4..]) {
        (0, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]) => Ok(None),
        (1, _) => Ok(Some(Grant {
            key: u32::from_le_bytes(at(bytes, 4)),
            address: u64::from_le_bytes(at(bytes, 8)),
        })),
        (_, _) => Err(EndError::Padding),
    }
}

/// The `N` bytes from `from`, both fixed by the drawing above.
fn at<const N: usize>(bytes: &[u8], from: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[from + index])
}

impl End {
    fn check_numbers(&self) -> Result<(), EndError> {
        let fits = self.queue_pair <= NUMBER_MAX && self.first_packet <= NUMBER_MAX;
        let has_sizes = MTU_CODES.contains(&self.mtu) && self.reads_answered > 0;
        if fits && has_sizes { Ok(()) } else { Err(EndError::OutOfRange) }
    }

    /// Whether it can be the other end of a pair over `layout`.
    ///
    /// # Errors
    /// [`EndError`].
    pub fn check(&self, layout: &Layout) -> Result<(), EndError> {
        self.check_numbers()?;
        let (expected, found) = (layout.regions().len(), self.grants.len());
        if expected != found {
            return Err(EndError::Regions { expected, found });
        }
        for (number, (grant, spec)) in (0..).zip(self.grants.iter().zip(layout.regions())) {
            let leaves =
                grant.is_some_and(|grant| grant.address.checked_add(u64::from(spec.len)).is_none());
            if leaves {
                return Err(EndError::Address(Region(number)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
