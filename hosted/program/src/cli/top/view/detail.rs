//! One node in detail: all that it reports of itself, what others hold of it, and why.

use serde_json::Value;

use super::TextLine;
use super::lists::{self, age, listed};
use crate::cli::status::{role, term};
use crate::cli::survey::{NodeAnswer, Survey};
use crate::cli::top::asking::Resident;
use crate::cli::top::columns::{Level, suspected_by};
use crate::cli::top::rates::Rates;
use crate::cli::top::screen::Screen;
use weft::node::control::{CounterStatus, Latency, NodeStatus, PeerStatus};

/// Samples of a rate that are drawn, on a wide screen and on any; and what stands in their line.
const SAMPLES: usize = 60;
const SAMPLES_MIN: usize = 8;
const BESIDE_SAMPLES: usize = 40;

/// The notes that are shown.
const NOTES_SHOWN: usize = 50;

/// The width of a counter's name and its value.
const NAME: usize = 18;
const VALUE: usize = 12;

pub(super) fn lines(screen: &Screen, rank: u16, now: Now, width: usize) -> Vec<TextLine> {
    let mut lines = Vec::new();
    match screen.survey.nodes.get(usize::from(rank)) {
        Some(NodeAnswer::Answered(node)) => {
            let resident = screen.watched[usize::from(rank)].resident;
            head(&mut lines, node, &screen.survey, resident);
            rates(&mut lines, screen, rank, width);
            counters(&mut lines, node, now, width);
            latencies(&mut lines, node);
            peers(&mut lines, node);
            broadcasts(&mut lines, node);
            groups(&mut lines, node);
            tensors(&mut lines, node);
            tasks(&mut lines, node);
        }
        Some(NodeAnswer::Silent { state, incarnation, supervisor_pid, .. }) => {
            let mut text = format!("node {rank}: {state}");
            if let Some(incarnation) = incarnation {
                text.push_str(&format!(", last seen in incarnation {incarnation}"));
            }
            if let Some(pid) = supervisor_pid {
                text.push_str(&format!("; its supervisor, process {pid}, does not answer"));
            }
            lines.push(TextLine { text, level: Level::Bad });
            suspicion(&mut lines, &screen.survey, rank);
            rates(&mut lines, screen, rank, width);
        }
        None => lines.push(plain(format!("the cluster has no node {rank}"))),
    }
    section(&mut lines, "explanations, the last first");
    let notes = screen.notes_about(rank).take(NOTES_SHOWN);
    let notes = notes.map(|entry| lists::note(entry, &format!("by {}: ", entry.observer), now.ns));
    let before = lines.len();
    lines.extend(notes);
    if lines.len() == before {
        lines.push(plain("  nothing was noted"));
    }
    lines
}

/// The time by both clocks.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli::top) struct Now {
    /// By that of the host, as notes have it.
    pub(in crate::cli::top) ns: u64,
    /// Since 1970, as counters have it.
    pub(in crate::cli::top) unix_ms: u64,
}

fn plain(text: impl Into<String>) -> TextLine {
    TextLine { text: text.into(), level: Level::Plain }
}

fn section(lines: &mut Vec<TextLine>, title: &str) {
    lines.push(plain(""));
    lines.push(TextLine { text: title.to_owned(), level: Level::Strong });
}

fn head(lines: &mut Vec<TextLine>, node: &NodeStatus, survey: &Survey, resident: Resident) {
    let state = node.state.words();
    let text = format!("node {}: {state}, {}, term {}", node.rank, role(node), term(node));
    lines.push(TextLine { text, level: Level::Strong });
    suspicion(lines, survey, node.rank);
    let process = |pid: Option<i32>, kib: Option<u64>| {
        let pid = pid.map_or_else(|| "none".to_owned(), |pid| format!("process {pid}"));
        let memory = kib.map(|kib| format!(", {:.1} MiB resident", kib as f64 / 1_024.0));
        format!("{pid}{}", memory.unwrap_or_default())
    };
    lines.push(plain(format!(
        "component   {}; incarnation {}, {} restarts{}",
        process(node.component_pid, resident.component),
        node.incarnation,
        node.restarts,
        node.last_recovery_us.map_or_else(String::new, |us| format!(
            ", the last took {:.1} ms",
            us as f64 / 1_000.0
        )),
    )));
    let supervisor = process(Some(node.supervisor_pid), resident.supervisor);
    lines.push(plain(format!("supervisor  {supervisor}")));
    if let Some(standing) = &node.dirnet {
        let members: Vec<u16> = standing.view.members.iter().map(|member| member.rank).collect();
        lines.push(plain(format!(
            "membership  view {:#x} of nodes {}; suspects {}; removed {}",
            standing.view.number,
            or_none(&members),
            or_none(&standing.suspects),
            or_none(&standing.removed)
        )));
    }
    let slots = survey.cluster.mailbox.slots;
    let owed = node.counters.map_or(0, |counters| counters.owed);
    lines.push(plain(format!("mailbox     {owed} messages owed, of {slots} slots")));
    lines.extend(
        node.holders.iter().map(|holder| TextLine {
            text: format!("            {holder}"),
            level: Level::Doubtful,
        }),
    );
}

