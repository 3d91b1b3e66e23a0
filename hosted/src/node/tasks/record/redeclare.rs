//! A task under another recovery script than before (RL-12).

use super::{Declared, Due, LeftErrors, Record};
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
            (Some(left), Some(declared)) => left.declared.redeclare(declared.answer),
            (None, Some(declared)) => {
                // An order of the earlier script may still be under way: it stays judged.
                let mut left = LeftErrors::new(declared);
                self.before.into_iter().for_each(|before| left.go_on(before));
                left.begin(recorded, runs || self.restarts > 0);
                self.left = Some(left);
            }
            (Some(left), None) => {
                if left.next_deadline_ns().is_some() {
                    due = self.answer_without_order(now_ns);
                }
                self.before = self.left.take().map(|left| left.past());
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
