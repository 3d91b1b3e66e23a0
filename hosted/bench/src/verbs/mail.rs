//! An endpoint with a mailbox over the same device.

use std::sync::Arc;

use weft_core::endpoint::{Endpoint, Event, Plan, PlanError};
use weft_core::ids::Peer;
use weft_core::time::Duration;
use weft_core::{lane, mailbox};
use weft_driver::{Config, Device, DeviceChoice, Heap, RemoteEnd, VerbsFabric};

use super::end::{FOLLOWER, INCARNATION, LEADER, SpinWait};
use super::error::VerbsBenchError;
use crate::parcel;

const SLOTS: usize = 64;
const MESSAGE_LEN: u16 = 64;

type MailEndpoint = Endpoint<VerbsFabric<Heap>, SLOTS, 2>;

/// The endpoint.
#[derive(Debug)]
pub(super) struct Mail {
    endpoint: Box<MailEndpoint>,
    other: Peer,
}

fn plan() -> Option<Plan> {
    let stall_after = Duration::from_millis(100);
    let mailbox = mailbox::Config::new(2, SLOTS as u32, MESSAGE_LEN, stall_after).ok()?;
    let plan: Result<_, PlanError> = Plan::new(mailbox, lane::Config::new(2, 8, 64).ok()?);
    plan.ok()
}

/// The bytes that a put of one message writes: what its bare operations write too.
pub(super) fn stride() -> u32 {
    plan().map_or(64, |plan| plan.mailbox().stride())
}

impl Mail {
    pub(super) fn new(me: Peer, device: &DeviceChoice) -> Result<Self, VerbsBenchError> {
        let plan = plan().ok_or(VerbsBenchError::OutOfStep("no plan"))?;
        let memory = Arc::new(Heap::new(plan.layout()));
        let device = Device::open(device)?;
        let fabric =
            VerbsFabric::new(me, plan.layout().clone(), device, Config::default(), memory)?;
        let other = if me == LEADER { FOLLOWER } else { LEADER };
        Ok(Self { endpoint: Box::new(Endpoint::new(fabric, &plan, INCARNATION)), other })
    }

    /// This end, to be sent to the other endpoint.
    pub(super) fn prepare(&mut self) -> Result<Vec<u8>, VerbsBenchError> {
        Ok(self.endpoint.fabric().prepare(self.other, INCARNATION)?.to_bytes())
    }

    /// Lets the other endpoint in.
    pub(super) fn open(&mut self, end: &[u8]) -> Result<(), VerbsBenchError> {
        let end = RemoteEnd::from_bytes(end).map_err(weft_driver::Error::End)?;
        self.endpoint.fabric().connect(self.other, end)?;
        let admitted = self.endpoint.admit(self.other, INCARNATION);
        admitted.map_err(|_| VerbsBenchError::OutOfStep("the other process cannot be admitted"))
    }

    /// Puts one message; it is there on return.
    pub(super) fn put(
        &mut self,
        vigil: &mut SpinWait,
        bytes: u32,
        number: u64,
    ) -> Result<(), VerbsBenchError> {
        let mut payload = vec![0; bytes as usize];
        parcel::write(&mut payload, number);
        self.endpoint.put(self.other, parcel::PING, &payload)?;
        loop {
            self.endpoint.poll(vigil.now());
            match self.endpoint.poll_event() {
                None => vigil.idle()?,
                Some(Event::Put { left: 0, .. }) => return Ok(()),
                Some(event) => return Err(VerbsBenchError::Ended(event)),
            }
        }
    }

    /// Waits for the message with this number, takes and releases it.
    pub(super) fn await_message(
        &mut self,
        vigil: &mut SpinWait,
        bytes: u32,
        number: u64,
    ) -> Result<(), VerbsBenchError> {
        loop {
            self.endpoint.poll(vigil.now());
            if let Some(message) = self.endpoint.take(vigil.now()) {
                let receipt = message.receipt;
                let found = parcel::read(message.payload, bytes as usize).unwrap_or(u64::MAX);
                super::end::check("the number of a message", number, found)?;
                let released = self.endpoint.release(receipt);
                return released.map_err(|_| VerbsBenchError::OutOfStep("an unknown receipt"));
            }
            vigil.idle()?;
        }
    }
}
