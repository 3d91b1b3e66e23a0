//! One incarnation of a peer: its adapter, what it sent, and what it asked for.

use weft_core::fabric::{At, Completion, Fabric, Memory};
use weft_core::ids::{Incarnation, Peer};
use weft_core::rendezvous::{
    Adapter, Dtype, Expect, HandOver, Key, OfferError, OfferId, Place, Received, RendezvousEvent,
    RequestId, Shape,
};
use weft_core::time::{Duration, Instant};

use super::host::{Parcel, ParcelKind};
use super::{MeetingName, Meetings, PEERS, SLOTS, Script, Worth};
use crate::protocol::{Seat, Violation};

/// Completions that one round handles.
const BATCH: usize = 4;

/// What a node observes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeetingEvent {
    /// A value was sent.
    Sent {
        /// Its name.
        name: MeetingName,
        /// What it is.
        worth: Worth,
    },
    /// A receive ended with a value.
    Delivered {
        /// Its name.
        name: MeetingName,
        /// What it is.
        worth: Worth,
    },
    /// A value that was sent is consumed.
    Consumed {
        /// Its name.
        name: MeetingName,
        /// What it is.
        worth: Worth,
    },
    /// The bytes of a value that was not yet released have changed.
    Changed {
        /// Its name.
        name: MeetingName,
    },
    /// An event of a receive that has had it, or cannot have it yet.
    Odd {
        /// Which.
        what: String,
    },
    /// A receive timed out.
    TimedOut {
        /// Its name.
        name: MeetingName,
    },
    /// A value was sent for a step that is over.
    Revived {
        /// Which step.
        step: i64,
    },
}

/// A receive, until it has ended, returned and been released.
#[derive(Clone, Debug, Hash)]
struct PendingReceive {
    request: RequestId,
    name: MeetingName,
    ended: bool,
    returned: bool,
    /// The value, until its release; what was handed over lies in no memory of the fabric.
    held: Option<(Option<At>, Vec<u8>)>,
    /// The number under which the host fetches it, and then what it has fetched.
    fetch: Option<(u64, Worth)>,
}

impl std::hash::Hash for MeetingNode {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.adapter.hash(state);
        self.asked.hash(state);
        self.over.hash(state);
        self.sent.len().hash(state);
        self.serial.hash(state);
    }
}

/// The rendezvous of one incarnation.
#[derive(Clone, Debug)]
pub struct MeetingNode {
    me: Peer,
    incarnation: Incarnation,
    /// Long, so that a copy of it is moved as seldom as can be.
    adapter: Box<Adapter<PEERS, SLOTS>>,
    asked: Vec<PendingReceive>,
    /// Values that are not consumed, nor dropped with their step.
    sent: Vec<(OfferId, MeetingName, Worth)>,
    /// What the host hands over, and by which token.
    handed: Vec<(OfferId, u64)>,
    /// Which incarnation of each peer is admitted.
    admitted: [Incarnation; PEERS],
    /// Steps that this incarnation has ended.
    over: Vec<i64>,
    serial: u64,
}

impl MeetingNode {
    pub(super) fn new(run: &Meetings, seat: &mut Seat<'_, MeetingEvent>) -> Self {
        let (me, incarnation) = (seat.me(), seat.incarnation);
        let started = (incarnation, incarnation.0);
        let adapter = Adapter::new(&seat.fabric, run.config, run.regions, started).into();
        let (asked, sent, handed, over) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut admitted = [Incarnation(0); PEERS];
        admitted[me.index()] = incarnation;
        Self { me, incarnation, adapter, asked, sent, handed, admitted, over, serial: 0 }
    }

    pub(super) fn admit(
        &mut self,
        (peer, incarnation): (Peer, Incarnation),
        seat: &mut Seat<'_, MeetingEvent>,
    ) {
        self.adapter.prepare(&seat.fabric, peer, incarnation);
        seat.fabric.admit(peer, incarnation).expect("a later incarnation is admitted");
        self.adapter.handle_admitted(peer);
        self.admitted[peer.index()] = incarnation;
    }

    pub(super) fn fence(&mut self, peer: Peer) {
        self.adapter.handle_fenced(peer);
    }

    pub(super) fn step(&mut self, run: &Meetings, seat: &mut Seat<'_, MeetingEvent>) {
        let mut done = [Completion::NONE; BATCH];
        let count = seat.fabric.poll(seat.now, &mut done);
        for completion in &done[..count] {
            self.adapter.handle_completion(&seat.fabric, completion);
        }
        if seat.is_ordered() {
            self.obey(run, seat);
        }
        let now = seat.now;
        self.adapter.poll(&mut seat.fabric, now);
        if run.hands_over {
            self.hand_over(run, seat);
        }
        self.hear(seat);
        self.release(seat);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.adapter.poll_timeout()
    }

