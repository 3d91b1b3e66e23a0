//! What commands refuse: exit status, code, cause and cure, and nothing else that happens.

use std::env;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{Write as _, pipe};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{self, Command};
use std::thread;

use rustix::fs::{CWD, Mode, mkfifoat};
use weft::cluster::Cluster;
use weft_program::doctor;

use crate::place::{Nodes, Place};
use crate::said::Said;

/// A cluster whose mailboxes hold 32 messages of 16 bytes.
const TINY: &str = "name = \"t\"\nnodes = 2\nmailbox.slots = 16\nmailbox.message_len = 16\n";

fn tiny(place: &Place) -> (crate::place::Running, Nodes) {
    place.up(&place.file("tiny.toml", TINY))
}

#[test]
fn a_name_in_use_is_refused_and_its_cluster_unharmed() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let reply = place.weft("up --nodes 3 --name t --json").refused(12, "name_in_use");
    assert!(reply.contains("weft down --name t"), "{reply}");
    let file = place.file("t.toml", TINY);
    let reply = place.weft(&format!("node {file} --rank 0 --json")).refused(12, "name_in_use");
    assert!(reply.contains("weft down --name t") && reply.contains("in its file"), "{reply}");
    assert!(!reply.contains("--name,"), "{reply}");
    nodes.assert_unharmed();
}

#[test]
fn a_cluster_that_this_machine_has_no_room_for_is_not_started() {
    let place = Place::new();
    let file = place.file(
        "vast.toml",
        "name = \"t\"\nnodes = 32\nmailbox.slots = 4096\nmailbox.message_len = 4000\n\
         lane.slots = 1024\n[neb]\nslots = 4096\nmessage_len = 4096\n",
    );
    let vast = Cluster::load(Path::new(&file)).expect("within every limit");
    if doctor::lack(&vast).is_none() {
        // It would be started: 40 GiB are left here.
        return;
    }
    let reply = place.weft(&format!("up {file} --json")).refused(41, "memory");
    assert!(reply.contains("neb.slots or neb.message_len"), "{reply}");
    place.assert_nothing_left();
}

#[test]
fn an_illegal_name_is_refused_by_every_command() {
    let place = Place::new();
    for command in ["up", "status", "down", "put --from 0 --to 1", "get --node 0", "inject kill 0"]
    {
        let reply = place.weft(&format!("{command} --name No! --json")).refused(11, "cluster_name");
        assert!(reply.contains("No!"), "{reply}");
    }
    place.assert_nothing_left();
}

#[test]
fn a_cluster_that_never_ran_is_not_running() {
    let place = Place::new();
    let reply =
        place.weft("status --name t --patience 0 --json").refused(13, "cluster_not_running");
    assert!(reply.contains("weft up --name t"), "{reply}");
    place.weft("down --name t --patience 0 --json").refused(13, "cluster_not_running");
    place.assert_nothing_left();
}

#[test]
fn a_node_out_of_range_is_refused_with_the_range() {
    let place = Place::new();
    let (_up, _) = place.up("--nodes 2");
    for command in ["put --from 2 --to 0", "put --from 0 --to 2", "get --node 2", "inject kill 2"] {
        let said = place.weft_with(&format!("{command} --name t --json"), "a\n");
        let reply = said.refused(15, "node_out_of_range");
        assert!(reply.contains("0 to 1"), "{reply}");
    }
}

#[test]
fn a_message_too_long_is_refused_and_those_before_it_are_put() {
    let place = Place::new();
    let (_up, _) = tiny(&place);
    let lines = "fits\nthis line is longer than sixteen bytes\nnot reached\n";
    let reply = place.weft_with("put --name t --from 0 --to 1 --json", lines);
    let reply = reply.refused(20, "message_too_long");
    assert!(reply.contains("line 2") && reply.contains("mailbox.message_len"), "{reply}");
    let there = place.weft("get --name t --node 1").done();
    assert!(["", "fits\n"].contains(&there.as_str()), "{there}");
}

