//! Members that return: whose epoch this member counts, and when a new epoch of its own is open
//! (N-14, N-16 to N-18).

use super::super::config::Shown;
use super::super::epoch::{EpochError, FIRST, base, number_before, show_both};
use super::super::mutants::{COUNT_LATE, DELIVER_UNCOUNTED, FORGET_COUNTED, OLD_VOTES, UNNAMED};
use super::super::window::{News, read_shown, show};
use super::Neb;
use crate::fabric::Fabric;
use crate::ids::{Incarnation, Peer, PeerSet};
use crate::sync::{Ordering, fence};

/// What an epoch that is not open yet knows of the others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Joining<const PEERS: usize> {
    /// The members that have shown that they count this epoch.
    counted: PeerSet,
    /// Those among them whose progress was read again since.
    heard: PeerSet,
    /// For each member, the latest epoch of it that one of them counts.
    named: [Incarnation; PEERS],
}

impl<const PEERS: usize> Joining<PEERS> {
    const fn new() -> Self {
        Self { counted: PeerSet::EMPTY, heard: PeerSet::EMPTY, named: [Incarnation(0); PEERS] }
    }

    /// Another epoch of `peer` is counted, or none: it counts this one from then on only.
    fn forget(&mut self, peer: Peer) {
        self.counted.remove(peer);
        // What one that is gone has named does not bind.
        (self.heard, self.named) = (PeerSet::EMPTY, [Incarnation(0); PEERS]);
    }
}

impl<const PEERS: usize, const DEPTH: usize> Neb<PEERS, DEPTH> {
    /// Finds in memory which epochs this member counts, and whether its own is open.
    pub(super) fn find_epochs(&mut self, fabric: &impl Fabric) {
        let (map, me) = (self.map, self.members.me);
        let shown = |what| {
            let number = read_shown(fabric, &map, map.progress(), what);
            Incarnation(u32::try_from(number).unwrap_or(0))
        };
        for (peer, epoch) in (0..map.config.peers()).map(Peer).zip(&mut self.epochs) {
            if peer == me || !FORGET_COUNTED.is_planted() {
                *epoch = shown(Shown::Counted(peer));
            }
        }
        let epoch = self.epochs[me.index()];
        self.joining = (epoch > FIRST && shown(Shown::Open) != epoch).then(Joining::new);
    }

    /// The epoch of `peer` that this member counts, or has removed: the incarnation in which it
    /// began. Zero if `peer` was never away.
    #[must_use]
    pub fn epoch(&self, peer: Peer) -> Incarnation {
        self.epochs.get(peer.index()).copied().unwrap_or_default()
    }

