//! What may go wrong, how often in this run, and which of it did.
//!
//! At each opportunity the world asks [`Faults::strikes`]. Every kind draws from a stream of its
//! own, and what is left out of a replay is drawn all the same, so the faults of a run have
//! numbers that stay theirs: `weft sim --faults 3,17` lets only those two happen.

use super::draws::{Draws, Purpose, scale};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum SimFault {
    /// The bytes of a write or a read arrive one by one, in any order, spread over time.
    Torn,
    /// Work takes effect late.
    SlowLanding,
    /// Work took effect and says so late.
    SlowCompletion,
    /// Work took effect and the queue pair is lost before it says so.
    LostCompletion,
    /// A post is refused as if the queue were full.
    FullQueue,
    /// Work goes out under a wrong key: denied, and the pair is lost.
    WrongKey,
    /// A fetch-add takes effect and answers -1.
    DamagedAnswer,
    /// A process ends between any two of its operations.
    Crash,
    /// A process stops forever.
    Hang,
    /// A process stops for 1 to 200 ms.
    Stall,
    /// A living process is taken for dead: fenced by all, and ended in its own time.
    Suspicion,
    /// Nothing passes from one peer to another for a while, or in both directions.
    Cut,
    /// A process's clock jumps forward.
    ClockJump,
    /// A message of the message port is lost.
    MessageLost,
    /// A message of the message port arrives twice.
    MessageTwice,
    /// A liar writes where it has the right to.
    Lie,
}

/// All kinds, with their names and how often they happen per 2^32 opportunities when the swarm
/// draws the middle rate.
const KINDS: [(SimFault, &str, u64); 16] = [
    (SimFault::Torn, "torn", 1 << 29),
    (SimFault::SlowLanding, "slow landing", 1 << 26),
    (SimFault::SlowCompletion, "slow completion", 1 << 26),
    (SimFault::LostCompletion, "lost completion", 1 << 21),
    (SimFault::FullQueue, "full queue", 1 << 27),
    (SimFault::WrongKey, "wrong key", 1 << 21),
    (SimFault::DamagedAnswer, "damaged answer", 1 << 24),
    (SimFault::Crash, "crash", 1 << 22),
    (SimFault::Hang, "hang", 1 << 20),
    (SimFault::Stall, "stall", 1 << 23),
    (SimFault::Suspicion, "suspicion", 1 << 21),
    (SimFault::Cut, "cut", 1 << 21),
    (SimFault::ClockJump, "clock jump", 1 << 23),
    (SimFault::MessageLost, "message lost", 1 << 28),
    (SimFault::MessageTwice, "message twice", 1 << 28),
    (SimFault::Lie, "lie", 1 << 31),
];

/// However frequent, one in four opportunities passes without a fault.
const RATE_MAX: u64 = 3 << 30;

impl SimFault {
    /// What a trace calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        KINDS[self as usize].1
    }
}

/// Which faults of a run may happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All that are drawn.
    All,
    /// Only those with these numbers, ascending.
    Only(Vec<u32>),
}

impl Keep {
    fn keeps(&self, number: u32) -> bool {
        match self {
            Self::All => true,
            Self::Only(numbers) => numbers.binary_search(&number).is_ok(),
        }
    }
}

/// A fault that happens now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strike {
    /// Its number in the run.
    pub number: u32,
    word: u64,
}

impl Strike {
    /// How much of it, from `low` to `high`. Always the same for the same fault.
    #[must_use]
    pub fn amount(self, low: u64, high: u64) -> u64 {
        low + scale(self.word, high - low + 1)
    }

    /// A second amount, independent of the first.
    #[must_use]
    pub fn other_amount(self, low: u64, high: u64) -> u64 {
        let word = self.word.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        low + scale(word.rotate_left(32), high - low + 1)
    }
}

/// The faults of one run.
#[derive(Clone, Debug)]
pub struct Faults {
    streams: Vec<Draws>,
    rates: [u64; KINDS.len()],
    keep: Keep,
    next: u32,
    happened: Vec<u32>,
    over: bool,
}

impl Faults {
    /// The mix of `seed`: each kind is out of this run half of the time, else rare or frequent.
    #[must_use]
    pub fn swarm(seed: u64, keep: Keep) -> Self {
        let mut setup = Draws::numbered(seed, Purpose::Faults, KINDS.len() as u64);
        let rates = KINDS.map(|(_, _, rate)| {
            let (absent, shift) = (setup.chance(1, 2), setup.between(0, 6));
            if absent { 0 } else { (rate << shift >> 2).min(RATE_MAX) }
        });
        let streams = (0..).map(|kind| Draws::numbered(seed, Purpose::Faults, kind));
        let streams = streams.take(KINDS.len()).collect();
        Self { streams, rates, keep, next: 0, happened: Vec::new(), over: false }
    }

    /// No faults.
    #[must_use]
    pub fn none() -> Self {
        // Copied with each state of an explorer: without streams.
        Self { streams: Vec::new(), over: true, ..Self::swarm(0, Keep::All) }
    }

    /// Each of `kinds` at every fourth opportunity, and nothing else.
    #[must_use]
    pub fn often(seed: u64, kinds: &[SimFault]) -> Self {
        let mut faults = Self::swarm(seed, Keep::All);
        faults.rates = KINDS.map(|(kind, ..)| if kinds.contains(&kind) { 1 << 30 } else { 0 });
        faults
    }

    /// `kind` does not occur in this run from now on.
    pub fn exclude(&mut self, kind: SimFault) {
        self.rates[kind as usize] = 0;
    }

    /// From now on nothing goes wrong.
    pub fn end(&mut self) {
        self.over = true;
    }

    /// The numbers of the faults that happened, ascending.
    #[must_use]
    pub fn happened(&self) -> &[u32] {
        &self.happened
    }

    /// Whether a fault of `kind` happens at this opportunity.
    pub fn strikes(&mut self, kind: SimFault) -> Option<Strike> {
        if self.over || self.rates[kind as usize] == 0 {
            return None;
        }
        let stream = &mut self.streams[kind as usize];
        if stream.word() >> 32 >= self.rates[kind as usize] {
            return None;
        }
        let strike = Strike { number: self.next, word: stream.word() };
        self.next += 1;
        if !self.keep.keeps(strike.number) {
            return None;
        }
        self.happened.push(strike.number);
        Some(strike)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strikes(mut faults: Faults) -> Vec<(SimFault, Strike)> {
        let mut all = Vec::new();
        for _ in 0..1000 {
            for (kind, ..) in KINDS {
                all.extend(faults.strikes(kind).map(|strike| (kind, strike)));
            }
        }
        all
    }

    #[test]
    fn what_is_left_out_moves_nothing_else() {
        let all = strikes(Faults::swarm(3, Keep::All));
        let kept: Vec<_> = all.iter().copied().filter(|(_, s)| s.number % 3 == 0).collect();
        assert!(kept.len() > 10);
        let numbers = kept.iter().map(|(_, strike)| strike.number).collect();
        assert_eq!(strikes(Faults::swarm(3, Keep::Only(numbers))), kept);
    }

    #[test]
    fn seeds_mix_differently() {
        let kinds = |seed| {
            let all = strikes(Faults::swarm(seed, Keep::All));
            all.into_iter().map(|(kind, _)| kind).collect::<std::collections::BTreeSet<_>>()
        };
        assert_ne!(kinds(1), kinds(2));
    }

    #[test]
    fn every_kind_stands_at_its_place() {
        for (place, (kind, name, _)) in KINDS.into_iter().enumerate() {
            assert_eq!((kind as usize, kind.name()), (place, name));
        }
    }
}
