//! Members: endpoints with all their machines, over verbs and over memory that outlives them.

use std::sync::Arc;

use weft_core::endpoint::{Endpoint, Event, Plan};
use weft_core::fabric::{
    At, Completion, CompletionFlags, Fabric, FenceError, Op, PostError, Work, WorkId,
};
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::{Duration, Instant};
use weft_core::{lane, mailbox};
use weft_driver::{Config, Heap};

use crate::rig::{self, End};

/// The most members of a party.
pub(crate) const MEMBERS: u16 = 4;
/// Slots of a half, and the most of any plan here.
pub(crate) const SLOTS: usize = 8;

pub(crate) fn plan() -> Plan {
    let stall_after = Duration::from_millis(1);
    let sizes = mailbox::Config::new(MEMBERS, SLOTS as u32, 40, stall_after).unwrap();
    Plan::new(sizes, lane::Config::new(MEMBERS, 8, 40).unwrap()).unwrap()
}

/// A fabric whose writes can be kept back between the poster and the device.
#[derive(Debug)]
pub(crate) struct Hand {
    end: End,
    is_closed: bool,
    kept: Vec<(Peer, WorkId, At, Vec<u8>)>,
}

impl Hand {
    pub(crate) fn end(&mut self) -> &mut End {
        &mut self.end
    }

    /// Keeps every write from now on.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    /// How many writes are kept.
    pub(crate) fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Posts what was kept, in order; says what became of the posts.
    pub(crate) fn open(&mut self) -> Vec<Result<(), PostError>> {
        self.is_closed = false;
        let kept = std::mem::take(&mut self.kept);
        let post = |(peer, id, to, bytes): (Peer, WorkId, At, Vec<u8>)| {
            let op = Op::Write { to, bytes: &bytes };
            self.end.post(peer, Work { id, op, flags: CompletionFlags::empty() })
        };
        kept.into_iter().map(post).collect()
    }
}

impl Fabric for Hand {
    type Memory = Heap;

    weft_core::delegate_fabric!(self => self.end);

    fn post(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        if let (true, Op::Write { to, bytes }) = (self.is_closed, work.op) {
            self.kept.push((peer, work.id, to, bytes.to_vec()));
            return Ok(());
        }
        self.end.post(peer, work)
    }

    fn poll(&mut self, now: Instant, done: &mut [Completion]) -> usize {
        self.end.poll(now, done)
    }

    fn memory(&self) -> &Heap {
        self.end.memory()
    }

    fn fence(&mut self, peer: Peer) -> Result<(), FenceError> {
        self.end.fence(peer)
    }

    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError> {
        self.end.admit(peer, incarnation)
    }
}

/// A member in one of its incarnations.
pub(crate) struct Member {
    pub(crate) endpoint: Box<Endpoint<Hand, SLOTS, { MEMBERS as usize }>>,
    pub(crate) memory: Arc<Heap>,
    pub(crate) incarnation: Incarnation,
}

impl Member {
    /// `incarnation` of `me`, over memory that earlier ones may have left.
    pub(crate) fn begin(me: Peer, incarnation: Incarnation, memory: Arc<Heap>) -> Option<Self> {
        let plan = plan();
        let end = rig::end_over(me, plan.layout(), Config::default(), Arc::clone(&memory))?;
        Some(Self::over(end, incarnation, memory))
    }

    /// As [`Self::begin`], with a fabric that is there already.
    pub(crate) fn over(end: End, incarnation: Incarnation, memory: Arc<Heap>) -> Self {
        let hand = Hand { end, is_closed: false, kept: Vec::new() };
        let mut endpoint = Box::new(Endpoint::new(hand, &plan(), incarnation));
        if incarnation == rig::FIRST.0 {
            // No process had this memory before.
            endpoint.handle_all_named();
        }
        Self { endpoint, memory, incarnation }
    }

    /// Its next incarnation over the same memory. The caller has ended this one, or ends it now.
    pub(crate) fn next_life(self) -> Self {
        let (me, incarnation, memory) =
            (self.me(), self.incarnation.next(), Arc::clone(&self.memory));
        drop(self);
        Self::begin(me, incarnation, memory).expect("the device was there before")
    }

    pub(crate) fn me(&self) -> Peer {
        self.endpoint.me()
    }

    /// One turn of its loop.
    pub(crate) fn turn(&mut self) -> Vec<Event> {
        self.endpoint.poll(rig::now());
        std::iter::from_fn(|| self.endpoint.poll_event()).collect()
    }

    /// Puts all of `payloads` as one batch, and returns when they are in the memory of `to`.
    pub(crate) fn put(&mut self, to: Peer, payloads: &[&[u8]]) {
        for payload in payloads {
            self.endpoint.stage(to, 0, payload).unwrap();
        }
        self.endpoint.flush(to).unwrap();
        rig::until("a put", || match self.turn()[..] {
            [] => None,
            [Event::Put { left: 0, .. }] => Some(()),
            [Event::Put { .. } | Event::Full { .. }] => {
                self.endpoint.flush(to).unwrap();
                None
            }
            ref other => panic!("{other:?}"),
        });
    }

    /// The next message, taken and released.
    pub(crate) fn take(&mut self) -> Option<(Peer, Vec<u8>)> {
        let message = self.endpoint.take(rig::now())?;
        let (sender, payload, receipt) =
            (message.sender, message.payload.to_vec(), message.receipt);
        self.endpoint.release(receipt).unwrap();
        Some((sender, payload))
    }

    /// Waits for the next message.
    pub(crate) fn await_message(&mut self) -> (Peer, Vec<u8>) {
        rig::until("a message", || {
            assert_eq!(self.turn(), []);
            self.take()
        })
    }

    /// Every byte of its memory.
    pub(crate) fn image(&self) -> Vec<u8> {
        use weft_core::fabric::{Memory, Region};
        let plan = plan();
        let regions = (0..).zip(plan.layout().regions());
        regions.fold(Vec::new(), |mut image, (number, spec)| {
            let begin = image.len();
            image.resize(begin + spec.len as usize, 0);
            self.memory.copy_out(Region(number), 0, &mut image[begin..]);
            image
        })
    }
}

/// Introduces two members to each other and admits both.
pub(crate) fn meet(one: &mut Member, other: &mut Member) {
    let incarnations = (one.incarnation, other.incarnation);
    rig::introduce(one.endpoint.fabric().end(), other.endpoint.fabric().end(), incarnations);
    one.endpoint.admit(other.me(), other.incarnation).unwrap();
    other.endpoint.admit(one.me(), one.incarnation).unwrap();
}

/// An owner and its writers in their first incarnations; the writers know the owner only.
pub(crate) fn party(writers: u16) -> Option<(Member, Vec<Member>)> {
    let first = Incarnation(1);
    let begin = |peer| Member::begin(Peer(peer), first, Arc::new(Heap::new(plan().layout())));
    let mut owner = begin(0)?;
    let mut writers: Vec<_> = (1..=writers).map(|peer| begin(peer).unwrap()).collect();
    writers.iter_mut().for_each(|writer| meet(&mut owner, writer));
    Some((owner, writers))
}
