//! What a node has concluded, and from what, is known when that node is gone.

use weft::node::chronicle::What;

use crate::isolation::await_manager;
use crate::place::{Nodes, Place, eventually};

/// How often node 0 is said to have concluded that the component of node 2 was down.
fn verdicts_shown(place: &Place) -> usize {
    let why = place.weft("status --name t --why 2 --patience 0 --json").object();
    let noted = why["noted"].as_array().expect("a list");
    let is_it = |it: &&serde_json::Value| {
        let text = it["text"].as_str().unwrap_or_default();
        it["observer"] == 0 && text.starts_with("component down by rule alarm")
    };
    noted.iter().filter(is_it).count()
}

/// Whether node `rank` knows the conclusion of node 0.
fn has_heard(nodes: &Nodes, rank: u16) -> bool {
    let (copies, dropped) = nodes.client(rank).whole_evidence(Some(2)).expect("evidence");
    assert_eq!(dropped, 0);
    let is_verdict = |what: &What| matches!(what, What::Verdict(_));
    copies.iter().any(|it| it.entry.observer == 0 && is_verdict(&it.entry.what))
}

#[test]
fn what_a_manager_concluded_is_known_when_its_node_is_gone_and_when_it_is_back() {
    let place = Place::new();
    let file = place.file("t.toml", "name = \"t\"\nnodes = 4\ndirnet.profile = \"lan\"\n");
    let (_up, nodes) = place.up(&file);
    await_manager(&nodes);
    place.weft("inject kill 2 --name t").done();
    eventually("it is concluded", || verdicts_shown(&place) == 1);
    eventually("all others know it", || [1, 2, 3].iter().all(|rank| has_heard(&nodes, *rank)));
    let before = nodes.client(0).status().expect("a status").incarnation;
    nodes.kill(0);
    assert_eq!(verdicts_shown(&place), 1);
    let back = nodes.client(0).await_joined(before + 1, 3, crate::PATIENCE);
    back.unwrap_or_else(|error| panic!("{error}\n{}", nodes.state()));
    assert_eq!(verdicts_shown(&place), 1);
}
