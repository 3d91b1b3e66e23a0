//! What an earlier incarnation of an owner left in its memory: any bytes.
//!
//! ```text
//! pieces: region │ offset │ len │ len bytes, each written once into the memory of the owner
//! then 0xff, and operations of 2 bytes: what │ a
//! ```
//!
//! The next incarnation begins over it. Nothing may panic; what it takes can be released once; and
//! whatever was there, what is put afterwards and acknowledged is delivered in order, once.

use weft_core::endpoint::{Endpoint, Event, Plan};
use weft_core::fabric::Memory;
use weft_core::fabric::Region;
use weft_core::fabric::loopback::{Loopback, Net};
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::{Duration, Instant};
use weft_core::{lane, mailbox};

const WORDS: usize = 512;
const OWNER: Peer = Peer(0);
const WRITER: Peer = Peer(1);
const LATER: Incarnation = Incarnation(2);

type Member<'net> = Box<Endpoint<Loopback<'net, 2, WORDS>, 4, 2>>;

fn plan() -> Plan {
    let mailbox = mailbox::Config::new(2, 4, 16, Duration::from_micros(10)).expect("legal");
    Plan::new(mailbox, lane::Config::new(2, 2, 16).expect("legal")).expect("legal")
}

/// Writes the pieces, and returns what follows them.
fn remember<'i>(net: &Net<2, WORDS>, plan: &Plan, mut rest: &'i [u8]) -> &'i [u8] {
    while let Some(([region, offset, len], after)) = rest.split_first_chunk() {
        if *region == 0xff {
            return &rest[1..];
        }
        let (bytes, after) = after.split_at(after.len().min(usize::from(*len)));
        let region = Region(region % plan.layout().regions().len() as u8);
        let room = plan.layout().spec(region).expect("there is such a region").len;
        let offset = u32::from(*offset) * 8 % room;
        let len = bytes.len().min((room - offset) as usize);
        net.memory(OWNER).copy_in(region, offset, &bytes[..len]);
        rest = after;
    }
    &[]
}

struct World<'net> {
    owner: Member<'net>,
    writer: Member<'net>,
    now: Instant,
    made: u64,
    /// The last message that the writer put and the owner has taken.
    taken: u64,
}

impl World<'_> {
    fn step(&mut self, what: u8, a: u8) {
        match what % 4 {
            0 => {
                // What lies there may be any message; the writer's own begin with its name.
                let message = [*b"weftfuzz", (self.made + 1).to_le_bytes()].concat();
                if self.writer.stage(OWNER, 0, &message).is_ok() {
                    self.made += 1;
                }
                let _ = self.writer.flush(OWNER);
            }
            1 => self.take(),
            _ => self.poll(u64::from(a)),
        }
    }

    fn poll(&mut self, span: u64) {
        self.now = self.now.after(Duration::from_micros(span));
        for member in [&mut self.owner, &mut self.writer] {
            member.poll(self.now);
            while let Some(event) = member.poll_event() {
                let lost = matches!(event, Event::Lost { .. });
                assert!(!lost, "two members that live lose each other: {event:?}");
            }
        }
        while self.owner.take_lane().is_some() {}
    }

    fn take(&mut self) {
        let Some(message) = self.owner.take(self.now) else { return };
        let receipt = message.receipt;
        let number = match message.payload.split_first_chunk() {
            Some((b"weftfuzz", number)) => number.try_into().map_or(0, u64::from_le_bytes),
            Some(_) | None => 0,
        };
        if message.sender == WRITER && number > 0 && number <= self.made {
            assert!(number > self.taken, "{number} came after {}", self.taken);
            self.taken = number;
        }
        self.owner.release(receipt).expect("it was taken");
        assert!(self.owner.release(receipt).is_err(), "it was released twice");
    }
}

/// One input.
pub fn run(bytes: &[u8]) {
    let plan = plan();
    let net = Box::new(Net::<2, WORDS>::new(plan.layout().clone()));
    let rest = remember(&net, &plan, bytes);
    let member = |me, incarnation| {
        Box::new(Endpoint::new(net.endpoint(me, incarnation), &plan, incarnation))
    };
    let (owner, writer): (Member<'_>, Member<'_>) = (member(OWNER, LATER), member(WRITER, LATER));
    let mut world = World { owner, writer, now: Instant(0), made: 0, taken: 0 };
    world.owner.admit(WRITER, LATER).expect("it lives");
    world.writer.admit(OWNER, LATER).expect("it lives");
    for [what, a] in rest.as_chunks::<2>().0.iter().take(200) {
        world.step(*what, *a);
    }
}
