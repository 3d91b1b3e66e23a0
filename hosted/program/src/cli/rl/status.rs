//! `weft rl status`: the script of a running cluster, and what its manager has done by it.

use clap::Args;
use serde_json::json;

use super::super::cluster_choice::ClusterChoice;
use super::super::failure::Failure;
use super::super::output::Output;
use weft::explain::{Code, count};
use weft::node::control::{DirNetStatus, ScriptStatus, VoteResult};

/// Arguments of `weft rl status`.
#[derive(Debug, Args)]
pub(super) struct Status {
    #[command(flatten)]
    cluster: ClusterChoice,
}

/// Later rounds are greater.
fn key(vote: &&VoteResult) -> (u8, u32) {
    (vote.nversion, vote.round)
}

pub(super) fn run(arguments: &Status, output: Output) -> Result<(), Failure> {
    let running = arguments.cluster.find()?;
    let mut found: Vec<(u16, u32, ScriptStatus)> = Vec::new();
    for rank in running.ranks() {
        let Ok(mut client) = running.connect_now(rank) else { continue };
        let dirnet = client.status().map_err(Failure::new)?.dirnet;
        let Some(DirNetStatus { epoch, script: Some(script), .. }) = dirnet else { continue };
        found.push((rank, epoch, script));
    }
    let Some((_, _, script)) = found.first() else {
        let cause = format!("no node of cluster {} has a recovery script", running.cluster.name);
        let cure = "set `recovery.script` in the cluster file, and start the cluster with it";
        return Err(Failure::of(Code::Script, cause, cure));
    };
    let ScriptStatus { words, tasks, .. } = script;
    let mut text = format!("{words} words; tasks {}\n", tasks.join(", "));
    for (rank, _, it) in &found {
        let next = it.next.as_ref().map(|next| format!("; holds {next} as well"));
        let lacking = if it.is_lacking { "; lacks the one in force" } else { "" };
        let next = next.unwrap_or_default();
        text.push_str(&format!("node {rank}: script {}{next}{lacking}\n", it.digest));
    }
    for (rank, epoch, it) in found.iter().filter(|(_, _, it)| it.is_acting) {
        let held: Vec<String> = it.last_held.iter().map(u16::to_string).collect();
        let held = match held.len() {
            0 => "no section held".to_owned(),
            _ => format!("sections {} held", held.join(", ")),
        };
        text.push_str(&format!(
            "node {rank} manages in term {epoch}: {}, {}; in the last, {held}, {}\n",
            count(it.evaluations.into(), "evaluation"),
            count(it.orders, "order"),
            count(it.last_steps.into(), "step"),
        ));
    }
    if let Some(vote) = found.iter().filter_map(|(_, _, it)| it.last_vote.as_ref()).max_by_key(key)
    {
        text.push_str(&format!("last vote: {vote}\n"));
    }
    for (rank, _, it) in &found {
        for (nversion, round) in &it.open_votes {
            let waits = "waits for the outcome of round";
            text.push_str(&format!("node {rank} {waits} {round} of N-version task {nversion}\n"));
        }
    }
    let nodes: Vec<_> = found
        .iter()
        .map(|(rank, epoch, script)| json!({ "node": rank, "epoch": epoch, "script": script }))
        .collect();
    output.finish(&json!({ "ok": true, "nodes": nodes }), &text);
    Ok(())
}
