//! Weft for C: installed as a user does, compiled with warnings as errors, run under `weft run`.
//!
//! Without a C compiler or pkg-config each test says so and is over: `ci/test` installs them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::OnceLock;

use crate::place::{CALM, Place, eventually};
use crate::run::{built, kill_in_turn};
use crate::said::Said;

const README: &str = include_str!("../../../../README.md");

/// Where the library is installed.
struct Installed {
    prefix: PathBuf,
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../c")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn done(output: &Output) -> String {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}: {out}{err}", output.status);
    out
}

impl Installed {
    /// The library of this build; none where it cannot be used.
    fn get() -> Option<&'static Self> {
        static INSTALLED: OnceLock<Option<Installed>> = OnceLock::new();
        INSTALLED.get_or_init(Self::install).as_ref()
    }

    fn install() -> Option<Self> {
        for tool in ["cc", "pkg-config"] {
            if Command::new(tool).arg("--version").output().is_err() {
                eprintln!("skipped: there is no {tool}; install gcc and pkg-config");
                return None;
            }
        }
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c");
        let mut install = Command::new(sources().join("install"));
        let installed = install.arg(&prefix).arg(built()).output().expect("it is a script");
        let said = done(&installed);
        assert!(said.contains("weft.pc"));
        // No system's loader looks there.
        let cure = format!("LD_LIBRARY_PATH={}/lib", prefix.display());
        assert!(said.contains(&cure), "{said}");
        Some(Self { prefix })
    }

    /// What pkg-config says, word by word.
    fn flags(&self, wanted: &[&str]) -> Vec<String> {
        let mut asked = Command::new("pkg-config");
        asked.env("PKG_CONFIG_PATH", self.prefix.join("lib/pkgconfig"));
        let said = done(&asked.args(wanted).output().expect("it runs"));
        said.split_whitespace().map(str::to_owned).collect()
    }

    fn compiler(&self, source: &Path, program: &Path) -> Command {
        let mut compiler = Command::new("cc");
        let strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-g"];
        compiler.args(strict).arg(source).arg("-o").arg(program).arg("-pthread");
        compiler.arg("-I").arg(sources().join("examples"));
        compiler
    }

    /// Compiles a source, as it stands, against the shared library.
    fn compile(&self, source: &Path) -> String {
        let name = source.file_stem().expect("a name");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c").join(name);
        let mut compiler = self.compiler(source, &program);
        compiler.args(self.flags(&["--cflags", "--libs", "weft"]));
        let rpath = format!("-Wl,-rpath,{}", self.prefix.join("lib").display());
        done(&compiler.arg(rpath).output().expect("it compiles"));
        program.into_os_string().into_string().expect("the path is UTF-8")
    }
}

/// Compiles an example; none where there is no compiler.
fn example(name: &str) -> Option<String> {
    let source = sources().join("examples").join(name).with_extension("c");
    Installed::get().map(|installed| installed.compile(&source))
}

/// Compiles a test; none where there is no compiler.
fn test(name: &str) -> Option<String> {
    let source = sources().join("tests").join(name).with_extension("c");
    Installed::get().map(|installed| installed.compile(&source))
}

#[track_caller]
fn assert_says(said: &Said, lines: &[&str]) {
    assert_eq!(said.status, Some(0), "{}{}", said.out, said.err);
    for line in lines {
        assert!(
            said.out.lines().any(|it| it == *line),
            "{line} is not in {}{}",
            said.out,
            said.err
        );
    }
}

#[test]
fn members_in_c_greet_each_other() {
    let Some(hello) = example("hello") else { return };
    let place = Place::new();
    let said = place.weft(&format!("run -n 2 --name t -- {hello}"));
    assert_says(&said, &["[0] hello from 1, incarnation 1", "[1] hello from 0, incarnation 1"]);
    place.assert_nothing_left();
}

#[test]
fn a_member_in_c_is_linked_statically_as_well() {
    let Some(installed) = Installed::get() else { return };
    let program = installed.prefix.join("hello-static");
    let mut compiler = installed.compiler(&sources().join("examples/hello.c"), &program);
    compiler
        .args(installed.flags(&["--cflags", "weft"]))
        .arg(installed.prefix.join("lib/libweft.a"));
    // What it needs of the system, without the library itself.
    let mut needed = installed.flags(&["--static", "--libs", "weft"]);
    needed.retain(|flag| flag != "-lweft" && !flag.starts_with("-L"));
    done(&compiler.args(needed).output().expect("it compiles"));
    let place = Place::new();
    let said = place.weft(&format!("run -n 2 --name t -- {}", program.display()));
    assert_says(&said, &["[0] hello from 1, incarnation 1"]);
}

