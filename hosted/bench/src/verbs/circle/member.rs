//! One of three that broadcast.

use weft_core::endpoint::{BROADCAST_DEPTH, Endpoint, Plan};
use weft_core::neb::{BroadcastError, Neb};
use weft_driver::{DeviceChoice, Heap, VerbsFabric};

use super::{ORIGIN, PEERS, Party, admit_all, connect, fabric};
use crate::parcel;
use crate::verbs::end::{INCARNATION, SpinWait, check};
use crate::verbs::error::VerbsBenchError;
use crate::verbs::subject::VerbsSubject;
use weft::cluster::{self, Cluster};

/// An endpoint with a broadcast.
#[derive(Debug)]
pub(super) struct CircleMember {
    endpoint: Box<Endpoint<VerbsFabric<Heap>, 1024, 4>>,
    payload: Vec<u8>,
}

fn plan() -> Option<Plan> {
    let neb = cluster::Neb { message_len: VerbsSubject::MESSAGE_MAX, ..cluster::Neb::default() };
    weft::node::plan(&Cluster { nodes: PEERS.len(), neb, ..Cluster::default() }).ok()
}

/// All of them, connected.
pub(super) fn all(choice: &DeviceChoice) -> Result<Vec<CircleMember>, VerbsBenchError> {
    let plan = plan().ok_or(VerbsBenchError::OutOfStep("no plan"))?;
    let mut members = Vec::new();
    for me in PEERS {
        let fabric = fabric(me, plan.layout(), choice)?;
        let endpoint = Box::new(Endpoint::new(fabric, &plan, INCARNATION));
        members.push(CircleMember { endpoint, payload: vec![0; VerbsSubject::MESSAGE_MAX] });
    }
    connect(&mut members, |member| member.endpoint.fabric())?;
    admit_all(&mut members, |member, peer| member.endpoint.admit(peer, INCARNATION).is_ok())?;
    Ok(members)
}

type Parts<'a> = (&'a mut Neb<4, BROADCAST_DEPTH>, &'a mut VerbsFabric<Heap>);

impl CircleMember {
    fn broadcast(&mut self) -> Result<Parts<'_>, VerbsBenchError> {
        self.endpoint.broadcast().ok_or(VerbsBenchError::OutOfStep("a plan without a broadcast"))
    }
}

impl Party for CircleMember {
    fn send(
        &mut self,
        vigil: &mut SpinWait,
        (bytes, number): (u32, u64),
    ) -> Result<u64, VerbsBenchError> {
        let mut payload = std::mem::take(&mut self.payload);
        parcel::write(&mut payload[..bytes as usize], number);
        let sent = loop {
            let begun = vigil.tick().0;
            let (broadcast, fabric) = self.broadcast()?;
            match broadcast.broadcast(fabric, 0, &payload[..bytes as usize]) {
                Ok(seq) => {
                    while broadcast.take_from(fabric, ORIGIN).is_some() {}
                    break check("the number of a broadcast", number, seq).map(|()| begun);
                }
                Err(BroadcastError::WindowFull) => {
                    self.look(vigil, (bytes, number))?;
                    vigil.idle()?;
                }
                Err(BroadcastError::TooLong) => {
                    break Err(VerbsBenchError::OutOfStep("a message longer than its slot"));
                }
            }
        };
        self.payload = payload;
        sent
    }

    fn look(
        &mut self,
        vigil: &SpinWait,
        (bytes, number): (u32, u64),
    ) -> Result<bool, VerbsBenchError> {
        self.endpoint.poll(vigil.now());
        if let Some(event) = self.endpoint.poll_event() {
            return Err(VerbsBenchError::Ended(event));
        }
        let (broadcast, fabric) = self.broadcast()?;
        let Some(message) = broadcast.take_from(fabric, ORIGIN) else {
            return Ok(false);
        };
        let found = parcel::read(message.payload, bytes as usize).unwrap_or(u64::MAX);
        check("the number in a broadcast", number, found).map(|()| true)
    }
}
