//! The smallest configurations that show one behaviour each. The explorer walks them first, so that
//! it finds a planted bug soon.
//!
//! | what happens | members, W | shows |
//! |---|---|---|
//! | a window of one slot is used again | 2, 3; 1 | N1 |
//! | a member begins its next incarnation | 2, 3; 4 | |
//! | a member's memory is lost with its first incarnation | 3; 8 | |
//! | a member is removed and returns | 3; 8 | |
//! | it does, and broadcasts in both epochs | 2; 8 | L1 |
//! | it does beside a two-faced origin | 3; 8 | |
//! | it does, and an origin signs what it sends later | 3; 8, signed | |
//! | two members broadcast, and a message passes reads about the other's | 3; 8 | |
//! | a work is torn, or a pair is lost | 2; 4 | T3 |
//! | a two-faced origin is removed | 3; 8 | U8, T4 |
//! | a replayer is removed beside a two-faced origin | 4; 8 | U5 |
//! | a liar writes into another's ring | 3; 8 | T5 |
//! | an origin rewrites its message | 3; 8 | T1 |
//! | a replayer shows a slot that belongs elsewhere | 3; 8, signed | S6, S8, S9, S10 |
//! | an origin signs one face, or none | 3; 8, signed | S3, S4 |
//! | it signs a further message | 3; 8, signed | S7 |

use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::neb::{Membership, Retry, Sizes};
use weft_core::time::Duration;
use weft_core::wire::broadcast::{Form, Header, Stamp};

use super::Broadcasts;
use super::liar::{restamp, unsign};
use super::node::payload;
use super::small::{Lie, PAUSES, rounds};
use crate::protocol::{Fencing, Pace, Small};

const O: Peer = Peer(0);
const P: Peer = Peer(1);
const Q: Peer = Peer(2);

/// All of them.
pub(super) fn all() -> Vec<Small<Broadcasts>> {
    let mut all = vec![
        window_of_one(2, Pace::AtWill),
        mishap(),
        two_origins(),
        foreign_writer(),
        rewriting_origin(),
        origin_removed(),
        misplacing_replayer(),
        signed_faces("one face unsigned", [false, true]),
        signed_faces("two unsigned faces", [false, false]),
        signed_later(),
        window_of_one(3, Pace::AtOnce),
        next_epoch(2, Pace::AtWill),
        next_epoch(3, Pace::AtOnce),
        memory_lost(),
        replayer_removed(),
        returned(),
        broadcasts_in_both_epochs(),
        returned_beside_two_faces(),
        returned_beside_a_later_face(),
    ];
    for small in &mut all {
        small.name = format!("{}, {}", shape(small), small.name);
    }
    all
}

/// Members, slots, form and pace, as a name begins.
fn shape(small: &Small<Broadcasts>) -> String {
    let config = &small.protocol.config;
    let form = if small.protocol.is_signed() { "signed" } else { "unsigned" };
    let pace = match small.pace {
        Pace::AtWill => "",
        Pace::AtOnce => ", reads handled at once",
    };
    format!("n = {}, W = {}, {form}{pace}", config.peers(), config.slots())
}

fn sizes(peers: u16, slots: u32, form: Form) -> Sizes {
    Sizes {
        peers,
        slots,
        depth: if slots == 1 { 1 } else { 2 },
        message_len: 16,
        form,
        membership: Membership::Fixed,
        retry: Retry { after: Duration(1), after_max: Duration(1) },
    }
}

/// A configuration without faults in which `O` broadcasts that many messages, if it is correct, and
/// liars follow `script`.
fn small(
    name: &str,
    run: Broadcasts,
    messages: u32,
    script: impl FnOnce(&Broadcasts) -> Vec<Lie>,
) -> Small<Broadcasts> {
    let mut run = run;
    run.script = script(&run);
    let liars = run.liars;
    let peers = (0..run.config.peers()).map(Peer);
    let mut orders: Vec<u32> = peers.map(|peer| rounds(&run.script, peer)).collect();
    if !liars.contains(O) {
        orders[O.index()] = messages;
    }
    let fencing = if run.doomed.is_empty() { Fencing::FencesOnly } else { Fencing::Acts };
    let small = Small::of(name, run, orders);
    Small { crashes: 0, pace: Pace::AtOnce, fencing, ..small }
}

