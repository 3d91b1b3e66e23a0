//! The cluster file: what parses, what is refused and in which words.
//!
//! The words are asserted whole: an error that stops naming its line or its limit is a broken
//! promise, not a matter of taste.

mod random;

use std::fs;
use std::path::Path;

use weft_core::dirnet::{BrokenRule, Timing};
use weft_core::time::Duration as Span;

use super::*;
use crate::explain::{Code, Explain};
use crate::scratch::Scratch;

fn parse(text: &str) -> Result<Cluster, ClusterError> {
    Cluster::parse(text, Path::new("c.toml"))
}

fn refused(text: &str) -> ClusterError {
    parse(text).expect_err(text)
}

#[test]
fn words_round_trip_and_others_are_refused() {
    fn check<W>(words: &[W], key: &str, choices: &str)
    where
        W: Copy + std::fmt::Debug + std::fmt::Display + PartialEq,
        W: std::str::FromStr<Err = WordError>,
    {
        words.iter().for_each(|word| assert_eq!(word.to_string().parse(), Ok(*word)));
        let error = "ring".parse::<W>().expect_err(key).to_string();
        assert_eq!(error, format!("{key} is \"ring\", but must be {choices}"));
    }
    check(&Checksum::ALL, "mailbox.checksum", "\"auto\" or \"always\"");
    check(&FabricKind::ALL, "fabric", "\"shm\" or \"verbs\"");
    check(&Form::ALL, "neb.form", "\"unsigned\" or \"signed\"");
    check(&Membership::ALL, "neb.membership", "\"decided\" or \"fixed\"");
    check(&Part::ALL, "dirnet.roles", "\"manager\", \"backup\" or \"agent\"");
    check(&Profile::ALL, "dirnet.profile", "\"host\", \"lan\" or \"rdma\"");
    check(&TensorPath::ALL, "rendezvous.path", "\"hand_over\", \"read\" or \"write\"");
    check(&Wait::ALL, "wait", "\"spin\", \"yield\" or \"futex\"");
    let topologies = r#""auto", "serial", "pipe", "binary", "fibonacci" or "pipeline""#;
    check(&Topology::ALL, "group.topology", topologies);
}

#[test]
fn the_template_is_the_defaults() {
    assert_eq!(parse(&Cluster::template()).expect("the template parses"), Cluster::default());
}

