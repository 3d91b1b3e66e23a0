//! The keys of a cluster.
//!
//! For the bytes that a signature covers: [`Statement`](super::statement::Statement).

use core::fmt;

use ed25519_dalek::{SigningKey, VerifyingKey};

use super::statement::{Context, Statement, sign};
use crate::ids::Peer;
use crate::wire::broadcast::{Header, SIGNATURE_LEN, SlotError};

/// An origin's public key.
pub type PublicKey = [u8; 32];

/// Why a key was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyError {
    /// There is no such peer.
    UnknownPeer,
    /// The bytes are not a key.
    Invalid,
    /// The peer has another key already.
    Changed,
    /// The form is unsigned and uses no keys.
    Unsigned,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownPeer => "there is no such peer",
            Self::Invalid => "the bytes are not a public key",
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
    /// All members' public keys, as exchanged at bootstrap; a signature of a member without one
    /// does not count.
    pub public: [Option<VerifyingKey>; PEERS],
}

impl<const PEERS: usize> Keys<PEERS> {
    /// The keys of the member that signs with `own`; no other member's key is known yet.
    #[must_use]
    pub const fn new(session: u64, own: SigningKey) -> Self {
        Self { session, own, public: [None; PEERS] }
    }

    /// Stores `public` as the key of `peer`. The first key stays: with two keys for one origin, two
    /// members could each accept what the other rejects as forged.
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

    /// A new epoch of `peer` is counted: its key is agreed on again (N-19).
    pub(super) fn forget(&mut self, peer: Peer) {
        if let Some(known) = self.public.get_mut(peer.index()) {
            *known = None;
        }
    }

    /// Replaces the signature of a whole slot, for tests in which an origin lies. The caller
    /// computes the checksum: [`seal`](crate::wire::broadcast::seal).
    ///
    /// # Errors
    /// [`SlotError::Form`], [`SlotError::Length`]: it has no room for a signature.
    pub fn sign_slot(&self, slot: &mut [u8]) -> Result<(), SlotError> {
        let (header, _) = Statement::of(slot)?;
        self.sign(&header, slot);
        Ok(())
    }

    /// Signs the slot of which `header` is the header: fills in the signature.
    pub(super) fn sign(&self, header: &Header, slot: &mut [u8]) {
        let context = Context::of(self.session, header);
        let signature = sign(context, header.tag, &slot[header.payload()], &self.own);
        slot[header.payload().end..][..SIGNATURE_LEN].copy_from_slice(&signature);
    }

    /// Whether the copy of a slot is signed by the origin that it names.
    pub(super) fn vouches(&self, slot: &[u8]) -> bool {
        let Ok((header, statement)) = Statement::of(slot) else {
            return false;
        };
        let public = self.public.get(header.stamp.origin.index()).and_then(Option::as_ref);
        let context = Context::of(self.session, &header);
        public.is_some_and(|key| statement.is_signed(context, key))
    }
}
