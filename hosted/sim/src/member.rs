//! A member whole: the endpoint's mailbox, lanes and broadcast, and the DIR net over them.
//!
//! ```text
//!   peer r       the component of node r: endpoint, Member         dies alone, or with its node
//!   peer n + r   its supervisor, with the I'm-Alive Task           dies with its node
//! ```
//!
//! | checker | promise |
//! |---|---|
//! | those of `endpoint` | mailboxes, lanes and broadcasts keep theirs under the DIR net's fences |
//! | `admission` | no boot is admitted where it was removed |
//! | `fence` | what is removed is fenced; a node is reset after each running member has done so |
//! | `terms`, `one-manager` | no node's term falls, and a term has one manager, its claimant |
//! | `view-agreement`, `view-monotone`, `view-fence` | those of views |
//! | `progress` | in the end all nodes are in one view, and none is isolated |
//!
//! Each boot of a supervisor is one of its node. What stands for launcher and supervisors is the
//! run: it reports ends, restarts what has ended, and has components admit each other. The deciders
//! of both run in `dirnet`. A node that is refused, reset, or excluded ends and boots again; one
//! that is isolated does so until a manager has released it. Frames go over lanes between
//! components, and between tasks and components as messages that are lost, late and repeated.
//!
//! What it does not do: liars, and the explorer.

mod files;
mod node;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use weft_core::dirnet::{
    ComponentIncarnation, Config, Level, Limits, Members as Nodes, Part, Profile, RestartLimit,
    Role, Term, Timing, View,
};
use weft_core::endpoint::LANE_SLOTS_MIN;
use weft_core::fabric::Layout;
use weft_core::ids::{Incarnation, Peer, PeerSet, Rank};
use weft_core::time::Duration;

use super::dirnet::Views;
use super::draws::Draws;
use super::endpoint::{self as endpoints, Endpoints};
use super::protocol::{HistoryEntry, HistoryEvent, MembershipNews, Protocol, Seat, Violation};
use super::subject::{Expected, missed};
use super::world::Promises;
use files::NodeFiles;
use node::MemberProcess;

/// As many nodes as the machine is made for.
const NODES: usize = 8;
/// The longest frame.
const LANE_LEN: u16 = 64;
const LANE_SLOTS: [u32; 3] = [LANE_SLOTS_MIN, LANE_SLOTS_MIN, 4 * LANE_SLOTS_MIN];

/// What is expected of the tests about its planted bugs.
pub(super) const EXPECTED: &[Expected] = &[
    missed("member/removal-forgotten", &["admission"], "a member"),
    missed("member/failed-fence-confirmed", &["fence"], "a member"),
    missed("member/failed-fence-left", &["progress"], "a member"),
];

/// What a node observes.
#[derive(Clone, Debug)]
pub enum MemberEvent {
    /// Of its endpoint.
    Endpoint(endpoints::EndpointEvent),
    /// An incarnation of this boot of a node is admitted.
    Admitted(Rank, Incarnation),
    /// The boots up to this one are removed, by decision; whether one of them still reaches this
    /// memory.
    Removed(Rank, Incarnation, bool),
    /// That holds for the whole node.
    Acknowledged(Rank, Incarnation),
    /// As manager, it resets a node: whom it counts, in which boot.
    Reset(Rank, Incarnation, Vec<(Rank, Incarnation)>),
    /// A component has another term, role or view.
    State(ComponentIncarnation, Term, Role, View<NODES>),
}

/// What is known of one node.
#[derive(Clone, Debug, Default)]
struct NodeRecord {
    /// The boot of its supervisor that runs, and whether its component does.
    boot: Option<Incarnation>,
    has_component: bool,
    term: Term,
    /// By its component: the boots that were removed.
    removed: BTreeMap<Rank, Incarnation>,
    /// By its supervisor, in this boot.
    acknowledged: BTreeMap<Rank, Incarnation>,
}

/// One run of members.
#[derive(Clone, Debug)]
pub struct Members {
    endpoints: Endpoints,
    layout: Layout,
    nodes: u16,
    timing: Timing,
    manager: Rank,
    min_alive: u16,
    /// What of each node outlives its processes.
    files: RefCell<Vec<NodeFiles>>,
    known: Vec<NodeRecord>,
    managers: BTreeMap<Term, (Rank, ComponentIncarnation)>,
    views: Views,
    is_calm: bool,
}

