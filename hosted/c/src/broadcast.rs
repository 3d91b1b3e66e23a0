//! Broadcasts: no two members deliver different messages under one number.

use weft::member::{BroadcastError, Delivered, Delivery, Rank};

use crate::border::{Out, bytes, call, ok_or_none, timeout};
use crate::code::weft_code;
use crate::handle::{Form, until, with};
use crate::lifecycle::weft_member;
use crate::mailbox::lend;

/// A broadcast that was delivered.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct weft_delivery {
    /// The member that broadcast it.
    pub origin: u16,
    /// Its number among those of its origin, from 1.
    pub seq: u64,
    /// Its bytes, lent.
    pub payload: *const u8,
    /// How many they are.
    pub len: usize,
}

fn lent(message: &Delivery<'_>) -> weft_delivery {
    let (payload, len) = (message.payload.as_ptr(), message.payload.len());
    weft_delivery { origin: message.origin.0, seq: message.seq, payload, len }
}

fn copied(message: Delivered) -> weft_delivery {
    let (payload, len) = lend(message.payload);
    weft_delivery { origin: message.origin.0, seq: message.seq, payload, len }
}

/// Broadcasts the `len` bytes at `payload` to all other members. Writes its number to `seq`, unless
/// that is null. With a timeout it waits for room in the window.
///
/// Errors: WEFT_FULL (a member has not delivered what was broadcast before), WEFT_TOO_LONG,
/// WEFT_LEFT.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_broadcast(
    member: *mut weft_member,
    payload: *const u8,
    len: usize,
    seq: *mut u64,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let payload = unsafe { bytes(payload, len, "payload") };
    // SAFETY: the caller's promise.
    let seq = (!seq.is_null()).then(|| unsafe { Out::new(seq, "seq") });
    call(|| {
        let (payload, seq, timeout) = (payload?, seq.transpose()?, timeout(timeout_us));
        let number = with(member, |form| match form {
            Form::Polled(member) => {
                let sent = until(member, timeout, |member| match member.broadcast(payload) {
                    Err(BroadcastError::WindowFull) => Ok(None),
                    done => Ok(Some(done?)),
                })?;
                sent.ok_or_else(|| BroadcastError::WindowFull.into())
            }
            Form::Spawned(handle) => Ok(handle.broadcast(payload, timeout)?),
        })?;
        if let Some(seq) = seq {
            seq.set(number);
        }
        Ok(weft_code::WEFT_OK)
    })
}

/// Delivers the next broadcast of another member, in the order of its origin; WEFT_NONE if none
/// comes. Its payload is lent. It comes once.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_deliver(
    member: *mut weft_member,
    delivery: *mut weft_delivery,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let delivery = unsafe { Out::new(delivery, "delivery") };
    call(|| {
        let (delivery, timeout) = (delivery?, timeout(timeout_us));
        let next = with(member, |form| match form {
            Form::Polled(member) => {
                until(member, timeout, |member| Ok(member.deliver().as_ref().map(lent)))
            }
            Form::Spawned(handle) => Ok(handle.deliver(timeout)?.map(copied)),
        })?;
        Ok(ok_or_none(next.map(|next| delivery.set(next)).is_some()))
    })
}

/// Returns broadcast `seq` of `origin`, which may be this member, if this or an earlier incarnation
/// has delivered it and it is among the last neb.slots - 16 of its origin; else WEFT_NONE. Its
/// payload is lent.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_delivered(
    member: *mut weft_member,
    origin: u16,
    seq: u64,
    delivery: *mut weft_delivery,
) -> weft_code {
    // SAFETY: the caller's promise.
    let delivery = unsafe { Out::new(delivery, "delivery") };
    call(|| {
        let (delivery, origin) = (delivery?, Rank(origin));
        let found = with(member, |form| match form {
            Form::Polled(member) => Ok(member.delivered(origin, seq).as_ref().map(lent)),
            Form::Spawned(handle) => Ok(handle.delivered(origin, seq)?.map(copied)),
        })?;
        Ok(ok_or_none(found.map(|found| delivery.set(found)).is_some()))
    })
}
