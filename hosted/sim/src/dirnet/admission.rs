//! What supervisors and their components send each other about admissions, and what is promised of
//! that by its definition (X-14).
//!
//! ```text
//!   supervisor ══ Between ══ supervisor
//!     Up ║ Down                            Order ─▶ Way: to whom it goes, and as which message
//!   component
//! ```
//!
//! The network of a run and the explorer of admissions carry the same messages between the shipped
//! deciders, and judge them alike: [`SupervisorHeard`] is what a supervisor has received and
//! ordered, [`Connections`] what its component has made of it. Neither reads the state of a
//! decider.
//!
//! Not here: how long a message takes, who ends when, and what a component decides.

use std::collections::BTreeMap;

use weft_core::dirnet::{Announcement, End, Fenced, Level, Order, Standing, Supervision, Term};
use weft_core::ids::{Incarnation, Peer, Rank};
use weft_core::time::Instant;

/// From one supervisor to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Between {
    Met,
    Alive(Announcement),
    Dead(Incarnation),
    Fenced(Fenced),
    Isolated(Incarnation),
    Released(Incarnation),
    Free(Incarnation),
    AskForRelease(Incarnation),
    Parted,
}

impl Between {
    /// It arrives at `to` in this session with `from`.
    pub(super) fn arrive<const NODES: usize>(
        self,
        to: &mut Supervision<NODES>,
        from: Peer,
        session: u64,
    ) {
        match self {
            Self::Met => to.handle_met(from, session),
            Self::Alive(announced) => to.handle_alive(from, session, announced),
            Self::Dead(incarnation) => to.handle_dead(from, session, incarnation),
            Self::Fenced(fenced) => to.handle_refused(from, fenced),
            Self::Isolated(boot) => to.handle_isolated_by(from, boot),
            Self::Released(boot) => to.handle_released_by(boot),
            Self::Free(boot) => to.handle_free(from, boot),
            Self::AskForRelease(boot) => to.handle_asked_for_release(from, boot),
            Self::Parted => to.handle_parted(from, session),
        }
    }
}

/// From a component to its supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Up {
    Ready(Announcement),
    Ended(End),
    Removed(u16, Incarnation, Term),
    Isolated(Rank, Incarnation),
    Released(Rank, Incarnation),
    Reset(Rank, Incarnation),
    Excluded,
}

impl Up {
    /// What a component reports whose standing of `node` changes.
    pub(super) fn of_standing(node: Rank, before: Standing, after: Standing) -> Vec<Self> {
        let is_new = before.isolation() != after.isolation();
        let isolated = after.isolation().filter(|_| is_new).map(|boot| Self::Isolated(node, boot));
        let released = after.released();
        let is_new = before.released() < released;
        isolated.into_iter().chain(is_new.then_some(Self::Released(node, released))).collect()
    }

    /// It arrives at `to`, if it is about admissions alone; the rest concerns processes.
    pub(super) fn arrive<const NODES: usize>(self, to: &mut Supervision<NODES>, now: Instant) {
        match self {
            Self::Removed(node, boot, term) => to.handle_removed(now, Peer(node), boot, term),
            Self::Isolated(node, boot) => to.handle_isolated(node, boot),
            Self::Released(node, boot) => to.handle_released(node, boot),
            Self::Excluded => to.handle_over(),
            Self::Ready(_) | Self::Ended(_) | Self::Reset(..) => {}
        }
    }
}

/// From a supervisor to its component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Down {
    Connect(u16, Announcement),
    Fence(u16),
    Acknowledged(Rank, Incarnation),
    Parted(Rank),
    Isolated(Rank, Incarnation),
    Released(Rank, Incarnation),
    Enter,
}

/// The way of an order.
#[derive(Clone, Copy, Debug)]
pub(super) enum OrderRoute {
    Component(Down),
    Peer(u16, Between),
    /// A report to the launcher: a node, its boot, what was decided.
    Report(Rank, Incarnation, Level),
    /// To the launcher: that boot of the node ends, and the next one starts.
    Reset(Rank, Incarnation),
    /// The note of an isolation.
    Keep(Option<Incarnation>),
    Halt,
    Resume,
    Reboot,
}

