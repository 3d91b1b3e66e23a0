//! What the demonstration showed, for people and for scripts.
//!
//! [`Summary`] is what `weft demo --json` prints on its last line; keys are added to it, never
//! renamed. Durations end in their unit.

use std::fmt;

use serde::Serialize;

use super::TextInput;
use super::act::Act;
use super::broadcast::BroadcastWatch;
use super::collector::{Collector, Received};
use super::script::ScriptSummary;
use super::stream::StreamEnd;
use super::timeline::{BlowRecovery, Ms};
use super::tree::{TreeReceived, TreeSummary};
use weft::cluster::Cluster;
use weft::explain::{self, times};

/// The demonstration as a whole.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Whether every step held.
    pub ok: bool,
    /// From the first process started to the last ended.
    pub elapsed_ms: u64,
    /// What was done, in order.
    pub steps: Vec<DemoStep>,
    /// Where the lines were from.
    pub inputs: Vec<String>,
    /// Lines of the input.
    pub lines: u64,
    /// How often every stream has gone over the whole input, at least.
    pub rounds: usize,
    /// Messages whose put was acknowledged.
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
    /// Texts that one node broadcast and another received whole.
    pub broadcasts: usize,
    /// Of those, with the digest of what was sent.
    pub broadcasts_equal: usize,
    /// Nodes that reported the injected equivocation.
    pub conflicts: usize,
    /// What was done to the nodes while the streams flowed, and how each came back.
    pub recoveries: Vec<BlowRecovery>,
    /// The broadcast along a tree that lost its forwarder.
    pub tree: Option<TreeSummary>,
    /// What the recovery script did about a task that failed.
    pub script: Option<ScriptSummary>,
    /// Each sender's stream.
    pub streams: Vec<StreamSummary>,
}

/// One step.
#[derive(Clone, Debug, Serialize)]
pub struct DemoStep {
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
    /// Messages whose put was acknowledged to the sender.
    pub sent: u64,
    /// Messages that arrived.
    pub received: u64,
    /// Messages that arrived twice.
    pub duplicated: u64,
    /// Messages that did not arrive.
    pub lost: u64,
    /// How often its component was lost while it had a request of the stream.
    pub resumed: usize,
    /// Messages that such a component had not put, and that were put again.
    pub put_again: usize,
    /// SHA-256 of the lines as they arrived.
    pub digest: String,
    /// Whether that is the one of the lines as they were put.
    pub digest_equal: bool,
}

impl Summary {
    pub(super) fn new(input: &TextInput) -> Self {
        Self {
            ok: false,
            elapsed_ms: 0,
            steps: Vec::new(),
            inputs: input.names().to_vec(),
            lines: input.lines().len() as u64,
            rounds: 0,
            sent: 0,
            received: 0,
            refused_full: 0,
            retried: 0,
            duplicated: 0,
            lost: 0,
            broadcasts: 0,
            broadcasts_equal: 0,
            conflicts: 0,
            recoveries: Vec::new(),
            tree: None,
            script: None,
            streams: Vec::new(),
        }
    }

