//! A `.safetensors` file: any bytes, no panic; the tensors of what is accepted lie behind its
//! header, one behind the other, up to its end, each under a name of its own. The same bytes as a
//! manifest: it has a digest for each of its tensors, and nothing else.

use std::collections::HashSet;

use weft::explain::Explain;
use weft::tensor::file::{manifest, safetensors};

/// Reads `bytes` as a file.
pub fn run(bytes: &[u8]) {
    let len = bytes.len() as u64;
    match safetensors::read(&mut &*bytes, len) {
        Err(error) => assert!(!error.to_string().is_empty() && !error.cure().is_empty()),
        Ok((header, entries)) => {
            let mut at = safetensors::preface(&header).len() as u64;
            for entry in &entries {
                assert_eq!(entry.offset, at, "{:?}", entry.name);
                at += entry.shape.bytes();
            }
            assert_eq!(at, len);
            let names: HashSet<_> = entries.iter().map(|entry| &entry.name).collect();
            assert_eq!(names.len(), entries.len());
        }
    }
    if let Ok(manifest) = manifest::parse(bytes) {
        let digests: Vec<u32> = manifest.entries.iter().map(|(_, digest)| *digest).collect();
        assert_eq!(manifest::encode(&manifest.preface[8..], &digests), bytes);
    }
}
