//! What the demonstration showed, for people and for scripts.

use std::fmt;

use serde::Serialize;

use super::broadcast::Broadcasts;
use super::collector::{Collector, Received};
use super::stream::StreamEnd;
use super::{Input, Recovery, VICTIM};
use crate::cluster::Cluster;

/// The demonstration as a whole.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Whether every step held.
    pub ok: bool,
    /// From the first process started to the last ended.
    pub elapsed_ms: u64,
    /// What was done, in order.
    pub steps: Vec<Step>,
    /// Where the lines were from.
    pub inputs: Vec<String>,
    /// Lines of the input, all rounds.
    pub lines: u64,
    /// How often the input was streamed over.
    pub rounds: usize,
    /// Messages that senders were told were put.
    pub sent: u64,
    /// Messages that arrived.
    pub received: u64,
    /// Puts that found the mailbox full; each was tried again.
    pub refused_full: u64,
    /// Messages that were put again: those of refused puts, and those that died unput.
    pub retried: u64,
    /// Messages that arrived twice.
    pub duplicated: u64,
    /// Messages that did not arrive.
    pub lost: u64,
    /// From the kill to the return of the killed node, greeted by all.
    pub readmission_us: u64,
    /// Texts that one node broadcast and another received whole.
    pub broadcasts: usize,
    /// Of those, with the digest of what was sent.
    pub broadcasts_equal: usize,
    /// Nodes that reported the lie which one of them told by order.
    pub conflicts: usize,
    /// Each sender's stream.
    pub streams: Vec<StreamSummary>,
}

/// One step.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// What was shown.
    pub name: &'static str,
    /// Whether it held.
    pub ok: bool,
    /// The figures.
    pub detail: String,
}

/// One sender's stream.
#[derive(Clone, Debug, Serialize)]
pub struct StreamSummary {
    /// The sender.
    pub rank: u16,
    /// Lines that arrived.
    pub lines: u64,
    /// Messages that the sender was told were put.
    pub sent: u64,
    /// Messages that arrived.
    pub received: u64,
    /// Messages that arrived twice.
    pub duplicated: u64,
    /// Messages that did not arrive.
    pub lost: u64,
    /// Messages that its component had not yet put when it was killed.
    pub not_yet_put_at_kill: Option<u64>,
    /// SHA-256 of the lines as they arrived.
    pub digest: String,
    /// Whether that is the input's.
    pub digest_equal: bool,
}

impl Summary {
    pub(super) fn new(input: &Input) -> Self {
        Self {
            ok: false,
            elapsed_ms: 0,
            steps: Vec::new(),
            inputs: input.names().to_vec(),
            lines: input.lines().len() as u64,
            rounds: input.rounds(),
            sent: 0,
            received: 0,
            refused_full: 0,
            retried: 0,
            duplicated: 0,
            lost: 0,
            readmission_us: 0,
            broadcasts: 0,
            broadcasts_equal: 0,
            conflicts: 0,
            streams: Vec::new(),
        }
    }

    fn step(&mut self, name: &'static str, ok: bool, detail: String) {
        self.steps.push(Step { name, ok, detail });
    }

    pub(super) fn note_started(&mut self, cluster: &Cluster, took_ns: u64) {
        let detail = format!(
            "{} nodes, each a supervisor and a component process, joined in {} ms",
            cluster.nodes,
            took_ns / 1_000_000
        );
        self.step("start", true, detail);
    }

    pub(super) fn note_streams(
        &mut self,
        collector: &Collector,
        ends: &[StreamEnd],
        redelivered: u64,
    ) {
        for (end, received) in ends.iter().zip(&collector.streams) {
            self.note_stream(collector, end, received);
        }
        let total = collector.total() as u64 * self.streams.len() as u64;
        let complete = self.sent == total && self.received == total && collector.altered == 0;
        let detail = format!(
            "{} lines ({} rounds of the input) from each of {} nodes: {} messages sent, {} \
             received, {} altered, {} refused as full and retried",
            self.lines,
            self.rounds,
            self.streams.len(),
            self.sent,
            self.received,
            collector.altered,
            self.refused_full
        );
        self.step("stream", complete, detail);
        let once = self.duplicated == 0 && self.lost == 0;
        let put_aside: u64 = collector.streams.iter().map(|stream| stream.put_aside).sum();
        let detail = format!(
            "{} duplicated, {} lost, {redelivered} redelivered and recognised, {put_aside} that \
             landed behind a gap put again",
            self.duplicated, self.lost
        );
        self.step("exactly once", once, detail);
        let equal = self.streams.iter().all(|stream| stream.digest_equal);
        let digest = &collector.digest()[..16];
        let detail = format!("SHA-256 {digest}… from every node: {equal}");
        self.step("digests", equal, detail);
    }

