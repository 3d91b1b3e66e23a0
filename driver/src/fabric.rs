//! The fabric over verbs: a pair of queue pairs for each two endpoints.
//!
//! How the contract is kept where it is not obvious:
//!
//! | rule | how |
//! |---|---|
//! | F-1 | a reliable connection carries requests out in order; a write behind reads or atomics is held back until they have ended, unless it is apart |
//! | F-2 | [`send_queue`](crate::send_queue) |
//! | F-4 | work for oneself goes through a pair that ends at oneself, and so through the same device |
//! | F-5 | looked up in the layout before posting, since a refusal by the device costs the pair; and enforced by the peer's device, by registration and protection domain |
//! | F-6 | the device gives up after its retries ([`Config::worst_case_detection`]) |
//! | F-9 | the pair is moved to error, drained and destroyed, and the peer's registrations are taken back. A later incarnation has other keys in another domain |
//! | F-10 | inline, or copied to a scratch slot |
//! | F-12 | a deadline of our own, counted from the first poll after the post; `poll` must be called for it to pass |
//!
//! An admitted peer that was not let in on its own side within the detection time is lost: bring
//! both `admit`s close together, or let the first work wait for the other side's word.
//!
//! [`CompletionFlags::WAKE`](weft_core::fabric::CompletionFlags::WAKE) is ignored: peers poll.

use std::collections::VecDeque;
use std::sync::Arc;

use weft_core::fabric::{
    Completion, Fabric, FenceError, Layout, Placement, PostError, Region, Work,
};
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::time::{Duration, Instant};

use crate::event::{self, Event};
use crate::pair::{Loss, Pair};
use crate::{Config, Device, Error, HostMemory, LocalEnd, RemoteEnd, Verb};

/// How often asynchronous events are looked for.
const WATCH_EVERY: Duration = Duration::from_millis(1);

/// A peer as this endpoint knows it.
#[derive(Debug)]
struct Link<M> {
    pair: Option<Pair<M>>,
    /// Prepared for an incarnation that is not admitted yet.
    next: Option<Pair<M>>,
    /// The earliest incarnation that may be admitted.
    earliest: Incarnation,
    /// A pair could be neither failed nor destroyed.
    resists: bool,
}

/// One endpoint over verbs.
#[derive(Debug)]
pub struct VerbsFabric<M: HostMemory> {
    me: Peer,
    layout: Layout,
    config: Config,
    links: Vec<Link<M>>,
    /// The other end of the pair that ends at oneself.
    mirror: Pair<M>,
    /// Completions that no queue holds: of closed pairs.
    done: VecDeque<Completion>,
    /// The link that the next poll begins with.
    turn: usize,
    watch_at: Instant,
    port_is_up: bool,
    device: Device,
    memory: Arc<M>,
}

impl<M: HostMemory> VerbsFabric<M> {
    /// The endpoint `me` over its own `memory`; it has admitted itself alone.
    ///
    /// # Errors
    /// [`Error`]; nothing is left registered.
    pub fn new(
        me: Peer,
        layout: Layout,
        device: Device,
        config: Config,
        memory: Arc<M>,
    ) -> Result<Self, Error> {
        config.check()?;
        if me.0 >= layout.peers() {
            return Err(Error::UnknownPeer(me));
        }
        let limits = device.limits();
        let depth = u32::from(config.depth).min(limits.depth).min(limits.completions);
        let config = Config { depth: u16::try_from(depth).unwrap_or(u16::MAX), ..config };
        config.check()?;
        let message_len = config.message_len_max.min(limits.message_len & !7).max(8);
        for (number, spec) in (0..).zip(layout.regions()) {
            if spec.len.div_ceil(message_len) >= u32::from(config.depth) {
                return Err(Error::RegionTooLong(Region(number)));
            }
        }
        event::watch(&device)?;

        let prepare = || Pair::prepare(&device, &config, (&layout, &memory), me, Incarnation(1));
        let (mut own, mut mirror) = (prepare()?, prepare()?);
        own.connect(RemoteEnd(mirror.local_end().0));
        mirror.connect(RemoteEnd(own.local_end().0));
        own.open(&device)?;
        mirror.open(&device)?;

        let mut links: Vec<_> = (0..layout.peers()).map(|_| Link::unknown()).collect();
        links[me.index()].pair = Some(own);
        Ok(Self {
            me,
            layout,
            config,
            links,
            mirror,
            done: VecDeque::new(),
            turn: 0,
            watch_at: Instant(0),
            port_is_up: true,
            device,
            memory,
        })
    }

