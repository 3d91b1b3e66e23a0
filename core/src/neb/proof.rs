//! The file format of a proof of equivocation, for third parties.
//!
//! ```text
//! byte  0            8         12        20       22    30           62
//!       │ "weftlied" │ version │ session │ origin │ seq │ public key │ one, other
//!
//!       statement      │ tag u64 │ len u16 │ payload │ signature, 64 bytes │
//! ```
//!
//! All bytes after the version are covered by both signatures, or are their key. A proof contains
//! nothing else, no slot header and no checksum, and the lesser statement comes first: so each
//! proof has exactly one encoding, and a proof with any bit changed is refused. A proof shows what
//! the holder of the key has signed; the reader must know whether that key is the origin's.

use super::authority::PublicKey;
use super::config::MESSAGE_LEN_MAX;
use super::equivocation::{Equivocation, ProofError, VERSION};
use super::statement::Statement;
use crate::ids::Peer;
use crate::wire::broadcast::SIGNATURE_LEN;
use crate::wire::{u16_at, u32_at};

const MAGIC: &[u8; 8] = b"weftlied";
const HEAD_LEN: usize = 62;
/// Of a statement, beside its payload.
const FRAME_LEN: usize = 8 + 2 + SIGNATURE_LEN;

/// The longest proof in bytes.
pub const PROOF_LEN_MAX: usize = HEAD_LEN + 2 * (FRAME_LEN + MESSAGE_LEN_MAX as usize);

/// A proof, with the key that verifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof<'a> {
    /// The key of both signatures.
    pub public: PublicKey,
    /// The two signed statements.
    pub equivocation: Equivocation<'a>,
}

impl<'a> Proof<'a> {
    /// Reads a proof without verifying it.
    ///
    /// # Errors
    /// [`ProofError::Magic`], [`ProofError::Version`], [`ProofError::Length`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, ProofError> {
        let is_proof = bytes.iter().zip(MAGIC).all(|(found, wanted)| found == wanted);
        if !is_proof {
            return Err(ProofError::Magic);
        }
        let version = bytes.get(8..12).ok_or(ProofError::Length)?;
        match u32_at(version, 0) {
            VERSION => {}
            other => return Err(ProofError::Version(other)),
        }
        let (head, rest) = bytes.split_first_chunk::<HEAD_LEN>().ok_or(ProofError::Length)?;
        let (one, rest) = statement(rest).ok_or(ProofError::Length)?;
        let (other, rest) = statement(rest).ok_or(ProofError::Length)?;
        if !rest.is_empty() {
            return Err(ProofError::Length);
        }
        let mut public = [0; 32];
        public.copy_from_slice(&head[30..]);
        let (session, origin, seq) = (u64_at(head, 12), Peer(u16_at(head, 20)), u64_at(head, 22));
        Ok(Self { public, equivocation: Equivocation { session, origin, seq, one, other } })
    }

    /// Writes the proof into `into` and returns its length.
    ///
    /// # Errors
    /// [`ProofError::Length`]: a message is too long, or `into` too short.
    pub fn encode(&self, into: &mut [u8]) -> Result<usize, ProofError> {
        let Equivocation { session, origin, seq, one, other } = self.equivocation;
        let len = |statement: &Statement<'_>| {
            let len = u16::try_from(statement.payload.len()).ok();
            let len = len.filter(|len| *len <= MESSAGE_LEN_MAX).ok_or(ProofError::Length)?;
            Ok(len.to_le_bytes())
        };
        let parts: [&[u8]; 14] = [
            MAGIC,
            &VERSION.to_le_bytes(),
            &session.to_le_bytes(),
            &origin.0.to_le_bytes(),
            &seq.to_le_bytes(),
            &self.public,
            &one.tag.to_le_bytes(),
            &len(&one)?,
            one.payload,
            one.signature,
            &other.tag.to_le_bytes(),
            &len(&other)?,
            other.payload,
            other.signature,
        ];
        let mut at = 0;
        for part in parts {
            let place = into.get_mut(at..at + part.len()).ok_or(ProofError::Length)?;
            place.copy_from_slice(part);
            at += part.len();
        }
        Ok(at)
    }

    /// The origin that equivocated and the number, if the key in the proof is that origin's.
    ///
    /// # Errors
    /// [`ProofError`].
    pub fn verify(&self) -> Result<(Peer, u64), ProofError> {
        self.equivocation.verify(&self.public)
    }

    /// As [`Self::verify`], for a reader who knows the origin's key.
    ///
    /// # Errors
    /// [`ProofError::OtherKey`] if the proof has another one.
    pub fn verify_by(&self, public: &PublicKey) -> Result<(Peer, u64), ProofError> {
        if self.public == *public { self.verify() } else { Err(ProofError::OtherKey) }
    }
}

