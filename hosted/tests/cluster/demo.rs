//! `weft demo` on inputs of every size, and what killed demos leave behind.

use serde_json::Value;

use crate::place::Place;

/// Gives a demo of `lines` lines and returns its summary.
fn demo_of(place: &Place, lines: usize) -> Value {
    let text: String = (0..lines).map(|number| format!("line {number}\n")).collect();
    let file = place.file(&format!("{lines}.txt"), text);
    place.weft(&format!("demo --json --input {file}")).object()
}

/// Found by a newcomer: inputs of 3 to 64 lines hung for ever, because the only batch went out
/// before anybody looked whether it was time to kill.
#[test]
fn an_input_of_any_length_has_a_middle_to_be_killed_in() {
    let place = Place::new();
    for lines in [1, 2, 3, 64, 65] {
        let summary = demo_of(&place, lines);
        assert_eq!(summary["ok"], true, "{lines} lines: {summary}");
        assert_eq!((&summary["lost"], &summary["duplicated"]), (&0.into(), &0.into()));
        let streams = summary["streams"].as_array().expect("three streams");
        assert!(streams.iter().all(|stream| stream["digest_equal"] == true), "{summary}");
        assert_eq!(
            (&summary["broadcasts"], &summary["broadcasts_equal"]),
            (&12.into(), &12.into())
        );
        assert!(summary["conflicts"].as_u64().is_some_and(|count| count > 0), "{summary}");
        assert!(summary["readmission_us"].as_u64().is_some_and(|us| us > 0), "{summary}");
    }
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
    assert_eq!(demo_of(&place, 10)["ok"], true);
    place.assert_nothing_left();
}
