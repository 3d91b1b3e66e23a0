//! `weft rl` as a newcomer uses it: scripts that are right and wrong, images that are damaged, and
//! files that are neither.

use std::fs;
use std::path::Path;
use std::process::Command;

const SCRIPT: &str = "DEFINE 0 = MANAGER\nDEFINE 1 = BACKUP\n\
                      TASK 3 = \"camera\" IS NODE 0, TASKID 0\n\n\
                      IF [ FAULTY T* ] THEN\n    RESTART @1\nFI\n";

#[path = "../../src/scratch.rs"]
mod scratch;

use scratch::Scratch;

/// A file of the folder, by its path.
fn file(folder: &Scratch, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("a file");
    path.display().to_string()
}

/// Exit code, standard output and standard error.
fn rl(arguments: &[&str]) -> (i32, String, String) {
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    let ran = weft.arg("rl").args(arguments).output().expect("weft runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (ran.status.code().expect("no signal ended it"), text(ran.stdout), text(ran.stderr))
}

fn code(arguments: &[&str]) -> i32 {
    rl(arguments).0
}

#[test]
fn a_script_becomes_an_image_that_is_shown_with_its_lines() {
    let folder = Scratch::new();
    let (script, image) = (file(&folder, "a.rl", SCRIPT), file(&folder, "a.img", ""));
    assert_eq!(rl(&["check", &script]).1, format!("{script} has no error\n"));
    assert_eq!(code(&["build", &script, "-o", &image]), 0);
    // An image is replaced by the next one.
    assert_eq!(code(&["build", &script, "-o", &image]), 0);
    let (shown, words, _) = rl(&["dump", &image]);
    assert_eq!(shown, 0);
    assert!(words.contains("   6  ACT      RESTART @1\n"), "{words}");
    // Back to a script, which has the same words in the same lines here, since it had this layout.
    let (_, source, _) = rl(&["dump", &image, "--source"]);
    let again = file(&folder, "b.rl", source);
    assert_eq!(code(&["build", &again, "-o", &image]), 0);
    assert_eq!(rl(&["dump", &image]).1, words);
}

#[test]
fn denied_warnings_and_what_is_left_out_are_said() {
    let folder = Scratch::new();
    let text = SCRIPT.replace("    RESTART @1\n", "");
    let script = file(&folder, "a.rl", text);
    let (code, _, error) = rl(&["check", "--deny", "warnings", &script]);
    assert_eq!(code, 51);
    assert!(error.contains("2 warnings, and warnings were denied"), "{error}");
    let many = file(&folder, "b.rl", "FOO\n".repeat(40));
    let (_, drawn, error) = rl(&["check", &many]);
    assert!(drawn.contains("and more"), "{drawn}");
    assert!(error.contains("more than 20 findings"), "{error}");
    let includes = file(&folder, "c.rl", "INCLUDE \"missing.rl\"\n");
    let (_, drawn, _) = rl(&["check", &includes]);
    assert!(drawn.contains("\"missing.rl\" cannot be included: No such file"), "{drawn}");
    let binary = file(&folder, "d.rl", b"DEFINE 0 = MANAGER\n\xff\xfe");
    let (_, drawn, _) = rl(&["check", &binary]);
    assert!(drawn.contains("RL0104") && drawn.contains("d.rl:2:1"), "{drawn}");
}

/// A device has no end, and a FIFO would be waited for.
#[test]
fn a_vote_for_what_is_no_file_is_refused_at_once() {
    let folder = Scratch::new();
    let folder = folder.path().display().to_string();
    for file in ["/dev/zero", &folder] {
        let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
        let ran = weft.args(["vote", "--round", "1", "--file", file]).output().expect("it runs");
        let error = String::from_utf8(ran.stderr).expect("text");
        assert_eq!(ran.status.code(), Some(24), "{error}");
        assert!(error.contains("no regular file"), "{error}");
    }
}

#[test]
fn a_wrong_script_is_drawn_and_makes_no_image() {
    let folder = Scratch::new();
    let script = file(&folder, "a.rl", SCRIPT.replace("FAULTY", "FUALTY"));
    let image = folder.path().join("a.img");
    for arguments in [&["check", &script][..], &["build", &script, "-o", image.to_str().unwrap()]] {
        let (code, drawn, error) = rl(arguments);
        assert_eq!(code, 51);
        assert!(drawn.contains("a.rl:5:6") && drawn.contains("did you mean FAULTY?"), "{drawn}");
        assert!(error.contains("a.rl: 1 finding\n"), "{error}");
    }
    assert!(!image.exists());
    let object = rl(&["--json", "check", &script]).1;
    let object: serde_json::Value = serde_json::from_str(&object).expect("one object");
    let finding = &object["diagnostics"][0];
    assert_eq!((&object["ok"], &finding["code"]), (&false.into(), &"RL0202".into()));
    assert_eq!(finding["places"][0]["line"], 5);
    assert_eq!((&finding["line"], &finding["column"]), (&5.into(), &6.into()));
}

#[test]
fn what_is_no_script_and_no_image_is_refused() {
    let folder = Scratch::new();
    let big = file(&folder, "big", "");
    fs::File::create(&big).and_then(|file| file.set_len(1 << 30)).expect("a sparse file");
    let (empty, binary) = (file(&folder, "empty", ""), file(&folder, "binary", b"\x7fELF\xff\xfe"));
    let missing = folder.path().join("missing").display().to_string();
    let nested = folder.path().display().to_string();
    // By check, dump and fmt.
    for (file, wanted) in [
        (&empty, [51, 52, 51]),
        (&big, [51, 52, 51]),
        (&binary, [51, 52, 23]),
        (&missing, [22, 22, 22]),
        (&nested, [24, 24, 24]),
    ] {
        let found = ["check", "dump", "fmt"].map(|command| code(&[command, file]));
        assert_eq!(found, wanted, "{file}");
    }
    assert_eq!(fs::read(&empty).expect("it is there"), b"", "fmt leaves it as it is");
}

#[test]
fn a_damaged_image_is_refused() {
    let folder = Scratch::new();
    let (script, image) = (file(&folder, "a.rl", SCRIPT), file(&folder, "a.img", ""));
    assert_eq!(code(&["build", &script, "-o", &image]), 0);
    let whole = fs::read(&image).expect("an image");
    for at in (0..whole.len()).step_by(7) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        assert_eq!(code(&["dump", &file(&folder, "flipped", flipped)]), 52, "byte {at}");
        assert_eq!(code(&["dump", &file(&folder, "cut", &whole[..at])]), 52, "{at} bytes");
    }
}

