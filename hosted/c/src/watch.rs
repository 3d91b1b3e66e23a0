//! Watching a cluster without being a member.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::time::Duration;

use weft::client::{Kind, WatchEvent, Watcher};

use crate::border::{Out, call, text, timeout};
use crate::code::weft_code;
use crate::error::Refusal;
use crate::handle::Table;
use crate::mask::name;

/// Watches a running cluster.
pub struct weft_watcher(());

/// What happened in a cluster that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum weft_watched_kind {
    /// A view, after the joins and removals that led to it.
    WEFT_WATCHED_VIEW = 1,
    /// An incarnation is a member.
    WEFT_WATCHED_JOINED = 2,
    /// A manager has decided that an incarnation has failed.
    WEFT_WATCHED_FAILED = 3,
    /// An incarnation is no member any more.
    WEFT_WATCHED_REMOVED = 4,
    /// A node was isolated until it is released.
    WEFT_WATCHED_ISOLATED = 5,
    /// An operator has released an isolated node.
    WEFT_WATCHED_RELEASED = 6,
    /// A node is not heard.
    WEFT_WATCHED_SUSPECTED = 7,
    /// A suspect was heard again.
    WEFT_WATCHED_TRUSTED = 8,
    /// A task of a node has started, ended, or hangs.
    WEFT_WATCHED_TASK = 9,
    /// The watcher read too slowly: suspicions and verdicts are missing.
    WEFT_WATCHED_MISSED = 10,
    /// An event of a later version of the library.
    WEFT_WATCHED_OTHER = 99,
}

/// An event of a cluster that is watched. Texts are lent; one that the event does not have is
/// empty.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct weft_watched {
    /// What happened.
    pub kind: weft_watched_kind,
    /// The member; -1 for a view.
    pub rank: i32,
    /// The number of the view that shows it, or of the last one before it.
    pub view: u64,
    /// The members of a view, a bit for each rank.
    pub members: u64,
    /// When, by the clock of the host, in nanoseconds.
    pub at_ns: u64,
    /// How many entries are missing.
    pub missed: u64,
    /// Whether the incarnation is fenced at the node that is watched.
    pub is_fenced: bool,
    /// The term, as its epoch and its manager.
    pub term: *const c_char,
    /// The incarnation, as boot and generation.
    pub incarnation: *const c_char,
    /// The verdict that led to a removal, or what has become of a task.
    pub verdict: *const c_char,
    /// What the verdict rests on, a line for each.
    pub evidence: *const c_char,
    /// The task that it is about.
    pub task: *const c_char,
}

/// A watcher, and the texts that it has lent.
struct Watch {
    watcher: Watcher,
    lent: Vec<CString>,
}

thread_local! {
    static WATCHES: RefCell<Table<Watch>> = const { RefCell::new(Table::new(b'w', "watcher")) };
}

/// Watches the running cluster of this name on this host, waiting up to the timeout for one that is
/// being started. The caller need not be a member. When the node dies that it asks, it goes on at
/// the next.
///
/// Errors: WEFT_CLUSTER, WEFT_ARGUMENT (no name of a cluster).
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_watch(
    watcher: *mut *mut weft_watcher,
    cluster: *const c_char,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let handle = unsafe { Out::new(watcher, "watcher") };
    // SAFETY: the caller's promise.
    let cluster = unsafe { text(cluster, "cluster") };
    call(|| {
        let (handle, cluster) = (handle?, name(cluster?)?);
        let watcher = Watcher::start(&cluster, timeout(timeout_us))?;
        let watch = Watch { watcher, lent: Vec::new() };
        handle.set(WATCHES.with_borrow_mut(|watches| watches.open(watch))?);
        Ok(weft_code::WEFT_OK)
    })
}

/// Writes the next event to `event`; WEFT_NONE if none comes.
///
/// Errors: WEFT_CLUSTER: no node answers any more.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_watch_next(
    watcher: *mut weft_watcher,
    event: *mut weft_watched,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let event = unsafe { Out::new(event, "event") };
    call(|| {
        let event = event?;
        let mut watch = WATCHES.with_borrow_mut(|watches| watches.lend(watcher))?;
        let next = next(&mut watch, timeout(timeout_us));
        WATCHES.with_borrow_mut(|watches| watches.give_back(watcher, watch));
        let Some(next) = next? else { return Ok(weft_code::WEFT_NONE) };
        event.set(next);
        Ok(weft_code::WEFT_OK)
    })
}

fn next(watch: &mut Watch, timeout: Duration) -> Result<Option<weft_watched>, Refusal> {
    let next = watch.watcher.next(timeout)?;
    Ok(next.map(|event| watched(event, &mut watch.lent)))
}

fn watched(event: WatchEvent, lent: &mut Vec<CString>) -> weft_watched {
    let bits = event.members.iter().map(|member| 1_u64.wrapping_shl(member.rank.into()));
    let (kind, members) = (kind(event.event), bits.fold(0, |mask, bit| mask | bit));
    let rank = event.rank.map_or(-1, i32::from);
    lent.clear();
    let mut text = |text: Option<String>| {
        // No text of an event has a 0 byte; one that had would be left out.
        lent.push(CString::new(text.unwrap_or_default()).unwrap_or_default());
        lent[lent.len() - 1].as_ptr()
    };
    weft_watched {
        kind,
        rank,
        view: event.view,
        members,
        at_ns: event.at,
        missed: event.missed,
        is_fenced: event.fenced,
        term: text(Some(event.term)),
        incarnation: text(event.incarnation),
        verdict: text(event.verdict),
        evidence: text(Some(event.evidence.join("\n"))),
        task: text(event.task),
    }
}

const fn kind(kind: Kind) -> weft_watched_kind {
    match kind {
        Kind::View => weft_watched_kind::WEFT_WATCHED_VIEW,
        Kind::Joined => weft_watched_kind::WEFT_WATCHED_JOINED,
        Kind::Failed => weft_watched_kind::WEFT_WATCHED_FAILED,
        Kind::Removed => weft_watched_kind::WEFT_WATCHED_REMOVED,
        Kind::Isolated => weft_watched_kind::WEFT_WATCHED_ISOLATED,
        Kind::Released => weft_watched_kind::WEFT_WATCHED_RELEASED,
        Kind::Suspected => weft_watched_kind::WEFT_WATCHED_SUSPECTED,
        Kind::Trusted => weft_watched_kind::WEFT_WATCHED_TRUSTED,
        Kind::Task => weft_watched_kind::WEFT_WATCHED_TASK,
        Kind::Missed => weft_watched_kind::WEFT_WATCHED_MISSED,
        _ => weft_watched_kind::WEFT_WATCHED_OTHER,
    }
}

/// Closes the watcher.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_watch_close(watcher: *mut weft_watcher) -> weft_code {
    call(|| WATCHES.with_borrow_mut(|watches| watches.close(watcher)).map(|_| weft_code::WEFT_OK))
}
