//! One state of the explorer: components, messages in flight between them, events still allowed.

mod scripts;
mod views;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_core::dirnet::{
    Beat, Component, ComponentIncarnation, Config, Frame, ImAliveTask, Kept, Level, Limits,
    Members, Message, Output, Part, Post, Profile, Progress, RestartLimit, Role, Seat, Spawned,
    Term, Timing, ViewTag,
};
use weft_core::ids::{Incarnation, Rank};
use weft_core::time::{Duration, Instant};

pub(super) use self::scripts::ScriptBudget;
use self::scripts::ScriptKnowledge;
use super::{Budget, Lane, NetMove, Violation, WalkState};
use crate::dirnet::strike::MS;
use crate::shared::CopyOnWrite;

/// How long a cluster has to settle.
const SETTLING_MS: u64 = 200;
/// The maximum number of consecutive deadlines at which only a heartbeat is due.
const IDLE_MAX: u32 = 64;

type Small = Component<4, 1>;

const FIRST: ComponentIncarnation = ComponentIncarnation { boot: Incarnation(1), generation: 0 };
const SECOND: ComponentIncarnation = ComponentIncarnation { boot: Incarnation(2), generation: 0 };

#[derive(Clone, Hash)]
pub(super) struct NetWorld {
    nodes: Vec<Option<CopyOnWrite<Small>>>,
    /// The boot and the I'm-Alive Task of each node, where a component may end and its node go on.
    tasks: BTreeMap<Rank, (Incarnation, CopyOnWrite<ImAliveTask>)>,
    /// Messages in flight and the endpoints that they go to, by lane and in order; no queue is
    /// empty.
    lanes: BTreeMap<Lane, CopyOnWrite<VecDeque<(Seat, Frame)>>>,
    reigns: BTreeMap<Term, Rank>,
    /// The last heartbeat of each lane that may still arrive.
    beats: BTreeMap<Lane, Beat>,
    /// Fences that a component has ordered and its node has not carried out: where, which node, up
    /// to which boot.
    fences: BTreeSet<(Rank, Rank, Incarnation)>,
    /// Fences carried out: where, and of which node.
    fenced: BTreeMap<(Rank, Rank), Incarnation>,
    /// Resets that are ordered: of which node, in which boot.
    resets: BTreeSet<(Rank, Incarnation)>,
    /// The term that each node has saved.
    kept: Vec<Option<Term>>,
    /// The first reset that came before a fence: of which node, and which member had not fenced it.
    early: Option<(Rank, Rank)>,
    /// The tasks of each node.
    tasks_each: u8,
    /// The recovery script, where one is in force.
    scripts: Option<CopyOnWrite<ScriptKnowledge>>,
    left: Budget,
}

impl NetWorld {
    /// A cluster that has started and settled, with `left` of further events allowed.
    pub(super) fn settled(count: u16, left: Budget) -> Self {
        Self::settled_with(count, 0, left)
    }

    /// The same with so many tasks on each node.
    fn settled_with(count: u16, tasks_each: u8, left: Budget) -> Self {
        let mut world = Self::begun(count, tasks_each, FIRST, left);
        (0..SETTLING_MS).for_each(|ms| world.tick(Instant(ms * MS)));
        for component in world.nodes.iter_mut().flatten().map(CopyOnWrite::change) {
            component.rebase(Duration(SETTLING_MS * MS));
        }
        world.beats.clear();
        world.note_reigns();
        world
    }

    /// A settled cluster whose manager has died: all others suspect it, and those that were asked
    /// have testified that they do not meet it.
    pub(super) fn bereft(count: u16, left: Budget) -> Self {
        let mut world = Self::settled(count, left);
        world.end(Rank(0));
        for nodes in [1..count, 2..count] {
            nodes.for_each(|node| assert!(world.expire(Rank(node)), "{node} has a deadline"));
            world.deliver_all(Instant(0));
        }
        world.beats.clear();
        world
    }

