//! Messages of a third member, any bytes, into two members that exchange tensors.
//!
//! ```text
//!   byte 0   path of the values           byte 1..: what happens      then
//!   0..      a message is sent to a member, made of 12 bytes          a tail
//!   6        any frame is sent to one                                 kind, length, so many bytes
//!   7, 8     a member sends a value                                   to whom and step, length
//!   9, 10    it asks for one                                          of whom and step, how long
//!   11       it cancels a receive         12  it takes what came
//!   13       time passes                  14  a step ends
//!   15       the third is removed
//! ```
//!
//! No member panics. Whatever the third says, a value that comes from the other member was sent by
//! it under that name, and each receive ends once and returns its memory once. At last the third is
//! removed and all deadlines pass: nothing is left.

use std::collections::HashMap;

use weft_core::decision::Decision;
use weft_core::fabric::loopback::{Loopback, Net};
use weft_core::fabric::{Completion, Fabric, Layout, Memory};
use weft_core::ids::{Incarnation, Peer, Term};
use weft_core::lane::LaneWriter;
use weft_core::rendezvous::{
    Adapter, Digest, Dtype, Expect, Key, PartSizes, Path, Place, Received, RendezvousConfig,
    RendezvousEvent, RendezvousRegions, RendezvousSizes, RequestId, Shape,
};
use weft_core::time::{Duration, Instant};
use weft_core::wire::rendezvous::{Flags, HEAD_LEN, Handle, Head, INLINE_LEN_MAX, Kind, Status};

const PEERS: usize = 3;
/// Of whole values; parts have one for each peer.
const SLOTS: usize = 6;
const PART_LEN: u32 = 64;
const WORDS: usize = 4096;
const LANE_SLOTS: u32 = 4;
const FIRST: Incarnation = Incarnation(1);
const STRANGER: Peer = Peer(2);
const STEPS: u8 = 4;
const OPS_MAX: usize = 400;

/// Source, destination and step.
type Name = (Peer, Peer, i64);

struct Member<'net> {
    fabric: Loopback<'net, PEERS, WORDS>,
    adapter: Adapter<PEERS, { SLOTS + PEERS }>,
    /// What it asked for, until its memory is returned; and whether it has ended.
    asked: HashMap<RequestId, (Name, bool)>,
    /// The source and the token of what it has fetched in parts.
    in_parts: HashMap<RequestId, (Peer, u64)>,
}

fn sizes(first: u8) -> RendezvousSizes {
    RendezvousSizes {
        peers: PEERS as u16,
        slots: SLOTS as u16,
        leaf_len: 64,
        offer_leaves: 16,
        landing_leaves: 16,
        inline: if first & 2 == 0 { 16 } else { 0 },
        piece_len: 32,
        digest: if first & 4 == 0 { Digest::Crc32c } else { Digest::Off },
        path: if first & 1 == 0 { Path::Read } else { Path::Write },
        parts: PartSizes { len: PART_LEN, places: 2, slots: PEERS as u16 },
        lane_slots: LANE_SLOTS,
    }
}

fn key((source, destination, _): Name) -> Key {
    Key::new((source, None), destination, ("edge", "0:0")).expect("a key")
}

impl<'net> Member<'net> {
    fn start(
        net: &'net Net<PEERS, WORDS>,
        (config, regions): (RendezvousConfig, RendezvousRegions),
        me: Peer,
    ) -> Self {
        let fabric = net.endpoint(me, FIRST);
        let adapter = Adapter::new(&fabric, config, regions, (FIRST, FIRST.0));
        let (asked, in_parts) = (HashMap::new(), HashMap::new());
        let mut member = Self { fabric, adapter, asked, in_parts };
        for peer in [Peer(1 - me.0), STRANGER] {
            member.adapter.prepare(&member.fabric, peer, FIRST);
            member.fabric.admit(peer, FIRST).expect("a first incarnation");
            member.adapter.handle_admitted(peer);
        }
        member
    }

    fn poll(&mut self, now: Instant) {
        let mut done = [Completion::NONE; 8];
        let count = self.fabric.poll(now, &mut done);
        for completion in &done[..count] {
            self.adapter.handle_completion(&self.fabric, completion);
        }
        self.adapter.poll(&mut self.fabric, now);
    }

    /// Sends `len` bytes, all of them `fill`; some so that they are fetched in parts.
    fn send(&mut self, now: Instant, name: Name, (len, fill): (u8, u8)) -> bool {
        let shape = Shape::new(Dtype::U8, &[u64::from(len)]).expect("a shape");
        let value = (shape, &vec![fill; usize::from(len)][..]);
        let name = (&key(name), Place::whole(name.2));
        if len % 3 == 1 {
            let value = (shape, u64::from(fill));
            return self.adapter.hand_over(&mut self.fabric, now, name, value).is_ok();
        }
        self.adapter.send_bytes(&mut self.fabric, now, name, value).is_ok()
    }

