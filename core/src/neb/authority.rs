//! Who signed what: the keys of a cluster, and the bytes that a signature covers.
//!
//! ```text
//!   "weft neb 1" │ session u64 │ origin u16 │ seq u64 │ tag u64 │ len u16 │ payload
//! ```
//!
//! The session names the cluster's run, so that no signature of another one counts; generation
//! and checksum follow from the rest and are not covered. Ed25519 (RFC 8032), verified strictly:
//! neither small-order keys nor malleable signatures pass.

use core::fmt;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

use super::config::MESSAGE_LEN_MAX;
use super::mutants::UNBOUND_SIGNATURE;
use crate::ids::Peer;
use crate::wire::broadcast::{Form, HEADER_LEN, Header, SIGNATURE_LEN, SlotError};

const DOMAIN: &[u8; 10] = b"weft neb 1";
const HEAD_LEN: usize = DOMAIN.len() + 8 + 2 + 8 + 8 + 2;

/// An origin's public key.
pub type PublicKey = [u8; 32];

/// Why a key is not remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyError {
    /// There is no such peer.
    UnknownPeer,
    /// The bytes are no key.
    Invalid,
    /// The peer has another key already.
    Changed,
    /// The form is unsigned: there is nothing to remember it for.
    Unsigned,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownPeer => "there is no such peer",
            Self::Invalid => "the bytes are no public key",
            Self::Changed => "the peer has another key already",
            Self::Unsigned => "the broadcast is not signed",
        })
    }
}

impl core::error::Error for KeyError {}

/// The keys that one member holds. The own secret one is overwritten when they are dropped.
#[derive(Clone)]
pub struct Keys<const PEERS: usize> {
    /// Names the run of the cluster.
    pub session: u64,
    /// This member's own key.
    pub own: SigningKey,
    /// Everybody's public keys, as bootstrap exchanged them; a member without one signs nothing
    /// that counts.
    pub public: [Option<VerifyingKey>; PEERS],
}

impl<const PEERS: usize> Keys<PEERS> {
    /// The keys of the member that signs with `own`, nobody else's known yet.
    #[must_use]
    pub const fn new(session: u64, own: SigningKey) -> Self {
        Self { session, own, public: [None; PEERS] }
    }

    /// Remembers that `public` is the key of `peer`. The first one heard stays: were an origin
    /// believed under two keys, two members could each hold what the other takes for forged.
    ///
    /// # Errors
    /// [`KeyError`]; nothing changed.
    pub fn learn(&mut self, peer: Peer, public: &PublicKey) -> Result<(), KeyError> {
        let key = VerifyingKey::from_bytes(public).map_err(|_| KeyError::Invalid)?;
        let known = self.public.get_mut(peer.index()).ok_or(KeyError::UnknownPeer)?;
        match known {
            Some(known) if *known != key => Err(KeyError::Changed),
            Some(_) => Ok(()),
            None => {
                *known = Some(key);
                Ok(())
            }
        }
    }

    /// Signs a whole slot anew, whatever it held for a signature: for those who make an origin
    /// lie to see what becomes of it. The checksum is
    /// left to [`seal`](crate::wire::broadcast::seal).
    ///
    /// # Errors
    /// [`SlotError::Form`], [`SlotError::Length`]: it has no room for a signature.
    pub fn sign_slot(&self, slot: &mut [u8]) -> Result<(), SlotError> {
        if slot.len() < HEADER_LEN {
            return Err(SlotError::Length);
        }
        let header = Header::peek(slot)?;
        if header.form != Form::Signed {
            return Err(SlotError::Form);
        }
        if header.len > MESSAGE_LEN_MAX || header.used() > slot.len() {
            return Err(SlotError::Length);
        }
        self.sign(&header, slot);
        Ok(())
    }

    /// Signs the slot of which `header` is the header: fills in the signature.
    pub(super) fn sign(&self, header: &Header, slot: &mut [u8]) {
        let (message, len) = covered(self.session, header, slot);
        let signature = self.own.sign(&message[..len]).to_bytes();
        let start = header.payload().end;
        slot[start..start + SIGNATURE_LEN].copy_from_slice(&signature);
    }

    /// Whether the copy of a slot is signed by the origin that it names.
    pub(super) fn vouches(&self, slot: &[u8]) -> bool {
        let Ok(header) = Header::peek(slot) else {
            return false;
        };
        let public = self.public.get(header.stamp.origin.index());
        public.is_some_and(|public| public.is_some_and(|key| is_signed(self.session, &key, slot)))
    }
}

/// Whether the copy of a slot carries a signature by `key`.
pub(super) fn is_signed(session: u64, key: &VerifyingKey, slot: &[u8]) -> bool {
    let Ok(header) = Header::peek(slot) else {
        return false;
    };
    if header.form != Form::Signed || header.len > MESSAGE_LEN_MAX || header.used() > slot.len() {
        return false;
    }
    let (message, len) = covered(session, &header, slot);
    let start = header.payload().end;
    let Some(signature) = slot[start..].first_chunk::<SIGNATURE_LEN>() else {
        return false;
    };
    key.verify_strict(&message[..len], &Signature::from_bytes(signature)).is_ok()
}

/// The bytes that a signature of this slot covers, and how many they are.
fn covered(
    session: u64,
    header: &Header,
    slot: &[u8],
) -> ([u8; HEAD_LEN + MESSAGE_LEN_MAX as usize], usize) {
    let mut message = [0; HEAD_LEN + MESSAGE_LEN_MAX as usize];
    let mut len = 0;
    let mut add = |bytes: &[u8]| {
        message[len..len + bytes.len()].copy_from_slice(bytes);
        len += bytes.len();
    };
    let Peer(origin) = header.stamp.origin;
    let seq = if UNBOUND_SIGNATURE.is_planted() { 0 } else { header.stamp.seq };
    add(DOMAIN);
    add(&session.to_le_bytes());
    add(&origin.to_le_bytes());
    add(&seq.to_le_bytes());
    add(&header.tag.to_le_bytes());
    add(&header.len.to_le_bytes());
    add(&slot[HEADER_LEN..HEADER_LEN + usize::from(header.len)]);
    (message, len)
}
