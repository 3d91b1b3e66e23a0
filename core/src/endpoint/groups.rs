//! The groups of an endpoint: their place, which takes no memory where there are none, and the
//! removal of a member from them and from the broadcast by one decision.

use core::borrow::{Borrow, BorrowMut};

use super::Endpoint;
use crate::decision::{Decision, RemoveError};
use crate::fabric::Fabric;
use crate::group::Groups;
use crate::ids::PeerSet;

/// No groups. There is no such value.
#[derive(Clone, Copy, Debug)]
pub enum NoGroups {}

impl<const PEERS: usize, const GROUPS: usize> Borrow<Groups<PEERS, GROUPS>> for NoGroups {
    fn borrow(&self) -> &Groups<PEERS, GROUPS> {
        match *self {}
    }
}

impl<const PEERS: usize, const GROUPS: usize> BorrowMut<Groups<PEERS, GROUPS>> for NoGroups {
    fn borrow_mut(&mut self) -> &mut Groups<PEERS, GROUPS> {
        match *self {}
    }
}

impl<F, const SLOTS: usize, const PEERS: usize, const GROUPS: usize, G>
    Endpoint<F, SLOTS, PEERS, GROUPS, G>
where
    F: Fabric,
    G: BorrowMut<Groups<PEERS, GROUPS>>,
{
    /// Gives the groups their place, before any peer is admitted. [`Groups::new`] makes them,
    /// of the sizes and regions of [`Plan::groups`](super::Plan::groups).
    ///
    /// # Errors
    /// The groups, if a peer is admitted already: it would write into memory that they clear.
    pub fn begin_groups(&mut self, groups: G) -> Result<(), G> {
        if self.admitted != PeerSet::only(self.me()) {
            return Err(groups);
        }
        self.groups = Some(groups);
        Ok(())
    }

    /// The memory of this endpoint: what a group hands out lies there until it is released.
    pub fn memory(&self) -> &F::Memory {
        self.fabric.memory()
    }

    /// The groups, and the fabric that their calls take; `None` before [`Self::begin_groups`].
    pub fn groups(&mut self) -> Option<(&mut Groups<PEERS, GROUPS>, &mut F)> {
        self.groups.as_mut().map(|groups| (groups.borrow_mut(), &mut self.fabric))
    }

    /// Executes the decision to remove a member from broadcast and groups, as far as they still
    /// count it, and fences it first. A later incarnation of a member that they no longer count is
    /// not fenced, and takes no part in them. A broadcast of fixed membership goes on counting it.
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
        match self.groups.as_mut().map(BorrowMut::borrow_mut) {
            Some(groups) if groups.live().contains(decision.removed) => {
                groups.remove(&mut self.fabric, decision)
            }
            Some(_) | None => Ok(()),
        }
    }
}
