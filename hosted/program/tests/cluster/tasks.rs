//! Programs under guard: they run, fail, fall silent, report and end with their node.

use serde_json::Value;
use weft::node::control::{TaskFault, TaskState, TaskStatus};
use weft::process::{Liveness, Pid, Pidfd, Signal};

use crate::PATIENCE;
use crate::place::{Nodes, Place, Running, eventually};

/// A cluster of two whose node 0 guards one task, defined by `lines`.
fn up_with(place: &Place, lines: &str) -> (Running, Nodes) {
    let head = "name = \"t\"\nnodes = 2\n[[task]]\nname = \"job\"\nnodes = [0]\n";
    place.up(&place.file("t.toml", format!("{head}{lines}\n")))
}

/// A task that runs this shell script.
fn script(text: &str) -> String {
    format!("program = \"sh\"\nargs = [\"-c\", '''{text}''']\nrestart.max = 2")
}

fn look(nodes: &Nodes) -> TaskStatus {
    let mut tasks = nodes.client(0).status().expect("a status").tasks;
    assert_eq!(nodes.client(1).status().expect("a status").tasks, []);
    tasks.pop().expect("one task")
}

#[track_caller]
fn await_state(nodes: &Nodes, state: TaskState) -> TaskStatus {
    eventually("the task is in that state", || look(nodes).state == state);
    look(nodes)
}

fn faults(task: &TaskStatus) -> Vec<TaskFault> {
    task.last_errors.iter().map(|error| error.fault.clone()).collect()
}

fn process(task: &TaskStatus) -> Pidfd {
    let pid = Pid::from_raw(task.pid.expect("a process")).expect("a number");
    Pidfd::open(pid).expect("it runs")
}

#[test]
fn a_task_runs_beside_its_node_and_ends_with_it() {
    let place = Place::new();
    let (up, nodes) = up_with(&place, &script("sleep 1000 & sleep 1000"));
    let task = await_state(&nodes, TaskState::Running);
    let shell = process(&task);
    place.weft("inject kill 0 --name t --wait 60").done();
    assert_eq!(look(&nodes).pid, task.pid, "a component's end is nothing to a task");
    up.signal(Signal::TERM);
    up.wait().done();
    assert!(shell.is_dead().expect("a pidfd"));
    place.assert_nothing_left();
}

/// What has become of the task, as the events that were printed so far say.
fn steps(watch: &Running) -> Vec<String> {
    let out = watch.said("out");
    let whole = out.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let events = whole.map(|line| serde_json::from_str::<Value>(line).expect("an object"));
    let of_task = events.filter(|event| event["event"] == "task" && event["task"] == "job");
    let text = |event: Value| event["verdict"].as_str().expect("a text").to_owned();
    of_task.map(text).collect()
}

#[test]
fn m15_the_ends_hangs_and_restarts_of_a_task_are_events_at_every_node() {
    let place = Place::new();
    let begin = place.path_of("begin");
    let fail = script(&format!("until [ -e {begin} ]; do sleep 0.1; done; exit 3"));
    let head = "name = \"t\"\nnodes = 2\n[[task]]\nname = \"job\"\nnodes = [1]\n";
    let fail = fail.replace("restart.max = 2", "restart.max = 1");
    let (_up, nodes) = place.up(&place.file("t.toml", format!("{head}{fail}\n")));
    let state = || nodes.client(1).status().expect("a status").tasks[0].state;
    eventually("the task runs", || state() == TaskState::Running);
    // It asks node 0, and the task is at node 1.
    let watch = place.start("watch --json --name t --only view,task", "");
    eventually("a view is printed", || watch.said("out").contains('\n'));
    place.file("begin", "");
    eventually("it is isolated", || steps(&watch).iter().any(|step| step == "isolated"));
    assert_eq!(steps(&watch), ["failed", "restarted", "failed", "isolated"]);
    assert!(watch.said("out").contains("ended with status 3"), "{}", watch.said("out"));
    let why = place.weft("status --name t --why 1").done();
    assert!(why.contains("task job failed: ended with status 3"), "{why}");
}

