//! What a caller asks for, what becomes of it, and why something is refused.

use core::fmt;

use super::key::BadKey;
use crate::fabric::At;
use crate::ids::Peer;
use crate::wire::rendezvous::{BadShape, Dtype, Handle, Shape};

/// A receive, until it is released, or has ended and its memory is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(pub(super) Handle);

/// A value that was sent, until it is consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OfferId(pub(super) Handle);

macro_rules! bits {
    ($($name:ident)*) => {$(
        impl $name {
            /// It as a number, for a language that has no such type.
            #[must_use]
            pub const fn to_bits(self) -> u32 {
                (self.0.slot as u32) << 16 | self.0.generation as u32
            }

            /// The one that [`Self::to_bits`] made `bits` from; of other bits one that is refused.
            #[must_use]
            #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
            pub const fn from_bits(bits: u32) -> Self {
                Self(Handle { slot: (bits >> 16) as u16, generation: bits as u16 })
            }
        }
    )*};
}

bits!(RequestId OfferId);

/// Which value of a key: its step, and the part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The step.
    pub step: i64,
    /// Which part, from 0.
    pub part: u32,
    /// How many parts there are.
    pub parts: u32,
}

impl Place {
    /// A value that is one part.
    #[must_use]
    pub const fn whole(step: i64) -> Self {
        Self { step, part: 0, parts: 1 }
    }
}

/// Memory for a value that is about to be sent: [`Adapter::send`](super::Adapter::send) takes it,
/// [`Adapter::discard`](super::Adapter::discard) gives it back.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Draft {
    pub(super) offer: Handle,
    pub(super) at: At,
    pub(super) bytes: u64,
}

impl Draft {
    /// Where the bytes go.
    #[must_use]
    pub const fn at(&self) -> At {
        self.at
    }

    /// How many bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A value that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tensor {
    /// What it is; of a part, what the whole is.
    pub shape: Shape,
    /// Where its bytes lie until it is released.
    pub at: At,
    /// How many bytes.
    pub bytes: u64,
}

/// What a receiver takes; another value ends the receive and stays at its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Expect {
    /// Elements of this type alone.
    pub dtype: Option<Dtype>,
    /// This shape alone.
    pub shape: Option<Shape>,
    /// At most so many bytes.
    pub bytes_max: Option<u64>,
}

impl Expect {
    /// Any value.
    #[must_use]
    pub const fn any() -> Self {
        Self { dtype: None, shape: None, bytes_max: None }
    }

    pub(super) fn is_met(&self, shape: &Shape, bytes: u64) -> bool {
        self.dtype.is_none_or(|dtype| dtype == shape.dtype())
            && self.shape.is_none_or(|expected| expected == *shape)
            && self.bytes_max.is_none_or(|most| bytes <= most)
    }
}

/// How a receive ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Received {
    /// The value is there, until it is released.
    Value,
    /// The value is dead. There is nothing to release.
    Dead,
    /// Its deadline passed.
    TimedOut,
    /// By order.
    Cancelled,
    /// The step was aborted, here or at the source.
    Aborted,
    /// The source's incarnation ended, or was lost.
    PeerGone,
    /// The key names another boot of the source.
    SourceReborn,
    /// The value is not what was expected, but this; it stays at its source.
    Mismatch(Shape),
    /// Its bytes have another digest than at the source, where it stays.
    Corrupt,
    /// The value is longer than all landings together, and stays at its source.
    TooLarge,
    /// The step was cleaned up, here or at the source.
    StepOver,
    /// The source has no room for one more receive that waits.
    NoSpace,
    /// The host could not hand the value over; it stays at its source.
    NotHandedOver,
}

/// A value that no memory of the fabric holds. Where one host has both ends the caller fetches it
/// by its token, and then calls
/// [`Adapter::handle_handed_over`](super::Adapter::handle_handed_over); elsewhere it comes in parts
/// ([`Adapter::fetch_parts`](super::Adapter::fetch_parts)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HandOver {
    /// For which receive.
    pub request: RequestId,
    /// Who has it.
    pub source: Peer,
    /// What its source calls it.
    pub token: u64,
    /// What it is.
    pub shape: Shape,
}

