//! The plan for long messages: the binomial pipeline (GT-6).
//!
//! ```text
//!   step j, dimension q = j mod d:   vertex w  ◀──block──  vertex w ⊕ 2^q
//!   n = 2^d + e: vertex v has the members v and 2^d − 1 + v, twins, for 1 ≤ v ≤ e
//!     the twin that has the turn receives from outside, and sends the other what it got last
//!     the other sends what the vertex sends
//! ```
//!
//! All n − 1 receivers have all b blocks after b + ⌈log₂ n⌉ − 1 steps, the lower bound, for every
//! n; in a step a member receives at most one block and sends at most one, and it never receives a
//! block twice. Ganesan and Seshadri's hypercube schedule, with twins for the sizes between the
//! powers of two. Members are positions; the root is 0.

use super::mutants::TURN_BY_BLOCK;

/// One block that goes from one member to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// The other member: the sender of what comes in, the receiver of what goes out.
    pub with: u16,
    /// The number of the block in its message.
    pub block: u64,
}

/// One step of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// What it receives.
    pub incoming: Option<Transfer>,
    /// What it sends.
    pub outgoing: Option<Transfer>,
}

/// The steps of one member, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pipeline {
    members: u16,
    blocks: u64,
    member: u16,
    step: u64,
    /// The block that each member of the own vertex by plan got last from outside: the first
    /// member's, and its twin's.
    last: [Option<u64>; 2],
}

impl Pipeline {
    /// The steps of `member` of `0..members` for a message of `blocks`.
    ///
    /// # Panics
    /// When there is no such member: a bug of the caller.
    #[must_use]
    pub const fn new(members: u16, blocks: u64, member: u16) -> Self {
        assert!(member < members, "every member has a plan, and no other");
        Self { members, blocks, member, step: 0, last: [None; 2] }
    }

    /// How many steps the whole message takes: b + ⌈log₂ n⌉ − 1.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        if self.members < 2 || self.blocks == 0 {
            return 0;
        }
        self.blocks + self.members.next_power_of_two().ilog2() as u64 - 1
    }

    const fn dimensions(&self) -> u32 {
        self.members.ilog2()
    }

    /// The vertex that `member` stands for.
    const fn vertex(&self, member: u16) -> u16 {
        let vertices = 1 << self.dimensions();
        if member < vertices { member } else { member - vertices + 1 }
    }

    /// The other member of `vertex`; none if it has one alone.
    const fn twin(&self, vertex: u16) -> Option<u16> {
        let twin = (1 << self.dimensions()) - 1 + vertex;
        if vertex > 0 && twin < self.members { Some(twin) } else { None }
    }

    /// Which member of `vertex` receives from outside in `step`: the turn changes after each step
    /// along a dimension whose bit `vertex` has.
    fn receiver(&self, vertex: u16, step: u64) -> u16 {
        let Some(twin) = self.twin(vertex) else { return vertex };
        let (rounds, rest) =
            (step / u64::from(self.dimensions()), step % u64::from(self.dimensions()));
        let passed = u64::from(vertex.count_ones()) * rounds
            + u64::from((vertex & ((1 << rest) - 1)).count_ones());
        let changes = if TURN_BY_BLOCK.is_planted() { step } else { passed };
        if changes.is_multiple_of(2) { vertex } else { twin }
    }

    /// Which member of `vertex` sends outwards in `step`.
    fn sender(&self, vertex: u16, step: u64) -> u16 {
        let receiver = self.receiver(vertex, step);
        match self.twin(vertex) {
            Some(twin) if receiver == vertex => twin,
            Some(_) | None => vertex,
        }
    }

    /// The block that `vertex` receives from outside in `step`.
    fn received(&self, vertex: u16, step: u64) -> Option<u64> {
        let dimensions = u64::from(self.dimensions());
        if vertex == 0 || step >= self.blocks + dimensions - 1 {
            return None;
        }
        let along = step % dimensions;
        let next = |distance: &u64| vertex >> ((along + distance) % dimensions) & 1 == 1;
        let has_bit = next(&0);
        let ahead = if has_bit { (1..dimensions).find(next).unwrap_or(dimensions) } else { 0 };
        let block = (step + ahead).checked_sub(dimensions)?;
        // At the end of the message its last block fills the schedule.
        Some(block.min(self.blocks - 1))
    }

    /// A message of one block: member x < 2^step sends to x + 2^step.
    fn single(&self, step: u64) -> Step {
        let half = 1_u32 << step;
        let member = u32::from(self.member);
        let transfer = |with: u32| u16::try_from(with).ok().map(|with| Transfer { with, block: 0 });
        let is_fresh = (half..2 * half).contains(&member);
        let sends = member < half && member + half < u32::from(self.members);
        Step {
            incoming: if is_fresh { transfer(member - half) } else { None },
            outgoing: if sends { transfer(member + half) } else { None },
        }
    }

    /// Between twins alone: each sends what it got last.
    fn exchange(&self, vertex: u16, twin: u16) -> Step {
        let (mine, theirs, with) = match self.member == vertex {
            true => (self.last[0], self.last[1], twin),
            false => (self.last[1], self.last[0], vertex),
        };
        let transfer = |block: Option<u64>| block.map(|block| Transfer { with, block });
        Step { incoming: transfer(theirs), outgoing: transfer(mine) }
    }

    /// Along the hypercube.
    fn outside(&mut self, vertex: u16, step: u64) -> Step {
        let across = vertex ^ 1 << (step % u64::from(self.dimensions()));
        let arrives = self
            .received(vertex, step)
            .map(|block| Transfer { with: self.sender(across, step), block });
        let leaves = self
            .received(across, step)
            .map(|block| Transfer { with: self.receiver(across, step), block });
        let Some(twin) = self.twin(vertex) else {
            return Step { incoming: arrives, outgoing: leaves };
        };
        let receiver = self.receiver(vertex, step);
        let turn = usize::from(receiver == twin);
        let handed = self.last[turn];
        // The twin receives in the next step what came from outside in this one.
        self.last[turn] = arrives.map(|transfer| transfer.block).or(handed);
        let inside = |with| handed.map(|block| Transfer { with, block });
        if self.member == receiver {
            let other = if receiver == vertex { twin } else { vertex };
            Step { incoming: arrives, outgoing: inside(other) }
        } else {
            Step { incoming: inside(receiver), outgoing: leaves }
        }
    }
}

