//! Traffic between machines that lose power, their cable or their time, and what must come of it.
//!
//! ```text
//!   on each machine:  traffic ──▶ its journals, in the folder that outlives it
//!   outside:          balance ◀── the journals of all machines
//! ```
//!
//! `ci/rxe hosts N test` runs both, several rounds of traffic in one cluster; without it they skip.
//! The books are those of the storm: what was put comes once and in order, what was refused does
//! not come, and what is unknown comes at most once. What was put into the mailbox of a machine
//! that was lost, and what it broadcast, is unknown; what it had put into others' mailboxes is not.
//! A broadcast is a stream to each receiver. Survivors receive the same ones of each other; those
//! of an origin that was lost may have reached some members only.

mod books;
mod journal;
#[expect(dead_code, reason = "shared with the storm, which uses all of it")]
#[path = "../cluster/ledger.rs"]
mod ledger;
mod traffic;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use books::{Books, Loss};
use traffic::Traffic;

/// How long a message may take to come once no more are sent.
const ARRIVAL: Duration = Duration::from_secs(60);

/// What the driver says.
#[track_caller]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The folder that the driver names; none where this does not run on machines.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(name);
    if folder.is_none() {
        eprintln!("skipped: it needs several machines, as in `ci/rxe hosts 3 test`");
    }
    folder.map(PathBuf::from)
}

#[track_caller]
fn number(name: &str) -> u16 {
    variable(name).parse().unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn traffic() {
    let Some(folder) = folder("TRAFFIC") else { return };
    Traffic::new(folder, number("RXE_HOST"), number("RXE_HOSTS"), number("ROUND")).run();
}

#[test]
fn balance() {
    let Some(folder) = folder("MACHINES") else { return };
    let losses: Vec<Loss> =
        variable("LOSSES").split_whitespace().map(|it| it.parse().expect("R:ROUND")).collect();
    let machines = number("RXE_HOSTS");
    let began = Instant::now();
    let books = loop {
        let books = Books::read(&folder, machines, &losses);
        if books.are_complete() || began.elapsed() > ARRIVAL {
            break books;
        }
        thread::park_timeout(Duration::from_millis(200));
    };
    println!("{}", books.balance());
}

/// Journals of two machines, as one round of traffic writes them.
fn write(folder: &Path, machine: u16, name: &str, lines: &[&str]) {
    let folder = folder.join(format!("{machine}/traffic"));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join(name), lines.concat()).expect("it is written");
}

/// The books of two machines, one of which put three messages: two are acknowledged, then its power
/// was cut. `received` is the journal of the other one, and `heard` of the only broadcast.
fn books(name: &str, received: &[&str], heard: &[&str], losses: &[Loss]) -> Books {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    write(&folder, 0, "sent-1.1", &["draft 2\n", "note 2 0\n", "draft 1\n"]);
    write(&folder, 0, "cast.1", &["draft 1\n", "note 1 0\n"]);
    write(&folder, 1, "received.1", received);
    write(&folder, 1, "heard.1", heard);
    let books = Books::read(&folder, 2, losses);
    std::fs::remove_dir_all(&folder).expect("its own folder");
    books
}

const FIRST: &str = "0 0 0 1 client1 0 \n";
const SECOND: &str = "0 0 0 1 client1 1 .......\n";
const THIRD: &str = "0 0 0 1 client1 2 ..............\n";
const HEARD: &str = "0 0 0 65535 client1 0 \n";

#[test]
fn what_is_unknown_may_come_or_not_and_a_torn_line_says_nothing() {
    for received in [&[FIRST, SECOND][..], &[FIRST, SECOND, THIRD], &[FIRST, SECOND, "0 0 0 1 cl"]]
    {
        let books = books("unknown", received, &[HEARD], &[]);
        assert!(books.are_complete());
        books.balance();
    }
}

#[test]
fn nothing_that_was_put_is_missed_in_a_mailbox_that_was_lost() {
    let lost = books("forgiven", &[FIRST], &[], &["1:1".parse().expect("a loss")]);
    assert!(lost.are_complete());
    lost.balance();
    let earlier = books("earlier", &[FIRST], &[HEARD], &["1:0".parse().expect("a loss")]);
    assert!(!earlier.are_complete());
}

#[test]
#[should_panic(expected = "was put and is lost")]
fn a_message_that_was_put_and_did_not_come_is_noticed() {
    books("lost", &[FIRST], &[HEARD], &[]).balance();
}

#[test]
#[should_panic(expected = "1 after Some(1)")]
fn a_message_that_came_twice_is_noticed() {
    books("twice", &[FIRST, SECOND, SECOND], &[HEARD], &[]).balance();
}

#[test]
#[should_panic(expected = "altered")]
fn a_message_that_was_altered_is_noticed() {
    books("altered", &[FIRST, "0 0 0 1 client1 1 ...,...\n"], &[HEARD], &[]).balance();
}

#[test]
#[should_panic(expected = "was put and is lost")]
fn a_broadcast_that_was_not_heard_is_noticed() {
    books("unheard", &[FIRST, SECOND], &[], &[]).balance();
}