impl Hash for Members {
    /// Members are not explored: no state is distinguished by this.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nodes.hash(state);
    }
}

fn broken(checker: &'static str, what: String) -> Result<(), Violation> {
    Err(Violation::new(checker, what))
}

impl Members {
    /// The node of `peer`, and whether that is its component.
    const fn place(&self, Peer(peer): Peer) -> (Rank, bool) {
        (Rank(peer % self.nodes), peer < self.nodes)
    }

    const fn supervisor(&self, Rank(node): Rank) -> Peer {
        Peer(self.nodes + node)
    }

    fn profile(&self) -> Profile {
        Profile::new(self.timing).expect("the shipped timing, scaled")
    }

    fn config(&self, me: Rank) -> Config<NODES> {
        let part = |node| if Rank(node) == self.manager { Part::Manager } else { Part::Backup };
        let parts: Vec<Part> = (0..self.nodes).map(part).collect();
        let within = Duration(self.timing.reset_period().0 * 200);
        let limits = Limits {
            restarts: RestartLimit { max: RestartLimit::EXACT, within: self.timing.clone },
            resets: RestartLimit { max: 100, within },
        };
        let config = Config::new(me, &parts, self.profile(), self.min_alive, limits);
        config.expect("one manager, and limits that end")
    }

    fn judge_event(
        &mut self,
        (node, boot): (Rank, Incarnation),
        event: &MemberEvent,
    ) -> Result<(), Violation> {
        let known = &mut self.known[usize::from(node.0)];
        let is_removed = |of: &BTreeMap<Rank, Incarnation>, peer: Rank, boot: Incarnation| {
            of.get(&peer).is_some_and(|removed| boot <= *removed)
        };
        match event {
            MemberEvent::Endpoint(_) => Ok(()),
            &MemberEvent::Admitted(peer, of) => {
                let lists = [&known.removed, &known.acknowledged];
                if lists.iter().any(|list| is_removed(list, peer, of)) {
                    return broken("admission", format!("{node} admits the removed {peer}.{of}"));
                }
                Ok(())
            }
            &MemberEvent::Removed(peer, of, true) => {
                broken("fence", format!("{node} removes {peer}.{of}, which is not fenced"))
            }
            &MemberEvent::Removed(peer, of, false) => {
                let last = known.removed.entry(peer).or_default();
                *last = of.max(*last);
                Ok(())
            }
            &MemberEvent::Acknowledged(peer, of) => {
                let last = known.acknowledged.entry(peer).or_default();
                *last = of.max(*last);
                Ok(())
            }
            MemberEvent::Reset(peer, of, members) => {
                let has_fenced = |(member, boot): &&(Rank, Incarnation)| {
                    let it = &self.known[usize::from(member.0)];
                    let runs = it.has_component && it.boot == Some(*boot);
                    !runs || is_removed(&it.acknowledged, *peer, *of)
                };
                match members.iter().find(|member| !has_fenced(member)) {
                    None => Ok(()),
                    Some((member, _)) => {
                        broken("fence", format!("{peer}.{of} is reset, {member} has not fenced it"))
                    }
                }
            }
            &MemberEvent::State(of, term, role, ref view) => {
                debug_assert_eq!(of.boot, boot);
                let before = std::mem::replace(&mut known.term, term);
                if term < before {
                    return broken("terms", format!("{node} goes from term {before} to {term}"));
                }
                let removed = known.removed.clone();
                if role == Role::Manager {
                    let owner = *self.managers.entry(term).or_insert((node, of));
                    if owner != (node, of) || term.claimant != node {
                        return broken("one-manager", format!("term {term}: {owner:?} and {node}"));
                    }
                }
                let has_fenced = |peer, boot| is_removed(&removed, Rank(peer), boot);
                match self.views.judge((node, of), view, has_fenced) {
                    Some((checker, what)) => broken(checker, what),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Protocol for Members {
    const NAME: &'static str = "member";

    type Node = MemberProcess;
    type Event = MemberEvent;

    fn promises(draws: &mut Draws) -> Promises {
        Promises::draw(draws)
    }

    fn draw(draws: &mut Draws) -> Self {
        let endpoints = Endpoints::sized(draws, (LANE_SLOTS, LANE_LEN));
        let nodes = endpoints.layout().peers();
        // The same regions for the components; supervisors write to none.
        let mut layout = Layout::new(2 * nodes);
        for spec in endpoints.layout().regions() {
            layout.add(*spec).expect("as many as there were");
        }
        // An idle process rests for up to a millisecond, which is no failure.
        let unit = draws.pick(&[20, 40]);
        let scaled = |span: Duration| Duration(span.0 * unit);
        let rdma = Timing::RDMA;
        let timing = Timing {
            send: scaled(rdma.send),
            receive: scaled(rdma.receive),
            clear: scaled(rdma.clear),
            alarm: scaled(rdma.alarm),
            window: scaled(rdma.window),
            delay: scaled(rdma.delay),
            candidate: scaled(rdma.candidate),
            join: scaled(rdma.join),
            clone: Duration::from_millis(100),
            reboot: Duration::from_millis(200),
            ..rdma
        };
        Self {
            endpoints,
            layout,
            nodes,
            timing,
            manager: Rank(draws.below(u64::from(nodes)) as u16),
            min_alive: draws.pick(&[1, nodes / 2 + 1]),
            files: RefCell::new(vec![NodeFiles::default(); usize::from(nodes)]),
            known: vec![NodeRecord::default(); usize::from(nodes)],
            managers: BTreeMap::new(),
            views: Views::default(),
            is_calm: false,
        }
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn node_of(&self, peer: Peer) -> PeerSet {
        let (node, is_component) = self.place(peer);
        let mut all = PeerSet::only(peer);
        if !is_component {
            all.insert(Peer(node.0));
        }
        all
    }

    fn start(&self, seat: &mut Seat<'_, MemberEvent>) -> MemberProcess {
        MemberProcess::start(self, seat)
    }

    fn step(&self, node: &mut MemberProcess, seat: &mut Seat<'_, MemberEvent>) {
        node.step(self, seat);
    }

    fn membership(
        &self,
        node: &mut MemberProcess,
        seat: &mut Seat<'_, MemberEvent>,
        change: MembershipNews,
    ) {
        node.handle_membership(self, seat, change);
    }

    fn judge(&mut self, entry: &HistoryEntry<MemberEvent>) -> Result<(), Violation> {
        let &HistoryEntry { at, peer, incarnation, ref what } = entry;
        let (node, is_component) = self.place(peer);
        let known = &mut self.known[usize::from(node.0)];
        let inner = match what {
            HistoryEvent::Recorded(MemberEvent::Endpoint(event)) => {
                HistoryEvent::Recorded(event.clone())
            }
            HistoryEvent::Recorded(event) => {
                let boot = self.files.borrow()[usize::from(node.0)].incarnation().boot;
                return self.judge_event((node, boot), event);
            }
            HistoryEvent::Began | HistoryEvent::Died => {
                let began = matches!(what, HistoryEvent::Began);
                if !is_component {
                    known.boot = began.then_some(incarnation);
                    known.acknowledged.clear();
                    return Ok(());
                }
                known.has_component = began;
                known.removed.clear();
                if began { HistoryEvent::Began } else { HistoryEvent::Died }
            }
            HistoryEvent::Lied(_) => return Ok(()),
            HistoryEvent::Calm => {
                self.is_calm = true;
                HistoryEvent::Calm
            }
        };
        self.endpoints.judge(&HistoryEntry { at, peer, incarnation, what: inner })
    }

    fn goal(&self, nodes: &[Option<&MemberProcess>]) -> Result<(), Violation> {
        let components: Vec<_> =
            nodes.iter().map(|it| it.and_then(MemberProcess::component)).collect();
        let components = &components[..usize::from(self.nodes)];
        let all: Nodes = (0..self.nodes).map(Rank).collect();
        for component in components.iter().flatten() {
            let machine = component.machine();
            let me = machine.me();
            let level = |node: Rank| machine.database().standing(node).level;
            let is_isolated = |node: &Rank| level(*node) == Level::Isolated;
            if let Some(node) = all.iter().find(is_isolated) {
                return broken("progress", format!("{me} holds {node} isolated"));
            }
            if machine.view().members() != all {
                let shown = machine.view().members();
                return broken("progress", format!("{me} shows a view of {shown:?}"));
            }
            if machine.unfenced().next().is_some() {
                return broken("progress", format!("{me} has not fenced a removed node"));
            }
        }
        let inner: Vec<_> = components.iter().map(|it| it.map(|it| it.endpoint())).collect();
        self.endpoints.goal(&inner)
    }
}
