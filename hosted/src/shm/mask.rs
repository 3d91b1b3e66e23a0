//! The membership as a page that other processes map for reading (M-14).
//!
//! ```text
//!   word 0    turn: how many changes were shown; the slot turn % 2 shows the last one
//!   slot      number, members as bits, check of both                       ┐ two of them, and each
//!             of each rank: boot << 32 | generation (zero: none), check    ┘ check covers the turn
//! ```
//!
//! The supervisor of a node writes the slot that readers do not look at, then the turn, and waits
//! for no reader. So a writer that is preempted or killed anywhere hides nothing: the view before
//! stays. A reader whose slot is overwritten meanwhile, by the view after the next, sees so by the
//! check, and looks again. The page stays as it was when its supervisor ends.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};

use weft_core::fabric::Words;
use weft_core::ids::PeerSet;

use super::{Mapping, ReadOnlyMapping, Segment, SegmentError};

const TURN: usize = 0;
/// In a slot.
const NUMBER: usize = 0;
const MEMBERS: usize = 1;
const CHECK: usize = 2;
const FIRST: usize = 3;
const SLOT_WORDS: usize = FIRST + 2 * PeerSet::CAPACITY;
const LEN: usize = 4096;

const _: () = assert!((1 + 2 * SLOT_WORDS) * Segment::WORD_LEN <= LEN);

/// How often a reader tries again while views follow one another faster than it reads.
const TRIES: u32 = 10_000;

/// The first word of the slot that shows the view of this turn.
const fn slot(turn: u64) -> usize {
    if turn.is_multiple_of(2) { 1 } else { 1 + SLOT_WORDS }
}

/// A check of three words and a place that distinguishes torn groups from whole ones: the finaliser
/// of splitmix64 over each.
fn check(place: u64, words: [u64; 3]) -> u64 {
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
    turn: u64,
}

impl MaskPage {
    pub(crate) fn create() -> Result<Self, SegmentError> {
        let segment = Segment::create("weft-mask", LEN)?;
        let words = Mapping::writable(segment.writable_fd(), LEN)?;
        Ok(Self { segment, words, turn: 0 })
    }

    /// A descriptor for readers.
    pub(crate) fn reader(&self) -> Result<OwnedFd, SegmentError> {
        self.segment.read_only_fd()
    }

    /// Shows a view: of each member its rank, boot and generation.
    pub(crate) fn show(&mut self, number: u64, members: impl Iterator<Item = (u16, u32, u32)>) {
        let turn = self.turn + 1;
        let mut incarnations = [0; PeerSet::CAPACITY];
        let mut mask = 0;
        for (rank, boot, generation) in members {
            if let Some(word) = incarnations.get_mut(usize::from(rank)) {
                *word = u64::from(boot) << 32 | u64::from(generation);
                mask |= 1 << rank;
            }
        }
        let head = [number, mask, check(0, [turn, number, mask])];
        let ranks = (1..).zip(incarnations);
        let ranks = ranks.flat_map(|(place, word)| [word, check(place, [turn, number, word])]);
        let words = self.words.words();
        for (word, value) in words[slot(turn)..].iter().zip(head.into_iter().chain(ranks)) {
            word.store(value, Ordering::Relaxed);
        }
        // A reader of this turn finds the slot as it was stored before, or later.
        Words(words).store(TURN * Segment::WORD_LEN, turn);
        self.turn = turn;
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
    /// The members, a bit for each rank, without those that are known to have ended: those stay in
    /// the view of this number until their next incarnation has joined.
    pub members: u64,
}

impl Mask {
    /// Maps the page behind `fd`.
    pub(crate) fn open(fd: BorrowedFd<'_>) -> Result<Self, SegmentError> {
        Ok(Self { words: ReadOnlyMapping::new(fd, LEN)? })
    }

    /// The view that is shown last. None if the page is damaged, or if two views have followed
    /// within each of 10,000 looks.
    #[must_use]
    pub fn load(&self) -> Option<Shown> {
        retry(|| self.look().map(|(_, shown)| shown))
    }

    /// How often the page has changed: one load, for a loop that looks for a change. Views change
    /// it, and the end of a member does before the next view.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.words.load(TURN)
    }

