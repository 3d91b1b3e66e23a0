//! Connections whose caller has not authenticated yet: a bounded number of them.
//!
//! One too many ends the oldest, not itself: a node's greeting takes a few round trips, so the
//! oldest connection is the least likely to complete. A flood of silent callers therefore delays
//! nodes, and does not lock them out.

use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The half-open connections.
#[derive(Debug)]
pub(super) struct HalfOpen {
    max: usize,
    line: Mutex<HalfOpenQueue>,
}

#[derive(Debug, Default)]
struct HalfOpenQueue {
    count: u64,
    streams: VecDeque<(u64, TcpStream)>,
}

/// A place among the half-open connections, until it is dropped.
#[derive(Debug)]
pub(super) struct HalfOpenPlace<'a> {
    half_open: &'a HalfOpen,
    number: u64,
}

impl HalfOpen {
    pub(super) fn new(max: usize) -> Self {
        Self { max, line: Mutex::default() }
    }

    /// Adds a connection, and ends the oldest if there are too many.
    pub(super) fn enter(&self, stream: &TcpStream) -> std::io::Result<HalfOpenPlace<'_>> {
        let stream = stream.try_clone()?;
        let mut line = self.line();
        if line.streams.len() >= self.max
            && let Some((_, oldest)) = line.streams.pop_front()
        {
            tracing::debug!("too many callers at once; the oldest is let go");
            // Its thread sees the end and leaves.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        line.count += 1;
        let number = line.count;
        line.streams.push_back((number, stream));
        Ok(HalfOpenPlace { half_open: self, number })
    }

    fn line(&self) -> MutexGuard<'_, HalfOpenQueue> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HalfOpenPlace<'_> {
    fn drop(&mut self) {
        self.half_open.line().streams.retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn one_too_many_ends_the_oldest_and_the_place_of_who_left_is_free() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let half_open = HalfOpen::new(2);
        let connect = || {
            let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (ours, listener.accept().unwrap().0)
        };
        let pairs = [connect(), connect(), connect(), connect()];
        let _first = half_open.enter(&pairs[0].1).unwrap();
        drop(half_open.enter(&pairs[1].1).unwrap());
        let _third = half_open.enter(&pairs[2].1).unwrap();
        let _fourth = half_open.enter(&pairs[3].1).unwrap();
        let mut byte = [0];
        assert_eq!((&pairs[0].0).read(&mut byte).unwrap(), 0, "the oldest is ended");
        pairs[2].0.set_nonblocking(true).unwrap();
        assert!((&pairs[2].0).read(&mut byte).is_err(), "the others are not");
    }
}
