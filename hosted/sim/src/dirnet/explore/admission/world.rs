//! One state of the explorer of admissions: nodes, messages in flight, events still allowed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_core::dirnet::{Order, Standing, Supervision, Term};
use weft_core::ids::{Incarnation, Peer, Rank};
use weft_core::time::Instant;

use super::node::{AdmissionNode, NODES};
use super::{AdmissionBudget, AdmissionMove, Lane};
use crate::dirnet::admission::{Between, Down, OrderRoute, Up, is_stale};
use crate::shared::CopyOnWrite;

/// Incarnations of one node after which it counts as one that never comes to rest.
const INCARNATIONS_MAX: u32 = 12;

/// A message between two supervisors, with its session and the boot of the node that has sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Letter {
    session: u64,
    boot: Incarnation,
    message: Between,
}

#[derive(Clone, Hash)]
pub(super) struct AdmissionWorld {
    pub(super) nodes: Vec<CopyOnWrite<AdmissionNode>>,
    /// No queue is empty.
    lanes: BTreeMap<Lane, CopyOnWrite<VecDeque<Letter>>>,
    /// The last session of each pair, by the lower and the higher rank.
    sessions: BTreeMap<Lane, u64>,
    /// The boots that have ended since a peer had fenced them: which node in which boot, and by
    /// which peer in which boot.
    gave_way: BTreeSet<[(u16, Incarnation); 2]>,
    /// The last isolation and the last release of each node that were decided, by their numbers,
    /// and whether a database was lost.
    pub(super) decided: [(Incarnation, Incarnation); NODES],
    pub(super) has_forgotten: bool,
    /// The first broken promise: its checker, and what happened.
    pub(super) broken: Option<(&'static str, String)>,
    pub(super) left: AdmissionBudget,
}

impl AdmissionWorld {
    /// A cluster in which all nodes have admitted each other in their first boots and follow the
    /// last one, with `left` of further events allowed.
    pub(super) fn settled(count: u16, left: AdmissionBudget) -> Self {
        let term = Term { epoch: 1, claimant: Rank(count - 1) };
        let nodes = (0..count).map(|me| CopyOnWrite::new(AdmissionNode::new(me, term))).collect();
        let mut world = Self {
            nodes,
            lanes: BTreeMap::new(),
            sessions: BTreeMap::new(),
            gave_way: BTreeSet::new(),
            decided: [(Incarnation(0), Incarnation(0)); NODES],
            has_forgotten: false,
            broken: None,
            left: AdmissionBudget::default(),
        };
        while let Some(next) = world.free_moves().into_iter().next() {
            world.act(next);
            assert_eq!(world.broken, None, "no fault was given");
        }
        world.left = left;
        world
    }

    pub(super) fn ranks(&self) -> impl Iterator<Item = u16> + use<> {
        0..self.nodes.len() as u16
    }

    fn pairs(&self) -> impl Iterator<Item = Lane> + use<> {
        let count = self.nodes.len() as u16;
        (0..count).flat_map(move |one| (0..count).map(move |other| (one, other)))
    }

    pub(super) fn at(&self, node: u16) -> &AdmissionNode {
        &self.nodes[usize::from(node)]
    }

    fn node(&mut self, node: u16) -> &mut AdmissionNode {
        self.nodes[usize::from(node)].change()
    }

    fn broken(&mut self, checker: &'static str, what: String) {
        self.broken.get_or_insert((checker, what));
    }

    fn session(&self, at: u16, peer: u16) -> Option<u64> {
        self.at(at).supervisor.as_ref()?.sessions.get(&peer).copied()
    }

    /// Whether the supervisors of two nodes run and have no session that is one for both.
    fn can_meet(&self, one: u16, other: u16) -> bool {
        let runs = |it: u16| self.at(it).supervisor.is_some();
        let both = [self.session(one, other), self.session(other, one)];
        one < other && runs(one) && runs(other) && (both[0].is_none() || both[0] != both[1])
    }

    /// Whether what the component of `from` writes reaches that of `to`.
    fn reaches(&self, from: u16, to: u16) -> bool {
        let own = self.at(from).component.as_ref().map(|it| it.own);
        own.is_some() && self.at(to).connected(from) == own
    }