#[test]
fn a_mailbox_that_stays_full_refuses_the_rest() {
    let place = Place::new();
    let (_up, _) = tiny(&place);
    let lines: String = (0..100).map(|number| format!("{number}\n")).collect();
    let put = place.weft_with("put --name t --from 0 --to 1 --timeout 0.1 --json", &lines);
    let reply = put.refused(21, "mailbox_full");
    let there = place.weft("get --name t --node 1").done();
    let count = there.lines().count();
    assert!(reply.contains(&format!("{count} messages were put")), "{reply}");
    assert!(lines.starts_with(&there) && (16..=32).contains(&count), "{there}");
}

#[test]
fn messages_that_do_not_come_in_time_are_not_waited_for() {
    let place = Place::new();
    let (_up, _) = place.up("--nodes 2");
    place.weft_with("put --name t --from 0 --to 1", "one\n").done();
    let said = place.weft("get --name t --node 1 --count 2 --timeout 0.2 --json");
    let reply = said.refused(30, "timeout");
    assert!(reply.contains("1 of 2"), "{reply}");
    let [shown, summary] = &said.objects()[..] else { panic!("{said:?}") };
    assert_eq!((&summary["ok"], &shown["text"]), (&false.into(), &"one".into()));
}

#[test]
fn a_node_that_does_not_answer_is_named() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 2");
    nodes.kill(1);
    for command in ["put --from 1 --to 0", "get --node 1", "inject kill 1"] {
        let said = place.weft(&format!("{command} --name t --patience 0 --json"));
        let reply = said.refused(32, "node_unreachable");
        assert!(reply.contains("node 1"), "{reply}");
    }
    let put = place.weft_with("put --name t --from 0 --to 1 --timeout 0.1 --json", "a\n");
    put.refused(32, "node_unreachable");
}

#[test]
fn a_node_that_gave_up_says_so() {
    let place = Place::new();
    let file = place.file("t.toml", format!("{TINY}restart.max = 0\n"));
    let (up, _) = place.up(&file);
    place.weft("inject kill 1 --name t --json").refused(31, "component_lost");
    place.weft("get --name t --node 1 --json").refused(31, "component_lost");
    let status = place.weft("status --name t --json").object();
    assert_eq!(status["nodes"][1]["state"], "given_up");
    place.weft("down --name t").done();
    up.wait().done();
    place.assert_nothing_left();
}

#[test]
fn a_cluster_file_is_refused_with_the_key_and_the_limit() {
    let place = Place::new();
    for (line, code, reply) in [
        ("mailbox.slot = 16", (10, "cluster_file"), "write mailbox.slots if that is what you mean"),
        ("mailbox.slots = 17", (10, "cluster_file"), "a power of two from 16 to 4096"),
        ("restart.max = -1", (10, "cluster_file"), "0 to 10000"),
        ("wait = \"doze\"", (10, "cluster_file"), "\"spin\", \"yield\" or \"futex\""),
        ("nodes = 5", (10, "cluster_file"), "correct the TOML"),
    ] {
        let file = place.file("t.toml", format!("name = \"t\"\nnodes = 4\n{line}\n"));
        let said = place.weft(&format!("up {file} --json")).refused(code.0, code.1);
        assert!(said.contains(reply) && said.contains("t.toml:3"), "{said}");
    }
    let reply = place.weft("up --nodes 33 --json").refused(10, "cluster_file");
    assert!(reply.contains("2 to 32"), "{reply}");
    place.assert_nothing_left();
}

#[test]
fn a_file_that_is_no_cluster_file_is_refused() {
    let place = Place::new();
    let missing = place.file("missing", "");
    fs::remove_file(&missing).expect("it was just written");
    place.weft(&format!("up {missing} --json")).refused(22, "input_missing");
    let binary = place.file("binary", [0xff, 0xfe, 0]);
    place.weft(&format!("up {binary} --json")).refused(23, "input_binary");
    let folder = place.runtime_dir();
    place.weft(&format!("up {} --json", folder.display())).refused(24, "input_unreadable");
    place.assert_nothing_left();
}

