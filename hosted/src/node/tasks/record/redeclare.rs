//! A task under another recovery script than before (RL-12).

use super::{Declared, Due, Left, Record};
use crate::node::control::TaskState;

impl Record {
    /// Another recovery script is in force. Errors from before it declares the task are answered;
    /// for those that wait for an order of the script that has declared it, none comes.
    pub(in crate::node::tasks) fn redeclare(
        &mut self,
        declared: Option<Declared>,
        beat_ms: Option<u64>,
        now_ns: u64,
    ) -> Due {
        let (recorded, runs) = (self.recorded(), self.state == TaskState::Running);
        let mut due = Due::Nothing;
        match (&mut self.left, declared) {
            (Some(left), Some(declared)) => left.declared = declared,
            (None, Some(declared)) => {
                self.left = Some(Left::begun(declared, recorded, runs || self.restarts > 0));
            }
            (Some(left), None) => {
                if left.next_deadline_ns().is_some() {
                    due = self.answer_without_order(now_ns);
                }
                self.left = None;
            }
            (None, None) => {}
        }
        let beat_ns = beat_ms.map(|beat_ms| beat_ms.saturating_mul(1_000_000));
        self.beat_ns = declared.and_then(|declared| declared.beat_ns).or(beat_ns);
        if runs && self.state == TaskState::Running {
            self.await_beat(now_ns);
        }
        due
    }
}
