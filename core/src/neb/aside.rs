//! State that does not count for equality: buffers between uses, and counters.
//!
//! The simulator's explorer treats equal machines as the same state, so a value that affects no
//! later step must not distinguish them.

use core::fmt;
use core::hash::{Hash, Hasher};

/// A value that equality and hashing ignore.
#[derive(Clone)]
pub(super) struct Aside<T>(pub(super) T);

impl<T> PartialEq for Aside<T> {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl<T> Eq for Aside<T> {}

impl<T> Hash for Aside<T> {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

impl<T> fmt::Debug for Aside<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}
