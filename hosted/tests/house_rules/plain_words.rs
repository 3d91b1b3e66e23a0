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
    "hosted/src/bench.rs",
    "hosted/src/bench/neb",
    "hosted/src/bench/verbs",
    "hosted/src/bench/wheel",
    "hosted/src/cli",
    "hosted/src/client",
    "hosted/src/clock.rs",
    "hosted/src/cluster.rs",
    "hosted/src/demo.rs",
    "hosted/src/demo/drawing",
    "hosted/src/demo/summary.rs",
    "hosted/src/doctor",
    "hosted/src/explain.rs",
    "hosted/src/launch",
    "hosted/src/lib.rs",
    "hosted/src/main.rs",
    "hosted/src/packet",
    "hosted/src/process",
    "hosted/src/readiness.rs",
    "hosted/src/regular_file.rs",
    "hosted/src/runtime_dir",
    "hosted/src/scratch.rs",
    "hosted/src/sealed.rs",
    "hosted/src/shm",
    "hosted/src/signing",
    "hosted/src/sim.rs",
    "hosted/src/sim/draws.rs",
    "hosted/src/sim/endpoint",
    "hosted/src/sim/explore",
    "hosted/src/sim/fabric.rs",
    "hosted/src/sim/fault.rs",
    "hosted/src/sim/flight.rs",
    "hosted/src/sim/fold.rs",
    "hosted/src/sim/liar.rs",
    "hosted/src/sim/mailbox",
    "hosted/src/sim/memory.rs",
    "hosted/src/sim/mutants.rs",
    "hosted/src/sim/neb",
    "hosted/src/sim/panics.rs",
    "hosted/src/sim/protocol.rs",
    "hosted/src/sim/replay.rs",
    "hosted/src/sim/run.rs",
    "hosted/src/sim/seeds.rs",
    "hosted/src/sim/shrink.rs",
    "hosted/src/sim/subject.rs",
    "hosted/src/sim/supervisor.rs",
    "hosted/src/sim/tests",
    "hosted/src/sim/trace.rs",
    "hosted/src/sim/world",
    "hosted/src/task.rs",
    "hosted/src/transfer.rs",
    "hosted/tests/bench.rs",
    "hosted/tests/cluster/births.rs",
    "hosted/tests/cluster/broadcast.rs",
    "hosted/tests/cluster/control.rs",
    "hosted/tests/cluster/damage.rs",
    "hosted/tests/cluster/database.rs",
    "hosted/tests/cluster/decided.rs",
    "hosted/tests/cluster/demo.rs",
    "hosted/tests/cluster/evidence.rs",
    "hosted/tests/cluster/faults.rs",
    "hosted/tests/cluster/hosts.rs",
    "hosted/tests/cluster/identity.rs",
    "hosted/tests/cluster/infancy.rs",
    "hosted/tests/cluster/ledger.rs",
    "hosted/tests/cluster/limits.rs",
    "hosted/tests/cluster/load.rs",
    "hosted/tests/cluster/main.rs",
    "hosted/tests/cluster/parallel.rs",
    "hosted/tests/cluster/peers.rs",
    "hosted/tests/cluster/place.rs",
    "hosted/tests/cluster/program.rs",
    "hosted/tests/cluster/readers.rs",
    "hosted/tests/cluster/readme.rs",
    "hosted/tests/cluster/refusals.rs",
    "hosted/tests/cluster/removal.rs",
    "hosted/tests/cluster/said.rs",
    "hosted/tests/cluster/signed.rs",
    "hosted/tests/cluster/storm.rs",
    "hosted/tests/cluster/survivors.rs",
    "hosted/tests/cluster/task_lives.rs",
    "hosted/tests/cluster/tasks.rs",
    "hosted/tests/cluster/timing.rs",
    "hosted/tests/cluster/torso.rs",
    "hosted/tests/corpora.rs",
    "hosted/tests/fence",
    "hosted/tests/shm_conformance.rs",
    "hosted/tests/verbs",
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

fn riddles(source: &Source) -> Vec<Finding> {
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
