//! One group at one member: its members, and the stream of each.

mod call;
mod hear;
mod join;
mod receive;
mod resume;
mod say;
mod send;

use heapless::Vec;

use super::barrier::Barrier;
use super::calls::CallNote;
use super::config::{Config, Regions, Window};
use super::mutants::EPOCHS_IGNORED;
use super::note::{Note, Position, State};
use super::outcome::{Counters, GroupId, OpenError};
use super::seats::{Grank, Members};
use super::stream::Stream;
use super::turn::Turn;
use crate::checksum::fnv1a;
use crate::fabric::Fabric;
use crate::ids::{Incarnation, Peer, PeerSet};
use crate::wire::group::{Head, Spread, Welcome};

/// The epoch of a member that was never away.
pub(super) const FIRST: u32 = 1;

/// What another member has said of itself over the present connection.
#[derive(Clone, Copy, Debug, Default, Hash)]
struct Said {
    epoch: u32,
    fresh: bool,
    live: u64,
    epochs: u64,
    welcome: Option<Welcome>,
}

/// A group that is open here: opaque, for [`Groups`](super::Groups) alone acts on it.
#[derive(Clone, Debug, Hash)]
pub struct Group<const PEERS: usize> {
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
    said: [Said; PEERS],
    welcome_due: u64,
    /// This member has come back, and takes nothing yet.
    pub(super) is_fresh: bool,
    /// All live members have, at least once.
    pub(super) is_open: bool,
    /// One a member: by grank of their roots.
    pub(super) streams: Vec<Stream<PEERS>, PEERS>,
    pub(super) barrier: Barrier<PEERS>,
    pub(super) note: CallNote,
    turn: Turn,
}

impl<const PEERS: usize> Group<PEERS> {
    /// Whether others may count this member in `epoch`: an incarnation of that has opened the
    /// group.
    pub(super) fn is_begun(
        fabric: &impl Fabric,
        (config, regions): (Config, Regions),
        id: GroupId,
        list: &[Peer],
        epoch: Incarnation,
    ) -> Result<bool, OpenError> {
        let me = check(fabric.me(), config, list)?;
        let window = Window::new(config, regions, id.0, me.0);
        let stored = Note::attach(fabric, &window, digest_of(id, list).1);
        Ok(epoch.0 == FIRST || stored.counted == epoch.0)
    }

    /// Opens the group of `list`, as far as its streams had come in this `epoch`. Returns it where
    /// it is to lie: a value of this size is copied once on its way there, not at every return.
    pub(super) fn open<P: From<Self>>(
        fabric: &impl Fabric,
        (config, regions): (Config, Regions),
        id: GroupId,
        list: &[Peer],
        epoch: Incarnation,
    ) -> Result<P, OpenError> {
        let me = check(fabric.me(), config, list)?;
        let (digest, short) = digest_of(id, list);
        #[expect(clippy::cast_possible_truncation, reason = "at most 64 members")]
        let count = list.len() as u16;
        let mut peers = [Peer(0); PEERS];
        peers[..list.len()].copy_from_slice(list);
        let windows = |root| Window::new(config, regions, id.0, root);
        let stored = Note::attach(fabric, &windows(me.0), short);
        let mut own = stored;
        if stored.counted != epoch.0 {
            // What an earlier epoch has left is of no use: others have gone on without it.
            own = stored.begin(epoch.0, Position::default());
            own.fresh = epoch.0 > FIRST;
            own.store(fabric, &windows(me.0));
        }
        let (is_new, is_fresh) = (stored.counted != epoch.0, own.fresh);
        let mut calls = CallNote::attach(fabric, config.calls_at(regions, id.0), short);
        if is_new || is_fresh {
            calls.begin(fabric, 0, 0);
        }
        let mut group = Self {
            id,
            config,
            peers,
            members: Members { count, me, live: me.bit(), epochs: 0 },
            list: digest,
            spread: config.sizes().spread,
            agreed: 0,
            agree_due: u64::MAX >> (64 - count) & !me.bit(),
            said: [Said::default(); PEERS],
            welcome_due: 0,
            is_fresh,
            is_open: false,
            streams: Vec::new(),
            barrier: Barrier::new(calls.calls.left),
            note: calls,
            turn: Turn::default(),
        };
        for root in 0..count {
            let (window, head) = (windows(root), Head { group: id.0, root, epoch: 0 });
            let mut note = Note::attach(fabric, &window, short);
            note = match note {
                _ if root == me.0 => own,
                _ if is_fresh && !is_new => note.begin_pledged(),
                _ if is_fresh => note.begin(0, Position::default()),
                Note { counted: 0, state: State::Open, .. } => {
                    note.begin(FIRST, Position::default())
                }
                _ if is_new => note.begin(FIRST, Position::default()),
                _ => note,
            };
            let pushed = group.streams.push(Stream::new(fabric, window, head, note));
            debug_assert!(pushed.is_ok(), "the list was checked against PEERS");
        }
        group.streams[me.index()].own(fabric);
        group.attach_calls(fabric);
        group.change(if is_fresh { me.bit() } else { group.counted() });
        Ok(group.into())
    }

