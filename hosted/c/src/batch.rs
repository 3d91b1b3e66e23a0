//! Several messages in one call: of a spawned member it takes one hand-over to the member's thread.

use std::cell::RefCell;

use weft::member::{PutError, Rank, Receipt, TakenBatch};

use crate::border::{Out, Outs, bytes, call, ok_or_none, timeout, values};
use crate::code::weft_code;
use crate::error::Refusal;
use crate::handle::{Form, until, with};
use crate::lifecycle::weft_member;
use crate::mailbox::weft_message;

/// The bytes of one message of a batch.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct weft_payload {
    /// Where they are.
    pub bytes: *const u8,
    /// How many they are.
    pub len: usize,
}

thread_local! {
    /// What weft_take_batch has lent to this thread.
    static TAKEN: RefCell<TakenBatch> = RefCell::new(TakenBatch::default());
}

/// Puts the first of the `count` messages at `payloads` into the mailbox of the member `to`, as
/// many as there is room for, and writes how many to `accepted`: put the rest again. With a timeout
/// it waits until one was accepted.
///
/// Errors: those of weft_put, if none was accepted. WEFT_NULL: also of the bytes of any message;
/// nothing was put.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_put_batch(
    member: *mut weft_member,
    to: u16,
    payloads: *const weft_payload,
    count: usize,
    accepted: *mut usize,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let payloads = unsafe { values(payloads, count, "payloads") };
    // SAFETY: the caller's promise.
    let accepted = unsafe { Out::new(accepted, "accepted") };
    call(|| {
        let (payloads, accepted) = (payloads?, accepted?);
        let (to, timeout) = (Rank(to), timeout(timeout_us));
        // SAFETY: the caller's promise, for each.
        let read = |it: &weft_payload| unsafe { bytes(it.bytes, it.len, "payloads") };
        payloads.iter().try_for_each(|it| read(it).map(drop))?;
        // None is refused any more.
        let batch = || payloads.iter().filter_map(|it| read(it).ok());
        let put = with(member, |form| match form {
            Form::Polled(member) => {
                let mut refused = PutError::NotAMember;
                let put = until(member, timeout, |member| match member.put_batch(to, batch()) {
                    Err(error @ (PutError::Full { .. } | PutError::NotAMember)) => {
                        refused = error;
                        Ok(None)
                    }
                    done => Ok(Some(done?)),
                })?;
                put.ok_or_else(|| refused.into())
            }
            Form::Spawned(handle) => Ok(handle.put_batch(to, batch(), timeout)?),
        })?;
        accepted.set(put);
        Ok(weft_code::WEFT_OK)
    })
}

/// Takes the next messages of the own mailbox, at most `capacity`, as soon as there is one; writes
/// them to `messages`, and how many to `count`. WEFT_NONE if none comes. Their payloads are copied,
/// and lent until the next weft_take_batch of this thread. They come again, to the next incarnation
/// of this member, unless they are released.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_take_batch(
    member: *mut weft_member,
    messages: *mut weft_message,
    capacity: usize,
    count: *mut usize,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let messages = unsafe { Outs::new(messages, capacity, "messages") };
    // SAFETY: the caller's promise.
    let count = unsafe { Out::new(count, "count") };
    call(|| {
        let (messages, count, timeout) = (messages?, count?, timeout(timeout_us));
        if messages.capacity == 0 {
            return Ok(weft_code::WEFT_NONE);
        }
        TAKEN.with_borrow_mut(|batch| {
            let taken = with(member, |form| match form {
                Form::Polled(member) => until(member, timeout, |member| {
                    let taken = member.take_batch(batch, messages.capacity);
                    Ok((taken > 0).then_some(taken))
                }),
                Form::Spawned(handle) => {
                    let taken = handle.take_batch(batch, messages.capacity, timeout)?;
                    Ok((taken > 0).then_some(taken))
                }
            })?;
            if taken.is_some() {
                count.set(messages.fill(batch.iter().map(
                    |(sender, sequence, receipt, payload)| weft_message {
                        sender: sender.0,
                        sequence,
                        receipt: receipt.to_bits(),
                        payload: payload.as_ptr(),
                        len: payload.len(),
                    },
                )));
            }
            Ok(ok_or_none(taken.is_some()))
        })
    })
}

/// Releases the `count` messages at `messages`, of which only the receipts are read, as
/// weft_release does one.
///
/// Errors: WEFT_RECEIPT: those before the one that is not open are released.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_release_batch(
    member: *mut weft_member,
    messages: *const weft_message,
    count: usize,
) -> weft_code {
    // SAFETY: the caller's promise.
    let messages = unsafe { values(messages, count, "messages") };
    call(|| {
        let messages = messages?;
        let receipts = messages.iter().map(|it| Receipt::from_bits(it.receipt));
        with(member, |form| match form {
            Form::Polled(member) => Ok::<_, Refusal>(member.release_all(receipts)?),
            Form::Spawned(handle) => Ok(handle.release_all(receipts)?),
        })?;
        Ok(weft_code::WEFT_OK)
    })
}
