//! Groups: messages of any length to all members of a group, barriers and all-gathers.

use std::cell::RefCell;
use std::ffi::c_char;
use std::time::Duration;

use weft::cluster::Topology;
use weft::member::{Group, GroupChunk, GroupError, GroupInPlace, GroupStanding, GroupValues, Rank};

use crate::border::{Buffer, Out, bytes, call, ok_or_none, text, timeout};
use crate::code::weft_code;
use crate::error::Refusal;
use crate::handle::{Form, until, with};
use crate::lifecycle::weft_member;

/// What a member receives of one root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum weft_part_kind {
    /// The next part of a message.
    WEFT_PART = 1,
    /// The message will not become whole, at any member.
    WEFT_PART_ABANDONED = 2,
    /// The root was removed; all survivors have received its messages up to `seq`, and no other.
    WEFT_PART_ROOT_LOST = 3,
    /// A delivery of a later version of the library.
    WEFT_PART_OTHER = 99,
}

/// A part of a message of a group.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct weft_part {
    /// What it is.
    pub kind: weft_part_kind,
    /// The sender.
    pub root: u16,
    /// The message is whole with it.
    pub is_last: bool,
    /// The number of the message, from 1.
    pub seq: u64,
    /// The sender's tag.
    pub tag: u64,
    /// Bytes of the whole message.
    pub message_len: u64,
    /// Where in the message the part begins.
    pub offset: u64,
}

/// How many messages of a root have come how far, as this member knows it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct weft_standing {
    /// Held here.
    pub held: u64,
    /// Received by the program here.
    pub received: u64,
    /// Received by all members; known to the root alone.
    pub stable: u64,
}

/// What a member has given to an all-gather.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct weft_value {
    /// Its bytes, lent; null of a member that was removed before it gave any.
    pub bytes: *const u8,
    /// How many they are.
    pub len: usize,
}

/// How the blocks of a message travel from its root to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum weft_topology {
    /// As suits the fabric.
    WEFT_TOPOLOGY_AUTO = 0,
    /// The root serves each member.
    WEFT_TOPOLOGY_SERIAL = 1,
    /// Each member serves the next.
    WEFT_TOPOLOGY_PIPE = 2,
    /// Each member serves the first of each half of its range.
    WEFT_TOPOLOGY_BINARY = 3,
    /// The same, with parts of unequal size.
    WEFT_TOPOLOGY_FIBONACCI = 4,
    /// Blocks by the binomial pipeline.
    WEFT_TOPOLOGY_PIPELINE = 5,
}

/// By the number of weft_topology.
const TOPOLOGIES: [Topology; weft_topology::WEFT_TOPOLOGY_PIPELINE as usize + 1] = [
    Topology::Auto,
    Topology::Serial,
    Topology::Pipe,
    Topology::Binary,
    Topology::Fibonacci,
    Topology::Pipeline,
];

/// Whether a call waits for it where it has a timeout.
const fn waits(error: &GroupError) -> bool {
    matches!(error, GroupError::Opening | GroupError::WindowFull { .. })
}

/// Acts on a group until that is not refused for now, or `timeout` has passed.
fn attempt<T>(
    member: *const weft_member,
    name: &str,
    timeout: Duration,
    mut act: impl FnMut(&mut Group<'_>) -> Result<T, GroupError>,
) -> Result<T, Refusal> {
    let mut refused = GroupError::Opening;
    let mut once = |group: &mut Group<'_>| match act(group) {
        Err(error) if waits(&error) => {
            refused = error;
            None
        }
        done => Some(done),
    };
    let done = with(member, |form| match form {
        Form::Polled(member) => until(member, timeout, |member| Ok(once(&mut member.group(name)?))),
        Form::Spawned(handle) => Ok(handle.with_group(name, timeout, &mut once)?),
    })?;
    Ok(done.unwrap_or(Err(refused))?)
}

/// Whether all members have joined the group: WEFT_OK, or WEFT_NONE if not by the end of the
/// timeout. Groups are named in the cluster file, "all" where group.count is 1.
///
/// Errors: WEFT_UNKNOWN, as of all functions of groups.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_group_open(
    member: *mut weft_member,
    group: *const c_char,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let group = unsafe { text(group, "group") };
    call(|| {
        let opened = attempt(member, group?, timeout(timeout_us), |group| {
            if group.is_open() { Ok(()) } else { Err(GroupError::Opening) }
        });
        match opened {
            Err(Refusal::Group(GroupError::Opening)) => Ok(weft_code::WEFT_NONE),
            opened => opened.map(|()| weft_code::WEFT_OK),
        }
    })
}

