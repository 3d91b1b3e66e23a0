//! A proof of equivocation as bytes: what is written to a file and handed to a third party.
//!
//! ```text
//! byte  0            8         12   16        24           56         58           60
//!       │ "weftlied" │ version │ 0… │ session │ public key │ one's len │ other's len │ one, other
//! ```
//!
//! Both slots are as their origin signed them: header, payload, signature. There is nothing else
//! in a proof and nothing behind it, so that one proof has one form. Whether the public key is
//! the origin's is for the reader to know: a proof shows what the holder of that key has signed.

use super::authority::PublicKey;
use super::equivocation::{Equivocation, ProofError};
use super::machine::SLOT_LEN_MAX;
use crate::ids::Peer;
use crate::wire::u32_at;

const MAGIC: &[u8; 8] = b"weftlied";
/// The form that is written, and the only one that is read.
const VERSION: u32 = 1;
const HEAD_LEN: usize = 60;

/// The longest proof in bytes.
pub const PROOF_LEN_MAX: usize = HEAD_LEN + 2 * SLOT_LEN_MAX;

/// A proof, with the key that it is to be checked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof<'a> {
    /// Whose signatures they are.
    pub public: PublicKey,
    /// What was signed.
    pub equivocation: Equivocation<'a>,
}

impl<'a> Proof<'a> {
    /// Reads a proof; nothing in it is verified yet.
    ///
    /// # Errors
    /// [`ProofError::Magic`], [`ProofError::Version`], [`ProofError::Length`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, ProofError> {
        let is_proof = bytes.iter().zip(MAGIC).all(|(found, wanted)| found == wanted);
        if !is_proof {
            return Err(ProofError::Magic);
        }
        let Some((head, slots)) = bytes.split_first_chunk::<HEAD_LEN>() else {
            return Err(ProofError::Length);
        };
        let version = u32_at(head, 8);
        if version != VERSION || u32_at(head, 12) != 0 {
            return Err(ProofError::Version(version));
        }
        let len = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
        let (one, other) = (len(56), len(58));
        if one > SLOT_LEN_MAX || other > SLOT_LEN_MAX || slots.len() != one + other {
            return Err(ProofError::Length);
        }
        let session = u64::from(u32_at(head, 16)) | u64::from(u32_at(head, 20)) << 32;
        let mut public = [0; 32];
        public.copy_from_slice(&head[24..56]);
        let (one, other) = slots.split_at(one);
        Ok(Self { public, equivocation: Equivocation { session, one, other } })
    }

    /// Writes the proof into `into`; its length.
    ///
    /// # Errors
    /// [`ProofError::Length`]: a slot is too long to be one, or `into` too short.
    pub fn encode(&self, into: &mut [u8]) -> Result<usize, ProofError> {
        let Equivocation { session, one, other } = self.equivocation;
        let len = |slot: &[u8]| {
            let len = u16::try_from(slot.len()).ok().filter(|_| slot.len() <= SLOT_LEN_MAX);
            len.map(u16::to_le_bytes).ok_or(ProofError::Length)
        };
        let total = HEAD_LEN + one.len() + other.len();
        let (len_one, len_other) = (len(one)?, len(other)?);
        let into = into.get_mut(..total).ok_or(ProofError::Length)?;
        let parts: [&[u8]; 9] = [
            MAGIC,
            &VERSION.to_le_bytes(),
            &[0; 4],
            &session.to_le_bytes(),
            &self.public,
            &len_one,
            &len_other,
            one,
            other,
        ];
        let mut at = 0;
        for part in parts {
            into[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        Ok(total)
    }

    /// Who equivocated, under which number, if the key in the proof is that origin's.
    ///
    /// # Errors
    /// [`ProofError`].
    pub fn verify(&self) -> Result<(Peer, u64), ProofError> {
        self.equivocation.verify(&self.public)
    }

    /// As [`Self::verify`], for a reader who knows the origin's key.
    ///
    /// # Errors
    /// [`ProofError::OtherKey`] when the proof is by another one.
    pub fn verify_by(&self, public: &PublicKey) -> Result<(Peer, u64), ProofError> {
        if self.public == *public { self.verify() } else { Err(ProofError::OtherKey) }
    }
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
        let proof = Proof { public, equivocation: Equivocation { session: SESSION, one, other } };
        let mut bytes = [0; PROOF_LEN_MAX];
        let len = proof.encode(&mut bytes).unwrap();
        bytes[..len].to_vec()
    }

    #[test]
    fn a_proof_comes_back_and_holds() {
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
    fn what_proves_nothing_is_refused_by_name() {
        let verify = |bytes: &[u8]| Proof::decode(bytes).and_then(|proof| proof.verify());
        let (yes, no) = (slot(5, b"yes"), slot(5, b"no"));
        assert_eq!(verify(&encoded(&yes, &yes)), Err(ProofError::Same));
        assert_eq!(verify(&encoded(&yes, &slot(6, b"no"))), Err(ProofError::Unrelated));
        let mut bytes = encoded(&yes, &no);
        bytes[8] = 2;
        assert_eq!(verify(&bytes), Err(ProofError::Version(2)));
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

    /// But for the checksum and the generation, which no signature covers and no proof needs.
    #[test]
    fn every_flipped_byte_that_says_anything_is_noticed() {
        let (yes, no) = (slot(5, b"yes"), slot(5, b"no"));
        let bytes = encoded(&yes, &no);
        let free = |at: usize| (8..12).contains(&at) || (24..28).contains(&at);
        for at in 0..bytes.len() {
            let in_slot = at.checked_sub(HEAD_LEN).map(|at| at % yes.len());
            let in_slot = in_slot.filter(|_| at < HEAD_LEN + yes.len());
            let in_other = at.checked_sub(HEAD_LEN + yes.len());
            if in_slot.or(in_other).is_some_and(free) {
                continue;
            }
            let mut spoilt = bytes.clone();
            spoilt[at] ^= 1;
            let verdict = Proof::decode(&spoilt).and_then(|proof| proof.verify());
            assert!(verdict.is_err(), "byte {at}: {verdict:?}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics_and_never_proves(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut framed = MAGIC.to_vec();
            framed.extend(VERSION.to_le_bytes());
            framed.extend([0; 4]);
            framed.extend(&bytes);
            for bytes in [bytes, framed] {
                let verdict = Proof::decode(&bytes).and_then(|proof| proof.verify());
                prop_assert!(verdict.is_err());
            }
        }
    }
}
