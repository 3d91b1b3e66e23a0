//! A supervisor that hangs (X-13): its I'm-Alive Task is silent, its tasks are unguarded, and the
//! manager's orders to it are not carried out, while its component continues.
//!
//! ```text
//!   component ── checks its supervisor ──▶ TEIF(SupervisorHung) to all others, repeated
//!   manager   ── node failure: no second observer knows better than the node's own component
//!   backup    ── if that node is the manager: it is lost, and succeeded
//! ```

use super::suspicion::Loss;
use super::{Component, News, Raised, Rule, State, Watch, Why};
use crate::dirnet::{Alarm, Message, Reject, Seat};
use crate::ids::Rank;
use crate::time::Instant;

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    /// This node's supervisor has hung for longer than it may. Call again about once per R for as
    /// long as it hangs: the alarm may be lost.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn handle_supervisor_hung(&mut self, now: Instant) {
        self.begin(now);
        if let State::Manager | State::Backup(_) = self.state {
            let (to, generation) = (self.members(), self.incarnation.generation);
            let alarm = Alarm::SupervisorHung;
            self.send(to, Seat::Component, Message::Teif { generation, alarm });
        }
    }

    /// The component of `from` reports that its supervisor hangs.
    pub(super) fn handle_hung(
        &mut self,
        now: Instant,
        from: Rank,
        raised: Raised,
    ) -> Result<(), Reject> {
        let standing = self.db.standing(from);
        if !standing.is_up() || raised.incarnation != standing.incarnation {
            return Err(Reject::OldLife);
        }
        let is_awaited = matches!(self.watch(from), Watch::Up { .. } | Watch::Suspect(_));
        if !self.watches(from) || !is_awaited {
            return Err(Reject::NotForMe);
        }
        if crate::dirnet::HUNG_SUPERVISORS_STAY.is_planted() {
            return Ok(());
        }
        let why = Why::of_alarm(Rule::SupervisorHung, raised.alarm);
        match self.state {
            State::Backup(_) => {
                self.lose_manager(now, Loss::Node { why, is_corroborated: true });
            }
            State::Manager if self.may_decide(now) => {
                self.remove_node(now, from, standing.incarnation, why);
            }
            // The node repeats its report.
            State::Manager => self.tell(News::TooFew),
            State::Joining(_) | State::Excluded => {}
        }
        Ok(())
    }
}
