//! What a member does for the tasks of its node: it votes, reports phases, and receives notices.

use std::ffi::c_char;

use weft::member::{TaskNotice, TaskNotices, Vote, VoteResult};

use crate::border::{Out, Outs, bytes, call, text, timeout};
use crate::code::weft_code;
use crate::error::Refusal;
use crate::handle::{Form, until, with};
use crate::lifecycle::weft_member;

/// As many notices as one call returns: those that a node keeps for a task, and one that counts
/// those it dropped.
pub const WEFT_NOTICES_MAX: usize = 17;

/// What a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum weft_notice_kind {
    /// SEND of the recovery script: number.
    WEFT_NOTICE_NUMBER = 1,
    /// WARN of the recovery script: number (the error; 0 for a plain WARN), about.
    WEFT_NOTICE_WARNING = 2,
    /// A round of a vote is over: round, nversion, voters; and if the versions agree, is_agreed,
    /// agreed, and number, or is_digest and digest.
    WEFT_NOTICE_OUTCOME = 3,
    /// The program did not ask, and so many older notices are lost: number.
    WEFT_NOTICE_MISSED = 4,
}

/// What a recovery script, or the outcome of a vote, has for a task. A field that its kind does not
/// name is 0.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct weft_notice {
    /// What it is.
    pub kind: weft_notice_kind,
    /// The round of the vote.
    pub round: u32,
    /// What is sent, what the error is, what was voted for, or how many are lost.
    pub number: i64,
    /// The first eight bytes of the SHA-256 of what was voted for, as a number.
    pub digest: u64,
    /// The task, group or node that a warning is about, as the script names it: "T3".
    pub about: [c_char; 8],
    /// The number of the N-version task.
    pub nversion: u8,
    /// The versions that have voted, the lowest bit for version 1.
    pub voters: u8,
    /// Those that agree.
    pub agreed: u8,
    /// Whether the versions agree.
    pub is_agreed: bool,
    /// Whether they agree on bytes.
    pub is_digest: bool,
}

impl weft_notice {
    const fn new(kind: weft_notice_kind, number: i64) -> Self {
        Self {
            kind,
            round: 0,
            number,
            digest: 0,
            about: [0; 8],
            nversion: 0,
            voters: 0,
            agreed: 0,
            is_agreed: false,
            is_digest: false,
        }
    }

    fn of(notice: &TaskNotice) -> Self {
        match notice {
            TaskNotice::Number { value, .. } => {
                Self::new(weft_notice_kind::WEFT_NOTICE_NUMBER, (*value).into())
            }
            TaskNotice::Warning { error, about, .. } => {
                let kind = weft_notice_kind::WEFT_NOTICE_WARNING;
                let mut warning = Self::new(kind, (*error).into());
                // The last one stays 0: the end of the text.
                let [room @ .., _] = &mut warning.about;
                for (place, byte) in room.iter_mut().zip(about.bytes()) {
                    *place = c_char::from_ne_bytes([byte]);
                }
                warning
            }
            TaskNotice::Outcome(result) => Self::of_outcome(result),
        }
    }

    fn of_outcome(result: &VoteResult) -> Self {
        let VoteResult { nversion, round, value, agreed, voters } = result;
        let bits = |versions: &[u8]| versions.iter().fold(0, |bits, it| bits | 1 << (it - 1));
        let (number, digest) = match value {
            Some(Vote::Number(number)) => (*number, 0),
            Some(Vote::Digest(digest)) => (0, *digest),
            None => (0, 0),
        };
        Self {
            round: *round,
            digest,
            nversion: *nversion,
            voters: bits(voters),
            agreed: bits(agreed),
            is_agreed: value.is_some(),
            is_digest: matches!(value, Some(Vote::Digest(_))),
            ..Self::new(weft_notice_kind::WEFT_NOTICE_OUTCOME, number)
        }
    }
}

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

/// Takes what SEND and WARN of the recovery script have for `task`, a task of this node, and
/// outcomes of votes, oldest first; writes them to `notices`, and how many to `count`. WEFT_NONE if
/// none comes. Ask again after each: a call has seen what the one before has returned, and what an
/// incarnation has not seen, the next one gets again.
///
/// Errors: WEFT_UNKNOWN: this node has no such task. WEFT_BUFFER: `capacity` is less than
/// WEFT_NOTICES_MAX.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_notices(
    member: *mut weft_member,
    task: *const c_char,
    notices: *mut weft_notice,
    capacity: usize,
    count: *mut usize,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let task = unsafe { text(task, "task") };
    // SAFETY: the caller's promise.
    let notices = unsafe { Outs::new(notices, capacity, "notices") };
    // SAFETY: the caller's promise.
    let count = unsafe { Out::new(count, "count") };
    call(|| {
        let (task, notices, count, timeout) = (task?, notices?, count?, timeout(timeout_us));
        if capacity < WEFT_NOTICES_MAX {
            count.set(WEFT_NOTICES_MAX);
            return Err(Refusal::Buffer { needed: WEFT_NOTICES_MAX, capacity });
        }
        let come = with(member, |form| match form {
            Form::Polled(member) => until(member, timeout, |member| {
                let come = member.notices(task)?;
                Ok((!come.notices.is_empty()).then_some(come))
            }),
            Form::Spawned(handle) => Ok(Some(handle.notices(task, timeout)?)),
        })?;
        let TaskNotices { notices: come, dropped, .. } = come.unwrap_or_default();
        if come.is_empty() {
            return Ok(weft_code::WEFT_NONE);
        }
        let lost = i64::try_from(dropped).unwrap_or(i64::MAX);
        let lost = Some(weft_notice::new(weft_notice_kind::WEFT_NOTICE_MISSED, lost));
        let lost = lost.filter(|lost| lost.number > 0);
        count.set(notices.fill(lost.into_iter().chain(come.iter().map(weft_notice::of))));
        Ok(weft_code::WEFT_OK)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_has_the_fields_of_its_kind_and_no_others() {
        let warning = |about: &str| TaskNotice::Warning {
            epoch: 1,
            evaluation: 2,
            error: -3,
            about: about.into(),
        };
        let text = |notice: &weft_notice| notice.about.map(|it| it.to_ne_bytes()[0]);
        let kept = weft_notice::of(&warning("T255"));
        assert_eq!((kept.kind, kept.number), (weft_notice_kind::WEFT_NOTICE_WARNING, -3));
        assert_eq!(&text(&kept), b"T255\0\0\0\0");
        assert_eq!(&text(&weft_notice::of(&warning("longer than it"))), b"longer \0");

        let mut result = VoteResult {
            nversion: 2,
            round: 7,
            value: Some(Vote::Digest(u64::MAX)),
            agreed: vec![1, 8],
            voters: vec![1, 3, 8],
        };
        let agreed = weft_notice::of(&TaskNotice::Outcome(result.clone()));
        assert_eq!((agreed.agreed, agreed.voters, agreed.round), (0x81, 0x85, 7));
        assert_eq!((agreed.number, agreed.digest), (0, u64::MAX));
        assert!(agreed.is_agreed && agreed.is_digest);
        result.value = None;
        let none = weft_notice::of(&TaskNotice::Outcome(result));
        assert!(!none.is_agreed && !none.is_digest);
    }
}
