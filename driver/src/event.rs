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

use std::os::fd::BorrowedFd;

use crate::device::{Context, Device};
use crate::ffi::{self, Zeroed, ibv_event_type as kind};
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
    // Zeroed, because of the element only as much is set as the kind of event needs.
    let mut event = ffi::ibv_async_event::zeroed();
    // SAFETY: the context is open, and the event is a place for the answer.
    let returned = unsafe { ffi::ibv_get_async_event(context.as_ptr(), &raw mut event) };
    if returned != 0 {
        return None;
    }
    let found = interpret(&event);
    // SAFETY: the event was got above and is acknowledged once, before anything it names ends.
    unsafe { ffi::ibv_ack_async_event(&raw mut event) };
    Some(found)
}

fn interpret(event: &ffi::ibv_async_event) -> Event {
    match event.event_type {
        kind::IBV_EVENT_DEVICE_FATAL => Event::DeviceLost,
        kind::IBV_EVENT_PORT_ERR => Event::PortDown,
        kind::IBV_EVENT_PORT_ACTIVE => Event::PortUp,
        kind::IBV_EVENT_QP_FATAL
        | kind::IBV_EVENT_QP_REQ_ERR
        | kind::IBV_EVENT_QP_ACCESS_ERR
        | kind::IBV_EVENT_CQ_ERR => Event::PairLost { token: event.element.addr() },
        _ => Event::Irrelevant,
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::without_provenance_mut;

    use super::*;

    fn event(event_type: u32, subject: usize) -> Event {
        interpret(&ffi::ibv_async_event { element: without_provenance_mut(subject), event_type })
    }

    #[test]
    fn a_pair_is_named_by_its_address() {
        for kind in [kind::IBV_EVENT_QP_FATAL, kind::IBV_EVENT_QP_ACCESS_ERR] {
            assert_eq!(event(kind, 0x1234), Event::PairLost { token: 0x1234 });
        }
        assert_eq!(event(kind::IBV_EVENT_DEVICE_FATAL, 0), Event::DeviceLost);
    }

    #[test]
    fn an_event_of_tomorrow_is_irrelevant() {
        assert_eq!(event(99, 1), Event::Irrelevant);
        assert_eq!(event(u32::MAX, 1), Event::Irrelevant);
    }
}
