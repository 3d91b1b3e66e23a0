//! The regions of one simulated peer: bytes that others write while their owner looks.
//!
//! ```text
//!   torn write ──▶ Arrival: pieces not there yet ──▶ one by one, also in the middle of copy_out
//!   torn read  ◀── Departure: pieces not fetched yet ◀── one by one, also between two stores
//! ```
//!
//! A piece is a byte; where the fabric promises more (F-14), a word.
//!
//! A process that is to crash has a `Fuse`: a number of operations after which nothing that it
//! does has any effect. It does not notice.

use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use weft_core::fabric::{At, Layout, Memory, Region};
use weft_core::ids::Peer;

use super::draws::Draws;
use super::shared::fingerprint;

/// How many operations a process has left.
#[derive(Clone, Debug, Default)]
pub(super) struct Fuse {
    left: Cell<Option<u32>>,
    burnt: Cell<bool>,
    used: Cell<u32>,
}

impl Fuse {
    /// After `operations` more, nothing takes effect.
    pub(super) fn set(&self, operations: Option<u32>) {
        self.left.set(operations);
        self.burnt.set(false);
        self.used.set(0);
    }

    /// Whether something was attempted after the last operation.
    pub(super) fn is_burnt(&self) -> bool {
        self.burnt.get()
    }

    /// How many operations were carried out since [`Self::set`].
    pub(super) fn used(&self) -> u32 {
        self.used.get()
    }

    /// Whether the next operation takes effect.
    pub(super) fn acts(&self) -> bool {
        match self.left.get() {
            None => {}
            Some(0) => self.burnt.set(true),
            Some(left) => self.left.set(Some(left - 1)),
        }
        let acts = !self.burnt.get();
        self.used.set(self.used.get() + u32::from(acts));
        acts
    }
}

/// Bytes that copies share until one of them is written to, and their digest once it is known.
#[derive(Clone, Debug)]
struct CowBytes {
    shared: RefCell<Rc<[u8]>>,
    digest: Cell<Option<u64>>,
}

impl CowBytes {
    fn zeroed(len: usize) -> Self {
        Self { shared: RefCell::new(vec![0; len].into()), digest: Cell::new(None) }
    }

    fn get(&self, start: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.shared.borrow()[start..start + into.len()]);
    }

    fn set(&self, start: usize, bytes: &[u8]) {
        self.digest.set(None);
        Rc::make_mut(&mut self.shared.borrow_mut())[start..start + bytes.len()]
            .copy_from_slice(bytes);
    }

    fn digest(&self) -> u64 {
        let digest = self.digest.get().unwrap_or_else(|| fingerprint(&**self.shared.borrow()));
        self.digest.set(Some(digest));
        digest
    }
}

/// A piece of a work: where its bytes lie among those of the work.
pub(super) type Piece = Range<usize>;

/// A write on its way in: pieces, the next one last.
#[derive(Clone, Debug)]
struct Arrival {
    flight: u64,
    from: Peer,
    /// Where the write begins.
    start: usize,
    bytes: Vec<u8>,
    rest: Vec<Piece>,
}

impl Arrival {
    /// The next piece arrives; whether there was one.
    fn step(&mut self, memory: &CowBytes) -> bool {
        let Some(piece) = self.rest.pop() else { return false };
        memory.set(self.start + piece.start, &self.bytes[piece]);
        true
    }
}

impl Hash for Arrival {
    /// Without the number of its flight: worlds that differ in that alone go on alike.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.from, self.start).hash(state);
        for piece in &self.rest {
            (piece.start, &self.bytes[piece.clone()]).hash(state);
        }
    }
}

/// A read on its way out: pieces, the next one last.
#[derive(Clone, Debug)]
struct Departure {
    flight: u64,
    /// Where the read begins.
    start: usize,
    rest: Vec<Piece>,
    got: Vec<u8>,
}

impl Hash for Departure {
    /// As that of an arrival.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.start, &self.rest, &self.got).hash(state);
    }
}

#[derive(Clone, Debug)]
struct Races {
    /// Decides what happens between two looks; nothing does without it.
    draws: Option<Draws>,
    arrivals: Vec<Arrival>,
    departures: Vec<Departure>,
}

