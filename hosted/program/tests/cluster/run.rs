//! Programs as members: the examples, how programs end, and what is refused.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};
use weft::client::Client;
use weft::process::Signal;

use crate::place::{Nodes, Place, Running, eventually};
use crate::said::Said;

/// The folder of this build, with the examples and the library for C in it.
pub(crate) fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_BIN_EXE_weft")).parent().expect("a target directory");
        let is_release = folder.ends_with("release");
        let mut build = Command::new(env!("CARGO"));
        // With the profile and the features of `ci/test`, for then all of it is built already.
        build.args(["build", "--profile", if is_release { "release" } else { "test" }]);
        build.args(["--workspace", "--lib", "--examples", "--quiet"]);
        if cfg!(feature = "rivals") {
            build.args(["--features", "weft-program/rivals"]);
        }
        let target = folder.parent().expect("a target directory");
        build.arg("--target-dir").arg(target).current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(build.status().expect("cargo runs").success(), "the examples build");
        folder.to_owned()
    })
}

/// The path of an example of this build.
pub(crate) fn example(name: &str) -> String {
    let path = built().join("examples").join(name);
    path.into_os_string().into_string().expect("the path is UTF-8")
}

/// The last line that a run printed.
#[track_caller]
fn result(said: &Said) -> Value {
    let line = said.out.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {}{}", said.out, said.err))
}

#[test]
fn m7_members_that_finish_end_the_run_and_their_output_has_their_rank_in_front() {
    let place = Place::new();
    let said = place.weft(&format!("run -n 3 --name t --json -- {}", example("hello")));
    assert_eq!(said.status, Some(0), "{}{}", said.out, said.err);
    for (me, from) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
        let line = format!("[{me}] hello from {from}, incarnation 1");
        assert!(said.out.lines().any(|it| it == line), "{line} is not in {}", said.out);
    }
    let member = |rank| json!({ "rank": rank, "status": 0, "incarnations": 1 });
    assert_eq!(result(&said), json!({ "ok": true, "members": [member(0), member(1), member(2)] }));
    place.assert_nothing_left();
}

#[test]
fn m7_a_member_that_is_killed_goes_on_as_its_next_incarnation() {
    let place = Place::new();
    let run = place.start(&format!("run -n 4 --name t --json -- {} 500000", example("ring")), "");
    place.find().await_joined();
    place.weft("inject kill 1 --name t --wait 60").done();
    let said = run.wait();
    assert_eq!(said.status, Some(0), "{}{}", said.out, said.err);
    let result = result(&said);
    assert_eq!(result["ok"], true);
    assert!(result["members"][1]["incarnations"].as_u64() >= Some(2), "{result}");
    assert!(said.err.contains("verdict: Ended"), "peers report it: {}", said.err);
    place.assert_nothing_left();
}

#[test]
fn m4_each_member_delivers_what_all_others_broadcast() {
    let place = Place::new();
    let said = place.weft(&format!("run -n 3 --name t -- {} 1000", example("broadcast")));
    let out = said.done();
    for rank in 0..3 {
        let line = format!("[{rank}] delivered 1000 messages of each of 2 members");
        assert!(out.contains(&line), "{out}");
    }
}

/// GT-19: a member that is killed in the middle of a long message receives the rest of it, and the
/// root waits for it.
#[test]
fn gt19_a_group_delivers_a_long_message_across_the_kill_of_a_member() {
    const LEN: usize = 100_000_000;
    let place = Place::new();
    let file = place.file("c.toml", "name = \"t\"\nnodes = 4\ngroup.count = 1\n");
    let run = place.start(&format!("run {file} --json -- {} {LEN}", example("group")), "");
    place.find().await_joined();
    place.weft("inject kill 2 --name t --wait 60").done();
    let said = run.wait();
    assert_eq!(said.status, Some(0), "{}{}", said.out, said.err);
    let result = result(&said);
    assert!(result["members"][2]["incarnations"].as_u64() >= Some(2), "{result}");
    assert!(said.out.contains(&format!("[0] sent {LEN} bytes")), "{}", said.out);
    for rank in 1..4 {
        assert!(said.out.contains(&format!("[{rank}] received {LEN} bytes")), "{}", said.out);
    }
    place.assert_nothing_left();
}

