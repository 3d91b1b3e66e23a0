//! What a member does for the tasks of its node: it votes, and reports phases.

use std::ffi::c_char;

use weft::member::Vote;

use crate::border::{bytes, call, text};
use crate::code::weft_code;
use crate::error::Refusal;
use crate::handle::{Form, with};
use crate::lifecycle::weft_member;

/// Votes for a number in `round` for `task`, a task of this node that is a version of an N-version
/// task. The vote stands once this returns, whatever fails later; the same vote again changes
/// nothing. Rounds are numbered from 1, and a version waits for the outcome before it votes in a
/// later one.
///
/// Errors: WEFT_UNKNOWN: this node has no such task, or it is no version. WEFT_NOT_CONFIGURED: the
/// cluster has no recovery script. WEFT_ORDER: another vote stands, the round is over, or an
/// earlier one is open. WEFT_ARGUMENT: round 0.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_vote_number(
    member: *mut weft_member,
    task: *const c_char,
    round: u32,
    number: i64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let task = unsafe { text(task, "task") };
    call(|| vote(member, task?, round, Vote::Number(number)))
}

/// Votes for the `len` bytes at `value`, by their SHA-256: as weft_vote_number does for a number.
///
/// Errors: those of weft_vote_number. WEFT_ARGUMENT: also where the script compares numbers.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_vote_bytes(
    member: *mut weft_member,
    task: *const c_char,
    round: u32,
    value: *const u8,
    len: usize,
) -> weft_code {
    // SAFETY: the caller's promise.
    let task = unsafe { text(task, "task") };
    // SAFETY: the caller's promise.
    let value = unsafe { bytes(value, len, "value") };
    call(|| vote(member, task?, round, Vote::of_bytes(value?)))
}

fn vote(
    member: *const weft_member,
    task: &str,
    round: u32,
    vote: Vote,
) -> Result<weft_code, Refusal> {
    with(member, |form| match form {
        Form::Polled(member) => Ok::<_, Refusal>(member.vote(task, round, vote)?),
        Form::Spawned(handle) => Ok(handle.vote(task, round, vote)?),
    })?;
    Ok(weft_code::WEFT_OK)
}

/// Reports that `task`, a task of this node, is in a phase: a number that the task defines, and the
/// guard PHASE of a recovery script reads. It does not last longer than the process of the task.
///
/// Errors: WEFT_UNKNOWN: this node has no such task.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_report_phase(
    member: *mut weft_member,
    task: *const c_char,
    phase: u8,
) -> weft_code {
    // SAFETY: the caller's promise.
    let task = unsafe { text(task, "task") };
    call(|| {
        let task = task?;
        with(member, |form| match form {
            Form::Polled(member) => Ok::<_, Refusal>(member.report_phase(task, phase)?),
            Form::Spawned(handle) => Ok(handle.report_phase(task, phase)?),
        })?;
        Ok(weft_code::WEFT_OK)
    })
}
