//! What the host itself costs: its copying, and its stalls.

use std::fs;
use std::hint::black_box;
use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::figure::Samples;
use super::report::MeasuredHost;
use weft::clock::now_ns;

/// Copies between two looks at the clock.
const COPIES: u64 = 4096;
/// A gap between two looks at the clock that no processor needs: another process was running.
const GAP_NS: u64 = 10_000;
/// How long the host's own stall is watched between two measurements: longer than the turn that a
/// kernel gives a process which has just waited, or no other process would ever be seen.
pub(super) const STALL_WATCH_NS: u64 = 50_000_000;

/// What a process that only reads the clock did not get of its processor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuStall {
    pub(super) longest_ns: u64,
    pub(super) lost_ns: u64,
    pub(super) watched_ns: u64,
}

impl CpuStall {
    /// Watches for `span_ns`.
    pub(super) fn watch(&mut self, span_ns: u64) {
        let begun = now_ns();
        let mut last = begun;
        while last - begun < span_ns {
            let now = now_ns();
            let gap = now - last;
            self.longest_ns = self.longest_ns.max(gap);
            if gap > GAP_NS {
                self.lost_ns += gap;
            }
            last = now;
        }
        self.watched_ns += last - begun;
    }

    /// The share of time that others had, from 0 to 1.
    pub(super) fn lost(&self) -> f64 {
        self.lost_ns as f64 / self.watched_ns.max(1) as f64
    }
}

/// The machine as it was while `stall` was watched.
pub(super) fn describe(stall: &CpuStall) -> MeasuredHost {
    MeasuredHost {
        processors: processors(),
        load: load(),
        longest_stall_us: stall.longest_ns as f64 / 1e3,
        stalled_percent: stall.lost() * 100.0,
    }
}

/// How many processes can run at the same time.
pub(super) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Ties this thread to one of the processors that it may use, the one of that index, where there
/// are so many.
pub(super) fn take_processor(index: usize) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let mut allowed = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor));
    let Some(processor) = allowed.nth(index) else { return };
    let mut own = CpuSet::new();
    own.set(processor);
    // Where it is refused the thread runs anywhere, and its figures may be worse.
    let _ = sched_setaffinity(None, &own);
}

/// Processes that wanted to run in the last minute.
fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// Copies messages of `len` bytes from and to memory as large as a half of the mailbox.
pub(super) fn copy(len: usize, slots: usize, span_ns: u64, samples: &mut Samples) {
    let source = vec![0x5A_u8; len * slots];
    let mut target = vec![0_u8; len * slots];
    let begun = now_ns();
    let mut last = begun;
    while last - begun < span_ns {
        let mut copied = 0;
        while copied < COPIES {
            let slots = source.chunks_exact(len).zip(target.chunks_exact_mut(len));
            for (from, to) in slots.take((COPIES - copied) as usize) {
                black_box(to).copy_from_slice(black_box(from));
                copied += 1;
            }
        }
        let now = now_ns();
        samples.push(now - last, COPIES);
        last = now;
    }
    black_box(target);
}
