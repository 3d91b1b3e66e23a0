//! One of three of a group: messages longer than a block travel along its tree.

use weft_core::endpoint::Plan;
use weft_core::fabric::{Fabric, Memory};
use weft_core::group::{Chunk, Delivery, GroupId};
use weft_driver::{DeviceChoice, Heap, VerbsFabric};

use super::{ORIGIN, PEERS, Party, YIELD_EVERY, admit_all, connect, fabric};
use crate::parcel::mark;
use crate::verbs::end::{INCARNATION, SpinWait, check};
use crate::verbs::error::VerbsBenchError;
use crate::verbs::subject::VerbsSubject;
use crate::verbs::word::PATIENCE;
use weft::cluster::{self, Cluster, FabricKind};
use weft::node::{NodeGroups, PlainEndpoint};

const ALL: GroupId = GroupId(0);
const NO_GROUP: VerbsBenchError = VerbsBenchError::OutOfStep("a plan without a group");
const REFUSED: VerbsBenchError =
    VerbsBenchError::OutOfStep("the group refused a message for which it has room");

/// An endpoint with the group of all three.
#[derive(Debug)]
pub(super) struct TreeMember {
    endpoint: Box<PlainEndpoint<VerbsFabric<Heap>>>,
    /// What the root sends: private memory, as a user's is.
    payload: Vec<u8>,
    block_len: usize,
}

fn plan() -> Option<Plan> {
    let group = cluster::Group { count: 1, ..cluster::Group::default() };
    let fabric = FabricKind::Verbs;
    weft::node::plan(&Cluster { nodes: PEERS.len(), fabric, group, ..Cluster::default() }).ok()
}

/// All of them, connected, and the group open.
pub(super) fn all(choice: &DeviceChoice) -> Result<Vec<TreeMember>, VerbsBenchError> {
    let plan = plan().ok_or(VerbsBenchError::OutOfStep("no plan"))?;
    let (config, at) = plan.groups().ok_or(NO_GROUP)?;
    let mut members = Vec::new();
    for me in PEERS {
        let fabric = fabric(me, plan.layout(), choice)?;
        let mut endpoint = Box::new(PlainEndpoint::new(fabric, &plan, INCARNATION));
        let fabric = endpoint.fabric();
        let mut groups = Box::new(NodeGroups::new(fabric, config, at, INCARNATION));
        let opened = groups.open(fabric, ALL, &PEERS);
        opened.map_err(|_| VerbsBenchError::OutOfStep("the group does not open"))?;
        let begun = endpoint.begin_groups(groups);
        debug_assert!(begun.is_ok(), "no peer is admitted yet");
        let payload = vec![0x5A; VerbsSubject::LONG_BYTES as usize];
        members.push(TreeMember {
            endpoint,
            payload,
            block_len: config.sizes().block_len as usize,
        });
    }
    connect(&mut members, |member| member.endpoint.fabric())?;
    admit_all(&mut members, |member, peer| member.endpoint.admit(peer, INCARNATION).is_ok())?;
    let mut vigil = SpinWait::new(YIELD_EVERY);
    vigil.begin(PATIENCE);
    let mut is_open = false;
    while !is_open {
        is_open = true;
        for member in &mut members {
            member.poll(&vigil)?;
            is_open &= member.groups()?.0.is_open(ALL);
        }
        vigil.idle()?;
    }
    Ok(members)
}

type Parts<'a> = (&'a mut NodeGroups, &'a mut VerbsFabric<Heap>);

impl TreeMember {
    fn groups(&mut self) -> Result<Parts<'_>, VerbsBenchError> {
        let parts = self.endpoint.groups().map(|(groups, fabric)| (&mut **groups, fabric));
        parts.ok_or(NO_GROUP)
    }

    fn poll(&mut self, vigil: &SpinWait) -> Result<(), VerbsBenchError> {
        self.endpoint.poll(vigil.now());
        self.endpoint.poll_event().map_or(Ok(()), |event| Err(VerbsBenchError::Ended(event)))
    }

    /// Writes the next block, if the window has room for it; how many bytes.
    fn write(&mut self, from: usize) -> Result<usize, VerbsBenchError> {
        let (groups, fabric) = self.endpoint.groups().ok_or(NO_GROUP)?;
        let Some((at, len)) = groups.space(fabric, ALL) else { return Ok(0) };
        let block = &self.payload[from..from + len as usize];
        fabric.memory().copy_in(at.region, at.offset, block);
        groups.commit(fabric, ALL).map_err(|_| REFUSED)?;
        Ok(block.len())
    }

    fn receive(&mut self, chunk: &Chunk) -> Result<(), VerbsBenchError> {
        let (groups, fabric) = self.groups()?;
        let mut head = [0; 8];
        fabric.memory().copy_out(chunk.at.region, chunk.at.offset, &mut head);
        let expected = mark(chunk.seq, chunk.offset);
        let [expected, found] = [expected, head].map(u64::from_le_bytes);
        check("the mark of a block", expected, found)?;
        let released = groups.release(fabric, chunk.receipt);
        debug_assert!(released.is_ok(), "it was handed out just now");
        Ok(())
    }
}

impl Party for TreeMember {
    fn send(
        &mut self,
        vigil: &mut SpinWait,
        (bytes, number): (u32, u64),
    ) -> Result<u64, VerbsBenchError> {
        let len = bytes as usize;
        for at in (0..len).step_by(self.block_len) {
            self.payload[at..at + 8].copy_from_slice(&mark(number, at as u64));
        }
        let begun = vigil.tick().0;
        let (groups, fabric) = self.groups()?;
        let seq = groups.begin(fabric, ALL, 0, u64::from(bytes)).map_err(|_| REFUSED)?;
        check("the number of a message along a tree", number, seq)?;
        let mut written = 0;
        while written < len {
            let more = self.write(written)?;
            written += more;
            self.poll(vigil)?;
            if more == 0 {
                vigil.idle()?;
            }
        }
        Ok(begun)
    }

    fn look(&mut self, vigil: &SpinWait, (_, number): (u32, u64)) -> Result<bool, VerbsBenchError> {
        self.poll(vigil)?;
        if self.endpoint.me() == ORIGIN {
            return Ok(false);
        }
        let (groups, fabric) = self.groups()?;
        match groups.receive(fabric, ALL) {
            None => Ok(false),
            Some(Delivery::Chunk(chunk)) => {
                check("the number of a message along a tree", number, chunk.seq)?;
                self.receive(&chunk).map(|()| chunk.is_last)
            }
            Some(Delivery::Abandoned { .. } | Delivery::RootLost { .. }) => {
                Err(VerbsBenchError::OutOfStep("a lost root"))
            }
        }
    }
}