    /// Makes a pair for `incarnation` of `peer`, whose end is to be sent to it. What was
    /// prepared for it before is dropped; a pair that is open stays so until the next `admit`.
    ///
    /// # Errors
    /// [`Error`]; nothing was changed.
    pub fn prepare(&mut self, peer: Peer, incarnation: Incarnation) -> Result<LocalEnd, Error> {
        if incarnation < self.link(peer)?.earliest {
            return Err(Error::StaleIncarnation(peer));
        }
        let of = (&self.layout, &self.memory);
        let pair = Pair::prepare(&self.device, &self.config, of, peer, incarnation)?;
        let end = pair.local_end();
        self.link(peer)?.next = Some(pair);
        Ok(end)
    }

    /// Notes the end that `peer` has made for the pair prepared last.
    ///
    /// # Errors
    /// [`Error::End`], [`Error::NotPrepared`] or [`Error::UnknownPeer`]; nothing was changed.
    pub fn connect(&mut self, peer: Peer, end: RemoteEnd) -> Result<(), Error> {
        end.0.check(&self.layout)?;
        let next = self.link(peer)?.next.as_mut().ok_or(Error::NotPrepared(peer))?;
        next.connect(end);
        Ok(())
    }

    /// What [`Fabric::admit`] does, with the error in full.
    ///
    /// # Errors
    /// [`Error`]; the peer stays shut out.
    pub fn open(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), Error> {
        let link = self.link(peer)?;
        if incarnation < link.earliest {
            return Err(Error::StaleIncarnation(peer));
        }
        let is_next = |pair: &mut Pair<M>| pair.incarnation() == incarnation && pair.is_connected();
        let Some(mut next) = link.next.take_if(is_next) else {
            let is_in = link
                .pair
                .as_ref()
                .is_some_and(|pair| pair.incarnation() == incarnation && pair.is_open());
            return if is_in { Ok(()) } else { Err(Error::NotPrepared(peer)) };
        };
        self.close(peer)?;
        next.open(&self.device)?;
        let link = self.link(peer)?;
        link.earliest = incarnation;
        link.pair = Some(next);
        Ok(())
    }

    /// Whether the device promises that the bytes of a write are placed in ascending order, which
    /// no protocol here relies on (F-3); `None` where libibverbs cannot be asked.
    #[must_use]
    pub fn data_in_order(&self) -> Option<bool> {
        self.mirror.data_in_order()
    }

    /// The peers that were let in and whose pair is of no use any more, and this endpoint itself
    /// when it cannot reach its own memory, until they are fenced. No completion reports a pair
    /// that was lost with nothing of the poster's in it: by the driver's own marker, or idle.
    #[must_use]
    pub fn lost(&self) -> PeerSet {
        let mut lost = PeerSet::EMPTY;
        for (peer, link) in (0..).map(Peer).zip(&self.links) {
            if link.pair.as_ref().is_some_and(|pair| !pair.is_open()) {
                lost.insert(peer);
            }
        }
        if !self.mirror.is_open() {
            lost.insert(self.me);
        }
        lost
    }

    /// Whether the port was up when it was last heard of.
    #[must_use]
    pub const fn port_is_up(&self) -> bool {
        self.port_is_up
    }

