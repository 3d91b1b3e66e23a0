//! The membership as a page that a node of this host keeps, for a loop that cannot wait.

use std::cell::RefCell;
use std::ffi::c_char;

use weft::client::{Client, find};
use weft::shm::Mask;

use crate::border::{Out, call, ok_or_none, text, timeout};
use crate::code::weft_code;
use crate::error::Refusal;
use crate::handle::Table;
use crate::membership::weft_generation;

/// The membership of a running cluster, in memory.
pub struct weft_mask(());

thread_local! {
    static MASKS: RefCell<Table<Mask>> = const { RefCell::new(Table::new(b'M', "mask")) };
}

fn with<T>(handle: *const weft_mask, act: impl FnOnce(&Mask) -> T) -> Result<T, Refusal> {
    let mask = MASKS.with_borrow_mut(|masks| masks.lend(handle))?;
    let done = act(&mask);
    MASKS.with_borrow_mut(|masks| masks.give_back(handle, mask));
    Ok(done)
}

/// Finds the running cluster of this name on this host, waiting up to the timeout for one that is
/// being started, and maps the page on which its node `node` shows the membership. The caller need
/// not be a member.
///
/// The page stays as it was when that node's supervisor ends: who must know watches as well.
///
/// Errors: WEFT_CLUSTER, WEFT_RANK, WEFT_ARGUMENT (no name of a cluster).
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_mask_open(
    mask: *mut *mut weft_mask,
    cluster: *const c_char,
    node: u16,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let mask = unsafe { Out::new(mask, "mask") };
    // SAFETY: the caller's promise.
    let cluster = unsafe { text(cluster, "cluster") };
    call(|| {
        let (mask, timeout) = (mask?, timeout(timeout_us));
        let (dir, cluster) = find(&name(cluster?)?, timeout)?;
        let page = Client::connect(&dir, &cluster, node, timeout)?.mask()?;
        mask.set(MASKS.with_borrow_mut(|masks| masks.open(page))?);
        Ok(weft_code::WEFT_OK)
    })
}

/// The name of a cluster.
pub(crate) fn name(text: &str) -> Result<weft::cluster::ClusterName, Refusal> {
    let good = "pass 1 to 32 characters of a-z 0-9 _ -, the first a letter or a digit";
    text.parse().map_err(|_| Refusal::Argument("this names no cluster", good))
}

/// Writes how often the page has changed to `changes`: one load.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_mask_changes(mask: *mut weft_mask, changes: *mut u64) -> weft_code {
    // SAFETY: the caller's promise.
    let changes = unsafe { Out::new(changes, "changes") };
    call(|| {
        changes?.set(with(mask, Mask::changes)?);
        Ok(weft_code::WEFT_OK)
    })
}

/// Writes the number of the view that is shown last to `number`, 0 for none yet, and its members to
/// `members`, a bit for each rank, without those that are known to have ended. WEFT_NONE while the
/// page is being changed, or if it is damaged.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_mask_load(
    mask: *mut weft_mask,
    number: *mut u64,
    members: *mut u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let number = unsafe { Out::new(number, "number") };
    // SAFETY: the caller's promise.
    let members = unsafe { Out::new(members, "members") };
    call(|| {
        let (number, members) = (number?, members?);
        let shown = with(mask, Mask::load)?;
        let shown = shown.map(|shown| {
            number.set(shown.number);
            members.set(shown.members);
        });
        Ok(ok_or_none(shown.is_some()))
    })
}

/// Writes the incarnation of `rank` in the view `number` to `incarnation`; WEFT_NONE if it is no
/// member of it, has ended, or another view is shown by now.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_mask_incarnation(
    mask: *mut weft_mask,
    number: u64,
    rank: u16,
    incarnation: *mut weft_generation,
) -> weft_code {
    // SAFETY: the caller's promise.
    let incarnation = unsafe { Out::new(incarnation, "incarnation") };
    call(|| {
        let incarnation = incarnation?;
        let found = with(mask, |mask| mask.incarnation(number, rank))?;
        let found = found.map(|(boot, generation)| weft_generation { boot, generation });
        Ok(ok_or_none(found.map(|found| incarnation.set(found)).is_some()))
    })
}

/// Closes the mask.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_mask_close(mask: *mut weft_mask) -> weft_code {
    call(|| MASKS.with_borrow_mut(|masks| masks.close(mask)).map(|_| weft_code::WEFT_OK))
}