#[test]
fn gt5_a_member_of_a_cluster_without_groups_is_refused() {
    let place = Place::new();
    let file = place.file("c.toml", "name = \"t\"\nnodes = 2\nrestart.max = 0\n");
    let said = place.weft(&format!("run {file} -- {} 8", example("group")));
    assert_ne!(said.status, Some(0));
    assert!(said.err.contains("UnknownGroup"), "{}", said.err);
}

/// RZ-5, RZ-12: what was received and not recorded is received again, what its sender lost is sent
/// again, and each tensor is judged by its receiver.
#[test]
fn rz5_members_exchange_a_thousand_tensors_across_the_kill_of_one() {
    let place = Place::new();
    let file = place.file("c.toml", "name = \"t\"\nnodes = 2\nrendezvous.pool_mib = 4\n");
    let tensors = example("tensors");
    let said = place.weft(&format!("run {file} --state 4KiB -- {tensors} 1000 die"));
    assert_eq!(said.status, Some(0), "{}{}", said.out, said.err);
    for (rank, incarnation) in [(0, 1), (1, 2)] {
        let line = format!("[{rank}] exchanged 1000 tensors, incarnation {incarnation}");
        assert!(said.out.contains(&line), "{}{}", said.out, said.err);
    }
    place.assert_nothing_left();
}

/// RZ-15: at any moment, both members in turn.
#[test]
fn rz15_kills_at_any_moment_lose_no_tensor_and_deliver_no_wrong_one() {
    const STEPS: u64 = 4000;
    let small = "name = \"t\"\nnodes = 2\nrestart.max = 10000\nrestart.within_s = 1\n\
                 rendezvous.pool_mib = 4\n";
    let mut to_kill = 8;
    while to_kill > 0 {
        let place = Place::new();
        let file = place.file("c.toml", small);
        let tensors = example("tensors");
        let run = place.start(&format!("run {file} --state 4KiB -- {tensors} {STEPS}"), "");
        to_kill -= kill_in_turn(&place.find(), to_kill);
        let out = run.wait().done();
        for rank in 0..2 {
            let line = format!("[{rank}] exchanged {STEPS} tensors, incarnation ");
            assert!(out.contains(&line), "{out}");
        }
        place.assert_nothing_left();
    }
}

#[test]
fn rz3_a_member_of_a_cluster_without_a_rendezvous_is_refused() {
    let place = Place::new();
    let file = place.file("c.toml", "name = \"t\"\nnodes = 2\nrestart.max = 0\n");
    let said = place.weft(&format!("run {file} --state 4KiB -- {} 8", example("tensors")));
    assert_ne!(said.status, Some(0));
    assert!(said.err.contains("NoRendezvous"), "{}", said.err);
}

/// Every effect exactly once: the last sum is judged by the program itself.
#[test]
fn m9_a_counter_under_a_storm_of_kills_counts_each_number_once() {
    const COUNT: u64 = 600_000;
    let small = "name = \"t\"\nnodes = 4\nrestart.max = 10000\nrestart.within_s = 1\n\
                 dirnet.min_alive = 1\n";
    let mut to_kill = 40;
    while to_kill > 0 {
        let place = Place::new();
        let file = place.file("c.toml", small);
        let counter = example("counter");
        let run = place.start(&format!("run {file} --state 4KiB -- {counter} {COUNT}"), "");
        to_kill -= kill_in_turn(&place.find(), to_kill);
        let out = run.wait().done();
        let sum = 3 * COUNT * (COUNT + 1) / 2;
        assert!(out.contains(&format!("[0] sum {sum}, expected {sum}")), "{out}");
        place.assert_nothing_left();
    }
}

