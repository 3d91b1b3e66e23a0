//! `weft status --why NODE`: who concluded what about a node, from which evidence, and when.
//!
//! Every node keeps a chronicle; what they say about one node is put in the order of time. On one
//! host all of them read the same clock.

use serde::Serialize;

use crate::cli::cluster_choice::Running;
use crate::cli::failure::Failure;
use crate::clock::now_ns;
use crate::node::chronicle::{Entry, What};

/// What was noted about one node.
#[derive(Debug, Serialize)]
pub(super) struct Why {
    node: u16,
    noted: Vec<Noted>,
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
        let mut noted: Vec<Noted> = entries(running, Some(node))
            .into_iter()
            .map(|entry| {
                let ago_ms = now_ns.saturating_sub(entry.at_ns) / 1_000_000;
                Noted { ago_ms, text: entry.what.to_string(), entry }
            })
            .collect();
        noted.sort_by_key(|noted| noted.entry.at_ns);
        Ok(Self { node, noted })
    }

    pub(super) fn render(&self) -> String {
        let Self { node, noted } = self;
        if noted.is_empty() {
            return format!("node {node}: nothing was noted\n");
        }
        let mut text = format!("node {node}, as noted by each node\n{:>12}  by  what\n", "s ago");
        for Noted { ago_ms, text: words, entry } in noted {
            let (s, ms) = (ago_ms / 1_000, ago_ms % 1_000);
            text.push_str(&format!("{s:>8}.{ms:03}  {:>2}  {words}\n", entry.observer));
        }
        text
    }
}

/// The last verdicts of all nodes, oldest first.
pub(super) fn verdicts(running: &Running, max: usize) -> Vec<Entry> {
    let mut verdicts = entries(running, None);
    verdicts.retain(|entry| matches!(entry.what, What::Verdict(_)));
    verdicts.sort_by_key(|entry| entry.at_ns);
    verdicts.split_off(verdicts.len().saturating_sub(max))
}

/// The chronicles of all nodes that answer.
fn entries(running: &Running, about: Option<u16>) -> Vec<Entry> {
    let ask = |rank| running.connect(rank).ok()?.whole_chronicle(about, 0).ok();
    running.ranks().filter_map(ask).flatten().collect()
}
