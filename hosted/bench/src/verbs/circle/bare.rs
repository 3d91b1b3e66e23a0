//! One of three that do what a broadcast cannot do without: the origin writes to both others, and
//! each of them reads from the other once it sees that.

use weft_core::fabric::{
    Access, At, Completion, CompletionFlags, Fabric, Layout, LayoutError, Memory, Op, Region,
    RegionSpec, Work, WorkId,
};
use weft_core::ids::{Peer, PeerSet};
use weft_core::neb::SIGNAL_EVERY;
use weft_driver::{DeviceChoice, Heap, VerbsFabric};

use super::{ORIGIN, PEERS, Party, connect, fabric, others};
use crate::verbs::end::{INCARNATION, SpinWait};
use crate::verbs::error::VerbsBenchError;
use crate::verbs::subject::VerbsSubject;

/// Written by the origin.
const TARGET: Region = Region(0);
/// Where the origin's writes come from.
const SOURCE: Region = Region(1);
/// Read by the others.
const SHOWN: Region = Region(2);
/// Where own reads go.
const INTO: Region = Region(3);

/// An endpoint without any machine.
#[derive(Debug)]
pub(super) struct BareMember {
    fabric: VerbsFabric<Heap>,
    me: Peer,
    /// The message whose read is under way.
    reading: Option<u64>,
}

fn layout() -> Result<Layout, LayoutError> {
    let mut layout = Layout::new(PEERS.len() as u16);
    let (len, peers) = (VerbsSubject::MESSAGE_MAX as u32, PeerSet::first(PEERS.len()));
    for access in [Access::REMOTE_WRITE, Access::empty(), Access::REMOTE_READ, Access::empty()] {
        layout.add(RegionSpec { len, access, peers })?;
    }
    Ok(layout)
}

/// All of them, connected.
pub(super) fn all(choice: &DeviceChoice) -> Result<Vec<BareMember>, VerbsBenchError> {
    let layout = layout().map_err(|_| VerbsBenchError::OutOfStep("no layout"))?;
    let mut bares = Vec::new();
    for me in PEERS {
        bares.push(BareMember { fabric: fabric(me, &layout, choice)?, me, reading: None });
    }
    connect(&mut bares, |bare| &mut bare.fabric)?;
    for bare in &mut bares {
        for peer in others(bare.me) {
            bare.fabric.open(peer, INCARNATION)?;
        }
    }
    Ok(bares)
}

impl BareMember {
    /// Whether a read has ended.
    fn poll(&mut self, vigil: &SpinWait) -> Result<bool, VerbsBenchError> {
        let mut done = [Completion::NONE; 4];
        let count = self.fabric.poll(vigil.now(), &mut done);
        for completion in &done[..count] {
            completion.outcome?;
        }
        Ok(count > 0)
    }
}

impl Party for BareMember {
    fn send(
        &mut self,
        vigil: &mut SpinWait,
        (bytes, number): (u32, u64),
    ) -> Result<u64, VerbsBenchError> {
        self.fabric.memory().store(SOURCE, bytes - 8, number);
        let begun = vigil.tick().0;
        let (to, from) = (At { region: TARGET, offset: 0 }, At { region: SOURCE, offset: 0 });
        let op = Op::WriteFrom { to, from, len: bytes };
        let reports = number.is_multiple_of(u64::from(SIGNAL_EVERY));
        let flags = if reports { CompletionFlags::empty() } else { CompletionFlags::QUIET };
        for peer in others(self.me) {
            self.fabric.post(peer, Work { id: WorkId(number), op, flags })?;
        }
        Ok(begun)
    }

    fn look(
        &mut self,
        vigil: &SpinWait,
        (bytes, number): (u32, u64),
    ) -> Result<bool, VerbsBenchError> {
        let ended = self.poll(vigil)?;
        if self.me == ORIGIN {
            return Ok(false);
        }
        if self.reading == Some(number) {
            return Ok(ended);
        }
        if self.fabric.memory().load(TARGET, bytes - 8) == number {
            for peer in others(self.me).filter(|peer| *peer != ORIGIN) {
                let (from, into) =
                    (At { region: SHOWN, offset: 0 }, At { region: INTO, offset: 0 });
                let (op, flags) = (Op::Read { from, into, len: bytes }, CompletionFlags::empty());
                self.fabric.post(peer, Work { id: WorkId(number), op, flags })?;
            }
            self.reading = Some(number);
        }
        Ok(false)
    }
}