fn honest(run: &Broadcasts) -> Vec<Lie> {
    debug_assert!(run.liars.is_empty());
    Vec::new()
}

fn only(peer: Peer) -> PeerSet {
    PeerSet::only(peer)
}

/// `O` sends `to` one byte as its message `seq`.
fn send(run: &Broadcasts, to: Peer, seq: u64, face: u8) -> Lie {
    let at = run.config.written_at(&run.regions, O, seq);
    Lie { by: O, to, at, bytes: run.sealed((O, O), seq, &[face]) }
}

/// `Q` shows `bytes` where message `seq` of `O` belongs.
fn show(run: &Broadcasts, seq: u64, bytes: Vec<u8>) -> Lie {
    Lie { by: Q, to: Q, at: run.config.exposed_at(&run.regions, O, seq), bytes }
}

fn window_of_one(peers: u16, pace: Pace) -> Small<Broadcasts> {
    let run = Broadcasts::new(sizes(peers, 1, Form::Unsigned), PeerSet::EMPTY, PeerSet::EMPTY);
    let small = small("two messages in a window of one", run, 2, honest);
    Small { pace, ..small }
}

fn next_epoch(peers: u16, pace: Pace) -> Small<Broadcasts> {
    let run = Broadcasts::new(sizes(peers, 4, Form::Unsigned), PeerSet::EMPTY, PeerSet::EMPTY);
    Small { pace, crashes: 1, starts: 1, ..small("one message", run, 1, honest) }
}

fn memory_lost() -> Small<Broadcasts> {
    let run = Broadcasts::new(sizes(3, 8, Form::Unsigned), only(O), PeerSet::EMPTY);
    let run = run.with_forgetful(P);
    let small = small("two faces, and the memory of 1 is lost", run, 1, |run| {
        vec![send(run, P, 1, b'y'), send(run, Q, 1, b'n')]
    });
    Small { crashes: 1, starts: 1, ..small }
}

fn mishap() -> Small<Broadcasts> {
    let run = Broadcasts::new(sizes(2, 4, Form::Unsigned), PeerSet::EMPTY, PeerSet::EMPTY);
    Small { pace: Pace::AtWill, faults: 1, ..small("one message", run, 1, honest) }
}

/// `P` broadcasts twice, the second time while its reads about a message of `O` may be out.
fn two_origins() -> Small<Broadcasts> {
    let run = Broadcasts::new(sizes(3, 8, Form::Unsigned), PeerSet::EMPTY, PeerSet::EMPTY);
    let mut small = small("two origins", run, 1, honest);
    small.orders[P.index()] = 2;
    Small { pace: Pace::AtWill, ..small }
}

fn origin_removed() -> Small<Broadcasts> {
    let sizes = Sizes { membership: Membership::Decided, ..sizes(3, 8, Form::Unsigned) };
    let run = Broadcasts::new(sizes, only(O), only(O));
    let small = small("a two-faced origin that is removed", run, 1, |run| {
        vec![send(run, P, 1, b'y'), send(run, Q, 1, b'n')]
    });
    Small { crashes: 1, ..small }
}

fn replayer_removed() -> Small<Broadcasts> {
    let sizes = Sizes { membership: Membership::Decided, ..sizes(4, 8, Form::Unsigned) };
    let run = Broadcasts::new(sizes, only(O), only(Q));
    let small = small("a two-faced origin, and 2 is removed", run, 1, |run| {
        vec![send(run, P, 1, b'y'), send(run, Q, 1, b'y'), send(run, Peer(3), 1, b'n')]
    });
    Small { crashes: 1, ..small }
}

/// `Q` is removed when it ends, and returns. What a liar must show then, it shows first.
fn returning(
    name: &str,
    (form, liars): (Form, PeerSet),
    messages: u32,
    script: impl FnOnce(&Broadcasts) -> Vec<Lie>,
) -> Small<Broadcasts> {
    let sizes = Sizes { membership: Membership::Decided, ..sizes(3, 8, form) };
    let run = Broadcasts::new(sizes, liars, only(Q));
    let small = small(name, run, messages, |run| {
        let (at, cell) = run.counted(Q);
        let counts = liars.iter().map(|by| Lie { by, to: by, at, bytes: cell.to_vec() });
        counts.chain(script(run)).collect()
    });
    Small { crashes: 1, starts: 1, ..small }
}

