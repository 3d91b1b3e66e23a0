//! A write that is apart lands before an earlier read in some runs, and no other write does.

use std::collections::BTreeSet;

use weft_core::fabric::{
    Access, At, Completion, CompletionFlags, Fabric, Layout, Memory, Op, Region, RegionSpec, Work,
    WorkId,
};
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::time::{Duration, Instant};

use crate::fault::Faults;
use crate::world::Choice;
use crate::{SimFabric, Trace, World};

const TARGET: Peer = Peer(0);
const POSTER: Peer = Peer(1);
const SHOWN: At = At { region: Region(0), offset: 0 };
const LANDING: At = At { region: Region(0), offset: 8 };

fn layout() -> Layout {
    let mut layout = Layout::new(2);
    let spec = RegionSpec { len: 16, access: Access::all(), peers: PeerSet::first(2) };
    layout.add(spec).unwrap();
    layout
}

/// A read of a word and, behind it, a write to it.
fn posted(world: World, flags: CompletionFlags) -> SimFabric<World> {
    let mut fabric = SimFabric::new(world, TARGET);
    for peer in [TARGET, POSTER] {
        fabric.world().start_peer(peer);
    }
    fabric.admit(POSTER, Incarnation(1)).unwrap();
    fabric.turn_to(POSTER);
    fabric.admit(TARGET, Incarnation(1)).unwrap();
    let read = Op::Read { from: SHOWN, into: LANDING, len: 8 };
    let write = Op::Write { to: SHOWN, bytes: &7_u64.to_le_bytes() };
    for (number, op) in (0..).zip([read, write]) {
        fabric.post(TARGET, Work { id: WorkId::new(1, number), op, flags }).unwrap();
    }
    fabric
}

/// What the read saw, and the order of the completions.
fn run(seed: u64, flags: CompletionFlags) -> (u64, [u64; 2]) {
    let (forever, none) = (Duration(u64::MAX), Faults::none());
    let mut fabric = posted(World::timed(layout(), seed, forever, none, Trace::off()), flags);
    while fabric.world().advance().is_some() {}
    let mut done = [Completion::NONE; 2];
    assert_eq!(fabric.poll(Instant(0), &mut done), 2);
    let seen = fabric.memory().load(LANDING.region, LANDING.offset);
    (seen, done.map(|done| done.id.detail()))
}

#[test]
fn only_a_write_apart_passes_a_read_and_it_completes_behind_it() {
    let seen = |flags| (0..64).map(|seed| run(seed, flags)).collect::<BTreeSet<_>>();
    let apart = seen(CompletionFlags::APART);
    assert_eq!(apart, BTreeSet::from([(0, [0, 1]), (7, [0, 1])]));
    assert_eq!(seen(CompletionFlags::empty()), BTreeSet::from([(0, [0, 1])]));
}

#[test]
fn an_explorer_chooses_it() {
    let (land, overtake) = (Choice::Land(POSTER, TARGET), Choice::Overtake(POSTER, TARGET));
    let plain = posted(World::untimed(layout(), false), CompletionFlags::empty());
    assert_eq!(plain.clone().world().choices(), [land]);
    let mut apart = posted(World::untimed(layout(), false), CompletionFlags::APART);
    assert_eq!(apart.world().choices(), [land, overtake]);
    apart.world().choose(overtake);
    assert_eq!(apart.world().choices(), [land], "its completion waits for the read's");
    apart.world().choose(land);
    assert_eq!(apart.memory().load(LANDING.region, LANDING.offset), 7);
}
