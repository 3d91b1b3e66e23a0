//! The messages of the rendezvous: a head, and behind it a name or a small value.
//!
//! ```text
//!  0    1    2     4     5    6        8    16      20    24    32   40   44    48   112    120
//!  │type│vers│flags│dtype│rank│name_len│step│request│offer│bytes│addr│part│parts│dims│status│crc
//!  124     128                                                                          (digest)
//!  │wait_ms│ name (TENSOR_REQUEST alone) or payload (TENSOR_WRITE with INLINE alone)
//! ```
//!
//! Little-endian. The lane's slot carries the checksum. A field that a type does not use is zero,
//! and a message that differs there is none: what decodes was encoded just so. Type 1 (ACK) does
//! not occur: it is the lane's credit.

use bitflags::bitflags;

use super::{u16_at, u32_at, u64_at};
use crate::mutant::Mutant;

/// V12: the product of the dimensions may wrap.
pub const PRODUCT_UNCHECKED: Mutant = Mutant::new("rendezvous", "V12-product-unchecked", "typed");

/// Length of the head in bytes.
pub const HEAD_LEN: usize = 128;
/// The longest name in bytes.
pub const NAME_LEN_MAX: usize = 512;
/// The longest payload of a TENSOR_WRITE: with it the message fits into a lane's slot.
pub const INLINE_LEN_MAX: usize = 872;
/// The most dimensions of a tensor.
pub const RANK_MAX: usize = 8;
const VERSION: u8 = 1;

