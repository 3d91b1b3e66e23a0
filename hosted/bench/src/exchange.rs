//! The limit of latency: one word to another process and back, and nothing around it.
//!
//! ```text
//!   lines of writer w:   2w: owner writes, writer reads     2w + 1: writer writes, owner reads
//! ```
//!
//! Each word has a cache line of its own, and the neighbour that processors fetch along with it
//! is kept free.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use weft_core::ids::Peer;

use super::error::BenchError;
use super::figure::Samples;
use super::seat::Vigil;
use weft::clock::now_ns;
use weft::shm::{Mapping, Segment};

const LINE_WORDS: usize = 16;
const LINES_LEN: usize = 4096;
/// Words that go back and forth before they are counted, while the writer still wakes up.
const WARM_UP: u64 = 16;
/// Ends the exchange.
const END: u64 = u64::MAX;

/// The memory of the exchange.
#[derive(Debug)]
pub(super) struct ExchangeLines(Mapping);

impl ExchangeLines {
    pub(super) fn segment() -> Result<Segment, BenchError> {
        Ok(Segment::create("weft-bench-lines", LINES_LEN)?)
    }

    pub(super) fn map(fd: impl AsFd) -> Result<Self, BenchError> {
        let fd: BorrowedFd<'_> = fd.as_fd();
        Ok(Self(Mapping::writable(fd, LINES_LEN)?))
    }

    fn to_writer(&self, writer: Peer) -> &AtomicU64 {
        &self.0.words()[(2 * writer.index()) * LINE_WORDS]
    }

    fn to_owner(&self, writer: Peer) -> &AtomicU64 {
        &self.0.words()[(2 * writer.index() + 1) * LINE_WORDS]
    }

    /// The writer's part: sends back what comes.
    pub(super) fn echo(&self, me: Peer, vigil: &mut Vigil) -> Result<(), BenchError> {
        let (inward, outward) = (self.to_writer(me), self.to_owner(me));
        let mut last = outward.load(Ordering::Relaxed);
        loop {
            let word = inward.load(Ordering::Acquire);
            if word == last {
                vigil.idle()?;
                continue;
            }
            outward.store(word, Ordering::Release);
            last = word;
            if word == END {
                return Ok(());
            }
        }
    }

    /// The owner's part: goes back and forth with all `writers` at once for `span_ns`.
    pub(super) fn measure(
        &self,
        writers: u16,
        span_ns: u64,
        vigil: &mut Vigil,
        samples: &mut Samples,
    ) -> Result<(), BenchError> {
        let begun = now_ns();
        let mut pairs: Vec<WriterView<'_>> =
            (1..=writers).map(|w| WriterView::new(self, Peer(w))).collect();
        let mut open = pairs.len();
        while open > 0 {
            let mut moved = false;
            for pair in pairs.iter_mut().filter(|pair| pair.word != 0) {
                if pair.inward.load(Ordering::Acquire) != pair.word {
                    continue;
                }
                moved = true;
                if pair.word == END {
                    pair.word = 0;
                    open -= 1;
                    continue;
                }
                let (word, sent_ns) = (pair.word, pair.sent_ns);
                let goes_on = sent_ns - begun < span_ns || word <= WARM_UP;
                pair.send(if goes_on { word + 1 } else { END });
                if word > WARM_UP {
                    samples.push(pair.sent_ns - sent_ns, 2);
                }
            }
            if !moved {
                vigil.idle()?;
            }
        }
        Ok(())
    }
}

/// The owner's view of one writer.
struct WriterView<'l> {
    outward: &'l AtomicU64,
    inward: &'l AtomicU64,
    /// The word under way; none when it is over.
    word: u64,
    sent_ns: u64,
}

impl<'l> WriterView<'l> {
    fn new(lines: &'l ExchangeLines, writer: Peer) -> Self {
        let (outward, inward) = (lines.to_writer(writer), lines.to_owner(writer));
        let mut pair = Self { outward, inward, word: 0, sent_ns: 0 };
        pair.send(1);
        pair
    }

    /// Sends `word`, then reads the clock: from one word to the next is a round trip.
    fn send(&mut self, word: u64) {
        self.outward.store(word, Ordering::Release);
        (self.word, self.sent_ns) = (word, now_ns());
    }
}
