//! Limits of the process and of the machine: named, with the command that raises them, before
//! anything is started where that can be known.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use crate::place::Place;
use crate::said::Said;

/// Runs `weft` with these arguments in a shell that sets a limit before.
fn limited(place: &Place, limit: &str, arguments: &str) -> Said {
    let line = format!("{limit} && exec {} {arguments}", env!("CARGO_BIN_EXE_weft"));
    let mut command = Command::new("sh");
    command.args(["-c", &line]).env("WEFT_RUNTIME_DIR", place.runtime_dir());
    let ended = command.output().expect("there is a shell");
    let text = |bytes| String::from_utf8(bytes).expect("a text");
    Said { status: ended.status.code(), out: text(ended.stdout), err: text(ended.stderr) }
}

#[test]
fn a_limit_that_is_too_low_is_refused_before_anything_starts() {
    let place = Place::new();
    for (limit, cure) in [
        ("ulimit -S -n 40", "ulimit -n 104"),
        ("ulimit -S -v 300000", "ulimit -v "),
        ("ulimit -S -s 1000", "ulimit -s 4096"),
        ("ulimit -S -s 300", "ulimit -s 8192"),
    ] {
        let reply = limited(&place, limit, "up --nodes 2 --name t --json").refused(45, "limit");
        assert!(reply.contains(cure), "{limit}: {reply}");
        place.assert_nothing_left();
    }
}

/// Of which the system says in the middle of something else.
#[test]
fn too_few_open_files_are_named_wherever_they_are_met() {
    let place = Place::new();
    let (_up, _) = place.up("--nodes 2");
    let reply = limited(&place, "ulimit -n 4", "status --name t --json");
    let reply = reply.refused(45, "limit");
    assert!(reply.contains("ulimit -n 1024"), "{reply}");
}

/// SIGXFSZ would end the process without a word.
#[test]
fn a_limit_on_the_size_of_files_is_an_error_with_a_cure() {
    let place = Place::new();
    let file = place.path_of("template");
    let reply = limited(&place, "ulimit -f 1", &format!("up --template --json >{file}"));
    assert!(reply.refused(44, "output").contains("ulimit -f unlimited"));
    let said = limited(&place, "ulimit -f 100", "up --nodes 2 --name t --json");
    said.refused(31, "component_lost");
    assert!(said.err.contains("`ulimit -f unlimited` [limit]"), "{}", said.err);
    place.assert_nothing_left();
    // Half a key would be in the way of a whole one.
    let key = place.path_of("k0.key");
    limited(&place, "ulimit -f 0", &format!("key {key} --json")).refused(45, "limit");
    assert!(!Path::new(&key).exists());
}

#[test]
fn arguments_that_are_not_utf_8_are_a_usage_error() {
    let place = Place::new();
    let bad = OsStr::from_bytes(b"\xff");
    for words in [&["put", "--name"][..], &["up", "--name"], &[]] {
        let said = place.start_changed("--json", "", |command| command.args(words).arg(bad));
        said.wait().refused(2, "usage");
    }
}
