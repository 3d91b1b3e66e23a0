//! What it takes to shut a peer out, as shipped, beside taking back one right in either way.

use std::sync::Arc;

use weft_core::fabric::{Access, CompletionFlags, Fabric, Layout, Op, RegionSpec, Work, WorkId};
use weft_core::fabric::{At, Completion, Failure, Region};
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::time::Instant;
use weft_driver::{Config, Device, DeviceChoice, Heap, RemoteEnd, Revocation, VerbsFabric, Way};

use super::end::SpinWait;
use super::error::VerbsBenchError;
use super::report::{Fence, median, thousandths};
use super::word::PATIENCE;
use weft::clock::now_ns;

/// Of each kind; a fence costs a queue pair and its registrations.
const ROUNDS: usize = 15;
/// What the peer has a right to.
const BYTES: [u32; 2] = [4 << 10, 1 << 20];

const OWNER: Peer = Peer(0);
const PEER: Peer = Peer(1);

fn now() -> Instant {
    Instant(now_ns())
}

/// Granting and taking back, in nanoseconds.
#[derive(Default)]
struct Spans {
    grant: Vec<f64>,
    revoke: Vec<f64>,
}

impl Spans {
    fn push(&mut self, grant: u64, revoke: u64) {
        self.grant.push(grant as f64);
        self.revoke.push(revoke as f64);
    }

    fn row(&self, way: &'static str, bytes: u32) -> Option<Fence> {
        let us = |ns: f64| thousandths(ns / 1e3);
        Some(Fence {
            way,
            bytes,
            rounds: self.revoke.len(),
            grant: us(median(self.grant.iter().copied())?),
            revoke_best: us(self.revoke.iter().copied().reduce(f64::min)?),
            revoke: us(median(self.revoke.iter().copied())?),
        })
    }
}

/// All ways over all lengths, in turns.
pub(super) fn measure(choice: &DeviceChoice) -> Result<Vec<Fence>, VerbsBenchError> {
    let device = Device::open(choice)?;
    let mut rows = Vec::new();
    for bytes in BYTES {
        let [mut fences, mut deregistered, mut invalidated] = [(); 3].map(|()| Spans::default());
        let mut peers = Peers::new(choice, bytes)?;
        for incarnation in 1..=ROUNDS as u32 {
            let (grant, revoke) = peers.live(Incarnation(incarnation))?;
            fences.push(grant, revoke);
            for (way, spans) in
                [(Way::Deregister, &mut deregistered), (Way::Invalidate, &mut invalidated)]
            {
                let one = Revocation::of(way, &device, bytes as usize, now)?;
                if one.after != Err(Failure::AccessDenied) || !one.is_unchanged {
                    return Err(VerbsBenchError::OutOfStep("a right that was taken back is used"));
                }
                spans.push(one.grant.0, one.revoke.0);
            }
        }
        rows.extend([
            fences.row("fence, as shipped", bytes),
            deregistered.row("deregister", bytes),
            invalidated.row("invalidate a window", bytes),
        ]);
    }
    rows.into_iter().collect::<Option<_>>().ok_or(VerbsBenchError::OutOfStep("no round"))
}

/// An owner of memory, and a peer of many lives.
struct Peers {
    owner: VerbsFabric<Heap>,
    peer: VerbsFabric<Heap>,
}

impl Peers {
    fn new(choice: &DeviceChoice, bytes: u32) -> Result<Self, VerbsBenchError> {
        let mut layout = Layout::new(2);
        let spec = RegionSpec { len: bytes, access: Access::all(), peers: PeerSet::first(2) };
        layout.add(spec).map_err(|_| VerbsBenchError::OutOfStep("no layout"))?;
        let fabric = |me| {
            let memory = Arc::new(Heap::new(&layout));
            let device = Device::open(choice)?;
            VerbsFabric::new(me, layout.clone(), device, Config::default(), memory)
        };
        Ok(Self { owner: fabric(OWNER)?, peer: fabric(PEER)? })
    }

    /// One incarnation of the peer: admitted, heard, and fenced. Returns how long the owner took
    /// for its part of letting in, and for the fence.
    fn live(&mut self, incarnation: Incarnation) -> Result<(u64, u64), VerbsBenchError> {
        let Self { owner, peer } = self;
        let begun = now();
        let of_owner = owner.prepare(PEER, incarnation)?.to_bytes();
        let mut grant = now().since(begun).0;
        let of_peer = peer.prepare(OWNER, incarnation)?.to_bytes();
        let end = |bytes: &[u8]| RemoteEnd::from_bytes(bytes).map_err(weft_driver::Error::End);
        peer.connect(OWNER, end(&of_owner)?)?;
        peer.open(OWNER, incarnation)?;
        let begun = now();
        owner.connect(PEER, end(&of_peer)?)?;
        owner.open(PEER, incarnation)?;
        grant += now().since(begun).0;

        let op = Op::Write { to: At { region: Region(0), offset: 0 }, bytes: &[1; 8] };
        peer.post(OWNER, Work { id: WorkId(0), op, flags: CompletionFlags::empty() })?;
        let mut vigil = SpinWait::new(64);
        vigil.begin(PATIENCE);
        let mut done = [Completion::NONE];
        while peer.poll(vigil.now(), &mut done) == 0 {
            vigil.idle()?;
        }
        done[0].outcome?;
        let begun = now();
        owner.fence(PEER).map_err(|_| VerbsBenchError::OutOfStep("a fence that fails"))?;
        let revoke = now().since(begun).0;
        peer.fence(OWNER).map_err(|_| VerbsBenchError::OutOfStep("a fence that fails"))?;
        Ok((grant, revoke))
    }
}
