//! A component that is killed in the middle of its stream, again and again, and comes back.
//!
//! The child is a real process with a device of its own open; it is killed by SIGKILL at a
//! message of the parent's choosing, fenced, and started again as the next incarnation.

use std::sync::Arc;

use weft_core::ids::Incarnation;
use weft_driver::Heap;

use crate::child::{self, PARENT, PEER, PeerProcess};
use crate::member::{Member, plan};
use crate::rig::{self, FIRST};

const INCARNATIONS: u32 = 4;

fn payload(incarnation: Incarnation, number: u32) -> Vec<u8> {
    format!("incarnation {} says {number}", incarnation.0).into_bytes()
}

/// Starts the next incarnation of the child and admits it.
fn start(owner: &mut Member, incarnation: Incarnation) -> PeerProcess {
    let mine = owner.endpoint.fabric().end().prepare(PEER, incarnation).unwrap().to_bytes();
    let (process, theirs) = PeerProcess::spawn("stream::stream", incarnation, &mine);
    owner.endpoint.fabric().end().connect(PEER, theirs).unwrap();
    owner.endpoint.admit(PEER, incarnation).unwrap();
    process
}

/// Of each incarnation a gapless prefix of its stream is delivered, and nothing of it after its
/// fence: what was put is there, what was only reserved is skipped.
#[test]
fn a_component_killed_in_its_stream_starts_again_as_the_next_incarnation() {
    let memory = Arc::new(Heap::new(plan().layout()));
    let Some(mut owner) = Member::begin(PARENT, FIRST.0, memory) else { return };
    let mut delivered = Vec::new();
    for incarnation in (1..=INCARNATIONS).map(Incarnation) {
        let mut process = start(&mut owner, incarnation);
        let mut due = 0;
        while due < 20 * incarnation.0 {
            let (sender, found) = owner.await_message();
            assert_eq!((sender, found), (PEER, payload(incarnation, due)));
            due += 1;
        }
        process.kill();
        owner.endpoint.fence(PEER).unwrap();
        // All that it put before is there already, and what it only reserved is given up.
        rig::until("the mailbox to be worked off", || {
            owner.turn();
            if let Some(found) = owner.take() {
                assert_eq!(found, (PEER, payload(incarnation, due)));
                due += 1;
                return None;
            }
            (owner.endpoint.owed() == 0).then_some(())
        });
        delivered.push(due);
    }
    let skipped = owner.endpoint.counters().mailbox.skipped;
    println!("delivered of each incarnation: {delivered:?}; tickets skipped: {skipped}");
}

/// The child's half: puts numbered messages until it is killed.
#[test]
fn stream() {
    let Some(incarnation) = child::incarnation() else { return };
    let memory = Arc::new(Heap::new(plan().layout()));
    let mut me = Member::begin(PEER, incarnation, memory).expect("the parent has a device");
    let answer = child::introduce(me.endpoint.fabric().end());
    me.endpoint.admit(PARENT, FIRST.0).unwrap();
    answer.give();
    for number in 0.. {
        me.put(PARENT, &[&payload(incarnation, number)]);
    }
}