    /// Two managers in their second incarnations, each of which holds the other's first one removed
    /// and announces itself as manager.
    pub(super) fn rivals(left: Budget) -> Self {
        let mut world = Self::begun(2, 0, SECOND, left);
        for (node, other) in [(Rank(0), Rank(1)), (Rank(1), Rank(0))] {
            let component = world.node(node).expect("no node has crashed yet");
            let beat = Beat {
                term: component.term(),
                incarnation: FIRST,
                sequence: 1,
                digest: 0,
                echo: 0,
                is_heard: true,
            };
            component.handle_heartbeat(Instant(0), other, &beat).expect("it is a member's");
            world.collect(node);
            while !world.has_removed(node, other) {
                assert!(world.expire(node), "silence comes to a verdict");
            }
        }
        world.note_reigns();
        world.lanes.clear();
        world.beats.clear();
        // Each has fenced the other's first incarnation, which has ended.
        world.fences.clear();
        world.resets.clear();
        world.early = None;
        for (node, other) in [(Rank(0), Rank(1)), (Rank(1), Rank(0))] {
            let term = world.node(node).expect("no node has crashed yet").term();
            let (seat, message, sequence) = (Seat::Component, Message::Nmi, 1);
            let view = ViewTag::default();
            let claim =
                Frame { sender: node, seat, term, incarnation: SECOND, sequence, view, message };
            world.lanes.insert((node, other), CopyOnWrite::new([(seat, claim)].into()));
        }
        world
    }

    fn has_removed(&self, node: Rank, other: Rank) -> bool {
        let component = self.nodes[usize::from(node.0)].as_ref();
        component.is_some_and(|it| it.database().standing(other).level == Level::Down)
    }

    /// Nodes that have just started in that incarnation.
    fn begun(count: u16, tasks_each: u8, incarnation: ComponentIncarnation, left: Budget) -> Self {
        let mut world = Self {
            nodes: vec![None; usize::from(count)],
            tasks: BTreeMap::new(),
            lanes: BTreeMap::new(),
            reigns: BTreeMap::new(),
            beats: BTreeMap::new(),
            fences: BTreeSet::new(),
            fenced: BTreeMap::new(),
            resets: BTreeSet::new(),
            kept: vec![None; usize::from(count)],
            early: None,
            tasks_each,
            scripts: None,
            left,
        };
        for node in world.ranks() {
            let component = world.component(node, incarnation);
            world.nodes[usize::from(node.0)] = Some(CopyOnWrite::new(component));
            if left.ends > 0 {
                world.begin_task(node, incarnation.boot);
            }
        }
        world.ranks().for_each(|node| drop(world.collect(node)));
        world
    }

    /// The I'm-Alive Task of that boot of `node` begins.
    fn begin_task(&mut self, me: Rank, boot: Incarnation) {
        let config = self.config(me);
        let post = Post { me, boot, others: config.others(), profile: *config.profile() };
        self.tasks.insert(me, (boot, CopyOnWrite::new(ImAliveTask::new(post))));
    }

    fn config(&self, node: Rank) -> Config<4> {
        let part = |n| if n == Rank(0) { Part::Manager } else { Part::Backup };
        let parts: Vec<_> = self.ranks().map(part).collect();
        let profile = Profile::new(Timing::LAN).expect("the profile keeps its rules");
        let limit = |s: u64| RestartLimit { max: 3, within: Duration(s * 1_000 * MS) };
        let limits = Limits { restarts: limit(10), resets: limit(100) };
        Config::new(node, &parts, profile, 1, limits).expect("one manager")
    }

    /// The component of that incarnation of `node`, newly started.
    fn component(&self, node: Rank, incarnation: ComponentIncarnation) -> Small {
        let config = self.config(node);
        let saved = self.scripts.as_ref().map_or(&[][..], |it| it.database_of(node));
        let term = self.kept[usize::from(node.0)];
        let kept = Kept { term, snapshots: [saved, &[]], ..Kept::default() };
        Small::new(Instant(0), config, incarnation, self.tasks_each, kept)
    }

