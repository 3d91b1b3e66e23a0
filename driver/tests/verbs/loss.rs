//! Losing a peer: how long the report takes, and that it comes in any case.

use weft_core::fabric::conformance::layout;
use weft_core::fabric::{
    Completion, CompletionFlags, Fabric, Failure, Op, PostError, Region, Work, WorkId,
};
use weft_driver::Config;

use crate::child::{PARENT, PEER, PeerProcess};
use crate::rig::{self, at};

const ADD: Op<'static> =
    Op::FetchAdd { at: weft_core::fabric::At { region: Region(4), offset: 0 }, add: 1 };

/// A device that tries for an hour.
const PATIENT: Config = Config { timeout: 28, retry_count: 6, ..Config::DEFAULT };

/// A peer's process is killed; with each setting, the device itself gives it up. How long it took
/// is printed beside the worst case, and not judged: the machine may be busy.
#[test]
fn a_killed_process_is_noticed() {
    for (timeout, retry_count) in [(10, 3), (14, 1), (14, 3)] {
        let config = Config { timeout, retry_count, ..Config::default() };
        let Some(mut parent) = rig::end(PARENT, &layout(), config) else { return };
        let mut peer = PeerProcess::start(&mut parent);
        assert_eq!(rig::run(&mut parent, PEER, ADD), Ok(0));
        peer.kill();

        let begin = rig::now();
        for id in 0..4 {
            rig::post(&mut parent, PEER, id, ADD).unwrap();
        }
        let done = rig::wait(&mut parent, 4);
        let took = rig::now().since(begin);
        let names: Vec<_> = done.iter().map(|done| (done.id, done.outcome)).collect();
        assert_eq!(names, [0, 1, 2, 3].map(|id| (WorkId(id), Err(Failure::Gone))));
        assert_eq!(rig::post(&mut parent, PEER, 9, ADD), Err(PostError::Gone));
        let (nominal, worst) = (config.nominal_detection(), config.worst_case_detection());
        println!(
            "timeout {timeout}, retries {retry_count}: after {} us; nominal {} us, worst {} us",
            took.as_micros(),
            nominal.as_micros(),
            worst.as_micros()
        );
    }
}

/// Work of all kinds, some of it waiting for other work, on its way as the peer is killed: ended
/// by the device, not by the deadline. (With verbs' own fence it is the deadline.)
#[test]
fn mixed_work_of_a_killed_process_ends() {
    let Some(mut parent) = rig::end(PARENT, &layout(), Config::default()) else { return };
    let mut peer = PeerProcess::start(&mut parent);
    let write = Op::Write { to: at(Region(0), 0), bytes: b"are you?" };
    let read = Op::Read { from: at(Region(0), 8), into: at(Region(6), 8), len: 8 };
    let mix = [write, read, ADD, write, write, read, ADD, write];
    for (id, op) in (0..).zip(mix) {
        rig::post(&mut parent, PEER, id, op).unwrap();
    }
    peer.kill();
    for (id, op) in (8..).zip(mix) {
        rig::post(&mut parent, PEER, id, op).unwrap();
    }
    let done = rig::wait(&mut parent, 16);
    let ids: Vec<_> = done.iter().map(|done| done.id.0).collect();
    assert_eq!(ids, (0..16).collect::<Vec<_>>());
    let first_loss = done.iter().position(|done| done.outcome.is_err()).unwrap();
    assert!(done[first_loss..].iter().all(|done| done.outcome == Err(Failure::Gone)), "{done:?}");
}

/// The device would try for an hour; the deadline ends it, each work once.
#[test]
fn work_that_the_device_never_ends_passes_its_deadline() {
    let config = Config { deadline: rig::SHORT, ..PATIENT };
    let Some(mut parent) = rig::end(PARENT, &layout(), config) else { return };
    let mut peer = PeerProcess::start(&mut parent);
    assert_eq!(rig::run(&mut parent, PEER, ADD), Ok(0));
    peer.kill();

    let begin = rig::now();
    for id in 0..20 {
        rig::post(&mut parent, PEER, id, ADD).unwrap();
    }
    let done = rig::wait(&mut parent, 20);
    let took = rig::now().since(begin);
    for (id, done) in (0..).zip(done) {
        assert_eq!((done.id, done.outcome), (WorkId(id), Err(Failure::DeadlinePassed)));
    }
    println!("deadline {} us: after {} us", rig::SHORT.as_micros(), took.as_micros());
    assert!(took >= rig::SHORT, "{took:?}");
    assert_eq!(rig::post(&mut parent, PEER, 9, ADD), Err(PostError::Gone));
    assert_eq!(parent.poll(rig::now(), &mut [Completion::NONE; 4]), 0);
}

/// A quiet write with nothing behind it would never be heard of again: a marker is its witness.
#[test]
fn a_quiet_write_that_the_device_never_ends_is_told_of_too() {
    let config = Config { deadline: rig::SHORT, ..PATIENT };
    let Some(mut parent) = rig::end(PARENT, &layout(), config) else { return };
    let mut peer = PeerProcess::start(&mut parent);
    peer.kill();
    let op = Op::Write { to: at(Region(0), 0), bytes: b"are you?" };
    let work = Work { id: WorkId(5), op, flags: CompletionFlags::QUIET };
    parent.post(PEER, work).unwrap();
    let done = rig::wait(&mut parent, 1);
    let expected = Completion { id: WorkId(5), peer: PEER, outcome: Err(Failure::DeadlinePassed) };
    assert_eq!(done, [expected]);
}

/// Work for oneself goes on when a peer is lost, and needs no peer.
#[test]
fn an_endpoint_reaches_itself_through_the_device() {
    let Some(mut end) = rig::end(PARENT, &layout(), Config::default()) else { return };
    assert_eq!(rig::run(&mut end, PARENT, ADD), Ok(0));
    assert_eq!(rig::run(&mut end, PARENT, ADD), Ok(1));
    let write = Op::Write { to: at(Region(0), 4), bytes: &[3; 4096] };
    assert_eq!(rig::run(&mut end, PARENT, write), Ok(0));
    assert_eq!(rig::run(&mut end, PARENT, Op::FetchAdd { at: at(Region(4), 0), add: 0 }), Ok(2));
}
