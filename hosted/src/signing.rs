//! The keys that sign broadcasts: each supervisor of a node draws a new one.
//!
//! ```text
//!   supervisor ── draws ──▶ SecretKey ── descriptor ──▶ its components, one after the other
//!        └── PublicKey ── bootstrap ──▶ every other node, with each incarnation
//!                                          └── agreed on by all, then used (`component/signing`)
//! ```
//!
//! A key lives as long as the memory that holds what was signed with it: a component that is
//! killed is followed by one with the same key, a supervisor by one with another. Keys are never
//! written to a file, and secret ones neither to a log nor into a message: they travel as
//! anonymous memory.
//!
//! Which key is whose is what the supervisors say when they meet, over a socket of the same user
//! or inside the channel that takes the cluster's key; a node remembers the first one that it
//! is shown of each other, and uses it once all other members say that they hold the same. So a
//! supervisor that shows different keys to different nodes signs nothing that counts. `weft status
//! --json` shows the keys that are agreed on.

mod public_key;
mod secret_key;

pub use public_key::{PublicKey, PublicKeyError};
pub use secret_key::SecretKey;

use sha2::{Digest as _, Sha256};

/// Binds signatures to a cluster and to how it lays out its memory. Two runs of one cluster have
/// different keys.
#[must_use]
pub fn session(cluster: &str, layout: u64) -> u64 {
    let mut hasher = Sha256::new();
    hasher.update(layout.to_le_bytes());
    hasher.update(cluster.as_bytes());
    let digest = hasher.finalize();
    digest.iter().take(8).fold(0, |session, byte| session << 8 | u64::from(*byte))
}
