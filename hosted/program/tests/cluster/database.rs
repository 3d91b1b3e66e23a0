//! The replicated database outlives the processes that hold it, all of them at once, too.

use std::fs;

use weft::node::control::{EntryStatus, Fault, NodeState};
use weft::process::{Pid, Pidfd, Signal};

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
            dirnet.is_some_and(|it| it.is_member())
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

/// The copy of one node is damaged or lost: it is counted, reported, and read from another.
#[test]
fn a_damaged_copy_is_refused_and_asked_for() {
    let place = Place::new();
    let (_up, nodes) = marked(&place);
    let path = place.runtime_dir().join("t/node-1.database");
    let flipped = |mut bytes: Vec<u8>| {
        // All but the numbers of the two, which lie at their beginnings.
        let half = 8 + weft_core::dirnet::SNAPSHOT_LEN_MAX;
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte ^= u8::from(at % half == 100);
        }
        bytes
    };
    type Damage<'a> = (&'a dyn Fn(Vec<u8>) -> Vec<u8>, &'a str, &'a str);
    let damages: [Damage<'_>; 3] = [
        (&flipped, "image-checksum", "saved is damaged"),
        (&|_| Vec::new(), "image-missing", "saved is empty or gone"),
        (&|bytes| vec![0xA5; bytes.len()], "image-count", "saved is damaged"),
    ];
    for (damage, counted, reply) in damages {
        let before = nodes.client(1).status().expect("a status");
        let component = before.component_pid.and_then(Pid::from_raw).expect("it runs");
        let component = Pidfd::open(component).expect("it runs");
        // It saves nothing more.
        component.signal(Signal::STOP).expect("a process of this user");
        fs::write(&path, damage(fs::read(&path).expect("it was saved"))).expect("ours");
        component.kill().expect("a process of this user");
        eventually("the damage is counted", || {
            let status = nodes.client(1).status().expect("a status");
            let refused = status.dirnet.is_some_and(|it| it.refused.contains_key(counted));
            status.incarnation > before.incarnation && refused
        });
        let why = place.weft("status --why 1 --name t").done();
        assert!(why.contains(reply), "{why}");
        eventually("it is had from the other", || is_known(&nodes));
    }
}

/// The next incarnation of a node continues with what the last one saved on this host.
#[test]
fn a_node_that_is_started_again_goes_on_with_its_record() {
    let place = Place::new();
    let (_up, nodes) = marked(&place);
    place.weft("release 2 --name t --wait 60").done();
    nodes.await_joined();
    place.weft("inject node 0 --name t --wait 60").done();
    nodes.await_joined();
    let errors = [EntryStatus { node: 0, errors: 3, task_errors: vec![3] }];
    eventually("all know of the next incarnation and of the errors", || {
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

/// How many errors of node 0 the database of each node holds.
fn counted(nodes: &Nodes) -> Vec<u32> {
    let count = |rank| {
        let dirnet = nodes.client(rank).status().expect("a status").dirnet;
        let entries = dirnet.map(|dirnet| dirnet.database).unwrap_or_default();
        entries.iter().find(|entry| entry.node == 0).map_or(0, |entry| entry.errors)
    };
    nodes.ranks().map(count).collect()
}

/// The component dies with errors on their way to it, before or after it has saved them.
#[test]
fn errors_reported_right_before_a_kill_are_neither_lost_nor_repeated() {
    const ROUNDS: u16 = 20;
    let place = Place::new();
    // So many in so short a time are no reason to reset the node.
    let patient = CLUSTER.replace("restart.max = 10\nrestart.within_s = 60", "restart.max = 10000");
    let (_up, nodes) = place.up(&place.file("t.toml", patient));
    for round in 0..ROUNDS {
        let mut client = nodes.client(0);
        let before = client.status().expect("a status").incarnation;
        for error in 0..3 {
            client.report("job", 3 * round + error).expect("a task");
        }
        client.kill().expect("it runs");
        eventually("it is back", || {
            let status = nodes.client(0).status().expect("a status");
            status.incarnation > before && status.state == NodeState::Running
        });
    }
    let all = 3 * u32::from(ROUNDS);
    eventually("each is in every database", || counted(&nodes) == [all; 3]);
    let task = nodes.client(0).status().expect("a status").tasks.remove(0);
    assert_eq!((task.errors, task.unrecorded), (u64::from(all), 0));
}

/// While the component hangs, more are reported than can wait for it.
#[test]
fn errors_that_cannot_wait_are_counted() {
    let place = Place::new();
    let (_up, nodes) = place.up(&place.file("t.toml", CLUSTER));
    nodes.client(0).inject(Fault::Hang).expect("it runs");
    let mut client = nodes.client(0);
    for error in 0..200 {
        client.report("job", error).expect("a task");
    }
    eventually("each is in every database, or counted as lost to it", || {
        let task = nodes.client(0).status().expect("a status").tasks.remove(0);
        let recorded = u32::try_from(200 - task.unrecorded).expect("not more than there were");
        counted(&nodes) == [recorded; 3]
    });
}