/// The own regions of a simulated peer.
#[derive(Clone, Debug)]
pub struct SimMemory {
    layout: Arc<Layout>,
    starts: Arc<[usize]>,
    bytes: CowBytes,
    races: RefCell<Races>,
    pub(super) fuse: Fuse,
}

impl Hash for SimMemory {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.bytes.digest());
        let races = self.races.borrow();
        races.arrivals.hash(state);
        races.departures.hash(state);
    }
}

impl SimMemory {
    pub(super) fn new(layout: &Arc<Layout>, draws: Option<Draws>) -> Self {
        let regions = (0u8..).map(Region).take(layout.regions().len());
        let starts = regions.map(|region| to_usize(layout.offset(region))).collect();
        let bytes = CowBytes::zeroed(to_usize(layout.total_len()));
        let races = Races { draws, arrivals: Vec::new(), departures: Vec::new() };
        Self {
            layout: Arc::clone(layout),
            starts,
            bytes,
            races: RefCell::new(races),
            fuse: Fuse::default(),
        }
    }

    /// Where `len` bytes at `at` lie.
    fn place(&self, at: At, len: usize) -> usize {
        let spec = self.layout.spec(at.region).expect("own memory is addressed by configuration");
        let end = at.offset as usize + len;
        assert!(end <= spec.len as usize, "{at:?} and {len} bytes leave their region");
        self.starts[usize::from(at.region.0)] + at.offset as usize
    }

    /// What is there, as a remote operation finds it.
    pub(super) fn peek(&self, at: At, len: usize) -> Vec<u8> {
        let start = self.place(at, len);
        let mut bytes = vec![0; len];
        self.bytes.get(start, &mut bytes);
        bytes
    }

    /// What a remote operation leaves there.
    pub(super) fn poke(&self, at: At, bytes: &[u8]) {
        let start = self.place(at, bytes.len());
        self.bytes.set(start, bytes);
    }

    pub(super) fn word(&self, at: At) -> u64 {
        let start = self.place(at, 8);
        let mut word = [0; 8];
        self.bytes.get(start, &mut word);
        u64::from_le_bytes(word)
    }

    /// A write of `bytes` begins, in the order `order` of its pieces, the last first.
    pub(super) fn begin_arrival(
        &self,
        flight: u64,
        from: Peer,
        at: At,
        bytes: &[u8],
        order: Vec<Piece>,
    ) {
        let (start, bytes) = (self.place(at, bytes.len()), bytes.to_vec());
        let arrival = Arrival { flight, from, start, bytes, rest: order };
        self.races.borrow_mut().arrivals.push(arrival);
    }

    /// `count` more pieces of the write arrive; all that are left if nothing is given.
    pub(super) fn arrive(&self, flight: u64, count: Option<usize>) {
        let mut races = self.races.borrow_mut();
        let Some(found) = races.arrivals.iter().position(|arrival| arrival.flight == flight) else {
            return;
        };
        let arrival = &mut races.arrivals[found];
        for _ in 0..count.unwrap_or(usize::MAX).min(arrival.rest.len()) {
            arrival.step(&self.bytes);
        }
        if arrival.rest.is_empty() || count.is_none() {
            races.arrivals.remove(found);
        }
    }

    /// What has not arrived from `from` by now never will.
    pub(super) fn drop_arrivals(&self, from: Peer) {
        self.races.borrow_mut().arrivals.retain(|arrival| arrival.from != from);
    }

    pub(super) fn drop_arrival(&self, flight: u64) {
        self.races.borrow_mut().arrivals.retain(|arrival| arrival.flight != flight);
    }

    /// Whether nothing was ever written.
    pub(super) fn is_blank(&self) -> bool {
        self.bytes.shared.borrow().iter().all(|&byte| byte == 0)
    }

    /// Zeroes a region.
    pub(super) fn erase(&self, region: Region) {
        let spec = self.layout.spec(region).expect("own memory is addressed by configuration");
        self.poke(At { region, offset: 0 }, &vec![0; spec.len as usize]);
    }