#[test]
fn a_command_line_without_sense_is_a_usage_error() {
    let place = Place::new();
    for line in ["weave", "", "up --colour red", "put --from 0", "get --node x", "inject burn 1"] {
        let reply = place.weft(&format!("{line} --json")).refused(2, "usage");
        assert!(!reply.contains("Usage:") && !reply.contains("For more information"), "{reply}");
        let said = place.weft(line);
        assert!(said.status == Some(2) && said.err.contains("--help"), "{said:?}");
        assert!(line.is_empty() || said.err.starts_with("weft: "), "{said:?}");
        assert!(line.is_empty() || said.err.ends_with(" --help` [usage]\n"), "{said:?}");
    }
    let reply = place.weft("bcast --neb --frm 0 --json").refused(2, "usage");
    let cure = "'--frm' found: a similar argument exists: '--from'; usage: `weft bcast ";
    assert!(reply.contains(cure) && reply.ends_with("see `weft bcast --help`"), "{reply}");
    for (line, says) in [
        ("handover xx", "for '[TO]': not a node's number"),
        ("isolate 1x", "for '<NODE>': not a node's number"),
        ("node --rank xx", "for '--rank <RANK>': not a node's number"),
        ("get --node 0 --count xx", "for '--count <N>': not a whole number"),
        ("handover --wait xx", "for '--wait <SECONDS>': not a number"),
    ] {
        let reply = place.weft(&format!("{line} --json")).refused(2, "usage");
        assert!(reply.contains(says), "{reply}");
    }
    let never = place.weft("put --from 0 --to 1 --timeout -1 --json");
    assert_eq!(never.status, Some(2), "{never:?}");
    place.assert_nothing_left();
}

#[test]
fn an_input_without_an_end_is_bounded_or_refused() {
    let place = Place::new();
    let (_up, nodes) = tiny(&place);
    let endless = || File::open("/dev/zero").expect("every Linux has it");
    let put = "put --name t --from 0 --to 1 --timeout 0.1 --json";
    let said = place.start_changed(put, "", |command| command.stdin(endless())).wait();
    said.refused(20, "message_too_long");
    let (reader, mut writer) = pipe().expect("a pipe");
    // Ends when its reader does.
    let lines = thread::spawn(move || while writer.write_all(b"a line\n").is_ok() {});
    let said = place.start_changed(put, "", |command| command.stdin(reader)).wait();
    said.refused(21, "mailbox_full");
    lines.join().expect("it ends");
    let fifo = place.path_of("fifo");
    mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).expect("a FIFO");
    let bcast = format!("bcast --neb {fifo} --from 0 --timeout 0.1 --name t --json");
    let reply = place.weft(&bcast).refused(24, "input_unreadable");
    assert!(reply.contains("no process has opened it to write"), "{reply}");
    place.weft(&format!("demo --input {fifo} --json")).refused(24, "input_unreadable");
    place.weft("demo --input /dev/zero --json").refused(24, "input_unreadable");
    nodes.assert_unharmed();
}

#[test]
fn a_fifo_is_broadcast_as_it_comes() {
    let place = Place::new();
    let (_up, _) = place.up("--nodes 2");
    let fifo = place.path_of("fifo");
    mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).expect("a FIFO");
    let bcast = place.start(&format!("bcast --neb {fifo} --from 0 --name t"), "");
    fs::write(&fifo, "through a FIFO\n").expect("it is read");
    bcast.wait().done();
    let receive = "bcast --neb --receive --node 1 --name t";
    assert_eq!(place.weft(receive).done(), "through a FIFO\n");
}

#[test]
fn a_live_view_needs_a_terminal() {
    let place = Place::new();
    let (_up, _) = place.up("--nodes 2");
    for line in ["top --name t --json", "top --name t"] {
        let said = place.weft(line);
        assert_eq!(said.status, Some(2), "{said:?}");
        assert!(said.err.contains("weft status --json"), "{said:?}");
    }
}

