//! A message is copied in, then published by a word: the posting order of one peer (F-1).
//! SYNC: words-publish.

use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;
use weft_core::fabric::Words;
use weft_core::sync::{AtomicU64, Ordering};

use crate::alone;

/// Byte offset of the word that publishes; the message lies before it.
const WORD: usize = 16;
const MESSAGE: [u8; 16] = *b"all of it or non";

/// Memory of two words for a message and one that publishes it.
struct Shared(Vec<AtomicU64>);

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self((0..3).map(|_| AtomicU64::new(0)).collect()))
    }

    fn words(&self) -> Words<'_> {
        Words(&self.0)
    }
}

/// Two writers and a reader are tried up to so many preemptions.
pub(crate) const PREEMPTIONS: usize = 3;

fn reads_all(shared: &Shared) {
    let mut copy = [0; 16];
    shared.words().copy_out(0, &mut copy);
    assert_eq!(copy, MESSAGE, "published before it was there");
}

/// As `fetch_add` and `write` post: the bytes, then a remote atomic on the word.
pub(crate) fn atomic_after_write() {
    let shared = Shared::new();
    let writing = Arc::clone(&shared);
    let writer = thread::spawn(move || {
        writing.words().copy_in(0, &MESSAGE);
        let _before = writing.words().fetch_add(WORD, 1);
    });
    if shared.words().load(WORD) == 1 {
        reads_all(&shared);
    }
    writer.join().unwrap();
}

/// As an owner stores a word of its own, for those who read it.
pub(crate) fn store_after_write() {
    let shared = Shared::new();
    let writing = Arc::clone(&shared);
    let writer = thread::spawn(move || {
        writing.words().copy_in(0, &MESSAGE);
        writing.words().store(WORD, 1);
    });
    if shared.words().load(WORD) == 1 {
        reads_all(&shared);
    }
    writer.join().unwrap();
}

/// As two writes post: the bytes, then the bytes that say so.
pub(crate) fn write_after_write() {
    let shared = Shared::new();
    let writing = Arc::clone(&shared);
    let writer = thread::spawn(move || {
        writing.words().copy_in(0, &MESSAGE);
        writing.words().copy_in(WORD, &1_u64.to_le_bytes());
    });
    let mut flag = [0; 8];
    shared.words().copy_out(WORD, &mut flag);
    if u64::from_le_bytes(flag) == 1 {
        reads_all(&shared);
    }
    writer.join().unwrap();
}

/// As one write posts: its last word comes behind all others (F-14).
pub(crate) fn end_of_a_write() {
    whole_by_its_end(WORD + 8);
}

/// A write whose last word it covers in part.
fn partial_end_of_a_write() {
    whole_by_its_end(WORD + 3);
}

fn whole_by_its_end(len: usize) {
    let shared = Shared::new();
    let writing = Arc::clone(&shared);
    let writer = thread::spawn(move || {
        let mut bytes = [1; WORD + 8];
        bytes[..WORD].copy_from_slice(&MESSAGE);
        writing.words().copy_in(0, &bytes[..len]);
    });
    let [before, end] = shared.words().load_end(WORD - 8);
    if end != 0 {
        assert_eq!(before.to_le_bytes(), MESSAGE[8..], "older than the end");
        reads_all(&shared);
    }
    writer.join().unwrap();
}

/// As two writes from a region post.
fn write_from_after_write_from() {
    let shared = Shared::new();
    let writing = Arc::clone(&shared);
    let writer = thread::spawn(move || {
        let own = Shared::new();
        own.words().copy_in(0, &MESSAGE);
        own.words().copy_in(WORD, &1_u64.to_le_bytes());
        for (offset, len) in [(0, WORD), (WORD, 8)] {
            writing.words().range(offset, len).copy_from(own.words().range(offset, len));
        }
    });
    if shared.words().holds(WORD, &1_u64.to_le_bytes()) {
        assert!(shared.words().holds(0, &MESSAGE), "published before it was there");
    }
    writer.join().unwrap();
}

#[test]
fn a_write_from_a_region_publishes_what_was_written_before() {
    let _alone = alone();
    loom::model(write_from_after_write_from);
}

#[test]
fn an_atomic_publishes_what_was_written_before() {
    let _alone = alone();
    loom::model(atomic_after_write);
}

#[test]
fn a_store_publishes_what_was_written_before() {
    let _alone = alone();
    loom::model(store_after_write);
}

#[test]
fn a_write_publishes_what_was_written_before() {
    let _alone = alone();
    loom::model(write_after_write);
}

#[test]
fn the_last_word_of_a_write_publishes_the_others() {
    let _alone = alone();
    loom::model(end_of_a_write);
    loom::model(partial_end_of_a_write);
}

#[test]
fn halves_of_a_word_by_two_writers_both_survive_and_are_both_published() {
    let _alone = alone();
    let mut bounded = Builder::new();
    bounded.preemption_bound = Some(PREEMPTIONS);
    bounded.check(|| {
        let shared = Shared::new();
        let writers = [0, 4].map(|offset| {
            let writing = Arc::clone(&shared);
            thread::spawn(move || {
                writing.words().copy_in(offset, &[7; 4]);
                writing.words().word(WORD).fetch_add(1, Ordering::AcqRel);
            })
        });
        if shared.words().load(WORD) == 2 {
            assert_eq!(shared.words().load(0), 0x0707_0707_0707_0707);
        }
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(shared.words().load(0), 0x0707_0707_0707_0707);
    });
}