    fn note_reigns(&mut self) {
        for component in self.nodes.iter().flatten().filter(|it| it.role() == Role::Manager) {
            self.reigns.insert(component.term(), component.me());
        }
    }

    /// The number of managers.
    #[cfg(test)]
    pub(super) fn managers(&self) -> usize {
        self.nodes.iter().flatten().filter(|it| it.role() == Role::Manager).count()
    }

    fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.nodes.len() as u16).map(Rank)
    }

    fn node(&mut self, node: Rank) -> Option<&mut Small> {
        self.nodes[usize::from(node.0)].as_mut().map(CopyOnWrite::change)
    }

    /// One fault-free step: what is due happens, and what is sent arrives.
    fn tick(&mut self, now: Instant) {
        for node in self.ranks() {
            let Some(component) = self.node(node) else { continue };
            if component.poll_timeout().is_some_and(|due| due <= now) {
                component.handle_timeout(now);
            }
            for (to, beat) in self.collect(node) {
                let component = self.node(to).expect("no node has crashed yet");
                component.handle_heartbeat(now, node, &beat).expect("it is a member's");
                self.collect(to);
            }
        }
        self.deliver_all(now);
    }

    fn deliver_all(&mut self, now: Instant) {
        while let Some(lane) = self.lanes.keys().next().copied() {
            self.deliver(lane, now);
        }
    }

    /// Carries out the outputs of `node`, and what its script makes of them; returns its
    /// heartbeats, which the caller delivers.
    fn collect(&mut self, node: Rank) -> Vec<(Rank, Beat)> {
        let mut beats = self.carry_out(node);
        while self.step_script(node) {
            beats.extend(self.carry_out(node));
        }
        beats
    }

    fn carry_out(&mut self, node: Rank) -> Vec<(Rank, Beat)> {
        let mut beats = Vec::new();
        let at = node;
        while let Some(output) = self.node(node).and_then(Small::poll_output) {
            match output {
                Output::Send { to, seat, frame } => self.send(node, to, (seat, frame)),
                Output::Beat { to, beat } => {
                    if self.left.beats > 0 && self.nodes[usize::from(to.0)].is_some() {
                        self.beats.insert((at, to), beat);
                    }
                    beats.push((to, beat));
                }
                Output::Fence { node, boot } => drop(self.fences.insert((at, node, boot))),
                Output::Reset { node, boot } => self.order_reset(at, node, boot),
                Output::Keep(term) => self.kept[usize::from(at.0)] = Some(term),
                Output::Task { action, order: Some((term, order)), .. } => {
                    self.scripts.iter_mut().for_each(|it| it.change().judge(term, action, order));
                }
                Output::Spawn { .. }
                | Output::Task { .. }
                | Output::Vote { .. }
                | Output::Verdict(_)
                | Output::Tell(_) => {}
            }
        }
        beats
    }

    /// Puts a message on the lanes to those of `to` that have the endpoint.
    fn send(&mut self, from: Rank, to: Members, (seat, frame): (Seat, Frame)) {
        for to in to.iter() {
            let is_there = match seat {
                Seat::Component => self.nodes[usize::from(to.0)].is_some(),
                Seat::ImAliveTask => self.tasks.contains_key(&to),
            };
            if is_there {
                self.lanes.entry((from, to)).or_default().change().push_back((seat, frame));
            }
        }
    }

    /// An input to the I'm-Alive Task of `node`, if there is one, and what follows from it.
    fn task(&mut self, node: Rank, act: &dyn Fn(&mut ImAliveTask)) {
        let Some((boot, task)) = self.tasks.get_mut(&node) else { return };
        let (boot, task) = (*boot, task.change());
        act(task);
        let outputs: Vec<_> = std::iter::from_fn(|| task.poll_output()).collect();
        for output in outputs {
            match output {
                Output::Send { to, seat, frame } => self.send(node, to, (seat, frame)),
                Output::Spawn { generation } => {
                    let clone = ComponentIncarnation { boot, generation };
                    self.end_component(node);
                    let component = self.component(node, clone);
                    self.nodes[usize::from(node.0)] = Some(CopyOnWrite::new(component));
                    self.task(node, &|it| it.handle_spawned(Instant(0), Spawned::Runs));
                    self.collect(node);
                }
                _ => {}
            }
        }
    }

    /// `by` orders a reset of `node`. Every running node that `by` holds to be a member must have
    /// fenced it.
    fn order_reset(&mut self, by: Rank, node: Rank, boot: Incarnation) {
        let component = self.nodes[usize::from(by.0)].as_ref().expect("it has ordered a reset");
        let is_member = |it: &Rank| *it == by || component.database().standing(*it).is_up();
        let is_running = |it: &Rank| self.nodes[usize::from(it.0)].is_some();
        let is_early = |it: &Rank| self.fenced.get(&(*it, node)).is_none_or(|it| *it < boot);
        let mut ranks = self.ranks().filter(|it| *it != node);
        let early = ranks.find(|it| is_member(it) && is_running(it) && is_early(it));
        self.early = self.early.or(early.map(|it| (node, it)));
        if self.left.starts > 0 {
            self.resets.insert((node, boot));
        }
    }

    /// The node carries out a fence that its component has ordered, and confirms it.
    fn fence(&mut self, (at, node, boot): (Rank, Rank, Incarnation)) {
        self.fences.remove(&(at, node, boot));
        let fenced = self.fenced.entry((at, node)).or_insert(boot);
        *fenced = (*fenced).max(boot);
        if let Some(component) = self.node(at) {
            component.handle_fenced(Instant(0), node, boot);
        }
        self.collect(at);
    }

    /// The reset of `node` is carried out: its next incarnation starts, unless it has already.
    fn reset(&mut self, node: Rank, boot: Incarnation) {
        self.resets.remove(&(node, boot));
        let runs = self.nodes[usize::from(node.0)].as_ref().map(|it| it.incarnation().boot);
        if runs.is_some_and(|it| it > boot) {
            return;
        }
        self.end(node);
        let incarnation = ComponentIncarnation { boot: Incarnation(boot.0 + 1), generation: 0 };
        let component = self.component(node, incarnation);
        self.nodes[usize::from(node.0)] = Some(CopyOnWrite::new(component));
        if self.left.ends > 0 {
            self.begin_task(node, incarnation.boot);
        }
        self.collect(node);
        self.left.starts -= 1;
    }

    /// The last heartbeat of a lane arrives.
    fn beat(&mut self, (from, to): Lane) {
        let beat = self.beats.remove(&(from, to));
        if let (Some(beat), Some(component)) = (beat, self.node(to)) {
            // The component counts refusals; the exploration continues either way.
            let _ = component.handle_heartbeat(Instant(0), from, &beat);
        }
        self.collect(to);
        self.left.beats -= 1;
        if self.left.beats == 0 {
            self.beats.clear();
        }
    }

    /// Takes the first message off a lane.
    fn take(&mut self, lane: Lane) -> Option<(Seat, Frame)> {
        let waiting = self.lanes.get_mut(&lane)?.change();
        let frame = waiting.pop_front();
        if waiting.is_empty() {
            self.lanes.remove(&lane);
        }
        frame
    }

    fn deliver(&mut self, lane: Lane, now: Instant) {
        let (from, to) = lane;
        let Some((seat, frame)) = self.take(lane) else { return };
        // The machines count refusals; the exploration continues either way.
        match seat {
            Seat::Component => {
                if let Some(component) = self.node(to) {
                    let _ = component.handle_message(now, from, &frame);
                }
                self.collect(to);
            }
            Seat::ImAliveTask => self.task(to, &|it| {
                let _ = it.handle_message(now, from, &frame, Progress::default());
            }),
        }
    }

    fn crash(&mut self, node: Rank) {
        self.end(node);
        self.left.crashes -= 1;
    }

    /// The node is gone, with the messages in flight to it and its fences.
    fn end(&mut self, node: Rank) {
        self.tasks.remove(&node);
        self.end_component(node);
        self.lanes.retain(|(_, to), _| *to != node);
        self.fenced.retain(|(at, _), _| *at != node);
    }

    /// The component of `node` is gone. Fences that were carried out last as long as the boot:
    /// its supervisor knows of them.
    fn end_component(&mut self, node: Rank) {
        let ended = self.nodes[usize::from(node.0)].take();
        if let (Some(scripts), Some(ended)) = (&mut self.scripts, ended) {
            scripts.change().end(node, &ended);
        }
        for ((_, to), waiting) in &mut self.lanes {
            if *to == node {
                waiting.change().retain(|(seat, _)| *seat == Seat::ImAliveTask);
            }
        }
        self.lanes.retain(|_, waiting| !waiting.is_empty());
        self.beats.retain(|(_, to), _| *to != node);
        self.fences.retain(|(at, ..)| *at != node);
    }

    /// The component of `node` ends, and its task raises the alarm.
    fn hang(&mut self, node: Rank) {
        self.left.ends -= 1;
        self.end_component(node);
        self.task(node, &|it| it.handle_ended(Instant(0)));
    }

    /// The task of `node` repeats its alarm. Those of components that run find progress: they are
    /// left out.
    fn alarm(&mut self, node: Rank) {
        self.left.deadlines -= 1;
        self.task(node, &|it| {
            let due = it.poll_timeout().unwrap_or_default();
            it.handle_timeout(due, Progress::default());
            it.rebase(Duration(due.0));
        });
    }

    /// Runs `node` to its next deadline at which it does more than count and beat; returns whether
    /// there is one.
    fn expire(&mut self, node: Rank) -> bool {
        let (before, under_way) = (self.judgement(node), self.under_way());
        for _ in 0..IDLE_MAX {
            let Some(component) = self.node(node) else { return false };
            let Some(due) = component.poll_timeout() else { return false };
            component.handle_timeout(due);
            component.rebase(Duration(due.0));
            self.collect(node);
            if self.under_way() != under_way || self.judgement(node) != before {
                return true;
            }
        }
        false
    }

    /// The role and term of `node`, and the nodes that it suspects.
    fn judgement(&self, node: Rank) -> Option<(Role, Term, Vec<Rank>)> {
        let component = self.nodes[usize::from(node.0)].as_ref()?;
        let suspects = self.ranks().filter(|other| component.suspects(*other)).collect();
        Some((component.role(), component.term(), suspects))
    }

    fn under_way(&self) -> usize {
        self.lanes.values().map(|waiting| waiting.len()).sum()
    }

    /// The deadlines that may come next, and the states that they lead to.
    pub(super) fn expiries(&self) -> impl Iterator<Item = (NetMove, Self)> {
        let nodes = self.ranks().filter(|_| self.left.deadlines > 0);
        nodes.filter_map(|node| {
            let mut expired = self.clone();
            expired.left.deadlines -= 1;
            expired.expire(node).then_some((NetMove::Expire(node), expired))
        })
    }

    /// The handovers that a manager may be ordered next, and the states that they lead to.
    fn handovers(&self) -> impl Iterator<Item = (NetMove, Self)> {
        let manages = |node: &Rank| {
            let it = self.nodes[usize::from(node.0)].as_ref();
            self.left.handovers > 0 && it.is_some_and(|it| it.role() == Role::Manager)
        };
        let managers = self.ranks().filter(manages);
        let pairs = managers.flat_map(|node| self.ranks().map(move |to| (node, to)));
        pairs.filter_map(|(node, to)| {
            let mut ordered = self.clone();
            ordered.node(node)?.hand_over(Instant(0), to).ok()?;
            ordered.collect(node);
            ordered.left.handovers -= 1;
            Some((NetMove::HandOver(node, to), ordered))
        })
    }

    /// The number of terms that had a manager so far.
    #[cfg(test)]
    pub(super) fn reigns(&self) -> usize {
        self.reigns.len()
    }
}