    /// One order: a value is sent, one is asked for, a receive is cancelled, or a step ends.
    fn obey(&mut self, run: &Meetings, seat: &mut Seat<'_, MeetingEvent>) {
        if let Some(script) = run.script {
            return match script {
                Script::Ask | Script::AskAndCancel if self.me == Peer(0) => self.send(run, seat),
                Script::CancelForAnother if self.me != Peer(0) => self.send(run, seat),
                Script::AskAndCancel if !self.asked.is_empty() => self.cancel(0, seat),
                Script::Ask | Script::AskAndCancel => self.ask(run, seat),
                Script::CancelForAnother => {
                    match self.serial {
                        0 | 3 => self.ask(run, seat),
                        2 if self.asked.iter().any(|asked| !asked.ended) => self.cancel(0, seat),
                        _ => {}
                    }
                    self.serial += 1;
                }
            };
        }
        match seat.draw(16) {
            0..=6 => self.send(run, seat),
            13 | 14 if !self.asked.is_empty() => {
                let at = seat.draw(self.asked.len() as u64) as usize;
                self.cancel(at, seat);
            }
            15 if seat.draw(4) == 0 => {
                let step = seat.draw(run.steps) as i64;
                self.adapter.cleanup(step);
                self.over.push(step);
                // Those that are lent are consumed later, or dropped without a word.
            }
            _ => self.ask(run, seat),
        }
    }

    fn cancel(&mut self, at: usize, seat: &mut Seat<'_, MeetingEvent>) {
        let (request, now) = (self.asked[at].request, seat.now);
        let cancelled = self.adapter.cancel(&mut seat.fabric, now, request);
        cancelled.expect("a receive that is not over can be cancelled");
    }

    fn name(
        &self,
        run: &Meetings,
        seat: &mut Seat<'_, MeetingEvent>,
        is_mine: bool,
    ) -> MeetingName {
        let ahead = 1 + seat.draw(run.peers()) as u16;
        let other = match run.script {
            Some(_) if self.me == Peer(0) => Peer(1 + (self.serial % (run.peers() - 1)) as u16),
            Some(_) => Peer(0),
            None => Peer((self.me.0 + ahead) % run.layout.peers()),
        };
        let ends = if is_mine { (self.me, other) } else { (other, self.me) };
        let key = Key::new((ends.0, None), ends.1, ("edge", "0:0")).expect("a short name");
        (key, seat.draw(run.steps) as i64)
    }

    fn send(&mut self, run: &Meetings, seat: &mut Seat<'_, MeetingEvent>) {
        let name = self.name(run, seat, true);
        let is_dead = seat.draw(8) == 7;
        let len = match seat.draw(8) {
            0 => run.len_max,
            1 => 0,
            _ => seat.draw(run.len_max + 1),
        };
        self.serial += 1;
        let worth = if is_dead {
            Worth { shape: None, bytes: Vec::new() }
        } else {
            let dims = if len.is_multiple_of(4) { vec![len / 4, 4] } else { vec![len] };
            let shape = Shape::new(Dtype::U8, &dims).expect("a small tensor");
            Worth { shape: Some(shape), bytes: self.bytes(len) }
        };
        let (now, place) = (seat.now, Place::whole(name.1));
        let is_drawn = seat.draw(2) == 1 || run.script.is_some();
        let is_handed_over = run.hands_over && !is_dead && is_drawn;
        let (fabric, token) = (&mut seat.fabric, self.serial);
        let sent = match worth.shape {
            None => self.adapter.send_dead(fabric, now, (&name.0, place)),
            Some(shape) if is_handed_over => {
                self.adapter.hand_over(fabric, now, (&name.0, place), (shape, token))
            }
            Some(shape) => {
                self.adapter.send_bytes(fabric, now, (&name.0, place), (shape, &worth.bytes))
            }
        };
        match sent {
            Ok(offer) => {
                if self.over.contains(&name.1) {
                    seat.record(MeetingEvent::Revived { step: name.1 });
                }
                seat.record(MeetingEvent::Sent { name: name.clone(), worth: worth.clone() });
                self.handed.extend(is_handed_over.then_some((offer, token)));
                self.sent.push((offer, name, worth));
            }
            Err(OfferError::Full | OfferError::NoSpace | OfferError::TooLong) => {}
            Err(OfferError::StepOver) if self.over.contains(&name.1) => {}
            Err(error) => panic!("{name:?} was refused: {error:?}"),
        }
    }

