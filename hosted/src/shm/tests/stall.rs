//! A writer that stalls between its look at the gate and its copy, while its owner is succeeded.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration as Wall;

use weft_core::endpoint::{Endpoint, Event, Plan};
use weft_core::fabric::Op;
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::{Duration, Instant};
use weft_core::{lane, mailbox};

use crate::shm::fabric::{ShmFabric, WriteStall};
use crate::shm::{NodeMemory, OwnMemory, RemoteMemory, Wait};

const OWNER: Peer = Peer(0);
const WRITER: Peer = Peer(1);
const FIRST: Incarnation = Incarnation(1);
const SECOND: Incarnation = Incarnation(2);
const STALL: Duration = Duration::from_millis(1);
const SOON: Wall = Wall::from_secs(60);

type Member = Endpoint<ShmFabric, 16, 2>;

struct Pair {
    plan: Plan,
    memories: [NodeMemory; 2],
}

impl Pair {
    fn new() -> Self {
        let sizes = mailbox::Config::new(2, 16, 64, STALL).unwrap();
        let plan = Plan::new(sizes, lane::Config::new(2, 8, 64).unwrap()).unwrap();
        let memories =
            ["weft-test-a", "weft-test-b"].map(|name| NodeMemory::create(name, plan.layout()));
        Self { plan, memories: memories.map(Result::unwrap) }
    }

    fn member(&self, peer: Peer, incarnation: Incarnation) -> Member {
        let layout = self.plan.layout();
        let grant = self.memories[peer.index()].grant_owner().unwrap();
        let own = OwnMemory::map(layout, &grant).unwrap();
        let fabric = ShmFabric::new(peer, incarnation, layout.clone(), own, Wait::Yield);
        Endpoint::new(fabric, &self.plan, incarnation)
    }

    fn admit(&self, member: &mut Member, peer: Peer, incarnation: Incarnation) {
        let layout = self.plan.layout();
        let grant = self.memories[peer.index()].grant(layout, member.me()).unwrap();
        let memory = RemoteMemory::map(layout, member.me(), &grant).unwrap();
        member.fabric().connect(peer, memory, None);
        member.admit(peer, incarnation).unwrap();
    }
}

/// Stops `member` at its next write, between gate and copy: it says so, and waits for a word.
fn stop_at_write(member: &mut Member) -> (Receiver<()>, Sender<()>) {
    let (here, stopped) = channel();
    let (go, gone_on) = channel::<()>();
    member.fabric().stall = WriteStall(Box::new(move |op| {
        if matches!(op, Op::Write { .. }) && here.send(()).is_ok() {
            let _ = gone_on.recv();
        }
    }));
    (stopped, go)
}

fn take(owner: &mut Member, now: Instant) -> Option<Vec<u8>> {
    let message = owner.take(now)?;
    let (payload, receipt) = (message.payload.to_vec(), message.receipt);
    owner.release(receipt).unwrap();
    Some(payload)
}

#[test]
fn a_copy_into_the_memory_of_the_next_incarnation_overwrites_nothing_and_is_delivered() {
    let pair = Pair::new();
    let mut owner = pair.member(OWNER, FIRST);
    let mut writer = pair.member(WRITER, FIRST);
    pair.admit(&mut owner, WRITER, FIRST);
    pair.admit(&mut writer, OWNER, FIRST);
    let (stopped, go) = stop_at_write(&mut writer);
    let writing = thread::spawn(move || {
        // The write is posted within the flush, once the ticket is known.
        writer.put(OWNER, 0, b"late").unwrap();
        while writer.poll_event().is_none() {
            writer.poll(Instant(0));
        }
        writer
    });
    stopped.recv_timeout(SOON).unwrap();
    drop(owner);

    let mut owner = pair.member(OWNER, SECOND);
    let mut now = Instant(1);
    for _ in 0..8 {
        assert_eq!(take(&mut owner, now), None);
        owner.poll(now);
        now = now.after(STALL);
    }
    assert_eq!(owner.counters().mailbox.skipped, 0, "the writer was not named");
    pair.admit(&mut owner, WRITER, FIRST);
    owner.handle_all_named();
    for _ in 0..8 {
        assert_eq!(take(&mut owner, now), None);
        owner.poll(now);
        now = now.after(STALL);
    }
    assert_eq!(owner.counters().mailbox.skipped, 0, "the writer says that it holds the ticket");
    drop((stopped, go));
    let mut writer = writing.join().unwrap();
    assert_eq!(take(&mut owner, now).as_deref(), Some(&b"late"[..]));
    writer.fence(OWNER).unwrap();
    assert_eq!(writer.poll_event(), None::<Event>);
}
