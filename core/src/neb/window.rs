//! How much each member has delivered, as far as it has shown (N-1, N-9).
//!
//! A slot, in the own ring or in the replay region, may be reused once every live member has shown
//! that it delivered the message there. The whole progress of a member is read when it seems to be
//! half a window behind, and again after a pause while it still does. A liar's progress does no
//! harm: a slot waits for every other member too.

use super::config::{Retry, Shown};
use super::map::Map;
use super::membership::Members;
use super::work::Errand;
use crate::fabric::{At, CompletionFlags, Fabric, Memory, Op, PostError, Work};
use crate::ids::{Peer, PeerSet};
use crate::time::Instant;
use crate::wire::{CELL_LEN, Progress};

/// The progress that all members have shown, and the members to ask.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Window<const PEERS: usize> {
    /// By member, then by origin: the last message shown as delivered.
    shown: [[u64; PEERS]; PEERS],
    /// The members that seem far behind.
    lagging: PeerSet,
    reading: PeerSet,
    /// Members whose reads under way are of an epoch that is not counted any more.
    stale: PeerSet,
    /// When each may be asked again, and how often it was asked without news.
    again_at: [Instant; PEERS],
    attempts: [u8; PEERS],
}

impl<const PEERS: usize> Window<PEERS> {
    pub(super) const fn new() -> Self {
        Self {
            shown: [[0; PEERS]; PEERS],
            lagging: PeerSet::EMPTY,
            reading: PeerSet::EMPTY,
            stale: PeerSet::EMPTY,
            again_at: [Instant(0); PEERS],
            attempts: [0; PEERS],
        }
    }

    pub(super) const fn shown(&self, by: Peer, origin: Peer) -> u64 {
        self.shown[by.index()][origin.index()]
    }

    /// The last message of `origin` that all of `members` but the origin have delivered.
    pub(super) fn settled(&self, members: &Members, origin: Peer, own: u64) -> u64 {
        let others = members.others().without(PeerSet::only(origin));
        others.iter().map(|peer| self.shown(peer, origin)).fold(own, u64::min)
    }

    /// `head` is the last message of `origin` that was seen: members far behind it lag.
    pub(super) fn note_head(&mut self, members: &Members, origin: Peer, head: u64, lag: u64) {
        for peer in members.others().without(PeerSet::only(origin)).iter() {
            if head.saturating_sub(self.shown(peer, origin)) >= lag {
                self.lagging.insert(peer);
            }
        }
    }

    /// `peer` was removed: it is not waited for.
    pub(super) fn forget(&mut self, peer: Peer) {
        self.lagging.remove(peer);
    }

    /// A new epoch of `peer` is counted: of each origin it need not deliver what this member has.
    pub(super) fn readmit(&mut self, peer: Peer, delivered: [u64; PEERS]) {
        self.shown[peer.index()] = delivered;
        self.lagging.remove(peer);
        if self.reading.contains(peer) {
            self.stale.insert(peer);
        }
    }

    /// The progress of `members` is wanted, however far they are.
    #[inline]
    pub(super) fn want(&mut self, members: PeerSet) {
        self.lagging = self.lagging.union(members);
    }

    /// Whether there are members to ask, now or later.
    #[inline]
    pub(super) const fn has_to_ask(&self) -> bool {
        !self.lagging.without(self.reading).is_empty()
    }

    /// The members to ask now.
    pub(super) fn to_ask(&self, now: Instant) -> PeerSet {
        let mut due = self.lagging.without(self.reading);
        for peer in due.iter() {
            if self.again_at[peer.index()] > now {
                due.remove(peer);
            }
        }
        due
    }

    /// The members to ask, now or later, and those whose answers are due.
    pub(super) const fn asked(&self) -> PeerSet {
        self.lagging.union(self.reading)
    }

    /// Posts a read of the progress of `peer`.
    pub(super) fn ask(
        &mut self,
        fabric: &mut impl Fabric,
        map: &Map,
        peer: Peer,
    ) -> Result<(), PostError> {
        let (from, into) = (map.progress(), map.progress_landing(peer));
        let op = Op::Read { from, into, len: map.config.progress_len() };
        let id = Errand::Progress.id();
        fabric.post(peer, Work { id, op, flags: CompletionFlags::empty() })?;
        self.reading.insert(peer);
        Ok(())
    }

    /// The read of the progress of `peer` has completed or failed. Whether it was of the epoch that
    /// is counted.
    pub(super) fn handle_end(&mut self, peer: Peer) -> bool {
        self.reading.remove(peer);
        self.lagging.remove(peer);
        let is_stale = self.stale.contains(peer);
        self.stale.remove(peer);
        !is_stale
    }

    /// Handles the progress of `peer` that was read. Returns whether it is news.
    pub(super) fn hear(&mut self, fabric: &impl Fabric, map: &Map, peer: Peer) -> News {
        let mut news = News::None;
        for origin in (0..map.config.peers()).map(Peer) {
            let seen =
                read_shown(fabric, map, map.progress_landing(peer), Shown::Delivered(origin));
            let shown = &mut self.shown[peer.index()][origin.index()];
            if seen > *shown {
                *shown = seen;
                news = News::Some;
            }
        }
        news
    }

    /// When `peer` may be asked again.
    pub(super) fn pause(&mut self, peer: Peer, now: Instant, retry: Retry, news: News) {
        let attempts = &mut self.attempts[peer.index()];
        if news == News::Some {
            *attempts = 0;
        }
        self.again_at[peer.index()] = now.after(retry.pause(*attempts));
        *attempts = attempts.saturating_add(1).min(32);
    }

    /// When the next reachable member is asked again.
    pub(super) fn deadline(&self, unreachable: PeerSet) -> Option<Instant> {
        let waiting = self.lagging.without(self.reading).without(unreachable);
        waiting.iter().map(|peer| self.again_at[peer.index()]).min()
    }
}

/// Whether a progress contains something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    None,
    Some,
}

/// The number `what` in the progress at `start` of own memory: the later of its two cells, one of
/// which may be torn.
pub(super) fn read_shown(fabric: &impl Fabric, map: &Map, start: At, what: Shown) -> u64 {
    let place = what.place(map.config.peers());
    let cell = |turn| {
        let at = Map::cell(start, place, turn);
        let mut copy = [0; CELL_LEN];
        fabric.memory().copy_out(at.region, at.offset, &mut copy);
        let progress = Progress::decode(&copy, place, |bytes| fabric.crc32c(bytes));
        progress.map_or(0, |progress| progress.delivered)
    };
    cell(0).max(cell(1))
}

/// Shows all members the number `what`, which has grown by one or was not shown before.
pub(super) fn show(fabric: &impl Fabric, map: &Map, what: Shown, number: u64) {
    show_in(fabric, map, what, (number, number));
}

/// As [`show`], in the cell of that `turn`.
pub(super) fn show_in(fabric: &impl Fabric, map: &Map, what: Shown, (number, turn): (u64, u64)) {
    let place = what.place(map.config.peers());
    let at = Map::cell(map.progress(), place, turn);
    let cell = Progress { origin: place, delivered: number }.encode(|bytes| fabric.crc32c(bytes));
    fabric.memory().copy_in(at.region, at.offset, &cell);
}
