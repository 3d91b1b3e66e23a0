//! The replicated database outlives the processes that hold it, all of them at once, too.

use std::fs;

use weft::node::control::{EntryStatus, NodeState};

use crate::place::{Nodes, Place, eventually};

/// Node 0 has a task that runs on whatever is reported of it.
const CLUSTER: &str = "name = \"t\"\nnodes = 3\nrestart.max = 10\nrestart.within_s = 60\n\
                       [[task]]\nname = \"job\"\nnodes = [0]\nprogram = \"sleep\"\n\
                       args = [\"1000\"]\n";

/// Whether nodes 0 and 1 have a manager, and know of the three errors and that node 2 is isolated.
fn is_known(nodes: &Nodes) -> bool {
    let errors = vec![EntryStatus { node: 0, errors: 3, task_errors: vec![3] }];
    let status = [0, 1].map(|rank| nodes.client(rank).status().expect("a status").dirnet);
    let [Some(one), Some(other)] = status else { return false };
    let roles = [one.role.as_str(), other.role.as_str()];
    ["manager", "backup"].iter().all(|role| roles.contains(role))
        && [one, other].iter().all(|it| it.database == errors && it.isolated == [2])
}

/// A cluster of three with three errors and a mark in its database.
fn marked(place: &Place) -> (crate::place::Running, Nodes) {
    let (up, nodes) = place.up(&place.file("t.toml", CLUSTER));
    eventually("all follow a manager", || {
        nodes.ranks().all(|rank| {
            let dirnet = nodes.client(rank).status().expect("a status").dirnet;
            dirnet.is_some_and(|it| ["manager", "backup"].contains(&it.role.as_str()))
        })
    });
    for error in [7, 8, 9] {
        place.weft(&format!("report --name t --node 0 --task job --error {error}")).done();
    }
    place.weft("isolate 2 --name t --wait 60").done();
    eventually("node 2 is quiet", || {
        nodes.client(2).status().expect("a status").state == NodeState::Isolated
    });
    eventually("it is in the database", || is_known(&nodes));
    (up, nodes)
}

#[test]
fn all_components_are_killed_at_once_and_nothing_is_lost() {
    let place = Place::new();
    let (_up, nodes) = marked(&place);
    let before = [0, 1].map(|rank| nodes.client(rank).status().expect("a status").incarnation);
    place.kill(&["component"]);
    eventually("both have others", || {
        [0, 1].iter().zip(before).all(|(rank, before)| {
            let status = nodes.client(*rank).status().expect("a status");
            status.incarnation > before && status.state == NodeState::Running
        })
    });
    eventually("it is in the database", || is_known(&nodes));
    assert_eq!(nodes.client(2).status().expect("a status").state, NodeState::Isolated);
    place.weft("release 2 --name t --wait 60").done();
    nodes.await_joined();
}

/// What one has saved is damaged: it is refused, counted, and had from the other.
#[test]
fn a_damaged_copy_is_refused_and_asked_for() {
    let place = Place::new();
    let (_up, nodes) = marked(&place);
    let path = place.runtime_dir().join("t/node-1.database");
    let mut bytes = fs::read(&path).expect("it was saved");
    // All but the numbers of the two, which lie at their beginnings.
    let half = 8 + weft_core::dirnet::SNAPSHOT_LEN_MAX;
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte ^= u8::from(at % half == 100);
    }
    fs::write(&path, bytes).expect("ours");
    nodes.client(1).kill().expect("it runs");
    eventually("the damage is seen", || {
        let dirnet = nodes.client(1).status().expect("a status").dirnet;
        dirnet.is_some_and(|it| it.refused.contains_key("image-checksum"))
    });
    eventually("it is had from the other", || is_known(&nodes));
}

/// The next life of a node goes on with what the last one had saved on this host.
#[test]
fn a_node_that_is_started_again_goes_on_with_its_record() {
    let place = Place::new();
    let (_up, nodes) = marked(&place);
    place.weft("release 2 --name t --wait 60").done();
    nodes.await_joined();
    place.weft("inject node 0 --name t --wait 60").done();
    nodes.await_joined();
    let errors = [EntryStatus { node: 0, errors: 3, task_errors: vec![3] }];
    eventually("all know of the next life and of the errors", || {
        nodes.ranks().all(|rank| {
            let status = nodes.client(rank).status().expect("a status");
            let its = if rank == 0 {
                Some(status.incarnation)
            } else {
                status.peers.iter().find(|peer| peer.rank == 0).and_then(|peer| peer.incarnation)
            };
            its > Some(1) && status.dirnet.is_some_and(|dirnet| dirnet.database == errors)
        })
    });
}
