//! What a member learns of its cluster, in order.

use weft::member::{Event, Received, Verdict};

use crate::border::{Out, call, ok_or_none, timeout};
use crate::code::weft_code;
use crate::handle::{Form, until, with};
use crate::lifecycle::weft_member;
use crate::membership::mask;
use crate::tensor::weft_shape;

/// What happened, and which fields of the event say more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum weft_event_kind {
    /// This member shows a view: number, members.
    WEFT_EVENT_VIEW = 1,
    /// Messages have gone to an incarnation and back: rank, incarnation.
    WEFT_EVENT_JOINED = 2,
    /// The program of a member has finished: rank.
    WEFT_EVENT_FINISHED = 3,
    /// An incarnation is gone and fenced: rank, incarnation, verdict, and the term of a removal.
    WEFT_EVENT_REMOVED = 4,
    /// A member is not heard of. No verdict: rank.
    WEFT_EVENT_SUSPECTED = 5,
    /// A suspect was heard of again: rank.
    WEFT_EVENT_TRUSTED = 6,
    /// No incarnation takes part until an operator releases it: rank.
    WEFT_EVENT_ISOLATED = 7,
    /// An operator has released a member: rank.
    WEFT_EVENT_RELEASED = 8,
    /// Two members show different broadcasts under one number: rank (the origin), number, replayer.
    WEFT_EVENT_CONFLICT = 9,
    /// A receive has ended, once for each: request, received, and the shape of a mismatch.
    WEFT_EVENT_ENDED = 10,
    /// The memory of a receive is free, once for each: request.
    WEFT_EVENT_RETURNED = 11,
    /// The receiver has a tensor that was sent: request (what weft_send has returned).
    WEFT_EVENT_CONSUMED = 12,
    /// This member was removed; its node ends the process at once.
    WEFT_EVENT_EXCLUDED = 13,
    /// End in order, within 5 s.
    WEFT_EVENT_STOP = 14,
    /// The program did not drain the events, and so many are lost: number.
    WEFT_EVENT_MISSED = 15,
    /// An event of a later version of the library.
    WEFT_EVENT_OTHER = 99,
}

/// How it is known that an incarnation is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum weft_verdict {
    /// No verdict.
    WEFT_VERDICT_NONE = 0,
    /// Its process has ended.
    WEFT_VERDICT_ENDED = 1,
    /// The manager has removed its node.
    WEFT_VERDICT_NODE_REMOVED = 2,
    /// As a later version of the library says.
    WEFT_VERDICT_OTHER = 99,
}

/// How a receive ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum weft_received {
    /// No receive.
    WEFT_RECEIVED_NONE = 0,
    /// The tensor is there: take it.
    WEFT_RECEIVED_VALUE = 1,
    /// The tensor is dead.
    WEFT_RECEIVED_DEAD = 2,
    /// Its timeout has passed.
    WEFT_RECEIVED_TIMED_OUT = 3,
    /// By weft_cancel.
    WEFT_RECEIVED_CANCELLED = 4,
    /// The step was aborted.
    WEFT_RECEIVED_ABORTED = 5,
    /// The source's incarnation has ended.
    WEFT_RECEIVED_PEER_GONE = 6,
    /// The name was that of another boot of the source.
    WEFT_RECEIVED_SOURCE_RESTARTED = 7,
    /// The tensor is not what was expected, and stays at its source.
    WEFT_RECEIVED_MISMATCH = 8,
    /// Its bytes were damaged; it stays at its source.
    WEFT_RECEIVED_CORRUPT = 9,
    /// It is longer than the memory for tensors.
    WEFT_RECEIVED_TOO_LARGE = 10,
    /// The step was cleaned up.
    WEFT_RECEIVED_STEP_OVER = 11,
    /// The source has no room for one more receive that waits.
    WEFT_RECEIVED_NO_SPACE = 12,
    /// The host could not hand it over; it stays at its source.
    WEFT_RECEIVED_NOT_HANDED_OVER = 13,
}

/// Something that a member learns of its cluster. A field that its kind does not name is 0.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct weft_event {
    /// What happened.
    pub kind: weft_event_kind,
    /// The member that it is about.
    pub rank: u16,
    /// The member that shows another broadcast than this one.
    pub replayer: u16,
    /// The incarnation of `rank`.
    pub incarnation: u32,
    /// What weft_receive or weft_send has returned.
    pub request: u32,
    /// The number of a view or a broadcast, or how many events are lost.
    pub number: u64,
    /// The members of a view, a bit for each rank.
    pub members: u64,
    /// How it is known that an incarnation is gone.
    pub verdict: weft_verdict,
    /// The term of a removal: how many terms there were before it, at least.
    pub term_epoch: u32,
    /// The term of a removal: the manager that decided it.
    pub term_manager: u16,
    /// How a receive ended.
    pub received: weft_received,
    /// What the tensor is that was not expected.
    pub shape: weft_shape,
}

impl weft_event {
    const fn of(kind: weft_event_kind) -> Self {
        Self {
            kind,
            rank: 0,
            replayer: 0,
            incarnation: 0,
            request: 0,
            number: 0,
            members: 0,
            verdict: weft_verdict::WEFT_VERDICT_NONE,
            term_epoch: 0,
            term_manager: 0,
            received: weft_received::WEFT_RECEIVED_NONE,
            shape: weft_shape::EMPTY,
        }
    }
}

