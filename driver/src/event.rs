//! Asynchronous events: what the device reports beside completions.
//!
//! | event | consequence |
//! |---|---|
//! | device fatal | every pair is lost |
//! | queue pair fatal, request or access error | its pair is lost |
//! | completion queue error | its pair is lost |
//! | port error, port active | noted; the retries decide, since a short outage heals in them |
//! | others | none |
//!
//! The descriptor is made non-blocking once. Each event is acknowledged as it is taken, so that
//! destroying what it was about never waits.

use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use crate::device::{Context, Device};
use crate::ffi::{self, ibv_event_type as kind};
use crate::{Errno, Error, Verb};

/// An event, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    DeviceLost,
    /// The queue pair, or the completion queue of a pair, that is of no use any more.
    PairLost {
        token: usize,
    },
    PortDown,
    PortUp,
    Irrelevant,
}

/// Lets [`next`] return at once when there is no event.
pub(crate) fn watch(device: &Device) -> Result<(), Error> {
    let context = device.context();
    // SAFETY: the context is open, and does not change the number of its descriptor.
    let number = unsafe { &raw const (*context.as_ptr()).async_fd };
    // SAFETY: a field of an open context, as above.
    let number = unsafe { number.read() };
    // SAFETY: the descriptor is the context's own, which is open during the borrow.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::ioctl_fionbio(descriptor, true)
        .map_err(|errno| Error::Verb(Verb::WatchEvents, Errno(errno.raw_os_error())))
}

/// The next event, if there is one.
pub(crate) fn next(context: &Context) -> Option<Event> {
    let mut event = MaybeUninit::<ffi::ibv_async_event>::zeroed();
    // SAFETY: the context is open, and the event is a place for the answer.
    let returned = unsafe { ffi::ibv_get_async_event(context.as_ptr(), event.as_mut_ptr()) };
    if returned != 0 {
        return None;
    }
    let found = interpret(&event);
    // SAFETY: the event was got above and is acknowledged once, before anything it names ends.
    unsafe { ffi::ibv_ack_async_event(event.as_mut_ptr()) };
    Some(found)
}

/// Reads the event by numbers: its kind may be one that the binding's enumeration lacks, and so
/// the structure must not be read as a whole.
fn interpret(event: &MaybeUninit<ffi::ibv_async_event>) -> Event {
    let words = event.as_ptr().cast::<u64>();
    // SAFETY: the first 8 of the structure's 16 bytes, zeroed before they were set, are the union
    // of pointers and a port's number.
    let subject = unsafe { words.read() };
    let kind_at = words.cast::<u32>().wrapping_add(2);
    // SAFETY: the 4 bytes behind them, zeroed before they were set, are the event's kind.
    let number = unsafe { kind_at.read() };
    let is = |kind: kind| number == kind as u32;
    if is(kind::IBV_EVENT_DEVICE_FATAL) {
        Event::DeviceLost
    } else if is(kind::IBV_EVENT_PORT_ERR) {
        Event::PortDown
    } else if is(kind::IBV_EVENT_PORT_ACTIVE) {
        Event::PortUp
    } else if is(kind::IBV_EVENT_QP_FATAL)
        || is(kind::IBV_EVENT_QP_REQ_ERR)
        || is(kind::IBV_EVENT_QP_ACCESS_ERR)
        || is(kind::IBV_EVENT_CQ_ERR)
    {
        Event::PairLost { token: usize::try_from(subject).unwrap_or(0) }
    } else {
        Event::Irrelevant
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u32, subject: u64) -> Event {
        let mut event = MaybeUninit::<ffi::ibv_async_event>::zeroed();
        let words = event.as_mut_ptr().cast::<u64>();
        // SAFETY: the first half of the structure.
        unsafe { words.write(subject) };
        // SAFETY: the other half.
        unsafe { words.wrapping_add(1).write(u64::from(number)) };
        interpret(&event)
    }

    #[test]
    fn a_pair_is_named_by_its_address() {
        for kind in [kind::IBV_EVENT_QP_FATAL, kind::IBV_EVENT_QP_ACCESS_ERR] {
            assert_eq!(event(kind as u32, 0x1234), Event::PairLost { token: 0x1234 });
        }
        assert_eq!(event(kind::IBV_EVENT_DEVICE_FATAL as u32, 0), Event::DeviceLost);
    }

    #[test]
    fn an_event_of_tomorrow_is_irrelevant() {
        assert_eq!(event(99, 1), Event::Irrelevant);
        assert_eq!(event(u32::MAX, 1), Event::Irrelevant);
    }
}
