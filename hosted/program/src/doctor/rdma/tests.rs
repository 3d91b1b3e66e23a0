//! Hosts made of files: one that is as it should be, and one for each thing that can be wrong.

use std::fs;
use std::path::Path;

use super::*;
use crate::scratch::Scratch;

const PORT: &str = "sys/class/infiniband/rxe0/ports/1";

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A host with everything, as the kernel writes it.
fn sound() -> Scratch {
    let scratch = Scratch::new();
    let root = scratch.path();
    for (path, text) in [
        ("usr/lib/x86_64-linux-gnu/libibverbs.so.1", ""),
        ("proc/sys/kernel/osrelease", "6.1.0-test\n"),
        ("lib/modules/6.1.0-test/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko.xz", ""),
        ("sys/class/infiniband_verbs/uverbs0/ibdev", "rxe0\n"),
        ("dev/infiniband/uverbs0", ""),
    ] {
        write(root, path, text);
    }
    for (path, text) in [
        ("state", "4: ACTIVE\n"),
        ("link_layer", "Ethernet\n"),
        ("gids/0", "fe80:0000:0000:0000:0000:00ff:fe00:0101\n"),
        ("gid_attrs/types/0", "RoCE v2\n"),
        ("gids/1", "0000:0000:0000:0000:0000:ffff:c612:0001\n"),
        ("gid_attrs/types/1", "RoCE v2\n"),
        ("gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n"),
    ] {
        write(root, &format!("{PORT}/{path}"), text);
    }
    scratch
}

fn find(scratch: &Scratch, subject: &str) -> Finding {
    let findings = advise(&RdmaHost::probe(scratch.path()));
    findings.into_iter().find(|finding| finding.subject == subject).expect("it is looked at")
}

/// The one finding that is not good.
fn trouble(scratch: &Scratch) -> Finding {
    let findings = advise(&RdmaHost::probe(scratch.path()));
    let mut bad = findings.into_iter().filter(|finding| finding.verdict > Severity::Good);
    let first = bad.next().expect("something is wrong");
    assert_eq!(bad.next(), None, "and nothing else");
    assert_eq!(first.verdict, Severity::Warning);
    first
}

#[test]
fn a_sound_host_is_told_as_such() {
    let host = sound();
    let findings = advise(&RdmaHost::probe(host.path()));
    let good: Vec<_> = findings.iter().filter(|one| one.verdict == Severity::Good).collect();
    assert_eq!((good.len(), findings.len()), (5, 5), "{findings:?}");
    assert_eq!(find(&host, "rdma devices").found, "rxe0");
    assert_eq!(find(&host, "rdma ports").found, "rxe0/1 active");
    assert_eq!(find(&host, "rdma addresses").found, "rxe0/1 ::ffff:198.18.0.1");
}

#[test]
fn a_missing_library_is_named_with_its_package() {
    let host = sound();
    fs::remove_file(host.path().join("usr/lib/x86_64-linux-gnu/libibverbs.so.1")).unwrap();
    let found = trouble(&host);
    assert_eq!(found.subject, "rdma library");
    assert!(found.cure.contains("ibverbs-providers"), "{found:?}");
}

#[test]
fn a_host_without_devices_is_told_how_to_make_one_if_it_can() {
    let host = sound();
    fs::remove_dir_all(host.path().join("sys/class/infiniband")).unwrap();
    let found = trouble(&host);
    assert_eq!((found.subject, found.found.as_str()), ("rdma devices", "none"));
    assert!(found.cure.contains("rdma link add"), "{found:?}");

    fs::remove_dir_all(host.path().join("lib/modules")).unwrap();
    let found = trouble(&host);
    assert!(!found.cure.contains("rdma link add"), "{found:?}");
    assert!(found.cure.contains("ci/rxe"), "{found:?}");
    // A command that needs a device gives the same cure.
    assert_eq!(cure(&RdmaHost::probe(host.path())), found.cure);
}

#[test]
fn a_port_that_is_down_is_named() {
    for state in ["1: DOWN\n", "2: INIT\n", ""] {
        let host = sound();
        write(host.path(), &format!("{PORT}/state"), state);
        let found = trouble(&host);
        assert_eq!(found.subject, "rdma ports");
        assert!(found.cause.contains("rxe0/1"), "{found:?}");
    }
}

#[test]
fn a_port_needs_an_address_that_peers_can_be_told() {
    let host = sound();
    for place in [0, 1] {
        write(host.path(), &format!("{PORT}/gid_attrs/types/{place}"), "IB/RoCE v1\n");
    }
    let found = trouble(&host);
    assert_eq!((found.subject, found.found.as_str()), ("rdma addresses", "none"));
    assert!(found.cure.contains("ip address add"), "{found:?}");
    // On InfiniBand the same table is one of good addresses.
    write(host.path(), &format!("{PORT}/link_layer"), "InfiniBand\n");
    assert_eq!(find(&host, "rdma addresses").verdict, Severity::Good);
}

#[test]
fn a_device_that_nobody_can_open_is_named() {
    let host = sound();
    fs::remove_file(host.path().join("dev/infiniband/uverbs0")).unwrap();
    let found = trouble(&host);
    assert_eq!(found.subject, "rdma access");
    assert!(found.cause.contains("rxe0"), "{found:?}");
}

#[test]
fn several_devices_are_listed_in_order() {
    let host = sound();
    write(host.path(), "sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    assert_eq!(find(&host, "rdma devices").found, "mlx5_0, rxe0");
    // No driver of the new one has made a device file, nor has it an address.
    assert!(find(&host, "rdma access").found.contains("mlx5_0"));
    assert!(find(&host, "rdma addresses").cause.contains("mlx5_0/1"));
}
