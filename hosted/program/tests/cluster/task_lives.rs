//! Programs under guard whose node dies: decisions about them hold in its next incarnation, and
//! nothing of them is left from the one before.

use std::fs;

use weft::node::control::{NodeState, TaskState, TaskStatus};
use weft::process::{Liveness, Pidfd, Signal};

use crate::PATIENCE;
use crate::isolation::await_manager;
use crate::place::{Nodes, Place, eventually};

/// Five tasks of node 2, of which only `whole` has children: one of its group, one of another, and
/// one that has not even the environment of the others.
const TASKS: &str = r#"
[[task]]
name = "whole"
nodes = [2]
program = "sh"
args = ["-c", "sleep 1000 & setsid sleep 1000 & env -i sleep 1000 & exec sleep 1000"]
[[task]]
name = "stopped"
nodes = [2]
program = "sleep"
args = ["2000"]
[[task]]
name = "isolated"
nodes = [2]
program = "sleep"
args = ["2000"]
[[task]]
name = "finished"
nodes = [2]
program = "true"
[[task]]
name = "failing"
nodes = [2]
program = "false"
restart.max = 1
"#;

fn file(place: &Place, head: &str) -> String {
    place.file("t.toml", format!("name = \"t\"\nnodes = 3\n{head}{TASKS}"))
}

fn task(nodes: &Nodes, name: &str) -> TaskStatus {
    let tasks = nodes.client(2).status().expect("a status").tasks;
    tasks.into_iter().find(|task| task.name == name).expect("it is in the file")
}

fn states(nodes: &Nodes) -> Vec<TaskState> {
    let tasks = nodes.client(2).status().expect("a status").tasks;
    tasks.iter().map(|task| task.state).collect()
}

/// The expected states, in any incarnation of node 2.
const DECIDED: [TaskState; 5] = [
    TaskState::Running,
    TaskState::Killed,
    TaskState::Isolated,
    TaskState::Finished,
    TaskState::Isolated,
];

/// Something is decided about each, and one has met errors.
fn decide(place: &Place, nodes: &Nodes) {
    for order in ["stop stopped", "isolate isolated"] {
        place.weft(&format!("task {order} --node 2 --name t")).done();
    }
    place.weft("report --name t --node 2 --task stopped --error 7").done();
    eventually("all is decided", || states(nodes) == DECIDED);
    assert_eq!(task(nodes, "stopped").errors, 1);
    assert_eq!((task(nodes, "failing").errors, task(nodes, "failing").restarts), (2, 1));
}

fn assert_decided(nodes: &Nodes) {
    eventually("all is as it was", || states(nodes) == DECIDED);
    assert_eq!(task(nodes, "stopped").errors, 1);
    assert_eq!((task(nodes, "failing").errors, task(nodes, "failing").restarts), (2, 1));
    assert_eq!(task(nodes, "failing").last_errors.len(), 2);
}

/// The processes of the task with children that are known by their environment.
fn family(place: &Place) -> Vec<Pidfd> {
    let mut family = Vec::new();
    eventually("it has all its children", || {
        family = place.processes();
        family.retain(|process| process.role == "1000");
        family.len() == 3
    });
    family.into_iter().map(|process| process.pidfd).collect()
}

#[track_caller]
fn assert_dead(family: &[Pidfd]) {
    for process in family {
        assert_eq!(process.wait_dead(PATIENCE).expect("a pidfd"), Liveness::Dead);
    }
}

#[test]
fn what_was_decided_about_tasks_outlives_their_node_and_their_processes_do_not() {
    let place = Place::new();
    let (_up, nodes) = place.up(&file(&place, ""));
    await_manager(&nodes);
    decide(&place, &nodes);
    for end in ["inject node 2 --name t --wait 60", ""] {
        let family = family(&place);
        match end {
            "" => nodes.kill(2),
            end => drop(place.weft(end).done()),
        }
        assert_dead(&family);
        nodes.await_joined();
        assert_decided(&nodes);
    }
    // What was answered is not forgotten, however soon the node dies.
    place.weft("task start isolated --node 2 --name t").done();
    nodes.kill(2);
    nodes.await_joined();
    eventually("it runs as was ordered", || task(&nodes, "isolated").state == TaskState::Running);
}

