//! The events of a member, for all threads that wait for one.
//!
//! ```text
//!   MemberHandle::next_event ─▶ one thread at a time ─┬─▶ [ EVENTS_MAX ] ─▶ `events`
//!                                                     └─▶ ends of receives ─▶ `receive`
//! ```
//!
//! One thread asks the member and hands out what comes; the others wait until it does. When the
//! program does not drain the events, the later ones are counted instead of kept, as the member
//! itself does.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use weft::clock::Deadline;
use weft::member::{self, MemberEnded, MemberHandle, Received, RequestId};

use crate::event::Event;

/// The most events that wait for the program.
const EVENTS_MAX: usize = 1024;

/// What has come and was not asked for yet.
#[derive(Default)]
pub(crate) struct Arrived {
    events: VecDeque<Event>,
    missed: u64,
    /// How receives have ended: as many as are open at once.
    ended: HashMap<RequestId, Received>,
    /// Whether a thread asks the member.
    is_led: bool,
}

/// The events of a member.
#[derive(Default)]
pub(crate) struct Inbox {
    arrived: Mutex<Arrived>,
    news: Condvar,
}

impl Arrived {
    fn push(&mut self, event: member::Event) {
        if let member::Event::Ended { request, outcome } = event {
            self.ended.insert(request, outcome);
        }
        let Some(event) = Event::of(event) else { return };
        if self.missed > 0 || self.events.len() >= EVENTS_MAX {
            self.missed += 1;
        } else {
            self.events.push_back(event);
        }
    }

    pub(crate) fn next(&mut self) -> Option<Event> {
        let missed = || {
            let count = std::mem::take(&mut self.missed);
            (count > 0).then(|| Event::missed(count))
        };
        self.events.pop_front().or_else(missed)
    }

    pub(crate) fn end_of(&mut self, request: RequestId) -> Option<Received> {
        self.ended.remove(&request)
    }
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Arrived> {
        // Each change is complete before anything can panic.
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `find` finds something in what has arrived; none by the end of `timeout`.
    ///
    /// # Errors
    /// [`MemberEnded`], once no event is left.
    pub(crate) fn wait<T>(
        &self,
        handle: &MemberHandle,
        timeout: Duration,
        mut find: impl FnMut(&mut Arrived) -> Option<T>,
    ) -> Result<Option<T>, MemberEnded> {
        let deadline = Deadline::after(timeout);
        let mut arrived = self.lock();
        loop {
            if let Some(found) = find(&mut arrived) {
                return Ok(Some(found));
            }
            if arrived.is_led {
                if deadline.has_passed() {
                    return Ok(None);
                }
                let waited = self.news.wait_timeout(arrived, deadline.remaining());
                arrived = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            arrived.is_led = true;
            drop(arrived);
            let event = handle.next_event(deadline.remaining());
            arrived = self.lock();
            arrived.is_led = false;
            self.news.notify_all();
            match event? {
                Some(event) => arrived.push(event),
                None => return Ok(find(&mut arrived)),
            }
        }
    }
}