#[test]
fn the_template_fits_a_terminal() {
    for line in Cluster::template().lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn the_template_shows_every_key() {
    let template: toml::Table = Cluster::template().parse().expect("the template is TOML");
    fn paths(table: &toml::Table, prefix: &str) -> Vec<String> {
        let below = |(key, value): (&String, &toml::Value)| {
            let path = format!("{prefix}{key}");
            let below = value.as_table().map(|table| paths(table, &format!("{path}.")));
            [vec![path], below.unwrap_or_default()].concat()
        };
        table.iter().flat_map(below).collect()
    }
    let shown = paths(&template, "");
    // Those without a default, or with one that follows from `nodes`, and the tables of tasks, are
    // shown in comments.
    let of_timing = key::PATHS.into_iter().filter(|path| path.starts_with("dirnet.timing."));
    let others = [
        key::NETWORK_DISCOVERY,
        key::NETWORK_KEY,
        key::DIRNET_ROLES,
        key::DIRNET_MIN_ALIVE.path,
        key::RECOVERY_SCRIPT.path,
        key::RECOVERY_IMAGE,
        key::RECOVERY_CALLS,
    ];
    let hooks = Kind::ALL.into_iter().filter_map(Kind::key);
    let optional: Vec<_> = others.into_iter().chain(of_timing).chain(hooks).collect();
    for path in &optional {
        assert!(Cluster::template().contains(&format!("# {} = ", key::leaf(path))), "{path}");
    }
    let tables = [key::TASKS.path, key::GROUPS.path, key::COMPONENT];
    let is_table = |path: &str| tables.iter().any(|table| path.starts_with(table));
    let is_shown = |path: &&&str| !is_table(path) && !optional.contains(path);
    for path in key::PATHS.iter().filter(is_shown) {
        assert!(shown.iter().any(|shown| shown == path), "{path}");
    }
}

#[test]
fn calls_come_back_from_what_a_running_cluster_keeps_and_wrong_ones_are_refused() {
    const TOP: &str = "name = \"t\"\nnodes = 2\n[recovery]\n";
    let read = |calls: &str| parse(&format!("{TOP}calls = {calls}\n"));
    let cluster =
        read("{ page = [\"logger\", \"a \\\" b\"], \"x y\" = [\"true\"] }").expect("it is right");
    assert_eq!(cluster.recovery.calls["page"], ["logger", "a \" b"]);
    let again = parse(&cluster.to_toml()).expect("it parses");
    assert_eq!(again.recovery, cluster.recovery);
    for (calls, cause) in [
        ("{ page = [] }", "recovery.calls is empty, but must be a program and its arguments"),
        ("{ page = \"true\" }", "recovery.calls is a string, but must be a table of arrays"),
        ("{ page = [1] }", "recovery.calls is an integer, but must be a table of arrays"),
        ("7", "recovery.calls is an integer, but must be a table of arrays"),
    ] {
        let error = read(calls).expect_err(calls).to_string();
        assert!(error.contains(cause), "{error}");
    }
}

#[test]
fn the_task_that_the_template_shows_can_be_taken_as_it_is() {
    let template = Cluster::template();
    let shown = template.find("# [[task]]").expect("it shows a task");
    let (before, table) = template.split_at(shown);
    let table = table.replace("# ", "");
    let cluster = parse(&format!("{before}{table}")).expect("it parses");
    assert_eq!(cluster.tasks, [Task::example()]);
    let has = |path: &&str| table.contains(key::leaf(path)) || *path == key::TASK_RESTART;
    let of_tasks = key::PATHS.iter().filter(|path| path.starts_with("task."));
    assert_eq!(of_tasks.filter(|path| !has(path)).count(), 0);
}

#[test]
fn m10_the_program_that_the_template_shows_can_be_taken_as_it_is() {
    let shown = Cluster::template();
    let is_shown = |line: &&str| {
        [
            "[component]",
            "program = \"target",
            "args = [\"1000\"]",
            "env = [",
            "state = ",
            "working_s",
        ]
        .iter()
        .any(|start| line.strip_prefix("# ").is_some_and(|line| line.starts_with(start)))
    };
    let table: String =
        shown.lines().filter(is_shown).map(|line| format!("{}\n", &line[2..])).collect();
    let cluster = parse(&format!("name = \"t\"\nnodes = 2\n{table}")).expect("it parses");
    assert_eq!(cluster.component, Some(Program::example()));
    assert_eq!(parse(&cluster.to_toml()).expect("it parses again"), cluster);
}

#[test]
fn m10_a_program_that_the_command_line_names_is_left_out_of_the_file() {
    let text = "name = \"t\"\nnodes = 2\n[component]\nstate = \"64 KiB\"\n";
    let cluster = parse(text).expect("it is right");
    let component = cluster.component.as_ref().expect("a table");
    assert_eq!((component.program.as_str(), component.state), ("", 64 << 10));
    assert_eq!(parse(&cluster.to_toml()).expect("it parses again"), cluster);
}

#[test]
fn m10_a_program_is_refused_with_its_line() {
    const TOP: &str = "name = \"t\"\nnodes = 2\n[component]\n";
    for (text, cause) in [
        (
            "program = \"\"",
            "c.toml:4: component.program is \"\", but must be 1 to 4095 bytes without a zero byte",
        ),
        (
            "program = \"p\"\nenv = [\"=x\"]",
            "c.toml:5: component.env is \"=x\", but must be NAME=VALUE",
        ),
        (
            "program = \"p\"\nstate = \"2 GiB\"",
            "c.toml:5: component.state is \"2 GiB\", but must be a length up to 1024 MiB, such as \
             \"64 KiB\"",
        ),
        (
            "program = \"p\"\nworking_s = 86401",
            "c.toml:5: component.working_s is 86401, but must be 0 to 86400",
        ),
        (
            "program = \"p\"\nargs = \"x\"",
            "c.toml:5: component.args is a string, but must be an array of strings",
        ),
    ] {
        assert_eq!(refused(&format!("{TOP}{text}")).to_string(), cause);
    }
}

#[test]
fn m13_a_hook_is_refused_with_its_line_and_the_event_that_was_meant() {
    const TOP: &str = "name = \"t\"\nnodes = 2\n[hooks]\n";
    for (text, cause, cure) in [
        (
            "removed = []",
            "c.toml:4: hooks.removed is empty, but must be a program and its arguments, 1 to 64 \
             words",
            "set hooks.removed to a program and its arguments, 1 to 64 words",
        ),
        (
            "removed = [\"\"]",
            "c.toml:4: hooks.removed is \"\", but must be 1 to 4095 bytes without a zero byte",
            "set hooks.removed to 1 to 4095 bytes without a zero byte",
        ),
        (
            "removed = \"curl\"",
            "c.toml:4: hooks.removed is a string, but must be an array of strings",
            "make hooks.removed an array of strings",
        ),
        (
            "remove = [\"curl\"]",
            "c.toml:4: the key \"hooks.remove\" is unknown",
            "write hooks.removed if that is what you mean",
        ),
        (
            "timeout_s = 0",
            "c.toml:4: hooks.timeout_s is 0, but must be 1 to 3600",
            "set hooks.timeout_s to a number from 1 to 3600",
        ),
    ] {
        let error = refused(&format!("{TOP}{text}"));
        assert_eq!((error.to_string().as_str(), error.cure().as_str()), (cause, cure));
    }
    assert!(matches!(refused(&format!("{TOP}missed = [\"x\"]")), ClusterError::Unknown { .. }));
}

#[test]
fn m13_the_program_of_a_hook_is_looked_for_on_this_host() {
    let hooks = |command| parse(&format!("name = \"t\"\nnodes = 2\nhooks.removed = {command}"));
    let check = |command| hooks(command).expect("it parses").hooks.check_programs();
    assert!(check("[\"sh\", \"-c\", \"true\"]").is_ok());
    let error = check("[\"no-such-program\"]").expect_err("it is not there");
    let cause = "hooks.removed: the program no-such-program is not found in PATH";
    assert_eq!((error.to_string().as_str(), error.code()), (cause, Code::InputMissing));
}

#[test]
fn tasks_are_refused_with_their_line() {
    const TOP: &str = "name = \"t\"\nnodes = 2\n[[task]]\nname = \"a\"\n";
    for (text, cause) in [
        ("", "c.toml: the key task.program is missing"),
        (
            "program = \"\"",
            "c.toml:5: task.program is \"\", but must be 1 to 255 bytes without a zero byte",
        ),
        ("program = \"p\"\nnodes = [2]", "c.toml:6: task.nodes is 2, but must be 0 to 1"),
        ("program = \"p\"\nnodes = [-1]", "c.toml:6: task.nodes is -1, but must be 0 to 1"),
        (
            "program = \"p\"\nnodes = [1, 1]",
            "c.toml:6: task.nodes is 1, but must be given once only",
        ),
        (
            "program = \"p\"\nargs = [1]",
            "c.toml:6: task.args is an integer, but must be an array of strings",
        ),
        (
            "program = \"p\"\nargs = \"x\"",
            "c.toml:6: task.args is a string, but must be an array of strings",
        ),
        ("program = \"p\"\nbeat_ms = 1", "c.toml:6: task.beat_ms is 1, but must be 10 to 3600000"),
        (
            "program = \"p\"\n[[task]]\nname = \"a\"\nprogram = \"q\"",
            "c.toml:7: task.name is \"a\", but must be given once only",
        ),
        ("program = \"p\"\ncolour = 1", "c.toml:6: the key \"task.colour\" is unknown"),
        (
            "program = \"p\"\n[[task]]\nname = \"No!\"\nprogram = \"q\"",
            "c.toml:7: \"No!\" is no task's name",
        ),
    ] {
        let error = refused(&format!("{TOP}{text}"));
        assert_eq!(error.to_string(), cause);
        assert!(!error.cure().is_empty());
    }
    let error = refused("name = \"t\"\nnodes = 2\ntask = 1");
    assert_eq!(error.to_string(), "c.toml:3: task is an integer, but must be an array of tables");
}

/// The window must hold all failures of a task that never beats, with the pauses between them.
#[test]
fn a_beat_too_long_for_the_window_of_restarts_is_refused() {
    let file = |beat_ms: u64, max: u64, within_s: u64| {
        format!(
            "name = \"t\"\nnodes = 2\n[[task]]\nname = \"a\"\nprogram = \"p\"\n\
             beat_ms = {beat_ms}\nrestart = {{ max = {max}, within_s = {within_s} }}\n"
        )
    };
    let admitted = [(2499, 3, 10), (5000, 3, 21), (3_600_000, 0, 1), (7499, 1, 10)];
    for (beat_ms, max, within_s) in admitted {
        let admitted = parse(&file(beat_ms, max, within_s));
        assert_eq!(admitted.expect("it fits").tasks[0].beat_ms, Some(beat_ms));
    }
    let error = refused(&file(5000, 3, 20));
    assert_eq!(
        error.to_string(),
        "c.toml:6: task.beat_ms is 5000, but must be at most 4999 while task.restart.max is 3 and \
         task.restart.within_s is 20: a task that is silent from each start on would be restarted \
         forever"
    );
    let cure = "raise task.restart.within_s to 21 at least, or lower task.beat_ms or \
                task.restart.max";
    assert_eq!((error.code(), error.cure()), (Code::ClusterFile, cure.to_owned()));
    refused(&file(2500, 3, 10));
    refused(&file(7500, 1, 10));
    let error = refused(&file(3_600_000, 10_000, 86_400));
    assert_eq!(error.cure(), "lower task.beat_ms or task.restart.max", "no window is so long");
}

/// The window must hold all resets of a node that never comes back.
#[test]
fn a_limit_of_resets_that_no_node_can_reach_is_refused() {
    let file = |lines: &str| format!("name = \"t\"\nnodes = 2\n{lines}\n");
    for lines in [
        "dirnet.reset = { max = 3, within_s = 124 }",
        "dirnet.reset = { max = 0, within_s = 1 }",
        "dirnet.reset = { max = 255, within_s = 86400 }",
        "dirnet.profile = \"lan\"\ndirnet.reset.within_s = 62",
        "dirnet.reset = { max = 6, within_s = 14 }\ndirnet.timing.reboot_ms = 1000",
    ] {
        parse(&file(lines)).expect("it can be reached");
    }
    let error = refused(&file("[dirnet.reset]\nmax = 3\nwithin_s = 123"));
    assert_eq!(
        error.to_string(),
        "c.toml:5: dirnet.reset.within_s is 123, but must be at least 124 while dirnet.reset.max \
         is 3 and each reset takes up to 41200 ms: a node that never comes back would be reset \
         forever"
    );
    let cure = "raise dirnet.reset.within_s to 124 at least, or lower dirnet.reset.max or \
                dirnet.timing.reboot_ms";
    assert_eq!((error.code(), error.cure()), (Code::ClusterFile, cure.to_owned()));
    refused(&file("dirnet.profile = \"lan\"\ndirnet.reset.within_s = 61"));
    // Its default fits, where any does.
    for (lines, within_s) in [
        ("", 180),
        ("dirnet.reset.max = 1", 180),
        ("dirnet.reset.max = 10", 413),
        ("dirnet.timing.reboot_ms = 600000", 1804),
    ] {
        let dirnet = parse(&file(lines)).expect(lines).dirnet;
        assert_eq!(dirnet.reset.within_s, within_s, "{lines}");
    }
    let error = refused(&file("dirnet.timing.reboot_ms = 600000\ndirnet.reset.max = 255"));
    assert_eq!(error.cure(), "lower dirnet.reset.max or dirnet.timing.reboot_ms");
    let error = refused(&file("dirnet.reset.max = 256"));
    assert_eq!(error.to_string(), "c.toml:3: dirnet.reset.max is 256, but must be 0 to 255");
}

#[test]
fn the_default_limit_of_resets_fits_every_profile() {
    for profile in [Profile::Host, Profile::Lan, Profile::Rdma] {
        let dirnet = DirNet { profile, ..DirNet::default() };
        assert_eq!(dirnet.check(2), Ok(()), "{profile}");
        let given_up = dirnet.timing().reset_period().0 * dirnet.reset.max as u64;
        assert!(given_up <= 125_000_000_000, "{profile}: {given_up} ns");
    }
}

#[test]
fn one_task_too_many_is_refused() {
    let tables: String = (0..=Cluster::TASKS_MAX)
        .map(|number| format!("[[task]]\nname = \"t{number}\"\nprogram = \"p\"\n"))
        .collect();
    let error = refused(&format!("name = \"t\"\nnodes = 2\n{tables}"));
    assert!(error.to_string().contains("task is 17, but must be 0 to 16"), "{error}");
}

#[test]
fn a_task_of_a_node_that_a_smaller_cluster_lacks_is_refused() {
    let cluster = Cluster { tasks: vec![Task::example()], nodes: 2, ..Cluster::default() };
    let error = cluster.check().expect_err("no node 2");
    assert!(
        matches!(&error, CheckError::Limit(source) if source.key == key::TASK_NODES),
        "{error}"
    );
}

#[test]
fn two_keys_are_enough() {
    assert_eq!(parse("name = \"weft\"\nnodes = 4").expect("two keys"), Cluster::default());
}

#[test]
fn refusals_name_line_key_value_and_limit() {
    const TOP: &str = "name = \"t\"\nnodes = 4\n";
    for (text, cause, cure) in [
        ("nodes = 4", "c.toml: the key name is missing", "name = \"weft\""),
        ("name = \"t\"", "c.toml: the key nodes is missing", "nodes = 4"),
        ("name = \"t\"\nnodes = 1", "c.toml:2: nodes is 1, but must be 2 to 32", "2 to 32"),
        ("name = \"T\"\nnodes = 4", "c.toml:1: the cluster name \"T\" contains 'T'", "a-z"),
        (
            &format!("{TOP}wait = \"sleep\""),
            "c.toml:3: wait is \"sleep\", but must be \"spin\", \"yield\" or \"futex\"",
            "futex",
        ),
        (
            &format!("{TOP}[mailbox]\nslots = 1000"),
            "c.toml:4: mailbox.slots is 1000, but must be a power of two from 16 to 4096",
            "16 to 4096",
        ),
        (
            &format!("{TOP}[lane]\nslots = -8"),
            "c.toml:4: lane.slots is -8, but must be a power of two from 16 to 1024",
            "16 to 1024",
        ),
        (
            &format!("{TOP}restart.max = 99999999999999999999999"),
            "c.toml:3: restart.max is 99999999999999999999999, but must be 0 to 10000",
            "10000",
        ),
        (
            &format!("{TOP}[mailbox]\nslots = \"many\""),
            "c.toml:4: mailbox.slots is a string, but must be an integer",
            "an integer",
        ),
        (
            &format!("{TOP}fabric = \"tcp\""),
            "c.toml:3: fabric is \"tcp\", but must be \"shm\" or \"verbs\"",
            "verbs",
        ),
        (
            &format!("{TOP}[verbs]\ndevices = \"rxe0\""),
            "c.toml:4: verbs.devices is a string, but must be an array of strings",
            "an array of strings",
        ),
        (
            &format!("{TOP}restart = 7"),
            "c.toml:3: restart is an integer, but must be a table",
            "a table",
        ),
    ] {
        let error = refused(text);
        assert_eq!(error.to_string(), cause);
        assert!(error.cure().contains(cure), "{}", error.cure());
    }
}

/// Each node calls those of lower ranks: at an address that two share it meets the wrong one.
#[test]
fn addresses_are_one_of_each_node_and_of_no_two_the_same() {
    let file = |addresses: &str| {
        format!("name = \"t\"\nnodes = 2\n[network]\n\naddresses = [{addresses}]")
    };
    for (addresses, cause, cure) in [
        (
            "\"x\"",
            "names 1 address, but must name exactly 2 addresses",
            "let network.addresses name exactly 2 addresses",
        ),
        (
            "\"a:7\", \"A:07\"",
            "is \"A:07\", but must be given once only",
            "change one of the two: network.addresses may be \"A:07\" once",
        ),
        (
            "\"[::ffff:10.0.0.1]:7\", \"10.0.0.1:7\"",
            "is \"10.0.0.1:7\", but must be given once only",
            "change one of the two: network.addresses may be \"10.0.0.1:7\" once",
        ),
        (
            "\"a:7\", \"b\"",
            "is \"b\", but must be HOST:PORT, with a port of 1 to 65535",
            "write each of network.addresses as HOST:PORT, with a port of 1 to 65535",
        ),
    ] {
        let error = refused(&file(addresses));
        assert_eq!(error.to_string(), format!("c.toml:5: network.addresses {cause}"));
        assert_eq!((error.cure().as_str(), error.code()), (cure, Code::ClusterFile));
    }
    for bad in ["a:0", "a:65536", ":7", "a b:7", "::1:7", "a:", "http://a:7"] {
        let error = refused(&file(&format!("\"b:7\", \"{bad}\"")));
        assert!(error.to_string().contains("must be HOST:PORT"), "{bad}: {error}");
    }
    for good in ["a:7", "b:8", "[::1]:7", "10.0.0.1:7", "a.example:7"] {
        parse(&file(&format!("\"b:7\", \"{good}\""))).expect(good);
    }
}

#[test]
fn devices_are_taken_in_turn() {
    let cluster = parse("name = \"t\"\nnodes = 3\nverbs.devices = [\"a\", \"b\"]").expect("two");
    let device = |rank| cluster.verbs.device(rank);
    assert_eq!([0, 1, 2].map(device), [Some("a"), Some("b"), Some("a")]);
    assert_eq!(Verbs::default().device(1), None);
}

#[test]
fn unknown_keys_get_a_suggestion_at_every_level() {
    for (text, line, meant) in [
        ("nmae = \"t\"\nnodes = 4", 1, Some("name")),
        ("name = \"t\"\nnodes = 4\n[malbox]\nslots = 16", 3, Some("mailbox")),
        ("name = \"t\"\nnodes = 4\n[mailbox]\nslot = 16", 4, Some("mailbox.slots")),
        ("name = \"t\"\nnodes = 4\n[lane]\n\nwait = \"spin\"", 5, Some("wait")),
        ("name = \"t\"\nnodes = 4\nmailbox.colour = 1", 3, None),
    ] {
        match refused(text) {
            ClusterError::Unknown { place, suggestion, .. } => {
                assert_eq!((place.line, suggestion), (Some(line), meant), "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn the_first_unknown_key_of_the_file_is_named() {
    let error = refused("zebra = 1\naxe = 2");
    assert!(matches!(&error, ClusterError::Unknown { key, .. } if key == "zebra"), "{error}");
}

#[test]
fn what_is_not_toml_is_refused_with_its_line() {
    for text in ["name = \"t\"\nnodes = = 4", "name = \"t\"\nname = \"u\"", "\n\u{0}"] {
        let error = refused(text);
        assert!(
            matches!(&error, ClusterError::Syntax { place, .. } if place.line == Some(2)),
            "{error:?}"
        );
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

#[test]
fn files_that_are_no_cluster_files_are_told_apart() {
    let scratch = Scratch::new();
    let binary = scratch.path().join("binary");
    fs::write(&binary, [0x7f, b'E', b'L', b'F', 0xff]).expect("the directory is ours");
    let long = scratch.path().join("long");
    fs::write(&long, "# weft\n".repeat(Cluster::FILE_LEN_MAX)).expect("the directory is ours");
    for (path, code) in [
        (scratch.path().join("no such file"), Code::InputMissing),
        (scratch.path().to_owned(), Code::InputUnreadable),
        (binary, Code::InputBinary),
        (long, Code::ClusterFile),
    ] {
        let error = Cluster::load(&path).expect_err("not a cluster file");
        assert_eq!(error.code(), code, "{error}");
    }
}

#[test]
fn exactly_one_manager_leads_a_cluster() {
    const TOP: &str = "name = \"t\"\nnodes = 3\n[dirnet]\n";
    for (line, cause) in [
        (
            "roles = [\"manager\", \"manager\", \"backup\"]",
            "c.toml:4: dirnet.roles names 2 managers, but must name exactly one manager",
        ),
        (
            "roles = [\"backup\", \"agent\", \"backup\"]",
            "c.toml:4: dirnet.roles names 0 managers, but must name exactly one manager",
        ),
        (
            "roles = [\"manager\"]",
            "c.toml:4: dirnet.roles names 1 role, but must name exactly 3 roles",
        ),
        ("min_alive = 4", "c.toml:4: dirnet.min_alive is 4, but must be 1 to 3"),
        (
            "profile = \"wan\"",
            "c.toml:4: dirnet.profile is \"wan\", but must be \"host\", \"lan\" or \"rdma\"",
        ),
    ] {
        assert_eq!(refused(&format!("{TOP}{line}")).to_string(), cause);
    }
    let parts = parse(&format!("{TOP}min_alive = 2")).expect("it parses").dirnet.parts(3);
    assert_eq!(parts, [Part::Manager, Part::Backup, Part::Backup]);
}

/// G-4: each rule broken through the file is refused with its name, both sides and what mends it.
#[test]
fn a_timing_that_breaks_a_rule_is_refused() {
    const TOP: &str = "name = \"t\"\nnodes = 3\n[dirnet]\nprofile = \"lan\"\n[dirnet.timing]\n";
    for (lines, at, rule, sides, mends) in [
        ("clear_us = 80000", 6, BrokenRule::Alarm, "100000 us < 100000 us", ("alarm_us", 100_001)),
        ("losses = 5", 6, BrokenRule::Tolerance, "220000 us >= 260000 us", ("receive_us", 260_000)),
        (
            "# slower\nalarm_us = 200000",
            7,
            BrokenRule::Window,
            "400000 us >= 460000 us",
            ("window_us", 240_000),
        ),
        (
            "send_us = 10000\nreceive_us = 500000\nwindow_us = 79999",
            8,
            BrokenRule::Testimony,
            "79999 us >= 80000 us",
            ("window_us", 80_000),
        ),
        (
            "candidate_us = 259999",
            6,
            BrokenRule::Candidate,
            "259999 us >= 260000 us",
            ("candidate_us", 260_000),
        ),
        ("join_us = 39999", 6, BrokenRule::Join, "39999 us >= 40000 us", ("join_us", 40_000)),
    ] {
        let error = refused(&format!("{TOP}{lines}"));
        let cause = format!("c.toml:{at}: dirnet.timing breaks {rule}, which comes to {sides}");
        assert_eq!(error.to_string(), cause);
        let (key, least) = mends;
        let cure = format!("set dirnet.timing.{key} to {least} or more");
        assert!(error.cure().starts_with(&cure), "{}", error.cure());
        assert_eq!(error.code(), Code::ClusterFile);
    }
}

#[test]
fn values_of_the_timing_are_the_profiles_unless_they_are_set() {
    const TOP: &str = "name = \"t\"\nnodes = 3\n[dirnet]\nprofile = \"lan\"\n";
    let read = |lines: &str| parse(&format!("{TOP}{lines}")).expect(lines).dirnet.timing();
    assert_eq!(read(""), Timing::LAN);
    let (send, reboot) = (Span::from_millis(39), Span::from_millis(1_000));
    let set = read("[dirnet.timing]\nsend_us = 39_000\nreboot_ms = 1000");
    assert_eq!(set, Timing { send, reboot, ..Timing::LAN });
    for (line, cause) in [
        (
            "clone_ms = 249",
            "dirnet.timing.clone_ms is 249, but must be 250 to 600000: a process takes about that \
             long to start, and one that is not waited for is reset",
        ),
        ("send_us = 0", "dirnet.timing.send_us is 0, but must be 10 to 60000000"),
        ("losses = -1", "dirnet.timing.losses is -1, but must be 0 to 1000"),
        ("send_us = 0.5", "dirnet.timing.send_us is a float, but must be an integer"),
        ("send_ms = 1", "the key \"dirnet.timing.send_ms\" is unknown"),
    ] {
        let error = refused(&format!("{TOP}[dirnet.timing]\n{line}"));
        assert_eq!(error.to_string(), format!("c.toml:6: {cause}"));
    }
}

#[test]
fn clusters_that_would_understand_one_layout_differently_have_another_digest() {
    let layout = Layout::new(3);
    let digest = |text: &str| {
        let cluster = parse(&format!("name = \"t\"\nnodes = 3\n{text}")).expect(text);
        cluster.layout_digest(&layout)
    };
    let plain = digest("");
    assert_eq!(digest("mailbox.hold_s = 31"), plain);
    // The slots of 240 and 256 bytes are of one length.
    for text in [
        "mailbox.message_len = 240",
        "mailbox.checksum = \"always\"",
        "neb.message_len = 500",
        "neb.membership = \"fixed\"",
    ] {
        assert_ne!(digest(text), plain, "{text}");
    }
}

#[test]
fn tensors_are_not_handed_over_to_other_hosts_however_these_are_found() {
    let hands_over = |text: &str| {
        let head = "name = \"t\"\nnodes = 2\nrendezvous.pool_mib = 8\n";
        parse(&format!("{head}{text}")).expect(text).hands_over()
    };
    assert!(hands_over(""));
    assert!(!hands_over("network.addresses = [\"a:1\", \"b:1\"]"));
    assert!(!hands_over("network.discovery = \"etcd://c:2379\""));
}

#[test]
fn nets_that_would_judge_differently_have_another_digest() {
    let digest = |text: &str| parse(&format!("name = \"t\"\nnodes = 3\n{text}")).expect(text);
    let digest = |text: &str| digest(text).dirnet.digest(3);
    let plain = digest("");
    let same = "[dirnet]\nroles = [\"manager\", \"backup\", \"backup\"]\ntiming.losses = 4";
    assert_eq!(digest(same), plain);
    let others = [
        "dirnet.profile = \"lan\"",
        "dirnet.min_alive = 1",
        "dirnet.timing.losses = 3",
        "dirnet.timing.reboot_ms = 39999",
        "dirnet.reset.max = 2",
        "dirnet.reset.within_s = 181",
        "dirnet.roles = [\"backup\", \"manager\", \"backup\"]",
        "dirnet.roles = [\"manager\", \"backup\", \"agent\"]",
    ];
    let mut digests: Vec<u64> = others.iter().map(|text| digest(text)).chain([plain]).collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), others.len() + 1);
}

#[test]
fn a_majority_decides_unless_the_file_says_otherwise() {
    let unset = |nodes| DirNet::default().min_alive(nodes);
    assert_eq!([2, 3, 4, 5, 6, 7, 32].map(unset), [1, 2, 3, 3, 4, 4, 17]);
    let read = |text: &str| parse(&format!("name = \"t\"\n{text}")).expect(text);
    for (text, min_alive) in
        [("nodes = 7", 4), ("nodes = 7\ndirnet.min_alive = 1", 1), ("nodes = 2", 1)]
    {
        let cluster = read(text);
        assert_eq!(cluster.dirnet.min_alive(cluster.nodes), min_alive, "{text}");
    }
}

#[test]
fn a_file_that_asks_for_less_than_a_majority_is_warned_of_a_partition() {
    let risk = |min_alive, nodes| DirNet { min_alive, ..DirNet::default() }.partition_risk(nodes);
    for nodes in 1..=32 {
        assert_eq!(risk(None, nodes), None, "{nodes} nodes have their default");
    }
    for (min_alive, nodes) in [(1, 1), (2, 2), (2, 3), (3, 4), (3, 5)] {
        assert_eq!(risk(Some(min_alive), nodes), None, "{min_alive} of {nodes}");
    }
    assert_eq!(
        risk(Some(1), 4).expect("it is less than three"),
        "warning: after a network split both sides would remove each other \
         (dirnet.min_alive = 1); set it to 3 so that only a majority can"
    );
}

#[test]
fn who_may_not_be_followed_is_a_risk() {
    use Part::{Agent, Backup, Manager};
    let risk = |roles: &[Part]| {
        let dirnet = DirNet { roles: Some(roles.to_vec()), ..DirNet::default() };
        dirnet.succession_risk(roles.len())
    };
    assert_eq!(DirNet::default().succession_risk(4), None);
    assert_eq!(risk(&[Manager]), None);
    assert_eq!(risk(&[Agent, Manager, Backup]), None);
    assert!(risk(&[Agent, Manager, Agent]).is_some_and(|risk| risk.contains("node 1 is down")));
}

const GROUPS: &str = "name = \"t\"\nnodes = 4\n";

/// A file with these groups.
fn grouped(groups: &[(&str, &str)]) -> String {
    let table = |(name, members): &(&str, &str)| {
        format!("[[groups]]\nname = \"{name}\"\nmembers = {members}\n")
    };
    format!("{GROUPS}{}", groups.iter().map(table).collect::<String>())
}

#[test]
fn gt5_groups_have_names_and_members_in_the_order_of_the_file() {
    let text = grouped(&[("pair", "[3, 1]"), ("rest", "[0, 2, 3]")]);
    let text =
        text.replace("[[groups]]\nname = \"pair\"", "group.count = 1\n[[groups]]\nname = \"pair\"");
    let cluster = parse(&text).expect("two groups, and that of all nodes");
    let groups = cluster.group.groups(cluster.nodes);
    let groups: Vec<_> = groups.iter().map(|it| (it.name.as_str(), &it.members[..])).collect();
    assert_eq!(groups, [("all", &[0, 1, 2, 3][..]), ("pair", &[3, 1]), ("rest", &[0, 2, 3])]);
    assert_eq!(parse(&cluster.to_toml()).expect("its own text"), cluster);
}

#[test]
fn gt5_a_group_that_cannot_be_opened_is_refused_with_its_line() {
    let many: Vec<_> = (0..8).map(|n| format!("g{n}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), "[0, 1]")).collect();
    for (groups, line, cause) in [
        (
            &[("Pair", "[0, 1]")][..],
            4,
            "groups.name is \"Pair\", but must be 1 to 32 characters of a-z 0-9 _ -, the first a \
             letter or a digit",
        ),
        (
            &[("all", "[0, 1]")],
            4,
            "groups.name is \"all\", but must be another name: group.count = 1 makes the group of \
             all nodes, \"all\"",
        ),
        (
            &[("a", "[0, 1]"), ("a", "[0, 1]")],
            7,
            "groups.name is \"a\", but must be given once only",
        ),
        (
            &[("a", "[0]")],
            5,
            "groups.members is a list of 1, but must be 2 to 32: the number of members",
        ),
        (&[("a", "[0, 4]")], 5, "groups.members is 4, but must be 0 to 3"),
        (&[("a", "[0, 0]")], 5, "groups.members is 0, but must be given once only"),
    ] {
        assert_eq!(refused(&grouped(groups)).to_string(), format!("c.toml:{line}: {cause}"));
    }
    assert_eq!(refused(&grouped(&many)).to_string(), "c.toml: groups is 8, but must be 0 to 7");
    let large = "group.block_len = 1048576\ngroup.blocks = 64\n";
    let text = grouped(&[("a", "[0, 1]"), ("b", "[0, 1]")])
        .replace("nodes = 4\n", &format!("nodes = 32\n{large}"));
    assert_eq!(
        refused(&text).to_string(),
        "c.toml: groups is 2, but must be 0 to 1: the windows of all groups fit into less than 4 \
         GiB"
    );
    assert!(matches!(
        refused(&format!("{GROUPS}[[groups]]\nname = \"a\"")),
        ClusterError::Missing { key: "groups.members", .. }
    ));
}
