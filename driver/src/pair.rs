//! One incarnation of a peer, as this endpoint is connected to it.
//!
//! ```text
//!   prepare ─▶ Prepared ─ connect, open ─▶ Open ─ lose ─▶ Failed ─ flushed, or too late ─▶ Closed
//!                                            └──────────── close ──────────────────────────▶
//! ```
//!
//! Everything a pair needs is its own: protection domain, registrations, completion queue, scratch
//! memory. Dropping it takes all of that back, which is what revokes the peer's rights.

use std::collections::VecDeque;
use std::sync::Arc;

use weft_core::fabric::{Completion, Failure, Layout};
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::Instant;

use crate::completion::{BATCH, CompletionQueue};
use crate::device::Device;
use crate::queue_pair::{Failed, Init, QueuePair, ReadyToSend, Request};
use crate::region::{Domain, GrantedRegions};
use crate::scratch::Scratch;
use crate::send_queue::{Behind, Ended, Fetch, SendQueue};
use crate::{Config, End, Errno, Error, Grant, HostMemory, LocalEnd, RemoteEnd, Verb};

mod polling;
mod posting;

/// How often a closing pair is polled for the ends of its work before they are given up.
const FLUSH_POLLS: u32 = 10_000;

#[derive(Debug)]
enum State {
    Prepared(QueuePair<Init>),
    Open(QueuePair<ReadyToSend>),
    Failed(QueuePair<Failed>),
    Closed,
}

/// Why a pair is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The device said so, in a completion or an event, or refused a post.
    Device,
    /// Work was overdue at this time.
    Deadline(Instant),
    /// This endpoint wanted it so.
    Closed,
}

/// A pair with `peer`.
#[derive(Debug)]
pub(crate) struct Pair<M> {
    peer: Peer,
    incarnation: Incarnation,
    state: State,
    completions: Arc<CompletionQueue>,
    scratch: Scratch,
    regions: GrantedRegions<M>,
    local: End,
    remote: Option<End>,
    queue: SendQueue,
    /// Works of the queue that the device does not have yet, in order.
    held: VecDeque<(Request<'static>, Behind)>,
    config: Config,
    /// The longest message that both the device and the configuration take.
    message_len: u32,
    loss: Option<Loss>,
    /// The first poll after the loss.
    lost_at: Option<Instant>,
}

/// A random number for the first packet.
fn first_packet() -> Result<u32, Error> {
    let mut bytes = [0; 4];
    rustix::rand::getrandom(&mut bytes[..3], rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| Error::Verb(Verb::DrawRandom, Errno(errno.raw_os_error())))?;
    Ok(u32::from_le_bytes(bytes))
}

impl<M: HostMemory> Pair<M> {
    /// A pair with `incarnation` of `peer`, which admits nothing yet.
    pub(crate) fn prepare(
        device: &Device,
        config: &Config,
        (layout, memory): (&Layout, &Arc<M>),
        peer: Peer,
        incarnation: Incarnation,
    ) -> Result<Self, Error> {
        let domain = Arc::new(Domain::new(device.context())?);
        let regions = GrantedRegions::new(&domain, memory, layout, peer)?;
        let scratch = Scratch::new(&domain, config.depth)?;
        let completions = Arc::new(CompletionQueue::new(device.context(), config.depth)?);
        let pair = QueuePair::new(&domain, &completions, config)?;
        let pair = pair.initialise(device, regions.rights())?;
        let local = End {
            queue_pair: pair.number(),
            first_packet: first_packet()?,
            local_id: device.local_id(),
            gid: device.address().gid,
            mtu: device.mtu(),
            reads_answered: config.reads_in_flight_max.min(device.limits().reads_answered),
            grants: regions.grants(),
        };
        Ok(Self {
            peer,
            incarnation,
            state: State::Prepared(pair),
            completions,
            scratch,
            regions,
            local,
            remote: None,
            queue: SendQueue::new(config.depth),
            held: VecDeque::with_capacity(usize::from(config.depth)),
            config: *config,
            message_len: config.message_len_max.min(device.limits().message_len & !7).max(8),
            loss: None,
            lost_at: None,
        })
    }

    pub(crate) fn local_end(&self) -> LocalEnd {
        LocalEnd(self.local.clone())
    }

    pub(crate) const fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Notes the peer's end, which was checked.
    pub(crate) fn connect(&mut self, remote: RemoteEnd) {
        self.remote = Some(remote.0);
    }