#[test]
fn no_file_is_lost_to_a_command() {
    let folder = Scratch::new();
    let script = file(&folder, "a.rl", SCRIPT);
    assert_eq!(code(&["build", &script, "-o", &script]), 44);
    let long = file(&folder, "long.rl", format!("{SCRIPT}{}", "# a comment\n".repeat(6_000)));
    assert_eq!(code(&["fmt", &long]), 51);
    assert!(fs::read(&long).expect("it is there").len() > 70_000);
    for target in ["/proc/image", "/dev/full", &folder.path().display().to_string()] {
        assert_eq!(code(&["build", &script, "-o", target]), 44, "{target}");
    }
    assert_eq!(fs::read_to_string(&script).expect("it is there"), SCRIPT);
}

#[test]
fn a_script_is_brought_into_its_form_once() {
    let folder = Scratch::new();
    let text = SCRIPT.replace("    ", "\t").replace("RESTART", "restart").replace('\n', "\r\n");
    let script = file(&folder, "a.rl", format!("\u{FEFF}{text}"));
    assert_eq!(code(&["fmt", "--check", &script]), 51);
    assert_eq!(code(&["fmt", &script]), 0);
    assert_eq!(code(&["fmt", "--check", &script]), 0);
    assert_eq!(fs::read_to_string(Path::new(&script)).expect("it is there"), SCRIPT);
}

#[test]
fn codes_are_explained_and_the_reference_is_printed() {
    assert!(rl(&["explain", "rl0207"]).1.starts_with("RL0207: AND and OR"));
    assert_eq!(code(&["explain", "RL9999"]), 2);
    assert!(rl(&["reference"]).1.starts_with("# The recovery language"));
}

