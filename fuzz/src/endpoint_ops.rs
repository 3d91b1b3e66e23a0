//! Two endpoints and a liar, as a sequence of operations.
//!
//! ```text
//! each operation: 3 bytes │ what │ a │ b │
//! ```
//!
//! Peers 0 and 1 run real endpoints over the in-memory fabric; peer 2 is admitted, runs no
//! endpoint, and writes what it likes wherever it has a right to. Nothing may panic. What peer 1
//! takes under the name of peer 0 comes in the order in which it was put, each message once;
//! a liar can forge a name in a shared mailbox, so a payload that peer 0 never put is skipped.

use weft_core::endpoint::{Endpoint, Plan};
use weft_core::fabric::loopback::{Loopback, Net};
use weft_core::fabric::{At, Completion, CompletionFlags, Fabric, Op, Region, Work, WorkId};
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::{Duration, Instant};
use weft_core::{lane, mailbox};

const PEERS: usize = 3;
const WORDS: usize = 512;
const FIRST: Incarnation = Incarnation(1);
const ALICE: Peer = Peer(0);
const BOB: Peer = Peer(1);
const LIAR: Peer = Peer(2);

type TestFabric<'net> = Loopback<'net, PEERS, WORDS>;
type TestEndpoint<'net> = Box<Endpoint<TestFabric<'net>, 8, PEERS>>;

fn plan() -> Plan {
    let mailbox = mailbox::Config::new(3, 8, 16, Duration::from_micros(10)).expect("legal");
    Plan::new(mailbox, lane::Config::new(3, 4, 16).expect("legal")).expect("legal")
}

struct World<'net> {
    alice: TestEndpoint<'net>,
    bob: TestEndpoint<'net>,
    liar: TestFabric<'net>,
    now: Instant,
    next: u64,
    taken: Option<u64>,
}

impl<'net> World<'net> {
    fn new(net: &'net Net<PEERS, WORDS>, plan: &Plan) -> Self {
        let endpoint = |me| Box::new(Endpoint::new(net.endpoint(me, FIRST), plan, FIRST));
        let (mut alice, mut bob): (TestEndpoint<'_>, TestEndpoint<'_>) =
            (endpoint(ALICE), endpoint(BOB));
        let mut liar = net.endpoint(LIAR, FIRST);
        for peer in [ALICE, BOB] {
            liar.admit(peer, FIRST).expect("it lives");
        }
        alice.admit(BOB, FIRST).expect("it lives");
        alice.admit(LIAR, FIRST).expect("it lives");
        bob.admit(ALICE, FIRST).expect("it lives");
        bob.admit(LIAR, FIRST).expect("it lives");
        Self { alice, bob, liar, now: Instant(0), next: 0, taken: None }
    }

    fn step(&mut self, [what, a, b]: [u8; 3]) {
        match what % 8 {
            0 => {
                let payload = self.next.to_le_bytes();
                if self.alice.stage(BOB, 0, &payload).is_ok() {
                    self.next += 1;
                }
            }
            1 => drop(self.alice.flush(BOB)),
            2 => drop(self.alice.send(BOB, 1, &[a; 16])),
            3 => self.lie(a, b),
            4 => self.take(),
            5 => while self.bob.take_lane().is_some() {},
            _ => self.poll(u64::from(a)),
        }
    }

    fn poll(&mut self, span: u64) {
        self.now = self.now.after(Duration::from_micros(span));
        for endpoint in [&mut self.alice, &mut self.bob] {
            endpoint.poll(self.now);
            while endpoint.poll_event().is_some() {}
        }
    }

    fn take(&mut self) {
        let Some(message) = self.bob.take(self.now) else { return };
        let (sender, receipt) = (message.sender, message.receipt);
        let number = message.payload.first_chunk::<8>().map(|n| u64::from_le_bytes(*n));
        if let Some(number) = number
            && sender == ALICE
            && number < self.next
        {
            assert!(self.taken.is_none_or(|taken| number > taken), "out of order or twice");
            self.taken = Some(number);
        }
        self.bob.release(receipt).expect("it was taken");
    }

    fn lie(&mut self, a: u8, b: u8) {
        let region = Region(a % 8);
        let at = At { region, offset: u32::from(b) * 8 % 512 };
        let bytes = [a ^ b; 24];
        let op = if a >= 128 {
            Op::FetchAdd { at, add: u64::from(b) << (a % 64) }
        } else {
            Op::Write { to: at, bytes: &bytes }
        };
        let work = Work { id: WorkId(0), op, flags: CompletionFlags::empty() };
        // Most lies have no right where they point, or point nowhere.
        let _ = self.liar.post(BOB, work);
        self.liar.poll(self.now, &mut [Completion::NONE; 4]);
    }
}

/// One input.
pub fn run(bytes: &[u8]) {
    let plan = plan();
    let net = Box::new(Net::<PEERS, WORDS>::new(plan.layout().clone()));
    let mut world = World::new(&net, &plan);
    for step in bytes.as_chunks::<3>().0.iter().take(400) {
        world.step(*step);
    }
}