#[test]
fn people_are_told_the_same_in_words() {
    let place = Place::new();
    let said = place.weft("status --name t --patience 0");
    assert_eq!((said.status, said.out.as_str()), (Some(13), ""));
    for word in ["no cluster named t is running", "weft up --name t", "[cluster_not_running]"] {
        assert!(said.err.contains(word), "{}", said.err);
    }
}

/// Below /tmp, too; what is open to others is refused wherever it is.
#[test]
fn a_private_directory_that_a_user_names_is_taken_wherever_it_is() {
    let place = Place::new();
    let own = env::temp_dir().join(format!("weft-named-{}", process::id()));
    DirBuilder::new().mode(0o700).create(&own).expect("a new directory");
    let down = || {
        let down = place.start_changed("down --name t --patience 0 --json", "", |command| {
            command.env("WEFT_RUNTIME_DIR", own.join(""))
        });
        down.wait()
    };
    let private = down();
    fs::set_permissions(&own, Permissions::from_mode(0o755)).expect("ours");
    let open = down();
    fs::remove_dir(&own).expect("ours, and empty");
    private.refused(13, "cluster_not_running");
    let reply = open.refused(40, "runtime_dir");
    assert!(reply.contains("mode 0755") && reply.contains("chmod 700"), "{reply}");
}

/// A FIFO would be waited for, and a link may lead to what is another's.
#[test]
fn a_note_that_is_no_regular_file_is_refused_by_name_and_holds_up_no_command() {
    let place = Place::new();
    let file = place.file("t.toml", TINY);
    let _first = place.start(&format!("node {file} --rank 0"), "");
    let nodes = place.find();
    let note = nodes.dir.incarnation_file(1);
    let refused = |kind: &str| {
        let reply = place.weft(&format!("node {file} --rank 1 --json")).refused(40, "runtime_dir");
        let name = note.display();
        assert!(reply.contains(&format!("{name}: it is {kind}")), "{reply}");
        assert!(reply.ends_with(&format!("remove {name}, which is not what a node has made")));
        fs::remove_file(&note).expect("ours");
    };
    make_fifo(&note);
    refused("a FIFO");
    symlink("/dev/zero", &note).expect("a link");
    refused("a symbolic link");
    let copy = nodes.dir.cluster_file();
    fs::remove_file(&copy).expect("ours");
    make_fifo(&copy);
    place.weft("status --name t --json").refused(24, "input_unreadable");
}

#[test]
fn a_cluster_file_without_an_end_is_refused_at_once() {
    let place = Place::new();
    let fifo = place.path_of("fifo");
    make_fifo(Path::new(&fifo));
    for file in ["/dev/zero", &fifo] {
        for command in [format!("up {file}"), format!("doctor {file}")] {
            let reply = place.weft(&format!("{command} --json"));
            let reply = reply.refused(24, "input_unreadable");
            assert!(reply.contains("no regular file"), "{reply}");
        }
        place.weft(&format!("neb verify {file} --json")).refused(24, "input_unreadable");
    }
}

#[test]
fn the_key_that_a_cluster_file_names_is_examined() {
    let place = Place::new();
    let text = "name = \"t\"\nnodes = 2\n[network]\nkey = \"none.key\"\n\
                addresses = [\"127.0.0.1:7001\", \"127.0.0.1:7002\"]\n";
    let file = place.file("keyed.toml", text);
    let said = place.weft(&format!("doctor {file} --json")).refused(22, "input_missing");
    assert!(said.contains("none.key"), "{said}");
}

fn make_fifo(path: &Path) {
    mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).expect("a new FIFO");
}

