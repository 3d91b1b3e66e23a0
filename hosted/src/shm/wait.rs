//! What an endpoint does while it has nothing to do.
//!
//! | strategy | costs                          | answers            | fits                        |
//! |----------|--------------------------------|--------------------|-----------------------------|
//! | spin     | a whole processor              | soonest            | one processor per endpoint  |
//! | yield    | a processor without other load | when scheduled     | few processors, busy peers  |
//! | futex    | a fence per message for peers  | after a wake-up    | everything else             |
//!
//! Only `futex` ever sleeps, so only its peers need to ring ([`Wait::needs_bell`]).

use crate::words::words;

/// A wait strategy, in files and on command lines by its lower-case name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Looks again and again.
    Spin,
    /// Looks again after all other runnable threads have had a turn.
    Yield,
    /// Looks for a while, then sleeps until the bell rings.
    #[default]
    Futex,
}

impl Wait {
    /// Whether an endpoint with this strategy can sleep, so that its peers must ring.
    #[must_use]
    pub fn needs_bell(self) -> bool {
        match self {
            Self::Spin | Self::Yield => false,
            Self::Futex => true,
        }
    }
}

words!(
    Wait,
    "wait",
    "set wait to \"futex\", or ask `weft doctor` what fits this machine",
    Spin = "spin",
    Yield = "yield",
    Futex = "futex",
);