/// A part of a value that its destination fetches in parts: its source copies those bytes for
/// [`Adapter::lend_part`](super::Adapter::lend_part).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartWanted {
    pub(super) waiter: Handle,
    /// What the source calls the value.
    pub token: u64,
    /// Where the part begins in the value, in bytes.
    pub offset: u64,
    /// How many bytes it has.
    pub bytes: u64,
}

/// A part that has landed: the destination copies it, and releases `part`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LandedPart {
    /// The receive of the value.
    pub request: RequestId,
    /// The part, to be released.
    pub part: RequestId,
    /// Where the part begins in the value, in bytes.
    pub offset: u64,
    /// Where its bytes lie until it is released.
    pub at: At,
    /// How many bytes it has.
    pub bytes: u64,
}

/// What a caller learns by [`Adapter::poll_event`](super::Adapter::poll_event).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RendezvousEvent {
    /// A receive ended: exactly once for each, at its deadline at the latest.
    Ended {
        /// Which.
        request: RequestId,
        /// How.
        outcome: Received,
    },
    /// No byte of its memory can change any more: exactly once for each, after `Ended`.
    Returned {
        /// Which.
        request: RequestId,
    },
    /// The receiver has a value; its memory here is free.
    Consumed {
        /// Which.
        offer: OfferId,
    },
}

/// Why a value was not sent. The caller still has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OfferError {
    /// There are as many offers as there are slots.
    Full,
    /// The value is longer than all offers together.
    TooLong,
    /// No free piece of the offers is as long.
    NoSpace,
    /// The name is no key.
    BadKey(BadKey),
    /// The key names another source, another boot of it, or no peer as destination.
    NotMine,
    /// There is no such shape, no such part, or the bytes are not those of the shape.
    BadShape,
    /// The step was cleaned up.
    StepOver,
    /// The step was aborted.
    Aborted,
}

/// Why a receive was not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiveError {
    /// There are as many requests as there are slots.
    Full,
    /// The key names another destination, or no peer as source.
    NotMine,
    /// There is no such part.
    NoPart,
    /// The source was removed.
    PeerGone,
    /// The step was cleaned up.
    StepOver,
    /// The step was aborted.
    Aborted,
}

/// There is no such request, or it cannot be released before its end was polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnknownRequest;

impl From<BadShape> for OfferError {
    fn from(BadShape: BadShape) -> Self {
        Self::BadShape
    }
}

impl From<BadKey> for OfferError {
    fn from(why: BadKey) -> Self {
        Self::BadKey(why)
    }
}

impl fmt::Display for OfferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "all offers are taken",
            Self::TooLong => "the value is longer than all offers together",
            Self::NoSpace => "no free piece of the offers is as long as the value",
            Self::BadKey(why) => return why.fmt(f),
            Self::NotMine => "the key names another source or no peer",
            Self::BadShape => "shape, part and bytes do not agree",
            Self::StepOver => "the step was cleaned up",
            Self::Aborted => "the step was aborted",
        })
    }
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "all requests are taken",
            Self::NotMine => "the key names another destination or no peer",
            Self::NoPart => "there is no such part",
            Self::PeerGone => "the source was removed",
            Self::StepOver => "the step was cleaned up",
            Self::Aborted => "the step was aborted",
        })
    }
}

impl fmt::Display for UnknownRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no such request, or its end was not polled yet")
    }
}

impl core::error::Error for OfferError {}
impl core::error::Error for ReceiveError {}
impl core::error::Error for UnknownRequest {}

/// Why a peer's message was dropped. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum MessageReject {
    /// It is no message, or its name is no key.
    BadHead,
    /// The value does not lie where the source's offers do.
    BadAddress,
    /// There is no such slot, or it is empty.
    BadSlot,
    /// The slot was used again since.
    StaleGeneration,
    /// It is about another member's value or request.
    NotMine,
    /// The dimensions do not agree with the bytes.
    BadShape,
    /// It does not fit the state of the slot.
    Unexpected,
}

/// How many messages were dropped, for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MessageRejects {
    counts: [u64; 7],
}

impl MessageRejects {
    pub(super) const fn count(&mut self, why: MessageReject) {
        self.counts[why as usize] += 1;
    }

    /// How many were dropped for `why`.
    #[must_use]
    pub const fn of(&self, why: MessageReject) -> u64 {
        self.counts[why as usize]
    }

    /// How many were dropped.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}