/// Every entry once, in one order, at every member.
#[test]
fn m9_a_replicated_log_is_the_same_everywhere_after_kills() {
    const COUNT: usize = 4_000;
    let small = "name = \"t\"\nnodes = 3\nrestart.max = 10000\nrestart.within_s = 1\n\
                 dirnet.min_alive = 1\n";
    let entries = |round| (0..3).map(move |origin| format!("entry {round} of {origin}\n"));
    let expected: String = (1..=COUNT).flat_map(entries).collect();
    let mut to_kill = 12;
    while to_kill > 0 {
        let place = Place::new();
        let (file, output) = (place.file("c.toml", small), place.path_of("output"));
        let log = example("replicated_log");
        let run =
            place.start(&format!("run {file} --state 1MiB --output {output} -- {log} {COUNT}"), "");
        to_kill -= kill_in_turn(&place.find(), to_kill);
        run.wait().done();
        for rank in 0..3 {
            let kept = std::fs::read_to_string(format!("{output}/{rank}.out")).expect("written");
            let rounds = kept.lines().count() / 3;
            assert!(kept == expected, "member {rank} keeps {rounds} of {COUNT} rounds");
        }
        place.assert_nothing_left();
    }
}

/// Kills one member after the other, each once the one before has come back; how many. They are
/// fewer than `kills` where the run is over before: a test that needs so many starts another run,
/// since no amount of work outlasts the kills on every machine.
#[track_caller]
pub(crate) fn kill_in_turn(nodes: &Nodes, kills: usize) -> usize {
    nodes.await_joined();
    let mut killed = 0;
    for rank in nodes.ranks().collect::<Vec<_>>().into_iter().cycle().take(10 * kills) {
        // One that is being restarted has no process; at the end there is no node.
        let client = Client::connect(&nodes.dir, &nodes.cluster, rank, Duration::ZERO);
        let Ok(mut client) = client else { break };
        let is_killed = client.kill().is_ok();
        killed += usize::from(is_killed);
        if killed == kills {
            break;
        }
        if is_killed {
            let _ = client.await_joined(0, nodes.cluster.nodes - 1, Duration::from_secs(5));
        }
    }
    assert!(killed > 0, "the run was over before the first kill");
    killed
}

#[test]
fn an_own_fabric_passes_the_suite_and_carries_a_message() {
    let said = Command::new(example("own_fabric")).output().expect("it runs");
    let out = String::from_utf8_lossy(&said.stdout);
    assert_eq!(out, "47 cases of the contract hold\nover your own fabric\n");
}

#[test]
fn an_own_loop_needs_no_node() {
    let said = Command::new(example("own_loop")).output().expect("it runs");
    assert_eq!(said.stdout, b"through your memory\n");
}

#[test]
fn m2_outside_of_a_node_a_program_is_no_member() {
    let said = Command::new(example("hello")).output().expect("it runs");
    let err = String::from_utf8_lossy(&said.stderr);
    assert_eq!(err, "Error: NotAMember { cure: \"weft run -- PROGRAM\" }\n");
}

#[test]
fn m10_a_program_finds_its_place_in_its_environment() {
    let place = Place::new();
    let text = "#!/bin/sh\necho $WEFT_RANK of $WEFT_SIZE in $WEFT_NAME, $WEFT_INCARNATION, $1 $X\n";
    let program = place.program(text);
    let table = format!("[component]\nprogram = {program:?}\nargs = [\"a\"]\nenv = [\"X=b\"]\n");
    let file = place.file("c.toml", format!("name = \"t\"\nnodes = 2\n{table}"));
    let output = place.path_of("output");
    place.weft(&format!("run {file} --output {output}")).done();
    for rank in 0..2 {
        let out = std::fs::read_to_string(format!("{output}/{rank}.out")).expect("it was written");
        assert_eq!(out, format!("{rank} of 2 in t, 1, a b\n"));
    }
}

/// Starts node `rank` of two as a launcher does that knows ranks.
fn start_as_task(place: &Place, rank: &str, arguments: &str) -> Running {
    place.start_changed(&format!("node --name t {arguments}"), "", |command| {
        let hosts = "n[007]";
        let variables = [("SLURM_PROCID", rank), ("SLURM_NTASKS", "2")];
        command.envs(variables).env("SLURM_JOB_NODELIST", hosts)
    })
}

#[test]
fn m10_nodes_take_their_ranks_from_a_launcher_and_end_with_their_programs() {
    let place = Place::new();
    let arguments = format!("-- {}", example("hello"));
    let nodes = ["0", "1"].map(|rank| start_as_task(&place, rank, &arguments));
    for (rank, node) in (0..).zip(nodes) {
        let out = node.wait().done();
        let hello = format!("hello from {}, incarnation 1", 1 - rank);
        assert!(out.lines().any(|line| line == hello), "{out}");
    }
    place.assert_nothing_left();
}

