//! `weft demo`: the story on inputs of every size, its drawing, and what killed demos leave behind.

use std::fs::{self, File};

use serde_json::Value;
use weft::process::Signal;

use crate::place::{Place, eventually};

/// Gives a demo of `lines` lines with these arguments and returns its summary.
fn demo_of(place: &Place, lines: usize, arguments: &str) -> Value {
    let text: String = (0..lines).map(|number| format!("line {number}\n")).collect();
    let file = place.file(&format!("{lines}.txt"), text);
    place.weft(&format!("demo --json --input {file} {arguments}")).object()
}

fn recovery<'a>(summary: &'a Value, name: &str) -> &'a Value {
    let recoveries = summary["recoveries"].as_array().expect("recoveries");
    let named = recoveries.iter().find(|recovery| recovery["name"] == name);
    named.unwrap_or_else(|| panic!("no {name} in {summary}"))
}

#[test]
fn an_input_of_any_length_flows_while_members_die() {
    let place = Place::new();
    for lines in [1, 65] {
        let summary = demo_of(&place, lines, "");
        assert_eq!(summary["ok"], true, "{lines} lines: {summary}");
        assert_eq!((&summary["lost"], &summary["duplicated"]), (&0.into(), &0.into()));
        let streams = summary["streams"].as_array().expect("three streams");
        assert!(streams.iter().all(|stream| stream["digest_equal"] == true), "{summary}");
        assert_eq!(
            (&summary["broadcasts"], &summary["broadcasts_equal"]),
            (&12.into(), &12.into())
        );
        assert!(summary["conflicts"].as_u64().is_some_and(|count| count > 0), "{summary}");
        let script = &summary["script"];
        let order = script["order"].as_str().expect("an order");
        assert!(order.starts_with("RESTART task camera, by section 1, line 9"), "{script}");
        assert_eq!((&script["restarts"], &script["errors"]), (&1.into(), &1.into()), "{script}");
        let (tree, lost) = (&summary["tree"], &recovery(&summary, "node")["node"]);
        assert_eq!(&tree["forwarder"], lost, "{summary}");
        let survivors = tree["survivors"].as_array().expect("two survivors");
        assert_eq!(survivors.len(), 2, "{summary}");
        assert!(survivors.iter().all(|it| it["digest"] == survivors[0]["digest"]), "{summary}");
    }
    place.assert_nothing_left();
}

#[test]
fn the_story_is_told_from_the_records_and_drawn() {
    let place = Place::new();
    let svg = place.file("story.svg", "an old story");
    let summary = demo_of(&place, 10, &format!("--svg {svg}"));
    for name in ["task", "kill", "hang", "node"] {
        let recovery = recovery(&summary, name);
        let milestones = recovery["milestones"].as_array().expect("milestones");
        assert!(milestones.iter().all(|it| it["after_us"].is_u64()), "{recovery}");
        let incarnations = &recovery["incarnations"];
        let has_returned = incarnations[1].as_u64() > incarnations[0].as_u64();
        assert!(has_returned || name == "task", "{recovery}");
        let moments = recovery["moments"].as_array().expect("moments").iter();
        let said = |what: &str| {
            let mut moments = moments.clone();
            moments.any(|it| it["what"].as_str().is_some_and(|words| words.contains(what)))
        };
        let evidence = match name {
            "task" => {
                ["task camera failed: ended by signal 9", "recovery script: RESTART task camera"]
            }
            "kill" => ["raises the alarm: the process ended", "component down by rule alarm-"],
            "hang" => ["raises the alarm: no progress", "component down by rule alarm-"],
            _ => ["takes over as manager", "node down by rule"],
        };
        assert!(evidence.iter().all(|what| said(what)), "{recovery}");
    }
    let terms = &recovery(&summary, "node")["terms"];
    assert!(terms[1][0].as_u64() > terms[0][0].as_u64() && terms[1][1] != terms[0][1], "{terms}");
    let drawn = fs::read_to_string(svg).expect("the drawing");
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n"), "{drawn}");
    assert!(drawn.contains("takes over as manager") && drawn.matches("<circle").count() > 30);
}

#[test]
fn a_drawing_that_cannot_be_written_is_refused_before_anything_starts() {
    let place = Place::new();
    let folder = place.runtime_dir().display().to_string();
    for file in [folder.as_str(), "/no/such/story.svg", "/dev/full"] {
        place.weft(&format!("demo --json --svg {file}")).refused(44, "output");
    }
    place.assert_nothing_left();
}

#[test]
fn a_story_that_nobody_can_be_told_is_no_success() {
    let place = Place::new();
    let full = File::create("/dev/full").expect("every Linux has it");
    let demo = place.start_changed("demo --json", "", |command| command.stdout(full));
    demo.wait().refused(44, "output");
    place.assert_nothing_left();
}

#[test]
fn an_interrupted_demo_leaves_nothing_and_no_drawing() {
    let place = Place::new();
    let svg = place.runtime_dir().with_file_name("f").join("none.svg");
    let demo = place.start(&format!("demo --json --svg {}", svg.display()), "");
    eventually("it has begun", || place.processes().iter().any(|it| it.role == "component"));
    demo.signal(Signal::INT);
    let said = demo.wait();
    assert_eq!(said.status, Some(130), "{}", said.err);
    assert!(!svg.exists());
    place.assert_nothing_left();
}

#[test]
fn the_remains_of_a_killed_demo_are_cleared_away_by_the_next() {
    let place = Place::new();
    let file = place.file("dead.toml", "name = \"demo-dead\"\nnodes = 2\n");
    let up = place.start(&format!("up {file}"), "");
    place.weft("get --name demo-dead --node 0 --patience 60").done();
    place.kill(&["up", "node", "component"]);
    drop(up);
    place.await_no_process();
    assert!(place.runtime_dir().join("demo-dead").exists());
    assert_eq!(demo_of(&place, 10, "")["ok"], true);
    place.assert_nothing_left();
}
