//! Signed broadcasts across real processes: an equivocation is proven, and the proof is valid
//! wherever it is taken.

use std::fs;

use serde_json::Value;

use crate::place::{Nodes, Place, Running, eventually};

const CLUSTER: &str = "name = \"t\"\nnodes = 4\n[neb]\nform = \"signed\"\n";

fn up(place: &Place) -> (Running, Nodes) {
    let file = place.file("signed.toml", CLUSTER);
    place.up(&file)
}

/// The key of `origin` as node `rank` knows it.
fn key_at(nodes: &Nodes, rank: u16, origin: usize) -> Option<String> {
    let status = nodes.client(rank).status().expect("a status");
    let key = status.broadcasts.get(origin)?.key?;
    Some(key.to_string())
}

/// Has node 1 lie; a node that can prove it.
fn lie(place: &Place, nodes: &Nodes) -> (u16, Value) {
    let reply = place.weft("inject equivocate 1 --name t --json").object();
    (nodes.await_proof(1), reply)
}

#[test]
fn messages_of_every_length_that_is_allowed_arrive() {
    let text = "weft ".repeat(4_000);
    for len in [1024, 4065, 4096] {
        let place = Place::new();
        let cluster = format!("{CLUSTER}message_len = {len}\n");
        let (_up, _nodes) = place.up(&place.file("long.toml", cluster));
        place.weft_with("bcast --neb --from 0 --name t", &text).done();
        let heard = place.weft("bcast --neb --receive --node 1 --name t").done();
        assert!(heard == text, "{len}: {} bytes of {}", heard.len(), text.len());
        let lie = place.weft("inject equivocate 1 --name t --json").object();
        assert_eq!(lie["ok"], true, "{len}: {lie}");
    }
}

#[test]
fn an_equivocation_is_proven_to_a_third_party() {
    let place = Place::new();
    let (_up, nodes) = up(&place);
    place.weft_with("bcast --neb --from 1 --name t", "the truth").done();
    let (holder, reply) = lie(&place, &nodes);
    let status = place.weft("status --name t").done();
    assert!(status.contains("broadcasts, signed\n"), "{status}");
    assert!(status.contains("weft neb proof --node"), "{status}");
    // A receiver of the liar's messages gets its name, and how to prove it.
    let line = format!("bcast --neb --receive --node {holder} --origin 1 --name t");
    assert_eq!(place.weft(&line).done(), "the truth");
    let refused = place.weft(&format!("{line} --json")).refused(34, "conflict");
    assert!(refused.starts_with("node 1 lies: it has signed two different messages"), "{refused}");
    let how = format!("`weft neb proof --node {holder} --origin 1`");
    assert!(refused.contains(&how), "{refused}");
    // The proof is the supervisor's: it outlives the component that found it.
    nodes.client(holder).kill().expect("it runs");
    nodes.await_joined();
    let file = place.file("proof", "");
    let held = place.weft(&format!("neb proof --node {holder} --output {file} --name t --json"));
    assert_eq!(
        (&held.object()["seq"], place.weft("neb proof --node 1 --name t").status),
        (&reply["seq"], Some(22))
    );
    // The clone counts again, and has the keys, soon after it is greeted.
    let mut keys = Vec::new();
    eventually("all know the key of node 1", || {
        keys = (0..4).filter_map(|rank| key_at(&nodes, rank, 1)).collect();
        keys.len() == 4
    });
    let key = keys.remove(0);
    assert!(keys.iter().all(|other| *other == key), "{key} and {keys:?}");
    let verdict = place.weft(&format!("neb verify {file} --key {key} --json")).object();
    assert_eq!((&verdict["origin"], &verdict["seq"]), (&1.into(), &reply["seq"]), "{verdict}");
    assert_eq!((&verdict["equivocated"], &verdict["key"]), (&true.into(), &key.clone().into()));
    let said = |at: usize| verdict["statements"][at]["sha256"].clone();
    assert_ne!(said(0), said(1));
    let text = place.weft(&format!("neb verify {file}")).done();
    let piped = place.start_changed("neb verify -", "", |command| {
        command.stdin(fs::File::open(&file).expect("it was written"))
    });
    assert_eq!(piped.wait().done(), text);
    assert!(text.contains("node 1 has signed two different messages"), "{text}");
    assert!(place.weft("status --why 1 --name t").done().contains("proven"));

    let verify = |name: &str, bytes: &[u8], more: &str| {
        let file = place.file(name, bytes);
        place.weft(&format!("neb verify {file} {more} --json")).refused(35, "proof_invalid")
    };
    let proof = fs::read(&file).expect("it was written");
    assert!(verify("cut", &proof[..proof.len() - 1], "").contains("cut off"));
    let mut newer = proof.clone();
    newer[8] = 9;
    assert!(verify("newer", &newer, "").contains("version 9"));
    let mut forged = proof.clone();
    let last = forged.len() - 1;
    forged[last] ^= 1;
    assert!(verify("forged", &forged, "").contains("not signed"));
    let len = usize::from(u16::from_le_bytes([proof[70], proof[71]]));
    let (head, one) = (&proof[..62], &proof[62..62 + 10 + len + 64]);
    let same = [head, one, one].concat();
    assert!(verify("same", &same, "").contains("are the same"));
    let other = key_at(&nodes, 0, 2).expect("every node has one");
    assert!(verify("other", &proof, &format!("--key {other}")).contains("another key"));
    assert!(verify("noise", b"no proof at all", "").contains("no proof"));
    place.weft(&format!("neb verify {file} --key 00 --json")).refused(2, "usage");
    place.weft("neb verify /no/such/file --json").refused(22, "input_missing");
}

