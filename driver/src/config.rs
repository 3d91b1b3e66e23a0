//! What can be set, what is refused, and how long a loss may stay unnoticed.
//!
//! The device repeats a packet `retry_count` times, each after a time of its own choosing between
//! one and four times 4.096 µs · 2^`timeout`, and then gives the peer up:
//!
//! ```text
//!   nominal detection    (retry_count + 1) · 4.096 µs · 2^timeout
//!   worst case           four times that, for a device that takes all its freedom, or the
//!                        deadline if that is sooner
//!   deadline             ours, for work that the device never completes at all (F-12)
//! ```
//!
//! | timeout / retries | nominal | seen on soft-RoCE, process killed |
//! |---|---|---|
//! | 10 / 3 | 17 ms | 36 ms |
//! | 14 / 1 | 134 ms | 124 ms |
//! | 14 / 3 (default) | 268 ms | 290 ms |
//! | 14 / 6 | 470 ms | 476 ms |
//!
//! Timeout 0 and retry count 7 mean "forever" to a device, and are refused.

use weft_core::time::Duration;

/// How the pairs of a fabric behave. Every endpoint has its own; they need not be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The exponent of the device's own timeout, 1 to 31. Below 14 a retransmission may overtake
    /// its answer on a slow path, which soft-RoCE's atomics do not survive: the word is right and
    /// the old value lost. Where packets overtake each other it was seen at 14 too, 3 times in 40.
    pub timeout: u8,
    /// How often a packet is repeated before the peer is given up, 0 to 6.
    pub retry_count: u8,
    /// How often a peer may answer "not ready", 0 to 6. One-sided work has no such answers.
    pub rnr_retry_count: u8,
    /// The code of the pause that this end asks for with "not ready", 0 to 31, as the InfiniBand
    /// specification counts them: 1 is 0.01 ms, 12 is 0.64 ms, 31 is 492 ms, 0 is 655 ms.
    pub rnr_timer: u8,
    /// How many works may be outstanding to one peer, 32 to 8192. Each costs 4 KiB of pinned
    /// memory for its bytes and its result.
    pub depth: u16,
    /// Up to how many bytes a write is handed to the device with the work itself; devices that
    /// take less are given less.
    pub inline_len_max: u32,
    /// How many reads and atomics may be on their way to one peer, 1 to 255, as far as both
    /// devices go along.
    pub reads_in_flight_max: u8,
    /// Longer transfers are cut into pieces of this size; devices that take less get less.
    pub message_len_max: u32,
    /// How long a work may stay open before the pair is failed for it (F-12), counted from the
    /// first poll after its post. Longer than the worst case of the device's own detection,
    /// unless the driver shall be the first to give up.
    pub deadline: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why a configuration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Not 1 to 31; 0 waits forever.
    #[error("timeout is {0}, but must be 1 to 31")]
    Timeout(u8),
    /// Not 0 to 6; 7 repeats forever.
    #[error("retry count is {0}, but must be 0 to 6")]
    RetryCount(u8),
    /// Not 0 to 6; 7 repeats forever.
    #[error("receiver-not-ready retry count is {0}, but must be 0 to 6")]
    RnrRetryCount(u8),
    /// Not 0 to 31.
    #[error("receiver-not-ready timer is {0}, but must be 0 to 31")]
    RnrTimer(u8),
    /// Not 32 to 8192.
    #[error("depth is {0}, but must be 32 to 8192")]
    Depth(u16),
    /// No read could ever be on its way.
    #[error("at least one read must be allowed in flight")]
    NoReadsInFlight,
    /// Not a multiple of 8, or zero.
    #[error("message length is {0}, but must be a positive multiple of 8")]
    MessageLen(u32),
    /// Everything would be overdue at once.
    #[error("the deadline must be longer than nothing")]
    NoDeadline,
}

impl Config {
    /// What fits most: a loss is noticed in about a quarter of a second.
    pub const DEFAULT: Self = Self {
        timeout: 14,
        retry_count: 3,
        rnr_retry_count: 6,
        rnr_timer: 12,
        depth: 64,
        inline_len_max: 512,
        reads_in_flight_max: 16,
        message_len_max: 1 << 30,
        deadline: Duration::from_millis(2_000),
    };

