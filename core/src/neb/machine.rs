//! One member: origin of its own messages, replayer and voter for those of all others.

mod epochs;
mod replay;
#[cfg(feature = "signed")]
mod signed;
mod taking;
mod vote;

use super::aside::Aside;
#[cfg(feature = "signed")]
use super::authority::Keys;
use super::ballot::Ballot;
use super::config::{Config, SLOT_LEN_MAX, Shown};
use super::epoch::{base, number_in_epoch};
use super::exposed::Exposed;
use super::map::{Map, Regions};
use super::membership::{Members, Membership};
use super::mutants::{ANY_EPOCH, OVERRUN_WINDOW};
use super::origin::Origin;
use super::outcome::{BroadcastError, Counters, Standing};
use super::own_copy::OwnCopy;
use super::stream::{Found, Stream, earlier};
use super::window::{News, Window, read_shown};
use super::work::Errand;
use crate::decision::{Decision, RemoveError};
use crate::fabric::{Completion, Fabric, PostError};
use crate::ids::{Incarnation, Peer, PeerSet};
use crate::time::Instant;
use crate::wire::broadcast::{Form, Header};
use epochs::Joining;

/// The broadcast of one member: up to `PEERS` members, with votes on up to `DEPTH` slots of each at
/// a time.
///
/// The caller polls, hands in completions, and takes outcomes; nothing waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Neb<const PEERS: usize, const DEPTH: usize> {
    map: Map,
    members: Members,
    /// By member: the epoch that is counted, or the last one that was removed; zero for one that
    /// was never away.
    epochs: [Incarnation; PEERS],
    /// While the own epoch is not open.
    joining: Option<Joining<PEERS>>,
    /// The peers to which the last post did not fail.
    reachable: PeerSet,
    origin: Origin<PEERS>,
    streams: [Stream<DEPTH>; PEERS],
    window: Window<PEERS>,
    /// The origin whose outcomes are taken first, so that no origin starves another.
    turn: u16,
    own: Aside<OwnCopy>,
    theirs: Aside<[u8; SLOT_LEN_MAX]>,
    counters: Aside<Counters>,
    #[cfg(feature = "signed")]
    keys: Aside<Option<Keys<PEERS>>>,
}

impl<const PEERS: usize, const DEPTH: usize> Neb<PEERS, DEPTH> {
    /// The member `fabric.me()`, which continues from the memory of its earlier incarnation; zeroed
    /// memory is that of a new member. No peer is reachable before [`Self::handle_admitted`].
    ///
    /// # Panics
    /// When the configuration is larger than `PEERS` or `DEPTH`, or its form is signed, for
    /// which there is `Neb::attach_signed`.
    #[must_use]
    pub fn attach(fabric: &impl Fabric, config: Config, regions: Regions) -> Self {
        assert!(config.form() == Form::Unsigned, "the signed form needs keys");
        Self::resume(fabric, config, regions)
    }

    fn resume(fabric: &impl Fabric, config: Config, regions: Regions) -> Self {
        assert!(usize::from(config.peers()) <= PEERS, "more members than PEERS");
        assert!(usize::from(config.depth()) <= DEPTH, "deeper than DEPTH");
        let map = Map { config, regions };
        let me = fabric.me();
        let mut own = OwnCopy::new();
        let delivered = |origin| read_shown(fabric, &map, map.progress(), Shown::Delivered(origin));
        let origin = Origin::attach(fabric, &map, delivered(me), own.clear());
        let mut streams = core::array::from_fn(|_| Stream::<DEPTH>::new(0));
        for (peer, stream) in (0..config.peers()).map(Peer).zip(&mut streams) {
            *stream = Stream::new(delivered(peer));
            stream.behind = read_shown(fabric, &map, map.progress(), Shown::Behind(peer));
            if peer == me {
                stream.next = origin.last() + 1;
                continue;
            }
            find_exposed(fabric, &map, peer, stream, own.clear());
        }
        let mut neb = Self {
            map,
            members: Members::all(me, config.peers()),
            epochs: [Incarnation(0); PEERS],
            joining: None,
            reachable: PeerSet::EMPTY,
            origin,
            streams,
            window: Window::new(),
            turn: 0,
            own: Aside(own),
            theirs: Aside([0; SLOT_LEN_MAX]),
            counters: Aside(Counters::default()),
            #[cfg(feature = "signed")]
            keys: Aside(None),
        };
        neb.find_epochs(fabric);
        neb
    }