/// The statement at the beginning of `bytes`, and the rest.
fn statement(bytes: &[u8]) -> Option<(Statement<'_>, &[u8])> {
    let (head, rest) = bytes.split_at_checked(10)?;
    let len = u16_at(head, 8);
    if len > MESSAGE_LEN_MAX {
        return None;
    }
    let (payload, rest) = rest.split_at_checked(usize::from(len))?;
    let (signature, rest) = rest.split_first_chunk::<SIGNATURE_LEN>()?;
    Some((Statement { tag: u64_at(head, 0), payload, signature }, rest))
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from(u32_at(bytes, offset)) | u64::from(u32_at(bytes, offset + 4)) << 32
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use ed25519_dalek::SigningKey;
    use proptest::prelude::*;

    use super::super::authority::Keys;
    use super::*;
    use crate::wire::broadcast::{Form, HEADER_LEN, Header, Stamp};

    const SESSION: u64 = 9;

    fn key() -> SigningKey {
        SigningKey::from_bytes(&[7; 32])
    }

    fn slot(seq: u64, payload: &[u8]) -> Vec<u8> {
        let stamp = Stamp { seq, generation: 0, origin: Peer(3) };
        let header = Header { stamp, len: payload.len() as u16, tag: 1, form: Form::Signed };
        let mut slot = std::vec![0; header.used()];
        header.write(&mut slot);
        slot[HEADER_LEN..HEADER_LEN + payload.len()].copy_from_slice(payload);
        Keys::<4>::new(SESSION, key()).sign_slot(&mut slot).unwrap();
        slot
    }

    fn encoded(one: &[u8], other: &[u8]) -> Vec<u8> {
        let public = key().verifying_key().to_bytes();
        let equivocation = Equivocation::of(SESSION, one, other).unwrap();
        encoded_as(Proof { public, equivocation })
    }

    fn encoded_as(proof: Proof<'_>) -> Vec<u8> {
        let mut bytes = [0; PROOF_LEN_MAX];
        let len = proof.encode(&mut bytes).unwrap();
        bytes[..len].to_vec()
    }

    #[test]
    fn a_proof_round_trips_and_verifies() {
        let bytes = encoded(&slot(5, b"yes"), &slot(5, b"no"));
        let proof = Proof::decode(&bytes).unwrap();
        assert_eq!(proof.verify(), Ok((Peer(3), 5)));
        assert_eq!(proof.verify_by(&key().verifying_key().to_bytes()), Ok((Peer(3), 5)));
        let other = SigningKey::from_bytes(&[8; 32]).verifying_key().to_bytes();
        assert_eq!(proof.verify_by(&other), Err(ProofError::OtherKey));
        let relabelled = Proof { public: other, ..proof };
        assert_eq!(relabelled.verify_by(&other), Err(ProofError::Signature));
    }

    #[test]
    fn each_invalid_proof_has_its_error() {
        let verify = |bytes: &[u8]| Proof::decode(bytes).and_then(|proof| proof.verify());
        let (yes, no) = (slot(5, b"yes"), slot(5, b"no"));
        assert_eq!(verify(&encoded(&yes, &yes)), Err(ProofError::Same));
        let later = slot(6, b"no");
        let unrelated = Equivocation::of(SESSION, &yes, &later);
        assert_eq!(unrelated, Err(ProofError::Unrelated));
        let bytes = encoded(&yes, &no);
        let mut turned = Proof::decode(&bytes).unwrap();
        let Equivocation { one, other, .. } = turned.equivocation;
        turned.equivocation = Equivocation { one: other, other: one, ..turned.equivocation };
        assert_eq!(verify(&encoded_as(turned)), Err(ProofError::Order));
        let mut bytes = encoded(&yes, &no);
        bytes[8] = 1;
        assert_eq!(verify(&bytes), Err(ProofError::Version(1)));
        bytes[0] = b'W';
        assert_eq!(verify(&bytes), Err(ProofError::Magic));
        assert_eq!(verify(b"weft"), Err(ProofError::Length));
    }

    #[test]
    fn a_truncated_or_lengthened_proof_is_refused_at_every_length() {
        let mut bytes = encoded(&slot(5, b"yes"), &slot(5, b"no"));
        for len in 0..bytes.len() {
            assert_eq!(Proof::decode(&bytes[..len]), Err(ProofError::Length), "cut to {len}");
        }
        bytes.push(0);
        assert_eq!(Proof::decode(&bytes), Err(ProofError::Length));
    }

    #[test]
    fn one_proof_has_one_form_whichever_slot_is_named_first() {
        let (yes, no) = (slot(5, b"yes"), slot(5, b"no"));
        assert_eq!(encoded(&yes, &no), encoded(&no, &yes));
    }

    #[test]
    fn a_proof_with_any_bit_flipped_is_refused() {
        let bytes = encoded(&slot(5, b"yes"), &slot(5, b"no"));
        for bit in 0..8 * bytes.len() {
            let mut spoilt = bytes.clone();
            spoilt[bit / 8] ^= 1 << (bit % 8);
            let verdict = Proof::decode(&spoilt).and_then(|proof| proof.verify());
            let expected: &[ProofError] = match bit / 8 {
                0..8 => &[ProofError::Magic],
                8..12 => &[ProofError::Version(VERSION ^ 1 << (bit - 64))],
                30..62 => &[ProofError::Key, ProofError::Signature],
                _ => &[ProofError::Length, ProofError::Order, ProofError::Signature],
            };
            let error = verdict.expect_err("it is another proof");
            assert!(expected.contains(&error), "bit {bit}: {error}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics_and_never_proves(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut framed = MAGIC.to_vec();
            framed.extend(VERSION.to_le_bytes());
            framed.extend(&bytes);
            for bytes in [bytes, framed] {
                let verdict = Proof::decode(&bytes).and_then(|proof| proof.verify());
                prop_assert!(verdict.is_err());
            }
        }
    }
}