    /// The moves that need no fault: what is in flight arrives, processes that are missing start,
    /// supervisors meet, components spread what was decided, time passes.
    pub(super) fn free_moves(&self) -> Vec<AdmissionMove> {
        let mut moves: Vec<_> = self.deliveries().collect();
        for at in self.ranks() {
            let node = self.at(at);
            let Some(supervisor) = &node.supervisor else {
                moves.push(AdmissionMove::Start(at));
                continue;
            };
            let to_enter = node.component.as_ref().is_some_and(|it| it.is_ready && !it.is_ordered);
            moves.extend(node.up.front().map(|message| AdmissionMove::Up(at, *message)));
            moves.extend(node.down.front().map(|message| AdmissionMove::Down(at, *message)));
            let all = [
                (node.can_begin(), AdmissionMove::Begin(at)),
                (to_enter, AdmissionMove::Enter(at)),
                (supervisor.decider.poll_timeout().is_some(), AdmissionMove::Expire(at)),
            ];
            moves.extend(all.into_iter().filter_map(|(is_due, it)| is_due.then_some(it)));
        }
        for (one, other) in self.pairs() {
            if self.can_meet(one, other) {
                moves.push(AdmissionMove::Meet(one, other));
            }
            for of in self.ranks() {
                if self.can_tell((one, other), of) {
                    moves.push(AdmissionMove::Tell((one, other), of));
                }
                if self.can_tell_removal((one, other), of) {
                    moves.push(AdmissionMove::TellRemoval((one, other), of));
                }
            }
        }
        moves
    }

    fn deliveries(&self) -> impl Iterator<Item = AdmissionMove> {
        self.lanes.iter().map(|(lane, waiting)| AdmissionMove::Deliver(*lane, waiting[0].message))
    }

    /// Whether the component of `from` knows of isolations or releases of a node that `to` does not
    /// know.
    fn can_tell(&self, (from, to): Lane, of: u16) -> bool {
        let (Some(teller), Some(other)) = (self.at(from).member(), self.at(to).member()) else {
            return false;
        };
        let both = [teller, other].map(|it| it.standings[usize::from(of)]);
        self.reaches(from, to) && self.reaches(to, from) && both[1].is_before(both[0])
    }

    /// Whether the component of `from` knows of a removal that `to` does not know and believes. One
    /// that was removed itself is sent its removal also by those that have fenced it.
    fn can_tell_removal(&self, (from, to): Lane, of: u16) -> bool {
        let (Some(teller), Some(other)) = (self.at(from).member(), self.at(to).member()) else {
            return false;
        };
        let Some((boot, term)) = teller.removed.get(&of).copied() else { return false };
        let is_new = match of == to {
            true => other.own.boot <= boot,
            false => other.removed.get(&of).is_none_or(|known| *known < (boot, term)),
        };
        let is_reached = self.reaches(from, to) && (of == to || self.reaches(to, from));
        is_new && is_reached && self.at(to).term <= term
    }

    /// The moves that the budget allows besides.
    fn faults(&self) -> Vec<AdmissionMove> {
        let left = self.left;
        let mut moves = Vec::new();
        for at in self.ranks() {
            let node = self.at(at);
            let runs = node.supervisor.is_some();
            let all = [
                (left.crashes > 0 && runs, AdmissionMove::Crash(at)),
                (left.crashes > 0 && left.unnoticed > 0 && runs, AdmissionMove::Vanish(at)),
                (left.ends > 0 && node.component.is_some(), AdmissionMove::End(at)),
                (left.forgets > 0 && node.can_begin(), AdmissionMove::BeginBare(at)),
            ];
            moves.extend(all.into_iter().filter_map(|(is_allowed, it)| is_allowed.then_some(it)));
        }
        for (one, other) in self.pairs().filter(|(one, other)| one != other) {
            let has_session = one < other
                && self.session(one, other).is_some()
                && self.session(one, other) == self.session(other, one);
            let Some(member) = self.at(one).member() else { continue };
            let met = member.met.get(&other);
            let standing = member.standings[usize::from(other)];
            let is_removed = |boot| {
                member.removed.get(&other).is_some_and(|(up_to, _)| boot <= up_to)
                    || standing.isolation().is_some()
            };
            let is_isolated = standing.isolation().is_some();
            let admitted = self.at(one).connected(other);
            let all = [
                (left.cuts > 0 && has_session, AdmissionMove::Cut(one, other)),
                (left.losses > 0 && admitted.is_some(), AdmissionMove::Lose(one, other)),
                (
                    left.removals > 0 && met.is_some_and(|boot| !is_removed(boot)),
                    AdmissionMove::Remove(one, other),
                ),
                (
                    left.isolations > 0 && met.is_some() && !is_isolated,
                    AdmissionMove::Isolate(one, other),
                ),
                (left.releases > 0 && is_isolated, AdmissionMove::Release(one, other)),
            ];
            moves.extend(all.into_iter().filter_map(|(is_allowed, it)| is_allowed.then_some(it)));
        }
        moves
    }