#[test]
fn a_member_in_c_that_is_killed_goes_on_as_its_next_incarnation() {
    let Some(ring) = example("ring") else { return };
    let place = Place::new();
    let run = place.start(&format!("run -n 3 --name t --json -- {ring} 100000"), "");
    place.find().await_joined();
    place.weft("inject kill 1 --name t --wait 60").done();
    let said = run.wait();
    let round = ["[0] 100000 messages round", "[1] 100000 messages round"];
    assert_says(&said, &round);
    assert!(!said.out.contains("\"rank\":1,\"status\":0,\"incarnations\":1"), "{}", said.out);
    place.assert_nothing_left();
}

#[test]
fn members_in_c_count_each_number_once() {
    let Some(counter) = example("counter") else { return };
    let said = Place::new().weft(&format!("run -n 3 --name t --state 4KiB -- {counter} 20000"));
    assert_says(&said, &["[0] sum 400020000, expected 400020000"]);
}

#[test]
fn members_in_c_deliver_what_all_others_broadcast() {
    let Some(broadcast) = example("broadcast") else { return };
    let said = Place::new().weft(&format!("run -n 3 --name t -- {broadcast} 500"));
    let delivered = |rank| format!("[{rank}] delivered 500 messages of each of 2 members");
    assert_says(&said, &[&delivered(0), &delivered(1), &delivered(2)]);
}

#[test]
fn members_in_c_keep_one_log_after_a_kill() {
    const COUNT: usize = 4_000;
    let Some(log) = example("replicated_log") else { return };
    let place = Place::new();
    let output = place.path_of("output");
    let run = place
        .start(&format!("run -n 3 --name t --state 1MiB --output {output} -- {log} {COUNT}"), "");
    kill_in_turn(&place.find(), 2);
    run.wait().done();
    let entries = |round| (0..3).map(move |origin| format!("entry {round} of {origin}\n"));
    let expected: String = (1..=COUNT).flat_map(entries).collect();
    for rank in 0..3 {
        let kept = fs::read_to_string(format!("{output}/{rank}.out")).expect("it was written");
        assert!(kept == expected, "member {rank} keeps {} lines", kept.lines().count());
    }
    place.assert_nothing_left();
}

#[test]
fn a_group_delivers_a_long_message_to_members_in_c() {
    let Some(group) = example("group") else { return };
    let place = Place::new();
    let file = place.file("c.toml", "name = \"t\"\nnodes = 3\ngroup.count = 1\n");
    let said = place.weft(&format!("run {file} -- {group} 20000000"));
    assert_says(&said, &["[0] sent 20000000 bytes", "[2] received 20000000 bytes"]);
}

#[test]
fn members_in_c_exchange_tensors() {
    let Some(tensors) = example("tensors") else { return };
    let place = Place::new();
    let file = place.file("c.toml", "name = \"t\"\nnodes = 2\nrendezvous.pool_mib = 4\n");
    let said = place.weft(&format!("run {file} --state 4KiB -- {tensors} 300"));
    assert_says(&said, &["[0] exchanged 300 tensors", "[1] exchanged 300 tensors"]);
}

#[test]
fn programs_in_c_watch_a_cluster_from_outside() {
    let (Some(watch), Some(mask)) = (example("watch"), example("mask")) else { return };
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 3");
    nodes.await_joined();
    let watched = Outsider::start(&place, &watch, "watched");
    let masked = Outsider::start(&place, &mask, "masked");
    eventually("both show a view", || watched.has("members 0x7") && masked.has("members 0x7"));
    place.weft("inject kill 1 --name t --wait 60").done();
    eventually("the watcher sees it return", || {
        watched.has("removed 1 1/0 component down") && watched.has("joined 1 1/1")
    });
    eventually("the mask has changed", || masked.lines() > 1);
}

/// A program that speaks to the cluster `t` from outside, until it is dropped.
struct Outsider {
    child: Child,
    out: String,
}

impl Outsider {
    fn start(place: &Place, program: &str, name: &str) -> Self {
        let out = place.path_of(name);
        let mut command = Command::new(program);
        command.arg("t").env("WEFT_RUNTIME_DIR", place.runtime_dir());
        command.stdout(File::create(&out).expect("a file can be made"));
        Self { child: command.spawn().expect("it was compiled"), out }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.out).expect("it was made")
    }

    fn has(&self, part: &str) -> bool {
        self.said().contains(part)
    }

    fn lines(&self) -> usize {
        self.said().lines().count()
    }
}

