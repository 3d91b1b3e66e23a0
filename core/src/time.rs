//! Time as the machines know it: nanoseconds that the caller counts.
//!
//! Core never reads a clock. Every input that depends on time carries an [`Instant`], counted
//! from any origin the caller likes as long as it does not run backwards, and every machine
//! names the [`Instant`] at which it wants to be called again.

/// A point in time, in nanoseconds since an origin of the caller's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Instant(pub u64);

/// A span of time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Duration(pub u64);

impl Instant {
    /// How long after `earlier` this is; zero when it is not after it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// The point `span` later, at the latest the end of time.
    #[must_use]
    pub const fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Duration {
    /// `count` microseconds.
    #[must_use]
    pub const fn from_micros(count: u64) -> Self {
        Self(count.saturating_mul(1_000))
    }

    /// `count` milliseconds.
    #[must_use]
    pub const fn from_millis(count: u64) -> Self {
        Self(count.saturating_mul(1_000_000))
    }

    /// The span in whole microseconds.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_saturate_instead_of_wrapping() {
        assert_eq!(Instant(5).since(Instant(9)), Duration(0));
        assert_eq!(Instant(u64::MAX - 1).after(Duration(7)), Instant(u64::MAX));
        assert_eq!(Duration::from_millis(u64::MAX), Duration(u64::MAX));
    }
}
