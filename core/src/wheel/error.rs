//! Why an operation on the wheel is refused. A refused operation changes nothing.

use core::fmt;

use crate::time::Instant;

/// The handle's timer was stopped or is over. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale;

/// The time given lies before one that was advanced to. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWentBack {
    /// The time the wheel was last advanced to.
    pub latest: Instant,
}

/// The wheel has fewer keys. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchKey;

/// Why a timer is not started. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// The time given lies before one that was advanced to.
    TimeWentBack(TimeWentBack),
    /// The wheel has fewer keys.
    NoSuchKey,
    /// The key was started before and is neither stopped nor over.
    Live,
    /// A cyclic timer needs a period.
    ZeroPeriod,
}

/// Why a timer is not renewed. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewError {
    /// The time given lies before one that was advanced to.
    TimeWentBack(TimeWentBack),
    /// The timer was stopped or is over.
    Stale,
}

/// Why a timer keeps its period. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeriodError {
    /// The timer was stopped or is over.
    Stale,
    /// A cyclic timer needs a period.
    ZeroPeriod,
}

/// Why a timer is not suspended. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuspendError {
    /// The time given lies before one that was advanced to.
    TimeWentBack(TimeWentBack),
    /// The timer was stopped or is over.
    Stale,
    /// It is suspended, in this way or the other.
    AlreadySuspended,
}

/// Why a timer is not resumed. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeError {
    /// The time given lies before one that was advanced to.
    TimeWentBack(TimeWentBack),
    /// The timer was stopped or is over.
    Stale,
    /// It is not suspended.
    NotSuspended,
}

const NO_SUCH_KEY: &str = "the wheel has fewer keys";
const STALE: &str = "the timer was stopped or is over";
const ZERO_PERIOD: &str = "a cyclic timer needs a period";

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STALE)
    }
}

impl fmt::Display for NoSuchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NO_SUCH_KEY)
    }
}

impl fmt::Display for TimeWentBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "time went back, it was {} ns before", self.latest.0)
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimeWentBack(back) => back.fmt(f),
            Self::NoSuchKey => f.write_str(NO_SUCH_KEY),
            Self::Live => f.write_str("the key has a timer that is not over"),
            Self::ZeroPeriod => f.write_str(ZERO_PERIOD),
        }
    }
}

impl fmt::Display for RenewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimeWentBack(back) => back.fmt(f),
            Self::Stale => f.write_str(STALE),
        }
    }
}

impl fmt::Display for PeriodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stale => STALE,
            Self::ZeroPeriod => ZERO_PERIOD,
        })
    }
}

impl fmt::Display for SuspendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimeWentBack(back) => back.fmt(f),
            Self::Stale => f.write_str(STALE),
            Self::AlreadySuspended => f.write_str("the timer is suspended already"),
        }
    }
}

impl fmt::Display for ResumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimeWentBack(back) => back.fmt(f),
            Self::Stale => f.write_str(STALE),
            Self::NotSuspended => f.write_str("the timer is not suspended"),
        }
    }
}

macro_rules! is_an_error {
    ($($name:ident)*) => {$( impl core::error::Error for $name {} )*};
}

macro_rules! may_be_stale {
    ($($name:ident)*) => {$(
        impl From<Stale> for $name {
            fn from(_: Stale) -> Self {
                Self::Stale
            }
        }
    )*};
}

macro_rules! may_be_late {
    ($($name:ident)*) => {$(
        impl From<TimeWentBack> for $name {
            fn from(back: TimeWentBack) -> Self {
                Self::TimeWentBack(back)
            }
        }
    )*};
}

is_an_error!(NoSuchKey Stale TimeWentBack);
is_an_error!(StartError RenewError PeriodError SuspendError ResumeError);
may_be_stale!(RenewError PeriodError SuspendError ResumeError);
may_be_late!(StartError RenewError SuspendError ResumeError);
