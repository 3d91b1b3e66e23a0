//! What needs no cluster: checking a file, completions, manual pages; and the format of the log.

use crate::place::{CALM, Place};
use crate::said::objects;

#[test]
fn a_cluster_file_is_checked_with_its_programs_and_nothing_starts() {
    let place = Place::new();
    let check = |tail: &str| {
        let text = format!("name = \"t\"\nnodes = 3\n{tail}");
        place.weft(&format!("check {} --json", place.file("c.toml", text)))
    };
    let done = check("[[task]]\nname = \"job\"\nprogram = \"sleep\"\n").done();
    assert_eq!(done.trim(), r#"{"name":"t","nodes":3,"ok":true}"#);
    for (tail, key) in [
        ("[[task]]\nname = \"job\"\nprogram = \"no-such-program\"\n", "the program of job: "),
        ("[component]\nprogram = \"no-such-program\"\n", "the program of component: "),
        ("[hooks]\nremoved = [\"no-such-program\"]\n", "hooks.removed: "),
    ] {
        let said = check(tail).refused(22, "input_missing");
        assert!(said.contains(key) && said.contains("not found in PATH"), "{said}");
    }
    check("slots = 3\n").refused(10, "cluster_file");
    place.weft("check /nowhere/c.toml --json").refused(22, "input_missing");
    place.weft("status --name t --patience 0 --json").refused(13, "cluster_not_running");
}

#[test]
fn the_help_says_what_each_command_is_for_and_which_variables_it_reads() {
    let help = Place::new().weft("--help").done();
    for words in ["Measure timers,", "\n  WEFT_LOG ", "\n  WEFT_RUNTIME_DIR "] {
        assert!(help.contains(words), "{words} is not in {help}");
    }
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.weft(&format!("completions {shell}")).done();
        assert!(script.contains("inject") && script.contains("watch"), "{script}");
    }
    let directory = place.path_of("pages");
    place.weft(&format!("man {directory}")).done();
    for page in ["weft.1", "weft-up.1", "weft-inject-kill.1"] {
        let text = std::fs::read_to_string(format!("{directory}/{page}")).expect("it is written");
        assert!(text.contains(".TH"), "{page}: {text}");
    }
    let file = place.file("file", "in the way");
    place.weft(&format!("man {file} --json")).refused(44, "output");
}

/// Of the launcher, the supervisors and the components, which share its standard error.
#[test]
fn each_line_of_the_log_of_a_cluster_is_an_object_where_json_is_chosen() {
    let place = Place::new();
    let file = place.file("t.toml", format!("name = \"t\"\nnodes = 2\n{CALM}"));
    let up = place.start_changed(&format!("up {file} --json"), "", |command| {
        command.env("WEFT_LOG", "debug").env("WEFT_LOG_FORMAT", "json")
    });
    place.find().await_joined();
    place.weft("down --name t").done();
    let lines = objects(&up.wait().err);
    assert!(lines.iter().any(|line| line["message"] == "component started"), "{lines:?}");
    for line in &lines {
        for name in ["time", "level", "target"] {
            assert!(line[name].is_string(), "{name} in {line}");
        }
    }
}

#[test]
fn a_format_of_the_log_that_does_not_exist_is_refused() {
    let place = Place::new();
    let status = "status --name t --patience 0 --json";
    let said = place.start_changed(status, "", |it| it.env("WEFT_LOG_FORMAT", "xml")).wait();
    let reply = said.refused(2, "usage");
    assert!(reply.contains("\"xml\"") && reply.contains("json or logfmt"), "{reply}");
}
