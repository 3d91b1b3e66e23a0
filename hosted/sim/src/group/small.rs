//! The configurations of groups that the explorer walks.
//!
//! ```text
//!   members    2, 3, 4; member 0 is the root
//!   messages   up to three small ones, a long one of up to three blocks; windows of two
//!   calls      up to two barriers, up to two all-gathers
//!   trees      binary, pipe, serial; blocks flat and by the pipeline
//!   crash      of any member, at any operation; in most it is removed then, and in two it comes
//!              back
//! ```
//!
//! Reads are handled as they end. Of three and four members, and of a return with a message, the
//! paths begin once all have opened the group, which the others explore. Rounds are not limited.
//! Three members with more than one block or message, or a block by the pipeline, and four, see no
//! crash, and of more than two none comes back: [`left_out`] names those.

use weft_core::group::{Class, Costs, Sizes, Spread, Tree};
use weft_core::ids::{Peer, PeerSet};

use super::Groupings;
use crate::explore::Unexplored;
use crate::protocol::{Opening, Pace, Small};

/// Bytes of a block.
const BLOCK_LEN: u32 = 8;

/// One configuration: who sends what, and who is removed when it dies.
struct GroupCase {
    name: &'static str,
    members: u16,
    messages: u32,
    /// Bytes of each; more than [`EAGER`] travel in blocks.
    len: u64,
    class: Class,
    spread: Spread,
    crashes: u32,
    doomed: &'static [u16],
    barriers: u64,
    gathers: u64,
    /// How often one that has died begins again; a removed one comes back.
    starts: u32,
}

/// The longest small message.
const EAGER: u16 = 4;

const ANY: &[u16] = &[0, 1, 2, 3];

const CASES: &[GroupCase] = &[
    case("n = 2, one small message", 2),
    case("n = 2, one small message, any removed", 2).removing(ANY),
    case("n = 2, three small messages, any removed", 2).messages(3).removing(ANY),
    case("n = 2, one message of two blocks", 2).blocks(2),
    case("n = 2, one message of three blocks, any removed", 2).blocks(3).removing(ANY),
    case("n = 3, one small message, any removed", 3).removing(ANY),
    case("n = 3, one small message, pipe, any removed", 3).along(Class::Pipe).removing(ANY),
    case("n = 3, one message of one block, any removed", 3).blocks(1).removing(ANY),
    case("n = 3, three small messages, pipe", 3).messages(3).along(Class::Pipe).crashless(),
    case("n = 3, one message of two blocks", 3).blocks(2).crashless(),
    case("n = 3, one message of two blocks, pipeline", 3).blocks(2).pipelined().crashless(),
    case("n = 2, two barriers", 2).calls(2, 0),
    case("n = 3, one barrier, any removed", 3).calls(1, 0).removing(ANY),
    case("n = 2, two all-gathers", 2).calls(0, 2),
    case("n = 2, one all-gather, any removed", 2).calls(0, 1).removing(ANY),
    case("n = 2, one small message, a removal and a return", 2).removing(&[1]).returning(),
    case("n = 2, a removal and a return", 2).messages(0).removing(&[1]).returning(),
    case("n = 4, one small message", 4).crashless(),
    case("n = 4, one small message, serial", 4).along(Class::Serial).crashless(),
];

/// One small message among `members`, any of which may crash and none of which is removed.
const fn case(name: &'static str, members: u16) -> GroupCase {
    GroupCase {
        name,
        members,
        messages: 1,
        len: EAGER as u64,
        class: Class::Binary,
        spread: Spread::Flat,
        crashes: 1,
        doomed: &[],
        barriers: 0,
        gathers: 0,
        starts: 0,
    }
}

impl GroupCase {
    const fn messages(self, messages: u32) -> Self {
        Self { messages, ..self }
    }

    const fn blocks(self, blocks: u64) -> Self {
        Self { len: blocks * BLOCK_LEN as u64, ..self }
    }

    /// Calls, and no message.
    const fn calls(self, barriers: u64, gathers: u64) -> Self {
        Self { barriers, gathers, messages: 0, ..self }
    }

    const fn along(self, class: Class) -> Self {
        Self { class, ..self }
    }

    const fn pipelined(self) -> Self {
        Self { spread: Spread::Pipeline, ..self }
    }

    const fn removing(self, doomed: &'static [u16]) -> Self {
        Self { doomed, ..self }
    }

    const fn returning(self) -> Self {
        Self { starts: 1, ..self }
    }

    const fn crashless(self) -> Self {
        Self { crashes: 0, ..self }
    }
}

/// Asked for, and too many states for every run.
pub(super) fn left_out() -> Vec<Unexplored> {
    let why = "too many states for every run; in its place: one block or message with a crash, \
               or more without";
    [
        "n = 3, two small messages, any removed, a crash",
        "n = 3, one message of one block, pipeline, any removed, a crash",
        "n = 3, one message of two blocks, any removed, a crash",
        "n = 3, one message of two blocks, pipeline, any removed, a crash",
        "n = 4, one small message, any removed, a crash",
    ]
    .map(|name| Unexplored { name: name.to_owned(), why: why.to_owned() })
    .into_iter()
    .chain([Unexplored {
        name: "n = 3, a removal and a return".to_owned(),
        why: "more than twelve million states; in its place: two members, and the swarm".to_owned(),
    }])
    .collect()
}

/// All of them.
pub(super) fn all() -> Vec<Small<Groupings>> {
    CASES.iter().map(GroupCase::small).collect()
}

impl GroupCase {
    fn small(&self) -> Small<Groupings> {
        let sizes = Sizes {
            peers: self.members,
            groups: 1,
            entries: 2,
            blocks: 2,
            block_len: BLOCK_LEN,
            eager: EAGER,
            lane_slots: 8,
            tree: Tree { class: self.class, costs: Costs::postal(1) },
            spread: self.spread,
        };
        let list: Vec<_> = (0..self.members).map(Peer).collect();
        let mut doomed = PeerSet::EMPTY;
        let doomed_members = self.doomed.iter().filter(|peer| **peer < self.members);
        doomed_members.copied().map(Peer).for_each(|peer| doomed.insert(peer));
        let protocol = Groupings::new(sizes, vec![list], doomed, 3);
        let (len, barriers, gathers) = (Some(self.len), self.barriers, self.gathers);
        let returns = self.starts > 0;
        let protocol = Groupings { len, barriers, gathers, returns, ..protocol };
        let mut orders = vec![0; usize::from(self.members)];
        orders[0] = self.messages;
        let small = Small::of(self.name, protocol, orders);
        let is_passed = self.members > 2 || returns && self.messages > 0;
        let opening = if is_passed { Opening::Passed } else { Opening::Explored };
        let (crashes, starts) = (self.crashes, self.starts);
        Small { crashes, starts, opening, pace: Pace::AtOnce, ..small }
    }
}
