//! Expose, then read (N-3, N-4): of two members that expose their copies of one message and then
//! read each other's, at least one sees the other's. SYNC: neb-expose.
//!
//! ```text
//!   origin 0, a liar: wrote `y` to member 1 and `n` to member 2
//!   member 1:  expose y ── fence ── read what 2 exposes          both are whole machines, each in
//!   member 2:  expose n ── fence ── read what 1 exposes          a thread of its own
//! ```
//!
//! Without the fence each may read nothing, takes that for a vote, and delivers: store buffering,
//! which no protocol above can mend. The fabric here is that of shared memory without its gates: a
//! work takes effect where it is posted, by relaxed words between fences (`Words`).

use std::collections::VecDeque;

use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;
use weft_core::checksum::crc32c;
use weft_core::fabric::{
    Completion, Fabric, FenceError, Layout, Memory, Op, Placement, PostError, Region, WordMemory,
    Words, Work,
};
use weft_core::ids::{Incarnation, Peer};
use weft_core::neb::{Config, Membership, Neb, Regions, Retry, Sizes};
use weft_core::sync::{AtomicU64, Ordering};
use weft_core::time::{Duration, Instant};
use weft_core::wire::broadcast::{Form, HEADER_LEN, Header, seal};

use crate::alone;
use crate::publication::PREEMPTIONS;

const MEMBERS: u16 = 3;
const LIAR: Peer = Peer(0);

/// Rounds of a member's loop: one exposes and reads, one handles what was read.
const ROUNDS: usize = 2;

/// The stack of a member, in words: a machine holds copies of the longest slots.
const STACK_WORDS: usize = 1 << 17;

/// The regions of one member.
struct Own {
    layout: Layout,
    words: Vec<AtomicU64>,
}

impl Own {
    fn new(layout: &Layout) -> Self {
        let words = layout.total_len().div_ceil(8);
        Self { layout: layout.clone(), words: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl WordMemory for Own {
    fn words(&self, region: Region) -> Words<'_> {
        let len = self.layout.spec(region).map_or(0, |spec| spec.len as usize);
        Words(&self.words).range(self.layout.offset(region) as usize, len)
    }
}

/// One member's view: all members are reachable.
struct Member {
    me: Peer,
    all: Arc<Vec<Own>>,
    done: VecDeque<Completion>,
}

impl Fabric for Member {
    type Memory = Own;

    fn me(&self) -> Peer {
        self.me
    }

    fn layout(&self) -> &Layout {
        &self.memory().layout
    }

    fn placement(&self) -> Placement {
        Placement::Bytes
    }

    fn post(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        let Op::Read { from, into, len } = work.op else {
            unreachable!("a member that broadcasts nothing only reads")
        };
        let theirs = self.all[peer.index()].words(from.region);
        let theirs = theirs.range(from.offset as usize, len as usize);
        let own = self.memory().words(into.region).range(into.offset as usize, len as usize);
        own.copy_each(theirs.0.iter().map(|word| word.load(Ordering::Relaxed)));
        self.done.push_back(Completion { id: work.id, peer, outcome: Ok(0) });
        Ok(())
    }

    fn poll(&mut self, _now: Instant, done: &mut [Completion]) -> usize {
        let count = done.len().min(self.done.len());
        done.iter_mut().zip(self.done.drain(..count)).for_each(|(to, from)| *to = from);
        count
    }

    fn memory(&self) -> &Own {
        &self.all[self.me.index()]
    }

    fn fence(&mut self, _peer: Peer) -> Result<(), FenceError> {
        Ok(())
    }

    fn admit(&mut self, _peer: Peer, _incarnation: Incarnation) -> Result<(), FenceError> {
        Ok(())
    }
}

fn sizes() -> (Config, Regions, Layout) {
    let config = Config::new(Sizes {
        peers: MEMBERS,
        slots: 1,
        depth: 1,
        message_len: 8,
        form: Form::Unsigned,
        membership: Membership::Fixed,
        retry: Retry { after: Duration(1), after_max: Duration(1) },
    });
    let (config, mut layout) = (config.unwrap(), Layout::new(MEMBERS));
    let regions = config.add_regions(&mut layout).unwrap();
    (config, regions, layout)
}

/// What the liar writes to a member.
fn slot(config: &Config, face: u8) -> Vec<u8> {
    let header = Header { stamp: config.stamp(LIAR, 1), len: 1, tag: 0, form: Form::Unsigned };
    let mut slot = vec![0; header.used().next_multiple_of(8)];
    header.write(&mut slot);
    slot[HEADER_LEN] = face;
    seal(&mut slot[..header.used()], crc32c);
    slot
}

/// Exposes what was written, reads what the other exposes, and returns what it delivers.
fn decide(mut fabric: Member, (config, regions): (Config, Regions)) -> Option<u8> {
    let mut neb = Neb::<3, 1>::attach(&fabric, config, regions);
    let others = (0..MEMBERS).map(Peer).filter(|peer| *peer != fabric.me);
    others.for_each(|peer| neb.handle_admitted(peer));
    let mut done = [Completion::NONE; 4];
    for _ in 0..ROUNDS {
        let count = fabric.poll(Instant(0), &mut done);
        for completion in &done[..count] {
            neb.handle_completion(&mut fabric, Instant(0), completion);
        }
        neb.poll(&mut fabric, Instant(0));
    }
    neb.take_from(&fabric, LIAR).map(|message| message.payload[0])
}

/// No two members deliver different messages under one number.
pub(crate) fn agreement() {
    let mut model = Builder::new();
    model.preemption_bound = Some(PREEMPTIONS);
    model.max_branches = 20_000;
    model.check(|| {
        let (config, regions, layout) = sizes();
        let all: Vec<Own> = (0..MEMBERS).map(|_| Own::new(&layout)).collect();
        for (member, face) in all.iter().zip(*b"-yn") {
            let at = config.written_at(&regions, LIAR, 1);
            member.copy_in(at.region, at.offset, &slot(&config, face));
        }
        let all = Arc::new(all);
        let members = [Peer(1), Peer(2)].map(|me| {
            let fabric = Member { me, all: Arc::clone(&all), done: VecDeque::new() };
            let member = thread::Builder::new().stack_size(STACK_WORDS);
            member.spawn(move || decide(fabric, (config, regions))).unwrap()
        });
        let [first, second] = members.map(|member| member.join().unwrap());
        assert!(first.is_none() || second.is_none() || first == second, "{first:?}, {second:?}");
    });
}

#[test]
fn two_members_that_expose_and_read_do_not_deliver_two_messages() {
    let _alone = alone();
    agreement();
}
