//! The DIR net with nothing below it: three nodes detect that one is silent, fence it, reset it,
//! and admit its next boot.
//!
//! ```text
//!   node 2 stops ─▶ 0 and 1: suspicion, witnesses, verdict ─▶ both fence it ─▶ reset
//!   its next boot ─▶ admitted by both ─▶ a view of three ─▶ a message arrives
//! ```
//!
//! The loop below is a host's whole part: no supervisor, no thread, no file.

use core::convert::Infallible;

use weft_core::dirnet::{
    Component, ComponentIncarnation, Config, Kept, Limits, Output, Part, Profile, RestartLimit,
    Timing,
};
use weft_core::endpoint::{
    Boots, Endpoint, FRAME_KIND, LANE_SLOTS_MIN, Member, MemberOutput, Plan,
};
use weft_core::fabric::loopback::{Loopback, Net};
use weft_core::ids::{Incarnation, Peer, Rank};
use weft_core::time::{Duration, Instant};
use weft_core::{lane, mailbox};

const NODES: usize = 3;
const SLOTS: usize = 4;
const WORDS: usize = 1024;
const FIRST: Incarnation = Incarnation(1);
const SILENT: Peer = Peer(2);
const STEP: Duration = Duration::from_micros(10);
/// More than a verdict and a join take.
const STEPS_MAX: u32 = 10_000;

fn plan() -> Option<Plan> {
    let mailbox = mailbox::Config::new(3, SLOTS as u32, 40, Duration::from_millis(1)).ok()?;
    Plan::new(mailbox, lane::Config::new(3, LANE_SLOTS_MIN, 64).ok()?).ok()
}

fn machine(me: Peer, boot: Incarnation, now: Instant) -> Option<(Component<NODES, 1>, Profile)> {
    let limit = RestartLimit { max: 3, within: Duration::from_millis(100_000) };
    let limits = Limits { restarts: limit, resets: limit };
    let parts = [Part::Manager, Part::Backup, Part::Backup];
    let profile = Profile::new(Timing::RDMA).ok()?;
    let config = Config::new(Rank(me.0), &parts, profile, 1, limits).ok()?;
    let kept = Kept { term: None, snapshots: [&[], &[]], removed: Incarnation(0) };
    let incarnation = ComponentIncarnation { boot, generation: 0 };
    Some((Component::new(now, config, incarnation, 0, kept), profile))
}

struct Node<'net> {
    endpoint: Endpoint<Loopback<'net, NODES, WORDS>, SLOTS, NODES>,
    member: Member<NODES, 1>,
    boots: Boots<NODES>,
    /// The node that it has reset, as manager.
    reset: Option<(Rank, Incarnation)>,
}

impl<'net> Node<'net> {
    fn start(
        net: &'net Net<NODES, WORDS>,
        plan: &Plan,
        (me, boot): (Peer, Incarnation),
        now: Instant,
    ) -> Option<Self> {
        let endpoint = Endpoint::new(net.endpoint(me, boot), plan, boot);
        let (machine, profile) = machine(me, boot, now)?;
        let member = Member::new(now, machine, profile, plan);
        let mut node = Self { endpoint, member, boots: Boots::default(), reset: None };
        node.drain(now);
        Some(node)
    }

    fn admit(&mut self, peer: Peer, boot: Incarnation) -> bool {
        if !self.boots.admits(peer, boot) {
            return false;
        }
        self.boots.handle_admitted(peer, boot);
        self.endpoint.admit(peer, boot).is_ok()
    }

    /// Nothing outlives a node here, so nothing is saved.
    fn drain(&mut self, now: Instant) {
        loop {
            let Self { endpoint, member, boots, .. } = self;
            let save = |_: &_| Ok::<(), Infallible>(());
            match member.poll_output(endpoint, boots, save) {
                Ok(Some(MemberOutput::Removed { node, boot, .. })) => {
                    // Peers are admitted by this loop alone, and it asks `boots`.
                    self.member.handle_acknowledged(now, node, boot);
                }
                Ok(Some(MemberOutput::Order(Output::Reset { node, boot }))) => {
                    self.reset = Some((node, boot));
                }
                Ok(Some(_)) => {}
                Ok(None) => return,
            }
        }
    }

    fn step(&mut self, now: Instant) {
        self.endpoint.poll(now);
        while self.endpoint.poll_event().is_some() {}
        while let Some(message) = self.endpoint.take_lane() {
            let (from, kind) = (Rank(message.sender.0), message.kind);
            let mut frame = [0; 64];
            if kind == FRAME_KIND && message.payload.len() == frame.len() {
                frame.copy_from_slice(message.payload);
                // What is no frame is counted nowhere here.
                let _ = self.member.handle_frame(now, from, &frame);
                self.drain(now);
            }
        }
        while self.member.look(&self.endpoint, now) {
            self.drain(now);
        }
        self.member.handle_timeout(now);
        self.drain(now);
    }

    fn sees(&self, members: u32) -> bool {
        self.member.machine().view().members().count() == members
    }
}

/// Steps `nodes` until `is_over`; whether that came.
fn run(nodes: &mut [Node<'_>], now: &mut Instant, is_over: impl Fn(&[Node<'_>]) -> bool) -> bool {
    for _ in 0..STEPS_MAX {
        if is_over(nodes) {
            return true;
        }
        *now = now.after(STEP);
        for node in &mut *nodes {
            node.step(*now);
        }
    }
    false
}

fn recovers() -> Option<bool> {
    let plan = plan()?;
    let net = Net::<NODES, WORDS>::new(plan.layout().clone());
    let mut now = Instant(1);
    let start = |me, boot, now| Node::start(&net, &plan, (Peer(me), boot), now);
    let mut nodes = [start(0, FIRST, now)?, start(1, FIRST, now)?, start(2, FIRST, now)?];
    for me in 0..3 {
        for peer in (0..3).filter(|peer| *peer != me) {
            nodes.get_mut(usize::from(me))?.admit(Peer(peer), FIRST).then_some(())?;
        }
    }
    if !run(&mut nodes, &mut now, |nodes| nodes.iter().all(|node| node.sees(3))) {
        return Some(false);
    }
    // From here on node 2 is silent.
    let [first, second, _] = nodes;
    let mut pair = [first, second];
    let is_reset =
        |nodes: &[Node<'_>]| nodes.iter().any(|node| node.reset == Some((Rank(SILENT.0), FIRST)));
    let is_fenced =
        |nodes: &[Node<'_>]| nodes.iter().all(|node| !node.endpoint.admitted().contains(SILENT));
    if !run(&mut pair, &mut now, is_reset) || !is_fenced(&pair) {
        return Some(false);
    }
    let next = Incarnation(2);
    let mut third = start(SILENT.0, next, now)?;
    for node in &mut pair {
        if node.admit(SILENT, FIRST) || !node.admit(SILENT, next) {
            return Some(false);
        }
    }
    (third.admit(Peer(0), FIRST) && third.admit(Peer(1), FIRST)).then_some(())?;
    let [first, second] = pair;
    let mut nodes = [first, second, third];
    if !run(&mut nodes, &mut now, |nodes| nodes.iter().all(|node| node.sees(3))) {
        return Some(false);
    }
    let [first, _, third] = &mut nodes;
    first.endpoint.put(SILENT, 0, b"again").ok()?;
    first.endpoint.poll(now);
    third.endpoint.poll(now);
    Some(third.endpoint.take(now)?.payload == b"again")
}

pub(crate) fn is_right() -> bool {
    recovers() == Some(true)
}
