//! Processes of one descent, found by what they have inherited, killed and waited for.
//!
//! A process is ended only if it is known to be one of them, whatever its number was used for
//! since: its environment has every entry that shows the descent; or it is in a group that was
//! noted, while the leader of that group still has the start time that was noted, or while a member
//! of the group has the entries. For as long as a group has a member, its number is given to no
//! other process.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use rustix::process::getpid;

use super::{Liveness, Pid, Pidfd};
use crate::clock::Deadline;

/// One process group: the number of its leader, and when that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessGroup {
    pub(super) leader: i32,
    pub(super) start: u64,
}

impl ProcessGroup {
    /// The group of this leader, if it is there.
    pub(super) fn of(leader: Pid) -> Option<Self> {
        let leader = leader.as_raw_nonzero().get();
        Some(Self { leader, start: ProcStat::look(leader)?.start })
    }
}

/// An entry of an environment.
#[derive(Clone, Debug)]
struct EnvironmentEntry {
    name: &'static str,
    /// None for whatever value.
    value: Option<OsString>,
}

impl EnvironmentEntry {
    fn is(&self, bytes: &[u8]) -> bool {
        let rest = bytes.strip_prefix(self.name.as_bytes());
        let value = rest.and_then(|rest| rest.strip_prefix(b"="));
        value.is_some_and(|value| self.value.as_ref().is_none_or(|it| it.as_bytes() == value))
    }
}

/// What shows that a process is one of those that are meant.
#[derive(Clone, Debug)]
pub(super) struct Descendants {
    /// Its environment has all of them.
    entries: Vec<EnvironmentEntry>,
    groups: Vec<ProcessGroup>,
}

impl Descendants {
    /// Those that have this entry in their environment.
    pub(super) fn with(name: &'static str, value: impl AsRef<OsStr>) -> Self {
        let value = Some(value.as_ref().to_owned());
        Self { entries: vec![EnvironmentEntry { name, value }], groups: Vec::new() }
    }

    /// Only those of them that have this entry, too.
    pub(super) fn and(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.entries.push(EnvironmentEntry { name, value: Some(value.as_ref().to_owned()) });
        self
    }

    /// Only those of them that have this variable, too, with whatever value.
    pub(super) fn and_any(mut self, name: &'static str) -> Self {
        self.entries.push(EnvironmentEntry { name, value: None });
        self
    }

    /// Those in these groups as well.
    pub(super) fn or_in(mut self, groups: &[ProcessGroup]) -> Self {
        self.groups.extend(groups);
        self
    }

    /// Kills all of them but this process, and waits for their end; how many they were.
    pub(super) fn end(&self, patience: Duration) -> Result<usize, StillRuns> {
        let deadline = Deadline::after(patience);
        let mut count = 0;
        loop {
            let found = self.find();
            let Some((first, _)) = found.first() else { return Ok(count) };
            let first = *first;
            for (_, process) in &found {
                // One that ends meanwhile is what was wanted; another user's is seen below.
                let _ = process.kill();
            }
            let is_dead = |(_, process): &&(i32, Pidfd)| {
                matches!(process.wait_dead(deadline.remaining()), Ok(Liveness::Dead))
            };
            count += found.iter().filter(is_dead).count();
            if deadline.has_passed() {
                return Err(StillRuns { process: first });
            }
        }
    }

    /// Every one of them that runs.
    fn find(&self) -> Vec<(i32, Pidfd)> {
        let own = getpid().as_raw_nonzero().get();
        let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
        let numbers = entries.filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
        let seen: Vec<(i32, ProcStat, bool)> = numbers
            .filter_map(|pid| Some((pid, ProcStat::look(pid)?, self.is_shown_by_environment(pid))))
            .collect();
        let is_ours = |group: &ProcessGroup| {
            seen.iter().any(|(pid, it, is_shown)| {
                let is_leader = *pid == group.leader && it.start == group.start;
                it.group == group.leader && (*is_shown || is_leader)
            })
        };
        let groups: Vec<i32> =
            self.groups.iter().filter(|it| is_ours(it)).map(|it| it.leader).collect();
        seen.into_iter()
            .filter(|(pid, it, is_shown)| {
                *pid != own && !it.is_dead && (*is_shown || groups.contains(&it.group))
            })
            .filter_map(|(pid, before, _)| {
                let process = Pidfd::open(Pid::from_raw(pid)?).ok()?;
                // Looked at again, now that no reuse of the number can come in between.
                (ProcStat::look(pid)? == before).then_some((pid, process))
            })
            .collect()
    }

    fn is_shown_by_environment(&self, pid: i32) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let has =
            |entry: &EnvironmentEntry| environment.split(|byte| *byte == 0).any(|it| entry.is(it));
        self.entries.iter().all(has)
    }
}

/// A process as /proc shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcStat {
    is_dead: bool,
    group: i32,
    /// In ticks since the host was started.
    start: u64,
}

impl ProcStat {
    fn look(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may hold anything.
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?;
        let group = fields.nth(1)?.parse().ok()?;
        let start = fields.nth(16)?.parse().ok()?;
        Some(Self { is_dead: matches!(state, "Z" | "X"), group, start })
    }
}

/// A process that was left does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("process {process} of an earlier incarnation of the node does not end")]
pub struct StillRuns {
    /// Its number.
    pub process: i32,
}
