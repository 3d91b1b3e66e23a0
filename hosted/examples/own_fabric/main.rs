//! A fabric of your own: what to implement, how to check it, and a message over it. The port's
//! contract is `weft::core::fabric`; here the peers are in this process.
//!
//! ```text
//!   main.rs     the conformance suite over the fabric, then the mailbox
//!   suite.rs    what the suite must know of it
//!   fabric.rs   the port: post, poll, memory, fence, admit
//!   net.rs      what the endpoints share: memory, and who has admitted whom
//!   memory.rs   regions, and what an operation does to them
//! ```
//!
//! ```sh
//! cargo run --release --example own_fabric
//! ```
//!
//! As tests, the suite is one line: `weft::core::fabric_conformance!(Trio::new(&layout()));`. Your
//! crate depends on `weft-core` with the feature `conformance` for that.

mod fabric;
mod memory;
mod net;
mod suite;

use std::error::Error;

use net::PEERS;
use suite::Trio;
use weft::core::endpoint::{Endpoint, Plan};
use weft::core::fabric::conformance::{cases, layout};
use weft::core::ids::{Incarnation, Peer};
use weft::core::time::{Duration, Instant};
use weft::core::{lane, mailbox};

fn main() -> Result<(), Box<dyn Error>> {
    let cases = cases::<Trio>();
    cases.iter().for_each(|(_, case)| case(&mut Trio::new(&layout())));
    println!("{} cases of the contract hold", cases.len());

    let sizes = mailbox::Config::new(PEERS as u16, 16, 64, Duration::from_millis(1))?;
    let plan = Plan::new(sizes, lane::Config::new(PEERS as u16, 8, 64)?)?;
    let mut fabrics = Trio::new(plan.layout()).0.into_iter();
    let mut next =
        || fabrics.next().map(|it| Endpoint::<_, 16, PEERS>::new(it, &plan, Incarnation(1)));
    let (mut alice, mut bob) = next().zip(next()).ok_or("there are three")?;

    alice.admit(Peer(1), Incarnation(1))?;
    bob.admit(Peer(0), Incarnation(1))?;
    let now = Instant(0);
    alice.put(Peer(1), 0, b"over your own fabric")?;
    while alice.outbox(Peer(1))?.staged() > 0 {
        alice.poll(now);
    }
    bob.poll(now);
    let message = bob.take(now).ok_or("it has landed")?;
    println!("{}", String::from_utf8_lossy(message.payload));
    Ok(())
}
