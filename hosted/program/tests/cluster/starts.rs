//! Components and nodes that cannot start: tried again later each time, with the cause and the
//! cure reported, and back as soon as it is mended.

use std::fs;
use std::path::{Path, PathBuf};

use weft::node::chronicle::What;
use weft::node::control::NodeState;

use crate::isolation::await_manager;
use crate::place::{Nodes, Place, eventually};

/// As patient with a clone as may be, so that the cluster leaves the node to its supervisor.
const CLUSTER: &str = "name = \"t\"\nnodes = 3\ndirnet.timing.clone_ms = 20000\n";

/// Puts a directory where the file was: no user, whatever the rights, can open it to write.
fn block(path: &Path) -> PathBuf {
    let aside = path.with_extension("aside");
    fs::rename(path, &aside).expect("the file is there");
    fs::create_dir(path).expect("nothing is in its place");
    aside
}

/// Why the component of `rank` could not be started, each time, with the cure.
fn failures(nodes: &Nodes, rank: u16) -> Vec<(String, String)> {
    let entries = nodes.client(rank).whole_chronicle(Some(rank), 0).expect("a chronicle");
    let failed = entries.into_iter().filter_map(|entry| match entry.what {
        What::Failed { cause, cure } => Some((cause, cure)),
        _ => None,
    });
    failed.collect()
}

#[test]
fn a_component_that_cannot_start_is_tried_again_and_comes_back_when_that_is_mended() {
    let place = Place::new();
    let (_up, nodes) = place.up(&place.file("t.toml", CLUSTER));
    await_manager(&nodes);
    let before = nodes.client(1).status().expect("a status");
    let term = nodes.dir.term_file(1);
    let aside = block(&term);
    nodes.client(1).kill().expect("it is alive");
    eventually("it was tried some times", || failures(&nodes, 1).len() >= 3);
    let (cause, cure) = failures(&nodes, 1).remove(0);
    assert!(cause.contains("node-1.term: Is a directory"), "{cause}");
    assert!(cure.contains("a file that this user can read and write"), "{cure}");
    let shown = place.weft("status --name t --why 1").done();
    assert!(shown.contains(&format!("component failed: {cause}; {cure}")), "{shown}");
    fs::remove_dir(&term).expect("it is empty");
    fs::rename(aside, &term).expect("nothing is in its place");
    let runs = nodes.client(1).await_joined(before.incarnation + 1, 2, crate::PATIENCE);
    let after = runs.unwrap_or_else(|error| panic!("{error}\n{}", nodes.state()));
    assert_eq!(after.supervisor_pid, before.supervisor_pid, "the node itself stays alive");
    // Waits of 10 ms that double up to a second: never more than this many.
    assert!(after.restarts <= 12, "{} restarts", after.restarts);
}

#[test]
fn one_that_is_never_mended_is_given_up_and_then_its_node_with_the_right_cure() {
    let place = Place::new();
    let (up, nodes) = place.up(&place.file("t.toml", CLUSTER));
    await_manager(&nodes);
    fs::write(nodes.dir.term_file(1), "nonsense").expect("a file can be written");
    nodes.client(1).kill().expect("it is alive");
    let why = || place.weft("status --name t --why 1").done();
    eventually("the cluster gives the node up", || why().contains("down by rule spawn-failed"));
    let said = || up.said("err");
    // The node that is started in its stead says why it cannot be.
    eventually("it says what is wrong", || {
        said().contains("weft: the notes of earlier incarnations")
    });
    let said = said();
    assert!(said.contains("so that all nodes forget all terms together"), "{said}");
    let tried = said.matches("node-1.term: its content is damaged").count();
    assert!((2..=20).contains(&tried), "{tried} times\n{said}");
}

/// No manager is left to decide anything.
#[test]
fn nodes_that_were_all_given_up_come_back_by_themselves_when_that_is_mended() {
    let place = Place::new();
    let text = "name = \"t\"\nnodes = 3\nrestart.within_s = 3\n";
    let (_up, nodes) = place.up(&place.file("t.toml", text));
    await_manager(&nodes);
    let blocked: Vec<_> = (0..3).map(|rank| nodes.dir.term_file(rank)).collect();
    let aside: Vec<_> = blocked.iter().map(|path| block(path)).collect();
    nodes.ranks().for_each(|rank| nodes.client(rank).kill().expect("it is alive"));
    let are_all = |state| {
        nodes.ranks().all(|rank| nodes.client(rank).status().expect("a status").state == state)
    };
    eventually("all are given up", || are_all(NodeState::GivenUp));
    let why = place.weft("status --name t --why 1").done();
    assert!(why.contains("component failed too often: given up for 3 s"), "{why}");
    for (path, aside) in blocked.iter().zip(aside) {
        fs::remove_dir(path).expect("it is empty");
        fs::rename(aside, path).expect("nothing is in its place");
    }
    // One that came back before may have had the others reset meanwhile.
    await_manager(&nodes);
    eventually("all run", || are_all(NodeState::Running));
    nodes.await_joined();
}

/// The others remember what it has forgotten.
#[test]
fn a_node_whose_count_of_lives_is_damaged_comes_back_as_a_later_one_and_tells() {
    let place = Place::new();
    let file = place.file("t.toml", "name = \"t\"\nnodes = 3\ndirnet.profile = \"lan\"\n");
    let (_up, nodes) = place.up(&file);
    await_manager(&nodes);
    let mut before = 0;
    for _ in 0..2 {
        before = nodes.client(1).status().expect("a status").incarnation;
        nodes.kill(1);
        let runs = nodes.client(1).await_joined(before + 1, 2, crate::PATIENCE);
        runs.unwrap_or_else(|error| panic!("{error}\n{}", nodes.state()));
        await_manager(&nodes);
    }
    fs::write(nodes.dir.incarnation_file(1), "seven").expect("a file can be written");
    nodes.kill(1);
    let runs = nodes.client(1).await_joined(before + 2, 2, crate::PATIENCE);
    runs.unwrap_or_else(|error| panic!("{error}\n{}", nodes.state()));
    let why = place.weft("status --name t --why 1").done();
    assert!(why.contains("its note of the last incarnation is damaged"), "{why}");
}

/// Its clone is expected for many seconds, and the node dies: that is not waited for.
#[test]
fn a_node_that_dies_while_its_clone_is_expected_is_missed() {
    let place = Place::new();
    let (_up, nodes) = place.up(&place.file("t.toml", CLUSTER));
    await_manager(&nodes);
    let before = nodes.client(1).status().expect("a status").incarnation;
    let term = nodes.dir.term_file(1);
    let aside = block(&term);
    nodes.client(1).kill().expect("it is alive");
    let why = || place.weft("status --name t --why 1").done();
    eventually("a clone is asked for", || why().contains("component down by rule"));
    nodes.kill(1);
    fs::remove_dir(&term).expect("it is empty");
    fs::rename(aside, &term).expect("nothing is in its place");
    let runs = nodes.client(1).await_joined(before + 1, 2, crate::PATIENCE);
    runs.unwrap_or_else(|error| panic!("{error}\n{}", nodes.state()));
    let why = why();
    assert!(why.contains("node down by rule silence"), "{why}");
    assert!(!why.contains("never-joined"), "{why}");
}
