//! What the hosts of two peers do for a value that is handed over (RZ-18): the destination's asks
//! for what a token names in one incarnation of the source, and the source's answers. Any of it can
//! be lost, late, repeated or overtaken.

use weft_core::ids::Incarnation;

/// A question without a value, an answer with one, or a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParcelKind {
    Want,
    Value,
    Refused,
}

/// What goes from one host to the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parcel {
    pub(super) kind: ParcelKind,
    /// The incarnation of the source that has lent it.
    pub(super) lent_by: Incarnation,
    /// The incarnation of the destination that fetches it, and its number for that.
    pub(super) fetched_by: (Incarnation, u64),
    pub(super) token: u64,
    pub(super) bytes: Vec<u8>,
}

impl Parcel {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.kind as u8];
        bytes.extend(self.lent_by.0.to_le_bytes());
        bytes.extend(self.fetched_by.0.0.to_le_bytes());
        bytes.extend(self.fetched_by.1.to_le_bytes());
        bytes.extend(self.token.to_le_bytes());
        bytes.extend(&self.bytes);
        bytes
    }

    /// What [`Self::encode`] has made: messages are not altered.
    pub(super) fn decode(message: &[u8]) -> Self {
        let word = |at: usize| u64::from_le_bytes(message[at..at + 8].try_into().expect("8 bytes"));
        let incarnation = |at: usize| {
            Incarnation(u32::from_le_bytes(message[at..at + 4].try_into().expect("4 bytes")))
        };
        Self {
            kind: [ParcelKind::Want, ParcelKind::Value, ParcelKind::Refused]
                [usize::from(message[0])],
            lent_by: incarnation(1),
            fetched_by: (incarnation(5), word(9)),
            token: word(17),
            bytes: message[25..].to_vec(),
        }
    }
}
