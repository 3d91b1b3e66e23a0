//! What belongs to one process.

use crate::misuse::Misuse;

/// A value that a forked child neither uses nor frees.
///
/// A child has copies of the descriptors, and not the shared memory ([`weft::shm`]): freeing there
/// would speak for the parent over the first, and fault on the second.
pub(crate) struct Home<T> {
    process: u32,
    /// There until it is dropped.
    value: Option<T>,
}

impl<T> Home<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { process: std::process::id(), value: Some(value) }
    }

    pub(crate) fn get(&self) -> Result<&T, Misuse> {
        let is_home = self.process == std::process::id();
        self.value.as_ref().filter(|_| is_home).ok_or(Misuse::Forked { process: self.process })
    }
}

impl<T> Drop for Home<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}