fn run(script: &str, scenario: &str) -> (i32, serde_json::Value) {
    let (code, object, _) = rl(&["--json", "run", script, "--simulate", scenario]);
    let last = object.lines().next_back().expect("a result");
    (code, serde_json::from_str(last).expect("one object"))
}

/// `NAME.scenario` and `NAME-….scenario` are for `NAME.rl`.
#[test]
fn every_example_does_what_its_scenarios_expect() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recovery"));
    let names = fs::read_dir(folder).expect("the examples").map(|entry| entry.unwrap().path());
    let (scripts, scenarios): (Vec<_>, Vec<_>) =
        names.partition(|path| path.extension().is_some_and(|extension| extension == "rl"));
    let mut shown = Vec::new();
    for scenario in scenarios {
        let stem = scenario.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        let script = folder.join(stem.split('-').next().unwrap_or(stem)).with_extension("rl");
        let (script, scenario) = (script.display().to_string(), scenario.display().to_string());
        let (code, object) = run(&script, &scenario);
        assert_eq!((code, &object["ok"]), (0, &true.into()), "{scenario}: {object}");
        assert_eq!(run(&script, &scenario), (code, object), "{scenario} is one run");
        shown.push(script);
    }
    let is_shown = |script: &&std::path::PathBuf| shown.contains(&script.display().to_string());
    assert_eq!(scripts.iter().filter(|script| !is_shown(script)).count(), 0);
}

#[test]
fn an_expectation_that_does_not_hold_is_shown_and_fails() {
    let folder = Scratch::new();
    let text = SCRIPT.replace("NODE 0", "NODE 1");
    let script = file(&folder, "a.rl", text);
    let scenario = "nodes 2\nat 1 s error camera 7\nexpect restart camera within 100 ms\n\
                    expect stop camera within 100 ms\nexpect no restart camera until 2 s\n";
    let scenario = file(&folder, "a.scenario", scenario);
    let (code, object) = run(&script, &scenario);
    assert_eq!((code, &object["ok"]), (50, &false.into()));
    let held = |at: usize| object["expectations"][at]["held"].clone();
    assert_eq!([held(0), held(1), held(2)], [true, false, false].map(serde_json::Value::Bool));
    let order = &object["orders"][0];
    assert_eq!((&order["line"], &order["order"]), (&6.into(), &"RESTART camera".into()));
    assert!(order["obeyed_us"].as_u64() >= order["at_us"].as_u64(), "{order}");
    assert!(object["evaluations"].as_u64() >= Some(2), "{object}");
    let (_, drawn, error) = rl(&["run", &script, "--simulate", &scenario]);
    assert!(drawn.contains("order: RESTART camera (line 6)\n"), "{drawn}");
    assert!(drawn.contains("a.scenario:4: expect stop camera within 100 ms: did not hold\n"));
    assert!(error.contains("2 of 3 expectations did not hold, the first in line 4"), "{error}");
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let folder = Scratch::new();
    let script = file(&folder, "a.rl", SCRIPT.replace("DEFINE 1", "DEFINE 1-7"));
    let pair = file(&folder, "pair.rl", SCRIPT);
    // A rule of the DIR net is broken, and no cluster file was named.
    let rash = file(&folder, "rash.rl", format!("TEIF = 1 US\n{SCRIPT}"));
    let (one, fair) = (file(&folder, "one", "nodes 8\n"), file(&folder, "fair", "nodes 2\n"));
    let wrong = file(&folder, "wrong", "nodes 2\nat 1 s explode\n");
    let missing = folder.path().join("missing").display().to_string();
    for (script, scenario, wanted) in [
        (&pair, &fair, 0),
        (&pair, &wrong, 51),
        (&script, &one, 51),
        (&script, &fair, 51),
        (&rash, &fair, 51),
        (&pair, &missing, 22),
        (&missing, &fair, 22),
    ] {
        assert_eq!(code(&["run", script, "--simulate", scenario]), wanted, "{script} {scenario}");
    }
    let (_, drawn, _) = rl(&["run", &pair, "--simulate", &wrong]);
    assert!(drawn.contains("wrong:2:8"), "{drawn}");
}
