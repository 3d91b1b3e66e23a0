//! Hidden inputs: clocks are read in one file, and no code sleeps.

use crate::finding::{Finding, expect_none, lines};
use crate::source::{Source, words};
use crate::tree::Tree;

/// The one file that reads clocks.
const CLOCK: &str = "hosted/src/clock.rs";

const CLOCKS: &[&str] = &["Instant::now", "SystemTime", "UNIX_EPOCH", "clock_gettime"];

/// Files in which a thread may sleep. There are none: wait for the event itself.
const SLEEPERS: &[&str] = &[];

const SLEEPS: &[&str] = &["thread::sleep", "nanosleep", "clock_nanosleep", "usleep"];

fn read_in_one_file(source: &Source) -> Vec<Finding> {
    // A test of processes or devices needs a real deadline; one of core gets the time as an
    // argument.
    let may_wait = |is_test| is_test && !source.path.starts_with("core/");
    let may_read = |is_test| source.path == CLOCK || may_wait(is_test);
    let others = source.numbered().filter(|(_, line)| !may_read(line.is_test));
    others
        .filter_map(|(at, line)| {
            let clock = CLOCKS.iter().find(|clock| words(&line.code, clock).next().is_some())?;
            let cure = "take the time as an argument; hosted/src/clock.rs reads it";
            Some(source.finding(at, format!("`{clock}` outside {CLOCK}"), cure))
        })
        .collect()
}

fn never_slept(source: &Source) -> Vec<Finding> {
    if SLEEPERS.contains(&source.path.as_str()) {
        return Vec::new();
    }
    let sleeps = |code: &str| {
        let imports =
            words(code, "thread::{").any(|at| words(&code[at..], "sleep").next().is_some());
        imports || SLEEPS.iter().any(|sleep| words(code, sleep).next().is_some())
    };
    source
        .numbered()
        .filter(|(_, line)| sleeps(&line.code))
        .map(|(at, _)| {
            let cure = "wait for the event itself, with a deadline: poll, futex, park_timeout";
            source.finding(at, "a sleeping thread".into(), cure)
        })
        .collect()
}

#[test]
fn clocks_are_read_in_one_file() {
    expect_none("clocks are read in hosted/src/clock.rs", &Tree::load().check(read_in_one_file));
}

#[test]
fn nobody_sleeps() {
    expect_none("no thread sleeps", &Tree::load().check(never_slept));
}

#[test]
fn a_hidden_clock_is_found() {
    let bad = "use std::time::SystemTime;\nlet a = Instant::now();\n// Instant::now()\n\
               #[cfg(test)]\nmod tests { fn f() { Instant::now(); } }";
    let check = |path| lines(&read_in_one_file(&Source::parse(path, bad)));
    assert_eq!(check("core/src/mailbox.rs"), [1, 2, 5]);
    assert_eq!(check("hosted/src/node.rs"), [1, 2]);
    assert_eq!(check("hosted/tests/storm.rs"), []);
    assert_eq!(check(CLOCK), []);
}

#[test]
fn a_sleeping_thread_is_found() {
    let bad = "std::thread::sleep(a);\nuse std::thread::{self, sleep};\nnanosleep(a);\n\
               thread::yield_now();\nlet sleep = 1;";
    for path in ["hosted/src/node.rs", "hosted/tests/storm.rs"] {
        assert_eq!(lines(&never_slept(&Source::parse(path, bad))), [1, 2, 3]);
    }
}
