//! What a network does to packets, and what a path that is cut does to a pair.

use weft_core::fabric::{
    Access, Completion, CompletionFlags, Fabric, Failure, Layout, Memory, Op, PostError, Region,
    RegionSpec, Work, WorkId,
};
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::time::Duration;
use weft_driver::{Config, RESULT_UNTOUCHED};

use crate::rig::{self, End, FIRST, at, run};
use crate::wire::{Hook, Wires};

const ONE: Peer = Peer(0);
const OTHER: Peer = Peer(1);
const THIRD: Peer = Peer(2);

const BYTES: Region = Region(0);
const COUNTER: Region = Region(1);
const BACK: Region = Region(2);
const ADD: Op<'static> =
    Op::FetchAdd { at: weft_core::fabric::At { region: COUNTER, offset: 0 }, add: 1 };

fn layout() -> Layout {
    let mut layout = Layout::new(3);
    for (len, access) in [(4096, Access::all()), (64, Access::all()), (4096, Access::empty())] {
        layout.add(RegionSpec { len, access, peers: PeerSet::first(3) }).unwrap();
    }
    layout
}

fn connect(one: &mut End, other: &mut End) {
    rig::introduce(one, other, FIRST);
    rig::admit(one, other, FIRST);
}

fn two(wires: &Wires, config: Config) -> (End, End) {
    let mut one = wires.end(ONE, &layout(), config);
    let mut other = wires.end(OTHER, &layout(), config);
    connect(&mut one, &mut other);
    (one, other)
}

/// Repeats a packet often enough for every loss in here, and waits for it long enough.
const STUBBORN: Config =
    Config { retry_count: 6, deadline: Duration::from_millis(50_000), ..Config::DEFAULT };

/// One round: bytes there, a count, bytes back. Returns whether the old value came back.
fn exchange(one: &mut End, other: &End, round: u64) -> bool {
    let bytes: Vec<u8> = (0..3000).map(|n| (n + round) as u8).collect();
    let ops = [
        Op::Write { to: at(BYTES, 0), bytes: &bytes },
        ADD,
        Op::Read { from: at(BYTES, 0), into: at(BACK, 0), len: 3000 },
    ];
    for (id, op) in (0..).zip(ops) {
        rig::post(one, OTHER, id, op).unwrap();
    }
    let outcomes: Vec<_> = rig::wait(one, ops.len()).iter().map(|end| end.outcome).collect();
    let [Ok(0), Ok(old), Ok(0)] = outcomes[..] else { panic!("{outcomes:?}") };
    assert!(old == round || old == RESULT_UNTOUCHED, "{old} in round {round}");
    for (memory, region) in [(other.memory(), BYTES), (one.memory(), BACK)] {
        let mut found = vec![0; 3000];
        memory.copy_out(region, 0, &mut found);
        assert!(found == bytes, "round {round}, {region:?}");
    }
    assert_eq!(other.memory().load(COUNTER, 0), round + 1);
    old == round
}

/// A work that this end denies itself is reported behind a quiet one that is still on its way: what
/// came before a failure, and was not reported, is done (F-2).
#[test]
fn what_is_denied_is_reported_behind_what_was_posted_before_it() {
    let Some(wires) = Wires::take() else { return };
    let (mut one, other) = two(&wires, STUBBORN);
    wires.disturb(&one, "delay 20ms");
    let granted = Op::Write { to: at(BYTES, 0), bytes: b"arrives!" };
    let denied = Op::Write { to: at(BACK, 0), bytes: b"is kept " };
    for (id, op) in (1..).zip([granted, denied]) {
        one.post(OTHER, Work { id: WorkId(id), op, flags: CompletionFlags::QUIET }).unwrap();
    }
    let ended = rig::wait(&mut one, 1);
    assert_eq!((ended[0].id, ended[0].outcome), (WorkId(2), Err(Failure::AccessDenied)));
    assert_eq!(other.memory().load(BYTES, 0), u64::from_le_bytes(*b"arrives!"));
    assert_eq!(other.memory().load(BACK, 0), 0);
    // The pair goes on, and its queue has room for no more of them than for other work.
    assert_eq!(run(&mut one, OTHER, ADD), Ok(0));
    let posted = (0..u64::from(u16::MAX)).map(|id| rig::post(&mut one, OTHER, id, denied));
    let posted: Vec<_> = posted.take_while(|posted| *posted != Err(PostError::Full)).collect();
    assert!(posted.iter().all(|posted| *posted == Ok(())) && posted.len() < 1 << 15);
    for end in rig::wait(&mut one, posted.len()) {
        assert_eq!(end.outcome, Err(Failure::AccessDenied));
    }
}