impl WalkState for NetWorld {
    type Move = NetMove;

    fn successors(&self) -> Vec<(NetMove, Self)> {
        let mut next = Vec::new();
        for (lane, waiting) in &self.lanes {
            let (lane, first) = (*lane, waiting[0]);
            let what = first.1.message.name();
            let mut delivered = self.clone();
            delivered.deliver(lane, Instant(0));
            next.push((NetMove::Deliver(lane, what), delivered));
            if self.left.losses > 0 {
                let mut lost = self.clone();
                lost.take(lane);
                lost.left.losses -= 1;
                next.push((NetMove::Lose(lane, what), lost));
            }
            if self.left.repeats > 0 {
                let mut repeated = self.clone();
                repeated.lanes.entry(lane).or_default().change().push_front(first);
                repeated.left.repeats -= 1;
                next.push((NetMove::Repeat(lane, what), repeated));
            }
        }
        for node in self.ranks() {
            if self.left.crashes > 0 && self.nodes[usize::from(node.0)].is_some() {
                let mut crashed = self.clone();
                crashed.crash(node);
                next.push((NetMove::Crash(node), crashed));
            }
        }
        let done = |act: &dyn Fn(&mut Self)| {
            let mut world = self.clone();
            act(&mut world);
            world
        };
        let fences = self.fences.iter().map(|fence| {
            let (at, node, _) = *fence;
            (NetMove::Fence(at, node), done(&|world| world.fence(*fence)))
        });
        let resets =
            self.resets.iter().filter(|_| self.left.starts > 0).map(|(node, boot)| {
                (NetMove::Reset(*node), done(&|world| world.reset(*node, *boot)))
            });
        let beats =
            self.beats.keys().map(|lane| (NetMove::Beat(*lane), done(&|it| it.beat(*lane))));
        let runs = |node: &Rank| self.nodes[usize::from(node.0)].is_some();
        let ends = self.tasks.keys().filter(|node| self.left.ends > 0 && runs(node));
        let ends = ends.map(|node| (NetMove::End(*node), done(&|it| it.hang(*node))));
        let alarms = self.tasks.keys().filter(|node| self.left.deadlines > 0 && !runs(node));
        let alarms = alarms.map(|node| (NetMove::Alarm(*node), done(&|it| it.alarm(*node))));
        next.extend(fences.chain(resets).chain(beats).chain(ends).chain(alarms));
        next.extend(self.expiries());
        next.extend(self.handovers());
        next.extend(self.script_moves());
        next
    }