    /// Whether every field is within its bounds.
    ///
    /// # Errors
    /// [`ConfigError`], the first that holds.
    pub const fn check(&self) -> Result<(), ConfigError> {
        match self {
            Self { timeout: 0 | 32.., .. } => Err(ConfigError::Timeout(self.timeout)),
            Self { retry_count: 7.., .. } => Err(ConfigError::RetryCount(self.retry_count)),
            Self { rnr_retry_count: 7.., .. } => {
                Err(ConfigError::RnrRetryCount(self.rnr_retry_count))
            }
            Self { rnr_timer: 32.., .. } => Err(ConfigError::RnrTimer(self.rnr_timer)),
            Self { depth: ..32 | 8193.., .. } => Err(ConfigError::Depth(self.depth)),
            Self { reads_in_flight_max: 0, .. } => Err(ConfigError::NoReadsInFlight),
            Self { deadline: Duration(0), .. } => Err(ConfigError::NoDeadline),
            Self { message_len_max: len, .. } if *len == 0 || !len.is_multiple_of(8) => {
                Err(ConfigError::MessageLen(*len))
            }
            Self { .. } => Ok(()),
        }
    }

    /// How long a device takes to give a dead peer up that keeps to its timeout.
    #[must_use]
    pub const fn nominal_detection(&self) -> Duration {
        let tries = self.retry_count as u64 + 1;
        Duration((4_096_u64 << self.timeout).saturating_mul(tries))
    }

    /// How long a dead peer may go unnoticed at most: by the device, which may take four times
    /// its timeout, or by the deadline, whichever is first.
    #[must_use]
    pub const fn worst_case_detection(&self) -> Duration {
        let device = self.nominal_detection().0.saturating_mul(4);
        if device < self.deadline.0 { Duration(device) } else { self.deadline }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(change: impl FnOnce(&mut Config)) -> Result<(), ConfigError> {
        let mut config = Config::default();
        change(&mut config);
        config.check()
    }

    #[test]
    fn the_default_is_sound_and_notices_a_loss_in_about_a_second() {
        let config = Config::default();
        assert_eq!(config.check(), Ok(()));
        assert_eq!(config.nominal_detection().as_micros(), 268_435);
        assert_eq!(config.worst_case_detection().as_micros(), 1_073_741);
    }

    #[test]
    fn what_never_ends_is_refused() {
        assert_eq!(with(|config| config.timeout = 0), Err(ConfigError::Timeout(0)));
        assert_eq!(with(|config| config.timeout = 32), Err(ConfigError::Timeout(32)));
        assert_eq!(with(|config| config.retry_count = 7), Err(ConfigError::RetryCount(7)));
        assert_eq!(with(|config| config.rnr_retry_count = 7), Err(ConfigError::RnrRetryCount(7)));
        assert_eq!(with(|config| config.deadline = Duration(0)), Err(ConfigError::NoDeadline));
    }

    #[test]
    fn what_cannot_work_is_refused() {
        assert_eq!(with(|config| config.depth = 31), Err(ConfigError::Depth(31)));
        assert_eq!(with(|config| config.depth = 8193), Err(ConfigError::Depth(8193)));
        assert_eq!(with(|config| config.rnr_timer = 32), Err(ConfigError::RnrTimer(32)));
        assert_eq!(with(|config| config.message_len_max = 12), Err(ConfigError::MessageLen(12)));
        let none = with(|config| config.reads_in_flight_max = 0);
        assert_eq!(none, Err(ConfigError::NoReadsInFlight));
    }

    #[test]
    fn the_deadline_bounds_the_worst_case() {
        let config = Config { timeout: 31, retry_count: 6, ..Config::default() };
        assert_eq!(config.worst_case_detection(), config.deadline);
        assert_eq!(config.nominal_detection().as_micros() / 1_000_000, 61_572);
    }
}
