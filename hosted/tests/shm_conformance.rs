//! The conformance suite over shared memory.

use weft::shm::conformance::Host;

weft_core::fabric_conformance!(Host::new().unwrap());
