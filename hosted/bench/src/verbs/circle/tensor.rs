//! Two of the three exchange tensors of the pool's length by name: read, or written.

use weft_core::endpoint::Plan;
use weft_core::fabric::{At, Fabric, Memory};
use weft_core::ids::Peer;
use weft_core::rendezvous::{
    Adapter, Digest, Dtype, Expect, Key, Place, Received, RendezvousConfig, RendezvousEvent,
    RendezvousSizes, RequestId, Shape,
};
use weft_core::time::Duration;
use weft_driver::{DeviceChoice, Heap, VerbsFabric};

use super::{ORIGIN, PEERS, Party, connect, fabric};
use crate::parcel::mark;
use crate::verbs::end::{INCARNATION, SpinWait, check};
use crate::verbs::error::VerbsBenchError;
use crate::verbs::subject::VerbsSubject;
use crate::verbs::word::PATIENCE;
use weft::cluster::{Cluster, FabricKind, Rendezvous, TensorPath};
use weft::node::{NodeRendezvous, PlainEndpoint};

const NO_TENSORS: VerbsBenchError = VerbsBenchError::OutOfStep("a plan without a rendezvous");
const REFUSED: VerbsBenchError =
    VerbsBenchError::OutOfStep("the rendezvous refused a tensor for which it has room");
const RECEIVER: Peer = Peer(1);

/// An endpoint with a rendezvous.
#[derive(Debug)]
pub(super) struct TensorMember {
    endpoint: Box<PlainEndpoint<VerbsFabric<Heap>>>,
    key: Key,
    shape: Shape,
    /// The receive of the next tensor, which waits before that is sent.
    asked: Option<RequestId>,
}

/// As a node has it, but without digests: what perftest carries is not checked either.
fn plan(path: TensorPath) -> Option<Plan> {
    let pool_mib = 2 * (VerbsSubject::LONG_BYTES >> 20) as usize;
    let base = Cluster { nodes: PEERS.len(), fabric: FabricKind::Verbs, ..Cluster::default() };
    let plan = weft::node::plan(&base).ok()?;
    let rendezvous = Rendezvous { pool_mib, path, ..Rendezvous::default() };
    let sizes = weft::node::rendezvous_sizes(&Cluster { rendezvous, ..base })?;
    let sizes = RendezvousConfig::new(RendezvousSizes { digest: Digest::Off, ..sizes }).ok()?;
    plan.with_rendezvous(sizes).ok()
}

/// Both, connected.
pub(super) fn both(
    choice: &DeviceChoice,
    path: TensorPath,
) -> Result<Vec<TensorMember>, VerbsBenchError> {
    let plan = plan(path).ok_or(VerbsBenchError::OutOfStep("no plan"))?;
    let (config, at) = plan.rendezvous().ok_or(NO_TENSORS)?;
    let shape =
        Shape::new(Dtype::U8, &[u64::from(VerbsSubject::LONG_BYTES)]).map_err(|_| REFUSED)?;
    let mut members = Vec::new();
    for me in [ORIGIN, RECEIVER] {
        let fabric = fabric(me, plan.layout(), choice)?;
        let mut endpoint = Box::new(PlainEndpoint::new(fabric, &plan, INCARNATION));
        let adapter: NodeRendezvous =
            Adapter::new(endpoint.fabric(), config, at, (INCARNATION, INCARNATION.0));
        let begun = endpoint.begin_rendezvous(Box::new(adapter));
        debug_assert!(begun.is_ok(), "no peer is admitted yet");
        let key = Key::new((ORIGIN, None), RECEIVER, ("bench", "0:0")).map_err(|_| REFUSED)?;
        members.push(TensorMember { endpoint, key, shape, asked: None });
    }
    connect(&mut members, |member| member.endpoint.fabric())?;
    for (member, peer) in members.iter_mut().zip([RECEIVER, ORIGIN]) {
        if member.endpoint.admit(peer, INCARNATION).is_err() {
            return Err(VerbsBenchError::OutOfStep("a member is not admitted"));
        }
    }
    Ok(members)
}

type Parts<'a> = (&'a mut NodeRendezvous, &'a mut VerbsFabric<Heap>);

