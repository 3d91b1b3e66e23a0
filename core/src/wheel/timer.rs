//! What a caller says and hears about one timer.

use crate::time::{Duration, Instant};

/// The name of a timer, chosen by its owner: `0..TIMERS`. It is the place of the timer in the
/// slab, so owners share the keys of a wheel out among themselves, densely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Key(pub u32);

/// One run of a key, from a start until the timer is stopped or over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Handle {
    pub(super) key: Key,
    pub(super) generation: u32,
}

impl Handle {
    /// The key that runs.
    #[must_use]
    pub const fn key(self) -> Key {
        self.key
    }
}

/// Whether a timer goes on after it has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repeat {
    /// It is over. Its period, for a renewal, is the time from its start to its deadline.
    Once,
    /// It expires again and again, this much later each time, until the end of time.
    Every(Duration),
}

/// How a timer is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Suspension {
    /// It keeps running and keeps its phase; nothing is reported. A timer that is due once and
    /// expires in silence is over.
    Silent,
    /// It stands still and keeps the time that is left.
    Paused,
}

/// A timer that came due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Expiry {
    /// Whose it is.
    pub key: Key,
    /// When it was due.
    pub due: Instant,
    /// How many further cycles of a cyclic timer have ended since, by the last full tick that was
    /// advanced to. They are not reported again.
    pub missed: u64,
}

/// A timer as a dump shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timer {
    /// Whose it is.
    pub key: Key,
    /// The time from a renewal to the deadline, and between two expiries when it is cyclic.
    pub period: Duration,
    /// Whether it expires again and again.
    pub is_cyclic: bool,
    /// What it is doing, with its deadline.
    pub state: TimerState,
}

/// What a timer is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimerState {
    /// It will be reported.
    Running {
        /// When it expires.
        due: Instant,
    },
    /// It runs and will not be reported.
    Silent {
        /// When it expires.
        due: Instant,
    },
    /// It stands still.
    Paused {
        /// How long it still has to run.
        left: Duration,
    },
}