impl From<Order> for OrderRoute {
    fn from(order: Order) -> Self {
        match order {
            Order::Connect(Peer(peer), announced) => {
                Self::Component(Down::Connect(peer, announced))
            }
            Order::Fence(Peer(peer)) => Self::Component(Down::Fence(peer)),
            Order::Acknowledge(Peer(peer), boot) => {
                Self::Component(Down::Acknowledged(Rank(peer), boot))
            }
            Order::Parted(Peer(peer)) => Self::Component(Down::Parted(Rank(peer))),
            Order::LearnIsolation(of, boot) => Self::Component(Down::Isolated(of, boot)),
            Order::LearnRelease(of, boot) => Self::Component(Down::Released(of, boot)),
            Order::Refuse(Peer(peer), fenced) => Self::Peer(peer, Between::Fenced(fenced)),
            Order::Isolate(Peer(peer), boot) => Self::Peer(peer, Between::Isolated(boot)),
            Order::Release(Peer(peer), boot) => Self::Peer(peer, Between::Released(boot)),
            Order::Contradict(Peer(peer), boot) => Self::Peer(peer, Between::Free(boot)),
            Order::AskForRelease(Peer(peer), boot) => {
                Self::Peer(peer, Between::AskForRelease(boot))
            }
            Order::Report { node, boot, level } => Self::Report(node, boot, level),
            Order::Reset(node, boot) => Self::Reset(node, boot),
            Order::Keep(isolation) => Self::Keep(isolation),
            Order::Halt => Self::Halt,
            Order::Resume => Self::Resume,
            Order::Reboot => Self::Reboot,
        }
    }
}

/// Whether a supervisor that knew `before` of a node has forgotten it: the end of its own boot ends
/// removals, but neither isolations nor releases.
pub(super) fn is_stale(before: Standing, after: Standing, has_ended: bool) -> bool {
    if !has_ended {
        return after.is_before(before);
    }
    let is_over = |number| number <= after.released() || Some(number) <= after.isolation();
    after.released() < before.released() || !before.isolation().is_none_or(is_over)
}

/// A number for each peer, that only rises.
type Last = BTreeMap<u16, Incarnation>;

fn raise(last: &mut Last, peer: u16, to: Incarnation) {
    let last = last.entry(peer).or_default();
    *last = to.max(*last);
}

fn of(last: &Last, peer: u16) -> Incarnation {
    last.get(&peer).copied().unwrap_or_default()
}

/// What one supervisor has received and ordered, as far as its promises rest on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SupervisorHeard {
    /// The boots of each peer whose removal was acknowledged in this boot.
    acknowledged: Last,
    isolated: Last,
    released: Last,
    /// The incarnation of each peer that the own component was ordered to admit, and neither has
    /// fenced by decision nor was ordered to fence since.
    admitted: BTreeMap<u16, Announcement>,
    /// What each peer was sent last in this session, until either side has another incarnation.
    refused: BTreeMap<u16, Fenced>,
}

impl SupervisorHeard {
    /// A message of the own component arrives.
    pub(super) fn handle_up(&mut self, message: Up) {
        match message {
            Up::Isolated(node, boot) => self.handle_isolated(node.0, boot),
            Up::Released(node, boot) => raise(&mut self.released, node.0, boot),
            Up::Removed(node, boot, _) => self.handle_fenced(node, boot),
            Up::Ended(_) => (self.refused, self.admitted) = (BTreeMap::new(), BTreeMap::new()),
            Up::Ready(_) | Up::Reset(..) | Up::Excluded => {}
        }
    }

    /// A message of the supervisor of `peer` arrives.
    pub(super) fn handle_between(&mut self, peer: u16, message: Between) {
        match message {
            Between::Free(boot) => raise(&mut self.released, peer, boot),
            Between::AskForRelease(boot) => self.handle_isolated(peer, boot),
            Between::Met => drop(self.refused.remove(&peer)),
            Between::Alive(_)
            | Between::Dead(_)
            | Between::Fenced(_)
            | Between::Isolated(_)
            | Between::Released(_)
            | Between::Parted => {}
        }
    }

    /// Its component fences the boots of an isolated peer, or will once it learns of that.
    fn handle_isolated(&mut self, peer: u16, boot: Incarnation) {
        raise(&mut self.isolated, peer, boot);
        self.handle_fenced(peer, boot);
    }

    fn handle_fenced(&mut self, peer: u16, boot: Incarnation) {
        self.admitted.retain(|of, it| *of != peer || boot < it.boot);
    }

    /// The supervisor of `node` gives `order`; or what is wrong with that.
    pub(super) fn handle_order(&mut self, node: u16, order: Order) -> Result<(), String> {
        match order {
            Order::Connect(Peer(peer), announced) => {
                self.refused.remove(&peer);
                self.check_admission(node, peer, announced)?;
                self.admitted.insert(peer, announced);
            }
            Order::Fence(Peer(peer)) => drop(self.admitted.remove(&peer)),
            Order::Acknowledge(Peer(peer), boot) => raise(&mut self.acknowledged, peer, boot),
            Order::Refuse(Peer(peer), fenced) => drop(self.refused.insert(peer, fenced)),
            _ => {}
        }
        Ok(())
    }