/// The messages that this incarnation sends to the group from now on travel by `topology`, a
/// weft_topology, instead of as the cluster file says.
///
/// Errors: WEFT_ARGUMENT: there is no such topology.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_group_set_topology(
    member: *mut weft_member,
    group: *const c_char,
    topology: u8,
) -> weft_code {
    // SAFETY: the caller's promise.
    let group = unsafe { text(group, "group") };
    call(|| {
        let (group, chosen) = (group?, TOPOLOGIES.get(usize::from(topology)).copied());
        let unknown = Refusal::Argument("there is no such topology", "pass a weft_topology");
        let chosen = chosen.ok_or(unknown)?;
        attempt(member, group, Duration::ZERO, |group| group.set_topology(chosen))?;
        Ok(weft_code::WEFT_OK)
    })
}

/// Sends the `len` bytes at `payload` to all other members of the group, whole or not at all, with
/// a tag of the caller. Writes its number to `seq`.
///
/// Errors: WEFT_OPENING, WEFT_FULL: poll, and send again; with a timeout the call does.
/// WEFT_TOO_LONG: longer than the window; begin it. WEFT_ORDER: a long message is not written to
/// its end.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_group_broadcast(
    member: *mut weft_member,
    group: *const c_char,
    tag: u64,
    payload: *const u8,
    len: usize,
    seq: *mut u64,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let group = unsafe { text(group, "group") };
    // SAFETY: the caller's promise.
    let payload = unsafe { bytes(payload, len, "payload") };
    // SAFETY: the caller's promise.
    let seq = unsafe { Out::new(seq, "seq") };
    call(|| {
        let (group, payload, seq) = (group?, payload?, seq?);
        let sent = attempt(member, group, timeout(timeout_us), |it| it.broadcast(tag, payload));
        seq.set(sent?);
        Ok(weft_code::WEFT_OK)
    })
}

/// Begins a message of `len` bytes, which weft_group_write writes. Writes its number to `seq`.
///
/// Errors: as of weft_group_broadcast.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_group_begin(
    member: *mut weft_member,
    group: *const c_char,
    tag: u64,
    len: u64,
    seq: *mut u64,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let group = unsafe { text(group, "group") };
    // SAFETY: the caller's promise.
    let seq = unsafe { Out::new(seq, "seq") };
    call(|| {
        let (group, seq) = (group?, seq?);
        seq.set(attempt(member, group, timeout(timeout_us), |it| it.begin(tag, len))?);
        Ok(weft_code::WEFT_OK)
    })
}

/// Writes the next bytes of the message that was begun, in whole blocks: as many as there is room
/// for and `payload` has, the last block at its end. Writes how many to `written`; pass the rest
/// again.
///
/// Errors: WEFT_FULL: there is room for no block. WEFT_ORDER: no message was begun.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_group_write(
    member: *mut weft_member,
    group: *const c_char,
    payload: *const u8,
    len: usize,
    written: *mut usize,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let group = unsafe { text(group, "group") };
    // SAFETY: the caller's promise.
    let payload = unsafe { bytes(payload, len, "payload") };
    // SAFETY: the caller's promise.
    let written = unsafe { Out::new(written, "written") };
    call(|| {
        let (group, payload, written) = (group?, payload?, written?);
        let taken = attempt(member, group, timeout(timeout_us), |it| match it.write(payload)? {
            // Less than a block is never taken, whatever room there is.
            0 if payload.len() >= it.block_len() => Err(GroupError::WindowFull { hindmost: None }),
            taken => Ok(taken),
        })?;
        written.set(taken);
        Ok(weft_code::WEFT_OK)
    })
}

/// Copies the next part that any other member has sent to `buffer`, its length to `len` and what it
/// is to `part`; WEFT_NONE if none comes. Its memory is free for its root then. An incarnation
/// receives again what the one before it did not.
///
/// Errors: WEFT_BUFFER: the buffer must have room for a block, and `len` is that length
/// (group.block_len).
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_group_receive(
    member: *mut weft_member,
    group: *const c_char,
    buffer: *mut u8,
    capacity: usize,
    len: *mut usize,
    part: *mut weft_part,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let group = unsafe { text(group, "group") };
    // SAFETY: the caller's promise.
    let buffer = unsafe { Buffer::new(buffer, capacity, len) };
    // SAFETY: the caller's promise.
    let part = unsafe { Out::new(part, "part") };
    call(|| {
        let (group, buffer, part) = (group?, buffer?, part?);
        let mut refused = None;
        let received = attempt(member, group, timeout(timeout_us), |group| {
            // Before it is taken: a part that finds no room would be lost.
            if let Err(refusal) = buffer.admit(group.block_len()) {
                refused = Some(refusal);
                return Ok(None);
            }
            match group.receive_in_place() {
                Some(delivery) => Ok(Some(received(&delivery, buffer))),
                None => Err(GroupError::Opening),
            }
        });
        match (received, refused) {
            (_, Some(refusal)) => Err(refusal),
            (Err(Refusal::Group(GroupError::Opening)), None) => Ok(weft_code::WEFT_NONE),
            (received, None) => {
                let received = received?.transpose()?;
                Ok(ok_or_none(received.map(|it| part.set(it)).is_some()))
            }
        }
    })
}