#[test]
fn m10_a_node_whose_program_fails_too_often_ends_with_an_error() {
    let place = Place::new();
    let file = place.file("c.toml", "name = \"t\"\nnodes = 2\nrestart.max = 1\n");
    let program = place.program("#!/bin/sh\nexit 3\n");
    let said = place.weft(&format!("node {file} --rank 0 --json -- {program}"));
    let refused = said.refused(31, "component_lost");
    assert!(refused.contains("it last exited with status 3"), "{refused}");
    place.assert_nothing_left();
}

#[test]
fn m10_what_gives_no_rank_is_refused() {
    let place = Place::new();
    let refused = start_as_task(&place, "2", "--json -- true").wait().refused(2, "usage");
    assert!(refused.contains("SLURM_PROCID is 2, but SLURM_NTASKS is 2"), "{refused}");
    let refused = start_as_task(&place, "0", "-n 3 --json").wait().refused(2, "usage");
    assert!(refused.contains("-n says 3 nodes"), "{refused}");
    let refused = place.weft("node --name t --json").refused(2, "usage");
    assert!(refused.contains("SLURM_PROCID is not set"), "{refused}");
    let addresses = "--rank 0 --insecure --addresses 127.0.0.1:7001,127.0.0.1:7002 --json";
    place.weft(&format!("node --name t {addresses}")).refused(10, "cluster_file");
    place.weft("node --rank 0 -n 2 --name t --json -- /nonexistent").refused(22, "input_missing");
    place.assert_nothing_left();
}

#[test]
fn m7_a_program_that_always_fails_ends_the_run_with_its_status() {
    let place = Place::new();
    let program = place.program("#!/bin/sh\nexit 3\n");
    let file = place.file("c.toml", "name = \"t\"\nnodes = 2\nrestart.max = 2\n");
    let said = place.weft(&format!("run {file} --json -- {program}"));
    assert_eq!((said.status, &result(&said)["ok"]), (Some(3), &json!(false)), "{}", said.err);
    place.assert_nothing_left();
}

/// As one does whose shared library is missing.
#[test]
fn a_program_that_never_joins_fails_in_two_lines_a_node() {
    let place = Place::new();
    let program = place.program("#!/bin/sh\nexit 127\n");
    let file = place.file("c.toml", "name = \"t\"\nnodes = 2\nrestart.max = 3\n");
    let said = place.weft(&format!("run {file} -- {program}"));
    assert_eq!(said.status, Some(127), "{}{}", said.out, said.err);
    let failures = said.out.lines().filter(|line| line.contains("its program")).count();
    let first = "its program exited with status 127 before it joined";
    assert!(failures <= 4 && said.out.contains(first), "{}", said.out);
    assert!(said.out.contains("its program failed the same way 3 times more"), "{}", said.out);
    assert_eq!(said.err, "");
}

/// What a script does before, or instead of, its exec of `hello`.
fn fails(script: &str, says: &str) {
    let place = Place::new();
    let program = place.program(&script.replace("HELLO", &example("hello")));
    let small = "name = \"t\"\nnodes = 2\nrestart.max = 1\n[dirnet.timing]\nclone_ms = 250\n";
    let file = place.file("c.toml", small);
    let said = place.weft(&format!("run {file} --json -- {program}"));
    assert!(said.status > Some(0), "{script}: {}", said.out);
    assert!(said.err.contains(says), "{script}: {says} is not in {}", said.err);
    place.assert_nothing_left();
}

#[test]
fn m2_a_program_that_closes_its_link_is_no_member() {
    fails("#!/bin/sh\nexec 3>&-\nexec HELLO\n", "Error: NoLink");
}

#[test]
fn m2_a_program_of_another_version_is_no_member() {
    fails("#!/bin/sh\nWEFT_LINK=0.0 exec HELLO\n", "OtherVersion { node: \"0.0\" }");
}

#[test]
fn m2_a_child_of_the_program_is_no_member() {
    fails("#!/bin/sh\nHELLO\nexit 1\n", "OtherProcess");
}

