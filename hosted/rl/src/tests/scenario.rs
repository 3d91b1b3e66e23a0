//! Scenarios that are right, and scenarios that are wrong, each with its code, place and help.

use weft_core::recovery::{Expected, Verb, verify};

use super::translated;
use crate::scenario::{Deed, Expectation, Scenario, ScenarioReading, Wanted, Whom, read_scenario};

const SCRIPT: &str = "DEFINE 0 = MANAGER\nDEFINE 1-2 = BACKUP\n\
                      TASK 1 = \"camera\" IS NODE 1, TASKID 0\n\
                      TASK 2 = \"spare\" IS NODE 2, TASKID 0\n\
                      WATCHDOG 1 WATCHES T1\nHEARTBEATS EVERY 200 MS\nON ERROR\nRESTART T1\n\
                      END WATCHDOG\n";

fn read(text: &str) -> ScenarioReading {
    let image = translated(SCRIPT).image.expect("the script is right");
    let expected = Expected { nodes: None, keeps_rules: |_| true };
    read_scenario("test.scenario", text, &verify(&image, &expected).expect("it was translated"))
}

#[test]
fn a_scenario_says_what_happens_and_what_is_expected() {
    let text = "\u{FEFF}nodes 3 # as the script\r\ntask spare on 2 waiting\n\n\
                at 500 ms error camera 7\nexpect restart camera within 40 ms\n\
                at 2 s kill node 2\nexpect no isolate node 2 until 5 s\n\
                expect log \"a # b\" within 1 s\nexpect warn spare until 3 s\n";
    let wanted = |line, text: &str, wanted, is_absent, (from, to): (u64, u64)| Expectation {
        line,
        text: text.into(),
        wanted,
        is_absent,
        from_us: from * 1_000,
        to_us: to * 1_000,
    };
    let restart = Wanted::Order(Verb::Restart, Whom::Task(1));
    let isolate = Wanted::Order(Verb::Isolate, Whom::Node(2));
    let log = Wanted::Log("a # b".into());
    let expectations = vec![
        wanted(5, "expect restart camera within 40 ms", restart, false, (500, 540)),
        wanted(7, "expect no isolate node 2 until 5 s", isolate, true, (2_000, 5_000)),
        wanted(8, "expect log \"a # b\" within 1 s", log, false, (2_000, 3_000)),
        wanted(9, "expect warn spare until 3 s", Wanted::Warn(2), false, (2_000, 3_000)),
    ];
    let deeds = vec![(500_000, 4, Deed::Error(1, 7)), (2_000_000, 6, Deed::Kill(2))];
    let waiting = vec![2];
    let scenario = Scenario { nodes: 3, waiting, deeds, expectations, until_us: 6_000_000 };
    let reading = read(text);
    assert_eq!(reading.scenario, Some(scenario), "{}", reading.render());
}

/// Each behind `nodes 3`, unless it begins with its own number; drawn in `scenario.txt`.
const WRONG: &[(&str, &str)] = &[
    ("nodes 4", "RL0604"),
    ("nodes 3\nnodes 3", "RL0604"),
    ("nodes", "RL0601"),
    ("nodes three", "RL0601"),
    ("task camera on 1\nnodes 3", "RL0601"),
    ("tsak camera on 1", "RL0601"),
    ("task camra on 1", "RL0602"),
    ("task lidar on 1", "RL0602"),
    ("task camera on 2", "RL0604"),
    ("task camera on 1 sleeping", "RL0601"),
    ("task camera", "RL0601"),
    ("at 1 s", "RL0601"),
    ("at 1 h error camera 7", "RL0601"),
    ("at -1 s error camera 7", "RL0601"),
    ("at 1 s eror camera 7", "RL0601"),
    ("at 1 s error camera", "RL0601"),
    ("at 1 s error camera 70000", "RL0601"),
    ("at 1 s error camera 7 8", "RL0601"),
    ("at 1 s kill 2", "RL0601"),
    ("at 1 s kill node 3", "RL0602"),
    ("at 1 s kill node 99999999999", "RL0602"),
    ("at 1 s silence spare", "RL0604"),
    ("at 1 s vote 1 version 2 round 5 number 41", "RL0602"),
    ("expect vote 1 round 5 none within 1 s", "RL0602"),
    ("at 2 s error camera 7\nat 1 s error camera 7", "RL0603"),
    ("at 601 s error camera 7", "RL0603"),
    ("at 18446744073709551615 s error camera 7", "RL0603"),
    ("expect restrat camera within 1 s", "RL0601"),
    ("expect restart camera", "RL0601"),
    ("expect restart camera within 0 s", "RL0603"),
    ("at 2 s error camera 7\nexpect no restart camera until 1 s", "RL0603"),
    ("expect log running within 1 s", "RL0601"),
    ("expect log \"running within 1 s", "RL0601"),
    ("until 1 s\nuntil 2 s", "RL0601"),
    ("expect restart camera within 3 s\nuntil 1 s", "RL0603"),
];

#[test]
fn every_wrong_scenario_has_its_code_its_place_and_its_help() {
    let mut drawn = String::new();
    for (text, wanted) in WRONG {
        let is_whole = text.contains("nodes");
        let text = if is_whole { (*text).to_owned() } else { format!("nodes 3\n{text}\n") };
        let reading = read(&text);
        assert_eq!(reading.scenario, None, "{text}");
        assert_eq!(reading.diagnostics[0].code.as_str(), *wanted, "{}", reading.render());
        assert!(reading.diagnostics.iter().all(|it| !it.help.is_empty()), "{}", reading.render());
        drawn += &format!("#### {}\n{}", text.escape_debug(), reading.render());
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/scenario.txt");
    if std::env::var_os("RL_BLESS").is_some() {
        std::fs::write(path, &drawn).expect("the drawings are written");
    }
    let kept = std::fs::read_to_string(path).expect("the drawings are kept");
    let first = kept.lines().zip(drawn.lines()).find(|(kept, drawn)| kept != drawn);
    assert_eq!(first, None, "a drawing is another one than in scenario.txt");
    assert_eq!(kept.len(), drawn.len());
}

#[test]
fn a_text_that_is_no_scenario_is_refused() {
    let long = format!("nodes 3\n{}", "# a comment\n".repeat(6_000));
    let many = "nodes 3\n".to_owned() + &"at 1 s explode\n".repeat(500);
    for (text, wanted, count) in [
        ("", "RL0601", 1),
        ("# nothing\n\n", "RL0601", 1),
        ("nodes 3\n\0", "RL0104", 1),
        (&long, "RL0104", 1),
        (&many, "RL0601", 20),
    ] {
        let reading = read(text);
        assert_eq!(reading.diagnostics[0].code.as_str(), wanted, "{}", reading.render());
        assert_eq!((reading.scenario, reading.diagnostics.len()), (None, count));
    }
}
