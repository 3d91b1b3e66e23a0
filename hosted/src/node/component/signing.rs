//! The keys that the component signs and verifies broadcasts with, where they are signed.
//!
//! ```text
//!   supervisor: that is its key ─▶ held ── lane ──▶ every other member: I hold this
//!                                   └── all other members hold the same ─▶ used
//! ```
//!
//! A node that shows two members two keys could make each reject as forged what the other delivers.
//! So a member holds the first key that it is shown of each other, for as long as that one's epoch
//! in the broadcasts lasts (N-19), and uses it once every other member that takes part, except its
//! owner, reports that it holds the same: one slot of the unsigned form, with the lanes as its
//! replays (N-13). Two members that use a key of one node have each received the other's report, so
//! they use the same key, whichever member is faulty. One faulty member can prevent agreement on a
//! key; it cannot revoke an agreed one.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use weft_core::fabric::Layout;
use weft_core::ids::{Peer, PeerSet};
use weft_core::neb::Keys;

use super::Component;
use crate::cluster::{Cluster, Form};
use crate::node::{NodeError, PEERS};
use crate::signing::{PublicKey, SecretKey, session};

/// The keys that a component starts with: its own, the last descriptor of its start.
pub(super) fn adopt(
    cluster: &Cluster,
    layout: &Layout,
    fds: &mut Vec<OwnedFd>,
) -> Result<Option<Keys<PEERS>>, NodeError> {
    match cluster.neb.form {
        Form::Unsigned => Ok(None),
        Form::Signed => {
            let granted = fds.pop().ok_or(NodeError::Link("a start without a key"))?;
            let own = SecretKey::adopt(granted.as_fd()).map_err(NodeError::Signing)?;
            let session = session(cluster.name.as_str(), layout.digest());
            Ok(Some(Keys::new(session, own)))
        }
    }
}

/// The key that this node holds for each other, and the keys that the others report to hold.
#[derive(Debug)]
pub(super) struct KeyBook {
    held: Vec<Option<PublicKey>>,
    /// By reporter and owner.
    said: BTreeMap<(Peer, Peer), PublicKey>,
    /// The participants when the book was last evaluated, if nothing was noted since.
    settled: Option<PeerSet>,
}

impl KeyBook {
    pub(super) fn new(nodes: usize) -> Self {
        Self { held: vec![None; nodes], said: BTreeMap::new(), settled: None }
    }

    /// Holds `key` for `owner`, if this node was shown no other before. Whether that is new.
    fn hold(&mut self, owner: Peer, key: PublicKey) -> bool {
        let Some(held) = self.held.get_mut(owner.index()) else { return false };
        match held {
            Some(known) => {
                if *known != key {
                    tracing::warn!(peer = owner.0, "it has another key already: this one is void");
                }
                false
            }
            None => {
                *held = Some(key);
                self.settled = None;
                true
            }
        }
    }

    /// A new epoch of `owner` is counted: the next key that is shown is held.
    pub(super) fn forget(&mut self, owner: Peer) {
        if let Some(held) = self.held.get_mut(owner.index()) {
            *held = None;
            self.settled = None;
        }
    }

    /// The key that this node holds for `owner`.
    pub(super) fn held(&self, owner: Peer) -> Option<PublicKey> {
        *self.held.get(owner.index())?
    }

    /// Records that `by` holds `key` for `owner`.
    fn note_said(&mut self, by: Peer, owner: Peer, key: PublicKey) {
        let nodes = self.held.len();
        if by.index() < nodes && owner.index() < nodes {
            self.said.insert((by, owner), key);
            self.settled = None;
        }
    }

