//! Nodes that die while no manager can decide about them: they restart all the same.

use std::time::Duration;

use crate::isolation::await_manager;
use crate::place::{Place, eventually};

/// Clones have less time than usual, and nodes wait half as long again for a decision. They may die
/// as often as they do here.
fn file(place: &Place, nodes: u16) -> String {
    let text = format!("name = \"t\"\nnodes = {nodes}\ndirnet.timing.clone_ms = 5000\n");
    place.file("t.toml", text + "dirnet.reset = { max = 20, within_s = 3600 }\n")
}

/// One that is left alone may not take the silence of all others for their end (G-11).
#[test]
fn all_nodes_but_one_die_and_come_back() {
    let place = Place::new();
    let (up, nodes) = place.up(&file(&place, 4));
    await_manager(&nodes);
    for rank in [0, 1, 3] {
        nodes.kill(rank);
    }
    nodes.await_joined();
    await_manager(&nodes);
    place.weft_with("put --name t --from 2 --to 0", "still here\n").done();
    assert_eq!(place.weft("get --name t --node 0 --count 1").done(), "still here\n");
    assert!(up.said("out").contains("is started again by the launcher"), "{}", up.said("out"));
}

#[test]
fn a_cluster_whose_nodes_have_all_died_runs_again() {
    let place = Place::new();
    let (up, nodes) = place.up(&file(&place, 2));
    nodes.kill(0);
    nodes.kill(1);
    nodes.await_joined();
    place.weft("down --name t").done();
    up.wait().done();
    place.assert_nothing_left();
}

/// An incarnation that no peer has met ends before any manager can decide about it.
#[test]
fn a_node_that_dies_again_as_soon_as_it_is_started_comes_back() {
    let place = Place::new();
    let (_up, nodes) = place.up(&file(&place, 3));
    await_manager(&nodes);
    for _ in 0..3 {
        nodes.kill(1);
    }
    nodes.await_joined();
    await_manager(&nodes);
}

/// No member may succeed the manager here: it is reset, and its node is restarted all the same.
#[test]
fn agents_are_named_as_such_and_decide_nothing() {
    let place = Place::new();
    let text = "name = \"t\"\nnodes = 3\ndirnet.timing.clone_ms = 5000\n".to_owned()
        + "dirnet.roles = [\"agent\", \"manager\", \"agent\"]\n";
    let (up, nodes) = place.up(&place.file("t.toml", text));
    assert!(
        up.said("out").contains("so no node can decide while node 1 is down"),
        "{}",
        up.said("out")
    );
    let role = |rank| nodes.client(rank).status().expect("a status").dirnet.map(|it| it.role);
    let roles = || [0, 1, 2].map(role).map(Option::unwrap_or_default);
    eventually("each is what the file says", || roles() == ["agent", "manager", "agent"]);
    nodes.kill(1);
    nodes.await_joined();
    eventually("it decides again", || roles() == ["agent", "manager", "agent"]);
}

#[test]
fn a_status_says_why_nobody_decides() {
    let place = Place::new();
    let text = "name = \"t\"\nnodes = 3\ndirnet.min_alive = 3\n";
    let (_up, nodes) = place.up(&place.file("t.toml", text));
    await_manager(&nodes);
    assert!(!place.weft("status --name t").done().contains("silent nodes are not decided about"));
    nodes.kill(2);
    eventually("it is said", || {
        let shown = place.weft("status --name t").done();
        shown.contains("hears 2 of 3 nodes, itself included, and `dirnet.min_alive` is 3\n")
    });
}

/// Here the task would wait for an answer for a quarter of an hour.
#[test]
fn a_component_that_dies_where_nobody_is_reached_is_started_again_at_once_and_that_is_told() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    await_manager(&nodes);
    place.weft("inject partition 1 --name t").done();
    place.weft("inject kill 1 --name t --wait 0").done();
    eventually("it learns which process has started it", || {
        let why = place.weft("status --why 1 --name t").done();
        why.contains("no other component can be reached: it starts its next one itself")
    });
    place.weft("inject heal --name t").done();
    nodes.await_joined();
}

#[test]
fn all_components_die_at_once_and_the_next_ones_meet() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(4);
    await_manager(&nodes);
    place.kill(&["component"]);
    for rank in nodes.ranks() {
        let joined = nodes.client(rank).await_joined(2, 3, Duration::from_secs(30));
        joined.unwrap_or_else(|error| panic!("{error}\n{}", nodes.state()));
    }
}
