//! One group at one member: its members, and the stream of each.

mod call;
mod hear;
mod receive;
mod resume;
mod say;
mod send;

use super::barrier::Barrier;
use super::calls::CallNote;
use super::closing::Closing;
use super::config::{Config, Regions, Window, digest};
use super::outcome::{Counters, GroupId, OpenError};
use super::seats::Grank;
use super::stream::{Members, Stream};
use super::turn::Turn;
use crate::fabric::Fabric;
use crate::ids::{Incarnation, Peer, PeerSet};
use crate::wire::group::{Head, Spread};

/// A group that is open here.
#[derive(Clone, Debug, Hash)]
pub(super) struct Group<const PEERS: usize> {
    pub(super) id: GroupId,
    config: Config,
    peers: [Peer; PEERS],
    pub(super) members: Members,
    /// Digest of the list of members.
    list: u64,
    /// How the blocks of the next message of this member travel.
    pub(super) spread: Spread,
    /// Who has opened the group in the same way, over the present connection.
    agreed: u64,
    agree_due: u64,
    /// All live members have, at least once.
    pub(super) is_open: bool,
    pub(super) streams: [Stream<PEERS>; PEERS],
    pub(super) barrier: Barrier<PEERS>,
    pub(super) note: CallNote,
    turn: Turn,
}

impl<const PEERS: usize> Group<PEERS> {
    /// Opens the group of `list`, as far as its streams had come.
    pub(super) fn open(
        fabric: &impl Fabric,
        (config, regions): (Config, Regions),
        id: GroupId,
        list: &[Peer],
        (live, incarnation): (PeerSet, Incarnation),
    ) -> Result<Self, OpenError> {
        let me = check(fabric.me(), config, list)?;
        let digest =
            digest([u64::from(id.0)].into_iter().chain(list.iter().map(|peer| u64::from(peer.0))));
        #[expect(clippy::cast_possible_truncation, reason = "both halves of the digest")]
        let short = (digest ^ digest >> 32) as u32;
        #[expect(clippy::cast_possible_truncation, reason = "at most 64 members")]
        let count = list.len() as u16;
        let alive = (0..count).map(Grank).filter(|grank| live.contains(list[grank.index()]));
        let live = alive.fold(0, |set, grank| set | grank.bit());
        let members = Members { count, me, live };
        let mut peers = [Peer(0); PEERS];
        peers[..list.len()].copy_from_slice(list);
        let streams = core::array::from_fn(|root| {
            // Past the last member there is none, and its stream is never looked at.
            let root = u16::try_from(root).unwrap_or(count).min(count - 1);
            let window = Window::new(config, regions, id.0, root);
            Stream::attach(fabric, window, Head { group: id.0, root, epoch: 0 }, short)
        });
        let note = CallNote::attach(fabric, config.calls_at(regions, id.0), short);
        let mut group = Self {
            id,
            config,
            peers,
            members,
            list: digest,
            spread: config.sizes().spread,
            agreed: 0,
            agree_due: members.others(),
            is_open: false,
            streams,
            barrier: Barrier::new(note.calls.left),
            note,
            turn: Turn::default(),
        };
        group.streams[me.index()].adopt(fabric, incarnation.0);
        group.attach_calls(fabric);
        group.arrange();
        Ok(group)
    }

    /// The grank of `peer`, if it is a live member.
    pub(super) fn grank(&self, peer: Peer) -> Option<Grank> {
        let granks = (0..self.members.count).map(Grank);
        let mut live = granks.filter(|grank| self.members.live & grank.bit() != 0);
        live.find(|grank| self.peers[grank.index()] == peer)
    }

    /// The connection to `peer` is new or gone: nothing is exchanged before both have said again
    /// how they opened the group.
    pub(super) fn handle_connection(&mut self, peer: Peer) {
        let Some(grank) = self.grank(peer) else { return };
        // Another incarnation of the peer may open the group with other sizes.
        self.agreed &= !grank.bit();
        self.agree_due |= grank.bit() & self.members.others();
        self.barrier.forget(grank);
        self.roots_mut().for_each(|stream| stream.forget(grank));
    }

    /// `peer` was removed by a decision, and is fenced.
    pub(super) fn remove(&mut self, peer: Peer) {
        let Some(grank) = self.grank(peer) else { return };
        self.handle_connection(peer);
        self.members.live &= !grank.bit();
        self.agree_due &= !grank.bit();
        self.arrange();
        let members = self.members;
        for stream in self.roots_mut().filter(|stream| !stream.is_led(&members)) {
            // A second removal starts the round again: the reports named another removed set.
            stream.closing.get_or_insert_with(Closing::new).begin_round(&members);
        }
        self.note_open();
    }

    /// Continues everything that does not wait for a frame.
    pub(super) fn work(&mut self, fabric: &mut impl Fabric, counters: &mut Counters) {
        self.turn.advance(self.members.count);
        self.settle_barrier(fabric);
        for root in self.in_turn() {
            self.continue_stream(fabric, root, counters);
        }
    }

    fn arrange(&mut self) {
        let members = self.members;
        self.barrier.arrange(&members);
        self.roots_mut().for_each(|stream| stream.arrange(&members));
    }

    fn note_open(&mut self) {
        self.is_open |= self.members.others() & !self.agreed == 0;
    }

    fn roots_mut(&mut self) -> impl Iterator<Item = &mut Stream<PEERS>> {
        self.streams.iter_mut().take(usize::from(self.members.count))
    }

    /// All roots, another one first each time.
    fn in_turn(&self) -> impl Iterator<Item = Grank> + use<PEERS> {
        self.turn.order(self.members.count).map(Grank)
    }
}

fn check(me: Peer, config: Config, list: &[Peer]) -> Result<Grank, OpenError> {
    if list.len() < 2 {
        return Err(OpenError::OneMember);
    }
    let mut seen = PeerSet::EMPTY;
    for peer in list {
        if peer.0 >= config.sizes().peers {
            return Err(OpenError::UnknownPeer);
        }
        if seen.contains(*peer) {
            return Err(OpenError::Duplicate);
        }
        seen.insert(*peer);
    }
    let own = list.iter().position(|peer| *peer == me).and_then(|at| u16::try_from(at).ok());
    own.map(Grank).ok_or(OpenError::NotAMember)
}
