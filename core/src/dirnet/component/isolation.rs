//! Isolation: a standing of the node, above all of its incarnations (X-5, X-11).
//!
//! ```text
//!  manager: ANID(isolated) ─▶ all members, each fences ─▶ … ─▶ ANID(released) ─▶ all members
//!
//!  an isolated node or its next boot ─▶ any node: answered with the isolation, and it stops
//!  isolated, so it asks for its release: the isolation ─▶ all ─▶ ANID(released), once one knows it
//! ```
//!
//! Only a manager isolates and releases. Its decision is a fact from then on: it holds in any term,
//! whichever node reports it, and standings merge it in any order. A partition, a restart of all
//! nodes, or the loss of some databases therefore ends no isolation.

use super::{Component, Evidence, News, Role, Rule, State, Verdict, Watch, Why};
use crate::dirnet::{ComponentIncarnation, Frame, Level, Members, Message, Reject, Seat, Standing};
use crate::ids::{Incarnation, Rank};
use crate::time::Instant;

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    /// Isolates `node` by order of an operator: it is fenced everywhere, and no boot of it is a
    /// member until it is released (X-5). A node that is already isolated stays so.
    ///
    /// # Errors
    /// [`Reject::NotManager`], [`Reject::BadSubject`]; nothing changed.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn isolate(&mut self, now: Instant, node: Rank) -> Result<(), Reject> {
        self.isolate_by(now, node, Rule::Operator)
    }

    /// Isolates `node` as [`Self::isolate`] does, by order of a recovery script.
    ///
    /// # Errors
    /// [`Reject::NotManager`], [`Reject::BadSubject`]; nothing changed.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn isolate_by_script(&mut self, now: Instant, node: Rank) -> Result<(), Reject> {
        self.isolate_by(now, node, Rule::Script)
    }

    fn isolate_by(&mut self, now: Instant, node: Rank, rule: Rule) -> Result<(), Reject> {
        self.begin(now);
        self.check_order(node)?;
        let standing = self.db.standing(node);
        if standing.isolation().is_some() {
            return Ok(());
        }
        let why = Why { rule, evidence: Evidence::default() };
        self.explain(now, node, standing.incarnation, Verdict::Isolated, why);
        self.isolate_node(now, node, standing.incarnation);
        Ok(())
    }

    /// Removes a member by order of a recovery script, has it fenced everywhere, and resets it.
    /// That counts as a reset: one too many isolates the node (X-6).
    ///
    /// # Errors
    /// [`Reject::NotManager`], [`Reject::BadSubject`] when it is no member; nothing changed.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn restart(&mut self, now: Instant, node: Rank) -> Result<(), Reject> {
        self.begin(now);
        self.check_order(node)?;
        let standing = self.db.standing(node);
        if !standing.is_up() {
            return Err(Reject::BadSubject);
        }
        let why = Why { rule: Rule::Script, evidence: Evidence::default() };
        self.remove_node(now, node, standing.incarnation, why);
        Ok(())
    }

    /// Releases an isolated node by order of an operator: its next boot may join.
    ///
    /// # Errors
    /// [`Reject::NotManager`], [`Reject::BadSubject`] when it is not isolated; nothing changed.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn release(&mut self, now: Instant, node: Rank) -> Result<(), Reject> {
        self.begin(now);
        self.check_order(node)?;
        let boot = self.db.standing(node).isolation().ok_or(Reject::BadSubject)?;
        self.end_isolation(now, node, boot);
        self.tell_released(self.members(), node);
        Ok(())
    }

    /// Ends the isolations of `node` up to `boot`, whose release the supervisor knows: of a peer
    /// whose release has not reached this component, or of this node.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn learn_release(&mut self, now: Instant, node: Rank, boot: Incarnation) {
        self.begin(now);
        self.end_isolation(now, node, boot);
    }

    /// `node` is isolated since `boot`, as its supervisor or the own one knows: the database that
    /// this component has restored may be older.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn learn_isolation(&mut self, now: Instant, node: Rank, boot: Incarnation) {
        self.begin(now);
        let is_over = boot <= self.db.standing(node).released();
        if !is_over && self.config.others().contains(node) {
            self.stand(now, node, Standing::isolate(boot));
        }
    }

    /// Whether this node is isolated.
    pub(super) fn is_isolated(&self) -> bool {
        self.is_isolated_here(self.me())
    }

    /// Ends the isolations of `node` up to `boot`. A later incarnation may already be a member, and
    /// is watched again.
    fn end_isolation(&mut self, now: Instant, node: Rank, boot: Incarnation) {
        let before = self.db.standing(node);
        self.db.advance(node, Standing::release(boot));
        let is_free = before.isolation().is_some() && !self.is_isolated_here(node);
        if !is_free {
            return;
        }
        if node == self.me() && self.role() == Role::Joining {
            self.ask_for_manager(now);
        } else if self.db.standing(node).is_up() && self.role() == Role::Manager {
            let due = now.after(self.timing().receive);
            self.set_watch(node, Watch::Up { due });
        }
    }

    pub(super) fn is_isolated_here(&self, node: Rank) -> bool {
        self.db.standing(node).isolation().is_some()
    }

    /// Handles a frame that reports an isolation or a release, in any term, unless it is an order
    /// of the manager. Returns `None` for any other frame, and for one that was the manager's
    /// order.
    pub(super) fn handle_report(
        &mut self,
        now: Instant,
        from: Rank,
        frame: &Frame,
    ) -> Option<Result<(), Reject>> {
        let Message::Anid { node, incarnation, level } = frame.message else { return None };
        let is_order = from == frame.term.claimant && node != from;
        if level == Level::Down || is_order {
            return None;
        }
        Some(self.learn_report(now, from, frame, Standing::removed(incarnation, level)))
    }

    /// Does the same for an order that was refused: where its sender is not followed, its content
    /// still becomes known.
    pub(super) fn handle_refused_order(
        &mut self,
        now: Instant,
        from: Rank,
        frame: &Frame,
        reason: Reject,
    ) -> Result<(), Reject> {
        let Message::Anid { incarnation, level, .. } = frame.message else { return Err(reason) };
        if level == Level::Down {
            return Err(reason);
        }
        self.learn_report(now, from, frame, Standing::removed(incarnation, level))
            .map_err(|_| reason)
    }

    fn learn_report(
        &mut self,
        now: Instant,
        from: Rank,
        frame: &Frame,
        report: Standing,
    ) -> Result<(), Reject> {
        if frame.sender != from {
            return Err(Reject::Forged);
        }
        self.check_claimant(from, frame.term, true)?;
        let Message::Anid { node, incarnation, .. } = frame.message else {
            return Err(Reject::NotForMe);
        };
        if frame.seat != Seat::Component {
            return Err(Reject::WrongSeat);
        }
        if node != self.me() && !self.config.others().contains(node) {
            return Err(Reject::BadSubject);
        }
        if crate::dirnet::ISOLATION_IS_HEARSAY.is_planted() {
            return Err(Reject::NotManager);
        }
        if report.isolation().is_none() {
            self.end_isolation(now, node, report.released());
            return Ok(());
        }
        if incarnation.boot <= self.db.standing(node).released() {
            self.tell_released(Members::only(from), node);
            return Err(Reject::Late);
        }
        self.stand(now, node, report);
        if let State::Joining(joining) = &mut self.state
            && node == from
        {
            // The sender is no manager.
            joining.asking.insert(from);
        }
        if node == from { Err(Reject::Isolated) } else { Ok(()) }
    }

    /// Reports the isolation of `node`; returns whether it is isolated.
    pub(super) fn tell_isolated(&mut self, to: Members, node: Rank) -> bool {
        let Some(boot) = self.db.standing(node).isolation() else { return false };
        let incarnation = ComponentIncarnation { boot, generation: 0 };
        let anid = Message::Anid { node, incarnation, level: Level::Isolated };
        self.send(to, Seat::Component, anid);
        true
    }

    fn tell_released(&mut self, to: Members, node: Rank) {
        let incarnation =
            ComponentIncarnation { boot: self.db.standing(node).released(), generation: 0 };
        let anid = Message::Anid { node, incarnation, level: Level::Released };
        self.send(to, Seat::Component, anid);
    }

    /// Applies a report about this node's own standing; returns whether it ends this incarnation.
    pub(super) fn stand_oneself(&mut self, report: Standing) -> bool {
        let me = self.me();
        let is_isolated = self.is_isolated();
        self.db.advance(me, report.without_incarnation());
        let is_removed =
            report.incarnation.boot == self.incarnation.boot && report.is_past(self.incarnation);
        let is_over = is_removed || (self.is_isolated() && !is_isolated);
        if is_over {
            self.exclude();
        }
        is_over
    }

    /// Extends an isolation of an earlier incarnation, once reported to the manager, to the present
    /// one. Otherwise the release would make the present incarnation a member again although it is
    /// fenced.
    pub(super) fn confirm_isolation(&mut self, now: Instant, node: Rank) {
        let standing = self.db.standing(node);
        if !matches!(self.state, State::Manager) || standing.isolation().is_none() {
            return;
        }
        self.tell(News::Isolated(node));
        if !standing.is_past(standing.incarnation) {
            self.isolate_node(now, node, standing.incarnation);
        }
    }

    /// Whether this manager may carry out an operator's order about `node`.
    pub(super) fn check_order(&self, node: Rank) -> Result<(), Reject> {
        let is_known = self.db.standing(node).is_known();
        match self.state {
            State::Manager if self.config.others().contains(node) && is_known => Ok(()),
            State::Manager => Err(Reject::BadSubject),
            State::Joining(_) | State::Backup(_) | State::Excluded => Err(Reject::NotManager),
        }
    }
}
