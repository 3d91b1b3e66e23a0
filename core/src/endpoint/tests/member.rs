//! Members of the DIR net over the in-memory fabric: a silent peer is removed, and returns.

use core::convert::Infallible;

use super::*;
use crate::decision::Decision;
use crate::dirnet::{
    Component, ComponentIncarnation, Config, Kept, Limits, Output, Part, Profile, RestartLimit,
    Role, Seat, Timing,
};
use crate::endpoint::{Boots, FRAME_KIND, Member, MemberOutput};
use crate::ids::{Rank, Term};
use crate::neb::{self, Membership, Retry, Sizes};
use crate::wire::broadcast::Form;

const C: Peer = Peer(2);
const ALL: [Peer; 3] = [A, B, C];
const WORDS: usize = 1024;
const STEP: Duration = Duration::from_micros(10);

type Net3 = Net<3, WORDS>;

fn plan() -> Plan {
    let mailbox = mailbox::Config::new(3, SLOTS as u32, 40, Duration::from_millis(1)).unwrap();
    Plan::new(mailbox, lane::Config::new(3, 16, 64).unwrap()).unwrap()
}

fn config(me: Peer) -> Config<4> {
    let limit = RestartLimit { max: 3, within: Duration::from_millis(100_000) };
    let parts = [Part::Manager, Part::Backup, Part::Backup];
    let profile = Profile::new(Timing::RDMA).unwrap();
    Config::new(Rank(me.0), &parts, profile, 1, Limits { restarts: limit, resets: limit }).unwrap()
}

/// A process: its endpoint, and its part in the DIR net.
struct Process<'net> {
    endpoint: Endpoint<Loopback<'net, 3, WORDS>, SLOTS, 3>,
    member: Member<4, 2>,
    boots: Boots<3>,
    resets: Vec<(Rank, Incarnation)>,
    removed: Vec<(Rank, Incarnation, bool)>,
}

impl<'net> Process<'net> {
    fn start(net: &'net Net3, me: Peer, boot: Incarnation, now: Instant) -> Self {
        let endpoint = Endpoint::new(net.endpoint(me, boot), &plan(), boot);
        let profile = *config(me).profile();
        let incarnation = ComponentIncarnation { boot, generation: 0 };
        let kept = Kept { term: None, snapshots: [&[], &[]], removed: Incarnation(0) };
        let machine = Component::new(now, config(me), incarnation, 0, kept);
        let member = Member::new(now, machine, profile, &plan());
        let (resets, removed) = (Vec::new(), Vec::new());
        let mut process = Self { endpoint, member, boots: Boots::default(), resets, removed };
        process.drain();
        process
    }

    fn admit(&mut self, peer: Peer, boot: Incarnation) {
        if self.boots.admits(peer, boot) {
            self.boots.handle_admitted(peer, boot);
            self.endpoint.admit(peer, boot).unwrap();
        }
    }

    fn drain(&mut self) {
        let save = |_: &_| Ok::<(), Infallible>(());
        let Self { endpoint, member, boots, .. } = self;
        while let Ok(Some(output)) = member.poll_output(endpoint, boots, save) {
            match output {
                MemberOutput::Removed { node, boot, is_new } => {
                    self.removed.push((node, boot, is_new));
                }
                MemberOutput::Order(Output::Reset { node, boot }) => self.resets.push((node, boot)),
                MemberOutput::Order(Output::Send { seat, frame, .. }) => {
                    assert_eq!(seat, Seat::ImAliveTask, "{:?} is the member's to send", frame);
                }
                MemberOutput::Order(Output::Beat { .. } | Output::Fence { .. }) => unreachable!(),
                MemberOutput::Fencing { .. } | MemberOutput::Order(_) => {}
            }
        }
    }

    /// The host has seen to it that no boot is admitted that was removed.
    fn acknowledge(&mut self, now: Instant) {
        for (node, boot, _) in core::mem::take(&mut self.removed) {
            self.member.handle_acknowledged(now, node, boot);
            self.drain();
        }
    }

    fn step(&mut self, now: Instant) {
        self.endpoint.poll(now);
        while self.endpoint.poll_event().is_some() {}
        while let Some(message) = self.endpoint.take_lane() {
            assert_eq!(message.kind, FRAME_KIND);
            let (from, bytes) = (Rank(message.sender.0), message.payload.to_vec());
            self.member.handle_frame(now, from, &bytes).unwrap();
            self.drain();
        }
        while self.member.look(&self.endpoint, now) {
            self.drain();
        }
        self.member.handle_timeout(now);
        self.drain();
    }

    fn members(&self) -> u32 {
        self.member.machine().view().members().count()
    }
}