    /// All moves.
    pub(super) fn moves(&self) -> Vec<AdmissionMove> {
        let mut moves = self.free_moves();
        moves.extend(self.faults());
        moves
    }

    pub(super) fn act(&mut self, next: AdmissionMove) {
        match next {
            AdmissionMove::Deliver(lane, _) => self.land_between(lane),
            AdmissionMove::Up(at, _) => self.land_up(at),
            AdmissionMove::Down(at, _) => {
                let taken = self.node(at).take_down();
                taken.unwrap_or_else(|what| self.broken("admission", what));
            }
            AdmissionMove::Start(at) => self.start(at),
            AdmissionMove::Begin(at) => self.begin(at),
            AdmissionMove::BeginBare(at) => {
                self.left.forgets -= 1;
                self.has_forgotten = true;
                self.node(at).saved = [Standing::default(); NODES];
                self.begin(at);
            }
            AdmissionMove::Enter(at) => self.enter(at),
            AdmissionMove::Meet(one, other) => self.meet(one, other),
            AdmissionMove::Expire(at) => self.decide(at, |it| {
                let due = it.poll_timeout().unwrap_or_default();
                it.handle_time(due);
            }),
            AdmissionMove::Tell((from, to), of) => {
                let known = self.at(from).member().map(|it| it.standings[usize::from(of)]);
                self.node(to).learn(of, known.unwrap_or_default());
            }
            AdmissionMove::TellRemoval((from, to), of) => {
                let known = self.at(from).member().and_then(|it| it.removed.get(&of).copied());
                if let Some((boot, term)) = known {
                    self.node(to).remove(of, boot, term);
                }
            }
            AdmissionMove::Crash(at) => self.crash(at, true),
            AdmissionMove::Vanish(at) => {
                self.left.unnoticed -= 1;
                self.crash(at, false);
            }
            AdmissionMove::End(at) => {
                self.left.ends -= 1;
                self.node(at).end();
            }
            AdmissionMove::Cut(one, other) => self.cut(one, other),
            AdmissionMove::Lose(at, peer) => {
                self.left.losses -= 1;
                let lost = self.at(at).connected(peer).map(|it| it.incarnation);
                self.decide(at, |it| {
                    it.handle_lost(Instant(0), Peer(peer), lost.unwrap_or_default());
                });
            }
            AdmissionMove::Remove(at, peer) => {
                self.left.removals -= 1;
                let boot = self.at(at).member().and_then(|it| it.met.get(&peer).copied());
                let term = self.at(at).term;
                let own = Term { epoch: term.epoch + 1, claimant: Rank(at) };
                let term = if term.claimant == Rank(at) { term } else { own };
                self.node(at).remove(peer, boot.unwrap_or_default(), term);
            }
            AdmissionMove::Isolate(at, peer) => {
                self.left.isolations -= 1;
                let number = self.at(at).isolation_of(peer).unwrap_or_default();
                let (isolated, _) = &mut self.decided[usize::from(peer)];
                *isolated = number.max(*isolated);
                self.node(at).learn(peer, Standing::isolate(number));
            }
            AdmissionMove::Release(at, peer) => {
                self.left.releases -= 1;
                let member = self.at(at).member();
                let number = member.and_then(|it| it.standings[usize::from(peer)].isolation());
                let number = number.unwrap_or_default();
                let (_, released) = &mut self.decided[usize::from(peer)];
                *released = number.max(*released);
                self.node(at).learn(peer, Standing::release(number));
            }
        }
    }

