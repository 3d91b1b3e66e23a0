//! Calls into weft-core that must not be able to panic, whatever the input.
//!
//! The rule for adding one: pass every input through [`opaque`], else the optimiser computes the
//! call at build time, finds that this one input does not panic, and the gate has seen nothing.
//! Give every result to [`opaque`] too, so that the call is not removed. Return whether the result
//! was the expected one; the program exits with the number of the first that was not.
//!
//! Here stands what meets a peer's or a user's input: decoders, checks, configuration. The
//! machines are in `machines.rs`: they assert duties of their caller, so a panic is reachable
//! by a wrong caller, and that build links with a panic handler that exists.

use weft_core::fabric::{Access, At, Layout, Op, Region, RegionSpec};
use weft_core::ids::{Peer, PeerSet};
use weft_core::time::{Duration, Instant};
use weft_core::wire::slot::{SlotError, Stamp, TRAILER_LEN, Trailer};
use weft_core::wire::{CELL_LEN, Claim, Credit, crc32c};
use weft_core::{lane, mailbox};

use crate::voting;

/// A value the optimiser knows nothing about.
pub(crate) use core::hint::black_box as opaque;

/// The calls in order, each with what it covers. This is the place where new ones go.
const CALLS: &[fn() -> bool] =
    &[spans, peer_sets, slots, cells, layouts, mailbox_configs, lane_configs, voting::is_right];

/// Makes every call; 0 when all are as expected, else the place of the first that is not, from 1.
pub(crate) fn run() -> u8 {
    let mut place = 0;
    for call in CALLS {
        place += 1;
        if !opaque(call)() {
            return place;
        }
    }
    0
}

fn spans() -> bool {
    let late = Instant(opaque(u64::MAX - 1)).after(Duration::from_millis(opaque(u64::MAX)));
    opaque(late.since(Instant(opaque(7)))) == Duration(u64::MAX - 7)
}

fn peer_sets() -> bool {
    let mut set = PeerSet::only(Peer(opaque(63)));
    set.insert(Peer(opaque(64)));
    set.remove(Peer(opaque(1)));
    let sum: u32 = set.iter().map(|peer| u32::from(peer.0)).sum();
    opaque(sum) == 63 && opaque(set.count()) == 1
}

fn slots() -> bool {
    let mut copy: [u8; TRAILER_LEN + 40] = opaque([0xA5; TRAILER_LEN + 40]);
    let stamp = Stamp::from_word(opaque(0xA5A5_A5A5_A5A5_A5A5));
    opaque(Trailer::open(&mut copy, stamp, crc32c)) == Err(SlotError::Length)
}

fn cells() -> bool {
    let cell: [u8; CELL_LEN] = opaque([0x5A; CELL_LEN]);
    let torn = Claim::decode(&cell, crc32c).is_none() && Credit::decode(&cell, crc32c).is_none();
    let claim = Claim::Reserving { sequence: opaque(7) };
    opaque(torn) && Claim::decode(&opaque(claim.encode(crc32c)), crc32c) == Some(claim)
}

fn layouts() -> bool {
    let mut layout = Layout::new(4);
    let spec = RegionSpec {
        len: opaque(64),
        access: opaque(Access::REMOTE_WRITE),
        peers: PeerSet::only(Peer(opaque(2))),
    };
    let Ok(region) = layout.add(spec) else { return false };
    let at = |offset| At { region, offset };
    let inside = Op::FetchAdd { at: at(opaque(56)), add: 1 }.check(&layout, Peer(opaque(3)));
    let outside = Op::FetchAdd { at: at(opaque(u32::MAX)), add: 1 }.check(&layout, Peer(0));
    let nowhere = Op::FetchAdd { at: At { region: Region(opaque(9)), offset: 0 }, add: 1 };
    let allowed = layout.allows(region, Peer(opaque(2)), Access::REMOTE_WRITE);
    opaque(inside.is_ok() && outside.is_err() && nowhere.check(&layout, Peer(0)).is_err())
        && opaque(allowed)
        && opaque(layout.digest()) != 0
}

fn mailbox_configs() -> bool {
    let config = |slots| mailbox::Config::new(opaque(4), slots, opaque(256), Duration(opaque(1)));
    opaque(config(opaque(100)).is_err()) && opaque(config(opaque(1024)).is_ok())
}

fn lane_configs() -> bool {
    let config = |slots| lane::Config::new(opaque(4), slots, opaque(64));
    opaque(config(opaque(0)).is_err()) && opaque(config(opaque(8)).is_ok())
}
