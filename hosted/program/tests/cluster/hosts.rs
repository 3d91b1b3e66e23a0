//! Nodes for several hosts: the key, and what is refused before anything is met.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::place::Place;

/// A cluster file for two hosts, and how to start its first node.
fn first_node(place: &Place, more: &str) -> String {
    let text = format!(
        "name = \"t\"\nnodes = 2\n[network]\naddresses = [\"127.0.0.1:7\", \"127.0.0.2:7\"]\n{more}"
    );
    format!("node {} --rank 0 --json", place.file("hosts.toml", text))
}

#[test]
fn a_key_is_made_for_its_owner_alone_and_never_overwritten() {
    let place = Place::new();
    let path = place.file("folder", "").replace("folder", "cluster.key");
    place.weft(&format!("key {path}")).done();
    let made = fs::metadata(&path).expect("it was made");
    assert_eq!((made.mode() & 0o777, made.len()), (0o600, 65));
    place.weft(&format!("key {path} --json")).refused(2, "usage");
    fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("it is ours");
    let node = first_node(&place, "key = \"cluster.key\"");
    let reply = place.weft(&format!("{node} --fabric verbs")).refused(42, "permission");
    assert!(reply.contains("chmod 600"), "{reply}");
    place.assert_nothing_left();
}

#[test]
fn without_a_key_no_node_is_started_between_hosts_unless_it_is_told_to() {
    let place = Place::new();
    let node = first_node(&place, "");
    let reply = place.weft(&format!("{node} --fabric verbs")).refused(2, "usage");
    assert!(reply.contains("weft key FILE") && reply.contains("--insecure"), "{reply}");
    let reply =
        place.weft(&format!("{node} --fabric verbs --key /none")).refused(22, "input_missing");
    assert!(reply.contains("/none"), "{reply}");
    // The next obstacle is another one.
    let reply = place.weft(&format!("{node} --insecure")).refused(10, "cluster_file");
    assert!(reply.contains("share no memory"), "{reply}");
    place.assert_nothing_left();
}

#[test]
fn devices_without_verbs_and_fabrics_nobody_knows_are_refused() {
    let place = Place::new();
    place.weft("up --devices rxe0 --json").refused(2, "usage");
    let reply = place.weft("up --fabric tcp --json").refused(10, "cluster_file");
    assert!(reply.contains("\"verbs\""), "{reply}");
    place.assert_nothing_left();
}

#[test]
fn devices_without_names_are_refused() {
    let place = Place::new();
    for devices in ["--devices=", "--devices rxe0,,rxe1", "--devices rxe0,"] {
        let reply = place.weft(&format!("up --fabric verbs {devices} --json")).refused(2, "usage");
        assert!(reply.contains("empty name"), "{reply}");
    }
    place.assert_nothing_left();
}

#[test]
fn addresses_of_other_hosts_are_nothing_for_a_cluster_on_one() {
    let place = Place::new();
    let text = "name = \"t\"\nnodes = 2\nnetwork.addresses = [\"a:1\", \"b:1\"]\n";
    let file = place.file("hosts.toml", text);
    let reply = place.weft(&format!("up {file} --json")).refused(2, "usage");
    assert!(reply.contains("network.addresses") && reply.contains("weft node FILE"), "{reply}");
    place.assert_nothing_left();
}

/// Where there is no such device, or no driver in this build, both are reported before a process
/// is started.
#[test]
fn a_device_that_cannot_be_used_is_told_before_anything_starts() {
    let place = Place::new();
    let reply = place.weft("up --fabric verbs --devices weft-none --json").refused(43, "rdma");
    let expected = if cfg!(feature = "verbs") { "RDMA device" } else { "--features verbs" };
    assert!(reply.contains(expected), "{reply}");
    place.assert_nothing_left();
}