    fn start(&mut self, at: u16) {
        self.node(at).start();
        if let Some(since) = self.at(at).note {
            self.decide(at, |it| it.handle_isolated(Rank(at), since));
        }
        for peer in self.ranks() {
            let (one, other) = (at.min(peer), at.max(peer));
            if self.can_meet(one, other) {
                self.meet(one, other);
            }
        }
    }

    fn begin(&mut self, at: u16) {
        self.node(at).begin();
        if self.at(at).incarnation.0 > INCARNATIONS_MAX {
            self.broken("progress", format!("node {at} begins one incarnation after the other"));
        }
    }

    /// The component of `at` is ordered to enter the DIR net.
    fn enter(&mut self, at: u16) {
        let node = self.node(at);
        if let Some(component) = &mut node.component {
            component.is_ordered = true;
            node.down.push_back(Down::Enter);
        }
        if node.note.is_some() {
            self.broken("admission", format!("{at} is isolated, and runs a component"));
        }
        self.decide(at, Supervision::handle_entered);
    }

    /// A session begins. Each announces its component once it has met the other.
    fn meet(&mut self, one: u16, other: u16) {
        let number = self.sessions.entry((one, other)).or_default();
        *number += 1;
        let number = *number;
        for (at, peer) in [(one, other), (other, one)] {
            if let Some(supervisor) = &mut self.node(at).supervisor {
                supervisor.sessions.insert(peer, number);
            }
            self.post((peer, at), Between::Met);
        }
    }

    /// The session of two supervisors ends, and both notice.
    fn cut(&mut self, one: u16, other: u16) {
        self.left.cuts -= 1;
        for (at, peer) in [(one, other), (other, one)] {
            self.post((peer, at), Between::Parted);
        }
        for (at, peer) in [(one, other), (other, one)] {
            if let Some(supervisor) = &mut self.node(at).supervisor {
                supervisor.sessions.remove(&peer);
            }
        }
    }

    /// The node is gone, with what is in flight to it.
    fn crash(&mut self, at: u16, is_noticed: bool) {
        self.left.crashes -= 1;
        for peer in self.ranks().filter(|peer| *peer != at && is_noticed) {
            if self.session(peer, at) == self.session(at, peer) {
                self.post((at, peer), Between::Parted);
                if let Some(supervisor) = &mut self.node(peer).supervisor {
                    supervisor.sessions.remove(&at);
                }
            }
        }
        self.node(at).crash();
        self.lanes.retain(|(_, to), _| *to != at);
    }

    /// Sends a message, which arrives if the session that its sender knows has not ended.
    fn send(&mut self, (from, to): Lane, message: Between) {
        let known = self.at(from).supervisor.as_ref().and_then(|it| it.met.get(&to).copied());
        if known.is_some() && known == self.session(to, from) {
            self.post((from, to), message);
        }
    }

    /// Puts a message behind all others of its session.
    fn post(&mut self, lane: Lane, message: Between) {
        let (from, to) = lane;
        let Some(session) = self.session(to, from) else { return };
        let boot = self.at(from).boot;
        self.lanes.entry(lane).or_default().change().push_back(Letter { session, boot, message });
    }

    fn announce(&mut self, at: u16, message: Between) {
        let sessions = self.at(at).supervisor.as_ref().map(|it| it.sessions.clone());
        for peer in sessions.unwrap_or_default().into_keys() {
            self.send((at, peer), message);
        }
    }

    fn land_between(&mut self, lane: Lane) {
        let (from, to) = lane;
        let Some(waiting) = self.lanes.get_mut(&lane).map(CopyOnWrite::change) else { return };
        let Some(Letter { session, boot, message }) = waiting.pop_front() else { return };
        if waiting.is_empty() {
            self.lanes.remove(&lane);
        }
        let Some(supervisor) = &mut self.node(to).supervisor else { return };
        supervisor.heard.handle_between(from, message);
        match message {
            Between::Met => drop(supervisor.met.insert(from, session)),
            Between::Parted => drop(supervisor.met.remove(&from)),
            _ => {}
        }
        let had_begun = supervisor.has_begun;
        let may_end = supervisor.heard.may_end(to, from, message);
        let announced = supervisor.announced.filter(|_| message == Between::Met);
        if let Some(announced) = announced {
            self.send((to, from), Between::Alive(announced));
        }
        self.decide(to, |it| message.arrive(it, Peer(from), session));
        let runs_on = self.at(to).supervisor.as_ref().is_some_and(|it| it.has_begun);
        if !had_begun || runs_on {
            return;
        }
        may_end.unwrap_or_else(|what| self.broken("admission", what));
        if matches!(message, Between::Fenced(_)) {
            self.note_end((to, self.at(to).boot), (from, boot));
        }
    }

