//! The endpoints of the conformance suite over devices: all in one process, introduced to each
//! other as bootstrap would do it. For the driver's own tests and for `weft conform`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use weft_core::fabric::conformance::{Harness, PEERS, layout};
use weft_core::fabric::{Fabric, Layout};
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::Instant;

use crate::{Config, Device, Error, Heap, RemoteEnd, VerbsFabric};

/// An endpoint over memory of its own.
pub type Endpoint = VerbsFabric<Heap>;

/// How long a poll waits, so that a device's work comes through within the suite's polls.
const PAUSE: Duration = Duration::from_micros(10);

/// Prepares a pair between two endpoints in these incarnations, carries the ends across, and lets
/// `change` alter what `one` receives of `other`.
///
/// # Errors
/// [`Error`]; no pair is open.
pub fn introduce(
    one: &mut Endpoint,
    other: &mut Endpoint,
    incarnations: (Incarnation, Incarnation),
    change: impl FnOnce(&mut RemoteEnd),
) -> Result<(), Error> {
    let of_one = one.prepare(other.me(), incarnations.1)?.to_bytes();
    let of_other = other.prepare(one.me(), incarnations.0)?.to_bytes();
    let mut received = RemoteEnd::from_bytes(&of_other)?;
    change(&mut received);
    one.connect(other.me(), received)?;
    other.connect(one.me(), RemoteEnd::from_bytes(&of_one)?)
}

/// The endpoints of the suite.
pub struct Rig {
    open: Box<dyn Fn(Peer) -> Result<Device, Error>>,
    clock: fn() -> Instant,
    ends: [Option<Endpoint>; PEERS],
    incarnations: [Incarnation; PEERS],
}

impl fmt::Debug for Rig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rig").field("incarnations", &self.incarnations).finish_non_exhaustive()
    }
}

impl Rig {
    /// Endpoints that have admitted each other, each over the device that `open` gives for it, with
    /// the time that `clock` reads.
    ///
    /// # Errors
    /// [`Error`] of `open`, or of a verb.
    pub fn new(
        open: impl Fn(Peer) -> Result<Device, Error> + 'static,
        clock: fn() -> Instant,
    ) -> Result<Self, Error> {
        let mut rig = Self {
            open: Box::new(open),
            clock,
            ends: [None, None, None],
            incarnations: [Incarnation(1); PEERS],
        };
        for me in 0..PEERS {
            rig.ends[me] = Some(rig.end(me)?);
        }
        for (me, peer) in [(0, 1), (0, 2), (1, 2)] {
            rig.introduce(me, peer)?;
            let incarnations = (rig.incarnations[me], rig.incarnations[peer]);
            if let Some((one, other)) = rig.both(me, peer) {
                one.open(other.me(), incarnations.1)?;
                other.open(one.me(), incarnations.0)?;
            }
        }
        Ok(rig)
    }

    /// Two endpoints that run.
    #[must_use]
    pub fn both(&mut self, one: usize, other: usize) -> Option<(&mut Endpoint, &mut Endpoint)> {
        let [one, other] = self.ends.get_disjoint_mut([one, other]).ok()?;
        one.as_mut().zip(other.as_mut())
    }

    fn end(&self, me: usize) -> Result<Endpoint, Error> {
        let me = Peer(me as u16);
        let layout: Layout = layout();
        let memory = Arc::new(Heap::new(&layout));
        VerbsFabric::new(me, layout, (self.open)(me)?, Config::default(), memory)
    }

    fn introduce(&mut self, me: usize, peer: usize) -> Result<(), Error> {
        let incarnations = (self.incarnations[me], self.incarnations[peer]);
        match self.both(me, peer) {
            Some((one, other)) => introduce(one, other, incarnations, |_| ()),
            None => Ok(()),
        }
    }
}

/// The suite tells failure by panics; those of the harness name what the device refused.
impl Harness for Rig {
    type Fabric = Endpoint;

    fn at(&mut self, peer: Peer) -> &mut Endpoint {
        self.ends[peer.index()].as_mut().expect("the endpoint runs")
    }

    fn now(&mut self) -> Instant {
        std::thread::park_timeout(PAUSE);
        (self.clock)()
    }

    fn lose(&mut self, peer: Peer) {
        self.ends[peer.index()] = None;
    }

    fn revive(&mut self, peer: Peer) -> Incarnation {
        self.lose(peer);
        let me = peer.index();
        self.incarnations[me] = self.incarnations[me].next();
        let refused = |error: Error| -> ! { panic!("a new endpoint: {error}") };
        self.ends[me] = Some(self.end(me).unwrap_or_else(|error| refused(error)));
        for other in (0..PEERS).filter(|&other| other != me) {
            self.introduce(me, other).unwrap_or_else(|error| refused(error));
        }
        self.incarnations[me]
    }
}
