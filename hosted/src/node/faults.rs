//! The faults that are injected into a component, as one plan that its loop consults.
//!
//! ```text
//!   hang       the loop makes no progress until it is killed; the process stays
//!   stall      the same for a while
//!   silence    the DIR net's timers stop: no heartbeat is sent, but every message is answered
//!   partition  nothing is posted to the peers beyond the cut, as if they were gone
//!   heal       all of it ends, but not its consequences
//!   equivocate one broadcast that differs from peer to peer (`faults/lie.rs`)
//! ```
//!
//! Killing a component or a node and equivocating need no plan. The data path checks one bitmap of
//! this and nothing else.

mod cut;
mod lie;

pub(super) use cut::CutFabric;
pub(super) use lie::{LIE_TAG, Lying};

use std::fmt;

use weft_core::ids::{Peer, PeerSet};

use super::control::Fault;
use crate::explain::nodes;

/// Whether the timers of the DIR net run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timers {
    Running,
    Stopped,
}

/// The faults that are injected into this component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FaultPlan {
    hung_until_ns: u64,
    timers: Timers,
    cut: PeerSet,
}

impl Default for FaultPlan {
    fn default() -> Self {
        Self { hung_until_ns: 0, timers: Timers::Running, cut: PeerSet::EMPTY }
    }
}

impl FaultPlan {
    /// Adds a fault, from now on.
    pub(super) fn handle_fault(&mut self, now_ns: u64, fault: &Fault) {
        match fault {
            Fault::Hang => self.hung_until_ns = u64::MAX,
            Fault::Stall { ms } => {
                let until_ns = now_ns.saturating_add(ms.saturating_mul(1_000_000));
                self.hung_until_ns = self.hung_until_ns.max(until_ns);
            }
            Fault::Silence => self.timers = Timers::Stopped,
            Fault::Partition { from } => from.iter().for_each(|peer| self.cut.insert(Peer(*peer))),
            Fault::Mend { with } => with.iter().for_each(|peer| self.cut.remove(Peer(*peer))),
            // Carried out once, by the component.
            Fault::Equivocate => {}
            Fault::Heal => *self = Self::default(),
        }
    }

    /// Whether the loop makes no progress.
    pub(super) const fn is_hung(&self, now_ns: u64) -> bool {
        now_ns < self.hung_until_ns
    }

    pub(super) const fn timers(&self) -> Timers {
        self.timers
    }

    /// The peers beyond the cut.
    pub(super) const fn cut(&self) -> PeerSet {
        self.cut
    }
}

impl Fault {
    /// Whether the next component has the fault, or is healed of it, as well: the supervisor
    /// applies it.
    pub(super) const fn outlives_component(&self) -> bool {
        match self {
            Self::Partition { .. } | Self::Mend { .. } | Self::Heal => true,
            Self::Hang | Self::Stall { .. } | Self::Silence | Self::Equivocate => false,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hang => f.write_str("hangs"),
            Self::Stall { ms } => write!(f, "stalls for {ms} ms"),
            Self::Silence => f.write_str("its timers stop"),
            Self::Partition { from } => write!(f, "does not reach {}", nodes(from)),
            Self::Mend { with } => write!(f, "reaches {} again", nodes(with)),
            Self::Equivocate => f.write_str("equivocates"),
            Self::Heal => f.write_str("healed: links are restored, and stopped timers run again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_ends_by_itself_and_a_hang_does_not() {
        let mut plan = FaultPlan::default();
        assert!(!plan.is_hung(0));
        plan.handle_fault(5, &Fault::Stall { ms: 1 });
        assert!(plan.is_hung(1_000_004) && !plan.is_hung(1_000_005));
        plan.handle_fault(5, &Fault::Hang);
        plan.handle_fault(5, &Fault::Stall { ms: 1 });
        assert!(plan.is_hung(u64::MAX - 1));
    }

    #[test]
    fn faults_add_up_and_heal_together() {
        let mut plan = FaultPlan::default();
        plan.handle_fault(0, &Fault::Silence);
        plan.handle_fault(0, &Fault::Partition { from: vec![1] });
        plan.handle_fault(0, &Fault::Partition { from: vec![3] });
        assert_eq!(plan.timers(), Timers::Stopped);
        assert_eq!(plan.cut().iter().collect::<Vec<_>>(), [Peer(1), Peer(3)]);
        plan.handle_fault(0, &Fault::Mend { with: vec![1, 2] });
        assert_eq!(plan.cut().iter().collect::<Vec<_>>(), [Peer(3)]);
        plan.handle_fault(0, &Fault::Heal);
        assert_eq!(plan, FaultPlan::default());
    }
}