    /// Whether this member exposes, delivers and broadcasts: an epoch after the first does once all
    /// live members have shown that they count it.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.joining.is_none()
    }

    /// The present epoch of `peer` began in the incarnation `epoch`, and its earlier ones are
    /// fenced: from now on nothing is delivered here without the vote of that epoch. Call it before
    /// each admission; an epoch that is counted already, or removed, changes nothing.
    ///
    /// In the signed form the peer has no key until [`Self::learn_key`]: a key is agreed on for one
    /// epoch.
    ///
    /// # Errors
    /// [`EpochError`]; nothing changed.
    pub fn handle_epoch(
        &mut self,
        fabric: &impl Fabric,
        peer: Peer,
        epoch: Incarnation,
    ) -> Result<(), EpochError> {
        let (map, me) = (self.map, self.members.me);
        number_before(epoch)?;
        let is_other = peer.0 < map.config.peers() && peer != me;
        if !is_other || epoch <= self.epochs[peer.index()].max(FIRST) {
            return Ok(());
        }
        if !OLD_VOTES.is_planted() {
            self.streams.iter_mut().for_each(|stream| stream.forget(peer));
        }
        self.begin_behind(fabric, peer, base(epoch));
        let delivered = core::array::from_fn(|origin| self.streams[origin].delivered);
        self.window.readmit(peer, delivered);
        self.epochs[peer.index()] = epoch;
        if !COUNT_LATE.is_planted() {
            self.members.live.insert(peer);
        }
        if let Some(joining) = &mut self.joining {
            joining.forget(peer);
        }
        #[cfg(feature = "signed")]
        if let Some(keys) = &mut self.keys.0 {
            keys.forget(peer);
        }
        // SYNC: words-publish. Behind what was delivered without its vote, and before anything that
        // is not.
        fence(Ordering::SeqCst);
        show(fabric, &map, Shown::Counted(peer), u64::from(epoch.0));
        Ok(())
    }

    /// The epochs of `peer` up to `last` are removed.
    pub(super) fn drop_member(&mut self, peer: Peer, last: Incarnation) {
        self.members.live.remove(peer);
        self.reachable.remove(peer);
        self.window.forget(peer);
        let epoch = &mut self.epochs[peer.index()];
        *epoch = last.max(*epoch);
        if let Some(joining) = &mut self.joining {
            joining.forget(peer);
        }
    }

    /// The members whose progress an epoch that is not open waits for.
    pub(super) fn unheard(&self) -> PeerSet {
        let others = self.members.others();
        self.joining.as_ref().map_or(PeerSet::EMPTY, |joining| others.without(joining.heard))
    }

    /// The progress of `peer` was read: whether it counts this epoch, and whom else. Whether that
    /// is news, so that it is read again soon.
    pub(super) fn note_counted(&mut self, fabric: &impl Fabric, peer: Peer) -> News {
        let (map, me) = (self.map, self.members.me);
        let epoch = u64::from(self.epochs[me.index()].0);
        let Some(joining) = &mut self.joining else { return News::None };
        let at = map.progress_landing(peer);
        let counted = |member| read_shown(fabric, &map, at, Shown::Counted(member));
        if !joining.counted.contains(peer) {
            // What it delivered before it counted this epoch is certain to be seen by the next read
            // only.
            let is_news = counted(me) == epoch;
            if is_news {
                joining.counted.insert(peer);
            }
            return if is_news { News::Some } else { News::None };
        }
        joining.heard.insert(peer);
        for (member, named) in (0..map.config.peers()).map(Peer).zip(&mut joining.named) {
            let other = Incarnation(u32::try_from(counted(member)).unwrap_or(u32::MAX));
            *named = other.max(*named);
        }
        News::Some
    }

    /// Opens this epoch once every other member either counts it, in the latest epoch that one of
    /// them counts, or is removed in that epoch. One that is alone stays closed: what it broadcast
    /// would be written to no member, and the next that returns could not tell where to begin.
    #[inline(never)]
    pub(super) fn open(&mut self, fabric: &impl Fabric) {
        let (map, me) = (self.map, self.members.me);
        let Some(Joining { heard, named, .. }) = self.joining.clone() else { return };
        let others = self.members.others();
        let is_behind = |peer: Peer| self.epochs[peer.index()] < named[peer.index()];
        let is_named = !self.others().any(is_behind) || UNNAMED.is_planted();
        let unheard = others.without(heard);
        if DELIVER_UNCOUNTED.is_planted() && !heard.is_empty() {
            self.members.live = self.members.live.without(unheard);
        } else if !is_named || !unheard.is_empty() || others.is_empty() {
            return;
        }
        for origin in self.others() {
            let shown = heard.iter().map(|peer| self.window.shown(peer, origin));
            let delivered = shown.fold(self.streams[origin.index()].delivered, u64::max);
            self.begin_behind(fabric, origin, delivered);
        }
        // SYNC: words-publish. A member that reads this finds from where this one delivers.
        fence(Ordering::SeqCst);
        show(fabric, &map, Shown::Open, u64::from(self.epochs[me.index()].0));
        self.joining = None;
    }

    /// Delivers what `origin` broadcasts after `number` only.
    fn begin_behind(&mut self, fabric: &impl Fabric, origin: Peer, number: u64) {
        self.streams[origin.index()].begin_behind(number);
        for what in [Shown::Behind(origin), Shown::Delivered(origin)] {
            show_both(fabric, &self.map, what, number);
        }
    }

    /// The members that returned; only for the planted bug that counts them too late.
    pub(super) fn returned(&self) -> PeerSet {
        let epochs = (0..self.map.config.peers()).map(Peer).zip(&self.epochs);
        let returned = epochs.filter(|(_, epoch)| **epoch > FIRST).map(|(peer, _)| peer);
        returned.fold(PeerSet::EMPTY, |all, peer| all.union(PeerSet::only(peer)))
    }
}
