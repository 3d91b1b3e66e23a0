//! Two members that broadcast, and a liar that fills the regions that it may write.
//!
//! ```text
//! first byte: whether slots are signed │ each operation: what │ a │ b │ len │ len bytes
//! ```
//!
//! The liar is an origin and a replayer: it writes any bytes into its ring at the others and into
//! all of its own memory, slots that are whole among them, and it returns with later epochs, which
//! the members count at different times. Nothing may panic. The two members never deliver different
//! messages under one number, and what they deliver of each other was broadcast.

use std::collections::BTreeMap;

use weft_core::checksum::crc32c;
use weft_core::fabric::loopback::{Loopback, Net};
use weft_core::fabric::{
    At, Completion, CompletionFlags, Fabric, Layout, Memory, Op, Region, Work, WorkId,
};
use weft_core::ids::{Incarnation, Peer};
use weft_core::neb::{
    Config, Keys, Membership, Neb, Outcome, Regions, Retry, SigningKey, Sizes, number_before,
};
use weft_core::time::{Duration, Instant};
use weft_core::wire::broadcast::{Form, HEADER_LEN, Header, Stamp, seal};

const PEERS: usize = 3;
const WORDS: usize = 1024;
const SLOTS: u32 = 2;
const FIRST: Incarnation = Incarnation(1);
const MEMBERS: [Peer; 2] = [Peer(0), Peer(1)];
const LIAR: Peer = Peer(2);

type Member<'net> = (Loopback<'net, PEERS, WORDS>, Box<Neb<PEERS, 2>>);

struct World<'net> {
    config: Config,
    regions: Regions,
    net: &'net Net<PEERS, WORDS>,
    members: [Member<'net>; 2],
    liar: Loopback<'net, PEERS, WORDS>,
    now: Instant,
    /// What was broadcast by each member, and what the first receiver of each has delivered.
    broadcast: [u64; 2],
    agreed: BTreeMap<(Peer, u64), Vec<u8>>,
}

fn key(peer: Peer) -> SigningKey {
    SigningKey::from_bytes(&[peer.0 as u8 + 1; 32])
}

fn sizes(form: Form) -> (Config, Regions, Layout) {
    let retry = Retry { after: Duration(1), after_max: Duration(1) };
    let membership = Membership::Fixed;
    let sizes =
        Sizes { peers: 3, slots: SLOTS, depth: 2, message_len: 16, form, membership, retry };
    let (config, mut layout) = (Config::new(sizes).expect("legal"), Layout::new(3));
    let regions = config.add_regions(&mut layout).expect("few regions");
    (config, regions, layout)
}

impl<'net> World<'net> {
    fn new(net: &'net Net<PEERS, WORDS>, config: Config, regions: Regions) -> Self {
        let mut fabrics = [0, 1, 2].map(|peer| net.endpoint(Peer(peer), FIRST));
        for (me, fabric) in (0..).zip(&mut fabrics) {
            let others = (0..3).filter(|other| *other != me).map(Peer);
            others.for_each(|other| fabric.admit(other, FIRST).expect("it epochs"));
        }
        let [one, other, liar] = fabrics;
        let members = [one, other].map(|fabric| {
            let me = fabric.me();
            let mut neb = Box::new(match config.form() {
                Form::Unsigned => Neb::attach(&fabric, config, regions),
                Form::Signed => {
                    let mut keys = Keys::new(9, key(me));
                    for (peer, public) in (0..).map(Peer).zip(&mut keys.public) {
                        *public = Some(key(peer).verifying_key());
                    }
                    Neb::attach_signed(&fabric, config, regions, keys)
                }
            });
            (0..3).map(Peer).filter(|peer| *peer != me).for_each(|peer| neb.handle_admitted(peer));
            (fabric, neb)
        });
        let agreed = BTreeMap::new();
        Self { config, regions, net, members, liar, now: Instant(0), broadcast: [0; 2], agreed }
    }

    fn step(&mut self, [what, a, b]: [u8; 3], bytes: &[u8]) {
        match what % 8 {
            0 => self.say(usize::from(a % 2)),
            1 => self.scribble(a, b, bytes),
            2 => self.show(a, b, bytes),
            3 => self.write(a, u32::from(b), bytes),
            4 => self.tell(a, b, bytes),
            5 => self.count(a, b),
            _ => self.poll(),
        }
    }

    fn say(&mut self, member: usize) {
        let (fabric, neb) = &mut self.members[member];
        let payload = (self.broadcast[member] + 1).to_le_bytes();
        if neb.broadcast(fabric, 7, &payload).is_ok() {
            self.broadcast[member] += 1;
        }
    }

