//! Which incarnations run in a trial, since when, and which peers they admitted.

use crate::fabric::{CompletionFlags, Fabric, FenceError, Op, PostError};
use crate::ids::{Incarnation, Peer};

use super::super::regions::EVERYONE;
use super::super::{Harness, POLLS_MAX};
use super::Trial;

impl<H: Harness> Trial<'_, H> {
    pub(in super::super) fn is_alive(&self, peer: Peer) -> bool {
        self.alive[peer.index()]
    }

    pub(in super::super) fn incarnation(&self, peer: Peer) -> Incarnation {
        self.lives[peer.index()]
    }

    pub(in super::super) fn lose(&mut self, peer: Peer) {
        self.harness.lose(peer);
        self.bury(peer);
    }

    fn bury(&mut self, peer: Peer) {
        self.may_end[peer.index()] = true;
        self.alive[peer.index()] = false;
        self.open[peer.index()] = 0;
    }

    #[track_caller]
    pub(in super::super) fn revive(&mut self, peer: Peer) {
        let incarnation = self.harness.revive(peer);
        assert!(
            incarnation > self.incarnation(peer),
            "the harness must revive {peer:?} in a later incarnation"
        );
        self.lives[peer.index()] = incarnation;
        self.alive[peer.index()] = true;
        self.since[peer.index()] = self.posted;
        self.open[peer.index()] = 0;
        self.may_end[peer.index()] = false;
        // A new incarnation has been notified of nothing, and no peer of its end.
        self.notified[peer.index()] = Default::default();
        self.notified.iter_mut().for_each(|of| of[peer.index()] = false);
    }

    #[track_caller]
    pub(in super::super) fn fence(&mut self, who: Peer, peer: Peer) {
        let fenced = self.at(who).fence(peer);
        self.same("fence", fenced, Ok(()));
        self.may_end[peer.index()] = true;
        if H::FENCE_ENDS_LIFE {
            self.bury(peer);
        }
    }

    /// Lets `one` and `other` in at each other. A fabric may need both to have begun.
    #[track_caller]
    pub(in super::super) fn admit(&mut self, one: Peer, other: Peer) {
        let mut pending = [Some((one, other)), Some((other, one))];
        for _ in 0..POLLS_MAX {
            for place in &mut pending {
                let Some((who, peer)) = *place else { continue };
                let incarnation = self.incarnation(peer);
                match self.at(who).admit(peer, incarnation) {
                    Ok(()) => *place = None,
                    Err(FenceError::NotReady) => {}
                    Err(error) => panic!("{}: {who:?} admits {peer:?}: {error}", self.rule),
                }
            }
            if pending == [None; 2] {
                return;
            }
            self.harness.now();
        }
        self.fail("a later incarnation was not admitted (F-9)");
    }

    /// Starts a new incarnation of `peer`, which every peer admits again.
    #[track_caller]
    pub(in super::super) fn renew(&mut self, peer: Peer) {
        let others = EVERYONE.map(|other| (other, other != peer && self.is_alive(other)));
        for (other, _) in others.into_iter().filter(|(_, lives)| *lives) {
            self.fence(other, peer);
        }
        self.revive(peer);
        for (other, _) in others.into_iter().filter(|(_, lives)| *lives) {
            self.admit(peer, other);
        }
    }

    /// Posts to the lost `peer` now and then, until `who` refuses at once. Until the loss is
    /// noticed, work may still reach the memory (F-13).
    #[track_caller]
    pub(in super::super) fn notice(&mut self, who: Peer, peer: Peer, op: Op<'_>) {
        const POLLS_BETWEEN: u32 = 100;
        for _ in 0..POLLS_MAX / POLLS_BETWEEN {
            match self.try_post(who, peer, op, CompletionFlags::empty()) {
                Err(PostError::Gone) => return,
                Ok(_) => self.settle(who, |_| ()),
                Err(error) => panic!("{}: a post to a lost peer: {error}", self.rule),
            }
            for _ in 0..POLLS_BETWEEN {
                self.poll(who, 1, |_| ());
            }
        }
        self.fail("posts to a lost peer must come to fail at once");
    }
}