#[test]
fn m15_a_task_that_sends_no_beat_is_an_event() {
    let place = Place::new();
    let silent = "program = \"sleep\"\nargs = [\"1000\"]\nrestart.max = 0\nbeat_ms = 100";
    let (_up, nodes) = up_with(&place, silent);
    nodes.await_joined();
    await_state(&nodes, TaskState::Isolated);
    let watch = place.start("watch --json --name t --only view,task", "");
    eventually("a view is printed", || watch.said("out").contains('\n'));
    place.weft("task start job --node 0 --name t").done();
    eventually("it is isolated again", || steps(&watch).iter().any(|step| step == "isolated"));
    assert_eq!(steps(&watch), ["restarted", "hung", "isolated"]);
}

#[test]
fn a_program_that_is_not_there_stops_the_start() {
    let place = Place::new();
    let text = place.file("text", "not executable");
    let folder = place.path_of("");
    for program in ["/no/such/program", "no-such-program", text.as_str(), folder.as_str()] {
        let head = "name = \"t\"\nnodes = 2\n[[task]]\nname = \"job\"\n";
        let file = place.file("t.toml", format!("{head}program = \"{program}\"\n"));
        let reply = place.weft(&format!("up {file} --json")).refused(22, "input_missing");
        assert!(reply.contains("the program of job: "), "{reply}");
    }
    place.assert_nothing_left();
}

#[test]
fn a_program_without_an_interpreter_is_faulty_at_once_and_left_alone() {
    let place = Place::new();
    let said = "an interpreter that is not there";
    // One that it names itself is missed before anything starts.
    let named = place.program("#!/no/such/interpreter\n");
    let interpreter = format!("{named}-interpreter");
    std::fs::rename(named, &interpreter).expect("both are ours");
    let program = place.program(&format!("#!{interpreter}\n"));
    let (_up, nodes) = up_with(&place, &format!("program = \"{program}\""));
    let task = await_state(&nodes, TaskState::Faulty);
    assert_eq!((task.pid, task.errors, task.restarts), (None, 1, 0));
    let [TaskFault::NotStarted { why }] = &faults(&task)[..] else { panic!("{task:?}") };
    assert!(why.contains(said), "{why}");
    let shown = place.weft("status --name t").done();
    assert!(shown.contains("faulty") && shown.contains(said), "{shown}");
    for order in ["start", "restart"] {
        let reply = place.weft(&format!("task {order} job --node 0 --name t --json"));
        let reply = reply.refused(19, "task_not_running");
        assert!(reply.contains("cannot be started") && reply.contains(said), "{reply}");
    }
    assert_eq!((look(&nodes).state, look(&nodes).errors), (TaskState::Faulty, 3));
    nodes.assert_unharmed();
}

#[test]
fn each_line_that_a_task_writes_has_node_and_task_in_front() {
    let place = Place::new();
    let (up, _nodes) = up_with(&place, &script("echo one; echo two >&2; printf three; sleep 1000"));
    for line in ["[0 job] one\n", "[0 job] two\n"] {
        eventually(line, || up.said("err").contains(line));
    }
    assert!(!up.said("err").contains("three"), "a line is written when it is whole");
    place.weft("task stop job --node 0 --name t").done();
    eventually("the last line", || up.said("err").contains("[0 job] three\n"));
}

/// It ends first, so what is wrong shows later.
#[test]
fn a_task_whose_program_has_vanished_is_not_restarted_and_that_is_told() {
    let place = Place::new();
    let program = place.program("#!/bin/sh\nexec sleep 1000\n");
    let (_up, nodes) = up_with(&place, &format!("program = \"{program}\""));
    let first = await_state(&nodes, TaskState::Running).pid;
    place.weft("task restart job --node 0 --name t").done();
    assert_ne!(look(&nodes).pid, first, "the next one runs when that is answered");
    std::fs::remove_file(&program).expect("it was there");
    let reply = place.weft("task restart job --node 0 --name t --json");
    let reply = reply.refused(19, "task_not_running");
    assert!(reply.contains("cannot be started") && reply.contains(&program), "{reply}");
    assert_eq!(look(&nodes).state, TaskState::Faulty);
}

