//! One node of the explorer of admissions: its supervisor, its component, and what lies between.

use std::collections::{BTreeMap, VecDeque};

use weft_core::dirnet::{Announcement, End, Level, Standing, Supervision, Term};
use weft_core::ids::{Incarnation, Rank};

use crate::dirnet::admission::{Connections, Down, SupervisorHeard, Up};

/// The most nodes of a cluster.
pub(super) const NODES: usize = 3;

/// A node. What is outside the two processes outlives them.
#[derive(Clone, Hash)]
pub(super) struct AdmissionNode {
    pub(super) me: u16,
    /// Its isolation, as far as the next supervisor knows it.
    pub(super) note: Option<Incarnation>,
    /// Numbers of its last incarnation and of its last boot.
    pub(super) incarnation: Incarnation,
    pub(super) boot: Incarnation,
    /// The term that its component has saved, and the isolations and releases in its database.
    pub(super) term: Term,
    pub(super) saved: [Standing; NODES],
    pub(super) supervisor: Option<ExploredSupervisor>,
    pub(super) component: Option<ExploredComponent>,
    /// Messages in flight from the component, and to it.
    pub(super) up: VecDeque<Up>,
    pub(super) down: VecDeque<Down>,
}

#[derive(Clone, Hash)]
pub(super) struct ExploredSupervisor {
    pub(super) decider: Supervision<NODES>,
    /// Whether a boot has begun and is not over.
    pub(super) has_begun: bool,
    /// The last session with each peer, and the last one that it knows.
    pub(super) sessions: BTreeMap<u16, u64>,
    pub(super) met: BTreeMap<u16, u64>,
    /// Whether the end of its component was not handled yet.
    pub(super) has_child: bool,
    /// The component that is announced.
    pub(super) announced: Option<Announcement>,
    pub(super) heard: SupervisorHeard,
}

/// A component, as far as it is concerned with admissions: it merges decisions, fences what they
/// end, and reports both to its supervisor.
#[derive(Clone, Hash)]
pub(super) struct ExploredComponent {
    pub(super) own: Announcement,
    pub(super) is_ready: bool,
    /// Whether it was ordered to enter the DIR net, and whether it has.
    pub(super) is_ordered: bool,
    pub(super) has_entered: bool,
    pub(super) is_excluded: bool,
    pub(super) connections: Connections,
    /// The last boot of each peer that it has met.
    pub(super) met: BTreeMap<u16, Incarnation>,
    /// The removals that it knows: up to which boot, in which term.
    pub(super) removed: BTreeMap<u16, (Incarnation, Term)>,
    pub(super) standings: [Standing; NODES],
}

impl AdmissionNode {
    /// Node `me`, which has never been started, in a cluster that follows `term`.
    pub(super) fn new(me: u16, term: Term) -> Self {
        Self {
            me,
            note: None,
            incarnation: Incarnation(0),
            boot: Incarnation(0),
            term,
            saved: [Standing::default(); NODES],
            supervisor: None,
            component: None,
            up: VecDeque::new(),
            down: VecDeque::new(),
        }
    }

    /// The process of a supervisor starts.
    pub(super) fn start(&mut self) {
        self.supervisor = Some(ExploredSupervisor {
            decider: Supervision::new(Rank(self.me)),
            has_begun: false,
            sessions: BTreeMap::new(),
            met: BTreeMap::new(),
            has_child: false,
            announced: None,
            heard: SupervisorHeard::default(),
        });
    }

    /// Both processes end, and what was between them is lost.
    pub(super) fn crash(&mut self) {
        (self.supervisor, self.component) = (None, None);
        self.up.clear();
        self.down.clear();
    }

    /// Whether the next component can be started.
    pub(super) fn can_begin(&self) -> bool {
        self.supervisor.as_ref().is_some_and(|it| !it.has_child && !it.decider.is_isolated())
    }

