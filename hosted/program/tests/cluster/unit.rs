//! The unit of the package: what it runs, and what systemd hears of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

use crate::PATIENCE;
use crate::place::{CALM, Place};

const UNIT: &str = include_str!("../../debian/weft@.service");

/// A socket as that of systemd.
struct Listener {
    socket: UnixDatagram,
    path: String,
}

impl Listener {
    fn at(place: &Place) -> Self {
        let path = place.path_of("notify");
        let socket = UnixDatagram::bind(&path).expect("a new path");
        socket.set_read_timeout(Some(PATIENCE)).expect("it can be set");
        Self { socket, path }
    }

    /// Waits for a datagram with this line.
    fn await_line(&self, line: &str) {
        let mut bytes = [0; 4096];
        loop {
            let len =
                self.socket.recv(&mut bytes).unwrap_or_else(|error| panic!("{line}: {error}"));
            if String::from_utf8_lossy(&bytes[..len]).lines().any(|it| it == line) {
                return;
            }
        }
    }
}

/// What the unit starts for cluster `t`, whose file is at `file`, with the variables that the unit
/// and `changed` set; without the program itself.
fn arguments(file: &str, changed: &[(&str, &str)]) -> String {
    let values = |key: &'static str| UNIT.lines().filter_map(move |it| it.strip_prefix(key));
    let start = values("ExecStart=").next().expect("it starts something");
    let mut line = start.strip_prefix("/usr/bin/weft ").expect("the program").to_owned();
    let own = values("Environment=").filter_map(|it| it.split_once('='));
    let last = |name: &str| {
        let all: Vec<_> = own.clone().chain(changed.iter().copied()).collect();
        all.into_iter().rev().find(|(it, _)| *it == name).map(|(_, value)| value.to_owned())
    };
    for name in ["WEFT_START", "WEFT_ARGUMENTS"] {
        line = line.replace(&format!("${name}"), &last(name).expect("the unit sets it"));
    }
    line.replace("/etc/weft/%i.toml", file).replace("%i", "t")
}

#[test]
fn a_cluster_of_the_unit_is_ready_once_its_nodes_run_and_keeps_the_watchdog_quiet() {
    let place = Place::new();
    let listener = Listener::at(&place);
    let file = place.file("t.toml", format!("name = \"t\"\nnodes = 2\n{CALM}"));
    let up = place.start_changed(&arguments(&file, &[]), "", |command| {
        command.env("NOTIFY_SOCKET", &listener.path).env("WATCHDOG_USEC", "200000")
    });
    listener.await_line("READY=1");
    assert!(up.said("out").contains("nodes run"));
    listener.await_line("WATCHDOG=1");
    listener.await_line("WATCHDOG=1");
    place.weft("down --name t").done();
    listener.await_line("STOPPING=1");
    assert_eq!(up.wait().status, Some(0));
}

#[test]
fn a_node_of_the_unit_is_ready_before_it_has_met_others() {
    let place = Place::new();
    let listener = Listener::at(&place);
    let file = place.file("t.toml", format!("name = \"t\"\nnodes = 2\n{CALM}"));
    let changed = [("WEFT_START", "node"), ("WEFT_ARGUMENTS", "--rank 1")];
    let node = place.start_changed(&arguments(&file, &changed), "", |command| {
        command.env("NOTIFY_SOCKET", &listener.path).env("WATCHDOG_USEC", "200000")
    });
    listener.await_line("READY=1");
    listener.await_line("WATCHDOG=1");
    listener.await_line("WATCHDOG=1");
    node.signal(weft::process::Signal::TERM);
    listener.await_line("STOPPING=1");
    assert_eq!(node.wait().status, Some(0));
}

/// The unit as systemd reads it, where it is there to ask; with a program that exists.
#[test]
fn systemd_finds_no_fault_in_the_unit() {
    let place = Place::new();
    let text = UNIT.replace("/usr/bin/weft ", "/bin/true ");
    let path = place.file("weft@.service", text);
    let mut analyze = Command::new("systemd-analyze");
    let Ok(said) = analyze.args(["verify", "--man=no", &path]).output() else { return };
    let err = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success() && !err.contains("weft@"), "{err}");
    assert!(fs::read_to_string(&path).is_ok_and(|text| text.contains("Type=notify")));
}

/// Runs a script of the package on a system below `root` whose tools do nothing, and which has
/// version 2 of the package.
#[track_caller]
fn maintain(script: &str, root: &str, arguments: &[&str]) -> String {
    let tools = Path::new(root).join("tools");
    fs::create_dir_all(&tools).expect("it can be made");
    for (tool, says) in [("systemd-sysusers", ""), ("systemctl", ""), ("dpkg-query", "2")] {
        let path = tools.join(tool);
        fs::write(&path, format!("#!/bin/sh\nprintf '{says}'\n")).expect("it can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    let path = format!("{}:/usr/bin:/bin", tools.display());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("debian").join(script);
    let mut shell = Command::new("sh");
    shell.arg(script).args(arguments).env("DPKG_ROOT", root).env("PATH", path);
    let said = shell.output().expect("there is a shell");
    assert!(said.status.success(), "{said:?}");
    String::from_utf8_lossy(&said.stdout).into_owned()
}

#[test]
fn the_package_makes_the_folder_of_cluster_files_and_says_what_changes_for_them() {
    let place = Place::new();
    let root = place.path_of("root");
    let folder = Path::new(&root).join("etc/weft");
    let said = maintain("postinst", &root, &["configure"]);
    assert!(said.contains("/usr/share/doc/weft/cluster.toml"), "{said}");
    assert!(folder.is_dir());
    let said = maintain("postinst", &root, &["configure", "1"]);
    assert!(said.contains("running clusters go on with version 1"), "{said}");
    assert_eq!(maintain("postinst", &root, &["configure", "2"]), "", "the same version");
    fs::write(folder.join("t.toml"), "").expect("it can be written");
    maintain("postrm", &root, &["purge"]);
    assert!(folder.join("t.toml").exists());
    fs::remove_file(folder.join("t.toml")).expect("it is there");
    maintain("postrm", &root, &["remove"]);
    assert!(folder.is_dir());
    maintain("postrm", &root, &["purge"]);
    assert!(!folder.exists());
}
