//! Handles: numbers in the form of pointers, which are looked up and never followed.
//!
//! ```text
//!   number   63  kind  56        32        8       0        the member: one number, for a process
//!            │ letter │ thread   │ opened  │ place │         is a member once
//! ```
//!
//! A polled member, a mask and a watcher live in the memory of the thread that made them, so that
//! no other thread can reach them; the number of the thread is in the handle, so that it is
//! refused by name. A spawned member is one for all threads.
//!
//! While a call uses what a handle names, it is borrowed or taken out of its place: a callback that
//! comes back with the same handle finds it in use.

use std::cell::{Cell, RefCell};
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use weft::Member;
use weft::member::{MemberEnded, MemberHandle};

use crate::error::Refusal;
use crate::lifecycle::weft_member;

/// The number of the member.
const MEMBER: usize = (b'm' as usize) << 56 | 1;

/// The member has been joined, spawned, closed: each once, in this order.
///
/// It orders nothing: what a call uses is of its own thread or behind a lock, and a program that
/// hands a member to another thread orders that by the way in which the handle gets there.
static FORM: AtomicU8 = AtomicU8::new(0);
const POLLED: u8 = 1;
const SPAWNED: u8 = 2;

static HANDLE: RwLock<Option<MemberHandle>> = RwLock::new(None);
/// A panic has left the member in the middle of a call.
static IS_BROKEN: AtomicBool = AtomicBool::new(false);
/// This process is a child by fork.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static MEMBER_HERE: RefCell<Option<Member>> = const { RefCell::new(None) };
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

