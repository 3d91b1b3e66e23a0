//! Nodes as on several hosts: each has a runtime directory of its own and knows the others by
//! their addresses alone.

use std::net::TcpListener;

use weft::process::Signal;

use crate::PATIENCE;
use crate::device::devices;
use crate::place::{Place, Running, eventually};

/// Two hosts, from the nodes' point of view.
struct Hosts {
    places: [Place; 2],
    text: String,
    devices: String,
}

/// An address that was free a moment ago.
fn address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").to_string()
}

impl Hosts {
    fn new() -> Option<Self> {
        let devices = devices()?;
        let addresses = [address(), address()];
        let text = format!(
            "name = \"t\"\nnodes = 2\nfabric = \"verbs\"\nmailbox.slots = 16\n\
             [network]\naddresses = {addresses:?}\n"
        );
        Some(Self { places: [Place::new(), Place::new()], text, devices })
    }

    /// Starts a node on its own host; `more` are further arguments.
    fn start(&self, rank: usize, more: &str) -> Running {
        let place = &self.places[rank];
        let (file, devices) = (place.file("cluster.toml", &self.text), &self.devices);
        place.start(&format!("node {file} --rank {rank} --devices {devices} {more}"), "")
    }

    /// Makes a key and returns the argument that names it.
    fn key(&self, name: &str) -> String {
        let path = self.places[0].file("folder", "").replace("folder", name);
        self.places[0].weft(&format!("key {path}")).done();
        format!("--key {path}")
    }

    fn await_joined(&self) {
        for (rank, place) in (0..).zip(&self.places) {
            let joined = place.find().client(rank).await_joined(0, 1, PATIENCE);
            joined.unwrap_or_else(|error| panic!("node {rank}: {error}"));
        }
    }

    fn say(&self, from: usize, to: usize, line: &str) {
        let put = format!("put --name t --from {from} --to {to}");
        self.places[from].weft_with(&put, line).done();
        let got = self.places[to].weft(&format!("get --name t --node {to} --count 1"));
        assert_eq!(got.done(), line);
    }
}

#[test]
fn nodes_meet_by_address_and_key_and_one_that_was_killed_comes_back() {
    let Some(hosts) = Hosts::new() else { return };
    let key = hosts.key("cluster.key");
    let first = hosts.start(0, &key);
    let second = hosts.start(1, &key);
    hosts.await_joined();
    hosts.say(0, 1, "there\n");
    hosts.say(1, 0, "and back\n");

    // Its host loses the note of its incarnations; the other one keeps it.
    second.signal(Signal::KILL);
    second.wait();
    hosts.places[1].await_no_process();
    let second = hosts.start(1, &key);
    hosts.await_joined();
    let status = hosts.places[1].find().client(1).status().expect("a status");
    assert_eq!(status.incarnation, 2, "{status:?}");
    hosts.say(0, 1, "welcome back\n");

    for node in [first, second] {
        node.signal(Signal::TERM);
        node.wait().done();
    }
    for place in &hosts.places {
        place.assert_nothing_left();
    }
}

#[test]
fn nodes_with_different_keys_say_so_and_do_not_meet() {
    let Some(hosts) = Hosts::new() else { return };
    let first = hosts.start(0, &hosts.key("one"));
    let second = hosts.start(1, &hosts.key("another"));
    for node in [&first, &second] {
        eventually("the keys differ", || node.said("err").contains("the keys of two nodes differ"));
    }
    let status = hosts.places[0].find().client(0).status().expect("a status");
    assert_eq!(status.peers[0].incarnation, None);
}

#[test]
fn nodes_do_without_a_key_when_they_are_told_to() {
    let Some(hosts) = Hosts::new() else { return };
    let _nodes = [hosts.start(0, "--insecure"), hosts.start(1, "--insecure")];
    hosts.await_joined();
    hosts.say(1, 0, "who listens?\n");
}
