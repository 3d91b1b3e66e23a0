//! Components that hang before their I'm-Alive Tasks watch them are found and replaced as well.

use weft::client::ClientError;
use weft::node::control::{Fault, Refused};

use crate::isolation::await_manager;
use crate::place::{Nodes, Place, eventually};

const CLUSTER: &str = "name = \"t\"\nnodes = 3\n[restart]\nmax = 1000\n";

/// Waits until the node runs in a later incarnation, and the cluster is complete.
fn await_next_life(nodes: &Nodes, rank: u16, before: u32) {
    let runs = nodes.client(rank).await_running(before + 1, crate::PATIENCE);
    runs.unwrap_or_else(|error| panic!("{error}\n{}", nodes.state()));
    nodes.await_joined();
    await_manager(nodes);
}

/// The order is the first message to the clone, so it never greets any peer.
#[test]
fn a_clone_that_hangs_as_soon_as_it_is_ready_is_replaced() {
    let place = Place::new();
    let (_up, nodes) = place.up(&place.file("t.toml", CLUSTER));
    await_manager(&nodes);
    let before = nodes.client(1).status().expect("a status").incarnation;
    let mut client = nodes.client(1);
    client.kill().expect("it is alive");
    eventually("the clone hears it", || match client.inject(Fault::Hang) {
        // What was killed has taken the order along.
        Err(ClientError::Refused { reason: Refused::ComponentLost, .. }) => false,
        ordered => ordered.is_ok(),
    });
    await_next_life(&nodes, 1, before + 1);
}

#[test]
fn nodes_that_hang_at_once_after_start_are_found_and_come_back() {
    let place = Place::new();
    let file = place.file("t.toml", CLUSTER);
    let _up = place.start(&format!("up --name t {file}"), "");
    let nodes = place.find();
    for rank in [1, 2] {
        nodes.client(rank).inject(Fault::Hang).expect("the component hears it");
    }
    for rank in [1, 2] {
        await_next_life(&nodes, rank, 1);
    }
}
