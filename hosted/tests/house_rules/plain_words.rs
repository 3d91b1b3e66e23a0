//! Plain words: the files listed here are written in the field's terms, and stay so.
//!
//! The list only grows. For each banned word the finding names a plainer one.

use crate::finding::{Finding, expect_none, lines};
use crate::source::{Source, words};
use crate::tree::Tree;

/// Paths whose comments and strings are clean.
const ROOMS: &[&str] = &[
    "core/src/checksum.rs",
    "core/src/endpoint",
    "core/src/fabric",
    "core/src/fmt.rs",
    "core/src/ids.rs",
    "core/src/lane",
    "core/src/lib.rs",
    "core/src/mailbox",
    "core/src/mutant.rs",
    "core/src/neb",
    "core/src/sync.rs",
    "core/src/time.rs",
    "core/src/wheel",
    "core/src/wire",
    "core/tests",
    "driver/",
    "hosted/src/allocations.rs",
    "hosted/bench/src/lib.rs",
    "hosted/bench/src/neb",
    "hosted/bench/src/verbs",
    "hosted/bench/src/wheel",
    "hosted/examples",
    "hosted/program/src/cli",
    "hosted/program/tests/member.rs",
    "hosted/src/client",
    "hosted/src/clock.rs",
    "hosted/src/cluster.rs",
    "hosted/program/src/demo.rs",
    "hosted/program/src/demo/drawing",
    "hosted/program/src/demo/summary.rs",
    "hosted/program/src/doctor",
    "hosted/src/explain.rs",
    "hosted/src/launch",
    "hosted/src/member",
    "hosted/src/node/component/events.rs",
    "hosted/src/node/own_puts.rs",
    "hosted/src/node/supervisor/program.rs",
    "hosted/src/lib.rs",
    "hosted/program/src/main.rs",
    "hosted/src/packet",
    "hosted/src/process",
    "hosted/src/readiness.rs",
    "hosted/src/regular_file.rs",
    "hosted/src/runtime_dir",
    "hosted/src/scratch.rs",
    "hosted/src/sealed.rs",
    "hosted/src/shm",
    "hosted/src/signing",
    "hosted/sim/src/lib.rs",
    "hosted/sim/src/draws.rs",
    "hosted/sim/src/endpoint",
    "hosted/sim/src/explore",
    "hosted/sim/src/fabric.rs",
    "hosted/sim/src/fault.rs",
    "hosted/sim/src/flight.rs",
    "hosted/sim/src/fold.rs",
    "hosted/sim/src/liar.rs",
    "hosted/sim/src/mailbox",
    "hosted/sim/src/memory.rs",
    "hosted/sim/src/mutants.rs",
    "hosted/sim/src/neb",
    "hosted/sim/src/panics.rs",
    "hosted/sim/src/protocol.rs",
    "hosted/sim/src/replay.rs",
    "hosted/sim/src/run.rs",
    "hosted/sim/src/seeds.rs",
    "hosted/sim/src/shrink.rs",
    "hosted/sim/src/subject.rs",
    "hosted/sim/src/supervisor.rs",
    "hosted/sim/src/tests",
    "hosted/sim/src/trace.rs",
    "hosted/sim/src/world",
    "hosted/src/task.rs",
    "hosted/program/src/transfer.rs",
    "hosted/program/tests/bench.rs",
    "hosted/program/tests/cluster/births.rs",
    "hosted/program/tests/cluster/broadcast.rs",
    "hosted/program/tests/cluster/control.rs",
    "hosted/program/tests/cluster/damage.rs",
    "hosted/program/tests/cluster/database.rs",
    "hosted/program/tests/cluster/decided.rs",
    "hosted/program/tests/cluster/demo.rs",
    "hosted/program/tests/cluster/evidence.rs",
    "hosted/program/tests/cluster/faults.rs",
    "hosted/program/tests/cluster/hosts.rs",
    "hosted/program/tests/cluster/identity.rs",
    "hosted/program/tests/cluster/infancy.rs",
    "hosted/program/tests/cluster/ledger.rs",
    "hosted/program/tests/cluster/limits.rs",
    "hosted/program/tests/cluster/load.rs",
    "hosted/program/tests/cluster/main.rs",
    "hosted/program/tests/cluster/parallel.rs",
    "hosted/program/tests/cluster/peers.rs",
    "hosted/program/tests/cluster/place.rs",
    "hosted/program/tests/cluster/program.rs",
    "hosted/program/tests/cluster/readers.rs",
    "hosted/program/tests/cluster/readme.rs",
    "hosted/program/tests/cluster/refusals.rs",
    "hosted/program/tests/cluster/removal.rs",
    "hosted/program/tests/cluster/said.rs",
    "hosted/program/tests/cluster/signed.rs",
    "hosted/program/tests/cluster/storm.rs",
    "hosted/program/tests/cluster/survivors.rs",
    "hosted/program/tests/cluster/task_lives.rs",
    "hosted/program/tests/cluster/tasks.rs",
    "hosted/program/tests/cluster/timing.rs",
    "hosted/program/tests/cluster/torso.rs",
    "hosted/tests/corpora.rs",
    "hosted/tests/fence",
    "hosted/tests/shm_conformance.rs",
    "hosted/program/tests/verbs",
];

/// A banned word, and its replacement.
const WORDS: &[(&str, &str)] = &[
    ("anew", "again"),
    ("anybody", "any peer"),
    ("born", "started"),
    ("everybody", "all peers"),
    ("for ever", "forever"),
    ("life", "incarnation (of a component), boot (of a node)"),
    ("midst", "middle"),
    ("nobody", "no peer, no thread: the noun that it is"),
    ("reign", "term"),
    ("somebody", "a peer, a caller: the noun that it is"),
    ("tidings", "event"),
    ("told", "sent, reported, logged, returned"),
    ("whoever", "a peer that, the caller that"),
];

pub(crate) fn riddles(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, line) in source.numbered() {
        let text = line.text.to_lowercase();
        for (word, instead) in WORDS {
            if words(&text, word).next().is_some() {
                findings.push(source.finding(at, format!("`{word}`"), instead));
            }
        }
    }
    findings
}

#[test]
fn clean_rooms_stay_clean() {
    let tree = Tree::load();
    let findings = tree.check(|source| {
        let is_clean = ROOMS.iter().any(|room| source.path.starts_with(room));
        if is_clean { riddles(source) } else { Vec::new() }
    });
    expect_none("the words of the field", &findings);
}

#[test]
fn a_riddle_is_found() {
    let source = Source::parse(
        "core/src/a.rs",
        "// Nobody is told.\nlet life = 1;\nlet lifetime = 1;\n\"for ever\"",
    );
    assert_eq!(lines(&riddles(&source)), [1, 1, 2, 4]);
}