fn about(kind: weft_event_kind, rank: weft::member::Rank) -> weft_event {
    weft_event { rank: rank.0, ..weft_event::of(kind) }
}

fn event_of(event: &Event) -> weft_event {
    use weft_event_kind as kind;
    match *event {
        Event::View { number, members } => weft_event {
            number: number.to_bits(),
            members: mask(&members),
            ..weft_event::of(kind::WEFT_EVENT_VIEW)
        },
        Event::Joined { rank, incarnation } => {
            weft_event { incarnation: incarnation.0, ..about(kind::WEFT_EVENT_JOINED, rank) }
        }
        Event::Finished { rank } => about(kind::WEFT_EVENT_FINISHED, rank),
        Event::Removed { rank, incarnation, verdict } => {
            let event = about(kind::WEFT_EVENT_REMOVED, rank);
            removed(weft_event { incarnation: incarnation.0, ..event }, verdict)
        }
        Event::Suspected { rank } => about(kind::WEFT_EVENT_SUSPECTED, rank),
        Event::Trusted { rank } => about(kind::WEFT_EVENT_TRUSTED, rank),
        Event::Isolated { rank } => about(kind::WEFT_EVENT_ISOLATED, rank),
        Event::Released { rank } => about(kind::WEFT_EVENT_RELEASED, rank),
        Event::Conflict { origin, seq, replayer } => weft_event {
            number: seq,
            replayer: replayer.0,
            ..about(kind::WEFT_EVENT_CONFLICT, origin)
        },
        Event::Ended { request, outcome } => ended(request.to_bits(), &outcome),
        Event::Returned { request } => {
            weft_event { request: request.to_bits(), ..weft_event::of(kind::WEFT_EVENT_RETURNED) }
        }
        Event::Consumed { offer } => {
            weft_event { request: offer.to_bits(), ..weft_event::of(kind::WEFT_EVENT_CONSUMED) }
        }
        Event::Excluded => weft_event::of(kind::WEFT_EVENT_EXCLUDED),
        Event::Stop => weft_event::of(kind::WEFT_EVENT_STOP),
        Event::Missed { count } => {
            weft_event { number: count, ..weft_event::of(kind::WEFT_EVENT_MISSED) }
        }
        _ => weft_event::of(kind::WEFT_EVENT_OTHER),
    }
}

fn removed(event: weft_event, verdict: Verdict) -> weft_event {
    match verdict {
        Verdict::Ended => weft_event { verdict: weft_verdict::WEFT_VERDICT_ENDED, ..event },
        Verdict::NodeRemoved { term } => weft_event {
            verdict: weft_verdict::WEFT_VERDICT_NODE_REMOVED,
            term_epoch: term.epoch,
            term_manager: term.claimant.0,
            ..event
        },
        _ => weft_event { verdict: weft_verdict::WEFT_VERDICT_OTHER, ..event },
    }
}

fn ended(request: u32, outcome: &Received) -> weft_event {
    use weft_received as received;
    let how = match outcome {
        Received::Value => received::WEFT_RECEIVED_VALUE,
        Received::Dead => received::WEFT_RECEIVED_DEAD,
        Received::TimedOut => received::WEFT_RECEIVED_TIMED_OUT,
        Received::Cancelled => received::WEFT_RECEIVED_CANCELLED,
        Received::Aborted => received::WEFT_RECEIVED_ABORTED,
        Received::PeerGone => received::WEFT_RECEIVED_PEER_GONE,
        Received::SourceReborn => received::WEFT_RECEIVED_SOURCE_RESTARTED,
        Received::Mismatch(_) => received::WEFT_RECEIVED_MISMATCH,
        Received::Corrupt => received::WEFT_RECEIVED_CORRUPT,
        Received::TooLarge => received::WEFT_RECEIVED_TOO_LARGE,
        Received::StepOver => received::WEFT_RECEIVED_STEP_OVER,
        Received::NoSpace => received::WEFT_RECEIVED_NO_SPACE,
        Received::NotHandedOver => received::WEFT_RECEIVED_NOT_HANDED_OVER,
    };
    let shape = match outcome {
        Received::Mismatch(shape) => weft_shape::of(shape),
        _ => weft_shape::EMPTY,
    };
    let event = weft_event::of(weft_event_kind::WEFT_EVENT_ENDED);
    weft_event { request, received: how, shape, ..event }
}

/// Writes the next event to `event`, oldest first; WEFT_NONE if none comes. Drain them: of more
/// than 1024 the later ones are counted instead of kept.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_next_event(
    member: *mut weft_member,
    event: *mut weft_event,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let event = unsafe { Out::new(event, "event") };
    call(|| {
        let (event, timeout) = (event?, timeout(timeout_us));
        let next = with(member, |form| match form {
            Form::Polled(member) => until(member, timeout, |member| Ok(member.next_event())),
            Form::Spawned(handle) => Ok(handle.next_event(timeout)?),
        })?;
        Ok(ok_or_none(next.map(|next| event.set(event_of(&next))).is_some()))
    })
}
