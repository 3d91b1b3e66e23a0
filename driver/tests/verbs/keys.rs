//! Keys and rights, as the device enforces them, past what the poster's own layout says.

use weft_core::fabric::{
    Access, Fabric, Failure, Layout, Memory, Op, PostError, Region, RegionSpec,
};
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_driver::{Config, Grant, RemoteEnd, Revocation, Way};

use crate::rig::{self, End, FIRST, at, introduce, introduce_with, run};

const OWNER: Peer = Peer(0);
const LIAR: Peer = Peer(1);
const HONEST: Peer = Peer(2);

const LEN: u32 = 64;
const SHARED: Region = Region(0);
const READ_ONLY: Region = Region(1);

/// Two regions: one for everything, one with the right `second` for `whom`.
fn layout(second: Access, whom: PeerSet) -> Layout {
    let mut layout = Layout::new(3);
    let all = PeerSet::first(3);
    for (access, peers) in [(Access::all(), all), (second, whom)] {
        layout.add(RegionSpec { len: LEN, access, peers }).unwrap();
    }
    layout
}

fn honest_layout() -> Layout {
    layout(Access::REMOTE_READ, PeerSet::first(3))
}

/// The owner, a liar that receives what `change` makes of the truth and believes in
/// `believed`, and an honest third.
fn three(
    truth: &Layout,
    believed: &Layout,
    change: impl FnOnce(&mut RemoteEnd),
) -> Option<[End; 3]> {
    let config = Config::default();
    let mut owner = rig::end(OWNER, truth, config)?;
    let mut liar = rig::end(LIAR, believed, config)?;
    let mut honest = rig::end(HONEST, truth, config)?;
    introduce_with(&mut liar, &mut owner, FIRST, change);
    introduce(&mut honest, &mut owner, FIRST);
    rig::admit(&mut liar, &mut owner, FIRST);
    rig::admit(&mut honest, &mut owner, FIRST);
    Some([owner, liar, honest])
}

/// `op` of the liar is refused by the owner's device: no byte changes, the pair is lost, and the
/// pair of the honest one goes on.
#[track_caller]
fn is_refused(ends: &mut [End; 3], op: Op<'_>) {
    let [owner, liar, honest] = ends;
    let before = [0x5a; LEN as usize];
    for region in [SHARED, READ_ONLY] {
        owner.memory().copy_in(region, 0, &before);
    }
    assert_eq!(run(liar, OWNER, op), Err(Failure::AccessDenied));
    for region in [SHARED, READ_ONLY] {
        let mut after = [0; LEN as usize];
        owner.memory().copy_out(region, 0, &mut after);
        assert_eq!(after, before, "{region:?}");
    }
    assert_eq!(rig::post(liar, OWNER, 1, op), Err(PostError::Gone));
    let word = at(SHARED, 8);
    assert_eq!(run(honest, OWNER, Op::FetchAdd { at: word, add: 1 }), Ok(0x5a5a_5a5a_5a5a_5a5a));
    assert_eq!(run(honest, OWNER, Op::Write { to: word, bytes: &[1; 8] }), Ok(0));
}

const WRITE: Op<'static> = Op::Write { to: rig_at(SHARED), bytes: &[1; 16] };
const ADD: Op<'static> = Op::FetchAdd { at: rig_at(SHARED), add: 1 };

const fn rig_at(region: Region) -> weft_core::fabric::At {
    weft_core::fabric::At { region, offset: 0 }
}

fn with_grant(change: impl FnOnce(&mut Grant)) -> impl FnOnce(&mut RemoteEnd) {
    move |end| change(end.0.grants[0].as_mut().unwrap())
}

#[test]
fn a_wrong_key_is_refused() {
    for op in [WRITE, ADD] {
        let truth = honest_layout();
        let wrong = with_grant(|grant| grant.key ^= 0x0101);
        let Some(mut ends) = three(&truth, &truth, wrong) else { return };
        is_refused(&mut ends, op);
    }
}

#[test]
fn a_range_past_the_end_of_a_region_is_refused() {
    let truth = honest_layout();
    let past = with_grant(|grant| grant.address += u64::from(LEN) - 8);
    let Some(mut ends) = three(&truth, &truth, past) else { return };
    is_refused(&mut ends, WRITE);
}

#[test]
fn a_right_that_only_the_poster_believes_in_is_refused() {
    let truth = honest_layout();
    let believed = layout(Access::all(), PeerSet::first(3));
    let to = at(READ_ONLY, 0);
    for op in [
        Op::Write { to, bytes: &[1; 8] },
        Op::FetchAdd { at: to, add: 1 },
        Op::CompareSwap { at: to, expected: 0x5a5a_5a5a_5a5a_5a5a, new: 1 },
    ] {
        let Some(mut ends) = three(&truth, &believed, |_| ()) else { return };
        is_refused(&mut ends, op);
    }
}

/// Another peer's right key, address and all: it is good only in that peer's own domain.
#[test]
fn the_key_of_another_peer_is_refused() {
    let truth = layout(Access::all(), PeerSet::only(HONEST));
    let believed = layout(Access::all(), PeerSet::first(3));
    let config = Config::default();
    let Some(mut owner) = rig::end(OWNER, &truth, config) else { return };
    let mut honest = rig::end(HONEST, &truth, config).unwrap();
    let mut liar = rig::end(LIAR, &believed, config).unwrap();
    let mut stolen = None;
    introduce_with(&mut honest, &mut owner, FIRST, |end| stolen = end.0.grants[1]);
    introduce_with(&mut liar, &mut owner, FIRST, |end| {
        assert_eq!(end.0.grants[1], None, "the key is not handed out to others");
        end.0.grants[1] = stolen;
    });
    rig::admit(&mut honest, &mut owner, FIRST);
    rig::admit(&mut liar, &mut owner, FIRST);
    let op = Op::Write { to: at(READ_ONLY, 0), bytes: &[1; 8] };
    is_refused(&mut [owner, liar, honest], op);
}

/// A fenced peer comes back with the key of its earlier incarnation.
#[test]
fn a_fenced_key_is_refused_in_the_next_life() {
    let truth = honest_layout();
    let mut old = None;
    let remember = |end: &mut RemoteEnd| old = Some(end.0.grants.clone());
    let Some([mut owner, liar, honest]) = three(&truth, &truth, remember) else { return };
    owner.fence(LIAR).unwrap();
    drop(liar);

    let incarnations = (Incarnation(2), Incarnation(1));
    let mut liar = rig::end(LIAR, &truth, Config::default()).unwrap();
    introduce_with(&mut liar, &mut owner, incarnations, |end| end.0.grants = old.unwrap());
    rig::admit(&mut liar, &mut owner, incarnations);
    is_refused(&mut [owner, liar, honest], WRITE);
}

/// Both ways of taking a right back do so, for the very next write.
#[test]
fn a_right_that_was_taken_back_is_refused_at_once() {
    let Some(device) = rig::device(OWNER) else { return };
    for way in [Way::Deregister, Way::Invalidate] {
        for len in [64, 1 << 20] {
            let one = Revocation::of(way, &device, len, rig::now).unwrap();
            assert_eq!(one.after, Err(Failure::AccessDenied), "{way:?} of {len} bytes");
            assert!(one.is_unchanged, "{way:?} of {len} bytes");
        }
    }
}
