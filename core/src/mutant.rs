//! Planted bugs: guards that a test build leaves out, one at a time, to prove that the tests
//! would notice.
//!
//! Each protocol lists its mutants as constants beside the guards they remove, and a guard reads
//! `if !SKIP_WITHOUT_FENCE.is_planted() { … }`. Without the feature `mutants` the question is
//! `false` at compile time and the guard is all that is left, so nothing of this reaches a
//! shipped build. With it, one build holds every mutant, and `plant` chooses the one to run.
//!
//! The choice is one word for the whole process, so a judge runs one mutant after the other; in the
//! unit tests of this crate it is one for each thread, for they run side by side.

/// A guard that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The protocol whose guard it is, such as `mailbox`.
    pub protocol: &'static str,
    /// What it does wrong, in a few words joined by hyphens; unique in its protocol.
    pub name: &'static str,
    /// The promise it must be caught breaking, for the table.
    pub breaks: &'static str,
    /// FNV-1a over `protocol/name`, which guards ask for in every round: never 0.
    mark: u32,
}

impl Mutant {
    /// A mutant of `protocol`.
    #[must_use]
    pub const fn new(protocol: &'static str, name: &'static str, breaks: &'static str) -> Self {
        let hash = fold(0x811c_9dc5, protocol.as_bytes());
        let hash = fold(fold(hash, b"/"), name.as_bytes());
        Self { protocol, name, breaks, mark: hash | 1 }
    }

    /// Whether this guard is left out now. Always `false` in a build without `mutants`.
    #[cfg(not(feature = "mutants"))]
    #[inline(always)]
    #[must_use]
    pub const fn is_planted(&self) -> bool {
        false
    }

    /// Whether this guard is left out now.
    #[cfg(feature = "mutants")]
    #[inline]
    #[must_use]
    pub fn is_planted(&self) -> bool {
        planted::is(self)
    }
}

const fn fold(mut hash: u32, bytes: &[u8]) -> u32 {
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash
}

#[cfg(feature = "mutants")]
pub use planted::plant;

#[cfg(feature = "mutants")]
mod planted {
    use core::sync::atomic::{AtomicU32, Ordering};

    use super::Mutant;

    const NO_MUTANT: u32 = 0;

    #[cfg(not(test))]
    static PLANTED: AtomicU32 = AtomicU32::new(NO_MUTANT);

    #[cfg(test)]
    std::thread_local! {
        static PLANTED: AtomicU32 = const { AtomicU32::new(NO_MUTANT) };
    }

    #[cfg(not(test))]
    #[inline]
    fn with_planted<R>(use_it: impl FnOnce(&AtomicU32) -> R) -> R {
        use_it(&PLANTED)
    }

    #[cfg(test)]
    fn with_planted<R>(use_it: impl FnOnce(&AtomicU32) -> R) -> R {
        PLANTED.with(use_it)
    }

    /// Leaves out the guard of `mutant`, and puts back the one before; `None` puts back all.
    pub fn plant(mutant: Option<&Mutant>) {
        let chosen = mutant.map_or(NO_MUTANT, |mutant| mutant.mark);
        with_planted(|planted| planted.store(chosen, Ordering::Relaxed));
    }

    #[inline]
    pub(super) fn is(mutant: &Mutant) -> bool {
        with_planted(|planted| planted.load(Ordering::Relaxed)) == mutant.mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Mutant = Mutant::new("mutant", "one", "nothing");
    const OTHER: Mutant = Mutant::new("mutant", "other", "nothing");

    #[cfg(not(feature = "mutants"))]
    #[test]
    fn a_shipped_build_has_no_mutant() {
        const { assert!(!ONE.is_planted() && !OTHER.is_planted()) };
    }

    #[cfg(feature = "mutants")]
    #[test]
    fn one_mutant_is_planted_at_a_time() {
        plant(Some(&ONE));
        assert!(ONE.is_planted() && !OTHER.is_planted());
        plant(Some(&OTHER));
        assert!(!ONE.is_planted() && OTHER.is_planted());
        plant(None);
        assert!(!ONE.is_planted() && !OTHER.is_planted());
    }
}
