//! The machines that an endpoint has besides: groups and rendezvous, each in a place that takes no
//! memory where there is none, and the removal of a member from all machines by one decision.
//!
//! ```text
//!   Plan::with_groups      ─▶ Groups::new  ─▶ begin_groups      ┐ before any peer is admitted
//!   Plan::with_rendezvous  ─▶ Adapter::new ─▶ begin_rendezvous  ┘
//! ```

use core::borrow::BorrowMut;
use core::iter::once;
use core::ops::DerefMut;

use super::Endpoint;
use crate::decision::{Decision, RemoveError};
use crate::fabric::{Completion, Fabric};
use crate::group::{GROUP_WORK, Group, Groups};
use crate::ids::{Incarnation, Peer, PeerSet};
use crate::neb::NEB_WORK;
use crate::rendezvous::{Adapter, RENDEZVOUS_WORK};
use crate::time::Instant;

static_assertions::const_assert!(GROUP_WORK > NEB_WORK && RENDEZVOUS_WORK > GROUP_WORK);

/// What an endpoint does with a machine; by default nothing.
#[expect(unused_variables, reason = "a machine that does nothing")]
pub trait Machine {
    /// `peer` is about to be admitted.
    fn prepare(&mut self, fabric: &impl Fabric, peer: Peer, theirs: Incarnation) {}
    /// `peer` is admitted.
    fn handle_admitted(&mut self, peer: Peer) {}
    /// `peer` is about to be fenced, which may fail.
    fn handle_fencing(&mut self, peer: Peer) {}
    /// `peer` is fenced: it no longer reads what it was lent.
    fn handle_fenced(&mut self, peer: Peer) {}
    /// Makes all progress that is possible now.
    fn poll(&mut self, fabric: &mut impl Fabric, now: Instant) {}
    /// A work of any machine has ended.
    fn handle_completion(&mut self, fabric: &impl Fabric, completion: &Completion) {}
    /// When to poll again if nothing happens before.
    fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }
    /// Removes a member by decision, as far as the machine still counts it.
    ///
    /// # Errors
    /// [`RemoveError`]; nothing changed.
    fn remove(&mut self, fabric: &mut impl Fabric, decision: Decision) -> Result<(), RemoveError> {
        Ok(())
    }
}

/// No machine. There is no such value.
#[derive(Clone, Copy, Debug)]
pub enum NoMachine {}

impl Machine for NoMachine {}

/// The machines that an endpoint has besides. A type says where each stands: in the endpoint, or in
/// a `Box`; [`NoMachine`] takes no memory.
#[derive(Clone, Debug)]
pub struct Machines<G = NoMachine, R = NoMachine> {
    groups: Option<G>,
    rendezvous: Option<R>,
}

impl<G, R> Default for Machines<G, R> {
    fn default() -> Self {
        Self { groups: None, rendezvous: None }
    }
}

/// Does with `$all` what it does with each of `$machines`.
macro_rules! as_each_of {
    ($all:ident: $($machines:expr),*) => {
        fn prepare(&mut self, fabric: &impl Fabric, peer: Peer, theirs: Incarnation) {
            let $all = self;
            $($machines.for_each(|it| it.prepare(fabric, peer, theirs));)*
        }

        fn handle_admitted(&mut self, peer: Peer) {
            let $all = self;
            $($machines.for_each(|it| it.handle_admitted(peer));)*
        }

        fn handle_fencing(&mut self, peer: Peer) {
            let $all = self;
            $($machines.for_each(|it| it.handle_fencing(peer));)*
        }

        fn handle_fenced(&mut self, peer: Peer) {
            let $all = self;
            $($machines.for_each(|it| it.handle_fenced(peer));)*
        }

        // Without machines there is nothing to do, and a call would cost more than that.
        #[inline(always)]
        fn poll(&mut self, fabric: &mut impl Fabric, now: Instant) {
            let $all = self;
            $($machines.for_each(|it| it.poll(fabric, now));)*
        }

        #[inline]
        fn handle_completion(&mut self, fabric: &impl Fabric, completion: &Completion) {
            let $all = self;
            $($machines.for_each(|it| it.handle_completion(fabric, completion));)*
        }

        fn poll_timeout(&mut self) -> Option<Instant> {
            let $all = self;
            [$($machines.filter_map(Machine::poll_timeout).min()),*].into_iter().flatten().min()
        }

        fn remove(
            &mut self,
            fabric: &mut impl Fabric,
            decision: Decision,
        ) -> Result<(), RemoveError> {
            let $all = self;
            $($machines.try_for_each(|it| it.remove(fabric, decision))?;)*
            Ok(())
        }
    };
}

