//! What needs no cluster: checking a file, completions, manual pages.

use crate::place::Place;

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