    /// The keys that `me` and all other `members` agree on, each with its owner, if anything has
    /// changed since the last call.
    fn take_agreed(&mut self, me: Peer, members: PeerSet) -> Vec<(Peer, PublicKey)> {
        if self.settled == Some(members) {
            return Vec::new();
        }
        self.settled = Some(members);
        let owners = (0..).map(Peer).zip(&self.held);
        let agreed = owners.filter_map(|(owner, held)| {
            let key = (*held)?;
            let voters = members.without(PeerSet::only(me)).without(PeerSet::only(owner));
            let is_agreed = voters.iter().all(|by| self.said.get(&(by, owner)) == Some(&key));
            is_agreed.then_some((owner, key))
        });
        agreed.collect()
    }
}

impl Component {
    /// Holds the key of `peer` that its supervisor reports, and announces it to the others.
    pub(super) fn hold_key(&mut self, peer: Peer, key: PublicKey) {
        if self.keys.hold(peer, key) {
            self.membership.announce_key(peer);
        }
    }

    /// Records the keys that others hold: reporter, owner, key.
    pub(super) fn note_keys(&mut self, said: Vec<(Peer, Peer, PublicKey)>) {
        for (by, owner, key) in said {
            self.keys.note_said(by, owner, key);
        }
    }

    /// Uses the keys that are agreed on by now.
    pub(super) fn learn_keys(&mut self) {
        let me = self.endpoint.me();
        let Some((broadcast, _)) = self.endpoint.broadcast() else { return };
        for (owner, PublicKey(key)) in self.keys.take_agreed(me, broadcast.live()) {
            if let Err(error) = broadcast.learn_key(owner, &key) {
                tracing::warn!(peer = owner.0, %error, "its signatures do not count");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const O: Peer = Peer(0);
    const NODES: usize = 4;

    fn key(byte: u8) -> PublicKey {
        PublicKey([byte; 32])
    }

    fn agreed(book: &mut KeyBook, me: u16) -> Vec<(Peer, PublicKey)> {
        book.take_agreed(Peer(me), PeerSet::first(NODES))
    }

    /// The book of `me` for node 0, which has shown it `mine`, when the others report `said`.
    fn book(mine: u8, said: &[(u16, u8)]) -> KeyBook {
        let mut book = KeyBook::new(NODES);
        book.hold(O, key(mine));
        said.iter().for_each(|&(by, byte)| book.note_said(Peer(by), O, key(byte)));
        book
    }

    #[test]
    fn a_key_is_used_once_all_others_hold_it() {
        let mut book = book(7, &[(2, 7)]);
        assert_eq!(agreed(&mut book, 1), []);
        book.note_said(Peer(3), O, key(7));
        assert_eq!(agreed(&mut book, 1), [(O, key(7))]);
        assert_eq!(agreed(&mut book, 1), [], "nothing has changed");
    }

    /// Whatever key 3 reports to each member.
    #[test]
    fn two_members_that_are_shown_two_keys_use_neither() {
        for liar in [7, 9] {
            assert_eq!(agreed(&mut book(7, &[(2, 9), (3, liar)]), 1), []);
            assert_eq!(agreed(&mut book(9, &[(1, 7), (3, liar)]), 2), []);
        }
    }

    /// What others report of the earlier epoch does not agree with the new key.
    #[test]
    fn the_key_of_a_new_epoch_is_agreed_on_again() {
        let mut book = book(7, &[(2, 7), (3, 7)]);
        assert_eq!(agreed(&mut book, 1), [(O, key(7))]);
        book.forget(O);
        assert!(book.hold(O, key(9)));
        book.note_said(Peer(2), O, key(9));
        assert_eq!(agreed(&mut book, 1), []);
        book.note_said(Peer(3), O, key(9));
        assert_eq!(agreed(&mut book, 1), [(O, key(9))]);
    }

    #[test]
    fn the_first_key_stays_and_a_member_that_left_is_not_asked() {
        let mut book = book(7, &[(2, 7)]);
        assert!(!book.hold(O, key(9)));
        assert_eq!(agreed(&mut book, 1), []);
        let left = PeerSet::first(NODES).without(PeerSet::only(Peer(3)));
        assert_eq!(book.take_agreed(Peer(1), left), [(O, key(7))]);
    }
}
