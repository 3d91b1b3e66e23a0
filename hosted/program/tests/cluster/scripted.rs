//! Recovery by a script: what it decides in a running cluster, and which ones are refused.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use weft::explain::Explain as _;
use weft::node::control::{TaskFault, TaskNotice, TaskState, TaskStatus, Vote, VoteResult};
use weft_core::recovery::{Header, seal};

use crate::hooks::manager;
use crate::place::{Nodes, Place, Running, eventually};
use crate::said::Said;

/// A cluster with a script of the examples, whose tasks are programs that do not end.
fn up_with(place: &Place, script: &str, tasks: &[(&str, u16)]) -> (Running, Nodes) {
    place.up(&file(place, script, tasks))
}

fn file(place: &Place, script: &str, tasks: &[(&str, u16)]) -> String {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/recovery");
    let text = fs::read(examples.join(script)).expect("an example");
    place.file(script, text);
    // It is the script that answers, not the nodes themselves.
    let recovery = format!("[recovery]\nscript = \"{script}\"\nanswer_ms = 600000\n");
    let task = |(name, node): &(&str, u16)| {
        format!(
            "[[task]]\nname = \"{name}\"\nnodes = [{node}]\nprogram = \"sleep\"\n\
             args = [\"1000\"]\n"
        )
    };
    let tasks: String = tasks.iter().map(task).collect();
    let top = "name = \"t\"\nnodes = 3\ndirnet.min_alive = 1\n";
    place.file("t.toml", format!("{top}{recovery}{tasks}"))
}

fn task(nodes: &Nodes, node: u16) -> TaskStatus {
    nodes.client(node).status().expect("a status").tasks.pop().expect("one task")
}

const CAMERAS: [(&str, u16); 2] = [("camera", 1), ("spare", 2)];

#[test]
fn rl3_a_script_restarts_a_task_and_isolates_it_when_its_errors_repeat() {
    let place = Place::new();
    let (_up, nodes) = up_with(&place, "restart.rl", &CAMERAS);
    eventually("both run", || [1, 2].iter().all(|it| task(&nodes, *it).pid.is_some()));
    place.weft("task stop spare --node 2 --name t").done();
    let before = task(&nodes, 1).pid;
    nodes.client(1).report("camera", 7).expect("it is noted");
    eventually("the script restarts it", || {
        let task = task(&nodes, 1);
        task.restarts == 1 && task.state == TaskState::Running && task.pid != before
    });
    // Errors in a row are no transient fault: the alpha-count reaches the threshold.
    let mut client = nodes.client(1);
    for _ in 0..4 {
        client.report("camera", 7).expect("it is noted");
    }
    eventually("it is isolated", || task(&nodes, 1).state == TaskState::Isolated);
    eventually("the spare starts", || task(&nodes, 2).state == TaskState::Running);

    let why = place.weft("status --name t --why 1").done();
    assert!(why.contains("recovery script: RESTART task camera, by section 1, line 9"), "{why}");
    assert!(why.contains("recovery script: ISOLATE task camera, by section 1, line 11"), "{why}");
    let log = place.weft("status --name t --why 0").done();
    assert!(log.contains("LOG \"camera isolated after errors\""), "{log}");
    let status = place.weft("rl status --name t").done();
    assert!(
        status.contains("tasks camera, spare") && status.contains("node 0 manages"),
        "{status}"
    );
    let status = place.weft("--json rl status --name t").object();
    assert_eq!(status["nodes"][0]["script"]["is_acting"], true);
    nodes.assert_unharmed();
}