    /// No incarnation is admitted whose removal was acknowledged, or whose node is isolated, nor
    /// before the fence of the one before.
    fn check_admission(&self, node: u16, peer: u16, it: Announcement) -> Result<(), String> {
        if let Some(former) = self.admitted.get(&peer).filter(|former| **former != it) {
            let (it, former) = (it.incarnation, former.incarnation);
            return Err(format!("{node} admits {it} of {peer}, and has not fenced {former}"));
        }
        let (isolated, released) = (of(&self.isolated, peer), of(&self.released, peer));
        let why = if it.boot <= of(&self.acknowledged, peer) {
            "removed"
        } else if isolated > released && it.boot <= isolated {
            // A later boot may run on until it ends or contradicts.
            "isolated"
        } else if it.boot < released {
            "before the released one"
        } else {
            return Ok(());
        };
        Err(format!("{node} admits boot {} of {peer}, which is {why}", it.boot))
    }

    /// Whether a message of `by` may end the boot of `node`: not that it is fenced there, if `by`
    /// was sent a decision of a later term.
    pub(super) fn may_end(&self, node: u16, by: u16, message: Between) -> Result<(), String> {
        let Between::Fenced(theirs) = message else { return Ok(()) };
        let ours = self.refused.get(&by).and_then(|ours| ours.decided);
        match ours.filter(|ours| theirs.decided < Some(*ours)) {
            Some(ours) => Err(format!("{node} ends for {by}, which it has removed in term {ours}")),
            None => Ok(()),
        }
    }

    /// The boot has ended, and what it had removed and refused with it.
    pub(super) fn handle_over(&mut self) {
        self.acknowledged.clear();
        self.refused.clear();
    }

    /// Whether the removal of this boot of `peer` was acknowledged.
    pub(super) fn has_acknowledged(&self, peer: u16, boot: Incarnation) -> bool {
        boot <= of(&self.acknowledged, peer)
    }
}

/// What a component has made of the admissions and fences that it was ordered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Connections {
    /// The incarnation of each peer that it has connected.
    connected: BTreeMap<u16, Announcement>,
    /// The last incarnation of each peer that it has fenced.
    fenced: Last,
    /// The boots that it has fenced by decision, and those of them that were acknowledged.
    removals: Last,
    acknowledged: Last,
}

impl Connections {
    /// The component of `node` is ordered to admit an incarnation, and fences the one before if it
    /// has not yet; returns whether it admits it, or what is wrong with the order.
    pub(super) fn connect(
        &mut self,
        node: u16,
        peer: u16,
        it: Announcement,
    ) -> Result<bool, String> {
        let Announcement { incarnation, boot } = it;
        if boot <= of(&self.acknowledged, peer) {
            return Err(format!("{node} admits boot {boot} of {peer} after its FENCED"));
        }
        // Decided before the removal was known to the supervisor.
        if self.has_removed(peer, boot) {
            return Ok(false);
        }
        if self.connected(peer) != Some(it) {
            self.fence(peer);
        }
        if incarnation <= of(&self.fenced, peer) {
            return Err(format!("{node} admits {incarnation} of {peer}, which it has fenced"));
        }
        self.connected.insert(peer, it);
        Ok(true)
    }

    /// It fences the incarnation of `peer` that it has connected.
    pub(super) fn fence(&mut self, peer: u16) {
        if let Some(former) = self.connected.remove(&peer) {
            raise(&mut self.fenced, peer, former.incarnation);
        }
    }

    /// It fences the boots of `peer` up to this one, by decision.
    pub(super) fn remove(&mut self, peer: u16, boot: Incarnation) {
        if self.connected.get(&peer).is_some_and(|it| it.boot <= boot) {
            self.fence(peer);
        }
        raise(&mut self.removals, peer, boot);
    }

    pub(super) fn acknowledge(&mut self, peer: u16, boot: Incarnation) {
        raise(&mut self.acknowledged, peer, boot);
    }

    /// Whether it has fenced this boot of `peer` by decision.
    pub(super) fn has_removed(&self, peer: u16, boot: Incarnation) -> bool {
        boot <= of(&self.removals, peer)
    }

    /// The incarnation of `peer` that it has connected.
    pub(super) fn connected(&self, peer: u16) -> Option<Announcement> {
        self.connected.get(&peer).copied()
    }
}
