//! From whom each block of a pipelined message is read.
//!
//! The plan is an iterator; its next transfers are kept by block, so far ahead that the first block
//! that is lacking is always among them.

use core::hash::{Hash, Hasher};

use super::pipeline::Pipeline;
use super::seats::{Grank, Seats};
use crate::wire::group::Entry;

/// Blocks whose source is kept. A step of the plan brings a block that is less than
/// [`AHEAD`] from the number of the step.
const KEPT: usize = 256;
/// Steps that are taken ahead of the first block that is lacking.
const AHEAD: u64 = 96;

const UNKNOWN: u8 = u8::MAX;

/// The sources of the blocks of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sources {
    /// The number of the message; 0 before the first.
    seq: u64,
    first: u64,
    plan: Pipeline,
    seats: Seats,
    taken: u64,
    granks: [u8; KEPT],
}

impl Sources {
    pub(super) fn new() -> Self {
        Self {
            seq: 0,
            first: 0,
            plan: Pipeline::new(1, 0, 0),
            seats: Seats::new(1, Grank(0), 1),
            taken: 0,
            granks: [UNKNOWN; KEPT],
        }
    }

    /// From whom `me` reads `block` of the message `entry` of `blocks`; `base` is the first block
    /// that it lacks. None while blocks of an earlier message are lacking.
    pub(super) fn of(
        &mut self,
        (entry, blocks): (&Entry, u64),
        (members, root, me): (u16, Grank, Grank),
        base: u64,
        block: u64,
    ) -> Option<Grank> {
        if self.seq != entry.seq {
            // The plan starts where this member lacks nothing of the message before.
            if base < entry.first {
                return None;
            }
            let seats = Seats::new(members, root, entry.members);
            let plan = Pipeline::new(seats.count(), blocks, seats.position(me)?);
            let (seq, first) = (entry.seq, entry.first);
            *self = Self { seq, first, plan, seats, ..Self::new() };
        }
        while self.taken < base - self.first + AHEAD {
            // Steps are taken in order: each depends on the last block of the own vertex.
            let Some(step) = self.plan.next() else { break };
            self.taken += 1;
            if let Some(transfer) = step.incoming {
                let grank = self.seats.at(transfer.with).and_then(|it| u8::try_from(it.0).ok());
                self.granks[place(self.first + transfer.block)] = grank.unwrap_or(UNKNOWN);
            }
        }
        Some(self.granks[place(block)]).filter(|it| *it != UNKNOWN).map(|it| Grank(u16::from(it)))
    }
}

impl Hash for Sources {
    /// Follows from the entry and from what is held: the explorer must not distinguish states by
    /// what was looked up before.
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

const fn place(block: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "less than KEPT")]
    let place = (block % KEPT as u64) as usize;
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the sizes above rest on.
    #[test]
    fn a_block_arrives_close_to_the_step_of_its_number() {
        for members in 2..=64 {
            for member in 1..members {
                for (step, it) in (0_u64..).zip(Pipeline::new(members, 200, member)) {
                    let Some(transfer) = it.incoming else { continue };
                    let late = step.saturating_sub(transfer.block);
                    let early = transfer.block.saturating_sub(step);
                    assert!(late < 64 && early < 64, "n {members}: {transfer:?} in {step}");
                }
            }
        }
    }
}