    fn check(&self, next: &mut Self) -> Result<(), Violation> {
        if let Some(broken) = next.scripts.as_ref().and_then(|it| it.broken()) {
            return Err(broken);
        }
        if let Some((node, member)) = next.early {
            let what = format!("node {node} is reset, and node {member} has not fenced it");
            return Err(Violation::new("fence-before-reset", what));
        }
        next.check_answers()?;
        for (before, after) in self.nodes.iter().zip(&next.nodes) {
            if let (Some(before), Some(after)) = (before, after) {
                next.check_view(before, after)?;
            }
        }
        for (before, after) in self.nodes.iter().zip(&next.nodes) {
            let (Some(before), Some(after)) = (before, after) else { continue };
            let (me, was, term) = (after.me(), before.term(), after.term());
            if term < was {
                let what = format!("node {me} went from term {was} to {term}");
                return Err(Violation::new("terms", what));
            }
            if after.role() != Role::Manager {
                continue;
            }
            let owner = *next.reigns.entry(term).or_insert(me);
            if owner != me || term.claimant != me {
                let what = format!("term {term} of node {owner} is reigned by {me}");
                return Err(Violation::new("one-manager", what));
            }
            let is_claim = before.role() != Role::Manager || was != term;
            if is_claim && term <= was {
                let what = format!("node {me} claims {term} and knew {was}");
                return Err(Violation::new("terms", what));
            }
        }
        Ok(())
    }
}