/// The manager hangs when the error occurs, so it gives no order; its successor finds exactly the
/// error that is unanswered.
#[test]
fn rl3_the_next_manager_answers_what_a_hung_one_has_not_and_no_order_is_obeyed_twice() {
    let place = Place::new();
    let (_up, nodes) = up_with(&place, "restart.rl", &CAMERAS);
    eventually("both run", || [1, 2].iter().all(|it| task(&nodes, *it).pid.is_some()));
    assert_eq!(manager(&nodes), 0);
    place.weft("inject hang 0 --name t").done();
    nodes.client(1).report("camera", 7).expect("it is noted");
    eventually("it is restarted", || task(&nodes, 1).restarts == 1);
    nodes.await_joined();
    assert_ne!(manager(&nodes), 0, "another node manages");
    // A further error is answered by one order, whichever manager gave the others.
    let acting = manager(&nodes);
    nodes.client(1).report("camera", 8).expect("it is noted");
    place.weft(&format!("inject kill {acting} --name t")).done();
    eventually("it is restarted again", || task(&nodes, 1).restarts == 2);
    eventually("all orders are judged", || {
        let status = nodes.client(manager(&nodes)).status().expect("a status");
        status.dirnet.is_some_and(|dirnet| dirnet.script.is_some_and(|it| it.evaluations > 0))
    });
    let camera = task(&nodes, 1);
    assert_eq!((camera.restarts, camera.errors, camera.state), (2, 2, TaskState::Running));
}

/// A cluster file with a script's image after `change`.
fn image(place: &Place, change: impl FnOnce(&mut Vec<u8>)) -> String {
    let cluster = file(place, "restart.rl", &CAMERAS);
    let path = place.path_of("a.img");
    let script = place.path_of("restart.rl");
    place.weft(&format!("rl build {script} --cluster {cluster} -o {path}")).done();
    let mut bytes = fs::read(&path).expect("an image");
    change(&mut bytes);
    let text = fs::read_to_string(&cluster).expect("a file");
    let image = format!("image = \"{}\"", STANDARD.encode(&bytes));
    text.replace("script = \"restart.rl\"", &image)
}

#[test]
fn rl11_a_bad_script_is_refused_before_anything_starts() {
    let place = Place::new();
    let jumps_back = |bytes: &mut Vec<u8>| {
        // The first JF, whose target is in its last four bytes, leads to the first word.
        let mut words = bytes[Header::LEN..].chunks_exact_mut(8);
        let branch = words.find(|word| word[0] == 30).expect("a branch");
        branch[2..].fill(0);
        seal(bytes);
    };
    let of_version_9 = |bytes: &mut Vec<u8>| {
        bytes[4] = 9;
        seal(bytes);
    };
    for (bad, cause) in [
        (image(&place, |bytes| bytes.truncate(100)), "recovery.image: "),
        (image(&place, of_version_9), "version"),
        (image(&place, jumps_back), "recovery.image: word "),
    ] {
        let bad = place.file("bad.toml", bad);
        for command in ["up", "check"] {
            let said = place.weft(&format!("--json {command} {bad}")).refused(52, "image");
            assert!(said.contains(cause) && said.contains("recovery.script"), "{said}");
        }
    }
    let text = fs::read_to_string(place.path_of("restart.rl")).expect("a script");
    place.file("restart.rl", text.replace("TRANSIENT", "TRANSEINT"));
    for command in ["up", "check", "node --rank 0"] {
        let cluster = place.path_of("t.toml");
        let said = place.weft(&format!("--json {command} {cluster}"));
        assert!(said.refused(51, "script").contains("1 finding"), "{command}");
    }
    place.assert_nothing_left();
}

/// What each node that runs says of its script: its digest.
fn digests(nodes: &Nodes) -> Vec<String> {
    let of = |rank| nodes.client(rank).status().ok()?.dirnet?.script.map(|it| it.digest);
    (0..3).filter_map(of).collect()
}

