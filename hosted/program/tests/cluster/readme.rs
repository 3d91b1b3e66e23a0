//! The commands of README.md work as they are written there.

use crate::place::Place;

const README: &str = include_str!("../../../../README.md");

/// The commands of README.md that begin like this, without what is said about them.
fn lines(words: &str) -> Vec<&'static str> {
    let command = |line: &'static str| line.split('#').next().unwrap_or_default().trim();
    README.lines().map(command).filter(|line| line.starts_with(words)).collect()
}

/// How README.md starts its cluster.
fn up() -> String {
    let [line] = lines("weft up --nodes")[..] else { panic!("one line of README.md starts it") };
    let flags = line.strip_prefix("weft up ").and_then(|line| line.strip_suffix('&'));
    flags.expect("it runs beside what follows").replace("--name t", "")
}

#[test]
fn every_fault_and_every_order_of_the_readme_is_carried_out() {
    let place = Place::new();
    let (_up, nodes) = place.up(&up());
    let mut done = Vec::new();
    for line in lines("weft ") {
        let mut words = line.split_whitespace().skip(1);
        let order = words.next().unwrap_or_default();
        let fault = words.next().unwrap_or_default();
        let line = line.strip_prefix("weft ").expect("it begins so");
        match (order, fault) {
            ("inject", "kill" | "hang" | "silence" | "node")
            | ("isolate" | "release" | "handover", _) => {
                // A machine that has much else to do takes its time.
                place.weft(&format!("{line} --wait 60")).done();
                done.push(fault);
            }
            ("inject", _) | ("status", _) => {
                place.weft(line).done();
                done.push(fault);
            }
            _ => {}
        }
    }
    let named = ["kill", "hang", "silence", "stall", "partition", "heal", "node"];
    assert!(named.iter().all(|fault| done.contains(fault)), "{done:?}");
    nodes.await_joined();
    let why = place.weft("status --name t --why 1").done();
    for what in ["component down", "node down", "reset ordered", "admitted"] {
        assert!(why.contains(what), "{what} is not in:\n{why}");
    }
}

/// From top to bottom, as one who copies it into a terminal does; but for the build, what takes a
/// terminal, and what examines or measures this machine for long.
#[test]
fn by_hand_runs_as_it_is_written() {
    let (_, block) = README.split_once("## By hand\n\n```sh\n").expect("it is a section");
    let (block, _) = block.split_once("weft bench ").expect("benchmarks are last");
    let left_out = ["cargo build", "weft top", "weft doctor", "weft conform"];
    let is_run = |line: &&str| !left_out.iter().any(|words| line.starts_with(words));
    let without_curl = "command -v curl >/dev/null || curl() { echo weft_up; }";
    let lines: Vec<&str> = [without_curl].into_iter().chain(block.lines().filter(is_run)).collect();
    assert!(lines.len() > 25, "{lines:?}");
    let place = Place::new();
    let said = place.shell(&lines.join("\n"));
    assert_eq!(said.status, Some(0), "{said:?}");
    for what in [
        "node 1 has signed two different messages",
        "reset ordered",
        "weft_up",
        "4 nodes ended",
        ": held",
    ] {
        assert!(said.out.contains(what), "{what} is not in\n{}", said.out);
    }
    assert!(!said.out.contains("did not hold"), "{}", said.out);
}

#[test]
fn the_live_view_of_the_readme_wants_a_terminal_and_nothing_else() {
    let place = Place::new();
    let (_up, _) = place.up("--nodes 2");
    let [line] = lines("weft top")[..] else { panic!("one line of README.md shows it") };
    let line = line.strip_prefix("weft ").expect("it begins so");
    let reply = place.weft(&format!("{line} --json")).refused(2, "usage");
    assert!(reply.contains("terminal"), "{reply}");
}