fn suspicion(lines: &mut Vec<TextLine>, survey: &Survey, rank: u16) {
    let by = suspected_by(survey, rank);
    if !by.is_empty() {
        lines.push(TextLine { text: format!("suspected by {by}"), level: Level::Doubtful });
    }
}

fn or_none(ranks: &[u16]) -> String {
    if ranks.is_empty() { "none".to_owned() } else { listed(ranks) }
}

/// Each rate now, and as a line.
fn rates(lines: &mut Vec<TextLine>, screen: &Screen, rank: u16, width: usize) {
    type Rate = fn(Rates) -> u64;
    let Some(watched) = screen.watched.get(usize::from(rank)) else { return };
    let history = &watched.history;
    let samples = SAMPLES.min(width.saturating_sub(BESIDE_SAMPLES).max(SAMPLES_MIN));
    let span_s = history.span_ns(samples) / 1_000_000_000;
    section(lines, &format!("messages per second, the last {span_s} s"));
    let rates: [(&str, Rate); 3] = [
        ("put", |rates| rates.put),
        ("taken", |rates| rates.taken),
        ("delivered", |rates| rates.delivered),
    ];
    for (name, of) in rates {
        let now = history.now().map_or_else(|| "-".to_owned(), |rates| of(rates).to_string());
        let highest = history.highest(of, samples);
        let spark = history.spark(of, highest, samples);
        lines.push(plain(format!("  {name:<9} {now:>8} {spark} highest {highest}")));
    }
}

/// Every counter under the name that `--json` has for it.
fn counters(lines: &mut Vec<TextLine>, node: &NodeStatus, now: Now, width: usize) {
    let Some(counters) = node.counters else {
        section(lines, "counters: the component could not be asked");
        return;
    };
    let since = age(now.unix_ms.saturating_sub(counters.since_unix_ms));
    section(lines, &format!("counters of this component, within {since}"));
    let Ok(Value::Object(fields)) = serde_json::to_value(counters) else { return };
    let counts = fields.iter().filter(|(name, value)| value.is_u64() && *name != "since_unix_ms");
    let cells: Vec<_> = counts
        .map(|(name, value)| format!("  {name:<NAME$}{:>VALUE$}", value.to_string()))
        .collect();
    let a_line = (width / (2 + NAME + VALUE)).max(1);
    lines.extend(cells.chunks(a_line).map(|cells| plain(cells.concat())));
}

fn latencies(lines: &mut Vec<TextLine>, node: &NodeStatus) {
    let CounterStatus { put_latency, broadcast_latency, .. } = node.counters.unwrap_or_default();
    section(lines, "latencies");
    let all = [("put", put_latency), ("broadcast", broadcast_latency), ("recovery", node.recovery)];
    for (name, latency) in all {
        let count: u64 = latency.counts.iter().sum();
        let text = match (within(&latency, 50), within(&latency, 99)) {
            (Some(half), Some(most)) => {
                format!("half within {half}, 99 % within {most}, of {count}")
            }
            _ => "none yet".to_owned(),
        };
        lines.push(plain(format!("  {name:<9} {text}")));
    }
}