impl TensorMember {
    fn tensors(&mut self) -> Result<Parts<'_>, VerbsBenchError> {
        let parts = self.endpoint.rendezvous().map(|(adapter, fabric)| (&mut **adapter, fabric));
        parts.ok_or(NO_TENSORS)
    }

    fn poll(&mut self, vigil: &SpinWait) -> Result<(), VerbsBenchError> {
        self.endpoint.poll(vigil.now());
        self.endpoint.poll_event().map_or(Ok(()), |event| Err(VerbsBenchError::Ended(event)))
    }

    fn ask(&mut self, vigil: &SpinWait, number: u64) -> Result<RequestId, VerbsBenchError> {
        let deadline = vigil.now().after(Duration::from_millis(PATIENCE.as_millis() as u64));
        let key = self.key.clone();
        let (adapter, fabric) = self.tensors()?;
        let place = Place::whole(number.cast_signed());
        let how = (Expect::any(), deadline);
        adapter.receive(fabric, vigil.now(), (&key, place), how).map_err(|_| REFUSED)
    }

    /// Whether the tensor of this number is here; it is used in place.
    fn receive(&mut self, number: u64) -> Result<bool, VerbsBenchError> {
        let (adapter, fabric) = self.endpoint.rendezvous().ok_or(NO_TENSORS)?;
        let mut is_here = false;
        while let Some(event) = adapter.poll_event() {
            match event {
                RendezvousEvent::Ended { request, outcome: Received::Value } => {
                    let tensor = adapter.tensor(request).ok_or(REFUSED)?;
                    check_mark(fabric, tensor.at, number)?;
                    adapter.release(request).map_err(|_| REFUSED)?;
                    is_here = true;
                }
                RendezvousEvent::Ended { .. } => {
                    return Err(VerbsBenchError::OutOfStep("a tensor that did not come"));
                }
                RendezvousEvent::Returned { .. } | RendezvousEvent::Consumed { .. } => {}
            }
        }
        Ok(is_here)
    }
}

fn check_mark(fabric: &VerbsFabric<Heap>, at: At, number: u64) -> Result<(), VerbsBenchError> {
    for end in [0, VerbsSubject::LONG_BYTES - 8] {
        let mut found = [0; 8];
        fabric.memory().copy_out(at.region, at.offset + end, &mut found);
        let [expected, found] = [mark(number, u64::from(end)), found].map(u64::from_le_bytes);
        check("the mark of a tensor", expected, found)?;
    }
    Ok(())
}

impl Party for TensorMember {
    fn send(
        &mut self,
        vigil: &mut SpinWait,
        (bytes, number): (u32, u64),
    ) -> Result<u64, VerbsBenchError> {
        // The last one is consumed, and the receive of this one waits: what is measured is the way
        // of the tensor.
        while self.tensors()?.0.used() != [0, 0, 1] {
            self.poll(vigil)?;
            while self.tensors()?.0.poll_event().is_some() {}
            vigil.idle()?;
        }
        let (key, shape) = (self.key.clone(), self.shape);
        let (adapter, fabric) = self.tensors()?;
        let draft = adapter.reserve(shape, u64::from(bytes)).map_err(|_| REFUSED)?;
        for end in [0, bytes - 8] {
            let at = draft.at();
            fabric.memory().copy_in(at.region, at.offset + end, &mark(number, u64::from(end)));
        }
        let begun = vigil.tick();
        let name = (&key, Place::whole(number.cast_signed()));
        adapter.send(fabric, begun, name, draft).map_err(|_| REFUSED)?;
        Ok(begun.0)
    }

    fn look(&mut self, vigil: &SpinWait, (_, number): (u32, u64)) -> Result<bool, VerbsBenchError> {
        if self.endpoint.me() == ORIGIN {
            self.poll(vigil)?;
            return Ok(false);
        }
        if self.asked.is_none() {
            self.asked = Some(self.ask(vigil, number)?);
        }
        self.poll(vigil)?;
        let is_here = self.receive(number)?;
        if is_here {
            self.asked = None;
            // The source learns that it is consumed.
            self.poll(vigil)?;
        }
        Ok(is_here)
    }
}
