//! Two processes without a node: one call at each end of a socket has them share memory, and the
//! loop is yours. What a `Member` does besides (failure detection, restarts) is yours as well.
//!
//! ```sh
//! cargo run --release --example own_loop
//! ```

use std::error::Error;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::Duration;

use weft::cluster::Cluster;
use weft::core::endpoint::{Event, Plan};
use weft::core::ids::Peer;
use weft::core::time::Instant;
use weft::packet::Socket;
use weft::shm::{Wait, meet};

const PATIENCE: Duration = Duration::from_secs(10);

fn now() -> Instant {
    Instant(weft::clock::now_ns())
}

fn main() -> Result<(), Box<dyn Error>> {
    let plan = weft::node::plan(&Cluster { nodes: 2, ..Cluster::default() })?;
    // The other process is this program again; its end of the socket is its standard input.
    if std::env::args().nth(1).as_deref() == Some("bob") {
        return bob(&plan, &Socket::from_fd(std::io::stdin().as_fd().try_clone_to_owned()?)?);
    }
    let (ours, theirs) = Socket::pair()?;
    let mut bob = Command::new(std::env::current_exe()?);
    let mut bob = bob.arg("bob").stdin(Stdio::from(OwnedFd::from(theirs))).spawn()?;
    let put = alice(&plan, &ours);
    bob.wait()?;
    put
}

fn alice(plan: &Plan, socket: &Socket) -> Result<(), Box<dyn Error>> {
    let mut alice = meet::<1024, 2>(plan, Peer(0), socket, Wait::Yield, PATIENCE)?;
    alice.put(Peer(1), 0, b"through your memory")?;
    loop {
        alice.poll(now());
        match alice.poll_event() {
            Some(Event::Put { .. }) => return Ok(()),
            Some(event) => return Err(format!("{event:?}").into()),
            None => std::thread::yield_now(),
        }
    }
}

fn bob(plan: &Plan, socket: &Socket) -> Result<(), Box<dyn Error>> {
    let mut bob = meet::<1024, 2>(plan, Peer(1), socket, Wait::Yield, PATIENCE)?;
    loop {
        bob.poll(now());
        if let Some(message) = bob.take(now()) {
            println!("{}", String::from_utf8_lossy(message.payload));
            let receipt = message.receipt;
            return Ok(bob.release(receipt)?);
        }
        match bob.poll_event() {
            Some(event) => return Err(format!("{event:?}").into()),
            None => std::thread::yield_now(),
        }
    }
}
