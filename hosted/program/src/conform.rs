//! What a fabric really does, beside what the port promises (`weft_core::fabric`, F-1 to F-15).
//!
//! ```text
//!   suite    the cases of weft_core::fabric::conformance, each on new endpoints    held, or not
//!   probes   works by the thousand, and a second thread that looks at the memory   seen
//!      └──▶ Tally: one row a rule ──▶ Report
//! ```
//!
//! The suite judges what a fabric promises. The probes see what no rule promises and protocols
//! must not rely on: the order in which the bytes of one write are placed, whether words are torn,
//! whether the processor's own atomics and the fabric's see each other. What two fabrics
//! showed is in `conform/RESULTS.md`.

mod probes;
mod suite;
mod tally;
#[cfg(feature = "verbs")]
mod verbs;

use weft::clock::now_ns;
use weft::node::VerbsError;
use weft::shm::conformance::{Host, HostError};
use weft_core::fabric::Fabric;
use weft_core::fabric::conformance::Harness;
use weft_core::time::Instant;

pub(crate) use tally::ConformanceReport;
use tally::Tally;

/// The time, for fabrics and for what is measured.
fn now() -> Instant {
    Instant(now_ns())
}

/// Which fabric is examined.
#[derive(Clone, Debug)]
pub(crate) enum ConformSubject {
    /// Shared memory of this host.
    Shm,
    /// These devices, one for each endpoint in turn; none for the first that there is.
    Verbs(Vec<String>),
}

/// Why a fabric was not examined.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConformError {
    /// No endpoints over shared memory.
    #[error(transparent)]
    Host(#[from] HostError),
    /// No endpoints over devices.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// The device ended under the examination.
    #[error("the device became unusable before or while `{at}` was tried: {cause}")]
    Vanished {
        /// The case or probe.
        at: &'static str,
        /// What it says now.
        cause: VerbsError,
    },
    /// No thread to look at memory with.
    #[error("no thread can be started to look at the memory: {0}")]
    Thread(#[source] std::io::Error),
}

impl ConformError {
    /// The error of endpoints for `at`, after others were there.
    fn later(self, at: &'static str) -> Self {
        match self {
            Self::Verbs(cause) => Self::Vanished { at, cause },
            other => other,
        }
    }
}

/// The endpoints that the suite and the probes need.
trait Bench: Harness + Sized {
    /// New ones.
    fn make(subject: &ConformSubject) -> Result<Self, ConformError>;

    /// The first endpoint, which posts, and the second one, whose memory is looked at.
    fn both(&mut self) -> (&mut Self::Fabric, &mut Self::Fabric);

    /// Whether what the endpoints stand on is still there.
    fn check(subject: &ConformSubject) -> Result<(), ConformError>;

    /// The old value of an atomic that completed and whose old value never came.
    const UNTOUCHED: Option<u64> = None;

    /// What the device itself says of the order of bytes.
    fn said(fabric: &Self::Fabric) -> Option<String>;
}

impl Bench for Host {
    fn make(_subject: &ConformSubject) -> Result<Self, ConformError> {
        Ok(Self::new()?)
    }

    fn both(&mut self) -> (&mut Self::Fabric, &mut Self::Fabric) {
        self.both(0, 1)
    }

    fn check(_subject: &ConformSubject) -> Result<(), ConformError> {
        Ok(())
    }

    fn said(_fabric: &Self::Fabric) -> Option<String> {
        None
    }
}

/// Runs every case `rounds` times and every probe for as many tenths of a second; `step` hears of
/// each.
///
/// # Errors
/// [`ConformError`]: nothing could be said of the fabric. What does not hold is in the report.
pub(crate) fn examine(
    subject: &ConformSubject,
    rounds: u32,
    step: impl FnMut(&'static str),
) -> Result<ConformanceReport, ConformError> {
    match subject {
        ConformSubject::Shm => examine_with::<Host>(subject, rounds, step),
        #[cfg(feature = "verbs")]
        ConformSubject::Verbs(_) => {
            examine_with::<weft_driver::conformance::Rig>(subject, rounds, step)
        }
        #[cfg(not(feature = "verbs"))]
        ConformSubject::Verbs(_) => Err(VerbsError::NotBuilt.into()),
    }
}

/// How many steps `examine` takes.
pub(crate) fn steps(rounds: u32) -> u64 {
    u64::from(rounds) * suite::cases() + probes::PROBES
}

fn examine_with<B: Bench>(
    subject: &ConformSubject,
    rounds: u32,
    mut step: impl FnMut(&'static str),
) -> Result<ConformanceReport, ConformError>
where
    <B::Fabric as Fabric>::Memory: weft_core::fabric::WordMemory + Sync + Sized,
{
    drop(B::make(subject)?);
    let mut tally = Tally::new();
    suite::run::<B>(subject, rounds, &mut tally, &mut step)?;
    probes::run::<B>(subject, rounds, &mut tally, &mut step)?;
    let (fabric, devices) = match subject {
        ConformSubject::Shm => ("shm", Vec::new()),
        ConformSubject::Verbs(devices) => ("verbs", devices.clone()),
    };
    Ok(tally.report(fabric, devices))
}

#[cfg(test)]
mod tests {
    use weft::shm::ShmFabric;
    use weft_core::ids::{Incarnation, Peer};

    use super::*;

    /// Shared memory that does not notice that a peer has ended.
    struct Deaf(Host);

    impl Harness for Deaf {
        type Fabric = ShmFabric;

        fn at(&mut self, peer: Peer) -> &mut ShmFabric {
            self.0.at(peer)
        }

        fn now(&mut self) -> Instant {
            self.0.now()
        }

        fn lose(&mut self, _peer: Peer) {}

        fn revive(&mut self, peer: Peer) -> Incarnation {
            self.0.revive(peer)
        }
    }

    impl Bench for Deaf {
        fn make(_subject: &ConformSubject) -> Result<Self, ConformError> {
            Ok(Self(Host::new()?))
        }

        fn both(&mut self) -> (&mut ShmFabric, &mut ShmFabric) {
            self.0.both(0, 1)
        }

        fn check(_subject: &ConformSubject) -> Result<(), ConformError> {
            Ok(())
        }

        fn said(_fabric: &ShmFabric) -> Option<String> {
            None
        }
    }

    #[test]
    fn a_rule_that_a_fabric_breaks_is_named_with_what_was_seen() {
        let report = examine_with::<Deaf>(&ConformSubject::Shm, 1, |_| ()).unwrap();
        let broken: Vec<_> = report.rules.iter().filter(|rule| !rule.held).collect();
        let names: Vec<_> = broken.iter().map(|rule| rule.rule).collect();
        assert_eq!(names, ["F-6"], "{report}");
        assert!(!report.ok && broken[0].seen.contains("f6_"), "{}", broken[0].seen);
    }
}
