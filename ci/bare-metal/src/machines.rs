//! The machines at work with nothing below them: four endpoints over the in-memory fabric.
//!
//! Each puts messages into the next one's mailbox and greets it over a lane; everything that
//! arrives is checked, in rounds that a wheel calls out. The exit status is 0, or the number of the
//! round that went wrong.

use core::hint::black_box as opaque;

use weft_core::endpoint::{Endpoint, Event, Plan};
use weft_core::fabric::loopback::{Loopback, Net};
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::{Duration, Instant};
use weft_core::wheel::{Key, Progress, Repeat, Wheel};
use weft_core::{lane, mailbox};

pub(crate) const PEERS: usize = 4;
const SLOTS: usize = 16;
const WORDS: usize = 1024;
const FIRST: Incarnation = Incarnation(1);
pub(crate) const ROUNDS: u8 = 100;
const BETWEEN_ROUNDS: Duration = Duration::from_millis(1);

type Node<'net> = Endpoint<Loopback<'net, PEERS, WORDS>, SLOTS, PEERS>;

fn plan() -> Option<Plan> {
    let mailbox = mailbox::Config::new(4, 16, 40, Duration::from_millis(1)).ok()?;
    Plan::new(mailbox, lane::Config::new(4, 8, 16).ok()?).ok()
}

pub(crate) fn run() -> u8 {
    let Some(plan) = plan() else { return u8::MAX };
    let net = Net::<PEERS, WORDS>::new(plan.layout().clone());
    let mut nodes: [Node<'_>; PEERS] = core::array::from_fn(|me| {
        Endpoint::new(net.endpoint(Peer(me as u16), FIRST), &plan, FIRST)
    });
    for (me, node) in nodes.iter_mut().enumerate() {
        for peer in (0..PEERS).filter(|peer| *peer != me) {
            if node.admit(Peer(peer as u16), FIRST).is_err() {
                return u8::MAX;
            }
        }
    }
    let mut wheel = Wheel::<PEERS>::new(Duration::from_micros(10));
    let repeat = Repeat::Every(opaque(BETWEEN_ROUNDS));
    if wheel.start(Instant(0), Key(opaque(2)), Instant(opaque(1)), repeat).is_err() {
        return u8::MAX;
    }
    (1..=ROUNDS).find(|number| !(is_called(&mut wheel) && round(&mut nodes, *number))).unwrap_or(0)
}

/// Whether the wheel, slept on until its deadline, calls out exactly one round.
fn is_called(wheel: &mut Wheel<PEERS>) -> bool {
    while let Some(at) = wheel.next_deadline() {
        if wheel.advance(at, opaque(1_000)) != Ok(Progress::CaughtUp) {
            return false;
        }
        if let Some(expiry) = wheel.poll_expired() {
            return expiry.key == Key(2) && expiry.missed == 0 && wheel.poll_expired().is_none();
        }
    }
    false
}

/// One message from each node to the next, by mailbox and by lane.
fn round(nodes: &mut [Node<'_>; PEERS], number: u8) -> bool {
    let now = Instant(u64::from(number));
    for (me, node) in nodes.iter_mut().enumerate() {
        let to = Peer(((me + 1) % PEERS) as u16);
        let payload = opaque([number, me as u8]);
        if node.put(to, 0, &payload).is_err() || node.send(to, 1, &payload).is_err() {
            return false;
        }
        node.poll(now);
        node.poll(now);
        if node.poll_event() != Some(Event::Put { to, count: 1, left: 0 }) {
            return false;
        }
    }
    nodes.iter_mut().enumerate().all(|(me, node)| {
        let expected = [number, ((me + PEERS - 1) % PEERS) as u8];
        node.poll(now);
        let greeted = node.take_lane().is_some_and(|message| message.payload == expected);
        let Some(message) = node.take(now) else { return false };
        let right = message.payload == expected;
        let receipt = message.receipt;
        greeted && right && node.release(receipt).is_ok()
    })
}