#[test]
fn rl12_a_script_is_loaded_at_all_nodes_and_outlives_its_manager_and_its_nodes() {
    let place = Place::new();
    let (_up, nodes) = up_with(&place, "restart.rl", &CAMERAS);
    eventually("both run", || [1, 2].iter().all(|it| task(&nodes, *it).pid.is_some()));
    // An order of the first script: those of the next one are later.
    nodes.client(1).report("camera", 7).expect("it is noted");
    eventually("it is restarted", || task(&nodes, 1).restarts == 1);
    let old = digests(&nodes);

    let text = fs::read_to_string(place.path_of("restart.rl")).expect("a script");
    // Three errors within few seconds are transient to it.
    let next = text.replace("RESTART T", "STOP T").replace("THRESHOLD = 3.0", "THRESHOLD = 9.0");
    let name = place.file("next.rl", next);
    let loaded = place.weft(&format!("--json rl load {name} --name t")).object();
    assert_eq!((&loaded["changed"], &loaded["late"]), (&true.into(), &serde_json::json!([])));
    let new = loaded["digest"].as_str().expect("a digest").to_owned();
    assert_eq!(digests(&nodes), vec![new.clone(); 3]);
    assert!(!old.contains(&new) && old.len() == 3, "{old:?}");
    let again = place.weft(&format!("--json rl load {name} --name t")).object();
    assert_eq!((&again["changed"], &again["digest"]), (&false.into(), &new.clone().into()));
    nodes.client(1).report("camera", 8).expect("it is noted");
    eventually("the next script stops it", || task(&nodes, 1).state == TaskState::Killed);

    // One that is no script, and one that gives a number to another task: nothing changes.
    let broken = place.file("broken.rl", text.replace("TRANSIENT", "TRANSEINT"));
    place.weft(&format!("--json rl load {broken} --name t")).refused(51, "script");
    let swapped = text.replace("TASK 1", "TASK 3").replace("TASK 2", "TASK 1");
    let swapped = swapped.replace("TASK 3", "TASK 2").replace("ALPHACOUNT T1", "ALPHACOUNT T2");
    let swapped = place.file("swapped.rl", swapped);
    let said = place.weft(&format!("--json rl load {swapped} --name t")).refused(51, "script");
    assert!(said.contains("T1 is another task; line 4 of the script in force; line 5"), "{said}");
    assert_eq!(digests(&nodes), vec![new.clone(); 3]);

    // The next manager goes on with it, and so does a node that starts again.
    let acting = manager(&nodes);
    place.weft(&format!("inject hang {acting} --name t")).done();
    eventually("another node manages", || manager(&nodes) != acting);
    place.weft("task start camera --node 1 --name t").done();
    eventually("it runs", || task(&nodes, 1).state == TaskState::Running);
    nodes.client(1).report("camera", 9).expect("it is noted");
    eventually("the next manager stops it", || task(&nodes, 1).state == TaskState::Killed);
    place.weft("inject node 2 --name t").done();
    eventually("all use it", || digests(&nodes) == vec![new.clone(); 3]);
    let status = place.weft("rl status --name t").done();
    assert!(status.contains(&format!("node 2: script {new}\n")), "{status}");
}

#[test]
fn rl1_the_phase_that_a_task_reports_is_news_and_ends_with_its_process() {
    let place = Place::new();
    let script = "DEFINE 0 = MANAGER\nDEFINE 1-2 = BACKUP\nTASK 1 IS \"camera\" ON NODE 1\n\
                  TASK 2 IS \"spare\" ON NODE 2\nIF [ PHASE(T1) == 3 ] THEN\nSTOP T2\n\
                  ELIF [ KILLED T2 ] THEN\nSTART T2\nFI\n";
    let cluster = file(&place, "restart.rl", &CAMERAS);
    place.file("restart.rl", script);
    let (_up, nodes) = place.up(&cluster);
    eventually("both run", || [1, 2].iter().all(|it| task(&nodes, *it).pid.is_some()));
    place.weft("report --phase 2 --task camera --node 1 --name t").done();
    let said = place.weft("--json report --phase 3 --task camera --node 1 --name t").object();
    assert_eq!((&said["task"], &said["phase"]), (&"camera".into(), &3.into()));
    eventually("the script stops the spare", || task(&nodes, 2).state == TaskState::Killed);
    // Another process of it is in no phase.
    place.weft("task restart camera --node 1 --name t").done();
    eventually("the script starts the spare", || task(&nodes, 2).state == TaskState::Running);
}

