//! Files of tensors between nodes: sent, received, kept, and refused.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use weft::client::{Client, SendUntil};
use weft::core::ids::Rank;
use weft::node::control::{Refused, TensorRefused, TensorState};
use weft::tensor::{SealedTensor, TensorName, TensorView};

use crate::PATIENCE;
use crate::place::{CALM, Nodes, Place, Running, eventually};

/// A cluster of two nodes with pools of a MiB and these lines in its rendezvous.
fn up(place: &Place, lines: &str) -> (Running, Nodes) {
    let text = format!("name = \"t\"\nnodes = 2\n[rendezvous]\npool_mib = 1\n{lines}{CALM}");
    place.up(&place.file("t.toml", text))
}

fn python(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name);
    path.into_os_string().into_string().expect("the path is UTF-8")
}

fn bytes(path: &str) -> Vec<u8> {
    fs::read(path).expect("it is there")
}

/// The path of a file with these bytes as tensors, each with its name and length, one behind the
/// other.
fn safetensors(
    place: &Place,
    file: &str,
    tensors: impl Iterator<Item = (impl std::fmt::Display, usize)>,
    data: &[u8],
) -> String {
    let mut begin = 0;
    let entry = |(name, len)| {
        let end = begin + len;
        let what = format!(r#""dtype":"U8","shape":[{len}],"data_offsets":[{begin},{end}]"#);
        begin = end;
        format!("\"{name}\":{{{what}}}")
    };
    let header = format!("{{{}}}", tensors.map(entry).collect::<Vec<_>>().join(","));
    let len = (header.len() as u64).to_le_bytes();
    place.file(file, [&len, header.as_bytes(), data].concat())
}

fn kept(nodes: &Nodes, rank: u16) -> Vec<(String, TensorState)> {
    let list = nodes.client(rank).tensors().expect("a list");
    list.kept.into_iter().map(|it| (it.key.edge, it.state)).collect()
}

const fn name(edge: &str, step: i64) -> TensorName<'_> {
    TensorName { edge, step }
}

fn ones(len: usize) -> SealedTensor {
    let ones = vec![1_u8; len];
    let view = TensorView::of(&[len as u64], &ones).expect("a tensor");
    SealedTensor::copy_of(view).expect("memory")
}

