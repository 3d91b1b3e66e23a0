//! `weft status --why NODE`: who concluded what about a node, from which evidence, and when.
//!
//! Every node keeps a chronicle, and what the others have concluded, in case they die; what all of
//! them say about one node is put in the order of time. On one host they all read the same clock.

use std::collections::HashSet;
use std::thread;

use serde::Serialize;

use crate::cli::cluster_choice::Running;
use crate::cli::failure::Failure;
use weft::clock::now_ns;
use weft::node::chronicle::{Entry, What};
use weft::node::evidence::Copied;

/// What was noted about one node.
#[derive(Debug, Serialize)]
pub(super) struct Why {
    node: u16,
    noted: Vec<Noted>,
    /// How many older entries the nodes have dropped to make room.
    dropped: u64,
}

/// An entry as it is shown.
#[derive(Debug, Serialize)]
struct Noted {
    /// How long ago, by this host's clock.
    ago_ms: u64,
    /// In words.
    text: String,
    #[serde(flatten)]
    entry: Entry,
}

impl Why {
    /// Asks every node that answers.
    pub(super) fn ask(running: &Running, node: u16) -> Result<Self, Failure> {
        // A node that does not exist is refused as everywhere.
        if usize::from(node) >= running.cluster.nodes {
            running.connect(node).map(drop)?;
        }
        let now_ns = now_ns();
        let (entries, dropped) = entries(running, running.ranks(), Some(node));
        let mut noted: Vec<Noted> = entries
            .into_iter()
            .map(|entry| {
                let ago_ms = now_ns.saturating_sub(entry.at_ns) / 1_000_000;
                Noted { ago_ms, text: entry.what.to_string(), entry }
            })
            .collect();
        noted.sort_by_key(|noted| noted.entry.at_ns);
        Ok(Self { node, noted, dropped })
    }

    pub(super) fn render(&self) -> String {
        let Self { node, noted, dropped } = self;
        if noted.is_empty() {
            return format!("node {node}: nothing was noted\n");
        }
        let mut text = format!("node {node}, as noted by each node\n{:>12}  by  what\n", "s ago");
        for Noted { ago_ms, text: words, entry } in noted {
            let (s, ms) = (ago_ms / 1_000, ago_ms % 1_000);
            text.push_str(&format!("{s:>8}.{ms:03}  {:>2}  {words}\n", entry.observer));
        }
        if *dropped > 0 {
            text.push_str(&format!("{dropped} older entries were dropped to make room\n"));
        }
        text
    }
}

/// The last verdicts of these nodes, oldest first.
pub(super) fn verdicts(running: &Running, of: impl Iterator<Item = u16>, max: usize) -> Vec<Entry> {
    let (mut verdicts, _) = entries(running, of, None);
    verdicts.retain(|entry| matches!(entry.what, What::Verdict(_)));
    verdicts.sort_by_key(|entry| entry.at_ns);
    verdicts.split_off(verdicts.len().saturating_sub(max))
}

/// The chronicles of those of these nodes that answer, with what they know of the others, or of
/// those that have forgotten it with an earlier incarnation; and how much was dropped. All are
/// asked at once.
fn entries(
    running: &Running,
    of: impl Iterator<Item = u16>,
    about: Option<u16>,
) -> (Vec<Entry>, u64) {
    let ask = |rank| {
        let mut client = running.connect_now(rank).ok()?;
        Some((client.whole_chronicle(about, 0).ok()?, client.whole_evidence(about).ok()?))
    };
    let answers: Vec<_> = thread::scope(|scope| {
        let asked: Vec<_> = of.map(|rank| scope.spawn(move || ask(rank))).collect();
        asked.into_iter().filter_map(|asked| asked.join().ok().flatten()).collect()
    });
    let dropped = answers.iter().map(|(_, (_, dropped))| dropped).sum();
    let (own, copies): (Vec<_>, Vec<_>) =
        answers.into_iter().map(|(own, (copies, _))| (own, copies)).unzip();
    (merge(own.into_iter().flatten().collect(), copies.into_iter().flatten()), dropped)
}

/// `own`, and each of the `copies` that is of none of them, once.
fn merge(own: Vec<Entry>, copies: impl Iterator<Item = Copied>) -> Vec<Entry> {
    let name = |entry: &Entry, noted_ns| (entry.observer, noted_ns, entry.what.to_string());
    let mut known: HashSet<_> = own.iter().map(|entry| name(entry, entry.at_ns)).collect();
    let others = copies.filter(|it| known.insert(name(&it.entry, it.noted_ns)));
    let others: Vec<_> = others.map(|it| it.entry).collect();
    own.into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_several_hold_is_told_once() {
        let entry = |observer, at_ns| Entry { at_ns, observer, node: 2, what: What::Gone };
        let copied = |observer, noted_ns, at_ns| Copied { entry: entry(observer, at_ns), noted_ns };
        let own = vec![entry(0, 5), entry(1, 5)];
        // Node 3 does not answer; two others, on other hosts, have heard it at different times.
        let copies = [copied(0, 5, 5), copied(3, 5, 80), copied(3, 5, 81), copied(3, 6, 82)];
        let merged = merge(own, copies.into_iter());
        assert_eq!(merged, [entry(0, 5), entry(1, 5), entry(3, 80), entry(3, 82)]);
    }
}