#[test]
fn signed_messages_outlive_the_components_of_their_origin() {
    let place = Place::new();
    let (_up, nodes) = up(&place);
    let mut keys = Vec::new();
    eventually("all agree on all keys", || {
        keys = (0..4).map(|origin| key_at(&nodes, 3, origin)).collect::<Vec<_>>();
        keys.iter().all(Option::is_some)
    });
    let text = "a line of some length\n".repeat(20_000);
    let file = place.file("long", &text);
    let listen = |rank: &u16| {
        place.start(&format!("bcast --neb --receive --node {rank} --name t --json"), "")
    };
    let listeners: Vec<_> = [1, 2, 3].iter().map(listen).collect();
    let sender = place.start(&format!("bcast --neb {file} --from 0 --name t --json"), "");
    eventually("the broadcast goes on", || nodes.origin(3, 0).delivered > 200);
    nodes.client(0).kill().expect("it runs");
    nodes.client(2).kill().expect("it runs");
    let sent = sender.wait().object();
    for listener in listeners {
        let heard = listener.wait().object();
        assert_eq!(heard["sha256"], sent["sha256"], "{heard}");
    }
    nodes.await_joined();
    let after: Vec<_> = (0..4).map(|origin| key_at(&nodes, 3, origin)).collect();
    assert_eq!(after, keys, "a key lasts as long as the memory with the messages that it signed");
    let status = nodes.client(3).status().expect("a status");
    assert!(status.proofs.is_empty());
    assert_eq!(nodes.origin(3, 0).conflicts, 0);
}

#[test]
fn an_unsigned_cluster_has_neither_keys_nor_proofs() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 3");
    place.weft("inject equivocate 1 --name t").done();
    assert_eq!(key_at(&nodes, 0, 1), None);
    place.weft("neb proof --node 0 --name t --json").refused(22, "input_missing");
    let status = place.weft("status --name t").done();
    assert!(
        status.contains("broadcasts, unsigned\n") && !status.contains("weft neb proof"),
        "{status}"
    );
}

#[test]
fn nodes_of_different_forms_do_not_meet() {
    let place = Place::new();
    let unsigned = place.file("t.toml", CLUSTER.replace("\"signed\"", "\"unsigned\""));
    let signed = place.file("other.toml", CLUSTER);
    let plan = |text: &str| {
        let text = fs::read_to_string(text).expect("it was written");
        let cluster = weft::cluster::Cluster::parse(&text, "t".as_ref()).expect("it parses");
        weft::node::plan(&cluster).expect("it can be laid out").layout().digest()
    };
    assert_ne!(plan(&unsigned), plan(&signed), "each other's layout is refused at the first word");
}
