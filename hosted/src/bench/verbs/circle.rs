//! A broadcast among three over the same device, all in this process and polled in turn.
//!
//! What members on hosts of their own do side by side adds up here: both writes, both reads and
//! every look of all three. So the figure is an upper bound, and its ratio to a write and a read,
//! which the best of orders cannot do without, is one as well.

use std::sync::Arc;

use weft_core::endpoint::Endpoint;
use weft_core::ids::Peer;
use weft_core::neb::BroadcastError;
use weft_driver::{Config, Device, DeviceChoice, Heap, RemoteEnd, VerbsFabric};

use super::end::{LIFE, Vigil, check};
use super::error::VerbsBenchError;
use super::subject::Subject;
use super::word::PATIENCE;
use crate::bench::figure::Samples;
use crate::bench::parcel;
use crate::cluster::{self, Cluster};

const MEMBERS: usize = 3;
const ORIGIN: Peer = Peer(0);

type Member = Box<Endpoint<VerbsFabric<Heap>, 1024, 4>>;

/// The members, each connected with all others.
#[derive(Debug)]
pub(super) struct Circle {
    members: Vec<Member>,
    vigil: Vigil,
    /// The number of the next message.
    next: u64,
}

fn plan() -> Option<weft_core::endpoint::Plan> {
    let neb = cluster::Neb { message_len: Subject::MESSAGE_MAX, ..cluster::Neb::default() };
    crate::node::plan(&Cluster { nodes: MEMBERS, neb, ..Cluster::default() }).ok()
}

fn peers_of(me: usize) -> impl Iterator<Item = (usize, Peer)> {
    (0..MEMBERS).zip((0..).map(Peer)).filter(move |(index, _)| *index != me)
}

impl Circle {
    pub(super) fn new(choice: &DeviceChoice, vigil: Vigil) -> Result<Self, VerbsBenchError> {
        let plan = plan().ok_or(VerbsBenchError::OutOfStep("no plan"))?;
        let mut members = Vec::new();
        for me in (0..).map(Peer).take(MEMBERS) {
            let memory = Arc::new(Heap::new(plan.layout()));
            let device = Device::open(choice)?;
            let layout = plan.layout().clone();
            let fabric = VerbsFabric::new(me, layout, device, Config::default(), memory)?;
            members.push(Box::new(Endpoint::new(fabric, &plan, LIFE)));
        }
        let mut circle = Self { members, vigil, next: 1 };
        circle.connect()?;
        Ok(circle)
    }

    /// Every pair first, and only then the first word: nobody writes to whom is not ready.
    fn connect(&mut self) -> Result<(), VerbsBenchError> {
        let mut ends = Vec::new();
        for from in 0..MEMBERS {
            for (to, peer) in peers_of(from) {
                let end = self.members[from].fabric().prepare(peer, LIFE)?.to_bytes();
                ends.push((from, to, end));
            }
        }
        for (from, to, end) in ends {
            let end = RemoteEnd::from_bytes(&end).map_err(weft_driver::Error::End)?;
            let from = self.members[from].me();
            self.members[to].fabric().connect(from, end)?;
        }
        for (me, member) in self.members.iter_mut().enumerate() {
            for (_, peer) in peers_of(me) {
                let admitted = member.admit(peer, LIFE);
                admitted.map_err(|_| VerbsBenchError::OutOfStep("a member is not admitted"))?;
            }
        }
        Ok(())
    }

    /// Broadcasts `iterations` messages, one at a time; the samples are nanoseconds from the call
    /// to the delivery at the last member.
    pub(super) fn run(&mut self, bytes: u32, iterations: u32) -> Result<Samples, VerbsBenchError> {
        let mut samples = Samples::default();
        let mut payload = vec![0; bytes as usize];
        for _ in 0..iterations {
            self.vigil.begin(PATIENCE);
            let number = self.next;
            parcel::write(&mut payload, number);
            let begun = self.broadcast(&payload, number)?;
            let mut missing = MEMBERS - 1;
            while missing > 0 {
                let came = self.turn(bytes, number)?;
                missing -= came;
                if came == 0 {
                    self.vigil.idle()?;
                }
            }
            samples.push(self.vigil.tick().0 - begun, 1);
            self.next += 1;
        }
        Ok(samples)
    }

    /// Broadcasts message `number` once the window takes it; returns when that began.
    fn broadcast(&mut self, payload: &[u8], number: u64) -> Result<u64, VerbsBenchError> {
        loop {
            let begun = self.vigil.tick().0;
            let (broadcast, fabric) = broadcast_of(&mut self.members[0])?;
            match broadcast.broadcast(fabric, 0, payload) {
                Ok(seq) => {
                    while broadcast.take_from(fabric, ORIGIN).is_some() {}
                    check("the number of a broadcast", number, seq)?;
                    return Ok(begun);
                }
                Err(BroadcastError::WindowFull) => {
                    self.members.iter_mut().for_each(|member| {
                        member.poll(self.vigil.now());
                    });
                    self.vigil.idle()?;
                }
                Err(BroadcastError::TooLong) => {
                    return Err(VerbsBenchError::OutOfStep("a message longer than its slot"));
                }
            }
        }
    }

    /// One turn of every member; returns how many have delivered message `number` in it.
    fn turn(&mut self, bytes: u32, number: u64) -> Result<usize, VerbsBenchError> {
        let mut came = 0;
        for member in &mut self.members {
            member.poll(self.vigil.now());
            if let Some(event) = member.poll_event() {
                return Err(VerbsBenchError::Ended(event));
            }
            let (broadcast, fabric) = broadcast_of(member)?;
            if let Some(message) = broadcast.take_from(fabric, ORIGIN) {
                let found = parcel::read(message.payload, bytes as usize).unwrap_or(u64::MAX);
                check("the number in a broadcast", number, found)?;
                came += 1;
            }
        }
        Ok(came)
    }
}

type Parts<'a> = (
    &'a mut weft_core::neb::Neb<4, { weft_core::endpoint::BROADCAST_DEPTH }>,
    &'a mut VerbsFabric<Heap>,
);

fn broadcast_of(member: &mut Member) -> Result<Parts<'_>, VerbsBenchError> {
    member.broadcast().ok_or(VerbsBenchError::OutOfStep("a plan without a broadcast"))
}
