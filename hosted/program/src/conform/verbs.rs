//! Endpoints over RDMA devices.

use weft_core::fabric::conformance::Harness;
use weft_core::ids::Peer;
use weft_driver::conformance::Rig;
use weft_driver::{Device, DeviceChoice, Error, RESULT_UNTOUCHED};

use weft::node::VerbsError;

use super::{Bench, ConformError, ConformSubject, now};

fn open(devices: &[String], me: Peer) -> Result<Device, Error> {
    let name = devices.get(me.index() % devices.len().max(1)).cloned();
    Device::open(&DeviceChoice { name, ..DeviceChoice::default() })
}

fn devices(subject: &ConformSubject) -> Vec<String> {
    match subject {
        ConformSubject::Shm => Vec::new(),
        ConformSubject::Verbs(devices) => devices.clone(),
    }
}

impl Bench for Rig {
    const UNTOUCHED: Option<u64> = Some(RESULT_UNTOUCHED);

    fn make(subject: &ConformSubject) -> Result<Self, ConformError> {
        let devices = devices(subject);
        Ok(Self::new(move |me| open(&devices, me), now).map_err(VerbsError::Driver)?)
    }

    fn both(&mut self) -> (&mut Self::Fabric, &mut Self::Fabric) {
        self.both(0, 1).expect("new endpoints run")
    }

    fn check(subject: &ConformSubject) -> Result<(), ConformError> {
        let devices = devices(subject);
        for me in 0..devices.len().max(1) {
            open(&devices, Peer(me as u16)).map_err(VerbsError::Driver)?;
        }
        Ok(())
    }

    fn said(fabric: &<Self as Harness>::Fabric) -> Option<String> {
        let said = match fabric.data_in_order() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "nothing: rdma-core is older than the question",
        };
        Some(format!("ibv_query_qp_data_in_order says {said}"))
    }
}