/// Lost, doubled, late and overtaken packets, both ways: slower, and nothing else.
#[test]
fn bytes_and_counts_stay_right_whatever_becomes_of_packets() {
    let Some(wires) = Wires::take() else { return };
    for what in [
        "loss 3%",
        "duplicate 20%",
        "delay 2ms 1ms",
        "delay 3ms reorder 25% 50%",
        "corrupt 2%",
        "loss 2% duplicate 5% delay 1ms",
    ] {
        let (mut one, other) = two(&wires, STUBBORN);
        wires.disturb(&one, what);
        wires.disturb(&other, what);
        let begin = rig::now();
        let rounds = 40;
        let known = (0..rounds).filter(|round| exchange(&mut one, &other, *round)).count();
        println!(
            "{what}: {rounds} rounds in {} us, {known} old values came back",
            rig::now().since(begin).as_micros()
        );
        assert!(known > 0, "{what}");
    }
}

/// What comes of a work to a peer whose path is cut at `hook`, and after how long. The third's
/// pair is unharmed meanwhile, and a new incarnation of the pair works once the path is mended.
fn cut_path(wires: &Wires, config: Config, hook: Hook) -> Failure {
    let (mut one, mut other) = two(wires, config);
    let mut third = wires.end(THIRD, &layout(), config);
    connect(&mut third, &mut other);
    assert_eq!(run(&mut one, OTHER, ADD), Ok(0));
    wires.cut(&one, hook);
    let begin = rig::now();
    for id in 0..3 {
        rig::post(&mut one, OTHER, id, ADD).unwrap();
    }
    assert_eq!(run(&mut third, OTHER, Op::FetchAdd { at: at(COUNTER, 8), add: 1 }), Ok(0));
    let done = rig::wait(&mut one, 3);
    let took = rig::now().since(begin).as_micros();
    let failure = done[0].outcome.unwrap_err();
    for (id, end) in (0..).zip(&done) {
        assert_eq!((end.id.0, end.outcome), (id, Err(failure)));
    }
    let (nominal, worst) = (config.nominal_detection(), config.worst_case_detection());
    println!(
        "cut at {hook:?}: {failure:?} after {took} us; nominal {} us, worst {} us",
        nominal.as_micros(),
        worst.as_micros()
    );
    assert_eq!(rig::post(&mut one, OTHER, 9, ADD), Err(PostError::Gone));
    assert_eq!(one.poll(rig::now(), &mut [Completion::NONE; 4]), 0);

    wires.mend();
    let before = other.memory().load(COUNTER, 0);
    let incarnations = (Incarnation(2), Incarnation(2));
    one.fence(OTHER).unwrap();
    other.fence(ONE).unwrap();
    rig::introduce(&mut one, &mut other, incarnations);
    rig::admit(&mut one, &mut other, incarnations);
    assert_eq!(run(&mut one, OTHER, ADD), Ok(before));
    assert_eq!(run(&mut third, OTHER, Op::FetchAdd { at: at(COUNTER, 8), add: 1 }), Ok(1));
    failure
}

/// Packets go out and none comes back: the device gives the peer up by itself.
#[test]
fn a_path_without_answers_is_given_up() {
    let Some(wires) = Wires::take() else { return };
    assert_eq!(cut_path(&wires, Config::default(), Hook::Input), Failure::Gone);
}

