//! A message of an origin under one of its numbers, with the origin's signature.
//!
//! ```text
//!   covered   "weft neb 1" │ session u64 │ origin u16 │ seq u64 │ tag u64 │ len u16 │ payload
//! ```
//!
//! The session names the cluster's run, so that no signature of another run counts. The generation
//! and the checksum in a slot's header follow from the rest and are not covered: a reader compares
//! the generation with the number before it verifies a signature (`judge`). Ed25519 (RFC 8032),
//! verified strictly: neither small-order keys nor malleable signatures pass.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

use super::config::MESSAGE_LEN_MAX;
use super::mutants::UNBOUND_SIGNATURE;
use crate::ids::Peer;
use crate::wire::broadcast::{Form, HEADER_LEN, Header, SIGNATURE_LEN, SlotError};

const DOMAIN: &[u8; 10] = b"weft neb 1";
const HEAD_LEN: usize = DOMAIN.len() + 8 + 2 + 8 + 8 + 2;

/// What a signature covers besides the message: run, origin, number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) session: u64,
    pub(super) origin: Peer,
    pub(super) seq: u64,
}

impl Context {
    /// The context of the slot with this header.
    pub(super) const fn of(session: u64, header: &Header) -> Self {
        Self { session, origin: header.stamp.origin, seq: header.stamp.seq }
    }
}

/// A signed message, as a slot or a proof carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// The application's tag.
    pub tag: u64,
    /// The message, at most [`MESSAGE_LEN_MAX`] bytes.
    pub payload: &'a [u8],
    /// The origin's signature on message, number and run.
    pub signature: &'a [u8; SIGNATURE_LEN],
}

impl<'a> Statement<'a> {
    /// Header and statement in the copy of a signed slot. Nothing is verified.
    ///
    /// # Errors
    /// [`SlotError::Form`], [`SlotError::Length`].
    pub(super) fn of(slot: &'a [u8]) -> Result<(Header, Self), SlotError> {
        if slot.len() < HEADER_LEN {
            return Err(SlotError::Length);
        }
        let header = Header::peek(slot)?;
        if header.form != Form::Signed {
            return Err(SlotError::Form);
        }
        if header.len > MESSAGE_LEN_MAX {
            return Err(SlotError::Length);
        }
        let payload = slot.get(header.payload()).ok_or(SlotError::Length)?;
        let signature = slot[header.payload().end..].first_chunk().ok_or(SlotError::Length)?;
        Ok((header, Self { tag: header.tag, payload, signature }))
    }

    /// Whether its signature is by `key`, for `context`.
    pub(super) fn is_signed(&self, context: Context, key: &VerifyingKey) -> bool {
        if self.payload.len() > usize::from(MESSAGE_LEN_MAX) {
            return false;
        }
        let (message, len) = covered(context, self.tag, self.payload);
        key.verify_strict(&message[..len], &Signature::from_bytes(self.signature)).is_ok()
    }
}

/// Signs a message with `key`; the message has at most [`MESSAGE_LEN_MAX`] bytes.
pub(super) fn sign(
    context: Context,
    tag: u64,
    payload: &[u8],
    key: &SigningKey,
) -> [u8; SIGNATURE_LEN] {
    let (message, len) = covered(context, tag, payload);
    key.sign(&message[..len]).to_bytes()
}

/// The bytes that a signature covers, and how many they are.
#[expect(clippy::cast_possible_truncation, reason = "at most MESSAGE_LEN_MAX")]
fn covered(
    context: Context,
    tag: u64,
    payload: &[u8],
) -> ([u8; HEAD_LEN + MESSAGE_LEN_MAX as usize], usize) {
    let mut message = [0; HEAD_LEN + MESSAGE_LEN_MAX as usize];
    let mut len = 0;
    let mut add = |bytes: &[u8]| {
        message[len..len + bytes.len()].copy_from_slice(bytes);
        len += bytes.len();
    };
    let Context { session, origin: Peer(origin), seq } = context;
    let seq = if UNBOUND_SIGNATURE.is_planted() { 0 } else { seq };
    add(DOMAIN);
    add(&session.to_le_bytes());
    add(&origin.to_le_bytes());
    add(&seq.to_le_bytes());
    add(&tag.to_le_bytes());
    add(&(payload.len() as u16).to_le_bytes());
    add(payload);
    (message, len)
}