/// What it leaves behind is no member, and holds up neither the run nor its output.
#[test]
fn m7_a_program_that_forks_and_exits_has_finished() {
    let place = Place::new();
    let hello = example("hello");
    let program = place.program(&format!("#!/bin/sh\n({hello}; exec sleep 600) &\nexit 0\n"));
    let said = place.weft(&format!("run -n 2 --name t --json -- {program}"));
    assert_eq!((said.status, &result(&said)["ok"]), (Some(0), &json!(true)), "{}", said.err);
}

#[test]
fn a_program_that_writes_rubbish_to_the_link_is_killed() {
    fails("#!/bin/sh\nprintf rubbish >&3\nexec sleep 60\n", "sends nonsense");
}

#[test]
fn a_program_that_never_joins_is_named_by_the_startup_watchdog() {
    fails("#!/bin/sh\nexec sleep 60\n", "program did not join within");
}

#[test]
fn a_program_that_cannot_be_run_is_refused() {
    let place = Place::new();
    let text = place.file("text", "no program");
    for (program, says) in [
        ("/nonexistent", "No such file"),
        ("no-such-program", "not found in PATH"),
        (text.as_str(), "not an executable file"),
        (
            place.program("#!/no/such -x\n").as_str(),
            "names an interpreter that cannot be run: \"/no/such\"",
        ),
    ] {
        let said = place.weft(&format!("run --name t --json -- {program}"));
        let refused = said.refused(22, "input_missing");
        assert!(refused.contains(says), "{refused}");
    }
    place.weft("run --name t --json").refused(2, "usage");
    place.weft("run --name t --json -n 0 -- true").refused(10, "cluster_file");
    place.weft("run --name t --json -n 33 -- true").refused(10, "cluster_file");
}

#[test]
fn m10_up_and_node_run_the_program_of_the_file_and_refuse_one_that_cannot_be_run() {
    let place = Place::new();
    let file = |name: &str, program: &str| {
        let text = format!("name = \"t\"\nnodes = 2\n[component]\nprogram = {program:?}\n");
        place.file(name, text)
    };
    let text = place.file("text", "no program");
    for program in ["/nonexistent", "no-such-program", text.as_str()] {
        let file = file("wrong.toml", program);
        for command in ["up", "run", "node --rank 0"] {
            place.weft(&format!("{command} {file} --json")).refused(22, "input_missing");
        }
    }
    let file = file("c.toml", &example("hello"));
    let nodes = [0, 1].map(|rank| place.start(&format!("node {file} --rank {rank}"), ""));
    eventually("the programs have met", || {
        nodes.iter().all(|node| node.said("out").contains("hello from"))
    });
    // Clients are served by the stand-ins, which discard what arrives: the nodes stay.
    place.weft("down --name t --patience 60").done();
    nodes.into_iter().for_each(|node| drop(node.wait().done()));
    let (up, _) = place.up(&file);
    eventually("the programs have met", || up.said("out").matches("hello from").count() == 2);
    up.signal(Signal::TERM);
    up.wait().done();
    place.assert_nothing_left();
}

#[test]
fn m11_clients_take_nothing_where_a_program_does() {
    let place = Place::new();
    let run = place.start(&format!("run -n 2 --name t -- {} 0", example("ring")), "");
    // It finishes at once, and its nodes stay while the other runs; a client may come at any time.
    drop(run.wait());
    let program = example("ring");
    let run = place.start(&format!("run -n 2 --name t --keep -- {program} 1"), "");
    let nodes = place.find();
    nodes.await_joined();
    let refused = place.weft("get --name t --node 1 --json").refused(27, "owned");
    assert!(refused.contains(&program), "{refused}");
    place.weft("bcast --neb --receive --node 1 --name t --json").refused(27, "owned");
    let status = place.weft("status --name t --json").object();
    assert_eq!(status["nodes"].as_array().map(Vec::len), Some(2));
    run.signal(Signal::TERM);
    drop(run.wait());
    place.assert_nothing_left();
}

#[test]
fn m7_a_name_in_use_is_refused() {
    let place = Place::new();
    let (up, _) = place.up("--nodes 2");
    place.weft("run --name t --json -- true").refused(12, "name_in_use");
    up.signal(Signal::TERM);
    up.wait().done();
    eventually("nothing is left", || place.processes().is_empty());
}
