//! A wire between two nodes that records the caller's bytes, and that can be cut or held.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use weft::clock::Deadline;

use crate::PATIENCE;

/// A relay to one listener.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    /// How many bytes of each caller are forwarded.
    limit: AtomicUsize,
    /// The bytes of each caller, in the order of their calls.
    said: Mutex<Vec<Vec<u8>>>,
    streams: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// Forwards everything, or only the first `limit` bytes of each caller and all answers.
    pub(crate) fn to(listener: SocketAddr, limit: usize) -> Self {
        let front = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = front.local_addr().expect("it is bound");
        let (said, streams) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { limit: AtomicUsize::new(limit), said, streams });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for caller in front.incoming() {
                let Ok(caller) = caller else { return };
                let Ok(behind) = TcpStream::connect(listener) else { continue };
                serving.begin(&caller, &behind);
            }
        });
        Self { address, shared }
    }

    /// The bytes of the first caller so far.
    pub(crate) fn said_first(&self) -> Vec<u8> {
        self.shared.said.lock().expect("no panic").first().cloned().unwrap_or_default()
    }

    /// Waits until so many have called.
    pub(crate) fn await_callers(&self, count: usize) {
        let deadline = Deadline::after(PATIENCE);
        while self.shared.said.lock().expect("no panic").len() < count {
            assert!(!deadline.has_passed(), "fewer than {count} calls");
            thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// From now on no byte passes in this direction, though the wire stays up.
    pub(crate) fn hold(&self) {
        self.shared.limit.store(0, Ordering::Relaxed);
    }

    /// Cuts every wire.
    pub(crate) fn cut(&self) {
        for stream in self.shared.streams.lock().expect("no panic").drain(..) {
            // It fails only for one that has ended already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn begin(self: &Arc<Self>, caller: &TcpStream, behind: &TcpStream) {
        let number = {
            let mut said = self.said.lock().expect("no panic");
            said.push(Vec::new());
            said.len() - 1
        };
        let copies = [caller, behind].map(|stream| stream.try_clone().expect("a descriptor"));
        self.streams.lock().expect("no panic").extend(copies);
        for (from, to, asks) in [(caller, behind, Some(number)), (behind, caller, None)] {
            let both = [from, to].map(|stream| stream.try_clone().expect("a descriptor"));
            let shared = Arc::clone(self);
            thread::spawn(move || {
                let [from, to] = both;
                shared.pass(&from, &to, asks);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    }

    fn pass(&self, mut from: &TcpStream, mut to: &TcpStream, asks: Option<usize>) {
        let mut passed = 0;
        let mut chunk = [0; 1];
        from.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        loop {
            let count = match from.read(&mut chunk) {
                Ok(0) => return,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            if let Some(number) = asks {
                self.said.lock().expect("no panic")[number].extend(&chunk[..count]);
                if passed >= self.limit.load(Ordering::Relaxed) {
                    continue;
                }
            }
            passed += count;
            if to.write_all(&chunk[..count]).is_err() {
                return;
            }
        }
    }
}