    /// The configuration, as far as the device goes along.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The device in use.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    fn link(&mut self, peer: Peer) -> Result<&mut Link<M>, Error> {
        let is_me = peer == self.me;
        let link = self.links.get_mut(peer.index()).filter(|_| !is_me);
        link.ok_or(Error::UnknownPeer(peer))
    }

    /// Closes the pair with `peer`, if there is one; its work ends.
    fn close(&mut self, peer: Peer) -> Result<(), Error> {
        let Some(pair) = self.link(peer)?.pair.take() else { return Ok(()) };
        let closed = pair.close(|completion| self.done.push_back(completion));
        self.link(peer)?.resists |= closed.is_err();
        closed
    }

    fn watch(&mut self) {
        while let Some(event) = event::next(self.device.context()) {
            let own = self.links.iter_mut().filter_map(|link| link.pair.as_mut());
            let pairs = own.chain([&mut self.mirror]);
            match event {
                Event::DeviceLost => pairs.for_each(lose),
                Event::PairLost { token } => {
                    pairs.filter(|pair| pair.is_about(token)).for_each(lose);
                }
                Event::PortDown => self.port_is_up = false,
                Event::PortUp => self.port_is_up = true,
                Event::Irrelevant => {}
            }
        }
    }
}

impl<M> Link<M> {
    const fn unknown() -> Self {
        Self { pair: None, next: None, earliest: Incarnation(1), resists: false }
    }
}

fn lose<M: HostMemory>(pair: &mut Pair<M>) {
    // A pair that resists is not posted to any more; its fence will say so.
    let _ = pair.lose(Loss::Device);
}

impl<M: HostMemory> Fabric for VerbsFabric<M> {
    type Memory = M;

    fn me(&self) -> Peer {
        self.me
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn placement(&self) -> Placement {
        Placement::Bytes
    }

    fn post(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        let target = work.op.check(&self.layout, peer).map_err(PostError::Rejected)?;
        let pair = self.links[peer.index()].pair.as_mut();
        let pair = pair.filter(|pair| pair.is_open()).ok_or(PostError::Gone)?;
        let region = work.op.target().0.region;
        let is_allowed = target.allows(self.me, work.op.needs());
        match pair.grant(region.0).filter(|_| is_allowed) {
            Some(grant) => pair.post(&work, grant),
            None => pair.post_denied(work.id),
        }
    }

    fn poll(&mut self, now: Instant, done: &mut [Completion]) -> usize {
        if now >= self.watch_at {
            self.watch_at = now.after(WATCH_EVERY);
            self.watch();
        }
        let mut count = done.len().min(self.done.len());
        for (place, completion) in done.iter_mut().zip(self.done.drain(..count)) {
            *place = completion;
        }
        let (before, from_turn) = self.links.split_at_mut(self.turn);
        for link in from_turn.iter_mut().chain(before) {
            if let Some(pair) = &mut link.pair {
                count += pair.poll(now, &mut done[count..]);
            }
        }
        self.turn = (self.turn + 1) % self.links.len();
        count
    }

    fn memory(&self) -> &M {
        &self.memory
    }

    fn fence(&mut self, peer: Peer) -> Result<(), FenceError> {
        let link = self.link(peer).map_err(|_| FenceError::UnknownPeer)?;
        if let Some(pair) = &link.pair {
            link.earliest = pair.incarnation().next();
        }
        let earliest = link.earliest;
        link.next.take_if(|next| next.incarnation() < earliest);
        // What failed is remembered by the link.
        let _ = self.close(peer);
        let resists = self.links[peer.index()].resists;
        if resists { Err(FenceError::StillReaching) } else { Ok(()) }
    }

    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError> {
        self.open(peer, incarnation).map_err(|error| match error {
            Error::UnknownPeer(_) => FenceError::UnknownPeer,
            Error::Verb(Verb::ModifyToError | Verb::DestroyQueuePair, _) => {
                FenceError::StillReaching
            }
            Error::NoRdma
            | Error::OldLibrary { .. }
            | Error::NoSuchDevice(_)
            | Error::NoSuchPort(_)
            | Error::PortDown(_)
            | Error::NoGid(_)
            | Error::NoAtomics
            | Error::Config(_)
            | Error::End(_)
            | Error::NotPrepared(_)
            | Error::StaleIncarnation(_)
            | Error::MemoryLength { .. }
            | Error::RegionTooLong(_)
            | Error::Verb(_, _) => FenceError::NotReady,
        })
    }
}
