//! `weft metrics`: the counters of a node as OpenMetrics, and where scrapers find them.

use std::path::Path;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::cluster_choice::{ClusterChoice, Running};
use super::failure::Failure;
use super::output::Output;
use crate::metrics::{DASHBOARD, fetch};
use weft::explain::Code;

/// Arguments of `weft metrics`.
#[derive(Debug, Args)]
pub(super) struct MetricsArguments {
    /// Print the metrics of this node, instead of where all nodes serve theirs.
    #[arg(long, value_name = "RANK")]
    node: Option<u16>,

    /// Print the path of the node's socket alone, as for `curl --unix-socket`.
    #[arg(long, requires = "node")]
    socket: bool,

    /// Print a dashboard for Grafana as JSON.
    #[arg(long, conflicts_with_all = ["node", "socket"])]
    dashboard: bool,

    #[command(flatten)]
    cluster: ClusterChoice,
}

/// Where a node serves its metrics.
#[derive(Debug, Serialize)]
struct MetricsEndpoint {
    rank: u16,
    socket: String,
    /// With `metrics.port` alone.
    url: Option<String>,
}

impl MetricsEndpoint {
    fn of(running: &Running, rank: u16) -> Result<Self, Failure> {
        let socket = running.dir.metrics_socket(usize::from(rank)).map_err(Failure::new)?;
        let address = running.cluster.metrics.address(rank);
        Ok(Self {
            rank,
            socket: socket.display().to_string(),
            url: address.map(|address| format!("http://{address}/metrics")),
        })
    }
}

pub(super) fn run(arguments: &MetricsArguments, output: Output) -> Result<(), Failure> {
    if arguments.dashboard {
        output.finish(&json!({ "ok": true, "dashboard": DASHBOARD }), DASHBOARD);
        return Ok(());
    }
    let running = arguments.cluster.find()?;
    let Some(rank) = arguments.node else { return list(&running, output) };
    let nodes = running.cluster.nodes;
    if usize::from(rank) >= nodes {
        let cause = format!("there is no node {rank}: the cluster has {nodes}");
        let cure = format!("choose a node from 0 to {}", nodes - 1);
        return Err(Failure::of(Code::NodeOutOfRange, cause, cure));
    }
    let place = MetricsEndpoint::of(&running, rank)?;
    if arguments.socket {
        output.finish(&place, &format!("{}\n", place.socket));
        return Ok(());
    }
    let metrics = fetch(Path::new(&place.socket)).map_err(Failure::new)?;
    output.finish(&json!({ "ok": true, "rank": rank, "metrics": metrics }), &metrics);
    Ok(())
}

fn list(running: &Running, output: Output) -> Result<(), Failure> {
    let places: Result<Vec<_>, _> =
        running.ranks().map(|rank| MetricsEndpoint::of(running, rank)).collect();
    let places = places?;
    let row = |MetricsEndpoint { rank, socket, url }: &MetricsEndpoint| {
        let url = url.as_deref().map_or_else(String::new, |url| format!("  {url}"));
        format!("{rank:>4}  {socket}{url}\n")
    };
    let rows: String = places.iter().map(row).collect();
    let hint = match running.cluster.metrics.port {
        0 => "\na port of 127.0.0.1 serves them as well with metrics.port in the cluster file\n",
        _ => "",
    };
    output.finish(&json!({ "nodes": places }), &format!("node  socket\n{rows}{hint}"));
    Ok(())
}
