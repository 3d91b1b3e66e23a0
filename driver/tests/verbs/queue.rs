//! The accounting of the queues, under more work than they hold.

use weft_core::fabric::{
    Access, Completion, CompletionFlags, Fabric, Layout, Memory, Op, PostError, Region, RegionSpec,
    Work, WorkId,
};
use weft_core::ids::{Peer, PeerSet};
use weft_driver::Config;

use crate::rig::{self, End, FIRST, at, run};

const ONE: Peer = Peer(0);
const OTHER: Peer = Peer(1);
const REGION: Region = Region(0);
const LEN: u32 = 64 * 1024;

fn layout() -> Layout {
    let mut layout = Layout::new(2);
    let (access, peers) = (Access::all(), PeerSet::first(2));
    layout.add(RegionSpec { len: LEN, access, peers }).unwrap();
    layout
}

fn two(config: Config) -> Option<(End, End)> {
    let mut one = rig::end(ONE, &layout(), config)?;
    let mut other = rig::end(OTHER, &layout(), config)?;
    rig::introduce(&mut one, &mut other, FIRST);
    rig::admit(&mut one, &mut other, FIRST);
    Some((one, other))
}

/// Posts a quiet write of `value`, polling while the queue is full; nothing may be reported.
fn write_quietly(end: &mut End, value: u64) {
    let (to, bytes) = (at(REGION, (value % 512) as u32 * 8), &value.to_le_bytes());
    let work =
        Work { id: WorkId(value), op: Op::Write { to, bytes }, flags: CompletionFlags::QUIET };
    while let Err(refused) = end.post(OTHER, work) {
        assert_eq!(refused, PostError::Full);
        let mut done = [Completion::NONE; 16];
        let found = end.poll(rig::now(), &mut done);
        assert_eq!(found, 0, "{:?}", &done[..found]);
    }
}

#[test]
fn ten_thousand_quiet_writes_pass_a_queue_of_sixty_four() {
    const WRITES: u64 = 10_000;
    let Some((mut one, other)) = two(Config::default()) else { return };
    assert_eq!(one.config().depth, 64);
    for value in 0..WRITES {
        write_quietly(&mut one, value);
    }
    // The next success speaks for them all.
    assert_eq!(run(&mut one, OTHER, Op::FetchAdd { at: at(REGION, 8192), add: 1 }), Ok(0));
    for value in WRITES - 512..WRITES {
        assert_eq!(other.memory().load(REGION, (value % 512) as u32 * 8), value);
    }
}

/// The device ends all of it before any poll: each end has its place in the completion queue,
/// because no more work was taken in than it holds.
#[test]
fn a_queue_that_nobody_polls_fills_up_and_loses_no_completion() {
    let Some((mut one, other)) = two(Config::default()) else { return };
    for round in 0..3 {
        let add = Op::FetchAdd { at: at(REGION, 0), add: 1 };
        let taken = (0..).find(|&id| rig::post(&mut one, OTHER, id, add).is_err()).unwrap();
        assert_eq!(taken, 63, "all places but the marker's");
        let due = 63 * (round + 1);
        rig::until("the device", || (other.memory().load(REGION, 0) == due).then_some(()));
        assert_eq!(rig::post(&mut one, OTHER, 99, add), Err(PostError::Full), "no poll so far");
        let done = rig::wait(&mut one, 63);
        let ends = (0..63).map(|id| Completion {
            id: WorkId(id),
            peer: OTHER,
            outcome: Ok(63 * round + id),
        });
        assert_eq!(done, ends.collect::<Vec<_>>());
        assert_eq!(one.poll(rig::now(), &mut [Completion::NONE; 4]), 0);
    }
}

/// A quiet tail is no debt: no completion is owed for it, and its pair is not failed.
#[test]
fn a_quiet_tail_outlives_its_deadline() {
    let config = Config { deadline: rig::SHORT, ..Config::default() };
    let Some((mut one, other)) = two(config) else { return };
    write_quietly(&mut one, 5);
    let begin = rig::now();
    while rig::now() < begin.after(rig::SHORT).after(rig::SHORT) {
        assert_eq!(one.poll(rig::now(), &mut [Completion::NONE; 4]), 0);
        std::thread::yield_now();
    }
    assert_eq!(other.memory().load(REGION, 40), 5);
    assert_eq!(run(&mut one, OTHER, Op::FetchAdd { at: at(REGION, 40), add: 1 }), Ok(5));
}

/// Each work depends on the one before it, and none is waited for: words are read, the last one
/// is sent on from where it was read to, added to, read back.
#[test]
fn a_chain_of_all_kinds_takes_effect_in_order() {
    let Some((mut one, other)) = two(Config::default()) else { return };
    const MANY: u32 = LEN / 4;
    let (source, here, there, back) = (0, MANY, 2 * MANY, 3 * MANY);
    let last = MANY - 8;
    for round in 0..200_u64 {
        other.memory().store(REGION, source + last, round);
        let chain = [
            Op::Read { from: at(REGION, source), into: at(REGION, here), len: MANY },
            Op::WriteFrom { to: at(REGION, there), from: at(REGION, here + last), len: 8 },
            Op::FetchAdd { at: at(REGION, there), add: 1000 },
            Op::Read { from: at(REGION, there), into: at(REGION, back), len: 8 },
            Op::FetchAdd { at: at(REGION, there), add: 1 },
            Op::Write { to: at(REGION, there), bytes: &[0; 8] },
        ];
        for (id, op) in (0..).zip(chain) {
            rig::post(&mut one, OTHER, id, op).unwrap();
        }
        let done = rig::wait(&mut one, chain.len());
        let values: Vec<_> = done.iter().map(|done| (done.id.0, done.outcome)).collect();
        let expected = [0, 0, round, 0, round + 1000, 0];
        assert_eq!(values, (0..).zip(expected.map(Ok)).collect::<Vec<_>>());
        assert_eq!(one.memory().load(REGION, back), round + 1000);
        assert_eq!(other.memory().load(REGION, there), 0);
    }
}

#[test]
fn a_long_transfer_is_cut_into_messages_and_ends_once() {
    let config = Config { message_len_max: 4096, ..Config::default() };
    let Some((mut one, mut other)) = two(config) else { return };
    let bytes: Vec<u8> = (0..LEN).map(|n| (n % 251) as u8).collect();
    one.memory().copy_in(REGION, 0, &bytes);
    let (len, from) = (LEN - 1000, at(REGION, 500));
    assert_eq!(run(&mut one, OTHER, Op::WriteFrom { to: at(REGION, 3), from, len }), Ok(0));
    let mut arrived = vec![0; len as usize];
    other.memory().copy_out(REGION, 3, &mut arrived);
    assert!(arrived[..] == bytes[500..][..len as usize], "what was written is what was there");

    let read = Op::Read { from: at(REGION, 500), into: at(REGION, 1), len };
    assert_eq!(run(&mut other, ONE, read), Ok(0));
    other.memory().copy_out(REGION, 1, &mut arrived);
    assert!(arrived[..] == bytes[500..][..len as usize], "what was read is what was there");
}

#[test]
fn a_transfer_of_more_parts_than_the_queue_holds_is_no_surprise_later() {
    let Some(device) = rig::device(ONE) else { return };
    let config = Config { message_len_max: 1024, ..Config::default() };
    let memory = std::sync::Arc::new(weft_driver::Heap::new(&layout()));
    let refused = weft_driver::VerbsFabric::new(ONE, layout(), device, config, memory).map(drop);
    assert_eq!(refused, Err(weft_driver::Error::RegionTooLong(REGION)));
}
