//! Connections whose peer has not sent its first message yet: a bounded number of them.
//!
//! ```text
//!   Listener ── of this user ──▶ [ max ] ── its first message ──▶ the caller's
//!                                  └ nonsense, the deadline, or one too many: ended
//! ```
//!
//! One too many ends the oldest: an honest peer sends as soon as it is connected, so the connection
//! that has waited for longest is the likeliest to be useless. One thread serves them all, and no
//! connection is waited for.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use serde::de::DeserializeOwned;

use super::{Listener, PacketError, Socket};
use crate::clock::Deadline;
use crate::readiness::await_any;

/// The connections at one listener that have sent nothing yet.
#[derive(Debug)]
pub struct Callers {
    listener: Listener,
    max: usize,
    patience: Duration,
    waiting: VecDeque<(Socket, Deadline)>,
}

/// A connection, the first message, and the descriptors that came with it.
#[derive(Debug)]
pub struct Caller<T> {
    /// The connection.
    pub socket: Socket,
    /// What came first.
    pub first: T,
    /// What came with it.
    pub fds: Vec<OwnedFd>,
}

impl Callers {
    /// At most `max` of them, each for at most `patience`.
    #[must_use]
    pub const fn new(listener: Listener, max: usize, patience: Duration) -> Self {
        Self { listener, max, patience, waiting: VecDeque::new() }
    }

    /// The next connection that sends a `T`, of a process of this user; none within `timeout`.
    ///
    /// # Errors
    /// [`PacketError::Os`]: no connection can be accepted, or waited for.
    pub fn next<T: DeserializeOwned>(
        &mut self,
        timeout: Duration,
    ) -> Result<Option<Caller<T>>, PacketError> {
        let deadline = Deadline::after(timeout);
        loop {
            for (index, is_ready) in self.wait(deadline.remaining())?.into_iter().enumerate().rev()
            {
                if let Some(caller) = self.hear(index, is_ready) {
                    return Ok(Some(caller));
                }
            }
            self.accept()?;
            if deadline.has_passed() {
                return Ok(None);
            }
        }
    }

    /// Waits for any connection; for each that is open, whether it is readable.
    fn wait(&self, timeout: Duration) -> Result<Vec<bool>, PacketError> {
        let soonest = self.waiting.iter().map(|(_, deadline)| deadline.remaining()).min();
        let callers = self.waiting.iter().map(|(socket, _)| socket.as_fd());
        let fds = callers.chain([self.listener.as_fd()]);
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout = soonest.map_or(timeout, |soonest| soonest.min(timeout));
        await_any(&mut fds, timeout).map_err(PacketError::os("poll"))?;
        fds.pop();
        Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect())
    }

    /// What the connection at `index` has sent; it is ended where that is no `T`, or too late.
    fn hear<T: DeserializeOwned>(&mut self, index: usize, is_ready: bool) -> Option<Caller<T>> {
        let (socket, deadline) = self.waiting.get(index)?;
        let heard = if is_ready { socket.try_recv::<T>() } else { Ok(None) };
        if matches!(heard, Ok(None)) && !deadline.has_passed() {
            return None;
        }
        let (socket, _) = self.waiting.remove(index)?;
        let (first, fds) = heard.ok()??;
        Some(Caller { socket, first, fds })
    }

    /// Accepts what waits to be connected. Of another user, it is ended unheard.
    fn accept(&mut self) -> Result<(), PacketError> {
        for _ in 0..self.max {
            let Some(socket) = self.listener.try_accept()? else { return Ok(()) };
            if socket.authorize_same_user().is_err() {
                continue;
            }
            if self.waiting.len() >= self.max {
                tracing::debug!("too many callers at once: the oldest is disconnected");
                self.waiting.pop_front();
            }
            self.waiting.push_back((socket, Deadline::after(self.patience)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    const SOON: Duration = Duration::from_secs(20);

    fn callers(max: usize, patience: Duration) -> (Scratch, Callers, impl Fn() -> Socket) {
        let scratch = Scratch::new();
        let path = scratch.path().join("callers.sock");
        let callers = Callers::new(Listener::bind(&path).unwrap(), max, patience);
        (scratch, callers, move || Socket::connect(&path, SOON).unwrap())
    }

    fn is_ended(socket: &Socket) -> bool {
        matches!(socket.recv::<u8>(Duration::ZERO), Err(PacketError::Closed))
    }

    #[test]
    fn one_too_many_ends_the_oldest_and_who_sends_is_heard() {
        let (_scratch, mut callers, connect) = callers(2, SOON);
        let silent = [connect(), connect(), connect()];
        assert!(callers.next::<u8>(Duration::ZERO).unwrap().is_none());
        assert!(callers.next::<u8>(Duration::ZERO).unwrap().is_none());
        assert!(is_ended(&silent[0]) && !is_ended(&silent[1]) && !is_ended(&silent[2]));
        silent[2].send(&7, &[], SOON).unwrap();
        assert_eq!(callers.next::<u8>(SOON).unwrap().unwrap().first, 7);
        assert!(!is_ended(&silent[1]));
    }

    #[test]
    fn nonsense_and_silence_end_a_connection_and_no_other() {
        let (_scratch, mut callers, connect) = callers(9, Duration::from_millis(20));
        let (silent, nonsense) = (connect(), connect());
        nonsense.send(&"no number", &[], SOON).unwrap();
        assert!(callers.next::<u8>(Duration::from_millis(50)).unwrap().is_none());
        assert!(is_ended(&silent) && is_ended(&nonsense));
        let honest = connect();
        honest.send(&7, &[], SOON).unwrap();
        assert_eq!(callers.next::<u8>(SOON).unwrap().unwrap().first, 7);
    }
}