/// The bound within which so many percent were; none if there were none.
fn within(latency: &Latency, percent: u64) -> Option<String> {
    let count: u64 = latency.counts.iter().sum();
    let wanted = u128::from(count) * u128::from(percent);
    let mut below = 0_u128;
    let place = latency.counts.iter().position(|count| {
        below += u128::from(*count) * 100;
        below >= wanted
    });
    let bound = place.filter(|_| count > 0).map(|place| Latency::BOUNDS_NS.get(place));
    bound.map(|bound| match bound {
        Some(ns) if *ns < 1_000_000 => format!("{:.1} µs", *ns as f64 / 1_000.0),
        Some(ns) => format!("{:.1} ms", *ns as f64 / 1_000_000.0),
        None => "more than 8 s".to_owned(),
    })
}

fn peers(lines: &mut Vec<TextLine>, node: &NodeStatus) {
    section(lines, "peers");
    let suspects = node.dirnet.as_ref().map_or(&[][..], |standing| &standing.suspects[..]);
    for PeerStatus { rank, incarnation, joined } in &node.peers {
        let (mut text, mut level) = match (incarnation, joined) {
            (Some(incarnation), true) => (format!("incarnation {incarnation}"), Level::Plain),
            (Some(incarnation), false) => {
                (format!("incarnation {incarnation}, not greeted yet"), Level::Changing)
            }
            (None, _) => ("down".to_owned(), Level::Bad),
        };
        if suspects.contains(rank) {
            text.push_str(", suspected here");
            level = Level::Doubtful;
        }
        if node.cut.contains(rank) {
            text.push_str(", link cut by order");
            level = Level::Doubtful;
        }
        lines.push(TextLine { text: format!("  {rank:>4}  {text}"), level });
    }
}

fn broadcasts(lines: &mut Vec<TextLine>, node: &NodeStatus) {
    let used: Vec<_> =
        node.broadcasts.iter().filter(|row| row.broadcast > 0 || row.conflicts > 0).collect();
    if used.is_empty() {
        return;
    }
    section(lines, &format!("broadcasts, {}", node.form));
    for row in used {
        let number = weft_core::neb::number_in_epoch;
        lines.push(plain(format!(
            "  of {:>4}  seen {}, delivered {}, by all {}, window {}/{}, {} conflicts",
            row.origin,
            number(row.broadcast),
            number(row.delivered),
            number(row.settled),
            row.window.used,
            row.window.slots,
            row.conflicts
        )));
    }
}

fn groups(lines: &mut Vec<TextLine>, node: &NodeStatus) {
    if node.groups.is_empty() {
        return;
    }
    section(lines, "groups");
    for group in &node.groups {
        let members = listed(&group.members);
        lines.push(plain(format!("  {} of {members}: {}", group.name, group.standing.words())));
        for root in group.roots.iter().filter(|root| root.held > 0) {
            let (rank, held, delivered) = (root.root, root.held, root.delivered);
            let text = format!("    of {rank:>4}  held {held}, delivered {delivered}");
            lines.push(plain(text));
        }
    }
}

fn tensors(lines: &mut Vec<TextLine>, node: &NodeStatus) {
    let Some(it) = node.tensors else { return };
    section(lines, "tensors");
    let texts = [
        format!("  stored {}, {} of {} bytes", it.kept, it.kept_bytes, it.store_bytes),
        format!("  offered {}, {} bytes; waiters {}", it.offered, it.offered_bytes, it.waiters),
        format!("  receives {}, {} bytes", it.receives, it.received_bytes),
        format!("  quarantined {} bytes; rejects {}", it.quarantined_bytes, it.rejects),
    ];
    lines.extend(texts.map(plain));
}

fn tasks(lines: &mut Vec<TextLine>, node: &NodeStatus) {
    if node.tasks.is_empty() {
        return;
    }
    section(lines, "tasks");
    for task in &node.tasks {
        lines.push(lists::task_line(node.rank, task));
        let errors = task.last_errors.iter().rev().skip(1);
        let earlier =
            errors.map(|it| plain(format!("      before: {}, {} ago", it.fault, age(it.ago_ms))));
        lines.extend(earlier);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_within_the_bound_that_holds_so_many() {
        let mut latency = Latency::default();
        assert_eq!(within(&latency, 50), None);
        latency.counts[0] = 98;
        latency.counts[11] = 1;
        latency.counts[25] = 1;
        assert_eq!(within(&latency, 50).as_deref(), Some("0.5 µs"));
        assert_eq!(within(&latency, 99).as_deref(), Some("1.0 ms"));
        assert_eq!(within(&latency, 100).as_deref(), Some("more than 8 s"));
    }
}
