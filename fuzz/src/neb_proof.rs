//! Proofs of equivocation from anywhere: any bytes.
//!
//! Decoding and verifying must not panic, what decodes must encode to the same bytes, and nothing
//! proves anything but what the key's holder signed: no input has two signatures by the key that
//! is put into it.

use weft_core::neb::{PROOF_LEN_MAX, Proof, SigningKey};

/// One input.
pub fn run(bytes: &[u8]) {
    let own = SigningKey::from_bytes(&[3; 32]).verifying_key().to_bytes();
    let mut framed = bytes.to_vec();
    if let Some(head) = framed.get_mut(..16) {
        head.copy_from_slice(b"weftlied\x01\0\0\0\0\0\0\0");
    }
    if let Some(key) = framed.get_mut(24..56) {
        key.copy_from_slice(&own);
    }
    for bytes in [bytes, &framed] {
        let Ok(proof) = Proof::decode(bytes) else { continue };
        let mut again = [0; PROOF_LEN_MAX];
        assert_eq!(proof.encode(&mut again), Ok(bytes.len()));
        assert_eq!(&again[..bytes.len()], bytes);
        // Whoever made the input may have signed under a key of its own.
        let _ = proof.verify();
        assert!(proof.verify_by(&own).is_err(), "nobody has signed with this key");
    }
}
