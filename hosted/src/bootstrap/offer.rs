//! One end of a pair, on its way from the component that made it to the one that will use it.
//!
//! Over verbs two components are connected by a pair of queue pairs that belongs to one incarnation
//! of each. The driver defines what an end holds; here it is a bounded run of bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use weft_core::ids::Incarnation;

/// The own end of a pair, for the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The incarnation that made it.
    pub from: Incarnation,
    /// The incarnation that it was made for.
    pub to: Incarnation,
    /// What that incarnation needs to connect.
    pub end: PairEnd,
}

/// One end of a pair as bytes, at most [`PairEnd::LEN_MAX`].
#[derive(Clone, PartialEq, Eq)]
pub struct PairEnd(Vec<u8>);

impl PairEnd {
    /// More than the end of a pair over the largest layout takes.
    pub const LEN_MAX: usize = 4096;

    /// Takes the bytes; none if they are too many.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() <= Self::LEN_MAX).then_some(Self(bytes))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Shows the length only: the bytes hold access keys.
impl std::fmt::Debug for PairEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for PairEnd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for PairEnd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).map_err(de::Error::custom)?;
        Self::new(bytes).ok_or_else(|| de::Error::custom("the end of a pair is too long"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_survives_the_wire_and_one_too_long_does_not() {
        let end = PairEnd::new((0..=255).collect()).unwrap();
        let json = serde_json::to_string(&end).unwrap();
        assert_eq!(serde_json::from_str::<PairEnd>(&json).unwrap(), end);
        assert_eq!(PairEnd::new(vec![0; PairEnd::LEN_MAX + 1]), None);
        let long = serde_json::to_string(&STANDARD.encode(vec![0; PairEnd::LEN_MAX + 1])).unwrap();
        assert!(serde_json::from_str::<PairEnd>(&long).is_err());
    }

    #[test]
    fn the_end_over_the_largest_layout_fits() {
        const GRANT_LEN: usize = 16;
        const HEAD_LEN: usize = 36;
        let longest = HEAD_LEN + weft_core::fabric::REGIONS_MAX * GRANT_LEN;
        assert!(longest <= PairEnd::LEN_MAX, "{longest}");
    }
}