impl Drop for Outsider {
    fn drop(&mut self) {
        // One that has ended takes no signal any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Null, closed, of another thread or kind, forked, too small, not UTF-8, twice.
#[test]
fn what_c_must_not_pass_is_refused() {
    let Some(refusals) = test("refusals") else { return };
    let place = Place::new();
    let sizes = "nodes = 2\ngroup.count = 1\nrendezvous.pool_mib = 4\n";
    let file = place.file("c.toml", format!("name = \"t\"\n{sizes}"));
    let said = place.weft(&format!("run {file} --state 4KiB -- {refusals}"));
    assert_says(&said, &["[0] all refused", "[1] all refused"]);
    let said = Command::new(refusals).arg("outside").output().expect("it was compiled");
    assert_eq!(done(&said), "no member\n");
}

#[test]
fn members_in_c_vote_for_tasks_and_receive_notices() {
    let Some(tasks) = test("tasks") else { return };
    let place = Place::new();
    let task = |name, node| {
        let program = "program = \"sleep\"\nargs = [\"1000\"]";
        format!("[[task]]\nname = \"{name}\"\nnodes = [{node}]\n{program}\n")
    };
    place.file(
        "c.rl",
        "DEFINE 0 = MANAGER\nDEFINE 1 = BACKUP\nTASK 1 IS \"north\" ON NODE 0\n\
         TASK 2 IS \"south\" ON NODE 1\nTASK 3 IS \"actuator\" ON NODE 0\nN-VERSION 1\n\
         VERSION 1 IS T1 TIMEOUT 1000 S\nVERSION 2 IS T2 TIMEOUT 1000 S\n\
         VOTING ALGORITHM IS MAJORITY\nON SUCCESS T3\nEND N-VERSION\n\
         IF [ PHASE(T1) == 3 ] THEN\nSEND 7 T2\nFI\n",
    );
    let tasks_of = [task("north", 0), task("actuator", 0), task("south", 1)].concat();
    let text = format!("name = \"t\"\nnodes = 2\n[recovery]\nscript = \"c.rl\"\n{tasks_of}");
    let said = place.weft(&format!("run {} -- {tasks}", place.file("c.toml", text)));
    let outcome = "[0] kind 3: round 1, voters 3, agreed 3, 11";
    assert_says(&said, &[outcome, "[1] kind 1: 7"]);
}

/// As the header promises: under a filter that kills with the first system call, and with an
/// allocator that counts.
#[test]
fn a_polled_member_in_c_makes_no_system_call_and_allocates_nothing() {
    let Some(quiet) = test("quiet") else { return };
    let place = Place::new();
    // A suspicion is reported to the node, by a system call.
    let sizes = "name = \"t\"\nnodes = 2\nrestart.max = 0\n";
    let file = place.file("c.toml", format!("{sizes}{CALM}"));
    let said = place.weft(&format!("run {file} -- {quiet} {}", place.path_of("there")));
    assert_says(&said, &["[0] allocations: 0", "[1] allocations: 0"]);
}

#[test]
fn threads_share_a_spawned_member_in_c() {
    let Some(threads) = example("threads") else { return };
    let said = Place::new().weft(&format!("run -n 2 --name t -- {threads} 5000"));
    assert_says(&said, &["[0] took 15000 messages", "[1] took 15000 messages"]);
}

#[test]
fn the_lines_of_the_readme_in_c_are_a_program() {
    let Some(installed) = Installed::get() else { return };
    let source = README.split("```c\n").nth(1).and_then(|text| text.split("```").next());
    let place = Place::new();
    let file = PathBuf::from(place.file("readme.c", source.expect("README.md has a program in C")));
    let command = "cc app.c $(pkg-config --cflags --libs weft) -o app && weft run -n 4 -- ./app";
    assert!(README.contains(command), "README.md says how to compile it");
    let program = installed.compile(&file);
    let said = place.weft(&format!("run -n 2 --name t -- {program}"));
    assert_says(&said, &["[0] 1: through your memory", "[1] 0: through your memory"]);
}

/// Only where Debian's dpdk-dev is installed: it takes too long for every run of CI.
#[test]
fn a_loop_of_dpdk_goes_through_weft() {
    let exists = Command::new("pkg-config").args(["--exists", "libdpdk"]).status();
    if !exists.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no DPDK; install dpdk-dev");
        return;
    }
    let Some(installed) = Installed::get() else { return };
    let (source, program) = (sources().join("examples/lcore.c"), installed.prefix.join("lcore"));
    let mut compiler = Command::new("cc");
    // The headers of DPDK are no pedantic C.
    compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2"]).arg(source);
    compiler.args(installed.flags(&["--cflags", "--libs", "weft", "libdpdk"]));
    let rpath = format!("-Wl,-rpath,{}", installed.prefix.join("lib").display());
    done(&compiler.arg(rpath).arg("-o").arg(&program).output().expect("it compiles"));
    let said = Place::new().weft(&format!("run -n 2 --name t -- {} 20000", program.display()));
    assert_says(&said, &["[0] 20000 objects round", "[1] 20000 objects round"]);
}
