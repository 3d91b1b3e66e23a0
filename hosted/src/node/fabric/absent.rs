//! Verbs in a build without them: a port that cannot be made, so that no other module depends on
//! the kind of build.

use weft_core::fabric::{Completion, Fabric, FenceError, Layout, Placement, PostError, Work};
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::time::Instant;

use super::VerbsError;
use crate::bootstrap::PairEnd;
use crate::cluster::Verbs;
use crate::shm::OwnMemory;

/// A port that cannot be made.
#[derive(Debug)]
pub enum VerbsPort {}

impl VerbsPort {
    /// Reports that this build has no verbs.
    ///
    /// # Errors
    /// Always [`VerbsError::NotBuilt`].
    pub fn open(
        _me: Peer,
        _layout: &Layout,
        _verbs: &Verbs,
        _own: OwnMemory,
    ) -> Result<Self, VerbsError> {
        Err(VerbsError::NotBuilt)
    }

    /// Reports that this build has no verbs.
    ///
    /// # Errors
    /// Always [`VerbsError::NotBuilt`].
    pub fn check_device(_device: Option<&str>) -> Result<(), VerbsError> {
        Err(VerbsError::NotBuilt)
    }

    pub(in crate::node) fn offer(
        &mut self,
        _peer: Peer,
        _life: Incarnation,
    ) -> Result<PairEnd, VerbsError> {
        match *self {}
    }

    pub(in crate::node) fn accept(
        &mut self,
        _peer: Peer,
        _end: &PairEnd,
    ) -> Result<(), VerbsError> {
        match *self {}
    }

    pub(in crate::node) fn await_word(&mut self, _peer: Peer) {
        match *self {}
    }

    pub(in crate::node) fn lost(&self) -> PeerSet {
        match *self {}
    }

    pub(in crate::node) fn note_heard(&mut self, _peer: Peer) {
        match *self {}
    }
}

impl Fabric for VerbsPort {
    type Memory = OwnMemory;

    fn me(&self) -> Peer {
        match *self {}
    }

    fn layout(&self) -> &Layout {
        match *self {}
    }

    fn placement(&self) -> Placement {
        match *self {}
    }

    fn post(&mut self, _peer: Peer, _work: Work<'_>) -> Result<(), PostError> {
        match *self {}
    }

    fn poll(&mut self, _now: Instant, _done: &mut [Completion]) -> usize {
        match *self {}
    }

    fn memory(&self) -> &OwnMemory {
        match *self {}
    }

    fn fence(&mut self, _peer: Peer) -> Result<(), FenceError> {
        match *self {}
    }

    fn admit(&mut self, _peer: Peer, _incarnation: Incarnation) -> Result<(), FenceError> {
        match *self {}
    }
}
