//! Which thread may wait for which: every queue between threads and processes, and no cycle of
//! waits.
//!
//! ```text
//!   client ┄▶ main ┄▶ component ┄▶ main        ┄▶ never waits: kept, dropped or refused
//!   peer ──▶ peer's reader ──▶ main ┄▶ peer    ──▶ waits while the queue is full
//! ```
//!
//! The table is written by hand; its completeness is checked: a channel or a pair of sockets that a
//! file makes and the table does not list is a finding. So is a cycle of queues whose writers wait,
//! unless a deadline ends one of the waits and the table names it.

use std::collections::BTreeSet;

use crate::finding::{Finding, expect_none, lines};
use crate::source::{Source, words};
use crate::tree::Tree;

/// What a writer does when its queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Full {
    /// It goes on: the element is kept within a bound, dropped and counted, or refused.
    GoesOn,
    /// It waits until there is room.
    Waits,
    /// It waits for so many milliseconds, and then ends the connection.
    WaitsMs(u32),
}

/// A queue: where it is made, its writer, its reader, and its bound.
#[derive(Clone, Copy, Debug)]
struct Queue {
    /// The file that makes it, below hosted/src; none for a socket that has a path.
    made: Option<&'static str>,
    name: &'static str,
    writer: &'static str,
    reader: &'static str,
    full: Full,
    bound: &'static str,
}

/// The main thread of a supervisor, and that of a component.
const MAIN: &str = "supervisor";
const LOOP: &str = "component";

const fn queue(
    made: Option<&'static str>,
    name: &'static str,
    (writer, reader): (&'static str, &'static str),
    full: Full,
    bound: &'static str,
) -> Queue {
    Queue { made, name, writer, reader, full, bound }
}

const EVENT: Option<&str> = Some("node/supervisor/event.rs");
const COMPONENT: Option<&str> = Some("node/component.rs");
const LINK: Option<&str> = Some("node/supervisor/component.rs");
const IM_ALIVE: Option<&str> = Some("node/im_alive.rs");
const LAUNCH: Option<&str> = Some("launch.rs");
const HOOK: Option<&str> = Some("node/hook.rs");
const HOOKS: Option<&str> = Some("node/supervisor/hooks.rs");
const CALLS: Option<&str> = Some("node/supervisor/calls.rs");
const KEEPER: Option<&str> = Some("launch/keeper.rs");
const DOOR: Option<&str> = Some("launch/door.rs");

/// A channel or socket that carries messages in both directions is listed once for each.
const QUEUES: &[Queue] = &[
    queue(EVENT, "events", ("peer reader", MAIN), Full::Waits, "EVENTS"),
    queue(None, "events", ("signals", MAIN), Full::Waits, "EVENTS"),
    queue(None, "events", ("task watcher", MAIN), Full::Waits, "EVENTS"),
    queue(EVENT, "orders", ("im-alive", MAIN), Full::GoesOn, "ORDERS"),
    queue(IM_ALIVE, "inputs", (MAIN, "im-alive"), Full::GoesOn, "INBOX"),
    queue(None, "requests", ("client", MAIN), Full::Waits, "REQUESTS_OPEN_MAX"),
    queue(None, "replies", (MAIN, "client"), Full::GoesOn, "REQUESTS_OPEN_MAX, UNREAD_NS_MAX"),
    queue(LINK, "link", (MAIN, "link reader"), Full::GoesOn, "CONTROL_MAX, REQUESTS_MAX"),
    queue(COMPONENT, "control", ("link reader", LOOP), Full::Waits, "CONTROL_MAX"),
    queue(COMPONENT, "requests", ("link reader", LOOP), Full::Waits, "REQUESTS_MAX"),
    queue(None, "link", (LOOP, MAIN), Full::GoesOn, "CONTROL_MAX, REQUESTS_MAX"),
    queue(None, "peers at this host", (MAIN, "peer reader"), Full::GoesOn, "the socket"),
    queue(None, "peers over TCP", (MAIN, "peer reader"), Full::WaitsMs(1000), "the socket"),
    queue(None, "alarms at this host", ("im-alive", "peer reader"), Full::GoesOn, "the socket"),
    queue(None, "alarms over TCP", ("im-alive", "peer reader"), Full::WaitsMs(1000), "the socket"),
    queue(HOOK, "events for hooks", (MAIN, "hooks"), Full::GoesOn, "WAITING_MAX"),
    queue(None, "calls of a name", (MAIN, "caller"), Full::GoesOn, "CALLS_MAX"),
    queue(CALLS, "ends of calls", ("caller", MAIN), Full::GoesOn, "ENDS_MAX"),
    queue(HOOKS, "ends of hooks", ("hooks", MAIN), Full::GoesOn, "ENDS_MAX"),
    queue(KEEPER, "words", (MAIN, "keeper reader"), Full::GoesOn, "the socket"),
    queue(LAUNCH, "events", ("keeper reader", "keeper"), Full::Waits, "EVENTS"),
    queue(LAUNCH, "notices", ("keeper", "launcher"), Full::GoesOn, "NOTICES"),
    queue(LAUNCH, "started", ("keeper", "launcher"), Full::GoesOn, "one"),
    queue(None, "stop", ("launcher", "keeper"), Full::Waits, "EVENTS"),
    queue(None, "calls", ("door", "keeper"), Full::Waits, "EVENTS"),
    queue(DOOR, "ended", ("keeper", "door"), Full::GoesOn, "one"),
];

