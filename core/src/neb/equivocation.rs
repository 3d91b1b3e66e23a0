//! The proof that an origin equivocated: two slots that it signed, alike in number and not in
//! content. Whoever has its public key can check it, and nobody else can make it.

use core::fmt;

use ed25519_dalek::VerifyingKey;

use super::authority::{PublicKey, is_signed};
use crate::ids::Peer;
use crate::wire::broadcast::{HEADER_LEN, Header};

/// Two slots of one origin with one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Equivocation<'a> {
    /// The run of the cluster that the signatures are bound to.
    pub session: u64,
    /// Header, payload and signature of what one member has.
    pub one: &'a [u8],
    /// And of what another has.
    pub other: &'a [u8],
}

/// Why a proof proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProofError {
    /// The key is none.
    Key,
    /// One of the two is no slot.
    Slot,
    /// The two are not about the same number of the same origin.
    Unrelated,
    /// The two say the same.
    Same,
    /// One of the two is not signed by that key for that session.
    Signature,
    /// The bytes do not begin as a proof does.
    Magic,
    /// The proof has a form that this build does not read.
    Version(u32),
    /// The proof is cut off, or longer than what it says is in it.
    Length,
    /// The proof is by another key than the one that is known to be the origin's.
    OtherKey,
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version(version) => return write!(f, "a proof of version {version}, not 1"),
            Self::Key => "the public key is none",
            Self::Slot => "one of the two is no slot",
            Self::Unrelated => "the slots have different origins or numbers",
            Self::Same => "the slots say the same",
            Self::Signature => "a slot is not signed by that key for that session",
            Self::Magic => "the bytes are no proof of equivocation",
            Self::Length => "the proof is cut off or has something behind it",
            Self::OtherKey => "the proof is by another key than the one given",
        })
    }
}

impl core::error::Error for ProofError {}

impl Equivocation<'_> {
    /// Who equivocated, under which number, if `public` is that origin's key.
    ///
    /// # Errors
    /// [`ProofError`].
    pub fn verify(&self, public: &PublicKey) -> Result<(Peer, u64), ProofError> {
        let key = VerifyingKey::from_bytes(public).map_err(|_| ProofError::Key)?;
        let one = header_of(self.one)?;
        let other = header_of(self.other)?;
        if (one.stamp.origin, one.stamp.seq) != (other.stamp.origin, other.stamp.seq) {
            return Err(ProofError::Unrelated);
        }
        let payloads = (self.one.get(one.payload()), self.other.get(other.payload()));
        if one.tag == other.tag && payloads.0 == payloads.1 {
            return Err(ProofError::Same);
        }
        let signed = |slot| is_signed(self.session, &key, slot);
        if !signed(self.one) || !signed(self.other) {
            return Err(ProofError::Signature);
        }
        Ok((one.stamp.origin, one.stamp.seq))
    }
}

fn header_of(slot: &[u8]) -> Result<Header, ProofError> {
    if slot.len() < HEADER_LEN {
        return Err(ProofError::Slot);
    }
    let header = Header::peek(slot).map_err(|_| ProofError::Slot)?;
    if header.used() > slot.len() { Err(ProofError::Slot) } else { Ok(header) }
}
