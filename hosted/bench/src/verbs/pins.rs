//! Which processor each of the two processes has, ours and rivals alike.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::error::VerbsBenchError;

/// Empty looks between two turns of others, when both processes have a processor.
const YIELD_SELDOM: u32 = 256;

/// Two processors, or one for both. The thread that made it is at the first until it is dropped.
#[derive(Debug)]
pub(super) struct Pins {
    before: CpuSet,
    leader: usize,
    follower: usize,
}

fn only(processor: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(processor);
    set
}

fn pin(set: &CpuSet) -> Result<(), VerbsBenchError> {
    sched_setaffinity(None, set).map_err(VerbsBenchError::Processors)
}

impl Pins {
    /// The first two of those that this thread may use; it is tied to the first.
    pub(super) fn new() -> Result<Self, VerbsBenchError> {
        let before = sched_getaffinity(None).map_err(VerbsBenchError::Processors)?;
        let mut allowed = (0..CpuSet::MAX_CPU).filter(|processor| before.is_set(*processor));
        let leader = allowed.next().ok_or(VerbsBenchError::OutOfStep("no processor"))?;
        let follower = allowed.next().unwrap_or(leader);
        pin(&only(leader))?;
        Ok(Self { before, leader, follower })
    }

    /// The other process's processor.
    pub(super) const fn follower(&self) -> usize {
        self.follower
    }

    /// How many processors the two have.
    pub(super) const fn count(&self) -> usize {
        if self.leader == self.follower { 1 } else { 2 }
    }

    /// Empty looks between two turns of others.
    pub(super) const fn yield_every(&self) -> u32 {
        if self.leader == self.follower { 1 } else { YIELD_SELDOM }
    }

    /// Lets this thread, and those that it starts meanwhile, run at either processor.
    pub(super) fn over_both<R>(&self, work: impl FnOnce() -> R) -> Result<R, VerbsBenchError> {
        let mut both = only(self.leader);
        both.set(self.follower);
        pin(&both)?;
        let done = work();
        pin(&only(self.leader))?;
        Ok(done)
    }

    /// Starts a process at the other processor: children stay where their parent was.
    pub(super) fn at_follower<R>(&self, start: impl FnOnce() -> R) -> Result<R, VerbsBenchError> {
        pin(&only(self.follower))?;
        let started = start();
        pin(&only(self.leader))?;
        Ok(started)
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        // A thread that cannot go back to where it was still runs.
        let _ = sched_setaffinity(None, &self.before);
    }
}
