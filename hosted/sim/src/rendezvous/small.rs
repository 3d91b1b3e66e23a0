//! The configurations of rendezvous that the explorer walks.
//!
//! ```text
//!   members   2: peer 0 sends, peer 1 asks; 3: two ask, each for a value of its own
//!   paths     inline, by reads, and by writes: cold, and warm from the second value on; in parts
//!             that are read or written
//!   cancel    before the answer is taken from the lane; then the same value is asked for again.
//!             Or while reads or writes of it are out; then the value of another source is asked
//!             for, into the same memory
//!   crash     of either, at any operation; with a start, the next incarnation goes on
//! ```
//!
//! Works are handled as they end, but where they are out at a cancel. No step ends, and time passes
//! at the end of a path alone: seeds show more.

use weft_core::rendezvous::{Digest, PartSizes, Path, RendezvousSizes};

use super::Meetings;
use super::Script::{self, Ask, AskAndCancel, CancelForAnother};
use crate::protocol::{Opening, Pace, Small};

/// One configuration: how many values travel how, and what goes wrong.
struct MeetingCase {
    name: &'static str,
    way: ValuePath,
    orders: &'static [u32],
    script: Script,
    crashes: u32,
    starts: u32,
    pace: Pace,
}

/// Bytes of each value: two reads.
const VALUE_LEN: u64 = 16;

/// How values travel.
#[derive(Clone, Copy)]
struct ValuePath {
    /// The longest that comes in its message; all have [`VALUE_LEN`] bytes.
    inline: u16,
    /// The path of all others.
    path: Path,
    /// Whether those come in parts.
    in_parts: bool,
}

const READ: ValuePath = ValuePath { inline: 0, path: Path::Read, in_parts: false };
const INLINE: ValuePath = ValuePath { inline: VALUE_LEN as u16, ..READ };
const WRITE: ValuePath = ValuePath { path: Path::Write, ..READ };
const PARTS_READ: ValuePath = ValuePath { in_parts: true, ..READ };
const PARTS_WRITTEN: ValuePath = ValuePath { in_parts: true, ..WRITE };

const fn case(
    name: &'static str,
    way: ValuePath,
    orders: &'static [u32],
    script: Script,
    (crashes, starts): (u32, u32),
) -> MeetingCase {
    MeetingCase { name, way, orders, script, crashes, starts, pace: Pace::AtOnce }
}

/// The value of one source is asked for and taken back, then that of another: works of the first
/// may be out, and no order of a pair keeps them ahead of those of the second.
const fn cancel(name: &'static str, way: ValuePath) -> MeetingCase {
    MeetingCase { pace: Pace::AtWill, ..case(name, way, &[4, 1, 1], CancelForAnother, (0, 0)) }
}

const CASES: &[MeetingCase] = &[
    case("n = 2, one value, inline", INLINE, &[1, 1], Ask, (1, 0)),
    case("n = 2, one value, read", READ, &[1, 1], Ask, (1, 0)),
    case("n = 2, three values of one key, inline", INLINE, &[3, 3], Ask, (0, 0)),
    case("n = 2, three values of one key, read", READ, &[3, 3], Ask, (0, 0)),
    case("n = 2, cancel before the answer, inline", INLINE, &[2, 3], AskAndCancel, (0, 0)),
    case("n = 2, cancel before the answer, read", READ, &[2, 3], AskAndCancel, (0, 0)),
    case("n = 2, either begins again, inline", INLINE, &[2, 2], Ask, (1, 1)),
    case("n = 2, either begins again, read", READ, &[2, 2], Ask, (1, 1)),
    case("n = 2, one value, write", WRITE, &[1, 1], Ask, (1, 0)),
    case("n = 2, three values of one key, write", WRITE, &[3, 3], Ask, (0, 0)),
    case("n = 2, cancel before the answer, write", WRITE, &[2, 3], AskAndCancel, (0, 0)),
    case("n = 2, either begins again, write", WRITE, &[2, 2], Ask, (1, 1)),
    case("n = 3, one value each, read", READ, &[2, 1, 1], Ask, (1, 0)),
    case("n = 2, one value, in parts that are read", PARTS_READ, &[1, 1], Ask, (1, 0)),
    case("n = 2, one value, in parts that are written", PARTS_WRITTEN, &[1, 1], Ask, (1, 0)),
    case("n = 2, two values of one key, in parts", PARTS_READ, &[2, 2], Ask, (0, 0)),
    case("n = 2, cancel before the answer, in parts", PARTS_READ, &[2, 3], AskAndCancel, (0, 0)),
    case("n = 2, either begins again, in parts", PARTS_READ, &[2, 2], Ask, (1, 1)),
    cancel("n = 3, cancel while reads are out, then ask another", READ),
    cancel("n = 3, cancel while writes are out, then ask another", WRITE),
    cancel("n = 3, cancel while parts are out, then ask another", PARTS_READ),
];

/// All of them.
pub(super) fn all() -> Vec<Small<Meetings>> {
    CASES.iter().map(MeetingCase::small).collect()
}

impl MeetingCase {
    fn small(&self) -> Small<Meetings> {
        let peers = self.orders.len() as u16;
        // Two parts of a value are under way at once.
        let parts = match self.way.in_parts {
            true => PartSizes { len: VALUE_LEN as u32 / 2, places: 2, slots: 2 * peers },
            false => PartSizes::NONE,
        };
        let sizes = RendezvousSizes {
            peers,
            slots: 4,
            leaf_len: 64,
            offer_leaves: 2,
            landing_leaves: 2,
            inline: self.way.inline,
            piece_len: 8,
            digest: Digest::Off,
            path: self.way.path,
            parts,
            lane_slots: 2,
        };
        // Longer than any path: a receive times out when nothing else can happen.
        let protocol = Meetings::new(sizes, (1, VALUE_LEN, 1_000_000));
        let hands_over = self.way.in_parts;
        let protocol = Meetings { hands_over, script: Some(self.script), ..protocol };
        let small = Small::of(self.name, protocol, self.orders.to_vec());
        let opening = if self.orders.len() > 2 { Opening::Passed } else { Opening::Explored };
        let (crashes, starts) = (self.crashes, self.starts);
        Small { crashes, starts, opening, pace: self.pace, ..small }
    }
}
