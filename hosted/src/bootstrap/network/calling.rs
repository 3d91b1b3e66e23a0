//! Which node calls, which listens and which callers are accepted.
//!
//! One thread listens, one calls each node of a lower rank, one serves each caller; the thread that
//! met a peer reads it until it is gone. All end within a fraction of a second after the bootstrap
//! is dropped.
//!
//! | a caller under a rank that is met already | what happens |
//! |---|---|
//! | the same run of the node, with a later call | it has lost the connection: the old one is ended |
//! | the same run, with a call that was heard | a replay: refused |
//! | another run | refused while the old one speaks; it is gone after a few seconds of silence |

use std::collections::BTreeMap;
use std::net::{IpAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::PollFlags;
use weft_core::ids::Peer;

use super::channel::Channel;
use super::directory::{Directory, READ_EVERY, Registration};
use super::greeting::{Met, NetworkGreeting, Side};
use super::half_open::HalfOpen;
use super::reported::Reported;
use super::{Key, LinkError, Meeting, Timing};
use crate::bootstrap::audience::{Audience, Sink};
use crate::bootstrap::{BootstrapEvent, Hello, News, Refusal};
use crate::clock::{Deadline, now_ns};
use crate::process::start_thread;
use crate::readiness::{Readiness, await_events};
use crate::shm::Grant;

/// The most callers at a time that have not authenticated.
const HALF_OPEN_MAX: usize = 64;
/// How long a thread waits before it checks whether it must end.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the former session of a node that calls again may take to end.
const DISPLACE_TIMEOUT: Duration = Duration::from_secs(1);

/// The state that all threads share.
pub(super) struct CallingShared {
    hello: Hello,
    nodes: u16,
    directory: Directory,
    key: Key,
    timing: Timing,
    /// This run of the node.
    run: u64,
    calls: Mutex<u64>,
    /// The last accepted greeting of each rank: its run, and the number of the call.
    greeted: Mutex<BTreeMap<u16, (u64, u64)>>,
    reported: Mutex<Reported>,
    half_open: HalfOpen,
    audience: Audience<Channel>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each guards one value that is consistent at all times.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CallingShared {
    pub(super) fn new(hello: Hello, nodes: u16, meeting: Meeting, run: u64, sink: Sink) -> Self {
        let Meeting { addresses, key, timing } = meeting;
        Self {
            directory: Directory::new(addresses, &hello, &key, run),
            hello,
            nodes,
            key,
            timing,
            run,
            calls: Mutex::new(0),
            greeted: Mutex::default(),
            reported: Mutex::default(),
            half_open: HalfOpen::new(HALF_OPEN_MAX),
            audience: Audience::new(sink),
        }
    }

    pub(super) const fn audience(&self) -> &Audience<Channel> {
        &self.audience
    }

    /// Accepts callers until the bootstrap ends.
    pub(super) fn listen(self: &Arc<Self>, listener: &TcpListener) {
        while !self.audience.is_over() {
            let waited = await_events(listener.as_fd(), PollFlags::IN, Deadline::after(LOOK_EVERY));
            let accepted = match waited {
                Ok(Readiness::Ready) => listener.accept(),
                Ok(Readiness::TimedOut) => continue,
                Err(errno) => Err(errno.into()),
            };
            match accepted {
                Ok((stream, address)) => {
                    let shared = Arc::clone(self);
                    let calling = move || shared.receive(stream, address.ip());
                    let heard = start_thread("weft-caller", calling);
                    // The caller sees the end of the connection, and calls again.
                    if let Err(error) = heard {
                        tracing::debug!(%error, "no thread for a caller");
                        thread::park_timeout(Duration::from_millis(20));
                    }
                }
                // Another thread's descriptors may be free soon; a caller may have left.
                Err(error) => {
                    tracing::debug!(%error, "a caller cannot be accepted");
                    thread::park_timeout(Duration::from_millis(20));
                }
            }
        }
    }

    fn receive(&self, stream: TcpStream, from: IpAddr) {
        let answered = stream.set_nonblocking(false).and_then(|()| {
            let _place = self.half_open.enter(&stream)?;
            Ok(self.side().answer(stream, |theirs| self.judge(theirs)))
        });
        match answered.unwrap_or_else(|error| Err(error.into())) {
            Ok(met) => {
                lock(&self.reported).forget(&caller(from));
                self.welcome(met);
            }
            Err(error) => {
                tracing::debug!(%error, %from, "a caller is let go");
                self.report(caller(from), error.reason());
            }
        }
    }

    /// Calls `peer` until the bootstrap ends.
    pub(super) fn call(&self, peer: Peer) {
        let name = || format!("node {}", peer.0);
        while !self.audience.is_over() {
            match self.call_once(peer) {
                Ok(met) => {
                    lock(&self.reported).forget(&name());
                    self.attend(met);
                }
                Err(error) => {
                    tracing::debug!(%error, peer = peer.0, "a call comes to nothing");
                    self.report(name(), error.reason());
                }
            }
            thread::park_timeout(self.timing.call_again);
        }
    }

    /// Keeps this node registered, and learns where the others are, until the bootstrap ends.
    pub(super) fn register(&self) {
        let Directory::Registered(registry) = &self.directory else { return };
        let who = "discovery";
        let mut registration = Registration::default();
        while !self.audience.is_over() {
            match registry.refresh(&mut registration) {
                Ok(()) => lock(&self.reported).forget(who),
                Err(fault) => self.report(who.to_owned(), Some(Refusal::Directory(fault))),
            }
            thread::park_timeout(READ_EVERY);
        }
        registry.leave(&registration);
    }

    fn call_once(&self, peer: Peer) -> Result<Met, LinkError> {
        let mut failed = LinkError::Closed;
        let known = self.directory.address_of(peer).ok_or(LinkError::Unregistered)?;
        for address in known.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(stream) => {
                    let call = {
                        let mut calls = lock(&self.calls);
                        *calls += 1;
                        *calls
                    };
                    return self.side().call(stream, peer, call);
                }
                Err(error) => failed = error.into(),
            }
        }
        Err(failed)
    }

    fn side(&self) -> Side<'_> {
        let Self { key, hello, run, nodes, timing, .. } = self;
        Side { key, hello, run: *run, nodes: *nodes, timing: *timing }
    }

    /// Checks whether a member with this greeting is accepted.
    fn judge(&self, theirs: &NetworkGreeting) -> Result<(), Refusal> {
        let rank = theirs.hello.rank;
        // Nodes of lower ranks are called and do not call.
        if rank < self.hello.rank {
            return Err(Refusal::Rank { rank });
        }
        match lock(&self.greeted).get(&rank) {
            Some((run, call)) if *run == theirs.run && theirs.call <= *call => {
                Err(Refusal::Replayed)
            }
            Some((run, _)) if *run != theirs.run && self.audience.has_met(Peer(rank)) => {
                Err(Refusal::Rank { rank })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Accepts a caller that has authenticated, in place of its former session.
    fn welcome(&self, met: Met) {
        let deadline = Deadline::after(DISPLACE_TIMEOUT);
        lock(&self.greeted).insert(met.peer.0, met.greeted);
        self.audience.end(met.peer);
        while self.audience.has_met(met.peer) && !deadline.has_passed() {
            thread::park_timeout(Duration::from_millis(5));
        }
        self.attend(met);
    }

    fn attend(&self, met: Met) {
        let Met { peer, channel, mut hearing, .. } = met;
        let granted = News::Met(Grant(Vec::new()));
        self.audience.attend(peer, channel, granted, || hearing.hear(LOOK_EVERY));
    }

    /// Reports a refusal, unless it was reported lately.
    fn report(&self, who: String, reason: Option<Refusal>) {
        let Some(reason) = reason else { return };
        if lock(&self.reported).is_news(&who, &reason, now_ns()) {
            self.audience.publish(BootstrapEvent::Refused { who, reason });
        }
    }
}

fn caller(from: IpAddr) -> String {
    format!("a caller from {from}")
}