/// Steps `processes` from `now` until `is_over`, in at most 100 ms.
fn run(
    processes: &mut [Process<'_>],
    now: &mut Instant,
    mut is_over: impl FnMut(&[Process<'_>]) -> bool,
) {
    let until = now.after(Duration::from_millis(100));
    while !is_over(processes) {
        assert!(*now < until, "not within 100 ms: {:?}", processes[0].member.machine());
        *now = now.after(STEP);
        for process in &mut *processes {
            process.step(*now);
        }
    }
}

fn three<'net>(net: &'net Net3, now: &mut Instant) -> Vec<Process<'net>> {
    let mut all: Vec<_> = ALL.map(|me| Process::start(net, me, FIRST, *now)).into();
    for (me, process) in ALL.into_iter().zip(&mut all) {
        ALL.into_iter().filter(|peer| *peer != me).for_each(|peer| process.admit(peer, FIRST));
    }
    run(&mut all, now, |all| all.iter().all(|it| it.members() == 3));
    all
}

#[test]
fn a_silent_member_is_fenced_by_all_before_it_is_reset_and_its_next_boot_joins() {
    let net = Box::new(Net3::new(plan().layout().clone()));
    let mut now = Instant(1);
    let mut all = three(&net, &mut now);
    let silent = all.pop().unwrap();
    run(&mut all, &mut now, |all| all.iter().all(|it| !it.removed.is_empty()));
    for process in &all {
        assert_eq!(process.removed, [(Rank(2), FIRST, true)]);
        assert!(!process.endpoint.admitted().contains(C), "it is fenced");
        assert!(!process.boots.admits(C, FIRST) && process.boots.admits(C, Incarnation(2)));
        assert_eq!(process.resets, [], "no host has acknowledged the removal");
    }
    // The manager asks again until all have confirmed it.
    let backup = all.iter().position(|it| it.member.machine().role() == Role::Backup).unwrap();
    all[1 - backup].acknowledge(now);
    all[backup].removed.clear();
    run(&mut all, &mut now, |all| !all[backup].removed.is_empty());
    assert_eq!(all[backup].removed, [(Rank(2), FIRST, false)]);
    assert_eq!(all[1 - backup].resets, [], "one host still admits it");
    all[backup].acknowledge(now);
    run(&mut all, &mut now, |all| !all[1 - backup].resets.is_empty());
    assert_eq!(all[1 - backup].resets, [(Rank(2), FIRST)]);

    drop(silent);
    let next = Incarnation(2);
    all.push(Process::start(&net, C, next, now));
    for process in &mut all[..2] {
        process.admit(C, FIRST);
        assert!(!process.endpoint.admitted().contains(C), "a removed boot is not admitted");
        process.admit(C, next);
    }
    all[2].admit(A, FIRST);
    all[2].admit(B, FIRST);
    run(&mut all, &mut now, |all| all.iter().all(|it| it.members() == 3));
    all[0].endpoint.put(C, 0, b"again").unwrap();
    all[0].endpoint.poll(now);
    all[2].endpoint.poll(now);
    assert_eq!(all[2].endpoint.take(now).unwrap().payload, b"again");
}

/// No other node learns what this one would not know after a crash.
#[test]
fn nothing_is_sent_before_the_database_is_saved() {
    let net = Box::new(Net3::new(plan().layout().clone()));
    let mut now = Instant(1);
    let mut all = three(&net, &mut now);
    let outputs = |all: &mut Vec<Process<'_>>, saved: Result<(), &'static str>| {
        let Process { endpoint, member, boots, .. } = &mut all[0];
        member.poll_output(endpoint, boots, |_| saved)
    };
    let frames = |all: &mut Vec<Process<'_>>, now| {
        all[0].endpoint.poll(now);
        all[1].endpoint.poll(now);
        core::iter::from_fn(|| all[1].endpoint.take_lane().map(drop)).count()
    };
    assert_eq!(frames(&mut all, now), 0);
    all[0].member.machine_mut().isolate(now, Rank(2)).unwrap();
    assert_eq!(outputs(&mut all, Err("the disk is full")), Err("the disk is full"));
    assert_eq!(frames(&mut all, now), 0, "it is not saved");
    while let Ok(Some(_)) = outputs(&mut all, Ok(())) {}
    assert!(frames(&mut all, now) > 0);
}

