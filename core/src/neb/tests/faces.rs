//! An origin with two faces, and every interleaving of its members' steps.
//!
//! Two steps of a member are visible to others: it exposes its copy, and it reads another's. So a
//! member executes one `Expose`, which copies what it received, exposes it and posts its reads, and
//! then one `Read` for each other member, in any order. The time at which it handles a read has no
//! effect on others. These are all interleavings; the explorer covers more slots, rewrites, crashes
//! and liars among the replayers (`weft sim --explore --protocol neb`).

use std::vec::Vec;

use super::cluster::{Cluster, World};
use crate::ids::{Peer, PeerSet};

const O: Peer = Peer(0);

/// Turns in which all completed reads are handled and reported.
const TURNS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Expose(Peer),
    /// The first reads what the second exposes.
    Read(Peer, Peer),
}

/// What each member but the origin receives, if anything.
type Faces = &'static [Option<&'static [u8]>];

fn events(faces: Faces) -> Vec<Event> {
    let members = || (1..=faces.len() as u16).map(Peer);
    let receivers = members().zip(faces).filter(|(_, face)| face.is_some());
    let mut events = Vec::new();
    for (me, _) in receivers {
        events.push(Event::Expose(me));
        let others = members().filter(|other| *other != me);
        events.extend(others.map(|other| Event::Read(me, other)));
    }
    events
}

/// Calls `visit` with every order of `left` in which each member exposes before it reads.
fn orders(done: &mut Vec<Event>, left: &[Event], visit: &mut impl FnMut(&[Event])) {
    if left.is_empty() {
        visit(done);
    }
    for (at, event) in left.iter().enumerate() {
        let is_early = matches!(event, Event::Read(me, _) if left.contains(&Event::Expose(*me)));
        if !is_early {
            let rest: Vec<Event> = [&left[..at], &left[at + 1..]].concat();
            done.push(*event);
            orders(done, &rest, visit);
            done.pop();
        }
    }
}

/// Plays one order. Returns how many members report a conflict.
fn play<const N: usize>(faces: Faces, order: &[Event]) -> usize {
    let world = World::<N>::new();
    let mut cluster = Cluster::new(&world);
    for node in &mut cluster.nodes {
        node.fabric.holds = PeerSet::first(N);
    }
    for event in order {
        match *event {
            Event::Expose(me) => {
                let face = faces[me.index() - 1].expect("it received a message");
                cluster.forge(O, me, 1, &world.slot(O, 1, face));
                cluster.turn_of(me);
            }
            Event::Read(me, other) => assert!(cluster.node(me).fabric.land(other), "{order:?}"),
        }
    }
    for _ in 0..TURNS {
        cluster.turn();
    }
    assert_eq!(cluster.check_safety(), Ok(()), "{order:?}");
    cluster.nodes.iter().filter(|node| !node.conflicts.is_empty()).count()
}

/// Plays every order, and returns how many there are.
fn play_all<const N: usize>(faces: Faces) -> usize {
    let mut count = 0;
    orders(&mut Vec::new(), &events(faces), &mut |order| {
        count += 1;
        assert!(play::<N>(faces, order) > 0, "of two that read each other one sees it: {order:?}");
    });
    count
}

#[test]
fn every_interleaving_of_two_faces_among_three() {
    assert_eq!(play_all::<3>(&[Some(b"yes"), Some(b"no")]), 6);
}

/// Members are symmetric: which of them receives which face does not matter.
#[test]
fn every_interleaving_of_two_faces_among_four() {
    assert_eq!(play_all::<4>(&[Some(b"yes"), Some(b"no"), None]), 80);
    assert_eq!(play_all::<4>(&[Some(b"yes"), Some(b"no"), Some(b"no")]), 13_440);
}
