//! All endpoints of a loopback net, as they are or each behind a wrapper with a fault.

use std::cell::Cell;
use std::rc::Rc;

use weft_core::fabric::conformance::{Harness, PEERS, layout};
use weft_core::fabric::loopback::{Loopback, Net};
use weft_core::fabric::{Fabric, Layout};
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::Instant;

use crate::broken::Broken;
use crate::faults::Fault;

const WORDS: usize = 2048;

pub(crate) type Sound = Loopback<'static, PEERS, WORDS>;

/// How often each endpoint has polled, for a fabric that needs its target's help.
pub(crate) type Polls = Rc<[Cell<u32>; PEERS]>;

/// The harness of a fabric made from a loopback endpoint.
pub(crate) struct Rig<F> {
    net: &'static Net<PEERS, WORDS>,
    ends: [F; PEERS],
    incarnations: [Incarnation; PEERS],
    wrap: Box<dyn Fn(Sound) -> F>,
    hides_loss: bool,
    ticks: u64,
}

impl Rig<Sound> {
    pub(crate) fn sound() -> Self {
        Self::new(layout(), |end| end)
    }
}

impl Rig<Broken> {
    pub(crate) fn broken(fault: Fault) -> Self {
        let polls = Polls::default();
        let wrap = move |end| Broken::new(end, fault, Rc::clone(&polls));
        let hides_loss = fault == Fault::HidesLoss;
        Self { hides_loss, ..Self::new(fault.widen(&layout()), wrap) }
    }
}

impl<F: Fabric> Rig<F> {
    fn new(layout: Layout, wrap: impl Fn(Sound) -> F + 'static) -> Self {
        let incarnations = [Incarnation(1); PEERS];
        // Endpoints borrow their net, and a harness cannot borrow from itself.
        let net: &'static _ = Box::leak(Box::new(Net::new(layout)));
        let mut ends = [0, 1, 2].map(|peer| wrap(net.endpoint(Peer(peer), incarnations[0])));
        for (me, end) in (0..).zip(&mut ends) {
            for peer in (0..3).filter(|&peer| peer != me) {
                end.admit(Peer(peer), incarnations[0]).unwrap();
            }
        }
        Self { net, ends, incarnations, wrap: Box::new(wrap), hides_loss: false, ticks: 0 }
    }
}

impl<F: Fabric> Harness for Rig<F> {
    type Fabric = F;

    fn at(&mut self, peer: Peer) -> &mut F {
        &mut self.ends[peer.index()]
    }

    fn now(&mut self) -> Instant {
        self.ticks += 1;
        Instant(self.ticks)
    }

    fn lose(&mut self, peer: Peer) {
        if !self.hides_loss {
            self.net.lose(peer);
        }
    }

    fn revive(&mut self, peer: Peer) -> Incarnation {
        let incarnation = &mut self.incarnations[peer.index()];
        *incarnation = incarnation.next();
        self.ends[peer.index()] = (self.wrap)(self.net.endpoint(peer, *incarnation));
        *incarnation
    }
}
