//! Memory: is there room for the segments?
//!
//! Segments are allocated in full when they are made, so that no later write finds the
//! machine out of memory. What counts is the smallest of what the machine has left, what the
//! control group grants, and what strict overcommit accounting, where it is on, still allows.

use std::fs;

use super::Finding;
use super::control_group::ControlGroup;
use super::demand::Demand;

/// Bytes left, by each who counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// Of the machine; `None` if it does not report it.
    available: Option<u64>,
    /// Until the commit limit, if that is enforced.
    uncommitted: Option<u64>,
    /// Of the control group, if it has a limit.
    granted: Option<u64>,
}

impl Memory {
    pub(super) fn probe(group: &ControlGroup) -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self::of(&read("/proc/meminfo"), &read("/proc/sys/vm/overcommit_memory"), group)
    }

    fn of(meminfo: &str, overcommit: &str, group: &ControlGroup) -> Self {
        const STRICT: &str = "2";
        let bytes = |key| field_kib(meminfo, key).map(|kib| kib.saturating_mul(1024));
        let uncommitted = match (bytes("CommitLimit"), bytes("Committed_AS")) {
            (Some(limit), Some(used)) if overcommit.trim() == STRICT => {
                Some(limit.saturating_sub(used))
            }
            _ => None,
        };
        Self { available: bytes("MemAvailable"), uncommitted, granted: group.free_bytes }
    }
}

pub(super) fn advise(memory: &Memory, demand: &Demand) -> Finding {
    const SUBJECT: &str = "memory";
    let needed = demand.segment_bytes;
    let bounds = [
        (memory.available, "the machine", "end other programs or add memory"),
        (memory.granted, "the control group", "raise the memory limit of this container"),
        (memory.uncommitted, "the commit limit", "raise vm.overcommit_ratio with sysctl"),
    ];
    let tightest = bounds
        .into_iter()
        .filter_map(|(bytes, whose, cure)| bytes.map(|bytes| (bytes, whose, cure)))
        .min_by_key(|(bytes, ..)| *bytes);
    let Some((left, whose, cure)) = tightest else {
        return Finding::warning(SUBJECT, "unknown")
            .because("the kernel does not report how much is available")
            .cured_by("mount /proc");
    };
    let found = format!("{} left, {} needed", mib(left), mib(needed));
    let finding = if left < needed {
        Finding::missing(SUBJECT, found)
    } else if left / 2 < needed {
        Finding::warning(SUBJECT, found)
    } else {
        return Finding::good(SUBJECT, found);
    };
    finding
        .because(format!(
            "segments of {} nodes are allocated in full; {whose} sets the bound",
            demand.nodes
        ))
        .cured_by(format!("{cure}, or lower nodes, {}", demand.largest))
}

fn field_kib(meminfo: &str, key: &str) -> Option<u64> {
    meminfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(found, _)| *found == key)
        .and_then(|(_, value)| value.split_whitespace().next()?.parse().ok())
}

fn mib(bytes: u64) -> String {
    const MIB: u64 = 1024 * 1024;
    format!("{} MiB", bytes.div_ceil(MIB))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;
    use weft::shm::Wait;

    const MEMINFO: &str = "\
MemTotal:       8000 kB
MemAvailable:   4000 kB
CommitLimit:    3000 kB
Committed_AS:   2500 kB
";

    #[test]
    fn the_commit_limit_counts_only_when_it_is_enforced() {
        let group = ControlGroup { processors: None, free_bytes: Some(7) };
        for (overcommit, uncommitted) in [("0\n", None), ("1\n", None), ("2\n", Some(500 * 1024))] {
            let memory = Memory::of(MEMINFO, overcommit, &group);
            let expected = Memory { available: Some(4000 * 1024), uncommitted, granted: Some(7) };
            assert_eq!(memory, expected);
        }
        assert_eq!(
            Memory::of("MemAvailable: many kB", "", &ControlGroup::default()),
            Memory::default()
        );
    }

    #[test]
    fn the_tightest_bound_is_judged() {
        const NEEDED: u64 = 1000;
        let demand = Demand {
            nodes: 4,
            wait: Wait::Futex,
            open_files: 0,
            address_bytes: 0,
            segment_bytes: NEEDED,
            largest: "lane.slots",
            locked_bytes: 0,
        };
        for (available, granted, uncommitted, verdict, whose) in [
            (Some(2000), None, None, Severity::Good, ""),
            (Some(1999), None, None, Severity::Warning, "the machine"),
            (Some(999), None, None, Severity::Missing, "the machine"),
            (Some(9000), Some(10), None, Severity::Missing, "the control group"),
            (Some(9000), Some(9000), Some(0), Severity::Missing, "the commit limit"),
            (None, None, None, Severity::Warning, "the kernel"),
        ] {
            let finding = advise(&Memory { available, uncommitted, granted }, &demand);
            assert_eq!(finding.verdict, verdict, "{finding:?}");
            assert!(finding.cause.contains(whose), "{finding:?}");
        }
    }
}
