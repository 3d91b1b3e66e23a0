//! The endpoints of this fabric as the conformance suite drives them.

use std::collections::VecDeque;
use std::rc::Rc;

use weft::core::fabric::conformance::Harness;
use weft::core::fabric::{Fabric, Layout};
use weft::core::ids::{Incarnation, Peer};
use weft::core::time::Instant;

use crate::fabric::Local;
use crate::net::{Net, PEERS};

/// All endpoints, as the suite wants them.
pub(crate) struct Trio(pub(crate) Vec<Local>);

fn start(net: &Rc<Net>, me: Peer, incarnation: Incarnation) -> Local {
    net.start(me, incarnation);
    Local { net: Rc::clone(net), me, incarnation, done: VecDeque::new() }
}

impl Trio {
    pub(crate) fn new(layout: &Layout) -> Self {
        let (net, first) = (Rc::new(Net::new(layout)), Incarnation(1));
        let peers = || (0..PEERS as u16).map(Peer);
        let mut all: Vec<Local> = peers().map(|me| start(&net, me, first)).collect();
        for end in &mut all {
            let me = end.me;
            for peer in peers().filter(|peer| *peer != me) {
                end.admit(peer, first).expect("it is the first incarnation");
            }
        }
        Self(all)
    }
}

impl Harness for Trio {
    type Fabric = Local;

    fn at(&mut self, peer: Peer) -> &mut Local {
        &mut self.0[peer.index()]
    }

    fn now(&mut self) -> Instant {
        Instant(0)
    }

    fn lose(&mut self, peer: Peer) {
        self.0[peer.index()].net.lose(peer);
    }

    fn revive(&mut self, peer: Peer) -> Incarnation {
        let old = &self.0[peer.index()];
        self.0[peer.index()] = start(&old.net, peer, old.incarnation.next());
        self.0[peer.index()].incarnation
    }
}
