//! What the threads of the demonstration share, and what arrived when.
//!
//! The streams flow until all faults are survived, so the script ends them and never the clock:
//! [`DemoTraffic::is_enough`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::nodes::Nodes;
use super::{DemoError, NODES};

/// Milliseconds that are kept; the story is over long before.
const BINS_MAX: usize = 600_000;
const BIN_NS: u64 = 1_000_000;

/// What the story, the streams and the collector know of each other.
#[derive(Debug)]
pub(super) struct DemoTraffic {
    /// Messages that arrived, by sender.
    arrived: [AtomicU64; NODES],
    /// All faults are survived: no new round of the input.
    enough: AtomicBool,
    /// Some thread cannot go on, and says why when it is joined.
    broken: AtomicBool,
    interrupted: Arc<AtomicBool>,
    /// How many strikes have been survived.
    survived: AtomicUsize,
}

impl DemoTraffic {
    pub(super) fn new(interrupted: &Arc<AtomicBool>) -> Self {
        Self {
            arrived: Default::default(),
            enough: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            interrupted: Arc::clone(interrupted),
            survived: AtomicUsize::new(0),
        }
    }

    pub(super) fn is_enough(&self) -> bool {
        self.enough.load(Ordering::Relaxed)
    }

    pub(super) fn note_enough(&self) {
        self.enough.store(true, Ordering::Relaxed);
    }

    /// Whether to end before the end.
    pub(super) fn is_over(&self) -> bool {
        self.broken.load(Ordering::Relaxed) || self.is_interrupted()
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Hands on how a thread ended; the others end with one that failed.
    pub(super) fn note_end<T>(&self, ended: Result<T, DemoError>) -> Result<T, DemoError> {
        if ended.is_err() {
            self.broken.store(true, Ordering::Relaxed);
        }
        ended
    }

    pub(super) fn note_arrived(&self, sender: usize) {
        self.arrived[sender].fetch_add(1, Ordering::Relaxed);
    }

    /// Messages that arrived so far.
    pub(super) fn arrived(&self) -> u64 {
        self.counts().iter().sum()
    }

    pub(super) fn note_survived(&self) {
        self.survived.fetch_add(1, Ordering::Relaxed);
    }

    /// How many strikes have been survived so far.
    pub(super) fn survived(&self) -> usize {
        self.survived.load(Ordering::Relaxed)
    }

    fn counts(&self) -> [u64; NODES] {
        std::array::from_fn(|sender| self.arrived[sender].load(Ordering::Relaxed))
    }

    /// Waits until something more has arrived from each of `senders`.
    pub(super) fn await_more(&self, nodes: &Nodes, senders: &[u16]) -> Result<(), DemoError> {
        let before = self.counts();
        nodes.await_that("a stream has come to a stop", || {
            let now = self.counts();
            let has_grown = |sender: &u16| now[usize::from(*sender)] > before[usize::from(*sender)];
            (self.is_over() || senders.iter().all(has_grown)).then_some(())
        })?;
        if self.is_over() { Err(DemoError::Interrupted) } else { Ok(()) }
    }
}

/// How many messages of each sender arrived in each millisecond.
#[derive(Clone, Debug)]
pub(super) struct ArrivalCounts {
    began_ns: u64,
    bins: Vec<[u32; NODES]>,
}

impl ArrivalCounts {
    pub(super) const fn new(began_ns: u64) -> Self {
        Self { began_ns, bins: Vec::new() }
    }

    pub(super) fn note(&mut self, at_ns: u64, sender: usize) {
        let bin = self.bin(at_ns);
        if bin >= BINS_MAX {
            return;
        }
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, [0; NODES]);
        }
        self.bins[bin][sender] += 1;
    }

    fn bin(&self, at_ns: u64) -> usize {
        usize::try_from(at_ns.saturating_sub(self.began_ns) / BIN_NS).unwrap_or(usize::MAX)
    }

    /// Messages of `sender` from one time to another, in whole milliseconds.
    pub(super) fn arrived(&self, sender: u16, from_ns: u64, to_ns: u64) -> u64 {
        self.counts(sender, from_ns, to_ns).map(u64::from).sum()
    }

    /// The longest time in between in which nothing of `sender` came, in milliseconds.
    pub(super) fn longest_silence_ms(&self, sender: u16, from_ns: u64, to_ns: u64) -> u64 {
        let (mut silence, mut longest) = (0, 0);
        for count in self.counts(sender, from_ns, to_ns) {
            silence = if count == 0 { silence + 1 } else { 0 };
            longest = longest.max(silence);
        }
        longest
    }

    fn counts(&self, sender: u16, from_ns: u64, to_ns: u64) -> impl Iterator<Item = u32> {
        let (from, to) = (self.bin(from_ns), self.bin(to_ns));
        // A missing bin means silence.
        (from..=to).map(move |bin| self.bins.get(bin).map_or(0, |bin| bin[usize::from(sender)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_what_no_message_of_that_sender_ends() {
        let mut flow = ArrivalCounts::new(1_000_000_000);
        let ms = |ms: u64| 1_000_000_000 + ms * BIN_NS;
        for at in [0, 3, 3, 9] {
            flow.note(ms(at), 1);
        }
        flow.note(ms(5), 2);
        assert_eq!((flow.arrived(1, ms(0), ms(9)), flow.arrived(2, ms(0), ms(9))), (4, 1));
        assert_eq!(flow.longest_silence_ms(1, ms(0), ms(9)), 5);
        assert_eq!(flow.longest_silence_ms(1, ms(3), ms(20)), 11);
        assert_eq!(flow.longest_silence_ms(2, ms(0), ms(5)), 5);
        assert_eq!((flow.longest_silence_ms(0, ms(0), ms(9)), flow.arrived(0, 0, ms(9))), (10, 0));
    }
}
