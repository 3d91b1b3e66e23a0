//! A cluster file: any text, no panic; what is refused is explained, and what is accepted is
//! within its limits and means the same when it is written and read again.

use std::path::Path;

use weft::cluster::Cluster;
use weft::explain::Explain;

/// Reads `bytes` as a cluster file.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let origin = Path::new("fuzzed.toml");
    match Cluster::parse(text, origin) {
        Err(error) => assert!(!error.to_string().is_empty() && !error.cure().is_empty()),
        Ok(cluster) => {
            assert_eq!(cluster.check(), Ok(()));
            let written = cluster.to_toml();
            let again = Cluster::parse(&written, origin).expect("it was accepted");
            assert_eq!(again.to_toml(), written);
        }
    }
}
