//! The proof that an origin equivocated: two messages that it signed under one number. It is
//! verified with the origin's public key, and only the origin's secret key can produce it.

use core::cmp::Ordering;
use core::fmt;

use ed25519_dalek::VerifyingKey;

use super::authority::PublicKey;
use super::statement::{Context, Statement};
use crate::ids::Peer;

/// The version of a proof that is written, and the only one that is read.
pub(super) const VERSION: u32 = 2;

/// Two statements of one origin under one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Equivocation<'a> {
    /// The run of the cluster that the signatures are bound to.
    pub session: u64,
    /// The origin that signed both.
    pub origin: Peer,
    /// Their common number.
    pub seq: u64,
    /// The message of one member: the lesser of the two by tag, then by payload.
    pub one: Statement<'a>,
    /// The message of another member.
    pub other: Statement<'a>,
}

/// Why a proof is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProofError {
    /// The key is not a public key.
    Key,
    /// One of the two is not a slot of the signed form.
    Slot,
    /// The two are not about the same number of the same origin.
    Unrelated,
    /// The two say the same.
    Same,
    /// The greater of the two comes first: one proof has one form.
    Order,
    /// One of the two is not signed by that key for that session.
    Signature,
    /// The bytes do not begin like a proof.
    Magic,
    /// The proof has a form that this build does not read.
    Version(u32),
    /// The proof is shorter or longer than its content.
    Length,
    /// The proof has a different key from the one that is known to be the origin's.
    OtherKey,
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version(version) => {
                return write!(f, "a proof of version {version}, not {VERSION}");
            }
            Self::Key => "the public key is none",
            Self::Slot => "one of the two is no signed slot",
            Self::Unrelated => "the slots have different origins or numbers",
            Self::Same => "the two messages are the same",
            Self::Order => "the two messages are not in their order",
            Self::Signature => "a message is not signed by that key for that session",
            Self::Magic => "the bytes are no proof of equivocation",
            Self::Length => "the proof is cut off or has something behind it",
            Self::OtherKey => "the proof is by another key than the one given",
        })
    }
}

impl core::error::Error for ProofError {}

impl<'a> Equivocation<'a> {
    /// From the copies of two slots, in any order. Checks only that they have the same origin and
    /// number.
    ///
    /// # Errors
    /// [`ProofError::Slot`], [`ProofError::Unrelated`].
    pub fn of(session: u64, one: &'a [u8], other: &'a [u8]) -> Result<Self, ProofError> {
        let (header, one) = Statement::of(one).map_err(|_| ProofError::Slot)?;
        let (second, other) = Statement::of(other).map_err(|_| ProofError::Slot)?;
        let (origin, seq) = (header.stamp.origin, header.stamp.seq);
        if (origin, seq) != (second.stamp.origin, second.stamp.seq) {
            return Err(ProofError::Unrelated);
        }
        let (one, other) = if said(&other) < said(&one) { (other, one) } else { (one, other) };
        Ok(Self { session, origin, seq, one, other })
    }

    /// The origin that equivocated and the number, if `public` is that origin's key.
    ///
    /// # Errors
    /// [`ProofError`].
    pub fn verify(&self, public: &PublicKey) -> Result<(Peer, u64), ProofError> {
        let key = VerifyingKey::from_bytes(public).map_err(|_| ProofError::Key)?;
        match said(&self.one).cmp(&said(&self.other)) {
            Ordering::Less => {}
            Ordering::Equal => return Err(ProofError::Same),
            Ordering::Greater => return Err(ProofError::Order),
        }
        let Self { session, origin, seq, one, other } = *self;
        let context = Context { session, origin, seq };
        if [one, other].iter().all(|statement| statement.is_signed(context, &key)) {
            Ok((origin, seq))
        } else {
            Err(ProofError::Signature)
        }
    }
}

const fn said<'a>(statement: &Statement<'a>) -> (u64, &'a [u8]) {
    (statement.tag, statement.payload)
}
