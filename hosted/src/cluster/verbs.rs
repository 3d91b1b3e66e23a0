//! `[verbs]`: the RDMA devices, and how long a pair bears silence.
//!
//! What the numbers come to is [`Config::worst_case_detection`] of [`Verbs::config`]; `weft up`,
//! `weft node` and `weft doctor` print it. It is how long a *pair* whose other end does not answer
//! goes unnoticed; a process that ends, or a node that falls silent, is noticed by other means
//! (`[dirnet]`). So the default is more patient than the driver's own: a lost pair costs an
//! incarnation.

use std::fmt;

use weft_core::time::Duration;
use weft_driver::Config;

use super::ClusterError;
use super::key;
use super::limit::LimitError;
use super::section::FileSection;

/// The RDMA devices of a cluster over verbs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verbs {
    /// `devices`: the device of each node, in the order of ranks, taken in turn when there are
    /// fewer; the host's first one when there are none.
    pub devices: Vec<String>,
    /// `timeout`: the exponent of the device's own timeout, 4.096 µs · 2^timeout; 1 to 31.
    pub timeout: u8,
    /// `retry_count`: how often a packet is repeated before the pair is given up, 0 to 6.
    pub retry_count: u8,
    /// `rnr_retry_count`: how often a peer may answer "not ready", 0 to 6.
    pub rnr_retry_count: u8,
    /// `rnr_timer`: the code of the pause that "not ready" asks for, 0 to 31.
    pub rnr_timer: u8,
    /// `deadline_ms`: how long a work may stay open before its pair is given up for it, even if
    /// the device still tries; 10 to 600 000.
    pub deadline_ms: u64,
}

impl Verbs {
    /// The device of node `rank`; none means the host's first.
    #[must_use]
    pub fn device(&self, rank: u16) -> Option<&str> {
        let turn = usize::from(rank).checked_rem(self.devices.len())?;
        self.devices.get(turn).map(String::as_str)
    }

    /// The driver's configuration.
    #[must_use]
    pub const fn config(&self) -> Config {
        Config {
            timeout: self.timeout,
            retry_count: self.retry_count,
            rnr_retry_count: self.rnr_retry_count,
            rnr_timer: self.rnr_timer,
            deadline: Duration::from_millis(self.deadline_ms),
            ..Config::DEFAULT
        }
    }

    /// How long a pair that is lost goes unnoticed.
    #[must_use]
    pub const fn detection(&self) -> Detection {
        let config = self.config();
        Detection {
            nominal_us: config.nominal_detection().as_micros(),
            worst_case_us: config.worst_case_detection().as_micros(),
        }
    }

    pub(super) fn read(section: &FileSection<'_>) -> Result<Self, ClusterError> {
        let devices = section.texts(key::VERBS_DEVICES.path)?.unwrap_or_default();
        let mut verbs = Self { devices, ..Self::default() };
        let small = |target: &mut u8, value: Option<u64>| {
            *target = value.and_then(|value| u8::try_from(value).ok()).unwrap_or(*target);
        };
        small(&mut verbs.timeout, section.number(&key::VERBS_TIMEOUT)?);
        small(&mut verbs.retry_count, section.number(&key::VERBS_RETRY_COUNT)?);
        small(&mut verbs.rnr_retry_count, section.number(&key::VERBS_RNR_RETRY_COUNT)?);
        small(&mut verbs.rnr_timer, section.number(&key::VERBS_RNR_TIMER)?);
        if let Some(value) = section.number(&key::VERBS_DEADLINE_MS)? {
            verbs.deadline_ms = value;
        }
        Ok(verbs)
    }

    pub(super) fn check(&self) -> Result<(), LimitError> {
        let numbers = [
            (key::VERBS_DEVICES, self.devices.len() as u64),
            (key::VERBS_TIMEOUT, u64::from(self.timeout)),
            (key::VERBS_RETRY_COUNT, u64::from(self.retry_count)),
            (key::VERBS_RNR_RETRY_COUNT, u64::from(self.rnr_retry_count)),
            (key::VERBS_RNR_TIMER, u64::from(self.rnr_timer)),
            (key::VERBS_DEADLINE_MS, self.deadline_ms),
        ];
        numbers.into_iter().try_for_each(|(key, value)| key.limit.admit(key.path, value))?;
        let key::Key { path, limit } = key::VERBS_DEVICE;
        self.devices.iter().try_for_each(|device| limit.admit_text(path, device.trim()))
    }
}

impl Default for Verbs {
    fn default() -> Self {
        let Config { timeout, rnr_retry_count, rnr_timer, .. } = Config::DEFAULT;
        let (retry_count, deadline_ms) = (6, 2_000);
        Self { devices: Vec::new(), timeout, retry_count, rnr_retry_count, rnr_timer, deadline_ms }
    }
}

/// How long a pair that is lost goes unnoticed once there is work for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detection {
    /// By a device that keeps to its timeout, in microseconds.
    pub nominal_us: u64,
    /// At most: by a device that takes four times as long, as it may, or by the deadline.
    pub worst_case_us: u64,
}

impl fmt::Display for Detection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |us: u64| us.div_ceil(1_000);
        let (nominal, worst) = (ms(self.nominal_us), ms(self.worst_case_us));
        write!(f, "a lost pair is noticed after {nominal} ms, after {worst} ms at worst")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_set_is_what_the_driver_takes() {
        let verbs = Verbs::default();
        assert_eq!(verbs.check().map_err(|error| error.to_string()), Ok(()));
        for verbs in [
            Verbs { timeout: 1, retry_count: 0, rnr_retry_count: 0, rnr_timer: 0, ..verbs.clone() },
            Verbs { timeout: 31, retry_count: 6, rnr_timer: 31, deadline_ms: 600_000, ..verbs },
        ] {
            assert_eq!(verbs.check().map_err(|error| error.to_string()), Ok(()));
            assert_eq!(verbs.config().check(), Ok(()));
        }
    }

    #[test]
    fn what_never_ends_and_what_has_no_name_is_refused() {
        let none = Verbs::default;
        for (verbs, cause) in [
            (Verbs { timeout: 0, ..none() }, "verbs.timeout is 0, but must be 1 to 31"),
            (Verbs { retry_count: 7, ..none() }, "verbs.retry_count is 7, but must be 0 to 6"),
            (
                Verbs { devices: vec!["rxe0".to_owned(), " ".to_owned()], ..none() },
                "verbs.devices is \"\", but must be 1 to 63 bytes without a zero byte",
            ),
        ] {
            assert_eq!(verbs.check().map_err(|error| error.to_string()), Err(cause.to_owned()));
        }
    }

    #[test]
    fn the_detection_is_what_the_numbers_come_to() {
        let said = |verbs: &Verbs| verbs.detection().to_string();
        let verbs = Verbs::default();
        assert_eq!(said(&verbs), "a lost pair is noticed after 470 ms, after 1880 ms at worst");
        let verbs = Verbs { timeout: 20, deadline_ms: 500, ..verbs };
        assert_eq!(said(&verbs), "a lost pair is noticed after 30065 ms, after 500 ms at worst");
    }
}