    /// The next component starts, and reports that it is ready.
    pub(super) fn begin(&mut self) {
        let Some(supervisor) = &mut self.supervisor else { return };
        self.incarnation = self.incarnation.next();
        if !std::mem::replace(&mut supervisor.has_begun, true) {
            self.boot = self.incarnation;
        }
        let own = Announcement { incarnation: self.incarnation, boot: self.boot };
        supervisor.decider.handle_started(own);
        supervisor.has_child = true;
        self.component = Some(ExploredComponent {
            own,
            is_ready: false,
            is_ordered: false,
            has_entered: false,
            is_excluded: false,
            connections: Connections::default(),
            met: BTreeMap::new(),
            removed: BTreeMap::new(),
            standings: [Standing::default(); NODES],
        });
        self.up.push_back(Up::Ready(own));
    }

    /// The process of the component ends. What it has sent still arrives; what was sent to it does
    /// not.
    pub(super) fn end(&mut self) {
        if self.component.take().is_some() {
            self.down.clear();
            self.up.push_back(Up::Ended(End::Killed));
        }
    }

    /// The component, once it has entered the DIR net and unless it was removed there.
    pub(super) fn member(&self) -> Option<&ExploredComponent> {
        self.component.as_ref().filter(|it| it.has_entered && !it.is_excluded)
    }

    /// The incarnation of `peer` that the component has connected.
    pub(super) fn connected(&self, peer: u16) -> Option<Announcement> {
        self.component.as_ref()?.connections.connected(peer)
    }

    /// The component enters: it restores its database, and reports what that holds.
    pub(super) fn enter(&mut self) {
        let Some(component) = &mut self.component else { return };
        component.has_entered = true;
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.decider.handle_watched();
        }
        for (node, saved) in (0..).zip(self.saved) {
            self.learn(node, saved);
        }
    }

    /// The component learns of isolations and releases of `node`; it fences an isolated one.
    pub(super) fn learn(&mut self, node: u16, report: Standing) {
        let Some(component) = self.component.as_mut().filter(|it| it.has_entered) else { return };
        let known = &mut component.standings[usize::from(node)];
        let before = std::mem::replace(known, known.merged(report));
        let after = *known;
        self.saved[usize::from(node)] = after;
        let isolation = after.isolation().filter(|_| before.isolation() != after.isolation());
        if let Some(boot) = isolation.filter(|_| node != self.me) {
            component.connections.remove(node, boot);
            self.up.push_back(Up::Removed(node, boot, self.term));
        }
        self.up.extend(Up::of_standing(Rank(node), before, after));
    }

    /// The component learns that by decision in `term` the boots of `node` up to `boot` are over.
    pub(super) fn remove(&mut self, node: u16, boot: Incarnation, term: Term) {
        let Some(component) = &mut self.component else { return };
        self.term = self.term.max(term);
        if node == self.me {
            component.is_excluded = true;
            return self.up.push_back(Up::Excluded);
        }
        component.removed.insert(node, (boot, term));
        component.connections.remove(node, boot);
        self.up.push_back(Up::Removed(node, boot, term));
    }

    /// The next message to the component arrives; returns what is wrong with it.
    pub(super) fn take_down(&mut self) -> Result<(), String> {
        let me = self.me;
        let (Some(message), Some(component)) = (self.down.pop_front(), &mut self.component) else {
            return Ok(());
        };
        match message {
            Down::Connect(peer, announced) => {
                if component.connections.connect(me, peer, announced)? {
                    component.met.insert(peer, announced.boot);
                }
            }
            Down::Fence(peer) => component.connections.fence(peer),
            Down::Acknowledged(node, boot) => component.connections.acknowledge(node.0, boot),
            Down::Isolated(node, boot) => {
                let released = component.standings[usize::from(node.0)].released();
                if boot > released && node.0 != me {
                    self.learn(node.0, Standing::isolate(boot));
                }
            }
            Down::Released(node, boot) => self.learn(node.0, Standing::release(boot)),
            Down::Enter => self.enter(),
            Down::Parted(_) => {}
        }
        Ok(())
    }

    /// The number of an isolation that the component decides now: the last boot that it has met, or
    /// a later one if isolations of that are over.
    pub(super) fn isolation_of(&self, node: u16) -> Option<Incarnation> {
        let component = self.member()?;
        let standing = component.standings[usize::from(node)];
        let boot = *component.met.get(&node)?;
        (standing.level != Level::Isolated).then_some(boot.max(standing.released().next()))
    }
}
