//! The machines that an endpoint has besides: groups and rendezvous, each in a place that takes no
//! memory where there is none, and the removal of a member from all machines by one decision.
//!
//! ```text
//!   Plan::with_groups      ─▶ Groups::new  ─▶ begin_groups      ┐ before any peer is admitted
//!   Plan::with_rendezvous  ─▶ Adapter::new ─▶ begin_rendezvous  ┘
//! ```

use core::borrow::BorrowMut;

use super::Endpoint;
use crate::decision::{Decision, RemoveError};
use crate::fabric::{Completion, Fabric};
use crate::group::{Group, Groups};
use crate::ids::{Incarnation, Peer, PeerSet};
use crate::rendezvous::Adapter;
use crate::time::Instant;

/// Which machines an endpoint has besides, and where each stands: in the endpoint itself, or in a
/// `Box` of it.
pub trait Machines {
    /// [`Groups`], or `()` for none.
    type Groups: Machine;
    /// Where they stand.
    type GroupsPlace: BorrowMut<Self::Groups>;
    /// [`Adapter`], or `()` for none.
    type Rendezvous: Machine;
    /// Where it stands.
    type RendezvousPlace: BorrowMut<Self::Rendezvous>;
}

/// No machine besides. There is no such value.
#[derive(Clone, Copy, Debug)]
pub enum NoMachines {}

impl Machines for NoMachines {
    type Groups = ();
    type GroupsPlace = ();
    type Rendezvous = ();
    type RendezvousPlace = ();
}

/// What an endpoint does with a machine; `()` is one that does nothing.
#[expect(unused_variables, reason = "a machine that does nothing")]
pub trait Machine {
    /// `peer` is about to be admitted.
    fn prepare(&mut self, fabric: &impl Fabric, peer: Peer, theirs: Incarnation) {}
    /// `peer` is admitted.
    fn handle_admitted(&mut self, peer: Peer) {}
    /// `peer` is fenced.
    fn handle_fenced(&mut self, peer: Peer) {}
    /// Makes all progress that is possible now.
    fn poll(&mut self, fabric: &mut impl Fabric, now: Instant) {}
    /// A work of this machine has ended.
    fn handle_completion(&mut self, fabric: &impl Fabric, completion: &Completion) {}
    /// When to poll again if nothing happens before.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    /// Whether `peer` is still a member in an incarnation up to `last`.
    fn counts(&self, peer: Peer, last: Incarnation) -> bool {
        false
    }
    /// Removes a member by decision.
    ///
    /// # Errors
    /// [`RemoveError`]; nothing changed.
    fn remove(&mut self, fabric: &mut impl Fabric, decision: Decision) -> Result<(), RemoveError> {
        Ok(())
    }
}

impl Machine for () {}

/// What both machines do alike.
macro_rules! as_inherent {
    () => {
        fn prepare(&mut self, fabric: &impl Fabric, peer: Peer, theirs: Incarnation) {
            Self::prepare(self, fabric, peer, theirs);
        }

        fn handle_admitted(&mut self, peer: Peer) {
            Self::handle_admitted(self, peer);
        }

        fn handle_fenced(&mut self, peer: Peer) {
            Self::handle_fenced(self, peer);
        }

        fn handle_completion(&mut self, fabric: &impl Fabric, completion: &Completion) {
            Self::handle_completion(self, fabric, completion);
        }

        fn remove(
            &mut self,
            fabric: &mut impl Fabric,
            decision: Decision,
        ) -> Result<(), RemoveError> {
            Self::remove(self, fabric, decision)
        }
    };
}

impl<const PEERS: usize, const GROUPS: usize, P> Machine for Groups<PEERS, GROUPS, P>
where
    P: BorrowMut<Group<PEERS>> + From<Group<PEERS>>,
{
    as_inherent!();

    fn poll(&mut self, fabric: &mut impl Fabric, _: Instant) {
        Self::poll(self, fabric);
    }

    fn counts(&self, peer: Peer, last: Incarnation) -> bool {
        Self::counts(self, peer, last)
    }
}