    /// What the device promises about the order of bytes, while the pair is open.
    pub(crate) fn data_in_order(&self) -> Option<bool> {
        match &self.state {
            State::Open(pair) => pair.data_in_order(),
            State::Prepared(_) | State::Failed(_) | State::Closed => None,
        }
    }

    pub(crate) const fn is_connected(&self) -> bool {
        self.remote.is_some()
    }

    /// Lets the peer in. On failure the pair is closed.
    pub(crate) fn open(&mut self, device: &Device) -> Result<(), Error> {
        let remote = self.remote.as_ref().ok_or(Error::NotPrepared(self.peer))?;
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Prepared(pair) => {
                let pair = pair.ready_to_receive(device, &self.local, remote, &self.config)?;
                let pair = pair.ready_to_send(device, &self.local, remote, &self.config)?;
                self.state = State::Open(pair);
                Ok(())
            }
            State::Open(_) | State::Failed(_) | State::Closed => Err(Error::NotPrepared(self.peer)),
        }
    }

    pub(crate) const fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// What the peer grants in the region of this number.
    pub(crate) fn grant(&self, region: u8) -> Option<Grant> {
        *self.remote.as_ref()?.grants.get(usize::from(region))?
    }

    /// Whether an asynchronous event is about this pair.
    pub(crate) fn is_about(&self, token: usize) -> bool {
        let pair = match &self.state {
            State::Prepared(pair) => pair.token(),
            State::Open(pair) => pair.token(),
            State::Failed(pair) => pair.token(),
            State::Closed => return false,
        };
        token == pair || token == self.completions.as_ptr().addr()
    }

    /// Moves an open pair to error. Its work ends with completions, which polls find.
    pub(crate) fn lose(&mut self, why: Loss) -> Result<(), Error> {
        let State::Open(pair) = std::mem::replace(&mut self.state, State::Closed) else {
            return Ok(());
        };
        self.loss = Some(why);
        match pair.fail() {
            Ok(pair) => {
                self.state = State::Failed(pair);
                Ok(())
            }
            // The pair is gone with the match: destroying it shuts the peer out as well.
            Err((pair, _)) => pair.destroy(),
        }
    }

    /// Shuts the peer out for good: when this returns `Ok`, nothing of it is carried out any
    /// more. Everything outstanding ends through `sink`.
    pub(crate) fn close(mut self, mut sink: impl FnMut(Completion)) -> Result<(), Error> {
        let mut closed = self.lose(Loss::Closed);
        for _ in 0..FLUSH_POLLS {
            if !self.is_flushing() {
                break;
            }
            for end in self.completions.poll(BATCH).iter() {
                let ended = self.queue.end(end.place, end.outcome);
                ended.map(|ended| self.report(ended)).into_iter().for_each(&mut sink);
            }
            std::thread::yield_now();
        }
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Failed(pair) => closed = pair.destroy(),
            State::Prepared(_) | State::Open(_) | State::Closed => {}
        }
        while let Some(ended) = self.abandon() {
            ended.map(|ended| self.report(ended)).into_iter().for_each(&mut sink);
        }
        closed
    }

    /// Whether the device has still to end work that it was given before the pair was lost.
    fn is_flushing(&self) -> bool {
        let is_left_to_us =
            self.held.front().is_some_and(|(held, _)| self.queue.is_next(held.place));
        matches!(self.state, State::Failed(_)) && !self.queue.is_empty() && !is_left_to_us
    }

    /// Ends the first outstanding work on the device's behalf.
    fn abandon(&mut self) -> Option<Option<Ended>> {
        self.queue.abandon(|_| Failure::Gone)
    }

    /// What the poster gets.
    fn report(&self, ended: Ended) -> Completion {
        let outcome = match ended.outcome {
            Ok(()) if ended.fetch == Fetch::Word => Ok(self.scratch.result(ended.place)),
            Ok(()) => Ok(0),
            Err(Failure::Gone) if self.was_overdue(&ended) => Err(Failure::DeadlinePassed),
            Err(failure) => Err(failure),
        };
        Completion { id: ended.id, peer: self.peer, outcome }
    }

    fn was_overdue(&self, ended: &Ended) -> bool {
        match (self.loss, ended.seen) {
            (Some(Loss::Deadline(at)), Some(seen)) => at >= seen.after(self.config.deadline),
            (Some(Loss::Deadline(_) | Loss::Device | Loss::Closed) | None, _) => false,
        }
    }
}
