//! What scrapers read of a node, over its socket and its port.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

use crate::PATIENCE;
use crate::place::{CALM, Nodes, Place, eventually};

const README: &str = include_str!("../../../../README.md");

/// Sends `request`, and returns the head and the body of the reply.
fn ask(mut socket: impl Read + Write, request: &str) -> (String, String) {
    socket.write_all(request.as_bytes()).expect("it is read");
    let mut reply = String::new();
    socket.read_to_string(&mut reply).expect("it ends, and is text");
    let (head, body) = reply.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), body.to_owned())
}

fn at_socket(nodes: &Nodes, rank: usize) -> UnixStream {
    let path = nodes.dir.metrics_socket(rank).expect("short");
    let socket = UnixStream::connect(path).expect("the node serves");
    socket.set_read_timeout(Some(PATIENCE)).expect("it can be set");
    socket
}

const GET: &str = "GET /metrics HTTP/1.1\r\nHost: weft\r\n\r\n";

/// The samples of a text, which must be one of OpenMetrics: each family once, with its type and
/// help before its samples, buckets that rise, and the end.
fn parsed(text: &str) -> BTreeMap<String, f64> {
    let (mut samples, mut families) = (BTreeMap::new(), BTreeMap::new());
    let (mut family, mut last_bucket) = (String::new(), 0.0);
    let body = text.strip_suffix("# EOF\n").unwrap_or_else(|| panic!("no end: {text}"));
    for line in body.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        if let ["#", "TYPE", name, kind] = words[..] {
            family = name.to_owned();
            assert!(families.insert(family.clone(), kind.to_owned()).is_none(), "twice: {line}");
            continue;
        }
        if let ["#", "HELP" | "UNIT", name, _] = words[..] {
            assert_eq!(name, family, "{line}");
            continue;
        }
        let (name, value) = line.rsplit_once(' ').expect("a value");
        let value: f64 = value.parse().unwrap_or_else(|error| panic!("{error}: {line}"));
        let (bare, labels) = name.split_once('{').expect("labels");
        assert!(labels.ends_with('}') && labels.contains("cluster=\"t\",node=\""), "{line}");
        let suffix = bare.strip_prefix(&family).unwrap_or_else(|| panic!("of {family}? {line}"));
        let suffixes: &[&str] = match families[&family].as_str() {
            "counter" => &["_total", "_created"],
            "histogram" => &["_bucket", "_sum", "_count", "_created"],
            "info" => &["_info"],
            "gauge" | "stateset" => &[""],
            kind => panic!("{kind}"),
        };
        assert!(suffixes.contains(&suffix), "{line}");
        last_bucket = match suffix {
            "_bucket" => {
                assert!(value >= last_bucket, "{line}");
                value
            }
            "_count" => {
                assert!(value == last_bucket, "{line}");
                0.0
            }
            _ => last_bucket,
        };
        assert!(samples.insert(name.to_owned(), value).is_none(), "twice: {line}");
    }
    samples
}

fn scrape(nodes: &Nodes, rank: usize) -> BTreeMap<String, f64> {
    let (head, text) = ask(at_socket(nodes, rank), GET);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let kind = "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(head.lines().any(|line| line == kind), "{head}");
    assert!(head.lines().any(|line| line == format!("Content-Length: {}", text.len())), "{head}");
    parsed(&text)
}

#[test]
fn counters_and_latencies_of_each_node_are_read_at_its_socket() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    place.weft_with("put --name t --from 0 --to 2", "a\nb\nc\n").done();
    place.weft("get --name t --node 2 --count 3").done();
    let of = |rank: usize, name: &str| {
        scrape(&nodes, rank).get(&format!("{name}{{cluster=\"t\",node=\"{rank}\"}}")).copied()
    };
    eventually("the puts are counted", || of(0, "weft_puts_total") == Some(3.0));
    eventually("the takes are counted", || of(2, "weft_takes_total") == Some(3.0));
    assert!(of(0, "weft_put_seconds_count") >= Some(1.0));
    assert!(of(0, "weft_put_seconds_sum") > Some(0.0));
    assert!(of(0, "weft_puts_created") > Some(1.7e9));
    let managers = (0..3).filter(|rank| of(*rank, "weft_manager") == Some(1.0)).count();
    assert_eq!(managers, 1);
    place.weft("inject kill 1 --name t --wait 60").done();
    eventually("the recovery is counted", || of(1, "weft_recovery_seconds_count") == Some(1.0));
    assert_eq!(of(1, "weft_restarts_total"), Some(1.0));
    // Its counters began again, and say so.
    assert!(of(1, "weft_puts_created") > of(0, "weft_puts_created"));
}

