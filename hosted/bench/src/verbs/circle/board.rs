//! What the threads show each other: who is done with which message, and when it was.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::PEERS;

/// One for each course; every member that follows has a place.
#[derive(Debug)]
pub(super) struct CircleBoard {
    followers: usize,
    shown: [FollowerProgress; PEERS.len() - 1],
    is_over: AtomicBool,
}

/// In cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct FollowerProgress {
    number: AtomicU64,
    at_ns: AtomicU64,
}

impl CircleBoard {
    pub(super) fn new(followers: usize) -> Self {
        Self { followers, shown: Default::default(), is_over: AtomicBool::new(false) }
    }

    /// The member at `place` was done with message `number` at `at_ns`.
    pub(super) fn show(&self, place: usize, number: u64, at_ns: u64) {
        self.shown[place].at_ns.store(at_ns, Ordering::Relaxed);
        self.shown[place].number.store(number, Ordering::Release);
    }

    /// When the last one was done with message `number`, once all are.
    pub(super) fn done_by_all(&self, number: u64) -> Option<u64> {
        let shown = &self.shown[..self.followers];
        let all = shown.iter().all(|shown| shown.number.load(Ordering::Acquire) >= number);
        let times = shown.iter().map(|shown| shown.at_ns.load(Ordering::Relaxed));
        times.max().filter(|_| all)
    }

    /// Ends all waiting.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_done_with_when_the_last_one_is() {
        let board = CircleBoard::new(1);
        board.show(0, 7, 90);
        assert_eq!(board.done_by_all(7), Some(90));
        let board = CircleBoard::new(2);
        board.show(0, 7, 90);
        assert_eq!(board.done_by_all(7), None);
        board.show(1, 7, 80);
        assert_eq!((board.done_by_all(7), board.done_by_all(8)), (Some(90), None));
        assert!(!board.is_over());
        board.end();
        assert!(board.is_over());
    }
}
