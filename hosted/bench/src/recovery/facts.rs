//! Pictures of a cluster in which little is wrong, the same in every run.

use weft_core::recovery::{NodeFact, Picture, TaskFact, TaskState};
use weft_core::time::Instant;

use super::script::TOGETHER;

/// The interpreter whose size is published: for 64 nodes and 16 tasks.
pub(super) const NODES: usize = 64;
pub(super) const TASKS: usize = 16;
/// The nodes that the script has.
pub(super) const NODES_USED: usize = TASKS / TOGETHER;
/// So many that a processor does not learn them by heart: a manager evaluates on new facts.
const PICTURES: u32 = 256;

pub(super) type Facts = Picture<NODES, TASKS>;

pub(super) fn pictures() -> Vec<Facts> {
    (1..=PICTURES).map(|seed| Draw(seed).picture()).collect()
}

/// Numbers that look drawn (Numerical Recipes' generator).
struct Draw(u32);

impl Draw {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) % end
    }

    /// Once in so many times.
    fn once_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    fn picture(&mut self) -> Facts {
        let mut picture = Facts::default();
        for node in &mut picture.nodes[..NODES_USED] {
            let is_member = !self.once_in(16);
            *node = NodeFact {
                is_member,
                is_removed: !is_member,
                is_isolated: self.once_in(16),
                has_rebooted: is_member && self.once_in(4),
            };
        }
        for task in &mut picture.tasks {
            *task = self.task();
        }
        // One task at least has failed: an evaluation has a reason.
        let one = &mut picture.tasks[self.below(TASKS as u32) as usize];
        (one.errors, one.answered) = (one.errors + 1, one.errors);
        picture
    }

    fn task(&mut self) -> TaskFact {
        let rare = [TaskState::Waiting, TaskState::Killed, TaskState::Isolated];
        let state = match self.below(24) {
            rarity @ 0..3 => rare[rarity as usize],
            _ => TaskState::Running,
        };
        let errors = self.below(8);
        TaskFact {
            state,
            errors,
            answered: errors.saturating_sub(u32::from(self.once_in(16))),
            error_kind: self.below(10) as u16,
            error_at: Instant(u64::from(self.below(1_000))),
            alpha: self.below(1_024) as u16,
            phase: self.below(10) as i32,
            starts: 1,
            restarts: self.below(2),
            has_fired: self.once_in(32),
        }
    }
}