#[test]
fn a_task_that_fails_at_once_is_isolated_after_its_restarts_and_the_operator_is_told() {
    let place = Place::new();
    let (up, nodes) = up_with(&place, &script("exit 3"));
    eventually("it waits between two starts", || look(&nodes).state == TaskState::Waiting);
    let task = await_state(&nodes, TaskState::Isolated);
    assert_eq!((task.errors, task.restarts), (3, 2));
    assert_eq!(faults(&task), vec![TaskFault::Exited { status: 3 }; 3]);
    nodes.assert_unharmed();
    let reply = "task job of node 0 is isolated: it failed more than 2 times";
    up.await_said(reply);
    assert_eq!(up.said("out").matches(reply).count(), 1);
    let shown = place.weft("status --name t").done();
    let line =
        "task job of node 0 is isolated, ended with status 3; `weft task start job --node 0`";
    assert!(shown.contains(line), "{shown}");
    let why = place.weft("status --name t --why 0").done();
    assert!(why.contains("task job is isolated: it failed too often"), "{why}");
}

/// An error counts as a failure, also in a burst that comes before the manager has decided.
#[test]
fn errors_that_are_reported_restart_a_task_no_more_often_than_it_may_be() {
    let place = Place::new();
    let (up, nodes) = up_with(&place, &script("exec sleep 1000"));
    let report = "report --name t --node 0 --task job --error 7 --wait 60 --json";
    for restarts in [1, 2] {
        await_state(&nodes, TaskState::Running);
        let reply = place.weft(report).object();
        assert_eq!(reply["outcome"], "restarted", "{reply}");
        assert_eq!(look(&nodes).restarts, restarts);
    }
    await_state(&nodes, TaskState::Running);
    let reply = place.weft("report --name t --node 0 --task job --error 7").done();
    assert!(reply.contains("it has failed too often and is isolated"), "{reply}");
    let task = await_state(&nodes, TaskState::Isolated);
    assert_eq!((task.errors, task.restarts), (3, 2));
    eventually("its process has ended", || look(&nodes).pid.is_none());
    up.await_said("task job of node 0 is isolated");
    assert_eq!(place.weft(report).object()["outcome"], "noted");
    let reply = place.weft("report --name t --node 0 --task job --error 7").done();
    assert!(reply.contains("it is counted, and nothing else is done"), "{reply}");
    assert_eq!((look(&nodes).state, look(&nodes).errors), (TaskState::Isolated, 5));
    let beat = place.weft("report --name t --node 0 --task job --beat --json");
    let reply = beat.refused(19, "task_not_running");
    assert!(reply.contains("task job of node 0 does not run: it is isolated"), "{reply}");
    assert!(place.weft("task stop job --node 0 --name t").done().contains("already isolated"));
    assert_eq!(look(&nodes).state, TaskState::Isolated);
}

#[test]
fn a_task_that_ends_with_status_0_has_finished() {
    let place = Place::new();
    let (_up, nodes) = up_with(&place, &script("exit 0"));
    eventually("it has run", || nodes.client(0).status().expect("a status").tasks[0].pid.is_none());
    let task = await_state(&nodes, TaskState::Finished);
    assert_eq!((task.errors, task.restarts), (0, 0));
    assert!(place.weft("task stop job --node 0 --name t").done().contains("already finished"));
    let reply = place.weft("task stop job --node 0 --name t --json").object();
    assert_eq!((&reply["changed"], &reply["state"]), (&false.into(), &"finished".into()));
    assert_eq!(look(&nodes).state, TaskState::Finished);
}

#[test]
fn a_killed_task_is_started_again() {
    let place = Place::new();
    let (_up, nodes) = up_with(&place, &script("exec sleep 1000"));
    let first = await_state(&nodes, TaskState::Running);
    process(&first).kill().expect("a process of this user");
    eventually("the next one runs", || {
        let task = look(&nodes);
        task.state == TaskState::Running && task.pid != first.pid
    });
    let task = look(&nodes);
    assert_eq!((task.errors, task.restarts), (1, 1));
    assert_eq!(faults(&task), [TaskFault::Signalled { signal: 9 }]);
}

