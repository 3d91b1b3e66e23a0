//! Two members in one process, without a node: the endpoints of the core over shared memory, and a
//! loop of your own. What a `Member` does besides (joining, failure detection, restarts) is yours.
//!
//! ```sh
//! cargo run --release --example own_loop
//! ```

use std::error::Error;

use weft::cluster::Cluster;
use weft::core::endpoint::{Endpoint, Event, Plan};
use weft::core::ids::{Incarnation, Peer};
use weft::core::time::Instant;
use weft::shm::{NodeMemory, OwnMemory, RemoteMemory, ShmFabric, Wait};

/// 1024 slots, up to 4 members, as the default cluster has.
type Own = Endpoint<ShmFabric, 1024, 4>;

fn endpoint(plan: &Plan, memory: &[NodeMemory; 2], me: usize) -> Result<Box<Own>, Box<dyn Error>> {
    let (layout, first) = (plan.layout(), Incarnation(1));
    let (peer, other) = (Peer(me as u16), Peer(1 - me as u16));
    let own = OwnMemory::map(layout, &memory[me].grant_owner()?)?;
    let mut fabric = ShmFabric::new(peer, first, layout.clone(), own, Wait::Yield);
    let theirs = RemoteMemory::map(layout, peer, &memory[1 - me].grant(layout, peer)?)?;
    fabric.connect(other, theirs, None);
    let mut endpoint = Box::new(Own::new(fabric, plan, first));
    endpoint.admit(other, first)?;
    Ok(endpoint)
}

fn main() -> Result<(), Box<dyn Error>> {
    let plan = weft::node::plan(&Cluster::default())?;
    let memory =
        [NodeMemory::create("zero", plan.layout())?, NodeMemory::create("one", plan.layout())?];
    let (mut alice, mut bob) = (endpoint(&plan, &memory, 0)?, endpoint(&plan, &memory, 1)?);

    let now = Instant(weft::clock::now_ns());
    alice.put(Peer(1), 0, b"through your memory")?;
    while alice.poll_event() != Some(Event::Put { to: Peer(1), count: 1, left: 0 }) {
        alice.poll(now);
    }
    bob.poll(now);
    let message = bob.take(now).ok_or("it has landed")?;
    println!("{}", String::from_utf8_lossy(message.payload));
    let receipt = message.receipt;
    bob.release(receipt)?;
    Ok(())
}