const VERSIONS: [(&str, u16); 4] = [("north", 0), ("actuator", 0), ("south", 1), ("east", 2)];

/// The example, with rounds that wait for every version as long as it takes.
fn up_to_vote(place: &Place, change: impl Fn(String) -> String) -> (Running, Nodes) {
    let cluster = file(place, "voting.rl", &VERSIONS);
    let script = fs::read_to_string(place.path_of("voting.rl")).expect("the example");
    place.file("voting.rl", change(script.replace("50 MS", "1000 S")));
    let (up, nodes) = place.up(&cluster);
    let runs = |(name, node): &(&str, u16)| task_called(&nodes, name, *node).pid.is_some();
    eventually("all run", || VERSIONS.iter().all(runs));
    (up, nodes)
}

fn vote(nodes: &Nodes, (task, node): (&str, u16), round: u32, number: i64) {
    nodes.client(node).vote(task, round, Vote::Number(number)).expect("the vote stands");
}

fn outcome(nodes: &Nodes, round: u32) -> Option<VoteResult> {
    let notices = nodes.client(0).notices("actuator", 0).expect("notices").notices;
    notices.into_iter().find_map(|notice| match notice {
        TaskNotice::Outcome(result) if result.round == round => Some(result),
        _ => None,
    })
}

fn task_called(nodes: &Nodes, name: &str, node: u16) -> TaskStatus {
    let tasks = nodes.client(node).status().expect("a status").tasks;
    tasks.into_iter().find(|task| task.name == name).expect("the task")
}

#[test]
fn rl10_versions_vote_and_the_liar_is_restarted_also_under_the_next_manager() {
    let place = Place::new();
    let (_up, nodes) = up_to_vote(&place, |script| script);
    vote(&nodes, ("north", 0), 1, 41);
    place.weft("vote --task south --node 1 --round 1 --number 97 --name t").done();
    place.weft("vote --task east --node 2 --round 1 --number 43 --name t").done();
    eventually("there is an outcome", || outcome(&nodes, 1).is_some());
    let found = outcome(&nodes, 1).expect("an outcome");
    assert_eq!((found.value, &found.agreed[..]), (Some(Vote::Number(41)), &[1, 3][..]));
    eventually("the liar is restarted", || task_called(&nodes, "south", 1).restarts == 1);
    let last = task_called(&nodes, "south", 1).last_errors.pop().map(|error| error.fault);
    assert_eq!(last, Some(TaskFault::Outvoted { version: 2, round: 1 }));
    let status = place.weft("rl status --name t").done();
    assert!(
        status.contains("last vote: N-version task 1, round 1: 41 by versions 1, 3"),
        "{status}"
    );

    // The manager's component ends in the middle of a round: the next one goes on with it.
    vote(&nodes, ("south", 1), 2, 7);
    place.weft("inject kill 0 --name t").done();
    vote(&nodes, ("east", 2), 2, 7);
    let north = || nodes.client(0).vote("north", 2, Vote::Number(97));
    eventually("the next component takes a vote", || north().is_ok());
    eventually("round 2 has an outcome", || outcome(&nodes, 2).is_some());
    assert_eq!(outcome(&nodes, 2).expect("an outcome").value, Some(Vote::Number(7)));
}

/// What the refusal of a vote tells people, and its exit status, behind the command line; `{}` is a
/// file.
fn refusal(place: &Place, arguments: &str) -> String {
    let file = place.file("ballot", "what was computed");
    let said = place.weft(&format!("vote {} --name t", arguments.replace("{}", &file)));
    let Said { status: Some(status), out, err } = said else { panic!("{said:?}") };
    assert_eq!(out, "", "{arguments}");
    format!("$ weft vote {arguments}\n{}{status}\n\n", err.replace(&file, "{}"))
}

