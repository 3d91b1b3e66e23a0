//! Handover: by order of an operator the manager makes another node the manager, in order (X-17).
//!
//! ```text
//!  manager of term 4 ── HANDOVER ─▶ backup: claims term 5, NMI to all
//!          ▲                          │
//!          └── backup in place ◀──────┘ completes what was begun, as after any succession
//! ```
//!
//! The message is all that there is to it: until a later term arrives, the manager remains what it
//! is, so a message that is lost changes nothing. It may be repeated; the next one finds the
//! receiver in a later term.
//!
//! A backup does not obey an old message: its manager may have removed it meanwhile. The message
//! echoes the last heartbeat that the manager has heard of the backup, and names the backup's
//! incarnation. It counts if this incarnation has sent that heartbeat within R, and has not stood
//! still since.

use super::{Component, News, Rule, State, Watch};
use crate::dirnet::replay::is_after;
use crate::dirnet::{ComponentIncarnation, Frame, Members, Message, Reject, Seat};
use crate::ids::Rank;
use crate::time::Instant;

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    /// Hands over to `node` by order of an operator: it claims the next term, and this node becomes
    /// its backup. This node remains the manager until then, and if the message is lost: the order
    /// may be given again.
    ///
    /// # Errors
    /// [`Reject::NotManager`]; [`Reject::BadSubject`] when `node` is not heard or may not manage,
    /// or too few members are left for a claim. Nothing changed.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn hand_over(&mut self, now: Instant, node: Rank) -> Result<(), Reject> {
        self.begin(now);
        self.check_order(node)?;
        let is_heard = matches!(self.watch(node), Watch::Up { .. });
        if !is_heard || !self.members().contains(node) || !self.may_hand_over_to(node) {
            return Err(Reject::BadSubject);
        }
        let echo = self.fellow(node).map_or(0, |fellow| fellow.beat);
        let incarnation = self.db.standing(node).incarnation;
        let message = Message::HandOver { incarnation, echo };
        self.send(Members::only(node), Seat::Component, message);
        Ok(())
    }

    /// The manager hands over to this node.
    pub(super) fn handle_hand_over(
        &mut self,
        now: Instant,
        frame: &Frame,
        incarnation: ComponentIncarnation,
        echo: u32,
    ) -> Result<(), Reject> {
        if frame.seat != Seat::Component {
            return Err(Reject::WrongSeat);
        }
        let is_managers = frame.term == self.term && frame.sender == self.term.claimant;
        if !matches!(self.state, State::Backup(_))
            || !(is_managers || crate::dirnet::ANY_NODE_HANDS_OVER.is_planted())
        {
            return Err(Reject::NotManager);
        }
        let is_recent = incarnation == self.incarnation && self.is_recent(echo);
        if !is_recent && !crate::dirnet::LATE_HANDOVERS_COUNT.is_planted() {
            return Err(Reject::Late);
        }
        if !self.may_hand_over_to(self.me()) {
            self.tell(News::TooFew);
            return Err(Reject::BadSubject);
        }
        if crate::dirnet::HANDED_OVER_TERMS_GO_ON.is_planted() {
            self.become_manager(now, self.term);
        } else {
            self.claim(now, Rule::HandOver);
        }
        Ok(())
    }

    /// Whether `node` may manage, and there are as many members as a claim needs (G-11).
    fn may_hand_over_to(&self, node: Rank) -> bool {
        let members = self.members().count() + 1;
        self.config.may_manage(node) && members >= u32::from(self.config.min_alive())
    }

    /// Whether this node has sent heartbeat `echo` within R, and has not stood still since.
    fn is_recent(&self, echo: u32) -> bool {
        let was_sent = echo != 0 && !is_after(echo, self.beats);
        let within = self.timing().receive.0 / self.timing().send.0;
        let age = u64::from(self.beats.wrapping_sub(echo));
        was_sent && is_after(echo, self.beats_before_lag) && age <= within
    }
}
