//! What the control groups of this process still grant it.
//!
//! Both versions of the interface are read, since many machines mount both. A limit set at
//! any level holds for all below, so the levels are walked from the process's own to the
//! root and the tightest counts. Inside a container the own level often is not visible under
//! the name that the process knows; levels that are not there are passed over.

use std::fs;
use std::path::Path;

/// The tightest limits; nothing means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ControlGroup {
    /// Processors' worth of time.
    pub(super) processors: Option<f64>,
    /// Bytes until the limit.
    pub(super) free_bytes: Option<u64>,
}

impl ControlGroup {
    pub(super) fn probe() -> Self {
        let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::of(&membership, Path::new("/sys/fs/cgroup"))
    }

    /// The limits of a process that is a member of these groups, as `/proc/<pid>/cgroup` lists
    /// them, in the hierarchies mounted below `root`.
    fn of(membership: &str, root: &Path) -> Self {
        let mut tightest = Self::default();
        for line in membership.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
                continue;
            };
            let own = Path::new(path.trim_start_matches('/'));
            for controller in controllers.split(',') {
                for level in own.ancestors() {
                    tightest = tightest.and(at_level(controller, root, level));
                }
            }
        }
        tightest
    }

    fn and(self, other: Self) -> Self {
        let processors = match (self.processors, other.processors) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let free_bytes = match (self.free_bytes, other.free_bytes) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self { processors, free_bytes }
    }
}

fn at_level(controller: &str, root: &Path, level: &Path) -> ControlGroup {
    let mut found = ControlGroup::default();
    match controller {
        // The second version has one hierarchy for all, listed without a name.
        "" => {
            for mount in [root.to_owned(), root.join("unified")] {
                let dir = mount.join(level);
                let max = fs::read_to_string(dir.join("cpu.max")).unwrap_or_default();
                let mut fields = max.split_whitespace();
                let quota = ratio(number(fields.next()), number(fields.next()));
                found = found.and(ControlGroup {
                    processors: quota,
                    free_bytes: free(&dir, "memory.max", "memory.current"),
                });
            }
        }
        "cpu" => {
            let dir = root.join("cpu").join(level);
            let quota = read_number(&dir, "cpu.cfs_quota_us");
            found.processors = ratio(quota, read_number(&dir, "cpu.cfs_period_us"));
        }
        "memory" => {
            let dir = root.join("memory").join(level);
            found.free_bytes = free(&dir, "memory.limit_in_bytes", "memory.usage_in_bytes");
        }
        _ => {}
    }
    found
}

fn free(dir: &Path, limit: &str, used: &str) -> Option<u64> {
    let limit = read_number(dir, limit).filter(|limit| *limit < UNLIMITED_BYTES)?;
    Some(limit.saturating_sub(read_number(dir, used)?))
}

fn ratio(quota: Option<u64>, period: Option<u64>) -> Option<f64> {
    let period = period.filter(|period| *period > 0)?;
    Some(quota? as f64 / period as f64)
}

fn read_number(dir: &Path, file: &str) -> Option<u64> {
    let text = fs::read_to_string(dir.join(file)).ok()?;
    number(Some(text.trim()))
}

/// `max` and `-1`, the two ways to say unlimited, are no numbers here.
fn number(text: Option<&str>) -> Option<u64> {
    text?.parse().ok()
}

/// The first version says unlimited as the largest number of whole pages.
const UNLIMITED_BYTES: u64 = 1 << 60;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("below the root")).expect("ours");
            fs::write(path, text).expect("ours");
        }
    }

    #[test]
    fn the_tightest_level_of_either_version_counts() {
        for (membership, files, processors, free_bytes) in [
            ("0::/\n", &[][..], None, None),
            (
                "0::/a/b\n",
                &[
                    ("a/b/cpu.max", "max 100000\n"),
                    ("a/cpu.max", "150000 100000\n"),
                    ("cpu.max", "800000 100000\n"),
                    ("a/memory.max", "4096\n"),
                    ("a/memory.current", "1096\n"),
                    ("a/b/memory.max", "max\n"),
                ][..],
                Some(1.5),
                Some(3000),
            ),
            (
                "4:memory:/m\n1:cpu,cpuacct:/not/visible\n0::/\n",
                &[
                    ("cpu/cpu.cfs_quota_us", "50000\n"),
                    ("cpu/cpu.cfs_period_us", "100000\n"),
                    ("memory/m/memory.limit_in_bytes", "1000\n"),
                    ("memory/m/memory.usage_in_bytes", "2000\n"),
                    ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
                    ("memory/memory.usage_in_bytes", "2000\n"),
                ][..],
                Some(0.5),
                Some(0),
            ),
            (
                "1:cpu:/\n",
                &[("cpu/cpu.cfs_quota_us", "-1\n"), ("cpu/cpu.cfs_period_us", "100000\n")][..],
                None,
                None,
            ),
            ("garbage\n::\n0", &[("cpu.max", "x y\n")][..], None, None),
        ] {
            let scratch = Scratch::new();
            write(scratch.path(), files);
            let found = ControlGroup::of(membership, scratch.path());
            assert_eq!(found, ControlGroup { processors, free_bytes }, "{membership}");
        }
    }
}
