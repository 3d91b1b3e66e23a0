//! The commands of README.md work as they are written there.

use crate::place::{Place, eventually};

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

#[test]
fn a_lie_is_proven_by_what_the_readme_says() {
    let place = Place::new();
    let (_up, nodes) = place.up(&up());
    nodes.await_joined();
    // Files lie where the test may write.
    let lie = place.file("lie", "");
    let run = |words: &str| {
        let [line] = lines(words)[..] else { panic!("one line of README.md begins with {words}") };
        let line = line.strip_prefix("weft ").expect("it begins so");
        let word = |word: &'static str| if word == "lie" { lie.clone() } else { word.to_owned() };
        let words: Vec<String> = line.split_whitespace().map(word).collect();
        place.weft(&words.join(" "))
    };
    run("weft inject equivocate").done();
    eventually("a node holds a proof", || run("weft neb proof").status == Some(0));
    let text = run("weft neb verify").done();
    assert!(text.contains("node 1 has signed two different messages"), "{text}");
}

#[test]
fn the_recovery_script_of_the_readme_keeps_what_its_scenario_expects() {
    let place = Place::new();
    let [line] = lines("weft rl run")[..] else { panic!("one line of README.md runs one") };
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let word = |word: &str| match word.starts_with("hosted/") {
        true => format!("{root}{word}"),
        false => word.to_owned(),
    };
    let words: Vec<String> = line.split_whitespace().skip(1).map(word).collect();
    let text = place.weft(&words.join(" ")).done();
    assert!(text.contains(": held") && !text.contains("did not hold"), "{text}");
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