#[test]
fn a_task_that_was_stopped_stays_so_when_its_node_is_isolated_and_released() {
    let place = Place::new();
    let (_up, nodes) = place.up(&file(&place, ""));
    await_manager(&nodes);
    decide(&place, &nodes);
    place.weft("isolate 2 --name t --wait 60").done();
    let is_quiet = |nodes: &Nodes| {
        let status = nodes.client(2).status().expect("a status");
        status.state == NodeState::Isolated && status.tasks.iter().all(|task| task.pid.is_none())
    };
    eventually("it is quiet", || is_quiet(&nodes));
    place.weft("task start whole --node 2 --name t --json").refused(18, "isolated");
    place.weft("release 2 --name t --wait 60").done();
    nodes.await_joined();
    assert_decided(&nodes);
}

#[test]
fn nodes_that_were_started_by_hand_go_on_as_well_and_end_what_was_left() {
    let place = Place::new();
    let file = file(&place, "");
    let node = |rank: u16| place.start(&format!("node {file} --rank {rank}"), "");
    let (_zero, _one, two) = (node(0), node(1), node(2));
    let nodes = place.find();
    nodes.await_joined();
    await_manager(&nodes);
    decide(&place, &nodes);
    let left = family(&place);
    two.signal(Signal::KILL);
    two.wait();
    let alive = |process: &&Pidfd| matches!(process.is_dead(), Ok(false));
    // The kernel ends the first of them, and no process is left to end the others.
    eventually("two are left", || left.iter().filter(alive).count() == 2);
    let again = node(2);
    assert_dead(&left);
    nodes.await_joined();
    assert_decided(&nodes);
    // One that ends in order leaves nothing in the first place.
    let family = family(&place);
    again.signal(Signal::TERM);
    again.wait().done();
    assert_eq!(family.iter().filter(alive).count(), 0);
}

/// Its next incarnation waits to learn whether its node is still isolated.
#[test]
fn no_task_of_an_isolated_node_is_started_before_it_is_released() {
    let place = Place::new();
    let ran = || place.files("ran").len();
    let job = "program = \"sh\"\nargs = [\"-c\", '''touch \
               \"$WEFT_RUNTIME_DIR/../f/ran-$$\"; exec sleep 1000''']\n";
    let text = "name = \"t\"\nnodes = 3\ndirnet.timing.clone_ms = 5000\n".to_owned()
        + &format!("[[task]]\nname = \"job\"\nnodes = [2]\n{job}");
    let (_up, nodes) = place.up(&place.file("t.toml", text));
    await_manager(&nodes);
    eventually("it runs", || ran() == 1);
    place.weft("isolate 2 --name t --wait 60").done();
    // A supervisor that begins takes the socket over, and a client that came too early is
    // disconnected.
    let is_isolated =
        || nodes.client(2).status().is_ok_and(|status| status.state == NodeState::Isolated);
    eventually("it is quiet", is_isolated);
    assert_eq!((ran(), task(&nodes, "job").state), (1, TaskState::Killed));
    // It is not started again while it is isolated.
    nodes.kill(2);
    place.weft("release 2 --name t --wait 60").done();
    eventually("it runs", || ran() == 2);
}

/// The cleanup of a killed cluster ends what its tasks have left, too; and the
/// next cluster of the name knows nothing of it.
#[test]
fn a_cluster_that_is_started_anew_starts_its_tasks_anew() {
    let place = Place::new();
    let file = file(&place, "");
    let (up, nodes) = place.up(&file);
    await_manager(&nodes);
    decide(&place, &nodes);
    let left = family(&place);
    place.kill(&["up", "node", "component"]);
    drop(up);
    let (_up, nodes) = place.up(&file);
    assert_dead(&left);
    eventually("it runs", || task(&nodes, "isolated").state == TaskState::Running);
    assert_eq!(task(&nodes, "stopped").errors, 0);
}