/// Copies the bytes of a delivery to `buffer`, and says what it is.
fn received(delivery: &GroupInPlace<'_>, buffer: Buffer) -> Result<weft_part, Refusal> {
    let (kind, root, seq) = match delivery {
        GroupInPlace::Part(chunk) => return part(chunk, buffer),
        GroupInPlace::Abandoned { root, seq } => {
            (weft_part_kind::WEFT_PART_ABANDONED, root.0, *seq)
        }
        GroupInPlace::RootLost { root, last } => {
            (weft_part_kind::WEFT_PART_ROOT_LOST, root.0, *last)
        }
        _ => (weft_part_kind::WEFT_PART_OTHER, 0, 0),
    };
    buffer.fill(&[])?;
    Ok(weft_part { kind, root, is_last: false, seq, tag: 0, message_len: 0, offset: 0 })
}

fn part(chunk: &GroupChunk<'_>, buffer: Buffer) -> Result<weft_part, Refusal> {
    buffer.fill_with(chunk.len(), |into| chunk.copy(0, into))?;
    Ok(weft_part {
        kind: weft_part_kind::WEFT_PART,
        root: chunk.root().0,
        is_last: chunk.is_last(),
        seq: chunk.seq(),
        tag: chunk.tag(),
        message_len: chunk.message_len(),
        offset: chunk.offset(),
    })
}

/// Writes to `standing` how far the messages of `root` have come; WEFT_NONE if that is not known.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_group_standing(
    member: *mut weft_member,
    group: *const c_char,
    root: u16,
    standing: *mut weft_standing,
) -> weft_code {
    // SAFETY: the caller's promise.
    let group = unsafe { text(group, "group") };
    // SAFETY: the caller's promise.
    let standing = unsafe { Out::new(standing, "standing") };
    call(|| {
        let (group, standing) = (group?, standing?);
        let known = attempt(member, group, Duration::ZERO, |group| Ok(group.standing(Rank(root))))?;
        let entries = |it: GroupStanding| weft_standing {
            held: it.held.entries,
            received: it.released.entries,
            stable: it.stable.entries,
        };
        Ok(ok_or_none(known.map(|known| standing.set(entries(known))).is_some()))
    })
}

/// Waits until all members of the group have entered the barrier, and polls meanwhile. Writes its
/// number to `number`, from 1. Members that are removed are not waited for. An entry stands: a call
/// after one that timed out waits for the same barrier.
///
/// Errors: WEFT_TIMED_OUT.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_barrier(
    member: *mut weft_member,
    group: *const c_char,
    number: *mut u64,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let group = unsafe { text(group, "group") };
    // SAFETY: the caller's promise.
    let number = unsafe { Out::new(number, "number") };
    call(|| {
        let (group, number, timeout) = (group?, number?, timeout(timeout_us));
        number.set(with(member, |form| match form {
            Form::Polled(member) => Ok::<_, Refusal>(member.barrier(group, timeout)?),
            Form::Spawned(handle) => Ok(handle.barrier(group, timeout)?),
        })?);
        Ok(weft_code::WEFT_OK)
    })
}

/// What an all-gather has lent to a thread.
struct Gathered {
    values: GroupValues,
    views: Vec<weft_value>,
}

thread_local! {
    static GATHERED: RefCell<Gathered> =
        const { RefCell::new(Gathered { values: Vec::new(), views: Vec::new() }) };
}

/// Gives the `len` bytes at `mine` to all members of the group, and writes what each has given to
/// `values`: `count` of them, in the order of the group, lent. All survivors return the same.
/// Receive what was sent before it. A value stands, as the entry of a barrier does.
///
/// Errors: WEFT_TOO_LONG, WEFT_TIMED_OUT.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_all_gather(
    member: *mut weft_member,
    group: *const c_char,
    mine: *const u8,
    len: usize,
    values: *mut *const weft_value,
    count: *mut usize,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let group = unsafe { text(group, "group") };
    // SAFETY: the caller's promise.
    let mine = unsafe { bytes(mine, len, "mine") };
    // SAFETY: the caller's promise.
    let values = unsafe { Out::new(values, "values") };
    // SAFETY: the caller's promise.
    let count = unsafe { Out::new(count, "count") };
    call(|| {
        let (group, mine, timeout) = (group?, mine?, timeout(timeout_us));
        let (values, count) = (values?, count?);
        let gathered = with(member, |form| match form {
            Form::Polled(member) => Ok::<_, Refusal>(member.all_gather(group, mine, timeout)?),
            Form::Spawned(handle) => Ok(handle.all_gather(group, mine, timeout)?),
        })?;
        GATHERED.with_borrow_mut(|lent| {
            lent.values = gathered;
            lent.views.clear();
            lent.views.extend(lent.values.iter().map(|value| match value {
                Some(bytes) => weft_value { bytes: bytes.as_ptr(), len: bytes.len() },
                None => weft_value { bytes: std::ptr::null(), len: 0 },
            }));
            values.set(lent.views.as_ptr());
            count.set(lent.views.len());
        });
        Ok(weft_code::WEFT_OK)
    })
}
