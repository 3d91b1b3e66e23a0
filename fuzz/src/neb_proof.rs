//! Proofs of equivocation from anywhere: any bytes, and any change of a proof that holds.
//!
//! Decoding and verifying must not panic, what decodes must encode to the same bytes, and nothing
//! proves anything but what the key's holder signed: no input has two signatures by the key that
//! is put into it, and of what holds no other form does.

use std::sync::LazyLock;

use weft_core::ids::Peer;
use weft_core::neb::{Equivocation, Keys, PROOF_LEN_MAX, Proof, SLOT_LEN_MAX, SigningKey};
use weft_core::wire::broadcast::{Form, Header, Stamp};

/// A proof that holds.
static SOUND: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let (session, own) = (9, SigningKey::from_bytes(&[4; 32]));
    let public = own.verifying_key().to_bytes();
    let keys = Keys::<4>::new(session, own);
    let [one, other] = [b"yes".as_slice(), b"no"].map(|payload| {
        let stamp = Stamp { seq: 5, generation: 0, origin: Peer(3) };
        let header = Header { stamp, len: payload.len() as u16, tag: 1, form: Form::Signed };
        let mut slot = vec![0; SLOT_LEN_MAX];
        header.write(&mut slot);
        slot[header.payload()].copy_from_slice(payload);
        keys.sign_slot(&mut slot).expect("it has room for a signature");
        slot
    });
    let equivocation = Equivocation::of(session, &one, &other).expect("they are of one number");
    let mut bytes = vec![0; PROOF_LEN_MAX];
    let len = Proof { public, equivocation }.encode(&mut bytes).expect("it is a proof");
    bytes.truncate(len);
    bytes
});

/// One input.
pub fn run(bytes: &[u8]) {
    let own = SigningKey::from_bytes(&[3; 32]).verifying_key().to_bytes();
    let mut framed = bytes.to_vec();
    if let Some(head) = framed.get_mut(..12) {
        head.copy_from_slice(b"weftlied\x02\0\0\0");
    }
    if let Some(key) = framed.get_mut(30..62) {
        key.copy_from_slice(&own);
    }
    for bytes in [bytes, &framed] {
        let Ok(proof) = Proof::decode(bytes) else { continue };
        let mut again = [0; PROOF_LEN_MAX];
        assert_eq!(proof.encode(&mut again), Ok(bytes.len()));
        assert_eq!(&again[..bytes.len()], bytes);
        // The author of the input may have signed under a key of its own.
        let _ = proof.verify();
        assert!(proof.verify_by(&own).is_err(), "no member has signed with this key");
    }
    change(bytes);
}

/// Takes the input for changes of a proof that holds: places and what is flipped there.
fn change(changes: &[u8]) {
    let sound = &*SOUND;
    let mut changed = sound.clone();
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % sound.len();
        changed[at] ^= change[2];
    }
    let verdict = Proof::decode(&changed).and_then(|proof| proof.verify());
    assert_eq!(verdict.is_ok(), changed == *sound, "{verdict:?}");
}
