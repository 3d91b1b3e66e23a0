//! Endpoints over one device, introduced to each other as bootstrap would do it.

use std::sync::Arc;
use std::time;

use weft_core::fabric::{
    At, Completion, CompletionFlags, Fabric, Failure, Layout, Op, PostError, Region, Work, WorkId,
};
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::{Duration, Instant};
use weft_driver::conformance::Rig;
use weft_driver::{Config, Device, DeviceChoice, Heap, RemoteEnd, VerbsFabric};

pub(crate) type End = VerbsFabric<Heap>;

/// How long a test waits for anything before it fails.
const PATIENCE: time::Duration = time::Duration::from_secs(60);

/// The device of endpoint `me`, if there are devices. Of several that are named, separated by
/// commas, the endpoints take each their own, so that packets are real and can be lost.
pub(crate) fn device(me: Peer) -> Option<Device> {
    let names = std::env::var("WEFT_RDMA_DEVICE").ok();
    let names: Vec<_> = names.iter().flat_map(|names| names.split(',')).collect();
    let name = names.get(me.index() % names.len().max(1)).map(|name| (*name).to_owned());
    match Device::open(&DeviceChoice { name, ..DeviceChoice::default() }) {
        Ok(device) => Some(device),
        Err(error) => {
            let is_required = std::env::var_os("REQUIRE_RXE").is_some_and(|value| value == "1");
            assert!(!is_required, "{error}; {}", error.cure());
            eprintln!("skipped: {error}; {}", error.cure());
            None
        }
    }
}

/// The endpoint `me` over new memory.
pub(crate) fn end(me: Peer, layout: &Layout, config: Config) -> Option<End> {
    end_over(me, layout, config, Arc::new(Heap::new(layout)))
}

/// The endpoint `me` over memory that may be older than it.
pub(crate) fn end_over(
    me: Peer,
    layout: &Layout,
    config: Config,
    memory: Arc<Heap>,
) -> Option<End> {
    Some(VerbsFabric::new(me, layout.clone(), device(me)?, config, memory).unwrap())
}

/// Prepares a pair between two endpoints in these incarnations, and carries the ends across.
pub(crate) fn introduce(one: &mut End, other: &mut End, incarnations: (Incarnation, Incarnation)) {
    introduce_with(one, other, incarnations, |_| ());
}

/// As [`introduce`], with what `one` receives of `other` changed on the way.
pub(crate) fn introduce_with(
    one: &mut End,
    other: &mut End,
    incarnations: (Incarnation, Incarnation),
    change: impl FnOnce(&mut RemoteEnd),
) {
    weft_driver::conformance::introduce(one, other, incarnations, change).unwrap();
}

/// Lets two endpoints that were introduced in at each other.
pub(crate) fn admit(one: &mut End, other: &mut End, incarnations: (Incarnation, Incarnation)) {
    one.open(other.me(), incarnations.1).unwrap();
    other.open(one.me(), incarnations.0).unwrap();
}

/// A deadline that a test waits for to pass. Work that is to end well has it too, so it is no
/// shorter than what stalls of a busy host ask for.
pub(crate) const SHORT: Duration = Config::DEFAULT.deadline;

pub(crate) const FIRST: (Incarnation, Incarnation) = (Incarnation(1), Incarnation(1));

pub(crate) fn at(region: Region, offset: u32) -> At {
    At { region, offset }
}

/// The time since the program began to ask.
pub(crate) fn now() -> Instant {
    static BEGAN: std::sync::OnceLock<time::Instant> = std::sync::OnceLock::new();
    let began = BEGAN.get_or_init(time::Instant::now);
    Instant(u64::try_from(began.elapsed().as_nanos()).unwrap())
}

/// Posts a signalled work.
pub(crate) fn post(end: &mut End, to: Peer, id: u64, op: Op<'_>) -> Result<(), PostError> {
    end.post(to, Work { id: WorkId(id), op, flags: CompletionFlags::empty() })
}

/// Calls `look` until it finds something, and fails with `what` if it never does.
pub(crate) fn until<R>(what: &str, mut look: impl FnMut() -> Option<R>) -> R {
    let given_up = time::Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(time::Instant::now() < given_up, "waited in vain for {what}");
        std::thread::yield_now();
    }
}

/// Polls until there are `count` completions.
pub(crate) fn wait(end: &mut End, count: usize) -> Vec<Completion> {
    let mut all = Vec::new();
    until(&format!("{count} completions"), || {
        let mut done = [Completion::NONE; 32];
        let found = end.poll(now(), &mut done);
        all.extend_from_slice(&done[..found]);
        (all.len() >= count).then_some(())
    });
    all
}

/// Posts one work and waits for its end.
pub(crate) fn run(end: &mut End, to: Peer, op: Op<'_>) -> Result<u64, Failure> {
    post(end, to, 77, op).unwrap();
    let done = wait(end, 1);
    assert_eq!((done.len(), done[0].id, done[0].peer), (1, WorkId(77), to));
    done[0].outcome
}

/// The endpoints of the conformance suite, if there are devices.
pub(crate) fn suite() -> Option<Rig> {
    // Says why there are none, or fails.
    device(Peer(0))?;
    Some(Rig::new(|me| Ok(device(me).expect("the first has one")), now).unwrap())
}
