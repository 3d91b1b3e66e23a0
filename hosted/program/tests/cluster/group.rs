//! Files along the trees of a group, across real processes, and the barriers of their nodes.

use std::io::{Write as _, pipe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use weft::client::{GroupListener, GroupSpeaker};
use weft::explain::{Code, Explain as _};
use weft::process::Signal;
use weft_program::transfer::Cutter;

use crate::PATIENCE;
use crate::broadcast::{FILE, digest, heard};
use crate::place::{CALM, Nodes, Place, Running, eventually};

/// Windows of 16 blocks of 4 KiB: FILE twice is longer.
const SMALL: &str = "group.count = 1\ngroup.block_len = 4096\n";

/// Starts a cluster of so many nodes with these lines in its file.
fn up(place: &Place, nodes: u16, lines: &str) -> (Running, Nodes) {
    place.up(&place.file("g.toml", format!("name = \"t\"\nnodes = {nodes}\n{lines}")))
}

fn receive(place: &Place, group: &str, origin: u16, node: u16) -> Running {
    let line = format!("bcast --tree --receive --node {node} --origin {origin} --group {group}");
    place.start(&format!("{line} --timeout 60 --name t --json"), "")
}

/// A file that is sent for as long as a test wants, however fast the machine is.
struct Endless {
    sender: Running,
    ended: Arc<AtomicBool>,
    writer: JoinHandle<Vec<u8>>,
}

impl Endless {
    fn begin(place: &Place, line: &str) -> Self {
        let (input, mut write) = pipe().expect("a pipe");
        let sender = place.start_changed(line, "", |command| command.stdin(input));
        let ended = Arc::new(AtomicBool::new(false));
        let writer = thread::spawn({
            let ended = Arc::clone(&ended);
            move || {
                let mut written = Vec::new();
                while !ended.load(Ordering::Relaxed) {
                    write.write_all(FILE).expect("its sender reads");
                    written.extend_from_slice(FILE);
                }
                written
            }
        });
        Self { sender, ended, writer }
    }

    /// Ends the file. What its sender says, once it has sent it, and the digest of the file.
    fn end(self) -> (Value, String) {
        self.ended.store(true, Ordering::Relaxed);
        let written = self.writer.join().expect("its sender reads");
        (self.sender.wait().object(), digest(&written))
    }
}

/// What node `rank` has of the messages of `root`: held, and received by a client.
fn come(nodes: &Nodes, rank: u16, root: u16) -> (u64, u64) {
    let status = nodes.client(rank).status().expect("a status");
    let roots = status.groups.first().map(|group| group.roots.clone()).unwrap_or_default();
    let row = roots.iter().find(|row| row.root == root);
    row.map_or((0, 0), |row| (row.held, row.delivered))
}

#[test]
fn gt7_a_file_longer_than_the_window_reaches_every_member() {
    let place = Place::new();
    let (_up, nodes) = up(&place, 4, &format!("{SMALL}{CALM}"));
    let long = FILE.repeat(40);
    let file = place.file("long.bin", &long);
    let receivers: Vec<_> = [1, 2, 3].map(|node| receive(&place, "all", 0, node)).into();
    let sent = place.weft(&format!("bcast --tree {file} --from 0 --name t --json")).object();
    assert_eq!((&sent["sha256"], &sent["bytes"]), (&digest(&long).into(), &long.len().into()));
    for heard in heard(receivers) {
        assert_eq!((&heard["sha256"], &heard["origin"]), (&sent["sha256"], &0.into()), "{heard}");
        assert_eq!((&heard["messages"], &heard["repeated"]), (&sent["messages"], &0.into()));
    }
    // An empty file is one, also for a receive that comes late.
    place.weft_with("bcast --tree --from 1 --name t", "").done();
    assert_eq!(place.weft("bcast --tree --receive --node 3 --name t").done(), "");
    let listed = place.weft("group ls --name t --json").object();
    let group = &listed["groups"][0];
    assert_eq!((&group["name"], &group["members"]), (&"all".into(), &vec![0, 1, 2, 3].into()));
    let row = &group["nodes"][2]["roots"][0];
    assert_eq!((&row["held"], &row["delivered"]), (&sent["last"], &sent["last"]), "{listed}");
    eventually("the root knows it", || {
        let listed = place.weft("group ls --name t --json").object();
        listed["groups"][0]["nodes"][0]["roots"][0]["by_all"] == sent["last"]
    });
    let shown = place.weft("status --name t").done();
    assert!(shown.contains("group all of nodes 0, 1, 2 and 3: open"), "{shown}");
    nodes.assert_unharmed();
}

#[test]
fn gt5_a_group_of_some_nodes_has_their_files_and_barriers_alone() {
    let place = Place::new();
    let pair = "[[groups]]\nname = \"pair\"\nmembers = [2, 0]\n";
    let (_up, nodes) = up(&place, 3, &format!("{pair}{CALM}"));
    let receiver = receive(&place, "pair", 2, 0);
    place.weft_with("bcast --tree --from 2 --group pair --name t", "between two").done();
    assert_eq!(receiver.wait().object()["sha256"], digest(b"between two"));
    for (line, cause) in [
        (
            "bcast --tree --from 1 --group pair",
            "node 1 is not a member of the group, which has nodes 2 and 0",
        ),
        ("bcast --tree --receive --node 0 --origin 1 --group pair", "node 1 is not a member"),
        ("bcast --tree --from 0", "no such group: its groups are pair"),
        ("group barrier none --node 0", "no such group: its groups are pair"),
        ("bcast --tree g.toml --node 0", "cannot be used with '--node <RANK>'"),
    ] {
        let refused = place.weft(&format!("{line} --name t --json")).refused(2, "usage");
        assert!(refused.contains(cause), "{refused}");
    }
    // GT-10: an entry stands, and the barrier is left once the other member has entered it.
    let line = "group barrier pair --name t --json";
    let refused = place.weft(&format!("{line} --node 0 --timeout 0.2")).refused(30, "timeout");
    assert!(refused.contains("not all members"), "{refused}");
    let left = place.weft(line).object();
    assert_eq!((&left["barrier"], &left["nodes"]), (&1.into(), &vec![2, 0].into()));
    nodes.assert_unharmed();
}

#[test]
fn gt15_a_window_that_stays_full_names_a_member_and_its_file_is_given_up() {
    let place = Place::new();
    let (_up, nodes) = up(&place, 3, &format!("{SMALL}{CALM}"));
    let file = place.file("long.bin", FILE.repeat(20));
    let first = receive(&place, "all", 0, 1);
    let line = format!("bcast --tree {file} --from 0 --timeout 0.5 --name t --json");
    let refused = place.weft(&line).refused(25, "window_full");
    assert!(refused.contains("node 2 has not received"), "{refused}");
    // Behind the part that went out comes that its sender has given up, then the next file.
    let next = place.start("bcast --tree --from 0 --timeout 60 --name t", "the next");
    for torso in [receive(&place, "all", 0, 2), first] {
        let refused = torso.wait().refused(37, "abandoned");
        assert!(refused.contains("gave up after"), "{refused}");
    }
    next.wait().done();
    for node in [1, 2] {
        let heard = receive(&place, "all", 0, node).wait().object();
        assert_eq!(
            (&heard["sha256"], &heard["passed_over"]),
            (&digest(b"the next").into(), &0.into())
        );
    }
    // One who is interrupted gives up as well, and one receiver has a root at a time.
    let sender = place.start(&format!("bcast --tree {file} --from 0 --timeout 60 --name t"), "");
    let torso = receive(&place, "all", 0, 1);
    eventually("it has received", || come(&nodes, 1, 0).1 > 20);
    let refused = receive(&place, "all", 0, 1).wait();
    assert!(refused.refused(26, "busy").contains("already receives from node 0"));
    sender.signal(Signal::KILL);
    drop(sender);
    receive(&place, "all", 0, 2).wait().refused(37, "abandoned");
    torso.wait().refused(37, "abandoned");
    nodes.assert_unharmed();
}

#[test]
fn gt16_a_root_that_is_lost_in_the_middle_leaves_all_survivors_the_same_part() {
    let place = Place::new();
    let (_up, nodes) = up(&place, 4, SMALL);
    let file = place.file("long.bin", FILE.repeat(20));
    // It is delayed by node 3, where no client receives.
    let early = [1, 2].map(|node| receive(&place, "all", 0, node));
    let sender = place.start(&format!("bcast --tree {file} --from 0 --timeout 60 --name t"), "");
    let window = || [1, 2].iter().all(|node| come(&nodes, *node, 0) == (16, 16));
    eventually("two have received a window", window);
    place.weft("inject node 0 --name t").done();
    let late = receive(&place, "all", 0, 3);
    let [one, two] = early;
    let ends = [one, two, late].map(|it| it.wait().refused(37, "abandoned"));
    assert!(ends[0].starts_with("node 0 was removed after"), "{}", ends[0]);
    assert_eq!((&ends[1], &ends[2]), (&ends[0], &ends[0]), "the same bytes");
    assert_ne!(sender.wait().status, Some(0));
    // GT-20: it is back, with an empty memory, and once asked receives and sends what comes then.
    let listed = place.weft("group ls --name t --json").object();
    assert_eq!(listed["groups"][0]["removed"], serde_json::json!([0]), "no client asks: {listed}");
    let receivers: Vec<_> = [0, 2, 3].map(|node| receive(&place, "all", 1, node)).into();
    await_open(&place);
    place.weft(&format!("bcast --tree {file} --from 1 --name t")).done();
    for heard in heard(receivers) {
        assert_eq!(heard["sha256"], digest(&FILE.repeat(20)), "{heard}");
    }
    let receivers: Vec<_> = [1, 2, 3].map(|node| receive(&place, "all", 0, node)).into();
    place.weft(&format!("bcast --tree {file} --from 0 --name t")).done();
    for heard in heard(receivers) {
        assert_eq!(heard["sha256"], digest(&FILE.repeat(20)), "{heard}");
    }
    assert_eq!(place.weft("group barrier all --name t --json").object()["barrier"], 1);
}

#[test]
fn gt20_a_member_that_has_come_back_is_waited_for_and_an_isolated_one_is_not() {
    let place = Place::new();
    let pair = "[[groups]]\nname = \"pair\"\nmembers = [0, 2]\n";
    let (_up, nodes) = up(&place, 3, pair);
    let pass = |number: u64, nodes: &[u16]| {
        let passed = place.weft("group barrier pair --name t --json").object();
        assert_eq!((&passed["barrier"], &passed["nodes"]), (&number.into(), &nodes.into()));
    };
    pass(1, &[0, 2]);
    place.weft("inject node 0 --name t").done();
    pass(2, &[0, 2]);
    place.weft("isolate 2 --name t").done();
    pass(3, &[0]);
    place.weft("release 2 --name t").done();
    pass(4, &[0, 2]);
    // It takes part once the other counts it.
    place.weft("inject node 0 --name t").done();
    place.weft("inject partition 2 --from 0 --name t").done();
    let opened = nodes.client(0).group_open("pair", Duration::from_millis(200));
    assert_eq!(opened.expect_err("node 2 does not hear of it").code(), Code::Timeout);
    place.weft("inject heal --name t").done();
    pass(5, &[0, 2]);
    // What it sent before says nothing about the file that it sends next.
    place.weft("inject node 0 --name t").done();
    let mut listener = GroupListener::new(nodes.client(2), "pair");
    let heard = listener.listen(Some(0), Duration::from_millis(100)).expect("it is a member");
    assert_eq!(heard, None);
    listener.end(PATIENCE).expect("nothing is processed");
    place.weft_with("bcast --tree --from 0 --group pair --name t", "back again").done();
    let heard = receive(&place, "pair", 0, 2).wait().object();
    assert_eq!(heard["sha256"], digest(b"back again"));
}

/// All nodes count all, those that have come back included.
fn await_open(place: &Place) {
    eventually("the group is whole again", || {
        let listed = place.weft("group ls --name t --json").object();
        let group = &listed["groups"][0];
        let mut parts = group["nodes"].as_array().into_iter().flatten();
        group["removed"] == serde_json::json!([]) && parts.all(|part| part["standing"] == "open")
    });
}

#[test]
fn gt19_a_file_arrives_whole_across_the_kills_of_sender_and_receiver() {
    let place = Place::new();
    let (_up, nodes) = up(&place, 3, &format!("restart.max = 1000\n{SMALL}{CALM}"));
    let receivers: Vec<_> = [1, 2].map(|node| receive(&place, "all", 0, node)).into();
    let file = Endless::begin(&place, "bcast --tree --from 0 --timeout 60 --name t --json");
    // The manager last: the others are started again by its order.
    for victim in [1, 2, 0] {
        let (before, _) = come(&nodes, 2, 0);
        eventually("it goes on", || come(&nodes, 2, 0).0 > before);
        nodes.client(victim).kill().expect("it runs");
        nodes.await_joined();
        // Before it is a member again, it backs no manager, and with three such none is left.
        eventually("it is a member again", || {
            let net = nodes.client(victim).status().ok().and_then(|status| status.dirnet);
            net.is_some_and(|net| net.view.members.len() == 3)
        });
    }
    let (sent, digest) = file.end();
    assert_eq!(sent["sha256"], digest);
    for heard in heard(receivers) {
        assert_eq!(heard["sha256"], digest, "{heard}");
    }
}

/// GT-16: what the lost forwarder had not passed on comes from another.
#[test]
fn gt16_a_forwarder_that_is_lost_in_the_middle_costs_no_survivor_a_byte() {
    let place = Place::new();
    let (_up, nodes) = up(&place, 4, &format!("{SMALL}group.topology = \"pipe\"\n"));
    // The root is node 3, so entries and blocks go from 0 to 1 to 2.
    let [lost, one, two] = [0, 1, 2].map(|node| receive(&place, "all", 3, node));
    let file = Endless::begin(&place, "bcast --tree --from 3 --timeout 60 --name t --json");
    eventually("it is in the middle", || come(&nodes, 2, 3).1 > 16);
    place.weft("inject node 0 --name t").done();
    let (sent, digest) = file.end();
    assert_eq!(sent["sha256"], digest);
    for heard in heard(vec![one, two]) {
        assert_eq!((&heard["sha256"], &heard["repeated"]), (&sent["sha256"], &0.into()), "{heard}");
    }
    assert_ne!(lost.wait().status, Some(0));
}

/// What is short is sent once, whichever incarnation had it.
#[test]
fn gt17_short_messages_are_numbered_without_a_gap_across_the_kills_of_their_root() {
    let place = Place::new();
    let (_up, nodes) = up(&place, 2, &format!("restart.max = 1000\n{SMALL}{CALM}"));
    let marker = Cutter::given_up();
    let speaker = GroupSpeaker::begin(nodes.client(0), "all", (7, &marker), PATIENCE);
    let mut speaker = speaker.expect("it runs");
    for seq in 1..=40 {
        if seq % 10 == 0 {
            nodes.client(0).kill().expect("it runs");
        }
        assert_eq!(speaker.send(b"short", PATIENCE).expect("there is room"), seq);
    }
    speaker.end(PATIENCE).expect("it runs");
}

/// GT-4: how blocks travel is the choice of their sender; entries travel as the file says.
#[test]
fn gt4_files_travel_as_their_senders_say() {
    let place = Place::new();
    let (_up, nodes) = up(&place, 4, &format!("{SMALL}group.topology = \"fibonacci\"\n{CALM}"));
    let long = FILE.repeat(8);
    let file = place.file("long.bin", &long);
    for topology in ["auto", "serial", "pipe", "binary", "fibonacci", "pipeline"] {
        let receivers: Vec<_> = [0, 1, 3].map(|node| receive(&place, "all", 2, node)).into();
        place.weft(&format!("bcast --tree {file} --from 2 --topology {topology} --name t")).done();
        for heard in heard(receivers) {
            assert_eq!(heard["sha256"], digest(&long), "{topology}: {heard}");
        }
    }
    for line in ["--tree README.md --from 2 --topology ring", "--neb x --from 2 --topology pipe"] {
        place.weft(&format!("bcast {line} --name t --json")).refused(2, "usage");
    }
    let file = place.file("bad.toml", "name = \"b\"\nnodes = 3\ngroup.topology = \"ring\"\n");
    let refused = place.weft(&format!("check {file} --json")).refused(10, "cluster_file");
    assert!(refused.contains("group.topology is \"ring\", but must be \"auto\""), "{refused}");
    nodes.assert_unharmed();
}

#[test]
fn what_cannot_be_sent_or_received_is_refused_with_its_cause() {
    let place = Place::new();
    let (_up, nodes) = up(&place, 3, &format!("{SMALL}{CALM}"));
    let folder = place.runtime_dir().display().to_string();
    for (line, status, code, cause) in [
        (format!("{folder} --from 0"), 24, "input_unreadable", "is a directory"),
        ("/proc/self/mem --from 0".to_owned(), 24, "input_unreadable", "cannot be read"),
        (format!("{folder}/none --from 0"), 22, "input_missing", "No such file"),
        ("/dev/null --from 7".to_owned(), 15, "node_out_of_range", "no node 7"),
        ("--receive --node 7".to_owned(), 15, "node_out_of_range", "no node 7"),
        ("--receive --node 1 --origin 1".to_owned(), 2, "usage", "the receiving node itself"),
        ("--receive --node 1 --origin 9".to_owned(), 2, "usage", "node 9 is not a member"),
        ("/dev/null --from 0 --group x".to_owned(), 2, "usage", "its groups are all"),
    ] {
        let refused = place.weft(&format!("bcast --tree {line} --name t --json"));
        let refused = refused.refused(status, code);
        assert!(refused.contains(cause), "{line}: {refused}");
    }
    // Two senders of a node take turns.
    let file = place.file("long.bin", FILE.repeat(20));
    let first = place.start(&format!("bcast --tree {file} --from 0 --timeout 60 --name t"), "");
    eventually("it has its turn", || come(&nodes, 0, 0).0 > 4);
    let line = "bcast --tree --from 0 --timeout 0.3 --name t --json";
    place.weft_with(line, "second").refused(30, "timeout");
    let receivers: Vec<_> = [1, 2].map(|node| receive(&place, "all", 0, node)).into();
    first.wait().done();
    heard(receivers);
    nodes.assert_unharmed();
}

/// A receiver that is gone in the middle has consumed its part; the next one begins with the next
/// file.
#[test]
fn gt15_a_receiver_that_is_gone_in_the_middle_holds_up_no_other_file() {
    let place = Place::new();
    let (_up, nodes) = up(&place, 2, &format!("{SMALL}{CALM}"));
    let gone = receive(&place, "all", 0, 1);
    let file = Endless::begin(&place, "bcast --tree --from 0 --timeout 60 --name t --json");
    eventually("it has received", || come(&nodes, 1, 0).1 > 2);
    gone.signal(Signal::KILL);
    drop(gone);
    let next = receive(&place, "all", 0, 1);
    file.end();
    place.weft_with("bcast --tree --from 0 --name t", "the next").done();
    let heard = next.wait().object();
    assert_eq!(heard["sha256"], digest(b"the next"), "{heard}");
    assert!(heard["passed_over"].as_u64() > Some(0), "{heard}");
    nodes.assert_unharmed();
}
