//! Messages from member to member.

use std::cell::RefCell;

use weft::member::{PutError, Rank, Receipt};

use crate::border::{Out, bytes, call, ok_or_none, timeout};
use crate::code::weft_code;
use crate::error::Refusal;
use crate::handle::{Form, until, with};
use crate::lifecycle::weft_member;

/// A message that was taken.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct weft_message {
    /// The sender.
    pub sender: u16,
    /// The sender's number for it: one higher for each message of an incarnation. One that is put
    /// again after a failure has the same.
    pub sequence: u32,
    /// What weft_release takes.
    pub receipt: u64,
    /// Its bytes, lent.
    pub payload: *const u8,
    /// How many they are.
    pub len: usize,
}

thread_local! {
    /// What a spawned member has lent to this thread.
    static LENT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Keeps `payload` until the next call of this thread, and returns where it lies.
pub(crate) fn lend(payload: Vec<u8>) -> (*const u8, usize) {
    LENT.with_borrow_mut(|lent| {
        *lent = payload;
        (lent.as_ptr(), lent.len())
    })
}

/// Puts the `len` bytes at `payload` into the mailbox of the member `to`, which may be this one. It
/// is copied, is on its way with the next poll, and arrives in order, also at the next incarnation
/// of `to`. With a timeout it waits for room, and for an incarnation that is admitted.
///
/// Errors: WEFT_FULL, WEFT_ABSENT: poll, and put again. WEFT_TOO_LONG, WEFT_RANK, WEFT_FINISHED.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_put(
    member: *mut weft_member,
    to: u16,
    payload: *const u8,
    len: usize,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let payload = unsafe { bytes(payload, len, "payload") };
    call(|| {
        let (payload, to, timeout) = (payload?, Rank(to), timeout(timeout_us));
        with(member, |form| match form {
            Form::Polled(member) if timeout.is_zero() => Ok(member.put(to, payload)?),
            Form::Polled(member) => {
                let mut refused = PutError::NotAMember;
                let put = until(member, timeout, |member| match member.put(to, payload) {
                    Err(error @ (PutError::Full { .. } | PutError::NotAMember)) => {
                        refused = error;
                        Ok(None)
                    }
                    done => Ok(Some(done?)),
                })?;
                put.ok_or_else(|| refused.into())
            }
            Form::Spawned(handle) => Ok(handle.put(to, payload, timeout)?),
        })?;
        Ok(weft_code::WEFT_OK)
    })
}

/// Waits until all that was put is in the memory of its receivers; WEFT_NONE if it is not by the
/// end of the timeout. Flush before a program ends.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_flush(member: *mut weft_member, timeout_us: u64) -> weft_code {
    call(|| {
        let timeout = timeout(timeout_us);
        let flushed = with(member, |form| match form {
            Form::Polled(member) => {
                let flushed = until(member, timeout, |member| {
                    let mut ranks = (0..member.size()).map(Rank);
                    Ok(ranks.all(|rank| member.unput(rank) == 0).then_some(()))
                })?;
                Ok(flushed.is_some())
            }
            Form::Spawned(handle) => Ok(handle.flush(timeout)?),
        })?;
        Ok(ok_or_none(flushed))
    })
}

/// Takes the next message of the own mailbox; WEFT_NONE if none comes. Its payload is lent. It
/// comes again, to the next incarnation of this member, unless it is released.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_take(
    member: *mut weft_member,
    message: *mut weft_message,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let message = unsafe { Out::new(message, "message") };
    call(|| {
        let (message, timeout) = (message?, timeout(timeout_us));
        let taken = with(member, |form| match form {
            Form::Polled(member) => until(member, timeout, |member| {
                Ok(member.take().map(|taken| weft_message {
                    sender: taken.sender.0,
                    sequence: taken.sequence,
                    receipt: taken.receipt.to_bits(),
                    payload: taken.payload.as_ptr(),
                    len: taken.payload.len(),
                }))
            }),
            Form::Spawned(handle) => Ok(handle.take(timeout)?.map(|taken| {
                let (payload, len) = lend(taken.payload);
                let (sender, receipt) = (taken.sender.0, taken.receipt.to_bits());
                weft_message { sender, sequence: taken.sequence, receipt, payload, len }
            })),
        })?;
        Ok(ok_or_none(taken.map(|taken| message.set(taken)).is_some()))
    })
}

/// The message of `receipt` is processed: its memory is free for the next one. Receipts may be
/// released in any order, each once.
///
/// Errors: WEFT_RECEIPT.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_release(member: *mut weft_member, receipt: u64) -> weft_code {
    call(|| {
        let receipt = Receipt::from_bits(receipt);
        with(member, |form| match form {
            Form::Polled(member) => Ok::<_, Refusal>(member.release(receipt)?),
            Form::Spawned(handle) => Ok(handle.release(receipt)?),
        })?;
        Ok(weft_code::WEFT_OK)
    })
}