/// That it holds later, and what follows, is simulated.
#[test]
fn a_fence_that_fails_is_announced_once_tried_again_and_not_confirmed() {
    let net = Box::new(Net3::new(plan().layout().clone()));
    let mut now = Instant(1);
    let mut all = three(&net, &mut now);
    // The next incarnation has taken the place of this one, whose fences fail from now on.
    let _next = net.endpoint(A, Incarnation(2));
    let Process { endpoint, member, boots, .. } = &mut all[0];
    member.machine_mut().isolate(now, Rank(2)).unwrap();
    let mut announced = Vec::new();
    for _ in 0..3 {
        let save = |_: &_| Ok::<(), Infallible>(());
        while let Ok(Some(output)) = member.poll_output(endpoint, boots, save) {
            announced.push(output);
        }
        announced.retain(|output| !matches!(output, MemberOutput::Order(_)));
        assert_eq!(announced, [MemberOutput::Fencing { node: Rank(2), boot: FIRST }]);
        assert!(endpoint.unfenced().contains(C) && endpoint.admitted().contains(C));
        assert!(member.machine().unfenced().eq([(Rank(2), FIRST)]) && boots.admits(C, FIRST));
        endpoint.poll(now);
        while let Some(event) = endpoint.poll_event() {
            assert!(!matches!(event, Event::Fenced { .. }), "it cannot hold");
        }
        now = now.after(Duration::from_millis(100));
        assert!(endpoint.poll_timeout().unwrap() <= now, "it is tried again");
    }
}

/// A machine that still counts the member: the removal is tried again, and not confirmed.
#[test]
fn a_removal_that_a_machine_refuses_is_not_confirmed() {
    let (form, membership) = (Form::Unsigned, Membership::Decided);
    let retry = Retry { after: Duration(1000), after_max: Duration(1000) };
    let sizes = Sizes { peers: 3, slots: 8, depth: 4, message_len: 24, form, membership, retry };
    let counting = plan().with_broadcast(neb::Config::new(sizes).unwrap()).unwrap();
    let apart = Box::new(Net::<3, 2048>::new(counting.layout().clone()));
    let mut endpoint = Endpoint::<_, SLOTS, 3>::new(apart.endpoint(A, FIRST), &counting, FIRST);
    // A decision of a later term was executed.
    endpoint.remove(Decision { term: Term::of_epoch(9), removed: B, last: FIRST }).unwrap();
    let net = Box::new(Net3::new(plan().layout().clone()));
    let mut now = Instant(1);
    let mut all = three(&net, &mut now);
    let Process { member, boots, .. } = &mut all[0];
    member.machine_mut().isolate(now, Rank(2)).unwrap();
    let save = |_: &_| Ok::<(), Infallible>(());
    while let Ok(Some(output)) = member.poll_output(&mut endpoint, boots, save) {
        assert!(!matches!(output, MemberOutput::Removed { .. }), "{output:?}");
    }
    assert!(member.machine().unfenced().eq([(Rank(2), FIRST)]) && boots.admits(C, FIRST));
}

/// Every heartbeat is handled once.
#[test]
fn a_look_ends_and_finds_no_heartbeat_twice() {
    let net = Box::new(Net3::new(plan().layout().clone()));
    let mut now = Instant(1);
    let mut all = three(&net, &mut now);
    all[0].member.machine_mut().handle_timeout(now.after(Duration::from_millis(1)));
    all[0].drain();
    for _ in 0..2 {
        for process in &mut all {
            process.endpoint.poll(now);
        }
    }
    now = all[1].member.next_look().max(now);
    let looked = |it: &mut Process<'_>, now| {
        let mut count = 0;
        while it.member.look(&it.endpoint, now) {
            count += 1;
            it.drain();
        }
        count
    };
    assert!(looked(&mut all[1], now) > 0, "a heartbeat came");
    let next = all[1].member.next_look();
    assert!(next > now, "the look is over");
    now = next;
    assert_eq!(looked(&mut all[1], now), 0, "and none since");
}

/// An admission that was decided before the removal is under way when the boot is removed.
#[test]
fn a_removed_boot_is_admitted_no_more_and_no_other_is_affected() {
    let mut boots = Boots::<2>::default();
    assert!(boots.admits(A, Incarnation(3)));
    boots.handle_removed(A, Incarnation(3));
    boots.handle_removed(A, Incarnation(2));
    assert!(!boots.admits(A, Incarnation(3)), "the same boot");
    assert!(boots.admits(A, Incarnation(4)) && boots.admits(B, Incarnation(3)));
    assert!(!boots.admits(C, Incarnation(9)), "no such rank");
}

#[test]
fn a_frame_that_is_none_is_an_error_and_changes_nothing() {
    let net = Box::new(Net3::new(plan().layout().clone()));
    let mut process = Process::start(&net, A, FIRST, NOW);
    let before = process.member.machine().clone();
    assert!(process.member.handle_frame(NOW, Rank(1), b"short").is_err());
    assert_eq!(*process.member.machine(), before);
}