/// Nothing is left in the pair but, sooner or later, the driver's own marker, whose end no poster
/// is reported: that the pair is lost can be seen all the same, until the peer is fenced.
#[test]
fn a_pair_whose_loss_no_work_tells_of_is_seen_to_be_lost() {
    let Some(wires) = Wires::take() else { return };
    let (mut one, other) = two(&wires, Config::default());
    let op = Op::Write { to: at(BYTES, 0), bytes: b"arrives!" };
    one.post(OTHER, Work { id: WorkId(1), op, flags: CompletionFlags::QUIET }).unwrap();
    rig::until("the write", || (other.memory().load(BYTES, 0) != 0).then_some(()));
    assert_eq!(one.lost(), PeerSet::EMPTY);
    wires.cut(&one, Hook::Input);
    rig::until("the loss", || {
        one.poll(rig::now(), &mut [Completion::NONE; 4]);
        (!one.lost().is_empty()).then_some(())
    });
    assert_eq!(one.lost(), PeerSet::only(OTHER));
    one.fence(OTHER).unwrap();
    assert_eq!((one.lost(), other.lost()), (PeerSet::EMPTY, PeerSet::EMPTY));
}

/// Packets vanish before they leave, and this device never reports it: the deadline does (F-12).
#[test]
fn a_device_that_never_tells_is_overruled_by_the_deadline() {
    let Some(wires) = Wires::take() else { return };
    let config = Config { deadline: rig::SHORT, ..STUBBORN };
    assert_eq!(cut_path(&wires, config, Hook::Output), Failure::DeadlinePassed);
}

/// Cut, and mended while the device still tries: no error is reported.
#[test]
fn an_outage_shorter_than_the_retries_heals() {
    let Some(wires) = Wires::take() else { return };
    let config = Config { timeout: 18, ..STUBBORN };
    let (mut one, other) = two(&wires, config);
    wires.cut(&other, Hook::Input);
    for id in 0..3 {
        rig::post(&mut one, OTHER, id, ADD).unwrap();
    }
    for _ in 0..1_000 {
        assert_eq!(one.poll(rig::now(), &mut [Completion::NONE; 4]), 0);
    }
    assert_eq!(other.memory().load(COUNTER, 0), 0);
    wires.mend();
    let outcomes: Vec<_> = rig::wait(&mut one, 3).iter().map(|end| end.outcome).collect();
    assert_eq!(outcomes, [Ok(0), Ok(1), Ok(2)]);
}

/// The own interface goes down, and up again: the event of the port is handled, work fails, a new
/// incarnation works.
#[test]
fn an_interface_that_goes_down_is_noticed_and_comes_back() {
    let Some(wires) = Wires::take() else { return };
    let (mut one, mut other) = two(&wires, Config::default());
    let mut third = wires.end(THIRD, &layout(), Config::default());
    connect(&mut third, &mut other);
    assert_eq!(run(&mut one, OTHER, ADD), Ok(0));
    wires.take_down(&one);
    let begin = rig::now();
    assert_eq!(run(&mut one, OTHER, ADD), Err(Failure::Gone));
    println!("interface down: Gone after {} us", rig::now().since(begin).as_micros());
    rig::until("the port's event", || {
        one.poll(rig::now(), &mut [Completion::NONE; 4]);
        (!one.port_is_up()).then_some(())
    });
    assert_eq!(run(&mut third, OTHER, ADD), Ok(1), "another's pair is unharmed");

    wires.bring_up(&one);
    rig::until("the port's event", || {
        one.poll(rig::now(), &mut [Completion::NONE; 4]);
        one.port_is_up().then_some(())
    });
    let incarnations = (Incarnation(2), Incarnation(2));
    one.fence(OTHER).unwrap();
    other.fence(ONE).unwrap();
    rig::introduce(&mut one, &mut other, incarnations);
    rig::admit(&mut one, &mut other, incarnations);
    assert_eq!(run(&mut one, OTHER, ADD), Ok(2));
}