impl<const PEERS: usize, const SLOTS: usize> Machine for Adapter<PEERS, SLOTS> {
    as_inherent!();

    fn poll(&mut self, fabric: &mut impl Fabric, now: Instant) {
        Self::poll(self, fabric, now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Self::poll_timeout(self)
    }

    fn counts(&self, peer: Peer, last: Incarnation) -> bool {
        Self::counts(self, peer, last)
    }
}

impl<F: Fabric, const SLOTS: usize, const PEERS: usize, M: Machines> Endpoint<F, SLOTS, PEERS, M> {
    /// Gives the groups their place, before any peer is admitted. [`Groups::new`] makes them,
    /// of the sizes and regions of [`Plan::groups`](super::Plan::groups).
    ///
    /// # Errors
    /// The groups, if a peer is admitted already: it would write into memory that they clear.
    pub fn begin_groups(&mut self, groups: M::GroupsPlace) -> Result<(), M::GroupsPlace> {
        if self.admitted != PeerSet::only(self.me()) {
            return Err(groups);
        }
        self.groups = Some(groups);
        Ok(())
    }

    /// Gives the rendezvous its place, before any peer is admitted. [`Adapter::new`] makes it, of
    /// the sizes and regions of [`Plan::rendezvous`](super::Plan::rendezvous).
    ///
    /// # Errors
    /// The rendezvous, if a peer is admitted already: no lanes with it would begin.
    pub fn begin_rendezvous(
        &mut self,
        rendezvous: M::RendezvousPlace,
    ) -> Result<(), M::RendezvousPlace> {
        if self.admitted != PeerSet::only(self.me()) {
            return Err(rendezvous);
        }
        self.rendezvous = Some(rendezvous);
        Ok(())
    }

    /// The memory of this endpoint: what a group hands out and what a rendezvous has received lie
    /// there until they are released.
    pub fn memory(&self) -> &F::Memory {
        self.fabric.memory()
    }

    /// The groups, and the fabric that their calls take; `None` before [`Self::begin_groups`].
    pub fn groups(&mut self) -> Option<(&mut M::Groups, &mut F)> {
        self.groups.as_mut().map(|groups| (groups.borrow_mut(), &mut self.fabric))
    }

    /// The rendezvous, and the fabric that its calls take; `None` before
    /// [`Self::begin_rendezvous`].
    pub fn rendezvous(&mut self) -> Option<(&mut M::Rendezvous, &mut F)> {
        self.rendezvous.as_mut().map(|rendezvous| (rendezvous.borrow_mut(), &mut self.fabric))
    }

    /// Executes the decision to remove a member from all machines, as far as they still count it,
    /// and fences it first. A later incarnation of a member that they no longer count is not
    /// fenced: they count it again once it is admitted. A broadcast of fixed membership goes on
    /// counting the member.
    ///
    /// # Errors
    /// [`RemoveError`]: a machine still counts the member, and this must be tried again.
    pub fn remove(&mut self, decision: Decision) -> Result<(), RemoveError> {
        if let Some(broadcast) = &mut self.broadcast
            && broadcast.live().contains(decision.removed)
        {
            match broadcast.remove(&mut self.fabric, decision) {
                Ok(()) | Err(RemoveError::Fixed) => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(groups) = self.groups.as_mut().map(BorrowMut::borrow_mut)
            && groups.counts(decision.removed, decision.last)
        {
            groups.remove(&mut self.fabric, decision)?;
        }
        match self.rendezvous.as_mut().map(BorrowMut::borrow_mut) {
            Some(rendezvous) if rendezvous.counts(decision.removed, decision.last) => {
                rendezvous.remove(&mut self.fabric, decision)
            }
            Some(_) | None => Ok(()),
        }
    }
}