    /// The number of the view alone: two loads. Where views follow one another faster than it
    /// reads, it may be that of the next one.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.words.load(slot(self.turn()) + NUMBER)
    }

    /// The boot of the node `rank` and the generation of its component, if it is a member of the
    /// view `number` and has not ended. None as well if another view is shown by now, and where
    /// [`Self::load`] has none.
    #[must_use]
    pub fn incarnation(&self, number: u64, rank: u16) -> Option<(u32, u32)> {
        let index = Some(usize::from(rank)).filter(|rank| *rank < PeerSet::CAPACITY)?;
        let place = u64::from(rank) + 1;
        let word = retry(|| {
            let (turn, shown) = self.look()?;
            if shown.number != number {
                return Some(0);
            }
            let at = slot(turn) + FIRST + 2 * index;
            let [word, sum] = [at, at + 1].map(|at| self.words.load(at));
            (sum == check(place, [turn, number, word])).then_some(word)
        })?;
        let [boot, generation] = [word >> 32, word & u64::from(u32::MAX)].map(u32::try_from);
        if word == 0 { None } else { Some((boot.ok()?, generation.ok()?)) }
    }

    fn turn(&self) -> u64 {
        let turn = self.words.load(TURN);
        // SYNC: words-publish. The loads of the slot come after the load of the turn.
        fence(Ordering::Acquire);
        turn
    }

    /// The turn and its view; none if it is being overwritten.
    fn look(&self) -> Option<(u64, Shown)> {
        let turn = self.turn();
        if turn == 0 {
            return Some((turn, Shown { number: 0, members: 0 }));
        }
        let [number, members, sum] =
            [NUMBER, MEMBERS, CHECK].map(|at| self.words.load(slot(turn) + at));
        let is_whole = sum == check(0, [turn, number, members]);
        is_whole.then_some((turn, Shown { number, members }))
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
                let shown = mask.load().expect("the view before, or a later one");
                assert!(last <= shown.number);
                last = shown.number;
                assert!(last == 0 || shown.members == 1 << (last % 32), "{shown:?}");
            }
        });
    }

    /// A writer that is preempted or killed anywhere, with any of its words stored by then, in any
    /// order: the view before is shown, or the new one, and never a mixture.
    #[test]
    fn m14_a_view_that_is_being_written_hides_nothing() {
        let mut page = MaskPage::create().unwrap();
        let mask = Mask::open(page.reader().unwrap().as_fd()).unwrap();
        for number in 1..4 {
            page.show(number, [(0, 1, 0)].into_iter());
        }
        let all = |page: &MaskPage| -> Vec<u64> {
            page.words.words().iter().map(|word| word.load(Ordering::Relaxed)).collect()
        };
        let before = all(&page);
        page.show(9, [(0, 2, 0), (1, 1, 0)].into_iter());
        let after = all(&page);
        let changed: Vec<usize> =
            (0..after.len()).filter(|at| *at != TURN && before[*at] != after[*at]).collect();
        // The head, the first two ranks, and the checks of all others as one.
        let (few, rest) = changed.split_at(7);
        for stored in 0..1_u32 << (few.len() + 1) {
            for (bit, at) in few.iter().enumerate() {
                let from = if stored >> bit & 1 == 1 { &after } else { &before };
                page.words.words()[*at].store(from[*at], Ordering::Relaxed);
            }
            let from = if stored >> few.len() == 1 { &after } else { &before };
            rest.iter().for_each(|at| page.words.words()[*at].store(from[*at], Ordering::Relaxed));
            page.words.words()[TURN].store(before[TURN], Ordering::Relaxed);
            assert_eq!(mask.load(), Some(Shown { number: 3, members: 1 }), "{stored:b}");
            assert_eq!((mask.number(), mask.incarnation(3, 0)), (3, Some((1, 0))));
            // A turn that arrives before its slot shows no mixture.
            page.words.words()[TURN].store(after[TURN], Ordering::Relaxed);
            let shown = mask.look().map(|(_, shown)| shown);
            assert!(shown.is_none_or(|it| it == Shown { number: 9, members: 3 }), "{stored:b}");
        }
    }
}