fn refused<T: std::fmt::Debug>(asked: Result<T, weft::client::ClientError>) -> TensorRefused {
    match asked {
        Err(weft::client::ClientError::Refused { reason: Refused::Tensor(why), .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rz20_files_of_python_arrive_byte_for_byte_in_either_order() {
    let place = Place::new();
    let (_up, nodes) = up(&place, "");
    // The receive comes first, and then the send does.
    let out = place.path_of("all.safetensors");
    let line = "recv --node 1 --from 0 --step 1 --all --name t --json --timeout 60 --output";
    let receiver = place.start(&format!("{line} {out}"), "");
    eventually("it waits", || nodes.client(1).tensors().is_ok_and(|list| list.receives == 1));
    let file = python("all.safetensors");
    let sent = place.weft(&format!("send {file} --from 0 --to 1 --step 1 --wait --name t --json"));
    let sent: Value = sent.object();
    assert_eq!(sent["sent"].as_array().map(Vec::len), Some(17), "{sent}");
    let received = receiver.wait().object();
    assert_eq!((&received["tensors"], &received["bytes"]), (&16.into(), &4408.into()));
    assert_eq!(bytes(&out), bytes(&file));
    // An array, to the node itself and back into either kind; and one tensor of a file.
    for (file, edge, more) in [("f4.npy", "f4", ""), ("one.safetensors", "w", "--tensor w")] {
        for (step, output) in [(-2, "x.npy"), (3, "x.safetensors")] {
            let (file, out) = (python(file), place.path_of(output));
            let line = format!("--from 1 --step {step} --name t");
            place.weft(&format!("send {file} --to 1 {more} {line}")).done();
            let line = format!("recv --node 1 --edge {edge} {line} --output {out}");
            assert!(place.weft(&line).done().ends_with(": 24 bytes, tensors: 1\n"));
        }
        assert_eq!(bytes(&place.path_of("x.npy")), bytes(&python("f4.npy")));
    }
    // RZ-8: a dead one makes no file.
    place.weft("send --dead --edge gone --from 0 --to 1 --step 4 --name t").done();
    let out = place.path_of("gone.npy");
    let line =
        format!("recv --node 1 --from 0 --step 4 --edge gone --name t --json --output {out}");
    assert_eq!(place.weft(&line).object()["dead"], true);
    assert_eq!(place.files("gone"), [""; 0]);
    eventually("nothing is kept", || [0, 1].iter().all(|rank| kept(&nodes, *rank).is_empty()));
    nodes.assert_unharmed();
}

/// RZ-20: two files with the same names in one step: no receiver makes one of both.
#[test]
fn rz20_no_file_is_made_of_the_tensors_of_two() {
    let place = Place::new();
    let (_up, nodes) = up(&place, "");
    let file =
        |name: &str, data: &[u8]| safetensors(&place, name, [("a", 3), ("b", 3)].into_iter(), data);
    let (first, second) = (file("1.safetensors", b"abcdef"), file("2.safetensors", b"abcxyz"));
    let (out, npy) = (place.path_of("whole.safetensors"), place.path_of("b.npy"));
    let recv = |step: i64, what: &str| {
        place.weft(&format!("recv --node 1 --from 0 --step {step} --name t --json {what}"))
    };
    for file in [&first, &second] {
        place.weft(&format!("send {file} --from 0 --to 1 --step 1 --name t")).done();
    }
    recv(1, &format!("--edge b --output {npy}")).object();
    let refused = recv(1, &format!("--all --output {out}")).refused(53, "tensor_file");
    assert!(refused.contains("sent \"b\" in step 1 with other bytes"), "{refused}");
    assert_eq!(place.files("whole"), [""; 0]);
    // What it had received is with the node for the next; in another step it is whole.
    let is_there = |name: &str| kept(&nodes, 1).contains(&(name.to_owned(), TensorState::Received));
    eventually("they are given back", || ["__manifest__", "a", "b"].into_iter().all(is_there));
    place.weft(&format!("send {second} --from 0 --to 1 --step 2 --name t")).done();
    recv(2, &format!("--all --output {out}")).object();
    assert_eq!(bytes(&out), bytes(&second));
    nodes.assert_unharmed();
}

/// RZ-20, RZ-3: many more tensors than a node keeps at once, and one that is longer than the pool.
#[test]
fn rz20_a_file_of_a_thousand_tensors_arrives_while_it_is_sent() {
    const COUNT: usize = 1000;
    const LONG: usize = 5 << 20;
    let place = Place::new();
    let (_up, nodes) = up(&place, "path = \"read\"\n");
    let data: Vec<u8> = (0..4 * COUNT + LONG).map(|at| (at / 4 % 251) as u8).collect();
    let lens = std::iter::repeat_n(4, COUNT).chain([LONG]);
    let tensors = lens.enumerate().map(|(at, len)| (format!("t{at}"), len));
    let file = safetensors(&place, "many.safetensors", tensors, &data);
    let out = place.path_of("out.safetensors");
    let line = "recv --node 1 --from 0 --step 1 --all --name t --json --timeout 60 --output";
    let receiver = place.start(&format!("{line} {out}"), "");
    let line = "--from 0 --to 1 --step 1 --timeout 60 --name t --json";
    let sent = place.weft(&format!("send {file} {line}")).object();
    assert_eq!(sent["sent"].as_array().map(Vec::len), Some(COUNT + 2));
    assert_eq!(receiver.wait().object()["tensors"], COUNT + 1);
    assert_eq!(bytes(&out), bytes(&file));
    nodes.assert_unharmed();
}

/// RZ-17, RZ-20: a file that neither store can hold: its sender waits for the receiver, which
/// releases what it has written.
#[test]
fn rz20_a_file_longer_than_the_stores_arrives_while_it_is_sent() {
    const COUNT: usize = 8;
    const LEN: usize = 300_000;
    for path in ["hand_over", "read"] {
        let place = Place::new();
        let (_up, nodes) = up(&place, &format!("store_mib = 1\npath = \"{path}\"\n"));
        let data: Vec<u8> = (0..COUNT * LEN).map(|at| (at % 251) as u8).collect();
        let tensors = (0..COUNT).map(|at| (format!("t{at}"), LEN));
        let file = safetensors(&place, "long.safetensors", tensors, &data);
        let whole = place.path_of("whole.safetensors");
        let line = "--step 1 --name t --json --timeout 60";
        let receiver =
            place.start(&format!("recv --node 1 --from 0 --all {line} --output {whole}"), "");
        place.weft(&format!("send {file} --from 0 --to 1 {line}")).object();
        assert_eq!(receiver.wait().object()["tensors"], COUNT);
        assert_eq!(bytes(&whole), bytes(&file));
        nodes.assert_unharmed();
    }
}

/// RZ-4, RZ-20: a file of more tensors than a node keeps for all of its senders is sent while it is
/// received; without a receiver its manifest alone is, and others send as before.
#[test]
fn rz20_a_long_file_without_a_receiver_takes_no_place_of_others() {
    const COUNT: usize = 200;
    let place = Place::new();
    let (_up, nodes) = up(&place, "");
    let tensors = (0..COUNT).map(|at| (format!("t{at}"), 1));
    let file = safetensors(&place, "f.safetensors", tensors, &[7; COUNT]);
    let send = format!("send {file} --from 0 --to 1 --name t --json");
    let refused = place.weft(&format!("{send} --step 1 --timeout 1")).refused(30, "timeout");
    assert!(refused.contains("none of its tensors is sent"), "{refused}");
    assert_eq!(kept(&nodes, 0), [("__manifest__".to_owned(), TensorState::Sent)]);
    place.weft("tensors cleanup --step 1 --name t").done();
    let out = place.path_of("whole.safetensors");
    let line = "recv --node 1 --from 0 --step 2 --all --name t --json --timeout 60 --output";
    let receiver = place.start(&format!("{line} {out}"), "");
    place.weft(&format!("{send} --step 2 --timeout 60")).object();
    assert_eq!(receiver.wait().object()["tensors"], COUNT);
    assert_eq!(bytes(&out), bytes(&file));
    nodes.assert_unharmed();
}

/// RZ-4: more receives than its source keeps waiters for one node: the others wait here.
#[test]
fn rz4_receives_beyond_the_share_of_a_node_wait_until_there_is_room() {
    const COUNT: usize = 40;
    let place = Place::new();
    let (_up, nodes) = up(&place, "store_mib = 64\n");
    let mut sender = nodes.client(0);
    let receivers: Vec<_> = (0..COUNT)
        .map(|at| {
            let mut client = nodes.client(1);
            std::thread::spawn(move || {
                let edge = format!("e{at}");
                let received = client.receive_tensor(Rank(0), name(&edge, 1), PATIENCE);
                received.map(|it| it.tensor.map(|it| it.view().bytes().to_vec()))
            })
        })
        .collect();
    let waiting = || nodes.client(1).tensors().map(|it| it.receives).ok();
    eventually("all wait", || waiting() == Some(COUNT));
    let late = nodes.client(1).receive_tensor(Rank(0), name("none", 1), Duration::from_millis(50));
    // On a slow host the source may not have refused it by then.
    assert!(matches!(refused(late), TensorRefused::NoWaiter | TensorRefused::NotSent));
    for at in (0..COUNT).rev() {
        let one = ones(at + 1);
        sender.send_tensor(Rank(1), name(&format!("e{at}"), 1), Some(&one), KEPT).expect("room");
    }
    for (at, receiver) in receivers.into_iter().enumerate() {
        let received = receiver.join().expect("it does not panic").expect("it is sent");
        assert_eq!(received.map(|it| it.len()), Some(at + 1));
    }
    nodes.assert_unharmed();
}

/// Kills a component, and waits until the next one is a member.
fn kill(place: &Place, nodes: &Nodes, node: u16) {
    place.weft(&format!("inject kill {node} --name t")).done();
    nodes.client(node).await_joined(2, 1, PATIENCE).expect("it is back");
    eventually("it knows who else is a member", || {
        let status = nodes.client(node).status().expect("a status");
        status.dirnet.is_some_and(|it| it.view.number > 0 && !it.stale)
    });
}

/// A node that was removed sends and receives by name again, without a restart of the cluster.
#[test]
fn a_node_that_was_removed_and_returns_exchanges_tensors_again() {
    let place = Place::new();
    let text = "name = \"t\"\nnodes = 3\nrendezvous.pool_mib = 1\n";
    let (_up, nodes) = place.up(&place.file("t.toml", text));
    place.weft("inject node 1 --name t").done();
    eventually("all count its second boot", || {
        let counts = |rank| {
            let net = nodes.client(rank).status().ok().and_then(|status| status.dirnet);
            net.is_some_and(|it| it.view.members.iter().any(|it| (it.rank, it.boot) == (1, 2)))
        };
        [0, 1, 2].into_iter().all(counts)
    });
    let (file, out) = (python("f4.npy"), place.path_of("x.npy"));
    for (step, from, to) in [(1, 0, 1), (2, 1, 0)] {
        let ends = format!("--from {from} --step {step} --name t");
        place.weft(&format!("send {file} --to {to} {ends}")).done();
        place.weft(&format!("recv --node {to} --edge f4 {ends} --output {out}")).done();
        assert_eq!(bytes(&out), bytes(&file));
    }
}

#[test]
fn rz17_a_tensor_outlives_the_components_of_both_nodes() {
    let place = Place::new();
    let (_up, nodes) = up(&place, "");
    let file = python("i4.npy");
    place.weft(&format!("send {file} --from 0 --to 1 --step 1 --name t")).done();
    assert_eq!(kept(&nodes, 0), [("i4".to_owned(), TensorState::Sent)]);
    let out = place.path_of("late.npy");
    let line = "recv --node 1 --from 0 --step 2 --edge i4 --name t --timeout 60 --output";
    let receiver = place.start(&format!("{line} {out}"), "");
    let waiters = || nodes.client(0).status().ok().and_then(|it| Some(it.tensors?.waiters));
    eventually("it waits", || waiters() == Some(1));
    let text = place.weft("status --name t").done();
    assert!(text.contains("quarantined"), "{text}");
    for node in [1, 0] {
        kill(&place, &nodes, node);
    }
    // What was sent before is there for the next components, and so is the receive.
    let out = place.path_of("i4.npy");
    let line = format!("recv --node 1 --from 0 --step 1 --edge i4 --name t --output {out}");
    place.weft(&line).done();
    assert_eq!(bytes(&out), bytes(&file));
    place.weft(&format!("send {file} --from 0 --to 1 --step 2 --name t")).done();
    receiver.wait().done();
    assert_eq!(bytes(&place.path_of("late.npy")), bytes(&file));
}

#[test]
fn rz17_what_a_client_received_and_did_not_release_goes_to_the_next() {
    let place = Place::new();
    let (_up, nodes) = up(&place, "");
    let mut sender = nodes.client(0);
    let sent = sender.send_tensor(Rank(1), name("a", 1), Some(&ones(5)), KEPT).expect("room");
    let receive = |client: &mut Client| client.receive_tensor(Rank(0), name("a", 1), PATIENCE);
    let mut first = nodes.client(1);
    let received = receive(&mut first).expect("it is sent");
    assert_eq!(received.tensor.expect("it lives").view(), ones(5).view());
    assert_eq!(kept(&nodes, 1), [("a".to_owned(), TensorState::Held)]);
    eventually("its source drops it", || kept(&nodes, 0).is_empty());
    // Two receivers of one name: the second has it once the first has left.
    let mut second = nodes.client(1);
    let asking = std::thread::spawn(move || (receive(&mut second).map(|it| it.number), second));
    eventually("it waits", || nodes.client(1).tensors().is_ok_and(|list| list.receives == 1));
    drop(first);
    let (number, mut second) = asking.join().expect("it does not panic");
    let number = number.expect("it is given again");
    assert_eq!((number, sent), (received.number, 1));
    assert!(second.release_tensor(number).expect("an answer"));
    assert!(!second.release_tensor(number).expect("an answer"), "once");
    assert_eq!(kept(&nodes, 1), []);
}

const KEPT: (SendUntil, Duration) = (SendUntil::Kept, Duration::from_secs(60));
const SOON: (SendUntil, Duration) = (SendUntil::Received, Duration::from_millis(50));

#[test]
fn rz17_a_full_store_and_a_full_pool_refuse_and_the_end_of_a_step_makes_room() {
    let place = Place::new();
    let (_up, nodes) = up(&place, "store_mib = 1\npath = \"read\"\n");
    let mut client = nodes.client(0);
    // Each takes half of the pool: a piece is a power of two.
    let half = ones((1 << 18) + 1);
    for (edge, step) in [("a", 1), ("b", 2)] {
        client.send_tensor(Rank(1), name(edge, step), Some(&half), KEPT).expect("room");
    }
    let used = client.status().expect("an answer").tensors.expect("there is a rendezvous");
    assert_eq!((used.kept, used.kept_bytes, used.store_bytes), (2, (1 << 19) + 2, 1 << 20));
    assert_eq!((used.offered, used.offered_bytes, used.waiters), (2, 1 << 20, 0));
    let late = (SendUntil::Kept, Duration::from_millis(50));
    let asked = client.send_tensor(Rank(1), name("c", 2), Some(&ones(9)), late);
    assert_eq!(refused(asked), TensorRefused::NoSpace);
    let asked = client.send_tensor(Rank(1), name("c", 2), Some(&ones(1 << 20)), late);
    let full = TensorRefused::StoreFull { needed: 1 << 20, bytes: (1 << 19) + 2, limit: 1 << 20 };
    assert_eq!(refused(asked), full);
    let asked = client.send_tensor(Rank(1), name("d", 2), Some(&ones((1 << 20) + 1)), late);
    assert_eq!(refused(asked), TensorRefused::TooLong { limit: 1 << 20 });
    // A dead one takes no room.
    let asked = client.send_tensor(Rank(1), name("e", 2), None, SOON);
    assert_eq!(refused(asked), TensorRefused::NotReceived { number: 4 });
    place.weft("tensors cleanup --step 1 --name t").done();
    assert_eq!(kept(&nodes, 0).len(), 2);
    let asked = client.send_tensor(Rank(1), name("a", 1), None, KEPT);
    assert_eq!(refused(asked), TensorRefused::StepOver);
    client.send_tensor(Rank(1), name("b", 3), Some(&half), KEPT).expect("there is room again");
    let listed = place.weft("tensors ls --name t").done();
    assert!(listed.contains("0 to 1  step 3  \"b\"  u8 [262145]  262145  sent"), "{listed}");
    place.weft("tensors abort --step 3 --name t --json").object();
    let asked = nodes.client(1).receive_tensor(Rank(0), name("b", 3), PATIENCE);
    assert_eq!(refused(asked), TensorRefused::Aborted);
    assert_eq!(kept(&nodes, 0).len(), 2);
}

#[test]
fn rz2_a_receive_shows_the_memory_that_it_lends_for_a_value_as_long_as_the_last() {
    let place = Place::new();
    let (_up, nodes) = up(&place, "path = \"write\"\n");
    let (mut sender, mut receiver) = (nodes.client(0), nodes.client(1));
    let long = ones(100_000);
    sender.send_tensor(Rank(1), name("a", 1), Some(&long), KEPT).expect("room");
    receiver.receive_tensor(Rank(0), name("a", 1), PATIENCE).expect("it is sent");
    let second = std::thread::spawn(move || {
        receiver.receive_tensor(Rank(0), name("a", 2), PATIENCE).map(|it| it.tensor)
    });
    let used = || {
        let it = nodes.client(1).status().ok()?.tensors?;
        Some((it.receives, it.received_bytes, it.quarantined_bytes))
    };
    eventually("it lends a piece", || used() == Some((1, 1 << 17, 0)));
    sender.send_tensor(Rank(1), name("a", 2), Some(&long), KEPT).expect("room");
    let tensor = second.join().expect("it does not panic").expect("it is sent");
    assert_eq!(tensor.expect("it lives").view(), long.view());
    eventually("the piece is given back", || used() == Some((0, 0, 0)));
}

/// The file behind a tensor: two descriptors of one memory have the same.
fn memory(tensor: &SealedTensor) -> u64 {
    rustix::fs::fstat(tensor).expect("a descriptor").st_ino
}

fn descriptors(nodes: &Nodes, rank: u16) -> usize {
    let process = nodes.client(rank).status().expect("a status").supervisor_pid;
    fs::read_dir(format!("/proc/{process}/fd")).expect("it runs").count()
}

#[test]
fn rz18_the_memory_itself_is_handed_over_across_the_loss_of_both_components() {
    let place = Place::new();
    let (_up, nodes) = up(&place, "store_mib = 64\n");
    let before = [0, 1].map(|rank| descriptors(&nodes, rank));
    // Forty times as long as any pool.
    let long = ones(40 << 20);
    let (mut sender, mut receiver) = (nodes.client(0), nodes.client(1));
    for (step, kills) in [(1, &[][..]), (2, &[0]), (3, &[1, 0])] {
        sender.send_tensor(Rank(1), name("a", step), Some(&long), KEPT).expect("room");
        kills.iter().for_each(|node| kill(&place, &nodes, *node));
        let received = receiver.receive_tensor(Rank(0), name("a", step), PATIENCE).expect("sent");
        let tensor = received.tensor.expect("it lives");
        assert_eq!(memory(&tensor), memory(&long), "no byte was copied");
        assert_eq!(tensor.view(), long.view());
        assert!(receiver.release_tensor(received.number).expect("an answer"));
        eventually("its source drops it", || kept(&nodes, 0).is_empty());
    }
    // To the node itself, and one that its store cannot hold beside what is there.
    sender.send_tensor(Rank(0), name("own", 1), Some(&long), KEPT).expect("room");
    let own = sender.receive_tensor(Rank(0), name("own", 1), Duration::from_millis(50));
    // The receive itself has room for what comes whole.
    let full = TensorRefused::StoreFull { needed: 39 << 20, bytes: 41 << 20, limit: 64 << 20 };
    assert_eq!(refused(own), full);
    place.weft("tensors cleanup --step 1 --name t").done();
    drop((sender, receiver));
    eventually("no descriptor is left", || [0, 1].map(|rank| descriptors(&nodes, rank)) == before);
}

/// RZ-17: what has no room in a store waits for it: a tensor that is sent, and one that is
/// received, whether it is handed over or comes in parts.
#[test]
fn rz17_a_send_and_a_receive_wait_for_room_in_the_store() {
    for path in ["hand_over", "read"] {
        let place = Place::new();
        let (_up, nodes) = up(&place, &format!("store_mib = 64\npath = \"{path}\"\n"));
        let waiting = |rank| nodes.client(rank).tensors().map(|it| it.waiting).ok();
        let long = ones(40 << 20);
        let (mut sender, mut receiver) = (nodes.client(0), nodes.client(1));
        sender.send_tensor(Rank(1), name("a", 1), Some(&long), KEPT).expect("room");
        let late = (SendUntil::Kept, Duration::from_millis(50));
        let full = TensorRefused::StoreFull { needed: 40 << 20, bytes: 40 << 20, limit: 64 << 20 };
        assert_eq!(refused(sender.send_tensor(Rank(1), name("b", 1), Some(&long), late)), full);
        let second = std::thread::spawn(move || {
            (sender.send_tensor(Rank(1), name("b", 1), Some(&long), KEPT), sender, long)
        });
        eventually("the second waits", || waiting(0) == Some(1));
        let first = receiver.receive_tensor(Rank(0), name("a", 1), PATIENCE).expect("it is sent");
        let (sent, mut sender, long) = second.join().expect("it does not panic");
        sent.expect("there is room");
        let mut other = nodes.client(1);
        let received = std::thread::spawn(move || {
            (other.receive_tensor(Rank(0), name("b", 1), PATIENCE), other)
        });
        eventually("the receive waits", || waiting(1) == Some(1));
        // What is short passes it.
        sender.send_tensor(Rank(1), name("c", 1), Some(&ones(9)), KEPT).expect("room");
        let short = receiver.receive_tensor(Rank(0), name("c", 1), PATIENCE).expect("it is sent");
        assert!(receiver.release_tensor(short.number).expect("an answer"));
        assert!(receiver.release_tensor(first.number).expect("an answer"));
        let (received, mut other) = received.join().expect("it does not panic");
        let received = received.expect("there is room");
        assert_eq!(received.tensor.expect("it lives").view(), long.view());
        // One whose client leaves, and one whose step ends, are gone.
        let held = name("d", 2);
        let sent = sender.send_tensor(Rank(0), held, Some(&long), KEPT).expect("room");
        let left = std::thread::spawn(move || {
            let late = (SendUntil::Kept, Duration::from_millis(50));
            refused(sender.send_tensor(Rank(0), name("e", 2), Some(&long), late))
        });
        assert_eq!(left.join().expect("it does not panic"), full);
        assert_eq!(nodes.client(0).tensors().expect("a list").kept[0].number, sent);
        assert_eq!(waiting(0), Some(0));
        assert!(other.release_tensor(received.number).expect("an answer"));
    }
}

/// RZ-3: a tensor that is forty times as long as the pool, over both paths, to another node and to
/// the node itself; either component is lost while its parts are under way.
#[test]
fn rz3_a_tensor_longer_than_the_pool_comes_in_parts_across_the_loss_of_components() {
    for path in ["read", "write"] {
        let place = Place::new();
        let (_up, nodes) = up(&place, &format!("store_mib = 128\npath = \"{path}\"\n"));
        let numbers: Vec<u64> = (0..5 << 20).collect();
        let long = SealedTensor::copy_of(TensorView::of(&[5 << 20], &numbers).expect("a tensor"));
        let long = long.expect("memory");
        let mut sender = nodes.client(0);
        for (step, killed) in [(1, None), (2, Some(0)), (3, Some(1))] {
            sender.send_tensor(Rank(1), name("a", step), Some(&long), KEPT).expect("room");
            let mut receiver = nodes.client(1);
            let receiving = std::thread::spawn(move || {
                let received = receiver.receive_tensor(Rank(0), name("a", step), PATIENCE);
                (received, receiver)
            });
            if let Some(node) = killed {
                let landing = || Some(nodes.client(1).status().ok()?.tensors?.received_bytes > 0);
                // On a fast host they may all have landed between two looks.
                eventually("parts land", || receiving.is_finished() || landing() == Some(true));
                kill(&place, &nodes, node);
            }
            let (received, mut receiver) = receiving.join().expect("it does not panic");
            let received = received.expect("it is sent");
            assert_eq!(received.tensor.expect("it lives").view(), long.view());
            assert!(receiver.release_tensor(received.number).expect("an answer"));
            eventually("its source drops it", || kept(&nodes, 0).is_empty());
        }
        // To the node itself; and one that the receiver's store cannot hold beside what is there.
        sender.send_tensor(Rank(0), name("own", 1), Some(&long), KEPT).expect("room");
        let own = sender.receive_tensor(Rank(0), name("own", 1), PATIENCE).expect("it is sent");
        assert_eq!(own.tensor.expect("it lives").view(), long.view());
        for step in [4, 5] {
            sender.send_tensor(Rank(0), name("own", step), Some(&long), KEPT).expect("room");
        }
        let own = sender.receive_tensor(Rank(0), name("own", 4), Duration::from_millis(50));
        // The receive itself has room for what comes whole.
        let (bytes, limit) = ((3 * 40 + 1) << 20, 128 << 20);
        let full = TensorRefused::StoreFull { needed: 39 << 20, bytes, limit };
        assert_eq!(refused(own), full);
        // What was sent does not come where the link is cut.
        sender.send_tensor(Rank(1), name("b", 6), Some(&ones(9)), KEPT).expect("room");
        place.weft("inject partition 1 --from 0 --name t").done();
        let out = place.path_of("b.npy");
        let line = "recv --node 1 --from 0 --step 6 --edge b --timeout 0.1 --name t --json";
        let late = place.weft(&format!("{line} --output {out}")).refused(30, "timeout");
        assert!(late.contains("has sent \"b\" of step 6, but not all of it"), "{late}");
    }
}

#[test]
fn rz20_what_is_wrong_is_refused_with_a_cure_and_leaves_no_file() {
    let place = Place::new();
    let (_up, nodes) = up(&place, "");
    let (npy, many) = (python("f4.npy"), python("all.safetensors"));
    let (out, dir) = (place.path_of("o.npy"), place.path_of("none/o.npy"));
    let text = place.file("x.txt", "text");
    let long = "x".repeat(513);
    // A TiB of which nothing was written: it is refused before memory is taken for it.
    let dict = "{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,)}";
    let sparse = place.file("s.npy", [b"\x93NUMPY\x01\x00\x43\x00", dict.as_bytes()].concat());
    let file = fs::OpenOptions::new().write(true).open(&sparse).expect("it was just written");
    file.set_len(10 + 0x43 + (1 << 40)).expect("the file system has sparse files");
    let send = "--from 0 --to 1 --step 1";
    let recv = "--node 1 --from 0 --step 1 --timeout 0.1";
    place.weft(&format!("send {many} {send} --name t")).done();
    for (line, status, code, cause) in [
        (format!("send {} {send}", python("bad-object.npy")), 53, "tensor_file", "Python objects"),
        (format!("send {text} {send}"), 53, "tensor_file", "neither .npy nor .safetensors"),
        (format!("send {out} {send}"), 22, "input_missing", "No such file"),
        (format!("send {npy} {send} --edge a;b"), 28, "key", "has a `;`"),
        (format!("send {npy} {send} --edge __manifest__"), 28, "key", "the manifest of a file"),
        (format!("send {npy} {send} --edge {long}"), 28, "key", "512 bytes"),
        (format!("send {many} {send} --tensor none"), 2, "usage", "no tensor \"none\""),
        (format!("send {sparse} {send}"), 20, "message_too_long", "longest tensor of this cluster"),
        (format!("send {npy} --from 0 --to 2 --step 1"), 15, "node_out_of_range", "no node 2"),
        (format!("send {npy} --from 0 --to 1 --step 1.5"), 2, "usage", "1.5"),
        (
            format!("recv {recv} --edge none --output {out}"),
            30,
            "timeout",
            "\"__manifest__\" of step",
        ),
        (format!("recv {recv} --edge f4 --output {dir}"), 44, "output", "cannot be written"),
        (format!("recv {recv} --edge f4 --output {text}"), 53, "tensor_file", "neither .npy"),
        (format!("recv {recv} --edge bf16 --output {out}"), 53, "tensor_file", "type bf16"),
        (format!("recv {recv} --all --output {out}"), 53, "tensor_file", "16 tensors"),
    ] {
        let refused = place.weft(&format!("{line} --name t --json")).refused(status, code);
        assert!(refused.contains(cause), "{line}: {refused}");
    }
    assert_eq!(place.files("o.npy"), [""; 0], "nothing is left half-written");
    // A disk that is full in the middle of the file, as a limit of its length is.
    let full = format!("trap '' XFSZ; ulimit -f 1; exec weft recv {recv} --edge i4 --output {out}");
    let full = place.shell(&format!("{full} --name t --json")).refused(44, "output");
    assert!(full.contains("cannot be written"), "{full}");
    assert_eq!(place.files("o.npy"), [""; 0], "nothing is left half-written");
    // A file with a name that can be no part of a key: none of its tensors is sent.
    let before = kept(&nodes, 0);
    let named = [("a", 0), ("b;c", 0)].into_iter();
    let named = safetensors(&place, "named.safetensors", named, &[]);
    place.weft(&format!("send {named} {send} --name t --json")).refused(28, "key");
    // One that was just received may be gone.
    assert!(kept(&nodes, 0).iter().all(|it| before.contains(it)));
    // The refused receives have used up nothing.
    let whole = place.path_of("whole.safetensors");
    place.weft(&format!("recv {recv} --all --output {whole} --name t")).done();
    assert_eq!(bytes(&whole), bytes(&many));
    nodes.assert_unharmed();
    let other = Place::new();
    let (_up, _) = other.up_calm(2);
    let refused = other.weft(&format!("send {npy} {send} --name t --json")).refused(2, "usage");
    assert!(refused.contains("rendezvous.pool_mib"), "{refused}");
}
