//! The regions of the suite: every kind of right once.

use crate::fabric::{Access, At, INLINE_LEN, Layout, Region, RegionSpec};
use crate::ids::{Peer, PeerSet};

use super::PEERS;

pub(super) const A: Peer = Peer(0);
pub(super) const B: Peer = Peer(1);
pub(super) const C: Peer = Peer(2);
pub(super) const EVERYONE: [Peer; PEERS] = [A, B, C];

/// Everyone reads and writes; longer than any write from bytes.
pub const OPEN: Region = Region(0);
/// Everyone reads.
pub(super) const READ_ONLY: Region = Region(1);
/// Everyone writes.
pub(super) const WRITE_ONLY: Region = Region(2);
/// Everyone adds and swaps.
pub(super) const ATOMIC_ONLY: Region = Region(3);
/// Everyone does everything.
pub const WORDS: Region = Region(4);
/// [`B`] alone does everything.
pub(super) const ONLY_B: Region = Region(5);
/// No peer has a right here: source and target of local ends.
pub(super) const LOCAL: Region = Region(6);

/// The length of every region but those of long copies.
pub(super) const LEN: u32 = 128;
/// The length of [`OPEN`], in bytes; of `READ_ONLY` and `LOCAL`, too.
pub const OPEN_LEN: u32 = INLINE_LEN as u32 + LEN;

/// The layout over which the endpoints of a [`super::Harness`] are made.
///
/// # Panics
/// Never: the regions are few and their lengths are multiples of 8.
#[must_use]
pub fn layout() -> Layout {
    const READ: Access = Access::REMOTE_READ;
    const WRITE: Access = Access::REMOTE_WRITE;
    const ATOMIC: Access = Access::REMOTE_ATOMIC;
    let everyone = PeerSet::first(PEERS);
    let all = Access::all();
    let mut layout = Layout::new(PEERS as u16);
    for (region, len, access, peers) in [
        (OPEN, OPEN_LEN, READ.union(WRITE), everyone),
        (READ_ONLY, OPEN_LEN, READ, everyone),
        (WRITE_ONLY, LEN, WRITE, everyone),
        (ATOMIC_ONLY, LEN, ATOMIC, everyone),
        (WORDS, LEN, all, everyone),
        (ONLY_B, LEN, all, PeerSet::only(B)),
        (LOCAL, OPEN_LEN, Access::empty(), everyone),
    ] {
        assert_eq!(layout.add(RegionSpec { len, access, peers }), Ok(region));
    }
    layout
}

pub(super) const fn at(region: Region, offset: u32) -> At {
    At { region, offset }
}