/// The member in the form that it has.
pub(crate) enum Form<'m> {
    Polled(&'m mut Member),
    Spawned(&'m MemberHandle),
}

/// Notes a panic inside the member.
struct Panics;

impl Drop for Panics {
    fn drop(&mut self) {
        if std::thread::panicking() {
            IS_BROKEN.store(true, Ordering::Relaxed);
        }
    }
}

extern "C" fn note_fork() {
    IS_FORKED.store(true, Ordering::Relaxed);
}

/// Keeps a member that has joined for this thread.
pub(crate) fn admit(member: Member) -> Result<*mut weft_member, Refusal> {
    // SAFETY: the handler is a function that stores to an atomic, which a child by fork may do.
    let refused = unsafe { libc::pthread_atfork(None, None, Some(note_fork)) };
    let kept = MEMBER_HERE.try_with(|here| here.replace(Some(member)));
    if refused != 0 || kept.is_err() {
        return Err(MemberEnded::Panicked.into());
    }
    FORM.store(POLLED, Ordering::Relaxed);
    Ok(without_provenance_mut(MEMBER))
}

fn check(member: *const weft_member) -> Result<u8, Refusal> {
    if member.is_null() {
        return Err(Refusal::Null("member"));
    }
    let form = FORM.load(Ordering::Relaxed);
    if member.addr() != MEMBER || (form != POLLED && form != SPAWNED) {
        return Err(Refusal::Closed("member"));
    }
    if IS_FORKED.load(Ordering::Relaxed) {
        return Err(Refusal::Forked);
    }
    if IS_BROKEN.load(Ordering::Relaxed) { Err(Refusal::Panicked) } else { Ok(form) }
}

/// Calls `act` with the member behind a handle.
pub(crate) fn with<T>(
    member: *const weft_member,
    act: impl FnOnce(Form<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let form = check(member)?;
    let _panics = Panics;
    if form == SPAWNED {
        let handle = HANDLE.read().unwrap_or_else(PoisonError::into_inner).clone();
        return act(Form::Spawned(&handle.ok_or(Refusal::Closed("member"))?));
    }
    let done = MEMBER_HERE.try_with(|here| {
        let mut here = here.try_borrow_mut().map_err(|_| Refusal::Busy("member"))?;
        act(Form::Polled(here.as_mut().ok_or(Refusal::Thread("member"))?))
    });
    // The destructors of a thread may run after that of its member.
    done.unwrap_or(Err(Refusal::Thread("member")))
}

/// Takes the polled member out of its thread, and leaves the handle in `form`.
fn take_out() -> Result<Member, Refusal> {
    let taken = MEMBER_HERE.try_with(|here| {
        let mut here = here.try_borrow_mut().map_err(|_| Refusal::Busy("member"))?;
        here.take().ok_or(Refusal::Thread("member"))
    });
    taken.unwrap_or(Err(Refusal::Thread("member")))
}

/// Gives the member a thread of its own.
pub(crate) fn spawn(member: *const weft_member) -> Result<(), Refusal> {
    if check(member)? == SPAWNED {
        return Err(Refusal::Form("the member is spawned already", "use it from any thread"));
    }
    let spawned = take_out()?.spawn().map_err(weft::member::MemberError::Node)?;
    *HANDLE.write().unwrap_or_else(PoisonError::into_inner) = Some(spawned);
    FORM.store(SPAWNED, Ordering::Relaxed);
    Ok(())
}

/// Closes the member. A spawned one ends with the last call that uses it.
pub(crate) fn close(member: *const weft_member) -> Result<(), Refusal> {
    if check(member)? == POLLED {
        let member = take_out()?;
        FORM.store(0, Ordering::Relaxed);
        drop(member);
        return Ok(());
    }
    let handle = HANDLE.write().unwrap_or_else(PoisonError::into_inner).take();
    FORM.store(0, Ordering::Relaxed);
    // Outside of the lock: it waits until what was put has arrived.
    handle.map(drop).ok_or(Refusal::Closed("member"))
}

/// Attempts until something comes, and polls in between; none by the end of `timeout`. A member
/// that is ordered to end waits for nothing more.
pub(crate) fn until<T>(
    member: &mut Member,
    timeout: Duration,
    mut attempt: impl FnMut(&mut Member) -> Result<Option<T>, Refusal>,
) -> Result<Option<T>, Refusal> {
    let done = attempt(member)?;
    if done.is_some() || timeout.is_zero() {
        return Ok(done);
    }
    let done = member.wait_until(timeout, |member| attempt(member).transpose())?;
    match done {
        None if member.is_stopping() => Err(MemberEnded::Stopping.into()),
        done => done.transpose(),
    }
}

/// What a thread has opened, by its place.
pub(crate) struct Table<T> {
    /// The letter of its handles, and its name in errors.
    kind: (u8, &'static str),
    places: Vec<Place<T>>,
}

struct Place<T> {
    /// How often it was opened, from 1.
    opened: usize,
    /// Whether it is open: `value` is missing for as long as a call uses it.
    is_open: bool,
    value: Option<T>,
}

const PLACES_MAX: usize = 1 << 8;
const OPENED_MAX: usize = 1 << 24;
const THREADS_MAX: usize = 1 << 24;

impl<T> Table<T> {
    pub(crate) const fn new(letter: u8, name: &'static str) -> Self {
        Self { kind: (letter, name), places: Vec::new() }
    }

    /// The number of the handle of a place.
    fn number(&self, place: usize) -> usize {
        let opened = self.places[place].opened % OPENED_MAX;
        (self.kind.0 as usize) << 56 | thread() << 32 | opened << 8 | place
    }

    /// Keeps `value`, and returns its handle.
    pub(crate) fn open<H>(&mut self, value: T) -> Result<*mut H, Refusal> {
        let free = self.places.iter().position(|it| !it.is_open);
        let place = free.unwrap_or(self.places.len());
        if place == PLACES_MAX {
            let full = "this thread has opened 256 of them";
            return Err(Refusal::Argument(full, "close one that it needs no more"));
        }
        if free.is_none() {
            self.places.push(Place { opened: 0, is_open: false, value: None });
        }
        let it = &mut self.places[place];
        *it = Place { opened: it.opened + 1, is_open: true, value: Some(value) };
        Ok(without_provenance_mut(self.number(place)))
    }

    fn place<H>(&mut self, handle: *const H) -> Result<&mut Place<T>, Refusal> {
        let (number, (letter, name)) = (handle.addr(), self.kind);
        if handle.is_null() {
            return Err(Refusal::Null(name));
        }
        if number >> 56 == letter as usize && number >> 32 & (THREADS_MAX - 1) != thread() {
            return Err(Refusal::Thread(name));
        }
        let place = number % PLACES_MAX;
        let is_open = self.places.get(place).is_some_and(|it| it.is_open);
        if !is_open || self.number(place) != number {
            return Err(Refusal::Closed(name));
        }
        Ok(&mut self.places[place])
    }

    /// Takes out what a handle names, for one call.
    pub(crate) fn lend<H>(&mut self, handle: *const H) -> Result<T, Refusal> {
        let name = self.kind.1;
        self.place(handle)?.value.take().ok_or(Refusal::Busy(name))
    }

    /// Puts back what [`Self::lend`] took out.
    pub(crate) fn give_back<H>(&mut self, handle: *const H, value: T) {
        if let Ok(place) = self.place(handle) {
            place.value = Some(value);
        }
    }

    /// Takes out what a handle names, and closes it. After a panic there is nothing left.
    pub(crate) fn close<H>(&mut self, handle: *const H) -> Result<Option<T>, Refusal> {
        let place = self.place(handle)?;
        place.is_open = false;
        Ok(place.value.take())
    }
}

/// The number of this thread, from 1.
fn thread() -> usize {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let number = THREAD.get();
    let number = if number == 0 { LAST.fetch_add(1, Ordering::Relaxed) + 1 } else { number };
    THREAD.set(number);
    number as usize % THREADS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing(());

    fn table() -> Table<&'static str> {
        Table::new(b't', "thing")
    }

    #[test]
    fn a_handle_is_good_until_it_is_closed_and_not_after() {
        let mut table = table();
        let first: *mut Thing = table.open("first").expect("a place");
        let value = table.lend(first).expect("it is open");
        assert!(matches!(table.lend(first), Err(Refusal::Busy("thing"))));
        table.give_back(first, value);
        assert!(matches!(table.close(first), Ok(Some("first"))));
        let second: *mut Thing = table.open("second").expect("the same place");
        assert_eq!(first.addr() % PLACES_MAX, second.addr() % PLACES_MAX);
        assert!(matches!(table.lend(first), Err(Refusal::Closed("thing"))));
        assert!(matches!(table.close(first), Err(Refusal::Closed("thing"))));
        assert!(matches!(table.lend(second), Ok("second")));
    }

    #[test]
    fn what_is_no_handle_is_refused() {
        let mut table = table();
        let good: *mut Thing = table.open("it").expect("a place");
        let other_kind = without_provenance_mut::<Thing>(good.addr() ^ 1 << 56);
        let other_thread = without_provenance_mut::<Thing>(good.addr() ^ 1 << 40);
        let other_place = without_provenance_mut::<Thing>(good.addr() + 1);
        assert!(matches!(table.lend(other_kind), Err(Refusal::Closed(_))));
        assert!(matches!(table.lend(other_thread), Err(Refusal::Thread("thing"))));
        assert!(matches!(table.lend(other_place), Err(Refusal::Closed(_))));
        assert!(matches!(table.lend(std::ptr::null::<Thing>()), Err(Refusal::Null(_))));
        let () = Thing(()).0;
    }

    #[test]
    fn a_process_that_has_not_joined_has_no_member() {
        let acts = |number| with(without_provenance_mut(number), |_| Ok(()));
        assert!(matches!(acts(0), Err(Refusal::Null("member"))));
        assert!(matches!(acts(MEMBER), Err(Refusal::Closed("member"))));
        assert!(matches!(acts(8), Err(Refusal::Closed("member"))));
    }
}