    fn ask(&mut self, now: Instant, name: Name, wait: Duration) {
        let asked = (&key(name), Place::whole(name.2));
        let how = (Expect::any(), now.after(wait));
        if let Ok(request) = self.adapter.receive(&mut self.fabric, now, asked, how) {
            let before = self.asked.insert(request, (name, false));
            assert_eq!(before, None, "a request that is not over");
        }
    }

    /// Takes what has ended; `sent` is what members sent.
    fn take(&mut self, now: Instant, sent: &HashMap<Name, Vec<(u8, u8)>>) {
        self.take_parts(now);
        while let Some(event) = self.adapter.poll_event() {
            match event {
                RendezvousEvent::Ended { request, outcome } => {
                    let (name, ended) = self.asked.get_mut(&request).expect("it was asked for");
                    assert!(!*ended, "it ends once");
                    *ended = true;
                    let name = *name;
                    if outcome == Received::Value {
                        self.check(request, name, sent);
                        self.adapter.release(request).expect("a value");
                    }
                }
                RendezvousEvent::Returned { request } => {
                    let (_, ended) = self.asked.remove(&request).expect("it returns once");
                    assert!(ended, "it ends before it returns");
                }
                RendezvousEvent::Consumed { .. } => {}
            }
        }
        while let Some(value) = self.adapter.poll_hand_over() {
            if value.source == STRANGER && value.token % 2 == 0 {
                let _ = self.adapter.handle_handed_over(value.request, value.token % 4 == 0);
            } else {
                let begun = self.adapter.fetch_parts(&mut self.fabric, now, value.request);
                begun.expect("it was just polled");
                self.in_parts.insert(value.request, (value.source, value.token));
            }
        }
    }

    /// Lends the parts that are wanted, and takes those that have landed.
    fn take_parts(&mut self, now: Instant) {
        while let Some(wanted) = self.adapter.poll_wanted() {
            let bytes = vec![wanted.token as u8; wanted.bytes as usize];
            let _ = self.adapter.lend_part(&mut self.fabric, now, &wanted, &bytes);
        }
        while let Some(part) = self.adapter.poll_part() {
            let (source, token) = self.in_parts[&part.request];
            assert!(part.bytes <= u64::from(PART_LEN), "{part:?}");
            let mut bytes = vec![0; part.bytes as usize];
            self.fabric.memory().copy_out(part.at.region, part.at.offset, &mut bytes);
            let is_its = bytes.iter().all(|byte| u64::from(*byte) == token);
            assert!(source == STRANGER || is_its, "{part:?} of {token}: {bytes:?}");
            self.adapter.release(part.part).expect("it was just polled");
        }
    }

    fn check(&self, request: RequestId, name: Name, sent: &HashMap<Name, Vec<(u8, u8)>>) {
        if name.0 == STRANGER {
            return;
        }
        let Some(tensor) = self.adapter.tensor(request) else {
            assert!(self.in_parts.contains_key(&request), "{request:?} has no value");
            return;
        };
        let mut bytes = vec![0; tensor.bytes as usize];
        self.fabric.memory().copy_out(tensor.at.region, tensor.at.offset, &mut bytes);
        let is_one = |(len, fill): &(u8, u8)| bytes == vec![*fill; usize::from(*len)];
        assert!(sent.get(&name).is_some_and(|all| all.iter().any(is_one)), "{name:?}: {bytes:?}");
    }

    fn remove_stranger(&mut self) {
        let decision = Decision { term: Term::of_epoch(1), removed: STRANGER, last: FIRST };
        self.adapter.remove(&mut self.fabric, decision).expect("a peer of loopback is fenced");
    }
}

/// A message about a slot that may be in use, of 12 bytes.
fn message(to: Peer, from: &[u8; 12], regions: RendezvousRegions, tail: &[u8]) -> Vec<u8> {
    let [kind, flags, request, request_use, offer, offer_use, len, place, ref rest @ ..] = *from;
    let [status, step, more, last] = *rest;
    let kind = Kind::ALL[usize::from(kind) % Kind::ALL.len()];
    let (step, parts) = (i64::from(step % STEPS), 1 + u32::from(last >> 6));
    let handle = |slot: u8, generation: u8| Handle {
        slot: u16::from(slot) % ((SLOTS + PEERS) as u16 + 1),
        generation: u16::from(generation) % 8,
    };
    let name = key((to, STRANGER, step));
    let is_named = kind == Kind::TensorRequest;
    let head = Head {
        flags: Flags::from_bits_truncate(u16::from(flags)),
        shape: (len > 0).then(|| Shape::new(Dtype::U8, &[u64::from(len)]).expect("a shape")),
        name_len: if is_named { name.name().len() as u16 } else { 0 },
        request: handle(request, request_use),
        offer: handle(offer, offer_use),
        bytes: u64::from(len),
        region: if place & 1 == 0 { regions.offers() } else { regions.landings() }.0,
        offset: u32::from(place >> 1) * 64,
        token: u64::from(place),
        status: Status::ALL[usize::from(status) % Status::ALL.len()],
        wait_ms: if is_named { u32::from(more) } else { 0 },
        ..Head::new(kind, step, (u32::from(last >> 4 & 3) % parts, parts))
    };
    let behind = if is_named { name.name() } else { tail };
    [&head.encode()[..], behind].concat()
}

