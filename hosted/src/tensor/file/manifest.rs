//! The manifest of a `.safetensors` file: what travels ahead of its tensors.
//!
//! ```text
//!   length of the header 8 │ header │ CRC-32C of each tensor, in the order of their bytes: 4 each
//! ```
//!
//! The first two parts are the beginning of the file. The digests tie the tensors to it: each
//! travels under its name alone, and another file can have sent one of that name in the same step.

use crc_fast::CrcAlgorithm;

use super::safetensors::{self, LEN_LEN};
use super::{Entry, TensorFileError};

/// Bytes of a digest.
const DIGEST_LEN: usize = 4;

/// A manifest that was received.
#[derive(Debug, PartialEq, Eq)]
pub struct Manifest<'a> {
    /// All that stands in the file before the bytes of its tensors.
    pub preface: &'a [u8],
    /// Its tensors, in the order of their bytes, each with its digest.
    pub entries: Vec<(Entry, u32)>,
}

/// The CRC-32C of bytes that come one part after the other.
#[derive(Debug)]
pub struct Digest(crc_fast::Digest);

impl Digest {
    /// Of no bytes.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is no value of its own")]
    pub fn new() -> Self {
        Self(crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all of them.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "it has 32 bits")]
    pub fn finish(self) -> u32 {
        self.0.finalize() as u32
    }

    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> u32 {
        let mut digest = Self::new();
        digest.update(bytes);
        digest.finish()
    }
}

/// How long the manifest of a file with this header is.
#[must_use]
pub const fn len(header: &[u8], tensors: usize) -> u64 {
    LEN_LEN + header.len() as u64 + (tensors * DIGEST_LEN) as u64
}

/// The manifest of a file with this header.
#[must_use]
pub fn encode(header: &[u8], digests: &[u32]) -> Vec<u8> {
    let mut manifest = safetensors::preface(header);
    manifest.extend(digests.iter().flat_map(|digest| digest.to_le_bytes()));
    manifest
}

/// Reads a manifest that came from another node.
///
/// # Errors
/// [`TensorFileError`]; its offsets are those behind the header.
pub fn parse(bytes: &[u8]) -> Result<Manifest<'_>, TensorFileError> {
    let found = bytes.len() as u64;
    let short = TensorFileError::Length { expected: LEN_LEN, found };
    let (said, rest) = bytes.split_first_chunk().ok_or(short)?;
    let said = u64::from_le_bytes(*said);
    let expected = said.saturating_add(LEN_LEN);
    let split = usize::try_from(said).ok().and_then(|at| rest.split_at_checked(at));
    let (header, digests) = split.ok_or(TensorFileError::Length { expected, found })?;
    let (entries, _) = safetensors::parse(header)?;
    let expected = len(header, entries.len());
    let (digests, tail) = digests.as_chunks::<DIGEST_LEN>();
    if digests.len() != entries.len() || !tail.is_empty() {
        return Err(TensorFileError::Length { expected, found });
    }
    let digests = digests.iter().map(|it| u32::from_le_bytes(*it));
    let preface = &bytes[..bytes.len() - digests.len() * DIGEST_LEN];
    Ok(Manifest { preface, entries: entries.into_iter().zip(digests).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &[u8] = br#"{"b":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},
        "a":{"dtype":"U8","shape":[],"data_offsets":[8,9]}}"#;

    #[test]
    fn rz20_a_manifest_has_the_beginning_of_its_file_and_a_digest_for_each_tensor() {
        let encoded = encode(HEADER, &[1, u32::MAX]);
        assert_eq!(encoded.len() as u64, len(HEADER, 2));
        let manifest = parse(&encoded).expect("a manifest");
        assert_eq!(manifest.preface, safetensors::preface(HEADER));
        let found = manifest.entries.iter().map(|(entry, digest)| (entry.name.as_str(), *digest));
        assert_eq!(found.collect::<Vec<_>>(), [("b", 1), ("a", u32::MAX)]);
        assert_eq!(parse(&encode(b"{}", &[])).expect("no tensor").entries, []);
    }

    #[test]
    fn rz20_a_manifest_that_is_cut_or_too_long_is_refused() {
        let encoded = encode(HEADER, &[1, 2]);
        for end in 0..encoded.len() {
            let refused = parse(&encoded[..end]);
            assert!(matches!(refused, Err(TensorFileError::Length { .. })), "{end}: {refused:?}");
        }
        for digests in [&[1][..], &[1, 2, 3]] {
            let refused = parse(&encode(HEADER, digests)).map(drop);
            assert!(matches!(refused, Err(TensorFileError::Length { .. })), "{refused:?}");
        }
        let endless = [&u64::MAX.to_le_bytes()[..], HEADER].concat();
        assert!(matches!(parse(&endless), Err(TensorFileError::Length { .. })));
    }

    #[test]
    fn rz20_a_digest_is_the_same_whatever_parts_its_bytes_come_in() {
        let bytes: Vec<u8> = (0..=255).cycle().take(3_000).collect();
        for at in [0, 1, 511, 2_999] {
            let mut digest = Digest::new();
            digest.update(&bytes[..at]);
            digest.update(&bytes[at..]);
            assert_eq!(digest.finish(), weft_core::checksum::crc32c(&bytes));
        }
        assert_eq!(Digest::of(&bytes), weft_core::checksum::crc32c(&bytes));
    }
}