    /// The members that the notes count: a stream that is closed for the last epoch is that of a
    /// removed one.
    fn counted(&self) -> u64 {
        let granks = (0..self.members.count).map(Grank);
        let live = granks.filter(|grank| {
            let stream = &self.streams[grank.index()];
            !stream.is_turned() || stream.note.state == State::Open
        });
        live.fold(0, |set, grank| set | grank.bit())
    }

    /// The grank of `peer`, if it is a member.
    pub(super) fn grank(&self, peer: Peer) -> Option<Grank> {
        let mut granks = (0..self.members.count).map(Grank);
        granks.find(|grank| self.peers[grank.index()] == peer)
    }

    /// The epoch of `peer` that was counted last, this member's own included.
    pub(super) fn epoch(&self, peer: Peer) -> Option<Incarnation> {
        let grank = self.grank(peer)?;
        Some(Incarnation(self.streams[grank.index()].note.counted))
    }

    /// The members that are counted here.
    pub(super) fn live(&self) -> PeerSet {
        let mut peers = PeerSet::EMPTY;
        let granks = (0..self.members.count).map(Grank);
        let live = granks.filter(|grank| self.members.live & grank.bit() != 0);
        live.for_each(|grank| peers.insert(self.peers[grank.index()]));
        peers
    }

    /// The connection to `peer` is new or gone: nothing is exchanged before both have said again
    /// how they opened the group.
    pub(super) fn handle_connection(&mut self, peer: Peer) {
        let Some(grank) = self.grank(peer).filter(|grank| *grank != self.members.me) else {
            return;
        };
        // Another incarnation of the peer may open the group with other sizes.
        self.agreed &= !grank.bit();
        self.agree_due |= grank.bit();
        self.said[grank.index()] = Said::default();
        self.barrier.forget(grank);
        self.roots_mut().for_each(|stream| stream.forget(grank));
        if self.is_fresh {
            self.follow();
        }
    }

    /// The epochs of `peer` up to `last` were removed by a decision, and are fenced.
    pub(super) fn remove(&mut self, peer: Peer, last: Incarnation) {
        let Some(grank) = self.grank(peer).filter(|grank| *grank != self.members.me) else {
            return;
        };
        let every = self.members.all() & !self.members.me.bit();
        let stream = &mut self.streams[grank.index()];
        if last.0 > stream.out {
            (stream.out, stream.report_due) = (last.0, every);
        }
        if stream.note.counted > last.0 {
            return;
        }
        self.handle_connection(peer);
        self.roots_mut().for_each(|stream| stream.reports.forget(grank));
        if !self.is_fresh && self.members.live & grank.bit() != 0 {
            self.change(self.members.live & !grank.bit());
        }
    }

    /// Continues everything that does not wait for a frame.
    pub(super) fn work(&mut self, fabric: &mut impl Fabric, counters: &mut Counters) {
        self.turn.advance(self.members.count);
        if self.is_fresh {
            self.join(fabric);
            return;
        }
        self.count_returned(fabric);
        self.settle_barrier(fabric);
        for root in self.in_turn() {
            self.continue_stream(fabric, root, counters);
        }
    }

    /// These are the members from now on, in the epochs that are counted: trees are formed over
    /// them, and rounds begin again.
    fn change(&mut self, live: u64) {
        self.members.live = live;
        self.members.epochs = self.epochs_of(live);
        let members = self.members;
        self.barrier.arrange(&members);
        for stream in self.roots_mut() {
            stream.mixed = stream.note.entries;
            stream.arrange(&members);
            stream.begin_round(&members);
        }
        self.agree_due |= members.all() & !members.me.bit();
        self.welcome_due |= members.all() & !members.me.bit();
        self.note_open();
    }

    /// Digest of `live` with the epochs that are counted, or heard of before any is.
    fn epochs_of(&self, live: u64) -> u64 {
        let granks = (0..self.members.count).map(Grank);
        let live = granks.filter(|grank| live & grank.bit() != 0);
        fnv1a(live.map(|grank| {
            let is_heard = self.is_fresh && grank != self.members.me;
            let said = self.said[grank.index()].epoch;
            let epoch = if is_heard { said } else { self.streams[grank.index()].note.counted };
            u64::from(grank.0) << 32
                | u64::from(if EPOCHS_IGNORED.is_planted() { 0 } else { epoch })
        }))
    }

    fn note_open(&mut self) {
        self.is_open |= !self.is_fresh && self.members.others() & !self.agreed == 0;
    }

    fn roots_mut(&mut self) -> impl Iterator<Item = &mut Stream<PEERS>> {
        self.streams.iter_mut().take(usize::from(self.members.count))
    }

    /// All roots, another one first each time.
    fn in_turn(&self) -> impl Iterator<Item = Grank> + use<PEERS> {
        self.turn.order(self.members.count).map(Grank)
    }
}

/// Digest of the list of members, and a short one that notes name.
fn digest_of(id: GroupId, list: &[Peer]) -> (u64, u32) {
    let peers = list.iter().map(|peer| u64::from(peer.0));
    let digest = fnv1a([u64::from(id.0)].into_iter().chain(peers));
    #[expect(clippy::cast_possible_truncation, reason = "both halves of the digest")]
    let short = (digest ^ digest >> 32) as u32;
    (digest, short)
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