    /// The members that take part, this one included.
    #[must_use]
    pub const fn live(&self) -> PeerSet {
        self.members.live
    }

    /// The counters of this incarnation.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters.0
    }

    /// The configuration and its regions.
    #[must_use]
    pub const fn layout(&self) -> (Config, Regions) {
        (self.map.config, self.map.regions)
    }

    /// The state of `origin`'s broadcast at this member; `None` if there is no such member.
    #[must_use]
    pub fn standing(&self, origin: Peer) -> Option<Standing> {
        if origin.0 >= self.map.config.peers() {
            return None;
        }
        let stream = self.streams.get(origin.index())?;
        let voters = self.members.voters(origin);
        let torn = stream.torn_replayer().filter(|replayer| voters.contains(*replayer));
        Some(Standing {
            seen: stream.next - 1,
            delivered: stream.delivered,
            behind: stream.behind,
            settled: self.window.settled(&self.members, origin, stream.delivered),
            conflicts: stream.conflicts,
            damaged: if stream.is_damaged() { Some(self.members.me) } else { torn },
        })
    }

    /// Whether a message can be broadcast now.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let me = self.members.me;
        let next = self.origin.last() + 1;
        // The numbers of this epoch are used up, or it is not open.
        if number_in_epoch(next) == 0 || !self.is_open() {
            return false;
        }
        let Some(reused) = next.checked_sub(u64::from(self.map.config.slots())) else {
            return true;
        };
        let own = self.streams[me.index()].delivered;
        let ended =
            |peer: Peer| !self.reachable.contains(peer) || self.origin.written(peer) >= reused;
        OVERRUN_WINDOW.is_planted()
            || self.window.settled(&self.members, me, own) >= reused
                && self.members.others().iter().all(ended)
    }

    /// Broadcasts one message, and returns its number.
    ///
    /// # Errors
    /// [`BroadcastError`].
    pub fn broadcast(
        &mut self,
        fabric: &mut impl Fabric,
        tag: u64,
        payload: &[u8],
    ) -> Result<u64, BroadcastError> {
        let seq = self.stage(fabric, tag, payload)?;
        self.flush(fabric);
        Ok(seq)
    }

    /// Numbers one message and keeps it for [`Self::flush`], so that a batch is sent together.
    ///
    /// # Errors
    /// [`BroadcastError`].
    pub fn stage(
        &mut self,
        fabric: &impl Fabric,
        tag: u64,
        payload: &[u8],
    ) -> Result<u64, BroadcastError> {
        if payload.len() > usize::from(self.map.config.message_len()) {
            return Err(BroadcastError::TooLong);
        }
        if !self.has_room() {
            return Err(BroadcastError::WindowFull);
        }
        let me = self.members.me;
        #[cfg(feature = "signed")]
        let keys = &self.keys.0;
        let sign = |_header: &Header, _slot: &mut [u8]| {
            #[cfg(feature = "signed")]
            if let Some(keys) = keys {
                keys.sign(_header, _slot);
            }
        };
        let message = (tag, payload);
        let seq = self.origin.stage(fabric, &self.map, message, self.own.0.clear(), sign);
        self.streams[me.index()].next = seq + 1;
        self.window.note_head(&self.members, me, seq, self.map.config.lag());
        self.counters.0.broadcast += 1;
        Ok(seq)
    }

    /// Sends the staged messages to all members, as far as the queues accept them; [`Self::poll`]
    /// sends the rest.
    #[inline]
    pub fn flush(&mut self, fabric: &mut impl Fabric) {
        if !self.origin.owed().is_empty() {
            self.post_owed(fabric);
        }
    }

    #[inline(never)]
    fn post_owed(&mut self, fabric: &mut impl Fabric) {
        for peer in self.members.others().without(self.unreachable()).iter() {
            while self.origin.owed().contains(peer) {
                match self.origin.post(fabric, &self.map, peer) {
                    Ok(()) => self.counters.0.writes += 1,
                    Err(error) => {
                        self.note_refusal(peer, error);
                        break;
                    }
                }
            }
        }
    }

    /// Makes all progress that is possible now. Never waits.
    #[inline]
    pub fn poll(&mut self, fabric: &mut impl Fabric, now: Instant) {
        self.flush(fabric);
        if !self.is_open() {
            self.open(fabric);
            self.window.want(self.unheard());
        }
        if self.is_open() {
            self.poll_streams(fabric, now);
        }
        if self.window.has_to_ask() {
            self.ask_members(fabric, now);
        }
    }

    /// Reads the progress of the members that seem far behind, and of those that the own epoch
    /// waits for before it opens, where a read is due.
    #[inline(never)]
    fn ask_members(&mut self, fabric: &mut impl Fabric, now: Instant) {
        for peer in self.window.to_ask(now).iter() {
            if !self.reachable.contains(peer) {
                continue;
            }
            match self.window.ask(fabric, &self.map, peer) {
                Ok(()) => self.counters.0.progress_reads += 1,
                Err(error) => self.note_refusal(peer, error),
            }
        }
    }

    /// Looks for what origins have sent. One that has sent nothing costs a load and a compare.
    #[inline]
    fn poll_streams(&mut self, fabric: &mut impl Fabric, now: Instant) {
        for origin in self.others() {
            let seen = self.look(fabric, origin);
            let stream = &self.streams[origin.index()];
            if !(stream.is_earlier(&self.map, seen) && stream.is_idle(now)) {
                self.poll_stream(fabric, now, (origin, seen));
            }
        }
    }

    /// Accepts what `origin` has sent, and asks for votes; `seen` is in its next slot.
    #[inline(never)]
    fn poll_stream(
        &mut self,
        fabric: &mut impl Fabric,
        now: Instant,
        (origin, mut seen): (Peer, u64),
    ) {
        let mut found = self.accept(fabric, origin, seen);
        while found == Found::Message {
            seen = self.look(fabric, origin);
            found = self.accept(fabric, origin, seen);
        }
        let patience = self.map.config.retry().after_max;
        let stream = &mut self.streams[origin.index()];
        self.counters.0.unfit += u64::from(stream.note_found(found, now, patience));
        stream.resume(&self.map, now);
        if self.streams[origin.index()].asks {
            self.ask(fabric, origin);
        }
    }

    /// When to poll again if no event comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let streams = self.streams.iter().map(|stream| stream.again_at);
        streams.fold(self.window.deadline(self.unreachable()), earlier)
    }

    /// Makes [`Self::poll`] read the progress of all members that have shown less than this member
    /// has seen. Otherwise progress is read only when the window needs it, and
    /// [`Standing::settled`] is as old as the last read.
    pub fn ask_progress(&mut self) {
        self.note_heads(1);
    }

    /// Whether a read of a reachable member's progress is due or under way.
    #[must_use]
    pub fn asks_progress(&self) -> bool {
        !self.window.asked().without(self.unreachable()).is_empty()
    }

    /// Continues the work that `completion` belongs to; ignores other completions.
    pub fn handle_completion(
        &mut self,
        fabric: &mut impl Fabric,
        now: Instant,
        completion: &Completion,
    ) {
        let peer = completion.peer;
        let Some(errand) = Errand::of(completion.id) else {
            return;
        };
        if peer.0 >= self.map.config.peers() {
            return;
        }
        self.counters.0.completions += 1;
        match errand {
            Errand::Write { last } if completion.outcome.is_ok() => {
                self.origin.handle_written(peer, last);
            }
            // What was not written is written again once the peer is admitted.
            Errand::Write { .. } => {}
            Errand::Progress => self.handle_progress(fabric, now, completion),
            Errand::Vote { replayer, origin, .. }
                if replayer != peer || origin.0 >= self.map.config.peers() => {}
            Errand::Vote { replayer, origin, index, generation } => {
                let which = (index, generation);
                self.handle_vote(fabric, now, (origin, replayer), which, completion);
            }
        }
    }

    /// `peer` is reachable in its present incarnation: messages that it may have missed are sent
    /// again.
    pub fn handle_admitted(&mut self, peer: Peer) {
        if !self.members.others().contains(peer) {
            return;
        }
        self.reachable.insert(peer);
        // A ring holds no more, and no member is further behind.
        let oldest = self.origin.last().saturating_sub(u64::from(self.map.config.slots()));
        let oldest = oldest.max(base(self.epochs[self.members.me.index()]));
        let shown = self.window.shown(peer, self.members.me);
        self.origin.restart(peer, shown.max(oldest));
        self.note_heads(self.map.config.lag());
        for stream in &mut self.streams {
            stream.asks = true;
        }
    }

    /// Executes the decision to remove a member: fences it; pending messages then need the votes of
    /// the remaining members only. Idempotent within its term. A decision about epochs before the
    /// one that is counted changes nothing and fences no peer (N-18).
    ///
    /// # Errors
    /// [`RemoveError`]; nothing changed.
    pub fn remove(
        &mut self,
        fabric: &mut impl Fabric,
        decision: Decision,
    ) -> Result<(), RemoveError> {
        if self.map.config.membership() == Membership::Fixed {
            return Err(RemoveError::Fixed);
        }
        let Decision { removed, last, .. } = decision;
        if last < self.epoch(removed) && !ANY_EPOCH.is_planted() {
            return Ok(());
        }
        decision.fence(fabric, self.map.config.peers(), &mut self.members.term)?;
        self.drop_member(removed, last);
        Ok(())
    }

    fn others(&self) -> impl Iterator<Item = Peer> + use<PEERS, DEPTH> {
        let me = self.members.me;
        (0..self.map.config.peers()).map(Peer).filter(move |peer| *peer != me)
    }

    fn unreachable(&self) -> PeerSet {
        PeerSet::first(usize::from(self.map.config.peers())).without(self.reachable)
    }

    fn note_refusal(&mut self, peer: Peer, error: PostError) {
        match error {
            PostError::Full => {}
            PostError::Gone => self.reachable.remove(peer),
            PostError::Rejected(reject) => {
                debug_assert!(false, "an address that the layout does not have: {reject}");
                self.reachable.remove(peer);
            }
        }
    }

    /// Marks members that have shown `lag` messages less of an origin than this member has seen.
    fn note_heads(&mut self, lag: u64) {
        for origin in (0..self.map.config.peers()).map(Peer) {
            let head = self.streams[origin.index()].next - 1;
            self.window.note_head(&self.members, origin, head, lag);
        }
    }

    fn handle_progress(&mut self, fabric: &impl Fabric, now: Instant, completion: &Completion) {
        let peer = completion.peer;
        let is_present = self.window.handle_end(peer);
        let mut news = News::None;
        if is_present && completion.outcome.is_ok() {
            news = self.window.hear(fabric, &self.map, peer);
            if self.note_counted(fabric, peer) == News::Some {
                news = News::Some;
            }
        }
        self.window.pause(peer, now, self.map.config.retry(), news);
        self.note_heads(self.map.config.lag());
    }
}

/// Finds the messages that an earlier incarnation exposed and did not deliver.
fn find_exposed<const DEPTH: usize>(
    fabric: &impl Fabric,
    map: &Map,
    origin: Peer,
    stream: &mut Stream<DEPTH>,
    scratch: &mut [u8],
) {
    while stream.has_place(map) {
        let stamp = map.config.stamp(origin, stream.next);
        let Some(exposed) = Exposed::find(fabric, map, stamp, scratch) else {
            return;
        };
        *stream.ballot_mut(map, stream.next) = Ballot::on(exposed);
        stream.next += 1;
        stream.asks = true;
    }
}