impl<G: Machine, R: Machine> Machine for Machines<G, R> {
    as_each_of!(all: all.groups.iter_mut(), all.rendezvous.iter_mut());
}

impl<P: DerefMut<Target: Machine>> Machine for P {
    as_each_of!(place: once(&mut **place));
}

/// What both machines do alike.
macro_rules! as_inherent {
    ($work:expr) => {
        fn prepare(&mut self, fabric: &impl Fabric, peer: Peer, theirs: Incarnation) {
            Self::prepare(self, fabric, peer, theirs);
        }

        fn handle_admitted(&mut self, peer: Peer) {
            Self::handle_admitted(self, peer);
        }

        #[inline]
        fn handle_completion(&mut self, fabric: &impl Fabric, completion: &Completion) {
            if completion.id.machine() == $work {
                Self::handle_completion(self, fabric, completion);
            }
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
    as_inherent!(GROUP_WORK);

    fn handle_fencing(&mut self, peer: Peer) {
        Self::handle_fenced(self, peer);
    }

    fn poll(&mut self, fabric: &mut impl Fabric, _: Instant) {
        Self::poll(self, fabric);
    }
}

impl<const PEERS: usize, const SLOTS: usize> Machine for Adapter<PEERS, SLOTS> {
    as_inherent!(RENDEZVOUS_WORK);

    /// Behind the fence: until it holds, the peer reads what it was lent.
    fn handle_fenced(&mut self, peer: Peer) {
        Self::handle_fenced(self, peer);
    }

    fn poll(&mut self, fabric: &mut impl Fabric, now: Instant) {
        Self::poll(self, fabric, now);
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        Self::poll_timeout(self)
    }
}

impl<F: Fabric, const SLOTS: usize, const PEERS: usize, G: Machine, R: Machine>
    Endpoint<F, SLOTS, PEERS, Machines<G, R>>
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
        self.machines.groups = Some(groups);
        Ok(())
    }

    /// Gives the rendezvous its place, before any peer is admitted. [`Adapter::new`] makes it, of
    /// the sizes and regions of [`Plan::rendezvous`](super::Plan::rendezvous).
    ///
    /// # Errors
    /// The rendezvous, if a peer is admitted already: no lanes with it would begin.
    pub fn begin_rendezvous(&mut self, rendezvous: R) -> Result<(), R> {
        if self.admitted != PeerSet::only(self.me()) {
            return Err(rendezvous);
        }
        self.machines.rendezvous = Some(rendezvous);
        Ok(())
    }

    /// The groups, and the fabric that their calls take; `None` before [`Self::begin_groups`].
    pub fn groups(&mut self) -> Option<(&mut G, &mut F)> {
        self.machines.groups.as_mut().map(|groups| (groups, &mut self.fabric))
    }

    /// The rendezvous, and the fabric that its calls take; `None` before
    /// [`Self::begin_rendezvous`].
    pub fn rendezvous(&mut self) -> Option<(&mut R, &mut F)> {
        self.machines.rendezvous.as_mut().map(|rendezvous| (rendezvous, &mut self.fabric))
    }
}

impl<F: Fabric, const SLOTS: usize, const PEERS: usize, M: Machine + Default>
    Endpoint<F, SLOTS, PEERS, M>
{
    /// The memory of this endpoint: what a group hands out and what a rendezvous has received lie
    /// there until they are released.
    pub fn memory(&self) -> &F::Memory {
        self.fabric.memory()
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
        self.machines.remove(&mut self.fabric, decision)
    }
}