#[test]
fn broadcasts_are_measured_until_all_have_received_them() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let file = place.file("a", "a short file\n");
    place.weft(&format!("bcast --neb {file} --from 0 --name t")).done();
    place.weft("bcast --neb --receive --node 1 --name t").done();
    let count = "weft_broadcast_seconds_count{cluster=\"t\",node=\"0\"}";
    eventually("it has reached all", || scrape(&nodes, 0).get(count) >= Some(&1.0));
    let settled = "weft_broadcasts_settled_total{cluster=\"t\",node=\"0\",origin=\"0\"}";
    eventually("all is settled", || scrape(&nodes, 0).get(settled) >= Some(&1.0));
}

#[test]
fn a_port_serves_the_same_and_one_in_use_is_refused() {
    let place = Place::new();
    // Two neighbouring ports that are free now; if another process takes one, others are.
    let (_up, nodes, port) = (0..20)
        .find_map(|_| {
            let free = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = free.local_addr().expect("bound").port();
            drop(free);
            let text = format!("name = \"t\"\nnodes = 2\n[metrics]\nport = {port}\n{CALM}");
            let file = place.file("port.toml", text);
            let up = place.start(&format!("up {file}"), "");
            eventually("it runs or is refused", || {
                up.said("err").contains("weft: ") || up.said("out").contains("nodes run")
            });
            (!up.said("err").contains("weft: ")).then(|| (up, place.find(), port))
        })
        .expect("one of twenty");
    for rank in 0..2 {
        let socket = TcpStream::connect(("127.0.0.1", port + rank)).expect("the node serves");
        let (head, text) = ask(socket, GET);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        let up = format!("weft_up{{cluster=\"t\",node=\"{rank}\"}}");
        assert_eq!(parsed(&text).get(&up), Some(&1.0));
    }
    let list = place.weft("metrics --name t --json").object();
    assert_eq!(list["nodes"][1]["url"], format!("http://127.0.0.1:{}/metrics", port + 1));
    let text = format!("name = \"u\"\nnodes = 2\n[metrics]\nport = {port}\n");
    let other = place.file("other.toml", text);
    let refused = place.weft(&format!("up --json {other}")).refused(26, "busy");
    assert!(refused.contains(&format!("127.0.0.1:{port}")), "{refused}");
    let cure = "set metrics.port so that 2 ports from it on are free";
    assert!(refused.contains(cure), "{refused}");
    drop(nodes);
}

#[test]
fn scrapers_that_say_nonsense_or_nothing_hold_up_no_other_for_long() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let silent = at_socket(&nodes, 0);
    let (head, why) = ask(at_socket(&nodes, 0), "\x16\x03\x01\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 400"), "{head}");
    assert!(why.contains("GET /metrics"), "{why}");
    let (head, _) = ask(at_socket(&nodes, 0), "GET /else HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    let (head, body) = ask(at_socket(&nodes, 0), "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && body.is_empty(), "{head}");
    scrape(&nodes, 0);
    drop(silent);
}

/// As the README has it; where there is no curl, its part is left out.
#[test]
fn the_line_of_the_readme_reads_metrics() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    let text = place.weft("metrics --name t --node 1").done();
    assert_eq!(parsed(&text).get("weft_up{cluster=\"t\",node=\"1\"}"), Some(&1.0));
    let socket = place.weft("metrics --name t --node 1 --socket").done();
    assert_eq!(
        socket.trim_end(),
        nodes.dir.metrics_socket(1).expect("short").to_str().expect("text")
    );
    let line = README.lines().find(|line| line.starts_with("curl ")).expect("the README has it");
    let said = place.shell(&format!("command -v curl >&2 || exit 77\n{line}"));
    if said.status != Some(77) {
        assert_eq!(
            parsed(&said.out).get("weft_up{cluster=\"t\",node=\"2\"}"),
            Some(&1.0),
            "{said:?}"
        );
    }
    place.weft("metrics --name t --node 7 --json").refused(15, "node_out_of_range");
    let dashboard = place.weft("metrics --dashboard").done();
    assert!(serde_json::from_str::<serde_json::Value>(&dashboard).is_ok());
}
