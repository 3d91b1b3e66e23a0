//! Decisions of the manager for the network: verdicts, fences, resets, admissions, recovery.
//!
//! ```text
//!  verdict ─▶ ANID to all, each fences, FENCED back ─▶ reset ─▶ WITM, … ─▶ admitted
//! ```
//!
//! No node is reset before every live member has fenced it (X-1), and in a cluster of three or more
//! none without the testimony of a second observer (G-11). A node that does not come back is reset
//! again, and fenced again before that by all members present by then.

use super::watch::Reset;
use super::{Component, News, Role, Rule, State, Verdict, Watch, Why};
use crate::dirnet::strategy::{Fault, Recoveries, Recovery};
use crate::dirnet::{
    ComponentIncarnation, Level, Members, Message, Output, Reject, Seat, Standing,
};
use crate::ids::{Incarnation, Rank};
use crate::time::Instant;

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    /// Whether enough members show that they hear this manager, and are not suspected, for a
    /// decision (G-11, X-9).
    pub(super) fn may_decide(&self, now: Instant) -> bool {
        if self.config.min_alive() <= 1 {
            return self.is_heard(now);
        }
        let is_in_doubt = |node: &Rank| match self.watch(*node) {
            Watch::Off | Watch::Up { .. } => false,
            Watch::Suspect(_) | Watch::Joining { .. } | Watch::Fencing { .. } => true,
        };
        let echoing = self.echoing(now);
        let hears = |node: &Rank| {
            echoing.contains(*node) || crate::dirnet::UNHEARD_COUNT_AS_ALIVE.is_planted()
        };
        let alive = self.members().iter().filter(|node| hears(node) && !is_in_doubt(node));
        alive.count() + 1 >= usize::from(self.config.min_alive())
    }

    /// The component of `node` is down: orders a clone, as long as clones help.
    pub(super) fn recover_agent(
        &mut self,
        now: Instant,
        node: Rank,
        incarnation: ComponentIncarnation,
        why: Why,
    ) {
        match self.decide(now, node, Fault::Agent) {
            Recovery::Spawn => self.spawn(now, node, incarnation, why),
            Recovery::RestartTask { .. }
            | Recovery::Escalate
            | Recovery::Reset
            | Recovery::Isolate => self.doubt(now, node, incarnation, Rule::Intensity),
        }
    }

    pub(super) fn spawn(
        &mut self,
        now: Instant,
        node: Rank,
        incarnation: ComponentIncarnation,
        why: Why,
    ) {
        self.explain(now, node, incarnation, Verdict::AgentDown, why);
        let clone = incarnation.clone_of();
        let span = Message::Span { node, incarnation: clone };
        self.send(Members::only(node), Seat::ImAliveTask, span);
        // Those reach the task, which this node may not: its link may be cut.
        self.send(why.evidence.testimonies.met_task, Seat::Component, span);
        let due = now.after(self.timing().clone);
        let is_forgotten = crate::dirnet::CLONES_ARE_FORGOTTEN.is_planted();
        let watch = Watch::Joining { incarnation: clone, due };
        // Its own clone is its I'm-Alive Task's to await, and the end of this component.
        if node != self.me() {
            self.set_watch(node, if is_forgotten { Watch::Off } else { watch });
        }
    }

    /// Passes the manager's order for a clone on to the I'm-Alive Task of `node`.
    pub(super) fn pass_on_span(
        &mut self,
        from: Rank,
        node: Rank,
        incarnation: ComponentIncarnation,
    ) -> Result<(), Reject> {
        if !self.config.others().contains(node) {
            return Err(Reject::BadSubject);
        }
        if from != self.term.claimant || self.role() != Role::Backup {
            return Err(Reject::NotForMe);
        }
        let span = Message::Span { node, incarnation };
        if !crate::dirnet::SPANS_ARE_NOT_PASSED_ON.is_planted() {
            self.send(Members::only(node), Seat::ImAliveTask, span);
        }
        Ok(())
    }

    pub(super) fn decide(&mut self, now: Instant, node: Rank, fault: Fault) -> Recovery {
        let fellow = self.fellows.get_mut(usize::from(node.0));
        let (Some(fellow), Some(resets)) = (fellow, self.db.resets_mut(node)) else {
            return Recovery::Isolate;
        };
        let mut recoveries = Recoveries { spawns: &mut fellow.spawns, resets };
        match recoveries.decide(now, fault, self.config.limits()) {
            // An isolation outlasts the term. A manager that is not heard may have been succeeded,
            // and the node may be a member again; a reset does nothing to its later boot.
            Recovery::Isolate
                if !self.may_decide(now)
                    && !crate::dirnet::UNHEARD_MANAGERS_ISOLATE.is_planted() =>
            {
                Recovery::Reset
            }
            recovery => recovery,
        }
    }

    /// The node is down, by the testimony of a second observer if the cluster file has one: removes
    /// it, has it fenced everywhere, and resets it.
    pub(super) fn remove_node(
        &mut self,
        now: Instant,
        node: Rank,
        incarnation: ComponentIncarnation,
        why: Why,
    ) {
        match self.decide(now, node, Fault::Node { boot: incarnation.boot }) {
            Recovery::Isolate => {
                let why = Why { rule: Rule::Intensity, ..why };
                self.explain(now, node, incarnation, Verdict::Isolated, why);
                self.tell(News::Isolated(node));
                self.isolate_node(now, node, incarnation);
            }
            Recovery::Reset
            | Recovery::RestartTask { .. }
            | Recovery::Spawn
            | Recovery::Escalate => {
                self.explain(now, node, incarnation, Verdict::NodeDown, why);
                self.shut_out(now, node, incarnation, Level::Down, Reset::Follows);
            }
        }
    }

    /// Removes all incarnations of the node, without a reset.
    pub(super) fn isolate_node(
        &mut self,
        now: Instant,
        node: Rank,
        incarnation: ComponentIncarnation,
    ) {
        let incarnation = self.db.standing(node).to_isolate(incarnation);
        self.shut_out(now, node, incarnation, Level::Isolated, Reset::Withheld);
    }

    /// Announces the removal and waits for the fence of every member.
    fn shut_out(
        &mut self,
        now: Instant,
        node: Rank,
        incarnation: ComponentIncarnation,
        level: Level,
        reset: Reset,
    ) {
        self.db.advance(node, Standing::removed(incarnation, level));
        let members = self.members();
        let due = now.after(self.timing().window);
        self.set_watch(node, Watch::Fencing { incarnation, fenced: Members::NONE, due, reset });
        self.fence(node, incarnation.boot);
        if !crate::dirnet::VERDICTS_ARE_NOT_SPREAD.is_planted() {
            self.send(members, Seat::Component, Message::Anid { node, incarnation, level });
        }
        if crate::dirnet::RESET_BEFORE_FENCES.is_planted() {
            self.finish_fencing(now, node, incarnation, reset);
        }
    }

    /// A backup reports its fence to its manager, and to all other members if it does not know that
    /// the manager hears it: those pass it on likewise, and what was passed on goes to the manager
    /// alone.
    pub(super) fn report_fence(&mut self, now: Instant, node: Rank, boot: Incarnation) {
        let (by, incarnation) = (self.me(), self.incarnation);
        self.pass_on_fence(now, Message::Fenced { node, boot, by, incarnation });
    }

    fn pass_on_fence(&mut self, now: Instant, report: Message) {
        let is_heard = self.is_heard(now) && !self.misses_manager();
        let is_direct = is_heard || crate::dirnet::FENCES_ARE_NOT_PASSED_ON.is_planted();
        let to = if is_direct { Members::only(self.term.claimant) } else { self.members() };
        self.send(to, Seat::Component, report);
    }

    /// Handles the report of a fence, which another member may have passed on. What it passes on
    /// may be of an incarnation that is over: the present one has fenced nothing yet.
    pub(super) fn handle_fence_report(
        &mut self,
        now: Instant,
        from: Rank,
        report: Message,
    ) -> Result<(), Reject> {
        let Message::Fenced { node, boot, by, incarnation } = report else {
            return Err(Reject::NotForMe);
        };
        match self.state {
            State::Manager if by == from => self.note_fenced(now, by, node, boot),
            State::Manager
                if self.db.standing(by) == Standing::up(incarnation)
                    || crate::dirnet::PAST_MEMBERS_FENCE.is_planted() =>
            {
                self.note_fenced(now, by, node, boot);
            }
            State::Manager => return Err(Reject::OldLife),
            State::Backup(_) if by == from => self.pass_on_fence(now, report),
            State::Backup(_)
                if by != self.me() && !crate::dirnet::FENCES_ARE_PASSED_ON_ONCE.is_planted() =>
            {
                self.send(Members::only(self.term.claimant), Seat::Component, report);
            }
            State::Backup(_) | State::Joining(_) | State::Excluded => return Err(Reject::NotForMe),
        }
        Ok(())
    }

    /// Records that `by` has fenced the incarnations of `node` up to `boot`.
    pub(super) fn note_fenced(&mut self, now: Instant, by: Rank, node: Rank, boot: Incarnation) {
        let Watch::Fencing { incarnation, mut fenced, due, reset } = self.watch(node) else {
            return;
        };
        if boot < incarnation.boot && !crate::dirnet::FENCES_OF_ANY_BOOT_COUNT.is_planted() {
            return;
        }
        fenced.insert(by);
        self.set_watch(node, Watch::Fencing { incarnation, fenced, due, reset });
        if self.without_fence(fenced).is_empty() {
            self.finish_fencing(now, node, incarnation, reset);
        }
    }

    /// Returns the members that have not fenced yet, given that `fenced` have. Computed whenever it
    /// matters: a member removed meanwhile is not waited for; one that became known meanwhile is,
    /// whichever node introduced it.
    fn without_fence(&self, fenced: Members) -> Members {
        let mut all = self.members();
        all.insert(self.me());
        all.iter().filter(|member| !fenced.contains(*member)).collect()
    }

    /// Sends the verdict again to the members that have not fenced the node.
    pub(super) fn fence_again(
        &mut self,
        now: Instant,
        node: Rank,
        incarnation: ComponentIncarnation,
        fenced: Members,
        reset: Reset,
    ) {
        let (me, left) = (self.me(), self.without_fence(fenced));
        if left.is_empty() {
            return self.finish_fencing(now, node, incarnation, reset);
        }
        let due = now.after(self.timing().window);
        self.set_watch(node, Watch::Fencing { incarnation, fenced, due, reset });
        if left.contains(me) {
            self.fence(node, incarnation.boot);
        }
        let level = self.db.standing(node).level;
        self.send(left.without(me), Seat::Component, Message::Anid { node, incarnation, level });
    }

    fn finish_fencing(
        &mut self,
        now: Instant,
        node: Rank,
        incarnation: ComponentIncarnation,
        reset: Reset,
    ) {
        match reset {
            Reset::Withheld => self.set_watch(node, Watch::Off),
            Reset::Follows => self.reset(now, node, incarnation.boot),
        }
    }

    fn reset(&mut self, now: Instant, node: Rank, boot: Incarnation) {
        if !crate::dirnet::NOTHING_IS_RESET.is_planted() {
            self.outputs.push(Output::Reset { node, boot });
        }
        let incarnation = ComponentIncarnation { boot: boot.next(), generation: 0 };
        self.set_watch(node, Watch::Joining { incarnation, due: now.after(self.timing().reboot) });
    }

    /// A later incarnation was expected and has not come in time (G-18).
    pub(super) fn joining_over(
        &mut self,
        now: Instant,
        node: Rank,
        incarnation: ComponentIncarnation,
    ) {
        let standing = self.db.standing(node);
        if !standing.is_known() && incarnation.boot == Incarnation(0) {
            self.set_watch(node, Watch::Off);
            return self.tell(News::Absent(node));
        }
        if standing.is_up()
            || standing.incarnation.boot < incarnation.boot && self.has_asked(node, incarnation)
        {
            return self.doubt(now, node, incarnation, Rule::NeverJoined);
        }
        match self.decide(now, node, Fault::Node { boot: standing.incarnation.boot }) {
            Recovery::Reset if crate::dirnet::REPEATED_RESETS_ARE_RASH.is_planted() => {
                self.reset(now, node, standing.incarnation.boot);
            }
            // Members that were introduced since the last reset have not fenced the node.
            Recovery::Reset => {
                self.fence_again(now, node, standing.incarnation, Members::NONE, Reset::Follows);
            }
            Recovery::RestartTask { .. }
            | Recovery::Spawn
            | Recovery::Escalate
            | Recovery::Isolate => {
                self.explain(now, node, incarnation, Verdict::Isolated, Rule::Intensity.into());
                self.tell(News::Isolated(node));
                self.isolate_node(now, node, standing.incarnation);
            }
        }
    }

    /// An incarnation of `node` is expected, and the node is lost: suspects it like any member.
    pub(super) fn doubt_expected(&mut self, now: Instant, node: Rank) {
        let Watch::Joining { incarnation, .. } = self.watch(node) else { return };
        let standing = self.db.standing(node);
        let suspect = match standing.is_up() {
            _ if crate::dirnet::LOST_JOINERS_ARE_AWAITED.is_planted() => None,
            _ if self.has_asked(node, incarnation) => Some(incarnation),
            true => Some(standing.incarnation),
            // It was reset and has not been heard from since: what was lost is unknown.
            false => None,
        };
        if let Some(incarnation) = suspect {
            self.tell(News::Suspected(node));
            self.doubt(now, node, incarnation, Rule::Silence);
        }
    }

    /// Whether that incarnation has asked to join, rather than being merely hoped for.
    fn has_asked(&self, node: Rank, incarnation: ComponentIncarnation) -> bool {
        self.fellow(node).is_some_and(|fellow| fellow.asked == Some(incarnation))
    }

    /// A later incarnation of `node` asks to join.
    pub(super) fn await_joiner(
        &mut self,
        now: Instant,
        node: Rank,
        incarnation: ComponentIncarnation,
    ) {
        if incarnation <= self.db.standing(node).incarnation && self.db.standing(node).is_up() {
            return;
        }
        if let Some(fellow) = self.fellow_mut(node) {
            fellow.asked = Some(incarnation);
        }
        let due = now.after(self.timing().clone);
        self.set_watch(node, Watch::Joining { incarnation, due });
    }

    pub(super) fn handle_niua(
        &mut self,
        now: Instant,
        from: Rank,
        node: Rank,
        incarnation: ComponentIncarnation,
    ) -> Result<(), Reject> {
        if node == self.me() || !self.config.others().contains(node) {
            return Err(Reject::BadSubject);
        }
        if let State::Manager = self.state {
            return self.handle_introduction(now, node, incarnation);
        }
        if from != self.term.claimant {
            return Err(Reject::NotManager);
        }
        if !crate::dirnet::RETURN_IS_NOT_HEARD.is_planted() {
            self.stand(now, node, Standing::up(incarnation));
        }
        Ok(())
    }

    pub(super) fn handle_anid(
        &mut self,
        now: Instant,
        from: Rank,
        node: Rank,
        incarnation: ComponentIncarnation,
        level: Level,
    ) -> Result<(), Reject> {
        // A backup that the manager does not reach learns of a removal from another member, and a
        // removed node that runs on from any. None of them believes a node that it holds removed
        // itself or that is in an earlier term, so of two halves only one ends.
        let is_order = from == self.term.claimant;
        let is_copy = level == Level::Down && self.role() == Role::Backup;
        if !is_order && !is_copy {
            return Err(Reject::NotManager);
        }
        let is_member = node == self.me() || self.config.others().contains(node);
        if !is_member || (node == self.me() && incarnation.boot != self.incarnation.boot) {
            return Err(Reject::BadSubject);
        }
        if crate::dirnet::REMOVAL_IS_NOT_HEARD.is_planted() {
            return Ok(());
        }
        let standing = Standing::removed(incarnation, level);
        let moved = self.stand(now, node, standing);
        let is_repeated = !moved && !self.db.standing(node).is_before(standing);
        let still_stands = self.db.standing(node).incarnation.boot == incarnation.boot;
        let is_meant = is_repeated && still_stands && node != self.me();
        if is_meant && is_order {
            // The manager has not received the report of the fence, or the node has not come back.
            self.note_reset(now, node, standing);
            self.fence(node, incarnation.boot);
        } else if is_meant && self.has_fenced(node) {
            // This node does not hear its manager, and its report may have been lost on its way.
            self.fence(node, incarnation.boot);
        }
        Ok(())
    }

    /// Moves a standing forward, by the manager's order or a copy of it; returns whether it moved.
    pub(super) fn stand(&mut self, now: Instant, node: Rank, standing: Standing) -> bool {
        if standing.level == Level::Up {
            let moved = self.db.standing(node).is_before(standing);
            self.introduce(now, node, standing.incarnation);
            // The standing also carries which isolations are over.
            self.db.advance(node, standing);
            if moved && self.db.standing(node).is_up() {
                self.watch_anew(now, node);
            }
            return moved;
        }
        if node == self.me() {
            return self.stand_oneself(standing);
        }
        let before = self.db.standing(node);
        if !self.db.advance(node, standing) {
            return false;
        }
        let stands = self.db.standing(node);
        self.note_reset(now, node, standing);
        if (stands.incarnation, stands.level) == (before.incarnation, before.level) {
            // Only the end of an isolation was new.
            return true;
        }
        // A manager finishes what an earlier one has left undone, whenever it learns of it (G-18).
        let finishes = stands.level == Level::Down
            && self.role() == Role::Manager
            && !crate::dirnet::LEARNED_REMOVALS_ARE_DONE.is_planted();
        let watch = if finishes { self.inherited(now, node) } else { Watch::Off };
        self.set_watch(node, watch);
        match stands.level {
            // The end of an isolation may leave a member.
            Level::Up => self.watch_anew(now, node),
            // An isolation ends every incarnation of the node that is known here.
            Level::Down | Level::Isolated => {
                self.fence(node, stands.incarnation.boot);
            }
            // What this member has not learned of, its release names.
            Level::Released
                if before.is_up() && !crate::dirnet::RELEASES_FENCE_NOTHING.is_planted() =>
            {
                self.fence(node, stands.incarnation.boot);
            }
            Level::Released => {}
        }
        self.confirm_isolation(now, node);
        if node == self.term.claimant && self.role() == Role::Backup {
            self.lose_removed_manager(now);
        }
        true
    }

    /// Counts a reset that the manager orders, so that a successor of the manager continues the
    /// count.
    fn note_reset(&mut self, now: Instant, node: Rank, standing: Standing) {
        let (reboot, limit) = (self.timing().reboot, self.config.limits().resets);
        if standing.level == Level::Down
            && let Some(resets) = self.db.resets_mut(node)
            && !crate::dirnet::HEIRS_COUNT_AGAIN.is_planted()
        {
            resets.note(now, standing.incarnation.boot, limit, reboot);
        }
    }
}