#[test]
fn rl10_votes_that_cannot_count_are_refused_with_their_cause_and_cure() {
    let place = Place::new();
    let mut refusals = String::new();
    let mut refuse = |arguments: &str| refusals += &refusal(&place, arguments);
    let of_sleepers = "name = \"t\"\nnodes = 2\n[[task]]\nname = \"north\"\nnodes = [0]\n\
                       program = \"sleep\"\nargs = [\"1000\"]\n";
    let (up, nodes) = place.up(&place.file("t.toml", of_sleepers));
    nodes.await_joined();
    refuse("--task north --node 0 --round 1 --number 42");
    place.weft("down --name t").done();
    up.wait().done();

    let (up, nodes) = up_to_vote(&place, |script| script);
    vote(&nodes, ("north", 0), 3, 41);
    vote(&nodes, ("north", 0), 3, 41);
    for arguments in [
        "--round 3 --number 42",
        "--task north --node 0 --round 3 --number 42",
        "--task north --node 0 --round 3 --file {}",
        "--task north --node 0 --round 2 --number 42",
        "--task north --node 0 --round 4 --number 42",
        "--task north --node 0 --round 0 --number 42",
        "--task actuator --node 0 --round 1 --number 42",
        "--task west --node 0 --round 1 --number 42",
        "--task north --node 3 --round 1 --number 42",
        "--task north --node 0 --round 4 --file /missing",
        "--task north --node 0 --round 4",
        "--task north --round 4 --number 42",
    ] {
        refuse(arguments);
    }
    let zero = nodes.client(0).vote("north", 0, Vote::Number(42)).expect_err("no round");
    place.weft("down --name t").done();
    up.wait().done();

    let (_up, _) = up_to_vote(&place, |script| script.replace("MAJORITY", "MEDIAN"));
    refuse("--task north --node 0 --round 1 --file {}");
    refusals += &format!("round 0 of a program\n{zero}\n{}\n", zero.cure());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/vote-refusals.txt");
    if std::env::var_os("RL_BLESS").is_some() {
        fs::write(path, &refusals).expect("the refusals are written");
    }
    assert_eq!(refusals, fs::read_to_string(path).expect("it is kept"));
}

/// Each error of the camera calls a program, which writes what it was called with.
#[test]
fn call_runs_a_program_of_the_cluster_file_at_the_manager_and_notes_how_it_ended() {
    let place = Place::new();
    let script = "DEFINE 0 = MANAGER\nDEFINE 1-2 = BACKUP\nTASK 1 IS \"camera\" ON NODE 1\n\
                  IF [ FAULTY T1 ] THEN\nCALL page(ERRT(T1), 7)\nCALL fail()\n\
                  REMOVE ANY T1 FROM ERRORLIST\nFI\n";
    let cluster = file(&place, "restart.rl", &CAMERAS);
    place.file("restart.rl", script);
    let text = fs::read_to_string(&cluster).expect("a file");
    let log = place.path_of("called");
    let words = format!("echo \\\"$WEFT_CALL $@\\\" >> {log}");
    let calls = format!(
        "calls = {{ page = [\"sh\", \"-c\", \"{words}\", \"sh\"], fail = [\"false\"] }}\n[[task]]"
    );
    let cluster = place.file("t.toml", text.replacen("[[task]]", &calls, 1));
    let (_up, nodes) = place.up(&cluster);
    eventually("the camera runs", || task(&nodes, 1).pid.is_some());
    nodes.client(1).report("camera", 40).expect("it is noted");
    let called = || fs::read_to_string(&log).unwrap_or_default();
    eventually("the program has run", || called() == "page 40 7\n");
    eventually("both ends are noted", || {
        let why = place.weft("status --name t --why 0").done();
        why.contains("CALL page of evaluation") && why.contains(": ended with status 1")
    });

    // What the file does not name, no script may call.
    place.file("restart.rl", script.replace("page(", "pgae("));
    let refused = place.weft(&format!("--json check {cluster}"));
    assert!(refused.out.contains("RL05") && refused.out.contains("recovery.calls"), "{refused:?}");
}