#[test]
fn a_task_that_falls_silent_is_started_again_and_one_that_beats_is_not() {
    let place = Place::new();
    let weft = env!("CARGO_BIN_EXE_weft");
    let beating = format!(
        "while [ ! -e \"$WEFT_RUNTIME_DIR/../f/hush\" ]; do {weft} report --beat || exit 9; done; \
         sleep 1000"
    );
    let (_up, nodes) = up_with(&place, &format!("{}\nbeat_ms = 2000", script(&beating)));
    let first = process(&await_state(&nodes, TaskState::Running));
    assert_eq!(look(&nodes).errors, 0);
    place.file("hush", "");
    eventually("it is silent", || look(&nodes).errors > 0);
    let task = look(&nodes);
    assert_eq!(faults(&task)[0], TaskFault::Silent);
    assert_eq!(first.wait_dead(PATIENCE).expect("a pidfd"), Liveness::Dead);
}

#[test]
fn reports_are_counted_and_kept_whoever_makes_them() {
    let place = Place::new();
    let weft = env!("CARGO_BIN_EXE_weft");
    let once = "[ -e \"$WEFT_RUNTIME_DIR/../f/reply\" ]";
    let reply = "touch \"$WEFT_RUNTIME_DIR/../f/reply\"";
    let report = format!("{once} || ({reply} && {weft} report --error 7); sleep 1000");
    let (_up, nodes) = up_with(&place, &script(&report));
    eventually("it has reported", || look(&nodes).errors == 1);
    let first = look(&nodes);
    place.weft("report --name t --node 0 --task job --error 65535").done();
    let task = look(&nodes);
    let reported = |error| TaskFault::Reported { error };
    assert_eq!((task.errors, faults(&task)), (2, vec![reported(7), reported(65535)]));
    eventually("the manager has it restarted", || {
        let task = look(&nodes);
        task.state == TaskState::Running && task.pid != first.pid && task.pid.is_some()
    });
    assert_eq!(look(&nodes).errors, 2);
    let shown: Value = place.weft("status --name t --json").object();
    let shown = &shown["nodes"][0]["tasks"][0];
    assert_eq!((&shown["name"], &shown["state"]), (&"job".into(), &"running".into()));
    assert_eq!(shown["last_errors"][1]["fault"]["reported"]["error"], 65535);
}

#[test]
fn reports_for_nobody_are_refused() {
    let place = Place::new();
    let (_up, nodes) = up_with(&place, &script("exec sleep 1000"));
    let refused = |arguments: &str| place.weft(&format!("{arguments} --name t --json"));
    let reply = refused("report --node 0 --task work --error 1").refused(16, "task_unknown");
    assert!(reply.contains("no task \"work\""), "{reply}");
    refused("report --node 1 --task job --error 1").refused(16, "task_unknown");
    refused("report --node 2 --task job --error 1").refused(15, "node_out_of_range");
    refused("report --error 1").refused(16, "task_unknown");
    for order in ["start", "stop", "restart", "isolate"] {
        let reply = refused(&format!("task {order} ghost --node 0")).refused(16, "task_unknown");
        assert!(reply.contains("no task \"ghost\": its tasks are job"), "{reply}");
        let reply = refused(&format!("task {order} job --node 1")).refused(16, "task_unknown");
        assert!(reply.contains("nor any other"), "{reply}");
    }
    for usage in [
        "report --task job --error 1",
        "report --error 65536",
        "report --phase 256",
        "report --beat --error 1",
    ] {
        refused(usage).refused(2, "usage");
    }
    assert_eq!(look(&nodes).errors, 0);
}

#[test]
fn a_task_is_stopped_started_restarted_and_isolated_by_order() {
    let place = Place::new();
    let (_up, nodes) = up_with(&place, &script("exec sleep 1000"));
    let order = |order: &str| place.weft(&format!("task {order} job --node 0 --name t")).done();
    let first = await_state(&nodes, TaskState::Running);
    assert!(order("start").contains("already started"));
    order("stop");
    assert_eq!(await_state(&nodes, TaskState::Killed).restarts, 0);
    assert!(order("stop").contains("already stopped"));
    // Its last process may not have quite ended.
    order("start");
    let second = await_state(&nodes, TaskState::Running);
    order("restart");
    eventually("another process runs", || {
        let task = look(&nodes);
        task.pid.is_some() && ![first.pid, second.pid].contains(&task.pid)
    });
    assert!(!order("isolate").contains("already"));
    assert!(order("isolate").contains("already isolated"));
    let task = await_state(&nodes, TaskState::Isolated);
    assert_eq!((task.errors, task.restarts), (0, 0));
    eventually("its process has ended", || look(&nodes).pid.is_none());
}