    fn step(&mut self, name: &'static str, ok: bool, detail: String) {
        self.steps.push(DemoStep { name, ok, detail });
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
            self.note_stream(end, received);
        }
        self.rounds = ends.iter().map(|end| end.rounds).min().unwrap_or(0);
        let complete = self.sent == self.received && collector.altered == 0 && self.rounds > 0;
        let detail = format!(
            "{} lines, {} rounds at least, from each of {} nodes: {} messages sent, {} received, \
             {} altered, {} refused as full and retried",
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
            "{} duplicated, {} lost, {redelivered} redeliveries filtered, {put_aside} retries \
             after a gap",
            self.duplicated, self.lost
        );
        self.step("exactly once", once, detail);
        let equal = self.streams.iter().filter(|stream| stream.digest_equal).count();
        let all = self.streams.len();
        let detail = format!("SHA-256 of the lines as they arrived: {equal} of {all} equal");
        self.step("digests", equal == all, detail);
    }

    fn note_stream(&mut self, end: &StreamEnd, received: &Received) {
        let digest = received.digest();
        let stream = StreamSummary {
            rank: end.rank,
            lines: received.lines,
            sent: end.acknowledged as u64,
            received: received.frames,
            duplicated: received.duplicated,
            lost: received.lost(end.acknowledged),
            resumed: end.resumed,
            put_again: end.put_again,
            digest_equal: digest == end.digest,
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

    pub(super) fn note_recovery(&mut self, act: &Act, recovery: BlowRecovery) {
        let BlowRecovery { node, incarnations: (before, after), terms, .. } = &recovery;
        let ok = recovery.is_complete() && act.has_returned();
        let mut detail = format!("node {node}, incarnation {before}, then {after}");
        let [(epoch, manager), (next_epoch, next_manager)] = terms;
        if epoch != next_epoch {
            detail += &format!("; term {epoch}.{manager}, then {next_epoch}.{next_manager}");
        }
        detail += &format!("; {}", recovery.steps());
        self.step(recovery.name, ok, detail);
        self.recoveries.push(recovery);
    }

    /// Whether the streams of the others went on in every act.
    pub(super) fn note_survivors(&mut self, acts: &[Act]) {
        let acts = acts.iter().zip(&self.recoveries);
        let all = acts.flat_map(|(act, recovery)| {
            recovery.survivors.iter().map(move |survivor| (act, recovery, survivor))
        });
        let ok = all.clone().all(|(act, _, survivor)| act.has_gone_on(survivor));
        let arrived: u64 = all.clone().map(|(_, _, survivor)| survivor.arrived).sum();
        let longest = all.max_by_key(|(_, _, survivor)| survivor.longest_silence_ms);
        let longest = longest.map_or_else(String::new, |(_, recovery, survivor)| {
            format!(
                ", the longest silence {} ms, of node {}, while node {} was away for {}",
                survivor.longest_silence_ms,
                survivor.rank,
                recovery.node,
                Ms(recovery.away_us)
            )
        });
        let detail = format!("{arrived} messages of the others while a node was away{longest}");
        self.step("survivors", ok, detail);
    }

    /// Whether the broadcast that lost its forwarder is the same at all survivors.
    pub(super) fn note_tree(&mut self, tree: Option<TreeSummary>) {
        let Some(tree) = tree else { return self.step("tree", false, "not shown".to_owned()) };
        let TreeSummary { root, forwarder, messages, messages_before, bytes, .. } = &tree;
        let (survivors, whole) = (&tree.survivors, |it: &&TreeReceived| !it.is_abandoned);
        let detail = format!(
            "node {root} to all along a tree whose forwarder, node {forwarder}, was lost after \
             {messages_before} of {messages} messages: {bytes} bytes, whole at {} of {} survivors, \
             silent for {} at most",
            survivors.iter().filter(whole).count(),
            survivors.len(),
            Ms(survivors.iter().map(|it| it.longest_silence_us).max().unwrap_or(0)),
        );
        self.step("tree", tree.is_held(), detail);
        self.tree = Some(tree);
    }

    /// Whether the order that the recovery script gave was obeyed once.
    pub(super) fn note_script(&mut self, script: ScriptSummary) {
        let ScriptSummary { name, task, node, manager, order, orders, restarts, .. } = &script;
        let detail = format!(
            "task {task} of node {node} failed, and {name} ordered at node {manager}: {order}; \
             given {} and obeyed {}, under all managers",
            times(*orders as u64),
            times(*restarts)
        );
        self.step("script", script.is_held(), detail);
        self.script = Some(script);
    }

    pub(super) fn note_broadcasts(&mut self, shown: &BroadcastWatch) {
        let BroadcastWatch { received, equal, delivered, repeated, .. } = *shown;
        (self.broadcasts, self.broadcasts_equal) = (received, equal);
        self.conflicts = shown.disputed.len();
        let nodes = super::NODES;
        let detail = format!(
            "all {nodes} nodes at once, {delivered} deliveries, {repeated} of them twice; \
             {equal} of {received} digests equal"
        );
        let ok = received == nodes * (nodes - 1) && equal == received && repeated == 0;
        self.step("broadcast", ok, detail);
        let (original, altered) = &shown.sent_to;
        let (disputed, believed) = (&shown.disputed, &shown.believed);
        let detail = format!(
            "one message went to {} and another to {}: detected by {}, delivered by {}, {} \
             different deliveries",
            explain::nodes(original),
            explain::nodes(altered),
            explain::nodes(disputed),
            explain::nodes(believed),
            shown.stories.saturating_sub(1)
        );
        let ok = !disputed.is_empty() && shown.stories <= 1 && !altered.is_empty();
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
        writeln!(f, "\ntimeline: how long after each blow, who noted it, and what")?;
        for recovery in &self.recoveries {
            write!(f, "\n{recovery}")?;
        }
        writeln!(
            f,
            "\nnode {:>8} {:>9} {:>9} {:>10} {:>5} {:>8} {:>9}  digest",
            "lines", "sent", "received", "duplicated", "lost", "resumed", "put again"
        )?;
        for stream in &self.streams {
            writeln!(
                f,
                "{:>4} {:>8} {:>9} {:>9} {:>10} {:>5} {:>8} {:>9}  {}… {}",
                stream.rank,
                stream.lines,
                stream.sent,
                stream.received,
                stream.duplicated,
                stream.lost,
                stream.resumed,
                stream.put_again,
                &stream.digest[..16],
                if stream.digest_equal { "equal" } else { "DIFFERENT" },
            )?;
        }
        let verdict = if self.ok { "everything held" } else { "SOMETHING DID NOT HOLD" };
        writeln!(f, "\n{verdict}, in {} ms", self.elapsed_ms)
    }
}