mod field {
    pub(super) const FLAGS: usize = 2;
    pub(super) const DTYPE: usize = 4;
    pub(super) const RANK: usize = 5;
    pub(super) const NAME_LEN: usize = 6;
    pub(super) const STEP: usize = 8;
    pub(super) const REQUEST: usize = 16;
    pub(super) const OFFER: usize = 20;
    pub(super) const BYTES: usize = 24;
    pub(super) const REGION: usize = 32;
    /// In the place of the address.
    pub(super) const TOKEN: usize = 32;
    pub(super) const OFFSET: usize = 36;
    pub(super) const PART: usize = 40;
    pub(super) const PARTS: usize = 44;
    pub(super) const DIMS: usize = 48;
    pub(super) const STATUS: usize = 112;
    pub(super) const DIGEST: usize = 120;
    pub(super) const WAIT_MS: usize = 124;
}

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident: $repr:ty {
        $($(#[$each:meta])* $variant:ident = $number:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[repr($repr)]
        pub enum $name {
            $($(#[$each])* $variant = $number,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The one of this number.
            #[must_use]
            pub const fn of(number: $repr) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

numbered! {
    /// What a message is.
    Kind: u8 {
        /// The destination asks for the value of a name.
        TensorRequest = 2,
        /// The source lends the value: where it lies, or that it needs memory to write it to, and
        /// what it is.
        BufferRequest = 3,
        /// The destination lends memory: where the source writes the value.
        BufferResponse = 4,
        /// The source sends the value itself, or has written it where it was lent memory.
        TensorWrite = 5,
        /// The destination needs the lent value no more.
        BufferIdle = 6,
        /// The destination takes its request back.
        Cancel = 7,
        /// The source cannot answer the request.
        Cancelled = 8,
        /// The source's step is over.
        StepOver = 9,
    }
}

numbered! {
    /// How something ended.
    Status: u16 {
        /// Delivered.
        Ok = 0,
        /// By order of the receiver, or at its deadline.
        Cancelled = 1,
        /// The value is not what the receiver asked for.
        Mismatch = 2,
        /// The digest differs.
        Corrupt = 3,
        /// No landing is as long.
        TooLarge = 4,
        /// The source has no room for one more waiter.
        NoSpace = 5,
        /// The key names another boot of the source.
        SourceReborn = 6,
        /// The step was cleaned up.
        StepOver = 7,
        /// The step was aborted.
        Aborted = 8,
    }
}

numbered! {
    /// The type of an element.
    Dtype: u8 {
        /// One byte, 0 or 1.
        Bool = 1,
        /// Unsigned, 8 bits.
        U8 = 2,
        /// Signed, 8 bits.
        I8 = 3,
        /// Unsigned, 16 bits.
        U16 = 4,
        /// Signed, 16 bits.
        I16 = 5,
        /// Unsigned, 32 bits.
        U32 = 6,
        /// Signed, 32 bits.
        I32 = 7,
        /// Unsigned, 64 bits.
        U64 = 8,
        /// Signed, 64 bits.
        I64 = 9,
        /// IEEE 754 binary16.
        F16 = 10,
        /// The upper half of a binary32.
        Bf16 = 11,
        /// IEEE 754 binary32.
        F32 = 12,
        /// IEEE 754 binary64.
        F64 = 13,
        /// 8 bits: 4 of exponent, 3 of mantissa.
        F8E4m3 = 14,
        /// 8 bits: 5 of exponent, 2 of mantissa.
        F8E5m2 = 15,
        /// Two binary32.
        C64 = 16,
        /// Two binary64.
        C128 = 17,
    }
}

impl Dtype {
    /// Bytes of an element.
    #[must_use]
    pub const fn size(self) -> u64 {
        match self {
            Self::Bool | Self::U8 | Self::I8 | Self::F8E4m3 | Self::F8E5m2 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }
}

bitflags! {
    /// How a value comes.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Flags: u16 {
        /// It is dead: there are no bytes.
        const DEAD = 1;
        /// Its bytes follow the head.
        const INLINE = 2;
        /// `digest` is the digest of its bytes.
        const DIGEST = 4;
        /// Its host hands it over: `token` names it there.
        const SAME_HOST = 8;
        /// The destination has lent memory: as long as the last value of that key, or by an answer.
        const WARM = 16;
        /// A part is asked for of the value that `offer` lends, which no memory of a fabric holds.
        const PART = 32;
    }
}

/// Type and dimensions of a tensor; no dimension is a scalar, a dimension of 0 an empty tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    dtype: Dtype,
    rank: u8,
    dims: [u64; RANK_MAX],
}

/// Why there is no such shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BadShape;

impl core::fmt::Display for BadShape {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "more than {RANK_MAX} dimensions, or more bytes than 2^64 - 1")
    }
}

impl core::error::Error for BadShape {}

impl Shape {
    /// A tensor of `dims`.
    ///
    /// # Errors
    /// [`BadShape`]: too many dimensions, or the bytes of all elements exceed a `u64`.
    pub fn new(dtype: Dtype, dims: &[u64]) -> Result<Self, BadShape> {
        let mut all = [0; RANK_MAX];
        all.get_mut(..dims.len()).ok_or(BadShape)?.copy_from_slice(dims);
        let shape = Self { dtype, rank: dims.len() as u8, dims: all };
        shape.checked_bytes().map(|_| shape).ok_or(BadShape)
    }

    /// The type of its elements.
    #[must_use]
    pub const fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Its dimensions.
    #[must_use]
    pub fn dims(&self) -> &[u64] {
        &self.dims[..usize::from(self.rank)]
    }

    /// Bytes of all its elements.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.checked_bytes().unwrap_or(0)
    }

    fn checked_bytes(&self) -> Option<u64> {
        if PRODUCT_UNCHECKED.is_planted() {
            let product = self.dims().iter().copied().fold(1, u64::wrapping_mul);
            return Some(self.dtype.size().wrapping_mul(product));
        }
        self.dims().iter().try_fold(self.dtype.size(), |bytes, dim| bytes.checked_mul(*dim))
    }
}

/// A slot and its generation; generations begin with 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Handle {
    /// Which slot.
    pub slot: u16,
    /// Which use of it.
    pub generation: u16,
}

impl Handle {
    /// No slot.
    pub const NONE: Self = Self { slot: 0, generation: 0 };

    const fn is_some(self) -> bool {
        self.generation != 0
    }

    fn encode(self) -> [u8; 4] {
        (u32::from(self.generation) << 16 | u32::from(self.slot)).to_le_bytes()
    }

    fn decode(bytes: &[u8], offset: usize) -> Self {
        Self { slot: u16_at(bytes, offset), generation: u16_at(bytes, offset + 2) }
    }
}

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Head {
    /// What it is.
    pub kind: Kind,
    /// How the value comes.
    pub flags: Flags,
    /// What the value is.
    pub shape: Option<Shape>,
    /// Bytes of the name that follows.
    pub name_len: u16,
    /// The step.
    pub step: i64,
    /// The destination's slot.
    pub request: Handle,
    /// The source's slot.
    pub offer: Handle,
    /// Bytes of this part.
    pub bytes: u64,
    /// The region in which the value lies.
    pub region: u8,
    /// Where in that region.
    pub offset: u32,
    /// The name of a value that its host hands over, instead of an address.
    pub token: u64,
    /// Which part of the value, from 0.
    pub part: u32,
    /// How many parts there are.
    pub parts: u32,
    /// How it ended.
    pub status: Status,
    /// The digest of the part's bytes.
    pub digest: u32,
    /// How many milliseconds the requester still waits.
    pub wait_ms: u32,
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeadError {
    /// A length, type, version, flag or status is impossible, or an unused byte is not zero.
    BadHead,
    /// The dimensions have no product, or it is not the number of bytes.
    BadShape,
}

impl Head {
    /// A head of this kind with nothing in it.
    #[must_use]
    pub const fn new(kind: Kind, step: i64, (part, parts): (u32, u32)) -> Self {
        Self {
            kind,
            flags: Flags::empty(),
            shape: None,
            name_len: 0,
            step,
            request: Handle::NONE,
            offer: Handle::NONE,
            bytes: 0,
            region: 0,
            offset: 0,
            token: 0,
            part,
            parts,
            status: Status::Ok,
            digest: 0,
            wait_ms: 0,
        }
    }

    /// The head as bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HEAD_LEN] {
        let mut bytes = [0; HEAD_LEN];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &[self.kind as u8, VERSION]);
        put(field::FLAGS, &self.flags.bits().to_le_bytes());
        if let Some(shape) = &self.shape {
            put(field::DTYPE, &[shape.dtype as u8, shape.rank]);
            for (at, dim) in shape.dims.iter().enumerate() {
                put(field::DIMS + 8 * at, &dim.to_le_bytes());
            }
        }
        put(field::NAME_LEN, &self.name_len.to_le_bytes());
        put(field::STEP, &self.step.to_le_bytes());
        put(field::REQUEST, &self.request.encode());
        put(field::OFFER, &self.offer.encode());
        put(field::BYTES, &self.bytes.to_le_bytes());
        if self.flags.contains(Flags::SAME_HOST) {
            put(field::TOKEN, &self.token.to_le_bytes());
        } else {
            put(field::REGION, &[self.region]);
            put(field::OFFSET, &self.offset.to_le_bytes());
        }
        put(field::PART, &self.part.to_le_bytes());
        put(field::PARTS, &self.parts.to_le_bytes());
        put(field::STATUS, &(self.status as u16).to_le_bytes());
        put(field::DIGEST, &self.digest.to_le_bytes());
        put(field::WAIT_MS, &self.wait_ms.to_le_bytes());
        bytes
    }

    /// The head of `message`, a private copy, and the name or the payload behind it.
    ///
    /// # Errors
    /// [`HeadError`].
    pub fn decode(message: &[u8]) -> Result<(Self, &[u8]), HeadError> {
        let (bytes, rest) = message.split_at_checked(HEAD_LEN).ok_or(HeadError::BadHead)?;
        let flags = Flags::from_bits(u16_at(bytes, field::FLAGS)).ok_or(HeadError::BadHead)?;
        let (region, offset, token) = match flags.contains(Flags::SAME_HOST) {
            true => (0, 0, u64_at(bytes, field::TOKEN)),
            false => (bytes[field::REGION], u32_at(bytes, field::OFFSET), 0),
        };
        let head = Self {
            kind: Kind::of(bytes[0]).ok_or(HeadError::BadHead)?,
            flags,
            shape: shape_of(bytes)?,
            name_len: u16_at(bytes, field::NAME_LEN),
            step: u64_at(bytes, field::STEP).cast_signed(),
            request: Handle::decode(bytes, field::REQUEST),
            offer: Handle::decode(bytes, field::OFFER),
            bytes: u64_at(bytes, field::BYTES),
            region,
            offset,
            token,
            part: u32_at(bytes, field::PART),
            parts: u32_at(bytes, field::PARTS),
            status: Status::of(u16_at(bytes, field::STATUS)).ok_or(HeadError::BadHead)?,
            digest: u32_at(bytes, field::DIGEST),
            wait_ms: u32_at(bytes, field::WAIT_MS),
        };
        // Also what no field holds must be zero, and a shape that is absent has no dimensions.
        if head.encode() != *bytes || !head.is_possible(rest.len()) {
            return Err(HeadError::BadHead);
        }
        match head.is_of_its_shape() {
            true => Ok((head, rest)),
            false => Err(HeadError::BadShape),
        }
    }

    /// Whether the type uses these fields, `behind` bytes follow, and the part exists.
    fn is_possible(&self, behind: usize) -> bool {
        let is_name = self.kind == Kind::TensorRequest;
        let is_lent = self.kind == Kind::BufferRequest;
        let is_value = self.kind == Kind::TensorWrite;
        let is_response = self.kind == Kind::BufferResponse;
        let is_warm = is_name && self.flags.contains(Flags::WARM);
        let is_part = is_name && self.flags.contains(Flags::PART);
        let is_idle = self.kind == Kind::BufferIdle;
        let names_offer = is_lent || is_response || is_value || is_idle || is_part;
        let expected = match self.flags {
            _ if is_name => usize::from(self.name_len),
            Flags::INLINE => usize::try_from(self.bytes).unwrap_or(usize::MAX),
            _ => 0,
        };
        let flags = match self.kind {
            Kind::BufferRequest => {
                self.flags.is_empty() || [Flags::DIGEST, Flags::SAME_HOST].contains(&self.flags)
            }
            Kind::TensorWrite => {
                self.flags.is_empty()
                    || [Flags::DEAD, Flags::INLINE, Flags::DIGEST].contains(&self.flags)
            }
            Kind::TensorRequest => Flags::WARM.union(Flags::PART).contains(self.flags),
            Kind::Cancel => self.flags.is_empty() || self.flags == Flags::WARM,
            _ => self.flags.is_empty(),
        };
        let has_shape = is_lent || (is_value && self.flags != Flags::DEAD);
        let status = match self.kind {
            Kind::BufferIdle => true,
            Kind::Cancelled | Kind::StepOver => self.status != Status::Ok,
            _ => self.status == Status::Ok,
        };
        flags
            && status
            && behind == expected
            && (behind <= INLINE_LEN_MAX)
            && self.request.is_some()
            && self.offer.is_some() == names_offer
            && (names_offer || self.offer == Handle::NONE)
            && (1..=NAME_LEN_MAX).contains(&usize::from(self.name_len)) == is_name
            && (is_name || (self.name_len == 0 && self.wait_ms == 0))
            && (is_lent || is_response || is_warm || (self.region == 0 && self.offset == 0))
            && (self.flags.contains(Flags::DIGEST) || self.digest == 0)
            && (self.shape.is_some() == has_shape)
            && (has_shape || (self.bytes > 0) == is_warm)
            && self.part < self.parts
    }

    /// Whether its bytes are those of its shape, or of a part of it.
    fn is_of_its_shape(&self) -> bool {
        // What a destination lends has no shape yet.
        let Some(shape) = self.shape else { return true };
        let all = shape.bytes();
        if self.parts == 1 { self.bytes == all } else { self.bytes <= all }
    }
}