    /// Any bytes anywhere in the liar's own memory.
    fn scribble(&mut self, region: u8, offset: u8, bytes: &[u8]) {
        let layout = self.liar.layout();
        let region = Region(region % layout.regions().len() as u8);
        let len = layout.spec(region).expect("there is such a region").len;
        let offset = u32::from(offset) * 8 % len;
        let room = bytes.len().min((len - offset) as usize);
        self.net.memory(LIAR).copy_in(region, offset, &bytes[..room]);
    }

    /// A slot that is whole; of a liar, who has no key but its own.
    fn slot(&self, origin: Peer, seq: u64, bytes: &[u8]) -> Vec<u8> {
        let form = self.config.form();
        let generation = self.config.stamp(origin, seq).generation;
        let stamp = Stamp { seq, generation, origin };
        let len = bytes.len().min(16) as u16;
        let header = Header { stamp, len, tag: 0, form };
        let mut slot = vec![0; header.used().next_multiple_of(8)];
        header.write(&mut slot);
        slot[HEADER_LEN..][..usize::from(len)].copy_from_slice(&bytes[..usize::from(len)]);
        if form == Form::Signed {
            Keys::<PEERS>::new(9, key(LIAR)).sign_slot(&mut slot).expect("it has room");
        }
        seal(&mut slot[..header.used()], crc32c);
        slot
    }

    /// Exposes a message of another member, in the liar's own memory.
    fn show(&mut self, origin: u8, seq: u8, bytes: &[u8]) {
        let (origin, seq) = (Peer(u16::from(origin) % 3), u64::from(seq));
        let at = self.config.exposed_at(&self.regions, origin, seq);
        let slot = self.slot(origin, seq, bytes);
        self.net.memory(LIAR).copy_in(at.region, at.offset, &slot);
    }

    /// Any bytes in the liar's ring at a member.
    fn write(&mut self, to: u8, offset: u32, bytes: &[u8]) {
        let ring = self.config.written_at(&self.regions, LIAR, 0);
        let to = MEMBERS[usize::from(to % 2)];
        let at = At { offset: offset * 8 % (SLOTS * self.config.stride()), ..ring };
        self.post(to, at, bytes);
    }

    /// A message of the liar's at a member.
    fn tell(&mut self, to: u8, seq: u8, bytes: &[u8]) {
        let to = usize::from(to % 2);
        let epoch = self.members[to].1.epoch(LIAR);
        let seq = number_before(epoch).expect("an early epoch") + u64::from(seq);
        let at = self.config.written_at(&self.regions, LIAR, seq);
        let slot = self.slot(LIAR, seq, bytes);
        self.post(MEMBERS[to], at, &slot);
    }

    /// A member counts a later epoch of the liar.
    fn count(&mut self, member: u8, epoch: u8) {
        let (fabric, neb) = &mut self.members[usize::from(member % 2)];
        neb.handle_epoch(fabric, LIAR, Incarnation(epoch.into())).expect("an early epoch");
    }

    fn post(&mut self, to: Peer, at: At, bytes: &[u8]) {
        let op = Op::Write { to: at, bytes };
        let work = Work { id: WorkId(0), op, flags: CompletionFlags::QUIET };
        // What leaves the region is refused.
        let _ = self.liar.post(to, work);
        self.liar.poll(self.now, &mut [Completion::NONE; 8]);
    }

    fn poll(&mut self) {
        self.now = self.now.after(Duration(2));
        for member in 0..2 {
            let (fabric, neb) = &mut self.members[member];
            neb.poll(fabric, self.now);
            let mut done = [Completion::NONE; 16];
            let count = fabric.poll(self.now, &mut done);
            for completion in &done[..count] {
                neb.handle_completion(fabric, self.now, completion);
            }
            while let Some(outcome) = neb.take(fabric) {
                let Outcome::Delivered(message) = outcome else { continue };
                let (origin, seq) = (message.origin.index(), message.seq);
                if let Some(said) = self.broadcast.get(origin) {
                    assert!(seq <= *said, "{seq} of {origin} was never broadcast");
                    assert_eq!(message.payload, seq.to_le_bytes(), "another message");
                }
                let slot = (message.origin, seq);
                let agreed = self.agreed.entry(slot).or_insert_with(|| message.payload.to_vec());
                assert_eq!(agreed, message.payload, "{seq} of {origin} is two messages");
            }
        }
    }
}

/// One input.
pub fn run(bytes: &[u8]) {
    let Some((form, mut rest)) = bytes.split_first() else { return };
    let form = if form % 4 == 0 { Form::Signed } else { Form::Unsigned };
    let (config, regions, layout) = sizes(form);
    let net = Box::new(Net::<PEERS, WORDS>::new(layout));
    let mut world = World::new(&net, config, regions);
    for _ in 0..200 {
        let Some(([what, a, b, len], after)) = rest.split_first_chunk() else { return };
        let (bytes, after) = after.split_at(after.len().min(usize::from(*len % 64)));
        world.step([*what, *a, *b], bytes);
        rest = after;
    }
}
