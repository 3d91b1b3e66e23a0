//! A writer that stalls inside a post, between its look at the gate and the copy.

use weft_core::fabric::{
    Access, At, CompletionFlags, Fabric, Layout, Memory, Op, PostError, Region, RegionSpec, Work,
    WorkId,
};
use weft_core::ids::{Incarnation, Peer, PeerSet};

use crate::world::Choice;
use crate::{SimFabric, World};

const OWNER: Peer = Peer(0);
const WRITER: Peer = Peer(1);
const PLACE: At = At { region: Region(0), offset: 0 };

/// Two that have admitted each other; the writer posts a write, and the owner is restarted.
fn posted_before_the_restart(stalls: bool) -> SimFabric<World> {
    let mut layout = Layout::new(2);
    let spec = RegionSpec { len: 8, access: Access::REMOTE_WRITE, peers: PeerSet::first(2) };
    layout.add(spec).unwrap();
    let mut fabric = SimFabric::new(World::untimed(layout, stalls), OWNER);
    for peer in [OWNER, WRITER] {
        fabric.world().start_peer(peer);
    }
    fabric.admit(WRITER, Incarnation(1)).unwrap();
    fabric.turn_to(WRITER);
    fabric.admit(OWNER, Incarnation(1)).unwrap();
    post(&mut fabric).unwrap();
    assert_eq!(fabric.world().is_stalled(WRITER), stalls);
    fabric.world().kill(OWNER);
    fabric.world().start_peer(OWNER);
    fabric
}

fn post(fabric: &mut SimFabric<World>) -> Result<(), PostError> {
    let op = Op::Write { to: PLACE, bytes: &[7; 8] };
    let flags = CompletionFlags::empty();
    fabric.post(OWNER, Work { id: WorkId::new(1, 0), op, flags })
}

/// What the owner finds once the write has landed or bounced.
fn found(mut fabric: SimFabric<World>) -> u64 {
    fabric.world().choose(Choice::Land(WRITER, OWNER));
    assert!(!fabric.world().is_stalled(WRITER));
    fabric.turn_to(OWNER);
    fabric.memory().load(PLACE.region, PLACE.offset)
}

#[test]
fn its_write_lands_in_the_next_incarnation_of_the_owner() {
    assert_eq!(found(posted_before_the_restart(true)), u64::from_le_bytes([7; 8]));
}

#[test]
fn without_a_stall_it_bounces() {
    assert_eq!(found(posted_before_the_restart(false)), 0);
}

#[test]
fn the_next_post_finds_the_gate_shut() {
    let mut fabric = posted_before_the_restart(true);
    fabric.world().choose(Choice::Land(WRITER, OWNER));
    assert_eq!(post(&mut fabric), Err(PostError::Gone));
}
