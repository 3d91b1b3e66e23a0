//! Processors: how many, how many of them for us, and how to wait on them.
//!
//! A poller that spins is only fast while it and the peer that it waits for have a processor
//! each. With fewer, the spinner takes the time that its peer needs to answer.
//! The advice is a rule of thumb from counts; `weft bench` measures what it is worth.

use std::{fs, thread};

use super::Finding;
use super::control_group::ControlGroup;
use super::demand::Demand;
use weft::shm::Wait;

/// The processors of this machine, as far as this process sees them.
pub(super) struct Processors {
    /// Those this process may run on.
    allowed: usize,
    /// Processors' worth of time that the control group grants.
    quota: Option<f64>,
    /// How many were busy in the last minute.
    busy: f64,
    /// Whether one instruction computes CRC-32C.
    crc: bool,
}

impl Processors {
    pub(super) fn probe(group: &ControlGroup) -> Self {
        let allowed = match rustix::thread::sched_getaffinity(None) {
            Ok(set) => set.count() as usize,
            // More processors than the set has room for.
            Err(_) => thread::available_parallelism().map_or(1, usize::from),
        };
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let busy = load.split_whitespace().next().and_then(|minute| minute.parse().ok());
        Self { allowed, quota: group.processors, busy: busy.unwrap_or(0.0), crc: has_crc() }
    }

    /// How many threads can run at the same time.
    fn usable(&self) -> usize {
        self.quota.map_or(self.allowed, |quota| self.allowed.min(quota as usize))
    }

    fn idle(&self) -> usize {
        self.usable().saturating_sub(self.busy.ceil() as usize)
    }
}

pub(super) fn advise(processors: &Processors, demand: &Demand) -> [Finding; 4] {
    [count(processors), quota(processors), wait(processors, demand), crc(processors.crc)]
}

fn count(processors: &Processors) -> Finding {
    const SUBJECT: &str = "processors";
    let found = format!("{} allowed, {:.1} busy", processors.allowed, processors.busy);
    if processors.allowed >= 2 {
        return Finding::good(SUBJECT, found);
    }
    Finding::warning(SUBJECT, found)
        .because("every message costs a switch between processes")
        .cured_by("start weft without taskset, or give this machine a second processor")
}

fn quota(processors: &Processors) -> Finding {
    const SUBJECT: &str = "processor quota";
    match processors.quota {
        None => Finding::good(SUBJECT, "none"),
        Some(quota) if quota >= processors.allowed as f64 => {
            Finding::good(SUBJECT, format!("{quota:.1} processors, not less than allowed"))
        }
        Some(quota) => Finding::warning(SUBJECT, format!("{quota:.1} processors"))
            .because("when it is used up, all nodes stop for some ms, which looks like a hung peer")
            .cured_by("raise the cpu limit of this container or control group"),
    }
}

fn wait(processors: &Processors, demand: &Demand) -> Finding {
    const SUBJECT: &str = "wait strategy";
    let fitting = fitting_wait(processors, demand.nodes);
    let configured = demand.wait;
    if greed(configured) > greed(fitting) {
        return Finding::warning(SUBJECT, configured.as_str())
            .because(format!(
                "{} nodes that poll share {} processors, {} of them idle",
                demand.nodes,
                processors.usable(),
                processors.idle()
            ))
            .cured_by(format!("set wait = \"{fitting}\" in the cluster file"));
    }
    if fitting == configured {
        return Finding::good(SUBJECT, configured.as_str());
    }
    Finding::good(SUBJECT, format!("{configured}; here {fitting} would be faster"))
}

/// The fastest strategy that does not take processors from the nodes themselves.
fn fitting_wait(processors: &Processors, nodes: usize) -> Wait {
    // One more than the nodes, for all that is not a node.
    if processors.idle() > nodes {
        Wait::Spin
    } else if processors.usable() >= nodes {
        Wait::Yield
    } else {
        Wait::Futex
    }
}

fn greed(wait: Wait) -> u8 {
    match wait {
        Wait::Futex => 0,
        Wait::Yield => 1,
        Wait::Spin => 2,
    }
}

fn crc(present: bool) -> Finding {
    const SUBJECT: &str = "crc32c instruction";
    if present {
        return Finding::good(SUBJECT, "present");
    }
    Finding::warning(SUBJECT, "absent")
        .because("checksums are computed by table, which costs time for every message")
        .cured_by("let the virtual machine pass the host's processor model through")
}

#[cfg(target_arch = "x86_64")]
fn has_crc() -> bool {
    std::arch::is_x86_feature_detected!("sse4.2")
}

#[cfg(target_arch = "aarch64")]
fn has_crc() -> bool {
    std::arch::is_aarch64_feature_detected!("crc")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has_crc() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use Wait::{Futex, Spin, Yield};

    use super::*;
    use crate::doctor::Severity;

    fn processors(allowed: usize, quota: Option<f64>, busy: f64) -> Processors {
        Processors { allowed, quota, busy, crc: true }
    }

    #[test]
    fn the_fitting_strategy_follows_idle_processors() {
        for (allowed, quota, busy, nodes, fitting) in [
            (2, None, 0.0, 4, Futex),
            (4, None, 0.0, 4, Yield),
            (5, None, 0.0, 4, Spin),
            (5, None, 0.2, 4, Yield),
            (16, None, 11.5, 4, Yield),
            (16, None, 40.0, 4, Yield),
            (16, Some(2.5), 0.0, 4, Futex),
            (16, Some(5.0), 0.0, 4, Spin),
            (1, None, 0.0, 2, Futex),
        ] {
            let found = fitting_wait(&processors(allowed, quota, busy), nodes);
            assert_eq!(found, fitting, "{allowed} {quota:?} {busy} {nodes}");
        }
    }

    #[test]
    fn only_a_greedier_strategy_than_fits_is_warned_of() {
        let two = processors(2, None, 0.0);
        for (nodes, wait, verdict, found) in [
            (4, Futex, Severity::Good, "futex"),
            (4, Spin, Severity::Warning, "spin"),
            (4, Yield, Severity::Warning, "yield"),
            (2, Yield, Severity::Good, "yield"),
            (2, Futex, Severity::Good, "futex; here yield would be faster"),
        ] {
            let demand = Demand {
                nodes,
                wait,
                open_files: 0,
                address_bytes: 0,
                segment_bytes: 0,
                largest: "",
                locked_bytes: 0,
            };
            let finding = super::wait(&two, &demand);
            assert_eq!((finding.verdict, finding.found.as_str()), (verdict, found));
        }
    }

    #[test]
    fn a_quota_below_the_processors_is_warned_of() {
        for (allowed, granted, verdict) in [
            (2, None, Severity::Good),
            (2, Some(2.0), Severity::Good),
            (2, Some(1.5), Severity::Warning),
        ] {
            assert_eq!(quota(&processors(allowed, granted, 0.0)).verdict, verdict);
        }
        assert_eq!(count(&processors(1, None, 0.0)).verdict, Severity::Warning);
        assert_eq!(crc(false).verdict, Severity::Warning);
    }
}