/// The deadlines that end the waits of a cycle, by the names of their queues: the session with a
/// peer on another host that reads nothing for a second ends.
const ENDED_BY_DEADLINE: &[&str] = &["peers over TCP"];

/// The queues of each cycle of waits among `queues`.
fn rings(queues: &[Queue]) -> BTreeSet<BTreeSet<&'static str>> {
    fn walk(
        queues: &[Queue],
        at: &str,
        path: &mut Vec<Queue>,
        rings: &mut BTreeSet<BTreeSet<&'static str>>,
    ) {
        if let Some(first) = path.iter().position(|queue| queue.writer == at) {
            rings.insert(path[first..].iter().map(|queue| queue.name).collect());
            return;
        }
        let waits = |queue: &&Queue| queue.full != Full::GoesOn && queue.writer == at;
        for queue in queues.iter().filter(waits) {
            path.push(*queue);
            walk(queues, queue.reader, path, rings);
            path.pop();
        }
    }
    let mut rings = BTreeSet::new();
    for writer in queues.iter().map(|queue| queue.writer) {
        walk(queues, writer, &mut Vec::new(), &mut rings);
    }
    rings
}

/// Finds a source that makes another number of channels and pairs than the table lists.
fn is_listed(source: &Source) -> Vec<Finding> {
    let Some(file) = source.path.strip_prefix("hosted/src/") else { return Vec::new() };
    if !["node", "bootstrap", "launch"].iter().any(|part| file.starts_with(part)) {
        return Vec::new();
    }
    let makes = ["sync_channel(", "channel(", "Socket::pair(", "UnixStream::pair("];
    let lines = source.numbered().filter(|(_, line)| !line.is_test);
    let made: Vec<usize> = lines
        .flat_map(|(at, line)| {
            let count = makes.iter().map(|make| words(&line.code, make).count()).sum();
            std::iter::repeat_n(at, count)
        })
        .collect();
    let listed = QUEUES.iter().filter(|queue| queue.made == Some(file)).count();
    if made.len() == listed {
        return Vec::new();
    }
    let what = format!("{} queues are made here, {listed} are listed", made.len());
    let cure = "list who writes it, who reads it and who waits in QUEUES";
    vec![source.finding(made.last().copied().unwrap_or(1), what, cure)]
}

#[test]
fn every_queue_is_listed_with_its_bound() {
    expect_none("queues are listed in QUEUES", &Tree::load().check(is_listed));
    assert!(QUEUES.iter().all(|queue| !queue.bound.is_empty()));
}

#[test]
fn no_ring_of_waits_is_without_a_deadline() {
    for ring in rings(QUEUES) {
        let is_ended = ENDED_BY_DEADLINE.iter().any(|name| ring.contains(name));
        assert!(is_ended, "these wait for each other: {ring:?}");
    }
    let has_deadline = |name: &&str| {
        let mut named = QUEUES.iter().filter(|queue| queue.name == *name);
        named.all(|queue| matches!(queue.full, Full::WaitsMs(_)))
    };
    assert!(ENDED_BY_DEADLINE.iter().all(has_deadline));
}

#[test]
fn the_main_threads_wait_for_nothing_on_their_host() {
    for queue in QUEUES.iter().filter(|queue| [MAIN, LOOP, "im-alive"].contains(&queue.writer)) {
        assert!(queue.full == Full::GoesOn || queue.name.ends_with("over TCP"), "{queue:?}");
    }
}

/// The queues as they were when one client could have its node's component killed.
#[test]
fn a_ring_is_found() {
    let old = [
        queue(None, "events", ("client reader", MAIN), Full::Waits, "1024"),
        queue(None, "events", ("component reader", MAIN), Full::Waits, "1024"),
        queue(None, "to the component", (MAIN, "link reader"), Full::WaitsMs(1000), "the socket"),
        queue(None, "inbox", ("link reader", LOOP), Full::Waits, "1024"),
        queue(None, "from the component", (LOOP, "component reader"), Full::WaitsMs(5000), "-"),
    ];
    let ring = BTreeSet::from(["events", "from the component", "inbox", "to the component"]);
    assert_eq!(rings(&old), BTreeSet::from([ring]));
    assert!(rings(&old[..4]).is_empty());
}

#[test]
fn a_queue_that_is_not_listed_is_found() {
    let bad = "//! x\nlet (a, b) = sync_channel(1);\nlet c = Socket::pair()?;\n";
    let check = |path, text| lines(&is_listed(&Source::parse(path, text)));
    assert_eq!(check("hosted/src/node/puts.rs", bad), [3]);
    assert_eq!(check("hosted/program/src/cli/up.rs", bad), []);
    assert_eq!(check("hosted/src/node/puts.rs", "//! x\n"), []);
    assert_eq!(check("hosted/src/node/im_alive.rs", "//! x\n").len(), 1);
}
