//! The authenticated channel: Noise with the cluster's key.
//!
//! `NNpsk0`: neither side has a static key of its own, both have the cluster's, and it is mixed in
//! before the first message.
//!
//! ```text
//!   caller   ─ psk, e ─────▶   the first message is valid only with the key: a stranger, or noise,
//!            ◀─ e, ee ──────   is refused after one hash, before any curve operation
//!            ─ transport ──▶   the caller has the secret of *this* e: its hello is no replay
//! ```
//!
//! Why not a pattern with static keys (`XXpsk3`): rank and cluster file settle the identity of each
//! node, every holder of the cluster's key is trusted alike (a member can do as it likes with
//! memory it was granted), and a key for each node would be one more file for each to lose.
//! Ephemeral keys on both sides keep the session secret even if the key leaks later. The first
//! message alone has no forward secrecy; it holds only names and sizes.

use snow::{Builder, Error, HandshakeState};

use super::key::Key;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// Separates these messages from those of other protocols with the same key.
const PROLOGUE: &[u8] = b"weft bootstrap";

/// The bytes that Noise adds to a transport message.
pub(super) const TAG_LEN: usize = 16;

fn builder(key: &Key) -> Result<Builder<'_>, Error> {
    Builder::new(PATTERN.parse()?).prologue(PROLOGUE)?.psk(0, key.bytes())
}

pub(super) fn caller(key: &Key) -> Result<HandshakeState, Error> {
    builder(key)?.build_initiator()
}

pub(super) fn listener(key: &Key) -> Result<HandshakeState, Error> {
    builder(key)?.build_responder()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_message(key: &Key) -> Vec<u8> {
        let mut message = vec![0; 256];
        let len = caller(key).unwrap().write_message(b"hello", &mut message).unwrap();
        message.truncate(len);
        message
    }

    #[test]
    fn the_first_message_holds_for_its_key_alone_and_whole() {
        let mut payload = [0; 256];
        let first = first_message(&Key::INSECURE);
        let mut right = listener(&Key::INSECURE).unwrap();
        assert_eq!(right.read_message(&first, &mut payload).unwrap(), 5);
        for at in 0..first.len() {
            let mut spoilt = first.clone();
            spoilt[at] ^= 1;
            let mut right = listener(&Key::INSECURE).unwrap();
            assert!(right.read_message(&spoilt, &mut payload).is_err(), "byte {at}");
        }
    }

    #[test]
    fn no_two_first_messages_are_alike() {
        assert_ne!(first_message(&Key::INSECURE), first_message(&Key::INSECURE));
    }
}