fn shape_of(bytes: &[u8]) -> Result<Option<Shape>, HeadError> {
    let number = bytes[field::DTYPE];
    if number == 0 {
        return Ok(None);
    }
    let dtype = Dtype::of(number).ok_or(HeadError::BadShape)?;
    let mut dims = [0; RANK_MAX];
    let rank = usize::from(bytes[field::RANK]);
    let dims = dims.get_mut(..rank).ok_or(HeadError::BadShape)?;
    for (at, dim) in dims.iter_mut().enumerate() {
        *dim = u64_at(bytes, field::DIMS + 8 * at);
    }
    Shape::new(dtype, dims).map(Some).map_err(|BadShape| HeadError::BadShape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const ASK: Kind = Kind::TensorRequest;
    const HANDLE: Handle = Handle { slot: 3, generation: 7 };

    /// One message of each kind and form.
    fn messages() -> Vec<(Head, &'static [u8])> {
        let head = |kind| Head { request: HANDLE, ..Head::new(kind, -4, (0, 1)) };
        let shape = Shape::new(Dtype::U16, &[1, 2]).unwrap();
        let lent = Head {
            shape: Some(shape),
            bytes: 4,
            region: 9,
            offset: 64,
            offer: HANDLE,
            ..head(Kind::BufferRequest)
        };
        let value = Head { offer: HANDLE, ..head(Kind::TensorWrite) };
        let inline = Head { flags: Flags::INLINE, shape: Some(shape), bytes: 4, ..value };
        let part = Head { bytes: 2, part: 1, parts: 2, ..inline };
        [
            (Head { name_len: 3, wait_ms: 10, ..head(Kind::TensorRequest) }, &b"abc"[..]),
            (lent, b""),
            (Head { flags: Flags::DIGEST, digest: 77, ..lent }, b""),
            (Head { flags: Flags::SAME_HOST, region: 0, offset: 0, token: 1 << 40, ..lent }, b""),
            (Head { offer: HANDLE, region: 3, offset: 64, ..head(Kind::BufferResponse) }, b""),
            (Head { flags: Flags::WARM, name_len: 3, region: 3, bytes: 9, ..head(ASK) }, b"abc"),
            (
                Head { flags: Flags::PART, offer: HANDLE, name_len: 3, parts: 9, ..head(ASK) },
                b"abc",
            ),
            (Head { flags: Flags::empty(), ..inline }, b""),
            (Head { flags: Flags::DIGEST, digest: 78, ..inline }, b""),
            (inline, b"data"),
            (part, b"da"),
            (Head { flags: Flags::DEAD, ..value }, b""),
            (Head { offer: HANDLE, status: Status::Mismatch, ..head(Kind::BufferIdle) }, b""),
            (head(Kind::Cancel), b""),
            (Head { flags: Flags::WARM, ..head(Kind::Cancel) }, b""),
            (Head { status: Status::SourceReborn, ..head(Kind::Cancelled) }, b""),
            (Head { status: Status::Aborted, ..head(Kind::StepOver) }, b""),
        ]
        .into()
    }

    #[test]
    fn a_message_round_trips_and_no_other_length_is_one() {
        for (head, behind) in messages() {
            let message = [&head.encode()[..], behind].concat();
            assert_eq!(Head::decode(&message), Ok((head, behind)));
            for cut in 0..message.len() {
                assert!(Head::decode(&message[..cut]).is_err(), "{head:?} cut at {cut}");
            }
            assert!(Head::decode(&[&message[..], b"x"].concat()).is_err(), "{head:?}");
        }
    }

    #[test]
    fn what_decodes_with_a_flipped_byte_was_encoded_just_so() {
        for (head, behind) in messages() {
            let message = [&head.encode()[..], behind].concat();
            for at in 0..HEAD_LEN {
                let mut other = message.clone();
                other[at] ^= 0x11;
                if let Ok((decoded, _)) = Head::decode(&other) {
                    assert_eq!(decoded.encode(), other[..HEAD_LEN], "byte {at}");
                    assert_ne!(decoded, head, "byte {at}");
                }
            }
        }
    }

    /// V12: dimensions whose product wraps to the number of bytes are no shape.
    #[test]
    fn a_product_that_overflows_is_no_shape() {
        assert_eq!(Shape::new(Dtype::U64, &[1 << 61]), Err(BadShape));
        assert_eq!(Shape::new(Dtype::U8, &[1 << 63, 2, 3]), Err(BadShape));
        assert_eq!(Shape::new(Dtype::U8, &[1; 9]), Err(BadShape));
        assert_eq!(Shape::new(Dtype::C128, &[]).map(|it| it.bytes()), Ok(16));
        assert_eq!(Shape::new(Dtype::F32, &[5, 0]).map(|it| it.bytes()), Ok(0));
    }

    #[test]
    fn bytes_that_are_not_the_products_are_a_bad_shape() {
        let (mut head, _) = messages()[1];
        head.bytes = 5;
        assert_eq!(Head::decode(&head.encode()), Err(HeadError::BadShape));
    }

    #[test]
    fn a_part_behind_the_last_is_a_bad_head() {
        let (mut head, _) = messages()[1];
        head.part = 1;
        assert_eq!(Head::decode(&head.encode()), Err(HeadError::BadHead));
    }

    #[test]
    fn types_are_as_long_as_their_names_say() {
        let sizes: Vec<_> = Dtype::ALL.iter().map(|dtype| dtype.size()).collect();
        assert_eq!(sizes, [1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1, 8, 16]);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..1100)) {
            let _ = Head::decode(&bytes);
        }

        #[test]
        fn a_damaged_message_is_itself_or_none(
            which in 0..16_usize, at in 0..HEAD_LEN, byte: u8,
        ) {
            let (head, behind) = messages()[which];
            let mut message = [&head.encode()[..], behind].concat();
            message[at] = byte;
            if let Ok((decoded, _)) = Head::decode(&message) {
                prop_assert_eq!(&decoded.encode()[..], &message[..HEAD_LEN]);
            }
        }
    }
}
