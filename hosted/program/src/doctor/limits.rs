//! The limits that a process inherits: open files, address space, the stack and locked memory.
//!
//! Shared memory locks nothing; the last limit matters to RDMA devices alone, which lock
//! every page that peers may reach. None limit is raised here, although a process might
//! raise its own: the one it inherits is the one that its owner chose.

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};

use super::Finding;
use super::demand::Demand;

/// One limit; nothing means unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    /// What holds now.
    soft: Option<u64>,
    /// What the user may raise it to.
    hard: Option<u64>,
}

const UNBOUNDED: Bound = Bound { soft: None, hard: None };

/// The limits of this process.
pub(super) struct Limits {
    open_files: Bound,
    address_bytes: Bound,
    stack_bytes: Bound,
    locked_bytes: Bound,
}

/// What a component takes of the stack of its first thread to begin, in a build for debugging.
const STACK_BYTES: u64 = 4 << 20;

impl Limits {
    pub(super) fn probe() -> Self {
        let bound = |resource| {
            let limit = getrlimit(resource);
            Bound { soft: limit.current, hard: limit.maximum }
        };
        let locked_bytes = if may_lock_more() { UNBOUNDED } else { bound(Resource::Memlock) };
        Self {
            open_files: bound(Resource::Nofile),
            address_bytes: bound(Resource::As),
            stack_bytes: bound(Resource::Stack),
            locked_bytes,
        }
    }
}

/// The kernel asks a process with this right for no limit of locked memory: root has it, unless a
/// container took it.
fn may_lock_more() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK))
}

pub(super) fn advise(limits: &Limits, demand: &Demand) -> [Finding; 4] {
    [
        open_files(limits.open_files, demand),
        address_space(limits.address_bytes, demand),
        stack(limits.stack_bytes, demand),
        locked_memory(limits.locked_bytes, demand),
    ]
}

fn address_space(bound: Bound, demand: &Demand) -> Finding {
    let purpose = format!("a process of a cluster of {} nodes maps that much", demand.nodes);
    space("address space", bound, demand.address_bytes, ("ulimit -v", "as"), &purpose)
}

fn stack(bound: Bound, _: &Demand) -> Finding {
    space(
        "stack",
        bound,
        STACK_BYTES,
        ("ulimit -s", "stack"),
        "a component needs that much to start",
    )
}

/// A limit in bytes that `command` sets in KiB, and `item` in limits.conf.
fn space(
    subject: &'static str,
    bound: Bound,
    needed: u64,
    (command, item): (&str, &str),
    purpose: &str,
) -> Finding {
    let needed_kib = needed.div_ceil(1024);
    if is_enough(bound.soft, needed) {
        return Finding::good(subject, format!("{}, {needed_kib} KiB needed", kib(bound.soft)));
    }
    let cure = if is_enough(bound.hard, needed) {
        format!("run `{command} {needed_kib}` before weft")
    } else {
        format!("raise `{item}` to {needed_kib} in /etc/security/limits.conf and log in again")
    };
    let found = format!("{}, {needed_kib} KiB needed", kib(bound.soft));
    Finding::missing(subject, found).because(purpose).cured_by(cure)
}

fn open_files(bound: Bound, demand: &Demand) -> Finding {
    const SUBJECT: &str = "open files";
    let needed = demand.open_files;
    if is_enough(bound.soft, needed) {
        return Finding::good(SUBJECT, format!("{}, {needed} needed", shown(bound.soft)));
    }
    let cure = if is_enough(bound.hard, needed) {
        format!("run `ulimit -n {needed}` before weft")
    } else {
        format!("raise `nofile` to {needed} in /etc/security/limits.conf and log in again")
    };
    Finding::missing(SUBJECT, shown(bound.soft))
        .because(format!("a process of a cluster of {} has {needed} files open", demand.nodes))
        .cured_by(cure)
}

fn locked_memory(bound: Bound, demand: &Demand) -> Finding {
    const SUBJECT: &str = "locked memory";
    let needed_kib = demand.locked_bytes.div_ceil(1024);
    if is_enough(bound.soft, demand.locked_bytes) {
        return Finding::good(SUBJECT, kib(bound.soft));
    }
    let cure = if is_enough(bound.hard, demand.locked_bytes) {
        format!("run `ulimit -l {needed_kib}` before weft")
    } else {
        "set `memlock` to unlimited in /etc/security/limits.conf and log in again".to_owned()
    };
    Finding::warning(SUBJECT, kib(bound.soft))
        .because(format!(
            "a node locks {needed_kib} KiB of memory if its peers reach it over RDMA; shared \
             memory locks nothing"
        ))
        .cured_by(cure)
}

fn is_enough(bound: Option<u64>, needed: u64) -> bool {
    bound.is_none_or(|bound| bound >= needed)
}

fn shown(bound: Option<u64>) -> String {
    bound.map_or_else(|| "unlimited".to_owned(), |bound| bound.to_string())
}

fn kib(bound: Option<u64>) -> String {
    bound.map_or_else(|| "unlimited".to_owned(), |bytes| format!("{} KiB", bytes / 1024))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;
    use weft::shm::Wait;

    #[test]
    fn limits_are_judged_by_what_the_cluster_needs() {
        let demand = Demand {
            nodes: 4,
            wait: Wait::Futex,
            open_files: 40,
            address_bytes: 1024 * 1024,
            segment_bytes: 1,
            largest: "",
            locked_bytes: 64 * 1024,
        };
        for (judge, soft, hard, verdict, cure) in [
            (open_files as fn(Bound, &Demand) -> Finding, Some(40), Some(40), Severity::Good, ""),
            (open_files, None, None, Severity::Good, ""),
            (open_files, Some(39), Some(40), Severity::Missing, "ulimit -n 40"),
            (open_files, Some(39), Some(39), Severity::Missing, "limits.conf"),
            (address_space, None, None, Severity::Good, ""),
            (address_space, Some(1 << 20), None, Severity::Good, ""),
            (address_space, Some(1000), None, Severity::Missing, "ulimit -v 1024"),
            (address_space, Some(1000), Some(1000), Severity::Missing, "limits.conf"),
            (stack, Some(STACK_BYTES), None, Severity::Good, ""),
            (stack, Some(1 << 20), None, Severity::Missing, "ulimit -s 4096"),
            (locked_memory, None, None, Severity::Good, ""),
            (locked_memory, Some(64 * 1024), None, Severity::Good, ""),
            (locked_memory, Some(1), None, Severity::Warning, "ulimit -l 64"),
            (locked_memory, Some(1), Some(1), Severity::Warning, "limits.conf"),
        ] {
            let finding = judge(Bound { soft, hard }, &demand);
            assert_eq!(finding.verdict, verdict, "{finding:?}");
            assert!(finding.cure.contains(cure), "{finding:?}");
        }
    }
}