fn returned() -> Small<Broadcasts> {
    returning("2 is removed and returns", (Form::Unsigned, PeerSet::EMPTY), 1, honest)
}

fn broadcasts_in_both_epochs() -> Small<Broadcasts> {
    let sizes = Sizes { membership: Membership::Decided, ..sizes(2, 8, Form::Unsigned) };
    let run = Broadcasts::new(sizes, PeerSet::EMPTY, only(P));
    let name = "1 is removed, returns, and broadcasts in both epochs";
    let small = small(name, run, 0, honest);
    Small { orders: vec![0, 2], crashes: 1, starts: 1, ..small }
}

fn returned_beside_two_faces() -> Small<Broadcasts> {
    returning("two faces, and 2 is removed and returns", (Form::Unsigned, only(O)), 1, |run| {
        vec![send(run, P, 1, b'y'), send(run, Q, 1, b'n')]
    })
}

/// The face that `Q` exposes in its first epoch is unsigned, and rewritten by a signed one.
fn returned_beside_a_later_face() -> Small<Broadcasts> {
    let name = "a later face is signed, and 2 is removed and returns";
    returning(name, (Form::Signed, only(O)), 1, |run| {
        let faces = [(P, b'y', false), (Q, b'y', false), (Q, b'n', true)];
        faces.into_iter().map(|(to, face, signed)| sign(send(run, to, 1, face), signed)).collect()
    })
}

fn foreign_writer() -> Small<Broadcasts> {
    let run = Broadcasts::new(sizes(3, 8, Form::Unsigned), only(Q), PeerSet::EMPTY);
    small("a liar writes into another's ring", run, 1, |run| {
        vec![Lie { by: Q, ..send(run, P, 1, b'y') }]
    })
}

fn rewriting_origin() -> Small<Broadcasts> {
    let run = Broadcasts::new(sizes(3, 8, Form::Unsigned), only(O), PeerSet::EMPTY);
    small("an origin rewrites what it said", run, 1, |run| {
        vec![send(run, P, 1, b'n'), send(run, Q, 1, b'n'), send(run, P, 1, b'y')]
    })
}

/// The slots that the replayer shows in the place of the first message: its own, the first on
/// another pass, the second under the first number, and the second.
fn misplacing_replayer() -> Small<Broadcasts> {
    let run = Broadcasts::new(sizes(3, 8, Form::Signed), only(Q), PeerSet::EMPTY);
    small("a replayer shows what belongs elsewhere", run, 2, |run| {
        let said = |seq: u64| run.sealed((O, O), seq, &payload(O, Incarnation(1), seq as u32 - 1));
        let mut passed = said(1);
        let due = run.config.stamp(O, 1);
        restamp(&mut passed, Stamp { generation: due.generation + 1, ..due });
        let mut renumbered = said(2);
        restamp(&mut renumbered, due);
        let shown = [run.sealed((Q, Q), 1, b"mine"), passed, renumbered, said(2)];
        shown.into_iter().map(|bytes| show(run, 1, bytes)).collect()
    })
}

/// Two faces, of which only some are signed.
fn signed_faces(name: &str, signed: [bool; 2]) -> Small<Broadcasts> {
    let run = Broadcasts::new(sizes(3, 8, Form::Signed), only(O), PeerSet::EMPTY);
    let small = small(name, run, 1, |run| {
        let faces = [(P, b'y', signed[0]), (Q, b'n', signed[1])];
        faces.into_iter().map(|(to, face, signed)| sign(send(run, to, 1, face), signed)).collect()
    });
    Small { waits: PAUSES, ..small }
}

/// As above, and the member with the unsigned message receives a further, signed one.
fn signed_later() -> Small<Broadcasts> {
    let run = Broadcasts::new(sizes(3, 8, Form::Signed), only(O), PeerSet::EMPTY);
    let small = small("one face unsigned, and a later message", run, 1, |run| {
        vec![sign(send(run, P, 1, b'y'), false), send(run, P, 2, b'z'), send(run, Q, 1, b'n')]
    });
    Small { waits: PAUSES, ..small }
}

fn sign(mut lie: Lie, signed: bool) -> Lie {
    debug_assert!(Header::peek(&lie.bytes).is_ok());
    if !signed {
        unsign(&mut lie.bytes);
    }
    lie
}
