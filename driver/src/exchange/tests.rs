//! Ends of pairs: round trips, and nothing but an end is taken for one.

use proptest::prelude::*;
use weft_core::fabric::{Access, RegionSpec};
use weft_core::ids::PeerSet;

use super::*;

fn end() -> End {
    End {
        queue_pair: 17,
        first_packet: NUMBER_MAX,
        local_id: 3,
        gid: Gid([7; 16]),
        mtu: 3,
        reads_answered: 16,
        grants: vec![Some(Grant { address: 1 << 40, key: 0xabcd }), None],
    }
}

fn layout(regions: usize) -> Layout {
    let mut layout = Layout::new(2);
    for _ in 0..regions {
        let access = Access::REMOTE_READ;
        layout.add(RegionSpec { len: 64, access, peers: PeerSet::first(2) }).unwrap();
    }
    layout
}

fn any_end() -> impl Strategy<Value = End> {
    let grant = proptest::option::of(
        (any::<u64>(), any::<u32>()).prop_map(|(address, key)| Grant { address, key }),
    );
    let numbers = (0..=NUMBER_MAX, 0..=NUMBER_MAX, any::<u16>(), MTU_CODES, 1..=u8::MAX);
    (numbers, any::<[u8; 16]>(), proptest::collection::vec(grant, 0..128)).prop_map(
        |((queue_pair, first_packet, local_id, mtu, reads_answered), gid, grants)| End {
            queue_pair,
            first_packet,
            local_id,
            gid: Gid(gid),
            mtu,
            reads_answered,
            grants,
        },
    )
}

proptest! {
    #[test]
    fn an_end_comes_back_as_it_was_sent(end in any_end()) {
        let bytes = LocalEnd(end.clone()).to_bytes();
        prop_assert_eq!(RemoteEnd::from_bytes(&bytes), Ok(RemoteEnd(end)));
    }

    #[test]
    fn whatever_is_taken_for_an_end_is_one(
        bytes in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        if let Ok(RemoteEnd(end)) = RemoteEnd::from_bytes(&bytes) {
            prop_assert_eq!(LocalEnd(end).to_bytes(), bytes);
        }
    }
}

#[test]
fn every_truncation_and_extension_is_refused() {
    let mut bytes = LocalEnd(end()).to_bytes();
    for len in 0..bytes.len() {
        let found = RemoteEnd::from_bytes(&bytes[..len]);
        assert_eq!(found, Err(EndError::Length { found: len }));
    }
    bytes.push(0);
    assert_eq!(RemoteEnd::from_bytes(&bytes), Err(EndError::Length { found: bytes.len() }));
}

#[test]
fn every_flipped_byte_is_refused_or_makes_another_end() {
    let bytes = LocalEnd(end()).to_bytes();
    for index in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[index] ^= 0xff;
        if let Ok(RemoteEnd(other)) = RemoteEnd::from_bytes(&flipped) {
            assert_ne!(other, end(), "byte {index} is not looked at");
        }
    }
}

#[test]
fn an_end_of_another_layout_is_refused() {
    assert_eq!(end().check(&layout(2)), Ok(()));
    let refused = end().check(&layout(3));
    assert_eq!(refused, Err(EndError::Regions { expected: 3, found: 2 }));
}

#[test]
fn a_region_past_the_end_of_the_address_space_is_refused() {
    let mut end = end();
    end.grants[1] = Some(Grant { address: u64::MAX - 62, key: 1 });
    assert_eq!(end.check(&layout(2)), Err(EndError::Address(Region(1))));
}

#[test]
fn numbers_that_no_device_has_are_refused() {
    for broken in [
        End { queue_pair: NUMBER_MAX + 1, ..end() },
        End { first_packet: NUMBER_MAX + 1, ..end() },
        End { mtu: 0, ..end() },
        End { mtu: 6, ..end() },
        End { reads_answered: 0, ..end() },
    ] {
        assert_eq!(broken.check(&layout(2)), Err(EndError::OutOfRange));
        let bytes = LocalEnd(broken).to_bytes();
        assert_eq!(RemoteEnd::from_bytes(&bytes), Err(EndError::OutOfRange));
    }
}