/// One input.
pub fn run(bytes: &[u8]) {
    let Some((&first, mut bytes)) = bytes.split_first() else { return };
    let config = RendezvousConfig::new(sizes(first)).expect("valid sizes");
    let mut layout = Layout::new(PEERS as u16);
    let regions = config.add_regions(&mut layout).expect("there is room");
    let frame = (HEAD_LEN + INLINE_LEN_MAX) as u16;
    let (lane_config, lane_regions) = super::lanes(&layout, frame, LANE_SLOTS);
    let net: Net<PEERS, WORDS> = Net::new(layout);
    let mut members = [Peer(0), Peer(1)].map(|me| Member::start(&net, (config, regions), me));
    let mut stranger = net.endpoint(STRANGER, FIRST);
    for me in [Peer(0), Peer(1)] {
        stranger.admit(me, FIRST).expect("a first incarnation");
    }
    let mut writers = [Peer(0), Peer(1)]
        .map(|to| LaneWriter::new(&stranger, lane_config, lane_regions, FIRST, (to, FIRST)));
    let mut sent: HashMap<Name, Vec<(u8, u8)>> = HashMap::new();
    let mut fill = 0;
    let mut now = Instant(0);
    let mut next = |count: usize| {
        let taken = bytes.split_off(..count.min(bytes.len())).unwrap_or(&[]);
        (taken.len() == count).then_some(taken)
    };
    for _ in 0..OPS_MAX {
        let Some(&[op]) = next(1) else { break };
        let who = usize::from(op >> 4) % 2;
        let me = Peer(who as u16);
        let other = |which: u8| if which & 1 == 0 { Peer(1 - me.0) } else { STRANGER };
        match op % 16 {
            op @ 0..=6 => {
                let made = if op < 6 {
                    let Some(head) = next(12) else { break };
                    let head: &[u8; 12] = head.try_into().expect("12 bytes");
                    let Some(tail) = next(usize::from(head[11] % 33)) else { break };
                    message(me, head, regions, tail)
                } else {
                    let Some(&[len]) = next(1) else { break };
                    let Some(frame) = next(usize::from(len)) else { break };
                    frame.to_vec()
                };
                let _ = writers[who].send(&mut stranger, u16::from(op == 6), &made);
                stranger.poll(now, &mut [Completion::NONE; 8]);
            }
            7 | 8 => {
                let Some(&[which, len]) = next(2) else { break };
                let name = (me, other(which), i64::from((which >> 1) % STEPS));
                fill += 1;
                // Before it is sent: a warm value may arrive within the call.
                sent.entry(name).or_default().push((len, fill));
                if !members[who].send(now, name, (len, fill)) {
                    sent.entry(name).or_default().pop();
                }
                fill %= u8::MAX;
            }
            9 | 10 => {
                let Some(&[which, wait]) = next(2) else { break };
                let name = (other(which), me, i64::from((which >> 1) % STEPS));
                members[who].ask(now, name, Duration::from_millis(u64::from(wait)));
            }
            11 => {
                let Some(&[which]) = next(1) else { break };
                let Member { fabric, adapter, asked, .. } = &mut members[who];
                let mut all: Vec<_> = asked.iter().filter(|(_, (_, ended))| !ended).collect();
                all.sort_unstable_by_key(|(_, (name, _))| *name);
                if let Some((request, _)) = all.get(usize::from(which) % all.len().max(1)) {
                    adapter.cancel(fabric, now, **request).expect("it has not ended");
                }
            }
            12 => members[who].take(now, &sent),
            13 => {
                let Some(&[ms]) = next(1) else { break };
                now = now.after(Duration::from_millis(u64::from(ms)));
            }
            14 => {
                let Some(&[step]) = next(1) else { break };
                let adapter = &mut members[who].adapter;
                let number = i64::from((step >> 1) % STEPS);
                if step & 1 == 0 { adapter.abort(number) } else { adapter.cleanup(number) }
            }
            _ => members.iter_mut().for_each(Member::remove_stranger),
        }
        members.iter_mut().for_each(|member| member.poll(now));
    }
    members.iter_mut().for_each(Member::remove_stranger);
    now = now.after(Duration::from_millis(2 * u64::from(u8::MAX)));
    for _ in 0..64 {
        for member in &mut members {
            member.poll(now);
            member.take(now, &sent);
        }
    }
    for member in &members {
        assert!(member.asked.is_empty(), "not over: {:?}", member.asked);
        let [requests, _, waiters] = member.adapter.used();
        assert_eq!([requests, waiters], [0; 2]);
        assert!(member.adapter.landings().is_whole());
    }
}
