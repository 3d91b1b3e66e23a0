//! Frames of a third member, any bytes, into two members of a group that send to each other.
//!
//! ```text
//!   byte 0   what happens                 then
//!   0..      a frame is sent to a member  kind, length, so many bytes
//!   8..      a member sends a message     length
//!   10..      it enters a barrier and an all-gather
//!   12..     members poll and receive
//!   15       the third is removed
//! ```
//!
//! Members do not lie, so nothing is promised of what is delivered: only that no member panics, and
//! that a delivery lies in the window.

use weft_core::decision::Decision;
use weft_core::fabric::loopback::{Loopback, Net};
use weft_core::fabric::{Completion, Fabric, Layout, Memory};
use weft_core::group::{
    Class, Config, Costs, Delivery, GroupId, Groups, Regions, Sizes, Spread, Tree,
};
use weft_core::ids::{Incarnation, Peer, Term};
use weft_core::lane::LaneWriter;
use weft_core::time::Instant;
use weft_core::wire::group::{EAGER_MAX, FRAME_LEN_MAX};

const PEERS: usize = 3;
const WORDS: usize = 4096;
const EAGER: u16 = 32;
const SLOTS: u32 = 8;
const FIRST: Incarnation = Incarnation(1);
const STRANGER: Peer = Peer(2);
const WORLD: GroupId = GroupId(0);

type Member<'net> = (Loopback<'net, PEERS, WORDS>, Groups<PEERS, 1>);

fn sizes() -> Sizes {
    Sizes {
        peers: PEERS as u16,
        groups: 1,
        entries: 4,
        blocks: 4,
        block_len: 16,
        eager: EAGER,
        lane_slots: SLOTS,
        tree: Tree { class: Class::Binary, costs: Costs::postal(1) },
        spread: Spread::Pipeline,
    }
}

fn start<'net>(net: &'net Net<PEERS, WORDS>, at: (Config, Regions), me: Peer) -> Member<'net> {
    let fabric = net.endpoint(me, FIRST);
    let mut groups = Groups::new(&fabric, at.0, at.1, FIRST);
    groups.open(&fabric, WORLD, &[Peer(0), Peer(1), STRANGER]).expect("a valid list");
    (fabric, groups)
}

fn admit((fabric, groups): &mut Member<'_>, peer: Peer) {
    groups.prepare(fabric, peer, FIRST);
    fabric.admit(peer, FIRST).expect("a first incarnation");
    groups.handle_admitted(peer);
}

fn poll((fabric, groups): &mut Member<'_>) {
    let mut done = [Completion::NONE; 8];
    let count = fabric.poll(Instant(0), &mut done);
    for completion in &done[..count] {
        groups.handle_completion(fabric, completion);
    }
    groups.poll(fabric);
}

fn receive((fabric, groups): &mut Member<'_>) {
    for _ in 0..8 {
        let Some(delivery) = groups.receive(fabric, WORLD) else { return };
        if let Delivery::Chunk(chunk) = delivery {
            let mut bytes = vec![0; chunk.len as usize];
            fabric.memory().copy_out(chunk.at.region, chunk.at.offset, &mut bytes);
            let _ = groups.release(fabric, chunk.receipt);
        }
    }
}

/// Into a barrier and an all-gather, and out of those that are over.
fn call((fabric, groups): &mut Member<'_>) {
    let _ = groups.arrive(fabric, WORLD);
    let _ = groups.leave(fabric, WORLD);
    let _ = groups.all_gather(fabric, WORLD, b"value");
    for (_, at, len) in groups.gathered(fabric, WORLD).iter().flat_map(|it| it.values).flatten() {
        fabric.memory().copy_out(at.region, at.offset, &mut vec![0; len as usize]);
    }
    groups.end_gather(fabric, WORLD);
}

/// One input.
pub fn run(mut bytes: &[u8]) {
    let config = Config::new(sizes()).expect("valid sizes");
    let mut layout = Layout::new(PEERS as u16);
    let regions = config.add_regions(&mut layout).expect("there is room");
    let frame = FRAME_LEN_MAX as u16 - EAGER_MAX + EAGER;
    let (lane_config, lane_regions) = super::lanes(&layout, frame, SLOTS);
    let net: Net<PEERS, WORDS> = Net::new(layout);
    let mut members = [Peer(0), Peer(1)].map(|me| start(&net, (config, regions), me));
    let mut stranger = net.endpoint(STRANGER, FIRST);
    for member in &mut members {
        let me = member.0.me();
        admit(member, Peer(1 - me.0));
        admit(member, STRANGER);
        stranger.admit(me, FIRST).expect("a first incarnation");
    }
    let mut writers = [Peer(0), Peer(1)]
        .map(|to| LaneWriter::new(&stranger, lane_config, lane_regions, FIRST, (to, FIRST)));
    let mut next = |count: usize| {
        let taken = bytes.split_off(..count.min(bytes.len())).unwrap_or(&[]);
        (!taken.is_empty() || count == 0).then_some(taken)
    };
    while let Some(&[op]) = next(1) {
        let who = usize::from(op & 1);
        match op % 16 {
            0..8 => {
                let Some(&[kind, len]) = next(2) else { return };
                let Some(frame) = next(usize::from(len)) else { return };
                let _ = writers[who].send(&mut stranger, u16::from(kind), frame);
                let mut done = [Completion::NONE; 8];
                stranger.poll(Instant(0), &mut done);
            }
            10 | 11 => call(&mut members[who]),
            8 | 9 => {
                let Some(&[len]) = next(1) else { return };
                let (fabric, groups) = &mut members[who];
                let _ = groups.broadcast(fabric, WORLD, 0, &vec![len; usize::from(len)]);
            }
            12..15 => members.iter_mut().for_each(receive),
            _ => {
                for (fabric, groups) in &mut members {
                    let decision =
                        Decision { term: Term::of_epoch(1), removed: STRANGER, last: FIRST };
                    groups.remove(fabric, decision).expect("a peer of loopback is fenced");
                }
            }
        }
        members.iter_mut().for_each(poll);
    }
}