impl Iterator for Pipeline {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if self.step >= self.steps() {
            return None;
        }
        let step = self.step;
        self.step += 1;
        if self.blocks == 1 {
            return Some(self.single(step));
        }
        let vertex = self.vertex(self.member);
        let is_last = step >= self.blocks + u64::from(self.dimensions()) - 1;
        Some(match self.twin(vertex) {
            Some(twin) if is_last => self.exchange(vertex, twin),
            None if is_last => Step { incoming: None, outgoing: None },
            Some(_) | None => self.outside(vertex, step),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    /// All members in lockstep: what they send is what they hold, and what they receive is what is
    /// sent to them.
    fn check(members: u16, blocks: u64) {
        let mut plans: Vec<_> =
            (0..members).map(|member| Pipeline::new(members, blocks, member)).collect();
        let bound = blocks + u64::from(members.next_power_of_two().ilog2()) - 1;
        assert_eq!(plans[0].steps(), bound);
        let mut held = vec![vec![false; blocks as usize]; usize::from(members)];
        held[0].fill(true);
        for step in 0..bound {
            let steps: Vec<_> =
                plans.iter_mut().map(|plan| plan.next().expect("as long as the bound")).collect();
            let before = held.clone();
            for (member, own) in (0..members).zip(&steps) {
                if let Some(Transfer { with, block }) = own.outgoing {
                    let back = Transfer { with: member, block };
                    let what =
                        std::format!("n {members} b {blocks} step {step}: {member} to {with}");
                    assert!(before[usize::from(member)][block as usize], "{what}: not held");
                    assert_eq!(steps[usize::from(with)].incoming, Some(back), "{what}");
                }
                if let Some(Transfer { with, block }) = own.incoming {
                    let back = Transfer { with: member, block };
                    assert_eq!(steps[usize::from(with)].outgoing, Some(back));
                    let place = &mut held[usize::from(member)][block as usize];
                    assert!(!*place, "n {members} b {blocks}: {member} receives {block} again");
                    *place = true;
                }
            }
        }
        assert!(held.iter().flatten().all(|is_held| *is_held), "n {members} b {blocks}");
        assert!(plans.iter_mut().all(|plan| plan.next().is_none()));
    }

    /// GT-6: every member receives each block once, in b + ⌈log₂ n⌉ − 1 steps, for every n.
    #[test]
    fn the_plan_meets_the_bound_for_every_number_of_members() {
        for members in 2..=1024 {
            let all = [1, 2, 3, 5, 17, 64];
            let few = [1 + u64::from(members) % 23];
            for &blocks in if members <= 130 { &all[..] } else { &few[..] } {
                check(members, blocks);
            }
        }
    }

    #[test]
    fn the_plan_meets_the_bound_for_every_number_of_blocks() {
        for members in [2, 3, 5, 6, 7, 9, 11, 13, 31, 33] {
            (1..=64).for_each(|blocks| check(members, blocks));
        }
        for (members, blocks) in [(1000, 64), (1023, 64), (1024, 64), (777, 2)] {
            check(members, blocks);
        }
    }

    #[test]
    fn one_member_or_no_block_takes_no_step() {
        assert_eq!(Pipeline::new(1, 5, 0).next(), None);
        assert_eq!(Pipeline::new(3, 0, 1).next(), None);
    }
}
