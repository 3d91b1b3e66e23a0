//! The fabric over verbs, on a real device: the contract, and what only a device can break.
//!
//! All endpoints are in one process, over the device that `WEFT_RDMA_DEVICE` names (or over
//! several, separated by commas), else over the first one. Where there is none, each test says so
//! and passes; with `REQUIRE_RXE=1` it fails.
//! Soft-RoCE is a device: any Linux machine can have one, and an emulated one without rights.

mod child;
mod faults;
mod keys;
mod lacks;
mod loss;
mod mailbox;
mod member;
mod queue;
mod resources;
mod rig;
mod stream;
mod wire;

use weft_core::fabric_conformance;
use weft_driver::{Device, DeviceChoice, Error};

fabric_conformance!(match rig::suite() {
    Some(rig) => rig,
    None => return,
});

#[test]
fn a_machine_without_rdma_is_told_how_to_get_it() {
    match Device::open(&DeviceChoice::default()) {
        Ok(device) => assert!(!device.name().is_empty()),
        Err(error) => {
            assert_eq!(error, Error::NoRdma);
            assert!(error.cure().contains("rdma link add"), "{}", error.cure());
        }
    }
}