#[test]
fn a_rank_that_runs_is_not_run_twice() {
    let place = Place::new();
    let file = place.file("t.toml", TINY);
    let _running = [0, 1].map(|rank| place.start(&format!("node {file} --rank {rank}"), ""));
    let nodes = place.find();
    nodes.await_joined();
    let reply = place.weft(&format!("node {file} --rank 1 --json"));
    assert!(reply.refused(15, "node_out_of_range").contains("runs already"));
    place.weft(&format!("node {file} --rank 2 --json")).refused(15, "node_out_of_range");
    let other = place.file("other.toml", TINY.replace("nodes = 2", "nodes = 3"));
    place.weft(&format!("node {other} --rank 2 --json")).refused(10, "cluster_file");
    nodes.assert_unharmed();
    place.weft_with("put --name t --from 1 --to 0", "still here\n").done();
    assert_eq!(place.weft("get --name t --node 0 --count 1").done(), "still here\n");
}

#[test]
fn a_reader_that_went_away_costs_nothing_but_its_output() {
    let place = Place::new();
    let (_up, _) = place.up("--nodes 2");
    let deaf = |arguments: &str| {
        let (_, writer) = pipe().expect("a pipe");
        place.start_changed(arguments, "", |command| command.stdout(writer)).wait()
    };
    deaf("status --name t").done();
    deaf("status --name t --json").done();
    place.weft_with("put --name t --from 0 --to 1", "kept\n").done();
    assert_eq!(deaf("get --name t --node 1 --count 1").status, Some(44));
    assert_eq!(place.weft("get --name t --node 1 --count 1").done(), "kept\n");
}

#[test]
fn a_full_standard_output_is_no_success() {
    let place = Place::new();
    let (_up, _) = place.up("--nodes 2");
    let into_full = |arguments: &str| {
        let full = File::create("/dev/full").expect("every Linux has it");
        place.start_changed(arguments, "", |command| command.stdout(full)).wait()
    };
    into_full("status --name t --json").refused(44, "output");
    into_full("up --template --json").refused(44, "output");
    for command in ["status --name t", "--help", "inject heal 1 --name t"] {
        assert_eq!(into_full(command).status, Some(44), "{command}");
    }
    place.weft_with("put --name t --from 0 --to 1", "kept\n").done();
    assert_eq!(into_full("get --name t --node 1 --count 1").status, Some(44));
    assert_eq!(place.weft("get --name t --node 1 --count 1").done(), "kept\n");
    place.weft_with("bcast --neb --from 0 --name t", "reply\n").done();
    let receive = "bcast --neb --receive --node 1 --name t";
    assert_eq!(into_full(receive).status, Some(44));
    place.weft(&format!("{receive} --output /dev/full --json")).refused(44, "output");
    place.weft("key /no/such/place.key --json").refused(44, "output");
}

#[test]
fn a_standard_output_that_is_closed_is_no_success_and_loses_nothing() {
    let place = Place::new();
    let (_up, _) = place.up("--nodes 2");
    let without = |arguments: &str| {
        let line = format!("exec {} {arguments} >&-", env!("CARGO_BIN_EXE_weft"));
        let mut command = Command::new("sh");
        command.args(["-c", &line]).env("WEFT_RUNTIME_DIR", place.runtime_dir());
        let ended = command.output().expect("there is a shell");
        let err = String::from_utf8(ended.stderr).expect("a text");
        Said { status: ended.status.code(), out: String::new(), err }
    };
    without("status --name t --json").refused(44, "output");
    place.weft_with("put --name t --from 0 --to 1", "kept\n").done();
    assert_eq!(without("get --name t --node 1 --count 1").status, Some(44));
    assert_eq!(place.weft("get --name t --node 1 --count 1").done(), "kept\n");
    place.weft_with("bcast --neb --from 0 --name t", "kept\n").done();
    let receive = "bcast --neb --receive --node 1 --name t";
    assert_eq!(without(receive).status, Some(44));
    assert_eq!(place.weft(receive).done(), "kept\n");
}

#[test]
fn an_error_that_nobody_reads_keeps_its_exit_status() {
    let place = Place::new();
    for arguments in ["status --name t --patience 0", "status --name t --patience 0 --json"] {
        let (_, writer) = pipe().expect("a pipe");
        let said = place.start_changed(arguments, "", |command| command.stderr(writer)).wait();
        assert_eq!(said.status, Some(13));
    }
}
