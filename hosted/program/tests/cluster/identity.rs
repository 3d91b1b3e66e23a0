//! A cluster whose directory was removed while it runs, and another of its name.

use std::fs;

use crate::place::Place;

/// The first ends, and says why; the second is not touched.
#[test]
fn a_cluster_whose_directory_was_removed_ends_beside_the_next_of_its_name() {
    let place = Place::new();
    let file = place.file("t.toml", "name = \"t\"\nnodes = 3\n");
    let (first, _) = place.up(&file);
    fs::remove_dir_all(place.runtime_dir().join("t")).expect("ours");
    let (second, nodes) = place.up_calm(3);
    let ended = first.wait();
    assert_eq!(ended.status, Some(40), "{}", ended.err);
    assert!(ended.err.contains("was removed while the cluster ran"), "{}", ended.err);
    nodes.assert_unharmed();
    assert_eq!(nodes.client(0).status().expect("a status").incarnation, 1);
    place.weft("down --name t").done();
    second.wait().done();
    place.assert_nothing_left();
}

#[test]
fn nodes_by_hand_end_when_their_directory_is_removed() {
    let place = Place::new();
    let file = place.file("t.toml", "name = \"t\"\nnodes = 2\n");
    let node = |rank| place.start(&format!("node {file} --rank {rank} --json"), "");
    let running = [node(0), node(1)];
    place.find().await_joined();
    fs::remove_dir_all(place.runtime_dir().join("t")).expect("ours");
    for node in running {
        node.wait().refused(40, "runtime_dir");
    }
    place.await_no_process();
}
