//! The end of a pair that a peer offers over verbs: any bytes.
//!
//! Decoding must not panic, and what is accepted is sent as the same bytes again, and fits into
//! what bootstrap carries.

use weft::bootstrap::PairEnd;
use weft_core::fabric::{Access, Layout, RegionSpec};
use weft_core::ids::PeerSet;
use weft_driver::{LocalEnd, RemoteEnd};

fn layout(regions: usize) -> Layout {
    let mut layout = Layout::new(2);
    for _ in 0..regions {
        let access = Access::REMOTE_READ;
        let spec = RegionSpec { len: 64, access, peers: PeerSet::first(2) };
        layout.add(spec).expect("few regions");
    }
    layout
}

/// One input.
pub fn run(bytes: &[u8]) {
    let RemoteEnd(end) = match RemoteEnd::from_bytes(bytes) {
        Ok(end) => end,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert_eq!(LocalEnd(end.clone()).to_bytes(), bytes);
    for regions in 0..4 {
        if end.check(&layout(regions)).is_ok() {
            assert_eq!(end.grants.len(), regions);
            assert!(PairEnd::new(bytes.to_vec()).is_some(), "too long to be offered");
        }
    }
}