/// What the node does not know itself it learns: from its copy of the database, or from the others.
#[test]
fn what_is_not_noted_is_learnt_from_the_database_before_a_task_is_started() {
    let place = Place::new();
    let (_up, nodes) = place.up(&file(&place, ""));
    await_manager(&nodes);
    decide(&place, &nodes);
    eventually("the others know it", || {
        let known = nodes.client(0).status().expect("a status").dirnet;
        let known = known.map(|dirnet| dirnet.database).unwrap_or_default();
        known.iter().any(|entry| entry.node == 2 && entry.task_errors == [0, 1, 0, 0, 2])
    });
    let of = |file: &str| place.runtime_dir().join("t").join(file);
    for database in ["", "node-2.database"] {
        nodes.kill(2);
        fs::write(of("node-2.tasks"), "whatever").expect("ours");
        if !database.is_empty() {
            fs::write(of(database), "whatever").expect("ours");
        }
        nodes.await_joined();
        eventually("all is as it was", || states(&nodes) == DECIDED);
        assert_eq!((task(&nodes, "stopped").errors, task(&nodes, "failing").errors), (1, 2));
        assert_eq!(task(&nodes, "isolated").restarts, 0);
    }
    assert!(place.logs().contains("node-2.tasks: it is damaged"), "{}", place.logs());
}

/// A note of their processes that cannot be read does not let those processes run on.
#[test]
fn processes_of_tasks_are_ended_though_the_note_of_them_is_damaged_or_gone() {
    let place = Place::new();
    let script = "sleep 1000 & setsid sleep 1000 & exec sleep 1000";
    let job =
        format!("[[task]]\nname = \"job\"\nprogram = \"sh\"\nargs = [\"-c\", \"{script}\"]\n");
    let text = format!("name = \"t\"\nnodes = 3\n{job}nodes = [2]\n");
    let (up, nodes) = place.up(&place.file("t.toml", text));
    await_manager(&nodes);
    let note = place.runtime_dir().join("t/node-2.remains");
    let damage = || fs::write(&note, "whatever").expect("ours");
    let remove = || fs::remove_file(&note).expect("ours");
    for spoil in [&damage as &dyn Fn(), &remove] {
        let left = family(&place);
        spoil();
        nodes.kill(2);
        assert_dead(&left);
        nodes.await_joined();
    }
    let left = family(&place);
    damage();
    place.kill(&["up", "node", "component"]);
    drop(up);
    place.weft("down --name t").done();
    assert_dead(&left);
    place.assert_nothing_left();
}

/// Stopping a task stops all of it, including processes in a session of their own.
#[test]
fn children_in_a_session_of_their_own_end_with_their_task_while_the_node_lives() {
    let place = Place::new();
    let (_up, nodes) = place.up(&file(&place, ""));
    await_manager(&nodes);
    for order in ["restart", "stop", "start", "isolate"] {
        let left = match order {
            "start" => Vec::new(),
            _ => family(&place),
        };
        place.weft(&format!("task {order} whole --node 2 --name t")).done();
        assert_dead(&left);
    }
    eventually("its process has ended", || task(&nodes, "whole").pid.is_none());
    assert!(place.processes().iter().all(|process| process.role != "1000"));
}

/// The state of the tasks of a node that has met no other is unknown: they wait for a while.
#[test]
fn a_node_that_is_alone_starts_its_tasks_all_the_same() {
    let place = Place::new();
    let _alone = place.start(&format!("node {} --rank 2", file(&place, "")), "");
    let nodes = place.find();
    assert_eq!(states(&nodes), [TaskState::Waiting; 5]);
    place.weft("task stop stopped --node 2 --name t").done();
    place.weft("task start isolated --node 2 --name t").done();
    assert_eq!(task(&nodes, "isolated").state, TaskState::Running);
    assert_eq!(task(&nodes, "whole").state, TaskState::Waiting);
    let mut decided = DECIDED;
    decided[2] = TaskState::Running;
    eventually("all others run, or have", || states(&nodes) == decided);
}