    fn note_stream(&mut self, collector: &Collector, end: &StreamEnd, received: &Received) {
        let total = collector.total();
        let digest = received.digest();
        let stream = StreamSummary {
            rank: end.rank,
            lines: received.lines,
            sent: end.acknowledged as u64,
            received: received.frames,
            duplicated: received.duplicated,
            lost: received.lost(total),
            not_yet_put_at_kill: end.resumed_at.map(|at| (total - at) as u64),
            digest_equal: digest == collector.digest(),
            digest,
        };
        self.sent += stream.sent;
        self.received += stream.received;
        self.refused_full += end.full;
        self.retried += end.full + end.put_again as u64;
        self.duplicated += stream.duplicated;
        self.lost += stream.lost;
        self.streams.push(stream);
    }

    pub(super) fn note_recovery(&mut self, victim: u16, recovery: &Recovery) {
        let Recovery { killed, incarnation, took_us } = *recovery;
        self.readmission_us = took_us;
        let stream = self.streams.iter().find(|stream| stream.rank == victim);
        let whole = stream.is_some_and(|stream| stream.lost == 0 && stream.duplicated == 0);
        let unput = stream.and_then(|stream| stream.not_yet_put_at_kill);
        let fate = unput.map_or_else(
            || "it had no put under way".to_owned(),
            |count| format!("the {count} messages it had not yet put were all that went with it"),
        );
        let detail = format!(
            "component of node {victim}, incarnation {killed}, killed in mid-stream; {fate}"
        );
        self.step("kill -9", whole, detail);
        let ms = took_us / 1_000;
        let detail = format!("incarnation {incarnation} greeted by all after {ms} ms, and went on");
        self.step("return", incarnation > killed, detail);
    }

    pub(super) fn note_broadcasts(&mut self, shown: &Broadcasts) {
        let Broadcasts { received, equal, delivered, repeated, .. } = *shown;
        (self.broadcasts, self.broadcasts_equal) = (received, equal);
        self.conflicts = shown.disputed.len();
        let nodes = super::NODES;
        let detail = format!(
            "all {nodes} nodes at once, {delivered} deliveries, {repeated} of them twice; \
             {equal} of {received} digests equal"
        );
        let ok = received == nodes * (nodes - 1) && equal == received && repeated == 0;
        self.step("broadcast", ok, detail);
        let (told, misled) = &shown.told;
        let (disputed, believed) = (&shown.disputed, &shown.believed);
        let detail = format!(
            "nodes {told:?} told one thing and {misled:?} another: conflict at {disputed:?}, \
             delivered at {believed:?}, {} different",
            shown.stories.saturating_sub(1)
        );
        let ok = !disputed.is_empty() && shown.stories <= 1 && !misled.is_empty();
        self.step("equivocation", ok, detail);
    }

    pub(super) fn note_stopped(&mut self, stopped: Result<(), String>) {
        let ok = stopped.is_ok();
        let detail = stopped.err().unwrap_or_else(|| "no process and no file left".to_owned());
        self.step("stop", ok, detail);
    }

    pub(super) fn finish(&mut self, elapsed_ms: u64) {
        self.elapsed_ms = elapsed_ms;
        self.ok = self.steps.iter().all(|step| step.ok);
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            let mark = if step.ok { "ok  " } else { "FAIL" };
            writeln!(f, "{mark}  {:<13} {}", step.name, step.detail)?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "node {:>8} {:>9} {:>9} {:>10} {:>5} {:>16}  digest",
            "lines", "sent", "received", "duplicated", "lost", "unput at kill"
        )?;
        for stream in &self.streams {
            let unput = match stream.not_yet_put_at_kill {
                Some(count) => count.to_string(),
                None if stream.rank == VICTIM => "0".to_owned(),
                None => "-".to_owned(),
            };
            writeln!(
                f,
                "{:>4} {:>8} {:>9} {:>9} {:>10} {:>5} {unput:>16}  {}… {}",
                stream.rank,
                stream.lines,
                stream.sent,
                stream.received,
                stream.duplicated,
                stream.lost,
                &stream.digest[..16],
                if stream.digest_equal { "equal" } else { "DIFFERENT" },
            )?;
        }
        let verdict = if self.ok { "everything held" } else { "SOMETHING DID NOT HOLD" };
        writeln!(f, "\n{verdict}, in {} ms", self.elapsed_ms)
    }
}