    /// Bytes that no other value has, where there are a few.
    fn bytes(&self, len: u64) -> Vec<u8> {
        let seed = u64::from(self.me.0) << 32 ^ u64::from(self.incarnation.0) << 16 ^ self.serial;
        let byte = |at: u64| {
            let word = (seed ^ at << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (word ^ word >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9).to_be_bytes()[0]
        };
        (0..len).map(byte).collect()
    }

    fn ask(&mut self, run: &Meetings, seat: &mut Seat<'_, MeetingEvent>) {
        let name = self.name(run, seat, false);
        let wait = run.wait_us - seat.draw(run.wait_us);
        let deadline = seat.now.after(Duration::from_micros(wait));
        // One in eight takes short values alone.
        let bytes_max = (seat.draw(8) == 7).then_some(run.len_max / 2);
        let expect = Expect { bytes_max, ..Expect::any() };
        let (now, place) = (seat.now, Place::whole(name.1));
        let how = (expect, deadline);
        let asked = self.adapter.receive(&mut seat.fabric, now, (&name.0, place), how);
        // What is refused is not asked again.
        if let Ok(request) = asked {
            let (ended, returned, held, fetch) = (false, false, None, None);
            self.asked.push(PendingReceive { request, name, ended, returned, held, fetch });
        }
    }

    /// The part of the host (RZ-18): fetches what is handed over to this peer, and answers for what
    /// this peer hands over. Every second value comes in parts.
    fn hand_over(&mut self, run: &Meetings, seat: &mut Seat<'_, MeetingEvent>) {
        let now = seat.now;
        while let Some(HandOver { request, source, token, shape }) = self.adapter.poll_hand_over() {
            self.serial += 1;
            if run.script.is_some() || token % 2 == 0 {
                let bytes = vec![0; usize::try_from(shape.bytes()).expect("a short value")];
                let asked = self.asked.iter_mut().find(|it| it.request == request);
                let asked = asked.expect("what is to be fetched was asked for");
                asked.fetch = Some((self.serial, Worth { shape: Some(shape), bytes }));
                let begun = self.adapter.fetch_parts(&mut seat.fabric, now, request);
                begun.expect("it was just polled");
                continue;
            }
            let parcel = Parcel {
                kind: ParcelKind::Want,
                lent_by: self.admitted[source.index()],
                fetched_by: (self.incarnation, self.serial),
                token,
                bytes: Vec::new(),
            };
            let asked = self.asked.iter_mut().find(|it| it.request == request);
            let asked = asked.expect("what is to be fetched was asked for");
            asked.fetch = Some((self.serial, Worth { shape: Some(shape), bytes: Vec::new() }));
            self.post(seat, source, parcel);
        }
        while let Some((from, message)) = seat.fabric.receive() {
            self.handle_parcel(seat, from, Parcel::decode(&message));
        }
        while let Some(part) = self.adapter.poll_part() {
            let asked = self.asked.iter_mut().find(|it| it.request == part.request);
            let Some((_, worth)) = asked.and_then(|asked| asked.fetch.as_mut()) else {
                panic!("{part:?} is of no receive");
            };
            let into = &mut worth.bytes[part.offset as usize..][..part.bytes as usize];
            seat.fabric.memory().copy_out(part.at.region, part.at.offset, into);
            self.adapter.release(part.part).expect("it was just polled");
        }
        while let Some(wanted) = self.adapter.poll_wanted() {
            let (_, _, worth) = self.value_of(wanted.token).expect("a value that is lent");
            let bytes = worth.bytes[wanted.offset as usize..][..wanted.bytes as usize].to_vec();
            match self.adapter.lend_part(&mut seat.fabric, now, &wanted, &bytes) {
                Ok(()) | Err(OfferError::NoSpace) => {}
                Err(error) => panic!("{wanted:?} was refused: {error:?}"),
            }
        }
    }

    /// What this incarnation hands over by that token.
    fn value_of(&self, token: u64) -> Option<&(OfferId, MeetingName, Worth)> {
        let (id, _) = self.handed.iter().find(|(_, handed)| *handed == token)?;
        self.sent.iter().rfind(|(sent, ..)| sent == id)
    }

    fn post(&mut self, seat: &mut Seat<'_, MeetingEvent>, to: Peer, parcel: Parcel) {
        if to == self.me {
            self.handle_parcel(seat, to, parcel);
        } else {
            seat.fabric.send(to, &parcel.encode());
        }
    }

    fn handle_parcel(&mut self, seat: &mut Seat<'_, MeetingEvent>, from: Peer, parcel: Parcel) {
        if parcel.kind == ParcelKind::Want {
            let is_mine = parcel.lent_by == self.incarnation;
            let sent = self.value_of(parcel.token).filter(|_| is_mine);
            let answer = match sent {
                Some((.., worth)) => {
                    Parcel { kind: ParcelKind::Value, bytes: worth.bytes.clone(), ..parcel }
                }
                None => Parcel { kind: ParcelKind::Refused, ..parcel },
            };
            return self.post(seat, from, answer);
        }
        let (incarnation, number) = parcel.fetched_by;
        if incarnation != self.incarnation {
            return;
        }
        let is_for =
            |it: &&mut PendingReceive| it.fetch.as_ref().is_some_and(|(at, _)| *at == number);
        let Some(asked) = self.asked.iter_mut().find(is_for) else { return };
        let is_there = parcel.kind == ParcelKind::Value;
        // One that has ended meanwhile leaves it at its source.
        if self.adapter.handle_handed_over(asked.request, is_there).is_ok()
            && let Some((_, worth)) = &mut asked.fetch
        {
            worth.bytes = parcel.bytes;
        }
    }

    fn hear(&mut self, seat: &mut Seat<'_, MeetingEvent>) {
        while let Some(event) = self.adapter.poll_event() {
            match event {
                RendezvousEvent::Ended { request, outcome } => self.end(request, outcome, seat),
                RendezvousEvent::Returned { request } => {
                    let asked = self.asked.iter_mut().find(|it| it.request == request);
                    match asked.filter(|asked| asked.ended && !asked.returned) {
                        Some(asked) => asked.returned = true,
                        None => seat.record(MeetingEvent::Odd { what: format!("{event:?}") }),
                    }
                }
                RendezvousEvent::Consumed { offer } => {
                    let at = self.sent.iter().rposition(|(sent, ..)| *sent == offer);
                    match at.map(|at| self.sent.remove(at)) {
                        Some((_, name, worth)) => {
                            seat.record(MeetingEvent::Consumed { name, worth });
                        }
                        None => seat.record(MeetingEvent::Odd { what: format!("{event:?}") }),
                    }
                }
            }
        }
        self.asked.retain(|asked| !asked.returned || asked.held.is_some());
    }

    fn end(&mut self, request: RequestId, outcome: Received, seat: &mut Seat<'_, MeetingEvent>) {
        let asked = self.asked.iter_mut().find(|it| it.request == request);
        let Some(asked) = asked.filter(|asked| !asked.ended) else {
            let what = format!("{request:?} ended again: {outcome:?}");
            return seat.record(MeetingEvent::Odd { what });
        };
        asked.ended = true;
        let name = asked.name.clone();
        match outcome {
            Received::Value => {
                let (at, worth) = match self.adapter.tensor(request) {
                    Some(tensor) => {
                        let (mut bytes, at) = (vec![0; tensor.bytes as usize], tensor.at);
                        seat.fabric.memory().copy_out(at.region, at.offset, &mut bytes);
                        (Some(at), Worth { shape: Some(tensor.shape), bytes })
                    }
                    None => (None, asked.fetch.take().expect("it was handed over").1),
                };
                asked.held = Some((at, worth.bytes.clone()));
                seat.record(MeetingEvent::Delivered { name, worth });
            }
            Received::Dead => {
                let worth = Worth { shape: None, bytes: Vec::new() };
                seat.record(MeetingEvent::Delivered { name, worth });
            }
            Received::TimedOut => seat.record(MeetingEvent::TimedOut { name }),
            _ => {}
        }
    }

    fn release(&mut self, seat: &mut Seat<'_, MeetingEvent>) {
        for at in 0..self.asked.len() {
            if self.asked[at].held.is_none() || seat.draw(4) == 3 {
                continue;
            }
            let Some((place, bytes)) = self.asked[at].held.take() else { continue };
            if let Some(place) = place {
                let mut copy = vec![0; bytes.len()];
                seat.fabric.memory().copy_out(place.region, place.offset, &mut copy);
                if copy != bytes {
                    seat.record(MeetingEvent::Changed { name: self.asked[at].name.clone() });
                }
            }
            self.adapter.release(self.asked[at].request).expect("a value that is held");
        }
        self.asked.retain(|asked| !asked.returned || asked.held.is_some());
    }

    /// Whether everything has ended, returned and been freed, but values that no peer asked for.
    pub(super) fn check_finished(&self) -> Result<(), Violation> {
        let me = self.me;
        let broken = |checker, what: String| Err(Violation::new(checker, format!("{me}: {what}")));
        // Each has a deadline, and time passes until it is over.
        if let Some(asked) = self.asked.first() {
            return broken("liveness", format!("{asked:?} is not over"));
        }
        let [requests, offers, waiters] = self.adapter.used();
        // A part is lent to one receive, and ends with it.
        if usize::from(offers) > self.sent.len() {
            return broken("bound", format!("{offers} offers for {} values", self.sent.len()));
        }
        if waiters > 0 {
            return broken("bound", format!("{waiters} waiters have no requester"));
        }
        if requests > 0 {
            return broken("liveness", format!("{requests} requests are not over"));
        }
        if !self.adapter.landings().is_whole() {
            let lent = self.adapter.landings().lent();
            return broken("bound", format!("{lent} bytes of landings are lost"));
        }
        Ok(())
    }
}