    /// The boot of a node has ended, since a peer in that boot has fenced it.
    fn note_end(&mut self, ended: (u16, Incarnation), by: (u16, Incarnation)) {
        if self.gave_way.contains(&[by, ended]) {
            let what = format!("{} and {} have fenced each other, and both end", ended.0, by.0);
            self.broken("both-ended", what);
        }
        self.gave_way.insert([ended, by]);
    }

    fn land_up(&mut self, at: u16) {
        let node = self.node(at);
        let Some(message) = node.up.pop_front() else { return };
        let Some(supervisor) = &mut node.supervisor else { return };
        supervisor.heard.handle_up(message);
        match message {
            Up::Ready(own) => {
                let Some(it) = node.component.as_mut().filter(|it| it.own == own) else { return };
                it.is_ready = true;
                supervisor.announced = Some(own);
                self.announce(at, Between::Alive(own));
                self.decide(at, Supervision::handle_ready);
            }
            Up::Ended(_) => {
                supervisor.has_child = false;
                if let Some(announced) = supervisor.announced.take() {
                    self.announce(at, Between::Dead(announced.incarnation));
                }
                self.decide(at, Supervision::handle_ended);
            }
            Up::Reset(..) => {}
            Up::Removed(..) | Up::Isolated(..) | Up::Released(..) | Up::Excluded => {
                self.decide(at, |it| message.arrive(it, Instant(0)));
            }
        }
    }

    /// Hands an input to the supervisor of `at`, and carries out its orders.
    fn decide(&mut self, at: u16, input: impl FnOnce(&mut Supervision<NODES>)) {
        let Some(supervisor) = &mut self.node(at).supervisor else { return };
        let standings = |it: &Supervision<NODES>| [0, 1, 2].map(|of| it.standing(Rank(of)));
        let (before, had_begun) = (standings(&supervisor.decider), supervisor.has_begun);
        input(&mut supervisor.decider);
        while let Some(order) = self.poll_order(at) {
            self.obey(at, OrderRoute::from(order));
        }
        let Some(supervisor) = &self.at(at).supervisor else { return };
        let has_ended = had_begun && !supervisor.has_begun;
        let all = before.into_iter().zip(standings(&supervisor.decider)).zip(0..);
        let forgotten = all.filter(|((before, after), _)| is_stale(*before, *after, has_ended));
        if let Some((_, of)) = forgotten.last() {
            self.broken("standing", format!("{at} forgets what it knew of {of}"));
        }
    }

    fn poll_order(&mut self, at: u16) -> Option<Order> {
        let supervisor = self.node(at).supervisor.as_mut()?;
        let order = supervisor.decider.poll_order()?;
        let checked = supervisor.heard.handle_order(at, order);
        checked.unwrap_or_else(|what| self.broken("admission", what));
        Some(order)
    }

    fn obey(&mut self, at: u16, way: OrderRoute) {
        let node = self.node(at);
        match way {
            OrderRoute::Component(message) => {
                let Some(component) = &node.component else { return };
                let needs_it_ready = matches!(message, Down::Connect(..) | Down::Fence(_));
                if component.is_ready || !needs_it_ready {
                    node.down.push_back(message);
                }
            }
            OrderRoute::Peer(peer, message) => self.send((at, peer), message),
            OrderRoute::Keep(isolation) => node.note = isolation,
            OrderRoute::Halt | OrderRoute::Reboot => {
                node.end();
                if let Some(supervisor) = &mut node.supervisor {
                    supervisor.has_begun = false;
                    supervisor.heard.handle_over();
                }
            }
            OrderRoute::Resume | OrderRoute::Report(..) | OrderRoute::Reset(..) => {}
        }
    }
}
