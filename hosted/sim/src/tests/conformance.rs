//! The simulated fabric keeps the contract: in fair weather, and with every fault that the
//! contract permits a fabric to have.

use weft_core::fabric::Fabric;
use weft_core::fabric::conformance::{Harness, PEERS, layout};
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::{Duration, Instant};

use crate::fault::{Faults, SimFault};
use crate::{Promises, SimFabric, Trace, World};

/// All peers of one world, which is the fabric of each of them.
struct Rig {
    fabric: SimFabric<Box<World>>,
}

impl Rig {
    fn new(seed: u64, faults: Faults, promises: Promises) -> Self {
        // The suite waits for as long as it takes; losing work is its own business.
        let deadline = Duration(u64::MAX);
        let world = World::timed(layout(), seed, deadline, faults, Trace::off());
        let world = Box::new(world.with_promises(promises));
        let mut rig = Self { fabric: SimFabric::new(world, Peer(0)) };
        let peers = || (0..PEERS as u16).map(Peer);
        for peer in peers() {
            rig.fabric.world().start_peer(peer);
        }
        for (me, peer) in peers().flat_map(|me| peers().map(move |peer| (me, peer))) {
            if me != peer {
                rig.at(me).admit(peer, Incarnation(1)).unwrap();
            }
        }
        rig
    }
}

impl Harness for Rig {
    type Fabric = SimFabric<Box<World>>;

    fn at(&mut self, peer: Peer) -> &mut Self::Fabric {
        self.fabric.turn_to(peer);
        &mut self.fabric
    }

    fn now(&mut self) -> Instant {
        let world = self.fabric.world();
        world.advance();
        Instant(world.now())
    }

    fn lose(&mut self, peer: Peer) {
        self.fabric.world().kill(peer);
    }

    fn revive(&mut self, peer: Peer) -> Incarnation {
        self.fabric.world().start_peer(peer)
    }
}

const KINDS: &[SimFault] = &[SimFault::Torn, SimFault::SlowLanding, SimFault::SlowCompletion];

mod fair {
    use super::*;

    weft_core::fabric_conformance!(Rig::new(1, Faults::none(), Promises::LEAST));
}

mod torn {
    use super::*;

    weft_core::fabric_conformance!(Rig::new(2, Faults::often(2, KINDS), Promises::LEAST));
}

/// Writes are torn between words (F-14), and some works are answered at once (F-15).
mod promised {
    use super::*;

    weft_core::fabric_conformance!(Rig::new(3, Faults::often(3, KINDS), Promises::MOST));
}
