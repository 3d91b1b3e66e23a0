//! The membership as a page that other processes map for reading (M-14).
//!
//! ```text
//!   word 0    number of the view      ┐
//!   word 1    its members, as bits    ├ each group with a check of its own, in its last word
//!   word 2    check of both           ┘
//!   word 3…   of each rank: boot << 32 | generation, zero for no member; check of that and word 0
//! ```
//!
//! The supervisor of a node writes it, and waits for no reader. A reader copies the words that it
//! wants and takes them if their check is right; otherwise they are being written, and it looks
//! again. So no order among the words is needed. The page stays as it was when its supervisor ends.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use weft_core::ids::PeerSet;

use super::{Mapping, ReadOnlyMapping, Segment, SegmentError};

const NUMBER: usize = 0;
const MEMBERS: usize = 1;
const CHECK: usize = 2;
const FIRST: usize = 3;
const LEN: usize = 4096;

const _: () = assert!((FIRST + 2 * PeerSet::CAPACITY) * Segment::WORD_LEN <= LEN);

/// How often a reader tries again: longer than a writer takes that runs meanwhile.
const TRIES: u32 = 10_000;

/// A check of two words and a place that tells torn groups from whole ones: the finaliser of
/// splitmix64 over each.
fn check(place: u64, words: [u64; 2]) -> u64 {
    words.into_iter().fold(place, |digest, word| {
        let word = (digest ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    })
}

/// The page, as its supervisor writes it.
#[derive(Debug)]
pub(crate) struct MaskPage {
    segment: Segment,
    words: Mapping,
}

impl MaskPage {
    pub(crate) fn create() -> Result<Self, SegmentError> {
        let segment = Segment::create("weft-mask", LEN)?;
        let words = Mapping::writable(segment.writable_fd(), LEN)?;
        Ok(Self { segment, words })
    }

    /// A descriptor for readers.
    pub(crate) fn reader(&self) -> Result<OwnedFd, SegmentError> {
        self.segment.read_only_fd()
    }

    /// Shows a view: of each member its rank, boot and generation.
    pub(crate) fn show(&mut self, number: u64, members: impl Iterator<Item = (u16, u32, u32)>) {
        let words = self.words.words();
        let mut incarnations = [0; PeerSet::CAPACITY];
        let mut mask = 0;
        for (rank, boot, generation) in members {
            if let Some(word) = incarnations.get_mut(usize::from(rank)) {
                *word = u64::from(boot) << 32 | u64::from(generation);
                mask |= 1 << rank;
            }
        }
        let head = [number, mask, check(0, [number, mask])];
        let ranks = (1..).zip(incarnations);
        let ranks = ranks.flat_map(|(place, word)| [word, check(place, [number, word])]);
        for (word, value) in words.iter().zip(head.into_iter().chain(ranks)) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

/// The membership as one node shows it, for the price of a few loads.
///
/// It stays as it was when that node's supervisor ends: a reader that must know keeps the
/// [`Client`](crate::client::Client) that it came from, and watches.
#[derive(Debug)]
pub struct Mask {
    words: ReadOnlyMapping,
}

/// What a [`Mask`] shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The number of the view; zero for none yet.
    pub number: u64,
    /// The members, a bit for each rank.
    pub members: u64,
}

impl Mask {
    /// Maps the page behind `fd`.
    pub(crate) fn open(fd: BorrowedFd<'_>) -> Result<Self, SegmentError> {
        Ok(Self { words: ReadOnlyMapping::new(fd, LEN)? })
    }

    /// The view that is shown. None while it is being written by a supervisor that does not run at
    /// the moment: look again, or keep the last one. It stays so if the supervisor was killed
    /// there.
    #[must_use]
    pub fn load(&self) -> Option<Shown> {
        retry(|| {
            let [number, members, sum] = [NUMBER, MEMBERS, CHECK].map(|at| self.words.load(at));
            // Zeros are the page before its first view.
            let is_whole = sum == check(0, [number, members]) || [number, members, sum] == [0; 3];
            is_whole.then_some(Shown { number, members })
        })
    }

    /// The number of the view alone: one load, for a loop that looks for a change.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.words.load(NUMBER)
    }

    /// The boot of the node `rank` and the generation of its component, if it is a member of the
    /// view `number`. None as well if another view is shown by now, and where [`Self::load`] has
    /// none.
    #[must_use]
    pub fn incarnation(&self, number: u64, rank: u16) -> Option<(u32, u32)> {
        let index = Some(usize::from(rank)).filter(|rank| *rank < PeerSet::CAPACITY)?;
        let (at, place) = (FIRST + 2 * index, u64::from(rank) + 1);
        let word = retry(|| {
            let [word, sum] = [at, at + 1].map(|at| self.words.load(at));
            let is_over = self.number() != number;
            (is_over || sum == check(place, [number, word])).then_some(word)
        })?;
        let [boot, generation] = [word >> 32, word & u64::from(u32::MAX)].map(u32::try_from);
        let is_shown = self.number() == number && word != 0;
        is_shown.then_some((boot.ok()?, generation.ok()?))
    }
}

fn retry<T>(look: impl Fn() -> Option<T>) -> Option<T> {
    (0..TRIES).find_map(|_| {
        let seen = look();
        if seen.is_none() {
            std::hint::spin_loop();
        }
        seen
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::thread;

    use super::*;

    #[test]
    fn m14_a_reader_sees_the_view_that_was_shown_last() {
        let mut page = MaskPage::create().unwrap();
        let mask = Mask::open(page.reader().unwrap().as_fd()).unwrap();
        assert_eq!(mask.load(), Some(Shown { number: 0, members: 0 }));
        page.show(7, [(0, 1, 0), (31, 2, 3)].into_iter());
        assert_eq!(mask.load(), Some(Shown { number: 7, members: 1 << 31 | 1 }));
        assert_eq!((mask.number(), mask.incarnation(7, 31)), (7, Some((2, 3))));
        assert_eq!(
            [mask.incarnation(7, 1), mask.incarnation(6, 0), mask.incarnation(7, 99)],
            [None; 3]
        );
        page.show(8, [(0, 1, 0)].into_iter());
        assert_eq!((mask.load().unwrap().members, mask.incarnation(8, 31)), (1, None));
    }

    #[test]
    fn m14_a_reader_never_sees_parts_of_two_views() {
        let mut page = MaskPage::create().unwrap();
        let mask = Mask::open(page.reader().unwrap().as_fd()).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                for number in 1..50_000_u64 {
                    let rank = u16::try_from(number % 32).unwrap();
                    page.show(number, [(rank, u32::try_from(number).unwrap(), 0)].into_iter());
                }
            });
            let mut last = 0;
            while last < 49_999 {
                let Some(shown) = mask.load() else {
                    // The writer does not run at the moment, and needs this processor.
                    thread::yield_now();
                    continue;
                };
                assert!(last <= shown.number);
                last = shown.number;
                assert!(last == 0 || shown.members == 1 << (last % 32), "{shown:?}");
            }
        });
    }

    #[test]
    fn m14_a_page_whose_writer_was_killed_in_the_middle_is_no_view() {
        let page = MaskPage::create().unwrap();
        let mask = Mask::open(page.reader().unwrap().as_fd()).unwrap();
        page.words.words()[NUMBER].store(3, Ordering::Relaxed);
        assert_eq!((mask.load(), mask.incarnation(3, 0)), (None, None));
    }
}