    /// A new incarnation begins: what was on its way was meant for the last one.
    pub(super) fn clear_races(&self) {
        let mut races = self.races.borrow_mut();
        races.arrivals.clear();
        races.departures.clear();
    }

    /// Whether some pieces of the torn flight have not moved yet.
    pub(super) fn is_under_way(&self, flight: u64) -> bool {
        let races = self.races.borrow();
        races.arrivals.iter().any(|arrival| arrival.flight == flight)
            || races.departures.iter().any(|d| d.flight == flight && !d.rest.is_empty())
    }

    /// A read of `len` bytes begins, in the order `order` of its pieces, the last first.
    pub(super) fn begin_departure(&self, flight: u64, at: At, len: usize, order: Vec<Piece>) {
        let (start, got) = (self.place(at, len), vec![0; len]);
        self.races.borrow_mut().departures.push(Departure { flight, start, rest: order, got });
    }

    /// `count` more pieces of the read are fetched.
    pub(super) fn depart(&self, flight: u64, count: usize) {
        let mut races = self.races.borrow_mut();
        if let Some(departure) = races.departures.iter_mut().find(|d| d.flight == flight) {
            self.fetch(departure, count);
        }
    }

    /// The read ends: what it fetched.
    pub(super) fn end_departure(&self, flight: u64) -> Option<Vec<u8>> {
        let mut races = self.races.borrow_mut();
        let found = races.departures.iter().position(|d| d.flight == flight)?;
        let mut departure = races.departures.remove(found);
        self.fetch(&mut departure, usize::MAX);
        Some(departure.got)
    }

    fn fetch(&self, departure: &mut Departure, count: usize) {
        for _ in 0..count.min(departure.rest.len()) {
            let piece = departure.rest.pop().expect("counted above");
            self.bytes.get(departure.start + piece.start, &mut departure.got[piece]);
        }
    }

    /// Time passes between two looks of the owner: bytes may arrive.
    fn race_in(&self) {
        let mut races = self.races.borrow_mut();
        let Races { draws, arrivals, .. } = &mut *races;
        let (Some(draws), false) = (draws, arrivals.is_empty()) else {
            return;
        };
        if draws.chance(1, 2) {
            let found = draws.index(arrivals.len());
            let arrival = &mut arrivals[found];
            let mut count = draws.between(1, 24);
            while count > 0 && arrival.step(&self.bytes) {
                count -= 1;
            }
        }
    }

    /// Time passes between two stores of the owner: bytes may be fetched.
    fn race_out(&self) {
        let mut races = self.races.borrow_mut();
        let Races { draws, departures, .. } = &mut *races;
        let (Some(draws), false) = (draws, departures.is_empty()) else {
            return;
        };
        if draws.chance(1, 2) {
            let (found, count) = (draws.index(departures.len()), draws.between(1, 8));
            self.fetch(&mut departures[found], to_usize(count));
        }
    }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).expect("64-bit only")
}

impl Memory for SimMemory {
    fn load(&self, region: Region, offset: u32) -> u64 {
        assert!(offset.is_multiple_of(8), "word at byte {offset}");
        self.race_in();
        self.word(At { region, offset })
    }

    fn store(&self, region: Region, offset: u32, value: u64) {
        assert!(offset.is_multiple_of(8), "word at byte {offset}");
        if self.fuse.acts() {
            self.race_out();
            self.poke(At { region, offset }, &value.to_le_bytes());
        }
    }

    fn copy_out(&self, region: Region, offset: u32, into: &mut [u8]) {
        let start = self.place(At { region, offset }, into.len());
        for (index, chunk) in into.chunks_mut(8).enumerate() {
            self.race_in();
            self.bytes.get(start + index * 8, chunk);
        }
    }

    fn copy_in(&self, region: Region, offset: u32, bytes: &[u8]) {
        let start = self.place(At { region, offset }, bytes.len());
        for (index, chunk) in bytes.chunks(8).enumerate() {
            if self.fuse.acts() {
                self.race_out();
                self.bytes.set(start + index * 8, chunk);
            }
        }
    }
}
