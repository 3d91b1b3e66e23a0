//! The record of a member, which outlives its program.

use crate::border::{Buffer, bytes, call};
use crate::code::weft_code;
use crate::error::Refusal;
use crate::handle::{Form, with};
use crate::lifecycle::weft_member;

/// Replaces the record of this member, which outlives the program and not its node. An incarnation
/// that is killed in the middle leaves the record before.
///
/// Errors: WEFT_NOT_CONFIGURED (set component.state, or `weft run --state 1MiB`), WEFT_TOO_LONG.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_save(
    member: *mut weft_member,
    record: *const u8,
    len: usize,
) -> weft_code {
    // SAFETY: the caller's promise.
    let record = unsafe { bytes(record, len, "record") };
    call(|| {
        let record = record?;
        with(member, |form| match form {
            Form::Polled(member) => Ok::<_, Refusal>(member.save(record)?),
            Form::Spawned(handle) => Ok(handle.save(record)?),
        })?;
        Ok(weft_code::WEFT_OK)
    })
}

/// Copies the record that this or an earlier incarnation has saved to `buffer`, and writes its
/// length to `len`; WEFT_NONE if there is none.
///
/// Errors: WEFT_BUFFER: `len` is what it needs.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_saved(
    member: *mut weft_member,
    buffer: *mut u8,
    capacity: usize,
    len: *mut usize,
) -> weft_code {
    // SAFETY: the caller's promise.
    let buffer = unsafe { Buffer::new(buffer, capacity, len) };
    call(|| {
        let buffer = buffer?;
        let record = with(member, |form| match form {
            Form::Polled(member) => Ok(member.saved()),
            Form::Spawned(handle) => Ok(handle.saved()?),
        })?;
        let Some(record) = record else { return Ok(weft_code::WEFT_NONE) };
        buffer.fill(&record)?;
        Ok(weft_code::WEFT_OK)
    })
}
