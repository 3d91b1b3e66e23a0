//! Threads are started where a refusal is an error and not a panic.

use crate::finding::{Finding, expect_none, lines};
use crate::source::{Source, words};
use crate::tree::Tree;

fn started_with_an_answer(source: &Source) -> Vec<Finding> {
    let panics = source
        .numbered()
        .filter(|(_, line)| !line.is_test && words(&line.code, "thread::spawn").next().is_some());
    panics
        .map(|(at, _)| {
            let cure = "start it with `process::start_thread`";
            source.finding(at, "`thread::spawn` panics where a limit is reached".into(), cure)
        })
        .collect()
}

#[test]
fn no_limit_of_threads_is_a_panic() {
    expect_none("threads may be refused", &Tree::load().check(started_with_an_answer));
}

#[test]
fn a_thread_that_panics_is_found() {
    let bad = "thread::spawn(run);\nstd::thread::spawn(run);\nstart_thread(\"weft\", run)?;\n\
               #[cfg(test)]\nmod tests { fn f() { thread::spawn(run); } }";
    let check = |path| lines(&started_with_an_answer(&Source::parse(path, bad)));
    assert_eq!(check("hosted/src/node.rs"), [1, 2]);
    assert_eq!(check("hosted/tests/storm.rs"), []);
}
